//! The mutexes that a thread owns, which are abandoned when it ends.

use super::super::sync::{Arc, Lasting, Weak, thread_local};
use super::super::thread_end::{Step, at_end};
use super::Signal;
use std::cell::RefCell;
use std::mem::take;

thread_local! {
    static OWNED: Lasting<RefCell<Vec<Weak<Signal>>>> = Lasting::default();
}

#[cold]
pub(super) fn add(mutex: &Arc<Signal>) {
    let is_first = OWNED.with(|owned| {
        let mut owned = owned.borrow_mut();
        if !owned.iter().any(|other| std::ptr::eq(other.as_ptr(), Arc::as_ptr(mutex))) {
            owned.push(Arc::downgrade(mutex));
        }
        owned.len() == 1
    });
    if is_first {
        at_end(Step::Mutexes, abandon_mutexes);
    }
}

/// Removes a mutex of the calling thread.
pub(super) fn remove(mutex: &Signal) {
    OWNED.with(|owned| owned.borrow_mut().retain(|other| !std::ptr::eq(other.as_ptr(), mutex)));
}

/// Abandons the mutexes of the calling thread.
fn abandon_mutexes() {
    let owned = OWNED.with(|owned| take(&mut *owned.borrow_mut()));
    owned.iter().filter_map(Weak::upgrade).for_each(|mutex| mutex.abandon());
}
