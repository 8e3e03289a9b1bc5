//! Connectors: making, accepting and ending connections.

use crate::adapter::Adapter;
use crate::connection::{Aftermath, End, Happening, Phase, State, Terms};
use crate::overlapped_file::{AdapterFile, ConnectionChannel, ConnectionHandler, next_cookie};
use crate::patience::with_limit;
use crate::queue_pair::{Core, QueuePair};
use crate::removal::Removable;
use crate::status::{Result, Status};
use crate::verbs::bindings::{IBV_QPS_RTR, IBV_QPS_RTS};
use crate::verbs::{ConnectParam, Event, EventKind, Id, SockAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use win32::io::{Canceller, File, Overlapped, Request};

/// How long looking up an address or a route may take.
const RESOLVE_TIMEOUT_MS: u32 = 2000;
/// How long a driver may take to reach a silent peer, where reaching it is one long system call.
const CONNECT_LIMIT: Duration = Duration::from_secs(15);
/// How long `Disconnect` waits for the peer's answer before it leaves the rest to the background.
const DISCONNECT_PATIENCE: Duration = Duration::from_millis(500);
/// How often a message is sent again that met no receive; with the pause below, about a second in all.
const RECEIVER_NOT_READY_RETRIES: u8 = 6;
/// The pause that a receiver without a receive asks for: code 28 is 163.84 ms.
const RECEIVER_NOT_READY_TIMER: u8 = 28;
/// An empty shared receive queue is refilled sooner or later: senders keep trying, ...
const FOR_EVER: u8 = 7;
/// ... every 0.64 ms.
const SHARED_NOT_READY_TIMER: u8 = 12;
/// How often a message without an acknowledgement is sent again.
const RETRIES: u8 = 7;

/// One side of a connection (`IND2Connector`). All methods are thread-safe. Dropping it ends the connection.
pub struct Connector {
    this: Weak<Connector>,
    file: Arc<AdapterFile>,
    cookie: usize,
    state: Mutex<State>,
}

/// What `Connect` and `Accept` tell the peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offer<'a> {
    /// How many reads the peer may have outstanding here; clamped to what the adapter can.
    pub inbound_read_limit: u32,
    /// How many reads this side wants to have outstanding; clamped likewise.
    pub outbound_read_limit: u32,
    /// Handed to the peer.
    pub private_data: &'a [u8],
}

/// A connection that a peer asked a listener for.
pub(crate) struct Incoming {
    pub id: Id,
    pub terms: Terms,
}

impl Connector {
    pub(crate) fn new(file: Arc<AdapterFile>) -> Result<Arc<Connector>> {
        let connector = Arc::new_cyclic(|this: &Weak<Connector>| Connector {
            this: this.clone(),
            file,
            cookie: next_cookie(),
            state: Mutex::new(State::new()),
        });
        let weak = Arc::downgrade(&connector);
        connector.channel()?.add(connector.cookie, weak.clone());
        connector.file().add_canceller(weak.clone());
        connector.adapter().tell_of_removal(weak);
        Ok(connector)
    }

    /// Binds to a local address; port 0 takes a free one (`Bind`).
    pub fn bind(&self, address: SockAddr) -> Result<()> {
        self.adapter().check()?;
        let mut state = self.lock();
        if state.phase != Phase::Idle {
            return Err(Status::ADDRESS_ALREADY_ASSOCIATED);
        }
        let id = self.bound_id(address)?;
        state.bound = id.local_addr();
        state.id = Some(Arc::new(id));
        state.phase = Phase::Bound;
        Ok(())
    }

    fn bound_id(&self, address: SockAddr) -> Result<Id> {
        let id = Id::create(self.channel()?.verbs(), self.cookie)?;
        id.bind_addr(address).map_err(|error| match error.raw_os_error() {
            Some(libc::EADDRINUSE) if address.port() == 0 => Status::TOO_MANY_ADDRESSES,
            Some(libc::EADDRINUSE) => Status::SHARING_VIOLATION,
            _ => Status::INVALID_ADDRESS,
        })?;
        // A wildcard is bound to no device yet; connecting will tell.
        if !id.verbs().is_null() && id.verbs() != self.adapter().context().as_ptr() {
            return Err(Status::INVALID_ADDRESS);
        }
        Ok(id)
    }

