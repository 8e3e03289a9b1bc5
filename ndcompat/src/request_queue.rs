//! The work requests outstanding on one queue of a queue pair.
//!
//! Verbs gives a completion 64 bits of the poster's own (`wr_id`); ND wants more back: the request's context, its queue
//! pair's context and its type, the last of which verbs leaves undefined when a request failed. So every request
//! occupies a [`Slot`], and `wr_id` is the slot's address ([`Name`]). Requests of one queue complete in order, so the slots
//! form a ring, and the completion of a request frees its slot and those of all unsignalled requests before it.
//!
//! Perhaps different threads use the two ends: what either writes is on cache lines of its own, and no two queues share
//! a line.

mod slot;

pub(crate) use slot::{Reaped, reap, reap_plain};

use crate::lines::Lines;
use crate::lock::{Either, Held, Lock, Padded, Way};
use crate::queue_pair::Core;
use crate::status::Status;
use crate::types::{Completion, RequestType};
use slot::{Name, Ring, Slot};
use std::ptr;
use std::sync::Weak;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A ring of slots: the requests posted to one queue and not yet reaped from its completion queue.
pub(crate) struct RequestQueue {
    /// How many silent requests may follow each other before one must report, to be swallowed: a queue of silent requests
    /// only would never free a slot.
    silence: u32,
    queue_pair_context: u64,
    core: Weak<Core>,
    producer: Lock<Producer>,
    /// The request reaped last. Its slot is free, but stays so until the next one is: where the posting end meets it, the queue
    /// is full. Written under the completion queue's lock.
    tail: Padded<AtomicPtr<Slot>>,
}

/// The posting end of the ring.
struct Producer {
    /// The slot of the next request.
    head: *mut Slot,
    /// Where `head` may not go beyond without a closer look: the tail, as it was once; `head` itself on a failed queue pair.
    end: *mut Slot,
    slots: Ring,
    /// Silent requests since the last one that reports.
    unsignalled: u32,
    /// The latest request that asked for no completion; null once it is seen not to be outstanding, and so before the head comes
    /// there again.
    last_silent: *mut Slot,
    /// Set when the queue pair has failed: from then on, requests never reach the device.
    flushing: bool,
    /// Then, the device's last request, if it would say nothing of its success, and has not been asked to; or null.
    unspoken: *mut Slot,
}

impl Producer {
    /// Lets `head` go as far as the tail, which is there by now.
    #[inline(always)]
    fn open_to(&mut self, tail: *mut Slot) {
        self.end = tail;
        if !self.last_silent.is_null() {
            self.forget_silent(tail);
        }
    }

    /// Looks whether the latest silent request is outstanding still. Not called, where posting takes the shortest way: then
    /// registers would have to be saved.
    #[inline(always)]
    fn forget_silent(&mut self, tail: *mut Slot) {
        if !self.slots.is_taken(self.last_silent, tail, self.head) {
            self.last_silent = ptr::null_mut();
        }
    }
}

