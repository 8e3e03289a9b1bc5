//! Addresses as text: `WSAStringToAddress`, `WSAAddressToString`, `InetPton`, `InetNtop`, and the names that the C library has, too:
//! `inet_addr`, `inet_pton`, `inet_ntop`. The latter set `errno` as well as the last error.

use super::address::{display, display_v6, parse, read_sockaddr, sockaddr_size, write_sockaddr};
use super::{failed, outcome};
use crate::arguments::Text;
use crate::error::*;
use crate::text::{self, Unit, narrow_and_wide};
use libc::{AF_INET, AF_INET6, c_char, c_int, sockaddr, socklen_t};
use std::ffi::c_void;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Converts text to an address. The target is unchanged on errors.
///
/// # Safety
/// `length` is NULL or readable and writable, `target` is NULL or has room for `*length` bytes.
unsafe fn string_to_address(
    text: Option<String>,
    family: i32,
    target: *mut sockaddr,
    length: *mut i32,
) -> Result<(), u32> {
    // SAFETY: NULL or a length, as this function asks.
    let length = unsafe { length.as_mut() }.filter(|_| !target.is_null()).ok_or(WSAEFAULT)?;
    let text = text.ok_or(WSAEINVAL)?;
    let size = sockaddr_size(family).ok_or(WSAEINVAL)?;
    if usize::try_from(*length).is_ok_and(|room| room >= size) {
        let address = parse(&text, family).ok_or(WSAEINVAL)?;
        *length = size as i32;
        // SAFETY: there is room for the structure of the family.
        unsafe { write_sockaddr(address, target, &mut { size }) }
    } else {
        *length = size as i32;
        Err(WSAEFAULT)
    }
}

/// Writes an address as text. `length` counts characters with the NUL.
///
/// # Safety
/// `address` is NULL or has `size` bytes, `length` is NULL or valid, `buffer` is NULL or has `*length` units.
unsafe fn address_to_string<T: Copy + Default>(
    address: *const sockaddr,
    size: u32,
    buffer: *mut T,
    length: *mut u32,
    encode: impl FnOnce(String) -> Vec<T>,
) -> Result<(), u32> {
    // SAFETY: NULL or a length, as this function asks.
    let length = unsafe { length.as_mut() }.ok_or(WSAEFAULT)?;
    if address.is_null() {
        return Err(WSAEFAULT);
    }
    // SAFETY: `size` bytes by the contract. An address that is cut off is an invalid argument here.
    let address = unsafe { read_sockaddr(address, size as usize) }.map_err(|_| WSAEINVAL)?;
    let text = encode(display(address));
    let room = std::mem::replace(length, text.len() as u32 + 1);
    // SAFETY: the buffer is NULL or has as many units as `*length` said, as the caller promises.
    if unsafe { text::store(&text, buffer, room as usize) } { Ok(()) } else { Err(WSAEFAULT) }
}

/// The bytes of an address in strict notation, `Ok(None)` if the text is not an address. Normalises an IPv6 address for Rust's
/// parser: Windows accepts leading zeroes in an embedded IPv4 address, up to three digits.
fn without_leading_zeroes(text: &str) -> String {
    let Some((head, tail)) = text.rsplit_once(':').filter(|(_, tail)| tail.contains('.')) else {
        return text.to_owned();
    };
    let part = |part: &str| match part.trim_start_matches('0') {
        "" if (1..=3).contains(&part.len()) => "0".to_owned(),
        short if part.len() <= 3 => short.to_owned(),
        _ => part.to_owned(),
    };
    format!("{head}:{}", tail.split('.').map(part).collect::<Vec<_>>().join("."))
}

fn pton(family: i32, text: Option<String>) -> Result<Option<Vec<u8>>, u32> {
    let text = text.ok_or(WSAEFAULT)?;
    match family {
        AF_INET => Ok(text.parse::<Ipv4Addr>().ok().map(|ip| ip.octets().into())),
        AF_INET6 => Ok(without_leading_zeroes(&text).parse::<Ipv6Addr>().ok().map(|ip| ip.octets().into())),
        _ => Err(WSAEAFNOSUPPORT),
    }
}

