//! Locks that live in the caller's memory: all zeroes is their initial state, and futexes are all they stand on.
//!
//! No uncontended operation makes a system call. The memory must be private to the process, as on Windows.

pub mod address;
pub mod condition;
pub mod critical;
mod futex;
pub mod once;
mod raw;
pub mod srw;
