//! Receive queues: of one queue pair, or shared by several.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::request::{Piece, PostError, total};
use super::turns::{self, Turns, Waiter};
use crate::memory::Domain;

/// The pieces of a receive.
pub(super) type Pieces = SmallVec<[Piece; 2]>;

/// How many vectors of long receives are kept for reuse.
const SPARE_MAX: usize = 64;

/// A receive that was posted.
#[derive(Debug)]
pub(super) struct Receive {
    pub(super) id: u64,
    pub(super) pieces: Pieces,
    pub(super) room: usize,
}

/// Receives in the order of posting.
pub(super) struct ReceiveQueue {
    posted: VecDeque<Receive>,
    /// Vectors of completed long receives, for reuse.
    spare: Vec<Pieces>,
    depth: usize,
    pieces_max: usize,
}

impl ReceiveQueue {
    pub(super) fn new(depth: usize, pieces_max: usize) -> ReceiveQueue {
        ReceiveQueue { posted: VecDeque::new(), spare: Vec::new(), depth, pieces_max }
    }

    pub(super) fn post(&mut self, id: u64, pieces: &[Piece]) -> Result<(), PostError> {
        let room = total(pieces.iter().map(|piece| piece.length as usize));
        let room = room.filter(|_| pieces.len() <= self.pieces_max).ok_or(PostError::Invalid)?;
        if self.posted.len() >= self.depth {
            return Err(PostError::Full);
        }
        let mut list = if pieces.len() > Pieces::new().inline_size() { self.spare.pop() } else { None }
            .unwrap_or_default();
        list.extend_from_slice(pieces);
        self.posted.push_back(Receive { id, pieces: list, room });
        Ok(())
    }

    fn take(&mut self) -> Option<Receive> {
        self.posted.pop_front()
    }

    fn give_back(&mut self, mut pieces: Pieces) {
        if pieces.spilled() && self.spare.len() < SPARE_MAX {
            pieces.clear();
            self.spare.push(pieces);
        }
    }
}

struct Shared {
    queue: ReceiveQueue,
    /// The limit: an event is reported when fewer receives are left. 0 for never.
    limit: usize,
    /// Whose messages wait for a receive.
    turns: Turns,
}

impl Shared {
    /// Whether there is a receive for a message that has just arrived.
    fn has_free(&self) -> bool {
        self.queue.posted.len() > self.turns.promised()
    }
}

/// A shared receive queue.
pub struct SharedReceiveQueue {
    domain: Domain,
    state: Mutex<Shared>,
    tell: Box<dyn Fn() + Send + Sync>,
}

impl SharedReceiveQueue {
    /// A queue for `depth` receives of at most `pieces_max` pieces, into memory of a protection domain, which need not be that of the
    /// queue pairs. `tell` is called when it runs low
    /// ([`set_limit`](Self::set_limit)), on the thread that makes progress of a connection, with a queue pair locked: it must
    /// not block, nor call a method of a queue pair or a connection.
    pub fn new(
        domain: Domain,
        depth: usize,
        pieces_max: usize,
        tell: impl Fn() + Send + Sync + 'static,
    ) -> SharedReceiveQueue {
        let state = Shared { queue: ReceiveQueue::new(depth, pieces_max), limit: 0, turns: Turns::default() };
        SharedReceiveQueue { domain, state: Mutex::new(state), tell: Box::new(tell) }
    }

    /// Posts a receive.
    ///
    /// # Errors
    /// [`PostError::Full`], [`PostError::Invalid`].
    pub fn post(&self, id: u64, pieces: &[Piece]) -> Result<(), PostError> {
        let mut state = self.state.lock();
        state.queue.post(id, pieces)?;
        let next = state.turns.call();
        drop(state);
        turns::wake(next.as_ref());
        Ok(())
    }

    /// Requests one event for when a message takes a receive and fewer than `limit` are left. 0 for none.
    pub fn set_limit(&self, limit: usize) {
        self.state.lock().limit = limit;
    }

