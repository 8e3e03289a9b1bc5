//! Sockets: `socket`, `bind`, `listen`, `accept`, `connect`, `closesocket` and related functions.
//!
//! Functions that the C library has, too, have its parameters, as the headers redirect its declarations; an `int *` length is
//! taken as a `socklen_t *`, which has the same size. They set `errno` as well as the last error.

use super::calls::{Call, Closing};
use super::catalogue::{ProtocolInfo, ProtocolInfoA};
use super::event;
use super::startup::started;
use super::system::{self, checked, has_peer, int_option, lingering, retry};
use super::table::overlapped::Direction;
use super::table::selection::{FD_ACCEPT, FD_CONNECT, FD_WRITE, enable, goes_on_connecting};
use super::table::{self, CONNECT_FAILED, CONNECTING, EXCLUSIVE, OURS_NOT_TO_WAIT, RECEIVING_SHUT, UNBOUND};
use super::{INVALID_SOCKET, SOCKET_ERROR, Socket, failed, outcome};
use crate::arguments::{In, InOut};
use crate::boundary::guard;
use crate::error::*;
use crate::io::Idle;
use crate::io::sys::Deadline;
use libc::{c_int, sockaddr, socklen_t};
use std::ffi::c_void;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

/// The lowest descriptor that can be passed as a handle: lower ones are NULL with tag bits.
const LOWEST: RawFd = 4;

/// Gives a new socket to the program, with a descriptor that can be passed as a handle, if possible.
fn with_a_handle(socket: OwnedFd) -> RawFd {
    let socket = match socket.as_raw_fd() {
        LOWEST.. => socket,
        _ => rustix::io::fcntl_dupfd_cloexec(&socket, LOWEST).unwrap_or(socket),
    };
    table::forget_former(socket.as_raw_fd());
    socket.into_raw_fd()
}

/// Reports an errno.
fn fail(errno: c_int) -> c_int {
    failed(errno, errno_to_wsa(errno));
    SOCKET_ERROR
}

/// What Linux adds to the type of a socket.
const MODES: c_int = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;

/// The family, type and protocol that are meant: as on Windows, no type is that of the protocol, TCP if there is none either, and
/// no family is IPv4 if there is a protocol.
fn meant([family, kind, protocol]: [c_int; 3]) -> Result<[c_int; 3], (c_int, u32)> {
    let unknown_protocol = (libc::EPROTONOSUPPORT, WSAEPROTONOSUPPORT);
    let bare = kind & !MODES;
    if family == libc::AF_UNSPEC && protocol == 0 {
        return Err((libc::EAFNOSUPPORT, WSAEINVAL));
    }
    // SOCK_STREAM to SOCK_PACKET.
    if !(0..=10).contains(&bare) {
        return Err((libc::ESOCKTNOSUPPORT, WSAESOCKTNOSUPPORT));
    }
    let (no_family, ip) = (family == libc::AF_UNSPEC, matches!(family, libc::AF_INET | libc::AF_INET6));
    let told = !no_family && (bare != 0 || !ip);
    if told {
        return Ok([family, kind, protocol]);
    }
    let (type_of_protocol, protocol) = match protocol {
        0 | libc::IPPROTO_TCP => (libc::SOCK_STREAM, libc::IPPROTO_TCP),
        libc::IPPROTO_UDP => (libc::SOCK_DGRAM, protocol),
        _ => return Err(unknown_protocol),
    };
    if bare != 0 && bare != type_of_protocol {
        return Err(unknown_protocol);
    }
    Ok([if no_family { libc::AF_INET } else { family }, kind & MODES | type_of_protocol, protocol])
}

fn make(asked: [c_int; 3]) -> Result<RawFd, (c_int, u32)> {
    let [family, kind, protocol] = meant(asked)?;
    let socket = system::socket(family, kind, protocol).map_err(|errno| match errno {
        // Of what is left to be wrong, only a protocol that is no number of one.
        libc::EINVAL => (errno, WSAEPROTONOSUPPORT),
        _ => (errno, errno_to_wsa(errno)),
    })?;
    let fd = with_a_handle(socket);
    if family == libc::AF_INET6 {
        // Cannot fail: every socket of the family has the option.
        let _ = system::set_option::<c_int>(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1);
    }
    if kind & !MODES == libc::SOCK_DGRAM
        && let Ok(socket) = table::get(fd)
    {
        socket.mark(UNBOUND);
    }
    Ok(fd)
}

