//! The queue of events under loom: the same file is compiled here again, with loom's primitives and a model of an eventfd.

#![allow(clippy::duplicate_mod, reason = "compiling the same file again is the point")]

mod sync;
mod tests;

#[path = "../events.rs"]
mod events;
