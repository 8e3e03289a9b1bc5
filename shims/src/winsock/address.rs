//! Conversion of socket addresses between `SOCKADDR`, text and Rust.

use crate::error::*;
use libc::{AF_INET, AF_INET6, sockaddr, sockaddr_in, sockaddr_in6};
use std::ffi::CString;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// The size of the address structure of a family.
pub fn sockaddr_size(family: i32) -> Option<usize> {
    match family {
        AF_INET => Some(size_of::<sockaddr_in>()),
        AF_INET6 => Some(size_of::<sockaddr_in6>()),
        _ => None,
    }
}

/// Reads an address: `WSAEFAULT` for NULL or one that is too short, `WSAEAFNOSUPPORT` for another family.
///
/// # Errors
/// `WSAEFAULT` for NULL and for what is too short, `WSAEAFNOSUPPORT` for other families.
///
/// # Safety
/// `address` is NULL or points to `length` readable bytes.
pub unsafe fn read_sockaddr(address: *const sockaddr, length: usize) -> Result<SocketAddr, u32> {
    if address.is_null() || length < size_of::<libc::sa_family_t>() {
        return Err(WSAEFAULT);
    }
    // SAFETY: the family lies within the length.
    let family = unsafe { address.cast::<libc::sa_family_t>().read_unaligned() }.into();
    match sockaddr_size(family) {
        None => Err(WSAEAFNOSUPPORT),
        Some(size) if length < size => Err(WSAEFAULT),
        Some(_) if family == AF_INET => {
            // SAFETY: the length was checked.
            let v4 = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Ok(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        Some(_) => {
            // SAFETY: the length was checked.
            let v6 = unsafe { address.cast::<sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let port = u16::from_be(v6.sin6_port);
            Ok(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
        }
    }
}

/// Reads an address that is as long as its family demands; `None` for NULL and for other families.
///
/// # Safety
/// `address` is NULL or so long.
pub(super) unsafe fn read_whole(address: *const sockaddr) -> Option<SocketAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: every address begins with its family.
    let family = unsafe { address.cast::<libc::sa_family_t>().read_unaligned() };
    // SAFETY: as long as its family demands, as the caller promises.
    unsafe { read_sockaddr(address, sockaddr_size(family.into())?) }.ok()
}

/// Writes an address and its length. If the room (`*length`) is too small, only the length is written, and the result is
/// `WSAEFAULT`.
///
/// # Errors
/// `WSAEFAULT` if there is no room.
///
/// # Safety
/// `target` is NULL or has room for `*length` bytes.
pub unsafe fn write_sockaddr(from: SocketAddr, target: *mut sockaddr, length: &mut usize) -> Result<(), u32> {
    match from {
        SocketAddr::V4(v4) => {
            let raw = sockaddr_in {
                sin_family: AF_INET as _,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from(*v4.ip()).to_be() },
                sin_zero: [0; 8],
            };
            // SAFETY: NULL or room for so many bytes, as the caller promises.
            unsafe { write_raw(raw, target, length) }
        }
        SocketAddr::V6(v6) => {
            let raw = sockaddr_in6 {
                sin6_family: AF_INET6 as _,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: NULL or room for so many bytes, as the caller promises.
            unsafe { write_raw(raw, target, length) }
        }
    }
}

/// # Safety
/// As for [`write_sockaddr`].
unsafe fn write_raw<T>(raw: T, target: *mut sockaddr, length: &mut usize) -> Result<(), u32> {
    let room = std::mem::replace(length, size_of::<T>());
    if target.is_null() || room < size_of::<T>() {
        return Err(WSAEFAULT);
    }
    // SAFETY: there is room for the structure.
    unsafe { target.cast::<T>().write_unaligned(raw) };
    Ok(())
}

/// A number as `inet_addr` reads it: decimal, octal after `0`, hexadecimal after `0x`.
fn number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    // `from_str_radix` would take a sign.
    let proper = digits.chars().all(|c| c.is_digit(radix));
    (proper && !digits.is_empty()).then(|| u32::from_str_radix(digits, radix).ok())?
}

/// An IPv4 address in one to four parts, of which the last one fills the remaining bytes.
pub(crate) fn parse_v4(text: &str) -> Option<Ipv4Addr> {
    // Of a single hexadecimal number only the low 32 bits count.
    if let [b'0', b'x' | b'X', digits @ ..] = text.as_bytes()
        && digits.len() > 8
        && digits.iter().all(u8::is_ascii_hexdigit)
    {
        let low = u32::from_str_radix(&text[text.len() - 8..], 16).ok()?;
        return Some(Ipv4Addr::from(low));
    }
    let parts = text.split('.').map(number).collect::<Option<Vec<u32>>>()?;
    let (last, leading) = parts.split_last()?;
    if leading.len() > 3 || leading.iter().any(|&part| part > 255) {
        return None;
    }
    let free_bits = 32 - 8 * leading.len() as u32;
    let high = leading.iter().enumerate().map(|(i, part)| part << (24 - 8 * i)).sum::<u32>();
    (u64::from(*last) < 1 << free_bits).then(|| Ipv4Addr::from(high | last))
}

/// A scope: its number, or (on Linux only) the name of the interface.
fn parse_scope(text: &str) -> Option<u32> {
    if text.bytes().all(|c| c.is_ascii_digit()) {
        return text.parse().ok();
    }
    let name = CString::new(text).ok()?;
    // SAFETY: a terminated name.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => None,
        index => Some(index),
    }
}

/// An explicit port must not be 0.
fn parse_port(text: &str) -> Option<u16> {
    number(text).and_then(|port| port.try_into().ok()).filter(|port| *port != 0)
}

/// Reads an address as `WSAStringToAddress` does: `a.b.c.d`, `a.b.c.d:port`, `v6`, `v6%scope`, `[v6%scope]`,
/// `[v6%scope]:port`.
pub fn parse(text: &str, family: i32) -> Option<SocketAddr> {
    match family {
        AF_INET => {
            let (ip, port) = match text.split_once(':') {
                Some((ip, port)) => (ip, parse_port(port)?),
                None => (text, 0),
            };
            Some(SocketAddrV4::new(parse_v4(ip)?, port).into())
        }
        AF_INET6 => {
            let (host, port) = match text.strip_prefix('[') {
                Some(rest) => {
                    let (host, rest) = rest.split_once(']')?;
                    let port = if rest.is_empty() { 0 } else { parse_port(rest.strip_prefix(':')?)? };
                    (host, port)
                }
                None => (text, 0),
            };
            let (ip, scope) = match host.split_once('%') {
                Some((ip, scope)) => (ip, parse_scope(scope)?),
                None => (host, 0),
            };
            Some(SocketAddrV6::new(ip.parse().ok()?, port, 0, scope).into())
        }
        _ => None,
    }
}

/// An IPv6 address in its shortest form, with the last 32 bits as an IPv4 address where they are one: mapped, translated
/// or compatible addresses, and those of ISATAP.
pub fn display_v6(ip: Ipv6Addr) -> String {
    let [head @ .., a, b] = ip.segments();
    let embedded = match head {
        [0, 0, 0, 0, 0, 0] => a != 0,
        [0, 0, 0, 0, 0xFFFF, 0] | [.., 0 | 0x200, 0x5EFE] => true,
        _ => false,
    };
    if !embedded {
        return ip.to_string();
    }
    // A placeholder other than zeroes, which would be abbreviated.
    let [c, d, e, f, g, h] = head;
    let text = Ipv6Addr::new(c, d, e, f, g, h, 1, 1).to_string();
    let low = Ipv4Addr::from(u32::from(a) << 16 | u32::from(b));
    format!("{}{low}", text.strip_suffix("1:1").unwrap_or(&text))
}

/// Writes an address as `WSAAddressToString` does: without the port when that is 0.
pub fn display(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(v4) if v4.port() == 0 => v4.ip().to_string(),
        SocketAddr::V4(v4) => v4.to_string(),
        SocketAddr::V6(v6) => {
            let scope = if v6.scope_id() == 0 { String::new() } else { format!("%{}", v6.scope_id()) };
            match v6.port() {
                0 => format!("{}{scope}", display_v6(*v6.ip())),
                port => format!("[{}{scope}]:{port}", display_v6(*v6.ip())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (text, family, expected) in [
            ("192.168.1.20", AF_INET, "192.168.1.20:0"),
            ("192.168.1.20:54321", AF_INET, "192.168.1.20:54321"),
            ("10.1", AF_INET, "10.0.0.1:0"),
            ("0x7f.1", AF_INET, "127.0.0.1:0"),
            ("010.0.0.1:0x10", AF_INET, "8.0.0.1:16"),
            ("1.2.3.4:0XfE", AF_INET, "1.2.3.4:254"),
            ("1.2.3.4:017", AF_INET, "1.2.3.4:15"),
            ("1.2.3.4:65535", AF_INET, "1.2.3.4:65535"),
            ("255.255.255.255", AF_INET, "255.255.255.255:0"),
            ("0", AF_INET, "0.0.0.0:0"),
            ("7:9", AF_INET, "0.0.0.7:9"),
            ("10.20.770", AF_INET, "10.20.3.2:0"),
            ("10.65793:5", AF_INET, "10.1.1.1:5"),
            ("0x0A0b0c0d", AF_INET, "10.11.12.13:0"),
            ("0x123456789", AF_INET, "35.69.103.137:0"),
            ("1.2.3.00", AF_INET, "1.2.3.0:0"),
            ("01::A:b", AF_INET6, "[1::a:b]:0"),
            ("::2:3:4:5:6:7:8", AF_INET6, "[0:2:3:4:5:6:7:8]:0"),
            ("::ffff:1.2.3.4", AF_INET6, "[::ffff:1.2.3.4]:0"),
            ("[::1]:0x50", AF_INET6, "[::1]:80"),
            ("::1", AF_INET6, "[::1]:0"),
            ("fe80::1%7", AF_INET6, "[fe80::1%7]:0"),
            ("fe80::1%lo", AF_INET6, "[fe80::1%1]:0"),
            ("[2001:db8::2]:80", AF_INET6, "[2001:db8::2]:80"),
            ("[fe80::1%2]:80", AF_INET6, "[fe80::1%2]:80"),
            ("[::1]", AF_INET6, "[::1]:0"),
        ] {
            assert_eq!(parse(text, family).map(|a| a.to_string()).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "host",
            "256.1.1.1",
            "1.2.3.4.5",
            "1.2.3.400",
            "1.2.3.4:",
            "1.2.3.4:65536",
            "1.2.3.4:x",
            "1.2.3.4:0",
            "1.2.3.4:0x",
            "1.2.3.4:0x10000",
            "1.2.3.4:08",
            "1.2.3.4:0o7",
            "1.2.3.4::5",
            "1.2.3.4: 5",
            "1.2.3.4:5 ",
            "1.2.3.0x",
            "1.2.3.0x100",
            "1.2.3.",
            "1.2.3.-4",
            "1.2.65536",
            "300.2",
            "[1.2.3.4]",
            ":5",
            ".",
            " ",
            "\t1.2.3.4",
            "-1",
            "12AB",
            "4294967296",
            "1..2",
            "1.2.3.4 ",
            "+1.2.3.4",
            "09.1.1.1",
            "::1",
        ] {
            assert_eq!(parse(text, AF_INET), None, "{text:?}");
        }
        for text in [
            "",
            "1.2.3.4",
            "::1:",
            "[::1",
            "[::1]80",
            "[::1]:",
            "::1%",
            "::1%none-such",
            "12345::",
            "::1]:5",
            "1:2:3:",
            "[::1]:0",
            "[::1%]",
            " ::1",
            "::1::",
        ] {
            assert_eq!(parse(text, AF_INET6), None, "{text:?}");
        }
        assert_eq!(parse("1.2.3.4", libc::AF_UNIX), None);
    }

    #[test]
    fn addresses_are_shown_as_windows_shows_them() {
        for text in ["10.0.0.1", "10.0.0.1:80", "fe80::1%3", "[fe80::1%3]:80", "::1", "[::1]:9"] {
            let family = if text.contains("::") { AF_INET6 } else { AF_INET };
            assert_eq!(display(parse(text, family).unwrap()), text);
        }
    }

    #[test]
    fn embedded_ipv4_addresses_are_shown_as_such() {
        for text in [
            "::",
            "::1",
            "::102",
            "::1.2.3.4",
            "::ffff:1.2.3.4",
            "::ffff:0:1.2.3.4",
            "fe80::1:102:304",
            "::5efe:1.2.3.4",
            "::200:5efe:1.2.3.4",
            "fe80::5efe:1.2.3.4",
            "2001:db8::5efe:0.0.3.4",
            "1:0:2::3",
            "1::2:0:3",
        ] {
            assert_eq!(display_v6(text.parse().unwrap()), text);
        }
    }

    #[test]
    fn structures_survive_the_way_there_and_back() {
        for text in ["10.1.2.3:80", "[fe80::1%3]:80"] {
            let address = parse(text, if text.starts_with('[') { AF_INET6 } else { AF_INET }).unwrap();
            let mut bytes = [0xFFu8; 28];
            let mut length = bytes.len();
            // SAFETY: the lengths are those of the array.
            unsafe {
                write_sockaddr(address, bytes.as_mut_ptr().cast(), &mut length).unwrap();
                assert_eq!(read_sockaddr(bytes.as_ptr().cast(), length), Ok(address));
                assert_eq!(read_sockaddr(bytes.as_ptr().cast(), length - 1), Err(WSAEFAULT));
                let mut short = length - 1;
                assert_eq!(write_sockaddr(address, bytes.as_mut_ptr().cast(), &mut short), Err(WSAEFAULT));
                assert_eq!(short, length);
            }
        }
        // SAFETY: NULL, or the length of the array.
        unsafe {
            assert_eq!(read_sockaddr(std::ptr::null(), 16), Err(WSAEFAULT));
            assert_eq!(read_sockaddr([1u8, 0].as_ptr().cast(), 2), Err(WSAEAFNOSUPPORT));
        }
    }
}
