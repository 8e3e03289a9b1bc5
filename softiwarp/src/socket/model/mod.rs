//! Batching, checks and the schedule under loom: the same files are compiled here again, with loom's primitives.

#![allow(clippy::duplicate_mod, reason = "compiling the same file again is the point")]
#![allow(dead_code, reason = "not everything is modelled")]

mod sync;
mod tests;

pub(crate) use sync::Lock;

#[path = "../batching.rs"]
mod batching;
#[path = "../checks.rs"]
mod checks;
#[path = "../schedule.rs"]
mod schedule;
