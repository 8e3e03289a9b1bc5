//! Completion queues.

use std::collections::VecDeque;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// The status of a completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Success.
    Success,
    /// The message was longer than its receive.
    LocalLength,
    /// A local token does not permit the access of the request.
    LocalProtection,
    /// Flushed, as the connection has ended.
    Flushed,
    /// The window cannot be bound as requested.
    Bind,
    /// The peer refused the access.
    RemoteAccess,
    /// The peer failed to execute the request.
    RemoteOperation,
    /// The message, or one before it, has met no receive of the peer's in time.
    ReceiverNotReady,
}

/// The kind of a completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A Send.
    Send,
    /// An RDMA Write.
    Write,
    /// An RDMA Read.
    Read,
    /// The binding of a window.
    Bind,
    /// The invalidation of a local window.
    Invalidate,
    /// A receive.
    Receive,
}

/// One entry of a completion queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The id that the request was posted with.
    pub id: u64,
    /// How it completed.
    pub status: Status,
    /// Which kind of request it was.
    pub operation: Operation,
    /// The number of bytes, of successful receives and reads.
    pub length: u32,
    /// The number of the queue pair.
    pub queue_pair: u32,
    /// The token that the peer's Send has invalidated.
    pub invalidated: Option<u32>,
}

/// An event of a completion queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A completion that the queue was armed for has been added.
    Completion,
    /// The queue has overflowed: a completion was lost. Reported once.
    Overflow,
}

/// Which completions the queue is armed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// Any.
    Any,
    /// Solicited and failed ones.
    Solicited,
}

/// A source of completions: a connection.
pub(crate) trait Source: Send + Sync {
    /// Makes progress, unless another thread is doing so. Returns whether there was any.
    fn look(&self) -> bool;
}

/// How many connections of a queue are read directly, without asking the poller which are ready.
const RECENT_MAX: usize = 2;
/// After this many looks in a row without progress the poller is asked.
const MISSES_MAX: u32 = 8;
/// One of this many looks asks the poller whatever was found before: a stream without end on one connection must not keep the others,
/// new peers and deadlines waiting.
const LOOKS_PER_TURN: u32 = 64;
/// If more connections are busy than are read directly, the poller is asked for this many looks.
const CROWDED: u32 = 1024;

/// The connections that have added completions lately, the most recent first.
#[derive(Default)]
struct Recent {
    sources: [Option<Weak<dyn Source>>; RECENT_MAX],
    misses: u32,
    /// Looks since the poller was last asked.
    looks: u32,
    crowded: u32,
}

struct State {
    entries: VecDeque<Completion>,
    capacity: usize,
    armed: Option<Arm>,
}

/// A completion queue.
pub struct CompletionQueue {
    state: Mutex<State>,
    overflowed: AtomicBool,
    tell: Box<dyn Fn(Event) + Send + Sync>,
    recent: Mutex<Recent>,
}

impl CompletionQueue {
    /// A queue for `capacity` completions. `tell` is called on the thread that makes progress of a connection, with the queue
    /// pair locked: it must not block, nor call a method of a queue pair or a connection.
    pub fn new(capacity: usize, tell: impl Fn(Event) + Send + Sync + 'static) -> CompletionQueue {
        let state = State { entries: VecDeque::new(), capacity, armed: None };
        let (overflowed, recent) = (AtomicBool::new(false), Mutex::default());
        CompletionQueue { state: Mutex::new(state), overflowed, tell: Box::new(tell), recent }
    }

    /// Takes the oldest completion.
    pub fn poll(&self) -> Option<Completion> {
        self.state.lock().entries.pop_front()
    }

    /// Takes the oldest completions, `most` at most, and gives each to `take`, which must not use the queue. Returns how many.
    pub fn poll_many(&self, most: usize, take: impl FnMut(Completion)) -> usize {
        let mut state = self.state.lock();
        let count = most.min(state.entries.len());
        state.entries.drain(..count).for_each(take);
        count
    }

    /// Requests one event for the next completion of this kind. Completions already in the queue cause none.
    pub fn arm(&self, arm: Arm) {
        let mut state = self.state.lock();
        // `Any` includes solicited ones: it is not weakened.
        state.armed = if state.armed == Some(Arm::Any) { state.armed } else { Some(arm) };
    }

    /// Changes the capacity.
    ///
    /// # Errors
    /// The number of completions in the queue, if that is more than the new capacity.
    pub fn resize(&self, capacity: usize) -> Result<(), usize> {
        let mut state = self.state.lock();
        if state.entries.len() > capacity {
            return Err(state.entries.len());
        }
        state.capacity = capacity;
        Ok(())
    }

    /// Whether a completion was lost. All connections that complete to this queue end then
    /// ([`Cause::Overflow`](crate::queue_pair::Cause::Overflow)), and any of their completions may be missing.
    pub fn has_overflowed(&self) -> bool {
        self.overflowed.load(Ordering::Acquire)
    }

    /// Makes progress of the connections that have been busy lately. `Some` says whether there was any; `None` asks the caller
    /// to drive the poller, as other connections may be ready.
    pub(crate) fn look(&self) -> Option<bool> {
        let sources = {
            let mut recent = self.recent.lock();
            if recent.crowded != 0 {
                recent.crowded -= 1;
                return None;
            }
            if recent.misses >= MISSES_MAX || recent.looks >= LOOKS_PER_TURN {
                (recent.misses, recent.looks) = (0, 0);
                return None;
            }
            recent.misses += 1;
            recent.looks += 1;
            recent.sources.each_ref().map(|source| source.as_ref().and_then(Weak::upgrade))
        };
        // Without the lock: the handler of a connection's end may call anything.
        let mut moved = false;
        for source in sources.iter().flatten() {
            moved |= source.look();
        }
        if moved {
            self.recent.lock().misses = 0;
            return Some(true);
        }
        sources.iter().flatten().next().map(|_| false)
    }

    /// Adds a connection to those that [`look`](Self::look) reads directly.
    pub(crate) fn was_busy(&self, source: &Weak<dyn Source>) {
        let mut recent = self.recent.lock();
        let same =
            |known: &Option<Weak<dyn Source>>| known.as_ref().is_some_and(|known| known.ptr_eq(source));
        if recent.crowded != 0 || recent.sources.iter().any(same) {
            return;
        }
        let alive =
            |known: &Option<Weak<dyn Source>>| known.as_ref().is_some_and(|known| known.strong_count() != 0);
        if recent.sources.iter().all(alive) {
            recent.crowded = CROWDED;
            recent.sources = [const { None }; RECENT_MAX];
        } else if let Some(free) = recent.sources.iter_mut().find(|known| !alive(known)) {
            *free = Some(Weak::clone(source));
        }
    }

    /// Adds a completion; `solicited` if the peer asked for an event.
    pub(crate) fn push(&self, completion: Completion, solicited: bool) {
        let mut state = self.state.lock();
        let event = if state.entries.len() >= state.capacity {
            (!self.overflowed.swap(true, Ordering::AcqRel)).then_some(Event::Overflow)
        } else {
            state.entries.push_back(completion);
            let counts = match state.armed {
                None => false,
                Some(Arm::Any) => true,
                Some(Arm::Solicited) => solicited || completion.status != Status::Success,
            };
            counts.then(|| state.armed = None).map(|()| Event::Completion)
        };
        drop(state);
        if let Some(event) = event {
            (self.tell)(event);
        }
    }
}
