//! The state machine of a connection: phases, causes, and the table of steps.

use crate::verbs::EventKind;

/// The phase of a connector.
///
/// ```text
/// active:   Idle > Bound > Connecting > Replied > Connected > Disconnecting > Closed
/// passive:  Idle > Awaiting > Requested > Accepting > Connected > ...
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// New.
    Idle,
    /// Has a local address.
    Bound,
    /// `Connect` is under way.
    Connecting,
    /// The peer has accepted; `CompleteConnect` or `Reject` is next. Over iWARP the connection is up already.
    Replied(Peer),
    /// In a pending `GetConnectionRequest`.
    Awaiting,
    /// Has a peer's connection request; `Accept` or `Reject` is next.
    Requested,
    /// `Accept` is under way.
    Accepting,
    /// Established.
    Connected,
    /// `Disconnect` is under way.
    Disconnecting,
    /// Rejected: by the peer, and the connector may connect again; or by this side, which is final.
    Refused(End),
    /// Ended.
    Closed(End),
}

/// Whether the peer is still connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Connected.
    There,
    /// Disconnected, which before `CompleteConnect` is possible over iWARP only.
    Gone,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By this side: `Disconnect`, `Reject` or release.
    Local,
    /// By the peer, or by a failure.
    Peer,
    /// By the peer, before the connection was established.
    Abandoned,
}

/// What may change the phase, apart from the program's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// An event of rdma_cm.
    Event(EventKind),
    /// The time limit for `rdma_connect` on iWARP has passed.
    TimedOut,
    /// A request of the queue pair has failed. On RoCE, this may be the only sign that the connection is gone.
    QueuePairFailed,
    /// The device has flushed the queue pair by itself, as the peer has disconnected.
    QueuePairFlushed,
    /// The pending `Connect` or `Accept` was cancelled.
    Cancelled,
    /// The connector or its queue pair was released.
    Released,
    /// The device was removed.
    DeviceRemoved,
}

/// The step that a cause requires; the phase after it is named where it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    Ignore,
    /// Resolve the route, as the address is resolved.
    ResolveRoute,
    /// Send the connection request, as the route is resolved.
    SendRequest,
    /// Complete `Connect` with success: `Replied`.
    Reply,
    /// Fail `Connect`; the connector may connect again: `Bound` or `Refused`.
    FailConnect,
    /// Leave the peer's disconnect to `CompleteConnect`: `Replied(Gone)`.
    PeerLeft,
    /// Reject the peer, whose `Accept` is pending, instead of `CompleteConnect`.
    RefusePeer,
    /// Complete `Accept` with success: `Connected`.
    Establish,
    /// Complete `Accept` with success, then end the connection: `Closed(Peer)`.
    EstablishAndLose,
    /// Remember that the queue pair has failed: the connection ends once it is established.
    NoteFailure,
    /// Fail `Accept`: `Closed(Abandoned)`.
    FailAccept,
    /// End the attempt, as the peer has given up: `Closed(Abandoned)`.
    Abandon,
    /// End the connection after a disconnect by the peer, or a failure: `Closed(Peer)`.
    Lose,
    /// Complete `Disconnect`: `Closed(Local)`.
    FinishDisconnect,
    /// End the connection by this side: `Closed(Local)`.
    Close,
    /// Flush the queue pair, as the connection has ended already.
    Flush,
}

