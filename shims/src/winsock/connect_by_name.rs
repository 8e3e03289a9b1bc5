//! Connecting to one of several addresses: `WSAConnectByName`, `WSAConnectByList`.

use super::address::{read_sockaddr, sockaddr_size, write_sockaddr};
use super::addrinfo::no_hints;
use super::calls::Call;
use super::resolve::{addresses, narrow, text_or_null, winsock_code};
use super::socket::descriptor_or_none;
use super::startup::started;
use super::system::{self, Plain, checked, has_peer, int_option};
use super::table::selection::{FD_CONNECT, FD_WRITE, enable};
use super::table::{self, CONNECT_FAILED, CONNECTING};
use super::{Socket, told};
use crate::arguments::{In, InOut, Text};
use crate::boundary::guard;
use crate::error::*;
use crate::io::Idle;
use crate::io::sys::Deadline;
use crate::text::{Unit, narrow_and_wide};
use libc::{addrinfo, c_int, sockaddr, sockaddr_storage};
use std::ffi::c_void;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::RawFd;
use std::time::Duration;

/// `SOCKET_ADDRESS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SocketAddress {
    address: *const sockaddr,
    length: c_int,
}

/// `SOCKET_ADDRESS_LIST`, up to the first address.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AddressList {
    count: c_int,
    padding: c_int,
}

const _: () = assert!(size_of::<SocketAddress>() == 16 && size_of::<AddressList>() == 8);

/// Where the caller wants an address.
struct Place<'a> {
    address: *mut sockaddr,
    length: InOut<'a, u32>,
}

impl Place<'_> {
    /// Whether there is room for an address of the family, or none is wanted.
    fn check(&self, family: c_int) -> Result<(), u32> {
        let room = self.length.read().map_or(0, |room| room as usize);
        match self.address.is_null() || sockaddr_size(family).is_some_and(|size| room >= size) {
            true => Ok(()),
            false => Err(WSAEFAULT),
        }
    }

    /// Stores the address.
    ///
    /// # Safety
    /// As much room is there as was told.
    unsafe fn put(&self, address: SocketAddr) {
        if !self.address.is_null() {
            let mut length = self.length.read().unwrap_or(0) as usize;
            // SAFETY: so much room, as the caller promises.
            let _ = unsafe { write_sockaddr(address, self.address, &mut length) };
            self.length.put(length as u32);
        }
    }
}

/// A socket while it does not wait.
struct NotWaiting(Option<RawFd>);

impl NotWaiting {
    fn new(fd: RawFd) -> Result<NotWaiting, c_int> {
        if !system::is_blocking(fd) {
            return Ok(NotWaiting(None));
        }
        system::set_blocking(fd, false).map(|()| NotWaiting(Some(fd)))
    }
}

impl Drop for NotWaiting {
    fn drop(&mut self) {
        // Fails if it has been closed meanwhile.
        let _ = self.0.map(|fd| system::set_blocking(fd, true));
    }
}

/// A stream that is to be connected.
struct Stream {
    fd: RawFd,
    family: c_int,
    call: Call,
}

impl Stream {
    fn new(socket: Socket) -> Result<Stream, u32> {
        let fd = descriptor_or_none(socket);
        let ask = |option| int_option(fd, option).map_err(errno_to_wsa);
        if ask(libc::SO_TYPE)? != libc::SOCK_STREAM || ask(libc::SO_ACCEPTCONN)? != 0 {
            return Err(WSAEINVAL);
        }
        let known = table::get(fd)?;
        if has_peer(fd) || table::was_reset(fd) {
            return Err(WSAEISCONN);
        }
        if known.is_marked(CONNECTING) {
            return Err(WSAEALREADY);
        }
        Ok(Stream { fd, family: ask(libc::SO_DOMAIN)?, call: Call::on(fd) })
    }

    /// Whether it takes addresses of IPv4 as mapped ones.
    fn takes_mapped(&self) -> bool {
        let only = system::option::<c_int>(self.fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY);
        self.family == libc::AF_INET6 && only == Ok(0)
    }

    /// Gives up what was tried, so that another address can be.
    fn give_up(&self) {
        // All zero: of the family AF_UNSPEC.
        let nowhere = sockaddr_storage::zeroed();
        let size = size_of::<sockaddr>() as u32;
        // SAFETY: so many bytes.
        unsafe { libc::connect(self.fd, (&raw const nowhere).cast(), size) };
    }

