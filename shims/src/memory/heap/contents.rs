//! What a heap holds: its lock, its blocks one by one, and information about it.

use super::super::outcome;
use super::{HEADER, Header, HeapHandle, PROCESS_HEAP, heaps};
use crate::arguments::{In, InOut, Out};
use crate::error::*;
use parking_lot::ReentrantMutex;
use std::sync::{Arc, Mutex, PoisonError};

/// The lock of a heap.
pub(super) fn lock_of(heap: HeapHandle) -> Result<Arc<ReentrantMutex<()>>, u32> {
    static PROCESS: Mutex<Option<Arc<ReentrantMutex<()>>>> = Mutex::new(None);
    match heap {
        PROCESS_HEAP => {
            Ok(PROCESS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().clone())
        }
        _ => heaps().live.get(&heap).map(|heap| heap.lock.clone()).ok_or(ERROR_INVALID_HANDLE),
    }
}

/// `HeapLock`: keeps other threads out of `HeapLock` and `HeapWalk` until `HeapUnlock`. Allocating and freeing are safe without
/// it, and do not wait for it.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_HeapLock(heap: HeapHandle) -> i32 {
    outcome(lock_of(heap).map(|lock| std::mem::forget(lock.lock())))
}

/// `HeapUnlock`: `ERROR_NOT_LOCKED` for a thread that has not locked it.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_HeapUnlock(heap: HeapHandle) -> i32 {
    outcome(lock_of(heap).and_then(|lock| {
        if !lock.is_owned_by_current_thread() {
            return Err(ERROR_NOT_LOCKED);
        }
        // SAFETY: this thread has locked it, and forgotten the guard.
        unsafe { lock.force_unlock() };
        Ok(())
    }))
}

/// `PROCESS_HEAP_ENTRY`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct HeapEntry {
    pub data: usize,
    pub size: u32,
    pub overhead: u8,
    pub region: u8,
    pub flags: u16,
    pub details: [u64; 3],
}

const _: () = assert!(size_of::<HeapEntry>() == 40);

/// `PROCESS_HEAP_ENTRY_BUSY`.
pub(super) const ENTRY_BUSY: u16 = 4;

/// `HeapWalk`: the blocks in use, by address; starts with `lpData` NULL, ends with `ERROR_NO_MORE_ITEMS`. Free memory and regions
/// are the C library's and are not shown. The process heap keeps no list of blocks (`ERROR_NOT_SUPPORTED`).
#[unsafe(no_mangle)]
pub extern "C" fn ndw_HeapWalk(heap: HeapHandle, entry: InOut<'_, HeapEntry>) -> i32 {
    let walk = || {
        let lock = lock_of(heap)?;
        let _guard = lock.lock();
        let previous = entry.read().ok_or(ERROR_INVALID_PARAMETER)?;
        if heap == PROCESS_HEAP {
            return Err(ERROR_NOT_SUPPORTED);
        }
        let mut heaps = heaps();
        let heap = heaps.live.get_mut(&heap).ok_or(ERROR_INVALID_HANDLE)?;
        let &data = heap.blocks.range(previous.data + 1..).next().ok_or(ERROR_NO_MORE_ITEMS)?;
        // SAFETY: the header of a block of the heap, which the lock of the table keeps.
        let size = unsafe { &*(data as *const Header).wrapping_sub(1) }.size;
        entry.put(HeapEntry {
            data,
            size: size.try_into().unwrap_or(u32::MAX),
            overhead: HEADER as u8,
            flags: ENTRY_BUSY,
            ..HeapEntry::default()
        });
        Ok(())
    };
    outcome(walk())
}

/// `HeapCompatibilityInformation`: which kind of free lists a heap has.
pub(super) const HEAP_COMPATIBILITY: i32 = 0;
/// `HeapEnableTerminationOnCorruption`.
pub(super) const HEAP_TERMINATION: i32 = 1;
/// `HeapOptimizeResources`.
const HEAP_OPTIMIZE: i32 = 3;
/// A low-fragmentation heap.
const LOW_FRAGMENTATION: u32 = 2;

/// `HeapSetInformation`: accepted without effect. The C library ends a program whose heap it finds corrupted in any case. A heap is to
/// be named only for its kind.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_HeapSetInformation(
    heap: HeapHandle,
    class: i32,
    information: In<'_, u32>,
    length: usize,
) -> i32 {
    outcome(match class {
        HEAP_TERMINATION | HEAP_OPTIMIZE => Ok(()),
        HEAP_COMPATIBILITY => lock_of(heap).and_then(|_| match information.read() {
            Some(0 | LOW_FRAGMENTATION) if length >= size_of::<u32>() => Ok(()),
            _ => Err(ERROR_INVALID_PARAMETER),
        }),
        _ => Err(ERROR_INVALID_PARAMETER),
    })
}

/// `HeapQueryInformation`: every heap is one of low fragmentation.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_HeapQueryInformation(
    heap: HeapHandle,
    class: i32,
    information: Out<'_, u32>,
    length: usize,
    needed: Out<'_, usize>,
) -> i32 {
    let query = || {
        if class != HEAP_COMPATIBILITY {
            return Err(ERROR_INVALID_PARAMETER);
        }
        lock_of(heap)?;
        needed.put(size_of::<u32>());
        if length < size_of::<u32>() {
            return Err(ERROR_INSUFFICIENT_BUFFER);
        }
        information.required(ERROR_NOACCESS)?.put(LOW_FRAGMENTATION);
        Ok(())
    };
    outcome(query())
}
