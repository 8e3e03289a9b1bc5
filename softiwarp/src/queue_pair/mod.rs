//! Queue pairs: one end of a connection, over any stream of bytes.
//!
//! [`QueuePair::transmit`] and [`QueuePair::receive`] make as much progress as the stream allows; nothing here blocks. When a
//! queue pair fails, all outstanding requests are reported as flushed, in order, before the call returns, and no memory of
//! the program is used afterwards.

mod pool;
mod reading;
mod receive_queue;
mod receiver;
mod request;
mod responder;
mod send_queue;
mod stream;
mod transmitter;
mod turns;
mod waiting;

use std::io;
use std::sync::Arc;

pub use receive_queue::SharedReceiveQueue;
pub use request::{MESSAGE_MAX, Payload, Piece, PostError, SendRequest, Work};
pub use stream::Stream;

use crate::completion::{Completion, CompletionQueue, Operation, Status};
use crate::memory::Domain;
use crate::wire::{Header, Terminate, Violation};
use receive_queue::{ReceiveQueue, Receives};
use receiver::Receiver;
use responder::Incoming;
use send_queue::SendQueue;
use transmitter::{Transmitter, Trouble};
pub(crate) use turns::Waiter;
use waiting::ReceiverNotReady;

/// How much one call of [`QueuePair::transmit`] writes to the stream at most, so that other connections get their turn.
const BYTES_PER_CALL: usize = 4 << 20;

/// The parameters of a queue pair.
pub struct QueuePairConfig {
    /// Its number, unique within the device: completions carry it, and windows are bound for it.
    pub number: u32,
    /// The memory that it and its peer may access.
    pub domain: Domain,
    /// The completion queue of the send queue.
    pub send_completions: Arc<CompletionQueue>,
    /// The completion queue of receives.
    pub receive_completions: Arc<CompletionQueue>,
    /// How many sends may be outstanding.
    pub send_depth: usize,
    /// How many receives may be outstanding, unless they are shared.
    pub receive_depth: usize,
    /// The shared receive queue that it uses instead of its own.
    pub shared_receives: Option<Arc<SharedReceiveQueue>>,
    /// How many pieces a request may have.
    pub pieces_max: usize,
    /// How many bytes may be inline.
    pub inline_max: usize,
}

/// The result of the negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// Frames carry CRCs.
    pub crc: bool,
    /// How many reads of the peer may be outstanding here.
    pub inbound_reads: usize,
    /// How many reads of this side may be outstanding.
    pub outbound_reads: usize,
    /// Which side sends first, and what.
    pub opening: Opening,
}

/// The first frame of a connection. The accepting side must not send before it has received one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// This side connects, and may send any frame.
    Free,
    /// This side connects, and sends this empty frame first.
    Sends(Header),
    /// This side accepts. The peer's first frame is an ordinary one.
    Awaits,
    /// This side accepts. The peer first sends an empty frame of any kind, which is no request.
    AwaitsEmpty,
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not connected.
    Idle,
    /// Both sides send and receive.
    Running,
    /// It has failed or is being ended. There is still something to write.
    Ending,
    /// There is nothing left to write or read.
    Ended,
}

/// Why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// This side has ended it.
    Local,
    /// The peer has closed it.
    Closed,
    /// TCP has failed.
    Lost,
    /// The peer violated the protocol, and was sent a Terminate.
    Peer(Violation),
    /// The peer has sent a Terminate.
    Told(Option<Violation>),
    /// One of its completion queues has overflowed.
    Overflow,
    /// The device was removed.
    Removed,
}

/// One end of a connection.
pub struct QueuePair {
    number: u32,
    domain: Domain,
    send_completions: Arc<CompletionQueue>,
    receive_completions: Arc<CompletionQueue>,
    sends: SendQueue,
    receives: Receives,
    phase: Phase,
    cause: Option<Cause>,
    transmitter: Transmitter,
    receiver: Receiver,
    incoming: Incoming,
    /// Work requests are held back until the peer's first frame.
    held: bool,
    /// Its program has released it: no more completions.
    abandoned: bool,
    /// Called when no more receives of a shared queue are taken.
    shared_receives_end: Option<Box<dyn FnOnce() + Send>>,
    /// What to do when everything listed has been written.
    trouble: Option<Trouble>,
    not_ready: ReceiverNotReady,
}

