//! The synchronisation primitives of [`batching`](super::batching), [`checks`](super::checks) and
//! [`schedule`](super::schedule), in one place so that their model can substitute others.

pub(super) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

use parking_lot::{Mutex, MutexGuard};

/// A mutex without poisoning.
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Lock<T> {
        Lock(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock()
    }
}