impl Phase {
    /// The transition table: the step for `cause` in this phase.
    pub(crate) fn step(self, cause: Cause, iwarp: bool) -> Step {
        use Cause::{Cancelled, DeviceRemoved, Event, QueuePairFailed, QueuePairFlushed, Released, TimedOut};
        use EventKind::{
            AddrChange, AddrResolved, ConnectResponse, Disconnected, Established, RouteResolved, TimewaitExit,
        };
        use Phase::{Accepting, Closed, Connected, Connecting, Disconnecting, Replied, Requested};
        match (self, cause) {
            (_, Event(TimewaitExit | AddrChange)) => Step::Ignore,

            (Connecting, Event(AddrResolved)) => Step::ResolveRoute,
            (Connecting, Event(RouteResolved)) => Step::SendRequest,
            (Connecting, Event(ConnectResponse | Established)) => Step::Reply,
            (Connecting, Event(_) | TimedOut | Cancelled | Released | DeviceRemoved) => Step::FailConnect,

            (Replied(_), Event(ConnectResponse | Established)) => Step::Ignore,
            (Replied(_), Event(Disconnected)) if iwarp => Step::PeerLeft,
            (Replied(_), Event(_) | DeviceRemoved) => Step::Abandon,
            (Replied(_), Released) => Step::RefusePeer,

            (Requested, Event(ConnectResponse | Established)) => Step::Ignore,
            (Requested, Event(_) | DeviceRemoved) => Step::Abandon,

            (Accepting, Event(Established)) => Step::Establish,
            // The peer may connect and disconnect before this side gets the event that the connection is established.
            (Accepting, Event(Disconnected)) => Step::EstablishAndLose,
            // Both ends may use the connection before that event.
            (Accepting, QueuePairFailed) => Step::NoteFailure,
            (Accepting, Event(_) | Cancelled | Released | DeviceRemoved) => Step::FailAccept,

            (Connected, Event(Disconnected) | QueuePairFailed | QueuePairFlushed | DeviceRemoved) => {
                Step::Lose
            }
            (Connected, Released) => Step::Close,
            (Disconnecting, Event(Disconnected) | DeviceRemoved) => Step::FinishDisconnect,
            (Disconnecting, Released) => Step::Close,
            (Closed(_), Released) => Step::Flush,
            _ => Step::Ignore,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHASES: [Phase; 16] = [
        Phase::Idle,
        Phase::Bound,
        Phase::Connecting,
        Phase::Replied(Peer::There),
        Phase::Replied(Peer::Gone),
        Phase::Awaiting,
        Phase::Requested,
        Phase::Accepting,
        Phase::Connected,
        Phase::Disconnecting,
        Phase::Refused(End::Local),
        Phase::Refused(End::Peer),
        Phase::Refused(End::Abandoned),
        Phase::Closed(End::Local),
        Phase::Closed(End::Peer),
        Phase::Closed(End::Abandoned),
    ];
    const EVENTS: [EventKind; 15] = [
        EventKind::AddrResolved,
        EventKind::AddrError,
        EventKind::RouteResolved,
        EventKind::RouteError,
        EventKind::ConnectRequest,
        EventKind::ConnectResponse,
        EventKind::ConnectError,
        EventKind::Unreachable,
        EventKind::Rejected,
        EventKind::Established,
        EventKind::Disconnected,
        EventKind::DeviceRemoval,
        EventKind::AddrChange,
        EventKind::TimewaitExit,
        EventKind::Other(99),
    ];

    fn causes() -> impl Iterator<Item = Cause> {
        let others = [
            Cause::TimedOut,
            Cause::QueuePairFailed,
            Cause::QueuePairFlushed,
            Cause::Cancelled,
            Cause::Released,
            Cause::DeviceRemoved,
        ];
        EVENTS.map(Cause::Event).into_iter().chain(others)
    }

    /// Whether `step` is possible in `phase`: it uses what only some phases have.
    fn starts_in(step: Step, phase: Phase) -> bool {
        match step {
            Step::Ignore => true,
            Step::ResolveRoute | Step::SendRequest | Step::Reply | Step::FailConnect => {
                phase == Phase::Connecting
            }
            Step::PeerLeft | Step::RefusePeer => matches!(phase, Phase::Replied(_)),
            Step::Establish | Step::EstablishAndLose | Step::NoteFailure | Step::FailAccept => {
                phase == Phase::Accepting
            }
            Step::Abandon => matches!(phase, Phase::Requested | Phase::Replied(_)),
            Step::Lose => phase == Phase::Connected,
            Step::FinishDisconnect => phase == Phase::Disconnecting,
            Step::Close => matches!(phase, Phase::Connected | Phase::Disconnecting),
            Step::Flush => matches!(phase, Phase::Closed(_)),
        }
    }

    #[test]
    fn steps_start_where_they_make_sense() {
        for (phase, cause) in PHASES.iter().flat_map(|&phase| causes().map(move |cause| (phase, cause))) {
            for iwarp in [false, true] {
                let step = phase.step(cause, iwarp);
                assert!(starts_in(step, phase), "{phase:?}, {cause:?}: {step:?}");
            }
        }
    }

    #[test]
    fn a_connection_that_is_over_stays_so() {
        for phase in PHASES.into_iter().filter(|phase| matches!(phase, Phase::Closed(_) | Phase::Refused(_)))
        {
            for cause in causes() {
                assert!(
                    matches!(phase.step(cause, true), Step::Ignore | Step::Flush),
                    "{phase:?}, {cause:?}"
                );
            }
        }
    }

    #[test]
    fn pending_requests_end_by_removal_release_and_cancellation() {
        for cause in [Cause::DeviceRemoved, Cause::Released, Cause::Cancelled] {
            assert_eq!(Phase::Connecting.step(cause, false), Step::FailConnect);
            assert_eq!(Phase::Accepting.step(cause, false), Step::FailAccept);
        }
        for cause in [Cause::DeviceRemoved, Cause::Released] {
            assert!(matches!(Phase::Disconnecting.step(cause, false), Step::FinishDisconnect | Step::Close));
        }
    }

    #[test]
    fn only_over_iwarp_a_peer_leaves_before_it_is_answered() {
        let left = Cause::Event(EventKind::Disconnected);
        assert_eq!(Phase::Replied(Peer::There).step(left, true), Step::PeerLeft);
        assert_eq!(Phase::Replied(Peer::There).step(left, false), Step::Abandon);
    }
}
