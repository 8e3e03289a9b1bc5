//! Common parts of sending and receiving.

pub mod receiving;
pub mod sending;

use super::completion_routine::{Call, CompletionRoutine};
use super::socket::{descriptor_or_none, is_bound};
use super::system::int_option;
use super::table::overlapped::{Direction, Operation};
use super::table::selection::{FD_READ, enable};
use super::table::{self, RECEIVING_SHUT, UNBOUND, descriptor};
use super::wire::{self, Piece, Pieces, WsaBuf};
use super::{SOCKET_ERROR, Socket, failed, system};
use crate::arguments::Out;
use crate::boundary::guard;
use crate::error::*;
use crate::io::{Idle, Overlapped, STATUS_PENDING};
use libc::c_int;
use receiving::ndw_WSARecv;
use sending::ndw_WSASend;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

/// The result of a call; a failure is an errno (0: not set) and a Winsock error.
type Outcome<T> = Result<T, (c_int, u32)>;

const FAULT: (c_int, u32) = (libc::EFAULT, WSAEFAULT);

/// Another thread has closed the socket.
const ENDED: (c_int, u32) = (libc::EINTR, WSAEINTR);

/// The failure of a send or receive.
fn failure(fd: RawFd, errno: c_int, flags: c_int) -> (c_int, u32) {
    match errno {
        // EAGAIN of a blocking socket is its time-out.
        libc::EAGAIN if flags & libc::MSG_DONTWAIT == 0 && system::is_blocking(fd) => (errno, WSAETIMEDOUT),
        _ => (errno, errno_to_wsa(errno)),
    }
}

/// Why nothing can be received on a socket. On Linux an unbound one would wait for ever.
fn refusal(fd: RawFd) -> Option<(c_int, u32)> {
    if !table::is_marked(fd, UNBOUND | RECEIVING_SHUT) {
        return None;
    }
    // Unless the descriptor has another socket now.
    let socket = table::get(fd).ok()?;
    if socket.is_marked(RECEIVING_SHUT) {
        return Some((libc::ESHUTDOWN, WSAESHUTDOWN));
    }
    if !socket.is_marked(UNBOUND) {
        return None;
    }
    if is_bound(fd) {
        socket.unmark(UNBOUND);
        return None;
    }
    Some((libc::EINVAL, WSAEINVAL))
}

/// As many of the pieces as one call takes: a message must be sent by one call, a stream need not.
fn in_one_call(fd: RawFd, pieces: &[Piece]) -> &[Piece] {
    let first = wire::first_of(pieces);
    let cut = first.len() < pieces.len() && int_option(fd, libc::SO_TYPE) == Ok(libc::SOCK_STREAM);
    if cut { first } else { pieces }
}

/// Makes a call with these flags, which may wait. A thread that counts as running on a port tries without waiting first: only one that
/// waits makes room for another.
#[inline]
fn make_room_to_wait<R>(
    fd: RawFd,
    flags: c_int,
    call: impl Fn(c_int) -> Result<R, c_int>,
) -> Result<R, c_int> {
    if Idle::is_needed() {
        match call(flags | libc::MSG_DONTWAIT) {
            Err(libc::EAGAIN) if flags & libc::MSG_DONTWAIT == 0 && system::is_blocking(fd) => {}
            done => return done,
        }
    }
    let _idle = Idle::enter();
    call(flags)
}

/// The return value of functions that return a number of bytes. Success leaves no error: programs look for one without looking at the
/// result.
fn told(result: Outcome<usize>) -> isize {
    match result {
        Ok(count) => {
            set_last_error(ERROR_SUCCESS);
            count as isize
        }
        Err((errno, code)) => {
            failed(errno, code);
            SOCKET_ERROR as isize
        }
    }
}

/// The return value of functions that return 0 for success.
fn answered(call: impl FnOnce() -> Outcome<()>) -> i32 {
    guard(SOCKET_ERROR, || told(call().map(|()| 0)) as i32)
}

/// The buffer of `send` or `recv`, whose length may be a negative `int`.
///
/// # Safety
/// As for [`Piece::new`].
unsafe fn buffer(data: *const u8, length: usize) -> Outcome<Piece> {
    if length > i32::MAX as usize || (data.is_null() && length > 0) {
        return Err(FAULT);
    }
    // SAFETY: not NULL or of no bytes, and memory as `Piece::new` asks, as the caller promises.
    Ok(unsafe { Piece::new(data, length) })
}

/// The buffers of `WSASend` or `WSARecv`.
///
/// # Safety
/// There are so many, each of which is as [`Piece::new`] asks.
unsafe fn pieces(buffers: *const WsaBuf, count: u32) -> Outcome<Pieces> {
    if buffers.is_null() {
        return Err(FAULT);
    }
    let piece = |at| {
        let buffer = buffers.wrapping_add(at);
        // SAFETY: one of the list.
        let buffer = unsafe { buffer.read_unaligned() };
        match buffer.data.is_null() && buffer.length > 0 {
            true => Err(FAULT),
            // SAFETY: not NULL or of no bytes, and memory as `Piece::new` asks, as the caller promises.
            false => Ok(unsafe { Piece::new(buffer.data, buffer.length as usize) }),
        }
    };
    (0..count as usize).map(piece).collect()
}

