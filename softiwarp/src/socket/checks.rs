//! Checks that several threads ask for and one makes.

use super::sync::{AtomicUsize, Ordering};

/// Counts the checks that were asked for and not made.
pub(super) struct Checks(AtomicUsize);

impl Checks {
    pub(super) fn new() -> Checks {
        Checks(AtomicUsize::new(0))
    }

    /// Has `check` called after this call has begun: here, or by the thread that is checking already. A check may ask for one, too.
    pub(super) fn ask(&self, mut check: impl FnMut()) {
        let mut due = 1;
        if self.0.fetch_add(due, Ordering::AcqRel) != 0 {
            return;
        }
        while due != 0 {
            check();
            due = self.0.fetch_sub(due, Ordering::AcqRel) - due;
        }
    }
}
