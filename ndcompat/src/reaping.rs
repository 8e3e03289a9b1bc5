//! The reaping end of a completion queue: what becomes of the device's completions.

use crate::completion;
use crate::completion_queue::BATCH;
use crate::lines::Lines;
use crate::queue_pair::Core;
use crate::request_queue::{Reaped, RequestQueue, reap, reap_plain};
use crate::shared_receive_queue::{Shared, is_shared};
use crate::status::Status;
use crate::types::{Completion, RequestType};
use crate::verbs::{self, bindings::ibv_wc};
use std::collections::{HashMap, VecDeque};
use std::mem::MaybeUninit;
use std::slice;
use std::sync::{Arc, Weak};
use win32::io::Request;

/// What has been taken from the device's queue, and whom it belongs to. One thread at a time has it.
#[derive(Default)]
pub(crate) struct Poll {
    /// Whether any of the lists below has an entry: then there is more to do than to look at the device's queue. May be set
    /// although none has. While it is not, the device reports no request twice that was reported as lost.
    pub kept: bool,
    /// Results taken from the device and not yet by the user.
    pub stash: VecDeque<Completion>,
    /// How many results of the stash, from its front, have completed a notification already.
    pub announced: usize,
    /// A result that came to the stash since notifications were completed last is a failure.
    pub failure: bool,
    /// Visible results taken from the device, ever.
    pub reaped: u64,
    /// How many that were when the result after them, which the device still had, completed a notification. Void once the
    /// device has had none, or else what comes then would be taken for the one that was announced.
    announced_after: Option<u64>,
    /// To be run once the lock is free.
    pub after: Aftermath,
    /// Failed queue pairs, until they are retired: requests posted since must be reported here.
    flushing: Vec<Weak<Core>>,
    /// Request queues of destroyed queue pairs: completions still in the device's queue point into them.
    retired: Vec<Lines<RequestQueue>>,
    /// Queue pairs whose receives come from a shared queue, by number.
    shared: HashMap<u32, SharedUser>,
    /// The numbers of those of them that are destroyed.
    retired_shared: Vec<u32>,
}

/// A queue pair whose receives come from a shared queue.
struct SharedUser {
    core: Weak<Core>,
    context: u64,
    shared: Arc<Shared>,
}

/// What reaping has brought about, to be dealt with when no lock is held. Mostly nothing, which costs next to nothing.
#[derive(Default)]
pub(crate) struct Aftermath(Option<Box<Consequences>>);

#[derive(Default)]
struct Consequences {
    /// Queue pairs one of whose requests failed.
    failed: Vec<Weak<Core>>,
    /// Notices that a shared receive queue runs low.
    low: Vec<Request>,
    /// Queue pairs that were looked at, perhaps for the last time: a queue pair that goes needs the lock.
    seen: Vec<Arc<Core>>,
}

