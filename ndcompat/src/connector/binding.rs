//! The local address of a connector: when it gets its port, and how it keeps it from one attempt to connect to the next.

use super::Connector;
use super::establishing::RESOLVE_TIMEOUT;
use crate::connection::{Asking, Phase, State};
use crate::endpoint;
use crate::status::{Result, Status};
use crate::verbs::{Id, SockAddr};
use std::io;
use std::sync::{Arc, MutexGuard};

impl Connector {
    /// Binds to a local address; port 0 takes a free one (`Bind`).
    ///
    /// That of the adapter itself needs no system call: its free port is taken when it is asked for, or by connecting.
    pub fn bind(&self, address: SockAddr) -> Result<()> {
        self.adapter().check()?;
        let mut state = self.lock();
        if state.phase != Phase::Idle {
            return Err(Status::ADDRESS_ALREADY_ASSOCIATED);
        }
        let any_port = address.port() == 0;
        if any_port && self.adapter().is_at(address) {
            state.bound = Some(address);
        } else {
            self.take(&mut state, address)?;
        }
        state.any_port = any_port;
        state.phase = Phase::Bound;
        Ok(())
    }

    /// Takes a local address for this connector's next attempt to connect, and until it is closed.
    fn take(&self, state: &mut State, address: SockAddr) -> Result<()> {
        let id = endpoint::bind(&self.file, self.cookie, address)?;
        if self.is_iwarp() && address.port() != 0 {
            // There an id that connects can be told no more, for as long as that takes, and no other port would do.
            id.set_reuse_addr(true).map_err(Status::of_host)?;
        }
        state.bound = id.local_addr();
        state.id = Some(Arc::new(id));
        Ok(())
    }

    /// The local address (`GetLocalAddress`).
    pub fn local_address(&self) -> Result<SockAddr> {
        let state = self.with_port(self.lock())?;
        state.id.as_ref().and_then(|id| id.local_addr()).or(state.bound).ok_or(Status::CONNECTION_INVALID)
    }

    /// Gives the local address its port, should there be an address without one.
    fn with_port<'a>(&'a self, mut state: MutexGuard<'a, State>) -> Result<MutexGuard<'a, State>> {
        let open = |state: &State| state.bound.filter(|bound| bound.port() == 0);
        if let (Some(_), Some(connect)) = (open(&state), &state.establishing) {
            // The connection manager has chosen; its event will tell.
            let ov = connect.overlapped();
            drop(state);
            win32::io::wait_for(self.file(), ov, 2 * RESOLVE_TIMEOUT, || {
                let state = self.lock();
                open(&state).is_none() || state.phase != Phase::Connecting
            });
            state = self.lock();
        }
        match open(&state) {
            None => {}
            Some(_) if state.phase == Phase::Connecting => return Err(Status::CONNECTION_INVALID),
            Some(bound) => self.take(&mut state, bound)?,
        }
        Ok(state)
    }

    /// The id for another attempt to connect, and the address that it has or is to have.
    pub(super) fn id_to_ask_with(&self, state: &State) -> Result<(Arc<Id>, SockAddr)> {
        let bound = state.bound.ok_or(Status::ADDRESS_NOT_ASSOCIATED)?;
        let id = match &state.id {
            Some(id) if state.asking == Asking::Not => id.clone(),
            // The driver has it yet.
            Some(_) if state.any_port => return Ok((self.unbound_id()?, bound.with_port(0))),
            Some(_) => {
                Arc::new(endpoint::bind_again(&self.file, self.cookie, bound).map_err(Status::of_host)?)
            }
            None if bound.port() == 0 => self.unbound_id()?,
            // The machine had none to spare when the last attempt failed.
            None => Arc::new(endpoint::bind(&self.file, self.cookie, bound)?),
        };
        Ok((id, bound))
    }

    /// An id whose port is chosen by connecting.
    fn unbound_id(&self) -> Result<Arc<Id>> {
        Ok(Arc::new(Id::create(self.channel()?.verbs(), self.cookie).map_err(Status::of_host)?))
    }

    /// Makes an id with the address of the `old` one, which has tried to connect, and cannot again.
    pub(super) fn renew_id(&self, state: &mut State, old: Option<&Id>) {
        // If it cannot share its address, there will be no other id, which the next attempt sees.
        let _ = old.map(|id| id.set_reuse_addr(true));
        // One whose port had yet to be chosen is to be had without an id.
        let bound = state.bound.filter(|bound| bound.port() != 0);
        let id = bound.and_then(|bound| endpoint::bind_again(&self.file, self.cookie, bound).ok());
        // No worker has this one, whether or not one is yet to come back with the old one.
        (state.id, state.asking) = (id.map(Arc::new), Asking::Not);
    }

    /// TCP keeps a port for a minute after the end of a connection, which rdma_cm does not know when it chooses one: connecting
    /// from there again fails with `error`. Begins the attempt anew from another port, which the connector then has, if the
    /// program has left the choice. The caller holds the id that failed.
    pub(super) fn ask_from_another_port(&self, state: &mut State, error: &io::Error) -> bool {
        if !is_port_taken(error) || state.other_ports == 0 {
            return false;
        }
        let Some(bound) = state.bound else { return false };
        let Some(destination) = state.id.as_ref().and_then(|id| id.peer_addr()) else { return false };
        let Ok(id) = self.unbound_id() else { return false };
        if look_for_peer(&id, bound.with_port(0), destination).is_err() {
            return false;
        }
        tracing::debug!(%bound, "TCP keeps the port; trying another");
        state.other_ports -= 1;
        (state.id, state.bound) = (Some(id), Some(bound.with_port(0)));
        true
    }

    /// Where there is no device for an address: it, or just the address that the connector was bound to. Called without any
    /// lock.
    pub(super) fn what_is_gone(&self, status: Status) -> Status {
        if status == Status::DEVICE_REMOVED && !self.adapter().is_gone() {
            Status::INVALID_ADDRESS
        } else {
            status
        }
    }
}

/// Looks for the neighbour on the way to the peer; from `bound`, to which an id is bound already if it has a port.
pub(super) fn look_for_peer(id: &Id, bound: SockAddr, destination: SockAddr) -> io::Result<()> {
    let source = (bound.port() == 0).then_some(bound);
    id.resolve_addr(source, destination, RESOLVE_TIMEOUT)
}

/// Whether TCP has another connection between the same two ports, perhaps one that has ended.
pub(super) fn is_port_taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EADDRNOTAVAIL | libc::EADDRINUSE))
}
