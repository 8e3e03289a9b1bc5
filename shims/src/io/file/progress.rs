//! A descriptor of a file's progress, for a program's poll loop or executor.

use super::File;
use crate::io::poller::Poller;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

/// Attends to a file's requests from a poll loop of the program: the descriptor is readable when there is work, which
/// [`turn`](Progress::turn) does. Until it is dropped, the background thread leaves the file alone.
///
/// Threads may still wait for requests of the file. To be created before the file is bound to a port.
pub struct Progress {
    poller: Arc<Poller>,
    _file: Arc<File>,
}

impl File {
    /// The file's progress as a descriptor.
    pub fn drive(self: &Arc<Self>) -> Progress {
        let poller = self.poller().clone();
        poller.watched_by_poll_loop();
        Progress { poller, _file: self.clone() }
    }

    /// Once the background thread has adopted the file, it keeps it even if threads poll it now and then.
    pub fn expect_poll_loop(&self) {
        self.poller().watch_outside();
    }
}

impl Progress {
    /// Completes requests and wakes their waiters. Never blocks.
    pub fn turn(&self) {
        self.poller.serve_all();
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").field("descriptor", &self.poller.fd()).finish_non_exhaustive()
    }
}

impl AsRawFd for Progress {
    fn as_raw_fd(&self) -> RawFd {
        self.poller.fd()
    }
}

impl AsFd for Progress {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open for as long as the poller is there.
        unsafe { BorrowedFd::borrow_raw(self.poller.fd()) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.poller.left_by_poll_loop();
    }
}
