//! The outstanding requests of a session, with their memory, their results and the tasks that wait for them.

use crate::data::queue_pair::QueuePair;
use crate::data::shared_receive_queue::SharedReceiveQueue;
use crate::memory::memory_window::MemoryWindow;
use crate::rust_api::memory::AnyMemory;
use crate::status::{Result, Status};
use crate::types::{Completion, RequestType};
use slab::Slab;
use std::sync::Arc;
use std::task::{Poll, Waker};
use win32::io::WeakList;

/// The outcome of a request that has succeeded.
///
/// ```
#[doc = include_str!("connected.txt")]
/// use ndcompat::{Done, Provider, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let (client, server, receiving) = connected(&session, |pair| Ok(pair.receive(session.buffer(64)?)))?;
/// client.send(session.buffer(5)?).wait().1?;
/// let Done { bytes, queue_pair, .. } = receiving.wait().1?;
/// assert_eq!((bytes, queue_pair), (5, 0)); // the queue pair was given no name
/// # Ok::<(), ndcompat::Status>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Done {
    /// How many bytes were received, sent, written or read.
    pub bytes: usize,
    /// The name of the queue pair, as set by [`PairBuilder::name`](crate::PairBuilder::name). For a receive from a shared
    /// queue it tells which queue pair the message came to.
    pub queue_pair: u64,
}

/// The outstanding requests of a session. The index of a request is its context in the completion queue.
pub(super) struct RequestTable {
    requests: Slab<Request>,
    /// The queue pairs of the session.
    pairs: WeakList<QueuePair>,
    /// How many requests have a waker registered.
    waiting: usize,
    /// How many requests are outstanding though their futures were dropped.
    dropped: usize,
    /// The session will be called because of these.
    is_to_be_called: bool,
    /// How many requests are outstanding, these included: each has a result to come.
    unreaped: usize,
    /// How many results the completion queue has room for.
    room: usize,
    /// The status of the completion queue, once it has failed.
    failed: Option<Status>,
}

/// A posted request. It stays in the table until its future has taken the result.
pub(super) struct Request {
    kind: RequestType,
    state: State,
    /// The length of its buffer, in bytes. A receive's result has the length of the message instead.
    length: usize,
    /// Dropped before the memory: the device may use that until its queue pair is gone.
    #[expect(dead_code, reason = "kept alive")]
    queue: Queue,
    pub(super) memory: AnyMemory,
}

enum State {
    Outstanding(Option<Waker>),
    /// Outstanding, and its future was dropped.
    Dropped,
    Done(Result<Done>),
}

/// The queue that a request was posted to. The request keeps it alive.
#[expect(dead_code, reason = "kept alive")]
pub(crate) enum Queue {
    Pair(Arc<QueuePair>),
    /// The window is kept, too, until its binding or invalidation has completed.
    Window(Arc<QueuePair>, Arc<MemoryWindow>),
    Shared(Arc<SharedReceiveQueue>),
}

impl RequestTable {
    /// For a completion queue with room for so many results.
    pub(super) fn new(room: usize) -> RequestTable {
        RequestTable {
            requests: Slab::new(),
            pairs: WeakList::default(),
            waiting: 0,
            dropped: 0,
            is_to_be_called: false,
            unreaped: 0,
            room,
            failed: None,
        }
    }

    /// Adds a request that is about to be posted, and returns its key.
    ///
    /// # Errors
    /// With what was passed: the status of the completion queue if that has failed; `ND_NO_MORE_ENTRIES` if it has no room for the
    /// result. A queue that overran would fail, by what peers send.
    pub(super) fn insert(
        &mut self,
        kind: RequestType,
        (memory, length): (AnyMemory, usize),
        queue: Queue,
    ) -> std::result::Result<usize, (AnyMemory, Queue, Status)> {
        if let Some(status) = self.failed {
            return Err((memory, queue, status));
        }
        if self.is_full() {
            return Err((memory, queue, Status::NO_MORE_ENTRIES));
        }
        self.unreaped += 1;
        let state = State::Outstanding(None);
        Ok(self.requests.insert(Request { kind, state, length, queue, memory }))
    }

    /// Removes a request that could not be posted.
    pub(super) fn remove(&mut self, key: usize) -> Request {
        let request = self.requests.remove(key);
        // If the completion queue has failed meanwhile, nothing is outstanding.
        self.unreaped -= usize::from(matches!(request.state, State::Outstanding(_)));
        request
    }

