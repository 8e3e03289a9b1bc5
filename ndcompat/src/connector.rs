//! Connectors: one side of a connection each.
//!
//! How one comes by its local address is in `binding`, how it comes up in `establishing`, how it goes down in `ending`, what
//! the connection manager has to say of it in `events`.

mod binding;
mod ending;
mod establishing;
mod events;

use crate::adapter::Adapter;
use crate::connection::{Aftermath, Asking, End, Phase, State, Terms};
use crate::endpoint::Endpoint;
use crate::overlapped_file::{AdapterFile, ConnectionChannel, next_cookie};
use crate::queue_pair::{Core, QueuePair};
use crate::removal::Removable;
use crate::status::{Result, Status};
use crate::verbs::{Id, SockAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use win32::io::{Canceller, File, Request, Which};

/// One side of a connection (`IND2Connector`). All methods are thread-safe. Dropping it ends the connection.
pub struct Connector {
    this: Weak<Connector>,
    file: Arc<AdapterFile>,
    cookie: usize,
    state: Mutex<State>,
}

/// What `Connect` and `Accept` tell the peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offer<'a> {
    /// How many reads the peer may have outstanding here; clamped to what the adapter can.
    pub inbound_read_limit: u32,
    /// How many reads this side wants to have outstanding; clamped likewise.
    pub outbound_read_limit: u32,
    /// Handed to the peer.
    pub private_data: &'a [u8],
}

/// A connection that a peer asked a listener for.
pub(crate) struct Incoming {
    pub id: Id,
    pub terms: Terms,
    /// The listener's.
    pub endpoint: Arc<Endpoint>,
}

impl Connector {
    pub(crate) fn new(file: Arc<AdapterFile>) -> Result<Arc<Connector>> {
        // Opened now, so that what follows finds it, going included.
        file.connections()?;
        let connector = Arc::new_cyclic(|this: &Weak<Connector>| Connector {
            this: this.clone(),
            file,
            cookie: next_cookie(),
            state: Mutex::new(State::new()),
        });
        let weak = Arc::downgrade(&connector);
        connector.channel()?.add(connector.cookie, weak.clone());
        connector.file().add_canceller(weak.clone());
        connector.adapter().tell_of_removal(weak);
        Ok(connector)
    }

    /// `Connect` failed with `status`. The address stays this connector's.
    fn connect_failed(&self, state: &mut State, status: Status) -> Aftermath {
        let mut after = state.connect_failed(status);
        if let Some(endpoint) = &state.endpoint {
            endpoint.leave_destination(self.cookie);
        }
        let given_up = matches!(status, Status::CANCELED | Status::DEVICE_REMOVED);
        if state.asking == Asking::InDriver && given_up {
            // The driver may have it for long. It keeps the address; the worker renews it.
            (state.id, state.asking) = (after.drop_id.take(), Asking::InVain);
        } else {
            self.renew_id(state, after.drop_id.as_deref());
        }
        after
    }

    /// The peer's read limits, seen from here: inbound and outbound (`GetReadLimits`).
    pub fn read_limits(&self) -> Result<(u32, u32)> {
        let state = self.lock();
        match state.phase {
            Phase::Requested | Phase::Replied => Ok((state.terms.inbound_reads, state.terms.outbound_reads)),
            Phase::Accepting | Phase::Connected | Phase::Disconnecting => Err(Status::INVALID_DEVICE_STATE),
            _ => Err(Status::CONNECTION_INVALID),
        }
    }

    /// What the peer sent along, padded as the transport pads it (`GetPrivateData`).
    pub fn private_data(&self) -> Result<Vec<u8>> {
        let state = self.lock();
        match state.phase {
            Phase::Requested | Phase::Replied | Phase::Refused(_) => Ok(state.terms.private_data.clone()),
            _ => Err(Status::CONNECTION_INVALID),
        }
    }

    /// The peer's address (`GetPeerAddress`).
    pub fn peer_address(&self) -> Result<SockAddr> {
        let state = self.lock();
        match state.phase {
            Phase::Idle | Phase::Bound | Phase::Awaiting | Phase::Refused(_) => {
                Err(Status::CONNECTION_INVALID)
            }
            _ => state.id.as_ref().and_then(|id| id.peer_addr()).ok_or(Status::CONNECTION_INVALID),
        }
    }