    /// Tries one address. A connection that the peer has reset already was made.
    fn attempt(&self, address: SocketAddr, deadline: Deadline) -> Result<(), u32> {
        if (self.family == libc::AF_INET) != address.is_ipv4() {
            return Err(WSAEAFNOSUPPORT);
        }
        if address.ip().to_canonical().is_unspecified() || address.port() == 0 {
            return Err(WSAEADDRNOTAVAIL);
        }
        let mut raw = sockaddr_storage::zeroed();
        let mut length = size_of::<sockaddr_storage>();
        // SAFETY: there is so much room.
        unsafe { write_sockaddr(address, (&raw mut raw).cast(), &mut length) }?;
        // SAFETY: so many bytes.
        let begun = checked(unsafe { libc::connect(self.fd, (&raw const raw).cast(), length as u32) });
        let errno = match begun {
            // The kernel goes on connecting after a signal.
            Err(libc::EINPROGRESS | libc::EINTR) => match system::poll(self.fd, libc::POLLOUT, deadline) {
                Ok(0) => libc::ETIMEDOUT,
                Ok(_) => int_option(self.fd, libc::SO_ERROR).unwrap_or_else(|errno| errno),
                Err(errno) => errno,
            },
            begun => begun.err().unwrap_or(0),
        };
        if self.call.is_over() {
            return Err(WSAEINTR);
        }
        if errno != 0 && !table::is_reset(errno) {
            self.give_up();
            return Err(errno_to_wsa(errno));
        }
        let _ = table::get(self.fd)?.connecting_ended(errno);
        enable(self.fd, FD_CONNECT | FD_WRITE);
        Ok(())
    }

    /// Tries one address after the other; returns that of the peer, or the error of the last one.
    fn connect(
        &self,
        mut targets: Vec<Result<SocketAddr, u32>>,
        deadline: Deadline,
    ) -> Result<SocketAddr, u32> {
        // Mapped addresses come last: Linux does not take a socket back from IPv4.
        let is_mapped = |target: &Result<SocketAddr, u32>| match target {
            Ok(SocketAddr::V6(target)) => target.ip().to_ipv4_mapped().is_some(),
            _ => false,
        };
        targets.sort_by_key(is_mapped);
        let _idle = Idle::enter();
        let _not_waiting = NotWaiting::new(self.fd).map_err(errno_to_wsa)?;
        let mut failure = WSAEINVAL;
        for (number, target) in targets.into_iter().enumerate() {
            if number > 0 && deadline.passed() {
                failure = WSAETIMEDOUT;
                break;
            }
            match target.and_then(|target| self.attempt(target, deadline).map(|()| target)) {
                Ok(peer) => return Ok(peer),
                Err(WSAEINTR) => return Err(WSAEINTR),
                Err(code) => failure = code,
            }
        }
        if let Ok(socket) = table::get(self.fd) {
            socket.mark(CONNECT_FAILED);
        }
        Err(failure)
    }
}

/// Until when attempts may take.
fn deadline(timeout: In<'_, libc::timeval>) -> Result<Deadline, u32> {
    let Some(time) = timeout.read() else { return Ok(Deadline::Never) };
    let seconds = u64::try_from(time.tv_sec).map_err(|_| WSAEINVAL)?;
    let micros = u64::try_from(time.tv_usec).map_err(|_| WSAEINVAL)?;
    Ok(Deadline::after(Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros))))
}

/// Connects to the first of the addresses that can be reached. What the socket's flags say of waiting stays as it was.
///
/// # Safety
/// The places have the room that they tell.
unsafe fn connect(
    socket: Socket,
    targets: impl FnOnce(&Stream) -> Result<Vec<Result<SocketAddr, u32>>, u32>,
    [local, remote]: [Place<'_>; 2],
    timeout: In<'_, libc::timeval>,
    reserved: *const c_void,
) -> i32 {
    let connect = || {
        if !started() {
            return Err(WSANOTINITIALISED);
        }
        let deadline = deadline(timeout)?;
        if !reserved.is_null() {
            return Err(WSAEINVAL);
        }
        let stream = Stream::new(socket)?;
        [&local, &remote].into_iter().try_for_each(|place| place.check(stream.family))?;
        let targets = targets(&stream)?;
        let peer = stream.connect(targets, deadline)?;
        // SAFETY: as this function asks.
        unsafe { remote.put(peer) };
        let own = system::local_address(stream.fd).map_err(errno_to_wsa)?;
        // SAFETY: an address as the kernel has it.
        let own = unsafe { read_sockaddr((&raw const own).cast(), size_of::<sockaddr_storage>()) }?;
        // SAFETY: as this function asks.
        unsafe { local.put(own) };
        Ok(())
    };
    guard(0, || told(connect()))
}

/// An address as a socket of the family takes it.
fn as_mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddrV6::new(ip.to_ipv6_mapped(), address.port(), 0, 0).into(),
        IpAddr::V6(_) => address,
    }
}

