//! `HeapAlloc` and related functions: blocks of the C library's heap with a header in front.
//!
//! Unlike the process heap a private heap keeps a list of its blocks, so that `HeapDestroy` can free them.

pub mod contents;
pub mod local;

use super::{outcome, page_size, pointer};
use crate::error::*;
use parking_lot::ReentrantMutex;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `HEAP_ZERO_MEMORY`.
pub const HEAP_ZERO_MEMORY: u32 = 0x8;
/// `HEAP_REALLOC_IN_PLACE_ONLY`.
pub const HEAP_REALLOC_IN_PLACE_ONLY: u32 = 0x10;

/// The handle of a heap: an opaque number.
pub type HeapHandle = usize;

/// The process heap. Private heaps have higher numbers.
const PROCESS_HEAP: HeapHandle = 0x10_0000;

/// The header of a block, which keeps its 16-byte alignment.
#[repr(C, align(16))]
struct Header {
    heap: HeapHandle,
    size: usize,
}

const HEADER: usize = size_of::<Header>();

/// The overhead of a heap of fixed size, and of each block. Windows' varies with its version.
const FIXED_OVERHEAD: usize = 0x800;
const BLOCK_OVERHEAD: usize = 16;
/// The largest block of a heap of a fixed size.
const LARGEST_FIXED_BLOCK: usize = 0xF_F000;

/// A private heap.
struct Heap {
    /// The addresses of its blocks, after their headers.
    blocks: BTreeSet<usize>,
    /// Bytes in use, and their limit.
    used: usize,
    limit: Option<usize>,
    /// The lock of `HeapLock`.
    lock: Arc<ReentrantMutex<()>>,
}

struct Heaps {
    live: BTreeMap<HeapHandle, Heap>,
    next: HeapHandle,
}

fn heaps() -> MutexGuard<'static, Heaps> {
    static HEAPS: Mutex<Heaps> = Mutex::new(Heaps { live: BTreeMap::new(), next: PROCESS_HEAP });
    HEAPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `f` on a private heap; does nothing for the process heap, which keeps no account.
fn on_heap(handle: HeapHandle, f: impl FnOnce(&mut Heap) -> Result<(), u32>) -> Result<(), u32> {
    match handle {
        PROCESS_HEAP => Ok(()),
        _ => heaps().live.get_mut(&handle).map_or(Err(ERROR_INVALID_HANDLE), f),
    }
}

impl Heap {
    /// Accounts for a block of `size` bytes, if the heap has room for it.
    fn charge(&mut self, size: usize) -> Result<(), u32> {
        let used = size
            .checked_next_multiple_of(BLOCK_OVERHEAD)
            .and_then(|size| self.used.checked_add(size)?.checked_add(BLOCK_OVERHEAD))
            .ok_or(ERROR_NOT_ENOUGH_MEMORY)?;
        if self.limit.is_some_and(|limit| used > limit || size > LARGEST_FIXED_BLOCK) {
            return Err(ERROR_NOT_ENOUGH_MEMORY);
        }
        self.used = used;
        Ok(())
    }

    /// Accounts for a freed block of `size` bytes.
    fn discharge(&mut self, size: usize) {
        self.used -= size.next_multiple_of(BLOCK_OVERHEAD) + BLOCK_OVERHEAD;
    }
}

/// A block with a header, from `malloc`.
fn allocate_raw(heap: HeapHandle, size: usize, zero: bool) -> Result<*mut c_void, u32> {
    let total = size.checked_add(HEADER).ok_or(ERROR_NOT_ENOUGH_MEMORY)?;
    let block = if zero {
        // SAFETY: takes numbers.
        unsafe { libc::calloc(1, total) }
    } else {
        // SAFETY: takes a number.
        unsafe { libc::malloc(total) }
    };
    let block = block.cast::<Header>();
    if block.is_null() {
        return Err(ERROR_NOT_ENOUGH_MEMORY);
    }
    // SAFETY: not NULL, aligned by `malloc` for any type, and a header larger than what was asked for.
    unsafe { block.write(Header { heap, size }) };
    Ok(block.wrapping_add(1).cast())
}

