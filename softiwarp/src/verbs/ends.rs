//! A queue pair and its connection, as `ibv_qp` and `rdma_cm_id` share them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::queue_pair::QueuePair;
use crate::socket::{Connection, SharedPair};

/// A queue pair and its connection, as `ibv_qp` and `rdma_cm_id` share them.
pub(super) struct Ends {
    pub pair: SharedPair,
    pub connection: OnceLock<Arc<Connection>>,
    /// An id connects it, or has.
    claimed: AtomicBool,
}

impl Ends {
    /// Those of a new queue pair.
    pub(super) fn new(pair: QueuePair) -> Arc<Ends> {
        let (pair, claimed) = (Arc::new(Mutex::new(pair)), AtomicBool::new(false));
        Arc::new(Ends { pair, connection: OnceLock::new(), claimed })
    }

    /// Reserves the queue pair for a connection; `None` if it has or had one, or is being connected. One that was flushed before may ask,
    /// as over other devices: the connection is not made.
    pub(super) fn claim(self: &Arc<Ends>) -> Option<Claim> {
        let claimed = self.claimed.compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire);
        let claim = claimed.is_ok().then(|| Claim(Arc::clone(self)))?;
        self.connection.get().is_none().then_some(claim)
    }

    /// Ends the connection, and flushes what is outstanding.
    pub(super) fn end(&self) {
        match self.connection.get() {
            Some(connection) => connection.disconnect(),
            None => {
                self.pair.lock().disconnect();
                self.catch_up();
            }
        }
    }

    /// The program that connects is ready for messages ([`QueuePair::set_ready`]).
    pub(super) fn set_ready(&self) {
        match self.connection.get() {
            Some(connection) => connection.set_ready(),
            None => {
                self.pair.lock().set_ready();
            }
        }
    }

    /// Sends what a thread has posted, or ended, that has not seen the connection. It is called by that thread, and by the one that
    /// has made the connection: whoever is the later one finds both.
    pub(super) fn catch_up(&self) {
        if let Some(connection) = self.connection.get() {
            drop(connection.posting());
        }
    }

    /// It is connected. A queue pair is connected once. [`catch_up`](Self::catch_up) is to follow, without a lock.
    pub(super) fn connected(&self, connection: &Arc<Connection>) {
        let _ = self.connection.set(Arc::clone(connection));
    }
}

/// The reservation of a queue pair for one connection. Dropped when the connection could not be made, it frees the queue pair for
/// another.
pub(super) struct Claim(Arc<Ends>);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.claimed.store(false, Ordering::Release);
    }
}
