//! `CONDITION_VARIABLE`.

use super::critical::CriticalSection;
use super::srw::SrwLock;
use super::{sleep, timed_out};
use crate::error::{ERROR_INVALID_PARAMETER, set_last_error};
use crate::futex::{self, ANYONE, Deadline};
use std::sync::atomic::{AtomicU32, Ordering::*};

/// `CONDITION_VARIABLE_LOCKMODE_SHARED`.
pub const LOCKMODE_SHARED: u32 = 1;

/// `CONDITION_VARIABLE`: the size of a pointer; zeroes are its initial state.
#[repr(C, align(8))]
#[derive(Default)]
pub struct ConditionVariable {
    /// Counts the wake-ups.
    wakes: AtomicU32,
    sleepers: AtomicU32,
}

const _: () = assert!(size_of::<ConditionVariable>() == 8);

impl ConditionVariable {
    /// Gives a lock back, sleeps, takes it again; `false` when the time passed without a wake-up.
    ///
    /// May return `true` for no reason, as on Windows.
    pub fn sleep(&self, milliseconds: u32, unlock: impl FnOnce(), lock: impl FnOnce()) -> bool {
        let deadline = Deadline::after_millis(milliseconds);
        // Both before the lock is given back: who changes the condition from then on sees a sleeper, and a
        // wake-up from then on changes the count.
        self.sleepers.fetch_add(1, SeqCst);
        let wakes = self.wakes.load(SeqCst);
        unlock();
        while self.wakes.load(SeqCst) == wakes && !deadline.passed() {
            sleep(&self.wakes, wakes, ANYONE, deadline);
        }
        let woken = self.wakes.load(SeqCst) != wakes;
        self.sleepers.fetch_sub(1, SeqCst);
        lock();
        woken
    }

    /// Wakes at most `count` sleepers.
    pub fn wake(&self, count: i32) {
        if self.sleepers.load(SeqCst) != 0 {
            self.wakes.fetch_add(1, SeqCst);
            futex::wake(&self.wakes, count, ANYONE);
        }
    }
}

fn result(woken: bool) -> i32 {
    if woken { 1 } else { timed_out() }
}

/// `InitializeConditionVariable`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_InitializeConditionVariable(condition: *mut ConditionVariable) {
    if !condition.is_null() {
        // SAFETY: room for a variable that nobody uses yet, by the function's contract.
        unsafe { condition.write(ConditionVariable::default()) };
    }
}

/// `SleepConditionVariableCS`: the section is left once, so it must have been entered once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_SleepConditionVariableCS(
    condition: *const ConditionVariable,
    section: *const CriticalSection,
    milliseconds: u32,
) -> i32 {
    // SAFETY: NULL or live objects by the function's contract.
    let (Some(condition), Some(section)) = (unsafe { (condition.as_ref(), section.as_ref()) }) else {
        set_last_error(ERROR_INVALID_PARAMETER);
        return 0;
    };
    result(condition.sleep(milliseconds, || section.leave(), || section.enter()))
}

/// `SleepConditionVariableSRW`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_SleepConditionVariableSRW(
    condition: *const ConditionVariable,
    lock: *const SrwLock,
    milliseconds: u32,
    flags: u32,
) -> i32 {
    // SAFETY: NULL or live objects by the function's contract.
    let (Some(condition), Some(lock)) = (unsafe { (condition.as_ref(), lock.as_ref()) }) else {
        set_last_error(ERROR_INVALID_PARAMETER);
        return 0;
    };
    result(if flags & LOCKMODE_SHARED != 0 {
        condition.sleep(milliseconds, || lock.unlock_read(), || lock.read())
    } else {
        condition.sleep(milliseconds, || lock.unlock_write(), || lock.write())
    })
}

/// `WakeConditionVariable`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WakeConditionVariable(condition: *const ConditionVariable) {
    // SAFETY: NULL or a live object by the function's contract.
    if let Some(condition) = unsafe { condition.as_ref() } {
        condition.wake(1);
    }
}

