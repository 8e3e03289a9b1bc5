//! Data transfer on an established connection: from requests to TCP, and from TCP to the queue pair.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use parking_lot::MutexGuard;
use rustix::event::epoll::EventFlags;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::super::link::Link;
use super::super::poller::Pollable;
use super::{CLOSE_TIME, Connection, IN, OUT};
use crate::completion::Source;
use crate::queue_pair::{Cause, Phase, PostError, QueuePair, SendRequest, Waiter};

/// In the record of what the socket is watched for: the queue pair is ending. No flag of epoll's.
const ENDING: u32 = 1 << 16;

/// Posts several requests at once. They are sent when it is dropped, in as few system calls as possible. The queue pair is
/// locked meanwhile.
pub struct Posting<'a> {
    connection: &'a Connection,
    pair: Option<MutexGuard<'a, QueuePair>>,
}

impl Posting<'_> {
    /// Posts a request.
    ///
    /// # Errors
    /// Why not.
    pub fn post_send(&mut self, request: &SendRequest<'_>) -> Result<(), PostError> {
        self.pair.as_mut().map_or(Err(PostError::NotConnected), |pair| pair.post_send(request))
    }
}

impl Drop for Posting<'_> {
    fn drop(&mut self) {
        if let Some(mut pair) = self.pair.take() {
            self.connection.transmit(&mut pair);
            self.connection.unlock(pair);
        }
    }
}

impl Connection {
    /// Posts a work request and sends it at once, if it may be sent. Small requests that are posted in a row, without a call
    /// to the poller in between, are batched from the third on, up to 16 of them. They are sent at the next call
    /// ([`Poller::progress`], [`Poller::drive`]), or after 2 ms by the background thread; without one none is held back.
    ///
    /// [`Poller::progress`]: crate::socket::Poller::progress
    /// [`Poller::drive`]: crate::socket::Poller::drive
    ///
    /// # Errors
    /// Why not.
    pub fn post_send(&self, request: &SendRequest<'_>) -> Result<(), PostError> {
        let pair = self.pair.get().ok_or(PostError::NotConnected)?;
        let mut pair = pair.lock();
        pair.post_send(request)?;
        let list = || self.poller.defer(|| self.this.upgrade().map(|this| this as Arc<dyn Pollable>));
        if self.pace.holds(self.poller.looks(), pair.last_length(), list) {
            return Ok(());
        }
        self.transmit(&mut pair);
        self.unlock(pair);
        Ok(())
    }

    /// For posting several requests at once. `None` if there is no queue pair yet.
    pub fn posting(&self) -> Option<Posting<'_>> {
        let pair = self.pair.get()?.lock();
        Some(Posting { connection: self, pair: Some(pair) })
    }

    pub(super) fn transmit(&self, pair: &mut QueuePair) {
        self.pace.sent();
        pair.transmit(&mut Link(&self.socket));
    }

    /// Call after using the queue pair: updates the epoll interest, unlocks, reports the end.
    pub(super) fn unlock(&self, pair: MutexGuard<'_, QueuePair>) {
        self.want(&pair);
        let ended = pair.phase() == Phase::Ended;
        drop(pair);
        if ended {
            self.after_end();
        }
    }

    /// Makes progress of the queue pair. Returns whether something was received.
    pub(super) fn advance(&self, mut pair: MutexGuard<'_, QueuePair>) -> bool {
        if pair.phase() != Phase::Running || pair.wants_to_write() || self.pace.holds_any() {
            self.transmit(&mut pair);
        }
        let received = pair.receive(&mut Link(&self.socket));
        if received {
            self.transmit(&mut pair);
        }
        self.unlock(pair);
        received
    }

    /// Watches the socket for what the queue pair needs.
    pub(super) fn want(&self, pair: &QueuePair) {
        let waits = pair.waits_until();
        let writes = if pair.wants_to_write() { OUT } else { EventFlags::empty() };
        let (interest, mark) = match pair.phase() {
            // What comes behind a message that waits for its receive stays with TCP.
            Phase::Running if waits.is_some() => (writes, 0),
            Phase::Running => (IN | writes, 0),
            Phase::Ending => (OUT, ENDING),
            _ => return,
        };
        // With the queue pair locked, so that the last change is the current one.
        let now = interest.bits() | mark;
        if self.interest.load(Ordering::Relaxed) != now {
            self.interest.store(now, Ordering::Relaxed);
            self.poller.change(self.key, &self.socket, interest);
            if pair.phase() == Phase::Ending {
                // A peer that does not read must not delay it.
                self.set_deadline(Some(CLOSE_TIME));
            } else if let Some(until) = waits {
                self.set_deadline(Some(until.saturating_duration_since(Instant::now())));
            }
        }
    }

    /// The time limit of a message that waits for its receive may have come. Returns whether one was waiting.
    pub(super) fn end_waiting(&self, pair: &mut QueuePair) -> bool {
        if pair.waits_until().is_none() {
            return false;
        }
        // Its receive may have been posted just now.
        if pair.receive(&mut Link(&self.socket)) {
            self.transmit(pair);
        }
        let Some(until) = pair.waits_until() else { return true };
        match until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            // The limit was another message's.
            Some(left) => self.set_deadline(Some(left)),
            None => {
                pair.give_up();
                self.transmit(pair);
            }
        }
        true
    }

    /// Loses the connection if TCP has failed while nothing is read from it.
    pub(super) fn lose_if_failed(&self) {
        let mut socket = [PollFd::new(&self.socket, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut socket, Some(&now)).is_ok_and(|count| count != 0)
            && let Some(pair) = self.pair.get()
        {
            let mut pair = pair.lock();
            // Its receive may have been posted just now.
            pair.receive(&mut Link(&self.socket));
            if pair.waits_until().is_some() {
                pair.lose(Cause::Lost);
            }
            self.unlock(pair);
        }
    }
}

impl Source for Connection {
    fn look(&self) -> bool {
        if !self.up.load(Ordering::Acquire) {
            return false;
        }
        // The thread that holds the lock makes the progress.
        self.pair.get().and_then(|pair| pair.try_lock()).is_some_and(|pair| self.advance(pair))
    }
}

impl Waiter for Connection {
    fn wake(&self) {
        self.poller.wake(self.key);
    }
}
