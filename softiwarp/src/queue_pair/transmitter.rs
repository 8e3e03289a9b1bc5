//! Makes frames of work requests and read responses, and lists them for one gathering write.

mod writing;

use std::collections::VecDeque;

use super::pool;
use super::request::{Piece, Work, spans};
use super::send_queue::{SendQueue, Slot};
use crate::completion::Status;
use crate::memory::{Access, Denied, Domain, Span};
use crate::wire::crc::Crc;
use crate::wire::fpdu;
use crate::wire::{Header, ReadRequest, Violation};

/// After this many pieces no further frame is listed. A frame may have several.
const PIECES_MAX: usize = 64;
/// How many frames are listed at a time.
const FRAMES_MAX: usize = 64;
/// How many bytes are listed at a time.
const BYTES_MAX: usize = 1 << 18;
/// Payload up to this size is copied behind its header, which is faster than a piece of its own.
const COPIED_MAX: usize = 256;

/// A part of the bytes to be written.
enum Part {
    /// In the arena: from, to.
    Own(usize, usize),
    /// Payload in registered memory.
    Memory(Span),
}

/// A message to be split into frames.
#[derive(Clone, Copy)]
enum Message {
    /// A work request, by its number in the send queue.
    Request(u64),
    /// A read response, to the request with this number.
    Response(u32, ReadRequest),
    /// The empty frame that opens a connection.
    First(Header),
}

/// Why no more frames can be made.
pub(super) enum Trouble {
    /// A work request has failed.
    Local,
    /// A peer's read, which has this header, is refused.
    Peer(Violation, Header),
}

/// A peer's read that is to be answered, or refused, in its turn.
pub(super) struct Due {
    pub(super) number: u32,
    pub(super) request: ReadRequest,
    /// Why it is refused. Those before it are answered first, as a peer knows by the refusal which of its reads has failed.
    pub(super) refused: Option<Violation>,
}

impl Due {
    /// The response.
    fn message(self) -> Result<Message, Trouble> {
        let Due { number, request, refused } = self;
        match refused {
            None => Ok(Message::Response(number, request)),
            Some(violation) => Err(Trouble::Peer(violation, Header::ReadRequest { number, request })),
        }
    }
}

/// An outstanding read.
pub(super) struct Read {
    /// The request; none for the read that opens a connection.
    pub(super) slot: Option<u64>,
    /// Counts reads from 1 on; also the sink token that the response carries.
    pub(super) number: u32,
    /// Bytes received.
    pub(super) placed: usize,
    /// Bytes requested.
    pub(super) length: usize,
}

pub(super) struct Transmitter {
    /// The longest frame.
    frame_max: usize,
    crc: bool,
    /// How many reads may be outstanding.
    reads_max: usize,
    /// Headers, trailers, and copied payload.
    arena: Vec<u8>,
    parts: VecDeque<Part>,
    /// Ends of the listed frames, counted from the first byte of the list, and the request that completes there, which gets no response.
    frames: VecDeque<(usize, Option<u64>)>,
    listed: usize,
    written: usize,
    /// The end of the last frame that has been written completely.
    whole: usize,
    message: Option<(Message, usize)>,
    /// The peer's reads that are to be answered.
    pub(super) responses: VecDeque<Due>,
    pub(super) reads: VecDeque<Read>,
    first: Option<Header>,
    /// Whether it is a response's turn, before a request.
    turn: bool,
    /// The number of the last Send.
    pub(super) sends: u32,
    reads_sent: u32,
    scratch: Vec<Span>,
}

impl Transmitter {
    pub(super) fn new(frame_max: usize, crc: bool, reads_max: usize, first: Option<Header>) -> Transmitter {
        Transmitter {
            frame_max: frame_max.clamp(128, fpdu::MAX_FPDU),
            crc,
            reads_max,
            arena: Vec::new(),
            parts: VecDeque::new(),
            frames: VecDeque::new(),
            listed: 0,
            written: 0,
            whole: 0,
            message: None,
            responses: VecDeque::new(),
            reads: VecDeque::new(),
            first,
            turn: false,
            sends: 0,
            reads_sent: 0,
            scratch: Vec::new(),
        }
    }

    /// Whether nothing is to be written but requests.
    pub(super) fn is_at_rest(&self) -> bool {
        !self.has_listed() && self.responses.is_empty() && self.message.is_none() && self.first.is_none()
    }

    /// Whether listed bytes are still to be written.
    pub(super) fn has_listed(&self) -> bool {
        !self.parts.is_empty()
    }

    /// How many listed bytes are still to be written.
    pub(super) fn left(&self) -> usize {
        self.listed.saturating_sub(self.written)
    }

    /// Frees the memory of the list, if all of it has been written.
    pub(super) fn rest(&mut self) {
        if !self.has_listed() {
            pool::give(&pool::WRITTEN, std::mem::take(&mut self.arena));
        }
    }

    /// How many read responses are not completely sent.
    pub(super) fn responses_due(&self) -> usize {
        self.responses.len() + usize::from(matches!(self.message, Some((Message::Response(..), _))))
    }

