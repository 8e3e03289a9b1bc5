//! The work requests outstanding on one queue of a queue pair.
//!
//! Verbs gives a completion 64 bits of the poster's own (`wr_id`); ND wants more back: the request's context, its queue
//! pair's context and its type, the last of which verbs leaves undefined when a request failed. So every request
//! occupies a [`Slot`], and `wr_id` is the slot's address. Requests of one queue complete in order, so the slots form
//! a ring, and the completion of a request frees its slot and those of all unsignalled requests before it.

use crate::queue_pair::Core;
use crate::status::{Result, Status};
use crate::types::{Completion, RequestType};
use crate::verbs::bindings::ibv_wc;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Weak};

/// What must be remembered of one posted request until it completes.
pub(crate) struct Slot {
    queue: *const RequestQueue,
    context: u64,
    sequence: u32,
    kind: RequestType,
    /// The request asked for no completion; one that succeeds is swallowed.
    silent: bool,
}

/// A ring of slots: the requests posted to one queue and not yet reaped from its completion queue.
pub(crate) struct RequestQueue {
    slots: Box<[UnsafeCell<Slot>]>,
    depth: u32,
    queue_pair_context: u64,
    core: Weak<Core>,
    producer: Mutex<Producer>,
    /// Sequence number of the oldest request not reaped. Written under the completion queue's lock.
    tail: AtomicU32,
}

/// The posting end of the ring.
pub(crate) struct Producer {
    head: u32,
    /// A past value of `tail`: looked up anew only when the ring seems full.
    tail_seen: u32,
    /// Unsignalled requests since the last signalled one.
    unsignalled: u32,
    /// The latest request that asked for no completion.
    last_silent: Option<u32>,
    /// Set when the queue pair has failed: from this sequence number on, requests never reach the device.
    flushing_from: Option<u32>,
}

// SAFETY: a slot is written only by the holder of the producer lock while it is free, and read only by the holder of
// the completion queue's lock while it is taken; `tail` orders the two.
unsafe impl Send for RequestQueue {}
// SAFETY: as above.
unsafe impl Sync for RequestQueue {}

/// A request about to be posted: what the device needs to know about it.
pub(crate) struct Ticket {
    /// The `wr_id` to post with.
    pub wr_id: u64,
    /// Whether the device must report the request's success.
    pub signalled: bool,
}

impl RequestQueue {
    pub(crate) fn new(depth: u32, queue_pair_context: u64, core: Weak<Core>) -> Box<RequestQueue> {
        let size = depth.max(1).next_power_of_two() as usize;
        let mut queue = Box::new(RequestQueue {
            slots: Box::new([]),
            depth,
            queue_pair_context,
            core,
            producer: Mutex::new(Producer {
                head: 0,
                tail_seen: 0,
                unsignalled: 0,
                last_silent: None,
                flushing_from: None,
            }),
            tail: AtomicU32::new(0),
        });
        let this: *const RequestQueue = &*queue;
        queue.slots = (0..size)
            .map(|_| {
                UnsafeCell::new(Slot {
                    queue: this,
                    context: 0,
                    sequence: 0,
                    kind: RequestType::Receive,
                    silent: false,
                })
            })
            .collect();
        queue
    }

    fn lock(&self) -> MutexGuard<'_, Producer> {
        self.producer.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn slot(&self, sequence: u32) -> *mut Slot {
        self.slots[sequence as usize & (self.slots.len() - 1)].get()
    }

    /// Takes a slot and lets `device` post the request, which answers with an error number.
    ///
    /// Fails with `ND_NO_MORE_ENTRIES` when as many requests as the queue was created for are outstanding. On a failed
    /// queue pair the request is accepted but stays here, to be reported as cancelled ([`Posted::Flushed`]).
    #[inline]
    pub(crate) fn post(
        &self,
        context: u64,
        kind: RequestType,
        silent: bool,
        device: impl FnOnce(Ticket) -> i32,
    ) -> Result<Posted> {
        let mut producer = self.lock();
        let head = producer.head;
        if head.wrapping_sub(producer.tail_seen) >= self.depth {
            producer.tail_seen = self.tail.load(Ordering::Acquire);
            if head.wrapping_sub(producer.tail_seen) >= self.depth {
                return Err(Status::NO_MORE_ENTRIES);
            }
        }
        let slot = self.slot(head);
        // A queue of silent requests only would never free a slot: ask for a completion now and then, to swallow it.
        let signalled = !silent || producer.unsignalled + 1 >= self.depth.div_ceil(2);
        // SAFETY: the slot is free (head is less than depth ahead of tail), and the producer lock is held.
        unsafe {
            (*slot).context = context;
            (*slot).sequence = head;
            (*slot).kind = kind;
            (*slot).silent = silent;
        }
        if producer.flushing_from.is_some() {
            producer.head = head.wrapping_add(1);
            return Ok(Posted::Flushed);
        }
        match device(Ticket { wr_id: slot as u64, signalled }) {
            0 => {
                producer.head = head.wrapping_add(1);
                producer.unsignalled = if signalled { 0 } else { producer.unsignalled + 1 };
                if silent {
                    producer.last_silent = Some(head);
                }
                Ok(Posted::ToDevice)
            }
            libc::ENOMEM => Err(Status::NO_MORE_ENTRIES),
            errno => Err(Status::from_errno(errno)),
        }
    }

