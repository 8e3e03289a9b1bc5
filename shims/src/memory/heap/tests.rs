use super::contents::*;
use super::local::*;
use super::*;
use crate::arguments::{In, InOut, Out};
use std::ptr::null_mut;

#[test]
fn blocks_are_aligned_sized_and_zeroed_on_request() {
    let heap = ndw_GetProcessHeap();
    for size in [0, 1, 100, 1 << 20] {
        let memory = ndw_HeapAlloc(heap, HEAP_ZERO_MEMORY, size);
        assert!(!memory.is_null() && (memory as usize).is_multiple_of(16));
        // SAFETY: a live block of `size` zeroed bytes, not used after it is freed.
        unsafe {
            assert_eq!(ndw_HeapSize(heap, 0, memory), size);
            assert!(std::slice::from_raw_parts(memory.cast::<u8>(), size).iter().all(|b| *b == 0));
            assert_eq!(ndw_HeapFree(heap, 0, memory), 1);
        }
    }
    assert!(ndw_HeapAlloc(heap, 0, usize::MAX).is_null());
    // SAFETY: NULL is no block, so nothing is freed.
    assert_eq!(unsafe { ndw_HeapFree(heap, 0, null_mut()) }, 1);
}

#[test]
fn growing_keeps_the_content() {
    for heap in [ndw_GetProcessHeap(), ndw_HeapCreate(0, 0, 0)] {
        // SAFETY: `memory` is always the live block: what replaces it has 4096 bytes when it is read, and a call that fails
        // leaves it.
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
    let heap = ndw_HeapCreate(0, 0, 0x1000);
    // SAFETY: the block has 60 bytes and stays when a call fails; it is not used after its heap has gone.
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
    // SAFETY: each block has the size asked for last, is used no more after it was replaced, and freed at the end.
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
    // SAFETY: a block of another heap is refused, so it lives until its heap goes, and is not used afterwards.
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
fn a_heap_of_a_fixed_size_does_not_grow() {
    const SIZE: usize = 0x4_0000;
    let heap = ndw_HeapCreate(0, SIZE, SIZE);
    let fits = |size| {
        let memory = ndw_HeapAlloc(heap, 0, size);
        assert!(!memory.is_null() || last_error() == ERROR_NOT_ENOUGH_MEMORY);
        // SAFETY: NULL, or a block that nobody uses.
        assert_eq!(unsafe { ndw_HeapFree(heap, 0, memory) }, 1);
        !memory.is_null()
    };
    // Some of the size is the heap's own.
    assert!(fits(SIZE - 0xC00) && !fits(SIZE - 0x600) && !fits(SIZE));
    // Each block costs more than its bytes, also one of none.
    let small = (0..).take_while(|_| !ndw_HeapAlloc(heap, 0, 0).is_null()).count();
    assert!((SIZE / 64..=SIZE / 16).contains(&small), "{small}");
    assert!(!fits(0));
    // SAFETY: the blocks of the heap are not used.
    assert_eq!(unsafe { ndw_HeapDestroy(heap) }, 1);
}

#[test]
fn a_heap_of_a_fixed_size_has_no_large_blocks() {
    let heap = ndw_HeapCreate(0, 0x20_0000, 0x20_0000);
    assert!(ndw_HeapAlloc(heap, 0, 0x10_0000).is_null());
    assert_eq!(last_error(), ERROR_NOT_ENOUGH_MEMORY);
    let memory = ndw_HeapAlloc(heap, 0, 0x8_0000);
    assert!(!memory.is_null());
    assert_eq!(ndw_HeapCompact(heap, 0), LARGEST_FIXED_BLOCK);
    // SAFETY: the blocks of the heap are not used any more.
    assert_eq!(unsafe { ndw_HeapDestroy(heap) }, 1);
    assert_eq!((ndw_HeapCompact(heap, 0), last_error()), (0, ERROR_INVALID_HANDLE));
}

#[test]
fn null_is_freed_on_any_heap_and_grown_on_none() {
    // SAFETY: NULL is no block, so nothing is freed or moved.
    unsafe {
        assert_eq!(ndw_HeapFree(0, 0, null_mut()), 1);
        set_last_error(1);
        assert!(ndw_HeapReAlloc(ndw_GetProcessHeap(), 0, null_mut(), 1).is_null());
        assert_eq!(last_error(), ERROR_SUCCESS);
    }
}

#[test]
fn a_walk_finds_every_block_of_a_heap_once() {
    let heap = ndw_HeapCreate(0, 0, 0);
    let mut blocks: Vec<_> =
        [0, 1, 5000].map(|size| (ndw_HeapAlloc(heap, 0, size) as usize, size as u32)).into();
    blocks.sort_unstable();
    let mut entry = HeapEntry::default();
    let mut found = Vec::new();
    // SAFETY: the blocks are live until their heap goes, the heap's own list tells which addresses are blocks, and the entry is
    // a local.
    unsafe {
        while ndw_HeapWalk(heap, (&mut entry).into()) == 1 {
            assert_eq!((entry.flags, entry.overhead, entry.region), (ENTRY_BUSY, 16, 0));
            found.push((entry.data, entry.size));
        }
        assert_eq!((last_error(), found), (ERROR_NO_MORE_ITEMS, blocks.clone()));
        assert_eq!((ndw_HeapWalk(heap, InOut::NULL), last_error()), (0, ERROR_INVALID_PARAMETER));
        entry.data = 0;
        assert_eq!(
            (ndw_HeapWalk(ndw_GetProcessHeap(), (&mut entry).into()), last_error()),
            (0, ERROR_NOT_SUPPORTED)
        );
        for (memory, valid) in [(0, 1), (blocks[0].0, 1), (blocks[0].0 + 16, 0), (1, 0)] {
            assert_eq!(ndw_HeapValidate(heap, 0, memory as *const c_void), valid);
        }
        assert_eq!(ndw_HeapDestroy(heap), 1);
        assert_eq!((ndw_HeapWalk(heap, (&mut entry).into()), last_error()), (0, ERROR_INVALID_HANDLE));
        assert_eq!(ndw_HeapValidate(heap, 0, null_mut()), 0);
    }
}

#[test]
fn a_locked_heap_keeps_others_from_locking_it() {
    for heap in [ndw_GetProcessHeap(), ndw_HeapCreate(0, 0, 0)] {
        assert_eq!((ndw_HeapLock(heap), ndw_HeapLock(heap)), (1, 1), "its owner locks it again");
        let others =
            || std::thread::scope(|scope| scope.spawn(|| (ndw_HeapUnlock(heap), last_error())).join());
        assert_eq!(others().unwrap(), (0, ERROR_NOT_LOCKED));
        assert!(std::thread::scope(|scope| {
            let other = scope.spawn(|| lock_of(heap).unwrap().try_lock().is_none());
            other.join().unwrap()
        }));
        assert_eq!((ndw_HeapUnlock(heap), ndw_HeapUnlock(heap)), (1, 1));
        assert_eq!((ndw_HeapUnlock(heap), last_error()), (0, ERROR_NOT_LOCKED));
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!((ndw_HeapLock(heap), ndw_HeapUnlock(heap)), (1, 1)));
        });
    }
    assert_eq!((ndw_HeapLock(0), last_error()), (0, ERROR_INVALID_HANDLE));
}