/// `socket`. An IPv6 socket is IPv6-only by default. Success leaves a last error of 0.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_socket(family: c_int, kind: c_int, protocol: c_int) -> c_int {
    guard(SOCKET_ERROR, || {
        if !started() {
            return fails_as(libc::ENETDOWN, WSANOTINITIALISED);
        }
        match make([family, kind, protocol]) {
            Ok(fd) => {
                set_last_error(ERROR_SUCCESS);
                fd
            }
            Err((errno, code)) => fails_as(errno, code),
        }
    })
}

/// The values that `WSASocket` takes from a `WSAPROTOCOL_INFO`: 0 and FROM_PROTOCOL_INFO.
const FROM_PROTOCOL_INFO: [c_int; 2] = [0, -1];

fn make_as_told<Name: Copy>(
    [mut family, mut kind, mut protocol]: [c_int; 3],
    info: In<'_, ProtocolInfo<Name>>,
) -> Socket {
    if let Some(info) = info.read() {
        let told = [info.address_family, info.socket_type, info.protocol];
        for (given, told) in [&mut family, &mut kind, &mut protocol].into_iter().zip(told) {
            if FROM_PROTOCOL_INFO.contains(given) {
                *given = told;
            }
        }
        if FROM_PROTOCOL_INFO.contains(&family) {
            fails_as(libc::EAFNOSUPPORT, WSAEAFNOSUPPORT);
            return INVALID_SOCKET;
        }
    }
    match ndw_socket(family, kind, protocol) {
        fd if fd >= 0 => fd as Socket,
        _ => INVALID_SOCKET,
    }
}

/// `WSASocketW`. All sockets can be overlapped.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WSASocketW(
    family: c_int,
    kind: c_int,
    protocol: c_int,
    info: In<'_, ProtocolInfo>,
    _group: u32,
    _flags: u32,
) -> Socket {
    make_as_told([family, kind, protocol], info)
}

/// `WSASocketA`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WSASocketA(
    family: c_int,
    kind: c_int,
    protocol: c_int,
    info: In<'_, ProtocolInfoA>,
    _group: u32,
    _flags: u32,
) -> Socket {
    make_as_told([family, kind, protocol], info)
}

/// Closes a socket, ends the calls of other threads on it, and cancels its pending requests.
pub(crate) fn close(fd: RawFd) -> Result<(), u32> {
    let closing = Closing::of(fd);
    let socket = table::get(fd)?;
    socket.leave();
    socket.is_accepted_no_more();
    closing.end_calls();
    table::forget(fd);
    let lingering = lingering(fd);
    // SAFETY: a socket, and the caller's to close. Linux closes it whatever `close` returns.
    unsafe { libc::close(fd) };
    // The descriptor is free for another socket by now.
    drop(closing);
    drop(lingering);
    socket.abort();
    Ok(())
}

/// `closesocket`. Calls of other threads that wait on the socket fail with `WSAEINTR`.
///
/// # Safety
/// Nobody uses the descriptor afterwards, which any call may get for another file from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_closesocket(socket: Socket) -> i32 {
    guard(SOCKET_ERROR, || outcome(table::descriptor(socket).and_then(close)))
}

/// The size of an address of the socket's family; `None` for families other than IPv4 and IPv6.
pub(super) fn address_size(fd: RawFd) -> Option<usize> {
    super::address::sockaddr_size(int_option(fd, libc::SO_DOMAIN).ok()?)
}

fn fails_as(errno: c_int, code: u32) -> c_int {
    failed(errno, code);
    SOCKET_ERROR
}

/// Whether an address for `bind` or `connect` is NULL or too short.
pub(super) fn is_short(fd: RawFd, address: *const sockaddr, length: socklen_t) -> bool {
    address.is_null() || address_size(fd).is_some_and(|size| (length as usize) < size)
}

