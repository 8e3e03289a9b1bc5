//! System calls that change memory, without the C library's functions, which may be intercepted: callers have called the
//! callbacks of secured memory already, and may hold locks.

use super::ALLOCATION_GRANULARITY;
use crate::error::{ERROR_INVALID_ADDRESS, ERROR_NO_SYSTEM_RESOURCES, errno_to_win32};
use std::ffi::c_int;
use std::io;
use std::ops::Range;
use std::sync::OnceLock;

/// `munmap`.
///
/// # Safety
/// Nobody uses the memory any more.
pub unsafe fn unmap(pages: &Range<usize>) -> c_int {
    // SAFETY: nobody uses the memory any more, as the caller promises.
    unsafe { libc::syscall(libc::SYS_munmap, pages.start, pages.len()) as c_int }
}

/// `mprotect`.
///
/// # Safety
/// Nobody relies on an access to the pages that the protection takes away.
pub unsafe fn protect(pages: &Range<usize>, protection: c_int) -> c_int {
    // SAFETY: nobody relies on an access that is taken away, as the caller promises.
    unsafe { libc::syscall(libc::SYS_mprotect, pages.start, pages.len(), protection) as c_int }
}

/// `madvise`.
///
/// # Safety
/// Nobody relies on content that the advice gives up.
pub unsafe fn advise(pages: &Range<usize>, advice: c_int) -> c_int {
    // SAFETY: nobody relies on content that is given up, as the caller promises.
    unsafe { libc::syscall(libc::SYS_madvise, pages.start, pages.len(), advice) as c_int }
}

/// Takes the content of private pages without access, which are not locked any more then.
///
/// # Safety
/// Nobody uses what they hold.
///
/// # Errors
/// What the system says.
pub unsafe fn empty(pages: &Range<usize>) -> Result<(), u32> {
    // Locked pages keep what they hold.
    // SAFETY: changes where the pages are, not what they hold.
    unsafe { libc::syscall(libc::SYS_munlock, pages.start, pages.len()) };
    // SAFETY: nobody uses what they hold, as the caller promises.
    if unsafe { advise(pages, libc::MADV_DONTNEED) } == 0 {
        return Ok(());
    }
    const FLAGS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: pages of the caller's, which nobody uses, give way to new ones.
    match unsafe { libc::syscall(libc::SYS_mmap, pages.start, pages.len(), libc::PROT_NONE, FLAGS, -1, 0) } {
        -1 => Err(last_error_of_kernel()),
        _ => Ok(()),
    }
}

/// The errno of the last call.
pub fn last_error_of_kernel() -> u32 {
    errno_to_win32(io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// The size of a large page; 0 if there are none.
pub fn large_page() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("Hugepagesize:"));
        let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<usize>().ok());
        kilobytes.unwrap_or(0) * 1024
    })
}

/// Maps large pages, which stay in memory: at `address`, or anywhere.
pub fn map_large(address: usize, size: usize, protection: c_int) -> Result<usize, u32> {
    const FLAGS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB;
    let fixed = if address != 0 { libc::MAP_FIXED_NOREPLACE } else { 0 };
    // SAFETY: a new mapping that replaces none.
    let result = unsafe { libc::mmap(address as _, size, protection, FLAGS | fixed, -1, 0) };
    if result != libc::MAP_FAILED {
        return Ok(result as usize);
    }
    match io::Error::last_os_error().raw_os_error() {
        Some(libc::EEXIST) => Err(ERROR_INVALID_ADDRESS),
        Some(libc::ENOMEM) => Err(ERROR_NO_SYSTEM_RESOURCES),
        _ => Err(last_error_of_kernel()),
    }
}

/// Maps pages without access: at `address`, or anywhere at a multiple of the granularity.
pub fn reserve(address: usize, size: usize) -> Result<usize, u32> {
    const FLAGS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let map = |address: usize, size: usize, flags: c_int| {
        // SAFETY: a new mapping that replaces none.
        let result = unsafe { libc::mmap(address as _, size, libc::PROT_NONE, FLAGS | flags, -1, 0) };
        if result == libc::MAP_FAILED { Err(last_error_of_kernel()) } else { Ok(result as usize) }
    };
    if address != 0 {
        return map(address, size, libc::MAP_FIXED_NOREPLACE).map_err(|_| ERROR_INVALID_ADDRESS);
    }
    let start = map(0, size + ALLOCATION_GRANULARITY, 0)?;
    let base = start.next_multiple_of(ALLOCATION_GRANULARITY);
    let (front, back) = (base - start, start + ALLOCATION_GRANULARITY - base);
    if front != 0 {
        // SAFETY: the front of the mapping just made.
        unsafe { unmap(&(start..base)) };
    }
    if back != 0 {
        // SAFETY: the back of the mapping just made.
        unsafe { unmap(&(base + size..base + size + back)) };
    }
    Ok(base)
}