    /// Asks the peer at `destination` for a connection (`Connect`). Completes when it has answered.
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub unsafe fn connect(
        &self,
        queue_pair: &QueuePair,
        destination: SockAddr,
        offer: Offer<'_>,
        ov: *mut Overlapped,
    ) -> Result<()> {
        self.adapter().check()?;
        if offer.private_data.len() > self.adapter().limits().info.max_caller_data as usize {
            return Err(Status::INVALID_BUFFER_SIZE);
        }
        if destination.ip().is_unspecified() {
            return Err(Status::BAD_NETWORK_NAME);
        }
        let core = self.own(queue_pair)?;
        let mut state = self.lock();
        match state.phase {
            Phase::Bound => {}
            Phase::Idle => return Err(Status::ADDRESS_NOT_ASSOCIATED),
            Phase::Awaiting | Phase::Closed(_) => return Err(Status::INVALID_DEVICE_STATE),
            _ => return Err(Status::CONNECTION_ACTIVE),
        }
        let id = match (&state.id, state.bound) {
            (Some(id), _) => id.clone(),
            // The id of a failed attempt is gone; its port may still be.
            (None, Some(bound)) => {
                Arc::new(self.bound_id(bound).or_else(|_| self.bound_id(bound.with_port(0)))?)
            }
            (None, None) => return Err(Status::ADDRESS_NOT_ASSOCIATED),
        };
        core.attach(&self.this)?;
        if let Err(error) = id.resolve_addr(None, destination, RESOLVE_TIMEOUT_MS) {
            core.detach();
            return Err(match Status::from(error) {
                Status::INVALID_PARAMETER | Status::UNSUCCESSFUL => Status::HOST_UNREACHABLE,
                status => status,
            });
        }
        state.terms = self.terms(offer);
        state.id = Some(id);
        state.core = Some(core.clone());
        state.phase = Phase::Connecting;
        // SAFETY: passed on to the caller.
        state.establishing = Some(unsafe { self.file().begin(ov) });
        Ok(())
    }

    /// What an offer comes to on this adapter.
    fn terms(&self, offer: Offer<'_>) -> Terms {
        let info = &self.adapter().limits().info;
        Terms {
            private_data: offer.private_data.to_vec(),
            inbound_reads: offer.inbound_read_limit.min(info.max_inbound_read_limit),
            outbound_reads: offer.outbound_read_limit.min(info.max_outbound_read_limit),
        }
    }

    /// Completes the connection that the peer has accepted (`CompleteConnect`). Done when it returns.
    ///
    /// # Safety
    /// `ov` must be valid.
    pub unsafe fn complete_connect(&self, ov: *mut Overlapped) -> Result<()> {
        self.adapter().check()?;
        let mut state = self.lock();
        match state.phase {
            Phase::Replied => {}
            Phase::Closed(_) => return Err(Status::CONNECTION_ABORTED),
            _ => return Err(Status::CONNECTION_INVALID),
        }
        let (Some(id), Some(core)) = (state.id.clone(), state.core.clone()) else {
            return Err(Status::CONNECTION_INVALID);
        };
        if !self.is_iwarp() {
            self.make_ready(&id, &core, &state.terms)?;
            id.establish().map_err(|_| Status::IO_TIMEOUT)?;
        }
        core.set_ready(state.terms.outbound_reads);
        self.set_connected(&mut state);
        drop(state);
        // SAFETY: passed on to the caller.
        unsafe { self.file().begin(ov) }.complete(Status::SUCCESS.0, 0);
        Ok(())
    }

