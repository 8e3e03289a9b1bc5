//! The local address for a remote one, and the list of local addresses.

use std::ffi::{CStr, CString};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use super::address::read_whole;

/// The local address, with port 0, that the system uses to reach `remote`.
///
/// The kernel selects it when a datagram socket is connected, which sends nothing. A local address is reached from itself.
///
/// # Errors
/// The errno of `connect` on a datagram socket: `ENETUNREACH` without a route; `EINVAL` for a wildcard.
pub fn local_address_for(remote: SocketAddr) -> io::Result<SocketAddr> {
    if remote.ip().is_unspecified() {
        // Linux takes this for the local host; on Windows it is no valid destination.
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let any: IpAddr =
        if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    let mut target = remote;
    if target.port() == 0 {
        // The port is irrelevant for routing, but the standard library may refuse 0.
        target.set_port(9);
    }
    socket.connect(target)?;
    let mut local = socket.local_addr()?;
    local.set_port(0);
    Ok(local)
}

/// An interface of the kernel's list, which has one entry for each address of an interface.
pub(super) struct Interface {
    pub(super) name: CString,
    pub(super) flags: u32,
    /// `None` for families other than IPv4 and IPv6.
    pub(super) address: Option<SocketAddr>,
    pub(super) mask: Option<SocketAddr>,
}

/// The kernel's list of interfaces.
///
/// # Errors
/// The errno of `getifaddrs`.
pub(super) fn interfaces() -> io::Result<Vec<Interface>> {
    let mut list = std::ptr::null_mut();
    // SAFETY: room for a pointer.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut next = list;
    // SAFETY: NULL or an entry of the list, which lives until it is freed.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: the names of the list are terminated.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) }.to_owned();
        // SAFETY: an address of the list is NULL or has the size of its family.
        let [address, mask] =
            [entry.ifa_addr, entry.ifa_netmask].map(|address| unsafe { read_whole(address) });
        found.push(Interface { name, flags: entry.ifa_flags, address, mask });
    }
    // SAFETY: got above, and nothing of it is used any more.
    unsafe { libc::freeifaddrs(list) };
    Ok(found)
}

/// The addresses of all interfaces that are up.
///
/// # Errors
/// The errno of `getifaddrs`.
pub fn local_addresses() -> io::Result<Vec<SocketAddr>> {
    let up = |interface: &Interface| interface.flags & libc::IFF_UP as u32 != 0;
    Ok(interfaces()?.into_iter().filter(up).filter_map(|interface| interface.address).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_destination_is_reached_from_itself() {
        for remote in ["127.0.0.1:80", "127.0.0.1:0"] {
            let local = local_address_for(remote.parse().unwrap()).unwrap();
            assert_eq!(local, "127.0.0.1:0".parse().unwrap());
        }
    }

    #[test]
    fn no_destination() {
        let error = local_address_for("0.0.0.0:1".parse().unwrap()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn every_own_ipv4_address_is_its_own_source() {
        let addresses = local_addresses().unwrap();
        assert!(addresses.iter().any(|address| address.ip().is_loopback()));
        for address in addresses.into_iter().filter(SocketAddr::is_ipv4) {
            assert_eq!(local_address_for(address).unwrap(), address);
        }
    }
}
