//! The slots of a request queue: what is remembered of a request until it completes, and what its completion says.

use super::RequestQueue;
use crate::lock::CACHE_LINE;
use crate::status::Status;
use crate::types::{Completion, RequestType};
use crate::verbs::bindings::ibv_wc;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// What must be remembered of one posted request until it completes.
#[repr(C)]
pub(super) struct Slot {
    pub context: u64,
    // These two never change.
    pub next: *mut Slot,
    pub queue: *const RequestQueue,
    /// What a receive's slot has from the beginning.
    pub kind: RequestType,
    /// What the device says of the request does not count: it was not given it, or has been taken to have lost it.
    disowned: AtomicBool,
}

// No slot lies on two lines.
const _: () = assert!(CACHE_LINE.is_multiple_of(size_of::<Slot>()));

impl Slot {
    /// Believes nothing, from now on, that the device says of the request.
    pub fn disown(&self) {
        self.disowned.store(true, Ordering::Relaxed);
    }

    pub fn is_disowned(&self) -> bool {
        self.disowned.load(Ordering::Relaxed)
    }

    /// What `report` says of the request; then frees its slot, and those before it.
    ///
    /// # Safety
    /// The slot must be taken, its queue be in memory, and the lock of its completion queue be held.
    #[inline(always)]
    unsafe fn free<T>(&self, report: impl FnOnce(&Slot) -> T) -> T {
        // First: a slot that is free may be another thread's next request at once.
        let (queue, reported) = (self.queue, report(self));
        // SAFETY: the caller's promise.
        unsafe { &*queue }.tail.0.store(ptr::from_ref(self).cast_mut(), Ordering::Release);
        reported
    }

    /// What to report of a request that was successful.
    #[inline(always)]
    fn success(&self, wc: &ibv_wc) -> Completion {
        self.completion(Status::SUCCESS, if self.kind == RequestType::Receive { wc.byte_len } else { 0 })
    }

    #[inline(always)]
    pub fn completion(&self, status: Status, bytes: u32) -> Completion {
        Completion {
            status,
            bytes_transferred: bytes,
            // SAFETY: the queue is in memory while a slot is used.
            queue_pair_context: unsafe { (*self.queue).queue_pair_context },
            request_context: self.context,
            request_type: self.kind,
        }
    }
}

/// The slots, which lie behind the queue: one more than may be taken.
#[derive(Clone, Copy)]
pub(super) struct Ring {
    pub first: *mut Slot,
    count: u32,
}

impl Ring {
    /// Makes `count` slots of `queue`, beginning with the `first`.
    ///
    /// # Safety
    /// There must be room for so many.
    pub unsafe fn new(first: *mut Slot, count: u32, queue: *const RequestQueue) -> Ring {
        let mut next = first;
        for at in (0..count as usize).rev() {
            let disowned = AtomicBool::new(false);
            let slot = Slot { context: 0, next, queue, kind: RequestType::Receive, disowned };
            // SAFETY: the caller's promise.
            unsafe {
                next = first.add(at);
                next.write(slot);
            }
        }
        Ring { first, count }
    }

    pub fn last(self) -> *mut Slot {
        self.first.wrapping_add(self.count as usize - 1)
    }

    pub fn before(self, slot: *mut Slot) -> *mut Slot {
        if slot == self.first { self.last() } else { slot.wrapping_sub(1) }
    }

    /// Whether a slot comes after `tail` and before `head`, which may be the tail itself, all around.
    pub fn is_taken(self, slot: *mut Slot, tail: *mut Slot, head: *mut Slot) -> bool {
        if tail < head { tail < slot && slot < head } else { tail < slot || slot < head }
    }
}

/// What a request is called at the device, its `wr_id`: the address of its slot, of which the low bits are zero but for one
/// that tells whether it is silent, and one that tells whether it is but a word on that request, see
/// [`RequestQueue::last_word`]. Shared receives have another, see `shared_receive_queue`.
#[derive(Clone, Copy)]
pub(super) struct Name(pub u64);

impl Name {
    const SILENT: u64 = 2;
    const LAST_WORD: u64 = 4;
    /// The bits of those, and of shared receives.
    const NOT_PLAIN: u64 = 7;

    #[inline(always)]
    pub fn new(slot: *mut Slot, silent: bool) -> Name {
        Name(slot as u64 | if silent { Name::SILENT } else { 0 })
    }

    /// Of the request that reports on this one.
    pub fn last_word(slot: *mut Slot) -> Name {
        Name(slot as u64 | Name::LAST_WORD)
    }

    fn is(self, what: u64) -> bool {
        self.0 & what != 0
    }

    /// The slot.
    ///
    /// # Safety
    /// It must be in memory and taken, and the lock of its completion queue be held.
    #[inline(always)]
    unsafe fn slot<'a>(self) -> &'a Slot {
        // SAFETY: the name was made of the slot's address.
        unsafe { &*((self.0 & !Name::NOT_PLAIN) as *const Slot) }
    }
}

/// What a work completion means to ND.
pub(crate) enum Reaped<'a> {
    /// One to hand to the user.
    Visible(Completion),
    /// A failed one, and the queue it failed on.
    Failed(Completion, &'a RequestQueue),
    /// One nobody asked for.
    Hidden,
}

/// What to report of `wc` if it is the success of a request that is neither silent nor a shared receive: then its slot is
/// freed, and those before it. Otherwise nothing is done, and [`reap`] is to be asked.
///
/// # Safety
/// `wc` must come from the completion queue whose lock the caller holds, and its queue must still be in memory; no request
/// of that may have been reported as cancelled.
#[inline(always)]
pub(crate) unsafe fn reap_plain(wc: &ibv_wc) -> Option<Completion> {
    if wc.wr_id & Name::NOT_PLAIN != 0 || wc.status != 0 {
        return None;
    }
    // SAFETY: a plain request's name is its slot's address; the rest is passed on to the caller.
    unsafe {
        let slot = &*(wc.wr_id as *const Slot);
        Some(slot.free(|slot| slot.success(wc)))
    }
}

/// Frees the slot that `wc` completes, and those before it, and says what to report. Not for shared receives.
///
/// # Safety
/// As [`reap_plain`].
pub(crate) unsafe fn reap<'a>(wc: &ibv_wc) -> Reaped<'a> {
    let name = Name(wc.wr_id);
    // SAFETY: passed on to the caller.
    let slot = unsafe { name.slot() };
    // SAFETY: passed on to the caller.
    let is_outstanding = || unsafe { &*slot.queue }.is_outstanding(slot);
    let may_be_over = wc.status != 0 || name.is(Name::LAST_WORD);
    if slot.is_disowned() || may_be_over && !is_outstanding() {
        // It was reported as lost before, and found by the device after all; or it is a further piece of one that has failed,
        // or the word on one that has.
        return Reaped::Hidden;
    }
    let report = |slot: &Slot| {
        if name.is(Name::LAST_WORD) || wc.status == 0 && name.is(Name::SILENT) {
            Reaped::Hidden
        } else if wc.status != 0 {
            let completion = slot.completion(crate::completion::status(wc, slot.kind), 0);
            // SAFETY: passed on to the caller.
            Reaped::Failed(completion, unsafe { &*slot.queue })
        } else {
            Reaped::Visible(slot.success(wc))
        }
    };
    // SAFETY: passed on to the caller; the device has not reported it before.
    unsafe { slot.free(report) }
}
