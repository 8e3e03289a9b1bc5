//! The headers of RDMAP's messages and of DDP's segments, which share their control word.
//!
//! | byte | |
//! |---|---|
//! | 0 | T 0x80 tagged, L 0x40 last, 0x3c reserved, DDP's version in 0x03 |
//! | 1 | RDMAP's version in 0xc0, 0x30 reserved, opcode in 0x0f |
//!
//! then tagged: token (4), tagged offset (8); untagged: a word for the layer above (4), queue number (4), message
//! number (4), message offset (4); a read request has 28 bytes more. Reserved bits are sent as 0 and not looked at.

use super::violation::Violation;

/// Bytes of the control word.
pub const CONTROL_SIZE: usize = 2;
/// Bytes of the header of a tagged segment.
pub const TAGGED_SIZE: usize = 14;
/// Bytes of the header of an untagged segment.
pub const UNTAGGED_SIZE: usize = 18;
/// Bytes of the header of a read request, the longest there is.
pub const HEADER_MAX: usize = UNTAGGED_SIZE + 28;

const TAGGED: u8 = 0x80;
const LAST: u8 = 0x40;
const DDP_VERSION: u8 = 0x03;
const RDMAP_VERSION: u8 = 0xc0;

const WRITE: u8 = 0;
const READ_REQUEST: u8 = 1;
const READ_RESPONSE: u8 = 2;
const SEND: u8 = 3;
const SEND_INVALIDATE: u8 = 4;
const SEND_SOLICITED: u8 = 5;
const SEND_SOLICITED_INVALIDATE: u8 = 6;
const TERMINATE: u8 = 7;

const SEND_QUEUE: u32 = 0;
const READ_QUEUE: u32 = 1;
const TERMINATE_QUEUE: u32 = 2;

/// The kinds of Send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendKind {
    /// Solicited: an event at the receiver.
    pub solicited: bool,
    /// The token that the receiver shall invalidate.
    pub invalidate: Option<u32>,
}

/// The parameters of a read request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRequest {
    /// Token and offset of the sink, which the response carries.
    pub sink: (u32, u64),
    /// Bytes.
    pub length: u32,
    /// Token and offset of the memory to read.
    pub source: (u32, u64),
}

/// The header of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// A part of an RDMA Write.
    Write {
        /// The token of the memory to write.
        token: u32,
        /// The offset of this part.
        offset: u64,
        /// It is the last part of the message.
        last: bool,
    },
    /// A part of a read response.
    ReadResponse {
        /// The sink token of the request.
        token: u32,
        /// The sink offset of the request, plus the length of the parts before.
        offset: u64,
        /// It is the last part of the message.
        last: bool,
    },
    /// A read request.
    ReadRequest {
        /// Counts the read requests from 1 on.
        number: u32,
        /// Its parameters.
        request: ReadRequest,
    },
    /// A part of a message.
    Send {
        /// Which kind of Send.
        kind: SendKind,
        /// Counts the messages from 1 on.
        number: u32,
        /// The length of the parts before.
        offset: u32,
        /// It is the last part of the message.
        last: bool,
    },
    /// The sender has detected a fault and ends the connection.
    Terminate,
}

/// The result of parsing the start of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The header is incomplete: this many bytes of the segment are needed.
    Incomplete(usize),
    /// The header, and its length.
    Header(Header, usize),
}

/// The length of DDP's header, by its first byte.
pub fn ddp_size(control: u8) -> usize {
    if control & TAGGED != 0 { TAGGED_SIZE } else { UNTAGGED_SIZE }
}

/// The four bytes at `at`; zero if they are missing.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_be_bytes(*word))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |long| u64::from_be_bytes(*long))
}

impl Header {
    /// Parses the header of a segment of `ulpdu` bytes, which starts with `bytes`.
    ///
    /// # Errors
    /// The fault, as soon as the bytes cannot be a header.
    pub fn parse(bytes: &[u8], ulpdu: usize) -> Result<Parsed, Violation> {
        let Some(&[control, code]) = bytes.first_chunk::<CONTROL_SIZE>() else {
            return if ulpdu < CONTROL_SIZE {
                Err(Violation::FRAME_LENGTH)
            } else {
                Ok(Parsed::Incomplete(CONTROL_SIZE))
            };
        };
        let tagged = control & TAGGED != 0;
        if control & DDP_VERSION != 1 {
            return Err(if tagged { Violation::TAGGED_VERSION } else { Violation::UNTAGGED_VERSION });
        }
        if code & RDMAP_VERSION != 0x40 {
            return Err(Violation::RDMAP_VERSION);
        }
        let opcode = code & 0x0f;
        if opcode > TERMINATE || tagged != matches!(opcode, WRITE | READ_RESPONSE) {
            return Err(Violation::OPCODE);
        }
        let size = match opcode {
            WRITE | READ_RESPONSE => TAGGED_SIZE,
            READ_REQUEST => HEADER_MAX,
            _ => UNTAGGED_SIZE,
        };
        if ulpdu < size {
            return Err(Violation::FRAME_LENGTH);
        }
        if bytes.len() < size {
            return Ok(Parsed::Incomplete(size));
        }
        Header::checked(opcode, control & LAST != 0, bytes, ulpdu).map(|header| Parsed::Header(header, size))
    }

