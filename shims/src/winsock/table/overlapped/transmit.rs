//! `TransmitFile`: bytes of the program's, of a file, and of the program's again. The file is read piece by piece: Linux's
//! `sendfile` raises a signal when the peer is gone.

use super::Step;
use crate::error::ERROR_HANDLE_EOF;
use crate::files::disk::DiskFile;
use crate::winsock::table;
use crate::winsock::wire::{self, Ancillary, Piece, Pieces};
use std::os::fd::RawFd;
use std::sync::Arc;

/// Bytes of the file that are read at a time.
const CHUNK: usize = 64 << 10;

/// The file of a transfer, and how much of it.
pub(in crate::winsock) struct Part {
    pub(in crate::winsock) file: Arc<DiskFile>,
    /// Where it begins; `None` for the file's own position.
    pub(in crate::winsock) at: Option<u64>,
    /// The most bytes of it.
    pub(in crate::winsock) left: u64,
}

/// One `TransmitFile`.
pub(in crate::winsock) struct Transmit {
    /// To be sent next: bytes of the program's, or of `chunk`.
    pub(in crate::winsock) pieces: Pieces,
    pub(in crate::winsock) part: Option<Part>,
    pub(in crate::winsock) tail: Option<Piece>,
    /// Whether the connection is shut down at the end.
    pub(in crate::winsock) disconnects: bool,
    pub(in crate::winsock) chunk: Box<[u8]>,
    pub(in crate::winsock) sent: usize,
}

/// NTSTATUS: the file could not be read.
const STATUS_UNEXPECTED_IO_ERROR: i32 = 0xC000_00E9_u32 as i32;

impl Transmit {
    pub(in crate::winsock) fn new(
        head: Option<Piece>,
        part: Option<Part>,
        tail: Option<Piece>,
        disconnects: bool,
    ) -> Transmit {
        let room = part.as_ref().map_or(0, |part| CHUNK.min(usize::try_from(part.left).unwrap_or(CHUNK)));
        let chunk = vec![0; room].into_boxed_slice();
        Transmit { pieces: head.into_iter().collect(), part, tail, disconnects, chunk, sent: 0 }
    }

    /// Chooses what is sent next; false at the end.
    fn advance(&mut self) -> Result<bool, u32> {
        self.pieces.clear();
        if let Some(part) = &mut self.part {
            let room = self.chunk.len().min(usize::try_from(part.left).unwrap_or(CHUNK));
            let read = match part.file.read(&mut self.chunk[..room], part.at) {
                Err(ERROR_HANDLE_EOF) => 0,
                other => other?,
            };
            part.left -= read as u64;
            part.at = part.at.map(|at| at + read as u64);
            if read > 0 {
                // SAFETY: within the chunk, which is not changed or freed before they are sent.
                self.pieces.push(unsafe { Piece::new(self.chunk.as_ptr(), read) });
                return Ok(true);
            }
            self.part = None;
        }
        self.pieces.extend(self.tail.take());
        Ok(!self.pieces.is_empty())
    }

    pub(in crate::winsock) fn attempt(&mut self, fd: RawFd) -> Step {
        loop {
            if wire::total(&self.pieces) == 0 {
                match self.advance() {
                    Ok(true) => continue,
                    Ok(false) => break,
                    Err(_) => {
                        let status = STATUS_UNEXPECTED_IO_ERROR;
                        return Step::Done { status, bytes: self.sent, drained: false };
                    }
                }
            }
            match wire::send(fd, &self.pieces, libc::MSG_DONTWAIT, &Ancillary::NONE) {
                Ok(count) => {
                    self.sent += count;
                    wire::consume(&mut self.pieces, count);
                }
                Err(libc::EAGAIN) => return Step::Blocked,
                Err(libc::EPIPE) if table::was_reset(fd) => return Step::failed(libc::ECONNRESET),
                Err(libc::EPIPE) => return Step::failed(wire::broken(fd)),
                Err(errno) => {
                    table::note_reset_of_driver(fd, errno);
                    return Step::failed(errno);
                }
            }
        }
        if self.disconnects {
            // SAFETY: takes no pointer. What it says to a connection that was reset does not matter.
            unsafe { libc::shutdown(fd, libc::SHUT_RDWR) };
        }
        Step::done(self.sent)
    }
}
