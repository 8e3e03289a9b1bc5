//! Receiving.

use super::{
    ENDED, FAULT, Outcome, Request, Routine, answered, buffer, failure, in_one_call, make_room_to_wait,
    pieces, refusal, told,
};
use crate::arguments::{InOut, Out};
use crate::boundary::guard_quick;
use crate::error::*;
use crate::io::sys::Deadline;
use crate::io::{Idle, Overlapped};
use crate::winsock::calls::Call;
use crate::winsock::system::{self, int_option};
use crate::winsock::table::overlapped::{Direction, Operation, Receive};
use crate::winsock::table::selection::{FD_OOB, FD_READ, enable};
use crate::winsock::table::{self, RECEIVING_SHUT};
use crate::winsock::wire::{self, Ancillary, Piece, Pieces, Received, WsaBuf, WsaMsg};
use crate::winsock::{SOCKET_ERROR, Socket};
use libc::{c_int, sockaddr, socklen_t};
use std::ffi::c_void;
use std::os::fd::RawFd;
use std::ptr::null_mut;

/// Receives.
fn receive(fd: RawFd, pieces: &[Piece], flags: c_int, ancillary: &Ancillary) -> Outcome<Received> {
    if let Some(refused) = refusal(fd) {
        return Err(refused);
    }
    check(flags)?;
    let call = Call::on(fd);
    let deadline = (flags & libc::MSG_WAITALL != 0).then(|| wire::limit(fd, libc::SO_RCVTIMEO));
    let first = in_one_call(fd, pieces);
    let mut received = make_room_to_wait(fd, flags, |flags| wire::receive(fd, first, flags, ancillary));
    if let (Ok(received), Some(deadline)) = (&mut received, deadline)
        && received.count < wire::total(pieces)
    {
        received.count += receive_rest(fd, pieces, received.count, flags, deadline);
    }
    if call.is_over() && !matches!(received, Ok(Received { count: 1.., .. })) {
        return Err(ENDED);
    }
    enable(fd, if flags & libc::MSG_OOB != 0 { FD_OOB } else { FD_READ });
    match received {
        Ok(Received { count: 0, .. }) if wire::total(pieces) > 0 && table::is_marked(fd, RECEIVING_SHUT) => {
            Err((libc::ESHUTDOWN, WSAESHUTDOWN))
        }
        Ok(Received { count: 0, .. }) if wire::total(pieces) > 0 && table::was_reset(fd) => {
            Err((libc::ECONNRESET, WSAECONNRESET))
        }
        Ok(received) => Ok(received),
        // A blocking connect that finds the connection reset leaves the socket as it was before.
        Err(libc::ENOTCONN) if table::was_reset(fd) => Err((libc::ECONNRESET, WSAECONNRESET)),
        // Windows' error for an undelivered datagram.
        Err(libc::ECONNREFUSED) => Err((libc::ECONNREFUSED, WSAECONNRESET)),
        // Linux has none of a datagram socket that does not wait.
        Err(libc::EAGAIN) if table::is_marked(fd, RECEIVING_SHUT) => Err((libc::ESHUTDOWN, WSAESHUTDOWN)),
        Err(errno) => {
            table::note_reset(fd, errno);
            Err(failure(fd, errno, flags))
        }
    }
}

/// Whether the flags go together.
fn check(flags: c_int) -> Outcome<()> {
    match flags & libc::MSG_WAITALL != 0 && flags & (libc::MSG_PEEK | libc::MSG_OOB) != 0 {
        true => Err((libc::EOPNOTSUPP, WSAEOPNOTSUPP)),
        false => Ok(()),
    }
}

/// Receives the rest after the first `count` bytes, when a signal has interrupted a blocking call with `MSG_WAITALL`, or there were more
/// pieces than one call takes; returns the number of bytes. A lasting error is reported by the next call.
#[cold]
fn receive_rest(fd: RawFd, pieces: &[Piece], mut count: usize, flags: c_int, deadline: Deadline) -> usize {
    let waits = flags & libc::MSG_DONTWAIT == 0 && system::is_blocking(fd);
    if !waits || int_option(fd, libc::SO_TYPE) != Ok(libc::SOCK_STREAM) {
        return 0;
    }
    let _idle = Idle::enter();
    let (mut rest, mut received) = (Pieces::from(pieces), 0);
    loop {
        wire::consume(&mut rest, count);
        // For the kernel, the time-out begins anew with each call.
        if count == 0 || rest.is_empty() || deadline.passed() {
            return received;
        }
        count = match wire::receive(fd, wire::first_of(&rest), flags, &Ancillary::NONE) {
            Ok(more) => more.count,
            Err(errno) => {
                table::note_reset(fd, errno);
                return received;
            }
        };
        received += count;
    }
}

/// The number of bytes; an error if the message was truncated.
fn whole(received: &Received) -> Outcome<usize> {
    if received.flags & libc::MSG_TRUNC != 0 {
        return Err((libc::EMSGSIZE, WSAEMSGSIZE));
    }
    Ok(received.count)
}

/// The caller's buffer for the address of the sender.
///
/// # Safety
/// As for [`Ancillary::name`].
unsafe fn sender(from: *mut sockaddr, room: Option<i64>) -> Outcome<Ancillary> {
    if from.is_null() {
        return Ok(Ancillary::NONE);
    }
    let room = room.filter(|room| *room >= 16).ok_or(FAULT)?;
    // SAFETY: not NULL, and room for so many bytes until the call or the request is over, as the caller promises.
    Ok(unsafe { Ancillary::name(from, room as u32) })
}

