//! A message that meets no receive and waits for one, as over RoCE: an option, and what a program is given that connects and says itself
//! when it is ready. Nothing behind it is read meanwhile, so that TCP holds the peer back. Over iWARP, such a message ends the connection.

use std::sync::Weak;
use std::time::{Duration, Instant};

use super::receiver::Frame;
use super::turns::{self, Waiter};
use super::{Cause, Phase, QueuePair};
use crate::completion::Status;
use crate::wire::{Header, Terminate, Violation};

/// The longest time that a message waits.
const LIMIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a message waits for a program that has connected, and is not ready yet.
const CONNECTING_MAX: Duration = Duration::from_secs(60);

/// How long messages wait from when such a program is ready.
const READY_MAX: Duration = Duration::from_secs(1);

/// The message that waits, and for how long.
#[derive(Default)]
pub(super) struct ReceiverNotReady {
    /// How long a message waits; `None` for not at all.
    limit: Option<Duration>,
    program: Program,
    /// Is woken when there is a receive.
    waiter: Option<Weak<dyn Waiter>>,
    waiting: Option<Waiting>,
}

/// What the program has said of itself.
#[derive(Default)]
enum Program {
    #[default]
    Nothing,
    /// It is going to say when it is ready.
    Connecting,
    /// It is ready; messages wait a little longer.
    Ready { until: Instant },
}

struct Waiting {
    /// The first frame of the message. Its header has been read.
    frame: Frame,
    until: Instant,
    /// The waiter has been woken.
    woken: bool,
}

impl ReceiverNotReady {
    /// The frame whose message waits.
    pub(super) fn frame(&self) -> Option<Frame> {
        self.waiting.as_ref().map(|waiting| waiting.frame)
    }

    /// A receive was posted.
    #[inline]
    pub(super) fn wake(&mut self) {
        if let Some(waiting) = self.waiting.as_mut().filter(|waiting| !waiting.woken) {
            waiting.woken = true;
            turns::wake(self.waiter.as_ref());
        }
    }

    /// Until when a message waits that meets no receive now.
    fn until(&self) -> Option<Instant> {
        let now = Instant::now();
        let program = match self.program {
            Program::Nothing => None,
            Program::Connecting => Some(now + CONNECTING_MAX),
            Program::Ready { until } => Some(until).filter(|until| *until > now),
        };
        self.limit.map(|limit| now + limit).max(program)
    }

    /// The message has met its receive.
    pub(super) fn ends(&mut self) {
        self.waiting = None;
    }
}

impl QueuePair {
    /// From now on, a message that meets no receive waits for one up to `limit`. After that it ends the connection. Of a peer that has
    /// ended the connection so, the oldest Send that is outstanding completes with
    /// [`Status::ReceiverNotReady`].
    pub fn wait_for_receives(&mut self, limit: Duration) {
        // Longer ones could not be added to a time.
        self.not_ready.limit = Some(limit.min(LIMIT_MAX));
    }

    /// For a queue pair that is going to connect: until [`set_ready`](Self::set_ready), a message that meets no receive waits for one up to
    /// a minute. On the accepting side it has no effect.
    pub fn wait_until_ready(&mut self) {
        if self.phase == Phase::Idle {
            self.not_ready.program = Program::Connecting;
        }
    }

    /// The program that connects is ready. For a second more, messages wait, as they may have come earlier than the peer should have been
    /// able to send them; one that waits already does so unless messages [wait](Self::wait_for_receives) anyway. Returns that time if
    /// there is one.
    pub fn set_ready(&mut self) -> Option<Duration> {
        if !matches!(self.not_ready.program, Program::Connecting) {
            return None;
        }
        let until = Instant::now() + READY_MAX;
        self.not_ready.program = Program::Ready { until };
        let waiting = self.not_ready.waiting.as_mut().filter(|_| self.not_ready.limit.is_none())?;
        waiting.until = until;
        Some(READY_MAX)
    }

    /// It has turned out to be the accepting side.
    pub(super) fn accepts(&mut self) {
        self.not_ready.program = Program::Nothing;
    }

    /// Whether messages wait for receives, at any time.
    pub(crate) fn waits_for_receives(&self) -> bool {
        self.not_ready.limit.is_some()
    }

    /// Who is woken when a message waits and a receive is there.
    pub(crate) fn set_waiter(&mut self, waiter: Weak<dyn Waiter>) {
        self.not_ready.waiter = Some(waiter);
    }

    /// Until when the peer's message waits for its receive, if one does. Nothing is read from the stream meanwhile.
    pub fn waits_until(&self) -> Option<Instant> {
        self.not_ready.waiting.as_ref().map(|waiting| waiting.until)
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.not_ready.waiting.is_some()
    }

    /// Whether the receive is there.
    pub(super) fn may_go_on(&self) -> bool {
        self.receives.is_ready()
    }

    /// The message that begins with this frame has met no receive. Returns whether it waits for one.
    pub(super) fn waits(&mut self, frame: Frame) -> bool {
        if let Some(waiting) = &mut self.not_ready.waiting {
            // Woken, but the receive was another one's.
            waiting.woken = false;
        } else {
            let Some(until) = self.not_ready.until() else { return false };
            self.not_ready.waiting = Some(Waiting { frame, until, woken: false });
        }
        if let Some(waiter) = &self.not_ready.waiter {
            self.receives.wait(waiter);
        }
        // The peer has sent its first frame.
        self.held = false;
        true
    }

    /// Ends the connection, as the message has waited for too long.
    pub fn give_up(&mut self) {
        if self.phase == Phase::Running
            && let Some(frame) = self.not_ready.frame()
        {
            let (violation, cause) = (Violation::NO_BUFFER, Some((frame.header, frame.ulpdu as u16)));
            self.end(Cause::Peer(violation), Some(Terminate { violation, cause }));
        }
    }

    /// The peer had no receive for a message of this side's, whose header it shows. If messages wait, that one fails, as over RoCE; or,
    /// if TCP had taken it and it has been reported as sent, the next one.
    pub(super) fn was_not_received(&mut self, shown: Option<Header>) {
        if self.waits_for_receives() {
            let number = match shown {
                Some(Header::Send { number, .. }) => Some(number),
                _ => None,
            };
            self.sends.fail_message(number, self.transmitter.sends, Status::ReceiverNotReady);
        }
    }

    pub(super) fn stop_waiting(&mut self) {
        self.not_ready.ends();
        self.receives.stop_waiting();
    }
}
