//! Reads the peer's frames from the stream, and has them dealt with one after the other.

use super::receiver::{Found, Frame, Unread};
use super::stream::Stream;
use super::{Cause, Phase, QueuePair};
use crate::wire::{Terminate, Violation, terminate};

/// How often one call of [`QueuePair::receive`] reads from the stream at most, so that other connections get their turn.
const READS_PER_CALL: usize = 32;
/// How often a lost connection is read at most: for more than TCP usually holds, but not for ever, as a peer may go on sending if it is
/// this side's own memory that is gone.
const READS_AT_END: usize = 1024;

impl QueuePair {
    /// Reads what there is to read, up to a limit; says whether there was something. What it leads to is to be sent by
    /// [`transmit`](Self::transmit).
    pub fn receive(&mut self, stream: &mut impl Stream) -> bool {
        let mut any = false;
        if self.phase != Phase::Running {
            return any;
        }
        if self.is_waiting() && !self.may_go_on() {
            return any;
        }
        self.receiver.begin();
        if self.is_waiting() {
            self.digest();
            // Also if the next message waits: what is between them may have to be answered.
            any = true;
        }
        for _ in 0..READS_PER_CALL {
            if self.phase != Phase::Running || self.is_waiting() {
                break;
            }
            match self.receiver.read(stream) {
                Ok(drained) => {
                    any = true;
                    self.digest();
                    if drained {
                        break;
                    }
                }
                Err(Unread::Nothing) => break,
                Err(why) => {
                    any = true;
                    match why {
                        Unread::Closed => self.lose(Cause::Closed),
                        Unread::Gone(frame) => self.end_by_frame(frame, frame.gone()),
                        Unread::Lost | Unread::Nothing => self.lose(Cause::Lost),
                    }
                }
            }
        }
        self.receiver.finish();
        any
    }

    /// Takes what has arrived on a connection that is lost: messages, or why the peer has ended it.
    pub(super) fn receive_rest(&mut self, stream: &mut impl Stream) {
        self.receiver.begin();
        if self.is_waiting() && self.may_go_on() {
            self.digest();
        }
        for _ in 0..READS_AT_END {
            if self.phase != Phase::Running || self.is_waiting() || self.receiver.read(stream).is_err() {
                break;
            }
            self.digest();
        }
        self.receiver.finish();
    }

    /// Deals with all frames that were read.
    fn digest(&mut self) {
        while self.phase == Phase::Running {
            let found = match self.not_ready.frame() {
                Some(frame) => Ok(Found::Header(frame)),
                None => self.receiver.next(),
            };
            let (frame, dealt) = match found {
                Ok(Found::Nothing) => return,
                Ok(Found::Header(frame)) => (frame, self.begin_frame(frame)),
                Ok(Found::End(frame)) => {
                    self.held = false;
                    (frame, self.end_frame(frame))
                }
                Ok(Found::Gone(frame)) => (frame, Err(frame.gone())),
                Err(violation) => {
                    self.end_by_header(violation);
                    return;
                }
            };
            if let Err(violation) = dealt {
                if violation == Violation::NO_BUFFER && self.waits(frame) {
                    return;
                }
                self.end_by_frame(frame, violation);
            }
        }
    }

    /// Ends the connection because of a frame that has a proper header.
    fn end_by_frame(&mut self, frame: Frame, violation: Violation) {
        let shown = Some((frame.header, frame.ulpdu as u16));
        // Its memory for the payload is this side's own affair.
        let is_own = violation == Violation::DDP_CATASTROPHIC;
        let cause = if is_own { Cause::Local } else { Cause::Peer(violation) };
        self.end(cause, Some(Terminate { violation, cause: shown }));
    }

    /// Ends the connection because of a header that is none. Of DDP's fields the Terminate shows the header, as RFC 5040 has it; a version
    /// or an operation that is not known says nothing of what comes behind it.
    fn end_by_header(&mut self, violation: Violation) {
        let mut last = Vec::new();
        let shows =
            [Violation::QUEUE, Violation::MESSAGE_NUMBER, Violation::MESSAGE_OFFSET, Violation::TOO_LONG]
                .contains(&violation);
        match self.receiver.faulty().filter(|_| shows) {
            Some((header, length)) => terminate::put_quoting(violation, header, length, &mut last),
            None => Terminate { violation, cause: None }.put(&mut last),
        }
        self.end_saying(Cause::Peer(violation), Some(&last));
    }
}
