//! A connection. [`startup`](self::startup) establishes it, [`traffic`](self::traffic) transfers the data of its queue pair.

mod startup;
mod traffic;

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::epoll::EventFlags;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{SockAddr, Socket, TcpKeepalive};

pub use traffic::Posting;

use super::backlog::Counted;
use super::batching::Pace;
use super::poller::{Pollable, Poller};
use crate::completion::Source;
use crate::queue_pair::{Agreement, Cause, Phase, QueuePair};
use crate::report;
use crate::startup::{Asked, Offer};
use crate::wire::Enhanced;

/// How long TCP waits for a peer that acknowledges nothing, or takes nothing that was sent to it, before the connection is lost. A
/// process that is stopped by a debugger takes nothing.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// After this time without traffic TCP asks the peer's whether it is still there, which a process that is stopped need not answer.
const KEEPALIVE_TIME: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// How long the peer may take to close its side after this one.
const CLOSE_TIME: Duration = Duration::from_secs(2);

const IN: EventFlags = EventFlags::IN;
const OUT: EventFlags = EventFlags::OUT;
/// The peer has closed.
const LEFT: EventFlags = EventFlags::RDHUP;

/// A queue pair that its program and its connection share.
pub type SharedPair = Arc<Mutex<QueuePair>>;

/// An event of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A peer asks for a connection, to be accepted or refused.
    Asked {
        /// The private data.
        private_data: Vec<u8>,
        /// The peer's read limits, if it sent any.
        enhanced: Option<Enhanced>,
    },
    /// It is established.
    Established {
        /// The private data of the accepting peer; empty on the accepting side.
        private_data: Vec<u8>,
        /// The result of the negotiation.
        agreement: Agreement,
        /// The peer's read limits, if it sent any.
        enhanced: Option<Enhanced>,
    },
    /// It has ended, or could not be established.
    Ended(Ended),
}

/// How a connection has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The peer has refused it, with this private data.
    Refused(Vec<u8>),
    /// TCP could not connect; the errno.
    Unreachable(i32),
    /// The peer did not reply in time.
    TimedOut,
    /// The peer has closed TCP, or does not speak iWARP.
    NotAccepted,
    /// It was established. All outstanding requests have been flushed.
    Disconnected(Option<Cause>),
    /// The device was removed before it was established.
    Removed,
}

/// The handler of a connection's events. Called on the thread that drives the poller, with no lock held, and by one thread at a time for
/// each connection, in the order of the events. It must not wait for other
/// connections: until it returns, those that were woken, and deadlines, may wait for this thread.
pub trait Handler: Send + Sync {
    /// Handles an event.
    fn event(&self, connection: &Arc<Connection>, event: Event);
}

enum State {
    Connecting(Offer, Vec<u8>),
    Requested(Offer, Vec<u8>),
    Arriving(Vec<u8>, Counted),
    Asked(Asked, Counted),
    Up,
    /// The peer has left before its request was answered. It is counted until the program answers it or drops the connection.
    Gone(#[expect(dead_code, reason = "counts")] Counted),
    /// What the peer still sends is discarded.
    Draining,
    Closed,
}

/// The events that the handler of a connection has not been told.
#[derive(Default)]
struct Untold {
    /// In the order in which they are told.
    events: VecDeque<Event>,
    /// A thread is telling the handler, and goes on until there is none.
    telling: bool,
}

/// A connection. The poller holds it until it has ended, and it holds its handler.
pub struct Connection {
    this: Weak<Connection>,
    socket: Socket,
    peer: SocketAddr,
    poller: Arc<Poller>,
    key: u64,
    handler: Mutex<Arc<dyn Handler>>,
    untold: Mutex<Untold>,
    pair: OnceLock<SharedPair>,
    state: Mutex<State>,
    due: Mutex<Option<Instant>>,
    /// The events that the socket is watched for while it is established.
    interest: AtomicU32,
    /// Whether it is established, to be read without the lock.
    up: AtomicBool,
    /// It was looked after an overflow that has come behind its end.
    checked: AtomicBool,
    pace: Pace,
}

impl Connection {
    fn new(
        poller: &Arc<Poller>,
        (socket, peer): (Socket, SocketAddr),
        handler: Arc<dyn Handler>,
        state: State,
    ) -> Arc<Connection> {
        // Without TCP_NODELAY messages would only be delayed, so a failure is ignored.
        let _ = socket.set_tcp_nodelay(true);
        // Without these a peer that is gone would only be noticed later.
        let _ = socket.set_tcp_user_timeout(Some(SILENCE_MAX));
        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_TIME).with_interval(KEEPALIVE_INTERVAL);
        let _ = socket.set_tcp_keepalive(&keepalive);
        Arc::new_cyclic(|this| Connection {
            this: this.clone(),
            socket,
            peer,
            poller: Arc::clone(poller),
            key: poller.key(),
            handler: Mutex::new(handler),
            untold: Mutex::default(),
            pair: OnceLock::new(),
            state: Mutex::new(state),
            due: Mutex::new(None),
            interest: AtomicU32::new(0),
            up: AtomicBool::new(false),
            checked: AtomicBool::new(false),
            pace: Pace::new(),
        })
    }