impl Aftermath {
    /// Called without any lock.
    #[inline]
    pub fn run(self) {
        if let Some(consequences) = self.0 {
            consequences.run();
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn add(&mut self) -> &mut Consequences {
        self.0.get_or_insert_default()
    }
}

impl Consequences {
    #[cold]
    fn run(self) {
        for request in self.low {
            request.complete(Status::SUCCESS.0, 0);
        }
        for core in self.failed {
            if let Some(core) = core.upgrade() {
                core.broken();
            }
        }
    }
}

impl SharedUser {
    /// The result of a shared receive.
    fn reap(&self, wc: &ibv_wc, after: &mut Aftermath) -> Completion {
        let status = completion::status(wc, RequestType::Receive);
        if status != Status::SUCCESS {
            after.add().failed.push(self.core.clone());
        }
        let (context, low) = self.shared.reap(wc.wr_id);
        if !low.is_empty() {
            after.add().low.extend(low);
        }
        Completion {
            status,
            bytes_transferred: if status == Status::SUCCESS { wc.byte_len } else { 0 },
            queue_pair_context: self.context,
            request_context: context,
            request_type: RequestType::Receive,
        }
    }
}

impl Poll {
    /// Expects completions of a queue pair's shared receives.
    pub fn add_shared(&mut self, core: &Arc<Core>, context: u64, shared: &Arc<Shared>) {
        let user = SharedUser { core: Arc::downgrade(core), context, shared: shared.clone() };
        self.shared.insert(core.number(), user);
    }

    /// Forgets a destroyed queue pair's shared receives once no completion of theirs can come.
    pub fn retire_shared(&mut self, number: u32, failed: Option<*const Core>) {
        self.retired_shared.push(number);
        self.end_flushing(failed);
    }

    /// Keeps the queue of a destroyed queue pair until no completion can point into it.
    pub fn retire(&mut self, queue: Lines<RequestQueue>, failed: Option<*const Core>) {
        self.retired.push(queue);
        self.end_flushing(failed);
    }

    fn end_flushing(&mut self, failed: Option<*const Core>) {
        if let Some(failed) = failed {
            self.flushing.retain(|core| core.as_ptr() != failed);
        }
        self.kept = true;
    }

    /// Reports, from now on, the requests that the failed queue pair `core` keeps from the device.
    pub fn add_flushing(&mut self, core: &Arc<Core>) {
        let core = Arc::downgrade(core);
        if !self.flushing.iter().any(|known| known.ptr_eq(&core)) {
            self.flushing.push(core);
            self.kept = true;
        }
    }

    /// Gives `take` what users are to see of the completions `found`, which came from the queue.
    pub fn reap(&mut self, found: &[ibv_wc], mut take: impl FnMut(Completion)) {
        for wc in found {
            if is_shared(wc.wr_id) {
                if let Some(user) = self.shared.get(&wc.qp_num) {
                    self.reaped += 1;
                    take(user.reap(wc, &mut self.after));
                }
                continue;
            }
            // SAFETY: the completion is this queue's, whose lock is held; request queues live on in `retired`.
            match unsafe { reap(wc) } {
                Reaped::Visible(completion) => {
                    self.reaped += 1;
                    take(completion);
                }
                Reaped::Failed(completion, queue) => {
                    self.reaped += 1;
                    self.after.add().failed.push(queue.core().clone());
                    take(completion);
                }
                Reaped::Hidden => {}
            }
        }
    }

    /// The first result that the device has completes a notification. There is nothing in the stash.
    pub fn announce_first(&mut self) {
        self.announced_after = Some(self.reaped);
    }

    /// The device had nothing: its event was late, or of nothing that users are to see. Wrongly said, where nothing was asked
    /// for, it makes one notification too many, not one too few.
    #[inline(always)]
    pub fn found_empty(&mut self) {
        self.announced_after = None;
    }

    /// Puts what users are to see of the completions `found` into the stash.
    #[inline(always)]
    pub fn stash(&mut self, found: &[ibv_wc]) {
        if !found.is_empty() && self.announced_after.take() == Some(self.reaped) {
            self.announced = self.announced.max(1);
        }
        for wc in found {
            // SAFETY: as in `reap`, and asked only if nothing is kept.
            match (!self.kept).then(|| unsafe { reap_plain(wc) }).flatten() {
                Some(completion) => {
                    self.reaped += 1;
                    self.stash.push_back(completion);
                }
                None => self.stash_other(wc),
            }
        }
    }

    /// Puts all that the device has into the stash.
    #[cold]
    pub fn stash_all(&mut self, cq: &verbs::CompletionQueue) {
        let mut batch = [const { MaybeUninit::<ibv_wc>::uninit() }; BATCH];
        loop {
            let found = cq.poll(&mut batch).unwrap_or_default();
            self.stash(found);
            if found.len() < BATCH {
                break;
            }
        }
    }

    #[cold]
    fn stash_other(&mut self, wc: &ibv_wc) {
        let mut visible = None;
        self.reap(slice::from_ref(wc), |completion| visible = Some(completion));
        self.stash.extend(visible);
        self.failure |= visible.is_some_and(|completion| !completion.status.is_success());
    }

    /// Notes whether there is anything that the device's queue does not tell.
    pub fn note_kept(&mut self) {
        self.kept = !self.stash.is_empty() || !self.after.is_empty() || self.has_leftovers();
    }

    /// Moves as much of the stash as there is room for into `results`; returns how much.
    #[inline]
    pub fn take_stashed(&mut self, results: &mut [Completion]) -> usize {
        let count = results.len().min(self.stash.len());
        for result in &mut results[..count] {
            let Some(completion) = self.stash.pop_front() else { break };
            *result = completion;
        }
        self.announced = self.announced.saturating_sub(count);
        count
    }

    #[inline]
    pub fn has_leftovers(&self) -> bool {
        !self.retired.is_empty() || !self.flushing.is_empty() || !self.retired_shared.is_empty()
    }

    /// The device's queue was found empty: stashes what failed queue pairs kept back, and forgets destroyed ones.
    #[cold]
    pub fn settle_empty(&mut self, cq: &Arc<verbs::CompletionQueue>) {
        self.retired.clear();
        for number in std::mem::take(&mut self.retired_shared) {
            self.shared.remove(&number);
        }
        let flushing = std::mem::take(&mut self.flushing);
        // One that is being destroyed will be retired.
        for core in flushing.iter().filter_map(Weak::upgrade) {
            let lossy = core.is_lossy();
            if lossy {
                // The device may have reported something since it was asked, but does so no more.
                self.stash_all(cq);
            } else {
                core.ask_for_last_word();
            }
            for queue in core.queues_on(cq) {
                queue.take_flushed(lossy, |completion| {
                    self.reaped += 1;
                    self.failure = true;
                    self.stash.push_back(completion);
                });
            }
            self.after.add().seen.push(core);
        }
        self.flushing = flushing;
    }
}
