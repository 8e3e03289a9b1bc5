//! `CreateTimerQueueTimer` and its kin.

use super::*;
use crate::api::timer_queue::*;
use std::ffi::c_void;

unsafe extern "C" fn note(context: *mut c_void, fired: u8) {
    // SAFETY: the tests pass their calls, which outlive the timer.
    unsafe { Calls::note(context, fired.into()) };
}

fn create(queue: RawHandle, calls: &Calls, due: u32, period: u32, flags: u32) -> Result<RawHandle, u32> {
    let mut timer = RawHandle::NULL;
    // SAFETY: the calls outlive the timer.
    let created = unsafe {
        ndw_CreateTimerQueueTimer(&mut timer, queue, Some(note), calls.context(), due, period, flags)
    };
    if created != 0 { Ok(timer) } else { Err(last_error()) }
}

const DEFAULT: RawHandle = RawHandle::NULL;
const BLOCKING: RawHandle = RawHandle::INVALID;

#[test]
fn timers_of_a_queue_call_once_or_again_and_again() {
    let (once, often, queue) = (Calls::new(false), Calls::new(false), ndw_CreateTimerQueue());
    let one = create(queue, &once, 1, 0, 0).unwrap();
    let flagged = create(queue, &once, 1, 1, 8).unwrap();
    create(DEFAULT, &often, 0, 1, 0)
        .map(|timer| {
            assert_eq!([(); 3].map(|()| wait(often.called, LONG)), [0; 3]);
            assert_eq!(code(ndw_DeleteTimerQueueTimer(DEFAULT, timer, BLOCKING)), 0);
        })
        .unwrap();
    assert_eq!([(); 2].map(|()| wait(once.called, LONG)), [0; 2]);
    assert_eq!((wait(once.called, 20), once.log()), (WAIT_TIMEOUT, vec![1, 1]));
    assert!(often.log().iter().all(|fired| *fired == 1));
    assert_eq!(code(ndw_DeleteTimerQueueTimer(queue, one, BLOCKING)), 0);
    assert_eq!(code(ndw_DeleteTimerQueueEx(queue, BLOCKING)), 0);
    // The queue's timers are gone with it.
    assert_eq!(code(ndw_ChangeTimerQueueTimer(DEFAULT, flagged, 1, 1)), ERROR_INVALID_HANDLE);
}

#[test]
fn a_timer_of_a_queue_can_be_set_anew_until_it_is_deleted() {
    let (calls, queue) = (Calls::new(false), ndw_CreateTimerQueue());
    let timer = create(queue, &calls, INFINITE, 0, 0).unwrap();
    assert_eq!(wait(calls.called, 20), WAIT_TIMEOUT);
    assert_eq!(ndw_ChangeTimerQueueTimer(queue, timer, 3_600_000, 0), 1);
    assert_eq!(ndw_ChangeTimerQueueTimer(queue, timer, 1, 3_600_000), 1);
    assert_eq!(wait(calls.called, LONG), 0);
    assert_eq!(ndw_ChangeTimerQueueTimer(queue, timer, 1, 0), 1);
    assert_eq!(wait(calls.called, LONG), 0);
    // It has no period, and is over.
    assert_eq!(ndw_ChangeTimerQueueTimer(queue, timer, 1, 1), 1);
    assert_eq!((wait(calls.called, 20), calls.log()), (WAIT_TIMEOUT, vec![1, 1]));
    assert_eq!(code(ndw_DeleteTimerQueueTimer(queue, timer, BLOCKING)), 0);
    assert_eq!(code(ndw_DeleteTimerQueue(queue)), 0);
}

