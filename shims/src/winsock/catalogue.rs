//! The provider catalogue of Winsock, for programs that look for NetworkDirect providers themselves.
//!
//! It has one entry: the library that holds this runtime. It never changes.

use super::outcome;
use crate::error::*;
use crate::library::runtime_path;
use crate::text::{self, Wchar};
use std::ffi::c_void;

/// `PFL_HIDDEN | PFL_NETWORKDIRECT_PROVIDER`.
const PROVIDER_FLAGS: u32 = 0x4 | 0x10;
/// `XP1_GUARANTEED_DELIVERY | XP1_GUARANTEED_ORDER | XP1_MESSAGE_ORIENTED | XP1_CONNECT_DATA`.
const SERVICE_FLAGS: u32 = 0x2 | 0x4 | 0x8 | 0x80;
/// `ND_VERSION_2`.
const VERSION: i32 = 0x2_0000;
/// The provider's identifier, and its class id: {6E64636F-6D70-6174-8000-6C696E757801}.
const PROVIDER_ID: Guid = Guid(0x6E64_636F, 0x6D70, 0x6174, [0x80, 0x00, 0x6C, 0x69, 0x6E, 0x75, 0x78, 0x01]);
const NAME: &str = "ndcompat NetworkDirect provider";

/// A `GUID`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guid(u32, u16, u16, [u8; 8]);

/// `WSAPROTOCOL_INFOW`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProtocolInfo {
    service_flags: [u32; 4],
    provider_flags: u32,
    provider_id: Guid,
    catalog_entry_id: u32,
    chain_length: i32,
    chain_entries: [u32; 7],
    version: i32,
    address_family: i32,
    max_address: i32,
    min_address: i32,
    socket_type: i32,
    protocol: i32,
    protocol_max_offset: i32,
    network_byte_order: i32,
    security_scheme: i32,
    message_size: u32,
    reserved: u32,
    name: [Wchar; 256],
}

const SIZE: usize = size_of::<ProtocolInfo>();
// 628 bytes with the 16-bit characters of Windows.
const _: () = assert!(SIZE == 628 - 512 + 1024);

/// The only entry: what NetworkDirect demands of one.
fn entry() -> ProtocolInfo {
    let mut name = [0; 256];
    for (unit, c) in name.iter_mut().zip(NAME.chars()) {
        *unit = c.into();
    }
    ProtocolInfo {
        service_flags: [SERVICE_FLAGS, 0, 0, 0],
        provider_flags: PROVIDER_FLAGS,
        provider_id: PROVIDER_ID,
        catalog_entry_id: 1001,
        chain_length: 1,
        chain_entries: [0; 7],
        version: VERSION,
        address_family: libc::AF_INET,
        max_address: size_of::<libc::sockaddr_in6>() as i32,
        min_address: size_of::<libc::sockaddr_in>() as i32,
        socket_type: -1,
        protocol: 0,
        protocol_max_offset: 0,
        network_byte_order: 0,
        security_scheme: 0,
        message_size: 0,
        reserved: 0,
        name,
    }
}

/// Reports an error the way of the catalogue functions: through a pointer.
///
/// # Safety
/// `error` is NULL or writable.
unsafe fn report(result: Result<i32, u32>, error: *mut i32) -> i32 {
    result.unwrap_or_else(|code| {
        if !error.is_null() {
            // SAFETY: writable by the contract.
            unsafe { error.write(code as i32) };
        }
        super::SOCKET_ERROR
    })
}

/// Whether a zero-terminated list of protocols, NULL for all, has the entry's.
///
/// # Safety
/// `protocols` is NULL or a list that ends with 0.
unsafe fn is_asked_for(protocols: *const i32) -> bool {
    // SAFETY: the list is not read beyond its end. The entry's protocol is 0, which no list can name.
    protocols.is_null() || unsafe { protocols.read() } == 0
}

/// `WSCEnumProtocols`: the number of entries; `WSAENOBUFS` and the size when the buffer is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSCEnumProtocols(
    protocols: *const i32,
    buffer: *mut ProtocolInfo,
    size: *mut u32,
    error: *mut i32,
) -> i32 {
    // SAFETY: the function's contract.
    let result = unsafe {
        match size.as_mut() {
            None => Err(WSAEFAULT),
            Some(_) if !is_asked_for(protocols) => Ok(0),
            Some(size) if (*size as usize) < SIZE || buffer.is_null() => {
                *size = SIZE as u32;
                Err(WSAENOBUFS)
            }
            Some(_) => {
                buffer.write_unaligned(entry());
                Ok(1)
            }
        }
    };
    // SAFETY: the function's contract.
    unsafe { report(result, error) }
}