/// The header of a block of this heap.
///
/// # Safety
/// `memory` came from [`allocate_raw`] and was not freed, or is NULL; no other thread uses its header meanwhile.
unsafe fn header_of<'a>(memory: *mut c_void, heap: HeapHandle) -> Result<&'a mut Header, u32> {
    if memory.is_null() {
        return Err(ERROR_INVALID_PARAMETER);
    }
    // SAFETY: a header stands in front of every block, which only the block's owner uses.
    let header = unsafe { &mut *memory.cast::<Header>().wrapping_sub(1) };
    if header.heap == heap { Ok(header) } else { Err(ERROR_INVALID_PARAMETER) }
}

/// Frees a block. Its header is cleared first, so that a second free finds no heap in it.
///
/// # Safety
/// `memory` came from [`allocate_raw`] for this heap, was not freed, and is not used any more.
unsafe fn release(heap: HeapHandle, memory: *mut c_void) -> Result<(), u32> {
    // SAFETY: a block that was not freed, as the caller promises.
    unsafe { header_of(memory, heap) }?.heap = 0;
    // SAFETY: the header is where the block from `malloc` begins.
    unsafe { libc::free(memory.cast::<Header>().wrapping_sub(1).cast()) };
    Ok(())
}

fn allocate(heap: HeapHandle, flags: u32, size: usize) -> Result<*mut c_void, u32> {
    on_heap(heap, |heap| heap.charge(size))?;
    let memory = allocate_raw(heap, size, flags & HEAP_ZERO_MEMORY != 0);
    on_heap(heap, |heap| {
        match memory {
            Ok(memory) => _ = heap.blocks.insert(memory as usize),
            Err(_) => heap.discharge(size),
        }
        Ok(())
    })?;
    memory
}

/// # Safety
/// As for [`header_of`].
unsafe fn free(heap: HeapHandle, memory: *mut c_void) -> Result<(), u32> {
    if memory.is_null() {
        return Ok(());
    }
    on_heap(heap, |_| Ok(()))?;
    // SAFETY: the caller says that the block is one of `allocate_raw`; only this copy of its size is used below.
    let size = unsafe { header_of(memory, heap) }?.size;
    on_heap(heap, |heap| match heap.blocks.remove(&(memory as usize)) {
        true => {
            heap.discharge(size);
            Ok(())
        }
        false => Err(ERROR_INVALID_PARAMETER),
    })?;
    // SAFETY: it was in the heap's list until now, or the caller says so of the process heap; the caller does not use it again.
    unsafe { release(heap, memory) }
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
    if memory.is_null() {
        // As on Windows, the last error is ERROR_SUCCESS.
        return Err(ERROR_SUCCESS);
    }
    // SAFETY: the caller says that the block is one of `allocate_raw`, and lets nobody else at it during the call.
    let header = unsafe { header_of(memory, heap) }?;
    let old = header.size;
    if flags & HEAP_REALLOC_IN_PLACE_ONLY != 0 && size > old {
        return Err(ERROR_NOT_ENOUGH_MEMORY);
    }
    if flags & HEAP_REALLOC_IN_PLACE_ONLY != 0 {
        on_heap(heap, |heap| {
            heap.discharge(old);
            heap.charge(size)
        })?;
        header.size = size;
        return Ok(memory);
    }
    let new = allocate(heap, flags, size)?;
    // SAFETY: two different blocks, the new one in no other hands yet, and both as large as the smaller size.
    unsafe { std::ptr::copy_nonoverlapping(memory.cast::<u8>(), new.cast::<u8>(), old.min(size)) };
    // SAFETY: the caller gives the block for the new one, and does not use it again.
    unsafe { free(heap, memory) }?;
    Ok(new)
}

/// `GetProcessHeap`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetProcessHeap() -> HeapHandle {
    PROCESS_HEAP
}

