//! Receive queues: of one queue pair, or shared by several.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::request::{Piece, PostError, total};

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
}

/// A shared receive queue.
pub struct SharedReceiveQueue {
    state: Mutex<Shared>,
    tell: Box<dyn Fn() + Send + Sync>,
}

impl SharedReceiveQueue {
    /// A queue for `depth` receives of at most `pieces_max` pieces. `tell` is called when it runs low
    /// ([`set_limit`](Self::set_limit)), on the thread that makes progress of a connection, with a queue pair locked: it must
    /// not block, nor call a method of a queue pair or a connection.
    pub fn new(
        depth: usize,
        pieces_max: usize,
        tell: impl Fn() + Send + Sync + 'static,
    ) -> SharedReceiveQueue {
        let state = Shared { queue: ReceiveQueue::new(depth, pieces_max), limit: 0 };
        SharedReceiveQueue { state: Mutex::new(state), tell: Box::new(tell) }
    }

    /// Posts a receive.
    ///
    /// # Errors
    /// [`PostError::Full`], [`PostError::Invalid`].
    pub fn post(&self, id: u64, pieces: &[Piece]) -> Result<(), PostError> {
        self.state.lock().queue.post(id, pieces)
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

    fn take(&self) -> Option<Receive> {
        let mut state = self.state.lock();
        let taken = state.queue.take();
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

/// The source of a queue pair's receives.
pub(super) enum Receives {
    Own(ReceiveQueue),
    Shared(Arc<SharedReceiveQueue>),
}

impl Receives {
    /// The receive for the next message.
    pub(super) fn take(&mut self) -> Option<Receive> {
        match self {
            Receives::Own(queue) => queue.take(),
            Receives::Shared(queue) => queue.take(),
        }
    }

    /// Takes back the vector of a completed receive.
    pub(super) fn give_back(&mut self, receive: Receive) {
        match self {
            Receives::Own(queue) => queue.give_back(receive.pieces),
            Receives::Shared(queue) => queue.state.lock().queue.give_back(receive.pieces),
        }
    }

    /// Takes the next receive to flush; `None` for a shared queue, which is not flushed.
    pub(super) fn take_flushed(&mut self) -> Option<Receive> {
        match self {
            Receives::Own(queue) => queue.take(),
            Receives::Shared(_) => None,
        }
    }
}
