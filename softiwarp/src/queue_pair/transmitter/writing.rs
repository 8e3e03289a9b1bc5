//! Writes the listed frames to the stream.

use std::io;

use super::super::stream::Stream;
use super::{PIECES_MAX, Part, Transmitter};
use crate::memory::Held;
use crate::wire::terminate;

impl Transmitter {
    /// Writes the listed bytes until TCP takes no more. Calls `sent` for each request that has been written completely and gets no response.
    pub(in super::super) fn write(
        &mut self,
        stream: &mut impl Stream,
        mut sent: impl FnMut(u64),
    ) -> io::Result<()> {
        while self.has_listed() {
            let count = self.write_once(stream)?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.advance(count);
            while let Some(&(end, done)) = self.frames.front().filter(|(end, _)| *end <= self.written) {
                self.whole = end;
                self.frames.pop_front();
                if let Some(number) = done {
                    sent(number);
                }
            }
        }
        Ok(())
    }

    fn write_once(&self, stream: &mut impl Stream) -> io::Result<usize> {
        // Small messages are one piece and need no list.
        if let (1, Some(Part::Own(from, to))) = (self.parts.len(), self.parts.front()) {
            let bytes = &self.arena[*from..*to];
            let piece = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
            // SAFETY: the piece is part of the arena, which is borrowed.
            return unsafe { stream.write(&[piece]) };
        }
        let mut held: [Option<Held<'_>>; PIECES_MAX] = [const { None }; PIECES_MAX];
        let mut vector = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PIECES_MAX];
        let mut count = 0;
        for part in self.parts.iter().take(PIECES_MAX) {
            vector[count] = match part {
                Part::Own(from, to) => {
                    let bytes = &self.arena[*from..*to];
                    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
                }
                Part::Memory(span) => {
                    // A frame cannot be completed without its payload.
                    let memory = held[count].insert(span.hold().ok_or(io::ErrorKind::ConnectionAborted)?);
                    libc::iovec { iov_base: memory.pointer().cast(), iov_len: memory.len() }
                }
            };
            count += 1;
        }
        // SAFETY: each piece is part of the arena, which is borrowed, or held memory.
        unsafe { stream.write(&vector[..count]) }
    }

    /// Removes written bytes from the list.
    fn advance(&mut self, mut count: usize) {
        self.written += count;
        while count != 0 {
            let (length, left) = match self.parts.front_mut() {
                None => return,
                Some(Part::Own(from, to)) => {
                    let length = count.min(*to - *from);
                    *from += length;
                    (length, *to - *from)
                }
                Some(Part::Memory(span)) => {
                    let length = count.min(span.len());
                    span.skip(length);
                    (length, span.len())
                }
            };
            count -= length;
            if left == 0 {
                self.parts.pop_front();
            }
        }
    }

    /// Aborts the list: copies the unsent part of the frame being written, and appends a Terminate with this payload, so that program memory is no
    /// longer read. If that frame cannot be completed, the list is emptied.
    pub(in super::super) fn cut(&mut self, last: Option<&[u8]>) {
        // Only the first listed frame can be partly written.
        let end = self.frames.front().map_or(self.written, |&(end, _)| end);
        let mut left = if self.written > self.whole { end - self.written } else { 0 };
        let mut rest = Vec::new();
        let mut whole = true;
        for part in self.parts.drain(..) {
            if left == 0 {
                break;
            }
            let before = rest.len();
            match part {
                Part::Own(from, to) => rest.extend_from_slice(&self.arena[from..to.min(from + left)]),
                Part::Memory(span) => match span.hold() {
                    Some(held) => held.append_to(&mut rest),
                    None => {
                        whole = false;
                        break;
                    }
                },
            }
            left -= (rest.len() - before).min(left);
        }
        self.frames.clear();
        self.responses.clear();
        self.reads.clear();
        (self.message, self.first) = (None, None);
        if !whole {
            self.arena.clear();
            return;
        }
        if let Some(last) = last {
            terminate::put_frame(last, self.crc, &mut rest);
        }
        self.arena = rest;
        if !self.arena.is_empty() {
            self.parts.push_back(Part::Own(0, self.arena.len()));
        }
    }
}
