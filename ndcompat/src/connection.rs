//! The life of a connection: what each connection-manager event means in each phase.

use crate::endpoint::Endpoint;
use crate::notification::Requests;
use crate::queue_pair::Core;
use crate::status::Status;
use crate::verbs::{Event, EventKind, Id, SockAddr};
use std::sync::Arc;
use win32::io::{Request, Which};

/// Where a connector stands.
///
/// ```text
/// active:   Idle > Bound > Connecting > Replied > Connected > Disconnecting > Closed
/// passive:  Idle > Awaiting > Requested > Accepting > Connected > ...
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Fresh.
    Idle,
    /// Has a local address.
    Bound,
    /// `Connect` is under way.
    Connecting,
    /// The peer accepted; `CompleteConnect` or `Reject` is next. On iWARP the connection is up already.
    Replied,
    /// Lent to a listener by `GetConnectionRequest`.
    Awaiting,
    /// A peer asks for a connection; `Accept` or `Reject` is next.
    Requested,
    /// `Accept` is under way.
    Accepting,
    /// Up.
    Connected,
    /// `Disconnect` is under way.
    Disconnecting,
    /// The peer said no, which ends the attempt only; or this side did, which is for good.
    Refused(End),
    /// Over.
    Closed(End),
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By this side's `Disconnect` or release.
    Local,
    /// By the peer, or by a failure; this side has not called `Disconnect`.
    Peer,
    /// The peer gave up before the connection was up.
    Abandoned,
}

/// What the peer said when it connected, accepted or refused.
#[derive(Default)]
pub(crate) struct Terms {
    pub private_data: Vec<u8>,
    /// Reads the peer may have outstanding here.
    pub inbound_reads: u32,
    /// Reads this side may have outstanding.
    pub outbound_reads: u32,
}

/// An event, copied so that it can be acknowledged before anything is done about it.
pub(crate) struct Happening {
    pub kind: EventKind,
    pub status: i32,
    pub terms: Terms,
}

impl Happening {
    pub(crate) fn new(event: &Event) -> Happening {
        let terms = Terms {
            private_data: event.private_data().to_vec(),
            inbound_reads: event.responder_resources().into(),
            outbound_reads: event.initiator_depth().into(),
        };
        Happening { kind: event.kind(), status: event.status(), terms }
    }

    /// Why an attempt to connect failed, in ND's terms.
    pub(crate) fn connect_failure(&self) -> Status {
        match self.kind {
            EventKind::Rejected => Status::CONNECTION_REFUSED,
            EventKind::AddrError | EventKind::RouteError => match -self.status {
                libc::ENETUNREACH | libc::ENETDOWN => Status::NETWORK_UNREACHABLE,
                _ => Status::HOST_UNREACHABLE,
            },
            EventKind::Unreachable => Status::IO_TIMEOUT,
            _ => match Status::from_errno(-self.status) {
                // A handshake that failed says EINVAL or EPROTO, which is not about any parameter.
                Status::UNSUCCESSFUL | Status::SUCCESS | Status::INVALID_PARAMETER => {
                    Status::CONNECTION_ABORTED
                }
                status => status,
            },
        }
    }
}

/// Whether a worker is in the driver with a connector's id, which can be told nothing else meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    Not,
    InDriver,
    /// It is, although the attempt has been given up.
    InVain,
}

/// What a connector's lock protects.
pub(crate) struct State {
    pub phase: Phase,
    pub id: Option<Arc<Id>>,
    /// Over iWARP: whether a worker is in the driver with the id.
    pub asking: Asking,
    /// The local address, kept for another attempt to connect. Without a port as long as that is left to connecting.
    pub bound: Option<SockAddr>,
    /// The program has left the choice of its port to this side.
    pub any_port: bool,
    /// How many other ports this attempt to connect may still try.
    pub other_ports: u8,
    /// The endpoint that it shares with others: the listener's, or an explicit one.
    pub endpoint: Option<Arc<Endpoint>>,
    pub core: Option<Arc<Core>>,
    /// The `Connect` or `Accept` under way.
    pub establishing: Option<Request>,
    pub disconnecting: Option<Request>,
    /// The `NotifyDisconnect` requests, in order.
    pub notify: Requests,
    pub terms: Terms,
}

/// What is to be done once the lock is free: no request is completed and no queue pair flushed under it.
#[derive(Default)]
pub(crate) struct Aftermath {
    /// Mostly there is one, which needs no memory of its own.
    first: Option<(Request, Status)>,
    others: Vec<(Request, Status)>,
    /// To be flushed after the completions are out.
    pub flush: Option<Arc<Core>>,
    /// To be answered with a disconnect of this side.
    pub hang_up: Option<Arc<Id>>,
    /// Ids that are done with; going, they wait for their events.
    pub drop_id: Option<Arc<Id>>,
}

