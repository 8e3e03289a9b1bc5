//! A model of the kernel's barrier: see [`super`].

use loom::sync::atomic::Ordering;
use std::cell::Cell;

/// The two fences that model the barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Barrier {
    /// The owner's compiler fence.
    Owner,
    /// The call of `membarrier` by the thread that revokes the bias.
    Revoker,
}

thread_local! {
    /// The fence to leave out, to check that the model then fails. All of loom's threads run on one thread of the system.
    static LEFT_OUT: Cell<Option<Barrier>> = const { Cell::new(None) };
}

/// Leaves out one fence in all models that this thread runs from now on.
pub(crate) fn leave_out(barrier: Barrier) {
    LEFT_OUT.set(Some(barrier));
}

pub(crate) fn fence(barrier: Barrier) {
    if LEFT_OUT.get() != Some(barrier) {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }
}

pub(crate) fn barrier() {
    fence(Barrier::Revoker);
}

pub(crate) fn is_available() -> bool {
    true
}
