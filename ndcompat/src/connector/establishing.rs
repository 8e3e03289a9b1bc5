//! Bringing a connection up: asking, answering, and readying the queue pair.

use super::binding::{is_port_taken, look_for_peer};
use super::{Connector, Offer};
use crate::connection::{Aftermath, Asking, End, Phase, State, Terms};
use crate::endpoint::{self, SharedEndpoint};
use crate::patience::with_limit;
use crate::queue_pair::{Core, QueuePair};
use crate::status::{Result, Status};
use crate::verbs::bindings::{IBV_QPS_RTR, IBV_QPS_RTS};
use crate::verbs::{ConnectParam, Id, SockAddr};
use crate::worker;
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use win32::io::Overlapped;

/// How long looking up an address or a route may take.
pub(super) const RESOLVE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a driver may take to reach a silent peer, where reaching it is one long system call.
const CONNECT_LIMIT: Duration = Duration::from_secs(15);
// Otherwise a worker without work would be interrupted.
const _: () = assert!(CONNECT_LIMIT.as_secs() > worker::LINGER.as_secs());
/// How many other ports are tried if TCP does not let go of the one that rdma_cm has chosen.
const OTHER_PORTS: u8 = 32;
/// How often a message is sent again that met no receive; with the pause below, about a second in all.
const RECEIVER_NOT_READY_RETRIES: u8 = 6;
/// The pause that a receiver without a receive asks for: code 28 is 163.84 ms.
const RECEIVER_NOT_READY_TIMER: u8 = 28;
/// An empty shared receive queue is refilled sooner or later: senders keep trying, ...
const FOR_EVER: u8 = 7;
/// ... every 0.64 ms.
const SHARED_NOT_READY_TIMER: u8 = 12;
/// How often a message without an acknowledgement is sent again. Not 7, the most there is: rxe takes that for ever.
const RETRIES: u8 = 6;

