//! Loom's stand-ins for [`crate::io::sync`]. Reference counts are not modelled.

pub(crate) use loom::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};
pub(crate) use loom::thread_local;
pub(crate) use std::sync::{Arc, Weak};

use loom::sync::{Mutex, MutexGuard};

#[derive(Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Lock<T> {
        Lock(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }
}
