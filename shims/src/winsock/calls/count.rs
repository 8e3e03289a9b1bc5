//! How many calls there are on a descriptor, and whether it is being closed.

use super::sync::{AtomicU32, Ordering};

/// Both in one word: of a call that begins and a thread that closes, one sees the other. Threads on different sockets do not disturb
/// each other.
#[repr(align(64))]
pub(super) struct Count(pub(super) AtomicU32);

const CLOSING: u32 = 1 << 31;

impl Count {
    /// A call begins, unless the descriptor is being closed.
    #[inline]
    pub(super) fn enter(&self) -> bool {
        let one_more = |count: u32| (count & CLOSING == 0).then_some(count + 1);
        self.0.fetch_update(Ordering::Acquire, Ordering::Acquire, one_more).is_ok()
    }

    /// A call ends.
    #[inline]
    pub(super) fn leave(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    /// Whether a thread closes the descriptor.
    #[inline]
    pub(super) fn is_closing(&self) -> bool {
        self.0.load(Ordering::Acquire) & CLOSING != 0
    }

    /// From now on no call begins. False if another thread has said so.
    pub(super) fn close(&self) -> bool {
        self.0.fetch_or(CLOSING, Ordering::AcqRel) & CLOSING == 0
    }

    /// Whether there are calls.
    pub(super) fn has_calls(&self) -> bool {
        self.0.load(Ordering::Acquire) & !CLOSING != 0
    }

    /// Calls begin again.
    pub(super) fn open(&self) {
        self.0.fetch_and(!CLOSING, Ordering::Release);
    }

    /// There are none, and the descriptor is open.
    pub(super) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}
