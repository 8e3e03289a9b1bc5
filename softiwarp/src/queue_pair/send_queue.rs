//! The send queue: work requests, reported in order.

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::request::{Payload, Piece, PostError, SendRequest, Work, total};
use crate::completion::{Completion, CompletionQueue, Operation, Status};

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It was posted, or is being sent.
    Outstanding,
    /// It is done, but earlier ones are not.
    Done(Status),
}

/// How many slots are kept for reuse, with their memory.
const SPARE_MAX: usize = 16;

/// A request.
pub(super) struct Slot {
    id: u64,
    pub(super) work: Work,
    pub(super) pieces: SmallVec<[Piece; 4]>,
    pub(super) inline: SmallVec<[u8; 64]>,
    pub(super) is_inline: bool,
    signaled: bool,
    pub(super) fence: bool,
    pub(super) length: usize,
    stage: Stage,
}

/// Requests are numbered from 0 on; those from `oldest` to `end` are outstanding.
pub(super) struct SendQueue {
    slots: VecDeque<Slot>,
    spare: Vec<Slot>,
    depth: u64,
    oldest: u64,
    /// The next to be sent.
    pub(super) next: u64,
    end: u64,
    pieces_max: usize,
    inline_max: usize,
}

impl SendQueue {
    pub(super) fn new(depth: usize, pieces_max: usize, inline_max: usize) -> SendQueue {
        SendQueue {
            slots: VecDeque::new(),
            spare: Vec::new(),
            depth: depth as u64,
            oldest: 0,
            next: 0,
            end: 0,
            pieces_max,
            inline_max,
        }
    }

    /// Takes a request.
    pub(super) fn post(&mut self, request: &SendRequest<'_>) -> Result<(), PostError> {
        let length = match (request.payload, request.work) {
            (Payload::Pieces([]), Work::Bind(_) | Work::Invalidate(_)) => Some(0),
            (_, Work::Bind(_) | Work::Invalidate(_)) | (Payload::Inline(_), Work::Read { .. }) => None,
            (Payload::Pieces(pieces), _) if pieces.len() > self.pieces_max => None,
            (Payload::Pieces(pieces), _) => total(pieces.iter().map(|piece| piece.length as usize)),
            (Payload::Inline(parts), _) => {
                total(parts.iter().map(|part| part.len())).filter(|&length| length <= self.inline_max)
            }
        };
        let length = length.ok_or(PostError::Invalid)?;
        if self.end - self.oldest >= self.depth {
            return Err(PostError::Full);
        }
        let mut slot = self.spare.pop().unwrap_or_else(|| Slot {
            id: 0,
            work: Work::Invalidate(0),
            pieces: SmallVec::new(),
            inline: SmallVec::new(),
            is_inline: false,
            signaled: false,
            fence: false,
            length: 0,
            stage: Stage::Outstanding,
        });
        slot.pieces.clear();
        slot.inline.clear();
        match request.payload {
            Payload::Pieces(pieces) => slot.pieces.extend_from_slice(pieces),
            Payload::Inline(parts) => parts.iter().for_each(|part| slot.inline.extend_from_slice(part)),
        }
        slot.id = request.id;
        slot.work = request.work;
        slot.is_inline = matches!(request.payload, Payload::Inline(_));
        slot.signaled = request.signaled;
        slot.fence = request.fence;
        slot.length = length;
        slot.stage = Stage::Outstanding;
        self.slots.push_back(slot);
        self.end += 1;
        Ok(())
    }

    /// Whether all requests have been reported.
    pub(super) fn is_empty(&self) -> bool {
        self.oldest == self.end
    }

    /// The length of the newest request.
    pub(super) fn last_length(&self) -> usize {
        self.slots.back().map_or(0, |slot| slot.length)
    }

    fn place(&self, number: u64) -> usize {
        (number - self.oldest) as usize
    }

    pub(super) fn slot(&self, number: u64) -> &Slot {
        &self.slots[self.place(number)]
    }

    /// The next request to be sent.
    pub(super) fn upcoming(&self) -> Option<&Slot> {
        (self.next < self.end).then(|| self.slot(self.next))
    }

    /// Whether all requests before the next one are done.
    pub(super) fn all_before_next_are_done(&self) -> bool {
        (self.oldest..self.next).all(|number| self.slot(number).stage != Stage::Outstanding)
    }

    /// Notes the status of a request, unless it has one already.
    pub(super) fn done(&mut self, number: u64, status: Status) {
        if (self.oldest..self.end).contains(&number) {
            let at = self.place(number);
            let slot = &mut self.slots[at];
            if slot.stage == Stage::Outstanding {
                slot.stage = Stage::Done(status);
            }
        }
    }

    /// Fails the Send with this message number, of which `last` was the last, even if its bytes were sent; or, if it was reported, the next
    /// one.
    pub(super) fn fail_message(&mut self, number: Option<u32>, last: u32, status: Status) {
        let is_send = |at: &u64| matches!(self.slot(*at).work, Work::Send(_));
        let sent = (self.oldest..self.next).rev().filter(is_send);
        let named = sent.zip(0..).find(|&(_, behind)| Some(last.wrapping_sub(behind)) == number);
        let failed = named.map(|(at, _)| at).or_else(|| (self.oldest..self.end).find(is_send));
        if let Some(failed) = failed {
            let at = self.place(failed);
            self.slots[at].stage = Stage::Done(status);
        }
    }

    /// Flushes all that is outstanding. After a failed request none counts as successful, even if its bytes were sent: programs
    /// rely on nothing behind the first failure.
    pub(super) fn flush(&mut self) {
        let mut failed = false;
        for slot in &mut self.slots {
            if slot.stage == Stage::Outstanding || failed && slot.stage == Stage::Done(Status::Success) {
                slot.stage = Stage::Done(Status::Flushed);
            }
            failed |= slot.stage != Stage::Done(Status::Success);
        }
        self.next = self.end;
    }

    /// Reports the requests that are done, up to the first that is not.
    pub(super) fn report(&mut self, queue: &CompletionQueue, queue_pair: u32) {
        while self.oldest < self.end {
            let slot = self.slot(self.oldest);
            let Stage::Done(status) = slot.stage else { break };
            if slot.signaled || status != Status::Success {
                let operation = match slot.work {
                    Work::Send(_) => Operation::Send,
                    Work::Write { .. } => Operation::Write,
                    Work::Read { .. } => Operation::Read,
                    Work::Bind(_) => Operation::Bind,
                    Work::Invalidate(_) => Operation::Invalidate,
                };
                let length = if operation == Operation::Read && status == Status::Success {
                    slot.length as u32
                } else {
                    0
                };
                let id = slot.id;
                queue
                    .push(Completion { id, status, operation, length, queue_pair, invalidated: None }, false);
            }
            if let Some(slot) = self.slots.pop_front().filter(|_| self.spare.len() < SPARE_MAX) {
                self.spare.push(slot);
            }
            self.oldest += 1;
        }
    }
}
