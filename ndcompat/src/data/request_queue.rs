//! The work requests outstanding on one queue of a queue pair.
//!
//! A verbs completion returns 64 bits of the caller (`wr_id`). An ND result needs more: the contexts of the request and of
//! its queue pair, and the type of the request, which verbs leaves undefined for failed requests. So every request has a
//! [`Slot`] of a ring, and `wr_id` is the address of the slot.
//!
//! ND reports results in the order of posting, one for each request. Not every device completes in order: siw completes a
//! write before a read that was posted earlier. So a completion is recorded in its slot, and results are reported from the
//! oldest slot on, until one is not completed. A completion of a request that is not outstanding is ignored.
//!
//! Posting and reaping may be on different threads: each writes to separate cache lines, which no other queue shares.

#[cfg(test)]
mod model;
mod reservation;
mod slot;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use reservation::Reservation;
pub(crate) use slot::reap_in_order;

use crate::sync::cache_aligned::{CacheAligned, Padded};
use crate::sync::lock::{Held, Lock};
use crate::types::{Completion, RequestType};
use crate::verbs::{
    self,
    bindings::{ibv_wc, ibv_wc_status},
};
use slot::{Slot, WrId};
use state::{CANCELED, State};
use std::cell::Cell;
use std::sync::atomic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// A queue pair, as the reaping of its request queues sees it.
pub(crate) trait QueueOwner: Send + Sync {
    /// A request has failed, so the connection is gone, whether or not rdma_cm reports it.
    fn broken(self: Arc<Self>);

    /// The device has flushed requests whose results are deferred; see [`RequestQueue::defer_flushed`].
    fn flushed(self: Arc<Self>);

    /// Whether the device has no way to the peer.
    fn is_cut_off(&self) -> bool;

    /// Whether the device says that it takes no requests any more, as the connection is gone.
    fn is_stopped(&self) -> bool;

    /// Whether the device may fail to report some of the requests that were outstanding when the queue pair failed.
    fn is_lossy(&self) -> bool;

    /// On a failed queue pair: posts a drain request, if the device's last request is unsignalled.
    fn drain(&self);

    /// The request queues that complete on `cq`.
    fn queues_on(&self, cq: &Arc<verbs::CompletionQueue>) -> [Option<&RequestQueue>; 2];
}

/// A ring of slots: the requests of one queue whose results have not been reported.
pub(crate) struct RequestQueue {
    /// How many unsignalled requests may follow each other. After these, a silent request is signalled and its result
    /// hidden: a queue of unsignalled requests alone would never free a slot.
    most_unsignalled: u32,
    /// Silent reads are signalled as well, as the device completes later requests before them.
    signal_reads: bool,
    queue_pair_context: u64,
    owner: Weak<dyn QueueOwner>,
    producer: Lock<Producer>,
    /// See [`defer_flushed`](Self::defer_flushed).
    defers_flushed: AtomicBool,
    reporting: Padded<Reporting>,
}

/// The reporting end of the ring, under the lock of the completion queue.
struct Reporting {
    /// The oldest slot. The low bit is set while `early` is not 0, so that [`reap_in_order`] does not match it.
    oldest: Cell<*mut Slot>,
    /// How many requests have completed before the oldest one.
    early: Cell<u32>,
}

/// The posting end of the ring.
struct Producer {
    /// The slot of the next request. If it is not free, the queue is full.
    head: *mut Slot,
    first: *mut Slot,
    slots: usize,
    /// How many unsignalled requests have been posted since the last signalled one.
    unsignalled: u32,
    /// A silent request has been posted at some time.
    silent: bool,
    /// The queue pair has failed: requests are not posted to the device any more.
    flushing: bool,
    /// While flushing: the device's last request, if it is unsignalled and not drained yet; otherwise null.
    undrained: *mut Slot,
}

// SAFETY: a free slot is accessed under the producer lock, a posted one under the completion queue's lock; the release and
// acquire order of the slot's state passes it on. `reporting` is accessed under the completion queue's lock only.
unsafe impl Send for RequestQueue {}
// SAFETY: the two locks and the state of each slot exclude accesses by two threads at once.
unsafe impl Sync for RequestQueue {}
// SAFETY: the pointers are to slots of the queue, which is `Send`.
unsafe impl Send for Producer {}

/// The parameters of a work request that do not come from the program.
#[derive(Clone, Copy)]
pub(crate) struct Ticket {
    /// The `wr_id` to post with.
    pub wr_id: u64,
    /// Whether the device must report the request's success.
    pub signalled: bool,
}

