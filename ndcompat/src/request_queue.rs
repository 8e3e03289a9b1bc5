//! The work requests outstanding on one queue of a queue pair.
//!
//! Verbs gives a completion 64 bits of the poster's own (`wr_id`); ND wants more back: the request's context, its queue
//! pair's context and its type, the last of which verbs leaves undefined when a request failed. So every request
//! occupies a [`Slot`], and `wr_id` is the slot's address ([`Name`]). Requests of one queue complete in order, so the slots
//! form a ring, and the completion of a request frees its slot and those of all unsignalled requests before it.
//!
//! Perhaps different threads use the two ends: what either writes is on cache lines of its own, and no two queues share
//! a line.

use crate::lines::Lines;
use crate::lock::{CACHE_LINE, Either, Held, Lock, Padded, Way};
use crate::queue_pair::Core;
use crate::status::Status;
use crate::types::{Completion, RequestType};
use crate::verbs::bindings::ibv_wc;
use std::cell::UnsafeCell;
use std::sync::Weak;
use std::sync::atomic::{AtomicU32, Ordering};

/// What must be remembered of one posted request until it completes.
#[repr(C)]
struct Slot {
    context: u64,
    /// Atomic because a device that has lost a request, and finds it, looks here although the slot may be another's by then.
    sequence: AtomicU32,
    kind: RequestType,
    // These never change. They are not next to `context`: to read both at once just after one was written takes long.
    queue: *const RequestQueue,
    queue_pair_context: u64,
}

// No slot lies on two lines.
const _: () = assert!(CACHE_LINE.is_multiple_of(size_of::<Slot>()));

/// A ring of slots: the requests posted to one queue and not yet reaped from its completion queue.
pub(crate) struct RequestQueue {
    /// They lie behind the queue.
    slots: *const UnsafeCell<Slot>,
    /// The number of slots, which is a power of two, less one.
    mask: u32,
    depth: u32,
    /// How many silent requests may follow each other before one must report, to be swallowed: a queue of silent requests
    /// only would never free a slot.
    silence: u32,
    core: Weak<Core>,
    producer: Lock<Producer>,
    /// Sequence number of the oldest request not reaped. Written under the completion queue's lock.
    tail: Padded<AtomicU32>,
}

/// The posting end of the ring.
struct Producer {
    head: u32,
    /// Where `head` may not go beyond without a closer look: at most the depth above `tail`, as it was once; no further
    /// than it is on a failed queue pair.
    end: u32,
    /// Silent requests since the last one that reports.
    unsignalled: u32,
    /// The latest request that asked for no completion.
    last_silent: Option<u32>,
    /// Set when the queue pair has failed: from this sequence number on, requests never reach the device.
    flushing_from: Option<u32>,
}

/// How far off a sequence number is that no request has.
const FAR: u32 = 1 << 31;

// SAFETY: a slot is written only by the holder of the producer lock while it is free, and read only by the holder of
// the completion queue's lock while it is taken; `tail` orders the two.
unsafe impl Send for RequestQueue {}
// SAFETY: as above.
unsafe impl Sync for RequestQueue {}

/// What a request is called at the device, its `wr_id`: the address of its slot, of which the low bits are zero but for one
/// that tells whether it is silent. Shared receives have another, see `shared_receive_queue`.
#[derive(Clone, Copy)]
struct Name(u64);

impl Name {
    const SILENT: u64 = 2;
    /// The bits of silent requests and of shared receives.
    const NOT_PLAIN: u64 = 3;

    #[inline(always)]
    fn new(slot: *const Slot, silent: bool) -> Name {
        Name(slot as u64 | if silent { Name::SILENT } else { 0 })
    }

    #[inline(always)]
    fn is_silent(self) -> bool {
        self.0 & Name::SILENT != 0
    }

    /// The slot.
    ///
    /// # Safety
    /// It must be in memory and taken, and the lock of its completion queue be held.
    #[inline(always)]
    unsafe fn slot<'a>(self) -> &'a Slot {
        // SAFETY: the name was made of the slot's address.
        unsafe { &*((self.0 & !Name::SILENT) as *const Slot) }
    }
}

/// A request about to be posted: what the device needs to know about it.
#[derive(Clone, Copy)]
pub(crate) struct Ticket {
    /// The `wr_id` to post with.
    pub wr_id: u64,
    /// Whether the device must report the request's success.
    pub signalled: bool,
}

