//! Splits the byte stream into frames, and places their payload.
//!
//! It does not interpret frames: for each header the queue pair says where the payload goes, and it is told when the payload
//! has been placed.

use std::io;

use super::pool;
use super::stream::Stream;
use crate::memory::{Held, Span, TAIL};
use crate::wire::crc::Crc;
use crate::wire::rdmap::Parsed;
use crate::wire::{Header, Violation, fpdu, rdmap, terminate};

/// How much one call reads besides payload that is placed directly. A long frame with a CRC needs more.
const BUFFER: usize = 16 << 10;
/// The read size when the last frame was long: small, so that payload goes directly to its destination.
const BUFFER_SHORT: usize = 256;
/// Payload of at least this size is long.
const LONG: usize = 8 << 10;
/// Up to this many bytes of an incomplete frame are kept in memory of the connection's own between calls.
const LEFTOVER_MAX: usize = 1 << 10;
/// How many spans one call reads into.
const SPANS_MAX: usize = 32;

/// A frame whose header has been received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) header: Header,
    /// The length of the ULPDU.
    pub(super) ulpdu: usize,
}

impl Frame {
    /// The length of the payload.
    pub(super) fn payload(&self) -> usize {
        self.ulpdu - self.header.size()
    }

    /// The fault if the memory for the payload is deregistered while that arrives: the peer's if it was to write there, or this side's own.
    pub(super) fn gone(&self) -> Violation {
        match self.header {
            Header::Write { .. } => Violation::WRITE_TOKEN,
            _ => Violation::DDP_CATASTROPHIC,
        }
    }
}

/// What is expected next.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Header,
    /// This much payload.
    Payload(Frame, usize),
    /// Pad and CRC.
    Trailer(Frame),
}

/// What was found in the bytes.
pub(super) enum Found {
    /// Nothing complete.
    Nothing,
    /// A header. The caller must fill [`Receiver::sink`] now.
    Header(Frame),
    /// The end of a frame. Its payload has been placed.
    End(Frame),
    /// The memory for the payload of the frame was deregistered.
    Gone(Frame),
}

/// Why nothing was read.
pub(super) enum Unread {
    /// There is nothing at the moment.
    Nothing,
    /// The peer has closed.
    Closed,
    /// TCP has failed.
    Lost,
    /// The memory for the payload of the frame was deregistered.
    Gone(Frame),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Unread {
        if error.kind() == io::ErrorKind::WouldBlock { Unread::Nothing } else { Unread::Lost }
    }
}

pub(super) struct Receiver {
    crc: bool,
    /// Bytes read and not yet handled, from `start` to `end`. Between calls the buffer is returned to the pool if at most
    /// `LEFTOVER_MAX` bytes remain, which move to `leftover`.
    buffer: Vec<u8>,
    leftover: Vec<u8>,
    /// The last frame was long.
    long: bool,
    start: usize,
    end: usize,
    stage: Stage,
    /// Where the payload of the frame goes. Full spans are removed from the front.
    pub(super) sink: Vec<Span>,
    sink_at: usize,
    /// The payload of a Terminate.
    pub(super) said: Vec<u8>,
}

impl Receiver {
    pub(super) fn new(crc: bool) -> Receiver {
        Receiver {
            crc,
            buffer: Vec::new(),
            leftover: Vec::new(),
            long: false,
            start: 0,
            end: 0,
            stage: Stage::Header,
            sink: Vec::new(),
            sink_at: 0,
            said: Vec::new(),
        }
    }

