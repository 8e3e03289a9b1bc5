//! Spinning before a sleep, for as long as it pays.
//!
//! A wake-up that comes soon costs a tenth of what it costs to put a thread to sleep and to wake it on another
//! processor. Where the other side has no processor to run on meanwhile, or takes its time, spinning is but a waste; so
//! each thread remembers how it went.

use super::sync::{AtomicU32, Ordering};
use super::sys::spin_until;
use std::time::Duration;

/// While another thread, which runs, does next to nothing.
pub(crate) const SHORT: Duration = Duration::from_micros(2);
/// About what it takes until a thread runs that sleeps on another processor: so of two threads that hand work to and fro
/// one catches the other awake.
pub(crate) const LONG: Duration = Duration::from_micros(20);
/// So many sleeps go by without spinning at most.
pub(crate) const MOST: u32 = 4095;

/// How spinning has gone for one thread, which alone uses this.
#[derive(Default)]
pub(crate) struct Spinner {
    /// So many sleeps still go by without spinning.
    left_out: AtomicU32,
    /// So many will after the next time in vain: twice as many each time.
    next: AtomicU32,
}

impl Spinner {
    /// Looks again and again, at most for so long, if that is promising.
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
