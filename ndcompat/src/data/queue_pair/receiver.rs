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
    /// For how many ticks the oldest request has been the same `Send`.
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
    /// Gives a message of `length` bytes its time to be received.
    pub(crate) fn expect_message(&self, length: u64) {
        if length >= LONG {
            self.receiver.longest.fetch_max(length, Ordering::Relaxed);
        }
    }
}
