//! Receiving.

use super::Step;
use crate::arguments::InOut;
use crate::io::STATUS_SUCCESS;
use crate::winsock::errors::{STATUS_BUFFER_OVERFLOW, STATUS_PORT_UNREACHABLE};
use crate::winsock::table;
use crate::winsock::wire::{self, Ancillary, Piece, Pieces, Received, WsaMsg};
use libc::{c_int, sockaddr};
use std::os::fd::RawFd;
use std::ptr::null_mut;

/// A receive into the caller's memory.
pub(in crate::winsock) struct Receive {
    pub(in crate::winsock) pieces: Pieces,
    pub(in crate::winsock) flags: c_int,
    /// Where the sender's address goes, and the room there.
    pub(in crate::winsock) from: *mut sockaddr,
    pub(in crate::winsock) from_length: InOut<'static, c_int>,
    /// Or the whole message structure.
    pub(in crate::winsock) message: InOut<'static, WsaMsg>,
    pub(in crate::winsock) stream: bool,
    /// Received so far, with MSG_WAITALL.
    pub(in crate::winsock) done: usize,
}

// SAFETY: the places that it writes to are the program's, which lets every thread write there until the request has completed.
unsafe impl Send for Receive {}

impl Receive {
    /// A receive of data only, from a datagram socket.
    pub(in crate::winsock) fn new(pieces: Pieces, flags: c_int) -> Receive {
        let (from, from_length, message) = (null_mut(), InOut::NULL, InOut::NULL);
        Receive { pieces, flags, from, from_length, message, stream: false, done: 0 }
    }

    /// The address and control data, and their destination.
    fn ancillary(&self) -> Ancillary {
        if let Some(message) = self.message.read() {
            // SAFETY: the program has the room that its message tells, until the request has completed.
            return unsafe { Ancillary::of(&message) };
        }
        let room = self.from_length.read().unwrap_or(0);
        // SAFETY: the program has so much room for the address, until the request has completed.
        unsafe { Ancillary::name(self.from, room as u32) }
    }

    /// One call for the remaining bytes.
    fn receive(&self, fd: RawFd, flags: c_int) -> Result<Received, c_int> {
        match &self.pieces[..] {
            [piece] if self.stream => wire::receive_piece(fd, piece, flags).map(Received::of_stream),
            pieces if self.stream => wire::receive(fd, wire::first_of(pieces), flags, &Ancillary::NONE),
            pieces => wire::receive(fd, pieces, flags, &self.ancillary()),
        }
    }

    pub(in crate::winsock) fn attempt(&mut self, fd: RawFd) -> Step {
        if wire::total(&self.pieces) == 0 && self.stream {
            return self.look(fd);
        }
        let flags = self.flags & !libc::MSG_WAITALL | libc::MSG_DONTWAIT;
        loop {
            // One call takes a part of many pieces.
            let (all, asked) = (wire::total(&self.pieces), wire::total(wire::first_of(&self.pieces)));
            let received = match self.receive(fd, flags) {
                Ok(received) => received,
                Err(libc::EAGAIN) => return Step::Blocked,
                Err(libc::ENOTCONN) if table::was_reset(fd) => return Step::failed(libc::ECONNRESET),
                // An undelivered datagram.
                Err(libc::ECONNREFUSED) if !self.stream => {
                    return Step::Done { status: STATUS_PORT_UNREACHABLE, bytes: 0, drained: false };
                }
                Err(libc::ECONNREFUSED) => return Step::failed(libc::ECONNRESET),
                Err(errno) => {
                    table::note_reset_of_driver(fd, errno);
                    return Step::failed(errno);
                }
            };
            let count = received.count;
            if count == 0 && self.stream && self.done == 0 && table::was_reset(fd) {
                return Step::failed(libc::ECONNRESET);
            }
            self.done += count;
            if !self.stream {
                if !self.from.is_null() {
                    self.from_length.put(received.name_length as c_int);
                }
                let mut truncated = received.flags & libc::MSG_TRUNC != 0;
                if let Some(message) = self.message.read() {
                    self.message.put(message.with(&received));
                    truncated = message.is_short_for(&received);
                }
                let status = if truncated { STATUS_BUFFER_OVERFLOW } else { STATUS_SUCCESS };
                return Step::Done { status, bytes: count, drained: false };
            }
            if self.flags & libc::MSG_WAITALL != 0 && count > 0 && count < all {
                wire::consume(&mut self.pieces, count);
                continue;
            }
            let drained = count < asked && flags & libc::MSG_PEEK == 0;
            return Step::Done { status: STATUS_SUCCESS, bytes: self.done, drained };
        }
    }

    /// A receive without buffers, which completes when data arrive.
    fn look(&self, fd: RawFd) -> Step {
        let mut byte = 0u8;
        // SAFETY: a byte that is there until the call ends.
        let piece = unsafe { Piece::new(&raw mut byte, 1) };
        match wire::receive_piece(fd, &piece, libc::MSG_PEEK | libc::MSG_DONTWAIT) {
            Ok(0) | Err(libc::ENOTCONN) if table::was_reset(fd) => Step::failed(libc::ECONNRESET),
            Ok(_) => Step::done(0),
            Err(libc::EAGAIN) => Step::Blocked,
            Err(errno) => {
                table::note_reset_of_driver(fd, errno);
                Step::failed(errno)
            }
        }
    }
}
