//! Loom's atomics.

pub(crate) use loom::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::membarrier::{Barrier, fence};

/// A compiler fence as the kernel's barrier strengthens it.
pub(crate) fn compiler_fence(_: Ordering) {
    fence(Barrier::Owner);
}
