//! The allocation of TLS slots (`TlsAlloc`), with a count of the uses of each.

use super::sync::{AtomicU32, Mutex, Ordering};

/// A value belongs to one use of its slot; in another use it counts as NULL.
pub(super) struct TlsIndices {
    /// How often each slot was allocated or freed: odd while it is in use.
    pub(super) uses: &'static [AtomicU32],
    pub(super) allocation: &'static Mutex<()>,
}

impl TlsIndices {
    /// Allocates the first free slot.
    pub(super) fn allocate(&self) -> Option<usize> {
        let _allocation = self.allocation.lock();
        let index = self.uses.iter().position(|uses| uses.load(Ordering::Relaxed) % 2 == 0)?;
        self.uses[index].fetch_add(1, Ordering::Relaxed);
        Some(index)
    }

    /// Frees a slot; returns whether it was in use.
    pub(super) fn free(&self, index: usize) -> bool {
        let _allocation = self.allocation.lock();
        let Some(uses) = self.uses.get(index).filter(|uses| uses.load(Ordering::Relaxed) % 2 == 1) else {
            return false;
        };
        uses.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// The present use of a slot, for a thread that has got its index after the allocation; `None` out of range.
    #[inline]
    pub(super) fn current(&self, index: usize) -> Option<u32> {
        self.uses.get(index).map(|uses| uses.load(Ordering::Relaxed))
    }
}
