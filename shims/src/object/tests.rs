//! Events, threads and waits through their C entry points.

use super::RawHandle;
use super::event::*;
use super::handle::*;
use super::thread::*;
use super::wait::*;
use crate::error::*;
use std::ffi::c_void;
use std::ptr::null;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const WAIT_FAILED: u32 = u32::MAX;

fn event(manual: i32, set: i32) -> RawHandle {
    let handle = ndw_CreateEventA(null(), manual, set, null());
    assert_ne!(handle, RawHandle::NULL);
    handle
}

fn wait_many(handles: &[RawHandle], all: i32, millis: u32) -> u32 {
    // SAFETY: the slice is valid.
    unsafe { ndw_WaitForMultipleObjects(handles.len() as u32, handles.as_ptr(), all, millis) }
}

fn close(handle: RawHandle) {
    assert_eq!(ndw_CloseHandle(handle), 1);
}

#[test]
fn manual_and_auto_reset() {
    let manual = event(1, 1);
    assert_eq!([0, 1].map(|_| ndw_WaitForSingleObject(manual, 0)), [0, 0]);
    assert_eq!(ndw_ResetEvent(manual), 1);
    assert_eq!(ndw_WaitForSingleObject(manual, 0), WAIT_TIMEOUT);
    let auto = event(0, 0);
    assert_eq!((ndw_SetEvent(auto), ndw_SetEvent(RawHandle(auto.0 | 1))), (1, 1));
    assert_eq!([0, 1].map(|_| ndw_WaitForSingleObject(auto, 0)), [0, WAIT_TIMEOUT]);
    let extended = ndw_CreateEventExW(null(), null(), 3, 0x1F0003);
    assert_eq!([0, 1].map(|_| ndw_WaitForSingleObjectEx(extended, 0, 1)), [0, 0]);
    [manual, auto, extended].into_iter().for_each(close);
}

#[test]
fn names_and_wrong_flags_are_refused() {
    let name = [b'x' as i32, 0];
    assert_eq!(ndw_CreateEventW(null(), 0, 0, name.as_ptr()), RawHandle::NULL);
    assert_eq!(last_error(), ERROR_NOT_SUPPORTED);
    assert_eq!(ndw_CreateEventExA(null(), null(), 4, 0), RawHandle::NULL);
    assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
}

#[test]
fn wrong_handles_fail() {
    let stale = event(0, 1);
    close(stale);
    for (result, failure) in [
        (ndw_SetEvent(stale) as u32, 0),
        (ndw_ResetEvent(RawHandle::NULL) as u32, 0),
        (ndw_WaitForSingleObject(stale, 0), WAIT_FAILED),
        (ndw_WaitForSingleObject(RawHandle::INVALID, 0), WAIT_FAILED),
        (wait_many(&[stale], 0, 0), WAIT_FAILED),
        (ndcompat_event_fd(stale) as u32, u32::MAX),
        (ndw_ResumeThread(stale), u32::MAX),
    ] {
        assert_eq!((result, last_error()), (failure, ERROR_INVALID_HANDLE));
    }
}

#[test]
fn a_wait_ends_no_earlier_than_its_time_out() {
    let event = event(0, 0);
    let begun = Instant::now();
    assert_eq!(ndw_WaitForSingleObject(event, 30), WAIT_TIMEOUT);
    assert!(begun.elapsed() >= Duration::from_millis(30));
    let begun = Instant::now();
    ndw_Sleep(20);
    assert!(begun.elapsed() >= Duration::from_millis(20));
    assert_eq!((ndw_SleepEx(1, 1), ndw_SwitchToThread()), (0, 1));
    close(event);
}

#[test]
fn the_first_of_several_set_events_is_taken_and_no_other() {
    let events = [event(0, 0), event(0, 1), event(0, 1)];
    assert_eq!(wait_many(&events, 0, 0), 1);
    assert_eq!(wait_many(&events, 0, u32::MAX), 2);
    assert_eq!(wait_many(&events, 0, 0), WAIT_TIMEOUT);
    events.into_iter().for_each(close);
}

#[test]
fn waiting_for_all_uses_up_nothing_until_all_are_set() {
    let events = [event(0, 1), event(1, 1), event(0, 0)];
    assert_eq!(wait_many(&events, 1, 0), WAIT_TIMEOUT);
    assert_eq!(wait_many(&events, 1, 5), WAIT_TIMEOUT);
    assert_eq!(ndw_WaitForSingleObject(events[0], 0), 0);
    ndw_SetEvent(events[0]);
    ndw_SetEvent(events[2]);
    assert_eq!(wait_many(&events, 1, 0), 0);
    assert_eq!(events.map(|event| ndw_WaitForSingleObject(event, 0)), [WAIT_TIMEOUT, 0, WAIT_TIMEOUT]);
    events.into_iter().for_each(close);
}

