//! Locks in the caller's memory: all zero is their initial state, and they hold no resources.
//!
//! Uncontended, each takes a few atomic instructions. Waiting threads are queued by `parking_lot_core`, by address (`park`). A
//! lock is not accessed after its release, so the next owner may free its memory. The memory must be private to the process, as
//! on Windows. The entry points are in `api/locks.rs`.

pub mod address;
pub mod barrier;
pub mod condition;
pub mod critical;
pub mod once;
mod park;
pub mod srw;

pub(crate) use crate::futex::Deadline;
use crate::io::sys::thread_id;
use std::sync::atomic;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
