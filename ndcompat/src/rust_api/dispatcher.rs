//! Takes the results of a session from its completion queue, and wakes the tasks that wait for them.

use crate::data::completion_queue::CompletionQueue;
use crate::data::queue_pair::QueuePair;
use crate::device::adapter::Adapter;
use crate::device::clock::Ticked;
use crate::rust_api::memory::AnyMemory;
use crate::rust_api::request_table::{Done, Queue, Request, RequestTable};
use crate::rust_api::waiting::{is_wanted, wake_all};
use crate::status::{Result, Status};
use crate::types::{Completion, NotifyType, RequestType};
use parking_lot::{Mutex, ReentrantMutex};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use win32::io::{self, File, Overlapped};

/// How many results are taken from the completion queue at a time.
const BATCH: usize = 8;

/// The shared state of a session: its completion queue, and the requests whose results arrive there.
pub(crate) struct Dispatcher {
    adapter: Arc<Adapter>,
    file: Arc<File>,
    queue: Arc<CompletionQueue>,
    requests: Mutex<RequestTable>,
    /// Held while results are taken. Reentrant, as a result that is taken may complete a request whose task calls in again.
    taking: ReentrantMutex<Taking>,
    /// The `OVERLAPPED` of the one `Notify`, which is pending while any request has a waker.
    notify: NonNull<Overlapped>,
    notify_waker: Waker,
}

// SAFETY: the OVERLAPPED consists of atomics, and is only used for requests, which any thread may begin and complete.
unsafe impl Send for Dispatcher {}
// SAFETY: the OVERLAPPED consists of atomics; `Notify` is called under the lock of `taking` only.
unsafe impl Sync for Dispatcher {}

#[derive(Default)]
struct Taking {
    /// This thread is taking results, further up its stack.
    busy: Cell<bool>,
    /// Results were asked for meanwhile: take them before returning.
    again: Cell<bool>,
    /// The completion of the `OVERLAPPED` wakes `notify_waker`, or has woken it, which waits for this lock then.
    registered: Cell<bool>,
}

/// Takes the results when `Notify` completes.
struct NotifyWaker(Weak<Dispatcher>);

impl Wake for NotifyWaker {
    fn wake(self: Arc<Self>) {
        if let Some(dispatcher) = self.0.upgrade() {
            dispatcher.taking.lock().registered.set(false);
            dispatcher.take_results();
            let asked = dispatcher.requests.lock().ask_for_call();
            if asked {
                dispatcher.be_called();
            }
        }
    }
}

impl Dispatcher {
    pub(crate) fn new(
        adapter: Arc<Adapter>,
        file: Arc<File>,
        queue: Arc<CompletionQueue>,
    ) -> Arc<Dispatcher> {
        let requests = Mutex::new(RequestTable::new(queue.room()));
        Arc::new_cyclic(|dispatcher| Dispatcher {
            adapter,
            file,
            queue,
            requests,
            taking: ReentrantMutex::default(),
            // Who waits on a port is woken by a waker, and has no use for the packet of `Notify`.
            notify: NonNull::from(Box::leak(Box::new(Overlapped::without_packet()))),
            notify_waker: Arc::new(NotifyWaker(dispatcher.clone())).into(),
        })
    }