    /// Accepts the connection that a peer asked for (`Accept`). Completes when it is up.
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub unsafe fn accept(&self, queue_pair: &QueuePair, offer: Offer<'_>, ov: *mut Overlapped) -> Result<()> {
        self.adapter().check()?;
        if offer.private_data.len() > self.adapter().limits().info.max_callee_data as usize {
            return Err(Status::INVALID_BUFFER_SIZE);
        }
        let core = self.own(queue_pair)?;
        let mut state = self.lock();
        match state.phase {
            Phase::Requested => {}
            Phase::Closed(_) => return Err(Status::CONNECTION_ABORTED),
            Phase::Connected | Phase::Accepting | Phase::Replied => return Err(Status::CONNECTION_ACTIVE),
            _ => return Err(Status::CONNECTION_INVALID),
        }
        let Some(id) = state.id.clone() else { return Err(Status::CONNECTION_INVALID) };
        let mut terms = self.terms(offer);
        // No more than the peer offers.
        terms.inbound_reads = terms.inbound_reads.min(state.terms.inbound_reads);
        terms.outbound_reads = terms.outbound_reads.min(state.terms.outbound_reads);
        core.attach(&self.this)?;
        let accepted = core.use_port(id.port_num()).and_then(|()| {
            if !self.is_iwarp() {
                self.make_ready(&id, core, &terms)?;
            }
            // SAFETY: passed on to the caller.
            state.establishing = Some(unsafe { self.file().begin(ov) });
            state.phase = Phase::Accepting;
            id.accept(param(core, &terms)).map_err(|_| Status::CONNECTION_ABORTED)
        });
        match accepted {
            Ok(()) => {
                state.core = Some(core.clone());
                core.set_ready(terms.outbound_reads);
                Ok(())
            }
            Err(status) => {
                core.detach();
                let Some(request) = state.establishing.take() else { return Err(status) };
                state.phase = Phase::Closed(End::Abandoned);
                drop(state);
                request.complete(status.0, 0);
                Ok(())
            }
        }
    }

    /// Refuses the peer that asked for, or has accepted, a connection (`Reject`).
    pub fn reject(&self, private_data: &[u8]) -> Result<()> {
        self.adapter().check()?;
        if private_data.len() > self.adapter().limits().info.max_callee_data as usize {
            return Err(Status::INVALID_BUFFER_SIZE);
        }
        let mut state = self.lock();
        let replied = match state.phase {
            Phase::Requested => false,
            Phase::Replied => true,
            Phase::Closed(_) => return Err(Status::CONNECTION_ABORTED),
            _ => return Err(Status::CONNECTION_INVALID),
        };
        let id = state.id.clone().ok_or(Status::CONNECTION_INVALID)?;
        if replied && self.is_iwarp() {
            // Too late for a refusal on the wire: the connection is up.
            let mut after = state.close(End::Local);
            state.phase = Phase::Refused;
            after.hang_up = Some(id);
            drop(state);
            after.run();
            return Ok(());
        }
        if let Some(core) = state.core.take() {
            core.detach();
        }
        state.phase = Phase::Refused;
        drop(state);
        id.reject(private_data).map_err(|_| Status::CONNECTION_ABORTED)
    }

    /// The peer's read limits, seen from here: inbound and outbound (`GetReadLimits`).
    pub fn read_limits(&self) -> Result<(u32, u32)> {
        let state = self.lock();
        match state.phase {
            Phase::Requested | Phase::Replied => Ok((state.terms.inbound_reads, state.terms.outbound_reads)),
            Phase::Accepting | Phase::Connected | Phase::Disconnecting => Err(Status::INVALID_DEVICE_STATE),
            _ => Err(Status::CONNECTION_INVALID),
        }
    }

    /// What the peer sent along, padded as the transport pads it (`GetPrivateData`).
    pub fn private_data(&self) -> Result<Vec<u8>> {
        let state = self.lock();
        match state.phase {
            Phase::Requested | Phase::Replied | Phase::Refused => Ok(state.terms.private_data.clone()),
            _ => Err(Status::CONNECTION_INVALID),
        }
    }

    /// The local address (`GetLocalAddress`).
    pub fn local_address(&self) -> Result<SockAddr> {
        let state = self.lock();
        state.id.as_ref().and_then(|id| id.local_addr()).or(state.bound).ok_or(Status::CONNECTION_INVALID)
    }

    /// The peer's address (`GetPeerAddress`).
    pub fn peer_address(&self) -> Result<SockAddr> {
        let state = self.lock();
        match state.phase {
            Phase::Idle | Phase::Bound | Phase::Awaiting | Phase::Refused => Err(Status::CONNECTION_INVALID),
            _ => state.id.as_ref().and_then(|id| id.peer_addr()).ok_or(Status::CONNECTION_INVALID),
        }
    }

    /// Completes `ov` when the connection ends (`NotifyDisconnect`), at once if it has.
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub unsafe fn notify_disconnect(&self, ov: *mut Overlapped) -> Result<()> {
        let mut state = self.lock();
        let ended = match state.phase {
            Phase::Accepting | Phase::Connected | Phase::Disconnecting => None,
            Phase::Closed(End::Peer) => Some(Status::SUCCESS),
            Phase::Closed(End::Local) => Some(Status::CONNECTION_DISCONNECTED),
            _ => return Err(Status::CONNECTION_INVALID),
        };
        // SAFETY: passed on to the caller.
        let request = unsafe { self.file().begin(ov) };
        match ended {
            None => state.notify.push(request),
            Some(status) => {
                drop(state);
                request.complete(status.0, 0);
            }
        }
        Ok(())
    }

