//! `HeapAlloc` and its family, `LocalAlloc`: blocks of the C library's heap with a header in front.
//!
//! A private heap differs from the process heap in one thing: it knows its blocks, so that `HeapDestroy` can free
//! them all.

use super::{outcome, pointer};
use crate::error::*;
use std::collections::{BTreeMap, HashSet};
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `HEAP_ZERO_MEMORY`.
pub const HEAP_ZERO_MEMORY: u32 = 0x8;
/// `HEAP_REALLOC_IN_PLACE_ONLY`.
pub const HEAP_REALLOC_IN_PLACE_ONLY: u32 = 0x10;
/// `LMEM_ZEROINIT`.
pub const LMEM_ZEROINIT: u32 = 0x40;

/// The handle of a heap: an opaque number.
pub type HeapHandle = usize;

/// The process heap. Private heaps have higher numbers.
const PROCESS_HEAP: HeapHandle = 0x10_0000;
/// What `LocalAlloc` marks its blocks with; no heap has this number.
const LOCAL: HeapHandle = 0x4C4F_4341;

/// What stands in front of a block, and keeps its 16-byte alignment.
#[repr(C, align(16))]
struct Header {
    heap: HeapHandle,
    size: usize,
}

const HEADER: usize = size_of::<Header>();

/// A private heap.
struct Heap {
    blocks: HashSet<usize>,
    /// Bytes in use, and how many may be; 0 for no limit.
    used: usize,
    limit: usize,
}

struct Heaps {
    live: BTreeMap<HeapHandle, Heap>,
    next: HeapHandle,
}

fn heaps() -> MutexGuard<'static, Heaps> {
    static HEAPS: Mutex<Heaps> = Mutex::new(Heaps { live: BTreeMap::new(), next: PROCESS_HEAP });
    HEAPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `f` on a private heap; the process heap keeps no account and has nothing to run it on.
fn on_heap(handle: HeapHandle, f: impl FnOnce(&mut Heap) -> Result<(), u32>) -> Result<(), u32> {
    match handle {
        PROCESS_HEAP => Ok(()),
        _ => heaps().live.get_mut(&handle).map_or(Err(ERROR_INVALID_HANDLE), f),
    }
}

impl Heap {
    fn charge(&mut self, more: usize, less: usize) -> Result<(), u32> {
        let used = (self.used - less).checked_add(more).ok_or(ERROR_NOT_ENOUGH_MEMORY)?;
        if self.limit != 0 && used > self.limit {
            return Err(ERROR_NOT_ENOUGH_MEMORY);
        }
        self.used = used;
        Ok(())
    }
}

/// A block with a header, from `malloc`.
fn allocate_raw(heap: HeapHandle, size: usize, zero: bool) -> Result<*mut c_void, u32> {
    let total = size.checked_add(HEADER).ok_or(ERROR_NOT_ENOUGH_MEMORY)?;
    // SAFETY: the header is written into a block that has room for it.
    unsafe {
        let block = if zero { libc::calloc(1, total) } else { libc::malloc(total) }.cast::<Header>();
        if block.is_null() {
            return Err(ERROR_NOT_ENOUGH_MEMORY);
        }
        block.write(Header { heap, size });
        Ok(block.add(1).cast())
    }
}

/// The header of a block of this heap.
///
/// # Safety
/// `memory` came from [`allocate_raw`] and was not freed, or is NULL.
unsafe fn header_of(memory: *mut c_void, heap: HeapHandle) -> Result<*mut Header, u32> {
    if memory.is_null() {
        return Err(ERROR_INVALID_PARAMETER);
    }
    // SAFETY: a header stands in front of every block.
    unsafe {
        let header = memory.cast::<Header>().sub(1);
        if (*header).heap == heap { Ok(header) } else { Err(ERROR_INVALID_PARAMETER) }
    }
}

