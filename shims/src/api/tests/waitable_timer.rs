//! Waitable timers.

use super::*;
use crate::api::handle::ndw_DuplicateHandle;
use crate::api::handle::ndw_GetCurrentProcess;
use crate::api::registered_wait::{ndw_RegisterWaitForSingleObject, ndw_UnregisterWaitEx};
use crate::api::thread::{ndw_GetCurrentThread, ndw_QueueUserAPC, ndw_SleepEx};
use crate::api::threadpool::{
    Instance, ndw_CloseThreadpoolWait, ndw_CreateThreadpoolWait, ndw_SetThreadpoolWait,
    ndw_WaitForThreadpoolWaitCallbacks,
};
use crate::api::waitable_timer::*;
use crate::arguments::{In, Out, Text};
use crate::time::system_time;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

const MILLISECOND: i64 = 10_000;
const HOUR: i64 = 3_600_000 * MILLISECOND;

fn timer(manual: bool) -> RawHandle {
    ndw_CreateWaitableTimerW(null(), manual.into(), Text::NULL)
}

fn set(timer: RawHandle, due: i64, period: i32) -> u32 {
    // SAFETY: the due time is a local.
    code(unsafe { ndw_SetWaitableTimer(timer, (&due).into(), period, None, null_mut(), 0) })
}

fn now() -> i64 {
    let now = system_time();
    i64::from(now.high) << 32 | i64::from(now.low)
}

#[test]
fn a_timer_goes_off_no_earlier_than_it_is_due() {
    let timer = timer(false);
    for due in [|| -20 * MILLISECOND, || now() + 20 * MILLISECOND] {
        let begun = Instant::now();
        assert_eq!(set(timer, due(), 0), 0);
        assert_eq!(wait(timer, LONG), 0);
        // Two clocks: the time of day may be set a little meanwhile.
        assert!(begun.elapsed() >= Duration::from_millis(19));
        // It has used the one wait up.
        assert_eq!(wait(timer, 0), WAIT_TIMEOUT);
    }
    assert_eq!((set(timer, -1, 0), wait(timer, LONG)), (0, 0));
    // Times that have passed are due in the call: then, and in 1601.
    for due in [now() - HOUR, 0] {
        assert_eq!((set(timer, due, 0), wait(timer, 0), wait(timer, 0)), (0, 0, WAIT_TIMEOUT));
    }
    // And every period from then on.
    assert_eq!((set(timer, 0, 1), wait(timer, 0), wait(timer, LONG)), (0, 0, 0));
    close(timer);
}

#[test]
fn a_timer_goes_off_for_who_waits_though_its_last_handle_is_closed() {
    for all in [None, Some(false), Some(true)] {
        let timer = timer(true);
        std::thread::scope(|scope| {
            let (number, numbered) = std::sync::mpsc::channel();
            let waits = scope.spawn(move || {
                number.send(thread_id()).unwrap();
                all.map_or_else(|| wait(timer, LONG), |all| wait_many(&[timer], all, LONG))
            });
            until_asleep(numbered.recv().unwrap());
            assert_eq!(set(timer, -20 * MILLISECOND, 0), 0);
            close(timer);
            assert_eq!(waits.join().unwrap(), 0);
        });
    }
}