/// # Safety
/// Local and remote address are NULL or have the room that their lengths tell.
#[allow(clippy::too_many_arguments)] // those of the function
unsafe fn connect_by_name<T: Unit>(
    socket: Socket,
    node: Text<'_, T>,
    service: Text<'_, T>,
    local_length: InOut<'_, u32>,
    local: *mut sockaddr,
    remote_length: InOut<'_, u32>,
    remote: *mut sockaddr,
    timeout: In<'_, libc::timeval>,
    reserved: *const c_void,
) -> i32 {
    let targets = |stream: &Stream| {
        let (node, service) = (narrow(node), narrow(service));
        if node.is_none() || service.is_none() {
            return Err(WSAEINVAL);
        }
        let mapped = stream.takes_mapped();
        let family = if mapped { libc::AF_UNSPEC } else { stream.family };
        let hints = addrinfo { ai_family: family, ai_socktype: libc::SOCK_STREAM, ..no_hints() };
        let found = addresses(text_or_null(&node), text_or_null(&service), Some(hints));
        let list = found.map_err(winsock_code)?;
        let target = |found: &addrinfo| {
            // SAFETY: an entry has an address of its length.
            let address = unsafe { read_sockaddr(found.ai_addr, found.ai_addrlen as usize) };
            address.map(|address| if mapped { as_mapped(address) } else { address })
        };
        Ok(list.entries().map(target).collect())
    };
    let places =
        [Place { address: local, length: local_length }, Place { address: remote, length: remote_length }];
    // SAFETY: the places are as this function asks.
    unsafe { connect(socket, targets, places, timeout, reserved) }
}

narrow_and_wide! {
    "`WSAConnectByName`: it waits, whatever the socket does otherwise."
    ndw_WSAConnectByNameA ndw_WSAConnectByNameW = unsafe connect_by_name(
        socket: Socket,
        node: Text<'_, T>,
        service: Text<'_, T>,
        local_length: InOut<'_, u32>,
        local: *mut sockaddr,
        remote_length: InOut<'_, u32>,
        remote: *mut sockaddr,
        timeout: In<'_, libc::timeval>,
        reserved: *const c_void,
    ) -> i32;
}

/// `WSAConnectByList`: it waits, whatever the socket does otherwise.
///
/// # Safety
/// Behind the list's head are as many addresses as it says, each of which has its length; local and remote address are NULL or have the
/// room that their lengths tell.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSAConnectByList(
    socket: Socket,
    list: *const AddressList,
    local_length: InOut<'_, u32>,
    local: *mut sockaddr,
    remote_length: InOut<'_, u32>,
    remote: *mut sockaddr,
    timeout: In<'_, libc::timeval>,
    reserved: *const c_void,
) -> i32 {
    let targets = |_: &Stream| {
        // SAFETY: NULL or a list, as this function asks.
        let count = unsafe { list.as_ref() }.map_or(0, |list| list.count);
        if count <= 0 {
            return Err(WSAEINVAL);
        }
        let target = |at| {
            // SAFETY: there are as many, as this function asks.
            let entry = unsafe { list.wrapping_add(1).cast::<SocketAddress>().wrapping_add(at).read() };
            // SAFETY: it has its length.
            unsafe { read_sockaddr(entry.address, entry.length.max(0) as usize) }
        };
        Ok((0..count as usize).map(target).collect())
    };
    let places =
        [Place { address: local, length: local_length }, Place { address: remote, length: remote_length }];
    // SAFETY: the places are as this function asks.
    unsafe { connect(socket, targets, places, timeout, reserved) }
}

#[cfg(test)]
mod tests;