    /// Keeps all requests from now on away from the device. True the first time.
    pub(crate) fn start_flushing(&self) -> bool {
        let mut producer = self.lock();
        let first = producer.flushing_from.is_none();
        if first {
            producer.flushing_from = Some(producer.head);
        }
        first
    }

    /// Takes the requests the device will not report: those posted after the queue pair failed, once all before them
    /// have been reaped; with `lossy`, also those that the device was given and has not reported by now.
    ///
    /// The caller holds the completion queue's lock and has found the completion queue empty.
    pub(crate) fn take_flushed(&self, lossy: bool, mut report: impl FnMut(Completion)) {
        let producer = self.lock();
        let Some(from) = producer.flushing_from else { return };
        let mut tail = self.tail.load(Ordering::Relaxed);
        if !lossy && from.wrapping_sub(tail) as i32 > 0 {
            return;
        }
        while tail != producer.head {
            // SAFETY: a taken slot, read under the completion queue's lock.
            let slot = unsafe { &*self.slot(tail) };
            report(self.completion(slot, Status::CANCELED, 0));
            tail = tail.wrapping_add(1);
        }
        self.tail.store(tail, Ordering::Release);
    }

    /// Whether a request that asked for no completion is outstanding: then the queue may be full although the user has
    /// taken every result there is.
    pub(crate) fn has_silent(&self) -> bool {
        let producer = self.lock();
        let tail = self.tail.load(Ordering::Acquire);
        producer.last_silent.is_some_and(|last| last.wrapping_sub(tail) as i32 >= 0)
    }

    /// Whether no request is outstanding.
    pub(crate) fn is_idle(&self) -> bool {
        self.lock().head == self.tail.load(Ordering::Acquire)
    }

    /// The queue pair this queue belongs to, while it lives.
    pub(crate) fn core(&self) -> &Weak<Core> {
        &self.core
    }

    fn completion(&self, slot: &Slot, status: Status, bytes: u32) -> Completion {
        Completion {
            status,
            bytes_transferred: bytes,
            queue_pair_context: self.queue_pair_context,
            request_context: slot.context,
            request_type: slot.kind,
        }
    }
}

/// Where a posted request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Posted {
    /// To the device, which will report it.
    ToDevice,
    /// Nowhere: the queue pair has failed, and the completion queue must report it.
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

/// Frees the slot that `wc` completes, and those before it, and says what to report.
///
/// # Safety
/// `wc` must come from the completion queue whose lock the caller holds, and its queue must still be in memory.
#[inline]
pub(crate) unsafe fn reap<'a>(wc: &ibv_wc) -> Reaped<'a> {
    // SAFETY: `wr_id` is the address of a slot, set in `post`; the caller vouches for its memory.
    let slot = unsafe { &*(wc.wr_id as *const Slot) };
    // SAFETY: a slot lives inside its queue.
    let queue = unsafe { &*slot.queue };
    let tail = queue.tail.load(Ordering::Relaxed);
    if slot.sequence.wrapping_sub(tail) >= queue.depth {
        return Reaped::Hidden; // reported as lost before, and found by the device after all
    }
    let reaped = if wc.status == 0 {
        if slot.silent {
            Reaped::Hidden
        } else {
            let bytes = if slot.kind == RequestType::Receive { wc.byte_len } else { 0 };
            Reaped::Visible(queue.completion(slot, Status::SUCCESS, bytes))
        }
    } else {
        Reaped::Failed(queue.completion(slot, crate::completion::status(wc, slot.kind), 0), queue)
    };
    queue.tail.store(slot.sequence.wrapping_add(1), Ordering::Release);
    reaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(depth: u32) -> Box<RequestQueue> {
        RequestQueue::new(depth, 77, Weak::new())
    }

    fn post(queue: &RequestQueue, context: u64, silent: bool) -> Result<Ticket> {
        let mut ticket = None;
        queue.post(context, RequestType::Send, silent, |t| {
            ticket = Some(t);
            0
        })?;
        Ok(ticket.unwrap())
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
        assert_eq!(post(&queue, 3, false).err(), Some(Status::NO_MORE_ENTRIES));
        assert!(
            matches!(success(&tickets[0]), Reaped::Visible(c) if c.request_context == 0 && c.queue_pair_context == 77)
        );
        assert!(post(&queue, 3, false).is_ok());
        assert_eq!(post(&queue, 4, false).err(), Some(Status::NO_MORE_ENTRIES));
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
        let refused = queue.post(1, RequestType::Send, false, |_| libc::EINVAL);
        assert_eq!(refused, Err(Status::INVALID_PARAMETER));
        assert!(queue.is_idle() && post(&queue, 2, false).is_ok());
    }

    #[test]
    fn a_failed_queue_pair_cancels_in_order() {
        let queue = queue(4);
        let before = post(&queue, 1, false).unwrap();
        assert!(queue.start_flushing() && !queue.start_flushing());
        assert_eq!(
            queue.post(2, RequestType::Send, true, |_| panic!("reached the device")),
            Ok(Posted::Flushed)
        );
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
}