impl QueuePair {
    /// A queue pair that is not connected.
    pub fn new(config: QueuePairConfig) -> QueuePair {
        let receives = match config.shared_receives {
            Some(shared) => Receives::Shared(shared, None),
            None => Receives::Own(ReceiveQueue::new(config.receive_depth, config.pieces_max)),
        };
        QueuePair {
            number: config.number,
            domain: config.domain,
            send_completions: config.send_completions,
            receive_completions: config.receive_completions,
            sends: SendQueue::new(config.send_depth, config.pieces_max, config.inline_max),
            receives,
            phase: Phase::Idle,
            cause: None,
            transmitter: Transmitter::new(0, false, 0, None),
            receiver: Receiver::new(false),
            incoming: Incoming::new(0, false),
            held: false,
            abandoned: false,
            shared_receives_end: None,
            trouble: None,
            not_ready: ReceiverNotReady::default(),
        }
    }

    /// `tell` is called once, when it has failed or ended and takes no more receives of its shared queue, unless it is
    /// [abandoned](Self::abandon); on the thread that finds that, with this queue pair locked: it must not block, nor call a method of a queue
    /// pair or a connection.
    pub fn when_shared_receives_end(&mut self, tell: impl FnOnce() + Send + 'static) {
        self.shared_receives_end = Some(Box::new(tell));
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its phase.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Why it has ended, if it has.
    pub fn cause(&self) -> Option<Cause> {
        self.cause
    }

    /// Starts: the stream carries frames from now on, of at most `frame_max` bytes from this side.
    pub fn start(&mut self, agreement: Agreement, frame_max: usize) {
        if self.phase != Phase::Idle {
            return;
        }
        let Agreement { crc, inbound_reads, outbound_reads, opening } = agreement;
        let first = match opening {
            Opening::Sends(header) => Some(header),
            _ => None,
        };
        self.transmitter = Transmitter::new(frame_max, crc, outbound_reads, first);
        self.receiver = Receiver::new(crc);
        self.incoming = Incoming::new(inbound_reads, opening == Opening::AwaitsEmpty);
        self.held = matches!(opening, Opening::Awaits | Opening::AwaitsEmpty);
        if self.held {
            self.accepts();
        }
        self.phase = Phase::Running;
    }

    /// Whether work requests are held back until the peer's first frame.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Whether the peer still owes the empty frame that it has agreed to begin with.
    pub fn is_owed_first_frame(&self) -> bool {
        self.held && self.incoming.awaits_empty()
    }

    /// Sends work requests although the peer has sent nothing: some peers never send first.
    pub fn release(&mut self) {
        self.held = false;
    }

    /// Posts a work request. It is sent by [`transmit`](Self::transmit). On a queue pair that has failed it is flushed
    /// at once.
    ///
    /// # Errors
    /// Why not.
    pub fn post_send(&mut self, request: &SendRequest<'_>) -> Result<(), PostError> {
        if self.phase == Phase::Idle {
            return Err(PostError::NotConnected);
        }
        // It would never be sent, nor would anything behind it.
        if self.phase == Phase::Running
            && matches!(request.work, Work::Read { .. })
            && !self.transmitter.may_read()
        {
            return Err(PostError::Invalid);
        }
        self.sends.post(request)?;
        if self.phase != Phase::Running {
            self.flush();
        }
        Ok(())
    }

    /// Posts a receive, which is possible before it is connected. On a queue pair that has failed it is flushed at once.
    ///
    /// # Errors
    /// Why not; [`PostError::Invalid`] if receives are shared.
    pub fn post_receive(&mut self, id: u64, pieces: &[Piece]) -> Result<(), PostError> {
        match &mut self.receives {
            Receives::Own(queue) => queue.post(id, pieces)?,
            Receives::Shared(..) => return Err(PostError::Invalid),
        }
        self.not_ready.wake();
        if matches!(self.phase, Phase::Ending | Phase::Ended) {
            self.flush();
        }
        Ok(())
    }

    /// The completion queue of the send queue.
    pub fn send_queue(&self) -> &Arc<CompletionQueue> {
        &self.send_completions
    }

    /// The completion queue of receives.
    pub fn receive_queue(&self) -> &Arc<CompletionQueue> {
        &self.receive_completions
    }

    /// How long the request is that was posted last.
    pub(crate) fn last_length(&self) -> usize {
        self.sends.last_length()
    }

    /// Whether one of its completion queues has overflowed.
    pub(crate) fn has_overflowed(&self) -> bool {
        self.send_completions.has_overflowed() || self.receive_completions.has_overflowed()
    }

    /// Ends it if one of its completion queues has overflowed. Returns whether it did.
    pub fn check(&mut self) -> bool {
        match self.phase {
            Phase::Running if self.has_overflowed() => {
                let last = Terminate { violation: Violation::LOCAL_CATASTROPHIC, cause: None };
                self.end(Cause::Overflow, Some(last));
                true
            }
            _ => false,
        }
    }

    /// Whether something is to be written that the stream did not take.
    pub fn wants_to_write(&self) -> bool {
        matches!(self.phase, Phase::Running | Phase::Ending) && self.transmitter.has_listed()
    }

    /// Writes what there is to write, until the stream takes no more, or up to a limit; then it
    /// [wants to write](Self::wants_to_write).
    pub fn transmit(&mut self, stream: &mut impl Stream) {
        self.move_out(stream);
        // A completion added by the write may have overflowed a queue, which ends the pair.
        if self.check() {
            self.move_out(stream);
        }
        self.transmitter.rest();
    }

    /// Whether it is up, all that was posted is done and reported, and all that the peer has asked for is sent.
    fn is_at_rest(&self) -> bool {
        self.phase == Phase::Running
            && self.trouble.is_none()
            && self.sends.is_empty()
            && self.transmitter.is_at_rest()
    }

    fn move_out(&mut self, stream: &mut impl Stream) {
        let mut written_bytes = 0;
        while matches!(self.phase, Phase::Running | Phase::Ending) && !self.is_at_rest() {
            if self.phase == Phase::Running && !self.transmitter.has_listed() {
                match self.trouble.take() {
                    Some(Trouble::Local) => {
                        let last = Terminate { violation: Violation::LOCAL_CATASTROPHIC, cause: None };
                        self.end(Cause::Local, Some(last));
                    }
                    Some(Trouble::Peer(violation, header)) => {
                        let cause = Some((header, header.size() as u16));
                        self.end(Cause::Peer(violation), Some(Terminate { violation, cause }));
                    }
                    None => {
                        let QueuePair { transmitter, sends, domain, .. } = self;
                        self.trouble = transmitter.list(sends, domain, self.number, self.held).err();
                        self.report();
                    }
                }
            }
            if !self.transmitter.has_listed() {
                if self.phase == Phase::Ending {
                    stream.finish();
                    self.phase = Phase::Ended;
                }
                if self.trouble.is_some() {
                    continue;
                }
                return;
            }
            if written_bytes >= BYTES_PER_CALL {
                return;
            }
            let QueuePair { transmitter, sends, .. } = self;
            written_bytes += transmitter.left();
            let written = transmitter.write(stream, |number| sends.done(number, Status::Success));
            self.report();
            match written {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.receive_rest(stream);
                    self.lose(Cause::Lost);
                    return stream.finish();
                }
            }
        }
    }

