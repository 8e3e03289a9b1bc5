//! `WSAAccept`, whose condition says who may come in.

use super::socket::{descriptor_or_none, ndw_accept, ndw_closesocket, ndw_getpeername, ndw_getsockname};
use super::system::{Plain, set_option};
use super::table;
use super::wire::WsaBuf;
use super::{INVALID_SOCKET, Socket};
use crate::arguments::InOut;
use crate::boundary::{fail, guard};
use crate::error::*;
use libc::{c_int, sockaddr, sockaddr_storage, socklen_t};
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;

/// `LPCONDITIONPROC`.
pub type Condition = unsafe extern "C" fn(
    *mut WsaBuf,
    *mut WsaBuf,
    *mut u8,
    *mut u8,
    *mut WsaBuf,
    *mut WsaBuf,
    *mut u32,
    usize,
) -> c_int;

const CF_ACCEPT: c_int = 0;
const CF_DEFER: c_int = 2;

/// An address, as the condition gets it.
struct Name {
    address: sockaddr_storage,
    length: socklen_t,
}

impl Name {
    /// What `getpeername` or `getsockname` says of a connection. One that is gone already has none.
    fn of(fd: RawFd, ask: unsafe extern "C" fn(c_int, *mut sockaddr, InOut<'_, socklen_t>) -> c_int) -> Name {
        let mut name =
            Name { address: sockaddr_storage::zeroed(), length: size_of::<sockaddr_storage>() as u32 };
        // SAFETY: a place of ours, of the length told.
        if unsafe { ask(fd, (&raw mut name.address).cast(), InOut::from(&mut name.length)) } != 0 {
            name.length = 0;
        }
        name
    }

    fn buffer(&mut self) -> WsaBuf {
        WsaBuf { length: self.length, data: (&raw mut self.address).cast() }
    }
}

/// The next connection: one that a condition has put off, or a new one.
fn next(fd: RawFd) -> Option<OwnedFd> {
    let deferred = table::known(fd).and_then(|listener| listener.deferred.lock().pop_front());
    deferred.or_else(|| {
        // SAFETY: no address is asked for.
        let connection = unsafe { ndw_accept(fd, null_mut(), InOut::NULL) };
        // SAFETY: new, and nobody else's.
        (connection >= 0).then(|| unsafe { OwnedFd::from_raw_fd(connection) })
    })
}

/// `WSAAccept`: as on Windows without `SO_CONDITIONAL_ACCEPT`, the connection is there when the condition is asked, and reset if that
/// refuses it. There are no data and no qualities of service.
///
/// # Safety
/// `address` is NULL or has room for `*length` bytes. The condition gets addresses that it must not keep.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSAAccept(
    socket: Socket,
    address: *mut sockaddr,
    length: InOut<'_, socklen_t>,
    condition: Option<Condition>,
    data: usize,
) -> Socket {
    let fd = descriptor_or_none(socket);
    let deferred = || table::known(fd).is_some_and(|listener| !listener.deferred.lock().is_empty());
    if condition.is_none() && !deferred() {
        // SAFETY: C's caller has so much room for the address as `length` says, or NULL for it.
        let connection = unsafe { ndw_accept(fd, address, length) };
        return if connection >= 0 { connection as Socket } else { INVALID_SOCKET };
    }
    guard(INVALID_SOCKET, || {
        let room = length.read().unwrap_or(0) as usize;
        if !address.is_null() && super::socket::address_size(fd).is_some_and(|size| room < size) {
            return fail(WSAEFAULT, INVALID_SOCKET);
        }
        let Some(connection) = next(fd) else { return INVALID_SOCKET };
        let connection = connection.into_raw_fd();
        let (mut caller, mut callee) =
            (Name::of(connection, ndw_getpeername), Name::of(connection, ndw_getsockname));
        let (mut from, mut to) = (caller.buffer(), callee.buffer());
        let none = null_mut();
        let answer = condition.map_or(CF_ACCEPT, |condition| {
            // SAFETY: the program's function, with what it gave for it, and addresses that live until it returns.
            unsafe { condition(&mut from, none, null_mut(), null_mut(), &mut to, none, null_mut(), data) }
        });
        match answer {
            CF_ACCEPT => {
                if !address.is_null() {
                    let size = room.min(caller.length as usize);
                    // SAFETY: so much room, as C's caller tells.
                    unsafe {
                        address
                            .cast::<u8>()
                            .copy_from_nonoverlapping((&raw const caller.address).cast(), size)
                    };
                    length.put(caller.length);
                }
                connection as Socket
            }
            CF_DEFER => {
                // SAFETY: this connection, which is nobody else's.
                let connection = unsafe { OwnedFd::from_raw_fd(connection) };
                if let Ok(listener) = table::get(fd) {
                    listener.deferred.lock().push_back(connection);
                }
                fail(WSATRY_AGAIN, INVALID_SOCKET)
            }
            _ => {
                let reset = libc::linger { l_onoff: 1, l_linger: 0 };
                let _ = set_option(connection, libc::SOL_SOCKET, libc::SO_LINGER, reset);
                // SAFETY: this connection, which is nobody else's.
                unsafe { ndw_closesocket(connection as Socket) };
                fail(WSAECONNREFUSED, INVALID_SOCKET)
            }
        }
    })
}
