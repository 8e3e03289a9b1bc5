//! Events of a connector: performs the steps of the transition table in `phase`.

use super::Connector;
use crate::control::connection::{ConnectionEvent, Deferred, State, Terms};
use crate::control::phase::{Cause, End, Peer, Phase, Step};
use crate::data::queue_pair::Connection;
use crate::device::connection_channel::{ConnectionHandler, Cookie};
use crate::status::Status;
use crate::verbs::{Event, EventKind};

impl Connector {
    /// Performs the step for `cause`. `event` is the rdma_cm event, if there is one. Called without any lock.
    pub(super) fn handle(&self, cause: Cause, event: Option<ConnectionEvent>) {
        let _step = self.steps.hold();
        let mut state = self.lock();
        let deferred = self.advance(&mut state, cause, event);
        drop(state);
        deferred.run();
    }

    /// As [`handle`](Self::handle), with the lock held. The caller runs the result after it has released the lock.
    pub(super) fn advance(
        &self,
        state: &mut State,
        cause: Cause,
        event: Option<ConnectionEvent>,
    ) -> Deferred {
        let was_up = matches!(state.phase, Phase::Connected | Phase::Disconnecting);
        let step = state.phase.step(cause, self.is_iwarp());
        let mut deferred = self.perform(step, state, cause, event);
        if was_up && matches!(state.phase, Phase::Closed(_)) {
            self.file().no_more_events();
        }
        if cause == Cause::DeviceRemoved {
            // A removed device cannot disconnect.
            deferred.disconnect = None;
        }
        deferred
    }

    fn perform(
        &self,
        step: Step,
        state: &mut State,
        cause: Cause,
        event: Option<ConnectionEvent>,
    ) -> Deferred {
        let mut deferred = Deferred::default();
        match step {
            Step::Ignore => {}
            Step::ResolveRoute => return self.resolve_route(state),
            Step::SendRequest => return self.send_request(state),
            Step::Reply => {
                let terms = event.map(|event| event.terms).unwrap_or_default();
                state.terms = self.agreed(&state.terms, terms);
                state.phase = Phase::Replied(Peer::There);
                deferred.complete(state.establishing.take(), Status::SUCCESS);
            }
            Step::FailConnect => {
                let status = failure(cause, event.as_ref());
                let evidence = event
                    .as_ref()
                    .map(|event| event.evidence(self.is_iwarp(), self.is_emulator()))
                    .unwrap_or_default();
                // A rejection may carry private data.
                state.terms = event.map(|event| event.terms).unwrap_or_default();
                return self.connect_failed(state, status, evidence);
            }
            Step::PeerLeft => state.phase = Phase::Replied(Peer::Gone),
            Step::RefusePeer => {
                deferred = state.close(End::Local);
                self.destroy_id(state, &mut deferred);
            }
            Step::Establish if state.has_failed => {
                let established = state.establishing.take();
                deferred = state.close(End::Peer);
                deferred.complete_first(established, Status::SUCCESS);
            }
            Step::Establish => {
                self.set_connected(state);
                deferred.complete(state.establishing.take(), Status::SUCCESS);
            }
            Step::NoteFailure => state.has_failed = true,
            Step::EstablishAndLose => {
                let established = state.establishing.take();
                deferred = state.peer_disconnected();
                deferred.complete_first(established, Status::SUCCESS);
            }
            Step::FailAccept => {
                let status = failure(cause, event.as_ref());
                state.terms = terms_of_refusal(event);
                deferred = state.accept_failed(status);
                if matches!(cause, Cause::Cancelled | Cause::Released) {
                    // The peer has the answer, and would be connected to a queue pair that is not there.
                    deferred.disconnect = state.id.clone();
                    self.destroy_id(state, &mut deferred);
                }
            }
            Step::Abandon => {
                state.terms = terms_of_refusal(event);
                return state.close(End::Abandoned);
            }
            Step::Lose => match cause {
                Cause::Event(EventKind::Disconnected) | Cause::QueuePairFlushed => {
                    return state.peer_disconnected();
                }
                _ => return state.close(End::Peer),
            },
            Step::FinishDisconnect => {
                let status = match event {
                    Some(event) => event.disconnect_status(),
                    None => Status::DEVICE_REMOVED,
                };
                let request = state.disconnecting.take();
                deferred = state.close(End::Local);
                // Not over iWARP, the event may be the peer's own request to disconnect, if this side's was lost. Calling
                // `rdma_disconnect` again answers that; after the peer's answer it does nothing.
                if self.is_iwarp() {
                    deferred.disconnect = None;
                }
                deferred.complete(request, status);
            }
            Step::Close => return state.close(End::Local),
            Step::Flush => deferred.flush = state.core.take(),
        }
        deferred
    }