// SAFETY: a slot is written only by the holder of the producer lock while it is free, and read only by the holder of
// the completion queue's lock while it is taken; `tail` orders the two.
unsafe impl Send for RequestQueue {}
// SAFETY: as above.
unsafe impl Sync for RequestQueue {}
// SAFETY: as above.
unsafe impl Send for Producer {}

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
        let count = depth + 1;
        Lines::new(count as usize * size_of::<Slot>(), |queue: *mut RequestQueue, room| {
            // SAFETY: there is room for so many.
            let slots = unsafe { Ring::new(room.cast(), count, queue) };
            let (head, tail) = (slots.first, slots.last());
            let producer = Producer {
                head,
                end: tail,
                slots,
                unsignalled: 0,
                last_silent: ptr::null_mut(),
                flushing: false,
                unspoken: ptr::null_mut(),
            };
            RequestQueue {
                silence: depth.div_ceil(2).saturating_sub(1),
                queue_pair_context,
                core,
                // Who only fills the queue, before others use it, does not make it its own.
                producer: Lock::new(producer, depth.saturating_add(64)),
                tail: Padded(AtomicPtr::new(tail)),
            }
        })
    }

    /// As [`RequestQueue::reserve`], and none if the lock is taken, or the queue is full or flushing.
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
            if producer.head == end || producer.flushing {
                return None;
            }
            producer.open_to(end);
        }
        // SAFETY: the slot is free: it is before the tail.
        Some(unsafe { self.take(producer, context, kind, silent) })
    }

    /// Where the head may not go beyond by now.
    #[inline(always)]
    fn end(&self) -> *mut Slot {
        self.tail.0.load(Ordering::Acquire)
    }

    /// Takes a slot for a request, which is to be posted to the device next, and then [`Place::settle`]d.
    pub(crate) fn reserve(
        &self,
        context: u64,
        kind: RequestType,
        silent: bool,
    ) -> std::result::Result<Place<'_>, KeptBack> {
        let mut producer = self.producer.lock();
        let (slot, end) = (producer.head, self.end());
        if slot == end {
            return Err(KeptBack::Full);
        }
        producer.open_to(end);
        // SAFETY: the slot is free: it is before the tail.
        let mut place = unsafe { self.take(producer, context, kind, silent) };
        if place.producer.flushing {
            place.producer.end = place.producer.head;
            // SAFETY: the slot that was just taken.
            unsafe { (*slot).disown() };
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
        let slot = producer.head;
        // SAFETY: the slot is free, and the producer lock is held.
        unsafe {
            (*slot).context = context;
            if kind != RequestType::Receive {
                (*slot).kind = kind;
            }
            producer.head = (*slot).next;
        }
        let mut signalled = true;
        if silent {
            producer.last_silent = slot;
            signalled = producer.unsignalled >= self.silence;
            producer.unsignalled = if signalled { 0 } else { producer.unsignalled + 1 };
        }
        Place { producer, ticket: Ticket { wr_id: Name::new(slot, silent).0, signalled } }
    }

    /// Keeps all requests from now on away from the device. True the first time.
    pub(crate) fn start_flushing(&self) -> bool {
        let mut producer = self.producer.lock();
        if producer.flushing {
            return false;
        }
        producer.flushing = true;
        producer.end = producer.head;
        if producer.last_silent == producer.slots.before(producer.head) {
            producer.unspoken = producer.last_silent;
        }
        true
    }

    /// Has the device say when it has done its last request, where that is silent: only then is it the turn of those that were
    /// kept from it. `ask` posts a request that does nothing, with the `wr_id` it is given; false if there is no room yet.
    pub(crate) fn last_word(&self, ask: impl FnOnce(u64) -> bool) {
        let mut producer = self.producer.lock();
        if !producer.unspoken.is_null() && ask(Name::last_word(producer.unspoken).0) {
            producer.unspoken = ptr::null_mut();
        }
    }

    /// Takes the requests the device will not report: those posted after the queue pair failed, once all before them
    /// have been reaped; with `lossy`, also those that the device was given and has not reported by now.
    ///
    /// The caller holds the completion queue's lock and has found the completion queue empty.
    pub(crate) fn take_flushed(&self, lossy: bool, mut report: impl FnMut(Completion)) {
        let producer = self.producer.lock();
        if !producer.flushing {
            return;
        }
        let mut tail = self.tail.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: slots of this queue; those before the head are taken, and read under the completion queue's lock.
            let slot = unsafe { &*(*tail).next };
            if ptr::eq(slot, producer.head) || !lossy && !slot.is_disowned() {
                break;
            }
            slot.disown();
            report(slot.completion(Status::CANCELED, 0));
            // SAFETY: as above.
            tail = unsafe { (*tail).next };
        }
        self.tail.0.store(tail, Ordering::Release);
    }

    /// Whether a request that asked for no completion is outstanding: then the queue may be full although the user has
    /// taken every result there is.
    pub(crate) fn has_silent(&self) -> bool {
        let mut producer = self.producer.lock();
        producer.forget_silent(self.end());
        !producer.last_silent.is_null()
    }

    /// Whether a slot is taken.
    fn is_outstanding(&self, slot: *const Slot) -> bool {
        let producer = self.producer.lock();
        producer.slots.is_taken(slot.cast_mut(), self.end(), producer.head)
    }

    /// Whether no request is outstanding.
    pub(crate) fn is_idle(&self) -> bool {
        // SAFETY: a slot of this queue, of which this never changes.
        self.producer.lock().head == unsafe { (*self.end()).next }
    }

    /// The queue pair this queue belongs to, while it lives.
    pub(crate) fn core(&self) -> &Weak<Core> {
        &self.core
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
    producer.head = producer.slots.before(producer.head);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::bindings::*;

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
        completed(ticket, IBV_WC_SUCCESS)
    }

    fn completed(ticket: &Ticket, status: ibv_wc_status) -> Reaped<'static> {
        // SAFETY: all-zero is a valid work completion.
        let mut wc: ibv_wc = unsafe { std::mem::zeroed() };
        (wc.wr_id, wc.status) = (ticket.wr_id, status);
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
    fn the_pieces_of_a_request_are_one_result() {
        let queue = queue(2);
        let before = post(&queue, 1, false).unwrap();
        let split = post(&queue, 2, false).unwrap();
        assert!(matches!(success(&before), Reaped::Visible(_)));
        assert!(
            matches!(completed(&split, IBV_WC_REM_ACCESS_ERR), Reaped::Failed(c, _) if c.request_context == 2)
        );
        assert!(matches!(completed(&split, IBV_WC_WR_FLUSH_ERR), Reaped::Hidden));
        queue.start_flushing();
        assert_eq!(post(&queue, 3, false).err(), Some(KeptBack::Flushed));
        let mut flushed = Vec::new();
        for late in [false, true] {
            queue.take_flushed(true, |c| flushed.push(c.request_context));
            assert_eq!(flushed, [3], "late: {late}");
            assert!(matches!(completed(&split, IBV_WC_WR_FLUSH_ERR), Reaped::Hidden));
        }
        assert!(queue.is_idle());
    }

    #[test]
    fn what_is_said_of_a_request_that_is_over_is_no_news() {
        let queue = queue(4);
        let silent = post(&queue, 1, true).unwrap();
        queue.start_flushing();
        let mut words = Vec::new();
        queue.last_word(|_| false);
        queue.last_word(|wr_id| {
            words.push(wr_id);
            true
        });
        queue.last_word(|_| unreachable!("it was asked"));
        let word = Ticket { wr_id: words[0], signalled: true };
        assert_eq!(post(&queue, 2, false).err(), Some(KeptBack::Flushed));
        // The device has not done it, and says so, but is late with the other word.
        assert!(
            matches!(completed(&silent, IBV_WC_WR_FLUSH_ERR), Reaped::Failed(c, _) if c.request_context == 1)
        );
        let flushed = || {
            let mut flushed = Vec::new();
            queue.take_flushed(false, |c| flushed.push(c.request_context));
            flushed
        };
        assert_eq!(flushed(), [2]);
        for status in [IBV_WC_WR_FLUSH_ERR, IBV_WC_SUCCESS] {
            assert!(matches!(completed(&word, status), Reaped::Hidden));
            assert!(queue.is_idle() && flushed().is_empty(), "nothing is reported again");
        }
    }

    #[test]
    fn the_last_word_frees_what_was_silent() {
        for status in [IBV_WC_WR_FLUSH_ERR, IBV_WC_SUCCESS] {
            let queue = queue(4);
            post(&queue, 1, true).unwrap();
            queue.start_flushing();
            assert_eq!(post(&queue, 2, false).err(), Some(KeptBack::Flushed));
            let mut flushed = Vec::new();
            queue.take_flushed(false, |c| flushed.push(c.request_context));
            assert!(flushed.is_empty());
            queue.last_word(|wr_id| {
                flushed.push(wr_id);
                true
            });
            let word = Ticket { wr_id: flushed.pop().unwrap(), signalled: true };
            assert!(matches!(completed(&word, status), Reaped::Hidden));
            queue.take_flushed(false, |c| flushed.push(c.request_context));
            assert_eq!(flushed, [2]);
        }
    }

    #[test]
    fn silent_requests_are_known_while_they_are_outstanding() {
        let queue = queue(5);
        for round in 0..20 {
            assert!(!queue.has_silent(), "round {round}");
            let loud: Vec<_> = (0..round % 3).map(|i| post(&queue, i, false).unwrap()).collect();
            post(&queue, 3, true).unwrap();
            let last = post(&queue, 4, false).unwrap();
            loud.iter().for_each(|ticket| assert!(matches!(success(ticket), Reaped::Visible(_))));
            assert!(queue.has_silent() && !queue.is_idle(), "round {round}");
            // Without a look in between: the ring goes around, and another has its slot.
            let reused = round % 2 == 0;
            assert!(matches!(success(&last), Reaped::Visible(_)));
            for _ in 0..if reused { 13 } else { 0 } {
                assert!(matches!(success(&post(&queue, 5, false).unwrap()), Reaped::Visible(_)));
            }
            assert!(!queue.has_silent() && queue.is_idle(), "round {round}");
        }
    }

    #[test]
    fn a_full_queue_knows_its_silent_requests() {
        for depth in 1..9 {
            for lap in 0..2 * depth {
                let queue = queue(depth);
                for _ in 0..lap {
                    success(&post(&queue, 0, false).unwrap());
                }
                post(&queue, 1, true).unwrap();
                (1..depth).for_each(|i| assert!(post(&queue, i.into(), false).is_ok()));
                assert_eq!(post(&queue, 9, false).err(), Some(KeptBack::Full));
                assert!(queue.has_silent(), "depth {depth}, after {lap}");
            }
        }
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
