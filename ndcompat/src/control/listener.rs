//! Listeners: waiting for peers' connection requests.

use crate::control::connection::ConnectionEvent;
use crate::control::connector::{Connector, Incoming, NotAdopted};
use crate::control::endpoint::{self, Endpoint, ListenerAddress, OwnEndpoint};
use crate::device::adapter::{Adapter, AdapterFile};
use crate::device::connection_channel::{ConnectionChannel, ConnectionHandler, Cookie};
use crate::device::removal::Removable;
use crate::diagnosis;
use crate::status::{Result, Status};
use crate::sync::mutex::lock;
use crate::verbs::descriptor::{made, succeeded};
use crate::verbs::{Event, EventKind, Id, SockAddr, bindings::rdma_cm_id};
use rustix::net::{getsockname, sockopt};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use win32::io::{CancelScope, Canceller, File, Outstanding, Overlapped, Request};

/// The backlog that `rdma_listen` gets. The kernel drops requests beyond its backlog, where ND rejects them: so this is
/// large, and `Listen`'s backlog is enforced here.
const KERNEL_BACKLOG: u32 = 1024;
/// How many free TCP ports `Bind` tries before it gives up, as rdma_cm may have them in use.
const PORT_ATTEMPTS: usize = 8;

/// A listener (`IND2Listener`). All methods are thread-safe. Dropping it rejects the queued connection requests.
///
/// [`Connector`] has an example of a whole connection.
///
/// ```
#[doc = include_str!("../rust_api/device.txt")]
/// use ndcompat::{Provider, Session, Status};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let (adapter, file) = (session.adapter(), session.file());
/// let listener = adapter.create_listener(file)?;
/// listener.bind(adapter.addresses()?[0])?; // port 0: a free one
/// listener.listen(8)?;
/// assert_ne!(listener.local_address()?.port(), 0);
///
/// let connector = adapter.create_connector(file)?;
/// let request = listener.begin_connection_request(&connector)?;
/// listener.cancel();
/// assert_eq!(request.wait(), Err(Status::CANCELED));
///
/// // Closed: the address is free when this has completed.
/// listener.begin_close()?.wait()?;
/// # Ok::<(), ndcompat::Status>(())
/// ```
pub struct Listener {
    file: Arc<AdapterFile>,
    cookie: Cookie,
    requests: Arc<Outstanding>,
    state: Mutex<State>,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("number", &self.cookie.number()).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    endpoint: OwnEndpoint,
    /// The socket that reserves the TCP port chosen by `Bind`, until `Listen` takes the port.
    reserved: Option<OwnedFd>,
    /// The entry of the address in the list of this process, until the listener is closed.
    address: Option<ListenerAddress>,
    listening: bool,
    /// How many connection requests may be queued.
    backlog: usize,
    /// Connection requests without a `GetConnectionRequest`, oldest first.
    queued: VecDeque<Incoming>,
    /// Pending `GetConnectionRequest`s, oldest first.
    waiting: VecDeque<(Request, Arc<Connector>)>,
}

impl Adapter {
    /// Creates a listener whose requests run on `file` (`IND2Adapter::CreateListener`).
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; `ND_NO_MEMORY` or `ND_INSUFFICIENT_RESOURCES` if memory or descriptors
    /// run out.
    pub fn create_listener(self: &Arc<Self>, file: &Arc<File>) -> Result<Arc<Listener>> {
        self.check()?;
        Listener::new(self.file(file)?)
    }
}

/// Reserves a free TCP port at `address` for as long as the socket lives. The driver can still listen there, as both
/// sockets have `SO_REUSEADDR` (socket(7)); the kernel gives the port to no other socket.
fn reserve_port(address: SockAddr) -> io::Result<(SockAddr, OwnedFd)> {
    let (raw, length) = address.to_raw();
    let family = if SocketAddr::from(address).is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: the arguments are numbers; the kernel accesses no memory of the process.
    let socket = made(unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) })?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    // SAFETY: the address has that length.
    succeeded(unsafe { libc::bind(socket.as_raw_fd(), raw.as_ptr().cast(), length) })?;
    let chosen = SocketAddr::try_from(getsockname(&socket)?)?;
    Ok((chosen.into(), socket))
}

impl Listener {
    fn new(file: Arc<AdapterFile>) -> Result<Arc<Listener>> {
        // Opened first: all methods, and dropping, rely on the channel.
        file.connections()?;
        let listener = Arc::new(Listener {
            file,
            cookie: Cookie::next(),
            requests: Arc::default(),
            state: Mutex::default(),
        });
        listener.channel()?.add(listener.cookie, Arc::downgrade(&listener) as _);
        listener.file.register(&listener);
        Ok(listener)
    }