/// Starts an overlapped request.
///
/// # Safety
/// The `OVERLAPPED`, the buffers, and where the rest goes stay until the request has completed.
unsafe fn start(request: &Request<'_>, receive: Receive) -> Outcome<()> {
    check(receive.flags)?;
    let operation = |stream| Operation::Receive(Receive { stream, ..receive });
    // SAFETY: the OVERLAPPED and all that the operation points to stay until then, as the caller promises.
    unsafe { request.start(Direction::In, operation) }
}

/// `recv`.
///
/// # Safety
/// `data` is NULL or has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_recv(fd: c_int, data: *mut c_void, length: usize, flags: c_int) -> isize {
    // SAFETY: `data` has `length` bytes to write, as `recvfrom` asks; no address is wanted.
    unsafe { ndw_recvfrom(fd, data, length, flags, null_mut(), InOut::NULL) }
}

/// `recvfrom`.
///
/// # Safety
/// `data` is NULL or has room for `length` bytes, `from` NULL or room for `*from_length`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_recvfrom(
    fd: c_int,
    data: *mut c_void,
    length: usize,
    flags: c_int,
    from: *mut sockaddr,
    from_length: InOut<'_, socklen_t>,
) -> isize {
    let receive = || {
        // SAFETY: C's caller has so much room for the address as `from_length` says.
        let ancillary = unsafe { sender(from, from_length.read().map(i64::from)) }?;
        // SAFETY: C's caller has `length` bytes to write at `data`.
        let piece = unsafe { buffer(data.cast(), length) }?;
        let received = receive(fd, &[piece], flags, &ancillary)?;
        // A stream has no name to tell.
        if !from.is_null() && received.name_length > 0 {
            from_length.put(received.name_length);
        }
        whole(&received)
    };
    guard_quick(SOCKET_ERROR as isize, || told(receive()))
}

/// `WSARecv`.
///
/// # Safety
/// `buffers` is NULL or has `count` entries, each NULL or with room for its length. With `overlapped` the buffers and it stay
/// until the request has completed, and `routine` may be called then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSARecv(
    socket: Socket,
    buffers: *const WsaBuf,
    count: u32,
    received: Out<'_, u32>,
    flags: InOut<'_, u32>,
    overlapped: *mut Overlapped,
    routine: Routine,
) -> i32 {
    let (from, length) = (null_mut(), InOut::NULL);
    // SAFETY: buffers and OVERLAPPED are as `WSARecvFrom` asks; no address is wanted.
    unsafe { ndw_WSARecvFrom(socket, buffers, count, received, flags, from, length, overlapped, routine) }
}

/// `WSARecvFrom`. The address and its length must stay valid until an overlapped request has completed.
///
/// # Safety
/// As for [`ndw_WSARecv`]; `from` is NULL or has room for `*from_length` bytes, and both stay as the buffers do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSARecvFrom(
    socket: Socket,
    buffers: *const WsaBuf,
    count: u32,
    received: Out<'_, u32>,
    flags: InOut<'_, u32>,
    from: *mut sockaddr,
    from_length: InOut<'static, c_int>,
    overlapped: *mut Overlapped,
    routine: Routine,
) -> i32 {
    let request = Request { socket, overlapped, routine, transferred: received };
    answered(|| {
        let how = flags.read().ok_or(FAULT)? as c_int;
        // SAFETY: C's caller lists `count` buffers, to be written until the call or request ends.
        let pieces = unsafe { pieces(buffers, count) }?;
        // SAFETY: C's caller has so much room for the address as `from_length` says.
        let ancillary = unsafe { sender(from, from_length.read().map(i64::from)) }?;
        let Some(fd) = request.at_once()? else {
            let operation = Receive { from, from_length, ..Receive::new(pieces, how) };
            // SAFETY: C's caller keeps the OVERLAPPED, the buffers and the address until the request has completed.
            return unsafe { start(&request, operation) };
        };
        let received = receive(fd, &pieces, how, &ancillary)?;
        if !from.is_null() && received.name_length > 0 {
            from_length.put(received.name_length as c_int);
        }
        flags.put((received.flags & libc::MSG_OOB) as u32);
        request.done(whole(&received)?)
    })
}

/// `WSARecvMsg`: a datagram with its sender and control data, in Linux's format.
///
/// # Safety
/// The buffers of the message are as for [`ndw_WSARecv`]; its address and control data are NULL or have the sizes told. With
/// `overlapped` all of it stays until the request has completed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSARecvMsg(
    socket: Socket,
    message: InOut<'static, WsaMsg>,
    received: Out<'_, u32>,
    overlapped: *mut Overlapped,
    routine: Routine,
) -> i32 {
    let request = Request { socket, overlapped, routine, transferred: received };
    answered(|| {
        let asked = message.read().ok_or((0, WSAEFAULT))?;
        // SAFETY: C's caller lists so many buffers in the message, to be written until the call or request ends.
        let pieces = unsafe { pieces(asked.buffers, asked.buffer_count) }?;
        if table::descriptor(socket).and_then(table::get).is_ok_and(|socket| socket.stream) {
            return Err((0, WSAEOPNOTSUPP));
        }
        let how = asked.flags as c_int & libc::MSG_PEEK;
        let Some(fd) = request.at_once()? else {
            let operation = Receive { message, ..Receive::new(pieces, how) };
            // SAFETY: C's caller keeps the OVERLAPPED and all of the message until the request has completed.
            return unsafe { start(&request, operation) };
        };
        // SAFETY: C's caller has the room that the message tells.
        let received = receive(fd, &pieces, how, &unsafe { Ancillary::of(&asked) })?;
        message.put(asked.with(&received));
        if asked.is_short_for(&received) {
            return Err((libc::EMSGSIZE, WSAEMSGSIZE));
        }
        request.done(received.count)
    })
}
