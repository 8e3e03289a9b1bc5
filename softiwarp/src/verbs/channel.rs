//! Completion channels, and the events of completion queues.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use verbs_sys::*;

use super::context::Unacknowledged;
use super::inbox::Inbox;
use super::rnic::{Rnic, rnic_of};
use super::{created, errno, functions, verb};

/// A completion channel.
#[repr(C)]
pub(super) struct Channel {
    /// It counts the queues of the channel while other threads make some, destroy some, and wait for events.
    raw: UnsafeCell<ibv_comp_channel>,
    pub rnic: &'static Rnic,
    /// The completion queues with an event.
    pub events: Arc<Inbox<Notified>>,
}

/// The completion event of a queue.
pub(super) struct Notified {
    pub cq: *mut ibv_cq,
    pub events: Arc<Unacknowledged>,
}

// SAFETY: queues may be used by any thread.
unsafe impl Send for Notified {}

impl Channel {
    /// How many queues it has, which its C structure shows.
    pub(super) fn queues(&self) -> &AtomicI32 {
        // SAFETY: within the structure, which may change behind a shared reference.
        let count = unsafe { &raw mut (*self.raw.get()).refcnt };
        // SAFETY: aligned, lives as long as the channel, and this device uses it only so.
        unsafe { AtomicI32::from_ptr(count) }
    }
}

functions! {
    fn ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
        let new = || {
            // SAFETY: opened by this device, and closed after all that was made on it, as verbs ask.
            let rnic = unsafe { rnic_of(context) }?;
            let events = Arc::new(Inbox::new(true).map_err(|error| errno(&error))?);
            let raw = ibv_comp_channel { context, fd: events.descriptor(), refcnt: 0 };
            let raw = UnsafeCell::new(raw);
            Ok(Box::into_raw(Box::new(Channel { raw, rnic, events })).cast())
        };
        created(new())
    }

    fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
        // SAFETY: made by `ibv_create_comp_channel`, and not destroyed during the call, as verbs ask.
        verb(if unsafe { &*channel.cast::<Channel>() }.queues().load(Ordering::Acquire) != 0 {
            Err(libc::EBUSY)
        } else {
            // SAFETY: made above, destroyed once.
            drop(unsafe { Box::from_raw(channel.cast::<Channel>()) });
            Ok(())
        })
    }
}
