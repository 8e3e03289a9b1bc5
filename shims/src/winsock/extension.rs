//! Microsoft's extensions of Winsock: `AcceptEx`, `ConnectEx`, `DisconnectEx`. Programs import them or ask for their addresses.

use super::catalogue::Guid;
use super::socket::{is_bound, is_short};
use super::system::{self, has_peer, int_option};
use super::table::overlapped::{
    Accept, Connect, Direction, Disconnect, Operation, Room, Send, addresses_in, fits, prepare,
};
use super::table::selection::{FD_ACCEPT, enable};
use super::table::{self, GONE, OURS_NOT_TO_WAIT, REUSED};
use super::wire::Piece;
use super::{Socket, told};
use crate::arguments::Out;
use crate::boundary::guard;
use crate::error::*;
use crate::io::Overlapped;
use libc::{c_int, sockaddr};
use smallvec::SmallVec;

/// The GUIDs of the functions, and their addresses.
pub(super) fn function(id: Guid) -> Option<usize> {
    const ACCEPT: Guid = Guid(0xB536_7DF1, 0xCBAC, 0x11CF, [0x95, 0xCA, 0x00, 0x80, 0x5F, 0x48, 0xA1, 0x92]);
    const ADDRESSES: Guid =
        Guid(0xB536_7DF2, 0xCBAC, 0x11CF, [0x95, 0xCA, 0x00, 0x80, 0x5F, 0x48, 0xA1, 0x92]);
    const CONNECT: Guid = Guid(0x25A2_07B9, 0xDDF3, 0x4660, [0x8E, 0xE9, 0x76, 0xE5, 0x8C, 0x74, 0x06, 0x3E]);
    const DISCONNECT: Guid =
        Guid(0x7FDA_2E11, 0x8630, 0x436F, [0xA0, 0x31, 0xF5, 0x36, 0xA6, 0xEE, 0xC1, 0x57]);
    const SEND: Guid = Guid(0xA441_E712, 0x754F, 0x43CA, [0x84, 0xA7, 0x0D, 0xEE, 0x44, 0xCF, 0x60, 0x6D]);
    const RECEIVE: Guid = Guid(0xF689_D7C8, 0x6F1F, 0x436B, [0x8A, 0x53, 0xE5, 0x4F, 0xE3, 0x51, 0xC3, 0x22]);
    const TRANSMIT: Guid =
        Guid(0xB536_7DF0, 0xCBAC, 0x11CF, [0x95, 0xCA, 0x00, 0x80, 0x5F, 0x48, 0xA1, 0x92]);
    let address = match id {
        ACCEPT => ndw_AcceptEx as *const () as usize,
        ADDRESSES => ndw_GetAcceptExSockaddrs as *const () as usize,
        CONNECT => ndw_ConnectEx as *const () as usize,
        DISCONNECT => ndw_DisconnectEx as *const () as usize,
        SEND => super::transfer::sending::ndw_WSASendMsg as *const () as usize,
        RECEIVE => super::transfer::receiving::ndw_WSARecvMsg as *const () as usize,
        TRANSMIT => super::transmit_file::ndw_TransmitFile as *const () as usize,
        _ => return None,
    };
    Some(address)
}

/// `AcceptEx`.
///
/// # Safety
/// `buffer` has room for `data`, `local` and `remote` bytes; it and `overlapped` stay until the request has completed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_AcceptEx(
    listener: Socket,
    into: Socket,
    buffer: *mut u8,
    data: u32,
    local: u32,
    remote: u32,
    received: Out<'_, u32>,
    overlapped: *mut Overlapped,
) -> i32 {
    let accept = || {
        let listener = table::get(table::descriptor(listener)?)?;
        let into = table::get(table::descriptor(into)?)?;
        if overlapped.is_null() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        if listener.fd == into.fd || int_option(listener.fd, libc::SO_ACCEPTCONN) != Ok(1) {
            return Err(WSAEINVAL);
        }
        if has_peer(into.fd) {
            return Err(WSAEINVAL);
        }
        let (local, remote) = (local as usize, remote as usize);
        // No room at all for the local address: it is not wanted.
        let has_room = (local == 0 || fits(listener.family, local)) && fits(listener.family, remote);
        if buffer.is_null() || !has_room {
            return Err(WSAEFAULT);
        }
        if !listener.is_marked(OURS_NOT_TO_WAIT) && system::is_blocking(listener.fd) {
            prepare(listener.fd).map_err(errno_to_wsa)?;
            listener.mark(OURS_NOT_TO_WAIT);
        }
        let room = Room { start: buffer, data: data as usize, local, remote };
        let driver = listener.driver()?;
        into.driver()?;
        if !into.will_be_accepted_by(driver) {
            return Err(WSAEINVAL);
        }
        let accept = Operation::Accept(Accept { into_fd: into.fd, into: into.clone(), room });
        // SAFETY: C's caller keeps the OVERLAPPED and the buffer until the request has completed.
        let started = unsafe { driver.start(Direction::In, overlapped, accept, None) };
        if into.is_marked(GONE) {
            into.is_accepted_no_more();
        }
        enable(listener.fd, FD_ACCEPT);
        received.put(started? as u32);
        Ok(())
    };
    guard(0, || told(accept()))
}

