//! Sending.

use super::{
    ENDED, FAULT, Outcome, Request, Routine, answered, buffer, failure, in_one_call, make_room_to_wait,
    pieces, told,
};
use crate::arguments::{In, Out};
use crate::boundary::guard_quick;
use crate::error::*;
use crate::io::sys::Deadline;
use crate::io::{
    CancelScope, Idle, Overlapped, STATUS_CANCELLED, STATUS_PENDING, STATUS_SUCCESS, result_before,
};
use crate::object::RawHandle;
use crate::winsock::address::sockaddr_size;
use crate::winsock::calls::Call;
use crate::winsock::errors::error_of;
use crate::winsock::socket::descriptor_or_none;
use crate::winsock::table;
use crate::winsock::table::overlapped::{Direction, Driver, Operation, Send};
use crate::winsock::table::selection::{FD_WRITE, enable};
use crate::winsock::wire::{self, Ancillary, Piece, Pieces, WsaBuf, WsaMsg};
use crate::winsock::{SOCKET_ERROR, Socket, system};
use libc::{c_int, sockaddr, socklen_t};
use smallvec::SmallVec;
use std::ffi::c_void;
use std::os::fd::RawFd;
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Sends on a stream beside overlapped sends that pend: as one of them, for whose end this waits. `None` if there are none, or the
/// call is not to wait.
fn send_after_others(fd: RawFd, pieces: &[Piece], flags: c_int) -> Option<Outcome<usize>> {
    let socket = table::known(fd).filter(|socket| socket.stream)?;
    let driver = socket.existing_driver().filter(|driver| driver.sends())?;
    if flags & libc::MSG_DONTWAIT != 0 || !system::is_blocking(fd) {
        return None;
    }
    let pieces = Pieces::from(pieces);
    let operation = Operation::Send(Send {
        pieces,
        flags,
        to: SmallVec::new(),
        control: Box::default(),
        stream: true,
        sent: 0,
    });
    // SAFETY: the bytes stay until the call ends.
    Some(match unsafe { in_turn(driver, operation, wire::limit(fd, libc::SO_SNDTIMEO)) } {
        (sent @ 1.., _) => Ok(sent),
        (sent, end) => end.map(|()| sent),
    })
}

/// Does as one of the overlapped requests what is to be sent, and waits for its end. Returns the bytes sent, and how it has ended.
///
/// # Safety
/// What the operation points to stays until the call ends.
pub(in crate::winsock) unsafe fn in_turn(
    driver: &Arc<Driver>,
    operation: Operation,
    deadline: Deadline,
) -> (usize, Outcome<()>) {
    let _idle = Idle::enter();
    // The low bit: without a packet.
    let overlapped = Overlapped { event: RawHandle(1), ..Overlapped::default() };
    let request = (&raw const overlapped).cast_mut();
    // SAFETY: the OVERLAPPED, and what the operation points to, stay until the request has completed, for which this waits.
    match unsafe { driver.start(Direction::Out, request, operation, None) } {
        Ok(sent) => return (sent, Ok(())),
        Err(WSA_IO_PENDING) => {}
        Err(code) => return (0, Err((0, code))),
    }
    let file = driver.file();
    // SAFETY: that of the request just begun.
    let in_time = unsafe { result_before(file, request, deadline, None) };
    let is_late = in_time.is_none_or(|status| status == STATUS_PENDING);
    if is_late {
        file.cancel(CancelScope::Overlapped(request));
    }
    // SAFETY: that of the request just begun.
    let status = unsafe { crate::io::result(file, request, true) };
    let end = match status {
        STATUS_SUCCESS => Ok(()),
        STATUS_CANCELLED if is_late => Err((libc::EAGAIN, WSAETIMEDOUT)),
        STATUS_CANCELLED => Err(ENDED),
        _ => Err((0, error_of(status))),
    };
    (overlapped.internal_high.load(Ordering::Relaxed), end)
}

