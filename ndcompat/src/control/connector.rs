//! Connectors: one side of a connection.
//!
//! `binding` has the local address, `connecting` has `Connect`, `accepting` has `Accept` and `Reject`, `ending` has
//! `Disconnect`, and `events` handles rdma_cm's events.

mod accepting;
mod binding;
mod connecting;
mod ending;
mod establishing;
mod events;

use crate::cause::Cause as Beneath;
use crate::control::connection::{Deferred, State, Terms};
use crate::control::endpoint::Endpoint;
use crate::control::phase::{Cause, End, Phase};
use crate::data::queue_pair::{Core, QueuePair};
use crate::device::adapter::{Adapter, AdapterFile};
use crate::device::connection_channel::{ConnectionChannel, Cookie};
use crate::device::removal::Removable;
use crate::diagnosis::{Evidence, FailedConnect};
use crate::status::{Result, Status};
use crate::sync::mutex::lock;
use crate::verbs::{self, Id, SockAddr};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;
use win32::io::{CancelScope, Canceller, File, Outstanding, Request};

/// How long closing a connector waits for the worker in `rdma_connect`.
const RETURN_TIME: Duration = Duration::from_secs(1);

/// One side of a connection (`IND2Connector`). All methods are thread-safe. Dropping it ends the connection.
///
/// Both sides of a connection in one thread:
///
/// ```
#[doc = include_str!("../rust_api/device.txt")]
/// use ndcompat::{Offer, Provider, QueuePairConfig, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let (adapter, file) = (session.adapter(), session.file());
/// let queue = adapter.create_completion_queue(file, 64, (0, 0))?;
/// let pair = || adapter.create_queue_pair(QueuePairConfig::new(&queue));
/// let (active, passive) = (pair()?, pair()?);
///
/// let address = adapter.addresses()?[0];
/// let listener = adapter.create_listener(file)?;
/// listener.bind(address)?;
/// listener.listen(0)?;
/// let (asks, asked) = (adapter.create_connector(file)?, adapter.create_connector(file)?);
/// let request = listener.begin_connection_request(&asked)?;
///
/// asks.bind(address)?;
/// let connecting = asks.begin_connect(&active, listener.local_address()?, Offer::default())?;
/// request.wait()?;
/// let accepting = asked.begin_accept(&passive, Offer::default())?;
/// connecting.wait()?;
/// asks.begin_complete_connect()?.wait()?;
/// accepting.wait()?;
///
/// let gone = asked.begin_notify_disconnect()?;
/// asks.begin_disconnect()?.wait()?;
/// gone.wait()?;
/// # Ok::<(), ndcompat::Status>(())
/// ```
pub struct Connector {
    this: Weak<Connector>,
    file: Arc<AdapterFile>,
    cookie: Cookie,
    requests: Arc<Outstanding>,
    /// Steps that are being made, after which no thread holds the connector's id.
    steps: Outstanding,
    state: Mutex<State>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("number", &self.cookie.number()).finish_non_exhaustive()
    }
}

/// The connection parameters that `Connect` and `Accept` offer to the peer.
///
/// ```
/// use ndcompat::Offer;
///
/// // The default offers no reads.
/// let offer = Offer::new().private_data(b"hello").outbound_reads(4);
/// assert_eq!((offer.inbound_read_limit, offer.outbound_read_limit), (0, 4));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Offer<'a> {
    /// How many reads the peer may have outstanding. Clamped to the adapter's limit.
    pub inbound_read_limit: u32,
    /// How many reads this side wants to have outstanding. Clamped to the adapter's limit.
    pub outbound_read_limit: u32,
    /// The private data for the peer. Its limit is the adapter's: `max_caller_data` for `Connect`, `max_callee_data` for
    /// `Accept`.
    pub private_data: &'a [u8],
}

