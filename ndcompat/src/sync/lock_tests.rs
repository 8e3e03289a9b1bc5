//! The lock on threads of the system.

use crate::sync::lock::{Lock, MANY};
use crate::sync::{machine, membarrier};
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;

#[test]
fn one_thread_at_a_time() {
    const TIMES: usize = 20_000;
    let lock = Lock::new(0_usize, 0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..TIMES {
                    let mut value = lock.lock();
                    // Load and store separately, so that a lost update shows.
                    let seen = *value;
                    std::hint::black_box(&mut *value);
                    *value = seen + 1;
                }
            });
        }
    });
    assert_eq!(*lock.lock(), 4 * TIMES);
}

impl<T> Lock<T> {
    /// Whether this thread is the owner.
    fn is_own(&self) -> bool {
        let own = machine::enter(&self.bias);
        self.bias.inside.store(0, Ordering::Release);
        own
    }
}

/// A lock owned by this thread; `None` if the kernel does not have `membarrier`.
fn own(value: usize) -> Option<Lock<usize>> {
    membarrier::prepare();
    if !membarrier::is_available() {
        eprintln!("not tested: no membarrier(2)");
        return None;
    }
    let lock = Lock::new(value, 3);
    for _ in 0..3 {
        assert!(!lock.is_own());
        drop(lock.lock());
    }
    drop(lock.lock());
    assert!(lock.is_own());
    Some(lock)
}

#[test]
fn the_lock_is_biased_until_another_thread_takes_it() {
    let Some(lock) = own(7) else { return };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(!lock.is_own());
            *lock.lock() += 1;
        });
    });
    assert!(!lock.is_own());
    for _ in 0..10 {
        assert_eq!(*lock.lock(), 8);
    }
    assert!(!lock.is_own(), "once and for all");
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "has this lock already")]
fn a_thread_does_not_take_it_twice() {
    let lock = Lock::new(0, 0);
    let _held = lock.lock();
    let _again = lock.lock();
}

#[test]
fn threads_in_turns_have_no_owner() {
    membarrier::prepare();
    let lock = Lock::new(0, 3);
    for _ in 0..MANY {
        std::thread::scope(|scope| {
            scope.spawn(|| drop(lock.lock()));
        });
        drop(lock.lock());
    }
    for _ in 0..10 {
        drop(lock.lock());
    }
    assert!(!lock.is_own());
}

/// Another thread revokes the bias while the owner takes the lock, many times at varying moments.
#[test]
fn an_owner_and_a_newcomer_are_never_both_inside() {
    const MEETINGS: usize = 2000;
    for meeting in 0..MEETINGS {
        let Some(lock) = own(0) else { return };
        let (ready, done) = (AtomicU32::new(0), AtomicU32::new(0));
        let add = || {
            let mut value = lock.lock();
            let seen = *value;
            std::hint::black_box(&mut *value);
            *value = seen + 1;
        };
        let added = std::thread::scope(|scope| {
            scope.spawn(|| {
                ready.store(1, Ordering::Relaxed);
                // Wait for varying times, so that the owner is at different places.
                (0..100 + meeting % 100).for_each(|_| spin_loop());
                (0..100).for_each(|_| add());
                done.store(1, Ordering::Relaxed);
            });
            while ready.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            let mut added = 0;
            while done.load(Ordering::Relaxed) == 0 {
                add();
                added += 1;
            }
            added
        });
        assert_eq!(*lock.lock(), added + 100, "meeting {meeting}");
    }
}

fn thread_id() -> i32 {
    // SAFETY: takes no arguments.
    unsafe { libc::gettid() }
}

/// Waits until the kernel has the thread neither running nor ready to run: it waits for the lock.
fn until_asleep(thread: i32) {
    let stat = || std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
    while stat().rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('R')) {
        std::thread::yield_now();
    }
}

#[test]
fn an_owner_that_sleeps_is_waited_for() {
    let Some(lock) = own(1) else { return };
    std::thread::scope(|scope| {
        let mut held = lock.lock();
        let (tell, told) = channel();
        scope.spawn({
            let lock = &lock;
            move || {
                tell.send(thread_id()).unwrap();
                assert_eq!(*lock.lock(), 2);
            }
        });
        until_asleep(told.recv().unwrap());
        *held = 2;
        drop(held);
    });
    assert!(!lock.is_own());
}

#[test]
fn a_holder_that_sleeps_is_waited_for() {
    let lock = Lock::new(1, 0);
    std::thread::scope(|scope| {
        let mut held = lock.lock();
        let (tell, told) = channel();
        scope.spawn({
            let lock = &lock;
            move || {
                tell.send(thread_id()).unwrap();
                assert_eq!(*lock.lock(), 2);
            }
        });
        until_asleep(told.recv().unwrap());
        *held = 2;
    });
}
