//! The synchronisation primitives below everything that blocks, in one place so that the model tests can put
//! their own in front of the same code.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Arc, Weak};
pub(crate) use std::thread_local;

use parking_lot::{Mutex, MutexGuard};

/// A mutex that a panic elsewhere does not poison: what it guards is consistent between statements.
#[derive(Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock(Mutex::new(value))
    }

    #[inline(always)]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock()
    }
}