    /// Binds to a local address (`IND2Listener::Bind`); port 0 takes a free one, the wildcard all addresses of the adapter.
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; `STATUS_ADDRESS_ALREADY_ASSOCIATED` if the listener is bound;
    /// `ND_INVALID_DEVICE_STATE` once it is closed; `ND_SHARING_VIOLATION` if the address is taken; `ND_TOO_MANY_ADDRESSES`
    /// if no port is free; `ND_INVALID_ADDRESS` if the address is not the adapter's; `ND_INSUFFICIENT_RESOURCES`.
    pub fn bind(&self, address: SockAddr) -> Result<()> {
        self.adapter().check()?;
        let mut state = self.lock();
        match state.endpoint {
            OwnEndpoint::None => {}
            OwnEndpoint::Open(_) => return Err(Status::ADDRESS_ALREADY_ASSOCIATED),
            OwnEndpoint::Closed(_) => return Err(Status::INVALID_DEVICE_STATE),
        }
        let not_bound = |&status: &_| diagnosis::not_bound(address, &self.adapter().device_name(), status);
        let (id, reserved) = self.bind_id(address).inspect_err(not_bound)?;
        tracing::debug!(target: "ndcompat::connection", listener = self.cookie.number(), address = id.local_addr().map(tracing::field::display), "Bind");
        state.address = id.local_addr().map(ListenerAddress::new);
        state.reserved = reserved;
        state.endpoint = OwnEndpoint::Open(Endpoint::new(self.file.clone(), id));
        Ok(())
    }

    /// Binds an id. If the driver listens on a TCP port of the host (siw), port 0 is chosen and reserved by TCP.
    fn bind_id(&self, address: SockAddr) -> Result<(Id, Option<OwnedFd>)> {
        if self.adapter().limits().quirks.kernel_tcp && address.port() == 0 {
            for _ in 0..PORT_ATTEMPTS {
                let Ok((chosen, reserved)) = reserve_port(address) else { break };
                match endpoint::bind(&self.file, self.cookie, chosen) {
                    Err(Status::SHARING_VIOLATION) => {}
                    bound => return Ok((bound?, Some(reserved))),
                }
            }
        }
        Ok((endpoint::bind(&self.file, self.cookie, address)?, None))
    }

    /// Starts to listen (`IND2Listener::Listen`). `backlog` is the limit of queued connection requests; 0 means none.
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; `ND_ADDRESS_NOT_ASSOCIATED` before `Bind`; `ND_INVALID_DEVICE_STATE` if
    /// the listener listens already, or is closed; `ND_SHARING_VIOLATION` if another listener has the port;
    /// `ND_INSUFFICIENT_RESOURCES`.
    pub fn listen(&self, backlog: u32) -> Result<()> {
        self.adapter().check()?;
        let mut state = self.lock();
        let endpoint = match &state.endpoint {
            OwnEndpoint::None => return Err(Status::ADDRESS_NOT_ASSOCIATED),
            OwnEndpoint::Open(endpoint) if !state.listening => endpoint.clone(),
            _ => return Err(Status::INVALID_DEVICE_STATE),
        };
        let listening = endpoint.id().listen(KERNEL_BACKLOG).map_err(|error| match error.raw_os_error() {
            Some(libc::EADDRINUSE) => Status::SHARING_VIOLATION.because(&error),
            _ => Status::INSUFFICIENT_RESOURCES.because(&error),
        });
        listening.inspect_err(|&status| {
            if let Some(address) = endpoint.id().local_addr() {
                diagnosis::not_bound(address, &self.adapter().device_name(), status);
            }
        })?;
        tracing::debug!(target: "ndcompat::connection", listener = self.cookie.number(), backlog, "Listen");
        endpoint.set_listening();
        state.reserved = None;
        state.listening = true;
        state.backlog = if backlog == 0 { usize::MAX } else { backlog as usize };
        Ok(())
    }

    /// The local address and port (`IND2Listener::GetLocalAddress`).
    ///
    /// # Errors
    /// `ND_INVALID_DEVICE_STATE` before `Bind`, and once the listener is closed.
    pub fn local_address(&self) -> Result<SockAddr> {
        self.lock().endpoint.local_address()
    }

