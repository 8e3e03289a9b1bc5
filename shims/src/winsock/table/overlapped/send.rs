//! Sending. A request on a stream completes when all of it is sent.

use super::{Driver, Operation, Step};
use crate::winsock::table;
use crate::winsock::wire::{self, Ancillary, Pieces};
use libc::c_int;
use smallvec::SmallVec;
use std::os::fd::RawFd;

/// A send of the caller's memory.
pub(in crate::winsock) struct Send {
    pub(in crate::winsock) pieces: Pieces,
    pub(in crate::winsock) flags: c_int,
    /// A copy of the receiver's address.
    pub(in crate::winsock) to: SmallVec<[u8; 32]>,
    /// A copy of the control data.
    pub(in crate::winsock) control: Box<[u8]>,
    pub(in crate::winsock) stream: bool,
    pub(in crate::winsock) sent: usize,
}

impl Send {
    pub(in crate::winsock) fn attempt(&mut self, fd: RawFd) -> Step {
        loop {
            // SAFETY: both stay until the call ends.
            let ancillary = unsafe { Ancillary::sent(&self.to, &self.control) };
            let pieces = if self.stream { wire::first_of(&self.pieces) } else { &self.pieces };
            match wire::send(fd, pieces, self.flags | libc::MSG_DONTWAIT, &ancillary) {
                Ok(count) => {
                    self.sent += count;
                    if !self.stream || count >= wire::total(&self.pieces) {
                        return Step::done(self.sent);
                    }
                    wire::consume(&mut self.pieces, count);
                    // They have gone with the first part.
                    self.control = Box::default();
                }
                Err(libc::EAGAIN) => return Step::Blocked,
                Err(libc::EPIPE) if table::was_reset(fd) => return Step::failed(libc::ECONNRESET),
                Err(libc::EPIPE) => return Step::failed(wire::broken(fd)),
                Err(errno) => {
                    table::note_reset_of_driver(fd, errno);
                    return Step::failed(errno);
                }
            }
        }
    }
}

impl Driver {
    /// Whether sends pend, so that others have to come after them.
    pub(in crate::winsock) fn sends(&self) -> bool {
        let is_own = || self.process == std::process::id();
        let queue = match self.output.try_lock() {
            Some(queue) => queue,
            // A forked child may have it from a thread that is not there.
            None if !is_own() => return false,
            None => self.output.lock(),
        };
        let first = queue.pending.first.as_ref().map(|first| &first.operation);
        matches!(first, Some(Operation::Send(_) | Operation::Transmit(_))) && is_own()
    }
}
