//! The state of a connector, its copy of rdma_cm events, and the work deferred until its lock is released.

use crate::cause;
use crate::control::endpoint::Endpoint;
use crate::control::phase::{End, Phase};
use crate::data::notification::Requests;
use crate::data::queue_pair::Core;
use crate::diagnosis::{Evidence, FailedConnect, Refuser};
use crate::status::Status;
use crate::sync::worker;
use crate::verbs::{Event, EventKind, Id, SockAddr};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use win32::io::{CancelScope, Request};

/// The parameters that one side passes to the other in `Connect`, `Accept` or `Reject`.
#[derive(Default)]
pub(crate) struct Terms {
    pub private_data: Vec<u8>,
    /// How many reads the peer may have outstanding.
    pub inbound_reads: u32,
    /// How many reads this side may have outstanding.
    pub outbound_reads: u32,
    /// The peer's receives come from a shared queue.
    pub peer_shares: bool,
}

/// A copy of an rdma_cm event, so that the event can be acknowledged before it is handled.
pub(crate) struct ConnectionEvent {
    pub kind: EventKind,
    pub status: i32,
    pub terms: Terms,
}

/// The InfiniBand rejection reason of a rejection by a program (`IB_CM_REJ_CONSUMER_DEFINED`).
const REJECTED_BY_CONSUMER: i32 = 28;

/// Whether the event is a rejection by the peer's connection manager, as nobody listens.
fn is_refusal_of_nobody(kind: EventKind, status: i32) -> bool {
    kind == EventKind::Rejected && status > 0 && status != REJECTED_BY_CONSUMER
}

impl ConnectionEvent {
    pub(crate) fn new(event: &Event) -> ConnectionEvent {
        let (kind, status) = (event.kind(), event.status());
        // The private data of a rejection by the connection manager is padding. Over iWARP, the status is an errno instead
        // of a reason.
        let by_no_program = is_refusal_of_nobody(kind, status);
        let terms = Terms {
            private_data: if by_no_program { Vec::new() } else { event.private_data().to_vec() },
            inbound_reads: event.responder_resources().into(),
            outbound_reads: event.initiator_depth().into(),
            peer_shares: event.peer_shares(),
        };
        ConnectionEvent { kind, status, terms }
    }

    /// The status of a `Connect` or `Accept` that fails by this event, which is its cause.
    pub(crate) fn connect_failure(&self) -> Status {
        let status = self.failure();
        cause::keep(status.0, cause::Cause::of_event(self.kind, self.status));
        status
    }

    fn failure(&self) -> Status {
        match self.kind {
            EventKind::Rejected => Status::CONNECTION_REFUSED,
            EventKind::AddrError | EventKind::RouteError => match -self.status {
                libc::ENETUNREACH | libc::ENETDOWN => Status::NETWORK_UNREACHABLE,
                _ => Status::HOST_UNREACHABLE,
            },
            EventKind::Unreachable => Status::IO_TIMEOUT,
            _ => match Status::from_errno(-self.status) {
                // EINVAL and EPROTO mean a failed handshake, not an invalid parameter.
                Status::UNSUCCESSFUL | Status::SUCCESS | Status::INVALID_PARAMETER => {
                    Status::CONNECTION_ABORTED
                }
                status => status,
            },
        }
    }

    /// The details of the failure, for the log.
    pub(crate) fn evidence(&self, is_iwarp: bool, is_emulator: bool) -> Evidence {
        let refuser = if self.kind != EventKind::Rejected || is_refusal_of_nobody(self.kind, self.status) {
            Refuser::Nobody
        } else if is_iwarp && self.terms.private_data.is_empty() {
            match -self.status {
                // On the emulator. Drivers have this errno for a port without a listener (cxgb4, erdma), or one for both.
                libc::ECONNRESET if is_emulator => Refuser::Somebody,
                _ => Refuser::Unknown,
            }
        } else {
            Refuser::Program
        };
        Evidence { refuser, event: Some((self.kind, self.status)), call: None }
    }

    /// The status of a `Disconnect` that completes by this event.
    pub(crate) fn disconnect_status(&self) -> Status {
        match -self.status {
            0 => Status::SUCCESS,
            libc::ETIMEDOUT => Status::IO_TIMEOUT,
            _ => Status::CONNECTION_ABORTED,
        }
    }
}

