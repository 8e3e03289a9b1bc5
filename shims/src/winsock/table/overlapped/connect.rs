//! `ConnectEx`: a connection, optionally with its first data.

use super::super::{Known, OURS_NOT_TO_WAIT};
use super::{Send, Step};
use crate::io::sys::Deadline;
use crate::winsock::system::{checked, int_option, is_blocking, poll, set_blocking};
use std::os::fd::RawFd;
use std::sync::Arc;

/// One `ConnectEx`.
pub(in crate::winsock) struct Connect {
    pub(in crate::winsock) socket: Arc<Known>,
    pub(in crate::winsock) to: Vec<u8>,
    /// The data to send then.
    pub(in crate::winsock) first: Option<Send>,
    /// The kernel is connecting.
    pub(in crate::winsock) begun: bool,
}

impl Connect {
    pub(in crate::winsock) fn attempt(&mut self, fd: RawFd) -> Step {
        if !self.begun {
            self.begun = true;
            if is_blocking(fd) {
                self.socket.mark(OURS_NOT_TO_WAIT);
                if let Err(errno) = set_blocking(fd, false) {
                    return self.failed(fd, errno);
                }
            }
            // SAFETY: an address of that size.
            let result = unsafe { libc::connect(fd, self.to.as_ptr().cast(), self.to.len() as u32) };
            return match checked(result) {
                Ok(()) => self.ended(fd, 0),
                Err(libc::EINPROGRESS | libc::EINTR) => Step::Blocked,
                Err(errno) => self.failed(fd, errno),
            };
        }
        match poll(fd, libc::POLLOUT, Deadline::Now) {
            Ok(0) => Step::Blocked,
            Ok(_) => match int_option(fd, libc::SO_ERROR) {
                Ok(errno) => self.ended(fd, errno),
                Err(errno) => self.failed(fd, errno),
            },
            Err(errno) => self.failed(fd, errno),
        }
    }

    /// The kernel has ended the attempt, with an error or 0.
    fn ended(&mut self, fd: RawFd, errno: i32) -> Step {
        self.restore(fd);
        match (self.socket.connecting_ended(errno), self.first.take()) {
            (Err(errno), _) => Step::failed(errno),
            (Ok(()), Some(send)) => Step::Then(send),
            (Ok(()), None) => Step::done(0),
        }
    }

    fn failed(&self, fd: RawFd, errno: i32) -> Step {
        self.restore(fd);
        Step::failed(errno)
    }

    /// Ends an attempt that the kernel is making.
    pub(super) fn take_back(&self, fd: RawFd) {
        if self.begun {
            let nowhere = libc::sockaddr { sa_family: libc::AF_UNSPEC as _, sa_data: [0; 14] };
            // SAFETY: an address of that size. Cannot fail for a stream socket.
            unsafe { libc::connect(fd, &raw const nowhere, size_of_val(&nowhere) as u32) };
            // Takes the error that this has left.
            let _ = int_option(fd, libc::SO_ERROR);
            self.restore(fd);
        }
    }

    /// Makes the socket blocking again, unless it is the program by now that wants it non-blocking.
    fn restore(&self, fd: RawFd) {
        if self.socket.is_marked(OURS_NOT_TO_WAIT) {
            // Cannot fail: it could be changed before.
            let _ = set_blocking(fd, true);
            // The program has taken the mark away meanwhile.
            if !self.socket.unmark(OURS_NOT_TO_WAIT) {
                let _ = set_blocking(fd, false);
            }
        }
    }
}
