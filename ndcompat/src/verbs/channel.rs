//! Completion channels: descriptors that are readable when armed completion queues have signalled events.

use std::io;
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::bindings::*;
use super::{Context, Library, errno};

/// A completion channel.
pub struct CompletionChannel {
    raw: NonNull<ibv_comp_channel>,
    context: Arc<Context>,
}

// SAFETY: verbs calls on a channel are thread-safe.
unsafe impl Send for CompletionChannel {}
// SAFETY: events are read from a descriptor, each by one reader.
unsafe impl Sync for CompletionChannel {}

impl CompletionChannel {
    /// Creates a channel whose [`event`](Self::event) never blocks.
    ///
    /// # Errors
    /// The errno of `ibv_create_comp_channel`, or of making its descriptor non-blocking.
    pub fn create(context: &Arc<Context>) -> io::Result<Arc<CompletionChannel>> {
        // SAFETY: the context is live: it is closed only when its owner, which is borrowed here, is dropped.
        let raw = errno::created(context, "ibv_create_comp_channel", unsafe {
            (context.library().ibv_create_comp_channel)(context.as_ptr())
        })?;
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
        // SAFETY: the channel is live: `self` owns it, and destroys it only when it is dropped.
        unsafe { self.raw.as_ref().fd }
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// The errno of `ibv_get_cq_event`; having none is not an error.
    pub fn event(&self) -> io::Result<Option<CompletionEvent>> {
        let (mut cq, mut cookie) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the channel is live, both results are writable.
        let rc = unsafe { (self.context.library().ibv_get_cq_event)(self.as_ptr(), &mut cq, &mut cookie) };
        errno::found(errno::posix(&self.context, "ibv_get_cq_event", rc).map(|()| CompletionEvent {
            cq,
            cookie: cookie as usize,
            library: self.context.library(),
        }))
    }
}

impl Drop for CompletionChannel {
    fn drop(&mut self) {
        // SAFETY: every queue on the channel holds it, so none is left.
        unsafe { (self.context.library().ibv_destroy_comp_channel)(self.as_ptr()) };
    }
}

/// An event of a completion queue, acknowledged when dropped, unless that is [left to the queue](super::CompletionQueue::acknowledge_later).
///
/// Destroying the queue waits for the acknowledgement: the queue is alive while the event is, and a thread that holds the
/// event must not drop the queue.
pub struct CompletionEvent {
    cq: *mut ibv_cq,
    cookie: usize,
    library: &'static Library,
}

// SAFETY: an event may be acknowledged by any thread.
unsafe impl Send for CompletionEvent {}

impl CompletionEvent {
    /// The completion queue.
    pub fn cq(&self) -> *mut ibv_cq {
        self.cq
    }

    /// The cookie that the queue was created with.
    pub fn cookie(&self) -> usize {
        self.cookie
    }
}

impl Drop for CompletionEvent {
    fn drop(&mut self) {
        // SAFETY: the queue is not destroyed before this.
        unsafe { (self.library.ibv_ack_cq_events)(self.cq, 1) };
    }
}
