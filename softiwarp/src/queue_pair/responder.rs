//! Handles the peer's frames: where their payload goes, and what to do when they are complete.

use super::receive_queue::Receive;
use super::receiver::Frame;
use super::request::spans;
use super::transmitter::Due;
use super::{Cause, QueuePair};
use crate::completion::{Completion, Operation, Status};
use crate::memory::{Access, Denied};
use crate::wire::{Header, Layer, ReadRequest, SendKind, Terminate, Violation};

/// The state of the peer's messages.
pub(super) struct Incoming {
    /// How many of the peer's reads may be outstanding.
    reads_max: usize,
    /// The next frame is the peer's first, an empty one.
    empty_first: bool,
    /// The number of the next Send.
    send: u32,
    /// The number of the next read request.
    read: u32,
    /// The incomplete Send.
    message: Option<Message>,
}

struct Message {
    receive: Receive,
    kind: SendKind,
    length: usize,
}

impl Incoming {
    /// `reads_max` is the agreed number. It is rounded up to a power of two, as siw does so and sends as many.
    pub(super) fn new(reads_max: usize, empty_first: bool) -> Incoming {
        let reads_max = if reads_max == 0 { 0 } else { reads_max.next_power_of_two() };
        Incoming { reads_max, empty_first, send: 1, read: 1, message: None }
    }

    /// Whether the peer's first frame, an empty one, has not come yet.
    pub(super) fn awaits_empty(&self) -> bool {
        self.empty_first
    }

    /// Takes the receive of a message that will never be complete.
    pub(super) fn abandon(&mut self) -> Option<Receive> {
        self.message.take().map(|message| message.receive)
    }
}

impl QueuePair {
    /// Handles a header: returns where its payload goes.
    pub(super) fn begin_frame(&mut self, frame: Frame) -> Result<(), Violation> {
        let payload = frame.payload();
        match frame.header {
            Header::Write { .. } | Header::Terminate if payload == 0 => Ok(()),
            Header::Terminate => Ok(()),
            Header::Write { token, offset, .. } => {
                let found = self.domain.find(token, offset, payload, Access::PeerWrites(self.number));
                self.receiver.sink.push(found.map_err(|denied| denied.of_write())?);
                Ok(())
            }
            Header::ReadResponse { token, offset, last } => {
                self.begin_response((token, offset), payload, last)
            }
            Header::ReadRequest { number, request } => self.take_read(number, &request),
            Header::Send { .. } if self.incoming.empty_first && payload == 0 => Ok(()),
            Header::Send { kind, number, offset, .. } => self.begin_send(kind, (number, offset), payload),
        }
    }

    fn begin_send(
        &mut self,
        kind: SendKind,
        (number, offset): (u32, u32),
        payload: usize,
    ) -> Result<(), Violation> {
        if number != self.incoming.send {
            return Err(Violation::MESSAGE_NUMBER);
        }
        let message = match &mut self.incoming.message {
            Some(message) => message,
            none => {
                if offset != 0 {
                    return Err(Violation::MESSAGE_OFFSET);
                }
                let receive = self.receives.take().ok_or(Violation::NO_BUFFER)?;
                self.not_ready.ends();
                none.insert(Message { receive, kind, length: 0 })
            }
        };
        if message.kind != kind {
            return Err(Violation::OPCODE);
        }
        if offset as usize != message.length {
            return Err(Violation::MESSAGE_OFFSET);
        }
        let outcome = if payload > message.receive.room - message.length {
            Err((Status::LocalLength, Violation::TOO_LONG))
        } else {
            let part = (message.length, payload);
            // A shared queue may be of another protection domain.
            let place = (self.receives.domain().unwrap_or(&self.domain), Access::Scatter);
            spans(&message.receive.pieces, part, place, &mut self.receiver.sink)
                .map_err(|_| (Status::LocalProtection, Violation::DDP_CATASTROPHIC))
        };
        message.length += payload;
        outcome.map_err(|(status, violation)| {
            if let Some(receive) = self.incoming.abandon() {
                self.received(receive.id, status, 0);
                self.receives.give_back(receive);
            }
            violation
        })
    }

