//! Semaphores.

use super::*;
use crate::api::semaphore::*;
use crate::arguments::{Out, Text};

fn semaphore(initial: i32, most: i32) -> RawHandle {
    ndw_CreateSemaphoreW(null(), initial, most, Text::NULL)
}

fn release(semaphore: RawHandle, more: i32) -> Result<i32, u32> {
    let mut before = -7;
    match code(ndw_ReleaseSemaphore(semaphore, more, (&mut before).into())) {
        0 => Ok(before),
        code => {
            assert_eq!(before, -7);
            Err(code)
        }
    }
}

#[test]
fn a_semaphore_counts_and_never_beyond_its_most() {
    let semaphore = semaphore(1, 3);
    assert_eq!(release(semaphore, 1), Ok(1));
    assert_eq!(release(semaphore, 2), Err(ERROR_TOO_MANY_POSTS));
    assert_eq!(release(semaphore, i32::MAX), Err(ERROR_TOO_MANY_POSTS));
    assert_eq!(release(semaphore, 1), Ok(2));
    assert_eq!([(); 4].map(|()| wait(semaphore, 0)), [0, 0, 0, WAIT_TIMEOUT]);
    assert_eq!(ndw_ReleaseSemaphore(semaphore, 3, Out::NULL), 1);
    close(semaphore);
}

#[test]
fn semaphores_that_cannot_be_are_refused() {
    for (initial, most) in [(-1, 1), (0, 0), (0, -1), (2, 1)] {
        set_last_error(0);
        assert_eq!((semaphore(initial, most), last_error()), (RawHandle::NULL, ERROR_INVALID_PARAMETER));
    }
    let event = event(0, 0);
    let semaphore = semaphore(0, 1);
    for (handle, more, error) in [
        (semaphore, 0, ERROR_INVALID_PARAMETER),
        (semaphore, -1, ERROR_INVALID_PARAMETER),
        (event, 1, ERROR_INVALID_HANDLE),
        (RawHandle::NULL, 1, ERROR_INVALID_HANDLE),
        (RawHandle::INVALID, 1, ERROR_INVALID_HANDLE),
    ] {
        assert_eq!(release(handle, more), Err(error));
    }
    // An event's functions are not a semaphore's.
    assert_eq!((ndw_SetEvent(semaphore), last_error()), (0, ERROR_INVALID_HANDLE));
    close(semaphore);
    assert_eq!(release(semaphore, 1), Err(ERROR_INVALID_HANDLE));
    close(event);
}

#[test]
fn a_release_ends_as_many_waits_as_it_says() {
    let (semaphore, done) = (semaphore(0, 10), semaphore(0, 10));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                assert_eq!(wait(semaphore, LONG), 0);
                release(done, 1).unwrap();
            });
        }
        assert_eq!(release(semaphore, 2), Ok(0));
        assert_eq!([0, 1].map(|_| wait(done, LONG)), [0, 0]);
        assert_eq!(wait(done, 20), WAIT_TIMEOUT);
        assert_eq!(release(semaphore, 1), Ok(0));
    });
    assert_eq!([wait(done, 0), wait(semaphore, 0)], [0, WAIT_TIMEOUT]);
    close(semaphore);
    close(done);
}

#[test]
fn a_wait_for_all_takes_one_of_each() {
    let (first, second, set) = (semaphore(2, 2), semaphore(0, 2), event(1, 1));
    let all = [first, second, set];
    assert_eq!(wait_many(&all, true, 5), WAIT_TIMEOUT);
    assert_eq!(release(second, 1), Ok(0));
    assert_eq!(wait_many(&all, true, 0), 0);
    assert_eq!((release(first, 1), release(second, 1)), (Ok(1), Ok(0)));
    assert_eq!(wait_many(&[second, first], false, 0), 0);
    assert_eq!(wait_many(&[second, first], false, 0), 1);
    all.into_iter().for_each(close);
}

#[test]
fn signalling_and_waiting_releases_any_kind_of_object() {
    let (semaphores, event) = ([semaphore(0, 1), semaphore(1, 1)], event(0, 0));
    let signal = |object, waited_for| ndw_SignalObjectAndWait(object, waited_for, 0, 0);
    assert_eq!(signal(semaphores[0], semaphores[1]), 0);
    assert_eq!((signal(semaphores[0], semaphores[1]), last_error()), (WAIT_FAILED, ERROR_TOO_MANY_POSTS));
    assert_eq!(release(semaphores[0], 1), Err(ERROR_TOO_MANY_POSTS));
    assert_eq!(release(semaphores[1], 1), Ok(0));
    assert_eq!([signal(event, semaphores[1]), signal(event, event)], [0, 0]);
    let mutex = crate::api::mutex::ndw_CreateMutexA(null(), 0, Text::NULL);
    assert_eq!((signal(mutex, event), last_error()), (WAIT_FAILED, ERROR_NOT_OWNER));
    assert_eq!([wait(mutex, 0), signal(mutex, event)], [0, WAIT_TIMEOUT]);
    for wrong in [RawHandle::NULL, ndw_GetCurrentProcess()] {
        assert_eq!((signal(wrong, event), last_error()), (WAIT_FAILED, ERROR_INVALID_HANDLE));
    }
    // What cannot be waited for signals nothing.
    assert_eq!((signal(event, RawHandle::NULL), last_error()), (WAIT_FAILED, ERROR_INVALID_HANDLE));
    assert_eq!(wait(event, 0), WAIT_TIMEOUT);
    semaphores.into_iter().chain([event, mutex]).for_each(close);
}
