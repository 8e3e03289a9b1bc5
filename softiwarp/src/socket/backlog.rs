//! A listening socket, and the number of its unanswered connection requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use rustix::event::epoll::EventFlags;
use socket2::Socket;

use super::poller::Poller;

/// A listening socket, from which no connection is accepted while too many requests are unanswered.
pub(super) struct Backlog {
    pub(super) socket: Socket,
    pub(super) poller: Arc<Poller>,
    pub(super) key: u64,
    asked: AtomicUsize,
    max: usize,
}

impl Backlog {
    /// With at most `max` unanswered requests.
    pub(super) fn new(socket: Socket, poller: &Arc<Poller>, max: usize) -> Backlog {
        let (key, asked) = (poller.key(), AtomicUsize::new(0));
        Backlog { socket, poller: Arc::clone(poller), key, asked, max: max.max(1) }
    }

    /// Whether no more connections may be accepted. The socket is watched again when a request has been answered.
    pub(super) fn is_full(&self) -> bool {
        if self.asked.load(Ordering::SeqCst) < self.max {
            return false;
        }
        self.poller.change(self.key, &self.socket, EventFlags::empty());
        // A request may have been answered meanwhile.
        if self.asked.load(Ordering::SeqCst) < self.max {
            self.poller.change(self.key, &self.socket, EventFlags::IN);
        }
        true
    }
}

/// An accepted connection, counted if its request is unanswered.
pub(super) struct Counted {
    backlog: Weak<Backlog>,
    has_asked: bool,
}

impl Counted {
    /// A connection without a request.
    pub(super) fn new(backlog: &Arc<Backlog>) -> Counted {
        Counted { backlog: Arc::downgrade(backlog), has_asked: false }
    }

    /// Counts the request.
    pub(super) fn asked(&self) -> Counted {
        if let Some(backlog) = self.backlog.upgrade() {
            backlog.asked.fetch_add(1, Ordering::SeqCst);
        }
        Counted { backlog: Weak::clone(&self.backlog), has_asked: true }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(backlog) = self.backlog.upgrade().filter(|_| self.has_asked)
            && backlog.asked.fetch_sub(1, Ordering::SeqCst) == backlog.max
        {
            backlog.poller.change(backlog.key, &backlog.socket, EventFlags::IN);
        }
    }
}
