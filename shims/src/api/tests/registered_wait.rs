//! `RegisterWaitForSingleObject`, `QueueUserWorkItem`.

use super::*;
use crate::api::registered_wait::*;
use crate::arguments::Text;
use std::ffi::c_void;

unsafe extern "C" fn note(context: *mut c_void, timed_out: u8) {
    // SAFETY: the tests pass their calls, which outlive the wait.
    unsafe { Calls::note(context, timed_out.into()) };
}

fn register(object: RawHandle, calls: &Calls, millis: u32, flags: u32) -> Result<RawHandle, u32> {
    let mut wait = RawHandle::NULL;
    // SAFETY: the calls outlive the wait.
    let registered = unsafe {
        ndw_RegisterWaitForSingleObject(&mut wait, object, Some(note), calls.context(), millis, flags)
    };
    if registered != 0 { Ok(wait) } else { Err(last_error()) }
}

const ONCE: u32 = 8;

#[test]
fn each_time_the_object_is_set_the_callback_is_called() {
    let (calls, object) = (Calls::new(false), event(0, 1));
    let registered = register(object, &calls, INFINITE, 0).unwrap();
    for _ in 0..3 {
        assert_eq!(wait(calls.called, LONG), 0);
        ndw_SetEvent(object);
    }
    assert_eq!(wait(calls.called, LONG), 0);
    // Each has used the event up.
    assert_eq!(code(ndw_UnregisterWaitEx(registered, RawHandle::INVALID)), 0);
    assert_eq!((wait(object, 0), calls.log()), (WAIT_TIMEOUT, vec![0; 4]));
    ndw_SetEvent(object);
    assert_eq!((wait(calls.called, 20), wait(object, 0)), (WAIT_TIMEOUT, 0));
    close(object);
}

#[test]
fn the_callback_learns_that_it_was_the_time_that_came() {
    let (calls, object) = (Calls::new(false), event(0, 0));
    let registered = register(object, &calls, 5, 0).unwrap();
    assert_eq!([(); 2].map(|()| wait(calls.called, LONG)), [0; 2]);
    assert_eq!(code(ndw_UnregisterWaitEx(registered, RawHandle::INVALID)), 0);
    let log = calls.log();
    assert!(log.len() >= 2 && log.iter().all(|timed_out| *timed_out == 1), "{log:?}");
    close(object);
}

#[test]
fn a_wait_for_once_ends_with_its_first_callback() {
    let (calls, object) = (Calls::new(false), event(1, 1));
    let registered = register(object, &calls, 1, ONCE).unwrap();
    assert_eq!([wait(calls.called, LONG), wait(calls.called, 30)], [0, WAIT_TIMEOUT]);
    assert_eq!((code(ndw_UnregisterWaitEx(registered, RawHandle::INVALID)), calls.log()), (0, vec![0]));
    assert_eq!(code(ndw_UnregisterWait(registered)), ERROR_INVALID_HANDLE);
    close(object);
}

#[test]
fn unregistering_tells_when_the_last_callback_has_ended() {
    for blocking in [false, true] {
        let (calls, object, ended) = (Calls::new(true), event(0, 1), event(0, 0));
        let registered = register(object, &calls, INFINITE, 0).unwrap();
        assert_eq!(wait(calls.called, LONG), 0);
        if blocking {
            std::thread::scope(|scope| {
                let (tell, told) = std::sync::mpsc::channel();
                let other = scope.spawn(move || {
                    tell.send(thread_id()).unwrap();
                    code(ndw_UnregisterWaitEx(registered, RawHandle::INVALID))
                });
                until_asleep(told.recv().unwrap());
                assert!(!other.is_finished());
                ndw_SetEvent(calls.go_on);
                assert_eq!(other.join().unwrap(), 0);
            });
        } else {
            assert_eq!(code(ndw_UnregisterWaitEx(registered, ended)), ERROR_IO_PENDING);
            assert_eq!(wait(ended, 10), WAIT_TIMEOUT);
            ndw_SetEvent(calls.go_on);
            assert_eq!(wait(ended, LONG), 0);
        }
        ndw_SetEvent(object);
        assert_eq!((wait(calls.called, 10), calls.log()), (WAIT_TIMEOUT, vec![0]));
        [object, ended].into_iter().for_each(close);
    }
}

#[test]
fn what_cannot_be_registered_is_refused() {
    let (calls, object) = (Calls::new(false), event(0, 0));
    let mutex = crate::api::mutex::ndw_CreateMutexA(null(), 0, Text::NULL);
    assert_eq!(register(mutex, &calls, 0, 0), Err(ERROR_NOT_SUPPORTED));
    assert_eq!(register(RawHandle::NULL, &calls, 0, 0), Err(ERROR_INVALID_HANDLE));
    // SAFETY: `wait` is a local, and a callback is either missing or only notes the call in `calls`, which lives on.
    unsafe {
        let mut wait = RawHandle::NULL;
        let refused = ndw_RegisterWaitForSingleObject(&mut wait, object, None, calls.context(), 0, 0);
        assert_eq!(code(refused), ERROR_INVALID_PARAMETER);
        let null = std::ptr::null_mut();
        let refused = ndw_RegisterWaitForSingleObject(null, object, Some(note), calls.context(), 0, 0);
        assert_eq!(code(refused), ERROR_INVALID_PARAMETER);
        assert_eq!(code(ndw_QueueUserWorkItem(None, null.cast(), 0)), ERROR_INVALID_PARAMETER);
    }
    // A registration is no object, and no object is a registration.
    let registered = register(object, &calls, INFINITE, 0).unwrap();
    assert_eq!((code(close_handle(registered)), wait(registered, 0)), (ERROR_INVALID_HANDLE, WAIT_FAILED));
    for wrong in [object, RawHandle::NULL, RawHandle::INVALID] {
        assert_eq!(code(ndw_UnregisterWait(wrong)), ERROR_INVALID_HANDLE);
    }
    assert_eq!(code(ndw_UnregisterWaitEx(registered, mutex)), ERROR_INVALID_HANDLE);
    assert_eq!(code(ndw_UnregisterWait(registered)), 0);
    [object, mutex].into_iter().for_each(close);
}

#[test]
fn a_work_item_runs_on_another_thread() {
    unsafe extern "C" fn work(context: *mut c_void) -> u32 {
        // SAFETY: the test passes its calls, and waits for this.
        unsafe { Calls::note(context, crate::api::thread::ndw_GetCurrentThreadId()) };
        0
    }
    let calls = Calls::new(false);
    // SAFETY: the calls outlive the routine's use of them.
    unsafe { assert_eq!(ndw_QueueUserWorkItem(Some(work), calls.context(), 0), 1) };
    assert_eq!(wait(calls.called, LONG), 0);
    assert_ne!(calls.log(), [crate::api::thread::ndw_GetCurrentThreadId()]);
    // The routine may still wait for one of the handles: they stay open.
    std::mem::forget(calls);
}