impl<'a> Offer<'a> {
    /// No reads, and no private data.
    pub fn new() -> Offer<'a> {
        Offer::default()
    }

    /// Sets [`inbound_read_limit`](Self::inbound_read_limit).
    pub fn inbound_reads(self, limit: u32) -> Offer<'a> {
        Offer { inbound_read_limit: limit, ..self }
    }

    /// Sets [`outbound_read_limit`](Self::outbound_read_limit).
    pub fn outbound_reads(self, limit: u32) -> Offer<'a> {
        Offer { outbound_read_limit: limit, ..self }
    }

    /// Sets the [`private_data`](Self::private_data).
    pub fn private_data(self, bytes: &'a [u8]) -> Offer<'a> {
        Offer { private_data: bytes, ..self }
    }
}

/// A peer's connection request.
pub(crate) struct Incoming {
    pub id: Id,
    pub terms: Terms,
    /// The endpoint of the listener.
    pub endpoint: Arc<Endpoint>,
}

/// Why a connector does not take over a connection request.
pub(crate) enum NotAdopted {
    /// Its id cannot be moved: the peer has given up.
    PeerGone,
    /// Nobody waits for it any more: another connector may have it.
    Abandoned(Incoming),
}

impl Adapter {
    /// Creates a connector whose requests run on `file` (`IND2Adapter::CreateConnector`).
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; `ND_NO_MEMORY` or `ND_INSUFFICIENT_RESOURCES` if memory or descriptors
    /// run out.
    pub fn create_connector(self: &Arc<Self>, file: &Arc<File>) -> Result<Arc<Connector>> {
        self.check()?;
        Connector::new(self.file(file)?)
    }
}

impl Connector {
    fn new(file: Arc<AdapterFile>) -> Result<Arc<Connector>> {
        // Opened now: what follows, dropping included, relies on it.
        file.connections()?;
        let connector = Arc::new_cyclic(|this: &Weak<Connector>| Connector {
            this: this.clone(),
            file,
            cookie: Cookie::next(),
            requests: Arc::default(),
            steps: Outstanding::default(),
            state: Mutex::new(State::new()),
        });
        connector.channel()?.add(connector.cookie, Arc::downgrade(&connector) as _);
        connector.file.register(&connector);
        Ok(connector)
    }

    /// `Connect` failed with `status`. The connector keeps its address.
    fn connect_failed(&self, state: &mut State, status: Status, evidence: Evidence) -> Deferred {
        let destination = state.id.as_ref().and_then(|id| id.peer_addr());
        state.cause = evidence.cause();
        let (mut deferred, id, core) = state.connect_failed(status);
        let device = self.adapter().device_name();
        deferred.failed = Some(FailedConnect { destination, device, status, evidence });
        if let Some(endpoint) = &state.endpoint {
            endpoint.leave_destination(self.cookie);
        }
        self.renew_id(state, id.as_deref());
        if self.adapter().limits().quirks.kernel_tcp {
            // A worker that is still in `rdma_connect` holds another reference: it destroys the id when it returns.
            deferred.destroy_slowly = id.map(|id| (id, core));
        } else {
            deferred.destroy = id;
        }
        deferred
    }

    /// The read limits of the connection, seen from this side: inbound and outbound (`IND2Connector::GetReadLimits`).
    ///
    /// # Errors
    /// `ND_CONNECTION_INVALID` unless a peer has asked or answered; `ND_INVALID_DEVICE_STATE` once the connection has
    /// been accepted or completed.
    pub fn read_limits(&self) -> Result<(u32, u32)> {
        let state = self.lock();
        match state.phase {
            Phase::Requested | Phase::Replied(_) => {
                Ok((state.terms.inbound_reads, state.terms.outbound_reads))
            }
            Phase::Accepting | Phase::Connected | Phase::Disconnecting => Err(Status::INVALID_DEVICE_STATE),
            _ => Err(Status::CONNECTION_INVALID),
        }
    }