    /// Completes all pending requests with `ND_CANCELED`. A connection being made is given up.
    pub fn cancel(&self) {
        Canceller::cancel(self, Which::All);
    }

    /// Gives everything up: the last user of the connector has released it.
    pub fn close(&self) {
        let cancelled = self.lock().take_requests(Which::All);
        for request in cancelled {
            request.complete(Status::CANCELED.0, 0);
        }
        self.abandon();
        if let Ok(channel) = self.channel() {
            channel.remove(self.cookie);
        }
        let (id, endpoint) = {
            let mut state = self.lock();
            (state.id.take(), state.endpoint.take())
        };
        drop(id);
        if let Some(endpoint) = endpoint {
            endpoint.leave_destination(self.cookie);
        }
    }

    /// The file that the connector's requests run on.
    pub fn file(&self) -> &Arc<File> {
        self.file.file()
    }

    /// The adapter that the connector belongs to.
    pub fn adapter(&self) -> &Arc<Adapter> {
        self.file.adapter()
    }

    fn channel(&self) -> Result<&Arc<ConnectionChannel>> {
        self.file.connections()
    }

    fn is_iwarp(&self) -> bool {
        self.adapter().limits().quirks.iwarp
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue pair's core, if it is of the same adapter.
    fn own<'a>(&self, queue_pair: &'a QueuePair) -> Result<&'a Arc<Core>> {
        let core = &queue_pair.core;
        if Arc::ptr_eq(core.adapter(), self.adapter()) { Ok(core) } else { Err(Status::INVALID_PARAMETER_1) }
    }

    /// Lends the connector to a listener.
    pub(crate) fn await_request(&self) -> Result<()> {
        let mut state = self.lock();
        if state.phase != Phase::Idle {
            return Err(Status::INVALID_DEVICE_STATE);
        }
        state.phase = Phase::Awaiting;
        Ok(())
    }

    /// Gives the connector back, without a connection.
    pub(crate) fn await_no_more(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Awaiting {
            state.phase = Phase::Idle;
        }
    }

    /// Takes a connection that a peer asked for. Fails if the peer's id cannot be moved here.
    pub(crate) fn adopt(&self, incoming: Incoming, from: &Arc<ConnectionChannel>) -> Result<()> {
        let Incoming { mut id, terms, endpoint } = incoming;
        id.set_cookie(self.cookie);
        let channel = self.channel()?;
        if !Arc::ptr_eq(channel, from) {
            id.migrate(channel.verbs())?;
        }
        let mut state = self.lock();
        state.bound = id.local_addr();
        state.id = Some(Arc::new(id));
        state.endpoint = Some(endpoint);
        state.terms = terms;
        state.phase = Phase::Requested;
        Ok(())
    }
}

impl Removable for Connector {
    fn device_removed(self: Arc<Self>) {
        let mut state = self.lock();
        if matches!(state.phase, Phase::Connected | Phase::Disconnecting) {
            self.file().no_more_events();
        }
        let after = state.device_removed();
        drop(state);
        after.run();
    }
}

impl Canceller for Connector {
    fn cancel(&self, which: Which) -> usize {
        let mut state = self.lock();
        let requests = state.take_requests(which);
        let establishing = matches!(state.phase, Phase::Connecting | Phase::Accepting);
        let after = match state.phase {
            Phase::Connecting if state.establishing.is_none() => {
                self.connect_failed(&mut state, Status::CANCELED)
            }
            Phase::Accepting if state.establishing.is_none() => state.accept_failed(Status::CANCELED),
            _ => Aftermath::default(),
        };
        if establishing && state.establishing.is_none() {
            state.phase = Phase::Closed(End::Local);
        }
        drop(state);
        let count = requests.len();
        for request in requests {
            Request::complete(request, Status::CANCELED.0, 0);
        }
        after.run();
        count
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        self.close();
    }
}
