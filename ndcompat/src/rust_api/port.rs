//! Completion ports: one thread waits for several sessions.

use crate::rust_api::session::Session;
use crate::status::{Result, Status};
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use win32::io;

/// A completion port, where one thread waits for requests of several sessions. Dropping it closes the port; the sessions
/// stay usable.
///
/// ```
#[doc = include_str!("device.txt")]
/// use ndcompat::{Port, Provider, Session};
/// use std::time::Duration;
///
/// let mut port = Port::new()?;
/// let adapter = Provider::open_any()?;
/// let sessions = [Session::new(&adapter)?, Session::new(&adapter)?];
/// for session in &sessions {
///     port.add(session)?;
/// }
/// let acceptor = sessions[1].listen(Provider::addresses()?[0])?;
/// // There is no request within a millisecond.
/// assert!(port.wait_for(Duration::from_millis(1), acceptor.request()).is_none());
/// # Ok::<(), ndcompat::Status>(())
/// ```
pub struct Port {
    port: Arc<io::Port>,
}

/// A waker that posts a packet to the port.
struct Packet {
    /// Woken since the future was last polled.
    woken: AtomicBool,
    port: Arc<io::Port>,
}

impl Wake for Packet {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.port.post(0);
        }
    }
}

impl Port {
    /// A port for one thread.
    ///
    /// # Errors
    /// `ND_NO_MEMORY` if memory or descriptors run out.
    pub fn new() -> Result<Port> {
        Ok(Port { port: io::Port::new(1).map_err(|_| Status::NO_MEMORY)? })
    }

    /// Binds the session's file to the port, which can be done once. [`Session::wait`] still works.
    ///
    /// # Errors
    /// `ND_INVALID_PARAMETER` if it is bound to a port already.
    pub fn add(&self, session: &Session) -> Result<()> {
        if self.port.bind(session.file(), 0) { Ok(()) } else { Err(Status::INVALID_PARAMETER) }
    }

    /// Blocks until `future` is ready. Meanwhile, the thread handles the events of the port's sessions.
    pub fn wait<F: Future>(&mut self, future: F) -> F::Output {
        self.wait_until(None, future).expect("there is no limit")
    }

    /// As [`wait`](Self::wait), but for no longer than `limit`: then `None`, and the future is dropped.
    pub fn wait_for<F: Future>(&mut self, limit: Duration, future: F) -> Option<F::Output> {
        self.wait_until(Instant::now().checked_add(limit), future)
    }

    fn wait_until<F: Future>(&mut self, deadline: Option<Instant>, future: F) -> Option<F::Output> {
        let packet = Arc::new(Packet { woken: AtomicBool::new(true), port: self.port.clone() });
        let waker = Waker::from(packet.clone());
        let (mut context, mut future) = (Context::from_waker(&waker), pin!(future));
        loop {
            if packet.woken.swap(false, Ordering::AcqRel)
                && let Poll::Ready(output) = future.as_mut().poll(&mut context)
            {
                return Some(output);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            // Packets need no handling: they only wake this thread.
            if packet.woken.load(Ordering::Acquire) {
                // Woken while it was polled, perhaps by the future itself, time and again: the sessions must not wait for that to end.
                // Taking the packet serves nothing.
                self.port.next(Some(Duration::ZERO));
                self.port.serve();
            } else {
                self.port.next(left);
            }
        }
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port").finish_non_exhaustive()
    }
}