/// The outcome of [`RequestQueue::complete`].
pub(crate) enum Noted<'a> {
    /// No such request is outstanding.
    Ignored,
    /// A request of this queue has completed; results may be due.
    Completed(&'a RequestQueue),
    /// A request of this queue was flushed, and stays outstanding; see [`RequestQueue::defer_flushed`].
    Deferred(&'a RequestQueue),
}

impl RequestQueue {
    pub(crate) fn new(
        depth: u32,
        signal_reads: bool,
        queue_pair_context: u64,
        owner: Weak<dyn QueueOwner>,
    ) -> CacheAligned<RequestQueue> {
        // A depth of 0 has one slot that is never free.
        let slots = depth.max(1) as usize;
        CacheAligned::new(slots * size_of::<Slot>(), |queue: *mut RequestQueue, room| {
            // SAFETY: the allocation has room for `slots` slots.
            let first = unsafe { Slot::make_ring(room.cast(), slots, queue, depth > 0) };
            let producer = Producer {
                head: first,
                first,
                slots,
                unsignalled: 0,
                silent: false,
                flushing: false,
                undrained: std::ptr::null_mut(),
            };
            RequestQueue {
                most_unsignalled: depth.div_ceil(2).saturating_sub(1),
                signal_reads,
                queue_pair_context,
                owner,
                // Filling the queue once must not make the thread the owner of the lock.
                producer: Lock::new(producer, depth.saturating_add(64)),
                defers_flushed: AtomicBool::new(false),
                reporting: Padded(Reporting { oldest: Cell::new(first), early: Cell::new(0) }),
            }
        })
    }

    /// As [`RequestQueue::reserve`]; also `None` if another thread holds the lock.
    #[inline(always)]
    pub(crate) fn try_reserve(
        &self,
        context: u64,
        kind: RequestType,
        silent: bool,
        bytes: u32,
    ) -> Option<(Reservation<'_>, Ticket)> {
        self.reserve_with(self.producer.try_lock()?, context, kind, silent, bytes)
    }

    /// Reserves the slot of the next request; of a read, `bytes` is the length. `None` if the queue is full, or the queue pair has failed.
    pub(crate) fn reserve(
        &self,
        context: u64,
        kind: RequestType,
        silent: bool,
        bytes: u32,
    ) -> Option<(Reservation<'_>, Ticket)> {
        self.reserve_with(self.producer.lock(), context, kind, silent, bytes)
    }

    #[inline(always)]
    fn reserve_with<'a>(
        &'a self,
        mut producer: Held<'a, Producer>,
        context: u64,
        kind: RequestType,
        silent: bool,
        bytes: u32,
    ) -> Option<(Reservation<'a>, Ticket)> {
        let head = producer.head;
        // SAFETY: the head is always a slot of this queue.
        let slot = unsafe { &*head };
        if !slot.state.is_free() || producer.flushing {
            return None;
        }
        let signalled = !silent || self.signals(&mut producer, kind);
        // Everything is stored before posting, as the program's waiting time for the device begins with that.
        slot.context.set(context);
        if kind != RequestType::Receive {
            slot.bytes.set(if kind == RequestType::Read { bytes } else { 0 });
        }
        producer.head = slot.next;
        slot.state.post(State::posted(kind, silent, signalled));
        Some((Reservation(producer), Ticket { wr_id: WrId::new(head).0, signalled }))
    }

    /// Accepts a request on a failed queue pair if there is room. It is not posted, and is reported as cancelled in order.
    pub(crate) fn accept_flushed(&self, context: u64, kind: RequestType) -> bool {
        self.producer.lock().accept_flushed(context, kind)
    }

    /// Whether a silent request is to be signalled.
    #[inline(always)]
    fn signals(&self, producer: &mut Producer, kind: RequestType) -> bool {
        producer.silent = true;
        let signalled =
            producer.unsignalled >= self.most_unsignalled || self.signal_reads && kind == RequestType::Read;
        producer.unsignalled = if signalled { 0 } else { producer.unsignalled + 1 };
        signalled
    }

    /// Whether requests that the device flushes stay outstanding until [`start_flushing`](Self::start_flushing), after which this has
    /// no effect. The queue pair must then be [lossy](QueueOwner::is_lossy), as they have no second completion.
    pub(crate) fn defer_flushed(&self, on: bool) {
        let producer = self.producer.lock();
        self.defers_flushed.store(on && !producer.flushing, Ordering::Relaxed);
    }

    /// From now on, no request is posted to the device, as the queue pair has failed.
    pub(crate) fn start_flushing(&self) {
        self.flush_from_now_on(&mut self.producer.lock());
    }

    fn flush_from_now_on(&self, producer: &mut Producer) {
        if producer.flushing {
            return;
        }
        producer.flushing = true;
        self.defers_flushed.store(false, Ordering::Relaxed);
        let last = producer.last();
        // SAFETY: the pointer is to a slot of this queue; the slots live as long as the queue, and their states are atomic.
        if unsafe { &*last }.state.load().is_unsignalled() {
            producer.undrained = last;
        }
    }

    /// Drains the device's last request if it is unsignalled and requests flushed without the device, which are reported after it, wait
    /// for it. `post` posts a signalled request without effect, with the `wr_id` given, and returns whether there was room.
    pub(crate) fn drain(&self, post: impl FnOnce(u64) -> bool) {
        let mut producer = self.producer.lock();
        if producer.undrained.is_null() || producer.last() == producer.undrained {
            return;
        }
        if post(WrId::drain(producer.undrained).0) {
            producer.undrained = std::ptr::null_mut();
        }
    }

    /// Whether a silent request is outstanding: the queue may then be full although the program has taken all results.
    /// Visits every slot if there ever was a silent request.
    pub(crate) fn has_silent(&self) -> bool {
        let producer = self.producer.lock();
        producer.silent && producer.slots().any(|slot| slot.state.peek().is_silent())
    }

    /// Whether no request is outstanding. Called with the completion queue's lock held.
    pub(crate) fn is_idle(&self) -> bool {
        !self.oldest().state.load().is_taken()
    }

    /// The queue pair that the queue belongs to.
    pub(crate) fn owner(&self) -> &Weak<dyn QueueOwner> {
        &self.owner
    }

    /// The type of the request that has completed, and its queue pair.
    ///
    /// # Safety
    /// `wc` must be of a request whose queue is in memory.
    pub(crate) unsafe fn request_of(wc: &ibv_wc) -> (RequestType, &Weak<dyn QueueOwner>) {
        // SAFETY: the caller says that the request's queue is in memory; `wr_id` is the address of a slot of it.
        let slot = unsafe { &*WrId(wc.wr_id).slot() };
        (slot.state.load().kind(), slot.queue().owner())
    }

    /// Records a completion in the slot of its request, if that is outstanding.
    ///
    /// # Safety
    /// `wc` must be of a request whose queue is in memory, and the caller must hold the lock of its completion queue.
    pub(crate) unsafe fn complete(wc: &ibv_wc) -> Noted<'_> {
        let id = WrId(wc.wr_id);
        // SAFETY: the caller says that the request's queue is in memory; `wr_id` is the address of a slot of it.
        let slot = unsafe { &*id.slot() };
        let queue = slot.queue();
        let state = slot.state.load();
        // The flush of a drain request means that the request before it has succeeded: a failure would have been reported.
        let status = if id.is_drain() { 0 } else { wc.status };
        if !state.is_outstanding() {
            return Noted::Ignored;
        }
        if wc.status == CANCELED && queue.defers_flushed.load(Ordering::Relaxed) {
            return Noted::Deferred(queue);
        }
        if status == 0 && state.kind() == RequestType::Receive {
            slot.bytes.set(wc.byte_len);
        }
        slot.state.complete(state, status);
        queue.reporting.0.add_early(1);
        Noted::Completed(queue)
    }

    /// Completes the requests that the device of a failed queue pair has not reported as cancelled.
    pub(crate) fn give_up(&self) {
        let producer = self.producer.lock();
        if !producer.flushing {
            return;
        }
        let slots = producer.slots;
        drop(producer);
        let mut slot = std::ptr::from_ref(self.oldest()).cast_mut();
        for _ in 0..slots {
            // SAFETY: the pointer is to a slot of this queue; the slots live as long as the queue, and their states are
            // atomic.
            let this = unsafe { &*slot };
            let state = this.state.load();
            if state.is_outstanding() {
                this.state.complete(state, CANCELED);
                self.reporting.0.add_early(1);
            }
            slot = this.next;
        }
    }

    /// Reports the results that are due, oldest first, and frees their slots. The caller holds the completion queue's lock.
    pub(crate) fn report(&self, mut report: impl FnMut(Completion)) {
        loop {
            let slot = self.oldest();
            let state = slot.state.load();
            if state.is_unsignalled() {
                // An unsignalled request has completed if a later one has.
                if !self.skip_unsignalled() {
                    return;
                }
            } else if state.is_completed() {
                let (completion, visible) = (slot.completion(state), state.is_visible());
                if state.is_reported() {
                    self.reporting.0.add_early(-1);
                }
                self.free_oldest();
                if visible {
                    report(completion);
                }
            } else {
                return;
            }
        }
    }

    /// Frees the slots of the oldest requests if they are unsignalled and the device has completed a later one, which
    /// implies their success.
    #[inline(never)]
    fn skip_unsignalled(&self) -> bool {
        let mut later = self.oldest();
        loop {
            let state = later.state.load();
            if state.is_unsignalled() {
                // SAFETY: the pointer is to a slot of this queue; the slots live as long as the queue, and their states
                // are atomic.
                later = unsafe { &*later.next };
                if std::ptr::eq(later, self.oldest()) {
                    return false;
                }
            } else if state.is_reported() {
                break;
            } else {
                return false;
            }
        }
        while !std::ptr::eq(self.oldest(), later) {
            self.free_oldest();
        }
        true
    }

    /// Whether the oldest request is a `Send` that was so at an earlier call. The caller holds the completion queue's lock.
    pub(crate) fn is_waiting_to_send(&self) -> bool {
        let slot = self.oldest();
        let state = slot.state.load();
        if !state.is_outstanding() || state.kind() != RequestType::Send {
            return false;
        }
        slot.state.mark(state);
        state.is_marked()
    }

    /// How many requests there are from the oldest on whose success the device does not report, and the slot behind them. The caller
    /// holds the completion queue's lock.
    fn unsignalled(&self) -> (u64, &Slot) {
        let (first, mut slot, mut count) = (self.oldest(), self.oldest(), 0);
        while slot.state.load().is_unsignalled() {
            count += 1;
            // SAFETY: the pointer is to a slot of this queue; the slots live as long as the queue, and their states are
            // atomic.
            slot = unsafe { &*slot.next };
            if std::ptr::eq(slot, first) {
                break;
            }
        }
        (count, slot)
    }

    /// How many requests are to be sent until the device reports one. The caller holds the completion queue's lock.
    pub(crate) fn unreported(&self) -> u64 {
        self.unsignalled().0 + 1
    }

    /// Whether the device reports neither the oldest request nor one of those behind it if all succeed. The caller holds the
    /// completion queue's lock.
    pub(crate) fn is_unsignalled(&self) -> bool {
        let behind = self.unsignalled().1.state.load();
        behind.is_unsignalled() || !behind.is_taken()
    }

    /// Whether a request is outstanding that the device is to report, or waits for one that it has not. The caller holds the completion
    /// queue's lock.
    pub(crate) fn awaits_device(&self) -> bool {
        let behind = self.unsignalled().1.state.load();
        behind.is_taken() && !behind.is_unsignalled()
    }

    /// Lets the device report the last request, which is unsignalled, as done: `post` posts a signalled request without effect behind
    /// it, with the `wr_id` given, and returns whether there was room. Returns whether it was posted.
    pub(crate) fn signal_last(&self, post: impl FnOnce(u64) -> bool) -> bool {
        let producer = self.producer.lock();
        let last = producer.last();
        // SAFETY: the pointer is to a slot of this queue; the slots live as long as the queue, and their states are atomic.
        let unsignalled = unsafe { &*last }.state.load().is_unsignalled();
        !producer.flushing && unsignalled && post(WrId::drain(last).0)
    }

    /// Records that the oldest request, which is outstanding, has failed with `status`. The caller holds the completion queue's lock.
    pub(crate) fn fail_oldest(&self, status: ibv_wc_status) {
        let slot = self.oldest();
        slot.state.complete(slot.state.load(), status);
        self.reporting.0.add_early(1);
    }

    fn oldest(&self) -> &Slot {
        // SAFETY: the pointer is to a slot of this queue; the slots live as long as the queue, and their states are atomic.
        unsafe { &*self.reporting.0.oldest.get().map_addr(|address| address & !1) }
    }

    /// Frees the oldest slot. Another thread may fill it at once.
    fn free_oldest(&self) {
        let slot = self.oldest();
        self.reporting.0.set_oldest(slot.next);
        slot.state.free();
    }
}

