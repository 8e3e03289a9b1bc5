//! What reaping needs of a queue pair ([`QueueOwner`]). It is above `work_request`, as draining posts a request.

use crate::data::completion_queue::CompletionQueue;
use crate::data::queue_pair::Core;
use crate::data::request_queue::{QueueOwner, RequestQueue, Ticket};
use crate::data::work_request::{Remote, WorkRequest};
use crate::types::{RequestFlags, RequestType};
use crate::verbs;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Core {
    /// Posts a request without effect, whose success the device reports with this `wr_id`.
    ///
    /// # Errors
    /// The driver's errno; `ENOMEM` also for a queue pair that is about to be destroyed.
    pub(crate) fn post_nothing(&self, wr_id: u64) -> Result<(), i32> {
        let (sge, remote) = (self.empty_list(), Remote::default());
        let nothing = WorkRequest { kind: RequestType::Write, sge, flags: RequestFlags::empty(), remote };
        // Another thread may be about to destroy the queue pair.
        let posted = self.qp.if_live(|| nothing.post(self, Ticket { wr_id, signalled: true }));
        match posted.unwrap_or(libc::ENOMEM) {
            0 | verbs::UNANNOUNCED => Ok(()),
            refused => Err(verbs::errno(refused)),
        }
    }
}

impl QueueOwner for Core {
    fn broken(self: Arc<Self>) {
        Core::broken(&self);
    }

    fn flushed(self: Arc<Self>) {
        Core::flushed(&self);
    }

    fn is_cut_off(&self) -> bool {
        Core::is_cut_off(self)
    }

    fn is_stopped(&self) -> bool {
        Core::is_stopped(self)
    }

    fn is_lossy(&self) -> bool {
        self.lossy.load(Ordering::Acquire)
    }

    fn drain(&self) {
        self.initiator.drain(|wr_id| {
            let posted = self.post_nothing(wr_id);
            // A queue that is full has room in the end. A driver that refuses does so for ever, and flushes nothing: erdma's.
            if posted.is_err_and(|errno| errno != libc::ENOMEM) {
                self.lossy.store(true, Ordering::Release);
            }
            posted.is_ok()
        });
    }

    fn queues_on(&self, cq: &Arc<verbs::CompletionQueue>) -> [Option<&RequestQueue>; 2] {
        let on = move |queue: &CompletionQueue| Arc::ptr_eq(queue.verbs(), cq);
        let initiator = on(&self.initiator_completion_queue).then_some(&**self.initiator);
        let receive = self.receive.as_deref().filter(|_| on(&self.receive_completion_queue));
        [initiator, receive]
    }
}