impl Connector {
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
        let core = self.check_connect(queue_pair, destination, offer)?;
        let mut state = self.lock();
        if state.phase == Phase::Idle {
            return Err(Status::ADDRESS_NOT_ASSOCIATED);
        }
        // SAFETY: passed on to the caller.
        let asked = unsafe { self.ask(&mut state, core, destination, offer, ov) };
        drop(state);
        asked.map_err(|status| self.what_is_gone(status))
    }

    /// As [`connect`](Self::connect), from the address of `endpoint`, which this connector then holds until it is closed (an
    /// extension: `ConnectWithSharedEndpoint`). `ND_ADDRESS_ALREADY_EXISTS`: another connector has connected it with
    /// `destination`.
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
                let id = endpoint::bind_again(&self.file, self.cookie, bound).map_err(Status::of_host)?;
                (state.id, state.bound) = (Some(Arc::new(id)), Some(bound));
                state.endpoint = Some(endpoint);
                state.phase = Phase::Bound;
            }
            _ => return Err(Status::ADDRESS_ALREADY_ASSOCIATED),
        }
        // SAFETY: passed on to the caller.
        let asked = unsafe { self.ask(&mut state, core, destination, offer, ov) };
        drop(state);
        asked.map_err(|status| self.what_is_gone(status))
    }

    /// What can be said about a `Connect` whatever the state; the core of the queue pair.
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
        self.own(queue_pair)
    }

    /// Begins to ask the peer for a connection, from where the connector is bound.
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    unsafe fn ask(
        &self,
        state: &mut State,
        core: &Arc<Core>,
        destination: SockAddr,
        offer: Offer<'_>,
        ov: *mut Overlapped,
    ) -> Result<()> {
        match state.phase {
            // A refusal ends the attempt only, as the SPI says; one of this side's own is for good.
            Phase::Bound | Phase::Refused(End::Peer) => {}
            Phase::Awaiting | Phase::Closed(_) => return Err(Status::INVALID_DEVICE_STATE),
            _ => return Err(Status::CONNECTION_ACTIVE),
        }
        let (id, bound) = self.id_to_ask_with(state)?;
        if self.adapter().routes().lead_nowhere(bound, destination) {
            return Err(Status::NETWORK_UNREACHABLE);
        }
        if let Some(endpoint) = &state.endpoint {
            endpoint.take_destination(self.cookie, destination)?;
        }
        let leave = || {
            if let Some(endpoint) = &state.endpoint {
                endpoint.leave_destination(self.cookie);
            }
        };
        core.attach(&self.this).inspect_err(|_| leave())?;
        if let Err(error) = look_for_peer(&id, bound, destination) {
            core.detach();
            leave();
            return Err(match Status::from(error) {
                Status::INVALID_PARAMETER | Status::UNSUCCESSFUL => Status::HOST_UNREACHABLE,
                // There is a port to be had, or there is not.
                Status::SHARING_VIOLATION if bound.port() == 0 => Status::TOO_MANY_ADDRESSES,
                status => status,
            });
        }
        state.terms = self.terms(offer);
        state.other_ports = if state.any_port { OTHER_PORTS } else { 0 };
        (state.id, state.asking) = (Some(id), Asking::Not);
        state.bound = Some(bound);
        state.core = Some(core.clone());
        state.phase = Phase::Connecting;
        // SAFETY: passed on to the caller.
        state.establishing = Some(unsafe { self.file().begin(ov) });
        Ok(())
    }

    /// The neighbour on the way to the peer is known, and with it the local port: looks for the rest of the way.
    pub(super) fn look_for_path(&self, state: &mut State) -> Aftermath {
        let Some(id) = &state.id else { return Aftermath::default() };
        if id.resolve_route(RESOLVE_TIMEOUT).is_err() {
            return self.connect_failed(state, Status::HOST_UNREACHABLE);
        }
        if state.bound.is_some_and(|bound| bound.port() == 0) {
            state.bound = id.local_addr();
        }
        Aftermath::default()
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
            state.phase = Phase::Refused(End::Local);
            after.hang_up = Some(id);
            drop(state);
            after.run();
            return Ok(());
        }
        if let Some(core) = state.core.take() {
            core.detach();
        }
        state.phase = Phase::Refused(End::Local);
        drop(state);
        id.reject(private_data).map_err(|_| Status::CONNECTION_ABORTED)
    }

    /// Moves the queue pair to where it can send and receive.
    fn make_ready(&self, id: &Id, core: &Core, terms: &Terms) -> Result<()> {
        core.use_port(id.port_num())?;
        // A peer that is gone has taken with it what the queue pair needs to know.
        let attributes = |state| {
            id.init_qp_attr(state).map_err(|error| match error.into() {
                Status::INVALID_PARAMETER => Status::CONNECTION_ABORTED,
                status => status,
            })
        };
        let (mut attr, mask) = attributes(IBV_QPS_RTR)?;
        attr.max_dest_rd_atomic = terms.inbound_reads as u8;
        attr.min_rnr_timer = if core.is_shared() { SHARED_NOT_READY_TIMER } else { RECEIVER_NOT_READY_TIMER };
        core.qp.modify(&attr, mask)?;
        let (mut attr, mask) = attributes(IBV_QPS_RTS)?;
        attr.max_rd_atomic = terms.outbound_reads as u8;
        // The connecting side's wish, which may be that of a program that does not know rxe.
        attr.retry_cnt = attr.retry_cnt.min(RETRIES);
        core.qp.modify(&attr, mask)?;
        Ok(())
    }

    pub(super) fn set_connected(&self, state: &mut State) {
        state.phase = Phase::Connected;
        self.file().expect_events();
    }

    /// The way to the peer is known: ask it.
    pub(super) fn send_request(&self, state: &mut State) -> Aftermath {
        let (Some(id), Some(core)) = (state.id.clone(), state.core.clone()) else {
            return Aftermath::default();
        };
        if id.verbs() != self.adapter().context().as_ptr() {
            return self.connect_failed(state, Status::INVALID_ADDRESS);
        }
        if self.is_iwarp() {
            return self.send_request_from_worker(state, id, core);
        }
        let sent = core.use_port(id.port_num()).and_then(|()| Ok(id.connect(param(&core, &state.terms))?));
        match sent {
            Ok(()) => Aftermath::default(),
            Err(status) => self.connect_failed(state, status),
        }
    }

    /// An iWARP driver may connect its TCP socket, for minutes, inside the call.
    fn send_request_from_worker(&self, state: &mut State, id: Arc<Id>, core: Arc<Core>) -> Aftermath {
        let this = self.this.clone();
        let terms = Terms { private_data: state.terms.private_data.clone(), ..state.terms };
        let ask = move || {
            let connected = with_limit(CONNECT_LIMIT, || id.connect(param(&core, &terms)));
            let Some(this) = this.upgrade() else { return };
            let mut state = this.lock();
            // Another attempt may have another one by now.
            if !state.id.as_ref().is_some_and(|current| Arc::ptr_eq(current, &id)) {
                return;
            }
            if mem::replace(&mut state.asking, Asking::Not) == Asking::InVain {
                this.renew_id(&mut state, Some(&id));
                return;
            }
            let Err(error) = connected else { return };
            if state.phase != Phase::Connecting {
                return;
            }
            if this.ask_from_another_port(&mut state, &error) {
                return;
            }
            let status = match error.raw_os_error() {
                Some(libc::EINTR) => Status::IO_TIMEOUT,
                _ if is_port_taken(&error) => Status::ADDRESS_ALREADY_EXISTS,
                // Nothing that was passed can be wrong by now: the peer or the connection is gone.
                Some(libc::EINVAL | libc::EPROTO) => Status::CONNECTION_ABORTED,
                _ => error.into(),
            };
            let after = this.connect_failed(&mut state, status);
            drop(state);
            after.run();
        };
        state.asking = Asking::InDriver;
        match worker::run(ask) {
            Ok(()) => Aftermath::default(),
            Err(error) => {
                state.asking = Asking::Not;
                tracing::warn!(%error, "no thread to connect from");
                self.connect_failed(state, Status::INSUFFICIENT_RESOURCES)
            }
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