impl Reporting {
    fn add_early(&self, more: i32) {
        self.early.set(self.early.get().wrapping_add_signed(more));
        self.set_oldest(self.oldest.get().map_addr(|address| address & !1));
    }

    fn set_oldest(&self, slot: *mut Slot) {
        self.oldest.set(slot.map_addr(|address| address | usize::from(self.early.get() > 0)));
    }
}

impl Producer {
    fn slots(&self) -> impl Iterator<Item = &Slot> {
        // SAFETY: `make_ring` has initialized `slots` adjacent slots, which live as long as the queue.
        unsafe { std::slice::from_raw_parts(self.first, self.slots) }.iter()
    }

    /// See [`RequestQueue::accept_flushed`].
    fn accept_flushed(&mut self, context: u64, kind: RequestType) -> bool {
        // SAFETY: the head is always a slot of the queue, which lives as long as this.
        let slot = unsafe { &*self.head };
        if !self.flushing || !slot.state.is_free() {
            return false;
        }
        slot.context.set(context);
        self.head = slot.next;
        slot.state.flush(kind);
        true
    }

    /// The slot of the last request.
    fn last(&self) -> *mut Slot {
        let behind = if self.head == self.first { self.slots } else { 0 };
        self.head.wrapping_add(behind).wrapping_sub(1)
    }
}
