//! Events, threads and waits through their C entry points.

use super::{WAIT_FAILED, close, until_asleep};
use crate::api::event::*;
use crate::api::handle::*;
use crate::api::thread::*;
use crate::api::wait::*;
use crate::arguments::{Out, Text};
use crate::error::*;
use crate::io::sys::thread_id;
use crate::object::RawHandle;
use std::ffi::c_void;
use std::ptr::null;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn event(manual: i32, set: i32) -> RawHandle {
    let handle = ndw_CreateEventA(null(), manual, set, Text::NULL);
    assert_ne!(handle, RawHandle::NULL);
    handle
}

fn wait_many(handles: &[RawHandle], all: i32, millis: u32) -> u32 {
    // SAFETY: a slice's own address and length.
    unsafe { ndw_WaitForMultipleObjects(handles.len() as u32, handles.as_ptr(), all, millis) }
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
    let extended = ndw_CreateEventExW(null(), Text::NULL, 3, 0x1F0003);
    assert_eq!([0, 1].map(|_| ndw_WaitForSingleObjectEx(extended, 0, 1)), [0, 0]);
    [manual, auto, extended].into_iter().for_each(close);
}

#[test]
fn an_event_that_nobody_else_has_made_leaves_no_error_and_wrong_flags_are_refused() {
    assert_eq!(ndw_CreateEventExA(null(), Text::NULL, 4, 0), RawHandle::NULL);
    assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
    close(ndw_CreateEventA(null(), 0, 0, c"".into()));
    assert_eq!(last_error(), ERROR_SUCCESS);
}

#[test]
fn wrong_handles_fail() {
    let (stale, set) = (event(0, 1), event(0, 1));
    close(stale);
    for (result, failure) in [
        (ndw_SetEvent(stale) as u32, 0),
        (ndw_ResetEvent(RawHandle::NULL) as u32, 0),
        (ndw_WaitForSingleObject(stale, 0), WAIT_FAILED),
        (ndw_SignalObjectAndWait(stale, stale, 0, 0), WAIT_FAILED),
        (wait_many(&[stale], 0, 0), WAIT_FAILED),
        (wait_many(&[set, stale], 0, 0), WAIT_FAILED),
        (wait_many(&[set, ndw_GetCurrentThread()], 1, 0), WAIT_FAILED),
        (wait_many(&[set, ndw_GetCurrentProcess()], 0, 0), WAIT_FAILED),
        (ndw_SetEvent(ndw_GetCurrentThread()) as u32, 0),
        (ndcompat_event_fd(stale) as u32, u32::MAX),
        (ndw_ResumeThread(stale), u32::MAX),
    ] {
        assert_eq!((result, last_error()), (failure, ERROR_INVALID_HANDLE));
    }
    // The failed waits used nothing up.
    assert_eq!(ndw_WaitForSingleObject(set, 0), 0);
    close(set);
}

#[test]
fn pseudo_handles_can_be_waited_for_one_at_a_time() {
    assert_eq!(ndw_WaitForSingleObject(ndw_GetCurrentProcess(), 0), WAIT_TIMEOUT);
    assert_eq!(ndw_WaitForSingleObject(ndw_GetCurrentProcess(), 5), WAIT_TIMEOUT);
    assert_eq!(ndw_WaitForSingleObject(ndw_GetCurrentThread(), 5), WAIT_TIMEOUT);
    [ndw_GetCurrentProcess(), ndw_GetCurrentThread()].into_iter().for_each(close);
}

#[test]
fn success_and_time_outs_leave_the_last_error_alone() {
    let [auto, manual] = [event(0, 0), event(1, 1)];
    set_last_error(0xBEEF);
    let _ = (ndw_SetEvent(auto), ndw_WaitForSingleObject(auto, 0), ndw_ResetEvent(auto));
    for tag in 0..4 {
        assert_eq!(ndw_WaitForSingleObject(RawHandle(manual.0 | tag), 0), 0);
        assert_eq!(ndw_WaitForSingleObject(RawHandle(auto.0 | tag), 1), WAIT_TIMEOUT);
    }
    assert_eq!((wait_many(&[auto, manual], 0, 0), wait_many(&[auto, manual], 1, 1)), (1, WAIT_TIMEOUT));
    let (thread, _) = start(own_id, 0, 0);
    assert_eq!(ndw_WaitForSingleObject(thread, 20_000), 0);
    exit_code(thread);
    [auto, manual, thread].into_iter().for_each(close);
    assert_eq!(last_error(), 0xBEEF);
}

#[test]
fn a_closed_handle_does_not_end_the_wait() {
    let me = ndw_GetCurrentProcess();
    let (waited_for, mut other) = (event(0, 0), RawHandle::NULL);
    assert_eq!(ndw_DuplicateHandle(me, waited_for, me, Out::from(&mut other), 0, 0, 2), 1);
    let (tell, told) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || {
        tell.send(thread_id()).unwrap();
        ndw_WaitForSingleObject(waited_for, 20_000)
    });
    until_asleep(told.recv().unwrap());
    close(waited_for);
    assert_eq!((ndw_SetEvent(other), waiter.join().unwrap()), (1, 0));
    close(other);
}

