//! `WSAStartup` and `WSACleanup`.
//!
//! Nothing has to be started on Linux: the calls are counted so that they balance, and no other function insists
//! on them.

use super::outcome;
use crate::error::*;
use std::ffi::c_char;
use std::sync::atomic::{AtomicU32, Ordering::*};

/// Version 2.2 as a `WORD`: the minor number in the high byte.
const VERSION_2_2: u16 = 0x0202;
const DESCRIPTION: &[u8] = b"ndcompat Winsock 2.2";
const STATUS: &[u8] = b"Running";

/// `WSADATA` of a 64-bit system.
#[repr(C)]
#[allow(missing_docs)] // the fields are Windows'
pub struct WsaData {
    pub version: u16,
    pub high_version: u16,
    pub max_sockets: u16,
    pub max_datagram: u16,
    pub vendor_info: *mut c_char,
    pub description: [u8; 257],
    pub system_status: [u8; 129],
}

const _: () = assert!(size_of::<WsaData>() == 408);

static STARTED: AtomicU32 = AtomicU32::new(0);

/// The version a program gets that asks for `requested`, `None` if there is none for it.
fn negotiate(requested: u16) -> Option<u16> {
    let [major, minor] = requested.to_le_bytes();
    match (major, minor) {
        (0, _) => None,
        (1, 0) => Some(requested),
        (1, _) => Some(0x0101),
        (2, 0 | 1) => Some(requested),
        _ => Some(VERSION_2_2),
    }
}

fn padded<const N: usize>(text: &[u8]) -> [u8; N] {
    std::array::from_fn(|i| text.get(i).copied().unwrap_or(0))
}

/// `WSAStartup`: the error is the result; there is no last error before it succeeded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSAStartup(requested: u16, data: *mut WsaData) -> i32 {
    let version = negotiate(requested);
    if data.is_null() {
        return WSAEFAULT as i32;
    }
    let filled = WsaData {
        version: version.unwrap_or(VERSION_2_2),
        high_version: VERSION_2_2,
        // Both are of Winsock 1 only; version 2 says 0.
        max_sockets: 0,
        max_datagram: 0,
        vendor_info: std::ptr::null_mut(),
        description: padded(DESCRIPTION),
        system_status: padded(STATUS),
    };
    // SAFETY: a WSADATA by the function's contract.
    unsafe { data.write(filled) };
    if version.is_none() {
        return WSAVERNOTSUPPORTED as i32;
    }
    STARTED.fetch_add(1, Relaxed);
    0
}

/// `WSACleanup`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WSACleanup() -> i32 {
    outcome(
        STARTED
            .fetch_update(Relaxed, Relaxed, |count| count.checked_sub(1))
            .map(drop)
            .map_err(|_| WSANOTINITIALISED),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_negotiated() {
        for (requested, given) in [
            (0x0202, Some(0x0202)),
            (0x0002, Some(0x0002)),
            (0x0102, Some(0x0102)),
            (0x0101, Some(0x0101)),
            (0x0301, Some(0x0101)),
            (0x0003, Some(0x0202)),
            (0x0909, Some(0x0202)),
            (0x0100, None),
        ] {
            assert_eq!(negotiate(requested), given, "{requested:#06x}");
        }
    }

    // One test, because the count belongs to the process.
    #[test]
    fn starts_and_cleanups_balance() {
        let mut data = std::mem::MaybeUninit::<WsaData>::uninit();
        // SAFETY: NULL or room for a WSADATA.
        unsafe {
            assert_eq!(ndw_WSAStartup(0x0202, std::ptr::null_mut()), WSAEFAULT as i32);
            assert_eq!(ndw_WSAStartup(0, data.as_mut_ptr()), WSAVERNOTSUPPORTED as i32);
            assert_eq!(ndw_WSAStartup(0x0202, data.as_mut_ptr()), 0);
            assert_eq!(ndw_WSAStartup(0x0101, data.as_mut_ptr()), 0);
        }
        // SAFETY: written by the calls above.
        let data = unsafe { data.assume_init() };
        assert_eq!((data.version, data.high_version), (0x0101, 0x0202));
        assert_eq!(&data.system_status[..8], b"Running\0");
        assert_eq!((ndw_WSACleanup(), ndw_WSACleanup()), (0, 0));
        assert_eq!(ndw_WSACleanup(), -1);
        assert_eq!(last_error(), WSANOTINITIALISED);
    }
}
