//! Terminate messages: the last message of a side that has detected a fault.
//!
//! RFC 5040, 4.8. Linux's siw swaps the halves of the first byte and the bits of the third. Both forms are parsed; the RFC's
//! is sent.

use super::crc::Crc;
use super::fpdu;
use super::rdmap::{HEADER_MAX, Header, UNTAGGED_SIZE};
use super::violation::{Layer, Violation};

/// Bytes of the control word of a Terminate.
pub const CONTROL_SIZE: usize = 4;
/// The longest payload: control word, length, and the header of a read request.
pub const PAYLOAD_MAX: usize = CONTROL_SIZE + 2 + HEADER_MAX;

/// The content of a Terminate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminate {
    /// The fault.
    pub violation: Violation,
    /// The header of the faulty segment, and the length of that segment.
    pub cause: Option<(Header, u16)>,
}

/// Appends the payload of the message for a segment of `length` bytes whose header, `header`, is itself the fault.
pub fn put_quoting(violation: Violation, header: &[u8], length: u16, out: &mut Vec<u8>) {
    let Violation { layer, kind, code } = violation;
    out.extend([((layer as u8) << 4) | (kind & 0xf), code, 0xc0, 0]);
    out.extend(length.to_be_bytes());
    out.extend_from_slice(header);
}

/// Appends the frame of a Terminate with this payload.
pub fn put_frame(payload: &[u8], crc: bool, out: &mut Vec<u8>) {
    let begin = out.len();
    let ulpdu = Header::Terminate.size() + payload.len();
    out.extend((ulpdu as u16).to_be_bytes());
    Header::Terminate.put(out);
    out.extend_from_slice(payload);
    out.resize(out.len() + fpdu::pad(ulpdu), 0);
    let crc = if crc { Crc::default().update(&out[begin..]).bytes() } else { [0; fpdu::CRC_SIZE] };
    out.extend(crc);
}

impl Terminate {
    /// Appends the payload of the message.
    pub fn put(&self, out: &mut Vec<u8>) {
        let Violation { layer, kind, code } = self.violation;
        // Faults of MPA have no header.
        let cause = self.cause.filter(|_| layer != Layer::Llp);
        let shows_read = layer == Layer::Rdmap && matches!(cause, Some((Header::ReadRequest { .. }, _)));
        let shown = match cause {
            None => 0,
            Some(_) if shows_read => 0xe0,
            Some(_) => 0xc0,
        };
        out.extend([((layer as u8) << 4) | (kind & 0xf), code, shown, 0]);
        if let Some((header, length)) = cause {
            out.extend(length.to_be_bytes());
            let begin = out.len();
            header.put(out);
            if !shows_read && matches!(header, Header::ReadRequest { .. }) {
                // DDP knows of its own header only.
                out.truncate(begin + UNTAGGED_SIZE);
            }
        }
    }

    /// Appends the whole frame.
    pub fn put_frame(&self, crc: bool, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        self.put(&mut payload);
        put_frame(&payload, crc, out);
    }

    /// Parses the payload of a Terminate. `None` if it is too short, or the layer is unknown.
    pub fn parse(payload: &[u8]) -> Option<Terminate> {
        let (&[first, code, shown, _], rest) = payload.split_first_chunk::<CONTROL_SIZE>()?;
        // Without a header: siw's faults of MPA, or RDMAP's version and opcode as in the RFC.
        let swapped = shown & 0x07 != 0 || (shown & 0xe0 == 0 && first == 0x02 && !matches!(code, 5 | 6));
        let (layer, kind) = if swapped { (first & 0xf, first >> 4) } else { (first >> 4, first & 0xf) };
        let layer = match layer {
            0 => Layer::Rdmap,
            1 => Layer::Ddp,
            2 => Layer::Llp,
            _ => return None,
        };
        let shows_header = shown & if swapped { 0x02 } else { 0x40 } != 0;
        let cause = rest
            .split_first_chunk::<2>()
            .filter(|_| shows_header)
            .and_then(|(length, header)| Some((Header::parse_quoted(header)?, u16::from_be_bytes(*length))));
        Some(Terminate { violation: Violation { layer, kind, code }, cause })
    }
}
