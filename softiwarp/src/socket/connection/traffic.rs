//! Data transfer on an established connection: from requests to TCP, and from TCP to the queue pair.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;

use super::super::link::Link;
use super::super::poller::Pollable;
use super::{CLOSE_TIME, Connection, IN, OUT};
use crate::completion::Source;
use crate::queue_pair::{Phase, PostError, QueuePair, SendRequest};

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
        let interest = match (pair.phase(), pair.wants_to_write()) {
            (Phase::Running, false) => IN,
            (Phase::Running, true) => IN | OUT,
            (Phase::Ending, _) => OUT,
            _ => return,
        };
        // With the queue pair locked, so that the last change is the current one.
        if self.interest.swap(interest.bits(), Ordering::Relaxed) != interest.bits() {
            self.poller.change(self.key, &self.socket, interest);
            if pair.phase() == Phase::Ending {
                // A peer that does not read must not delay it.
                self.set_deadline(Some(CLOSE_TIME));
            }
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
