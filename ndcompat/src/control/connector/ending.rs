//! The end of a connection: `Disconnect` and `NotifyDisconnect`.

use super::Connector;
use crate::control::connection::{ConnectionEvent, Terms};
use crate::control::phase::{Cause, End, Phase};
use crate::status::{Result, Status};
use crate::verbs::EventKind;
use std::time::Duration;
use win32::io::Overlapped;

/// How long `Disconnect` waits for the peer's answer before it returns with the request pending.
const DISCONNECT_WAIT: Duration = Duration::from_millis(500);

impl Connector {
    /// Completes `ov` when the connection ends (`IND2Connector::NotifyDisconnect`), or at once if it has ended.
    ///
    /// While it is pending, a disconnect by the peer does not cancel this side's receives.
    ///
    /// # Errors
    /// `ND_CONNECTION_INVALID` if the connector has never been connected.
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
        tracing::debug!(target: "ndcompat::connection", connector = self.cookie.number(), "NotifyDisconnect");
        // SAFETY: the caller keeps `ov` valid until the request completes.
        let request = unsafe { self.requests.begin(self.file(), ov) };
        match ended {
            None => {
                state.notify.push(request);
                if let (true, Some(core)) = (state.keeps_receives(), &state.core) {
                    core.defer_flushed(true);
                }
            }
            Some(status) => {
                drop(state);
                request.complete(status.0, 0);
            }
        }
        Ok(())
    }

    /// Ends the connection (`IND2Connector::Disconnect`).
    ///
    /// Completes when the peer has answered. The call waits up to 500 ms for the answer, as programs reuse the `OVERLAPPED`
    /// when it returns. Without an answer, the request is pending until rdma_cm gives up.
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; `ND_CONNECTION_INVALID` without a connection; `ND_INVALID_DEVICE_STATE`
    /// if this side has disconnected before. The request completes with `ND_IO_TIMEOUT` if the peer does not answer,
    /// `ND_CONNECTION_ABORTED` after another failure. The connection has ended in either case.
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub unsafe fn disconnect(&self, ov: *mut Overlapped) -> Result<()> {
        // SAFETY: the caller keeps `ov` valid until the request completes.
        let begun = unsafe { self.start_disconnect(ov)? };
        if begun {
            // Another thread may end the connection: it changes the phase first, and completes the requests without the lock. With
            // the connection all of the connector's requests end, this one last.
            win32::io::wait_for(self.file(), ov, DISCONNECT_WAIT, || {
                self.lock().phase != Phase::Disconnecting && self.requests.is_none()
            });
        }
        Ok(())
    }

    /// [`Connector::disconnect`] without the wait. Returns whether this side has disconnected first.
    ///
    /// # Errors
    /// Those of [`Connector::disconnect`].
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub(crate) unsafe fn start_disconnect(&self, ov: *mut Overlapped) -> Result<bool> {
        self.adapter().check()?;
        let mut state = self.lock();
        match state.phase {
            Phase::Connected => {}
            Phase::Closed(End::Peer) => {
                // The peer has disconnected first, and rdma_cm has answered.
                state.phase = Phase::Closed(End::Local);
                let core = state.core.take();
                drop(state);
                if let Some(core) = core {
                    core.fail();
                }
                // SAFETY: the caller keeps `ov` valid until the request completes.
                unsafe { self.requests.begin(self.file(), ov) }.complete(Status::SUCCESS.0, 0);
                return Ok(false);
            }
            Phase::Disconnecting | Phase::Closed(End::Local) => return Err(Status::INVALID_DEVICE_STATE),
            _ => return Err(Status::CONNECTION_INVALID),
        }
        tracing::debug!(target: "ndcompat::connection", connector = self.cookie.number(), "Disconnect");
        let (id, core) = (state.id.clone(), state.core.clone());
        // SAFETY: the caller keeps `ov` valid until the request completes.
        let request = unsafe { self.requests.begin(self.file(), ov) };
        state.disconnecting = Some(request);
        state.phase = Phase::Disconnecting;
        drop(state);
        if let Some(core) = core {
            core.fail();
        }
        if id.is_none_or(|id| id.disconnect().is_err()) {
            // There will be no event. Destroying the id disconnects a peer that is still connected.
            let id = self.lock().id.take();
            let ended = ConnectionEvent { kind: EventKind::Disconnected, status: 0, terms: Terms::default() };
            self.handle(Cause::Event(ended.kind), Some(ended));
            drop(id);
        }
        Ok(true)
    }
}
