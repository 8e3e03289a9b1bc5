//! Addresses as text: `RtlIpv4StringToAddress` and its family. The short forms return where the address ends; the long ones
//! (`Ex`) parse the whole text, with port and scope.

use crate::arguments::{In, InOut, Out, Text};
use crate::text::{self, Unit, narrow_and_wide};
use crate::winsock::address::{display, parse};
use libc::{AF_INET, AF_INET6};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

const STATUS_SUCCESS: i32 = 0;
const STATUS_INVALID_PARAMETER: i32 = 0xC000_000Du32 as i32;

/// The octets of `IN_ADDR` and `IN6_ADDR`.
type Octets4 = [u8; 4];
type Octets6 = [u8; 16];

/// The IPv4 address at the beginning of a text, and how much was read: of four decimal parts if `strict`, else of one to four
/// of any base. What is wrong in the midst, as a number that is too large, leaves no shorter address.
fn read_v4(text: &str, strict: bool) -> (Option<Ipv4Addr>, usize) {
    let text = text.as_bytes();
    let (mut parts, mut at) = (Vec::new(), 0);
    loop {
        let (radix, start) = match &text[at..] {
            [b'0', b'x' | b'X', ..] => (16, at + 2),
            [b'0', b'0'..=b'9', ..] => (8, at + 1),
            _ => (10, at),
        };
        if strict && radix != 10 {
            return (None, start);
        }
        at = start;
        let mut value = 0u32;
        while let Some(digit) = text.get(at).and_then(|&c| char::from(c).to_digit(radix)) {
            value = match value.checked_mul(radix).and_then(|value| value.checked_add(digit)) {
                Some(value) => value,
                // Of a hexadecimal number at the beginning only the low 32 bits count.
                None if radix == 16 && parts.is_empty() => value << 4 | digit,
                None => return (None, at),
            };
            at += 1;
        }
        let dot = text.get(at) == Some(&b'.');
        if at == start {
            return (None, at + usize::from(dot));
        }
        parts.push(value);
        match parts.len() {
            _ if !dot => break,
            4 => return (None, at),
            _ => at += 1,
        }
    }
    if strict && parts.len() != 4 {
        return (None, at);
    }
    (from_parts(&parts), at)
}

/// The address of one to four parts, of which the last one fills the remaining bytes.
fn from_parts(parts: &[u32]) -> Option<Ipv4Addr> {
    let (last, leading) = parts.split_last()?;
    let mut octets = last.to_be_bytes();
    for (octet, part) in octets.iter_mut().zip(leading) {
        // What the last part has there is too much of it.
        if *octet != 0 {
            return None;
        }
        *octet = u8::try_from(*part).ok()?;
    }
    Some(octets.into())
}

/// The longest prefix of a text that is an IPv6 address, and its length.
fn read_v6(text: &str) -> (Option<Ipv6Addr>, usize) {
    let belongs = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len()).min(64);
    let found = (1..=end).rev().find_map(|end| Some((text[..end].parse().ok()?, end)));
    found.map_or((None, 0), |(address, end)| (Some(address), end))
}

/// Parses the beginning of a text, and stores where the address ends, or where it is none any more.
fn begin<T: Unit, O>(
    text: Text<'_, T>,
    end: Out<'_, *const T>,
    address: Out<'_, O>,
    read: impl Fn(&str) -> (Option<O>, usize),
) -> i32 {
    let string = text.read().filter(|_| !end.is_null() && !address.is_null());
    let Some(string) = string else { return STATUS_INVALID_PARAMETER };
    let (found, length) = read(&string);
    // Addresses are ASCII: one unit for each character.
    end.put(text.as_ptr().wrapping_add(length));
    let Some(octets) = found else { return STATUS_INVALID_PARAMETER };
    address.put(octets);
    STATUS_SUCCESS
}

fn v4_begin<T: Unit>(
    text: Text<'_, T>,
    strict: u8,
    end: Out<'_, *const T>,
    address: Out<'_, Octets4>,
) -> i32 {
    begin(text, end, address, |text| {
        let (found, length) = read_v4(text, strict != 0);
        (found.map(|ip| ip.octets()), length)
    })
}

fn v6_begin<T: Unit>(text: Text<'_, T>, end: Out<'_, *const T>, address: Out<'_, Octets6>) -> i32 {
    begin(text, end, address, |text| {
        let (found, length) = read_v6(text);
        (found.map(|ip| ip.octets()), length)
    })
}

