//! The blocking core under shuttle, which runs it under thousands of thread interleavings and reports a thread
//! that nobody wakes as a deadlock.
//!
//! The very same source files are compiled here once more, on top of shuttle's primitives ([`sync`]) and of a
//! model of epoll, eventfd and futex ([`sys`]).

#![allow(clippy::duplicate_mod, reason = "compiling the same files again is the point")]
#![allow(
    dead_code,
    reason = "what is for descriptors given to programs, and for the background, is not modelled"
)]

mod sync;
mod sys;
mod tests;
mod unattended;

/// The threads of a model say themselves that they end.
mod thread_end {
    use super::sync::thread_local;
    pub(super) use crate::io::thread_end::Step;
    use std::cell::Cell;

    thread_local! {
        /// The one action that is modelled: mutexes are abandoned.
        static PLANNED: Cell<Option<fn()>> = Cell::new(None);
    }

    pub(super) fn at_end(_step: Step, action: fn()) {
        PLANNED.with(|planned| planned.set(Some(action)));
    }

    pub(super) fn ended() {
        PLANNED.with(Cell::take).into_iter().for_each(|action| action());
    }
}

#[path = "../address.rs"]
mod address;
#[path = "../apc.rs"]
mod apc;
#[path = "../dormancy.rs"]
mod dormancy;
#[path = "../parker.rs"]
mod parker;
#[path = "../poller.rs"]
mod poller;
#[path = "../queue/mod.rs"]
mod queue;
#[path = "../signal/mod.rs"]
mod signal;
#[path = "../spin.rs"]
mod spin;