#[test]
fn local_blocks_are_of_no_heap() {
    let memory = ndw_LocalAlloc(LMEM_ZEROINIT, 8);
    // SAFETY: a block of 8 zeroed bytes, which the heap refuses to free, and which is not used after `LocalFree`.
    unsafe {
        assert_eq!(memory.cast::<u64>().read(), 0);
        assert_eq!(ndw_HeapFree(ndw_GetProcessHeap(), 0, memory), 0);
        assert!(ndw_LocalFree(memory).is_null());
        assert!(ndw_LocalFree(null_mut()).is_null());
    }
}

#[test]
fn every_heap_is_of_low_fragmentation_and_ends_corrupted_programs() {
    let heap = ndw_GetProcessHeap();
    assert_eq!(ndw_HeapSetInformation(0, HEAP_TERMINATION, In::NULL, 0), 1);
    assert_eq!(ndw_HeapSetInformation(heap, HEAP_COMPATIBILITY, In::from(&2), 4), 1);
    let (mut kind, mut needed) = (0, 0);
    assert_eq!(ndw_HeapQueryInformation(heap, 0, Out::from(&mut kind), 4, Out::from(&mut needed)), 1);
    assert_eq!((kind, needed), (2, 4));
    let short = ndw_HeapQueryInformation(heap, 0, Out::NULL, 0, Out::from(&mut needed));
    assert_eq!((short, last_error()), (0, ERROR_INSUFFICIENT_BUFFER));
    for (heap, class, value, length) in [(heap, 0, 1, 4), (heap, 0, 2, 3), (heap, 2, 2, 4), (heap, -1, 2, 4)]
    {
        let set = ndw_HeapSetInformation(heap, class, In::from(&value), length);
        assert_eq!((set, last_error()), (0, ERROR_INVALID_PARAMETER));
    }
    let unknown = ndw_HeapSetInformation(1, HEAP_COMPATIBILITY, In::from(&2), 4);
    assert_eq!((unknown, last_error()), (0, ERROR_INVALID_HANDLE));
}

#[test]
fn a_local_block_grows_and_tells_its_size() {
    let memory = ndw_LocalAlloc(LMEM_ZEROINIT, 4);
    // SAFETY: `memory` is always the live block, with the bytes used; a call that fails leaves it.
    unsafe {
        memory.cast::<u32>().write(7);
        let memory = ndw_LocalReAlloc(memory, 400, LMEM_ZEROINIT);
        assert_eq!((memory.cast::<u32>().read(), memory.cast::<u32>().add(99).read()), (7, 0));
        assert_eq!((ndw_LocalSize(memory), ndw_LocalReAlloc(memory, 1, 0x80)), (400, memory));
        assert!(ndw_LocalReAlloc(memory, usize::MAX, 0).is_null());
        assert_eq!((last_error(), ndw_LocalSize(memory)), (ERROR_NOT_ENOUGH_MEMORY, 400));
        assert!(ndw_LocalFree(memory).is_null());
        // No block, and one of a heap.
        let other = ndw_HeapAlloc(ndw_GetProcessHeap(), 0, 4);
        for wrong in [null_mut(), other] {
            assert!(ndw_LocalReAlloc(wrong, 8, 0).is_null());
            assert_eq!((last_error(), ndw_LocalSize(wrong)), (ERROR_INVALID_HANDLE, 0));
        }
        assert_eq!(ndw_HeapFree(ndw_GetProcessHeap(), 0, other), 1);
    }
}
