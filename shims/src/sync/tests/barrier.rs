//! `SYNCHRONIZATION_BARRIER`.

use crate::api::locks::*;
use crate::error::*;
use crate::sync::barrier::Barrier;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::thread;

#[test]
fn nobody_passes_a_barrier_before_all_have_come_and_the_last_is_told() {
    let mut barrier = MaybeUninit::<Barrier>::uninit();
    // SAFETY: room for a barrier.
    assert_eq!(unsafe { ndw_InitializeSynchronizationBarrier(barrier.as_mut_ptr(), 4, -1) }, 1);
    // SAFETY: made above.
    let barrier = unsafe { barrier.assume_init_ref() };
    let (came, last) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for flags in [0, 1, 2, 4] {
            let (came, last) = (&came, &last);
            scope.spawn(move || {
                for round in 1..=50 {
                    came.fetch_add(1, SeqCst);
                    // SAFETY: a barrier that lives on.
                    let told = unsafe { ndw_EnterSynchronizationBarrier(barrier, flags) };
                    last.fetch_add(told as u32, SeqCst);
                    assert!(came.load(SeqCst) >= 4 * round);
                    // SAFETY: `barrier` lives until the scope has joined all threads.
                    unsafe { ndw_EnterSynchronizationBarrier(barrier, flags) };
                }
            });
        }
    });
    assert_eq!((came.into_inner(), last.into_inner()), (200, 50));
}

#[test]
fn a_barrier_can_go_as_soon_as_one_thread_has_passed_it() {
    for _ in 0..200 {
        let barrier = Box::into_raw(Box::new(Barrier::new(2)));
        let address = barrier.expose_provenance();
        let other = thread::spawn(move || {
            let barrier: *const Barrier = std::ptr::with_exposed_provenance(address);
            // SAFETY: it lives until both have left.
            unsafe { ndw_EnterSynchronizationBarrier(barrier, 0) };
        });
        // SAFETY: `Delete` returns when the other thread has left, and nobody comes later: so the barrier lives for every call,
        // and is freed once.
        unsafe {
            ndw_EnterSynchronizationBarrier(barrier, 0);
            assert_eq!(ndw_DeleteSynchronizationBarrier(barrier), 1);
            drop(Box::from_raw(barrier));
        }
        other.join().unwrap();
    }
}

#[test]
fn a_barrier_for_nobody_is_refused() {
    let mut barrier = MaybeUninit::<Barrier>::uninit();
    let place = barrier.as_mut_ptr();
    for (place, threads, spins) in [(null_mut(), 2, -1), (place, 0, -1), (place, -3, 0), (place, 2, -2)] {
        set_last_error(0);
        // SAFETY: NULL or room for a barrier.
        assert_eq!(unsafe { ndw_InitializeSynchronizationBarrier(place, threads, spins) }, 0);
        assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
    }
    set_last_error(0);
    // SAFETY: NULL is refused.
    assert_eq!(unsafe { ndw_EnterSynchronizationBarrier(null_mut(), 0) }, 0);
    assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
}