impl RequestQueue {
    pub(crate) fn new(depth: u32, queue_pair_context: u64, core: Weak<Core>) -> Lines<RequestQueue> {
        let count = depth.max(2).next_power_of_two();
        let producer =
            Producer { head: 0, end: depth, unsignalled: 0, last_silent: None, flushing_from: None };
        Lines::new(count as usize * size_of::<Slot>(), |queue: *mut RequestQueue, room| {
            let slots: *mut UnsafeCell<Slot> = room.cast();
            for at in 0..count as usize {
                let (context, sequence, kind) = (0, AtomicU32::new(0), RequestType::Receive);
                let slot = Slot { queue_pair_context, context, sequence, kind, queue };
                // SAFETY: there is room for so many.
                unsafe { slots.add(at).write(UnsafeCell::new(slot)) };
            }
            RequestQueue {
                slots,
                mask: count - 1,
                depth,
                silence: depth.div_ceil(2).saturating_sub(1),
                core,
                // Who only fills the queue, before others use it, does not make it its own.
                producer: Lock::new(producer, depth.saturating_add(64)),
                tail: Padded(AtomicU32::new(0)),
            }
        })
    }

    #[inline(always)]
    fn slot(&self, sequence: u32) -> *mut Slot {
        let at = (sequence & self.mask) as usize;
        // SAFETY: the mask names no slot beyond the last one.
        UnsafeCell::raw_get(unsafe { self.slots.add(at) })
    }

    /// As [`RequestQueue::reserve`], and none if that takes more than a moment.
    #[inline(always)]
    pub(crate) fn reserve_now<'a, W: Way<'a>>(
        &'a self,
        context: u64,
        kind: RequestType,
        silent: bool,
    ) -> Option<Place<'a, W>> {
        let mut producer = W::take(&self.producer)?;
        if producer.head == producer.end {
            let end = self.end();
            if producer.head == end || producer.flushing_from.is_some() {
                return None;
            }
            producer.end = end;
        }
        // SAFETY: the slot is free: head is less than depth ahead of tail.
        Some(unsafe { self.take(producer, context, kind, silent) })
    }

    /// Where the head may not go beyond by now.
    #[inline(always)]
    fn end(&self) -> u32 {
        self.tail.0.load(Ordering::Acquire).wrapping_add(self.depth)
    }

    /// Takes a slot for a request, which is to be posted to the device next, and then [`Place::settle`]d.
    pub(crate) fn reserve(
        &self,
        context: u64,
        kind: RequestType,
        silent: bool,
    ) -> std::result::Result<Place<'_>, KeptBack> {
        let mut producer = self.producer.lock();
        let end = self.end();
        if producer.head == end {
            return Err(KeptBack::Full);
        }
        producer.end = end;
        let flushing = producer.flushing_from.is_some();
        // SAFETY: the slot is free: head is less than depth ahead of tail.
        let mut place = unsafe { self.take(producer, context, kind, silent) };
        if flushing {
            place.producer.end = place.producer.head;
            // The device does not know the request: what comes under its name is about one that was lost before it.
            let sequence = end.wrapping_add(FAR);
            // SAFETY: the slot that was just taken.
            unsafe {
                (*self.slot(place.producer.head.wrapping_sub(1))).sequence.store(sequence, Ordering::Relaxed)
            };
            return Err(KeptBack::Flushed);
        }
        Ok(place)
    }

    /// Takes the next slot. All is done before the device knows of the request, so that little is left to do after.
    ///
    /// # Safety
    /// The slot must be free.
    #[inline(always)]
    unsafe fn take<'a, W: Way<'a>>(
        &self,
        mut producer: Held<'a, Producer, W>,
        context: u64,
        kind: RequestType,
        silent: bool,
    ) -> Place<'a, W> {
        let head = producer.head;
        let slot = self.slot(head);
        // SAFETY: the slot is free, and the producer lock is held.
        unsafe {
            (*slot).context = context;
            (*slot).sequence.store(head, Ordering::Relaxed);
            (*slot).kind = kind;
        }
        producer.head = head.wrapping_add(1);
        let mut signalled = true;
        if silent {
            producer.last_silent = Some(head);
            signalled = producer.unsignalled >= self.silence;
            producer.unsignalled = if signalled { 0 } else { producer.unsignalled + 1 };
        }
        Place { producer, ticket: Ticket { wr_id: Name::new(slot, silent).0, signalled } }
    }

    /// Keeps all requests from now on away from the device. True the first time.
    pub(crate) fn start_flushing(&self) -> bool {
        let mut producer = self.producer.lock();
        let first = producer.flushing_from.is_none();
        if first {
            producer.flushing_from = Some(producer.head);
            producer.end = producer.head;
        }
        first
    }

    /// Takes the requests the device will not report: those posted after the queue pair failed, once all before them
    /// have been reaped; with `lossy`, also those that the device was given and has not reported by now.
    ///
    /// The caller holds the completion queue's lock and has found the completion queue empty.
    pub(crate) fn take_flushed(&self, lossy: bool, mut report: impl FnMut(Completion)) {
        let producer = self.producer.lock();
        let Some(from) = producer.flushing_from else { return };
        let mut tail = self.tail.0.load(Ordering::Relaxed);
        if !lossy && from.wrapping_sub(tail) as i32 > 0 {
            return;
        }
        while tail != producer.head {
            // SAFETY: a taken slot, read under the completion queue's lock.
            report(unsafe { &*self.slot(tail) }.completion(Status::CANCELED, 0));
            tail = tail.wrapping_add(1);
        }
        self.tail.0.store(tail, Ordering::Release);
    }

    /// Whether a request that asked for no completion is outstanding: then the queue may be full although the user has
    /// taken every result there is.
    pub(crate) fn has_silent(&self) -> bool {
        let producer = self.producer.lock();
        let tail = self.tail.0.load(Ordering::Acquire);
        producer.last_silent.is_some_and(|last| last.wrapping_sub(tail) as i32 >= 0)
    }

    /// Whether no request is outstanding.
    pub(crate) fn is_idle(&self) -> bool {
        self.producer.lock().head == self.tail.0.load(Ordering::Acquire)
    }

    /// The queue pair this queue belongs to, while it lives.
    pub(crate) fn core(&self) -> &Weak<Core> {
        &self.core
    }
}

