//! Processes that fork, on the device under test. The tests run one at a time, because no other thread may be inside the library
//! during a fork.

#[path = "../../shared/fork.rs"]
mod fork;

use std::sync::{Mutex, MutexGuard};

/// A test's turn.
fn turn() -> MutexGuard<'static, ()> {
    static TURNS: Mutex<()> = Mutex::new(());
    TURNS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
