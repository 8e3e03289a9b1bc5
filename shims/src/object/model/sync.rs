//! Loom's stand-ins for [`crate::object`]'s primitives.

pub(super) use loom::sync::atomic::{AtomicU32, Ordering};
pub(super) use loom::sync::{RwLock, RwLockWriteGuard};
pub(super) use std::sync::PoisonError;

use loom::sync::MutexGuard;

pub(super) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(super) fn new(value: T) -> Mutex<T> {
        Mutex(loom::sync::Mutex::new(value))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }
}
