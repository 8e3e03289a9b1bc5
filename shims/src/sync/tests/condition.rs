//! `CONDITION_VARIABLE`.

use super::INFINITE;
use crate::api::locks::*;
use crate::error::{ERROR_INVALID_PARAMETER, ERROR_TIMEOUT, last_error, set_last_error};
use crate::sync::condition::ConditionVariable;
use crate::sync::critical::CriticalSection;
use crate::sync::srw::SrwLock;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use std::thread;
use std::time::Instant;

#[test]
fn a_wait_times_out_with_the_lock_held() {
    let (condition, lock) = (ConditionVariable::default(), SrwLock::default());
    lock.write();
    let start = Instant::now();
    assert_eq!(ndw_SleepConditionVariableSRW(Some(&condition), Some(&lock), 20, 0), 0);
    assert_eq!(last_error(), ERROR_TIMEOUT);
    assert!(start.elapsed().as_millis() >= 20);
    assert!(!lock.try_read());
    lock.unlock_write();
    lock.read();
    assert_eq!(ndw_SleepConditionVariableSRW(Some(&condition), Some(&lock), 0, LOCKMODE_SHARED), 0);
    assert!(lock.try_read() && !lock.try_write());
    assert_eq!(ndw_SleepConditionVariableSRW(Some(&condition), Some(&lock), 0, 2), 0);
    assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
    let section = CriticalSection::new(0);
    section.enter();
    set_last_error(0);
    assert_eq!(ndw_SleepConditionVariableCS(Some(&condition), Some(&section), 5), 0);
    assert_eq!(last_error(), ERROR_TIMEOUT);
    assert_eq!(ndw_SleepConditionVariableCS(Some(&condition), None, 5), 0);
    assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
    assert!(!thread::scope(|scope| scope.spawn(|| section.try_enter()).join().unwrap()));
}

#[test]
fn one_wake_up_is_for_one_sleeper_and_none_is_kept() {
    let (condition, lock) = (ConditionVariable::default(), SrwLock::default());
    // Nobody sleeps: nothing is remembered.
    ndw_WakeConditionVariable(Some(&condition));
    lock.write();
    assert_eq!(ndw_SleepConditionVariableSRW(Some(&condition), Some(&lock), 5, 0), 0);
    lock.unlock_write();
    let awake = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                lock.write();
                assert_eq!(ndw_SleepConditionVariableSRW(Some(&condition), Some(&lock), INFINITE, 0), 1);
                awake.fetch_add(1, SeqCst);
                lock.unlock_write();
            });
        }
        while condition.sleepers() < 3 {
            thread::yield_now();
        }
        while condition.sleepers() > 0 {
            ndw_WakeConditionVariable(Some(&condition));
            thread::yield_now();
        }
    });
    assert_eq!(awake.into_inner(), 3);
}

#[test]
fn items_pass_through_a_queue() {
    let section = CriticalSection::new(0);
    let condition = ConditionVariable::default();
    // The section is what guards it; the mutex only tells the compiler so.
    let queue = Mutex::new(VecDeque::new());
    let pop = || {
        section.enter();
        let item = loop {
            // Taken out in a statement of its own: the mutex must be free while the thread sleeps.
            let front = queue.lock().unwrap().pop_front();
            match front {
                Some(item) => break item,
                None => ndw_SleepConditionVariableCS(Some(&condition), Some(&section), INFINITE),
            };
        };
        section.leave();
        item
    };
    let total: u64 = thread::scope(|scope| {
        let takers: Vec<_> = (0..3).map(|_| scope.spawn(|| (0..2_000).map(|_| pop()).sum::<u64>())).collect();
        for item in 0..6_000u64 {
            section.enter();
            queue.lock().unwrap().push_back(item);
            section.leave();
            condition.wake(1);
        }
        takers.into_iter().map(|taker| taker.join().unwrap()).sum()
    });
    assert_eq!(total, 6_000 * 5_999 / 2);
}

#[test]
fn all_sleepers_wake_at_once() {
    let (condition, lock) = (ConditionVariable::default(), SrwLock::default());
    let open = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                lock.read();
                while !open.load(Relaxed) {
                    let woken = {
                        ndw_SleepConditionVariableSRW(
                            Some(&condition),
                            Some(&lock),
                            INFINITE,
                            LOCKMODE_SHARED,
                        )
                    };
                    assert_eq!(woken, 1);
                }
                lock.unlock_read();
            });
        }
        while condition.sleepers() < 4 {
            thread::yield_now();
        }
        lock.write();
        open.store(true, Relaxed);
        lock.unlock_write();
        ndw_WakeAllConditionVariable(Some(&condition));
    });
}
