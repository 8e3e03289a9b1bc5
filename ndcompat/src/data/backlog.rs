//! The backlog of a completion queue: results taken from the device that the program has not taken yet; and the queue pairs
//! whose results do not come from the device alone.

use crate::data::completion;
use crate::data::request_queue::{Noted, QueueOwner, RequestQueue, reap_in_order};
use crate::data::shared_receive_queue::{Shared, is_shared};
use crate::status::Status;
use crate::sync::cache_aligned::CacheAligned;
use crate::types::{Completion, NotifyType, RequestType};
use crate::verbs::{
    self,
    bindings::{IBV_WC_LOC_QP_OP_ERR, IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR, ibv_wc},
};
use std::collections::{HashMap, VecDeque};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Arc, Weak};

/// How many completions are polled from the device at a time.
pub(crate) const BATCH: usize = 16;

/// The state behind a completion queue's lock.
#[derive(Default)]
pub(crate) struct Backlog {
    /// Results, or queue pairs that may have some, wait here: reaping takes the slow path.
    pub pending: bool,
    /// Results that the program has not taken yet.
    results: VecDeque<Completion>,
    /// The number of all results so far, taken by the program or not.
    pub count: u64,
    /// How many of these, from the first on, have been notified.
    notified: u64,
    /// One of the results that have not been notified is a failure.
    pub failure: bool,
    /// Work to do without the lock.
    pub deferred: Deferred,
    /// Failed queue pairs, until they are destroyed. Requests posted to them are flushed without the device, and reported
    /// here.
    flushing: Vec<Weak<dyn QueueOwner>>,
    /// Request queues of destroyed queue pairs, as completions in the device's queue may still point to their slots.
    retired: Vec<CacheAligned<RequestQueue>>,
    /// Queue pairs with a shared receive queue, by number.
    shared: HashMap<u32, SharedUser>,
    /// Some of these may be destroyed.
    shared_retired: bool,
}

/// A queue pair whose receives come from a shared queue.
struct SharedUser {
    queue_pair: Weak<dyn QueueOwner>,
    context: u64,
    shared: Arc<Shared>,
    /// It is destroyed: no more completions of its receives come.
    retired: bool,
}

/// Work to do without a lock. Usually there is none, which needs no allocation.
#[derive(Default)]
pub(crate) struct Deferred(Option<Box<DeferredWork>>);

#[derive(Default)]
struct DeferredWork {
    /// Queue pairs with a failed request.
    failed: Vec<Weak<dyn QueueOwner>>,
    /// Queue pairs with requests that the device has flushed after a disconnect by the peer.
    flushed: Vec<Weak<dyn QueueOwner>>,
    /// Shared receive queues below their threshold, whose `Notify` requests are to be completed.
    low: Vec<Arc<Shared>>,
    /// References to drop; the last reference to a queue pair takes the lock when it is dropped.
    released: Vec<Arc<dyn QueueOwner>>,
}

