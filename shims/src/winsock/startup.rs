//! `WSAStartup` and `WSACleanup`.
//!
//! There is nothing to start on Linux: the calls are counted. As on Windows, sockets are created and names resolved only in
//! between. Calls on existing sockets do not check.

use super::outcome;
use crate::error::*;
use std::ffi::c_char;
use std::mem::offset_of;
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

/// The number of starts without a clean-up.
struct Starts(AtomicU32);

impl Starts {
    fn start(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    fn clean_up(&self) -> Result<(), u32> {
        let less = |count: u32| count.checked_sub(1);
        self.0.fetch_update(Relaxed, Relaxed, less).map(drop).map_err(|_| WSANOTINITIALISED)
    }
}

static STARTS: Starts = Starts(AtomicU32::new(0));

/// Starts Winsock for a library that does so in its own start, as `NdStartup` does.
pub fn start() {
    STARTS.start();
}

/// Undoes one [`start`].
pub fn clean_up() {
    // Without a start there is nothing to clean up.
    let _ = STARTS.clean_up();
}

/// Whether the program has started Winsock.
pub(super) fn started() -> bool {
    STARTS.0.load(Relaxed) > 0
}

/// The version for a program that asks for `requested`, `None` if it is not supported.
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

/// `WSAStartup`: the error is the result, as the last error is not available before a success.
///
/// # Safety
/// `data` is NULL or has room for the structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSAStartup(requested: u16, data: *mut WsaData) -> i32 {
    let version = negotiate(requested);
    if data.is_null() {
        return WSAEFAULT as i32;
    }
    // The number of sockets and the size of datagrams are for Winsock 1 only; version 2 returns 0.
    let numbers = [version.unwrap_or(VERSION_2_2), VERSION_2_2, 0, 0].map(u16::to_ne_bytes);
    // As on Windows, the vendor pointer is not written.
    let parts: [(usize, &[u8]); 3] = [
        (offset_of!(WsaData, version), numbers.as_flattened()),
        (offset_of!(WsaData, description), &padded::<257>(DESCRIPTION)),
        (offset_of!(WsaData, system_status), &padded::<129>(STATUS)),
    ];
    for (at, bytes) in parts {
        let target = data.cast::<u8>().wrapping_add(at);
        // SAFETY: within the WSADATA that C's caller has.
        unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
    if version.is_none() {
        return WSAVERNOTSUPPORTED as i32;
    }
    STARTS.start();
    0
}

/// `WSACleanup`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WSACleanup() -> i32 {
    outcome(STARTS.clean_up())
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

    #[test]
    fn starts_and_cleanups_balance() {
        let starts = Starts(AtomicU32::new(0));
        assert_eq!(starts.clean_up(), Err(WSANOTINITIALISED));
        starts.start();
        starts.start();
        assert_eq!((starts.clean_up(), starts.clean_up()), (Ok(()), Ok(())));
        assert_eq!(starts.clean_up(), Err(WSANOTINITIALISED));
    }

    #[test]
    fn the_data_tell_the_version() {
        let mut data = std::mem::MaybeUninit::<WsaData>::zeroed();
        let vendor = std::ptr::without_provenance_mut(7);
        // SAFETY: room for a pointer.
        unsafe { (&raw mut (*data.as_mut_ptr()).vendor_info).write(vendor) };
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
        assert_eq!(data.vendor_info, vendor, "left alone");
        assert_eq!((ndw_WSACleanup(), ndw_WSACleanup()), (0, 0));
    }
}
