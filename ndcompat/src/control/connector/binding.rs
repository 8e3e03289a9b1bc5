//! The local address of a connector: `Bind`, the choice of the port, and the ids that hold the address.

use super::Connector;
use crate::control::connection::State;
use crate::control::endpoint::{self, ListenerAddress};
use crate::control::phase::Phase;
use crate::diagnosis;
use crate::status::{Result, Status};
use crate::verbs::{self, Id, SockAddr};
use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

/// The time limit for resolving an address or a route.
pub(super) const RESOLVE_TIMEOUT: Duration = Duration::from_secs(2);

impl Connector {
    /// Binds to a local address (`IND2Connector::Bind`); port 0 takes a free one.
    ///
    /// With port 0, the port is chosen by `Connect`, or by the first `GetLocalAddress`. The address of a listener of this
    /// process is allowed, too. rdma_cm cannot share it: the connection uses another port, and `GetLocalAddress` returns
    /// the listener's.
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; `STATUS_ADDRESS_ALREADY_ASSOCIATED` if the connector has an address or
    /// a connection; `ND_SHARING_VIOLATION` if the address is taken; `ND_TOO_MANY_ADDRESSES` if no port is free;
    /// `ND_INVALID_ADDRESS` if it is not the adapter's; `ND_INSUFFICIENT_RESOURCES`.
    pub fn bind(&self, address: SockAddr) -> Result<()> {
        self.adapter().check()?;
        let mut state = self.lock();
        if state.phase != Phase::Idle {
            return Err(Status::ADDRESS_ALREADY_ASSOCIATED);
        }
        let address = verbs::scoped(address);
        let not_bound = |status| diagnosis::not_bound(address, &self.adapter().device_name(), status);
        match self.take_or_postpone(&mut state, address) {
            Err(Status::SHARING_VIOLATION) if ListenerAddress::exists(address) => {
                self.take_or_postpone(&mut state, address.with_port(0))?;
                state.address.of_listener = Some(address);
            }
            bound => bound.inspect_err(|&status| not_bound(status))?,
        }
        state.phase = Phase::Bound;
        tracing::debug!(target: "ndcompat::connection", connector = self.cookie.number(), %address, "Bind");
        Ok(())
    }

    /// Takes a local address. With port 0 at the adapter's own address, this is postponed until the port is needed.
    fn take_or_postpone(&self, state: &mut State, address: SockAddr) -> Result<()> {
        state.address.any_port = address.port() == 0;
        if state.address.any_port && self.adapter().is_at(address) {
            state.address.bound = Some(address);
            return Ok(());
        }
        self.take(state, address)
    }

    /// Takes a local address. It stays in use until the connector is closed.
    fn take(&self, state: &mut State, address: SockAddr) -> Result<()> {
        let id = endpoint::bind(&self.file, self.next_cookie(state), address)?;
        state.address.bound = id.local_addr();
        state.id = Some(Arc::new(id));
        Ok(())
    }

    /// The local address (`IND2Connector::GetLocalAddress`).
    ///
    /// # Errors
    /// `ND_CONNECTION_INVALID` without an address, or if a pending `Connect` does not choose the port in time; those of
    /// [`bind`](Self::bind), if the port must be chosen now.
    pub fn local_address(&self) -> Result<SockAddr> {
        let state = self.lock();
        if let Some(address) = state.address.of_listener {
            return Ok(address);
        }
        let state = self.with_port(state)?;
        state
            .id
            .as_ref()
            .and_then(|id| id.local_addr())
            .or(state.address.bound)
            .ok_or(Status::CONNECTION_INVALID)
    }

    /// Chooses the port, if the local address has none yet.
    fn with_port<'a>(&'a self, mut state: MutexGuard<'a, State>) -> Result<MutexGuard<'a, State>> {
        let open = |state: &State| state.address.bound.filter(|bound| bound.port() == 0);
        if let (Some(_), Some(connect)) = (open(&state), &state.establishing) {
            // rdma_cm chooses the port during a pending `Connect`, and reports it by an event.
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

    /// The id to connect with, and its local address, whose port may still be 0.
    pub(super) fn id_for_connect(&self, state: &mut State) -> Result<(Arc<Id>, SockAddr)> {
        let bound = state.address.bound.ok_or(Status::ADDRESS_NOT_ASSOCIATED)?;
        let id = match &state.id {
            Some(id) => id.clone(),
            None if bound.port() == 0 => self.unbound_id(state)?,
            // No id could be created after the last attempt had failed.
            None => Arc::new(endpoint::bind(&self.file, self.next_cookie(state), bound)?),
        };
        Ok((id, bound))
    }

    /// A new id without an address. Connecting chooses its port.
    fn unbound_id(&self, state: &mut State) -> Result<Arc<Id>> {
        let cookie = self.next_cookie(state);
        Ok(Arc::new(Id::create(self.channel()?.verbs(), cookie.0).map_err(Status::of_host)?))
    }

    /// Replaces the `old` id, which has failed to connect and cannot try again, by a new one with the same address.
    pub(super) fn renew_id(&self, state: &mut State, old: Option<&Id>) {
        if state.in_driver.is_none() {
            // If this fails, so does binding the new id, and the next attempt creates another.
            let _ = old.map(|id| id.set_reuse_addr(true));
        }
        state.in_driver = None;
        // Port 0: no address to keep.
        let bound = state.address.bound.filter(|bound| bound.port() != 0);
        let cookie = self.next_cookie(state);
        state.id = bound.and_then(|bound| endpoint::bind_again(&self.file, cookie, bound).ok()).map(Arc::new);
    }

    /// Connects again from another port, if `error` is that TCP has the port in use, and the program has not chosen the
    /// port. Returns whether it does.
    ///
    /// rdma_cm may choose a port that TCP still keeps in TIME_WAIT, for a minute after a connection. The caller holds the
    /// id that failed.
    pub(super) fn connect_from_another_port(&self, state: &mut State, error: &io::Error) -> bool {
        if !is_port_taken(error) || state.address.other_ports == 0 {
            return false;
        }
        let Some(bound) = state.address.bound else { return false };
        let Some(destination) = state.id.as_ref().and_then(|id| id.peer_addr()) else { return false };
        let Ok(id) = self.unbound_id(state) else { return false };
        if resolve_address(&id, bound.with_port(0), destination).is_err() {
            return false;
        }
        tracing::debug!(target: "ndcompat::connection", %bound, "TCP keeps the port; trying another");
        state.address.other_ports -= 1;
        (state.id, state.address.bound) = (Some(id), Some(bound.with_port(0)));
        true
    }

    /// Tells a removed device (`ND_DEVICE_REMOVED`) from an address that the device no longer has: both give the same
    /// errno. Called without any lock.
    pub(super) fn address_or_device_gone(&self, status: Status) -> Status {
        if status == Status::DEVICE_REMOVED && !self.adapter().is_gone() {
            Status::INVALID_ADDRESS
        } else {
            status
        }
    }
}

/// `rdma_resolve_addr`, with `bound` as the source unless the id is bound already.
pub(super) fn resolve_address(id: &Id, bound: SockAddr, destination: SockAddr) -> io::Result<()> {
    let source = (bound.port() == 0).then_some(bound);
    id.resolve_addr(source, destination, RESOLVE_TIMEOUT)
}

/// Whether `error` means that TCP has a connection between the same ports, perhaps in TIME_WAIT.
pub(super) fn is_port_taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EADDRNOTAVAIL | libc::EADDRINUSE))
}