    /// Completes `ov` when a peer asks for a connection, which `connector` can then accept or reject
    /// (`IND2Listener::GetConnectionRequest`).
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; `ND_INVALID_PARAMETER_1` for a connector of another adapter;
    /// `ND_INVALID_DEVICE_STATE` unless the listener listens and the connector is new. The request completes with
    /// `ND_CANCELED` or `ND_DEVICE_REMOVED` if that happens before a peer asks.
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub unsafe fn connection_request(&self, connector: &Arc<Connector>, ov: *mut Overlapped) -> Result<()> {
        self.adapter().check()?;
        if !Arc::ptr_eq(connector.adapter(), self.adapter()) {
            return Err(Status::INVALID_PARAMETER_1);
        }
        if !self.lock().listening {
            return Err(Status::INVALID_DEVICE_STATE);
        }
        connector.reserve()?;
        // SAFETY: the caller keeps `ov` valid until the request completes.
        let request = unsafe { self.requests.begin(self.file(), ov) };
        tracing::debug!(target: "ndcompat::connection", listener = self.cookie.number(), connector = connector.number(),
            "GetConnectionRequest");
        self.add_waiting(|waiting| waiting.push_back((request, connector.clone())));
        self.match_up();
        Ok(())
    }

    /// Adds a request to those that wait for a peer. If the listener has been closed meanwhile, or the device is gone, nobody else would
    /// end it.
    fn add_waiting(&self, add: impl FnOnce(&mut VecDeque<(Request, Arc<Connector>)>)) {
        let mut state = self.lock();
        add(&mut state.waiting);
        let listening = state.listening;
        drop(state);
        if !listening {
            self.end_waiting(CancelScope::All, Status::CANCELED);
        } else if self.adapter().is_known_gone() {
            self.end_waiting(CancelScope::All, Status::DEVICE_REMOVED);
        }
    }

    /// Completes pending `GetConnectionRequest`s with queued connection requests.
    fn match_up(&self) {
        loop {
            let mut state = self.lock();
            if state.waiting.is_empty() || state.queued.is_empty() {
                return;
            }
            let (Some(incoming), Some((request, connector))) =
                (state.queued.pop_front(), state.waiting.pop_front())
            else {
                return;
            };
            drop(state);
            let Ok(channel) = self.channel() else { return };
            match connector.adopt(incoming, channel) {
                Ok(()) => request.complete(Status::SUCCESS.0, 0),
                Err(NotAdopted::PeerGone) => {
                    self.add_waiting(|waiting| waiting.push_front((request, connector)))
                }
                Err(NotAdopted::Abandoned(incoming)) => {
                    request.complete(Status::CANCELED.0, 0);
                    self.queue_again(incoming);
                }
            }
        }
    }

    /// Withdraws the pending `GetConnectionRequest` of `connector`, which completes with `ND_CANCELED`. If a peer has come to it already,
    /// the next one gets that peer.
    pub(crate) fn abandon(&self, connector: &Arc<Connector>) {
        let withdrawn = {
            let mut state = self.lock();
            let at = state.waiting.iter().position(|(_, other)| Arc::ptr_eq(other, connector));
            at.and_then(|at| state.waiting.remove(at))
        };
        if let Some((request, connector)) = withdrawn {
            connector.unreserve();
            request.complete(Status::CANCELED.0, 0);
        } else if let Some(incoming) = connector.give_back(self.cookie) {
            self.queue_again(incoming);
            self.match_up();
        }
    }

    /// Queues the request of a peer again, as the oldest. Rejects the peer if nobody would take it any more.
    fn queue_again(&self, incoming: Incoming) {
        let mut state = self.lock();
        state.queued.push_front(incoming);
        let over = !state.listening || self.adapter().is_known_gone();
        let rejected = if over { std::mem::take(&mut state.queued) } else { VecDeque::new() };
        drop(state);
        drop(rejected);
    }

    /// Completes all pending requests with `ND_CANCELED`.
    pub fn cancel(&self) {
        Canceller::cancel(self, CancelScope::All);
    }

    /// Stops listening, as [`close`](Self::close) does, and completes `ov` when all connectors accepted here are closed,
    /// too, and the address is free (`INDCompatListener::Close`, an extension).
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; `ND_INVALID_DEVICE_STATE` if it is closed already.
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub unsafe fn close_request(&self, ov: *mut Overlapped) -> Result<()> {
        self.adapter().check()?;
        let mut state = self.lock();
        if matches!(state.endpoint, OwnEndpoint::Closed(_)) {
            return Err(Status::INVALID_DEVICE_STATE);
        }
        tracing::debug!(target: "ndcompat::connection", listener = self.cookie.number(), "Close");
        self.stop_events();
        // SAFETY: the caller keeps `ov` valid until the request completes.
        let request = unsafe { self.requests.begin(self.file(), ov) };
        let closed = state.endpoint.close_with(request);
        (state.address, state.reserved) = (None, None);
        state.listening = false;
        let queued = std::mem::take(&mut state.queued);
        drop(state);
        drop(queued);
        self.end_waiting(CancelScope::All, Status::CANCELED);
        if let Err(request) = closed {
            request.complete(Status::SUCCESS.0, 0);
        }
        Ok(())
    }

