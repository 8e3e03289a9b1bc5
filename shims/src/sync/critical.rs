//! `CRITICAL_SECTION`: a recursive lock.

use super::atomic::{AtomicU32, AtomicUsize, Ordering::*};
use super::park::{oldest, park, unpark};
use super::{Deadline, thread_id};

/// `LockCount` of a free section without waiters; bit 0 is clear while the section is held.
pub const FREE: u32 = !0;
const HELD: u32 = FREE - 1;
/// Subtracted from `LockCount` by each waiting thread.
const WAITER: u32 = 4;
/// `LockCount` in zeroed, uninitialised memory: also free. No other section has this value.
const ZEROED: u32 = 0;

/// `DebugInfo` of a section without debug information, as on Windows by default.
const NO_DEBUG_INFO: usize = usize::MAX;
/// The default spin count, as on Windows.
pub const DEFAULT_SPINS: usize = 2000;
/// The part of `SpinCount` that is the count.
pub const MAX_SPINS: usize = 0x00FF_FFFF;
/// The flag that Windows shows in `SpinCount` when the count is its own.
pub const DYNAMIC_SPIN: usize = 0x0200_0000;

/// `CRITICAL_SECTION`, with Windows' fields and their values. All zero is a free section, initialised or not.
#[repr(C)]
pub struct CriticalSection {
    /// `DebugInfo`.
    pub debug_info: AtomicUsize,
    /// `LockCount`: see [`FREE`].
    pub lock_count: AtomicU32,
    /// `RecursionCount`: how often the owner has entered.
    pub recursion: AtomicU32,
    /// `OwningThread`: the owner's thread id.
    pub owner: AtomicUsize,
    /// `LockSemaphore`: unused.
    pub semaphore: AtomicUsize,
    /// `SpinCount`.
    pub spins: AtomicUsize,
}

fn is_free(count: u32) -> bool {
    count & 1 != 0 || count == ZEROED
}

impl CriticalSection {
    /// A free section. `spins` is what `SpinCount` holds.
    pub const fn new(spins: usize) -> CriticalSection {
        CriticalSection {
            debug_info: AtomicUsize::new(NO_DEBUG_INFO),
            lock_count: AtomicU32::new(FREE),
            recursion: AtomicU32::new(0),
            owner: AtomicUsize::new(0),
            semaphore: AtomicUsize::new(0),
            spins: AtomicUsize::new(spins),
        }
    }

    fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Sets `SpinCount`; returns the previous one.
    pub fn set_spins(&self, spins: usize) -> usize {
        self.spins.swap(spins, Relaxed)
    }

    /// The state after `DeleteCriticalSection`: a section that can still be entered, as that costs nothing.
    pub fn delete(&self) {
        self.debug_info.store(0, Relaxed);
    }

    /// Enters once more if the thread with the id `me` is inside. Only the thread itself stores its id, so the value read is
    /// conclusive.
    #[inline]
    fn enter_again(&self, me: usize) -> bool {
        let inside = self.owner.load(Relaxed) == me;
        if inside {
            self.recursion.store(self.recursion.load(Relaxed) + 1, Relaxed);
        }
        inside
    }

    /// Records the owner.
    #[inline]
    fn own(&self, me: usize) {
        self.owner.store(me, Relaxed);
        self.recursion.store(1, Relaxed);
    }

    /// Enters, once more when the thread is inside already.
    #[inline]
    pub fn enter(&self) {
        let me = thread_id() as usize;
        if self.lock_count.compare_exchange(FREE, HELD, Acquire, Relaxed).is_err() {
            if self.enter_again(me) {
                return;
            }
            self.lock();
        }
        self.own(me);
    }

    /// Enters if no other thread is inside.
    #[inline]
    pub fn try_enter(&self) -> bool {
        let me = thread_id() as usize;
        if self.enter_again(me) {
            return true;
        }
        let taken = self.try_lock(0);
        if taken {
            self.own(me);
        }
        taken
    }

    /// Leaves once. A thread that is not inside changes nothing.
    #[inline]
    pub fn leave(&self) {
        if self.owner.load(Relaxed) != thread_id() as usize {
            return;
        }
        let recursion = self.recursion.load(Relaxed) - 1;
        self.recursion.store(recursion, Relaxed);
        if recursion == 0 {
            self.owner.store(0, Relaxed);
            if self.lock_count.compare_exchange(HELD, FREE, Release, Relaxed).is_err() {
                self.unlock();
            }
        }
    }

    /// Takes the lock if it is free, for a thread that is counted by `waiting` as a waiter.
    fn try_lock(&self, waiting: u32) -> bool {
        let mut count = self.lock_count.load(Relaxed);
        while is_free(count) {
            let held = if count == ZEROED { HELD } else { count - 1 };
            match self.lock_count.compare_exchange_weak(count, held + waiting, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => count = now,
            }
        }
        false
    }

    #[cold]
    fn lock(&self) {
        for _ in 0..=self.spins.load(Relaxed) & MAX_SPINS {
            if self.try_lock(0) {
                return;
            }
            std::hint::spin_loop();
        }
        // A thread was inside, so it is no longer `ZEROED`.
        self.lock_count.fetch_sub(WAITER, Relaxed);
        while !self.try_lock(WAITER) {
            let is_held = || !is_free(self.lock_count.load(Relaxed));
            park(self.key(), 0, is_held, || (), || (), Deadline::Never);
        }
    }

    /// Releases with waiters, under the queue's lock: a thread that is about to wait is in the queue before and is woken, or sees
    /// the free section afterwards. The section is not accessed later.
    #[cold]
    fn unlock(&self) {
        unpark(self.key(), oldest(1), |_, _| {
            self.lock_count.fetch_add(1, Release);
        });
    }
}
