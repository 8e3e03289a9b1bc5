//! The active side of a connection: `Connect`, `CompleteConnect`, and the steps that rdma_cm events ask for in between.

use super::binding::{RESOLVE_TIMEOUT, is_port_taken, resolve_address};
use super::establishing::param;
use super::{Connector, Offer};
use crate::control::connection::{Deferred, State, Terms};
use crate::control::endpoint;
use crate::control::phase::{End, Peer, Phase};
use crate::control::shared_endpoint::SharedEndpoint;
use crate::data::queue_pair::{Core, QueuePair};
use crate::device::connection_channel::Cookie;
use crate::diagnosis::{Evidence, FailedConnect};
use crate::status::{Result, Status};
use crate::sync::worker;
use crate::verbs::{self, Id, SockAddr};
use std::io;
use std::sync::{Arc, mpsc};
use win32::io::Overlapped;

/// How many other ports `Connect` tries if TCP already uses the port that rdma_cm has chosen.
const OTHER_PORTS: u8 = 32;

impl Connector {
    /// Requests a connection with the peer at `destination` (`IND2Connector::Connect`). Completes when the peer has
    /// answered.
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; `ND_INVALID_BUFFER_SIZE` for too much private data;
    /// `ND_BAD_NETWORK_NAME` for a wildcard as destination; `ND_INVALID_PARAMETER_1` for a queue pair of another adapter;
    /// `ND_ADDRESS_NOT_ASSOCIATED` before `Bind`; `ND_CONNECTION_ACTIVE` if the connector or the queue pair has a
    /// connection; `ND_INVALID_DEVICE_STATE` if the connector is in a pending `GetConnectionRequest`, or its connection has
    /// ended; `ND_NETWORK_UNREACHABLE` or `ND_HOST_UNREACHABLE` without a route to the peer; `ND_TOO_MANY_ADDRESSES` if no
    /// port is free; `ND_INVALID_ADDRESS` if the device no longer has the local address. A request that fails later
    /// completes with `ND_CONNECTION_REFUSED`, `ND_IO_TIMEOUT`, `ND_HOST_UNREACHABLE`, `ND_NETWORK_UNREACHABLE`,
    /// `ND_CONNECTION_ABORTED`, `ND_CANCELED` or `ND_DEVICE_REMOVED`.
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
        let core = self.check_connect(queue_pair, destination, offer)?;
        let mut state = self.lock();
        if state.phase == Phase::Idle {
            return Err(Status::ADDRESS_NOT_ASSOCIATED);
        }
        // SAFETY: the caller keeps `ov` valid until the request completes.
        let asked = unsafe { self.start_connect(&mut state, core, destination, offer, ov) };
        drop(state);
        asked.map_err(|status| self.not_connecting(destination, status))
    }

    /// As [`connect`](Self::connect), from the address of `endpoint`, which the connector keeps in use until it is closed
    /// (`INDCompatConnector::ConnectWithSharedEndpoint`, an extension).
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect); `ND_INVALID_PARAMETER_2` for an endpoint of another adapter;
    /// `ND_INVALID_DEVICE_STATE` if the endpoint is closed; `STATUS_ADDRESS_ALREADY_ASSOCIATED` if the connector has another
    /// address; `ND_ADDRESS_ALREADY_EXISTS` if another connector of the endpoint connects to `destination`.
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub unsafe fn connect_with_shared_endpoint(
        &self,
        queue_pair: &QueuePair,
        endpoint: &SharedEndpoint,
        destination: SockAddr,
        offer: Offer<'_>,
        ov: *mut Overlapped,
    ) -> Result<()> {
        let core = self.check_connect(queue_pair, destination, offer)?;
        if !Arc::ptr_eq(endpoint.adapter(), self.adapter()) {
            return Err(Status::INVALID_PARAMETER_2);
        }
        let endpoint = endpoint.endpoint()?;
        let mut state = self.lock();
        match &state.endpoint {
            Some(own) if Arc::ptr_eq(own, &endpoint) => {}
            None if state.phase == Phase::Idle => {
                let bound = endpoint.id().local_addr().ok_or(Status::INVALID_DEVICE_STATE)?;
                let cookie = self.next_cookie(&mut state);
                let id = endpoint::bind_again(&self.file, cookie, bound).map_err(Status::of_host)?;
                (state.id, state.address.bound) = (Some(Arc::new(id)), Some(bound));
                state.endpoint = Some(endpoint);
                state.phase = Phase::Bound;
            }
            _ => return Err(Status::ADDRESS_ALREADY_ASSOCIATED),
        }
        // SAFETY: the caller keeps `ov` valid until the request completes.
        let asked = unsafe { self.start_connect(&mut state, core, destination, offer, ov) };
        drop(state);
        asked.map_err(|status| self.not_connecting(destination, status))
    }

    /// Logs an attempt to connect that has failed at once, and returns its status. Called without any lock.
    fn not_connecting(&self, destination: SockAddr, status: Status) -> Status {
        let status = self.address_or_device_gone(status);
        let (destination, device) = (Some(destination), self.adapter().device_name());
        FailedConnect { destination, device, status, evidence: Evidence::of_call(status) }.report();
        status
    }

    /// Checks the arguments of a `Connect`, and returns the core of the queue pair.
    fn check_connect<'a>(
        &self,
        queue_pair: &'a QueuePair,
        destination: SockAddr,
        offer: Offer<'_>,
    ) -> Result<&'a Arc<Core>> {
        self.adapter().check()?;
        if offer.private_data.len() > self.adapter().limits().info.max_caller_data as usize {
            return Err(Status::INVALID_BUFFER_SIZE);
        }
        if destination.ip().is_unspecified() {
            return Err(Status::BAD_NETWORK_NAME);
        }
        self.core_of(queue_pair)
    }

    /// Begins the request and starts to resolve the peer's address. Events do the rest.
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    unsafe fn start_connect(
        &self,
        state: &mut State,
        core: &Arc<Core>,
        destination: SockAddr,
        offer: Offer<'_>,
        ov: *mut Overlapped,
    ) -> Result<()> {
        match state.phase {
            // The SPI lets a connector connect again after a rejection by the peer.
            Phase::Bound | Phase::Refused(End::Peer) => {}
            Phase::Awaiting | Phase::Closed(_) => return Err(Status::INVALID_DEVICE_STATE),
            _ => return Err(Status::CONNECTION_ACTIVE),
        }
        let (id, bound) = self.id_for_connect(state)?;
        let destination = verbs::scoped(verbs::scoped_like(destination, bound));
        if self.adapter().routes().are_missing(bound, destination) {
            return Err(io::Error::from_raw_os_error(libc::ENETUNREACH).into());
        }
        if let Some(endpoint) = &state.endpoint {
            endpoint.take_destination(self.cookie, destination)?;
        }
        let leave = || {
            if let Some(endpoint) = &state.endpoint {
                endpoint.leave_destination(self.cookie);
            }
        };
        core.attach(self.this.clone() as _).inspect_err(|_| leave())?;
        if let Err(error) = resolve_address(&id, bound, destination) {
            core.detach();
            leave();
            let status = match Status::from_io(&error) {
                Status::INVALID_PARAMETER | Status::UNSUCCESSFUL => Status::HOST_UNREACHABLE,
                // With port 0, rdma_cm has found no free port.
                Status::SHARING_VIOLATION if bound.port() == 0 => Status::TOO_MANY_ADDRESSES,
                status => status,
            };
            return Err(status.because(&error));
        }
        state.terms = self.terms(offer);
        state.address.other_ports = if state.address.any_port { OTHER_PORTS } else { 0 };
        state.id = Some(id);
        state.address.bound = Some(bound);
        state.core = Some(core.clone());
        state.phase = Phase::Connecting;
        // SAFETY: the caller keeps `ov` valid until the request completes.
        state.establishing = Some(unsafe { self.requests.begin(self.file(), ov) });
        tracing::debug!(target: "ndcompat::connection", connector = self.cookie.number(), qp = core.number(), %bound, %destination,
            "Connect");
        Ok(())
    }

    /// Resolves the route, once the peer's address is resolved and the local port is chosen.
    pub(super) fn resolve_route(&self, state: &mut State) -> Deferred {
        let Some(id) = &state.id else { return Deferred::default() };
        if let Err(error) = id.resolve_route(RESOLVE_TIMEOUT) {
            let status = Status::HOST_UNREACHABLE.because(&error);
            return self.connect_failed(state, status, Evidence::of_call(status));
        }
        if state.address.bound.is_some_and(|bound| bound.port() == 0) {
            state.address.bound = id.local_addr();
        }
        Deferred::default()
    }

    /// Establishes the connection that the peer has accepted (`IND2Connector::CompleteConnect`). The request completes
    /// before the call returns.
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; `ND_CONNECTION_INVALID` unless a peer has accepted;
    /// `ND_CONNECTION_ABORTED` if the peer has disconnected since; `ND_IO_TIMEOUT` if it cannot be reached.
    ///
    /// # Safety
    /// `ov` must be valid.
    pub unsafe fn complete_connect(&self, ov: *mut Overlapped) -> Result<()> {
        self.adapter().check()?;
        let mut state = self.lock();
        let peer = match state.phase {
            Phase::Replied(peer) => peer,
            Phase::Closed(_) => return Err(Status::CONNECTION_ABORTED),
            _ => return Err(Status::CONNECTION_INVALID),
        };
        let (Some(id), Some(core)) = (state.id.clone(), state.core.clone()) else {
            return Err(Status::CONNECTION_INVALID);
        };
        if !self.is_iwarp() {
            self.make_ready(&id, &core, &state.terms)?;
            id.establish().map_err(|error| Status::IO_TIMEOUT.because(&error))?;
        } else {
            core.has_receives();
        }
        self.set_ready(&core, &state.terms);
        let ended = match peer {
            Peer::There => {
                self.set_connected(&mut state);
                Deferred::default()
            }
            // The connection was established, and the peer's messages have arrived: keep them.
            Peer::Gone => state.peer_disconnected(),
        };
        drop(state);
        // SAFETY: the caller keeps `ov` valid until the request completes.
        unsafe { self.requests.begin(self.file(), ov) }.complete(Status::SUCCESS.0, 0);
        ended.run();
        Ok(())
    }

    /// Sends the connection request (`rdma_connect`), once the route is resolved.
    pub(super) fn send_request(&self, state: &mut State) -> Deferred {
        let (Some(id), Some(core)) = (state.id.clone(), state.core.clone()) else {
            return Deferred::default();
        };
        if !self.adapter().context().is_named(id.verbs()) {
            return self.connect_failed(state, Status::INVALID_ADDRESS, Evidence::default());
        }
        let sent = if self.is_iwarp() {
            self.send_request_from_worker(state, id, core)
        } else {
            core.use_path(&id).and_then(|()| id.connect(param(&core, &state.terms))).map_err(Status::from)
        };
        match sent {
            Ok(()) => Deferred::default(),
            Err(status) => self.connect_failed(state, status, Evidence::of_call(status)),
        }
    }

    /// Calls `rdma_connect` on a worker, as an iWARP driver may connect its TCP socket in the call, for minutes. After a
    /// time-out or a cancellation, the worker keeps the id until the call returns.
    fn send_request_from_worker(&self, state: &mut State, id: Arc<Id>, core: Arc<Core>) -> Result<()> {
        // For the next attempt, which may need the address: during `rdma_connect` it cannot be set.
        id.set_reuse_addr(true).map_err(Status::of_host)?;
        let this = self.this.clone();
        let terms = Terms { private_data: state.terms.private_data.clone(), ..state.terms };
        let cookie = Cookie(id.cookie());
        let (returned, in_driver) = mpsc::channel();
        core.expect_receives();
        let connect = move || {
            let connected = id.connect(param(&core, &terms));
            if let Some(this) = this.upgrade() {
                this.request_sent(id, connected);
            } else {
                drop(id);
            }
            // After the id: the driver uses the queue pair until the id is destroyed.
            drop(core);
            drop(returned);
        };
        worker::run(connect).map_err(|error| {
            tracing::warn!(target: "ndcompat::connection", %error, "no thread to connect from");
            Status::INSUFFICIENT_RESOURCES
        })?;
        state.in_driver = Some(in_driver);
        // Without the time limit, the attempt lasts until the driver gives up.
        if let Err(error) = self.channel()?.limit(cookie) {
            tracing::warn!(target: "ndcompat::connection", %error, "no limit for connecting");
        }
        Ok(())
    }

    /// Handles the return of `rdma_connect` on the worker.
    fn request_sent(&self, id: Arc<Id>, connected: io::Result<()>) {
        let mut state = self.lock();
        // The attempt was given up meanwhile.
        if !state.id.as_ref().is_some_and(|current| Arc::ptr_eq(current, &id)) {
            return;
        }
        state.in_driver = None;
        let Err(error) = connected else {
            // The connector holds the id, too, and destroys it when it is closed.
            drop(id);
            return;
        };
        if state.phase != Phase::Connecting || self.connect_from_another_port(&mut state, &error) {
            return;
        }
        let status = match error.raw_os_error() {
            _ if is_port_taken(&error) => Status::ADDRESS_ALREADY_EXISTS.because(&error),
            // The arguments were valid: the connection has failed.
            Some(libc::EINVAL | libc::EPROTO) => Status::CONNECTION_ABORTED.because(&error),
            _ => error.into(),
        };
        // There is no private data of a peer.
        state.terms = Terms::default();
        let mut deferred = self.connect_failed(&mut state, status, Evidence::of_call(status));
        drop(state);
        // The driver has returned, so destroying the id does not block.
        deferred.destroy = deferred.destroy_slowly.take().map(|(id, _)| id);
        deferred.run();
    }
}