    /// The peer's private data, with the transport's padding (`IND2Connector::GetPrivateData`). Empty after a refusal by
    /// the peer's connection manager, as nobody listens. Also the data of a peer that refuses instead of `CompleteConnect`.
    ///
    /// # Errors
    /// `ND_CONNECTION_INVALID` unless a peer has asked, answered or refused, and once the connection has been accepted
    /// or completed.
    pub fn private_data(&self) -> Result<Vec<u8>> {
        let state = self.lock();
        match state.phase {
            Phase::Requested | Phase::Replied(_) | Phase::Refused(_) => Ok(state.terms.private_data.clone()),
            Phase::Closed(End::Abandoned) if !state.terms.private_data.is_empty() => {
                Ok(state.terms.private_data.clone())
            }
            _ => Err(Status::CONNECTION_INVALID),
        }
    }

    /// The private data of the connection request that the program has not answered yet, if there is one.
    pub(crate) fn asked_with(&self) -> Option<Vec<u8>> {
        let state = self.lock();
        (state.phase == Phase::Requested).then(|| state.terms.private_data.clone())
    }

    /// What is beneath the last `Connect` that has failed after it had begun: the event of the connection manager, or the call that
    /// failed.
    pub fn cause(&self) -> Option<Beneath> {
        self.lock().cause
    }

    /// The peer's address (`IND2Connector::GetPeerAddress`).
    ///
    /// # Errors
    /// `ND_CONNECTION_INVALID` before `Connect`, and after a refusal.
    pub fn peer_address(&self) -> Result<SockAddr> {
        let state = self.lock();
        match state.phase {
            Phase::Idle | Phase::Bound | Phase::Awaiting | Phase::Refused(_) => {
                Err(Status::CONNECTION_INVALID)
            }
            _ => {
                let id = state.id.as_ref().ok_or(Status::CONNECTION_INVALID)?;
                let peer = id.peer_addr().ok_or(Status::CONNECTION_INVALID)?;
                // Over RoCE, a link-local peer address in a connection request has no scope.
                Ok(id.local_addr().map_or(peer, |local| verbs::scoped_like(peer, local)))
            }
        }
    }

    /// Completes all pending requests with `ND_CANCELED`. Cancelling `Connect` or `Accept` ends the attempt.
    pub fn cancel(&self) {
        Canceller::cancel(self, CancelScope::All);
    }

    /// Ends the connection and frees the address, when the program releases the connector.
    pub fn close(&self) {
        let cancelled = self.lock().take_requests(CancelScope::All);
        for request in cancelled {
            request.complete(Status::CANCELED.0, 0);
        }
        self.handle(Cause::Released, None);
        if let Ok(channel) = self.channel() {
            channel.remove(self.cookie);
        }
        let (id, endpoint, in_driver) = {
            let mut state = self.lock();
            (state.id.take(), state.endpoint.take(), state.in_driver.take())
        };
        if let Some(in_driver) = in_driver {
            // The worker has not yet returned from `rdma_connect`, and its reference to the id keeps the address in use.
            // The wait has a limit, as a forked child has no worker.
            let _ = in_driver.recv_timeout(RETURN_TIME);
        }
        drop(id);
        // Another thread may have completed a request, and be about to disconnect: until then it keeps the address in use.
        self.steps.wait_for_none();
        if let Some(endpoint) = endpoint {
            endpoint.leave_destination(self.cookie);
        }
    }

    /// The number of the connector in the log.
    pub(crate) fn number(&self) -> usize {
        self.cookie.number()
    }

    /// The pending requests.
    pub fn requests(&self) -> &Outstanding {
        &self.requests
    }

    /// The file that the connector's requests run on.
    pub fn file(&self) -> &Arc<File> {
        self.file.file()
    }

    /// The adapter that the connector belongs to.
    pub fn adapter(&self) -> &Arc<Adapter> {
        self.file.adapter()
    }

    fn channel(&self) -> Result<&Arc<ConnectionChannel>> {
        self.file.connections()
    }

    fn is_iwarp(&self) -> bool {
        self.adapter().limits().quirks.iwarp
    }