/// `WakeAllConditionVariable`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WakeAllConditionVariable(condition: *const ConditionVariable) {
    // SAFETY: NULL or a live object by the function's contract.
    if let Some(condition) = unsafe { condition.as_ref() } {
        condition.wake(i32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ERROR_TIMEOUT, last_error};
    use std::collections::VecDeque;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::Instant;

    const INFINITE: u32 = u32::MAX;

    #[test]
    fn a_wait_times_out_with_the_lock_held() {
        let (condition, lock) = (ConditionVariable::default(), SrwLock::default());
        lock.write();
        let start = Instant::now();
        // SAFETY: objects of ours.
        assert_eq!(unsafe { ndw_SleepConditionVariableSRW(&condition, &lock, 20, 0) }, 0);
        assert_eq!(last_error(), ERROR_TIMEOUT);
        assert!(start.elapsed().as_millis() >= 20);
        assert!(!lock.try_read());
        lock.unlock_write();
        lock.read();
        // SAFETY: objects of ours.
        assert_eq!(unsafe { ndw_SleepConditionVariableSRW(&condition, &lock, 0, LOCKMODE_SHARED) }, 0);
        assert!(lock.try_read() && !lock.try_write());
        let section = CriticalSection::new(0);
        section.enter();
        set_last_error(0);
        // SAFETY: objects of ours, or NULL.
        unsafe {
            assert_eq!(ndw_SleepConditionVariableCS(&condition, &section, 5), 0);
            assert_eq!(last_error(), ERROR_TIMEOUT);
            assert_eq!(ndw_SleepConditionVariableCS(&condition, std::ptr::null(), 5), 0);
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
        }
        assert!(!thread::scope(|scope| scope.spawn(|| section.try_enter()).join().unwrap()));
    }

    #[test]
    fn one_wake_up_is_for_one_sleeper_and_none_is_kept() {
        let (condition, lock) = (ConditionVariable::default(), SrwLock::default());
        // SAFETY: objects of ours.
        unsafe {
            // Nobody sleeps: nothing is remembered.
            ndw_WakeConditionVariable(&condition);
            lock.write();
            assert_eq!(ndw_SleepConditionVariableSRW(&condition, &lock, 5, 0), 0);
            lock.unlock_write();
        }
        let awake = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    lock.write();
                    // SAFETY: objects of ours.
                    assert_eq!(unsafe { ndw_SleepConditionVariableSRW(&condition, &lock, INFINITE, 0) }, 1);
                    awake.fetch_add(1, SeqCst);
                    lock.unlock_write();
                });
            }
            while condition.sleepers.load(SeqCst) < 3 {
                thread::yield_now();
            }
            while condition.sleepers.load(SeqCst) > 0 {
                // SAFETY: an object of ours.
                unsafe { ndw_WakeConditionVariable(&condition) };
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
                    // SAFETY: objects of ours.
                    None => unsafe { ndw_SleepConditionVariableCS(&condition, &section, INFINITE) },
                };
            };
            section.leave();
            item
        };
        let total: u64 = thread::scope(|scope| {
            let takers: Vec<_> =
                (0..3).map(|_| scope.spawn(|| (0..2_000).map(|_| pop()).sum::<u64>())).collect();
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
                        // SAFETY: objects of ours.
                        let woken = unsafe {
                            ndw_SleepConditionVariableSRW(&condition, &lock, INFINITE, LOCKMODE_SHARED)
                        };
                        assert_eq!(woken, 1);
                    }
                    lock.unlock_read();
                });
            }
            while condition.sleepers.load(SeqCst) < 4 {
                thread::yield_now();
            }
            lock.write();
            open.store(true, Relaxed);
            lock.unlock_write();
            // SAFETY: an object of ours.
            unsafe { ndw_WakeAllConditionVariable(&condition) };
        });
    }
}