/// `GetAcceptExSockaddrs`.
///
/// # Safety
/// `buffer` is that of an `AcceptEx` which has completed, with the same sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetAcceptExSockaddrs(
    buffer: *mut u8,
    data: u32,
    local: u32,
    remote: u32,
    local_address: Out<'_, *mut sockaddr>,
    local_length: Out<'_, c_int>,
    remote_address: Out<'_, *mut sockaddr>,
    remote_length: Out<'_, c_int>,
) {
    let room = Room { start: buffer, data: data as usize, local: local as usize, remote: remote as usize };
    // SAFETY: C's caller has a buffer of these sizes, which `AcceptEx` has filled.
    let [local, remote] = unsafe { addresses_in(room) };
    let wanted = [(local_address, local_length, local), (remote_address, remote_length, remote)];
    for (address, length, (found, size)) in wanted {
        if !address.is_null() && !length.is_null() && !found.is_null() {
            address.put(found);
            length.put(size as c_int);
        }
    }
}

/// `ConnectEx`: for a stream socket that is bound and does not listen.
///
/// # Safety
/// `to` is NULL or has `to_length` bytes, `data` NULL or `data_length`; the data and `overlapped` stay until the request has
/// completed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_ConnectEx(
    socket: Socket,
    to: *const sockaddr,
    to_length: c_int,
    data: *const u8,
    data_length: u32,
    sent: Out<'_, u32>,
    overlapped: *mut Overlapped,
) -> i32 {
    let connect = || {
        let socket = table::get(table::descriptor(socket)?)?;
        if overlapped.is_null() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        if !socket.stream {
            return Err(WSAEINVAL);
        }
        let fd = socket.fd;
        if (!is_bound(fd) && !socket.is_marked(REUSED)) || int_option(fd, libc::SO_ACCEPTCONN) == Ok(1) {
            return Err(WSAEINVAL);
        }
        if has_peer(fd) {
            return Err(WSAEISCONN);
        }
        if is_short(fd, to, to_length as u32) || (data.is_null() && data_length > 0) {
            return Err(WSAEFAULT);
        }
        // SAFETY: C's caller has an address of that length, which is not NULL.
        let to = unsafe { std::slice::from_raw_parts(to.cast::<u8>(), to_length as usize) }.to_vec();
        // SAFETY: an address of that length.
        if unsafe { super::socket::is_nowhere(to.as_ptr().cast(), to_length as u32, true) } {
            return Err(WSAEADDRNOTAVAIL);
        }
        // SAFETY: C's caller has so many bytes to read, until the request has completed.
        let piece = || unsafe { Piece::new(data, data_length as usize) };
        let first = (data_length > 0).then(|| Send {
            pieces: [piece()].into_iter().collect(),
            flags: 0,
            to: SmallVec::new(),
            stream: true,
            control: Box::default(),
            sent: 0,
        });
        let connect = Connect { socket: socket.clone(), to, first, begun: false };
        let driver = socket.driver()?;
        // SAFETY: C's caller keeps the OVERLAPPED and the data until the request has completed.
        let count = unsafe { driver.start(Direction::Out, overlapped, Operation::Connect(connect), None) }?;
        sent.put(count as u32);
        Ok(())
    };
    guard(0, || told(connect()))
}

/// `TF_REUSE_SOCKET`.
pub(super) const TF_REUSE_SOCKET: u32 = 2;

/// `DisconnectEx`: a graceful disconnect, after the sends that are pending. With `TF_REUSE_SOCKET` the socket can be used again, and
/// stays bound to its completion port.
///
/// # Safety
/// `overlapped` is NULL, or stays valid until the request has completed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_DisconnectEx(
    socket: Socket,
    overlapped: *mut Overlapped,
    flags: u32,
    reserved: u32,
) -> i32 {
    let disconnect = || {
        let socket = table::get(table::descriptor(socket)?)?;
        if flags & !TF_REUSE_SOCKET != 0 || reserved != 0 {
            return Err(WSAEINVAL);
        }
        if !has_peer(socket.fd) && socket.connected_for().is_none() {
            return Err(WSAENOTCONN);
        }
        let driver = socket.driver()?;
        let disconnect = Disconnect { reused: (flags & TF_REUSE_SOCKET != 0).then(|| socket.clone()) };
        if overlapped.is_null() {
            return driver.disconnect(disconnect);
        }
        let operation = Operation::Disconnect(disconnect);
        // SAFETY: C's caller keeps the OVERLAPPED until the request has completed.
        unsafe { driver.start(Direction::Out, overlapped, operation, None) }?;
        Ok(())
    };
    guard(0, || told(disconnect()))
}
