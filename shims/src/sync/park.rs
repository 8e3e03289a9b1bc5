//! Queues of waiting threads, by address. A thread that sleeps here does not count as running on its completion port.

use super::Deadline;
use crate::io::Idle;
use parking_lot_core::{DEFAULT_UNPARK_TOKEN, ParkResult, ParkToken};
pub(super) use parking_lot_core::{FilterOp, SpinWait};

/// The result of [`park`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parked {
    Woken,
    TimedOut,
    /// `validate` returned false.
    Refused,
}

/// Queues the calling thread at `key` if `validate` returns true, and sleeps.
///
/// `validate` and `timed_out` run under the queue's lock, as the closures of [`unpark`] do: they must neither call this module
/// nor panic. `before_sleep` runs after the lock is released, with the thread in the queue. `kind` is passed to the closure of
/// [`unpark`].
pub(super) fn park(
    key: usize,
    kind: usize,
    validate: impl FnOnce() -> bool,
    before_sleep: impl FnOnce(),
    timed_out: impl FnOnce(),
    deadline: Deadline,
) -> Parked {
    let _idle = Idle::enter();
    #[cfg(test)]
    super::tests::delay_before_sleep();
    // SAFETY: the closures are those of this folder: none panics, or calls `parking_lot` under the queue's lock.
    let result = unsafe {
        parking_lot_core::park(
            key,
            validate,
            before_sleep,
            |_, _| timed_out(),
            ParkToken(kind),
            deadline.instant(),
        )
    };
    match result {
        ParkResult::Unparked(_) => Parked::Woken,
        ParkResult::TimedOut => Parked::TimedOut,
        ParkResult::Invalid => Parked::Refused,
    }
}

/// Calls `choose` with the kinds of the threads at `key`, oldest first, and wakes those it chooses. `then` runs under the queue's
/// lock, with their number and whether others stay.
pub(super) fn unpark(key: usize, mut choose: impl FnMut(usize) -> FilterOp, then: impl FnOnce(usize, bool)) {
    let choose = |kind: ParkToken| choose(kind.0);
    // SAFETY: the closures are those of this folder: none panics, or calls `parking_lot` under the queue's lock.
    unsafe {
        parking_lot_core::unpark_filter(key, choose, |result| {
            then(result.unparked_threads, result.have_more_threads);
            DEFAULT_UNPARK_TOKEN
        })
    };
}

/// For [`unpark`]: up to `count` threads, oldest first.
pub(super) fn oldest(count: usize) -> impl FnMut(usize) -> FilterOp {
    let mut left = count;
    move |_| {
        if left == 0 {
            return FilterOp::Stop;
        }
        left -= 1;
        FilterOp::Unpark
    }
}

/// The number of threads queued at `key`.
#[cfg(test)]
pub(super) fn queued(key: usize) -> usize {
    let mut count = 0;
    let choose = |_| {
        count += 1;
        FilterOp::Skip
    };
    unpark(key, choose, |_, _| ());
    count
}
