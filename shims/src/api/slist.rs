//! `SLIST_HEADER`: singly linked lists, last in, first out.
//!
//! On Windows they are lock-free, and a pop may read an entry that another thread has just taken and freed, which the kernel
//! handles. Here a lock, selected by the header's address, makes that impossible.

use parking_lot::{Mutex, MutexGuard};
use std::ptr::null_mut;

/// `SLIST_ENTRY`, in the program's memory, aligned to 16 bytes.
#[repr(C)]
pub struct Entry {
    next: *mut Entry,
}

/// `SLIST_HEADER`. All zero is an empty list.
#[repr(C, align(16))]
pub struct Header {
    /// The depth in the low 16 bits, the number of changes above them.
    depth_and_sequence: u64,
    next: *mut Entry,
}

const _: () = assert!(size_of::<Header>() == 16);

static LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// The header, locked; `None` for NULL.
///
/// # Safety
/// `header` must be null, or a header that is used by these functions alone while the lock is held.
unsafe fn lock<'a>(header: *mut Header) -> Option<(&'a mut Header, MutexGuard<'static, ()>)> {
    let guard = LOCKS[(header.addr() >> 4) % LOCKS.len()].lock();
    // SAFETY: NULL, or a header that these functions alone use, as the caller promises; and they take the lock first, which
    // `guard` holds.
    unsafe { header.as_mut() }.map(|header| (header, guard))
}

impl Header {
    fn change(&mut self, next: *mut Entry, depth: u16) {
        self.next = next;
        self.depth_and_sequence = ((self.depth_and_sequence >> 16) + 1) << 16 | u64::from(depth);
    }

    fn depth(&self) -> u16 {
        self.depth_and_sequence as u16
    }
}

/// `InitializeSListHead`.
///
/// # Safety
/// `header` is NULL or has room for a header that nobody uses yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_InitializeSListHead(header: *mut Header) {
    if !header.is_null() {
        // SAFETY: not NULL, hence room for a header, which nobody uses yet.
        unsafe { header.write(Header { depth_and_sequence: 0, next: null_mut() }) };
    }
}

/// `InterlockedPushEntrySList`: returns the previous first entry.
///
/// # Safety
/// `header` is NULL, or was initialised and is used by these functions alone; `entry` is NULL or an entry that is in no list,
/// and stays valid until it has been taken out again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_InterlockedPushEntrySList(header: *mut Header, entry: *mut Entry) -> *mut Entry {
    // SAFETY: the header is NULL or initialised, and the entry, which is NULL or the caller's, is a list of one.
    unsafe { ndw_InterlockedPushListSListEx(header, entry, entry, 1) }
}

/// `InterlockedPushListSListEx`: pushes a chain of entries.
///
/// # Safety
/// `header` is NULL, or was initialised and is used by these functions alone; `first` to `last` are NULL, or a chain of `count`
/// entries that are in no list, and stay valid until they have been taken out again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_InterlockedPushListSListEx(
    header: *mut Header,
    first: *mut Entry,
    last: *mut Entry,
    count: u32,
) -> *mut Entry {
    // SAFETY: the header is NULL or was initialised, and only these functions use it, as this function asks.
    let Some((header, _guard)) = (unsafe { lock(header) }) else { return null_mut() };
    if first.is_null() || last.is_null() {
        return header.next;
    }
    let before = header.next;
    // SAFETY: not NULL, hence an entry of the caller's, who leaves it to the list.
    unsafe { (*last).next = before };
    header.change(first, header.depth().wrapping_add(count as u16));
    before
}

/// `InterlockedPopEntrySList`: NULL when there is none.
///
/// # Safety
/// `header` is NULL, or was initialised and is used by these functions alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_InterlockedPopEntrySList(header: *mut Header) -> *mut Entry {
    // SAFETY: the header is NULL or was initialised, and only these functions use it, as this function asks.
    let Some((header, _guard)) = (unsafe { lock(header) }) else { return null_mut() };
    let first = header.next;
    if !first.is_null() {
        // SAFETY: in the list, so not given back to anybody.
        header.change(unsafe { (*first).next }, header.depth().wrapping_sub(1));
    }
    first
}

/// `InterlockedFlushSList`: removes all entries, and returns the first.
///
/// # Safety
/// `header` is NULL, or was initialised and is used by these functions alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_InterlockedFlushSList(header: *mut Header) -> *mut Entry {
    // SAFETY: the header is NULL or was initialised, and only these functions use it, as this function asks.
    let Some((header, _guard)) = (unsafe { lock(header) }) else { return null_mut() };
    let first = header.next;
    header.change(null_mut(), 0);
    first
}

/// `QueryDepthSList`.
///
/// # Safety
/// `header` is NULL, or was initialised and is used by these functions alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_QueryDepthSList(header: *mut Header) -> u16 {
    // SAFETY: the header is NULL or was initialised, and only these functions use it, as this function asks.
    unsafe { lock(header) }.map_or(0, |(header, _)| header.depth())
}

/// `RtlFirstEntrySList`: the first entry, which stays in the list.
///
/// # Safety
/// `header` is NULL, or was initialised and is used by these functions alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_RtlFirstEntrySList(header: *mut Header) -> *mut Entry {
    // SAFETY: the header is NULL or was initialised, and only these functions use it, as this function asks.
    unsafe { lock(header) }.map_or(null_mut(), |(header, _)| header.next)
}
