//! The frames of MPA, DDP and RDMAP: parsed from bytes and built into bytes, with no input or output.
//!
//! No input makes this panic: an error of the peer is a [`Violation`], the content of the Terminate message for it. Payload
//! is never copied; the parsers return its position and length.

pub mod crc;
pub mod fpdu;
pub mod rdmap;
pub mod startup;
pub mod terminate;
pub mod violation;

pub use rdmap::{Header, ReadRequest, SendKind};
pub use startup::{Enhanced, StartError, StartFrame, StartKind};
pub use terminate::Terminate;
pub use violation::{Layer, Violation};