    fn watch(self: &Arc<Connection>, interest: EventFlags) -> io::Result<()> {
        self.poller.add(self.key, &self.socket, interest, Arc::clone(self) as Arc<dyn Pollable>)
    }

    fn set_deadline(&self, after: Option<Duration>) {
        let mut due = self.due.lock();
        *due = self.poller.deadline(self.key, *due, after);
    }

    /// Replaces the handler.
    pub fn set_handler(&self, handler: Arc<dyn Handler>) {
        *self.handler.lock() = handler;
    }

    /// The address of this side.
    ///
    /// # Errors
    /// The system's error.
    pub fn local_address(&self) -> io::Result<Option<SocketAddr>> {
        self.socket.local_addr().map(|address| SockAddr::as_socket(&address))
    }

    /// The address of the peer, also after that has closed.
    pub fn peer_address(&self) -> SocketAddr {
        self.peer
    }

    /// Ends it. Outstanding requests are flushed before this returns; earlier ones have been written as far as TCP accepted
    /// them.
    pub fn disconnect(&self) {
        let mut state = self.state.lock();
        match &*state {
            State::Up => {}
            State::Gone(_) | State::Draining | State::Closed => return,
            _ => return self.close(&mut state),
        }
        drop(state);
        if let Some(pair) = self.pair.get() {
            let mut pair = pair.lock();
            if self.pace.holds_any() {
                self.transmit(&mut pair);
            }
            pair.disconnect();
            self.transmit(&mut pair);
            self.unlock(pair);
        }
    }

    /// The program that connects is ready for messages ([`QueuePair::set_ready`]).
    pub fn set_ready(&self) {
        if let Some(pair) = self.pair.get() {
            let mut pair = pair.lock();
            if let Some(limit) = pair.set_ready() {
                self.set_deadline(Some(limit));
            }
        }
    }

    /// Whether TCP has failed or the peer has closed its half; data sent before may still be unread.
    fn has_left(&self) -> bool {
        let mut socket = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut socket, Some(&now)).is_ok_and(|count| count != 0)
    }

    /// Stops reading, but lets the peer receive what was written.
    fn drain(&self, state: &mut State) {
        let _ = self.socket.shutdown(Shutdown::Write);
        self.up.store(false, Ordering::Release);
        *state = State::Draining;
        self.set_deadline(Some(CLOSE_TIME));
        self.poller.change(self.key, &self.socket, IN);
    }

    /// Discards what the peer still sends, until it closes.
    fn discard(&self, state: &mut State) {
        let mut bytes = [MaybeUninit::uninit(); 4096];
        // Up to a limit, so that other connections get their turn.
        for _ in 0..64 {
            match self.socket.recv(&mut bytes) {
                Ok(count) if count != 0 => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                _ => return self.close(state),
            }
        }
    }

    fn close(&self, state: &mut State) {
        self.up.store(false, Ordering::Release);
        *state = State::Closed;
        self.set_deadline(None);
        self.poller.remove(self.key, &self.socket);
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// The queue pair has ended: reports that once.
    fn after_end(&self) {
        let mut state = self.state.lock();
        if !matches!(*state, State::Up) {
            drop(state);
            // What was posted behind the end is flushed, too, and may be what a queue had no room for.
            let overflowed = self.pair.get().is_some_and(|pair| pair.lock().has_overflowed());
            if overflowed && !self.checked.swap(true, Ordering::Relaxed) {
                self.poller.check();
            }
            return;
        }
        let (cause, overflowed) = self.pair.get().map_or((None, false), |pair| {
            let pair = pair.lock();
            (pair.cause(), pair.has_overflowed())
        });
        match cause {
            Some(Cause::Closed | Cause::Lost | Cause::Removed) => self.close(&mut state),
            _ => self.drain(&mut state),
        }
        self.add(Event::Ended(Ended::Disconnected(cause)));
        drop(state);
        // Whatever has ended it: what was outstanding then may be more than the queue had room for.
        if overflowed {
            self.poller.check();
        }
        match cause {
            Some(Cause::Peer(violation)) => report::violation(true, violation),
            Some(Cause::Told(Some(violation))) => report::violation(false, violation),
            _ => {}
        }
        self.tell();
    }

    /// Adds an event for the handler. The state is locked, so that events have the order of the states that they are of.
    /// [`tell`](Self::tell) is to follow, without the lock.
    fn add(&self, event: Event) {
        self.untold.lock().events.push_back(event);
    }

    /// Tells the handler what it has not been told. While another thread does so, that one tells it this, too: a connection that ends at
    /// once was established before.
    fn tell(&self) {
        let Some(this) = self.this.upgrade() else { return };
        if std::mem::replace(&mut self.untold.lock().telling, true) {
            return;
        }
        loop {
            let event = {
                let mut untold = self.untold.lock();
                let event = untold.events.pop_front();
                untold.telling = event.is_some();
                event
            };
            let Some(event) = event else { return };
            // Reported without a lock.
            let handler = Arc::clone(&self.handler.lock());
            handler.event(&this, event);
        }
    }
}

