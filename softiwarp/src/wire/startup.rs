//! MPA's start frames: the request and the reply that open a connection (RFC 5044, 7.1; RFC 6581).
//!
//! | bytes | |
//! |---|---|
//! | 16 | `MPA ID Req Frame` or `MPA ID Rep Frame` |
//! | 1 | 0x80 markers, 0x40 CRC, 0x20 refused, 0x10 enhanced; the rest is reserved |
//! | 1 | revision |
//! | 2 | length of what follows |
//! | 4 | if enhanced: two words, of two flags and a read limit each |
//! | n | private data |

/// Bytes before the enhanced data.
pub const FIXED_SIZE: usize = 20;
/// Bytes of the enhanced data.
pub const ENHANCED_SIZE: usize = 4;
/// The largest length behind the fixed part (RFC 5044).
pub const BODY_MAX: usize = 512;
/// The largest read limit that the field can hold.
pub const READS_MAX: u16 = 0x3fff;

const KEY_REQUEST: &[u8; 16] = b"MPA ID Req Frame";
const KEY_REPLY: &[u8; 16] = b"MPA ID Rep Frame";
const MARKERS: u8 = 0x80;
const CRC: u8 = 0x40;
const REFUSED: u8 = 0x20;
const ENHANCED: u8 = 0x10;
const UPPER: u16 = 0x8000;
const LOWER: u16 = 0x4000;

/// Request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartKind {
    /// From the connecting side, its first bytes.
    Request,
    /// From the accepting side.
    Reply,
}

/// The additions of RFC 6581: read limits, and the first frame of the connecting side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Enhanced {
    /// How many outstanding reads its sender accepts.
    pub inbound_reads: u16,
    /// How many outstanding reads its sender requests.
    pub outbound_reads: u16,
    /// Either side may send first; to allow that, the connecting side opens with an empty frame.
    pub peer_to_peer: bool,
    /// That frame may be a Send of no bytes.
    pub first_send: bool,
    /// That frame may be a Write of no bytes.
    pub first_write: bool,
    /// That frame may be a Read of no bytes.
    pub first_read: bool,
}

/// A start frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartFrame<'a> {
    /// Request or reply.
    pub kind: StartKind,
    /// Its sender requires markers in what it receives.
    pub markers: bool,
    /// Its sender requests CRCs.
    pub crc: bool,
    /// The connection is refused. In replies only; ignored in requests.
    pub refused: bool,
    /// 1, or 2 for RFC 6581.
    pub revision: u8,
    /// Read limits, of revision 2 only.
    pub enhanced: Option<Enhanced>,
    /// The private data.
    pub private_data: &'a [u8],
}

/// Why bytes are not a start frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// They do not start with the key.
    Key,
    /// An unknown revision.
    Revision,
    /// Too long, or too short for the enhanced data.
    Length,
}

impl std::fmt::Display for StartError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            StartError::Key => "not the start of an iWARP connection",
            StartError::Revision => "a revision of MPA that is not known",
            StartError::Length => "a start frame of an impossible length",
        })
    }
}

impl std::error::Error for StartError {}

/// The result of parsing the first bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// An incomplete start frame: this many bytes are needed.
    Incomplete(usize),
    /// A start frame, and its length. Bytes behind it are the first frame.
    Frame(StartFrame<'a>, usize),
}

impl StartFrame<'_> {
    /// Parses the start frame at the start of `bytes`. Fails at the first byte that cannot belong to one.
    ///
    /// # Errors
    /// Why the bytes cannot be a start frame.
    pub fn parse(bytes: &[u8], kind: StartKind) -> Result<Parsed<'_>, StartError> {
        let key = match kind {
            StartKind::Request => KEY_REQUEST,
            StartKind::Reply => KEY_REPLY,
        };
        if bytes.iter().zip(key).any(|(found, wanted)| found != wanted) {
            return Err(StartError::Key);
        }
        let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED_SIZE>() else {
            return Ok(Parsed::Incomplete(FIXED_SIZE));
        };
        let [flags, revision, high, low] = [fixed[16], fixed[17], fixed[18], fixed[19]];
        let length = usize::from(u16::from_be_bytes([high, low]));
        if !(1..=2).contains(&revision) {
            return Err(StartError::Revision);
        }
        let enhanced = revision == 2 && flags & ENHANCED != 0;
        if length > BODY_MAX || enhanced && length < ENHANCED_SIZE {
            return Err(StartError::Length);
        }
        let Some(body) = rest.get(..length) else { return Ok(Parsed::Incomplete(FIXED_SIZE + length)) };
        let (enhanced, private_data) = match body.split_first_chunk::<ENHANCED_SIZE>() {
            Some((words, rest)) if enhanced => (Some(Enhanced::parse(*words)), rest),
            _ => (None, body),
        };
        let frame = StartFrame {
            kind,
            markers: flags & MARKERS != 0,
            crc: flags & CRC != 0,
            refused: kind == StartKind::Reply && flags & REFUSED != 0,
            revision,
            enhanced,
            private_data,
        };
        Ok(Parsed::Frame(frame, FIXED_SIZE + length))
    }

    /// Appends the frame.
    ///
    /// # Errors
    /// [`StartError::Length`] for more private data than fits.
    pub fn put(&self, out: &mut Vec<u8>) -> Result<(), StartError> {
        let length = self.private_data.len() + if self.enhanced.is_some() { ENHANCED_SIZE } else { 0 };
        if length > BODY_MAX {
            return Err(StartError::Length);
        }
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = flag(self.markers, MARKERS)
            | flag(self.crc, CRC)
            | flag(self.refused && self.kind == StartKind::Reply, REFUSED)
            | flag(self.enhanced.is_some(), ENHANCED);
        out.extend(match self.kind {
            StartKind::Request => KEY_REQUEST,
            StartKind::Reply => KEY_REPLY,
        });
        out.extend([flags, self.revision]);
        out.extend((length as u16).to_be_bytes());
        if let Some(enhanced) = &self.enhanced {
            out.extend(enhanced.bytes());
        }
        out.extend_from_slice(self.private_data);
        Ok(())
    }
}

impl Enhanced {
    fn parse([a, b, c, d]: [u8; ENHANCED_SIZE]) -> Enhanced {
        let (inbound, outbound) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        Enhanced {
            inbound_reads: inbound & READS_MAX,
            outbound_reads: outbound & READS_MAX,
            peer_to_peer: inbound & UPPER != 0,
            first_send: inbound & LOWER != 0,
            first_write: outbound & UPPER != 0,
            first_read: outbound & LOWER != 0,
        }
    }

    fn bytes(&self) -> [u8; ENHANCED_SIZE] {
        let flag = |set: bool, flag: u16| if set { flag } else { 0 };
        let inbound =
            self.inbound_reads.min(READS_MAX) | flag(self.peer_to_peer, UPPER) | flag(self.first_send, LOWER);
        let outbound =
            self.outbound_reads.min(READS_MAX) | flag(self.first_write, UPPER) | flag(self.first_read, LOWER);
        let ([a, b], [c, d]) = (inbound.to_be_bytes(), outbound.to_be_bytes());
        [a, b, c, d]
    }
}
