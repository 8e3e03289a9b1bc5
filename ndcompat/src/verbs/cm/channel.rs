//! Event channels.

use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::Arc;

use super::super::bindings::*;
use super::super::{Library, errno, nodes};

/// A channel that the events of its ids arrive on.
pub struct EventChannel {
    raw: NonNull<rdma_event_channel>,
    library: &'static Library,
}

// SAFETY: librdmacm's calls on a channel are thread-safe.
unsafe impl Send for EventChannel {}
// SAFETY: events are read from a descriptor, each by one reader.
unsafe impl Sync for EventChannel {}

impl EventChannel {
    /// Creates a channel for ids of the devices of `library`, whose [`event`](Self::event) never blocks; `ENODEV` without
    /// an RDMA device, `EACCES` without permission for the connection manager's file.
    ///
    /// # Errors
    /// The errno of `rdma_create_event_channel`, or of making its descriptor non-blocking.
    pub fn create(library: &'static Library) -> io::Result<Arc<EventChannel>> {
        // SAFETY: the function of the library has no parameters, and makes a new channel.
        EventChannel::of(library, unsafe { (library.rdma_create_event_channel)() })
    }

    /// As [`create`](Self::create), for a channel with few events that many files watch. On the emulator a thread that waits for other
    /// channels drives the device.
    ///
    /// # Errors
    /// As there.
    pub fn create_quiet(library: &'static Library) -> io::Result<Arc<EventChannel>> {
        match library.is_emulator() {
            true => EventChannel::of(library, softiwarp::verbs::create_quiet_event_channel()),
            false => EventChannel::create(library),
        }
    }

    /// The channel that a library has made, or the error that it has told.
    fn of(library: &'static Library, raw: *mut rdma_event_channel) -> io::Result<Arc<EventChannel>> {
        let raw = errno::created(&(), "rdma_create_event_channel", raw);
        let raw = raw.map_err(|error| match library.is_emulator() {
            true => error,
            false => nodes::connection_manager_error(error),
        })?;
        let channel = EventChannel { raw, library };
        errno::set_nonblocking(channel.fd())?;
        Ok(Arc::new(channel))
    }

    /// The C object.
    pub fn as_ptr(&self) -> *mut rdma_event_channel {
        self.raw.as_ptr()
    }

    /// The library of the channel.
    pub fn library(&self) -> &'static Library {
        self.library
    }

    /// The descriptor that is readable when an event waits.
    pub fn fd(&self) -> RawFd {
        // SAFETY: the channel is live: `self` owns it, and destroys it only when it is dropped.
        unsafe { self.raw.as_ref().fd }
    }
}

impl Drop for EventChannel {
    fn drop(&mut self) {
        // SAFETY: every id on the channel holds it, so none is left.
        unsafe { (self.library.rdma_destroy_event_channel)(self.as_ptr()) };
    }
}