/// # Safety
/// `target` is NULL or has room for an address of the family.
unsafe fn pton_result(result: Result<Option<Vec<u8>>, u32>, target: *mut c_void) -> i32 {
    let result = result.and_then(|bytes| if target.is_null() { Err(WSAEFAULT) } else { Ok(bytes) });
    match result {
        Ok(Some(bytes)) => {
            // SAFETY: not NULL, hence room for an address of the family, which these bytes are.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target.cast(), bytes.len()) };
            1
        }
        Ok(None) => 0,
        Err(code) => {
            set_last_error(code);
            -1
        }
    }
}

/// # Safety
/// `source` is NULL or an address of the family.
unsafe fn ntop(family: i32, source: *const c_void) -> Result<String, u32> {
    match family {
        AF_INET | AF_INET6 if source.is_null() => Err(WSAEFAULT),
        // SAFETY: an address of 4 bytes by the contract.
        AF_INET => Ok(Ipv4Addr::from(unsafe { source.cast::<[u8; 4]>().read() }).to_string()),
        // SAFETY: an address of 16 bytes by the contract.
        AF_INET6 => Ok(display_v6(Ipv6Addr::from(unsafe { source.cast::<[u8; 16]>().read() }))),
        _ => Err(WSAEAFNOSUPPORT),
    }
}

/// # Safety
/// `buffer` is NULL or has room for `size` units.
unsafe fn ntop_result<T: Copy + Default>(text: Result<Vec<T>, u32>, buffer: *mut T, size: usize) -> *const T {
    let stored = text.and_then(|text| {
        // SAFETY: the buffer is NULL or has room for `size` units, as the caller promises.
        let stored = unsafe { text::store(&text, buffer, size) };
        if stored { Ok(()) } else { Err(ERROR_INVALID_PARAMETER) }
    });
    match stored {
        Ok(()) => buffer,
        Err(code) => {
            set_last_error(code);
            std::ptr::null()
        }
    }
}

/// # Safety
/// As for [`string_to_address`].
unsafe fn wsa_string_to_address<T: Unit>(
    string: Text<'_, T>,
    family: i32,
    _protocol: *const c_void,
    address: *mut sockaddr,
    length: *mut i32,
) -> i32 {
    // SAFETY: the room for the address is as this function asks, too.
    outcome(unsafe { string_to_address(string.read(), family, address, length) })
}

/// # Safety
/// As for [`address_to_string`].
unsafe fn wsa_address_to_string<T: Unit>(
    address: *const sockaddr,
    size: u32,
    _protocol: *const c_void,
    string: *mut T,
    length: *mut u32,
) -> i32 {
    // SAFETY: the address and the room for the text are as this function asks, too.
    outcome(unsafe { address_to_string(address, size, string, length, |text| T::spell(&text)) })
}

/// # Safety
/// As for [`pton_result`].
unsafe fn inet_pton<T: Unit>(family: i32, string: Text<'_, T>, address: *mut c_void) -> i32 {
    // SAFETY: the room for the address is as this function asks, too.
    let result = unsafe { pton_result(pton(family, string.read()), address) };
    if result == 0 && size_of::<T>() > 1 {
        // Only the wide function sets this error.
        set_last_error(WSAEINVAL);
    }
    result
}

/// # Safety
/// As for [`ntop`] and [`ntop_result`].
unsafe fn inet_ntop<T: Unit>(family: i32, address: *const c_void, string: *mut T, size: usize) -> *const T {
    // SAFETY: the address is as this function asks, too.
    let text = unsafe { ntop(family, address) };
    // SAFETY: so is the room for the text.
    unsafe { ntop_result(text.map(|text| T::spell(&text)), string, size) }
}

