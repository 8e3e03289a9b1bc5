//! Listeners: TCP connections of peers, until they have sent a connection request.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::epoll::EventFlags;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::backlog::{Backlog, Counted};
use super::connection::{Connection, Handler};
use super::poller::{Pollable, Poller};
use crate::report;

/// The most connections accepted in one call.
const BATCH: usize = 64;
/// The pause in accepting when the system is out of file descriptors or memory.
const RESPITE: Duration = Duration::from_millis(100);

struct Inner {
    backlog: Arc<Backlog>,
    handler: Arc<dyn Handler>,
    due: Mutex<Option<Instant>>,
}

/// Accepts connections at an address until dropped.
pub struct Listener {
    inner: Arc<Inner>,
}

impl Listener {
    /// Listens. Each connection request is passed to the handler as [`Event::Asked`](super::Event::Asked). While `backlog`
    /// requests are unanswered, no more connections are accepted: they wait in the system's queue, which has the same length.
    ///
    /// # Errors
    /// The system's error: the address is in use, or not local.
    pub fn new(
        poller: &Arc<Poller>,
        at: SocketAddr,
        backlog: i32,
        handler: Arc<dyn Handler>,
    ) -> io::Result<Listener> {
        let socket = Socket::new(Domain::for_address(at), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.bind(&at.into())?;
        Listener::on(poller, socket, backlog, handler)
    }

    /// Listens on a bound TCP socket.
    ///
    /// # Errors
    /// The system's error: another socket listens at the address.
    pub fn on(
        poller: &Arc<Poller>,
        socket: Socket,
        backlog: i32,
        handler: Arc<dyn Handler>,
    ) -> io::Result<Listener> {
        socket.set_nonblocking(true)?;
        socket.listen(backlog)?;
        let backlog = Arc::new(Backlog::new(socket, poller, usize::try_from(backlog).unwrap_or(0)));
        let inner = Arc::new(Inner { backlog, handler, due: Mutex::default() });
        let Backlog { key, socket, .. } = &*inner.backlog;
        poller.add(*key, socket, EventFlags::IN, Arc::clone(&inner) as Arc<dyn Pollable>)?;
        Ok(Listener { inner })
    }

    /// The address, with its port.
    ///
    /// # Errors
    /// The system's error.
    pub fn address(&self) -> io::Result<Option<SocketAddr>> {
        self.inner.backlog.socket.local_addr().map(|address| SockAddr::as_socket(&address))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.inner.remove();
    }
}

impl Inner {
    /// Handles an accepted connection. On failure it is closed.
    fn take(&self, socket: Socket, peer: SocketAddr) {
        let counted = Counted::new(&self.backlog);
        let arrived =
            Connection::arrive(&self.backlog.poller, (socket, peer), Arc::clone(&self.handler), counted);
        let connection = match arrived {
            Ok(connection) => connection,
            Err(error) => {
                report::is_limit(&error);
                return;
            }
        };
        // The request has often arrived already; it is counted before the next connection is accepted.
        if let Some(connection) = connection.upgrade() {
            connection.ready();
        }
        self.backlog.poller.arrivals.add(connection);
    }
}

impl Pollable for Inner {
    fn ready(&self) -> bool {
        let Backlog { poller, key, socket, .. } = &*self.backlog;
        for _ in 0..BATCH {
            if self.backlog.is_full() {
                break;
            }
            match socket.accept() {
                Ok((socket, peer)) => {
                    // A TCP listener has peers of IP families only.
                    if let Some(peer) = peer.as_socket() {
                        self.take(socket, peer);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    if report::is_limit(&error) {
                        // Who asks for nothing makes room, for the program as well; peers wait in the system's queue.
                        poller.arrivals.make_room();
                        poller.change(*key, socket, EventFlags::empty());
                        let mut due = self.due.lock();
                        *due = poller.deadline(*key, *due, Some(RESPITE));
                        break;
                    }
                    // Other errors concern this one peer.
                }
            }
        }
        false
    }

    fn expired(&self, at: Instant) {
        let mut due = self.due.lock();
        if *due != Some(at) {
            return;
        }
        *due = None;
        let Backlog { poller, key, socket, .. } = &*self.backlog;
        poller.change(*key, socket, EventFlags::IN);
    }

    fn remove(&self) {
        let Backlog { poller, key, socket, .. } = &*self.backlog;
        let mut due = self.due.lock();
        *due = poller.deadline(*key, *due, None);
        poller.remove(*key, socket);
        // New connections are refused from now on, even if the socket stays open a little longer.
        let _ = socket.shutdown(Shutdown::Both);
    }
}