fn v4_whole<T: Unit>(text: Text<'_, T>, strict: u8, address: Out<'_, Octets4>, port: Out<'_, u16>) -> i32 {
    let whole = text.read().filter(|text| {
        let host = text.split(':').next().unwrap_or_default();
        !address.is_null()
            && !port.is_null()
            && matches!(read_v4(host, strict != 0), (Some(_), length) if length == host.len())
    });
    let Some(SocketAddr::V4(read)) = whole.and_then(|text| parse(&text, AF_INET)) else {
        return STATUS_INVALID_PARAMETER;
    };
    address.put(read.ip().octets());
    port.put(read.port().to_be());
    STATUS_SUCCESS
}

fn v6_whole<T: Unit>(
    text: Text<'_, T>,
    address: Out<'_, Octets6>,
    scope: Out<'_, u32>,
    port: Out<'_, u16>,
) -> i32 {
    let whole = text.read();
    let whole = whole.filter(|_| !address.is_null() && !scope.is_null() && !port.is_null());
    let Some(SocketAddr::V6(read)) = whole.and_then(|text| parse(&text, AF_INET6)) else {
        return STATUS_INVALID_PARAMETER;
    };
    address.put(read.ip().octets());
    scope.put(read.scope_id());
    port.put(read.port().to_be());
    STATUS_SUCCESS
}

/// Writes an address to a buffer that is large enough for any. Returns the address of the NUL.
///
/// # Safety
/// `buffer` is NULL or has room for 16 or 46 units.
unsafe fn spell<T: Unit>(address: SocketAddr, buffer: *mut T) -> *mut T {
    let text = T::spell(&display(address));
    // SAFETY: every address of its family fits the room, which this function asks for.
    if unsafe { text::store(&text, buffer, text.len() + 1) } {
        buffer.wrapping_add(text.len())
    } else {
        buffer
    }
}

/// # Safety
/// `buffer` has room for 16 units.
unsafe fn v4_spell<T: Unit>(address: In<'_, Octets4>, buffer: *mut T) -> *mut T {
    let Some(address) = address.read() else { return buffer };
    // SAFETY: room for the longest address.
    unsafe { spell(SocketAddrV4::new(address.into(), 0).into(), buffer) }
}

/// # Safety
/// `buffer` has room for 46 units.
unsafe fn v6_spell<T: Unit>(address: In<'_, Octets6>, buffer: *mut T) -> *mut T {
    let Some(address) = address.read() else { return buffer };
    // SAFETY: room for the longest address.
    unsafe { spell(SocketAddrV6::new(address.into(), 0, 0, 0).into(), buffer) }
}

/// Writes an address with its port to a buffer. Its size is replaced by that of the text.
///
/// # Safety
/// `size` is NULL or tells the room of `buffer`.
unsafe fn spell_whole<T: Unit>(address: Option<SocketAddr>, buffer: *mut T, size: InOut<'_, u32>) -> i32 {
    let (Some(address), Some(room)) = (address, size.read()) else {
        return STATUS_INVALID_PARAMETER;
    };
    let text = T::spell(&display(address));
    // SAFETY: the buffer is NULL or has so many units.
    let stored = unsafe { text::store(&text, buffer, room as usize) };
    size.put(text.len() as u32 + 1);
    if stored { STATUS_SUCCESS } else { STATUS_INVALID_PARAMETER }
}

/// # Safety
/// As for [`spell_whole`].
unsafe fn v4_spell_whole<T: Unit>(
    address: In<'_, Octets4>,
    port: u16,
    buffer: *mut T,
    size: InOut<'_, u32>,
) -> i32 {
    let address = address.read().map(|octets| SocketAddrV4::new(octets.into(), u16::from_be(port)).into());
    // SAFETY: the size is NULL or tells the buffer's room.
    unsafe { spell_whole(address, buffer, size) }
}

/// # Safety
/// As for [`spell_whole`].
unsafe fn v6_spell_whole<T: Unit>(
    address: In<'_, Octets6>,
    scope: u32,
    port: u16,
    buffer: *mut T,
    size: InOut<'_, u32>,
) -> i32 {
    let address =
        address.read().map(|octets| SocketAddrV6::new(octets.into(), u16::from_be(port), 0, scope).into());
    // SAFETY: the size is NULL or tells the buffer's room.
    unsafe { spell_whole(address, buffer, size) }
}