/// `bind`. As on Windows, connections that are being closed do not block an address.
///
/// # Safety
/// `address` is NULL or has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_bind(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    guard(SOCKET_ERROR, || {
        // SAFETY: C's caller has an address of that length; the kernel refuses NULL.
        let bind = || checked(unsafe { libc::bind(fd, address, length) });
        match bind() {
            Ok(()) => 0,
            Err(libc::EADDRINUSE) if share(fd, true) => match bind() {
                Ok(()) => {
                    // A socket that wants the address for itself shares it with no other that is bound before it listens.
                    if table::is_marked(fd, EXCLUSIVE) {
                        share(fd, false);
                    }
                    0
                }
                Err(errno) => {
                    share(fd, false);
                    fail(errno)
                }
            },
            Err(libc::EINVAL | libc::EFAULT) if is_short(fd, address, length) => {
                fails_as(libc::EFAULT, WSAEFAULT)
            }
            Err(libc::EACCES) => fails_as(libc::EACCES, WSAEACCES),
            Err(errno) => fail(errno),
        }
    })
}

/// Sets or restores `SO_REUSEADDR` of a stream socket without it. On Linux it lets a listener start while connections of an
/// earlier one are being closed, which on Windows needs no option.
fn share(fd: RawFd, on: bool) -> bool {
    if int_option(fd, libc::SO_TYPE) != Ok(libc::SOCK_STREAM)
        || (on && int_option(fd, libc::SO_REUSEADDR) != Ok(0))
    {
        return false;
    }
    system::set_option::<c_int>(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, on.into()).is_ok()
}

/// Whether the socket has a local address.
pub(super) fn is_bound(fd: RawFd) -> bool {
    let Ok(address) = system::local_address(fd) else { return false };
    // SAFETY: within the storage. The port is at the same place in both families.
    let port = unsafe { (&raw const address).cast::<libc::sockaddr_in>().read() }.sin_port;
    !matches!(address.ss_family.into(), libc::AF_INET | libc::AF_INET6) || port != 0
}

/// `listen`. A negative backlog is `SOMAXCONN_HINT`'s.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_listen(fd: c_int, backlog: c_int) -> c_int {
    guard(SOCKET_ERROR, || {
        let backlog = if backlog < 0 { backlog.saturating_neg().clamp(200, 65535) } else { backlog };
        if int_option(fd, libc::SO_TYPE) == Ok(libc::SOCK_STREAM) && !is_bound(fd) {
            return fail(libc::EINVAL);
        }
        // The system looks at the address again. One that listens has it for itself all the same.
        let shares = table::is_marked(fd, EXCLUSIVE) && share(fd, true);
        // SAFETY: takes no pointer.
        let listens = checked(unsafe { libc::listen(fd, backlog) });
        if shares && listens.is_err() {
            share(fd, false);
        }
        match listens {
            Ok(()) => {
                // For its connections, which inherit it.
                share(fd, true);
                0
            }
            Err(libc::ENOTCONN) => fail(libc::EINVAL),
            // For Linux a connected socket is in the wrong state, too.
            Err(libc::EINVAL) if system::has_peer(fd) => fail(libc::EISCONN),
            Err(errno) => fail(errno),
        }
    })
}

/// `accept`.
///
/// # Safety
/// `address` is NULL or has room for `*length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_accept(
    fd: c_int,
    address: *mut sockaddr,
    length: InOut<'_, socklen_t>,
) -> c_int {
    guard(SOCKET_ERROR, || {
        if !address.is_null() {
            let room = length.read().map_or(0, |length| length as usize);
            if address_size(fd).is_some_and(|size| room < size) {
                return fails_as(libc::EFAULT, WSAEFAULT);
            }
        }
        let call = Call::on(fd);
        let waits = || system::is_blocking(fd) || table::is_marked(fd, OURS_NOT_TO_WAIT);
        let _idle = Idle::enter_if(|| waits() && system::poll(fd, libc::POLLIN, Deadline::Now) == Ok(0));
        let accepted = loop {
            // SAFETY: C's caller has so much room for the address as `length` says, or NULL for it.
            let call = || unsafe { libc::accept4(fd, address, length.as_ptr(), libc::SOCK_CLOEXEC) as isize };
            match retry(call) {
                // It is blocking for the program. (Linux also ends a call that waits, by SO_RCVTIMEO, which is for receives alone.)
                Err(libc::EAGAIN) if waits() => {
                    if let Err(errno) = system::poll(fd, libc::POLLIN, Deadline::Never) {
                        break Err(errno);
                    }
                }
                result => break result,
            }
        };
        if call.is_over() && accepted.is_err() {
            return fail(libc::EINTR);
        }
        enable(fd, FD_ACCEPT);
        match accepted {
            Ok(connection) => {
                // SAFETY: a descriptor that the call has just made; nobody else knows it.
                let connection = with_a_handle(unsafe { OwnedFd::from_raw_fd(connection as RawFd) });
                // As on Windows. Without memory for it, the connection is there all the same.
                let _ = event::inherit(fd, connection);
                connection
            }
            Err(errno) => fail(errno),
        }
    })
}

