//! The state of the background thread: ticking, and then it finds unattended requests by itself; or dormant, and then it must be
//! woken for them.

use super::sync::{AtomicU32, Ordering, fence};

pub(super) const TICKING: u32 = 0;
const DORMANT: u32 = 1;

/// Starts as [`TICKING`].
pub(super) struct Dormancy(pub(super) AtomicU32);

impl Dormancy {
    /// Requests may be pending unattended: calls `wake` if the thread is dormant. That they are unattended must have been
    /// published before, by a `SeqCst` access.
    #[inline]
    pub(super) fn left_alone(&self, wake: impl FnOnce()) {
        if self.0.load(Ordering::SeqCst) == DORMANT && self.0.swap(TICKING, Ordering::SeqCst) == DORMANT {
            wake();
        }
    }

    /// Lets the background thread sleep until something is left unattended, unless something is already. `sleep` returns once its
    /// argument is true, which it checks after each wake-up.
    pub(super) fn sleep(
        &self,
        anything_left_alone: impl FnOnce() -> bool,
        sleep: impl FnOnce(&dyn Fn() -> bool),
    ) {
        self.0.store(DORMANT, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        // Something left unattended after this check finds the thread dormant.
        if anything_left_alone() {
            self.tick();
        }
        sleep(&|| self.0.load(Ordering::SeqCst) == TICKING);
    }

    /// The background thread ticks.
    pub(super) fn tick(&self) {
        self.0.store(TICKING, Ordering::SeqCst);
    }
}