#[test]
fn a_timer_goes_off_for_what_is_called_though_its_last_handle_is_closed() {
    unsafe extern "C" fn note(context: *mut c_void, timed_out: u8) {
        // SAFETY: the test passes its calls, which outlive the wait.
        unsafe { Calls::note(context, timed_out.into()) };
    }
    unsafe extern "C" fn note_wait(_: *mut Instance, context: *mut c_void, _: RawHandle, result: u32) {
        // SAFETY: as above.
        unsafe { Calls::note(context, result) };
    }
    let calls = Calls::new(false);
    let timer_once = timer(false);
    let mut registered = RawHandle::NULL;
    // SAFETY: the calls outlive the wait.
    let done = unsafe {
        let context = calls.context();
        ndw_RegisterWaitForSingleObject(&mut registered, timer_once, Some(note), context, LONG, 0)
    };
    assert_eq!((done, set(timer_once, -20 * MILLISECOND, 0)), (1, 0));
    close(timer_once);
    assert_eq!(wait(calls.called, LONG), 0);
    assert_eq!(code(ndw_UnregisterWaitEx(registered, RawHandle::INVALID)), 0);
    let timer_once = timer(false);
    // SAFETY: the calls outlive the wait.
    let of_pool = unsafe { ndw_CreateThreadpoolWait(Some(note_wait), calls.context(), In::NULL) };
    ndw_SetThreadpoolWait(of_pool, timer_once, In::NULL);
    assert_eq!(set(timer_once, -20 * MILLISECOND, 0), 0);
    close(timer_once);
    assert_eq!(wait(calls.called, LONG), 0);
    ndw_WaitForThreadpoolWaitCallbacks(of_pool, 0);
    ndw_CloseThreadpoolWait(of_pool);
    assert_eq!(calls.log(), [0, 0]);
}

#[test]
fn a_manual_reset_timer_stays_set_until_it_is_set_again() {
    let timer = timer(true);
    assert_eq!(set(timer, -1, 0), 0);
    assert_eq!([wait(timer, LONG), wait(timer, 0)], [0, 0]);
    assert_eq!(ndw_CancelWaitableTimer(timer), 1);
    assert_eq!(wait(timer, 0), 0);
    assert_eq!((set(timer, -HOUR, 0), wait(timer, 0)), (0, WAIT_TIMEOUT));
    close(timer);
}

#[test]
fn a_period_sets_a_timer_again_and_again_until_it_is_cancelled() {
    let timer = timer(false);
    let begun = Instant::now();
    assert_eq!(set(timer, -5 * MILLISECOND, 10), 0);
    assert_eq!([(); 3].map(|()| wait(timer, LONG)), [0; 3]);
    assert!(begun.elapsed() >= Duration::from_millis(25));
    assert_eq!(ndw_CancelWaitableTimer(timer), 1);
    // What has gone off already may be left.
    wait(timer, 0);
    assert_eq!(wait(timer, 40), WAIT_TIMEOUT);
    close(timer);
}

#[test]
fn a_cancelled_timer_does_not_go_off() {
    let timer = timer(true);
    // It may be due before it is cancelled, if this thread is stopped.
    while {
        let set_at = Instant::now();
        assert_eq!(set(timer, -20 * MILLISECOND, 0), 0);
        assert_eq!([ndw_CancelWaitableTimer(timer), ndw_CancelWaitableTimer(timer)], [1, 1]);
        set_at.elapsed() >= Duration::from_millis(20)
    } {}
    assert_eq!(wait(timer, 60), WAIT_TIMEOUT);
    close(timer);
}

thread_local! {
    static CALLS: std::cell::RefCell<Vec<(usize, i64)>> = const { std::cell::RefCell::new(Vec::new()) };
}

unsafe extern "C" fn routine(argument: *mut c_void, low: u32, high: u32) {
    CALLS.with_borrow_mut(|calls| calls.push((argument.addr(), i64::from(high) << 32 | i64::from(low))));
}

#[test]
fn the_routine_runs_on_the_thread_that_set_the_timer_in_an_alertable_wait() {
    let (timer, due, begun) = (timer(true), -MILLISECOND, now());
    let argument = std::ptr::without_provenance_mut(7);
    // SAFETY: a routine that is safe anywhere.
    unsafe {
        assert_eq!(ndw_SetWaitableTimer(timer, (&due).into(), 0, Some(routine), argument, 0), 1);
        assert_eq!(wait(timer, LONG), 0);
        assert!(CALLS.take().is_empty());
        assert_eq!(ndw_SleepEx(INFINITE, 1), WAIT_IO_COMPLETION);
        let calls = CALLS.take();
        assert!(matches!(calls[..], [(7, time)] if time >= begun && time <= now()), "{calls:?}");
    }
    close(timer);
}