#[test]
fn sixty_four_objects_and_the_lowest_first() {
    let events: Vec<_> = (0..64).map(|n| event((n == 0).into(), 1)).collect();
    // A manual-reset event stays set, and those behind it are not touched.
    assert_eq!([0, 1].map(|_| wait_many(&events, 0, 0)), [0, 0]);
    ndw_ResetEvent(events[0]);
    for n in 1..64 {
        assert_eq!(wait_many(&events, 0, 0), n);
    }
    assert_eq!(wait_many(&events, 0, 0), WAIT_TIMEOUT);
    events.iter().for_each(|&event| assert_eq!(ndw_SetEvent(event), 1));
    assert_eq!(wait_many(&events, 1, 0), 0);
    // All the auto-reset ones are used up.
    assert_eq!(wait_many(&events[1..], 0, 0), WAIT_TIMEOUT);
    events.into_iter().for_each(close);
}

#[test]
fn a_wait_for_all_takes_them_in_one_step() {
    let events = [event(0, 0), event(0, 0)];
    let waiter = std::thread::spawn(move || wait_many(&events, 1, 20_000));
    // Time and again one of them only: it stays set for others.
    for _ in 0..200 {
        ndw_SetEvent(events[0]);
        assert_eq!(ndw_WaitForSingleObject(events[0], 0), 0);
        ndw_SetEvent(events[1]);
        assert_eq!(ndw_WaitForSingleObject(events[1], 0), 0);
    }
    ndw_SetEvent(events[1]);
    ndw_SetEvent(events[0]);
    assert_eq!(waiter.join().unwrap(), 0);
    assert_eq!(wait_many(&events, 0, 0), WAIT_TIMEOUT);
    events.into_iter().for_each(close);
}

#[test]
fn two_handles_of_one_object_are_the_same_to_a_wait_for_all() {
    let me = ndw_GetCurrentProcess();
    let (one, mut other) = (event(1, 1), RawHandle::NULL);
    assert_eq!(ndw_DuplicateHandle(me, one, me, Out::from(&mut other), 0, 0, 2), 1);
    assert_eq!((wait_many(&[one, other], 1, 0), last_error()), (WAIT_FAILED, ERROR_INVALID_PARAMETER));
    assert_eq!(wait_many(&[one, other], 0, 0), 0);
    [one, other].into_iter().for_each(close);
}

#[test]
fn a_thread_runs_on_without_a_handle() {
    unsafe extern "C-unwind" fn sets(event: *mut c_void) -> u32 {
        ndw_SetEvent(RawHandle(event.addr())) as u32
    }
    let done = event(0, 0);
    let (thread, id) = start(sets, done.0, 4);
    assert_eq!((ndw_GetThreadId(thread), ndw_ResumeThread(thread)), (id, 1));
    close(thread);
    assert_eq!(ndw_WaitForSingleObject(done, 20_000), 0);
    close(done);
}

#[test]
fn an_exit_code_may_look_like_that_of_a_running_thread() {
    let (thread, _) = start(exits, 259, 0);
    assert_eq!(ndw_WaitForSingleObject(thread, 20_000), 0);
    assert_eq!(exit_code(thread), 259);
    // SAFETY: NULL is refused.
    assert_eq!(unsafe { ndw_GetExitCodeThread(thread, std::ptr::null_mut()) }, 0);
    close(thread);
    let mut code = 7;
    // SAFETY: the code is a local.
    assert_eq!(unsafe { ndw_GetExitCodeThread(thread, &mut code) }, 0);
    assert_eq!((code, last_error()), (7, ERROR_INVALID_HANDLE));
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
    ndw_Sleep(0);
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
        let duplicated = ndw_DuplicateHandle(me, ndw_GetCurrentThread(), me, Out::from(&mut real), 0, 0, 2);
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

#[test]
fn a_thread_is_opened_by_its_number_while_it_runs() {
    unsafe extern "C-unwind" fn wait_for_it(event: *mut c_void) -> u32 {
        ndw_WaitForSingleObject(RawHandle(event.addr()), super::LONG);
        7
    }
    let event = event(1, 0);
    let mut number = 0;
    let parameter = std::ptr::without_provenance_mut(event.0);
    // SAFETY: the routine takes a handle.
    let created = unsafe { ndw_CreateThread(null(), 0, Some(wait_for_it), parameter, 0, &mut number) };
    let opened = ndw_OpenThread(0x1F_FFFF, 0, number);
    assert!(opened != RawHandle::NULL && opened != created);
    assert_eq!((ndw_GetThreadId(opened), ndw_WaitForSingleObject(opened, 0)), (number, WAIT_TIMEOUT));
    close(created);
    assert_eq!(ndw_SetEvent(event), 1);
    assert_eq!(ndw_WaitForSingleObject(opened, super::LONG), 0);
    let mut code = 0;
    // SAFETY: a place of ours.
    assert_eq!((unsafe { ndw_GetExitCodeThread(opened, &mut code) }, code), (1, 7));
    // One that has ended is known by its handles alone, one that never was by none.
    for gone in [number, 0, u32::MAX] {
        assert_eq!((ndw_OpenThread(0, 0, gone), last_error()), (RawHandle::NULL, ERROR_INVALID_PARAMETER));
    }
    let own = ndw_OpenThread(0, 0, ndw_GetCurrentThreadId());
    assert_eq!(ndw_GetThreadId(own), ndw_GetCurrentThreadId());
    [opened, own, event].into_iter().for_each(close);
}
