//! Where messages arrive: posted receives and their memory, of one end or of several that share a receive queue.

use super::ledger::Ledger;
use super::memory::{Memory, Slots};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// Receives and their memory.
pub struct Inbox {
    /// The posted receives.
    pub ledger: Ledger,
    /// The memory.
    pub memory: Arc<Memory>,
    /// Its slots for messages.
    pub slots: Slots,
    /// The local token of the memory, once it is registered.
    pub token: AtomicU32,
    /// How many messages peers may send.
    credit: AtomicI32,
    /// For each thread: contexts used.
    contexts: Vec<AtomicU32>,
    shared: bool,
}

impl Inbox {
    /// Receives into these slots, posted by `threads` threads, for one end or (`shared`) for several.
    pub fn new(memory: Arc<Memory>, slots: Range<usize>, threads: usize, shared: bool) -> Arc<Inbox> {
        Arc::new(Inbox {
            ledger: Ledger::new(threads),
            memory,
            slots: Slots::new(slots),
            token: AtomicU32::new(0),
            credit: AtomicI32::new(0),
            contexts: (0..threads).map(|_| AtomicU32::new(0)).collect(),
            shared,
        })
    }

    /// Whether several ends receive here.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// A context for a receive of this thread.
    pub fn context(&self, thread: usize) -> u64 {
        Ledger::context(thread, self.contexts[thread].fetch_add(1, Ordering::Relaxed))
    }

    /// One more message may be sent here.
    pub fn allow(&self) {
        self.credit.fetch_add(1, Ordering::Release);
    }

    /// Whether a message may be sent here, which is then taken into account.
    pub fn is_allowed(&self) -> bool {
        let take = |credit: i32| (credit > 0).then(|| credit - 1);
        self.credit.fetch_update(Ordering::Acquire, Ordering::Relaxed, take).is_ok()
    }
}