#[test]
fn what_a_timer_has_queued_goes_when_it_is_cancelled_or_set_again() {
    let (timer, due) = (timer(true), -MILLISECOND);
    let argument = std::ptr::without_provenance_mut(8);
    // SAFETY: a routine that is safe anywhere.
    let set_and_wait = || unsafe {
        assert_eq!(ndw_SetWaitableTimerEx(timer, (&due).into(), 0, Some(routine), argument, null(), 0), 1);
        assert_eq!(wait(timer, LONG), 0);
    };
    set_and_wait();
    assert_eq!(ndw_CancelWaitableTimer(timer), 1);
    assert_eq!((ndw_SleepEx(0, 1), ndw_SleepEx(20, 1)), (0, 0));
    // Calls of others stay, and come in their order.
    set_and_wait();
    extern "C" fn other(data: usize) {
        CALLS.with_borrow_mut(|calls| calls.push((data, 0)));
    }
    // SAFETY: a routine that is safe anywhere.
    let queue = |data| assert_eq!(unsafe { ndw_QueueUserAPC(Some(other), ndw_GetCurrentThread(), data) }, 1);
    [1, 2].into_iter().for_each(queue);
    assert_eq!(set(timer, -HOUR, 0), 0);
    assert_eq!(ndw_SleepEx(INFINITE, 1), WAIT_IO_COMPLETION);
    assert_eq!(CALLS.take(), [(1, 0), (2, 0)]);
    assert_eq!(ndw_SleepEx(20, 1), 0);
    // With the last handle it is cancelled.
    set_and_wait();
    let (me, mut second) = (ndw_GetCurrentProcess(), RawHandle::NULL);
    assert_eq!(ndw_DuplicateHandle(me, timer, me, Out::from(&mut second), 0, 0, 2), 1);
    close(second);
    assert_eq!((ndw_SleepEx(INFINITE, 1), CALLS.take().len()), (WAIT_IO_COMPLETION, 1));
    set_and_wait();
    close(timer);
    queue(3);
    assert_eq!((ndw_SleepEx(INFINITE, 1), CALLS.take()), (WAIT_IO_COMPLETION, vec![(3, 0)]));
}

#[test]
fn what_no_timer_can_do_is_refused() {
    let (timer, event) = (timer(false), event(0, 0));
    for (handle, period, error) in [
        (timer, -1, ERROR_INVALID_PARAMETER),
        (event, 0, ERROR_INVALID_HANDLE),
        (RawHandle::NULL, 0, ERROR_INVALID_HANDLE),
    ] {
        assert_eq!(set(handle, -1, period), error);
    }
    assert_eq!(code(ndw_CancelWaitableTimer(event)), ERROR_INVALID_HANDLE);
    // SAFETY: NULL is refused; no names.
    unsafe {
        assert_eq!(
            code(ndw_SetWaitableTimer(timer, In::NULL, 0, None, null_mut(), 0)),
            ERROR_INVALID_PARAMETER
        );
        assert_eq!(ndw_CreateWaitableTimerExW(null(), Text::NULL, 4, 0), RawHandle::NULL);
        assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
        // Nothing wakes the system: it is set all the same.
        assert_eq!(ndw_SetWaitableTimer(timer, (&-1).into(), 0, None, null_mut(), 1), 1);
        assert_eq!((last_error(), wait(timer, LONG)), (ERROR_NOT_SUPPORTED, 0));
        let named = c"ndcompat test: timer".into();
        let first = ndw_CreateWaitableTimerA(null(), 0, named);
        let second = ndw_OpenWaitableTimerA(0, 0, named);
        assert_eq!((set(first, -1, 0), wait(second, LONG)), (0, 0));
        [first, second, timer, event].into_iter().for_each(close);
    }
}

#[test]
fn a_timer_that_far_ahead_never_goes_off() {
    let timer = timer(false);
    for due in [i64::MAX, i64::MIN] {
        assert_eq!((set(timer, due, 0), wait(timer, 1)), (0, WAIT_TIMEOUT));
    }
    close(timer);
}
