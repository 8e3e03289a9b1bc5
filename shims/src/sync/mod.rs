//! Locks that live in the caller's memory: all zeroes is their initial state, and futexes are all they stand on.
//!
//! No uncontended operation makes a system call. The memory must be private to the process, as on Windows.

pub mod address;
pub mod condition;
pub mod critical;
pub mod once;
mod raw;
pub mod srw;

use crate::error::{ERROR_TIMEOUT, set_last_error};
use crate::futex::{self, Deadline};
use crate::io::Idle;
use std::sync::atomic::AtomicU32;

/// [`futex::wait`], during which the thread does not count as running on its completion port.
fn sleep(word: &AtomicU32, expected: u32, group: u32, deadline: Deadline) {
    let _idle = Idle::enter();
    futex::wait(word, expected, group, deadline);
}

/// Reports a wait that timed out.
fn timed_out() -> i32 {
    set_last_error(ERROR_TIMEOUT);
    0
}
