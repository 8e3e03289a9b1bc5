//! What the connection manager's events mean to a connector.

use super::Connector;
use crate::connection::{Aftermath, End, Happening, Phase, State, Terms};
use crate::overlapped_file::ConnectionHandler;
use crate::status::Status;
use crate::verbs::{Event, EventKind};

impl Connector {
    fn happened(&self, state: &mut State, event: Happening) -> Aftermath {
        match (state.phase, event.kind) {
            (_, EventKind::TimewaitExit | EventKind::AddrChange) => Aftermath::default(),
            (Phase::Connecting, EventKind::AddrResolved) => self.look_for_path(state),
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
                self.connect_failed(state, status)
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
                after.complete_first(established, Status::SUCCESS);
                after
            }
            (Phase::Accepting, _) => state.accept_failed(event.connect_failure()),
            (Phase::Connected, EventKind::Disconnected) => {
                self.file().no_more_events();
                state.close(End::Peer)
            }
            (Phase::Disconnecting, EventKind::Disconnected) => {
                self.file().no_more_events();
                let status = match -event.status {
                    0 => Status::SUCCESS,
                    libc::ETIMEDOUT => Status::IO_TIMEOUT,
                    _ => Status::CONNECTION_ABORTED,
                };
                let request = state.disconnecting.take();
                let mut after = state.close(End::Local);
                after.hang_up = None;
                after.complete(request, status);
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

impl ConnectionHandler for Connector {
    fn event(&self, event: Event) {
        let happening = Happening::new(&event);
        // Destroying an id waits for its events to be acknowledged, and an event may bring that about.
        drop(event);
        tracing::debug!(kind = ?happening.kind, status = happening.status, "connection event");
        match happening.kind {
            EventKind::DeviceRemoval => return self.adapter().removed(),
            EventKind::AddrResolved
            | EventKind::RouteResolved
            | EventKind::ConnectRequest
            | EventKind::ConnectResponse
            | EventKind::Established => {}
            // Nothing that ends a connection on a device that is gone says more than that; all hear of it.
            _ => {
                if self.adapter().is_gone() {
                    return;
                }
            }
        }
        let mut state = self.lock();
        let after = self.happened(&mut state, happening);
        drop(state);
        after.run();
    }
}
