//! The lock of the data path: owner-biased, on a separate cache line.
//!
//! An atomic read-modify-write costs more than the rest of posting or reaping, and most queues are used by one thread. So a
//! lock that one thread has taken often enough in a row is biased towards that thread: as the owner, it takes the lock by
//! plain loads and stores. If another thread takes the lock, it revokes the bias for good, by a barrier in all threads
//! (`membarrier(2)`); from then on, all threads take the lock by an atomic instruction.
//!
//! A thread that finds the lock taken spins, then yields, then sleeps for short times; there is no wake-up. This is rare,
//! as the critical sections are short.
//!
//! Threads are identified by the address of their thread control block. A thread that begins after the owner has ended may
//! get the same address, and so the bias. That is sound: the owner has left its critical section, and its stores are
//! visible, as the C library reuses the memory of a control block under a lock.

use super::atomic::{AtomicU32, AtomicUsize, Ordering};
use super::bias::Bias;
use super::machine;
use super::membarrier;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

/// A value that one thread at a time may access, on separate cache lines.
#[repr(C, align(64))]
pub(crate) struct Lock<T> {
    pub(super) bias: Bias,
    value: UnsafeCell<T>,
    candidate: UnsafeCell<Candidate>,
    /// The thread that has the lock, to detect re-entry.
    #[cfg(debug_assertions)]
    holder: std::sync::atomic::AtomicUsize,
}

/// No owner yet.
const UNDECIDED: usize = 0;
/// Never an owner again.
const REVOKED: usize = 1;

/// The thread that may become the owner. Accessed with `held` set.
struct Candidate {
    thread: usize,
    /// How many times in a row it has taken the lock.
    times: u32,
    /// How many times in a row it must take the lock to become the owner.
    enough: u32,
    /// How many times the candidate has changed.
    changes: u8,
}

/// The number of changes of the candidate after which the bias is revoked.
pub(super) const MANY: u8 = 16;

// SAFETY: one thread at a time accesses the value: the owner, or a thread that has set `held`, after the bias is revoked
// and the owner has left.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The guard of a lock. Not `Send`, as it must be dropped on the thread that took the lock.
pub(crate) struct Held<'a, T> {
    lock: &'a Lock<T>,
    /// The word that says that the lock is taken: `inside` or `held`.
    taken: &'a AtomicU32,
    not_send: PhantomData<*mut ()>,
}

impl<T> Lock<T> {
    /// A lock that becomes biased towards a thread that has taken it `enough` times in a row.
    pub(crate) fn new(value: T, enough: u32) -> Lock<T> {
        Lock {
            bias: Bias {
                inside: AtomicU32::new(0),
                held: AtomicU32::new(0),
                owner: AtomicUsize::new(UNDECIDED),
            },
            candidate: UnsafeCell::new(Candidate { thread: 0, times: 0, enough, changes: 0 }),
            value: UnsafeCell::new(value),
            #[cfg(debug_assertions)]
            holder: std::sync::atomic::AtomicUsize::new(0),
        }
    }

    /// Takes the lock; waits until it is free. The thread must not hold it already.
    #[inline(always)]
    pub(crate) fn lock(&self) -> Held<'_, T> {
        #[cfg(debug_assertions)]
        assert_ne!(
            self.holder.load(Ordering::Relaxed),
            machine::this_thread(),
            "the thread has this lock already"
        );
        let taken = if machine::enter(&self.bias) { &self.bias.inside } else { self.lock_unbiased() };
        #[cfg(debug_assertions)]
        self.holder.store(machine::this_thread(), Ordering::Relaxed);
        Held { lock: self, taken, not_send: PhantomData }
    }

    /// Takes the lock if that needs neither waiting nor a decision about the bias. All of it is inlined.
    #[inline(always)]
    pub(crate) fn try_lock(&self) -> Option<Held<'_, T>> {
        let taken = if machine::enter(&self.bias) {
            &self.bias.inside
        } else if self.bias.owner.load(Ordering::Relaxed) == REVOKED && machine::set(&self.bias.held) {
            &self.bias.held
        } else {
            return None;
        };
        #[cfg(debug_assertions)]
        assert_eq!(
            self.holder.swap(machine::this_thread(), Ordering::Relaxed),
            0,
            "the lock is taken already"
        );
        Some(Held { lock: self, taken, not_send: PhantomData })
    }

    /// Takes the lock by an atomic instruction.
    #[inline(never)]
    fn lock_unbiased(&self) -> &AtomicU32 {
        if !machine::set(&self.bias.held) {
            machine::wait_until(|| {
                self.bias.held.load(Ordering::Relaxed) == 0 && machine::set(&self.bias.held)
            });
        }
        if self.bias.owner.load(Ordering::Relaxed) != REVOKED {
            self.decide();
        }
        &self.bias.held
    }

    /// Chooses an owner, or revokes the bias. Called with `held` set by this thread.
    #[cold]
    #[inline(never)]
    fn decide(&self) {
        let me = machine::this_thread();
        if self.bias.owner.load(Ordering::Relaxed) != UNDECIDED {
            self.bias.owner.store(REVOKED, Ordering::Relaxed);
            membarrier::barrier();
            return machine::wait_until(|| self.bias.inside.load(Ordering::Acquire) == 0);
        }
        // SAFETY: this thread has set `held`, and only such a thread uses the candidate.
        let candidate = unsafe { &mut *self.candidate.get() };
        if candidate.thread != me {
            (candidate.thread, candidate.times) = (me, 0);
            candidate.changes += 1;
        }
        candidate.times += 1;
        if candidate.changes > MANY {
            self.bias.owner.store(REVOKED, Ordering::Relaxed);
        } else if candidate.times > candidate.enough {
            let owner = if membarrier::is_available() { me } else { REVOKED };
            self.bias.owner.store(owner, Ordering::Relaxed);
        }
    }
}

impl<'a, T> Held<'a, T> {
    /// Leaves the lock taken, and returns one word for [`Held::from_raw`], which takes fewer registers across a call than
    /// the guard.
    #[inline(always)]
    pub(crate) fn into_raw(self) -> *const AtomicU32 {
        ManuallyDrop::new(self).taken
    }

    /// Restores the guard from [`Held::into_raw`].
    ///
    /// # Safety
    /// `raw` must come from [`Held::into_raw`] on this thread, and be used once.
    pub(crate) unsafe fn from_raw(raw: *const AtomicU32) -> Held<'a, T> {
        let lock = raw.map_addr(|address| address & !(align_of::<Lock<T>>() - 1)).cast::<Lock<T>>();
        // SAFETY: `raw` points into the `Bias` at the start of the lock; rounded down to the lock's alignment, it is the
        // address of the lock, which the guard has borrowed.
        let lock = unsafe { &*lock };
        // SAFETY: a field of the lock, which the guard has borrowed.
        let taken = unsafe { &*raw };
        Held { lock, taken, not_send: PhantomData }
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock, and is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(debug_assertions)]
        self.lock.holder.store(0, Ordering::Relaxed);
        self.taken.store(0, Ordering::Release);
    }
}
