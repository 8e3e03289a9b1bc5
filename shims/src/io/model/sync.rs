//! Shuttle's stand-ins for [`crate::io::sync`].

pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
pub(crate) use shuttle::thread_local;
/// The threads of a model end by themselves, and then it is freed.
pub(crate) use std::boxed::Box as Lasting;
pub(crate) use std::sync::{Arc, Weak};

use shuttle::sync::{Mutex, MutexGuard};

#[derive(Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }
}
