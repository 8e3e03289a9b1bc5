//! The synchronisation primitives of all blocking code, in one place so that model tests can substitute their own.

/// What a thread has to its very end: without a destructor that runs before.
pub(crate) use std::mem::ManuallyDrop as Lasting;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Arc, Weak};
pub(crate) use std::thread_local;

use parking_lot::{Mutex, MutexGuard};

/// A mutex without poisoning: its data are consistent between statements.
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