/// Sends.
fn send(fd: RawFd, pieces: &[Piece], flags: c_int, ancillary: &Ancillary) -> Outcome<usize> {
    if let Some(sent) = send_after_others(fd, pieces, flags) {
        return sent;
    }
    let (call, first) = (Call::on(fd), in_one_call(fd, pieces));
    match make_room_to_wait(fd, flags, |flags| wire::send(fd, first, flags, ancillary)) {
        Ok(mut count) => {
            if count < wire::total(pieces) && flags & libc::MSG_DONTWAIT == 0 && system::is_blocking(fd) {
                count += send_rest(fd, pieces, count, flags, ancillary);
            }
            // A partial send: the buffer is full.
            if count < wire::total(pieces) {
                enable(fd, FD_WRITE);
            }
            Ok(count)
        }
        Err(_) if call.is_over() => Err(ENDED),
        Err(libc::EPIPE) => {
            let errno = if table::was_reset(fd) { libc::ECONNRESET } else { wire::broken(fd) };
            Err((errno, errno_to_wsa(errno)))
        }
        // A datagram without an address.
        Err(libc::EDESTADDRREQ) => Err((libc::EDESTADDRREQ, WSAENOTCONN)),
        Err(errno) => {
            if errno == libc::EAGAIN {
                enable(fd, FD_WRITE);
            }
            table::note_reset(fd, errno);
            Err(failure(fd, errno, flags))
        }
    }
}

/// Sends the rest after the first `count` bytes, when a signal has interrupted a blocking call, or there was not room enough at once;
/// returns the number of bytes. A lasting error is reported by the next call.
#[cold]
fn send_rest(fd: RawFd, pieces: &[Piece], mut count: usize, flags: c_int, ancillary: &Ancillary) -> usize {
    let _idle = Idle::enter();
    let (mut rest, mut sent) = (Pieces::from(pieces), 0);
    loop {
        wire::consume(&mut rest, count);
        if rest.is_empty() {
            return sent;
        }
        match wire::send(fd, wire::first_of(&rest), flags, ancillary) {
            Ok(0) => return sent,
            Err(errno) => {
                table::note_reset(fd, errno);
                return sent;
            }
            Ok(more) => count = more,
        }
        sent += count;
    }
}

/// Whether the address that a datagram is to go to is cut off. (Linux has another error for that, or takes it for none. The sends of a
/// stream have no use for one.)
///
/// # Safety
/// `to` is NULL or has `length` bytes.
unsafe fn is_cut_off(fd: RawFd, to: *const sockaddr, length: usize) -> bool {
    const FAMILY: usize = size_of::<libc::sa_family_t>();
    if to.is_null() {
        return false;
    }
    let needed = match length {
        // SAFETY: the family lies within the length.
        FAMILY.. => sockaddr_size(unsafe { to.cast::<libc::sa_family_t>().read_unaligned() }.into()),
        _ => Some(FAMILY),
    };
    needed.is_some_and(|needed| length < needed)
        && matches!(system::int_option(fd, libc::SO_TYPE), Ok(libc::SOCK_DGRAM | libc::SOCK_RAW))
}

/// `send`.
///
/// # Safety
/// `data` is NULL or has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_send(fd: c_int, data: *const c_void, length: usize, flags: c_int) -> isize {
    // SAFETY: `data` has `length` bytes, as `sendto` asks; no address is given.
    unsafe { ndw_sendto(fd, data, length, flags, null(), 0) }
}

/// `sendto`.
///
/// # Safety
/// `data` is NULL or has `length` bytes, `to` NULL or `to_length`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_sendto(
    fd: c_int,
    data: *const c_void,
    length: usize,
    flags: c_int,
    to: *const sockaddr,
    to_length: socklen_t,
) -> isize {
    guard_quick(SOCKET_ERROR as isize, || {
        // SAFETY: C's caller has an address of that length, or none.
        if unsafe { is_cut_off(fd, to, to_length as usize) } {
            return told(Err(FAULT));
        }
        // SAFETY: C's caller has an address of that length, or none.
        let ancillary = unsafe { Ancillary::name(to, to_length) };
        // SAFETY: C's caller has `length` bytes to read at `data`.
        let piece = unsafe { buffer(data.cast(), length) };
        told(piece.and_then(|piece| send(fd, &[piece], flags, &ancillary)))
    })
}

/// `WSASend`.
///
/// # Safety
/// `buffers` is NULL or has `count` entries, each NULL or with as many bytes as it says. With `overlapped` the bytes and it
/// stay until the request has completed, and `routine` may be called then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSASend(
    socket: Socket,
    buffers: *const WsaBuf,
    count: u32,
    sent: Out<'_, u32>,
    flags: u32,
    overlapped: *mut Overlapped,
    routine: Routine,
) -> i32 {
    // SAFETY: buffers and OVERLAPPED are as `WSASendTo` asks; no address is given.
    unsafe { ndw_WSASendTo(socket, buffers, count, sent, flags, null(), 0, overlapped, routine) }
}

