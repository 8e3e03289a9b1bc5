//! The synchronisation primitives below everything that blocks, in one place so that the model tests can put
//! their own in front of the same code.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Arc, Weak};
pub(crate) use std::thread_local;

use super::sys::{Deadline, futex_wait, futex_wake};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and somebody may sleep for it.
const AWAITED: u32 = 2;
/// So often a holder is looked for again before the thread sleeps.
const SPINS: u32 = 100;

/// A mutex of two atomic operations: what it guards is consistent between statements, so a panic does not poison it.
#[derive(Default)]
pub(crate) struct Lock<T> {
    state: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time gets at the value.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock { state: AtomicU32::new(FREE), value: UnsafeCell::new(value) }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Locked<'_, T> {
        if self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait();
        }
        Locked { lock: self, _not_send: std::marker::PhantomData }
    }

    #[cold]
    fn wait(&self) {
        for _ in 0..SPINS {
            std::hint::spin_loop();
            // Who finds others asleep goes to sleep, too.
            match self.state.load(Ordering::Relaxed) {
                FREE if self
                    .state
                    .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok() =>
                {
                    return;
                }
                AWAITED => break,
                _ => {}
            }
        }
        while self.state.swap(AWAITED, Ordering::Acquire) != FREE {
            futex_wait(&self.state, AWAITED, Deadline::Never);
        }
    }
}

/// Gives the lock back when it is dropped.
pub(crate) struct Locked<'a, T> {
    lock: &'a Lock<T>,
    _not_send: std::marker::PhantomData<*const ()>,
}

impl<T> Deref for Locked<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Locked<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Locked<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.lock.state.swap(FREE, Ordering::Release) == AWAITED {
            futex_wake(&self.lock.state);
        }
    }
}
