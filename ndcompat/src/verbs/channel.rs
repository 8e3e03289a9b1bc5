//! Completion channels: descriptors that become readable when armed completion queues fill.

use std::io;
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::bindings::*;
use super::{Context, errno};

/// A completion channel.
pub struct CompletionChannel {
    raw: NonNull<ibv_comp_channel>,
    context: Arc<Context>,
}

// SAFETY: verbs calls on a channel are thread-safe.
unsafe impl Send for CompletionChannel {}
// SAFETY: as above.
unsafe impl Sync for CompletionChannel {}

impl CompletionChannel {
    /// Creates a channel whose [`event`](Self::event) never blocks.
    pub fn create(context: &Arc<Context>) -> io::Result<Arc<CompletionChannel>> {
        // SAFETY: the context is live.
        let raw = errno::created(unsafe { ibv_create_comp_channel(context.as_ptr()) })?;
        let channel = CompletionChannel { raw, context: Arc::clone(context) };
        errno::set_nonblocking(channel.fd())?;
        Ok(Arc::new(channel))
    }

    /// The C object.
    pub fn as_ptr(&self) -> *mut ibv_comp_channel {
        self.raw.as_ptr()
    }

    /// The device.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The descriptor that is readable when an event waits.
    pub fn fd(&self) -> RawFd {
        // SAFETY: the channel is live.
        unsafe { self.raw.as_ref().fd }
    }

    /// Takes the next event.
    pub fn event(&self) -> io::Result<Option<CompletionEvent>> {
        let (mut cq, mut cookie) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the channel is live, both results are writable.
        let rc = unsafe { ibv_get_cq_event(self.as_ptr(), &mut cq, &mut cookie) };
        errno::found(errno::posix(rc).map(|()| CompletionEvent { cq, cookie: cookie as usize }))
    }
}

impl Drop for CompletionChannel {
    fn drop(&mut self) {
        // SAFETY: every queue on the channel holds it, so none is left.
        unsafe { ibv_destroy_comp_channel(self.as_ptr()) };
    }
}

/// An event of a completion queue, acknowledged when dropped, unless the queue [keeps](super::CompletionQueue::keep) it.
///
/// Destroying the queue waits for that, so while the event lives its queue does, and a thread that holds the event
/// must not drop the queue.
pub struct CompletionEvent {
    cq: *mut ibv_cq,
    cookie: usize,
}

// SAFETY: an event may be acknowledged by any thread.
unsafe impl Send for CompletionEvent {}

impl CompletionEvent {
    /// The completion queue.
    pub fn cq(&self) -> *mut ibv_cq {
        self.cq
    }

    /// What the queue was created with.
    pub fn cookie(&self) -> usize {
        self.cookie
    }
}

impl Drop for CompletionEvent {
    fn drop(&mut self) {
        // SAFETY: the queue waits for this before it goes.
        unsafe { ibv_ack_cq_events(self.cq, 1) };
    }
}