/// A connector's local address.
#[derive(Default)]
pub(crate) struct LocalAddress {
    /// The address, for this and later attempts to connect. Port 0 until connecting chooses one.
    pub bound: Option<SockAddr>,
    /// The listener's address that the program has bound to. `GetLocalAddress` returns it; the connection uses `bound`.
    pub of_listener: Option<SockAddr>,
    /// The program has bound to port 0.
    pub any_port: bool,
    /// How many other ports this attempt to connect may still try.
    pub other_ports: u8,
}

/// The state of a connector, under its lock.
pub(crate) struct State {
    pub phase: Phase,
    pub id: Option<Arc<Id>>,
    /// The number of the current id. Events carry the number of their id, so that those of earlier ids are ignored.
    pub ids: u16,
    /// iWARP: set while a worker is in `rdma_connect` with the id, which allows no other call. The channel disconnects when
    /// the worker drops the id.
    pub in_driver: Option<Receiver<Infallible>>,
    pub address: LocalAddress,
    /// The endpoint that the connector shares: the listener's, or that of a shared endpoint.
    pub endpoint: Option<Arc<Endpoint>>,
    /// The queue pair; after the end of the connection, until it is flushed.
    pub core: Option<Arc<Core>>,
    /// The queue pair has failed while `Accept` was pending.
    pub has_failed: bool,
    /// The pending `Connect` or `Accept`.
    pub establishing: Option<Request>,
    /// The pending `Disconnect`.
    pub disconnecting: Option<Request>,
    /// The pending `NotifyDisconnect` requests, oldest first.
    pub notify: Requests,
    /// Receives are flushed at the end of the connection even if a `NotifyDisconnect` is pending: see [`State::keeps_receives`].
    pub always_flushes: bool,
    pub terms: Terms,
    /// What is beneath the last `Connect` that has failed.
    pub cause: Option<cause::Cause>,
}

/// Work to do without the connector's lock: completing requests, flushing, disconnecting, destroying.
#[derive(Default)]
pub(crate) struct Deferred {
    /// The first request to complete. One is the common case, and needs no allocation.
    first: Option<(Request, Status)>,
    others: Vec<(Request, Status)>,
    /// A failed attempt to connect, for the log.
    pub failed: Option<FailedConnect>,
    /// A queue pair to flush, after the requests are completed.
    pub flush: Option<Arc<Core>>,
    /// A queue pair to shut down: its initiator requests are cancelled, its receives stay.
    pub shut_down: Option<Arc<Core>>,
    /// An id to disconnect, which also answers the peer's disconnect.
    pub disconnect: Option<Arc<Id>>,
    /// An id to destroy, which waits until all its events are acknowledged.
    pub destroy: Option<Arc<Id>>,
    /// An id to destroy on a worker, as the driver may block; then the queue pair is dropped.
    pub destroy_slowly: Option<(Arc<Id>, Option<Arc<Core>>)>,
}

impl Deferred {
    /// Adds a request to complete, after all others.
    pub(crate) fn complete(&mut self, request: Option<Request>, status: Status) {
        let Some(request) = request else { return };
        match self.first {
            None => self.first = Some((request, status)),
            Some(_) => self.others.push((request, status)),
        }
    }

    /// Adds a request to complete, before all others.
    pub(crate) fn complete_first(&mut self, request: Option<Request>, status: Status) {
        let Some(request) = request else { return };
        if let Some(second) = self.first.replace((request, status)) {
            self.others.insert(0, second);
        }
    }

    /// Does the work. Called without any lock.
    pub(crate) fn run(self) {
        if let Some(failed) = self.failed {
            failed.report();
        }
        for (request, status) in self.first.into_iter().chain(self.others) {
            request.complete(status.0, 0);
        }
        if let Some(core) = self.shut_down {
            core.shut_down();
        }
        if let Some(core) = self.flush {
            core.fail();
        }
        if let Some(id) = self.disconnect {
            // Fails if the connection has ended.
            let _ = id.disconnect();
        }
        if let Some(last) = self.destroy_slowly {
            // The id first: the driver uses the queue pair until the id is destroyed.
            if let Err(error) = worker::run(move || drop(last)) {
                tracing::warn!(target: "ndcompat::connection", %error, "no thread to destroy a connection's id");
            }
        }
    }
}

impl State {
    pub(crate) fn new() -> State {
        State {
            phase: Phase::Idle,
            id: None,
            ids: 0,
            in_driver: None,
            address: LocalAddress::default(),
            endpoint: None,
            core: None,
            has_failed: false,
            establishing: None,
            disconnecting: None,
            notify: Requests::new(),
            always_flushes: false,
            terms: Terms::default(),
            cause: None,
        }
    }