#[test]
fn deleting_a_queue_waits_for_a_timer_that_deletes_itself() {
    struct Itself(Calls, std::sync::mpsc::Receiver<RawHandle>);
    unsafe extern "C" fn delete_itself(context: *mut c_void, _: u8) {
        // SAFETY: the test's own, which outlives the queue. Only one callback runs.
        let Itself(calls, timer) = unsafe { &*context.cast::<Itself>() };
        let deleted = ndw_DeleteTimerQueueTimer(DEFAULT, timer.recv().unwrap(), RawHandle::NULL);
        assert_eq!(code(deleted), ERROR_IO_PENDING);
        // SAFETY: as above.
        unsafe { Calls::note(calls.context(), 1) };
        calls.log.lock().unwrap().push(2);
    }
    let (tell, told) = std::sync::mpsc::channel();
    let (itself, queue) = (Itself(Calls::new(true), told), ndw_CreateTimerQueue());
    let (mut timer, context) = (RawHandle::NULL, std::ptr::from_ref(&itself).cast_mut().cast());
    // SAFETY: what it gets outlives the queue, which waits for it.
    let created =
        unsafe { ndw_CreateTimerQueueTimer(&mut timer, queue, Some(delete_itself), context, 0, 0, 0) };
    assert_eq!(created, 1);
    tell.send(timer).unwrap();
    assert_eq!(wait(itself.0.called, LONG), 0);
    std::thread::scope(|scope| {
        let (number, numbered) = std::sync::mpsc::channel();
        let deletes = scope.spawn(move || {
            number.send(thread_id()).unwrap();
            code(ndw_DeleteTimerQueueEx(queue, BLOCKING))
        });
        let number = numbered.recv().unwrap();
        while !deletes.is_finished() && !crate::io::sys::is_asleep(number) {
            std::thread::yield_now();
        }
        ndw_SetEvent(itself.0.go_on);
        assert_eq!(deletes.join().unwrap(), 0);
    });
    assert_eq!(itself.0.log(), [1, 2]);
}

#[test]
fn deleting_tells_when_the_last_callback_has_ended() {
    let (calls, ended) = (Calls::new(true), event(0, 0));
    let timer = create(DEFAULT, &calls, 0, 0, 0).unwrap();
    assert_eq!(wait(calls.called, LONG), 0);
    assert_eq!(code(ndw_DeleteTimerQueueTimer(DEFAULT, timer, ended)), ERROR_IO_PENDING);
    assert_eq!(wait(ended, 10), WAIT_TIMEOUT);
    ndw_SetEvent(calls.go_on);
    assert_eq!(wait(ended, LONG), 0);
    // The same for all timers of a queue.
    ndw_ResetEvent(calls.go_on);
    let queue = ndw_CreateTimerQueue();
    create(queue, &calls, 0, 0, 0).unwrap();
    assert_eq!(wait(calls.called, LONG), 0);
    assert_eq!(code(ndw_DeleteTimerQueueEx(queue, ended)), ERROR_IO_PENDING);
    assert_eq!(wait(ended, 10), WAIT_TIMEOUT);
    ndw_SetEvent(calls.go_on);
    assert_eq!(wait(ended, LONG), 0);
    close(ended);
}

#[test]
fn what_no_timer_of_a_queue_can_do_is_refused() {
    let (calls, event) = (Calls::new(false), event(0, 0));
    assert_eq!(create(event, &calls, 0, 0, 0), Err(ERROR_INVALID_HANDLE));
    // SAFETY: nothing is called.
    unsafe {
        let mut timer = RawHandle::NULL;
        let null = std::ptr::null_mut();
        for refused in [
            ndw_CreateTimerQueueTimer(&mut timer, DEFAULT, None, calls.context(), 0, 0, 0),
            ndw_CreateTimerQueueTimer(null, DEFAULT, Some(note), calls.context(), 0, 0, 0),
        ] {
            assert_eq!(code(refused), ERROR_INVALID_PARAMETER);
        }
    }
    for wrong in [event, RawHandle::NULL, RawHandle::INVALID] {
        assert_eq!(code(ndw_DeleteTimerQueueTimer(DEFAULT, wrong, BLOCKING)), ERROR_INVALID_HANDLE);
        assert_eq!(code(ndw_ChangeTimerQueueTimer(DEFAULT, wrong, 0, 0)), ERROR_INVALID_HANDLE);
        assert_eq!(code(ndw_DeleteTimerQueueEx(wrong, BLOCKING)), ERROR_INVALID_HANDLE);
    }
    close(event);
}
