//! The memory of the program that the device may access: regions, windows, and their tokens.
//!
//! Every access is checked when it happens ([`Domain::find`]), to the byte, and holds the memory meanwhile
//! ([`Span::hold`]): deregistration waits for it. No Rust reference to a program's memory is made, as the program, the
//! kernel and peers read and write it at the same time; it is copied by pointer or passed to the kernel.

mod grant;
mod table;

pub(crate) use grant::TAIL;
pub use grant::{Held, Span};
pub(crate) use table::Spread;
pub use table::{Binding, Domain, Memory, MemoryError, Region, Window};

use crate::wire::Violation;

/// Access rights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// The device may write for local requests: receives, and sinks of reads.
    pub local_write: bool,
    /// Peers may read.
    pub remote_read: bool,
    /// Peers may write.
    pub remote_write: bool,
    /// Windows may be bound to it.
    pub bind: bool,
}

/// Which access is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The device sends from it.
    Gather,
    /// The device receives into it.
    Scatter,
    /// The peer of this queue pair reads it.
    PeerReads(u32),
    /// The peer of this queue pair writes it.
    PeerWrites(u32),
}

/// Why an access is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The token is not in use.
    Token,
    /// The token belongs to another protection domain, or to another connection.
    Stream,
    /// The rights do not allow it.
    Rights,
    /// The range exceeds the memory.
    Bounds,
    /// The end of the range exceeds the address space.
    Wrap,
}

impl Denied {
    /// The fault in a Terminate, for a read.
    pub fn of_read(self) -> Violation {
        match self {
            Denied::Token => Violation::READ_TOKEN,
            Denied::Stream => Violation::READ_STREAM,
            Denied::Rights => Violation::READ_RIGHTS,
            Denied::Bounds => Violation::READ_BOUNDS,
            Denied::Wrap => Violation::READ_WRAP,
        }
    }

    /// The fault in a Terminate, for a Send that invalidates. As siw has it, a token that is not in use is another fault than one that is
    /// not the peer's to invalidate.
    pub fn of_invalidation(self) -> Violation {
        match self {
            Denied::Token => Violation::INVALIDATES_NOTHING,
            Denied::Stream | Denied::Rights | Denied::Bounds | Denied::Wrap => Violation::CANNOT_INVALIDATE,
        }
    }

    /// The fault in a Terminate, for a write. DDP has no code for missing rights: it is reported as an invalid token.
    pub fn of_write(self) -> Violation {
        match self {
            Denied::Token | Denied::Rights => Violation::WRITE_TOKEN,
            Denied::Stream => Violation::WRITE_STREAM,
            Denied::Bounds => Violation::WRITE_BOUNDS,
            Denied::Wrap => Violation::WRITE_WRAP,
        }
    }
}