#[test]
fn the_number_of_objects_is_limited_and_all_must_differ() {
    let one = event(1, 1);
    assert_eq!(wait_many(&[one; 64], 0, 0), 0);
    for (handles, all) in [(&[one; 65][..], 0), (&[], 0), (&[one; 2], 1)] {
        assert_eq!((wait_many(handles, all, 0), last_error()), (WAIT_FAILED, ERROR_INVALID_PARAMETER));
    }
    close(one);
}

#[test]
fn an_auto_reset_event_passes_between_two_threads() {
    const ROUNDS: usize = 20_000;
    let (ping, pong) = (event(0, 0), event(0, 0));
    let other = std::thread::spawn(move || {
        for _ in 0..ROUNDS {
            assert_eq!(ndw_WaitForSingleObject(ping, 20_000), 0);
            ndw_SetEvent(pong);
        }
    });
    for _ in 0..ROUNDS {
        assert_eq!(ndw_SignalObjectAndWait(ping, pong, 20_000, 0), 0);
    }
    other.join().unwrap();
    [ping, pong].into_iter().for_each(close);
}

#[test]
fn each_set_of_an_auto_reset_event_releases_one_of_many() {
    const TURNS: usize = 2000;
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    let (turn, taken, stop) = (event(0, 0), event(0, 0), event(1, 0));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(move || {
                while wait_many(&[turn, stop], 0, u32::MAX) == 0 {
                    TAKEN.fetch_add(1, Ordering::SeqCst);
                    ndw_SetEvent(taken);
                }
            })
        })
        .collect();
    for done in 1..=TURNS {
        ndw_SetEvent(turn);
        assert_eq!(ndw_WaitForSingleObject(taken, 20_000), 0);
        assert_eq!(TAKEN.load(Ordering::SeqCst), done);
    }
    ndw_SetEvent(stop);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    [turn, taken, stop].into_iter().for_each(close);
}

unsafe extern "C-unwind" fn double(parameter: *mut c_void) -> u32 {
    parameter.addr() as u32 * 2
}

unsafe extern "C-unwind" fn exits(parameter: *mut c_void) -> u32 {
    // SAFETY: this frame and those below it hold nothing.
    unsafe { ndw_ExitThread(parameter.addr() as u32) }
}

unsafe extern "C-unwind" fn own_id(_parameter: *mut c_void) -> u32 {
    ndw_GetCurrentThreadId()
}

/// Starts a thread: its handle and number.
fn start(
    routine: unsafe extern "C-unwind" fn(*mut c_void) -> u32,
    parameter: usize,
    flags: u32,
) -> (RawHandle, u32) {
    let mut id = 0;
    let parameter = std::ptr::without_provenance_mut(parameter);
    // SAFETY: the routines above are safe anywhere.
    let handle = unsafe { ndw__beginthreadex(null(), 4096, Some(routine), parameter, flags, &mut id) };
    assert_ne!(handle, RawHandle::NULL);
    (handle, id)
}

fn exit_code(thread: RawHandle) -> u32 {
    let mut code = 0;
    // SAFETY: the code is a local.
    assert_eq!(unsafe { ndw_GetExitCodeThread(thread, &mut code) }, 1);
    code
}

#[test]
fn a_thread_returns_or_exits_with_a_code() {
    for (routine, code) in [(double as unsafe extern "C-unwind" fn(_) -> _, 42), (exits, 21)] {
        let (thread, _) = start(routine, 21, 0);
        assert_eq!(ndw_WaitForSingleObject(thread, 20_000), 0);
        assert_eq!(ndw_WaitForSingleObject(thread, 0), 0);
        assert_eq!(exit_code(thread), code);
        close(thread);
    }
}

#[test]
fn a_suspended_thread_waits_to_be_resumed() {
    let (thread, id) = start(own_id, 0, 4);
    assert_eq!(ndw_WaitForSingleObject(thread, 20), WAIT_TIMEOUT);
    assert_eq!(exit_code(thread), 259);
    assert_eq!([ndw_ResumeThread(thread), ndw_ResumeThread(thread)], [1, 0]);
    assert_eq!(ndw_WaitForSingleObject(thread, 20_000), 0);
    assert_eq!((exit_code(thread), ndw_GetThreadId(thread)), (id, id));
    assert_ne!(id, ndw_GetCurrentThreadId());
    close(thread);
}

#[test]
fn a_handle_to_a_thread_that_was_not_created_here() {
    let me = ndw_GetCurrentProcess();
    let thread = std::thread::spawn(move || {
        let mut real = RawHandle::NULL;
        // SAFETY: the target is a local.
        let duplicated = unsafe { ndw_DuplicateHandle(me, ndw_GetCurrentThread(), me, &mut real, 0, 0, 2) };
        assert_eq!((duplicated, ndw_GetThreadId(real)), (1, ndw_GetCurrentThreadId()));
        assert_eq!(ndw_WaitForSingleObject(ndw_GetCurrentThread(), 0), WAIT_TIMEOUT);
        real
    });
    let handle = thread.join().unwrap();
    assert_eq!(ndw_WaitForSingleObject(handle, 20_000), 0);
    assert_eq!(exit_code(handle), 0);
    close(handle);
    close(ndw_GetCurrentThread());
}
