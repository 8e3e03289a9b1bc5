//! Which local address speaks to a remote one, and which local addresses there are.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use super::address::read_sockaddr;

/// The local address, with port 0, from which the system would speak to `remote`.
///
/// The kernel chooses it when a datagram socket is connected, for which nothing is sent. A local destination is
/// reached from itself.
pub fn local_address_for(remote: SocketAddr) -> io::Result<SocketAddr> {
    if remote.ip().is_unspecified() {
        // Linux would take this for the host itself; on Windows it is no destination.
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let any: IpAddr =
        if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    let mut target = remote;
    if target.port() == 0 {
        // The port plays no part in routing, but the standard library may refuse 0.
        target.set_port(9);
    }
    socket.connect(target)?;
    let mut local = socket.local_addr()?;
    local.set_port(0);
    Ok(local)
}

/// The addresses of all interfaces that are up.
pub fn local_addresses() -> io::Result<Vec<SocketAddr>> {
    let mut list = std::ptr::null_mut();
    // SAFETY: `list` is writable.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut addresses = Vec::new();
    let mut entry = list;
    // SAFETY: the list is valid until it is freed; an address has the size of its family.
    unsafe {
        while let Some(interface) = entry.as_ref() {
            let up = interface.ifa_flags & libc::IFF_UP as u32 != 0;
            if up && !interface.ifa_addr.is_null() {
                let size = super::address::sockaddr_size((*interface.ifa_addr).sa_family.into());
                addresses.extend(size.and_then(|size| read_sockaddr(interface.ifa_addr, size).ok()));
            }
            entry = interface.ifa_next;
        }
        libc::freeifaddrs(list);
    }
    Ok(addresses)
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