    /// To be called before [`read`](Self::read).
    pub(super) fn begin(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = pool::take(&pool::READ);
            if self.buffer.len() < BUFFER {
                self.buffer.resize(BUFFER, 0);
            }
            (self.start, self.end) = (0, self.leftover.len());
            if self.end != 0 {
                self.buffer[..self.end].copy_from_slice(&self.leftover);
                self.leftover.clear();
            }
        }
    }

    /// To be called after the last read of a call: returns the buffer to the pool if possible.
    pub(super) fn finish(&mut self) {
        let rest = &self.buffer[self.start..self.end];
        if rest.len() <= LEFTOVER_MAX {
            self.leftover.extend_from_slice(rest);
            (self.start, self.end) = (0, 0);
            pool::give(&pool::READ, std::mem::take(&mut self.buffer));
        }
    }

    /// Gives all memory up: nothing is read any more.
    pub(super) fn stop(&mut self) {
        pool::give(&pool::READ, std::mem::take(&mut self.buffer));
        (self.leftover, self.sink) = (Vec::new(), Vec::new());
        (self.start, self.end, self.sink_at) = (0, 0, 0);
    }

    /// Parses the next of the bytes read.
    ///
    /// # Errors
    /// The violation of a header.
    pub(super) fn next(&mut self) -> Result<Found, Violation> {
        loop {
            match self.stage {
                Stage::Header => return self.header(),
                Stage::Payload(frame, left) => {
                    let here = self.end - self.start;
                    // The end of the payload stays in the buffer until it is whole, so that no word of it is stored in two parts.
                    let count = if here < left { here.min(left.saturating_sub(TAIL)) } else { left };
                    if !self.place(frame, count) {
                        return Ok(Found::Gone(frame));
                    }
                    self.start += count;
                    if count < left {
                        self.stage = Stage::Payload(frame, left - count);
                        return Ok(Found::Nothing);
                    }
                    self.stage = Stage::Trailer(frame);
                }
                Stage::Trailer(frame) => {
                    let count = fpdu::pad(frame.ulpdu) + fpdu::CRC_SIZE;
                    if self.end - self.start < count {
                        return Ok(Found::Nothing);
                    }
                    self.start += count;
                    self.stage = Stage::Header;
                    self.sink.clear();
                    self.sink_at = 0;
                    return Ok(Found::End(frame));
                }
            }
        }
    }

    fn header(&mut self) -> Result<Found, Violation> {
        let bytes = &self.buffer[self.start..self.end];
        let Some((length, rest)) = bytes.split_first_chunk::<{ fpdu::LENGTH_SIZE }>() else {
            self.make_room(fpdu::LENGTH_SIZE);
            return Ok(Found::Nothing);
        };
        let ulpdu = usize::from(u16::from_be_bytes(*length));
        if self.crc {
            // Except for its length, the frame is not trusted before its CRC is checked.
            let size = fpdu::size(ulpdu);
            let Some(frame) = bytes.get(..size) else {
                self.make_room(size);
                return Ok(Found::Nothing);
            };
            let (checked, crc) = frame.split_at(size - fpdu::CRC_SIZE);
            if Crc::default().update(checked).bytes() != crc {
                return Err(Violation::CRC);
            }
        }
        match Header::parse(&rest[..ulpdu.min(rest.len())], ulpdu)? {
            Parsed::Incomplete(needed) => {
                self.make_room(fpdu::LENGTH_SIZE + needed);
                Ok(Found::Nothing)
            }
            Parsed::Header(header, size) => {
                self.start += fpdu::LENGTH_SIZE + size;
                let frame = Frame { header, ulpdu };
                self.long = frame.payload() >= LONG;
                self.stage = Stage::Payload(frame, frame.payload());
                Ok(Found::Header(frame))
            }
        }
    }

    /// The header of DDP in the segment that [`next`](Self::next) could not parse, if it is there, and the segment's length.
    pub(super) fn faulty(&self) -> Option<(&[u8], u16)> {
        let (length, rest) =
            self.buffer[self.start..self.end].split_first_chunk::<{ fpdu::LENGTH_SIZE }>()?;
        let ulpdu = u16::from_be_bytes(*length);
        let header =
            rest.get(..rdmap::ddp_size(*rest.first()?)).filter(|header| header.len() <= ulpdu.into())?;
        Some((header, ulpdu))
    }

    /// Makes room for `size` bytes from the first unhandled one on.
    fn make_room(&mut self, size: usize) {
        self.compact();
        if self.buffer.len() < size {
            self.buffer.resize(size, 0);
        }
    }

    fn compact(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start != 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }

    /// Copies payload from the buffer to its destination, unless that is gone.
    fn place(&mut self, frame: Frame, count: usize) -> bool {
        let mut bytes = &self.buffer[self.start..self.start + count];
        if frame.header == Header::Terminate {
            let room = terminate::PAYLOAD_MAX - self.said.len().min(terminate::PAYLOAD_MAX);
            self.said.extend_from_slice(&bytes[..room.min(bytes.len())]);
            return true;
        }
        while !bytes.is_empty() {
            let Some(span) = self.sink.get_mut(self.sink_at) else { return false };
            let Some(count) = span.hold().map(|held| held.fill(bytes)) else { return false };
            span.skip(count);
            bytes = &bytes[count..];
            self.sink_at += usize::from(span.len() == 0);
        }
        true
    }

    /// Reads from the stream: payload to its destination, the rest into the buffer. Returns whether that was all there is for
    /// now. To be called only after [`next`](Self::next) has found nothing.
    ///
    /// # Errors
    /// Why nothing was read.
    pub(super) fn read(&mut self, stream: &mut impl Stream) -> Result<bool, Unread> {
        self.compact();
        // The end of the payload comes through the buffer, so that it is stored last: see `Held::fill`.
        let (frame, mut left) = match self.stage {
            Stage::Payload(frame, left) if frame.header != Header::Terminate && left > TAIL => {
                (frame, left - TAIL)
            }
            _ => return self.read_buffer(stream),
        };
        let mut held: [Option<Held<'_>>; SPANS_MAX] = [const { None }; SPANS_MAX];
        let mut vector = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; SPANS_MAX + 1];
        let (mut count, mut in_place) = (0, 0);
        for span in self.sink[self.sink_at..].iter().take(SPANS_MAX) {
            if left == 0 {
                break;
            }
            let memory = held[count].insert(span.hold().ok_or(Unread::Gone(frame))?);
            let length = memory.len().min(left);
            vector[count] = libc::iovec { iov_base: memory.pointer().cast(), iov_len: length };
            in_place += length;
            left -= length;
            count += 1;
        }
        let mut asked = in_place;
        // Bytes for the buffer follow only after these.
        if left == 0 {
            let room = self.end..self.end + self.room();
            let room = &mut self.buffer[room];
            vector[count] = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
            asked += room.len();
            count += 1;
        }
        // SAFETY: each piece is held memory, or part of the buffer, which is borrowed mutably.
        let got = unsafe { stream.read(&vector[..count]) }?;
        drop(held);
        if got == 0 {
            return Err(Unread::Closed);
        }
        let placed = got.min(in_place);
        self.end += got - placed;
        self.skip_sink(placed);
        Ok(got < asked)
    }

    /// Reads into the buffer only.
    fn read_buffer(&mut self, stream: &mut impl Stream) -> Result<bool, Unread> {
        let room = self.end..self.end + self.room();
        let room = &mut self.buffer[room];
        let piece = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
        // SAFETY: the piece is part of the buffer, which is borrowed mutably.
        let got = unsafe { stream.read(&[piece]) }?;
        if got == 0 {
            return Err(Unread::Closed);
        }
        self.end += got;
        Ok(got < piece.iov_len)
    }

    /// How much is read into the buffer.
    fn room(&self) -> usize {
        let room = self.buffer.len() - self.end;
        // With a CRC the whole frame must come into the buffer.
        if self.long && !self.crc { BUFFER_SHORT.min(room) } else { room }
    }

    /// Notes that payload was placed.
    fn skip_sink(&mut self, mut count: usize) {
        if let Stage::Payload(frame, left) = self.stage {
            self.stage = Stage::Payload(frame, left - count.min(left));
        }
        while count != 0 {
            let Some(span) = self.sink.get_mut(self.sink_at) else { return };
            let length = count.min(span.len());
            span.skip(length);
            count -= length;
            self.sink_at += usize::from(span.len() == 0);
        }
    }
}
