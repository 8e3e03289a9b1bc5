//! The mutexes that a thread owns, which are abandoned when it ends.

use super::super::sync::{Arc, Weak, thread_local};
use super::Signal;
use std::cell::RefCell;

/// The mutexes that a thread owns. Dropped, and so abandoned, when it ends.
#[derive(Default)]
pub(super) struct Owned(RefCell<Vec<Weak<Signal>>>);

thread_local! {
    static OWNED: Owned = Owned::default();
}

impl Owned {
    #[cold]
    pub(super) fn add(mutex: &Arc<Signal>) {
        let add = |owned: &Owned| {
            let mut owned = owned.0.borrow_mut();
            if !owned.iter().any(|other| std::ptr::eq(other.as_ptr(), Arc::as_ptr(mutex))) {
                owned.push(Arc::downgrade(mutex));
            }
        };
        let _ = OWNED.try_with(add);
    }

    /// Removes a mutex of the calling thread.
    pub(super) fn remove(mutex: &Signal) {
        let forget =
            |owned: &Owned| owned.0.borrow_mut().retain(|other| !std::ptr::eq(other.as_ptr(), mutex));
        let _ = OWNED.try_with(forget);
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.take().iter().filter_map(Weak::upgrade).for_each(|mutex| mutex.abandon());
    }
}

/// Abandons the mutexes of the calling thread.
pub(crate) fn abandon_mutexes() {
    let _ = OWNED.try_with(|owned| drop(Owned(RefCell::new(owned.0.take()))));
}
