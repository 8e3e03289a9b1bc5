//! The slots of a request queue: what is stored of a request until its result is reported.

use super::RequestQueue;
use super::state::{AtomicState, State};
use crate::data::completion;
use crate::status::Status;
use crate::sync::cache_aligned::CACHE_LINE;
use crate::types::{Completion, RequestType};
use crate::verbs::bindings::ibv_wc;
use std::cell::Cell;

/// One request of a queue.
#[repr(C)]
pub(super) struct Slot {
    pub context: Cell<u64>,
    /// The next slot of the ring; never changes.
    pub next: *mut Slot,
    /// The queue that the slot belongs to; never changes.
    pub queue: *const RequestQueue,
    pub state: AtomicState,
    /// Of a receive that has completed, the length of the message in bytes; of a read, that of its list; else 0. A completion does not tell
    /// how much was read: mana's has no length, and that of a read in several pieces is of the last.
    pub bytes: Cell<u32>,
}

// No slot spans two cache lines.
const _: () = assert!(CACHE_LINE.is_multiple_of(size_of::<Slot>()));

impl Slot {
    /// Initialises a ring of `count` slots of `queue` at `first`: free if `usable`, otherwise never free.
    ///
    /// # Safety
    /// `first` must be valid for writes of `count` slots.
    pub unsafe fn make_ring(
        first: *mut Slot,
        count: usize,
        queue: *const RequestQueue,
        usable: bool,
    ) -> *mut Slot {
        let state = if usable { State::FREE } else { State::UNUSABLE };
        let mut next = first;
        for at in (0..count).rev() {
            let state = AtomicState::new(state);
            let slot = first.wrapping_add(at);
            // SAFETY: one of the `count` slots, which the caller says can be written.
            unsafe { slot.write(Slot { context: Cell::new(0), next, queue, state, bytes: Cell::new(0) }) };
            next = slot;
        }
        first
    }

    /// The queue that the slot belongs to.
    #[inline(always)]
    pub fn queue(&self) -> &RequestQueue {
        // SAFETY: slots are in the allocation of their queue, so that they do not outlive it.
        unsafe { &*self.queue }
    }

    /// The result of a completed request.
    pub fn completion(&self, state: State) -> Completion {
        let status = completion::status(state.status(), state.kind());
        let mut result = self.result(state.kind(), status, self.bytes.get());
        if !status.is_success() {
            result.bytes_transferred = 0;
        }
        result
    }

    #[inline(always)]
    fn result(&self, kind: RequestType, status: Status, received: u32) -> Completion {
        Completion {
            status,
            bytes_transferred: if kind == RequestType::Receive { received } else { self.bytes.get() },
            queue_pair_context: self.queue().queue_pair_context,
            request_context: self.context.get(),
            request_type: kind,
        }
    }
}

/// The `wr_id` of a request: the address of its slot, plus a bit if it is a drain request. Those of shared receives have
/// another bit, see `shared_receive_queue`.
#[derive(Clone, Copy)]
pub(super) struct WrId(pub u64);

impl WrId {
    const DRAIN: u64 = 2;
    /// Both bits.
    const OTHERS: u64 = 3;

    #[inline(always)]
    pub fn new(slot: *mut Slot) -> WrId {
        WrId(slot as u64)
    }

    /// The `wr_id` of the drain request posted after the request of `slot`.
    pub fn drain(slot: *mut Slot) -> WrId {
        WrId(slot as u64 | WrId::DRAIN)
    }

    pub fn is_drain(self) -> bool {
        self.0 & WrId::DRAIN != 0
    }

    pub fn slot(self) -> *mut Slot {
        (self.0 & !WrId::OTHERS) as *mut Slot
    }
}

/// The fast path of reaping. If `wc` is the success of the oldest request of its queue, which is not silent, and no later
/// one has completed, frees the slot and returns the result. Otherwise returns `None` and changes nothing.
///
/// # Safety
/// `wc` must come from the completion queue whose lock the caller holds, and its request queue must be in memory.
#[inline(always)]
pub(crate) unsafe fn reap_in_order(wc: &ibv_wc) -> Option<Completion> {
    if wc.wr_id & WrId::OTHERS != 0 || wc.status != 0 {
        return None;
    }
    // SAFETY: a `wr_id` without those bits is the address of a slot, whose queue the caller says is in memory.
    let slot = unsafe { &*(wc.wr_id as *const Slot) };
    let (state, oldest) = (slot.state.of_completed(), &slot.queue().reporting.0.oldest);
    if !state.is_plain() || !std::ptr::eq(oldest.get(), slot) {
        return None;
    }
    let result = slot.result(state.kind(), Status::SUCCESS, wc.byte_len);
    oldest.set(slot.next);
    slot.state.free();
    Some(result)
}
