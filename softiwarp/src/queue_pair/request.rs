//! Work requests, as they are posted.

use crate::memory::{Binding, Denied, Domain, Span};
use crate::wire::SendKind;

/// The longest message.
pub const MESSAGE_MAX: usize = 1 << 30;

/// A piece of registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The offset of its first byte, as it was registered.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
    /// Its token.
    pub token: u32,
}

/// The data of a request.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// The content of these pieces at the time it is sent.
    Pieces(&'a [Piece]),
    /// These bytes, which are copied when the request is posted.
    Inline(&'a [&'a [u8]]),
}

/// The operation of a work request of the send queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Sends a message.
    Send(SendKind),
    /// Writes to the peer's memory.
    Write {
        /// The token of the memory.
        token: u32,
        /// The offset to write at.
        offset: u64,
    },
    /// Reads the peer's memory into the pieces.
    Read {
        /// The token of the memory.
        token: u32,
        /// The offset to read from.
        offset: u64,
    },
    /// Binds a window.
    Bind(Binding),
    /// Unbinds the window with this token, after all earlier requests are done.
    Invalidate(u32),
}

/// A work request of the send queue.
#[derive(Clone, Copy, Debug)]
pub struct SendRequest<'a> {
    /// Returned with the completion.
    pub id: u64,
    /// The operation.
    pub work: Work,
    /// Its data.
    pub payload: Payload<'a>,
    /// Signalled: success is reported as well.
    pub signaled: bool,
    /// Fenced: starts after all earlier reads are done.
    pub fence: bool,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostError {
    /// The queue is full.
    Full,
    /// Too many pieces, too long, or inline data that is not allowed.
    Invalid,
    /// The queue pair is not connected yet.
    NotConnected,
}

impl std::fmt::Display for PostError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            PostError::Full => "the queue is full",
            PostError::Invalid => "a request that cannot be",
            PostError::NotConnected => "the queue pair is not connected",
        })
    }
}

impl std::error::Error for PostError {}

/// The total length, unless it is too long.
pub(super) fn total(lengths: impl Iterator<Item = usize>) -> Option<usize> {
    lengths.into_iter().try_fold(0usize, usize::checked_add).filter(|&length| length <= MESSAGE_MAX)
}

/// Adds to `out` the spans of `length` bytes of the pieces, after the first `skip`.
///
/// # Errors
/// Why access to one of them is denied.
pub(super) fn spans(
    pieces: &[Piece],
    (mut skip, mut length): (usize, usize),
    (domain, access): (&Domain, crate::memory::Access),
    out: &mut Vec<Span>,
) -> Result<(), Denied> {
    for piece in pieces {
        let size = piece.length as usize;
        if skip >= size {
            skip -= size;
            continue;
        }
        let count = length.min(size - skip);
        if count == 0 {
            break;
        }
        let offset = piece.offset.checked_add(skip as u64).ok_or(Denied::Wrap)?;
        out.push(domain.find(piece.token, offset, count, access)?);
        (skip, length) = (0, length - count);
    }
    if length == 0 { Ok(()) } else { Err(Denied::Bounds) }
}
