//! Establishing a connection: TCP, then a start frame from each side (MPA).

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::super::arrivals::Arrival;
use super::super::backlog::Counted;
use super::super::link::Link;
use super::super::poller::Poller;
use super::{Connection, Ended, Event, Handler, IN, LEFT, OUT, SharedPair, State};
use crate::queue_pair::{Agreement, Opening, Phase, QueuePair, Stream};
use crate::startup::{self, Answer, Asked, Offer};
use crate::wire::startup::Parsed;
use crate::wire::{StartFrame, StartKind, Terminate, Violation};

/// How long TCP may take to connect: it sends lost requests again after 1, 3 and 7 s. The time-out of `rdma_resolve_addr` is for the
/// address alone.
const CONNECT_TIME: Duration = Duration::from_secs(15);
/// How long the reply to a request may take: as long as over RoCE, as a program may accept late. siw gives up after 10 s.
const REPLY_TIME: Duration = Duration::from_secs(100);
/// How long the request may take after TCP has connected, as with siw.
const REQUEST_TIME: Duration = Duration::from_secs(5);
/// Time-out of the peer's first frame, after which requests are sent anyway, unless it has agreed to send one first. siw drops a
/// connection if a frame arrives together with the reply.
const FIRST_FRAME_TIME: Duration = Duration::from_millis(50);
/// How long the empty frame may take that the peer has agreed to send first. Its device does that by itself, so that a connection
/// without it is lost.
const OWED_FRAME_TIME: Duration = Duration::from_secs(5);

/// How much TCP should take at each end while a message waits for its receive: what TCP has taken counts as sent.
const WAITING_BUFFER: usize = 128 << 10;

impl Arrival for Connection {
    fn is_arriving(&self) -> bool {
        self.may_go(&self.state.lock())
    }

    fn turn_away(&self) {
        let mut state = self.state.lock();
        if self.may_go(&state) {
            self.close(&mut state);
        }
    }
}

/// The longest segment on any Ethernet.
const ETHERNET_MAX: usize = 16 << 10;
/// The segments of the loopback interface.
const LOOPBACK: usize = 65483;

impl Connection {
    /// Whether its request has not come, or was refused and the peer has not closed yet.
    fn may_go(&self, state: &State) -> bool {
        match state {
            State::Arriving(..) => true,
            State::Draining => self.pair.get().is_none(),
            _ => false,
        }
    }

