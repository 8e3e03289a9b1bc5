//! What a queue pair knows of its peer's receives.

use crate::data::queue_pair::Core;
use crate::device::clock::INTERVAL;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Messages from this length on, in bytes, have more time to be received, and take the slow path of posting.
pub(crate) const LONG: u64 = 1 << 20;
/// The least speed that a long message is supposed to have, in bytes per millisecond.
const SPEED: u64 = 4 << 10;

/// The peer's receives, as the clock sees them.
#[derive(Default)]
pub(crate) struct Receiver {
    /// The port of the device that the messages leave by.
    pub port: AtomicU8,
    /// The number of the [`RefusalCounter`](crate::verbs::nodes::RefusalCounter) of that port, if there is one.
    pub counter: AtomicU8,
    /// For how many ticks a message may only have been resent as it got lost.
    pub resending: AtomicU16,
    /// Requests are flushed, if only those of the initiator queue.
    pub flushing: AtomicBool,
    /// A clock calls the queue pair.
    pub ticking: AtomicBool,
    /// For how many ticks the oldest request has been the same `Send`; once requests are flushed, for how many the device has not flushed
    /// them all.
    pub ticks: AtomicU16,
    /// A request whose success the device reports was posted behind that.
    pub probed: AtomicBool,
    /// How many messages of this port had met no receive at the last tick, if its driver counts them. It may wrap around.
    pub refused: AtomicU32,
    /// The length of the longest message since the queue was empty, in bytes; 0 for messages shorter than [`LONG`].
    pub longest: AtomicU64,
}

impl Receiver {
    /// Whether so many messages have had time to arrive since the first tick that met the oldest.
    pub(crate) fn had_time_for(&self, messages: u64) -> bool {
        let time = Duration::from_millis(self.longest.load(Ordering::Relaxed) / SPEED)
            .saturating_mul(messages.min(1 << 20) as u32);
        INTERVAL * u32::from(self.ticks.load(Ordering::Relaxed)) >= time
    }
}

impl Core {
    /// The device resends a message so often, with so much time between (`ibv_qp_attr::timeout`: 4.096 us times two to its power; 0 is for
    /// ever). The time may be four times as long.
    pub(crate) fn expect_resending(&self, retries: u8, timeout: u8) {
        self.receiver.resending.store(resending(retries, timeout), Ordering::Relaxed); // released by the clock's lock
    }

    /// Gives a message of `length` bytes its time to be received.
    pub(crate) fn expect_message(&self, length: u64) {
        if length >= LONG {
            self.receiver.longest.fetch_max(length, Ordering::Relaxed);
        }
    }
}

/// For how many ticks a device may resend a message.
fn resending(retries: u8, timeout: u8) -> u16 {
    if timeout == 0 {
        return 0;
    }
    let once = Duration::from_nanos(4096 << timeout.min(31));
    let ticks = (4 * once * (u32::from(retries) + 1)).as_nanos().div_ceil(INTERVAL.as_nanos());
    ticks.try_into().unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_four_times_the_time_that_it_is_told_to_resend_in() {
        assert_eq!(resending(6, 0), 0);
        assert_eq!(resending(0, 1), 1);
        assert_eq!(resending(6, 14), 2);
        // What rdma_cm sets on RoCE: 2.1 s, seven times, by four.
        assert_eq!(resending(6, 19), 51);
        assert_eq!(resending(7, 31), u16::MAX);
    }
}
