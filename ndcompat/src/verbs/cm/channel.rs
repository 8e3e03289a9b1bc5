//! Event channels.

use std::io;
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::super::bindings::*;
use super::super::errno;
use super::Event;

/// A channel that the events of its ids arrive on.
pub struct EventChannel {
    raw: NonNull<rdma_event_channel>,
}

// SAFETY: librdmacm's calls on a channel are thread-safe.
unsafe impl Send for EventChannel {}
// SAFETY: as above.
unsafe impl Sync for EventChannel {}

impl EventChannel {
    /// Creates a channel whose [`event`](Self::event) never blocks; `ENODEV` without an RDMA device.
    pub fn create() -> io::Result<Arc<EventChannel>> {
        // SAFETY: takes nothing.
        let raw = errno::created(unsafe { rdma_create_event_channel() })?;
        let channel = EventChannel { raw };
        errno::set_nonblocking(channel.fd())?;
        Ok(Arc::new(channel))
    }

    /// The C object.
    pub fn as_ptr(&self) -> *mut rdma_event_channel {
        self.raw.as_ptr()
    }

    /// The descriptor that is readable when an event waits.
    pub fn fd(&self) -> RawFd {
        // SAFETY: the channel is live.
        unsafe { self.raw.as_ref().fd }
    }

    /// Takes the next event.
    pub fn event(self: &Arc<EventChannel>) -> io::Result<Option<Event>> {
        let mut raw = ptr::null_mut();
        // SAFETY: the channel is live, the result writable.
        let rc = unsafe { rdma_get_cm_event(self.as_ptr(), &mut raw) };
        // SAFETY: on success the event is live and ours to acknowledge.
        errno::found(errno::posix(rc).map(|()| unsafe { Event::new(raw, self) }))
    }
}

impl Drop for EventChannel {
    fn drop(&mut self) {
        // SAFETY: every id on the channel holds it, so none is left.
        unsafe { rdma_destroy_event_channel(self.as_ptr()) };
    }
}
