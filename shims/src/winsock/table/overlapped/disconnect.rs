//! `DisconnectEx`: the end of a connection, after what was to be sent before.

use super::super::Known;
use super::Step;
use std::os::fd::RawFd;
use std::sync::Arc;

/// One `DisconnectEx`.
pub(in crate::winsock) struct Disconnect {
    /// The socket, if it is to be made ready for another connection.
    pub(in crate::winsock) reused: Option<Arc<Known>>,
}

impl Disconnect {
    pub(in crate::winsock) fn attempt(&mut self, fd: RawFd) -> Step {
        // SAFETY: takes no pointer. What it says to a connection that was reset does not matter.
        unsafe { libc::shutdown(fd, libc::SHUT_RDWR) };
        self.reused.take().map_or(Step::done(0), Step::Renew)
    }
}
