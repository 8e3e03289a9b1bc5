//! What a queue pair knows of its peer's receives.

use crate::data::queue_pair::Core;
use crate::device::clock::INTERVAL;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, Ordering};
use std::time::Duration;

/// `retry_count`: how often a message is resent without an acknowledgement. Not 7, the maximum, which rxe takes for no
/// limit.
pub(crate) const RETRIES: u8 = 6;
/// Messages from this length on, in bytes, have more time to be received, and take the slow path of posting.
pub(crate) const LONG: u64 = 1 << 20;
/// The least speed that a long message is supposed to have, in bytes per millisecond.
const SPEED: u64 = 4 << 10;

/// The peer's receives, as the clock sees them.
#[derive(Default)]
pub(crate) struct Receiver {
    /// 1 and the number of the [`RefusalCounter`](crate::verbs::nodes::RefusalCounter) of the connection's port; 0 before it is looked for.
    pub counter: AtomicU8,
    /// After how many ticks a message that got lost has been resent, at the latest; 0 if the device waits for ever.
    pub resent: AtomicU16,
    /// Requests are flushed, if only those of the initiator queue.
    pub flushing: AtomicBool,
    /// A clock calls the queue pair.
    pub ticking: AtomicBool,
    /// For how many ticks the oldest request has been the same `Send`; once requests are flushed, for how many the device has not flushed
    /// them all.
    pub ticks: AtomicU16,
    /// A request whose success the device reports was posted behind that.
    pub probed: AtomicBool,
    /// How many messages of the connection's port had met no receive at the last tick, if its driver counts them. It may wrap around.
    pub refused: AtomicU32,
    /// The length of the longest message since the queue was empty, in bytes; 0 for messages shorter than [`LONG`].
    pub longest: AtomicU32,
}

impl Receiver {
    /// Whether so many messages have had time to arrive since the first tick that met the oldest.
    pub(crate) fn had_time_for(&self, messages: u64) -> bool {
        let time = Duration::from_millis(u64::from(self.longest.load(Ordering::Relaxed)) / SPEED)
            .saturating_mul(messages.min(1 << 20) as u32);
        INTERVAL * u32::from(self.ticks.load(Ordering::Relaxed)) >= time
    }
}

impl Core {
    /// The device resends a message that got lost after this time (`ibv_qp_attr::timeout`: 4.096 us times two to its power; 0 is for
    /// ever), and so on.
    pub(crate) fn expect_resending(&self, timeout: u8) {
        let exact = self.adapter().limits().quirks.exact_timeouts;
        self.receiver.resent.store(resent(timeout, exact), Ordering::Relaxed); // released by the clock's lock
    }

    /// Gives a message of `length` bytes its time to be received.
    pub(crate) fn expect_message(&self, length: u64) {
        if length >= LONG {
            // No device takes more than `u32::MAX`.
            self.receiver.longest.fetch_max(length as u32, Ordering::Relaxed);
        }
    }
}

/// After how many ticks a device has resent a message. It may take four times the time that it is told.
fn resent(timeout: u8, exact: bool) -> u16 {
    if timeout == 0 {
        return 0;
    }
    let time = Duration::from_nanos(4096 << timeout.min(31)) * if exact { 1 } else { 4 };
    time.as_nanos().div_ceil(INTERVAL.as_nanos()).try_into().unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_four_times_the_time_that_it_is_told_to_resend_in() {
        assert_eq!([resent(0, false), resent(1, false), resent(17, false)], [0, 1, 2]);
        // What rdma_cm sets on RoCE: 2.1 s.
        assert_eq!([resent(19, true), resent(19, false)], [2, 8]);
        assert_eq!(resent(31, false), 29321);
    }
}