    fn begin_response(&mut self, sink: (u32, u64), payload: usize, last: bool) -> Result<(), Violation> {
        let read = self.transmitter.reads.front_mut().ok_or(Violation::WRITE_TOKEN)?;
        let first = if read.slot.is_none() { (sink.0, 0) } else { (read.number, 0) };
        if sink.0 != first.0 {
            return Err(Violation::WRITE_TOKEN);
        }
        let left = read.length - read.placed;
        // The last segment may come behind all the data, and be empty.
        if sink.1 != read.placed as u64 || payload > left || last && payload != left {
            return Err(Violation::WRITE_BOUNDS);
        }
        let part = (read.placed, payload);
        read.placed += payload;
        if let Some(number) = read.slot
            && payload != 0
        {
            let pieces = &self.sends.slot(number).pieces;
            let place = (&self.domain, Access::Scatter);
            if spans(pieces, part, place, &mut self.receiver.sink).is_err() {
                self.sends.done(number, Status::LocalProtection);
                return Err(Violation::DDP_CATASTROPHIC);
            }
        }
        Ok(())
    }

    fn take_read(&mut self, number: u32, request: &ReadRequest) -> Result<(), Violation> {
        if number != self.incoming.read {
            return Err(Violation::MESSAGE_NUMBER);
        }
        self.incoming.read = number.wrapping_add(1);
        // The read that opens a connection does not count against the agreed number.
        let first = self.incoming.empty_first && request.length == 0;
        if !first && self.transmitter.responses_due() >= self.incoming.reads_max {
            return Err(Violation::TOO_MANY_READS);
        }
        let (token, offset) = request.source;
        let access = Access::PeerReads(self.number);
        let refused = match request.length as usize {
            0 => None,
            length => self.domain.find(token, offset, length, access).err().map(Denied::of_read),
        };
        self.transmitter.responses.push_back(Due { number, request: *request, refused });
        Ok(())
    }

    /// Handles the end of a frame, whose payload has been placed.
    pub(super) fn end_frame(&mut self, frame: Frame) -> Result<(), Violation> {
        let empty_first = std::mem::take(&mut self.incoming.empty_first);
        match frame.header {
            Header::Send { .. } if empty_first && frame.payload() == 0 => {
                self.incoming.send = self.incoming.send.wrapping_add(1);
                Ok(())
            }
            Header::Send { last: true, .. } => self.end_send(),
            Header::ReadResponse { last: true, .. } => {
                if let Some(read) = self.transmitter.reads.pop_front()
                    && let Some(number) = read.slot
                {
                    self.sends.done(number, Status::Success);
                    self.report();
                }
                Ok(())
            }
            Header::Terminate => {
                self.told();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn end_send(&mut self) -> Result<(), Violation> {
        let Some(Message { receive, kind, length }) = self.incoming.message.take() else { return Ok(()) };
        self.incoming.send = self.incoming.send.wrapping_add(1);
        let invalidated = kind.invalidate.map_or(Ok(()), |token| self.domain.invalidate(token, self.number));
        let status = if invalidated.is_ok() { Status::Success } else { Status::LocalProtection };
        let completion = Completion {
            id: receive.id,
            status,
            operation: Operation::Receive,
            length: length as u32,
            queue_pair: self.number,
            invalidated: kind.invalidate.filter(|_| invalidated.is_ok()),
        };
        self.receives.give_back(receive);
        self.receive_completions.push(completion, kind.solicited);
        invalidated.map_err(Denied::of_invalidation)
    }

    /// Handles a Terminate. If it names a read, that read has failed.
    fn told(&mut self) {
        let said = Terminate::parse(&self.receiver.said);
        if let Some(Terminate { violation: Violation::NO_BUFFER, cause }) = said {
            self.was_not_received(cause.map(|(header, _)| header));
        }
        if let Some(Terminate { violation, cause: Some((Header::ReadRequest { request, .. }, _)) }) = said {
            let failed = self.transmitter.reads.iter().find(|read| read.number == request.sink.0);
            if let Some(number) = failed.and_then(|read| read.slot) {
                let refused = (violation.layer, violation.kind) == (Layer::Rdmap, 1);
                self.sends.done(number, if refused { Status::RemoteAccess } else { Status::RemoteOperation });
            }
        }
        self.end(Cause::Told(said.map(|said| said.violation)), None);
    }
}