/// `LPWSAOVERLAPPED_COMPLETION_ROUTINE`.
pub type Routine = Option<CompletionRoutine>;

/// The common arguments of `WSASend`, `WSARecv` and related functions.
struct Request<'a> {
    socket: Socket,
    overlapped: *mut Overlapped,
    routine: Routine,
    transferred: Out<'a, u32>,
}

impl Request<'_> {
    /// The descriptor for a call that is not overlapped, which must pass a pointer for the number of bytes; `None` for an
    /// overlapped one.
    fn at_once(&self) -> Outcome<Option<RawFd>> {
        match (self.overlapped.is_null(), self.transferred.is_null()) {
            (false, _) => Ok(None),
            (true, false) => Ok(Some(descriptor_or_none(self.socket))),
            (true, true) => Err(FAULT),
        }
    }

    /// Stores the number of bytes.
    fn done(&self, count: usize) -> Outcome<()> {
        self.transferred.put(count as u32);
        Ok(())
    }

    /// Starts an overlapped operation, which is made for a stream or not.
    ///
    /// # Safety
    /// The `OVERLAPPED`, and all that the operation points to, stay until the request has completed.
    unsafe fn start(&self, direction: Direction, operation: impl FnOnce(bool) -> Operation) -> Outcome<()> {
        let start = || {
            let call = self.routine.map(Call::of);
            let socket = table::usual(self.socket)?;
            let (driver, operation) = (socket.driver()?, operation(socket.stream));
            if direction == Direction::In
                && socket.is_marked(UNBOUND | RECEIVING_SHUT)
                && let Some((_, code)) = refusal(socket.fd)
            {
                return Err(code);
            }
            // SAFETY: the OVERLAPPED, and all that the operation points to, stay until the request has completed, as the caller
            // promises.
            unsafe { driver.start(direction, self.overlapped, operation, call) }
        };
        let started = start();
        if direction == Direction::In {
            enable(descriptor_or_none(self.socket), FD_READ);
        }
        self.done(started.map_err(|code| (0, code))?)
    }
}

/// [`read`] or [`write`].
pub(crate) type OnSocket = unsafe fn(RawFd, *mut u8, u32, Out<'_, u32>, *mut Overlapped) -> Result<(), u32>;

/// `ReadFile` on a socket: `WSARecv` with Win32 errors.
///
/// # Safety
/// As for `WSARecv`.
pub(crate) unsafe fn read(
    fd: RawFd,
    data: *mut u8,
    length: u32,
    count: Out<'_, u32>,
    overlapped: *mut Overlapped,
) -> Result<(), u32> {
    let mut flags = 0;
    let (buffers, flags) = (&WsaBuf { length, data }, (&mut flags).into());
    // SAFETY: one buffer of the program's, and its OVERLAPPED, which stay as for `WSARecv`.
    told_as_file(unsafe { ndw_WSARecv(fd as Socket, buffers, 1, count, flags, overlapped, None) })
}

/// `WriteFile` on a socket: `WSASend` with Win32 errors.
///
/// # Safety
/// As for `WSASend`.
pub(crate) unsafe fn write(
    fd: RawFd,
    data: *mut u8,
    length: u32,
    count: Out<'_, u32>,
    overlapped: *mut Overlapped,
) -> Result<(), u32> {
    let buffers = &WsaBuf { length, data };
    // SAFETY: one buffer of the program's, and its OVERLAPPED, which stay as for `WSASend`.
    told_as_file(unsafe { ndw_WSASend(fd as Socket, buffers, 1, count, 0, overlapped, None) })
}

fn told_as_file(result: i32) -> Result<(), u32> {
    match result {
        0 => Ok(()),
        _ => Err(super::errors::win32_of(last_error())),
    }
}

/// `WSAGetOverlappedResult`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WSAGetOverlappedResult(
    socket: Socket,
    overlapped: Option<&Overlapped>,
    bytes: Out<'_, u32>,
    wait: i32,
    flags: Out<'_, u32>,
) -> i32 {
    let result = || {
        let overlapped = overlapped.ok_or(WSAEFAULT)?;
        let bytes = bytes.required(WSAEFAULT)?;
        let socket = table::get(descriptor(socket)?)?;
        let mut status = overlapped.internal.load(Ordering::Acquire) as i32;
        if status == STATUS_PENDING {
            // SAFETY: pending, hence started, and the program's to keep until the request has completed.
            status = unsafe { crate::io::result(socket.file()?, overlapped, wait != 0) };
        }
        if status == STATUS_PENDING {
            return Err(WSA_IO_INCOMPLETE);
        }
        bytes.put(overlapped.internal_high.load(Ordering::Relaxed) as u32);
        flags.put(0);
        if status >= 0 { Ok(()) } else { Err(super::errors::error_of(status)) }
    };
    guard(0, || match result() {
        Ok(()) => 1,
        Err(code) => {
            set_last_error(code);
            0
        }
    })
}
