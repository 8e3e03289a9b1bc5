//! Waking of threads under loom, which explores weak memory orders; shuttle knows only sequential consistency.
//!
//! The same files are compiled here again, with loom's primitives ([`sync`]) and a model of futexes and kicks ([`sys`]).

#![allow(clippy::duplicate_mod, reason = "compiling the same files again is the point")]
#![allow(dead_code, reason = "not everything is modelled")]

mod sync;
mod sys;
mod tests;

#[path = "../address.rs"]
mod address;
#[path = "../parker.rs"]
mod parker;
#[path = "../spin.rs"]
mod spin;
