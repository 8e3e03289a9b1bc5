//! Mutexes.

use super::*;
use crate::api::mutex::*;
use crate::arguments::Text;

fn mutex(owned: bool) -> RawHandle {
    ndw_CreateMutexW(null(), owned.into(), Text::NULL)
}

fn elsewhere<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(body).join().unwrap())
}

#[test]
fn the_owner_takes_a_mutex_again_and_releases_it_as_often() {
    let mutex = mutex(true);
    assert_eq!([wait(mutex, 0), wait_many(&[mutex], true, 0), wait(mutex, INFINITE)], [0, 0, 0]);
    for _ in 0..4 {
        assert_eq!(elsewhere(|| wait(mutex, 0)), WAIT_TIMEOUT);
        assert_eq!(elsewhere(|| code(ndw_ReleaseMutex(mutex))), ERROR_NOT_OWNER);
        assert_eq!(ndw_ReleaseMutex(mutex), 1);
    }
    assert_eq!(code(ndw_ReleaseMutex(mutex)), ERROR_NOT_OWNER);
    assert_eq!(elsewhere(|| [wait(mutex, 0) as i32, ndw_ReleaseMutex(mutex)]), [0, 1]);
    close(mutex);
    assert_eq!(code(ndw_ReleaseMutex(mutex)), ERROR_INVALID_HANDLE);
}

#[test]
fn who_waits_next_learns_that_a_mutex_was_abandoned() {
    let (mutex, other) = (mutex(false), event(0, 0));
    let abandon = || elsewhere(|| assert_eq!([wait(mutex, LONG), wait(mutex, LONG)], [0, 0]));
    abandon();
    assert_eq!(wait(mutex, 0), WAIT_ABANDONED);
    // It is the thread's own now, and was abandoned once.
    assert_eq!([wait(mutex, 0) as i32, ndw_ReleaseMutex(mutex), ndw_ReleaseMutex(mutex)], [0, 1, 1]);
    abandon();
    assert_eq!(wait_many(&[other, mutex], false, 0), WAIT_ABANDONED + 1);
    assert_eq!(ndw_ReleaseMutex(mutex), 1);
    abandon();
    ndw_SetEvent(other);
    assert_eq!(wait_many(&[other, mutex], true, 0), WAIT_ABANDONED);
    assert_eq!(ndw_ReleaseMutex(mutex), 1);
    close(mutex);
    close(other);
}

#[test]
fn a_thread_that_waits_gets_the_mutex_of_one_that_ends() {
    let (mutex, taken, me) = (mutex(false), event(0, 0), thread_id());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(wait(mutex, LONG), 0);
            ndw_SetEvent(taken);
            until_asleep(me);
        });
        assert_eq!([wait(taken, LONG), wait(mutex, LONG)], [0, WAIT_ABANDONED]);
    });
    assert_eq!(ndw_ReleaseMutex(mutex), 1);
    close(mutex);
    close(taken);
}

#[test]
fn one_thread_at_a_time_owns_a_mutex() {
    let mutex = mutex(true);
    let mut count = 0u64;
    let place = (&raw mut count).expose_provenance();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..5_000 {
                    assert_eq!(wait(mutex, LONG), 0);
                    // SAFETY: a local that only the owner of the mutex uses now.
                    unsafe { *std::ptr::with_exposed_provenance_mut::<u64>(place) += 1 };
                    assert_eq!(ndw_ReleaseMutex(mutex), 1);
                }
            });
        }
        assert_eq!(ndw_ReleaseMutex(mutex), 1);
    });
    assert_eq!(count, 15_000);
    close(mutex);
}

#[test]
fn unknown_flags_of_a_mutex_are_refused() {
    assert_eq!(ndw_CreateMutexExW(null(), Text::NULL, 2, 0), RawHandle::NULL);
    assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
    let mutex = ndw_CreateMutexExA(null(), Text::NULL, 1, 0);
    assert_eq!(ndw_ReleaseMutex(mutex), 1);
    close(mutex);
}