    /// Destroys the id of a connection that is not established on this side, which rejects the peer. Over iWARP the connection is up, and
    /// is disconnected.
    fn destroy_id(&self, state: &mut State, deferred: &mut Deferred) {
        deferred.disconnect.take_if(|_| !self.is_iwarp());
        deferred.destroy = state.id.take();
    }

    /// The terms of the connection: the lower limit of both sides.
    fn agreed(&self, mine: &Terms, mut peer: Terms) -> Terms {
        if self.adapter().limits().quirks.reply_limits_swapped {
            std::mem::swap(&mut peer.inbound_reads, &mut peer.outbound_reads);
        }
        Terms {
            private_data: peer.private_data,
            inbound_reads: mine.inbound_reads.min(peer.inbound_reads),
            outbound_reads: mine.outbound_reads.min(peer.outbound_reads),
            peer_shares: peer.peer_shares,
        }
    }
}

/// The terms after the peer has given up: only the private data of its rejection, if it has rejected.
fn terms_of_refusal(event: Option<ConnectionEvent>) -> Terms {
    let refusal = event.filter(|event| event.kind == EventKind::Rejected);
    refusal.map(|event| event.terms).unwrap_or_default()
}

/// The status of a `Connect` or `Accept` that fails.
fn failure(cause: Cause, event: Option<&ConnectionEvent>) -> Status {
    match (cause, event) {
        (_, Some(event)) => event.connect_failure(),
        (Cause::TimedOut, None) => Status::IO_TIMEOUT,
        (Cause::DeviceRemoved, None) => Status::DEVICE_REMOVED,
        _ => Status::CANCELED,
    }
}

impl ConnectionHandler for Connector {
    fn event(&self, event: Event) {
        let (copy, of) = (ConnectionEvent::new(&event), Cookie(event.cookie()));
        // Acknowledge first: handling the event may destroy the id, which waits for all its events to be acknowledged.
        drop(event);
        tracing::debug!(target: "ndcompat::connection", connector = of.number(), kind = ?copy.kind, status = copy.status,
            "event of the connection manager");
        match copy.kind {
            EventKind::DeviceRemoval => return self.adapter().removed(),
            EventKind::AddrResolved
            | EventKind::RouteResolved
            | EventKind::ConnectRequest
            | EventKind::ConnectResponse
            | EventKind::Established => {}
            // After a removal, other events are its consequences: the removal handler ends the connection.
            _ => {
                if self.adapter().is_gone() {
                    return;
                }
            }
        }
        let _step = self.steps.hold();
        let mut state = self.lock();
        // Ignore events of an earlier id.
        if state.id.as_ref().is_none_or(|id| id.cookie() != of.0) {
            return;
        }
        let deferred = self.advance(&mut state, Cause::Event(copy.kind), Some(copy));
        drop(state);
        deferred.run();
    }

    fn timed_out(&self, id: Cookie) {
        let _step = self.steps.hold();
        let mut state = self.lock();
        if state.in_driver.is_none() || state.id.as_ref().is_none_or(|current| current.cookie() != id.0) {
            return;
        }
        let deferred = self.advance(&mut state, Cause::TimedOut, None);
        drop(state);
        deferred.run();
    }
}

impl Connection for Connector {
    fn wait_for_calls(&self) {
        drop(self.lock());
    }

    fn released(&self) {
        self.handle(Cause::Released, None);
    }

    fn failed(&self) {
        self.handle(Cause::QueuePairFailed, None);
    }

    fn flushed(&self) {
        self.handle(Cause::QueuePairFlushed, None);
    }
}
