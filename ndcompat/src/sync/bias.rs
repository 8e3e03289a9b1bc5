//! The state of an owner-biased lock, and taking it as the owner.

use super::atomic::{AtomicU32, AtomicUsize, Ordering, compiler_fence};

/// Whether the lock is taken, and its owner.
#[repr(C)]
pub(crate) struct Bias {
    /// 1 while the owner holds the lock, taken by plain stores.
    pub inside: AtomicU32,
    /// 1 while a thread holds the lock, taken by an atomic instruction.
    pub held: AtomicU32,
    /// The owner's thread, or a value that no thread has. Written by a thread that has set `held`.
    pub owner: AtomicUsize,
}

impl Bias {
    /// Sets `inside`, if thread `me` is the owner before and after.
    ///
    /// A thread that revokes the bias writes `owner`, makes the kernel execute a barrier on this thread (`membarrier`), and
    /// reads `inside`. So either it sees the store to `inside`, or this thread sees the store to `owner`.
    #[inline(always)]
    #[cfg_attr(
        target_arch = "x86_64",
        allow(dead_code, reason = "x86 has the same in assembly, in `machine`")
    )]
    pub fn enter(&self, me: usize) -> bool {
        if self.owner.load(Ordering::Relaxed) != me {
            return false;
        }
        self.inside.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let is_mine = self.owner.load(Ordering::Relaxed) == me;
        if !is_mine {
            self.inside.store(0, Ordering::Relaxed);
        }
        is_mine
    }
}