    /// Lists the next frames, if all listed before have been written. `held` holds back work requests.
    pub(super) fn list(
        &mut self,
        queue: &mut SendQueue,
        domain: &Domain,
        queue_pair: u32,
        held: bool,
    ) -> Result<(), Trouble> {
        if self.has_listed() {
            return Ok(());
        }
        (self.listed, self.written, self.whole) = (0, 0, 0);
        if self.arena.capacity() == 0 {
            self.arena = pool::take(&pool::WRITTEN);
        }
        self.arena.clear();
        self.frames.clear();
        let mut from = 0;
        let mut outcome = Ok(());
        while self.parts.len() < PIECES_MAX && self.frames.len() < FRAMES_MAX && self.listed < BYTES_MAX {
            let Some((message, sent)) =
                self.message.take().or_else(|| match self.next(queue, domain, queue_pair, held) {
                    Ok(found) => found.map(|message| (message, 0)),
                    Err(trouble) => {
                        outcome = Err(trouble);
                        None
                    }
                })
            else {
                break;
            };
            if let Err(trouble) = self.frame(message, sent, (queue, domain, queue_pair), &mut from) {
                outcome = Err(trouble);
                break;
            }
        }
        if from < self.arena.len() {
            self.parts.push_back(Part::Own(from, self.arena.len()));
        }
        outcome
    }

    /// Whether the peer answers reads at all.
    pub(super) fn may_read(&self) -> bool {
        self.reads_max != 0
    }

    /// The message to be sent next: read responses and requests alternate.
    fn next(
        &mut self,
        queue: &mut SendQueue,
        domain: &Domain,
        queue_pair: u32,
        held: bool,
    ) -> Result<Option<Message>, Trouble> {
        if let Some(first) = self.first.take() {
            return Ok(Some(Message::First(first)));
        }
        if !held && self.listed != 0 && self.waits_for_the_list(queue) {
            // The next list begins with it: behind another response it might begin in the middle of a message, again and again.
            self.turn = false;
            return Ok(None);
        }
        let response_first = self.turn || held;
        self.turn = !self.turn;
        if response_first && let Some(due) = self.responses.pop_front() {
            return due.message().map(Some);
        }
        if !held && let Some(request) = self.next_request(queue, domain, queue_pair)? {
            return Ok(Some(Message::Request(request)));
        }
        self.responses.pop_front().map(Due::message).transpose()
    }

    /// Whether the next request is an invalidation that waits for nothing but the listed frames.
    fn waits_for_the_list(&self, queue: &SendQueue) -> bool {
        let next = queue.upcoming();
        next.is_some_and(|slot| {
            matches!(slot.work, Work::Invalidate(_)) && (!slot.fence || self.reads.is_empty())
        }) && queue.all_before_next_are_done()
    }

    /// The next request that may be sent. Binds and invalidations before it are executed here, in order.
    fn next_request(
        &mut self,
        queue: &mut SendQueue,
        domain: &Domain,
        queue_pair: u32,
    ) -> Result<Option<u64>, Trouble> {
        while let Some(slot) = queue.upcoming() {
            let number = queue.next;
            if slot.fence && !self.reads.is_empty() {
                return Ok(None);
            }
            let status = match slot.work {
                Work::Read { .. } if self.reads.len() >= self.reads_max => return Ok(None),
                Work::Send(_) | Work::Write { .. } | Work::Read { .. } => {
                    queue.next += 1;
                    return Ok(Some(number));
                }
                // Listed frames may use the window, and outstanding reads may need it.
                Work::Invalidate(_) if !queue.all_before_next_are_done() || self.listed != 0 => {
                    return Ok(None);
                }
                Work::Invalidate(token) => match domain.invalidate(token, queue_pair) {
                    Ok(()) => Status::Success,
                    Err(_) => Status::LocalProtection,
                },
                Work::Bind(binding) => match domain.bind(&binding, queue_pair) {
                    Ok(()) => Status::Success,
                    Err(_) => Status::Bind,
                },
            };
            queue.next += 1;
            queue.done(number, status);
            if status != Status::Success {
                return Err(Trouble::Local);
            }
        }
        Ok(None)
    }

