//! Overlapped files.

use super::{Overlapped, Request};
use crate::object::RawHandle;
use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Weak};

/// Something with a file descriptor whose readiness means progress for requests.
pub trait Source: Send + Sync {
    /// The descriptor became readable: drain it without blocking and complete requests.
    ///
    /// May run on several threads at once, and may find nothing to do.
    fn ready(&self);
}

/// Something that can cancel the requests pending on it, for `CancelIo` and `CancelIoEx`.
pub trait Canceller: Send + Sync {
    /// Cancels the request on `ov`, or all of them, before it returns; says how many were cancelled.
    fn cancel(&self, ov: Option<*mut Overlapped>) -> usize;
}

/// An overlapped file: the sources of one adapter user, and perhaps the port its completions go to.
pub struct File {
    _private: (),
}

/// Keeps a source registered with its file; dropping it removes the source.
pub struct Registration {
    _private: (),
}

impl File {
    /// Makes a file without sources.
    pub fn new() -> io::Result<Arc<File>> {
        Ok(Arc::new(File { _private: () }))
    }

    /// Opens a handle to the file.
    pub fn handle(self: &Arc<Self>) -> RawHandle {
        RawHandle::NULL
    }

    /// The file that a handle names, if it names one. The low two bits of the handle do not matter.
    pub fn from_handle(_handle: RawHandle) -> Option<Arc<File>> {
        None
    }

    /// Watches `fd`: whenever it is readable, a thread that waits (or polls) calls [`Source::ready`].
    pub fn add_source(self: &Arc<Self>, _fd: RawFd, _source: Arc<dyn Source>) -> io::Result<Registration> {
        Ok(Registration { _private: () })
    }

    /// Lets `CancelIo` and `CancelIoEx` on this file reach `canceller`.
    pub fn add_canceller(&self, _canceller: Weak<dyn Canceller>) {}

    /// Starts a request: marks `ov` pending and resets its event.
    ///
    /// # Safety
    /// `ov` must point to an `OVERLAPPED` that stays valid until the request completes; of its fields only
    /// `hEvent` needs a value.
    pub unsafe fn begin(self: &Arc<Self>, ov: *mut Overlapped) -> Request {
        Request::new(self.clone(), ov)
    }

    /// Dispatches what is ready now; never blocks.
    pub fn progress(&self) {}

    /// Asks for progress in the background even while no request is pending, until as many calls of
    /// [`File::no_more_events`].
    pub fn expect_events(&self) {}

    /// Takes back one [`File::expect_events`].
    pub fn no_more_events(&self) {}
}