    /// Whether the completion queue has no room for the result of another request.
    pub(super) fn is_full(&self) -> bool {
        self.unreaped >= self.room
    }

    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// The completion queue has got room for so many results.
    pub(super) fn set_room(&mut self, room: usize) {
        self.room = self.room.max(room);
    }

    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether the completion queue has failed, and its requests with it.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Whether any request has a waker registered.
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Whether any request is outstanding whose future was dropped.
    pub(super) fn has_dropped(&self) -> bool {
        self.dropped > 0
    }

    /// Whether the caller is to have the session called because of such requests. Others do not ask until it [was](Self::called).
    pub(super) fn ask_for_call(&mut self) -> bool {
        self.has_dropped() && !std::mem::replace(&mut self.is_to_be_called, true)
    }

    /// The session was called, or cannot be.
    pub(super) fn called(&mut self) {
        self.is_to_be_called = false;
    }

    pub(super) fn is_done(&self, key: usize) -> bool {
        matches!(self.requests[key].state, State::Done(_))
    }

    /// Stores the result of a request. Adds the waker to call to `woken`, and a request whose future was dropped to `dropped`.
    pub(super) fn complete(
        &mut self,
        result: &Completion,
        woken: &mut Vec<Waker>,
        dropped: &mut Vec<Request>,
    ) {
        let key = result.request_context as usize;
        // The program may also post to the queue pair itself, with contexts that are not in the table.
        let Some(request) = self.requests.get_mut(key).filter(|request| request.kind == result.request_type)
        else {
            return;
        };
        let bytes = match result.request_type {
            RequestType::Receive => result.bytes_transferred as usize,
            _ => request.length,
        };
        let done = result.status.ok().map(|()| Done { bytes, queue_pair: result.queue_pair_context });
        match std::mem::replace(&mut request.state, State::Done(done)) {
            State::Outstanding(waker) => {
                self.unreaped -= 1;
                self.waiting -= usize::from(waker.is_some());
                woken.extend(waker);
            }
            State::Dropped => {
                self.unreaped -= 1;
                self.dropped -= 1;
                dropped.push(self.requests.remove(key));
            }
            // Not the request's result, of which there is one.
            done @ State::Done(_) => request.state = done,
        }
    }

    /// Removes a request if it has completed, and returns it with its result.
    pub(super) fn take(&mut self, key: usize) -> Poll<(Request, Result<Done>)> {
        match self.requests[key].state {
            State::Done(result) => Poll::Ready((self.requests.remove(key), result)),
            _ => Poll::Pending,
        }
    }

    /// Registers the waker of an outstanding request, and returns the one that it replaces.
    pub(super) fn set_waker(&mut self, key: usize, new: &Waker) -> Option<Waker> {
        match &mut self.requests[key].state {
            State::Outstanding(waker) => {
                self.waiting += usize::from(waker.is_none());
                waker.replace(new.clone())
            }
            _ => None,
        }
    }

    /// The future of a request was dropped: its memory is freed when it has completed. The caller unlocks the table before
    /// it drops what is returned.
    pub(super) fn forget(&mut self, key: usize) -> (Option<Request>, Option<Waker>) {
        match std::mem::replace(&mut self.requests[key].state, State::Dropped) {
            State::Done(_) => (Some(self.requests.remove(key)), None),
            State::Outstanding(waker) => {
                self.waiting -= usize::from(waker.is_some());
                self.dropped += 1;
                (None, waker)
            }
            State::Dropped => (None, None),
        }
    }

    /// Adds a queue pair.
    ///
    /// # Errors
    /// The status of the completion queue if that has failed.
    pub(super) fn add_pair(&mut self, pair: &Arc<QueuePair>) -> Result<()> {
        self.failed.map_or(Ok(()), Err)?;
        self.pairs.add(Arc::downgrade(pair));
        Ok(())
    }

    /// The completion queue has failed: refuses further requests and queue pairs, and returns the queue pairs there are.
    pub(super) fn refuse(&mut self, status: Status) -> Vec<Arc<QueuePair>> {
        self.failed = Some(status);
        self.pairs.living()
    }

    /// Completes all outstanding requests with `status`. Returns the wakers to call, and the requests whose futures were dropped,
    /// which the caller drops when it has unlocked the table.
    pub(super) fn fail(&mut self, status: Status) -> (Vec<Waker>, Vec<Request>) {
        let (mut woken, mut forgotten) = (Vec::new(), Vec::new());
        for (key, request) in &mut self.requests {
            match &mut request.state {
                State::Outstanding(waker) => {
                    woken.extend(waker.take());
                    request.state = State::Done(Err(status));
                }
                State::Dropped => forgotten.push(key),
                State::Done(_) => {}
            }
        }
        (self.waiting, self.dropped, self.unreaped) = (0, 0, 0);
        (woken, forgotten.into_iter().map(|key| self.requests.remove(key)).collect())
    }
}
