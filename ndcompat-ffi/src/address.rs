//! Socket addresses and lists of them, in and out of C buffers.

use crate::com::HResult;
use ndcompat::verbs::{RawSockAddr, SockAddr};
use ndcompat::{Result, Status};
use std::ffi::{c_int, c_void};
use std::ptr;

/// `SOCKET_ADDRESS`
#[repr(C)]
pub(crate) struct SocketAddress {
    address: *mut c_void,
    length: c_int,
}

/// `SOCKET_ADDRESS_LIST` without its first element, which begins right after it.
#[repr(C, align(8))]
pub(crate) struct SocketAddressList {
    count: c_int,
}

/// Reads an address that a caller passed.
///
/// # Safety
/// `address` must be null or have `length` readable bytes.
pub(crate) unsafe fn read(address: *const c_void, length: usize) -> Result<SockAddr> {
    // SAFETY: passed on to the caller.
    unsafe { SockAddr::from_raw(address, length) }.map_err(|_| Status::INVALID_ADDRESS)
}

/// Gives `address` to a caller, whose buffer may be too small (`ND_BUFFER_OVERFLOW`, and the size it should have).
///
/// # Safety
/// `length` must be valid or null, `out` null or have `*length` writable bytes.
pub(crate) unsafe fn write(address: Result<SockAddr>, out: *mut c_void, length: *mut u32) -> HResult {
    let address = match address {
        Ok(address) => address,
        Err(status) => return status.0,
    };
    let (raw, needed) = address.to_raw();
    // SAFETY: passed on to the caller.
    unsafe { give(ptr::from_ref::<RawSockAddr>(&raw).cast(), needed, out, length) }
}

/// Copies `needed` bytes to a caller's buffer, all or nothing.
///
/// # Safety
/// `from` must have `needed` bytes, `length` be valid or null, `out` null or have `*length` writable bytes.
pub(crate) unsafe fn give(from: *const u8, needed: u32, out: *mut c_void, length: *mut u32) -> HResult {
    // SAFETY: passed on to the caller.
    let Some(length) = (unsafe { length.as_mut() }) else { return Status::INVALID_PARAMETER.0 };
    let room = std::mem::replace(length, needed);
    if out.is_null() || room < needed {
        return Status::BUFFER_OVERFLOW.0;
    }
    // SAFETY: both sides have that many bytes.
    unsafe { out.cast::<u8>().copy_from_nonoverlapping(from, needed as usize) };
    Status::SUCCESS.0
}

/// The bytes a list of these addresses takes.
pub(crate) fn list_size(addresses: &[SockAddr]) -> usize {
    let tails: usize = addresses.iter().map(|address| address.to_raw().1 as usize).sum();
    size_of::<SocketAddressList>() + addresses.len() * size_of::<SocketAddress>() + tails
}

/// Writes a list: the header, the entries, then the addresses they point to.
///
/// # Safety
/// `out` must be aligned for pointers and have [`list_size`] writable bytes.
pub(crate) unsafe fn write_list(addresses: &[SockAddr], out: *mut c_void) {
    // SAFETY: everything below stays within the size of the list.
    unsafe {
        out.cast::<SocketAddressList>().write(SocketAddressList { count: addresses.len() as c_int });
        let entries = out.byte_add(size_of::<SocketAddressList>()).cast::<SocketAddress>();
        let mut tail = entries.add(addresses.len()).cast::<u8>();
        for (index, address) in addresses.iter().enumerate() {
            let (raw, length) = address.to_raw();
            tail.copy_from_nonoverlapping(ptr::from_ref(&raw).cast(), length as usize);
            entries.add(index).write(SocketAddress { address: tail.cast(), length: length as c_int });
            tail = tail.add(length as usize);
        }
    }
}

/// The addresses of a list that somebody else has written; what is no IP address is left out.
///
/// # Safety
/// `list` must be a list whose entries are NULL or as long as they say.
pub(crate) unsafe fn read_list(list: *const c_void) -> Vec<SockAddr> {
    // SAFETY: the header and as many entries as it counts.
    let entries = unsafe {
        let count = (*list.cast::<SocketAddressList>()).count;
        let first = list.byte_add(size_of::<SocketAddressList>()).cast::<SocketAddress>();
        std::slice::from_raw_parts(first, usize::try_from(count).unwrap_or(0))
    };
    let address = |entry: &SocketAddress| {
        let length = usize::try_from(entry.length).unwrap_or(0);
        // SAFETY: as long as said.
        unsafe { SockAddr::from_raw(entry.address, length) }.ok()
    };
    entries.iter().filter_map(address).collect()
}

/// `QueryAddressList` of providers and adapters.
///
/// # Safety
/// `length` must be valid or null, `out` null or have `*length` writable bytes.
pub(crate) unsafe fn query_list(
    addresses: Result<Vec<SockAddr>>,
    out: *mut c_void,
    length: *mut u32,
) -> HResult {
    let addresses = match addresses {
        Ok(addresses) => addresses,
        Err(status) => return status.0,
    };
    // SAFETY: passed on to the caller.
    let Some(length) = (unsafe { length.as_mut() }) else { return Status::INVALID_PARAMETER.0 };
    let needed = list_size(&addresses);
    let room = std::mem::replace(length, needed as u32);
    if out.is_null() || (room as usize) < needed {
        return Status::BUFFER_OVERFLOW.0;
    }
    // SAFETY: there is room; C callers' buffers are aligned for the list.
    unsafe { write_list(&addresses, out) };
    Status::SUCCESS.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> Vec<SockAddr> {
        ["10.1.2.3:0", "[fd00::1]:0"]
            .iter()
            .map(|text| SockAddr::from(text.parse::<std::net::SocketAddr>().unwrap()))
            .collect()
    }

    #[test]
    fn a_list_is_one_block() {
        let addresses = addresses();
        let needed = list_size(&addresses);
        assert_eq!(needed, 8 + 2 * 16 + 16 + 28);
        let mut buffer = vec![0u64; needed.div_ceil(8)];
        let mut length = 0;
        // SAFETY: no buffer at first, then one of the size that was asked for.
        unsafe {
            assert_eq!(
                query_list(Ok(addresses.clone()), ptr::null_mut(), &mut length),
                Status::BUFFER_OVERFLOW.0
            );
            assert_eq!(length as usize, needed);
            let out = buffer.as_mut_ptr().cast::<c_void>();
            assert_eq!(query_list(Ok(addresses.clone()), out, &mut length), Status::SUCCESS.0);
            assert_eq!((*out.cast::<SocketAddressList>()).count, 2);
            let entry = &*out.byte_add(8 + 16).cast::<SocketAddress>();
            assert_eq!(entry.length, 28);
            assert_eq!(read(entry.address, 28).unwrap(), addresses[1]);
        }
    }

    #[test]
    fn a_short_buffer_is_left_alone() {
        let mut buffer = [7u8; 16];
        let mut length = 15;
        // SAFETY: the buffer is longer than said.
        let status = unsafe { write(Ok(addresses()[0]), buffer.as_mut_ptr().cast(), &mut length) };
        assert_eq!((status, length, buffer), (Status::BUFFER_OVERFLOW.0, 16, [7; 16]));
    }
}