    /// Ends the connection, and completes the pending requests as `end` requires.
    pub(crate) fn close(&mut self, end: End) -> Deferred {
        let mut deferred =
            Deferred { flush: self.core.take(), disconnect: self.id.clone(), ..Deferred::default() };
        let notice = match end {
            End::Local => Status::CONNECTION_DISCONNECTED,
            End::Peer | End::Abandoned => Status::SUCCESS,
        };
        self.complete_notices(&mut deferred, notice);
        let establishing = if end == End::Local { Status::CANCELED } else { Status::CONNECTION_ABORTED };
        deferred.complete(self.establishing.take(), establishing);
        deferred.complete(self.disconnecting.take(), Status::SUCCESS);
        self.phase = Phase::Closed(end);
        deferred
    }

    /// Whether receives stay outstanding after the peer's disconnect until the program disconnects or flushes: while a
    /// `NotifyDisconnect` is pending, unless the Rust API has asked for the opposite.
    pub(crate) fn keeps_receives(&self) -> bool {
        !self.notify.is_empty() && !self.always_flushes
    }

    /// Ends the connection after the peer's disconnect. Receives that need not stay are flushed, so that the program learns of
    /// the end by them.
    pub(crate) fn peer_disconnected(&mut self) -> Deferred {
        let keeps_receives = self.keeps_receives();
        let mut deferred = self.close(End::Peer);
        if keeps_receives {
            self.core = deferred.flush.take();
            deferred.shut_down = self.core.clone();
        }
        deferred
    }

    /// Completes `Connect` with the failure `status`; the queue pair stays as it was before. Also returns the id and the
    /// queue pair, for the caller to drop.
    pub(crate) fn connect_failed(
        &mut self,
        status: Status,
    ) -> (Deferred, Option<Arc<Id>>, Option<Arc<Core>>) {
        let mut deferred = Deferred::default();
        deferred.complete(self.establishing.take(), status);
        let core = self.core.take();
        if let Some(core) = &core {
            core.detach();
        }
        // Only a rejection carries private data.
        self.phase =
            if status == Status::CONNECTION_REFUSED { Phase::Refused(End::Peer) } else { Phase::Bound };
        (deferred, self.id.take(), core)
    }

    /// Completes `Accept` with the failure `status`.
    pub(crate) fn accept_failed(&mut self, status: Status) -> Deferred {
        let mut deferred = Deferred { flush: self.core.take(), ..Deferred::default() };
        deferred.complete(self.establishing.take(), status);
        self.complete_notices(&mut deferred, Status::SUCCESS);
        self.phase = Phase::Closed(End::Abandoned);
        deferred
    }

    fn complete_notices(&mut self, deferred: &mut Deferred, status: Status) {
        for request in self.notify.drain(..) {
            deferred.complete(Some(request), status);
        }
    }

    /// Takes the requests in `scope`, to be cancelled.
    pub(crate) fn take_requests(&mut self, scope: CancelScope) -> Vec<Request> {
        let chosen = |request: &Request| request.is_in(scope);
        let mut taken: Vec<_> = self.establishing.take_if(|request| chosen(request)).into_iter().collect();
        let (notify, others) = self.notify.drain(..).partition::<Vec<_>, _>(chosen);
        self.notify.extend(others);
        taken.extend(notify);
        if let (true, Some(core), Phase::Accepting | Phase::Connected) =
            (self.notify.is_empty(), &self.core, self.phase)
        {
            core.defer_flushed(false);
        }
        taken.extend(self.disconnecting.take_if(|request| chosen(request)));
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_refused_is_told_apart_as_far_as_the_device_does() {
        let refuser = |status, private_data: &[u8], is_iwarp| {
            let terms = Terms { private_data: private_data.to_vec(), ..Terms::default() };
            ConnectionEvent { kind: EventKind::Rejected, status, terms }.evidence(is_iwarp, is_iwarp).refuser
        };
        assert!(refuser(8, b"", false) == Refuser::Nobody);
        assert!(refuser(REJECTED_BY_CONSUMER, b"", false) == Refuser::Program);
        assert!(refuser(-libc::ECONNRESET, b"no", true) == Refuser::Program);
        assert!(refuser(-libc::ECONNRESET, b"", true) == Refuser::Somebody);
        assert!(refuser(-libc::ECONNREFUSED, b"", true) == Refuser::Unknown);
        assert!(refuser(-libc::EPROTO, b"", true) == Refuser::Unknown);
    }
}