/// The descriptor of a `SOCKET`, or an invalid one.
pub(super) fn descriptor_or_none(socket: Socket) -> c_int {
    table::descriptor(socket).unwrap_or(-1)
}

/// Whether an address has no host or no port, so that it cannot be connected to. (Linux takes the former for the local host.)
/// With neither, it disconnects a datagram socket.
///
/// # Safety
/// `address` has `length` bytes.
pub(super) unsafe fn is_nowhere(address: *const sockaddr, length: socklen_t, stream: bool) -> bool {
    // SAFETY: so many bytes, as the caller promises.
    let address = unsafe { super::read_sockaddr(address, length as usize) };
    address.is_ok_and(|address| match (address.ip().is_unspecified(), address.port() == 0) {
        (true, true) => stream,
        (no_host, no_port) => no_host || no_port && stream,
    })
}

/// Whether a stream has tried to connect in vain, and was not just asked for what cannot be.
fn is_failure(errno: c_int) -> bool {
    use libc::{EADDRNOTAVAIL, EAFNOSUPPORT, EALREADY, EBADF, EFAULT, EINVAL, EISCONN, ENOTSOCK};
    errno != 0
        && ![EADDRNOTAVAIL, EAFNOSUPPORT, EALREADY, EBADF, EFAULT, EINVAL, EISCONN, ENOTSOCK].contains(&errno)
}

/// `connect`. A non-blocking one returns `WSAEWOULDBLOCK`.
///
/// # Safety
/// `address` is NULL or has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    guard(SOCKET_ERROR, || {
        let stream = match int_option(fd, libc::SO_TYPE) {
            Ok(kind) => kind == libc::SOCK_STREAM,
            Err(errno) => return fail(errno),
        };
        if is_short(fd, address, length) {
            return fails_as(libc::EFAULT, WSAEFAULT);
        }
        // SAFETY: C's caller has an address of that length, and it is not NULL.
        if unsafe { is_nowhere(address, length, stream) } {
            return fail(libc::EADDRNOTAVAIL);
        }
        // Linux would report the success of an earlier non-blocking call.
        if stream && (has_peer(fd) || table::was_reset(fd)) {
            return fail(libc::EISCONN);
        }
        let call = Call::on(fd);
        let _idle = Idle::enter_if(|| stream && system::is_blocking(fd));
        // SAFETY: C's caller has an address of that length.
        let mut result = checked(unsafe { libc::connect(fd, address, length) }).err().unwrap_or(0);
        if result == libc::EINTR || result == libc::EINPROGRESS && system::is_blocking(fd) {
            // The kernel continues to connect after a signal, and after SO_SNDTIMEO, which on Windows is for sends alone.
            result = match system::poll(fd, libc::POLLOUT, Deadline::Never) {
                Ok(_) => int_option(fd, libc::SO_ERROR).unwrap_or_else(|errno| errno),
                Err(errno) => errno,
            };
        }
        if result != 0 && call.is_over() {
            return fail(libc::EINTR);
        }
        if !stream {
            return if result == 0 { 0 } else { fail(result) };
        }
        match (result, table::get(fd)) {
            (errno, Ok(socket)) if errno == 0 || table::is_reset(errno) => {
                // The error is that of an earlier non-blocking call, whose connection it was.
                result = if socket.is_marked(CONNECTING) { libc::EISCONN } else { 0 };
                let _ = socket.connecting_ended(errno);
                enable(fd, FD_CONNECT | FD_WRITE);
            }
            (libc::EINPROGRESS, Ok(socket)) => goes_on_connecting(&socket),
            (errno, Ok(socket)) if is_failure(errno) => socket.mark(CONNECT_FAILED),
            _ => {}
        }
        match result {
            0 => 0,
            libc::EINPROGRESS => fails_as(libc::EINPROGRESS, WSAEWOULDBLOCK),
            libc::EISCONN if int_option(fd, libc::SO_ACCEPTCONN) == Ok(1) => fail(libc::EINVAL),
            errno => fail(errno),
        }
    })
}

