//! Reading and writing socket addresses and address lists in C buffers.

use crate::com::HResult;
use ndcompat::{RawSockAddr, SockAddr};
use ndcompat::{Result, Status};
use std::ffi::{c_int, c_void};
use std::ptr;

/// `SOCKET_ADDRESS`
#[repr(C)]
pub(crate) struct SocketAddress {
    address: *mut c_void,
    length: c_int,
}

/// `SOCKET_ADDRESS_LIST` without its entries, which follow it.
#[repr(C, align(8))]
pub(crate) struct SocketAddressList {
    count: c_int,
}

/// Reads an address that a caller passes.
///
/// # Safety
/// `address` must be null or have `length` readable bytes.
pub(crate) unsafe fn read(address: *const c_void, length: usize) -> Result<SockAddr> {
    // SAFETY: the caller says how many bytes can be read at `address`.
    unsafe { SockAddr::from_raw(address, length) }.map_err(|_| Status::INVALID_ADDRESS)
}

/// Writes `address` to a caller's buffer. If that is too small: `ND_BUFFER_OVERFLOW`, and the size needed in `length`.
///
/// # Safety
/// `length` must be valid or null, `out` null or have `*length` writable bytes.
pub(crate) unsafe fn write(address: Result<SockAddr>, out: *mut c_void, length: *mut u32) -> HResult {
    let address = match address {
        Ok(address) => address,
        Err(status) => return status.0,
    };
    let (raw, needed) = address.to_raw();
    // SAFETY: the caller passes the size of its buffer; `raw` has `needed` bytes.
    unsafe { give(ptr::from_ref::<RawSockAddr>(&raw).cast(), needed, out, length) }
}

/// Copies `needed` bytes to a caller's buffer, or none if it is too small: `ND_BUFFER_OVERFLOW`, and the size in `length`.
///
/// # Safety
/// `from` must have `needed` bytes, `length` be valid or null, `out` null or have `*length` writable bytes.
pub(crate) unsafe fn give(from: *const u8, needed: u32, out: *mut c_void, length: *mut u32) -> HResult {
    // SAFETY: the caller passes a pointer to a length, or null.
    let Some(length) = (unsafe { length.as_mut() }) else { return Status::INVALID_PARAMETER.0 };
    let room = std::mem::replace(length, needed);
    if out.is_null() || room < needed {
        return Status::BUFFER_OVERFLOW.0;
    }
    // SAFETY: `from` has `needed` bytes, and the buffer at least as many.
    unsafe { out.cast::<u8>().copy_from_nonoverlapping(from, needed as usize) };
    Status::SUCCESS.0
}

/// The size of a list of these addresses, in bytes.
pub(crate) fn list_size(addresses: &[SockAddr]) -> usize {
    let tails: usize = addresses.iter().map(|address| address.to_raw().1 as usize).sum();
    size_of::<SocketAddressList>() + addresses.len() * size_of::<SocketAddress>() + tails
}

/// Writes a list: the header, the entries, then the addresses they point to.
///
/// # Safety
/// `out` must be aligned for pointers and have [`list_size`] writable bytes.
pub(crate) unsafe fn write_list(addresses: &[SockAddr], out: *mut c_void) {
    let header = SocketAddressList { count: addresses.len() as c_int };
    // SAFETY: the buffer is aligned, and includes the header.
    unsafe { out.cast::<SocketAddressList>().write(header) };
    let entries = out.wrapping_byte_add(size_of::<SocketAddressList>()).cast::<SocketAddress>();
    let mut tail = entries.wrapping_add(addresses.len()).cast::<u8>();
    for (index, address) in addresses.iter().enumerate() {
        let (raw, length) = address.to_raw();
        // SAFETY: the size of the list includes these bytes, after all entries and the previous addresses.
        unsafe { tail.copy_from_nonoverlapping(ptr::from_ref(&raw).cast(), length as usize) };
        let entry = SocketAddress { address: tail.cast(), length: length as c_int };
        // SAFETY: the size of the list includes an entry for each address.
        unsafe { entries.wrapping_add(index).write(entry) };
        tail = tail.wrapping_add(length as usize);
    }
}

/// Reads the list of another provider, without entries that are not IP addresses.
///
/// # Safety
/// `list` must be a valid list, whose entries are NULL or have the length that they say.
pub(crate) unsafe fn read_list(list: *const c_void) -> Vec<SockAddr> {
    // SAFETY: a list begins with its header.
    let count = unsafe { (*list.cast::<SocketAddressList>()).count };
    let first = list.wrapping_byte_add(size_of::<SocketAddressList>()).cast::<SocketAddress>();
    // SAFETY: the header is followed by `count` entries.
    let entries = unsafe { std::slice::from_raw_parts(first, usize::try_from(count).unwrap_or(0)) };
    let address = |entry: &SocketAddress| {
        let length = usize::try_from(entry.length).unwrap_or(0);
        // SAFETY: an entry is NULL or has the length that it says.
        unsafe { SockAddr::from_raw(entry.address, length) }.ok()
    };
    entries.iter().filter_map(address).collect()
}

/// Implements `QueryAddressList` of providers and adapters.
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
    // SAFETY: the caller passes a pointer to a length, or null.
    let Some(length) = (unsafe { length.as_mut() }) else { return Status::INVALID_PARAMETER.0 };
    let needed = list_size(&addresses);
    let room = std::mem::replace(length, needed as u32);
    if out.is_null() || (room as usize) < needed {
        return Status::BUFFER_OVERFLOW.0;
    }
    // SAFETY: the buffer is large enough, and C callers align it for the list.
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
        // SAFETY: the buffer is null.
        let status = unsafe { query_list(Ok(addresses.clone()), ptr::null_mut(), &mut length) };
        assert_eq!((status, length as usize), (Status::BUFFER_OVERFLOW.0, needed));
        let out = buffer.as_mut_ptr().cast::<c_void>();
        // SAFETY: the buffer has the size that was asked for.
        let status = unsafe { query_list(Ok(addresses.clone()), out, &mut length) };
        assert_eq!(status, Status::SUCCESS.0);
        // SAFETY: the list begins with its header.
        assert_eq!(unsafe { (*out.cast::<SocketAddressList>()).count }, 2);
        // SAFETY: the second entry, behind the header and the first.
        let entry = unsafe { &*out.wrapping_byte_add(8 + 16).cast::<SocketAddress>() };
        assert_eq!(entry.length, 28);
        // SAFETY: the entry says how long its address is.
        assert_eq!(unsafe { read(entry.address, 28) }.unwrap(), addresses[1]);
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
