//! The negotiation before the first frame: CRC, read limits, which side sends first (RFC 5044, 7.1; RFC 6581).

use crate::queue_pair::{Agreement, Opening};
use crate::wire::startup::READS_MAX;
use crate::wire::{Enhanced, Header, ReadRequest, SendKind, StartError, StartFrame, StartKind, Violation};

/// The longest private data that is sent: with the enhanced data before it, siw takes 256 bytes.
pub const PRIVATE_DATA_MAX: usize = 252;

/// The parameters that one side proposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// How many outstanding reads of the peer it accepts. A power of two, since siw rounds the number up.
    pub inbound_reads: u16,
    /// How many outstanding reads it requests.
    pub outbound_reads: u16,
    /// It requests CRCs. If either side does, both send them.
    pub crc: bool,
    /// Set by the connecting side if the accepting side may send first.
    pub peer_to_peer: bool,
}

/// A received connection request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The private data.
    pub private_data: Vec<u8>,
    /// The peer's read limits, if it sent any.
    pub enhanced: Option<Enhanced>,
    crc: bool,
    markers: bool,
    revision: u8,
}

/// The content of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Accepted, with this agreement and private data.
    Agreed(Agreement, Vec<u8>),
    /// Refused, with this private data.
    Refused(Vec<u8>),
}

/// Builds a request.
///
/// # Errors
/// [`StartError::Length`] for more private data than [`PRIVATE_DATA_MAX`].
pub fn request(offer: &Offer, private_data: &[u8]) -> Result<Vec<u8>, StartError> {
    let enhanced = Enhanced {
        inbound_reads: offer.inbound_reads.min(READS_MAX),
        outbound_reads: offer.outbound_reads.min(READS_MAX),
        peer_to_peer: offer.peer_to_peer,
        first_send: false,
        first_write: offer.peer_to_peer,
        first_read: offer.peer_to_peer,
    };
    put(&StartFrame {
        kind: StartKind::Request,
        markers: false,
        crc: offer.crc,
        refused: false,
        revision: 2,
        enhanced: Some(enhanced),
        private_data,
    })
}

fn put(frame: &StartFrame<'_>) -> Result<Vec<u8>, StartError> {
    if frame.private_data.len() > PRIVATE_DATA_MAX {
        return Err(StartError::Length);
    }
    let mut out = Vec::new();
    frame.put(&mut out)?;
    Ok(out)
}

/// Concludes the negotiation: what the reply to a request with this offer agrees to.
///
/// # Errors
/// How the reply violates the protocol.
pub fn negotiate(offer: &Offer, reply: &StartFrame<'_>) -> Result<Answer, Violation> {
    let said = reply.private_data.to_vec();
    if reply.refused {
        return Ok(Answer::Refused(said));
    }
    if reply.markers {
        return Err(Violation::START_FRAME);
    }
    let mut agreement = Agreement {
        crc: offer.crc || reply.crc,
        inbound_reads: offer.inbound_reads.into(),
        outbound_reads: offer.outbound_reads.into(),
        opening: Opening::Free,
    };
    if let Some(enhanced) = reply.enhanced {
        if enhanced.outbound_reads > offer.inbound_reads {
            return Err(Violation::READ_LIMITS);
        }
        agreement.outbound_reads = offer.outbound_reads.min(enhanced.inbound_reads).into();
        if offer.peer_to_peer && enhanced.peer_to_peer {
            agreement.opening = Opening::Sends(first_frame(&enhanced).ok_or(Violation::FIRST_FRAME)?);
        }
    }
    Ok(Answer::Agreed(agreement, said))
}

/// The empty frame that the peer asks for.
fn first_frame(enhanced: &Enhanced) -> Option<Header> {
    if enhanced.first_write {
        Some(Header::Write { token: 1, offset: 0, last: true })
    } else if enhanced.first_read {
        let request = ReadRequest { sink: (1, 0), length: 0, source: (1, 0) };
        Some(Header::ReadRequest { number: 1, request })
    } else if enhanced.first_send {
        Some(Header::Send { kind: SendKind::default(), number: 1, offset: 0, last: true })
    } else {
        None
    }
}

impl Asked {
    /// Stores the content of a request.
    pub fn new(request: &StartFrame<'_>) -> Asked {
        Asked {
            private_data: request.private_data.to_vec(),
            enhanced: request.enhanced,
            crc: request.crc,
            markers: request.markers,
            revision: request.revision,
        }
    }

    /// Whether it can be accepted: not if the peer requires markers, which are not implemented.
    pub fn can_be_accepted(&self) -> bool {
        !self.markers
    }

    /// Builds the reply that accepts it; also returns the agreement.
    ///
    /// # Errors
    /// [`StartError::Length`] for more private data than [`PRIVATE_DATA_MAX`].
    pub fn accept(&self, offer: &Offer, private_data: &[u8]) -> Result<(Vec<u8>, Agreement), StartError> {
        let crc = self.crc || offer.crc;
        let mut agreement = Agreement {
            crc,
            inbound_reads: offer.inbound_reads.into(),
            outbound_reads: offer.outbound_reads.into(),
            opening: Opening::Awaits,
        };
        let enhanced = self.enhanced.map(|asked| {
            let outbound_reads = offer.outbound_reads.min(asked.inbound_reads);
            agreement.outbound_reads = outbound_reads.into();
            let mut enhanced = Enhanced {
                inbound_reads: offer.inbound_reads.min(READS_MAX),
                outbound_reads,
                ..Enhanced::default()
            };
            if asked.peer_to_peer {
                agreement.opening = Opening::AwaitsEmpty;
                enhanced.peer_to_peer = true;
                enhanced.first_read = !asked.first_write && asked.first_read;
                enhanced.first_send = !asked.first_write && !asked.first_read && asked.first_send;
                enhanced.first_write = !enhanced.first_read && !enhanced.first_send;
            }
            enhanced
        });
        self.reply(crc, false, enhanced, private_data).map(|bytes| (bytes, agreement))
    }