impl Slot {
    /// What `report` says of the request; then frees its slot, and those before it. Nothing if that was done before.
    ///
    /// # Safety
    /// The slot's queue must be in memory, and the lock of its completion queue be held.
    unsafe fn complete<T>(&self, report: impl FnOnce(&Slot) -> T) -> Option<T> {
        // SAFETY: the caller's promise.
        let (queue, sequence) = (unsafe { &*self.queue }, self.sequence.load(Ordering::Relaxed));
        if sequence.wrapping_sub(queue.tail.0.load(Ordering::Relaxed)) >= queue.depth {
            return None;
        }
        // SAFETY: as above.
        Some(unsafe { self.free(sequence, report) })
    }

    /// What `report` says of the request, which has the `sequence` number; then frees its slot, and those before it.
    ///
    /// # Safety
    /// As [`Slot::complete`]; the slot must be taken.
    #[inline(always)]
    unsafe fn free<T>(&self, sequence: u32, report: impl FnOnce(&Slot) -> T) -> T {
        // First: a slot that is free may be another thread's next request at once.
        let (queue, reported) = (self.queue, report(self));
        // SAFETY: the caller's promise.
        unsafe { &*queue }.tail.0.store(sequence.wrapping_add(1), Ordering::Release);
        reported
    }

    /// What to report of a request that was successful.
    #[inline(always)]
    fn success(&self, wc: &ibv_wc) -> Completion {
        self.completion(Status::SUCCESS, if self.kind == RequestType::Receive { wc.byte_len } else { 0 })
    }

    #[inline(always)]
    fn completion(&self, status: Status, bytes: u32) -> Completion {
        Completion {
            status,
            bytes_transferred: bytes,
            queue_pair_context: self.queue_pair_context,
            request_context: self.context,
            request_type: self.kind,
        }
    }
}

/// A slot that is taken for a request; the queue is locked meanwhile.
pub(crate) struct Place<'a, W: Way<'a> = Either<'a>> {
    producer: Held<'a, Producer, W>,
    ticket: Ticket,
}

impl<'a, W: Way<'a>> Place<'a, W> {
    #[inline(always)]
    pub(crate) fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// Keeps the slot if the device has taken the request; `error` is what it has answered.
    #[inline(always)]
    pub(crate) fn settle(self, error: i32) -> Status {
        if error == 0 { Status::SUCCESS } else { refused(self.producer, error) }
    }
}

/// Gives the slot back, and says why.
#[cold]
#[inline(never)]
fn refused<'a, W: Way<'a>>(mut producer: Held<'a, Producer, W>, error: i32) -> Status {
    producer.head = producer.head.wrapping_sub(1);
    // It may have been the silent one that was to report: the next does.
    producer.unsignalled = u32::MAX;
    if error == libc::ENOMEM { Status::NO_MORE_ENTRIES } else { Status::from_errno(error) }
}

/// Why a request is not for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptBack {
    /// As many requests as the queue was created for are outstanding.
    Full,
    /// The queue pair has failed. The request is accepted, and the completion queue must report it as cancelled.
    Flushed,
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
        Some(slot.free(slot.sequence.load(Ordering::Relaxed), |slot| slot.success(wc)))
    }
}

