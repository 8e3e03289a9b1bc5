//! Socket addresses, v4 or v6, as the C interfaces pass them.

use std::ffi::c_void;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::ptr;

use libc::{sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};

/// An IPv4 or IPv6 address with a port; an IPv6 address includes the scope id.
///
/// ```
/// use ndcompat::SockAddr;
/// use std::net::SocketAddr;
///
/// let address = SockAddr::from("192.0.2.1:5000".parse::<SocketAddr>().unwrap());
/// assert!(address.same_ip(address.with_port(7)) && address != address.with_port(7));
/// let (raw, length) = address.to_raw();
/// // SAFETY: the structure has this length.
/// assert_eq!(unsafe { SockAddr::from_raw(raw.as_ptr().cast(), length as usize) }.unwrap(), address);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SockAddr(SocketAddr);

/// A C structure that is large enough for either family.
#[repr(C)]
#[derive(Clone, Copy)]
pub union RawSockAddr {
    v4: sockaddr_in,
    v6: sockaddr_in6,
}

impl fmt::Debug for RawSockAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawSockAddr").finish_non_exhaustive()
    }
}

impl RawSockAddr {
    /// As the pointer that socket calls take.
    pub fn as_ptr(&self) -> *const sockaddr {
        ptr::from_ref(self).cast()
    }

    /// As the pointer that rdma_cm calls take. They do not write to it.
    pub fn as_mut_ptr(&mut self) -> *mut sockaddr {
        ptr::from_mut(self).cast()
    }
}

impl SockAddr {
    /// Reads the structure at `addr`, which is `length` bytes long.
    ///
    ///
    /// # Errors
    /// `EINVAL` for null and for a structure too short for its family, `EAFNOSUPPORT` for other families.
    ///
    /// # Safety
    /// `addr` is null or valid for reads of `length` bytes. It need not be aligned.
    pub unsafe fn from_raw(addr: *const c_void, length: usize) -> io::Result<SockAddr> {
        if addr.is_null() || length < size_of::<sa_family_t>() {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: that many bytes are readable.
        let family = unsafe { addr.cast::<sa_family_t>().read_unaligned() };
        match i32::from(family) {
            libc::AF_INET if length >= size_of::<sockaddr_in>() => {
                // SAFETY: that many bytes are readable.
                let raw = unsafe { addr.cast::<sockaddr_in>().read_unaligned() };
                let ip = u32::from_be(raw.sin_addr.s_addr).into();
                Ok(SockAddr(SocketAddrV4::new(ip, u16::from_be(raw.sin_port)).into()))
            }
            libc::AF_INET6 if length >= size_of::<sockaddr_in6>() => {
                // SAFETY: that many bytes are readable.
                let raw = unsafe { addr.cast::<sockaddr_in6>().read_unaligned() };
                let port = u16::from_be(raw.sin6_port);
                let ip = raw.sin6_addr.s6_addr.into();
                Ok(SockAddr(SocketAddrV6::new(ip, port, raw.sin6_flowinfo, raw.sin6_scope_id).into()))
            }
            libc::AF_INET | libc::AF_INET6 => Err(io::Error::from_raw_os_error(libc::EINVAL)),
            _ => Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT)),
        }
    }

    /// The structure for C, and its length for the family, in bytes.
    pub fn to_raw(self) -> (RawSockAddr, socklen_t) {
        match self.0 {
            SocketAddr::V4(addr) => {
                let v4 = sockaddr_in {
                    sin_family: libc::AF_INET as sa_family_t,
                    sin_port: addr.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from(*addr.ip()).to_be() },
                    sin_zero: [0; 8],
                };
                (RawSockAddr { v4 }, size_of::<sockaddr_in>() as socklen_t)
            }
            SocketAddr::V6(addr) => {
                let v6 = sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as sa_family_t,
                    sin6_port: addr.port().to_be(),
                    sin6_flowinfo: addr.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: addr.ip().octets() },
                    sin6_scope_id: addr.scope_id(),
                };
                (RawSockAddr { v6 }, size_of::<sockaddr_in6>() as socklen_t)
            }
        }
    }

    /// The address family, `AF_INET` or `AF_INET6`.
    pub fn family(self) -> i32 {
        if self.0.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }
    }

    /// The port, in host order.
    pub fn port(self) -> u16 {
        self.0.port()
    }

    /// The same address with another port.
    pub fn with_port(mut self, port: u16) -> SockAddr {
        self.0.set_port(port);
        self
    }

    /// The address without the port.
    pub fn ip(self) -> IpAddr {
        self.0.ip()
    }

    /// Whether both are the same IP address. Ports are ignored.
    ///
    /// Scopes are compared only if both addresses have one, as programs often leave it out.
    pub fn same_ip(self, other: SockAddr) -> bool {
        let scopes_agree = match (self.0, other.0) {
            (SocketAddr::V6(a), SocketAddr::V6(b)) => {
                a.scope_id() == b.scope_id() || a.scope_id() == 0 || b.scope_id() == 0
            }
            _ => true,
        };
        self.ip() == other.ip() && scopes_agree
    }

    /// Whether it is an IPv6 link-local address without a scope.
    pub fn lacks_scope(self) -> bool {
        matches!(self.0, SocketAddr::V6(addr) if addr.ip().is_unicast_link_local() && addr.scope_id() == 0)
    }

    /// The same address with this scope, the index of an interface. An IPv4 address is unchanged.
    pub fn with_scope(mut self, scope: u32) -> SockAddr {
        if let SocketAddr::V6(addr) = &mut self.0 {
            addr.set_scope_id(scope);
        }
        self
    }

    /// Whether it is the wildcard address of its family.
    pub fn is_unspecified(self) -> bool {
        self.ip().is_unspecified()
    }

    /// Whether it is a loopback address.
    pub fn is_loopback(self) -> bool {
        self.ip().is_loopback()
    }
}

