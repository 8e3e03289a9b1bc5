//! A model of the system calls in [`crate::io::sys`] that wake threads. They order memory only as the kernel's locks do.

use super::sync::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex};
use std::time::Duration;

/// There is no time: a thread that is never woken is a deadlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deadline {
    Never,
}

impl Deadline {
    pub(crate) fn passed(self) -> bool {
        false
    }
}

loom::lazy_static! {
    /// The kernel's queue of futex sleepers: the number of wake-ups.
    static ref SLEEPERS: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());
}

pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, _deadline: Deadline) {
    let mut woken = SLEEPERS.0.lock().unwrap();
    // The kernel compares under its lock.
    if word.load(Ordering::Relaxed) != expected {
        return;
    }
    let before = *woken;
    while *woken == before {
        woken = SLEEPERS.1.wait(woken).unwrap();
    }
}

pub(crate) fn futex_wake(_word: &AtomicU32) {
    *SLEEPERS.0.lock().unwrap() += 1;
    SLEEPERS.1.notify_all();
}

/// Spinning is one poll.
pub(crate) fn spin_until<R>(_: Duration, mut look: impl FnMut() -> Option<R>) -> Option<R> {
    look()
}

/// A kick, and the sleep that it ends.
pub(crate) struct EventFd(Mutex<bool>, Condvar);

impl EventFd {
    pub(crate) fn new() -> EventFd {
        EventFd(Mutex::new(false), Condvar::new())
    }

    pub(crate) fn set(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }

    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap() = false;
    }

    /// Sleeps until it is set.
    pub(crate) fn sleep(&self) {
        let mut set = self.0.lock().unwrap();
        while !*set {
            set = self.1.wait(set).unwrap();
        }
    }
}
