//! `SLIST_HEADER`.

use crate::api::slist::*;
use std::ptr::null_mut;

#[repr(C, align(16))]
struct Item {
    entry: [usize; 2],
    value: usize,
}

fn items(count: usize) -> Vec<Item> {
    (0..count).map(|value| Item { entry: [0; 2], value }).collect()
}

fn value(entry: *mut Entry) -> usize {
    // SAFETY: entries of these tests are the first parts of items.
    unsafe { (*entry.cast::<Item>()).value }
}

fn header() -> Header {
    // SAFETY: zeroes are an empty list, whatever they are initialised from.
    unsafe {
        let mut header = std::mem::MaybeUninit::<Header>::uninit();
        header.as_mut_ptr().cast::<u8>().write_bytes(0xFF, size_of::<Header>());
        ndw_InitializeSListHead(header.as_mut_ptr());
        header.assume_init()
    }
}

#[test]
fn the_last_entry_pushed_is_the_first_popped() {
    let (mut header, mut items) = (header(), items(4));
    let entries: Vec<*mut Entry> = items.iter_mut().map(|item| (&raw mut *item).cast()).collect();
    // SAFETY: a list and entries of ours.
    unsafe {
        assert_eq!([0, 1].map(|n| *(&raw const header).cast::<u64>().add(n)), [0, 0]);
        assert_eq!(ndw_InterlockedPushEntrySList(&mut header, entries[0]), null_mut());
        assert_eq!(ndw_InterlockedPushEntrySList(&mut header, entries[1]), entries[0]);
        assert_eq!(ndw_InterlockedPushEntrySList(&mut header, entries[2]), entries[1]);
        assert_eq!((ndw_QueryDepthSList(&mut header), ndw_RtlFirstEntrySList(&mut header)), (3, entries[2]));
        assert_eq!(ndw_InterlockedPopEntrySList(&mut header), entries[2]);
        assert_eq!(ndw_QueryDepthSList(&mut header), 2);
        let rest = ndw_InterlockedFlushSList(&mut header);
        assert_eq!((value(rest), value(*rest.cast::<*mut Entry>())), (1, 0));
        assert_eq!(
            (ndw_QueryDepthSList(&mut header), ndw_InterlockedPopEntrySList(&mut header)),
            (0, null_mut())
        );
        // A chain in one step, before what is there.
        ndw_InterlockedPushEntrySList(&mut header, entries[3]);
        assert_eq!(ndw_InterlockedPushListSListEx(&mut header, rest, entries[0], 2), entries[3]);
        assert_eq!(ndw_QueryDepthSList(&mut header), 3);
        assert_eq!([(); 3].map(|()| value(ndw_InterlockedPopEntrySList(&mut header))), [1, 0, 3]);
    }
}

#[test]
fn a_list_that_is_not_there_is_empty() {
    // SAFETY: NULL is harmless.
    unsafe {
        ndw_InitializeSListHead(null_mut());
        assert_eq!(ndw_InterlockedPushEntrySList(null_mut(), null_mut()), null_mut());
        assert_eq!(ndw_InterlockedPopEntrySList(null_mut()), null_mut());
        assert_eq!(ndw_InterlockedFlushSList(null_mut()), null_mut());
        assert_eq!((ndw_QueryDepthSList(null_mut()), ndw_RtlFirstEntrySList(null_mut())), (0, null_mut()));
    }
}

/// Entries are freed as soon as they are popped, while others pop.
#[test]
fn threads_share_a_list_and_each_entry_is_one_threads_own() {
    const EACH: usize = 5_000;
    let mut header = header();
    let list = (&raw mut header).expose_provenance();
    let sum: usize = std::thread::scope(|scope| {
        let work = |first: usize| {
            let list = std::ptr::with_exposed_provenance_mut::<Header>(list);
            let mut sum = 0;
            for value in first..first + EACH {
                let item = Box::into_raw(Box::new(Item { entry: [0; 2], value }));
                // SAFETY: an entry that is in no list; what is popped is this thread's own.
                unsafe {
                    ndw_InterlockedPushEntrySList(list, item.cast());
                    let popped = ndw_InterlockedPopEntrySList(list);
                    sum += Box::from_raw(popped.cast::<Item>()).value;
                }
            }
            sum
        };
        let threads: Vec<_> = (0..4).map(|n| scope.spawn(move || work(n * EACH))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(sum, (0..4 * EACH).sum());
}
