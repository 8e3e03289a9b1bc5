//! Posting a request whose slot is filled, and what becomes of the slot if the device refuses it.

use super::{Producer, QueueOwner};
use crate::status::Status;
use crate::sync::lock::Held;
use crate::types::RequestType;
use crate::verbs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The slot of a request about to be posted. Holds the producer lock.
pub(crate) struct Reservation<'a>(pub(super) Held<'a, Producer>);

impl Reservation<'_> {
    /// Ends posting with the verb's `result`. Returns the status for the program.
    #[inline(always)]
    pub(crate) fn conclude(self, result: i32) -> Status {
        if result == 0 {
            return Status::SUCCESS;
        }
        // SAFETY: the guard is not used again here.
        unsafe { Reservation::refused(self.0.into_raw(), result) }
    }

    /// Handles a failed verb: frees the slot, unless the connection has failed.
    ///
    /// # Safety
    /// `producer` must come from the [`Held::into_raw`] of a reservation.
    #[cold]
    #[inline(never)]
    unsafe fn refused(producer: *const AtomicU32, result: i32) -> Status {
        // SAFETY: `producer` is the `into_raw` of this reservation's guard, and not used again.
        let mut producer = unsafe { Held::<Producer>::from_raw(producer) };
        let last = producer.last();
        // SAFETY: a slot of the queue, which lives while its lock is held.
        let slot = unsafe { &*last };
        let (queue, kind) = (slot.queue(), slot.state.load().kind());
        // Receives may have to stay outstanding, as if the device had flushed this request.
        let defers = queue.defers_flushed.load(Ordering::Relaxed) && kind != RequestType::Receive;
        let tell = |owner: Arc<dyn QueueOwner>| if defers { owner.flushed() } else { owner.broken() };
        if result == verbs::UNANNOUNCED {
            drop(producer);
            // This may be the only sign that the connection is gone. The request is flushed with the others.
            queue.owner.upgrade().into_iter().for_each(tell);
            return Status::SUCCESS;
        }
        slot.state.take_back();
        producer.head = last;
        // The refused request may have been the signalled one: signal the next.
        producer.unsignalled = u32::MAX;
        match verbs::errno(result) {
            libc::ENOMEM => return Status::NO_MORE_ENTRIES,
            // What drivers say of a connection that is gone, before there is another sign of it (cxgb4 and mana: EINVAL, erdma: EIO).
            // The request is flushed with those that are posted later.
            libc::EINVAL | libc::EIO | libc::ENOTCONN => {
                if let Some(owner) = queue.owner.upgrade().filter(|owner| owner.is_stopped()) {
                    queue.flush_from_now_on(&mut producer);
                    producer.accept_flushed(slot.context.get(), kind);
                    drop(producer);
                    tell(owner);
                    return Status::SUCCESS;
                }
            }
            _ => {}
        }
        Status::from_errno(verbs::errno(result))
    }
}