narrow_and_wide! {
    "`WSAStringToAddress`."
    ndw_WSAStringToAddressA ndw_WSAStringToAddressW = unsafe wsa_string_to_address(
        string: Text<'_, T>,
        family: i32,
        protocol: *const c_void,
        address: *mut sockaddr,
        length: *mut i32,
    ) -> i32;
    "`WSAAddressToString`."
    ndw_WSAAddressToStringA ndw_WSAAddressToStringW = unsafe wsa_address_to_string(
        address: *const sockaddr,
        size: u32,
        protocol: *const c_void,
        string: *mut T,
        length: *mut u32,
    ) -> i32;
    "`InetPton`: 1, 0 when the text is no address, -1 on errors."
    ndw_InetPtonA ndw_InetPtonW =
        unsafe inet_pton(family: i32, string: Text<'_, T>, address: *mut c_void) -> i32;
    "`InetNtop`."
    ndw_InetNtopA ndw_InetNtopW =
        unsafe inet_ntop(family: i32, address: *const c_void, string: *mut T, size: usize) -> *const T;
}

/// `inet_addr`: one to four parts, and what follows the first white space does not matter. A single space is `INADDR_ANY`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_inet_addr(text: Text<'_, u8>) -> u32 {
    unsafe extern "C" {
        fn inet_addr(text: *const c_char) -> u32;
    }
    match text.c_str() {
        None => {
            failed(libc::EFAULT, WSAEFAULT);
            libc::INADDR_NONE
        }
        Some(text) if text.to_bytes() == b" " => libc::INADDR_ANY,
        // SAFETY: a terminated text.
        Some(text) => unsafe { inet_addr(text.as_ptr()) },
    }
}

/// `inet_ntop`: `InetNtopA`.
///
/// # Safety
/// As for `InetNtopA`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_inet_ntop(
    family: c_int,
    address: *const c_void,
    string: *mut u8,
    size: socklen_t,
) -> *const u8 {
    // SAFETY: address and room are as this function asks, too.
    let text = unsafe { ndw_InetNtopA(family, address, string, size as usize) };
    if text.is_null() {
        set_errno(match last_error() {
            WSAEAFNOSUPPORT => libc::EAFNOSUPPORT,
            WSAEFAULT => libc::EFAULT,
            _ => libc::ENOSPC,
        });
    }
    text
}

