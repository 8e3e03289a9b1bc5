//! Completion channels, and the events of completion queues.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use verbs_sys::*;

use super::completion::Cq;
use super::context::Unacknowledged;
use super::inbox::Inbox;
use super::rnic::{Rnic, rnic_of};
use super::{created, errno, functions, posix, verb};

/// A completion channel.
#[repr(C)]
pub(super) struct Channel {
    /// It counts the queues of the channel while other threads make some, destroy some, and wait for events.
    raw: UnsafeCell<ibv_comp_channel>,
    rnic: &'static Rnic,
    /// The completion queues with an event.
    pub events: Arc<Inbox<Notified>>,
}

/// The completion event of a queue.
pub(super) struct Notified {
    cq: *mut ibv_cq,
    events: Arc<Unacknowledged>,
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

impl Notified {
    pub(super) fn new(cq: *mut ibv_cq, events: &Arc<Unacknowledged>) -> Notified {
        Notified { cq, events: Arc::clone(events) }
    }

    pub(super) fn is_of(&self, cq: *mut ibv_cq) -> bool {
        self.cq == cq
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

    fn ibv_get_cq_event(
        channel: *mut ibv_comp_channel, cq: *mut *mut ibv_cq, cookie: *mut *mut c_void
    ) -> c_int {
        // SAFETY: the caller's channel lives. Another thread may destroy it while this one waits, which then waits on.
        let own = unsafe { &*channel.cast::<Channel>() };
        let (rnic, events) = (own.rnic, Arc::clone(&own.events));
        let next = events.next(Some(&rnic.poller), |notified| notified.events.taken());
        posix(next.map(|notified| {
            // SAFETY: the queue waits for its events before it goes, and this one is not acknowledged yet.
            let context = unsafe { (*notified.cq).cq_context };
            // SAFETY: as above.
            unsafe { Cq::of(notified.cq) }.spare_sockets();
            // SAFETY: room for the queue, as verbs ask.
            unsafe { *cq = notified.cq };
            // SAFETY: room for what the program calls the queue, as verbs ask.
            unsafe { *cookie = context };
        }))
    }
}