fn allocate(heap: HeapHandle, flags: u32, size: usize) -> Result<*mut c_void, u32> {
    on_heap(heap, |heap| heap.charge(size, 0))?;
    let memory = allocate_raw(heap, size, flags & HEAP_ZERO_MEMORY != 0);
    on_heap(heap, |heap| match memory {
        Ok(memory) => {
            heap.blocks.insert(memory as usize);
            Ok(())
        }
        Err(_) => heap.charge(0, size),
    })?;
    memory
}

/// # Safety
/// As for [`header_of`].
unsafe fn free(heap: HeapHandle, memory: *mut c_void) -> Result<(), u32> {
    on_heap(heap, |_| Ok(()))?;
    if memory.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's block; its header is cleared so that a second free finds no heap in it.
    unsafe {
        let header = header_of(memory, heap)?;
        let size = (*header).size;
        on_heap(heap, |heap| match heap.blocks.remove(&(memory as usize)) {
            true => heap.charge(0, size),
            false => Err(ERROR_INVALID_PARAMETER),
        })?;
        (*header).heap = 0;
        libc::free(header.cast());
    }
    Ok(())
}

/// # Safety
/// As for [`header_of`].
unsafe fn reallocate(
    heap: HeapHandle,
    flags: u32,
    memory: *mut c_void,
    size: usize,
) -> Result<*mut c_void, u32> {
    on_heap(heap, |_| Ok(()))?;
    // SAFETY: the caller's block.
    let old = unsafe { (*header_of(memory, heap)?).size };
    if flags & HEAP_REALLOC_IN_PLACE_ONLY != 0 && size > old {
        return Err(ERROR_NOT_ENOUGH_MEMORY);
    }
    if flags & HEAP_REALLOC_IN_PLACE_ONLY != 0 {
        on_heap(heap, |heap| heap.charge(size, old))?;
        // SAFETY: as above; a smaller block stays where it is.
        unsafe { (*header_of(memory, heap)?).size = size };
        return Ok(memory);
    }
    let new = allocate(heap, flags, size)?;
    // SAFETY: both blocks are as large as the smaller size.
    unsafe {
        std::ptr::copy_nonoverlapping(memory.cast::<u8>(), new.cast::<u8>(), old.min(size));
        free(heap, memory)?;
    }
    Ok(new)
}

/// `GetProcessHeap`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetProcessHeap() -> HeapHandle {
    PROCESS_HEAP
}

/// `HeapCreate`: a maximum other than 0 limits the bytes in use.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_HeapCreate(_options: u32, _initial: usize, maximum: usize) -> HeapHandle {
    let mut heaps = heaps();
    heaps.next += 0x10;
    let handle = heaps.next;
    heaps.live.insert(handle, Heap { blocks: HashSet::new(), used: 0, limit: maximum });
    handle
}

/// `HeapDestroy`: frees every block of the heap. The process heap stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_HeapDestroy(heap: HeapHandle) -> i32 {
    let removed = heaps().live.remove(&heap).ok_or(ERROR_INVALID_HANDLE);
    outcome(removed.map(|heap| {
        for block in heap.blocks {
            // SAFETY: a block of the heap that was not freed; nobody uses it any more by the function's contract.
            unsafe { libc::free((block as *mut Header).sub(1).cast()) };
        }
    }))
}

/// `HeapAlloc`: aligned to 16 bytes. It never raises an exception; failure is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_HeapAlloc(heap: HeapHandle, flags: u32, size: usize) -> *mut c_void {
    pointer(allocate(heap, flags, size))
}

/// `HeapReAlloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_HeapReAlloc(
    heap: HeapHandle,
    flags: u32,
    memory: *mut c_void,
    size: usize,
) -> *mut c_void {
    // SAFETY: the function's contract.
    pointer(unsafe { reallocate(heap, flags, memory, size) })
}

/// `HeapFree`: NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_HeapFree(heap: HeapHandle, _flags: u32, memory: *mut c_void) -> i32 {
    // SAFETY: the function's contract.
    outcome(unsafe { free(heap, memory) })
}

