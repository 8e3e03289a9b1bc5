//! `WaitOnAddress`: waiting for a value of 1, 2, 4 or 8 bytes to change.

use super::Deadline;
use super::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::*};
use super::park::{Parked, oldest, park, unpark};
use std::ffi::c_void;

/// Whether the value at `address` equals the one at `compare`; `None` for an invalid size or alignment.
///
/// # Safety
/// Both point to `size` readable bytes; others change the first atomically.
unsafe fn unchanged(address: *const c_void, compare: *const c_void, size: usize) -> Option<bool> {
    if address.is_null() || compare.is_null() || !(address as usize).is_multiple_of(size.max(1)) {
        return None;
    }
    /// Whether the value is the one at `compare`, which may have any alignment.
    fn same<T: PartialEq>(value: T, compare: *const c_void) -> bool {
        // SAFETY: called for the size that is readable.
        value == unsafe { compare.cast::<T>().read_unaligned() }
    }
    Some(match size {
        // SAFETY: readable, as this function asks, and aligned, as was checked: atomic, as others may write it meanwhile.
        1 => same(unsafe { &*address.cast::<AtomicU8>() }.load(SeqCst), compare),
        // SAFETY: readable, as this function asks, and aligned, as was checked: atomic, as others may write it meanwhile.
        2 => same(unsafe { &*address.cast::<AtomicU16>() }.load(SeqCst), compare),
        // SAFETY: readable, as this function asks, and aligned, as was checked: atomic, as others may write it meanwhile.
        4 => same(unsafe { &*address.cast::<AtomicU32>() }.load(SeqCst), compare),
        // SAFETY: readable, as this function asks, and aligned, as was checked: atomic, as others may write it meanwhile.
        8 => same(unsafe { &*address.cast::<AtomicU64>() }.load(SeqCst), compare),
        _ => return None,
    })
}

/// Waits until the value differs or for a wake-up; false at the deadline. `None` for an invalid size or alignment.
///
/// # Safety
/// Both point to `size` readable bytes; others change the first atomically.
pub(crate) unsafe fn wait(
    address: *const c_void,
    compare: *const c_void,
    size: usize,
    deadline: Deadline,
) -> Option<bool> {
    // SAFETY: both have `size` readable bytes while this waits, and others change the first atomically, as the caller promises.
    let look = || unsafe { unchanged(address, compare, size) };
    if !look()? {
        return Some(true);
    }
    // Compared under the queue's lock: a thread that changes the value and wakes does so before the comparison, or finds this
    // thread.
    let parked = park(address.addr(), 0, || look() == Some(true), || (), || (), deadline);
    Some(parked != Parked::TimedOut)
}

/// Wakes up to `count` threads at an address, longest waiting first. The memory is not accessed.
pub(crate) fn wake(address: *const c_void, count: usize) {
    unpark(address.addr(), oldest(count), |_, _| ());
}
