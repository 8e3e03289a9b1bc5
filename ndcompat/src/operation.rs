//! Overlapped requests for Rust programs: safe forms of the calls that take an `OVERLAPPED`.

use crate::completion_queue::CompletionQueue;
use crate::connector::{Connector, Offer};
use crate::listener::Listener;
use crate::queue_pair::QueuePair;
use crate::shared_receive_queue::SharedReceiveQueue;
use crate::status::{Result, Status};
use crate::types::{Completion, NotifyType};
use crate::verbs::SockAddr;
use std::ptr::NonNull;
use std::sync::Arc;
use win32::io::{File, Overlapped, result};

/// A request under way, with the `OVERLAPPED` that it needs.
///
/// One that is dropped goes on; its `OVERLAPPED` is then left to it.
#[must_use = "the request has only begun"]
pub struct Operation {
    file: Arc<File>,
    ov: NonNull<Overlapped>,
}

// SAFETY: requests may be waited for by any thread, and the OVERLAPPED consists of atomics.
unsafe impl Send for Operation {}
// SAFETY: as above.
unsafe impl Sync for Operation {}

impl Operation {
    /// Begins a request on `file` by a call that is given its `OVERLAPPED`.
    ///
    /// # Safety
    /// When `call` succeeds it must have begun a request on that `OVERLAPPED`, when it fails it must not.
    pub unsafe fn begin(
        file: &Arc<File>,
        call: impl FnOnce(*mut Overlapped) -> Result<()>,
    ) -> Result<Operation> {
        let ov = NonNull::from(Box::leak(Box::<Overlapped>::default()));
        match call(ov.as_ptr()) {
            Ok(()) => Ok(Operation { file: file.clone(), ov }),
            Err(status) => {
                // SAFETY: no request uses it, and neither does anybody else.
                drop(unsafe { Box::from_raw(ov.as_ptr()) });
                Err(status)
            }
        }
    }

    /// How the request ended; `ND_PENDING` if it has not.
    pub fn status(&self) -> Status {
        // SAFETY: a request was begun on the OVERLAPPED, which is still there.
        Status(unsafe { result(&self.file, self.ov.as_ptr(), false) })
    }

    /// Blocks until the request has ended. The waiting thread does the work itself: no other is needed.
    pub fn wait(self) -> Result<()> {
        // SAFETY: as above.
        Status(unsafe { result(&self.file, self.ov.as_ptr(), true) }).ok()
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if self.status() != Status::PENDING {
            // SAFETY: nobody else knows the OVERLAPPED any more, and it is not used again.
            drop(unsafe { Box::from_raw(self.ov.as_ptr()) });
        }
    }
}

impl Connector {
    /// [`Connector::connect`], with an `OVERLAPPED` of its own.
    pub fn begin_connect(&self, pair: &QueuePair, to: SockAddr, offer: Offer<'_>) -> Result<Operation> {
        // SAFETY: the call keeps its promise.
        unsafe { Operation::begin(self.file(), |ov| self.connect(pair, to, offer, ov)) }
    }

    /// [`Connector::complete_connect`], with an `OVERLAPPED` of its own.
    pub fn begin_complete_connect(&self) -> Result<Operation> {
        // SAFETY: the call keeps its promise.
        unsafe { Operation::begin(self.file(), |ov| self.complete_connect(ov)) }
    }

    /// [`Connector::accept`], with an `OVERLAPPED` of its own.
    pub fn begin_accept(&self, pair: &QueuePair, offer: Offer<'_>) -> Result<Operation> {
        // SAFETY: the call keeps its promise.
        unsafe { Operation::begin(self.file(), |ov| self.accept(pair, offer, ov)) }
    }

    /// [`Connector::notify_disconnect`], with an `OVERLAPPED` of its own.
    pub fn begin_notify_disconnect(&self) -> Result<Operation> {
        // SAFETY: the call keeps its promise.
        unsafe { Operation::begin(self.file(), |ov| self.notify_disconnect(ov)) }
    }

    /// [`Connector::disconnect`], with an `OVERLAPPED` of its own.
    pub fn begin_disconnect(&self) -> Result<Operation> {
        // SAFETY: the call keeps its promise.
        unsafe { Operation::begin(self.file(), |ov| self.disconnect(ov)) }
    }
}

impl Listener {
    /// [`Listener::connection_request`], with an `OVERLAPPED` of its own.
    pub fn begin_connection_request(&self, connector: &Arc<Connector>) -> Result<Operation> {
        // SAFETY: the call keeps its promise.
        unsafe { Operation::begin(self.file(), |ov| self.connection_request(connector, ov)) }
    }
}

impl SharedReceiveQueue {
    /// [`SharedReceiveQueue::notify`], with an `OVERLAPPED` of its own.
    pub fn begin_notify(&self) -> Result<Operation> {
        // SAFETY: the call keeps its promise.
        unsafe { Operation::begin(self.file(), |ov| self.notify(ov)) }
    }
}

impl CompletionQueue {
    /// [`CompletionQueue::notify`], with an `OVERLAPPED` of its own.
    pub fn begin_notify(&self, kind: NotifyType) -> Result<Operation> {
        let begun = |ov| {
            // SAFETY: the OVERLAPPED lives until the request has completed.
            match unsafe { self.notify(kind, ov) } {
                Status::PENDING => Ok(()),
                status => Err(status),
            }
        };
        // SAFETY: the call keeps its promise.
        unsafe { Operation::begin(self.file(), begun) }
    }

    /// Takes results as [`CompletionQueue::results`] does, but blocks until there is one.
    pub fn wait_for_results(&self, results: &mut [Completion]) -> Result<usize> {
        loop {
            match self.results(results) {
                0 if !results.is_empty() => self.begin_notify(NotifyType::Any)?.wait()?,
                count => return Ok(count),
            }
        }
    }
}
