//! Ending a connection, and hearing that it has ended.

use super::Connector;
use crate::connection::{Aftermath, End, Phase};
use crate::status::{Result, Status};
use std::time::Duration;
use win32::io::Overlapped;

/// How long `Disconnect` waits for the peer's answer before it leaves the rest to the background.
const DISCONNECT_PATIENCE: Duration = Duration::from_millis(500);

impl Connector {
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
        let request = state.disconnecting.take();
        let mut after = state.close(End::Local);
        self.file().no_more_events();
        drop(state);
        // The peer has heard of it, or cannot.
        after.hang_up = None;
        after.complete_first(request, status);
        after.run();
    }

    /// Ends the connection without a word to the user: the queue pair or the connector was released.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        let after = match state.phase {
            Phase::Connected | Phase::Disconnecting => {
                self.file().no_more_events();
                state.close(End::Local)
            }
            Phase::Connecting => self.connect_failed(&mut state, Status::CANCELED),
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
}