    /// Lists the next frame of a message. The part of the arena from `from` on is not listed yet.
    fn frame(
        &mut self,
        message: Message,
        sent: usize,
        (queue, domain, queue_pair): (&mut SendQueue, &Domain, u32),
        from: &mut usize,
    ) -> Result<(), Trouble> {
        let length = match &message {
            Message::Request(number) => match queue.slot(*number) {
                Slot { work: Work::Read { .. }, .. } => 0,
                slot => slot.length,
            },
            Message::Response(_, request) => request.length as usize,
            Message::First(_) => 0,
        };
        let header = self.header(&message, (sent, length), queue);
        let room = fpdu::ulpdu_within(self.frame_max) - header.size();
        let chunk = room.min(length - sent);
        let last = sent + chunk == length;
        let header = with_last(header, last);

        self.scratch.clear();
        let mut inline: &[u8] = &[];
        match &message {
            Message::Request(number) => {
                let Slot { is_inline, inline: bytes, pieces, .. } = queue.slot(*number);
                if *is_inline {
                    inline = &bytes[sent..sent + chunk];
                } else if chunk != 0 && self.find(pieces, (sent, chunk), domain).is_err() {
                    queue.done(*number, Status::LocalProtection);
                    return Err(Trouble::Local);
                }
            }
            &Message::Response(number, request) if chunk != 0 => {
                let (token, offset) = request.source;
                // The bounds of the whole were checked when the request arrived.
                let offset = offset.wrapping_add(sent as u64);
                let found = domain.find(token, offset, chunk, Access::PeerReads(queue_pair));
                let header = Header::ReadRequest { number, request };
                self.scratch.push(found.map_err(|denied| Trouble::Peer(denied.of_read(), header))?);
            }
            Message::Response(..) | Message::First(_) => {}
        }

        let begin = self.arena.len();
        let ulpdu = header.size() + chunk;
        self.arena.extend((ulpdu as u16).to_be_bytes());
        header.put(&mut self.arena);
        self.arena.extend_from_slice(inline);
        if self.crc || chunk <= COPIED_MAX {
            for span in &self.scratch {
                match span.hold() {
                    Some(held) => held.append_to(&mut self.arena),
                    None => {
                        self.arena.truncate(begin);
                        return Err(gone(&message, queue));
                    }
                }
            }
        } else {
            self.parts.push_back(Part::Own(*from, self.arena.len()));
            *from = self.arena.len();
            self.parts.extend(self.scratch.drain(..).map(Part::Memory));
        }
        self.scratch.clear();
        self.arena.resize(self.arena.len() + fpdu::pad(ulpdu), 0);
        let crc = if self.crc { Crc::default().update(&self.arena[begin..]).bytes() } else { [0; 4] };
        self.arena.extend(crc);
        self.listed += fpdu::size(ulpdu);

        let done = match message {
            Message::Request(number) if last && !matches!(header, Header::ReadRequest { .. }) => Some(number),
            _ => None,
        };
        self.frames.push_back((self.listed, done));
        self.message = (!last).then_some((message, sent + chunk));
        Ok(())
    }

    /// Adds the spans of a part of the pieces to the scratch list.
    fn find(&mut self, pieces: &[Piece], part: (usize, usize), domain: &Domain) -> Result<(), Denied> {
        spans(pieces, part, (domain, Access::Gather), &mut self.scratch)
    }

    /// The header of the next frame of a message, marked as the last. The first frame assigns the message number.
    fn header(&mut self, message: &Message, (sent, length): (usize, usize), queue: &SendQueue) -> Header {
        let slot = match *message {
            Message::First(header) => {
                if let Header::ReadRequest { .. } = header {
                    self.reads_sent = 1;
                    self.reads.push_back(Read { slot: None, number: 1, placed: 0, length: 0 });
                }
                if let Header::Send { .. } = header {
                    self.sends = 1;
                }
                return header;
            }
            Message::Response(_, ReadRequest { sink: (token, offset), .. }) => {
                return Header::ReadResponse { token, offset: offset.wrapping_add(sent as u64), last: true };
            }
            Message::Request(slot) => slot,
        };
        let request = queue.slot(slot);
        match request.work {
            Work::Write { token, offset } => {
                Header::Write { token, offset: offset.wrapping_add(sent as u64), last: true }
            }
            Work::Read { token, offset } => {
                self.reads_sent = self.reads_sent.wrapping_add(1);
                let number = self.reads_sent;
                self.reads.push_back(Read { slot: Some(slot), number, placed: 0, length: request.length });
                // The sink's token is meaningful to this side only: the number of the read, with offsets from 0 on.
                let request =
                    ReadRequest { sink: (number, 0), length: request.length as u32, source: (token, offset) };
                Header::ReadRequest { number, request }
            }
            Work::Send(kind) => {
                if sent == 0 {
                    self.sends = self.sends.wrapping_add(1);
                }
                debug_assert!(length <= super::request::MESSAGE_MAX);
                Header::Send { kind, number: self.sends, offset: sent as u32, last: true }
            }
            Work::Bind(_) | Work::Invalidate(_) => unreachable!("`next_request` has executed it"),
        }
    }
}

/// The header with its bit `last` as given.
fn with_last(mut header: Header, is_last: bool) -> Header {
    match &mut header {
        Header::Write { last, .. } | Header::ReadResponse { last, .. } | Header::Send { last, .. } => {
            *last = is_last
        }
        Header::ReadRequest { .. } | Header::Terminate => {}
    }
    header
}

/// Memory was deregistered between the check and its use.
fn gone(message: &Message, queue: &mut SendQueue) -> Trouble {
    match message {
        &Message::Response(number, request) => {
            Trouble::Peer(Violation::READ_TOKEN, Header::ReadRequest { number, request })
        }
        Message::Request(number) => {
            queue.done(*number, Status::LocalProtection);
            Trouble::Local
        }
        Message::First(_) => Trouble::Local,
    }
}