/// `HeapSize`: the size that was asked for; -1 for no block of the heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_HeapSize(heap: HeapHandle, _flags: u32, memory: *const c_void) -> usize {
    // SAFETY: the function's contract.
    let size = on_heap(heap, |_| Ok(()))
        .and_then(|()| unsafe { header_of(memory.cast_mut(), heap).map(|header| (*header).size) });
    size.unwrap_or_else(|code| {
        set_last_error(code);
        usize::MAX
    })
}

/// `LocalAlloc`: every block is a fixed one.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_LocalAlloc(flags: u32, size: usize) -> *mut c_void {
    pointer(allocate_raw(LOCAL, size, flags & LMEM_ZEROINIT != 0))
}

/// `LocalFree`: NULL when it is done, else the block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_LocalFree(memory: *mut c_void) -> *mut c_void {
    if memory.is_null() {
        return memory;
    }
    // SAFETY: the function's contract.
    match unsafe { header_of(memory, LOCAL) } {
        Ok(header) => {
            // SAFETY: the caller's block, from `malloc`.
            unsafe {
                (*header).heap = 0;
                libc::free(header.cast());
            }
            std::ptr::null_mut()
        }
        Err(_) => {
            set_last_error(ERROR_INVALID_HANDLE);
            memory
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    // SAFETY of every block below: only live blocks are passed, and no more bytes used than they have.

    #[test]
    fn blocks_are_aligned_sized_and_zeroed_on_request() {
        let heap = ndw_GetProcessHeap();
        for size in [0, 1, 100, 1 << 20] {
            let memory = ndw_HeapAlloc(heap, HEAP_ZERO_MEMORY, size);
            assert!(!memory.is_null() && (memory as usize).is_multiple_of(16));
            // SAFETY: see above.
            unsafe {
                assert_eq!(ndw_HeapSize(heap, 0, memory), size);
                assert!(std::slice::from_raw_parts(memory.cast::<u8>(), size).iter().all(|b| *b == 0));
                assert_eq!(ndw_HeapFree(heap, 0, memory), 1);
            }
        }
        assert!(ndw_HeapAlloc(heap, 0, usize::MAX).is_null());
        // SAFETY: see above.
        assert_eq!(unsafe { ndw_HeapFree(heap, 0, null_mut()) }, 1);
    }

    #[test]
    fn growing_keeps_the_content() {
        for heap in [ndw_GetProcessHeap(), ndw_HeapCreate(0, 0, 0)] {
            // SAFETY: see above.
            unsafe {
                let memory = ndw_HeapAlloc(heap, 0, 4);
                memory.cast::<u32>().write(0x1234_5678);
                let memory = ndw_HeapReAlloc(heap, HEAP_ZERO_MEMORY, memory, 4096);
                assert_eq!(memory.cast::<u32>().read(), 0x1234_5678);
                assert_eq!(memory.cast::<u32>().add(1000).read(), 0);
                assert!(ndw_HeapReAlloc(heap, HEAP_REALLOC_IN_PLACE_ONLY, memory, 8192).is_null());
                assert_eq!(ndw_HeapReAlloc(heap, HEAP_REALLOC_IN_PLACE_ONLY, memory, 10), memory);
                assert_eq!(ndw_HeapSize(heap, 0, memory), 10);
                assert!(ndw_HeapReAlloc(heap, 0, null_mut(), 10).is_null());
                assert_eq!(ndw_HeapFree(heap, 0, memory), 1);
            }
        }
    }

    #[test]
    fn a_block_that_cannot_grow_stays_as_it_is() {
        let heap = ndw_HeapCreate(0, 0, 100);
        // SAFETY: see above.
        unsafe {
            let memory = ndw_HeapAlloc(heap, 0, 60).cast::<u8>();
            memory.write_bytes(7, 60);
            assert!(ndw_HeapReAlloc(heap, 0, memory.cast(), usize::MAX).is_null());
            assert_eq!(last_error(), ERROR_NOT_ENOUGH_MEMORY);
            assert!(ndw_HeapReAlloc(heap, HEAP_REALLOC_IN_PLACE_ONLY, memory.cast(), 61).is_null());
            assert_eq!(ndw_HeapSize(heap, 0, memory.cast()), 60);
            assert_eq!(std::slice::from_raw_parts(memory, 60), [7; 60]);
            // Nothing is a size, too.
            let memory = ndw_HeapReAlloc(heap, 0, memory.cast(), 0);
            assert_eq!((memory.is_null(), ndw_HeapSize(heap, 0, memory)), (false, 0));
            assert_eq!(ndw_HeapDestroy(heap), 1);
        }
    }

    #[test]
    fn only_what_is_new_in_a_grown_block_is_zeroed() {
        let heap = ndw_GetProcessHeap();
        // SAFETY: see above.
        unsafe {
            let memory = ndw_HeapAlloc(heap, 0, 100).cast::<u8>();
            memory.write_bytes(7, 100);
            let grown = ndw_HeapReAlloc(heap, HEAP_ZERO_MEMORY, memory.cast(), 5000).cast::<u8>();
            assert_eq!(std::slice::from_raw_parts(grown, 100), [7; 100]);
            assert!(std::slice::from_raw_parts(grown.add(100), 4900).iter().all(|byte| *byte == 0));
            // After shrinking, what comes back is zero as well.
            let shrunk = ndw_HeapReAlloc(heap, 0, grown.cast(), 10);
            let grown = ndw_HeapReAlloc(heap, HEAP_ZERO_MEMORY, shrunk, 100).cast::<u8>();
            assert_eq!(std::slice::from_raw_parts(grown, 10), [7; 10]);
            assert!(std::slice::from_raw_parts(grown.add(10), 90).iter().all(|byte| *byte == 0));
            assert_eq!(ndw_HeapFree(heap, 0, grown.cast()), 1);
        }
    }

    #[test]
    fn a_private_heap_knows_its_blocks() {
        let (a, b) = (ndw_HeapCreate(0, 0, 0), ndw_HeapCreate(0, 0, 0));
        let memory = ndw_HeapAlloc(a, 0, 10);
        // SAFETY: see above; the destroyed heap's blocks are not used.
        unsafe {
            for other in [b, ndw_GetProcessHeap()] {
                assert_eq!(ndw_HeapFree(other, 0, memory), 0);
                assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
                assert_eq!(ndw_HeapSize(other, 0, memory), usize::MAX);
            }
            assert_eq!((ndw_HeapDestroy(a), ndw_HeapDestroy(b)), (1, 1));
            assert_eq!(ndw_HeapDestroy(a), 0);
            assert_eq!(last_error(), ERROR_INVALID_HANDLE);
            assert!(ndw_HeapAlloc(a, 0, 1).is_null());
            assert_eq!(ndw_HeapDestroy(ndw_GetProcessHeap()), 0);
        }
    }

    #[test]
    fn a_heap_can_have_a_limit() {
        let heap = ndw_HeapCreate(0, 0, 1000);
        let first = ndw_HeapAlloc(heap, 0, 600);
        assert!(ndw_HeapAlloc(heap, 0, 600).is_null());
        assert_eq!(last_error(), ERROR_NOT_ENOUGH_MEMORY);
        // SAFETY: see above.
        unsafe {
            assert_eq!(ndw_HeapFree(heap, 0, first), 1);
            assert!(!ndw_HeapAlloc(heap, 0, 600).is_null());
            assert_eq!(ndw_HeapDestroy(heap), 1);
        }
    }

    #[test]
    fn local_blocks_are_of_no_heap() {
        let memory = ndw_LocalAlloc(LMEM_ZEROINIT, 8);
        // SAFETY: see above.
        unsafe {
            assert_eq!(memory.cast::<u64>().read(), 0);
            assert_eq!(ndw_HeapFree(ndw_GetProcessHeap(), 0, memory), 0);
            assert!(ndw_LocalFree(memory).is_null());
            assert!(ndw_LocalFree(null_mut()).is_null());
        }
    }
}