    /// Ends the connection (`Disconnect`).
    ///
    /// Completes when the peer has answered, which the call awaits for a moment: programs rely on being rid of the
    /// `OVERLAPPED` when it returns. A peer that stays silent leaves the request pending until the connection manager
    /// gives up.
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub unsafe fn disconnect(&self, ov: *mut Overlapped) -> Result<()> {
        self.adapter().check()?;
        let mut state = self.lock();
        match state.phase {
            Phase::Connected => {}
            Phase::Closed(End::Peer) => {
                // The peer was first, and has been answered.
                state.phase = Phase::Closed(End::Local);
                drop(state);
                // SAFETY: passed on to the caller.
                unsafe { self.file().begin(ov) }.complete(Status::SUCCESS.0, 0);
                return Ok(());
            }
            Phase::Disconnecting | Phase::Closed(End::Local) => return Err(Status::INVALID_DEVICE_STATE),
            _ => return Err(Status::CONNECTION_INVALID),
        }
        let (id, core) = (state.id.clone(), state.core.clone());
        // SAFETY: passed on to the caller.
        let request = unsafe { self.file().begin(ov) };
        state.disconnecting = Some(request);
        state.phase = Phase::Disconnecting;
        drop(state);
        if let Some(core) = core {
            core.fail();
        }
        if id.is_none_or(|id| id.disconnect().is_err()) {
            self.finish_disconnect(Status::SUCCESS);
        }
        win32::io::wait_for(self.file(), ov, DISCONNECT_PATIENCE, || {
            self.lock().phase != Phase::Disconnecting
        });
        Ok(())
    }

    fn finish_disconnect(&self, status: Status) {
        let mut state = self.lock();
        if state.phase != Phase::Disconnecting {
            return;
        }
        let mut after = Aftermath::default();
        after.complete(state.disconnecting.take(), status);
        let rest = state.close(End::Local);
        self.file().no_more_events();
        drop(state);
        after.completions.extend(rest.completions);
        after.flush = rest.flush;
        after.run();
    }

    /// Completes all pending requests with `ND_CANCELED`. A connection being made is given up.
    pub fn cancel(&self) {
        Canceller::cancel(self, None);
    }

