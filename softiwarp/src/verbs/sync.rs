//! The synchronisation primitives of [`events`](super::events), in one place so that its model can substitute others.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, eventfd};

use super::process::Process;
pub(super) use crate::socket::Lock;
pub(super) use std::thread_local;

/// An eventfd. It is in blocking mode, as programs may have it. It is one object for this process and its children, which leave it alone.
pub(super) struct Signal(OwnedFd, Process);

impl Signal {
    pub(super) fn new() -> io::Result<Signal> {
        Ok(Signal(eventfd(0, EventfdFlags::CLOEXEC)?, Process::this()))
    }

    /// Whether it is this process's, and not its parent's.
    pub(super) fn is_own(&self) -> bool {
        self.1.is_this()
    }

    /// Makes it readable. An edge-triggered wait sees an edge each time.
    pub(super) fn set(&self) {
        if !self.is_own() {
            return;
        }
        // Fails only if the counter overflows, which it cannot.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Makes it unreadable. It must be readable.
    pub(super) fn clear(&self) {
        if !self.is_own() {
            return;
        }
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Signal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Signal {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
