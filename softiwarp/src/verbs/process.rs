//! Which process an object is of: after a fork the child has copies of what its parent has made, but the kernel's objects behind them, as
//! sockets and eventfds, are the same for both.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many forks ago the first process of this library began.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// A process, as its children tell it from themselves.
#[derive(Clone, Copy)]
pub(super) struct Process(u32);

impl Process {
    /// This one.
    pub(super) fn this() -> Process {
        extern "C" fn child() {
            FORKS.fetch_add(1, Ordering::Relaxed);
        }
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // SAFETY: the function stays: this library is never unloaded.
            unsafe { libc::pthread_atfork(None, None, Some(child)) };
        });
        Process(FORKS.load(Ordering::Relaxed))
    }

    /// Whether it is this one.
    pub(super) fn is_this(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }
}