    /// Ends the connection without a word to the user: the queue pair or the connector was released.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        let after = match state.phase {
            Phase::Connected | Phase::Disconnecting => {
                self.file().no_more_events();
                state.close(End::Local)
            }
            Phase::Connecting => state.connect_failed(Status::CANCELED),
            Phase::Accepting => state.accept_failed(Status::CANCELED),
            Phase::Replied => {
                let mut after = state.close(End::Local);
                // Destroying the id refuses the peer, who waits in Accept; iWARP is beyond that.
                after.hang_up.take_if(|_| !self.is_iwarp());
                after.drop_id = state.id.take();
                after
            }
            _ => Aftermath::default(),
        };
        drop(state);
        after.run();
    }

    /// Gives everything up: the last user of the connector has released it.
    pub fn close(&self) {
        let cancelled = self.lock().take_requests(None);
        for request in cancelled {
            request.complete(Status::CANCELED.0, 0);
        }
        self.abandon();
        if let Ok(channel) = self.channel() {
            channel.remove(self.cookie);
        }
        let id = self.lock().id.take();
        drop(id);
    }

    /// The queue pair has failed. On RoCE nobody else says so.
    pub(crate) fn broken(&self) {
        let mut state = self.lock();
        let after = match state.phase {
            Phase::Connected => {
                self.file().no_more_events();
                state.close(End::Peer)
            }
            _ => return,
        };
        drop(state);
        after.run();
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue pair's core, if it is of the same adapter.
    fn own<'a>(&self, queue_pair: &'a QueuePair) -> Result<&'a Arc<Core>> {
        let core = &queue_pair.core;
        if Arc::ptr_eq(core.adapter(), self.adapter()) { Ok(core) } else { Err(Status::INVALID_PARAMETER_1) }
    }

    /// Lends the connector to a listener.
    pub(crate) fn await_request(&self) -> Result<()> {
        let mut state = self.lock();
        if state.phase != Phase::Idle {
            return Err(Status::INVALID_DEVICE_STATE);
        }
        state.phase = Phase::Awaiting;
        Ok(())
    }

    /// Gives the connector back, without a connection.
    pub(crate) fn await_no_more(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Awaiting {
            state.phase = Phase::Idle;
        }
    }

    /// Takes a connection that a peer asked for. Fails if the peer's id cannot be moved here.
    pub(crate) fn adopt(&self, incoming: Incoming, from: &Arc<ConnectionChannel>) -> Result<()> {
        let Incoming { mut id, terms } = incoming;
        id.set_cookie(self.cookie);
        let channel = self.channel()?;
        if !Arc::ptr_eq(channel, from) {
            id.migrate(channel.verbs())?;
        }
        let mut state = self.lock();
        state.bound = id.local_addr();
        state.id = Some(Arc::new(id));
        state.terms = terms;
        state.phase = Phase::Requested;
        Ok(())
    }

    /// Moves the queue pair to where it can send and receive.
    fn make_ready(&self, id: &Id, core: &Core, terms: &Terms) -> Result<()> {
        core.use_port(id.port_num())?;
        let (mut attr, mask) = id.init_qp_attr(IBV_QPS_RTR)?;
        attr.max_dest_rd_atomic = terms.inbound_reads as u8;
        attr.min_rnr_timer = if core.is_shared() { SHARED_NOT_READY_TIMER } else { RECEIVER_NOT_READY_TIMER };
        core.qp.modify(&attr, mask)?;
        let (mut attr, mask) = id.init_qp_attr(IBV_QPS_RTS)?;
        attr.max_rd_atomic = terms.outbound_reads as u8;
        core.qp.modify(&attr, mask)?;
        Ok(())
    }

    fn set_connected(&self, state: &mut State) {
        state.phase = Phase::Connected;
        self.file().expect_events();
    }

    /// The way to the peer is known: ask it.
    fn send_request(&self, state: &mut State) -> Aftermath {
        let (Some(id), Some(core)) = (state.id.clone(), state.core.clone()) else {
            return Aftermath::default();
        };
        if id.verbs() != self.adapter().context().as_ptr() {
            return state.connect_failed(Status::INVALID_ADDRESS);
        }
        if self.is_iwarp() {
            self.send_request_from_worker(id, core, &state.terms);
            return Aftermath::default();
        }
        let sent = core.use_port(id.port_num()).and_then(|()| Ok(id.connect(param(&core, &state.terms))?));
        match sent {
            Ok(()) => Aftermath::default(),
            Err(status) => state.connect_failed(status),
        }
    }

    /// An iWARP driver may connect its TCP socket, for minutes, inside the call.
    fn send_request_from_worker(&self, id: Arc<Id>, core: Arc<Core>, terms: &Terms) {
        let this = self.this.clone();
        let terms = Terms { private_data: terms.private_data.clone(), ..*terms };
        let ask = move || {
            let connected = with_limit(CONNECT_LIMIT, || id.connect(param(&core, &terms)));
            let Err(error) = connected else { return };
            let Some(this) = this.upgrade() else { return };
            let mut state = this.lock();
            // The attempt may have been given up meanwhile.
            if state.phase != Phase::Connecting
                || !state.id.as_ref().is_some_and(|current| Arc::ptr_eq(current, &id))
            {
                return;
            }
            let status = match error.raw_os_error() {
                Some(libc::EINTR) => Status::IO_TIMEOUT,
                _ => error.into(),
            };
            let after = state.connect_failed(status);
            drop(state);
            after.run();
        };
        let worker = std::thread::Builder::new().name("nd-connect".into()).spawn(ask);
        if let Err(error) = worker {
            tracing::warn!(%error, "no thread to connect from");
        }
    }

    fn happened(&self, state: &mut State, event: Happening) -> Aftermath {
        match (state.phase, event.kind) {
            (_, EventKind::TimewaitExit | EventKind::AddrChange) => Aftermath::default(),
            (Phase::Connecting, EventKind::AddrResolved) => match &state.id {
                Some(id) if id.resolve_route(RESOLVE_TIMEOUT_MS).is_err() => {
                    state.connect_failed(Status::HOST_UNREACHABLE)
                }
                _ => Aftermath::default(),
            },
            (Phase::Connecting, EventKind::RouteResolved) => self.send_request(state),
            (Phase::Connecting, EventKind::ConnectResponse | EventKind::Established) => {
                state.terms = self.agreed(&state.terms, event.terms);
                state.phase = Phase::Replied;
                let mut after = Aftermath::default();
                after.complete(state.establishing.take(), Status::SUCCESS);
                after
            }
            (Phase::Connecting, _) => {
                let status = event.connect_failure();
                state.terms = event.terms;
                state.connect_failed(status)
            }
            (Phase::Accepting, EventKind::Established) => {
                self.set_connected(state);
                let mut after = Aftermath::default();
                after.complete(state.establishing.take(), Status::SUCCESS);
                after
            }
            // The peer may use and leave the connection before it is known here to be up.
            (Phase::Accepting, EventKind::Disconnected) => {
                let established = state.establishing.take();
                let mut after = state.close(End::Peer);
                after.completions.splice(0..0, established.map(|request| (request, Status::SUCCESS)));
                after
            }
            (Phase::Accepting, _) => state.accept_failed(event.connect_failure()),
            (Phase::Connected, EventKind::Disconnected) => {
                self.file().no_more_events();
                state.close(End::Peer)
            }
            (Phase::Disconnecting, EventKind::Disconnected) => {
                self.file().no_more_events();
                let timed_out = event.status == -libc::ETIMEDOUT;
                let request = state.disconnecting.take();
                let mut after = state.close(End::Local);
                after.hang_up = None;
                after.complete(request, if timed_out { Status::IO_TIMEOUT } else { Status::SUCCESS });
                after
            }
            (Phase::Requested | Phase::Replied, EventKind::ConnectResponse | EventKind::Established) => {
                Aftermath::default()
            }
            (Phase::Requested | Phase::Replied, _) => state.close(End::Abandoned),
            _ => Aftermath::default(),
        }
    }

    /// What holds after the peer's answer: no more than either side said.
    fn agreed(&self, mine: &Terms, mut peer: Terms) -> Terms {
        if self.adapter().limits().quirks.reply_limits_swapped {
            std::mem::swap(&mut peer.inbound_reads, &mut peer.outbound_reads);
        }
        Terms {
            private_data: peer.private_data,
            inbound_reads: mine.inbound_reads.min(peer.inbound_reads),
            outbound_reads: mine.outbound_reads.min(peer.outbound_reads),
        }
    }
}

