//! Adaptive spinning before a sleep.
//!
//! Catching a wake-up while spinning costs a tenth of a sleep and a wake-up on another processor. If the other side has no
//! processor to run on, or is slow, spinning is wasted; so each thread keeps a record of its success.

use super::sync::{AtomicU32, Ordering};
use super::sys::spin_until;
use std::time::Duration;

/// While another thread, which runs, does next to nothing.
pub(crate) const SHORT: Duration = Duration::from_micros(2);
/// About the time to wake a thread on another processor, so that of two threads that pass work back and forth one catches the
/// other awake.
pub(crate) const LONG: Duration = Duration::from_micros(20);
/// The most sleeps without spinning in a row.
pub(crate) const MOST: u32 = 4095;

/// The record of one thread, for that thread alone.
#[derive(Default)]
pub(crate) struct Spinner {
    /// The number of sleeps still to go without spinning.
    left_out: AtomicU32,
    /// The number of sleeps without spinning after the next failure; it doubles each time.
    next: AtomicU32,
}

impl Spinner {
    /// Polls `done` for a limited time, if the record is promising.
    pub(crate) fn spin<R>(&self, how_long: Duration, look: impl FnMut() -> Option<R>) -> Option<R> {
        let left_out = self.left_out.load(Ordering::Relaxed);
        if left_out > 0 {
            self.left_out.store(left_out - 1, Ordering::Relaxed);
            return None;
        }
        let found = spin_until(how_long, look);
        let next = if found.is_some() {
            0
        } else {
            let next = self.next.load(Ordering::Relaxed);
            self.left_out.store(next, Ordering::Relaxed);
            (2 * next + 1).min(MOST)
        };
        self.next.store(next, Ordering::Relaxed);
        found
    }
}
