//! A completion queue of the storm, of one end or of several. The context of a result says which end it belongs to.

use super::parts::Held;
use crate::com::{Adapter, Com, CompletionQueue, create};
use crate::watched::{Completed, Watched, Way};
use ndcompat::Status;
use ndcompat::types::{Completion, NotifyType, RequestType};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use win32::object::RawHandle;

/// The most results taken at once.
const BATCH: usize = 8;

/// An end whose results the queue gets.
pub trait Member: Send + Sync {
    /// Checks a result. `ordered`: no other thread takes results of this queue meanwhile.
    fn check(&self, result: &Completion, ordered: bool);
}

/// A completion queue.
pub struct Queue {
    /// The object.
    pub object: Held<CompletionQueue>,
    /// Threads take results concurrently. Their order is then unknown.
    pub free_polling: bool,
    /// How many results it has given.
    pub taken: AtomicU64,
    /// How many ends may use it.
    ends: u32,
    alone: Mutex<()>,
    members: Mutex<HashMap<u32, Arc<dyn Member>>>,
    file: (RawHandle, Way),
    /// Its `Notify` requests, which complete when it is released at the latest.
    pending: Mutex<Vec<Arc<Watched>>>,
}

impl Queue {
    /// A queue on this file with `depth` entries for each of this many ends.
    pub fn new(
        adapter: &Com<Adapter>,
        file: (RawHandle, Way),
        depth: u32,
        ends: u32,
        free_polling: bool,
    ) -> Arc<Queue> {
        // SAFETY: `create` passes an id and a place for the object.
        let object = create(|iid, out| unsafe {
            adapter.create_completion_queue(iid, file.0, depth * ends, 0, 0, out)
        });
        Arc::new(Queue {
            object: Held::new(object),
            free_polling,
            taken: AtomicU64::new(0),
            ends,
            alone: Mutex::new(()),
            members: Mutex::default(),
            file,
            pending: Mutex::default(),
        })
    }

    /// From now on, results with the context `name` are this end's, even when that is gone.
    pub fn join(&self, name: u32, member: Arc<dyn Member>) {
        self.members.lock().unwrap().insert(name, member);
    }

    /// Makes it as deep as this for each end.
    pub fn resize(&self, depth: u32) -> Status {
        // SAFETY: no pointers.
        unsafe { self.object.resize(depth * self.ends) }
    }

    /// Starts a `Notify`.
    pub fn notify(&self, kind: NotifyType, completed: &Mutex<Completed>) -> Arc<Watched> {
        let request = Watched::new("Notify", self.file.0, self.file.1);
        // SAFETY: the request is watched to its end.
        let status = unsafe { self.object.notify(kind as u32, request.ptr()) };
        assert_eq!(status, Status::PENDING, "Notify");
        completed.lock().unwrap().add(request.clone());
        self.pending.lock().unwrap().push(request.clone());
        request
    }

    /// Takes results and checks them. Returns their number.
    pub fn poll(&self) -> usize {
        let _alone = (!self.free_polling).then(|| self.alone.lock().unwrap());
        let mut results = [const { EMPTY }; BATCH];
        // SAFETY: there is room for so many.
        let count = unsafe { self.object.get_results(results.as_mut_ptr(), BATCH as u32) } as usize;
        self.taken.fetch_add(count as u64, Ordering::Release);
        for result in &results[..count] {
            let name = result.queue_pair_context;
            let member = self.members.lock().unwrap().get(&(name as u32)).cloned();
            let member = member.unwrap_or_else(|| panic!("a result of nobody's: {name:#x}"));
            member.check(result, !self.free_polling);
        }
        count
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        drop(self.object.take());
        if std::thread::panicking() {
            return;
        }
        for request in self.pending.get_mut().unwrap().drain(..) {
            assert!(request.status().is_some(), "{request} is pending after its queue was released");
        }
    }
}

const EMPTY: Completion = Completion {
    status: Status::INTERNAL_ERROR,
    bytes_transferred: 0,
    queue_pair_context: 0,
    request_context: 0,
    request_type: RequestType::Receive,
};