/// The connection parameters that `terms` come to.
fn param<'a>(core: &Core, terms: &'a Terms) -> ConnectParam<'a> {
    ConnectParam {
        private_data: &terms.private_data,
        responder_resources: terms.inbound_reads as u8,
        initiator_depth: terms.outbound_reads as u8,
        retry_count: RETRIES,
        rnr_retry_count: if core.is_shared() { FOR_EVER } else { RECEIVER_NOT_READY_RETRIES },
        srq: core.is_shared(),
        qp_num: core.number(),
    }
}

impl ConnectionHandler for Connector {
    fn event(&self, event: Event) {
        let happening = Happening::new(&event);
        // Destroying an id waits for its events to be acknowledged, and an event may bring that about.
        drop(event);
        tracing::debug!(kind = ?happening.kind, status = happening.status, "connection event");
        if happening.kind == EventKind::DeviceRemoval {
            return self.adapter().removed();
        }
        let mut state = self.lock();
        let after = self.happened(&mut state, happening);
        drop(state);
        after.run();
    }
}

impl Removable for Connector {
    fn device_removed(self: Arc<Self>) {
        let mut state = self.lock();
        if matches!(state.phase, Phase::Connected | Phase::Disconnecting) {
            self.file().no_more_events();
        }
        let after = state.device_removed();
        drop(state);
        after.run();
    }
}

impl Canceller for Connector {
    fn cancel(&self, ov: Option<*mut Overlapped>) -> usize {
        let mut state = self.lock();
        let requests = state.take_requests(ov);
        let establishing = matches!(state.phase, Phase::Connecting | Phase::Accepting);
        let after = match state.phase {
            Phase::Connecting if state.establishing.is_none() => state.connect_failed(Status::CANCELED),
            Phase::Accepting if state.establishing.is_none() => state.accept_failed(Status::CANCELED),
            _ => Aftermath::default(),
        };
        if establishing && state.establishing.is_none() {
            state.phase = Phase::Closed(End::Local);
        }
        drop(state);
        let count = requests.len();
        for request in requests {
            Request::complete(request, Status::CANCELED.0, 0);
        }
        after.run();
        count
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        self.close();
    }
}
