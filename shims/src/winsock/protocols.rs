//! `WSAEnumProtocols`: what sockets can speak. Providers of NetworkDirect are hidden there; `WSCEnumProtocols` has them.

use super::catalogue::{ProtocolInfo, is_asked_for};
use super::startup::started;
use super::{SOCKET_ERROR, failed};
use crate::arguments::InOut;
use crate::boundary::guard;
use crate::error::*;

/// TCP and UDP for both families.
fn protocols() -> Vec<ProtocolInfo> {
    let kinds = [(libc::SOCK_STREAM, libc::IPPROTO_TCP), (libc::SOCK_DGRAM, libc::IPPROTO_UDP)];
    let of_family = |family| {
        kinds.into_iter().filter_map(move |(kind, protocol)| ProtocolInfo::of_socket(family, kind, protocol))
    };
    [libc::AF_INET, libc::AF_INET6].into_iter().flat_map(of_family).collect()
}

/// The number of protocols; `WSAENOBUFS` and the size when the buffer is too small.
///
/// # Safety
/// `asked` is NULL or a list that ends with 0; `buffer` is NULL or has room for `*size` bytes.
unsafe fn enumerate<T>(
    asked: *const i32,
    buffer: *mut T,
    size: InOut<'_, u32>,
    convert: fn(&ProtocolInfo) -> T,
) -> i32 {
    let list = || {
        if !started() {
            return Err(WSANOTINITIALISED);
        }
        let room = size.read().ok_or(WSAEFAULT)? as usize;
        let mut found = protocols();
        // SAFETY: a list that ends with 0, or NULL, as the caller promises.
        found.retain(|entry| unsafe { is_asked_for(asked, entry.protocol) });
        let needed = found.len() * size_of::<T>();
        if room < needed || (buffer.is_null() && needed != 0) {
            size.put(needed as u32);
            return Err(WSAENOBUFS);
        }
        for (at, entry) in found.iter().enumerate() {
            let place = buffer.wrapping_add(at);
            // SAFETY: within the bytes that the buffer is told to have.
            unsafe { place.write_unaligned(convert(entry)) };
        }
        Ok(found.len() as i32)
    };
    guard(SOCKET_ERROR, || {
        list().unwrap_or_else(|code| {
            failed(0, code);
            SOCKET_ERROR
        })
    })
}

/// `WSAEnumProtocolsW`.
///
/// # Safety
/// `protocols` is NULL or a list that ends with 0; `buffer` is NULL or has room for `*size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSAEnumProtocolsW(
    protocols: *const i32,
    buffer: *mut ProtocolInfo,
    size: InOut<'_, u32>,
) -> i32 {
    // SAFETY: list and buffer are as C's caller promises.
    unsafe { enumerate(protocols, buffer, size, |info| *info) }
}

/// `WSAEnumProtocolsA`.
///
/// # Safety
/// As for [`ndw_WSAEnumProtocolsW`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSAEnumProtocolsA(
    protocols: *const i32,
    buffer: *mut super::catalogue::ProtocolInfoA,
    size: InOut<'_, u32>,
) -> i32 {
    // SAFETY: list and buffer are as C's caller promises.
    unsafe { enumerate(protocols, buffer, size, ProtocolInfo::narrowed) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::{null, null_mut};

    #[test]
    fn tcp_and_udp_are_there_for_both_families() {
        super::super::startup::start();
        let mut size = 0;
        // SAFETY: no list, and a buffer that has the size told.
        unsafe {
            assert_eq!(ndw_WSAEnumProtocolsW(null(), null_mut(), InOut::from(&mut size)), -1);
            assert_eq!((last_error(), size as usize), (WSAENOBUFS, 4 * size_of::<ProtocolInfo>()));
            let mut found = [ProtocolInfo::network_direct(""); 4];
            assert_eq!(ndw_WSAEnumProtocolsW(null(), found.as_mut_ptr(), InOut::from(&mut size)), 4);
            assert_eq!(
                found.map(|info| (info.address_family, info.protocol, info.name())),
                [
                    (libc::AF_INET, 6, "TCP/IP".to_owned()),
                    (libc::AF_INET, 17, "UDP/IP".to_owned()),
                    (libc::AF_INET6, 6, "TCP/IPv6".to_owned()),
                    (libc::AF_INET6, 17, "UDP/IPv6".to_owned()),
                ]
            );
        }
    }

    #[test]
    fn a_list_chooses_among_the_protocols() {
        super::super::startup::start();
        let narrow = ProtocolInfo::network_direct("").narrowed();
        let mut found = [narrow; 2];
        let mut size = size_of_val(&found) as u32;
        // SAFETY: lists that end with 0, and a buffer that has the size told.
        unsafe {
            let mut list = |asked: &[i32], size: &mut u32| {
                ndw_WSAEnumProtocolsA(asked.as_ptr(), found.as_mut_ptr(), InOut::from(size))
            };
            assert_eq!(list(&[17, 99, 0], &mut size), 2);
            assert_eq!(list(&[99, 0], &mut size), 0);
            size -= 1;
            assert_eq!(list(&[6, 0], &mut size), -1);
            assert_eq!((last_error(), size as usize), (WSAENOBUFS, 2 * size_of_val(&narrow)));
            assert_eq!(ndw_WSAEnumProtocolsA(null(), null_mut(), InOut::NULL), -1);
            assert_eq!(last_error(), WSAEFAULT);
        }
        assert_eq!(&found[0].name[..7], b"UDP/IP\0");
    }
}