/// So many bytes of the program's, or none.
///
/// # Safety
/// `data` is NULL or has `length` bytes, which stay as they are meanwhile.
unsafe fn there<'a>(data: *const u8, length: usize) -> &'a [u8] {
    match data.is_null() {
        true => &[],
        // SAFETY: not NULL, hence so many bytes, as the caller promises.
        false => unsafe { std::slice::from_raw_parts(data, length) },
    }
}

/// `MSG_PARTIAL`: of a message, which neither TCP nor UDP sends in parts.
const MSG_PARTIAL: u32 = 0x100_0000;

/// `WSASendTo`.
///
/// # Safety
/// As for [`ndw_WSASend`]; `to` is NULL or has `to_length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSASendTo(
    socket: Socket,
    buffers: *const WsaBuf,
    count: u32,
    sent: Out<'_, u32>,
    flags: u32,
    to: *const sockaddr,
    to_length: c_int,
    overlapped: *mut Overlapped,
    routine: Routine,
) -> i32 {
    let request = Request { socket, overlapped, routine, transferred: sent };
    if flags & MSG_PARTIAL != 0 {
        return answered(|| Err((libc::EOPNOTSUPP, WSAEOPNOTSUPP)));
    }
    let (flags, to_length) = (flags as c_int, if to.is_null() { 0 } else { to_length.max(0) as usize });
    answered(|| {
        // SAFETY: C's caller lists `count` buffers, to be read until the call or request ends.
        let pieces = unsafe { pieces(buffers, count) }?;
        // SAFETY: C's caller has an address of that length, or none.
        if unsafe { is_cut_off(descriptor_or_none(socket), to, to_length) } {
            return Err(FAULT);
        }
        let Some(fd) = request.at_once()? else {
            // SAFETY: C's caller has an address of that length.
            let to = SmallVec::from_slice(unsafe { there(to.cast(), to_length) });
            let control = Box::default();
            let operation = |stream| Operation::Send(Send { pieces, flags, to, control, stream, sent: 0 });
            // SAFETY: C's caller keeps the OVERLAPPED and the buffers until the request has completed.
            return unsafe { request.start(Direction::Out, operation) };
        };
        // SAFETY: C's caller has an address of that length, or none.
        let ancillary = unsafe { Ancillary::name(to, to_length as u32) };
        request.done(send(fd, &pieces, flags, &ancillary)?)
    })
}

/// `WSASendMsg`. The control data, in Linux's format, are the program's again when the call returns.
///
/// # Safety
/// The buffers of the message are as for [`ndw_WSASend`]; its address and control data are NULL or have the sizes told.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSASendMsg(
    socket: Socket,
    message: In<'_, WsaMsg>,
    flags: u32,
    sent: Out<'_, u32>,
    overlapped: *mut Overlapped,
    routine: Routine,
) -> i32 {
    let Some(message) = message.read() else { return answered(|| Err((0, WSAEFAULT))) };
    let (buffers, count) = (message.buffers, message.buffer_count);
    if message.control.length == 0 || message.control.data.is_null() {
        let (to, length) = (message.name, message.name_length);
        // SAFETY: the message lists buffers and an address as `WSASendTo` asks for, and so is the OVERLAPPED.
        return unsafe {
            ndw_WSASendTo(socket, buffers, count, sent, flags, to, length, overlapped, routine)
        };
    }
    answered(|| {
        // SAFETY: C's caller lists so many buffers in the message, to be read until the call ends.
        let pieces = unsafe { pieces(buffers, count) }?;
        let length = message.name_length.max(0) as usize;
        // SAFETY: C's caller has an address of that length, or none.
        if unsafe { is_cut_off(descriptor_or_none(socket), message.name, length) } {
            return Err(FAULT);
        }
        let request = Request { socket, overlapped, routine, transferred: sent };
        let Some(fd) = request.at_once()? else {
            // SAFETY: C's caller has an address of that length.
            let to = unsafe { there(message.name.cast(), length) };
            let to = SmallVec::from_slice(to);
            // SAFETY: C's caller has so many control data.
            let control = unsafe { there(message.control.data, message.control.length as usize) }.into();
            let flags = flags as c_int;
            let operation = |stream| Operation::Send(Send { pieces, flags, to, control, stream, sent: 0 });
            // SAFETY: C's caller keeps the OVERLAPPED and the buffers until the request has completed.
            return unsafe { request.start(Direction::Out, operation) };
        };
        // SAFETY: C's caller has the address and the control data that the message tells.
        let ancillary = unsafe { Ancillary::of(&message) };
        request.done(send(fd, &pieces, flags as c_int, &ancillary)?)
    })
}