impl Deferred {
    /// Does the work. Called without any lock.
    #[inline]
    pub fn run(self) {
        if let Some(work) = self.0 {
            work.run();
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The references that are to be dropped without the completion queue's lock.
    pub fn take_released(&mut self) -> Vec<Arc<dyn QueueOwner>> {
        self.0.as_mut().map(|work| std::mem::take(&mut work.released)).unwrap_or_default()
    }

    fn add(&mut self) -> &mut DeferredWork {
        self.0.get_or_insert_default()
    }
}

impl DeferredWork {
    #[cold]
    fn run(self) {
        for shared in self.low {
            shared.complete_if_low();
        }
        for queue_pair in self.failed {
            if let Some(queue_pair) = queue_pair.upgrade() {
                queue_pair.broken();
            }
        }
        for queue_pair in self.flushed {
            if let Some(queue_pair) = queue_pair.upgrade() {
                queue_pair.flushed();
            }
        }
    }
}

impl SharedUser {
    /// The result of a shared receive, if the receive is outstanding.
    fn reap(&self, wc: &ibv_wc, deferred: &mut Deferred) -> Option<Completion> {
        let (context, low) = self.shared.reap(wc.wr_id)?;
        let status = completion::status(wc.status, RequestType::Receive);
        if status != Status::SUCCESS {
            deferred.add().failed.push(self.queue_pair.clone());
        }
        if low {
            deferred.add().low.push(self.shared.clone());
        }
        Some(Completion {
            status,
            bytes_transferred: if status == Status::SUCCESS { wc.byte_len } else { 0 },
            queue_pair_context: self.context,
            request_context: context,
            request_type: RequestType::Receive,
        })
    }
}

impl Backlog {
    /// Registers a queue pair with a shared receive queue. If the device has given it the number of one that is destroyed, the
    /// completions of that one's receives are taken before.
    pub fn add_shared(
        &mut self,
        (queue_pair, number): (Weak<dyn QueueOwner>, u32),
        context: u64,
        shared: &Arc<Shared>,
        cq: &verbs::CompletionQueue,
    ) {
        if self.shared.contains_key(&number) {
            self.add_all(cq);
        }
        let user = SharedUser { queue_pair, context, shared: shared.clone(), retired: false };
        self.shared.insert(number, user);
    }

    /// Removes a destroyed queue pair with a shared receive queue, once no completion of its receives can come. Another may
    /// have its number already.
    pub fn retire_shared(&mut self, number: u32, queue_pair: &dyn QueueOwner, failed: bool) {
        let user = self.shared.get_mut(&number);
        if let Some(user) = user.filter(|user| ptr::addr_eq(user.queue_pair.as_ptr(), queue_pair)) {
            user.retired = true;
            self.shared_retired = true;
        }
        self.end_flushing(failed.then_some(queue_pair));
    }

    /// Keeps a request queue of a destroyed queue pair until no completion can point to its slots.
    pub fn retire(&mut self, queue: CacheAligned<RequestQueue>, failed: Option<&dyn QueueOwner>) {
        self.retired.push(queue);
        self.end_flushing(failed);
    }

    fn end_flushing(&mut self, failed: Option<&dyn QueueOwner>) {
        if let Some(failed) = failed {
            self.flushing.retain(|queue_pair| !ptr::addr_eq(queue_pair.as_ptr(), failed));
        }
        self.pending = true;
    }

    /// From now on, reports the requests that are flushed on a failed queue pair.
    pub fn add_flushing(&mut self, queue_pair: Weak<dyn QueueOwner>) {
        if !self.flushing.iter().any(|known| known.ptr_eq(&queue_pair)) {
            self.flushing.push(queue_pair);
            self.pending = true;
        }
    }

    /// Adds the results of completions.
    #[inline(always)]
    pub fn add(&mut self, found: &[ibv_wc]) {
        for wc in found {
            // SAFETY: the completion is of this queue, whose lock is held; its request queue is alive, or in `retired`.
            match unsafe { reap_in_order(wc) } {
                Some(result) => self.push(result),
                None => self.add_other(wc),
            }
        }
    }

    /// Adds the results of a completion that is not the next in order.
    #[inline(never)]
    fn add_other(&mut self, wc: &ibv_wc) {
        self.pending = true;
        if is_shared(wc.wr_id) {
            let user = self.shared.get(&wc.qp_num);
            if let Some(result) = user.and_then(|user| user.reap(wc, &mut self.deferred)) {
                self.push(result);
            }
            return;
        }
        let explained;
        let wc = if wc.status == IBV_WC_LOC_QP_OP_ERR {
            explained = self.explained(wc);
            &explained
        } else {
            wc
        };
        // SAFETY: the completion is of a request queue that is alive, or in `retired`; the lock is held.
        match unsafe { RequestQueue::complete(wc) } {
            Noted::Completed(queue) => {
                if wc.status != 0 {
                    self.deferred.add().failed.push(queue.owner().clone());
                }
                queue.report(|result| self.push(result));
            }
            Noted::Deferred(queue) => self.deferred.add().flushed.push(queue.owner().clone()),
            Noted::Ignored => {}
        }
    }

    /// A completion with `IBV_WC_LOC_QP_OP_ERR`, with another status if the device had no way to the peer: rxe reports that as it does a
    /// bad local token.
    fn explained(&mut self, wc: &ibv_wc) -> ibv_wc {
        let mut wc = *wc;
        // SAFETY: the completion is of a request queue that is alive, or in `retired`.
        let (kind, owner) = unsafe { RequestQueue::request_of(&wc) };
        if kind != RequestType::Receive
            && let Some(owner) = owner.upgrade()
        {
            if owner.is_cut_off() {
                wc.status = IBV_WC_RETRY_EXC_ERR;
            }
            self.deferred.add().released.push(owner);
        }
        wc
    }

    /// Fails the oldest request of a queue, which is outstanding, as its receiver is not ready. It is reported with those that are flushed,
    /// once the device is stopped: until then the device may read the program's memory.
    pub fn time_out(&mut self, queue: &RequestQueue) {
        // First: the device still has the request, and a later one in its slot would get its result.
        queue.start_flushing();
        queue.fail_oldest(IBV_WC_RNR_RETRY_EXC_ERR);
        self.deferred.add().failed.push(queue.owner().clone());
    }

    #[inline(always)]
    fn push(&mut self, result: Completion) {
        self.pending = true;
        self.count += 1;
        self.failure |= !result.status.is_success();
        self.results.push_back(result);
    }

    /// Adds the results of all completions that the device has.
    pub fn add_all(&mut self, cq: &verbs::CompletionQueue) {
        let mut batch = [const { MaybeUninit::<ibv_wc>::uninit() }; BATCH];
        loop {
            let found = cq.poll(&mut batch).unwrap_or_default();
            self.add(found);
            if found.len() < BATCH {
                break;
            }
        }
    }

    /// Moves as many results to `room` as fit; returns their number.
    #[inline]
    pub fn take(&mut self, room: &mut [Completion]) -> usize {
        let mut count = 0;
        while count < room.len()
            && let Some(result) = self.results.pop_front()
        {
            room[count] = result;
            count += 1;
        }
        count
    }

    pub fn len(&self) -> usize {
        self.results.len()
    }

    /// Recomputes `pending`.
    pub fn update_pending(&mut self) {
        self.pending = !self.results.is_empty() || !self.deferred.is_empty() || self.has_failed_queues();
    }

    /// Whether there has been a result since the last notification that satisfies one of this kind. Results that the
    /// program has taken since then count for both kinds, as they are no longer here to be looked at.
    pub fn has_news_for(&self, kind: NotifyType) -> bool {
        let unnotified = self.count - self.notified;
        unnotified > 0
            && (kind == NotifyType::Any
                || unnotified > self.results.len() as u64
                || self.has_unnotified_for(kind))
    }

    /// Whether a result in the backlog has not been notified, and may satisfy a notification of this kind: verbs does not
    /// say which receives were solicited.
    pub fn has_unnotified_for(&self, kind: NotifyType) -> bool {
        self.unnotified().any(|result| {
            kind == NotifyType::Any
                || result.request_type == RequestType::Receive
                || !result.status.is_success()
        })
    }

    /// The results in the backlog that have not been notified.
    fn unnotified(&self) -> impl Iterator<Item = &Completion> {
        let unnotified = (self.count - self.notified).min(self.results.len() as u64) as usize;
        self.results.range(self.results.len() - unnotified..)
    }

    /// Marks all results so far as notified.
    pub fn set_notified(&mut self) {
        self.notified = self.count;
    }

    /// Marks the results that the program has taken as notified.
    pub fn forget_taken(&mut self) {
        self.notified = self.notified.max(self.count - self.results.len() as u64);
        if self.failure {
            let failure = self.unnotified().any(|result| !result.status.is_success());
            self.failure = failure;
        }
    }

    #[inline]
    pub fn has_failed_queues(&self) -> bool {
        !self.retired.is_empty() || !self.flushing.is_empty() || self.shared_retired
    }

    /// Called when the device's queue is empty: adds the due results of failed queue pairs, and frees the queues of
    /// destroyed ones.
    #[cold]
    pub fn flush(&mut self, cq: &Arc<verbs::CompletionQueue>) {
        self.retired.clear();
        if std::mem::take(&mut self.shared_retired) {
            self.shared.retain(|_, user| !user.retired);
        }
        let flushing = std::mem::take(&mut self.flushing);
        // A queue pair without references is about to be retired by its `drop`.
        for queue_pair in flushing.iter().filter_map(Weak::upgrade) {
            if !queue_pair.is_lossy() {
                queue_pair.drain();
            }
            let lossy = queue_pair.is_lossy();
            if lossy {
                // Poll again: the device may have completed requests before it was stopped.
                self.add_all(cq);
            }
            for queue in queue_pair.queues_on(cq).into_iter().flatten() {
                if lossy {
                    queue.give_up();
                }
                queue.report(|result| self.push(result));
            }
            // This may be the last reference, whose drop takes the lock.
            self.deferred.add().released.push(queue_pair);
        }
        self.flushing = flushing;
    }
}