    /// Builds the reply that refuses it.
    ///
    /// # Errors
    /// [`StartError::Length`] for more private data than [`PRIVATE_DATA_MAX`].
    pub fn refuse(&self, private_data: &[u8]) -> Result<Vec<u8>, StartError> {
        // siw cuts four bytes off private data without enhanced data before it.
        let enhanced = self.enhanced.map(|asked| Enhanced {
            inbound_reads: asked.outbound_reads,
            outbound_reads: asked.inbound_reads,
            ..Enhanced::default()
        });
        self.reply(self.crc, true, enhanced, private_data)
    }

    fn reply(
        &self,
        crc: bool,
        refused: bool,
        enhanced: Option<Enhanced>,
        private_data: &[u8],
    ) -> Result<Vec<u8>, StartError> {
        let (kind, revision) = (StartKind::Reply, self.revision);
        put(&StartFrame { kind, markers: false, crc, refused, revision, enhanced, private_data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::startup::Parsed;

    const OFFER: Offer = Offer { inbound_reads: 8, outbound_reads: 4, crc: false, peer_to_peer: true };

    fn parse(bytes: &[u8], kind: StartKind) -> StartFrame<'_> {
        match StartFrame::parse(bytes, kind) {
            Ok(Parsed::Frame(frame, size)) if size == bytes.len() => frame,
            other => panic!("{other:?}"),
        }
    }

    fn agree(connects: &Offer, accepts: &Offer) -> (Agreement, Agreement) {
        let request = request(connects, b"hello").unwrap();
        let asked = Asked::new(&parse(&request, StartKind::Request));
        assert_eq!(asked.private_data, b"hello");
        let (reply, theirs) = asked.accept(accepts, b"come in").unwrap();
        match negotiate(connects, &parse(&reply, StartKind::Reply)) {
            Ok(Answer::Agreed(ours, said)) => {
                assert_eq!(said, b"come in");
                (ours, theirs)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn read_limits_are_the_lower_of_both() {
        let (ours, theirs) = agree(&OFFER, &Offer { inbound_reads: 2, outbound_reads: 100, ..OFFER });
        assert_eq!((ours.outbound_reads, theirs.outbound_reads), (2, 8));
        assert_eq!((ours.inbound_reads, theirs.inbound_reads), (8, 2));
    }

    #[test]
    fn crcs_are_sent_if_either_side_wants_them() {
        for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
            let (ours, theirs) = agree(&Offer { crc: a, ..OFFER }, &Offer { crc: b, ..OFFER });
            assert_eq!((ours.crc, theirs.crc), (a || b, a || b));
        }
    }

    #[test]
    fn who_connects_begins() {
        let (ours, theirs) = agree(&OFFER, &OFFER);
        let begin = Header::Write { token: 1, offset: 0, last: true };
        assert_eq!((ours.opening, theirs.opening), (Opening::Sends(begin), Opening::AwaitsEmpty));
        let (ours, theirs) = agree(&Offer { peer_to_peer: false, ..OFFER }, &OFFER);
        assert_eq!((ours.opening, theirs.opening), (Opening::Free, Opening::Awaits));
    }

    #[test]
    fn replies_that_cannot_be() {
        let request = request(&OFFER, b"").unwrap();
        let asked = Asked::new(&parse(&request, StartKind::Request));
        let (reply, _) = asked.accept(&Offer { outbound_reads: 100, ..OFFER }, b"").unwrap();
        let reply = parse(&reply, StartKind::Reply);
        let with = |change: fn(&mut StartFrame<'_>)| {
            let mut reply = reply;
            change(&mut reply);
            negotiate(&OFFER, &reply)
        };
        assert_eq!(with(|reply| reply.markers = true), Err(Violation::START_FRAME));
        assert_eq!(
            with(|reply| reply.enhanced = reply.enhanced.map(|e| Enhanced { outbound_reads: 9, ..e })),
            Err(Violation::READ_LIMITS)
        );
        assert_eq!(
            with(|reply| reply.enhanced = reply.enhanced.map(|e| Enhanced { first_write: false, ..e })),
            Err(Violation::FIRST_FRAME)
        );
        let refused = asked.refuse(b"no").unwrap();
        assert_eq!(
            negotiate(&OFFER, &parse(&refused, StartKind::Reply)),
            Ok(Answer::Refused(b"no".to_vec()))
        );
        assert_eq!(asked.refuse(&[0; 253]), Err(StartError::Length));
    }

    #[test]
    fn a_peer_of_revision_1_is_accepted_and_markers_are_not() {
        let plain = StartFrame {
            kind: StartKind::Request,
            markers: false,
            crc: true,
            refused: false,
            revision: 1,
            enhanced: None,
            private_data: b"old",
        };
        let (reply, agreement) = Asked::new(&plain).accept(&OFFER, b"").unwrap();
        let reply = parse(&reply, StartKind::Reply);
        assert_eq!((reply.revision, reply.enhanced, reply.crc), (1, None, true));
        assert_eq!((agreement.opening, agreement.crc), (Opening::Awaits, true));
        assert!(!Asked::new(&StartFrame { markers: true, ..plain }).can_be_accepted());
    }
}