impl Aftermath {
    pub(crate) fn complete(&mut self, request: Option<Request>, status: Status) {
        let Some(request) = request else { return };
        match self.first {
            None => self.first = Some((request, status)),
            Some(_) => self.others.push((request, status)),
        }
    }

    /// As [`complete`](Self::complete), before all others.
    pub(crate) fn complete_first(&mut self, request: Option<Request>, status: Status) {
        let Some(request) = request else { return };
        if let Some(second) = self.first.replace((request, status)) {
            self.others.insert(0, second);
        }
    }

    /// Does it all. Called without any lock.
    pub(crate) fn run(self) {
        for (request, status) in self.first.into_iter().chain(self.others) {
            request.complete(status.0, 0);
        }
        if let Some(core) = self.flush {
            core.fail();
        }
        if let Some(id) = self.hang_up {
            // A connection that is gone already needs no answer.
            let _ = id.disconnect();
        }
    }
}

impl State {
    pub(crate) fn new() -> State {
        State {
            phase: Phase::Idle,
            id: None,
            asking: Asking::Not,
            bound: None,
            any_port: false,
            other_ports: 0,
            endpoint: None,
            core: None,
            establishing: None,
            disconnecting: None,
            notify: Requests::new(),
            terms: Terms::default(),
        }
    }

    /// The connection is over: tells all who wait, as `end` and the pending requests deserve.
    pub(crate) fn close(&mut self, end: End) -> Aftermath {
        let mut after =
            Aftermath { flush: self.core.take(), hang_up: self.id.clone(), ..Aftermath::default() };
        let notice = match end {
            End::Local => Status::CONNECTION_DISCONNECTED,
            End::Peer | End::Abandoned => Status::SUCCESS,
        };
        for request in self.notify.drain(..) {
            after.complete(Some(request), notice);
        }
        let establishing = if end == End::Local { Status::CANCELED } else { Status::CONNECTION_ABORTED };
        after.complete(self.establishing.take(), establishing);
        after.complete(self.disconnecting.take(), Status::SUCCESS);
        self.phase = Phase::Closed(end);
        after
    }

    /// `Connect` failed with `status`; the queue pair is as it was before.
    pub(crate) fn connect_failed(&mut self, status: Status) -> Aftermath {
        let mut after = Aftermath::default();
        after.complete(self.establishing.take(), status);
        if let Some(core) = self.core.take() {
            core.detach();
        }
        after.drop_id = self.id.take();
        // Only who was refused may not try again.
        self.phase =
            if status == Status::CONNECTION_REFUSED { Phase::Refused(End::Peer) } else { Phase::Bound };
        after
    }

    /// `Accept` failed with `status`.
    pub(crate) fn accept_failed(&mut self, status: Status) -> Aftermath {
        let mut after = Aftermath { flush: self.core.take(), ..Aftermath::default() };
        after.complete(self.establishing.take(), status);
        for request in self.notify.drain(..) {
            after.complete(Some(request), Status::SUCCESS);
        }
        self.phase = Phase::Closed(End::Abandoned);
        after
    }

    /// The device is gone, and with it the connection or the attempt to make one.
    pub(crate) fn device_removed(&mut self) -> Aftermath {
        let status = Status::DEVICE_REMOVED;
        let mut after = match self.phase {
            Phase::Connecting => self.connect_failed(status),
            Phase::Accepting => self.accept_failed(status),
            Phase::Requested | Phase::Replied => self.close(End::Abandoned),
            Phase::Connected => self.close(End::Peer),
            Phase::Disconnecting => {
                let request = self.disconnecting.take();
                let mut after = self.close(End::Local);
                after.complete(request, status);
                after
            }
            Phase::Idle | Phase::Bound | Phase::Awaiting | Phase::Refused(_) | Phase::Closed(_) => {
                Aftermath::default()
            }
        };
        // There is nobody to say it to.
        after.hang_up = None;
        after
    }

    /// Takes the pending request on `ov`, or all of them, to be cancelled.
    pub(crate) fn take_requests(&mut self, which: Which) -> Vec<Request> {
        let chosen = |request: &Request| request.is_among(which);
        let mut taken: Vec<_> = self.establishing.take_if(|request| chosen(request)).into_iter().collect();
        let (notify, others) = self.notify.drain(..).partition::<Vec<_>, _>(chosen);
        self.notify.extend(others);
        taken.extend(notify);
        taken.extend(self.disconnecting.take_if(|request| chosen(request)));
        taken
    }
}
