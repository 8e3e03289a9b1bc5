//! `CONDITION_VARIABLE`.

use super::Deadline;
use super::atomic::{AtomicU32, Ordering::*};
use super::park::{Parked, oldest, park, unpark};

/// `CONDITION_VARIABLE`: the size of a pointer.
#[repr(C, align(8))]
#[derive(Default)]
pub struct ConditionVariable {
    /// Changed under the queue's lock only.
    sleepers: AtomicU32,
}

impl ConditionVariable {
    fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Releases a lock, sleeps, and acquires it again; `false` at the deadline.
    pub(crate) fn sleep(&self, deadline: Deadline, unlock: impl FnOnce(), lock: impl FnOnce()) -> bool {
        let announce = || {
            self.sleepers.fetch_add(1, SeqCst);
            true
        };
        let leave = || {
            self.sleepers.fetch_sub(1, SeqCst);
        };
        // The lock is released when this thread is in the queue, so a thread that changes the condition afterwards finds it
        // there.
        let parked = park(self.key(), 0, announce, unlock, leave, deadline);
        lock();
        parked == Parked::Woken
    }

    /// Wakes up to `count` threads, longest waiting first.
    pub fn wake(&self, count: usize) {
        if self.sleepers.load(SeqCst) != 0 {
            unpark(self.key(), oldest(count), |woken, _| {
                self.sleepers.fetch_sub(woken as u32, SeqCst);
            });
        }
    }

    #[cfg(test)]
    pub(super) fn sleepers(&self) -> u32 {
        self.sleepers.load(SeqCst)
    }
}
