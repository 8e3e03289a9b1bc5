//! Interception of the C library's functions that unmap or change memory: callbacks of secured memory are called first, whoever
//! the caller is, even the C library itself.
//!
//! Not seen are system calls made without these functions (`syscall`, a program's own instructions), memory of libraries that the
//! dynamic loader unmaps, and what the kernel reclaims by itself.

use super::patch::{self, Replacement};
use super::secured::{concerns, notify};
use super::{maps, page_size};
use crate::crt::set_errno;
use crate::error::ERROR_NOT_SUPPORTED;
use std::ffi::{CStr, c_int, c_long};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The code of the C library. Calls from there hold a lock of `malloc`.
static CODE: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// Where the C library keeps the end of the heap that `brk` moves.
static HEAP_END: AtomicUsize = AtomicUsize::new(0);

/// The functions and their replacements.
const FUNCTIONS: [(&CStr, Replacement); 7] = [
    (c"munmap", munmap),
    (c"mmap", mmap),
    (c"mremap", mremap),
    (c"mprotect", mprotect),
    (c"madvise", madvise),
    (c"shmdt", shmdt),
    (c"brk", brk),
];

/// Intercepts them permanently.
///
/// # Errors
/// `ERROR_NOT_SUPPORTED` where they are not as expected, as when another library has intercepted them; what the kernel says if it
/// does not allow it.
pub fn install() -> Result<(), u32> {
    static DONE: OnceLock<Result<(), u32>> = OnceLock::new();
    *DONE.get_or_init(|| {
        // SAFETY: a terminated name; the C library is there already.
        let library = unsafe { libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        // SAFETY: terminated names.
        let find = move |name: &CStr| match unsafe { libc::dlsym(library, name.as_ptr()) } as usize {
            0 => Err(ERROR_NOT_SUPPORTED),
            address => Ok(address),
        };
        HEAP_END.store(find(c"__curbrk")?, Ordering::Relaxed);
        let mut functions = Vec::new();
        for (name, replacement) in FUNCTIONS {
            functions.push((find(name)?, replacement));
        }
        let maps::AddressRange::Mapped(code) = maps::at(functions[0].0) else {
            return Err(ERROR_NOT_SUPPORTED);
        };
        CODE[0].store(code.range.start, Ordering::Relaxed);
        CODE[1].store(code.range.end, Ordering::Relaxed);
        // SAFETY: each replacement takes its function's arguments and makes its system call, with the same result.
        unsafe { patch::redirect(&functions, &code) }
    })
}

/// Whether the C library called.
fn is_own(caller: usize) -> bool {
    (CODE[0].load(Ordering::Relaxed)..CODE[1].load(Ordering::Relaxed)).contains(&caller)
}

/// The pages of a call's arguments.
fn pages(start: usize, length: usize) -> Range<usize> {
    let mask = page_size() - 1;
    start & !mask..start.saturating_add(length).saturating_add(mask) & !mask
}

fn fail(error: c_int) -> isize {
    set_errno(error);
    -1
}

/// Handles a call from `malloc` for secured memory of its heaps. As `malloc` holds a lock, the callbacks, which may allocate and
/// free, cannot be called: the pages are kept, as if the kernel had refused.
fn keeps(range: &Range<usize>, caller: usize) -> bool {
    is_own(caller) && concerns(range)
}

extern "C" fn munmap(
    start: usize,
    length: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    caller: usize,
) -> isize {
    /// The size and alignment of the heaps of threads; `free` holds no lock when it gives back a single block.
    const HEAP: usize = 64 << 20;
    let range = pages(start, length);
    if length == HEAP && start.is_multiple_of(HEAP) && keeps(&range, caller) {
        return 0;
    }
    notify(&range);
    // SAFETY: the arguments of a call of `munmap`, whose caller answers for the range.
    unsafe { libc::syscall(libc::SYS_munmap, start, length) as isize }
}

extern "C" fn mmap(
    start: usize,
    length: usize,
    protection: usize,
    flags: usize,
    file: usize,
    offset: usize,
    caller: usize,
) -> isize {
    if flags as c_int & libc::MAP_FIXED != 0 {
        let range = pages(start, length);
        // How `malloc` shrinks a heap under strict overcommit.
        if protection as c_int == libc::PROT_NONE && keeps(&range, caller) {
            return fail(libc::ENOMEM);
        }
        notify(&range);
    }
    // SAFETY: the arguments of a call of `mmap`, whose caller answers for a fixed range.
    unsafe { libc::syscall(libc::SYS_mmap, start, length, protection, flags, file, offset) as isize }
}

extern "C" fn mremap(
    old: usize,
    old_length: usize,
    length: usize,
    flags: usize,
    new: usize,
    _: usize,
    _: usize,
) -> isize {
    let (fixed, moves) =
        (flags as c_int & libc::MREMAP_FIXED != 0, flags as c_int & libc::MREMAP_MAYMOVE != 0);
    let old_pages = pages(old, old_length);
    if fixed || (moves && length > old_length) {
        notify(&old_pages);
    } else {
        notify(&(pages(old, length).end.min(old_pages.end)..old_pages.end));
    }
    if fixed {
        notify(&pages(new, length));
    }
    // SAFETY: the arguments of a call of `mremap`, whose caller answers for both ranges.
    unsafe { libc::syscall(libc::SYS_mremap, old, old_length, length, flags, new) as isize }
}

extern "C" fn mprotect(
    start: usize,
    length: usize,
    protection: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
) -> isize {
    let range = pages(start, length);
    notify(&range);
    // SAFETY: the arguments of a call of `mprotect`, whose caller answers for the range.
    unsafe { libc::syscall(libc::SYS_mprotect, start, length, protection as c_int) as isize }
}

extern "C" fn madvise(
    start: usize,
    length: usize,
    advice: usize,
    _: usize,
    _: usize,
    _: usize,
    caller: usize,
) -> isize {
    /// `MADV_DONTNEED_LOCKED` and `MADV_GUARD_INSTALL`.
    const YOUNGER: [c_int; 2] = [24, 102];
    let advice = advice as c_int;
    if matches!(advice, libc::MADV_DONTNEED | libc::MADV_FREE | libc::MADV_REMOVE)
        || YOUNGER.contains(&advice)
    {
        let range = pages(start, length);
        if keeps(&range, caller) {
            return 0;
        }
        notify(&range);
    }
    // SAFETY: the arguments of a call of `madvise`, whose caller answers for the range.
    unsafe { libc::syscall(libc::SYS_madvise, start, length, advice) as isize }
}

extern "C" fn shmdt(start: usize, _: usize, _: usize, _: usize, _: usize, _: usize, _: usize) -> isize {
    // Only the kernel knows the length. It is asked if anything after the start is secured.
    if concerns(&(start..usize::MAX))
        && let maps::AddressRange::Mapped(segment) = maps::at(start)
    {
        notify(&(start..segment.range.end));
    }
    // SAFETY: the argument of a call of `shmdt`, whose caller answers for the segment.
    unsafe { libc::syscall(libc::SYS_shmdt, start) as isize }
}

extern "C" fn brk(end: usize, _: usize, _: usize, _: usize, _: usize, _: usize, _: usize) -> isize {
    // SAFETY: the C library's variable, which its own `brk` reads and writes without a lock, too.
    let current = unsafe { &*(HEAP_END.load(Ordering::Relaxed) as *const AtomicUsize) };
    let old = current.load(Ordering::Relaxed);
    if end != 0 && end < old && concerns(&(end..old)) {
        // `malloc`, under its lock: see `keeps`.
        return fail(libc::ENOMEM);
    }
    // SAFETY: the argument of a call of `brk` by the C library, above what is in use. The kernel always answers with the end.
    let now = unsafe { libc::syscall(libc::SYS_brk, end as c_long) } as usize;
    current.store(now, Ordering::Relaxed);
    if now < end { fail(libc::ENOMEM) } else { 0 }
}
