//! The locks under shuttle: the very same files, on top of its primitives and of a model of the queues by address. A thread that
//! nobody wakes is reported as a deadlock.

#![allow(clippy::duplicate_mod, reason = "compiling the same files again is the point")]
#![allow(dead_code, reason = "not everything is modelled")]

mod park;
mod tests;

#[path = "../barrier.rs"]
mod barrier;
#[path = "../condition.rs"]
mod condition;
#[path = "../critical.rs"]
mod critical;
#[path = "../once.rs"]
mod once;
#[path = "../srw.rs"]
mod srw;

use shuttle::sync::atomic;

/// Waits end when somebody is woken, or at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deadline {
    Now,
    Never,
}

/// Another one for each thread, and never 0.
fn thread_id() -> u32 {
    usize::from(shuttle::current::me()) as u32 + 1
}