impl Pollable for Connection {
    fn ready(&self) -> bool {
        let mut state = self.state.lock();
        let event = match *state {
            State::Draining => {
                self.discard(&mut state);
                None
            }
            _ => self.step(&mut state),
        };
        let up = matches!(*state, State::Up);
        let tells = event.map(|event| self.add(event)).is_some();
        drop(state);
        if tells {
            self.tell();
        }
        let Some(pair) = self.pair.get().filter(|_| up) else { return false };
        let pair = pair.lock();
        let queue = Arc::clone(pair.receive_queue());
        let other = (!Arc::ptr_eq(pair.send_queue(), &queue)).then(|| Arc::clone(pair.send_queue()));
        let waits = pair.waits_until().is_some();
        let received = self.advance(pair);
        if received {
            let this: Weak<dyn Source> = self.this.clone();
            [Some(queue), other].iter().flatten().for_each(|queue| queue.was_busy(&this));
        } else if waits {
            self.lose_if_failed();
        }
        received
    }

    fn flush(&self) {
        if let Some(pair) = self.pair.get() {
            let mut pair = self.pace.unlist(|| pair.lock());
            self.transmit(&mut pair);
            self.unlock(pair);
        }
    }

    fn resume(&self) {
        if let Some(pair) = self.pair.get().filter(|_| self.up.load(Ordering::Acquire)) {
            self.advance(pair.lock());
        }
    }

    fn check(&self) {
        if let Some(pair) = self.pair.get().filter(|_| self.up.load(Ordering::Acquire)) {
            let mut pair = pair.lock();
            if pair.check() {
                self.transmit(&mut pair);
            }
            self.unlock(pair);
        }
    }

    fn remove(&self) {
        let mut state = self.state.lock();
        match &*state {
            State::Up => {
                drop(state);
                if let Some(pair) = self.pair.get() {
                    let mut pair = pair.lock();
                    pair.lose(Cause::Removed);
                    self.unlock(pair);
                }
            }
            State::Requested(..) | State::Connecting(..) | State::Asked(..) => {
                self.close(&mut state);
                self.add(Event::Ended(Ended::Removed));
                drop(state);
                self.tell();
            }
            State::Arriving(..) | State::Gone(_) | State::Draining | State::Closed => self.close(&mut state),
        }
    }

    fn expired(&self, at: Instant) {
        let mut state = self.state.lock();
        {
            // With the state locked, so that what has been reached since has set its deadline.
            let mut due = self.due.lock();
            if *due != Some(at) {
                return;
            }
            *due = None;
        }
        match *state {
            State::Up => {
                drop(state);
                let Some(pair) = self.pair.get() else { return };
                let mut pair = pair.lock();
                if !self.end_waiting(&mut pair) {
                    if pair.phase() == Phase::Running && !pair.is_owed_first_frame() {
                        pair.release();
                        self.transmit(&mut pair);
                    } else {
                        pair.lose(Cause::Lost);
                    }
                }
                self.unlock(pair);
            }
            State::Requested(..) | State::Connecting(..) => {
                self.close(&mut state);
                self.add(Event::Ended(Ended::TimedOut));
                drop(state);
                self.tell();
            }
            State::Arriving(..) | State::Draining => self.close(&mut state),
            State::Asked(..) | State::Gone(_) | State::Closed => {}
        }
    }
}