    /// Changes the depth.
    ///
    /// # Errors
    /// The number of posted receives, if that is more than the new depth.
    pub fn resize(&self, depth: usize) -> Result<(), usize> {
        let mut state = self.state.lock();
        if state.queue.posted.len() > depth {
            return Err(state.queue.posted.len());
        }
        state.queue.depth = depth;
        Ok(())
    }

    /// Takes the next receive: for a message that has waited in this turn, or for one that has just arrived.
    fn take(&self, turn: Option<u64>) -> Option<Receive> {
        let mut state = self.state.lock();
        let may = match turn {
            Some(turn) => state.turns.take(turn),
            None => state.has_free(),
        };
        let taken = if may { state.queue.take() } else { None };
        let low = state.queue.posted.len() < state.limit;
        if low {
            state.limit = 0;
        }
        drop(state);
        if low {
            (self.tell)();
        }
        taken
    }
}

/// A place among the messages that wait for a receive of a shared queue. Dropping it gives the place up.
pub(super) struct Turn {
    queue: Arc<SharedReceiveQueue>,
    number: u64,
}

impl Turn {
    fn new(queue: &Arc<SharedReceiveQueue>, waiter: Weak<dyn Waiter>) -> Turn {
        let mut state = queue.state.lock();
        let number = state.turns.join(waiter);
        // One may have been posted since there was none.
        let next = if state.has_free() { state.turns.call() } else { None };
        drop(state);
        turns::wake(next.as_ref());
        Turn { queue: Arc::clone(queue), number }
    }

    fn has_come(&self) -> bool {
        self.queue.state.lock().turns.is_called(self.number)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = self.queue.state.lock().turns.leave(self.number);
        turns::wake(next.as_ref());
    }
}

/// The source of a queue pair's receives.
pub(super) enum Receives {
    Own(ReceiveQueue),
    /// A shared queue, and the turn if a message waits.
    Shared(Arc<SharedReceiveQueue>, Option<Turn>),
}

impl Receives {
    /// The protection domain of the memory that receives are into, if it is not the queue pair's.
    pub(super) fn domain(&self) -> Option<&Domain> {
        match self {
            Receives::Own(_) => None,
            Receives::Shared(queue, _) => Some(&queue.domain),
        }
    }

    /// The receive for the next message.
    pub(super) fn take(&mut self) -> Option<Receive> {
        match self {
            Receives::Own(queue) => queue.take(),
            Receives::Shared(queue, turn) => {
                let taken = queue.take(turn.as_ref().map(|turn| turn.number));
                if taken.is_some() {
                    *turn = None;
                }
                taken
            }
        }
    }

    /// Has `waiter` woken when a receive is there.
    pub(super) fn wait(&mut self, waiter: &Weak<dyn Waiter>) {
        if let Receives::Shared(queue, turn @ None) = self {
            *turn = Some(Turn::new(queue, Weak::clone(waiter)));
        }
    }

    /// Whether the message that waits can go on.
    pub(super) fn is_ready(&self) -> bool {
        match self {
            Receives::Own(queue) => !queue.posted.is_empty(),
            Receives::Shared(_, Some(turn)) => turn.has_come(),
            Receives::Shared(queue, None) => queue.state.lock().has_free(),
        }
    }

    /// No message waits any more.
    pub(super) fn stop_waiting(&mut self) {
        if let Receives::Shared(_, turn) = self {
            *turn = None;
        }
    }

    /// Takes back the vector of a completed receive.
    pub(super) fn give_back(&mut self, receive: Receive) {
        match self {
            Receives::Own(queue) => queue.give_back(receive.pieces),
            Receives::Shared(queue, _) => queue.state.lock().queue.give_back(receive.pieces),
        }
    }

    /// Takes the next receive to flush; `None` for a shared queue, which is not flushed.
    pub(super) fn take_flushed(&mut self) -> Option<Receive> {
        match self {
            Receives::Own(queue) => queue.take(),
            Receives::Shared(..) => None,
        }
    }
}