impl From<SocketAddr> for SockAddr {
    fn from(addr: SocketAddr) -> SockAddr {
        SockAddr(addr)
    }
}

impl From<SockAddr> for SocketAddr {
    fn from(addr: SockAddr) -> SocketAddr {
        addr.0
    }
}

impl fmt::Display for SockAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for SockAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Reads an address without a length; `None` if it is not an IP address.
///
/// # Safety
/// `addr` points to an address of any family, with the length of its family.
pub(super) unsafe fn of_any_family(addr: *const libc::sockaddr) -> Option<SockAddr> {
    // SAFETY: every address begins with its family.
    let length = match i32::from(unsafe { (*addr).sa_family }) {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
        _ => size_of::<libc::sa_family_t>(),
    };
    // SAFETY: the address has the length of its family.
    unsafe { SockAddr::from_raw(addr.cast(), length) }.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(text: &str) -> SockAddr {
        SockAddr(text.parse().unwrap())
    }

    fn from_bytes(bytes: &[u8]) -> Result<SockAddr, i32> {
        // SAFETY: the slice is readable.
        let result = unsafe { SockAddr::from_raw(bytes.as_ptr().cast(), bytes.len()) };
        result.map_err(|e| e.raw_os_error().unwrap())
    }

    fn to_bytes(addr: SockAddr) -> Vec<u8> {
        let (raw, length) = addr.to_raw();
        // SAFETY: the structure is longer than the length it reports.
        unsafe { std::slice::from_raw_parts(raw.as_ptr().cast::<u8>(), length as usize) }.to_vec()
    }

    #[test]
    fn raw_bytes_of_v4() {
        let bytes = to_bytes(addr("10.77.0.1:4660"));
        assert_eq!(bytes[2..8], [0x12, 0x34, 10, 77, 0, 1]);
        assert_eq!(bytes.len(), 16);
    }

    #[test]
    fn there_and_back() {
        for text in ["10.77.0.1:4660", "0.0.0.0:0", "[fd77::1]:65535", "[fe80::1%7]:1", "[::]:0"] {
            assert_eq!(from_bytes(&to_bytes(addr(text))), Ok(addr(text)), "{text}");
        }
    }

    #[test]
    fn unaligned_and_longer_than_needed() {
        let mut bytes = vec![0xff];
        bytes.extend(to_bytes(addr("10.77.0.1:7")));
        bytes.extend([0xff; 100]);
        assert_eq!(from_bytes(&bytes[1..]), Ok(addr("10.77.0.1:7")));
    }

    #[test]
    fn too_short_for_its_family() {
        for text in ["10.77.0.1:1", "[fd77::1]:1"] {
            let bytes = to_bytes(addr(text));
            for length in 0..bytes.len() {
                assert_eq!(from_bytes(&bytes[..length]), Err(libc::EINVAL), "{text} in {length} bytes");
            }
        }
        // SAFETY: a null pointer is allowed.
        assert!(unsafe { SockAddr::from_raw(ptr::null(), 16) }.is_err());
    }

    #[test]
    fn other_families_are_refused() {
        let mut bytes = [0; 128];
        bytes[0] = libc::AF_UNIX as u8;
        assert_eq!(from_bytes(&bytes), Err(libc::EAFNOSUPPORT));
    }

    #[test]
    fn same_ip_ignores_the_port_and_an_unnamed_scope() {
        assert!(addr("10.77.0.1:1").same_ip(addr("10.77.0.1:2")));
        assert!(!addr("10.77.0.1:1").same_ip(addr("10.77.0.2:1")));
        assert!(addr("[fe80::1%7]:1").same_ip(addr("[fe80::1]:1")));
        assert!(!addr("[fe80::1%7]:1").same_ip(addr("[fe80::1%8]:1")));
        assert!(!addr("0.0.0.0:1").same_ip(addr("[::]:1")));
    }

    #[test]
    fn only_link_local_addresses_lack_a_scope() {
        assert!(addr("[fe80::1]:1").lacks_scope());
        for text in ["[fe80::1%7]:1", "[fd00::1]:1", "[::]:1", "169.254.0.1:1"] {
            assert!(!addr(text).lacks_scope(), "{text}");
        }
        assert_eq!(addr("[fe80::1]:1").with_scope(7), addr("[fe80::1%7]:1"));
        assert_eq!(addr("10.77.0.1:1").with_scope(7), addr("10.77.0.1:1"));
    }

    #[test]
    fn port_changes_alone() {
        assert_eq!(addr("[fe80::1%7]:1").with_port(9), addr("[fe80::1%7]:9"));
        assert_eq!(addr("10.77.0.1:1").with_port(9).port(), 9);
    }
}
