//! `struct sockaddr`.

use std::ffi::c_int;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Socket, Type};
use verbs_sys::*;

use super::super::errno;

/// The address at `raw`.
///
/// # Safety
/// It has the size of its family's structure.
pub(in super::super) unsafe fn read(raw: *const libc::sockaddr) -> Result<SocketAddr, c_int> {
    if raw.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: every address begins with its family.
    let length = match i32::from(unsafe { (*raw).sa_family }) {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
        _ => return Err(libc::EAFNOSUPPORT),
    };
    let fill = |to: *mut SockAddrStorage, size: *mut libc::socklen_t| {
        // SAFETY: `try_init` gives room for any address; the source is as long as its family says, as the caller promises.
        unsafe { raw.cast::<u8>().copy_to_nonoverlapping(to.cast(), length) };
        // SAFETY: `try_init` gives a place for the size.
        unsafe { *size = length as libc::socklen_t };
        Ok(())
    };
    // SAFETY: `fill` writes an address of its family, and its size.
    let ((), address) = unsafe { SockAddr::try_init(fill) }.map_err(|error| errno(&error))?;
    address.as_socket().ok_or(libc::EAFNOSUPPORT)
}

/// Writes the local and the remote address of an id, as far as known.
///
/// # Safety
/// The id is not destroyed.
pub(super) unsafe fn write(id: *mut rdma_cm_id, local: Option<SocketAddr>, remote: Option<SocketAddr>) {
    // SAFETY: an id that lives, as the caller promises.
    let addr = unsafe { &raw mut (*id).route.addr };
    // SAFETY: within the id, which lives.
    let source = unsafe { &raw mut (*addr).__bindgen_anon_1 }.cast::<u8>();
    // SAFETY: within the id, which lives.
    let target = unsafe { &raw mut (*addr).__bindgen_anon_2 }.cast::<u8>();
    for (address, place) in [(local, source), (remote, target)] {
        let Some(address) = address else { continue };
        let address = SockAddr::from(address);
        // SAFETY: the place has room for either family.
        unsafe { place.copy_from_nonoverlapping(address.as_ptr().cast(), address.len() as usize) };
    }
}

/// Converts an IPv4-mapped IPv6 address to IPv4.
pub(super) fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}

/// A socket bound to the address. With `reuse` (`SO_REUSEADDR`) connections in TIME_WAIT do not block the address.
pub(super) fn bound(at: SocketAddr, one_family: bool, reuse: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(reuse)?;
    if at.is_ipv6() && one_family {
        socket.set_only_v6(true)?;
    }
    socket.bind(&at.into())?;
    // Its own connections must not block the address in TIME_WAIT either.
    socket.set_reuse_address(true)?;
    Ok(socket)
}

/// The ports that the system chooses from, all of them, beginning somewhere.
pub(super) fn dynamic_ports() -> impl Iterator<Item = u16> {
    // The kernel's default, which is also the range for IPv6.
    const DEFAULT: (u16, u16) = (32768, 60999);
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut bounds = text.split_whitespace().map_while(|bound| bound.parse().ok());
    let (first, last) = bounds.next().zip(bounds.next()).unwrap_or(DEFAULT);
    let begin = getrandom::u32().unwrap_or(0) % (u32::from(last.saturating_sub(first)) + 1);
    let begin = first + begin as u16;
    (begin..=last).chain(first..begin)
}

/// The local address from which `to` is reached, with port 0.
pub(super) fn source_for(to: SocketAddr) -> io::Result<SocketAddr> {
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(to)?;
    let mut source = socket.local_addr()?;
    source.set_port(0);
    Ok(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_dynamic_port_comes_once() {
        let mut ports: Vec<_> = dynamic_ports().collect();
        ports.sort_unstable();
        let expected: Vec<_> = (ports[0]..=*ports.last().unwrap()).collect();
        assert_eq!(ports, expected);
    }
}
