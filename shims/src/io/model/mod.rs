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

mod background;
mod sync;
mod sys;
mod tests;

#[path = "../address.rs"]
mod address;
#[path = "../parker.rs"]
mod parker;
#[path = "../poller.rs"]
mod poller;
#[path = "../queue.rs"]
mod queue;
#[path = "../runner.rs"]
mod runner;
#[path = "../signal.rs"]
mod signal;
#[path = "../spin.rs"]
mod spin;