    /// Starts connecting. The queue pair must not be connected; it may have receives already.
    ///
    /// # Errors
    /// The system's immediate error; `InvalidInput` for private data that is too long, or if the queue pair is connected. If it has ended,
    /// the peer is asked, and the connection ends when it answers.
    pub fn connect(
        poller: &Arc<Poller>,
        (from, to): (Option<SocketAddr>, SocketAddr),
        (offer, private_data): (Offer, &[u8]),
        pair: SharedPair,
        handler: Arc<dyn Handler>,
    ) -> io::Result<Arc<Connection>> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        if let Some(from) = from {
            socket.bind(&from.into())?;
        }
        Connection::connect_from(poller, (socket, to), (offer, private_data), pair, handler)
    }

    /// The same on a given TCP socket, which may be bound.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_from(
        poller: &Arc<Poller>,
        (socket, to): (Socket, SocketAddr),
        (offer, private_data): (Offer, &[u8]),
        pair: SharedPair,
        handler: Arc<dyn Handler>,
    ) -> io::Result<Arc<Connection>> {
        let request = startup::request(&offer, private_data);
        let request = request.map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        if !matches!(pair.lock().phase(), Phase::Idle | Phase::Ended) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        socket.set_nonblocking(true)?;
        match socket.connect(&to.into()) {
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            result => result?,
        }
        let connection = Connection::new(poller, (socket, to), handler, State::Connecting(offer, request));
        // Just created: it is not set yet.
        let _ = connection.pair.set(pair);
        connection.set_deadline(Some(CONNECT_TIME));
        if let Err(error) = connection.watch(OUT) {
            connection.set_deadline(None);
            return Err(error);
        }
        Ok(connection)
    }

    /// Creates a connection on an accepted socket.
    pub(in super::super) fn arrive(
        poller: &Arc<Poller>,
        (socket, peer): (Socket, SocketAddr),
        handler: Arc<dyn Handler>,
        counted: Counted,
    ) -> io::Result<Weak<Connection>> {
        socket.set_nonblocking(true)?;
        let connection =
            Connection::new(poller, (socket, peer), handler, State::Arriving(Vec::new(), counted));
        connection.set_deadline(Some(REQUEST_TIME));
        connection.watch(IN)?;
        Ok(connection.this.clone())
    }

    /// Accepts the peer's request. The connection is established when this returns.
    ///
    /// # Errors
    /// `InvalidInput` for private data that is too long, or if the queue pair is or was connected; `NotConnected` if there is no
    /// request any more or the peer has closed; the system's error.
    pub fn accept(&self, offer: &Offer, private_data: &[u8], pair: SharedPair) -> io::Result<Agreement> {
        let mut state = self.state.lock();
        let State::Asked(asked, _) = &*state else { return Err(self.has_no_request(&mut state)) };
        let (reply, agreement) =
            asked.accept(offer, private_data).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mut unconnected = pair.lock();
        if unconnected.phase() != Phase::Idle {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.find_asker(&mut state)?;
        if let Err(error) = self.write_start(&reply) {
            self.close(&mut state);
            return Err(error);
        }
        self.start(&mut unconnected, agreement);
        // It is not set yet, as a connection has one request.
        let _ = self.pair.set(Arc::clone(&pair));
        *state = State::Up;
        self.up.store(true, Ordering::Release);
        let owed = agreement.opening == Opening::AwaitsEmpty;
        self.set_deadline(Some(if owed { OWED_FRAME_TIME } else { FIRST_FRAME_TIME }));
        self.want(&unconnected);
        Ok(agreement)
    }

    /// Refuses the peer's request.
    ///
    /// # Errors
    /// `InvalidInput` for private data that is too long, `NotConnected` if there is no request any more or the peer has closed.
    pub fn refuse(&self, private_data: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock();
        let State::Asked(asked, _) = &*state else { return Err(self.has_no_request(&mut state)) };
        let reply = asked.refuse(private_data).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        self.find_asker(&mut state)?;
        let written = self.write_start(&reply);
        self.drain(&mut state);
        written
    }

    /// There is nothing to answer. If the peer has left, that is answered now.
    fn has_no_request(&self, state: &mut State) -> io::Error {
        if matches!(state, State::Gone(_)) {
            *state = State::Closed;
        }
        io::ErrorKind::NotConnected.into()
    }

    /// Closes a connection whose peer has closed: a reply could be written, but would not be read.
    fn find_asker(&self, state: &mut State) -> io::Result<()> {
        if self.has_left() {
            self.close(state);
            return Err(io::ErrorKind::NotConnected.into());
        }
        Ok(())
    }

    /// Starts the queue pair on this connection.
    fn start(&self, pair: &mut QueuePair, agreement: Agreement) {
        pair.set_waiter(self.this.clone());
        if pair.waits_for_receives() {
            // With the default sizes more is taken, so fewer messages know that they were not received.
            let _ = self.socket.set_send_buffer_size(WAITING_BUFFER);
            let _ = self.socket.set_recv_buffer_size(WAITING_BUFFER);
        }
        pair.start(agreement, self.frame_max());
    }

    /// The longest frame: one TCP segment. On the loopback interface TCP starts with shorter segments than it sends later.
    fn frame_max(&self) -> usize {
        match self.socket.tcp_mss() {
            Ok(mss) if mss as usize > ETHERNET_MAX => LOOPBACK,
            Ok(mss) => mss as usize,
            Err(_) => 1448,
        }
    }

    /// Writes a start frame, for which a new socket always has room.
    fn write_start(&self, bytes: &[u8]) -> io::Result<()> {
        let piece = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: the piece is part of the bytes, which are borrowed.
        let count = unsafe { Link(&self.socket).write(&[piece]) }?;
        if count == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Reads a start frame and no byte behind it. `None` if it is not complete.
    fn read_start<T>(
        &self,
        buffer: &mut Vec<u8>,
        kind: StartKind,
        make: impl FnOnce(&StartFrame<'_>) -> T,
    ) -> io::Result<Option<T>> {
        loop {
            let needed = match StartFrame::parse(buffer, kind) {
                Err(_) => return Err(io::ErrorKind::InvalidData.into()),
                Ok(Parsed::Frame(frame, _)) => return Ok(Some(make(&frame))),
                Ok(Parsed::Incomplete(needed)) => needed - buffer.len(),
            };
            let mut bytes = [MaybeUninit::uninit(); 600];
            let count = match self.socket.recv(&mut bytes[..needed.min(600)]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result?,
            };
            // SAFETY: the socket has written this many bytes.
            buffer.extend(bytes[..count].iter().map(|byte| unsafe { byte.assume_init() }));
        }
    }

    /// Tells the peer how its reply violates the protocol, and ends the connection.
    fn fail(&self, state: &mut State, violation: Violation) -> Event {
        let mut frame = Vec::new();
        // With a CRC, as the peer may want one; otherwise it looks at none.
        Terminate { violation, cause: None }.put_frame(true, &mut frame);
        // Nothing more can be done for a peer that does not take it.
        let _ = self.write_start(&frame);
        self.drain(state);
        Event::Ended(Ended::NotAccepted)
    }

    /// Makes progress of a connection being established. The caller must report the event without the lock.
    pub(super) fn step(&self, state: &mut State) -> Option<Event> {
        match state {
            State::Connecting(offer, request) => {
                let (offer, request) = (*offer, std::mem::take(request));
                let failed = match self.socket.take_error() {
                    Ok(None) => self.write_start(&request).err(),
                    Ok(Some(error)) | Err(error) => Some(error),
                };
                if let Some(error) = failed {
                    self.close(state);
                    return Some(Event::Ended(Ended::Unreachable(error.raw_os_error().unwrap_or(libc::EIO))));
                }
                *state = State::Requested(offer, Vec::new());
                self.set_deadline(Some(REPLY_TIME));
                self.poller.change(self.key, &self.socket, IN);
                None
            }
            State::Requested(offer, buffer) => {
                let offer = *offer;
                let negotiate = |reply: &StartFrame<'_>| (startup::negotiate(&offer, reply), reply.enhanced);
                match self.read_start(buffer, StartKind::Reply, negotiate) {
                    Ok(None) => None,
                    Ok(Some((Ok(Answer::Agreed(agreement, private_data)), enhanced))) => {
                        // Before the queue pair is used, which may end, and then has a deadline of its own.
                        self.set_deadline(None);
                        if let Some(pair) = self.pair.get() {
                            let mut pair = pair.lock();
                            if pair.phase() != Phase::Idle {
                                // The program has ended it meanwhile.
                                drop(pair);
                                self.close(state);
                                return Some(Event::Ended(Ended::Unreachable(libc::ECONNABORTED)));
                            }
                            self.start(&mut pair, agreement);
                            // The first frame, if this side has to send it: the peer may not send before.
                            self.transmit(&mut pair);
                            self.want(&pair);
                        }
                        *state = State::Up;
                        self.up.store(true, Ordering::Release);
                        Some(Event::Established { private_data, agreement, enhanced })
                    }
                    Ok(Some((Ok(Answer::Refused(said)), _))) => {
                        self.close(state);
                        Some(Event::Ended(Ended::Refused(said)))
                    }
                    Ok(Some((Err(violation), _))) => Some(self.fail(state, violation)),
                    Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                        Some(self.fail(state, Violation::START_FRAME))
                    }
                    Err(_) => {
                        self.close(state);
                        Some(Event::Ended(Ended::NotAccepted))
                    }
                }
            }
            State::Arriving(buffer, counted) => match self.read_start(buffer, StartKind::Request, Asked::new)
            {
                Ok(None) => None,
                Ok(Some(asked)) if asked.can_be_accepted() => {
                    self.set_deadline(None);
                    self.poller.change(self.key, &self.socket, LEFT);
                    let (private_data, enhanced) = (asked.private_data.clone(), asked.enhanced);
                    *state = State::Asked(asked, counted.asked());
                    Some(Event::Asked { private_data, enhanced })
                }
                Ok(Some(asked)) => {
                    let _ = asked.refuse(b"").map(|reply| self.write_start(&reply));
                    self.drain(state);
                    None
                }
                Err(_) => {
                    self.close(state);
                    None
                }
            },
            // Another thread may just have read the request.
            State::Asked(..) if self.has_left() => {
                let State::Asked(_, counted) = std::mem::replace(state, State::Closed) else { return None };
                self.close(state);
                *state = State::Gone(counted);
                Some(Event::Ended(Ended::NotAccepted))
            }
            State::Asked(..) | State::Gone(_) | State::Up | State::Draining | State::Closed => None,
        }
    }
}