narrow_and_wide! {
    "`RtlIpv4StringToAddress`."
    ndw_RtlIpv4StringToAddressA ndw_RtlIpv4StringToAddressW =
        v4_begin(text: Text<'_, T>, strict: u8, end: Out<'_, *const T>, address: Out<'_, Octets4>) -> i32;
    "`RtlIpv6StringToAddress`."
    ndw_RtlIpv6StringToAddressA ndw_RtlIpv6StringToAddressW =
        v6_begin(text: Text<'_, T>, end: Out<'_, *const T>, address: Out<'_, Octets6>) -> i32;
    "`RtlIpv4StringToAddressEx`: the port is in network order."
    ndw_RtlIpv4StringToAddressExA ndw_RtlIpv4StringToAddressExW =
        v4_whole(text: Text<'_, T>, strict: u8, address: Out<'_, Octets4>, port: Out<'_, u16>) -> i32;
    "`RtlIpv6StringToAddressEx`: the port is in network order."
    ndw_RtlIpv6StringToAddressExA ndw_RtlIpv6StringToAddressExW =
        v6_whole(text: Text<'_, T>, address: Out<'_, Octets6>, scope: Out<'_, u32>, port: Out<'_, u16>) -> i32;
    "`RtlIpv4AddressToString`."
    ndw_RtlIpv4AddressToStringA ndw_RtlIpv4AddressToStringW = unsafe v4_spell(address: In<'_, Octets4>, buffer: *mut T) -> *mut T;
    "`RtlIpv6AddressToString`."
    ndw_RtlIpv6AddressToStringA ndw_RtlIpv6AddressToStringW = unsafe v6_spell(address: In<'_, Octets6>, buffer: *mut T) -> *mut T;
    "`RtlIpv4AddressToStringEx`."
    ndw_RtlIpv4AddressToStringExA ndw_RtlIpv4AddressToStringExW =
        unsafe v4_spell_whole(address: In<'_, Octets4>, port: u16, buffer: *mut T, size: InOut<'_, u32>) -> i32;
    "`RtlIpv6AddressToStringEx`."
    ndw_RtlIpv6AddressToStringExA ndw_RtlIpv6AddressToStringExW =
        unsafe v6_spell_whole(address: In<'_, Octets6>, scope: u32, port: u16, buffer: *mut T, size: InOut<'_, u32>) -> i32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::ptr::null;

    #[test]
    fn an_address_at_the_beginning_is_read_and_its_end_told() {
        for (text, strict, expected, read) in [
            ("10.0.0.1", 1, Some([10, 0, 0, 1]), 8),
            ("10.0.0.1/24", 1, Some([10, 0, 0, 1]), 8),
            ("10.0.0.1 ", 0, Some([10, 0, 0, 1]), 8),
            ("10.1", 1, None, 4),
            ("0x10.1", 1, None, 2),
            ("10.0.0.010", 1, None, 8),
            ("10.1", 0, Some([10, 0, 0, 1]), 4),
            ("0x10.010.1:5", 0, Some([16, 8, 0, 1]), 10),
            ("10.0x10Q", 0, Some([10, 0, 0, 16]), 7),
            ("0x1234567890", 0, Some([0x34, 0x56, 0x78, 0x90]), 12),
            ("10.0.0.0a", 0, Some([10, 0, 0, 0]), 8),
            ("10.0.0.08", 0, None, 8),
            ("10.0.0.256", 0, None, 10),
            ("10.0.0.256", 1, None, 10),
            ("10.0.0.4294967296", 0, None, 16),
            ("10.0.65536", 0, None, 10),
            ("1000.1", 0, None, 6),
            ("10.0.0.1.", 0, None, 8),
            ("10.0.0.1.2", 1, None, 8),
            ("10..1", 0, None, 4),
            ("10.", 0, None, 3),
            ("10.-1", 0, None, 3),
            (".1", 0, None, 1),
            ("x", 0, None, 0),
            ("", 0, None, 0),
        ] {
            let c = CString::new(text).unwrap();
            let (mut octets, mut end) = ([9; 4], null::<u8>());
            let start = Text::from(c.as_c_str());
            // SAFETY: a terminated text; `end` is within it whenever the function has told one.
            let (status, length) = unsafe {
                let status = v4_begin(start, strict, (&mut end).into(), (&mut octets).into());
                (status, end.offset_from(start.as_ptr()) as usize)
            };
            let status_expected = if expected.is_some() { STATUS_SUCCESS } else { STATUS_INVALID_PARAMETER };
            assert_eq!(
                (status, octets, length),
                (status_expected, expected.unwrap_or([9; 4]), read),
                "{text} {strict}"
            );
        }
        let (mut octets, mut end) = ([9; 16], null::<u32>());
        // SAFETY: a terminated text that lives on; `end` points into it after the success.
        unsafe {
            let text = crate::text::w("fe80::1%3");
            assert_eq!(
                v6_begin(Text::terminated(&text), (&mut end).into(), (&mut octets).into()),
                STATUS_SUCCESS
            );
            assert_eq!((octets[0], octets[15], end.offset_from(text.as_ptr())), (0xfe, 1, 7));
            assert_eq!(
                v6_begin(Text::terminated(&text), Out::NULL, (&mut octets).into()),
                STATUS_INVALID_PARAMETER
            );
            assert_eq!(
                v6_begin::<u32>(Text::NULL, (&mut null::<u32>()).into(), (&mut octets).into()),
                STATUS_INVALID_PARAMETER
            );
        }
    }

    #[test]
    fn the_long_forms_take_all_of_the_text() {
        let (mut v4, mut v6, mut scope, mut port) = ([0; 4], [0; 16], 9, 9);
        let c = |text: &'static std::ffi::CStr| Text::from(text);
        assert_eq!(v4_whole(c(c"10.0.0.1:80"), 1, (&mut v4).into(), (&mut port).into()), STATUS_SUCCESS);
        assert_eq!((v4, port), ([10, 0, 0, 1], 80u16.to_be()));
        assert_eq!(v4_whole(c(c"10.1"), 0, (&mut v4).into(), (&mut port).into()), STATUS_SUCCESS);
        for wrong in [c"10.1", c"10.0.0.1x", c"10.0.0.1:0", c"10.0.0.1:"] {
            assert_eq!(
                v4_whole(c(wrong), 1, (&mut v4).into(), (&mut port).into()),
                STATUS_INVALID_PARAMETER,
                "{wrong:?}"
            );
        }
        assert_eq!(
            v6_whole(c(c"[fe80::1%3]:80"), (&mut v6).into(), (&mut scope).into(), (&mut port).into()),
            STATUS_SUCCESS
        );
        assert_eq!((v6[15], scope, port), (1, 3, 80u16.to_be()));
        assert_eq!(
            v6_whole(c(c"fe80::1]"), (&mut v6).into(), (&mut scope).into(), (&mut port).into()),
            STATUS_INVALID_PARAMETER
        );
        assert_eq!(
            v6_whole(c(c"::1"), (&mut v6).into(), Out::NULL, (&mut port).into()),
            STATUS_INVALID_PARAMETER
        );
    }

    #[test]
    fn addresses_are_written_with_and_without_ports() {
        let mut buffer = [b'?'; 46];
        let mut loopback = [0; 16];
        loopback[15] = 1;
        // SAFETY: the buffer has 46 units, which any address fits, and `size` tells no more; NULL is written nothing.
        unsafe {
            let at = buffer.as_mut_ptr();
            assert_eq!((v4_spell(In::NULL, at), v6_spell(In::NULL, at), buffer[0]), (at, at, b'?'));
            let end = v4_spell((&[10, 0, 0, 1]).into(), buffer.as_mut_ptr());
            assert_eq!((end.offset_from(buffer.as_ptr()), &buffer[..10]), (8, &b"10.0.0.1\0?"[..]));
            let end = v6_spell((&loopback).into(), buffer.as_mut_ptr());
            assert_eq!((end.offset_from(buffer.as_ptr()), &buffer[..4]), (3, &b"::1\0"[..]));
            let mut size = 12;
            let status = v4_spell_whole(
                (&[10, 0, 0, 1]).into(),
                80u16.to_be(),
                buffer.as_mut_ptr(),
                (&mut size).into(),
            );
            assert_eq!((status, size, &buffer[..12]), (STATUS_SUCCESS, 12, &b"10.0.0.1:80\0"[..]));
            size = 9;
            let status =
                v6_spell_whole((&loopback).into(), 3, 80u16.to_be(), buffer.as_mut_ptr(), (&mut size).into());
            assert_eq!((status, size), (STATUS_INVALID_PARAMETER, 11));
            let status =
                v6_spell_whole((&loopback).into(), 3, 80u16.to_be(), buffer.as_mut_ptr(), (&mut size).into());
            assert_eq!((status, &buffer[..11]), (STATUS_SUCCESS, &b"[::1%3]:80\0"[..]));
            assert_eq!(
                v4_spell_whole(In::NULL, 0, buffer.as_mut_ptr(), (&mut size).into()),
                STATUS_INVALID_PARAMETER
            );
        }
    }
}