/// Frees the slot that `wc` completes, and those before it, and says what to report. Not for shared receives.
///
/// # Safety
/// As [`reap_plain`].
pub(crate) unsafe fn reap<'a>(wc: &ibv_wc) -> Reaped<'a> {
    let name = Name(wc.wr_id);
    // SAFETY: passed on to the caller.
    let report = unsafe {
        name.slot().complete(|slot| {
            if wc.status != 0 {
                let completion = slot.completion(crate::completion::status(wc, slot.kind), 0);
                Reaped::Failed(completion, &*slot.queue)
            } else if name.is_silent() {
                Reaped::Hidden
            } else {
                Reaped::Visible(slot.success(wc))
            }
        })
    };
    // What was reported as lost before, and found by the device after all, is nothing to report.
    report.unwrap_or(Reaped::Hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(depth: u32) -> Lines<RequestQueue> {
        RequestQueue::new(depth, 77, Weak::new())
    }

    fn post(queue: &RequestQueue, context: u64, silent: bool) -> std::result::Result<Ticket, KeptBack> {
        let place = queue.reserve(context, RequestType::Send, silent)?;
        let ticket = place.ticket();
        assert_eq!(place.settle(0), Status::SUCCESS);
        Ok(ticket)
    }

    fn success(ticket: &Ticket) -> Reaped<'static> {
        // SAFETY: all-zero is a valid work completion.
        let mut wc: ibv_wc = unsafe { std::mem::zeroed() };
        wc.wr_id = ticket.wr_id;
        // SAFETY: the queue outlives the call in every test.
        unsafe { reap(&wc) }
    }

    #[test]
    fn takes_exactly_its_depth() {
        let queue = queue(3);
        let tickets: Vec<_> = (0..3).map(|i| post(&queue, i, false).unwrap()).collect();
        assert_eq!(post(&queue, 3, false).err(), Some(KeptBack::Full));
        assert!(
            matches!(success(&tickets[0]), Reaped::Visible(c) if c.request_context == 0 && c.queue_pair_context == 77)
        );
        assert!(post(&queue, 3, false).is_ok());
        assert_eq!(post(&queue, 4, false).err(), Some(KeptBack::Full));
    }

    #[test]
    fn a_completion_frees_the_silent_ones_before_it() {
        let queue = queue(8);
        for i in 0..3 {
            assert!(!post(&queue, i, true).unwrap().signalled);
        }
        let last = post(&queue, 3, false).unwrap();
        assert!(matches!(success(&last), Reaped::Visible(c) if c.request_context == 3));
        assert!(queue.is_idle());
    }

    #[test]
    fn silence_is_broken_in_time_and_swallowed() {
        let queue = queue(4);
        for round in 0..100 {
            assert!(!post(&queue, round, true).unwrap().signalled);
            let second = post(&queue, round, true).unwrap();
            assert!(second.signalled);
            assert!(matches!(success(&second), Reaped::Hidden));
        }
        assert!(queue.is_idle());
    }

    #[test]
    fn a_refused_request_leaves_no_trace() {
        let queue = queue(1);
        let refused = queue.reserve(1, RequestType::Send, false).ok().unwrap().settle(libc::EINVAL);
        assert_eq!(refused, Status::INVALID_PARAMETER);
        assert!(queue.is_idle() && post(&queue, 2, false).is_ok());
    }

    #[test]
    fn a_failed_queue_pair_cancels_in_order() {
        let queue = queue(4);
        let before = post(&queue, 1, false).unwrap();
        assert!(queue.start_flushing() && !queue.start_flushing());
        assert_eq!(post(&queue, 2, true).err(), Some(KeptBack::Flushed));
        let mut flushed = Vec::new();
        queue.take_flushed(false, |c| flushed.push(c.request_context));
        assert!(flushed.is_empty(), "the device still owes the first one");
        assert!(matches!(success(&before), Reaped::Visible(_)));
        queue.take_flushed(false, |c| flushed.push(c.request_context));
        assert_eq!(flushed, [2]);
        assert!(queue.is_idle());
    }

    #[test]
    fn a_lossy_device_gets_one_chance() {
        let queue = queue(4);
        let lost = post(&queue, 1, false).unwrap();
        queue.start_flushing();
        let mut flushed = Vec::new();
        queue.take_flushed(true, |c| flushed.push((c.request_context, c.status)));
        assert_eq!(flushed, [(1, Status::CANCELED)]);
        assert!(matches!(success(&lost), Reaped::Hidden));
    }

    #[test]
    fn what_is_found_late_is_no_later_request() {
        let queue = queue(2);
        let lost = post(&queue, 1, false).unwrap();
        queue.start_flushing();
        queue.take_flushed(true, |_| ());
        for context in 2..4 {
            assert_eq!(post(&queue, context, false).err(), Some(KeptBack::Flushed));
        }
        assert!(matches!(success(&lost), Reaped::Hidden));
        let mut flushed = Vec::new();
        queue.take_flushed(true, |c| flushed.push(c.request_context));
        assert_eq!(flushed, [2, 3]);
    }
}
