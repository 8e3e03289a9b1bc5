//! Whether a queue pair may post, and what takes the fast path.
//!
//! | state | meaning | next |
//! |---|---|---|
//! | idle | not connected yet: takes receives only | ready; failed |
//! | ready | connected, or about to be: the device is ready to send | failed |
//! | failed | failed, flushed or disconnected: requests are accepted and reported as cancelled | |

use super::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::types::{RequestFlags, RequestType};

const IDLE: u8 = 0;
const READY: u8 = 1;
const FAILED: u8 = 2;

/// What a thread that posts asks before it takes the lock of a request queue. It must find the device ready, or the queue
/// flushing; the [model](super::model) checks that under loom.
pub(super) struct Readiness {
    state: AtomicU8,
    /// The fast path takes requests with one SGE that is shorter than this, in bytes: sends and writes, inline sends and
    /// writes, and reads. 0 while they may not be posted.
    bounds: [AtomicU64; 3],
    /// The outbound read limit of the connection. With 0, a read would never complete.
    outbound_reads: AtomicU32,
}

/// The bounds of the fast path once requests may be posted, in bytes.
pub(super) struct Bounds {
    pub messages: u64,
    pub inline: u64,
    pub reads: u64,
}

impl Readiness {
    /// Of an idle queue pair.
    pub fn new() -> Readiness {
        Readiness {
            state: AtomicU8::new(IDLE),
            bounds: [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)],
            outbound_reads: AtomicU32::new(0),
        }
    }

    /// The device is ready to send, on a connection with this outbound read limit.
    pub fn connected(&self, outbound_reads: u32, bounds: Bounds) {
        self.outbound_reads.store(outbound_reads, Ordering::Relaxed); // released by the state and the bounds
        // A queue pair that has been flushed meanwhile stays failed.
        let _ = self.state.compare_exchange(IDLE, READY, Ordering::AcqRel, Ordering::Acquire);
        self.open(bounds);
    }

    /// The queue pair has failed, and its request queues are flushing. Returns whether it had not failed before.
    pub fn failed(&self, bounds: Bounds) -> bool {
        let before = self.state.swap(FAILED, Ordering::AcqRel);
        self.open(bounds);
        before != FAILED
    }

    /// Released after the device is ready, or the queues are flushing: who posts by a bound finds them so. Who sees an old
    /// bound takes the slow path, or finds the queue flushing under its lock.
    fn open(&self, bounds: Bounds) {
        let reads = if self.may_read() { bounds.reads } else { 0 };
        for (bound, value) in self.bounds.iter().zip([bounds.messages, bounds.inline, reads]) {
            bound.store(value, Ordering::Release);
        }
    }

    /// The bound of the fast path for requests of this kind; see [`Readiness::bounds`]. To be acquired.
    #[inline(always)]
    pub fn bound(&self, kind: RequestType, flags: RequestFlags) -> &AtomicU64 {
        match kind {
            RequestType::Read => &self.bounds[2],
            _ => &self.bounds[usize::from(flags.contains(RequestFlags::INLINE))],
        }
    }

    /// Whether requests other than receives may be posted.
    #[inline]
    pub fn may_post(&self) -> bool {
        self.state.load(Ordering::Acquire) != IDLE
    }

    /// Whether the queue pair is connected and has not failed.
    pub fn is_ready(&self) -> bool {
        self.state.load(Ordering::Acquire) == READY
    }

    /// Whether the queue pair has failed, been flushed or disconnected.
    pub fn has_failed(&self) -> bool {
        self.state.load(Ordering::Acquire) == FAILED
    }

    /// Whether the connection allows reads by this side.
    #[inline]
    pub fn may_read(&self) -> bool {
        self.outbound_reads.load(Ordering::Relaxed) != 0
    }
}
