//! `TlsAlloc`, `FlsAlloc` and their kin.

use super::*;
use crate::api::tls::*;
use std::ffi::c_void;
use std::sync::Mutex;
use std::thread;

const OUT_OF_INDEXES: u32 = u32::MAX;

/// One test takes all slots there are: others must not want one meanwhile.
static TLS: Mutex<()> = Mutex::new(());

fn pointer(value: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(value)
}

/// The value, and the last error that comes with it.
fn get(read: extern "C" fn(u32) -> *mut c_void, index: u32) -> (usize, u32) {
    set_last_error(0xBEEF);
    (read(index).addr(), last_error())
}

#[test]
fn each_thread_has_a_value_of_its_own_and_reading_clears_the_last_error() {
    let _alone = TLS.lock();
    let index = ndw_TlsAlloc();
    assert!(index < 1088);
    assert_eq!(get(ndw_TlsGetValue, index), (0, 0));
    assert_eq!(ndw_TlsSetValue(index, pointer(7)), 1);
    assert_eq!(thread::spawn(move || get(ndw_TlsGetValue, index)).join().unwrap(), (0, 0));
    assert_eq!(get(ndw_TlsGetValue, index), (7, 0));
    // A slot that is allocated again holds nothing of what it held, in any thread.
    assert_eq!(ndw_TlsFree(index), 1);
    assert_eq!(code(ndw_TlsFree(index)), ERROR_INVALID_PARAMETER);
    let again = ndw_TlsAlloc();
    assert_eq!(get(ndw_TlsGetValue, again), (0, 0));
    assert_eq!(ndw_TlsFree(again), 1);
}

#[test]
fn no_index_beyond_the_last_slot_is_taken() {
    for index in [1088, OUT_OF_INDEXES] {
        assert_eq!(get(ndw_TlsGetValue, index), (0, ERROR_INVALID_PARAMETER));
        assert_eq!(code(ndw_TlsSetValue(index, pointer(1))), ERROR_INVALID_PARAMETER);
        assert_eq!(code(ndw_TlsFree(index)), ERROR_INVALID_PARAMETER);
    }
}

#[test]
fn there_are_1088_slots_in_all() {
    let _alone = TLS.lock();
    let mut slots = Vec::new();
    loop {
        match ndw_TlsAlloc() {
            OUT_OF_INDEXES => break,
            index => slots.push(index),
        }
    }
    assert_eq!(last_error(), ERROR_NO_MORE_ITEMS);
    assert_eq!((slots.len(), slots.iter().max()), (1088, Some(&1087)));
    for (value, index) in slots.iter().enumerate() {
        assert_eq!(ndw_TlsSetValue(*index, pointer(value + 1)), 1);
    }
    for (value, index) in slots.iter().enumerate() {
        assert_eq!(ndw_TlsGetValue(*index).addr(), value + 1);
        assert_eq!(ndw_TlsFree(*index), 1);
    }
}

static SEEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

unsafe extern "C" fn see(value: *mut c_void) {
    SEEN.lock().unwrap().push(value.addr());
}

/// The values from `range` that the callback has seen, in order.
fn seen(range: std::ops::Range<usize>) -> Vec<usize> {
    let mut seen: Vec<_> =
        SEEN.lock().unwrap().iter().copied().filter(|value| range.contains(value)).collect();
    seen.sort_unstable();
    seen
}

fn fls_alloc() -> u32 {
    // SAFETY: a callback that is safe anywhere.
    unsafe { ndw_FlsAlloc(Some(see)) }
}

#[test]
fn a_callback_sees_the_value_of_a_thread_that_ends() {
    let _alone = TLS.lock();
    let (index, other, tls) = (fls_alloc(), fls_alloc(), ndw_TlsAlloc());
    thread::spawn(move || {
        assert_eq!(get(ndw_FlsGetValue, index), (0, 0));
        assert_eq!(ndw_FlsSetValue(index, pointer(100)), 1);
        assert_eq!(ndw_TlsSetValue(tls, pointer(5)), 1);
        assert_eq!(get(ndw_FlsGetValue, index), (100, 0));
        // One that is NULL again is not shown.
        assert_eq!([101, 0].map(|value| ndw_FlsSetValue(other, pointer(value))), [1, 1]);
    })
    .join()
    .unwrap();
    assert_eq!(seen(100..200), [100]);
    assert_eq!([ndw_FlsFree(index), ndw_FlsFree(other), ndw_TlsFree(tls)], [1; 3]);
    assert_eq!(seen(100..200), [100]);
}

unsafe extern "C" fn look(index: *mut c_void) {
    SEEN.lock().unwrap().push(ndw_FlsGetValue(index.addr() as u32).addr());
}

#[test]
fn a_callback_finds_the_values_of_other_slots() {
    // SAFETY: a callback that is safe anywhere; and none.
    let (plain, looks) = unsafe { (ndw_FlsAlloc(None), ndw_FlsAlloc(Some(look))) };
    thread::spawn(move || {
        assert_eq!(ndw_FlsSetValue(looks, pointer(plain as usize)), 1);
        assert_eq!(ndw_FlsSetValue(plain, pointer(400)), 1);
    })
    .join()
    .unwrap();
    assert_eq!(seen(400..500), [400]);
    assert_eq!([ndw_FlsFree(looks), ndw_FlsFree(plain)], [1; 2]);
}

#[test]
fn freeing_a_slot_shows_the_values_of_all_threads() {
    let index = fls_alloc();
    let (set, go_on) = (event(0, 0), event(0, 0));
    let other = thread::spawn(move || {
        assert_eq!(ndw_FlsSetValue(index, pointer(201)), 1);
        ndw_SetEvent(set);
        assert_eq!(wait(go_on, LONG), 0);
    });
    assert_eq!(wait(set, LONG), 0);
    assert_eq!(ndw_FlsSetValue(index, pointer(200)), 1);
    assert_eq!(ndw_FlsFree(index), 1);
    assert_eq!(seen(200..300), [200, 201]);
    ndw_SetEvent(go_on);
    other.join().unwrap();
    assert_eq!(seen(200..300), [200, 201]);
    [set, go_on].into_iter().for_each(close);
}

#[test]
fn slots_with_callbacks_that_are_not_allocated_are_refused() {
    let freed = fls_alloc();
    assert!(freed != 0 && ndw_FlsFree(freed) == 1);
    for index in [0, 4080, OUT_OF_INDEXES] {
        assert_eq!(get(ndw_FlsGetValue, index), (0, ERROR_INVALID_PARAMETER));
        assert_eq!(code(ndw_FlsSetValue(index, pointer(1))), ERROR_INVALID_PARAMETER);
        assert_eq!(code(ndw_FlsFree(index)), ERROR_INVALID_PARAMETER);
    }
}

#[test]
fn callbacks_have_run_when_a_thread_has_ended() {
    use crate::api::thread::*;
    unsafe extern "C-unwind" fn sets(index: *mut c_void) -> u32 {
        ndw_FlsSetValue(index.addr() as u32, pointer(300)) as u32
    }
    let index = fls_alloc();
    let parameter = pointer(index as usize);
    // SAFETY: a routine that is safe anywhere.
    let thread = unsafe { ndw_CreateThread(null(), 0, Some(sets), parameter, 0, std::ptr::null_mut()) };
    assert_eq!((wait(thread, LONG), seen(300..400)), (0, vec![300]));
    close(thread);
    assert_eq!(ndw_FlsFree(index), 1);
}
