//! What a queue pair knows of its peer's receives.

use crate::data::queue_pair::Core;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use win32::time::coarse_milliseconds;

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
    pub ticks: AtomicU8,
    /// A request whose success the device reports was posted behind that.
    pub probed: AtomicBool,
    /// How many messages of this port had met no receive at the last tick, if its driver counts them. It may wrap around.
    pub refused: AtomicU32,
    /// Until when long messages may take, in milliseconds of the coarse clock.
    busy_until: AtomicU64,
}

impl Receiver {
    /// Whether a long message may still be on its way.
    pub(crate) fn is_busy(&self) -> bool {
        coarse_milliseconds() < self.busy_until.load(Ordering::Relaxed)
    }
}

impl Core {
    /// Gives a message of `length` bytes its time to be received.
    pub(crate) fn expect_message(&self, length: u64) {
        if length >= LONG {
            let (now, more) = (coarse_milliseconds(), length / SPEED);
            let later = |until: u64| Some(until.max(now) + more);
            let _ = self.receiver.busy_until.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
        }
    }
}