    /// Orderly end: starts no more frames, flushes outstanding requests, completes the partly written frame, closes the stream.
    pub fn disconnect(&mut self) {
        match self.phase {
            Phase::Idle => {
                self.phase = Phase::Ended;
                self.flush();
            }
            Phase::Running => self.end(Cause::Local, None),
            Phase::Ending | Phase::Ended => {}
        }
    }

    /// As [`disconnect`](Self::disconnect), without reporting completions: the queue pair is being destroyed.
    pub fn abandon(&mut self) {
        self.abandoned = true;
        self.disconnect();
    }

    /// Ends the connection, whose stream is gone.
    pub fn lose(&mut self, cause: Cause) {
        if self.phase != Phase::Ended {
            self.cause.get_or_insert(cause);
            self.transmitter = Transmitter::new(0, false, 0, None);
            self.phase = Phase::Ended;
            self.flush();
            self.receiver.stop();
        }
    }

    fn end(&mut self, cause: Cause, last: Option<Terminate>) {
        let last = last.map(|last| {
            let mut payload = Vec::new();
            last.put(&mut payload);
            payload
        });
        self.end_saying(cause, last.as_deref());
    }

    /// Ends the connection by a Terminate with this payload.
    fn end_saying(&mut self, cause: Cause, last: Option<&[u8]>) {
        self.cause.get_or_insert(cause);
        self.phase = Phase::Ending;
        self.trouble = None;
        self.transmitter.cut(last);
        self.flush();
        self.receiver.stop();
    }

    /// Reports all outstanding requests as flushed; those that already have a status keep it.
    fn flush(&mut self) {
        self.sends.flush();
        self.report();
        self.receiver.sink.clear();
        self.stop_waiting();
        while let Some(receive) = self.incoming.abandon().or_else(|| self.receives.take_flushed()) {
            self.received(receive.id, Status::Flushed, 0);
            self.receives.give_back(receive);
        }
        if let Some(tell) = self.shared_receives_end.take().filter(|_| !self.abandoned) {
            tell();
        }
    }

    fn report(&mut self) {
        if !self.abandoned {
            self.sends.report(&self.send_completions, self.number);
        }
    }

    /// Reports a receive that has not ended well.
    fn received(&self, id: u64, status: Status, length: u32) {
        let (operation, queue_pair) = (Operation::Receive, self.number);
        let completion = Completion { id, status, operation, length, queue_pair, invalidated: None };
        if !self.abandoned {
            self.receive_completions.push(completion, false);
        }
    }
}
