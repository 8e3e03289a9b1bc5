//! `SYNCHRONIZATION_BARRIER`.

use super::Deadline;
use super::atomic::{AtomicU32, Ordering::*};
use super::park::{FilterOp, park, unpark};

/// `SYNCHRONIZATION_BARRIER`: a reusable barrier.
#[repr(C)]
pub struct Barrier {
    /// The number of threads that have arrived in this round.
    arrived: AtomicU32,
    round: AtomicU32,
    /// Threads that have entered and not left, which still access the barrier.
    inside: AtomicU32,
    threads: u32,
    unused: [usize; 2],
}

impl Barrier {
    /// A barrier for this many threads.
    pub(crate) fn new(threads: u32) -> Barrier {
        let zero = || AtomicU32::new(0);
        Barrier { arrived: zero(), round: zero(), inside: zero(), threads, unused: [0; 2] }
    }

    fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Arrives, and waits for the others; true for the last one.
    pub(crate) fn enter(&self) -> bool {
        self.inside.fetch_add(1, AcqRel);
        let round = self.round.load(Acquire);
        let last = self.arrived.fetch_add(1, AcqRel) + 1 == self.threads;
        if last {
            // No thread arrives again before the round is over.
            self.arrived.store(0, Relaxed);
            let next = |_, _| self.round.store(round.wrapping_add(1), Release);
            unpark(self.key(), |_| FilterOp::Unpark, next);
        } else {
            while self.round.load(Acquire) == round {
                park(self.key(), 0, || self.round.load(Relaxed) == round, || (), || (), Deadline::Never);
            }
        }
        let key = self.left_key();
        if self.inside.fetch_sub(1, AcqRel) == 1 {
            // The barrier may be freed by now; only its address is used.
            unpark(key, |_| FilterOp::Unpark, |_, _| ());
        }
        last
    }

    /// Waits until no thread is inside.
    pub(crate) fn wait_until_left(&self) {
        while self.inside.load(Acquire) != 0 {
            park(self.left_key(), 0, || self.inside.load(Relaxed) != 0, || (), || (), Deadline::Never);
        }
    }

    /// Where [`wait_until_left`](Self::wait_until_left) waits.
    fn left_key(&self) -> usize {
        std::ptr::from_ref(&self.inside).addr()
    }
}
