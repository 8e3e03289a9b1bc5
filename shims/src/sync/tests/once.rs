//! `INIT_ONCE`.

use crate::api::locks::*;
use crate::arguments::{InOut, Out};
use crate::error::*;
use crate::sync::once::InitOnce;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::thread;
use std::time::Duration;

unsafe extern "C" fn count(_: *const InitOnce, runs: *mut c_void, context: *mut *mut c_void) -> i32 {
    // SAFETY: the test passes an atomic and room for a context.
    unsafe {
        (*runs.cast::<AtomicU32>()).fetch_add(1, SeqCst);
        thread::sleep(Duration::from_millis(5));
        *context = 0x1000 as *mut c_void;
    }
    1
}

#[test]
fn one_of_many_initialises_and_all_get_the_context() {
    let (once, runs) = (InitOnce::default(), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut context: *mut c_void = std::ptr::null_mut();
                let parameter = (&raw const runs).cast_mut().cast();
                // SAFETY: objects of ours.
                let done = unsafe {
                    ndw_InitOnceExecuteOnce(Some(&once), Some(count), parameter, (&mut context).into())
                };
                assert_eq!((done, context as usize), (1, 0x1000));
            });
        }
    });
    assert_eq!(runs.into_inner(), 1);
}

/// Fails once, and says where it was told to put the context.
unsafe extern "C" fn fails_once(_: *const InitOnce, place: *mut c_void, context: *mut *mut c_void) -> i32 {
    let place = place.cast::<*mut *mut c_void>();
    // SAFETY: the test passes a place of ours, and room for a context or NULL.
    unsafe {
        let first = place.read().is_null();
        place.write(context);
        if !context.is_null() {
            context.write(0x2000 as *mut c_void);
        }
        (!first).into()
    }
}

#[test]
fn the_callback_gets_the_callers_own_place_and_a_failure_leaves_it_to_the_next() {
    let (once, mut context) = (InitOnce::default(), 0x30 as *mut c_void);
    let mut place: *mut *mut c_void = null_mut();
    let parameter = (&raw mut place).cast();
    set_last_error(0xBEEF);
    // SAFETY: objects of ours.
    unsafe {
        assert_eq!(
            ndw_InitOnceExecuteOnce(Some(&once), Some(fails_once), parameter, (&mut context).into()),
            0
        );
        assert_eq!((place, last_error()), (&raw mut context, 0xBEEF));
        assert_eq!(
            ndw_InitOnceExecuteOnce(Some(&once), Some(fails_once), parameter, (&mut context).into()),
            1
        );
        assert_eq!((context as usize, word(&once)), (0x2000, 0x2002));
    }
    // Without a place the callback gets none, and the context is NULL.
    let once = InitOnce::default();
    // SAFETY: objects of ours.
    unsafe {
        assert_eq!(ndw_InitOnceExecuteOnce(Some(&once), Some(fails_once), parameter, InOut::NULL), 1);
        assert_eq!((place, word(&once)), (null_mut(), 2));
        assert_eq!(ndw_InitOnceExecuteOnce(Some(&once), None, parameter, InOut::NULL), 0);
        assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
    }
}

/// What a program sees in the object.
fn word(once: &InitOnce) -> usize {
    // SAFETY: of the same layout, and nobody else changes it now.
    unsafe { std::ptr::from_ref(once).cast::<usize>().read() }
}

const CHECK_ONLY: u32 = 1;
const ASYNC: u32 = 2;
const INIT_FAILED: u32 = 4;

/// The result, whether initialisation is pending, and the context; the first is the last error if it failed.
fn begin(once: &InitOnce, flags: u32) -> (u32, i32, usize) {
    let (mut pending, mut context) = (7, 0x30 as *mut c_void);
    let done = ndw_InitOnceBeginInitialize(Some(once), flags, (&mut pending).into(), (&mut context).into());
    (if done == 0 { last_error() } else { 0 }, pending, context as usize)
}

fn complete(once: &InitOnce, flags: u32, context: usize) -> u32 {
    let done = ndw_InitOnceComplete(Some(once), flags, context as *mut c_void);
    if done == 0 { last_error() } else { 0 }
}

#[test]
fn a_synchronous_initialisation_in_two_calls() {
    let once = InitOnce::default();
    assert_eq!(begin(&once, CHECK_ONLY), (ERROR_GEN_FAILURE, 7, 0x30));
    assert_eq!(complete(&once, 0, 0), ERROR_GEN_FAILURE);
    assert_eq!((begin(&once, 0), word(&once)), ((0, 1, 0x30), 1));
    assert_eq!(begin(&once, CHECK_ONLY), (ERROR_GEN_FAILURE, 7, 0x30));
    // No other kind in between, no context that has low bits, none after a failure, no unknown flags.
    assert_eq!(begin(&once, ASYNC), (ERROR_INVALID_PARAMETER, 7, 0x30));
    for (flags, context) in [(0, 0x41), (INIT_FAILED, 0x40), (INIT_FAILED | ASYNC, 0), (8, 0)] {
        assert_eq!(complete(&once, flags, context), ERROR_INVALID_PARAMETER);
    }
    assert_eq!((complete(&once, INIT_FAILED, 0), word(&once)), (0, 0));
    assert_eq!(begin(&once, 0), (0, 1, 0x30));
    thread::scope(|scope| {
        // Whoever comes meanwhile waits for the end.
        let other = scope.spawn(|| begin(&once, 0));
        while crate::sync::park::queued((&raw const once).addr()) == 0 {
            thread::yield_now();
        }
        assert_eq!((complete(&once, 0, 0x1000), word(&once)), (0, 0x1002));
        assert_eq!(other.join().unwrap(), (0, 0, 0x1000));
    });
    assert_eq!(begin(&once, CHECK_ONLY), (0, 0, 0x1000));
    assert_eq!(begin(&once, ASYNC), (0, 0, 0x1000));
    assert_eq!(complete(&once, 0, 0), ERROR_GEN_FAILURE);
    for flags in [CHECK_ONLY | ASYNC, INIT_FAILED, 8] {
        assert_eq!(begin(&once, flags).0, ERROR_INVALID_PARAMETER);
    }
    assert_eq!(ndw_InitOnceBeginInitialize(None, 0, (&mut 0).into(), InOut::NULL), 0);
    assert_eq!(ndw_InitOnceBeginInitialize(Some(&once), 0, Out::NULL, InOut::NULL), 0);
    assert_eq!(ndw_InitOnceComplete(None, 0, null_mut()), 0);
}

#[test]
fn of_asynchronous_initialisations_the_first_to_complete_wins() {
    let once = InitOnce::default();
    assert_eq!([0, 1].map(|_| begin(&once, ASYNC)), [(0, 1, 0x30); 2]);
    assert_eq!(word(&once), 3);
    assert_eq!(begin(&once, 0).0, ERROR_INVALID_PARAMETER);
    assert_eq!(complete(&once, 0, 0x1000), ERROR_INVALID_PARAMETER);
    assert_eq!(complete(&once, ASYNC, 0x1000), 0);
    assert_eq!(complete(&once, ASYNC, 0x2000), ERROR_GEN_FAILURE);
    assert_eq!((begin(&once, ASYNC), word(&once)), ((0, 0, 0x1000), 0x1002));
}