    /// Parses a header of the length that its opcode needs.
    fn checked(opcode: u8, last: bool, bytes: &[u8], ulpdu: usize) -> Result<Header, Violation> {
        let on_queue = |queue| if word(bytes, 6) == queue { Ok(()) } else { Err(Violation::QUEUE) };
        let single = || match (word(bytes, 14), last) {
            (0, true) => Ok(()),
            _ => Err(Violation::MESSAGE_OFFSET),
        };
        let (token, offset) = (word(bytes, 2), long(bytes, 6));
        let (number, message_offset) = (word(bytes, 10), word(bytes, 14));
        match opcode {
            WRITE => Ok(Header::Write { token, offset, last }),
            READ_RESPONSE => Ok(Header::ReadResponse { token, offset, last }),
            READ_REQUEST => {
                on_queue(READ_QUEUE)?;
                single()?;
                if ulpdu != HEADER_MAX {
                    return Err(Violation::TOO_LONG);
                }
                let request = ReadRequest {
                    sink: (word(bytes, 18), long(bytes, 22)),
                    length: word(bytes, 30),
                    source: (word(bytes, 34), long(bytes, 38)),
                };
                Ok(Header::ReadRequest { number, request })
            }
            TERMINATE => {
                on_queue(TERMINATE_QUEUE)?;
                single()?;
                match number {
                    1 => Ok(Header::Terminate),
                    _ => Err(Violation::MESSAGE_NUMBER),
                }
            }
            _ => {
                on_queue(SEND_QUEUE)?;
                let kind = SendKind {
                    solicited: matches!(opcode, SEND_SOLICITED | SEND_SOLICITED_INVALIDATE),
                    invalidate: matches!(opcode, SEND_INVALIDATE | SEND_SOLICITED_INVALIDATE)
                        .then_some(token),
                };
                Ok(Header::Send { kind, number, offset: message_offset, last })
            }
        }
    }

    /// Parses the header inside a Terminate. Its fields may be the faulty ones, so little is checked. The message number may
    /// have any value, as siw puts a length there.
    pub(super) fn parse_quoted(bytes: &[u8]) -> Option<Header> {
        let &[control, code] = bytes.first_chunk::<CONTROL_SIZE>()?;
        let ulpdu = if code & 0x0f == READ_REQUEST { HEADER_MAX } else { super::fpdu::MAX_ULPDU };
        match Header::parse(bytes, ulpdu) {
            Ok(Parsed::Header(header, _)) if control & 0x3c == 0 => Some(header),
            _ => None,
        }
    }

    /// The length of the header.
    pub fn size(&self) -> usize {
        match self {
            Header::Write { .. } | Header::ReadResponse { .. } => TAGGED_SIZE,
            Header::ReadRequest { .. } => HEADER_MAX,
            Header::Send { .. } | Header::Terminate => UNTAGGED_SIZE,
        }
    }

    /// Appends the header.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; HEADER_MAX];
        let (opcode, last) = match *self {
            Header::Write { token, offset, last } => (WRITE, tagged(&mut bytes, token, offset, last)),
            Header::ReadResponse { token, offset, last } => {
                (READ_RESPONSE, tagged(&mut bytes, token, offset, last))
            }
            Header::ReadRequest { number, request } => {
                untagged(&mut bytes, 0, READ_QUEUE, number, 0);
                bytes[18..22].copy_from_slice(&request.sink.0.to_be_bytes());
                bytes[22..30].copy_from_slice(&request.sink.1.to_be_bytes());
                bytes[30..34].copy_from_slice(&request.length.to_be_bytes());
                bytes[34..38].copy_from_slice(&request.source.0.to_be_bytes());
                bytes[38..46].copy_from_slice(&request.source.1.to_be_bytes());
                (READ_REQUEST, true)
            }
            Header::Send { kind, number, offset, last } => {
                untagged(&mut bytes, kind.invalidate.unwrap_or(0), SEND_QUEUE, number, offset);
                let opcode = match (kind.solicited, kind.invalidate.is_some()) {
                    (false, false) => SEND,
                    (false, true) => SEND_INVALIDATE,
                    (true, false) => SEND_SOLICITED,
                    (true, true) => SEND_SOLICITED_INVALIDATE,
                };
                (opcode, last)
            }
            Header::Terminate => {
                untagged(&mut bytes, 0, TERMINATE_QUEUE, 1, 0);
                (TERMINATE, true)
            }
        };
        let kind = if matches!(opcode, WRITE | READ_RESPONSE) { TAGGED } else { 0 };
        bytes[0] = kind | if last { LAST } else { 0 } | 1;
        bytes[1] = 0x40 | opcode;
        out.extend_from_slice(&bytes[..self.size()]);
    }
}

fn tagged(bytes: &mut [u8; HEADER_MAX], token: u32, offset: u64, last: bool) -> bool {
    bytes[2..6].copy_from_slice(&token.to_be_bytes());
    bytes[6..14].copy_from_slice(&offset.to_be_bytes());
    last
}

fn untagged(bytes: &mut [u8; HEADER_MAX], above: u32, queue: u32, number: u32, offset: u32) {
    bytes[2..6].copy_from_slice(&above.to_be_bytes());
    bytes[6..10].copy_from_slice(&queue.to_be_bytes());
    bytes[10..14].copy_from_slice(&number.to_be_bytes());
    bytes[14..18].copy_from_slice(&offset.to_be_bytes());
}