    /// Stops listening: rejects queued and later connection requests, and cancels pending requests. The address stays in
    /// use until all connectors accepted here are closed.
    pub fn close(&self) {
        self.stop_events();
        let (endpoint, queued) = {
            let mut state = self.lock();
            (state.address, state.reserved) = (None, None);
            state.listening = false;
            (state.endpoint.close(), std::mem::take(&mut state.queued))
        };
        drop(queued);
        drop(endpoint);
        self.cancel();
    }

    /// Removes the listener's event handler: from now on, connection requests are rejected.
    fn stop_events(&self) {
        if let Ok(channel) = self.channel() {
            channel.remove(self.cookie);
        }
    }

    /// The pending requests.
    pub fn requests(&self) -> &Outstanding {
        &self.requests
    }

    /// The file that the listener's requests run on.
    pub fn file(&self) -> &Arc<File> {
        self.file.file()
    }

    /// The adapter that the listener belongs to.
    pub fn adapter(&self) -> &Arc<Adapter> {
        self.file.adapter()
    }

    fn channel(&self) -> Result<&Arc<ConnectionChannel>> {
        self.file.connections()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Completes the `GetConnectionRequest`s in `scope` with `status`, and releases their connectors. Returns their number.
    fn end_waiting(&self, scope: CancelScope, status: Status) -> usize {
        let mut state = self.lock();
        let chosen = |(request, _): &(Request, _)| request.is_in(scope);
        let (chosen, rest): (VecDeque<_>, _) = state.waiting.drain(..).partition(chosen);
        state.waiting = rest;
        drop(state);
        let count = chosen.len();
        for (request, connector) in chosen {
            connector.unreserve();
            request.complete(status.0, 0);
        }
        count
    }

    /// Completes a pending `Close` with `status` if it is in `scope`. Returns the number of requests completed.
    fn end_closing(&self, scope: CancelScope, status: Status) -> usize {
        let endpoint = self.lock().endpoint.closed();
        endpoint.map_or(0, |endpoint| endpoint.end_closing(scope, status))
    }

    /// Removes a queued connection request, as the peer has given up.
    fn forget(&self, id: *mut rdma_cm_id) {
        let gone = {
            let mut state = self.lock();
            let at = state.queued.iter().position(|incoming| incoming.id.as_ptr() == id);
            at.and_then(|at| state.queued.remove(at))
        };
        drop(gone);
    }
}

impl ConnectionHandler for Listener {
    fn event(&self, mut event: Event) {
        let copy = ConnectionEvent::new(&event);
        let subject = event.id();
        let id = event.take_request();
        drop(event);
        match (copy.kind, id) {
            (EventKind::ConnectRequest, Some(id)) => {
                // A listener on the wildcard gets requests that arrive on other devices, too. Dropping the id rejects
                // those.
                if !self.adapter().context().is_named(id.verbs()) {
                    return;
                }
                let mut state = self.lock();
                let Some(endpoint) = state.endpoint.open().cloned() else { return };
                if state.waiting.is_empty() && state.queued.len() >= state.backlog {
                    return;
                }
                state.queued.push_back(Incoming { id, terms: copy.terms, endpoint });
                drop(state);
                self.match_up();
            }
            (EventKind::DeviceRemoval, _) => self.adapter().removed(),
            _ => self.forget(subject),
        }
    }

    fn timed_out(&self, _id: Cookie) {}
}

impl Canceller for Listener {
    fn cancel(&self, scope: CancelScope) -> usize {
        let requests = self.end_waiting(scope, Status::CANCELED) + self.end_closing(scope, Status::CANCELED);
        if requests > 0 {
            tracing::debug!(target: "ndcompat::connection", listener = self.cookie.number(), requests, "Cancel");
        }
        requests
    }
}

impl Removable for Listener {
    fn device_removed(self: Arc<Self>) {
        let queued = std::mem::take(&mut self.lock().queued);
        drop(queued);
        self.end_waiting(CancelScope::All, Status::DEVICE_REMOVED);
        self.end_closing(CancelScope::All, Status::DEVICE_REMOVED);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        tracing::trace!(target: "ndcompat::connection", listener = self.cookie.number(), "released");
        self.close();
    }
}