    pub(crate) fn adapter(&self) -> &Arc<Adapter> {
        &self.adapter
    }

    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }

    pub(crate) fn queue(&self) -> &Arc<CompletionQueue> {
        &self.queue
    }

    /// How many requests are outstanding, or have a result that was not taken.
    pub(crate) fn outstanding(&self) -> usize {
        self.requests.lock().len()
    }

    /// Adds a queue pair whose results come here.
    ///
    /// # Errors
    /// The status of the completion queue if that has failed: the queue pair would use memory that has been given back.
    pub(crate) fn add_pair(&self, pair: &Arc<QueuePair>) -> Result<()> {
        self.requests.lock().add_pair(pair)
    }

    /// Posts a request by `post`, which gets the request's context. `memory` is kept until the request has completed. Returns
    /// the key of the request.
    ///
    /// # Errors
    /// With the memory: the status of `post`, or of a completion queue that has failed; `ND_NO_MORE_ENTRIES` if that has no room for
    /// the result.
    pub(crate) fn post(
        &self,
        kind: RequestType,
        (memory, length): (AnyMemory, usize),
        queue: Queue,
        mut post: impl FnMut(u64) -> Result<()>,
    ) -> std::result::Result<usize, (AnyMemory, Status)> {
        let mut inserted = self.requests.lock().insert(kind, (memory, length), queue);
        if let Err((memory, queue, Status::NO_MORE_ENTRIES)) = inserted {
            self.make_room();
            inserted = self.requests.lock().insert(kind, (memory, length), queue);
        }
        let key = inserted.map_err(|(memory, _, status)| (memory, status))?;
        let mut posted = post(key as u64);
        if posted == Err(Status::NO_MORE_ENTRIES) {
            // A request counts until its result is taken, and perhaps nobody waits for those of this queue.
            self.take_results();
            posted = post(key as u64);
        }
        posted.map(|()| key).map_err(|status| {
            let request = self.requests.lock().remove(key);
            (request.memory, status)
        })
    }

    /// Takes results, and if the completion queue has no room even so, makes it larger if the device can.
    #[cold]
    fn make_room(&self) {
        self.take_results();
        let (is_full, room) = {
            let requests = self.requests.lock();
            (requests.is_full(), requests.room())
        };
        if is_full {
            let room = self.queue.enlarge(room);
            self.requests.lock().set_room(room);
        }
    }

    /// Takes the results that have arrived, without sleeping, and wakes the tasks that wait for them. Calls `Notify` if any
    /// task waits for another result.
    pub(crate) fn take_results(&self) {
        let taking = self.taking.lock();
        if taking.busy.replace(true) {
            return taking.again.set(true);
        }
        let (mut woken, mut dropped) = (Vec::new(), Vec::new());
        loop {
            taking.again.set(false);
            let mut results = [Completion::default(); BATCH];
            let count = self.queue.results(&mut results);
            let (has_waiting, has_failed) = {
                let mut requests = self.requests.lock();
                for result in &results[..count] {
                    requests.complete(result, &mut woken, &mut dropped);
                }
                (requests.has_waiting(), requests.has_failed())
            };
            if count < BATCH {
                // Who only looks is not told by `Notify`.
                let failure = match self.queue.failure().filter(|_| !has_failed) {
                    None if has_waiting => self.ensure_notify(&taking),
                    failure => failure,
                };
                if let Some(status) = failure {
                    let (failed, forgotten) = self.fail(status);
                    woken.extend(failed);
                    dropped.extend(forgotten);
                }
                if !taking.again.get() {
                    break;
                }
            }
        }
        taking.busy.set(false);
        drop(taking);
        // Outside the lock: an executor may call in again when it is woken, and deregistering memory takes time.
        wake_all(woken);
        drop(dropped);
    }

    /// Calls `Notify`, now that a waker is registered. It looks at the completion queue itself, so that no result is missed.
    fn expect_results(&self) {
        let taking = self.taking.lock();
        if taking.busy.replace(true) {
            return taking.again.set(true);
        }
        taking.again.set(false);
        let failure = self.ensure_notify(&taking);
        taking.busy.set(false);
        let again = taking.again.get();
        drop(taking);
        if let Some(status) = failure {
            let (woken, dropped) = self.fail(status);
            wake_all(woken);
            drop(dropped);
        }
        if again {
            self.take_results();
        }
    }

    /// Ensures that a `Notify` is pending, and that its completion wakes [`NotifyWaker`]. Returns the status of a completion queue that has
    /// failed.
    fn ensure_notify(&self, taking: &Taking) -> Option<Status> {
        if !taking.registered.replace(true) {
            io::wake_when_complete(self.notify.as_ptr(), &self.notify_waker);
            self.file.expect_poll_loop();
        }
        // SAFETY: it lives as long as the dispatcher; its fields are atomics.
        let status = unsafe { self.notify.as_ref() }.internal.load(Ordering::Acquire) as i32;
        if status == Status::PENDING.0 {
            return None;
        }
        // SAFETY: no request uses the OVERLAPPED: the last one has completed, or none has begun. It is freed when the dispatcher
        // is dropped, which cancels the request first.
        let status = unsafe { self.queue.notify(NotifyType::Any, self.notify.as_ptr()) };
        Some(status).filter(|&status| status != Status::PENDING)
    }

    /// The completion queue has failed: completes all requests with `status`. Returns the wakers to call, and the requests that
    /// nobody waits for, both for when no lock is held.
    fn fail(&self, status: Status) -> (Vec<Waker>, Vec<Request>) {
        let pairs = self.requests.lock().refuse(status);
        // The device must stop using the memory before that is given back, and no result will tell when it does. Any queue pair may take
        // a shared receive.
        let ended = pairs.into_iter().map(|pair| pair.end_device_use()).fold(Ok(()), Result::and);
        if let Err(status) = ended {
            tracing::error!(target: "ndcompat::queue", %status, "requests stay outstanding, as the device may use their memory");
            return (Vec::new(), Vec::new());
        }
        self.requests.lock().fail(status)
    }

    /// The memory and the result of a request if it has completed. Otherwise its waker is registered, unless that of
    /// `context` does nothing.
    pub(crate) fn poll(&self, key: usize, context: &Context<'_>) -> Poll<(AnyMemory, Result<Done>)> {
        let taken = self.take(key);
        if taken.is_ready() {
            return taken;
        }
        self.take_results();
        let taken = self.take(key);
        if taken.is_ready() || !is_wanted(context.waker()) {
            return taken;
        }
        let replaced = self.requests.lock().set_waker(key, context.waker());
        drop(replaced);
        self.expect_results();
        self.take(key)
    }

    /// Whether a request has completed. Takes results if it has not.
    pub(crate) fn is_done(&self, key: usize) -> bool {
        let done = || self.requests.lock().is_done(key);
        done() || {
            self.take_results();
            done()
        }
    }

    fn take(&self, key: usize) -> Poll<(AnyMemory, Result<Done>)> {
        // The request is dropped outside the lock: with it may go the last reference to its queue pair.
        let taken = self.requests.lock().take(key);
        taken.map(|(request, result)| (request.memory, result))
    }

    /// The future of a request was dropped: its memory is freed when it has completed.
    pub(crate) fn forget(self: &Arc<Self>, key: usize) {
        let mut requests = self.requests.lock();
        let dropped = requests.forget(key);
        let asked = requests.ask_for_call();
        drop(requests);
        drop(dropped);
        if asked {
            self.be_called();
        }
    }

    /// Sees to it that the results of requests whose futures were dropped are taken soon, though nobody may wait for the session. A
    /// `Notify` for each would cost programs that poll dearly: so there is one at a tick of the clock at most.
    #[cold]
    fn be_called(self: &Arc<Self>) {
        match self.queue.adapter_file().clock() {
            Ok(clock) => clock.add(Arc::downgrade(self) as _),
            Err(_) => {
                self.requests.lock().called();
                self.expect_results();
            }
        }
    }
}

impl Ticked for Dispatcher {
    fn tick(self: Arc<Self>) -> bool {
        // Before looking: for what is dropped from now on, it is called again.
        self.requests.lock().called();
        self.take_results();
        if self.requests.lock().has_dropped() {
            self.expect_results();
        }
        false
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        // Connections may hold the queue for longer than the session lives.
        self.queue.cancel();
        self.queue.requests().wait_for_none();
        io::forget_tasks(self.notify.as_ptr());
        // SAFETY: it was a box; no request uses it.
        drop(unsafe { Box::from_raw(self.notify.as_ptr()) });
    }
}