/// `WSCGetProviderPath`: the file of the library; the length counts the NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WSCGetProviderPath(
    provider: *const Guid,
    path: *mut Wchar,
    length: *mut i32,
    error: *mut i32,
) -> i32 {
    // SAFETY: NULL or valid by the function's contract.
    let result = match unsafe { (provider.as_ref(), length.as_mut()) } {
        (Some(&PROVIDER_ID), Some(length)) => runtime_path().ok_or(WSAEINVAL).and_then(|name| {
            let name = text::to_wide(&name);
            let room = usize::try_from(*length).unwrap_or(0);
            *length = name.len() as i32 + 1;
            // SAFETY: the room is promised by the function's contract.
            if unsafe { text::store(&name, path, room) } { Ok(0) } else { Err(WSAEFAULT) }
        }),
        (Some(_), Some(_)) => Err(WSAEINVAL),
        _ => Err(WSAEFAULT),
    };
    // SAFETY: the function's contract.
    unsafe { report(result, error) }
}

/// `WSAProviderConfigChange`: there is no change to be told of, and a request that never ends would only keep
/// the program's port busy, so this is `WSAEOPNOTSUPP`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WSAProviderConfigChange(
    _handle: *mut usize,
    _overlapped: *mut c_void,
    _routine: *const c_void,
) -> i32 {
    outcome(Err(WSAEOPNOTSUPP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::{null, null_mut};

    #[test]
    fn the_entry_passes_the_checks_of_networkdirect_programs() {
        let entry = entry();
        assert_eq!(entry.service_flags[0] & 0x8E, 0x8E);
        assert_eq!(entry.provider_flags & 0x14, 0x14);
        assert_eq!((entry.version, entry.socket_type, entry.protocol), (0x20000, -1, 0));
        assert_eq!(entry.protocol_max_offset, 0);
    }

    #[test]
    fn the_catalogue_is_asked_twice() {
        let (mut size, mut error) = (0, 0);
        let mut found = std::mem::MaybeUninit::<ProtocolInfo>::uninit();
        // SAFETY: targets of ours, with the sizes told.
        unsafe {
            assert_eq!(ndw_WSCEnumProtocols(null(), null_mut(), &mut size, &mut error), -1);
            assert_eq!((size as usize, error as u32), (SIZE, WSAENOBUFS));
            assert_eq!(ndw_WSCEnumProtocols(null(), found.as_mut_ptr(), &mut size, &mut error), 1);
            assert_eq!(found.assume_init().provider_id, PROVIDER_ID);
            assert_eq!(ndw_WSCEnumProtocols([6, 0].as_ptr(), null_mut(), &mut size, &mut error), 0);
            assert_eq!(ndw_WSCEnumProtocols(null(), null_mut(), null_mut(), &mut error), -1);
            assert_eq!(error as u32, WSAEFAULT);
        }
    }

    #[test]
    fn the_path_is_that_of_the_library() {
        let (mut path, mut length, mut error) = ([0; 4096], 1, 0);
        let path = path.as_mut_ptr();
        // SAFETY: targets of ours, with the sizes told.
        unsafe {
            assert_eq!(ndw_WSCGetProviderPath(&PROVIDER_ID, path, &mut length, &mut error), -1);
            assert_eq!(error as u32, WSAEFAULT);
            assert_eq!(ndw_WSCGetProviderPath(&PROVIDER_ID, path, &mut length, &mut error), 0);
            assert_eq!(text::string_from_wide(path), runtime_path());
            let other = Guid(1, 2, 3, [0; 8]);
            assert_eq!(ndw_WSCGetProviderPath(&other, path, &mut length, &mut error), -1);
            assert_eq!(error as u32, WSAEINVAL);
        }
        assert_eq!(ndw_WSAProviderConfigChange(null_mut(), null_mut(), null()), -1);
        assert_eq!(last_error(), WSAEOPNOTSUPP);
    }
}