/// `HeapCreate`: a maximum other than 0 fixes the size, overhead included, and limits the size of a block.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_HeapCreate(_options: u32, initial: usize, maximum: usize) -> HeapHandle {
    let mut heaps = heaps();
    heaps.next += 0x1_0000;
    let handle = heaps.next;
    let fixed = maximum.max(initial).checked_next_multiple_of(page_size()).unwrap_or(usize::MAX);
    let limit = (maximum != 0).then(|| fixed - FIXED_OVERHEAD);
    heaps.live.insert(handle, Heap { blocks: BTreeSet::new(), used: 0, limit, lock: Arc::default() });
    handle
}

/// `HeapDestroy`: frees every block of the heap. The process heap stays.
///
/// # Safety
/// Nobody uses the blocks of the heap any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_HeapDestroy(heap: HeapHandle) -> i32 {
    let removed = heaps().live.remove(&heap).ok_or(ERROR_INVALID_HANDLE);
    outcome(removed.map(|heap| {
        for block in heap.blocks {
            // SAFETY: a block of the heap that was not freed; nobody uses it any more by the function's contract.
            unsafe { libc::free((block as *mut Header).wrapping_sub(1).cast()) };
        }
    }))
}

/// `HeapAlloc`: aligned to 16 bytes. It never raises an exception; failure is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_HeapAlloc(heap: HeapHandle, flags: u32, size: usize) -> *mut c_void {
    pointer(allocate(heap, flags, size))
}

/// `HeapReAlloc`.
///
/// # Safety
/// `memory` is NULL or a block of these functions that was not freed; nobody uses it any more unless the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_HeapReAlloc(
    heap: HeapHandle,
    flags: u32,
    memory: *mut c_void,
    size: usize,
) -> *mut c_void {
    // SAFETY: `memory` is NULL or a block of some heap that was not freed, as this function asks.
    pointer(unsafe { reallocate(heap, flags, memory, size) })
}

/// `HeapFree`: NULL is accepted.
///
/// # Safety
/// `memory` is NULL or a block of these functions that was not freed, and that nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_HeapFree(heap: HeapHandle, _flags: u32, memory: *mut c_void) -> i32 {
    // SAFETY: `memory` is NULL or a block of some heap that was not freed, as this function asks.
    outcome(unsafe { free(heap, memory) })
}

/// `HeapSize`: the size that was asked for; -1 for no block of the heap.
///
/// # Safety
/// `memory` is NULL or a block of these functions that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_HeapSize(heap: HeapHandle, _flags: u32, memory: *const c_void) -> usize {
    let size = on_heap(heap, |_| Ok(())).and_then(|()| {
        // SAFETY: NULL or a live block of some heap.
        unsafe { header_of(memory.cast_mut(), heap) }.map(|header| header.size)
    });
    size.unwrap_or_else(|code| {
        set_last_error(code);
        usize::MAX
    })
}

/// `HeapValidate`: a block of the heap, or with NULL all of it. Of the process heap the header of the block is looked at, which
/// must be readable.
///
/// # Safety
/// For the process heap, `memory` is NULL or an address before which a block's header can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_HeapValidate(heap: HeapHandle, _flags: u32, memory: *const c_void) -> i32 {
    if heap == PROCESS_HEAP {
        // SAFETY: not NULL, hence what lies before it can be read, as this function asks.
        return (memory.is_null() || unsafe { header_of(memory.cast_mut(), heap) }.is_ok()).into();
    }
    heaps()
        .live
        .get(&heap)
        .is_some_and(|heap| memory.is_null() || heap.blocks.contains(&(memory as usize)))
        .into()
}

/// `HeapCompact`: the size of the largest free block, which the C library does not report: for a heap of fixed size what it has
/// left, else the largest possible block.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_HeapCompact(heap: HeapHandle, _flags: u32) -> usize {
    let mut left = isize::MAX as usize;
    let found = on_heap(heap, |heap| {
        if let Some(limit) = heap.limit {
            left = limit.saturating_sub(heap.used + BLOCK_OVERHEAD).min(LARGEST_FIXED_BLOCK);
        }
        Ok(())
    });
    // SAFETY: takes a number, and gives free pages back.
    unsafe { libc::malloc_trim(0) };
    if outcome(found) == 1 { left } else { 0 }
}

#[cfg(test)]
mod tests;
