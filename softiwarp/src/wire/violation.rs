//! Protocol violations, with the codes of RFC 5040 (7.2.1), RFC 5041 (8.2), RFC 5044 (8) and RFC 6581 (7).

/// The layer that detected the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// RDMAP, RFC 5040.
    Rdmap = 0,
    /// DDP, RFC 5041.
    Ddp = 1,
    /// The layer below, which is MPA, RFC 5044.
    Llp = 2,
}

/// A fault, as encoded in a Terminate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The layer that detected it.
    pub layer: Layer,
    /// The error type, as defined by the layer.
    pub kind: u8,
    /// The error code.
    pub code: u8,
}

macro_rules! violations {
    ($(#[doc = $text:literal] $name:ident = $layer:ident $kind:literal $code:literal;)*) => {
        impl Violation {
            $(#[doc = $text] pub const $name: Violation =
                Violation { layer: Layer::$layer, kind: $kind, code: $code };)*

            /// What it is, as a sentence; none of a code that is not among the constants.
            pub fn text(self) -> Option<&'static str> {
                match self {
                    $(Violation::$name => Some($text.trim_ascii()),)*
                    _ => None,
                }
            }
        }
    };
}

violations! {
    /// A local failure, not caused by the peer.
    LOCAL_CATASTROPHIC = Rdmap 0 0x00;
    /// A read with an invalid token.
    READ_TOKEN = Rdmap 1 0x00;
    /// A read beyond the bounds.
    READ_BOUNDS = Rdmap 1 0x01;
    /// A read without the right to read.
    READ_RIGHTS = Rdmap 1 0x02;
    /// A read with the token of another connection.
    READ_STREAM = Rdmap 1 0x03;
    /// A read that exceeds the address space.
    READ_WRAP = Rdmap 1 0x04;
    /// A token that a peer may not invalidate.
    CANNOT_INVALIDATE = Rdmap 1 0x09;
    /// Another version of RDMAP.
    RDMAP_VERSION = Rdmap 2 0x05;
    /// An opcode that is undefined, or not supported.
    OPCODE = Rdmap 2 0x06;
    /// More outstanding reads than agreed.
    TOO_MANY_READS = Rdmap 2 0x07;
    /// A token to be invalidated that is not in use.
    INVALIDATES_NOTHING = Rdmap 2 0x09;
    /// A local failure below RDMAP.
    DDP_CATASTROPHIC = Ddp 0 0x00;
    /// A write with an invalid token.
    WRITE_TOKEN = Ddp 1 0x00;
    /// A write beyond the bounds.
    WRITE_BOUNDS = Ddp 1 0x01;
    /// A write with the token of another connection.
    WRITE_STREAM = Ddp 1 0x02;
    /// A write that exceeds the address space.
    WRITE_WRAP = Ddp 1 0x03;
    /// Another version of DDP, in a tagged segment.
    TAGGED_VERSION = Ddp 1 0x04;
    /// An invalid queue number.
    QUEUE = Ddp 2 0x01;
    /// A message without a receive.
    NO_BUFFER = Ddp 2 0x02;
    /// A message number out of sequence.
    MESSAGE_NUMBER = Ddp 2 0x03;
    /// An offset that does not continue the message.
    MESSAGE_OFFSET = Ddp 2 0x04;
    /// A message longer than its receive.
    TOO_LONG = Ddp 2 0x05;
    /// Another version of DDP, in an untagged segment.
    UNTAGGED_VERSION = Ddp 2 0x06;
    /// A wrong CRC.
    CRC = Llp 0 0x02;
    /// A frame too short for its content.
    FRAME_LENGTH = Llp 0 0x03;
    /// An invalid start frame.
    START_FRAME = Llp 0 0x04;
    /// The peer accepts fewer outstanding reads than are needed.
    READ_LIMITS = Llp 0 0x06;
    /// No kind of first frame that both sides support.
    FIRST_FRAME = Llp 0 0x07;
}

impl std::fmt::Display for Violation {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let layer = match self.layer {
            Layer::Rdmap => "RDMAP",
            Layer::Ddp => "DDP",
            Layer::Llp => "MPA",
        };
        write!(out, "{layer}, type {}, code {:#04x}", self.kind, self.code)
    }
}