    fn is_emulator(&self) -> bool {
        self.adapter().context().library().is_emulator()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The queue pair's core, if it belongs to the same adapter.
    fn core_of<'a>(&self, queue_pair: &'a QueuePair) -> Result<&'a Arc<Core>> {
        let core = &queue_pair.core;
        if Arc::ptr_eq(core.adapter(), self.adapter()) { Ok(core) } else { Err(Status::INVALID_PARAMETER_1) }
    }

    /// Reserves the connector for a pending `GetConnectionRequest`.
    pub(crate) fn reserve(&self) -> Result<()> {
        let mut state = self.lock();
        if state.phase != Phase::Idle {
            return Err(Status::INVALID_DEVICE_STATE);
        }
        state.phase = Phase::Awaiting;
        Ok(())
    }

    /// Ends the reservation of a `GetConnectionRequest` that has failed.
    pub(crate) fn unreserve(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Awaiting {
            state.phase = Phase::Idle;
        }
    }

    /// The cookie for the next id.
    fn next_cookie(&self, state: &mut State) -> Cookie {
        state.ids = state.ids.wrapping_add(1);
        self.cookie.numbered(state.ids)
    }

    /// Takes over a connection request from the listener.
    pub(crate) fn adopt(
        &self,
        incoming: Incoming,
        from: &Arc<ConnectionChannel>,
    ) -> std::result::Result<(), NotAdopted> {
        // The lock is held during the move: another thread may be about to handle an event of the id.
        let mut state = self.lock();
        // The reservation was ended meanwhile, by `give_back`.
        if state.phase == Phase::Idle {
            return Err(NotAdopted::Abandoned(incoming));
        }
        let Incoming { mut id, terms, endpoint } = incoming;
        id.set_cookie(self.next_cookie(&mut state).0);
        let channel = self.channel().map_err(|_| NotAdopted::PeerGone)?;
        if !Arc::ptr_eq(channel, from) {
            id.migrate(channel.verbs()).map_err(|_| NotAdopted::PeerGone)?;
        }
        state.address.bound = id.local_addr();
        state.id = Some(Arc::new(id));
        state.endpoint = Some(endpoint);
        state.terms = terms;
        state.phase = Phase::Requested;
        Ok(())
    }

    /// Undoes [`adopt`](Self::adopt), for the listener with that cookie, on the same file. None if no peer has asked, or it has given up;
    /// then no peer is adopted any more.
    pub(crate) fn give_back(&self, listener: Cookie) -> Option<Incoming> {
        let mut state = self.lock();
        if !matches!(state.phase, Phase::Awaiting | Phase::Requested) {
            return None;
        }
        state.phase = Phase::Idle;
        // Others have references to the id only once the program accepts or rejects.
        let mut id = Arc::into_inner(state.id.take()?)?;
        id.set_cookie(listener.0);
        let (terms, endpoint) = (std::mem::take(&mut state.terms), state.endpoint.take()?);
        Some(Incoming { id, terms, endpoint })
    }

    /// Cancels the receives at the end of the connection even while a `NotifyDisconnect` is pending, unlike the SPI.
    pub(crate) fn always_flush(&self) {
        self.lock().always_flushes = true;
    }
}

impl Removable for Connector {
    fn device_removed(self: Arc<Self>) {
        self.handle(Cause::DeviceRemoved, None);
    }
}

impl Canceller for Connector {
    fn cancel(&self, scope: CancelScope) -> usize {
        let _step = self.steps.hold();
        let mut state = self.lock();
        let was_establishing = state.establishing.is_some();
        let requests = state.take_requests(scope);
        let deferred = if was_establishing && state.establishing.is_none() {
            self.advance(&mut state, Cause::Cancelled, None)
        } else {
            Deferred::default()
        };
        drop(state);
        let count = requests.len();
        if count > 0 {
            tracing::debug!(target: "ndcompat::connection", connector = self.cookie.number(), requests = count, "Cancel");
        }
        for request in requests {
            Request::complete(request, Status::CANCELED.0, 0);
        }
        deferred.run();
        count
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        tracing::trace!(target: "ndcompat::connection", connector = self.cookie.number(), "released");
        self.close();
    }
}
