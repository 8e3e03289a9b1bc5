//! The passive side of a connection: `Accept` and `Reject`. The active side, too, may `Reject` a peer that has accepted.

use super::establishing::param;
use super::{Connector, Offer};
use crate::control::connection::Terms;
use crate::control::phase::{End, Phase};
use crate::data::queue_pair::QueuePair;
use crate::status::{Result, Status};
use win32::io::Overlapped;

impl Connector {
    /// Accepts a connection request (`IND2Connector::Accept`). Completes when the connection is established.
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; `ND_INVALID_BUFFER_SIZE` for too much private data;
    /// `ND_INVALID_PARAMETER_1` for a queue pair of another adapter; `ND_CONNECTION_INVALID` unless a peer has asked;
    /// `ND_CONNECTION_ABORTED` if the peer has given up since; `ND_CONNECTION_ACTIVE` if the connector or the queue pair
    /// has a connection.
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub unsafe fn accept(&self, queue_pair: &QueuePair, offer: Offer<'_>, ov: *mut Overlapped) -> Result<()> {
        self.adapter().check()?;
        if offer.private_data.len() > self.adapter().limits().info.max_callee_data as usize {
            return Err(Status::INVALID_BUFFER_SIZE);
        }
        let core = self.core_of(queue_pair)?;
        let mut state = self.lock();
        match state.phase {
            Phase::Requested => {}
            Phase::Closed(_) => return Err(Status::CONNECTION_ABORTED),
            Phase::Connected | Phase::Accepting | Phase::Replied(_) => return Err(Status::CONNECTION_ACTIVE),
            _ => return Err(Status::CONNECTION_INVALID),
        }
        let Some(id) = state.id.clone() else { return Err(Status::CONNECTION_INVALID) };
        let mut terms = self.terms(offer);
        // The peer's limit applies, too.
        terms.inbound_reads = terms.inbound_reads.min(state.terms.inbound_reads);
        terms.outbound_reads = terms.outbound_reads.min(state.terms.outbound_reads);
        terms.peer_shares = state.terms.peer_shares;
        tracing::debug!(target: "ndcompat::connection", connector = self.cookie.number(), qp = core.number(), "Accept");
        core.attach(self.this.clone() as _)?;
        let ready = if self.is_iwarp() {
            core.use_path(&id).map_err(Status::from)
        } else {
            self.make_ready(&id, core, &terms)
        };
        let accepted = ready.and_then(|()| {
            // SAFETY: the caller keeps `ov` valid until the request completes.
            state.establishing = Some(unsafe { self.requests.begin(self.file(), ov) });
            state.phase = Phase::Accepting;
            id.accept(param(core, &terms)).map_err(|error| Status::CONNECTION_ABORTED.because(&error))
        });
        match accepted {
            Ok(()) => {
                state.core = Some(core.clone());
                self.set_ready(core, &terms);
                Ok(())
            }
            Err(status) => {
                core.detach();
                let Some(request) = state.establishing.take() else { return Err(status) };
                state.phase = Phase::Closed(End::Abandoned);
                state.terms = Terms::default();
                drop(state);
                request.complete(status.0, 0);
                Ok(())
            }
        }
    }

    /// Rejects the peer that has requested, or accepted, a connection (`IND2Connector::Reject`).
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; `ND_INVALID_BUFFER_SIZE` for too much private data;
    /// `ND_CONNECTION_INVALID` unless a peer has requested or accepted a connection; `ND_CONNECTION_ABORTED` if it has
    /// given up since.
    pub fn reject(&self, private_data: &[u8]) -> Result<()> {
        self.adapter().check()?;
        if private_data.len() > self.adapter().limits().info.max_callee_data as usize {
            return Err(Status::INVALID_BUFFER_SIZE);
        }
        let mut state = self.lock();
        let replied = match state.phase {
            Phase::Requested => false,
            Phase::Replied(_) => true,
            Phase::Closed(_) => return Err(Status::CONNECTION_ABORTED),
            _ => return Err(Status::CONNECTION_INVALID),
        };
        let id = state.id.clone().ok_or(Status::CONNECTION_INVALID)?;
        tracing::debug!(target: "ndcompat::connection", connector = self.cookie.number(), "Reject");
        if replied && self.is_iwarp() {
            // Over iWARP the connection is up already: disconnect.
            let mut deferred = state.close(End::Local);
            state.phase = Phase::Refused(End::Local);
            deferred.disconnect = Some(id);
            drop(state);
            deferred.run();
            return Ok(());
        }
        if let Some(core) = state.core.take() {
            core.detach();
        }
        state.phase = Phase::Refused(End::Local);
        drop(state);
        id.reject(private_data).map_err(|error| Status::CONNECTION_ABORTED.because(&error))
    }
}