/// `inet_pton`: `InetPtonA`.
///
/// # Safety
/// As for `InetPtonA`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_inet_pton(family: c_int, string: Text<'_, u8>, address: *mut c_void) -> c_int {
    // SAFETY: the room for the address is as this function asks, too.
    let result = unsafe { ndw_InetPtonA(family, string, address) };
    if result < 0 {
        set_errno(if last_error() == WSAEFAULT { libc::EFAULT } else { libc::EAFNOSUPPORT });
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;
    use std::ptr::{null, null_mut};

    const UNTOUCHED: [u8; 28] = [0xAA; 28];

    fn to_address(text: &str, family: i32, room: i32) -> (i32, u32, i32, [u8; 28]) {
        let (mut bytes, mut length) = (UNTOUCHED, room);
        set_last_error(0);
        // SAFETY: a terminated string, and no more room told than there is.
        let result = unsafe {
            let target = bytes.as_mut_ptr().cast();
            ndw_WSAStringToAddressW(Text::terminated(&w(text)), family, null(), target, &mut length)
        };
        (result, last_error(), length, bytes)
    }

    #[test]
    fn a_string_becomes_an_address() {
        let (result, _, length, bytes) = to_address("10.1.2.3:258", AF_INET, 28);
        assert_eq!((result, length), (0, 16));
        assert_eq!(bytes[..16], [2, 0, 1, 2, 10, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0]);
        let (result, _, length, bytes) = to_address("[fe80::9%5]:258", AF_INET6, 28);
        assert_eq!((result, length), (0, 28));
        assert_eq!((bytes[2..4].to_vec(), bytes[8], bytes[23], bytes[24]), (vec![1, 2], 0xFE, 9, 5));
    }

    #[test]
    fn errors_leave_the_target_alone() {
        for (text, family, room, error, length) in [
            ("nonsense", AF_INET, 28, WSAEINVAL, 28),
            ("1.2.3.4", AF_INET6, 28, WSAEINVAL, 28),
            ("1.2.3.4", 23, 28, WSAEINVAL, 28),
            ("1.2.3.4", AF_INET, 15, WSAEFAULT, 16),
            ("::1", AF_INET6, 16, WSAEFAULT, 28),
            ("1.2.3.4", AF_INET, -1, WSAEFAULT, 16),
        ] {
            assert_eq!(to_address(text, family, room), (-1, error, length, UNTOUCHED), "{text} {room}");
        }
        // SAFETY: NULL is refused.
        unsafe {
            let mut length = 16;
            assert_eq!(ndw_WSAStringToAddressA(c"1.2.3.4".into(), 2, null(), null_mut(), &mut length), -1);
            assert_eq!(last_error(), WSAEFAULT);
            let mut bytes = UNTOUCHED;
            let target = bytes.as_mut_ptr().cast();
            assert_eq!(ndw_WSAStringToAddressA(Text::NULL, 2, null(), target, &mut length), -1);
            assert_eq!(last_error(), WSAEINVAL);
            assert_eq!(ndw_WSAStringToAddressA(c"1.2.3.4".into(), 2, null(), target, null_mut()), -1);
            assert_eq!(last_error(), WSAEFAULT);
        }
    }

    #[test]
    fn an_address_becomes_a_string() {
        let (_, _, _, bytes) = to_address("10.1.2.3:80", AF_INET, 28);
        let (mut buffer, mut length) = ([9; 16], 11);
        // SAFETY: no more room told than there is.
        unsafe {
            let (source, target) = (bytes.as_ptr().cast(), buffer.as_mut_ptr());
            assert_eq!(ndw_WSAAddressToStringW(source, 16, null(), target, &mut length), -1);
            assert_eq!((last_error(), length, buffer), (WSAEFAULT, 12, [9; 16]));
            assert_eq!(ndw_WSAAddressToStringW(source, 16, null(), target, &mut length), 0);
            assert_eq!((length, &buffer[..12]), (12, &w("10.1.2.3:80")[..]));
            assert_eq!(ndw_WSAAddressToStringW(source, 15, null(), target, &mut length), -1);
            assert_eq!(last_error(), WSAEINVAL);
            let mut narrow = [0u8; 16];
            assert_eq!(
                ndw_WSAAddressToStringA(source, 28, null(), narrow.as_mut_ptr().cast(), &mut length),
                0
            );
            assert_eq!(&narrow[..12], b"10.1.2.3:80\0");
            assert_eq!(ndw_WSAAddressToStringA(null(), 16, null(), null_mut(), &mut length), -1);
            assert_eq!(last_error(), WSAEFAULT);
        }
    }

    #[test]
    fn pton_is_strict() {
        let mut bytes = [0u8; 16];
        let target = bytes.as_mut_ptr().cast();
        // SAFETY: room for either family.
        unsafe {
            assert_eq!(ndw_InetPtonA(AF_INET, c"1.2.3.4".into(), target), 1);
            assert_eq!(ndw_InetPtonA(AF_INET, c"1.2.3".into(), target), 0);
            assert_eq!(ndw_InetPtonW(AF_INET, Text::terminated(&w("1.2.3.4:5")), target), 0);
            assert_eq!(ndw_InetPtonA(99, c"1.2.3.4".into(), target), -1);
            assert_eq!(last_error(), WSAEAFNOSUPPORT);
            assert_eq!(ndw_InetPtonA(AF_INET, Text::NULL, target), -1);
            assert_eq!(last_error(), WSAEFAULT);
            assert_eq!(bytes[..4], [1, 2, 3, 4]);
            assert_eq!(ndw_InetPtonW(AF_INET6, Text::terminated(&w("::2")), bytes.as_mut_ptr().cast()), 1);
        }
        assert_eq!(bytes[15], 2);
    }

    #[test]
    fn what_pton_refuses_leaves_the_target_alone() {
        let mut bytes = [0xAAu8; 16];
        let target = bytes.as_mut_ptr().cast();
        for (family, texts) in [
            (
                AF_INET,
                &[
                    "",
                    "1",
                    "1.2.3",
                    "1.2.3.4.5",
                    "1.2.3.256",
                    "0x1.2.3.4",
                    "1.2.3.4:0",
                    " 1.2.3.4",
                    "1.2.3.4 ",
                    "1..2.3",
                    "a",
                ][..],
            ),
            (
                AF_INET6,
                &[
                    "",
                    ":",
                    "::1%1",
                    "[::1]",
                    "[::1]:5",
                    "::1 ",
                    ":::",
                    "1:2:3:4:5:6:7",
                    "1::2::3",
                    "12345::",
                    "1.2.3.4",
                    "g::",
                ],
            ),
        ] {
            for text in texts {
                // SAFETY: room for either family.
                let read = unsafe { ndw_InetPtonW(family, Text::terminated(&w(text)), target) };
                assert_eq!(read, 0, "{text:?}");
            }
        }
        // SAFETY: NULL is refused.
        unsafe {
            assert_eq!(ndw_InetPtonA(AF_INET, c"1.2.3.4".into(), null_mut()), -1);
            assert_eq!(last_error(), WSAEFAULT);
        }
        assert_eq!(bytes, [0xAA; 16]);
    }

    #[test]
    fn ipv6_addresses_with_scopes_need_their_room_too() {
        let (_, _, _, bytes) = to_address("[fe80::9%5]:258", AF_INET6, 28);
        let mut buffer = [9; 16];
        let mut length = 0;
        // SAFETY: no more room told than there is.
        unsafe {
            let source = bytes.as_ptr().cast();
            assert_eq!(ndw_WSAAddressToStringW(source, 28, null(), null_mut(), &mut length), -1);
            assert_eq!((last_error(), length), (WSAEFAULT, 16));
            assert_eq!(ndw_WSAAddressToStringW(source, 28, null(), buffer.as_mut_ptr(), &mut length), 0);
            assert_eq!((length, &buffer[..]), (16, &w("[fe80::9%5]:258")[..]));
            assert_eq!(ndw_WSAAddressToStringW(source, 28, null(), buffer.as_mut_ptr(), null_mut()), -1);
            assert_eq!(last_error(), WSAEFAULT);
            let other = [99u8; 28];
            assert_eq!(
                ndw_WSAAddressToStringW(other.as_ptr().cast(), 28, null(), buffer.as_mut_ptr(), &mut length),
                -1
            );
            assert_eq!(last_error(), WSAEINVAL);
        }
    }

    #[test]
    fn ntop_needs_room() {
        let (bytes, mut buffer) = ([1u8, 2, 3, 4], [0; 8]);
        // SAFETY: an IPv4 address, and no more room told than there is.
        unsafe {
            let text = ndw_InetNtopW(AF_INET, bytes.as_ptr().cast(), buffer.as_mut_ptr(), 8);
            assert_eq!((text, &buffer[..]), (buffer.as_ptr(), &w("1.2.3.4")[..]));
            assert!(ndw_InetNtopW(AF_INET, bytes.as_ptr().cast(), buffer.as_mut_ptr(), 7).is_null());
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
            assert!(ndw_InetNtopA(99, bytes.as_ptr().cast(), null_mut(), 0).is_null());
            assert_eq!(last_error(), WSAEAFNOSUPPORT);
        }
    }

    #[test]
    fn pton_takes_zeroes_before_the_parts_of_an_embedded_address() {
        let mut bytes = [0u8; 16];
        let mut read = |text: &str| {
            set_last_error(0);
            let wide = crate::text::w(text);
            // SAFETY: a terminated text, and room for an address.
            let result =
                unsafe { ndw_InetPtonW(AF_INET6, Text::terminated(&wide), bytes.as_mut_ptr().cast()) };
            (result, last_error(), bytes[12..].to_vec())
        };
        assert_eq!(read("1::001.2.3.4"), (1, 0, vec![1, 2, 3, 4]));
        assert_eq!(read("1::5.000.07.010"), (1, 0, vec![5, 0, 7, 10]));
        for text in ["1::0001.2.3.4", "1::1.2.3", "1::1..3.4", "1::1.2.3.256", "001.2.3.4"] {
            let (result, error, _) = read(text);
            assert_eq!((result, error), (0, WSAEINVAL), "{text}");
        }
        // SAFETY: a terminated text, and room for an address of the family.
        unsafe {
            set_last_error(0);
            assert_eq!(ndw_InetPtonA(AF_INET6, c"1::1.2.3".into(), bytes.as_mut_ptr().cast()), 0);
        }
        assert_eq!(last_error(), 0);
    }
}
