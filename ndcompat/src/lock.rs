//! The lock of the data path: one atomic instruction to take, a plain store to free, and a cache line of its own.
//!
//! `std`'s mutex needs a second atomic instruction to learn whether somebody sleeps, and looks for panics: together half of
//! what a request cost. Here nobody sleeps until called: who finds the lock taken looks again, first at once, then after
//! others have run. What the locks guard is short, so that is rare.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The smallest piece of memory that processors pass to each other.
pub(crate) const CACHE_LINE: usize = 64;

/// A value on cache lines of its own.
#[repr(align(64))]
#[derive(Default)]
pub(crate) struct Padded<T>(pub T);

const _: () = assert!(align_of::<Padded<u8>>() == CACHE_LINE && align_of::<Lock<u8>>() == CACHE_LINE);

/// A value that one thread at a time uses, on cache lines of its own.
#[repr(align(64))]
pub(crate) struct Lock<T> {
    /// 1 while the lock is held.
    held: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is used by one thread at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The value, for as long as this lives.
pub(crate) struct Held<'a, T>(&'a Lock<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock { held: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    #[inline(always)]
    pub(crate) fn lock(&self) -> Held<'_, T> {
        match self.try_lock() {
            Some(held) => held,
            None => self.wait(),
        }
    }

    /// The value, if nobody else uses it.
    #[inline(always)]
    pub(crate) fn try_lock(&self) -> Option<Held<'_, T>> {
        // One bit, so that x86 has one instruction for it.
        if self.held.fetch_or(1, Ordering::Acquire) & 1 == 0 { Some(Held(self)) } else { None }
    }

    /// Takes the lock when it comes free. The holder may have lost its processor, perhaps to this very thread, so the
    /// thread gives up its own: to any other first, then to those of lower priority, too.
    #[cold]
    #[inline(never)]
    fn wait(&self) -> Held<'_, T> {
        const SPINS: u32 = 100;
        const YIELDS: u32 = SPINS + 100;
        let mut looks = 0_u32;
        loop {
            if self.held.load(Ordering::Relaxed) == 0
                && let Some(held) = self.try_lock()
            {
                return held;
            }
            match looks {
                0..SPINS => spin_loop(),
                SPINS..YIELDS => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_micros(50)),
            }
            looks = looks.saturating_add(1);
        }
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.held.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time() {
        const TIMES: usize = 20_000;
        let lock = Lock::new(0_usize);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..TIMES {
                        let mut value = lock.lock();
                        // Not one addition: an update that is lost would show.
                        let seen = *value;
                        std::hint::black_box(&mut *value);
                        *value = seen + 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), 4 * TIMES);
    }

    #[test]
    fn a_holder_that_sleeps_is_waited_for() {
        let lock = Lock::new(1);
        std::thread::scope(|scope| {
            let mut held = lock.lock();
            scope.spawn(|| assert_eq!(*lock.lock(), 2));
            std::thread::sleep(Duration::from_millis(20));
            *held = 2;
        });
    }
}