/// `WSAConnect`, without data and quality of service.
///
/// # Safety
/// `address` is NULL or has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSAConnect(
    socket: Socket,
    address: *const sockaddr,
    length: c_int,
    caller_data: *const c_void,
    callee_data: *const c_void,
    _sqos: *const c_void,
    _gqos: *const c_void,
) -> c_int {
    if !caller_data.is_null() || !callee_data.is_null() {
        set_last_error(WSAEOPNOTSUPP);
        return SOCKET_ERROR;
    }
    // SAFETY: C's caller has an address of that length.
    unsafe { ndw_connect(descriptor_or_none(socket), address, length as socklen_t) }
}

/// A call that writes an address.
///
/// # Safety
/// `address` is NULL or has as much room as `length` says.
unsafe fn name(
    fd: RawFd,
    address: *mut sockaddr,
    length: InOut<'_, socklen_t>,
    call: unsafe extern "C" fn(c_int, *mut sockaddr, *mut socklen_t) -> c_int,
) -> c_int {
    if let Err(errno) = int_option(fd, libc::SO_TYPE) {
        return fail(errno);
    }
    let room = length.read().map(|length| length as usize).filter(|_| !address.is_null());
    if room.is_none_or(|room| address_size(fd).is_some_and(|size| room < size)) {
        return fails_as(libc::EFAULT, WSAEFAULT);
    }
    // SAFETY: so much room as `length` says, as the caller promises.
    match checked(unsafe { call(fd, address, length.as_ptr()) }) {
        Ok(()) => 0,
        Err(errno) => fail(errno),
    }
}

/// `getsockname`: `WSAEINVAL` for an unbound socket.
///
/// # Safety
/// `address` is NULL or has room for `*length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_getsockname(
    fd: c_int,
    address: *mut sockaddr,
    length: InOut<'_, socklen_t>,
) -> c_int {
    // SAFETY: C's caller has so much room for the address as `length` says.
    guard(SOCKET_ERROR, || match unsafe { name(fd, address, length, libc::getsockname) } {
        0 if !is_bound(fd) => fails_as(libc::EINVAL, WSAEINVAL),
        result => result,
    })
}

/// `getpeername`.
///
/// # Safety
/// `address` is NULL or has room for `*length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_getpeername(
    fd: c_int,
    address: *mut sockaddr,
    length: InOut<'_, socklen_t>,
) -> c_int {
    // SAFETY: C's caller has so much room for the address as `length` says.
    guard(SOCKET_ERROR, || unsafe { name(fd, address, length, libc::getpeername) })
}

/// What of a `shutdown` is due at once: each direction ends after the overlapped requests that pend there.
fn due_at_once(fd: RawFd, how: c_int) -> Option<c_int> {
    let socket = table::known(fd).filter(|socket| socket.stream);
    let Some(driver) = socket.as_ref().and_then(|socket| socket.existing_driver()) else { return Some(how) };
    let (input, output) = match how {
        libc::SHUT_RD => (true, false),
        libc::SHUT_WR => (false, true),
        libc::SHUT_RDWR => (true, true),
        _ => return Some(how),
    };
    let input = input && !driver.shut_down(Direction::In);
    let output = output && !driver.shut_down(Direction::Out);
    match (input, output) {
        (true, true) => Some(libc::SHUT_RDWR),
        (true, false) => Some(libc::SHUT_RD),
        (false, true) => Some(libc::SHUT_WR),
        (false, false) => None,
    }
}

/// `shutdown`. A direction ends when the overlapped requests that pend there have completed; no more are begun.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_shutdown(fd: c_int, how: c_int) -> c_int {
    guard(SOCKET_ERROR, || {
        // Linux refuses, too, but remembers it: a connection made later could not send.
        let stream = int_option(fd, libc::SO_TYPE) == Ok(libc::SOCK_STREAM);
        if stream && !has_peer(fd) {
            return fail(libc::ENOTCONN);
        }
        let done = match due_at_once(fd, how) {
            // SAFETY: takes no pointer.
            Some(at_once) => checked(unsafe { libc::shutdown(fd, at_once) }),
            None => Ok(()),
        };
        match done {
            // A socket for datagrams need not be connected; the kernel has done it all the same.
            Err(libc::ENOTCONN) if !stream => {}
            Err(errno) => return fail(errno),
            Ok(()) => {}
        }
        if how != libc::SHUT_WR
            && let Ok(socket) = table::get(fd)
        {
            socket.mark(RECEIVING_SHUT);
        }
        0
    })
}

#[cfg(test)]
mod tests;
