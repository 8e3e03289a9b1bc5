//! Endpoints: the reservation of a local address and port by an rdma_cm id.
//!
//! The rules are those of NDKPI. A listener and all connectors that it has accepted share one endpoint; the last of them
//! frees it. Its id listens until then, which keeps the port reserved; once the listener is closed, connection requests are
//! rejected. A [shared endpoint](super::shared_endpoint) serves several connectors that connect from it. Any other connector
//! has its own id instead.
//!
//! rdma_cm lets ids share an address if all have `RDMA_OPTION_ID_REUSEADDR`. The option can be set after the id was bound
//! exclusively: so only the first owner of an address can share it.

use crate::device::adapter::AdapterFile;
use crate::device::connection_channel::Cookie;
use crate::status::{Result, Status};
use crate::sync::mutex::lock;
use crate::verbs::{self, Id, SockAddr};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use win32::io::{CancelScope, Request};

/// Binds a new id to a free address. With port 0, rdma_cm chooses a free port.
pub(crate) fn bind(file: &AdapterFile, cookie: Cookie, address: SockAddr) -> Result<Id> {
    let address = verbs::scoped(address);
    let new = || Id::create(file.connections()?.verbs(), cookie.0).map_err(Status::of_host);
    let id = new()?;
    let status_of = |error: &io::Error| match error.raw_os_error() {
        Some(libc::EADDRINUSE) if address.port() == 0 => Status::TOO_MANY_ADDRESSES,
        Some(libc::EADDRINUSE) => Status::SHARING_VIOLATION,
        // Also the errno for a conflict with the wildcard on the same port.
        Some(libc::EADDRNOTAVAIL)
            if new().is_ok_and(|other| other.bind_addr(address.with_port(0)).is_ok()) =>
        {
            Status::SHARING_VIOLATION
        }
        Some(libc::ENOMEM | libc::ENOBUFS | libc::EMFILE | libc::ENFILE) => Status::INSUFFICIENT_RESOURCES,
        _ => Status::INVALID_ADDRESS,
    };
    id.bind_addr(address).map_err(|error| status_of(&error).because(&error))?;
    // The wildcard binds to no device.
    if !id.verbs().is_null() && !file.adapter().context().is_named(id.verbs()) {
        return Err(Status::INVALID_ADDRESS);
    }
    if file.adapter().context().library().is_emulator() && is_another_devices(file, address) {
        return Err(Status::INVALID_ADDRESS);
    }
    Ok(id)
}

/// Whether the address is a real device's. The emulator can bind to any address of the machine.
fn is_another_devices(file: &AdapterFile, address: SockAddr) -> bool {
    if address.is_unspecified() || file.adapter().is_at(address) {
        return false;
    }
    let found = verbs::addresses_among(|own| own.same_ip(address)).ok().flatten();
    let mut found = found.into_iter().flatten().flatten();
    found.next().is_some_and(|local| !local.context.library().is_emulator())
}

/// Binds another id to an address whose first id has the option to share it.
pub(crate) fn bind_again(file: &AdapterFile, cookie: Cookie, address: SockAddr) -> io::Result<Id> {
    let id = Id::create(file.connections().map_err(|_| io::ErrorKind::NotConnected)?.verbs(), cookie.0)?;
    id.set_reuse_addr(true)?;
    id.bind_addr(address)?;
    Ok(id)
}

/// The addresses that listeners of this process are bound to.
static LISTENERS: Mutex<Vec<SockAddr>> = Mutex::new(Vec::new());

/// The entry of a listener's address in [`LISTENERS`], from `Bind` until the listener is closed. On Windows, programs may
/// bind outgoing connectors to it, too.
pub(crate) struct ListenerAddress(SockAddr);

impl ListenerAddress {
    pub(crate) fn new(address: SockAddr) -> ListenerAddress {
        lock(&LISTENERS).push(address);
        ListenerAddress(address)
    }

    /// Whether a listener of this process has `address`, or the wildcard with its port.
    pub(crate) fn exists(address: SockAddr) -> bool {
        let holds = |own: &SockAddr| {
            let anywhere = own.is_unspecified() && own.family() == address.family();
            own.port() == address.port() && (own.same_ip(address) || anywhere)
        };
        lock(&LISTENERS).iter().any(holds)
    }
}

impl Drop for ListenerAddress {
    fn drop(&mut self) {
        let mut listeners = lock(&LISTENERS);
        if let Some(at) = listeners.iter().position(|own| *own == self.0) {
            listeners.swap_remove(at);
        }
    }
}

/// An endpoint. Dropping the last reference frees the address.
pub(crate) struct Endpoint {
    /// `Some` until the endpoint is dropped.
    id: Option<Id>,
    file: Arc<AdapterFile>,
    listening: AtomicBool,
    /// The pending `Close`, which completes when the endpoint is dropped.
    closing: Mutex<Option<Request>>,
    /// The destination of each connector, by the connector's cookie.
    destinations: Mutex<Vec<(Cookie, SockAddr)>>,
}

impl Endpoint {
    pub(crate) fn new(file: Arc<AdapterFile>, id: Id) -> Arc<Endpoint> {
        Arc::new(Endpoint {
            id: Some(id),
            file,
            listening: AtomicBool::new(false),
            closing: Mutex::default(),
            destinations: Mutex::default(),
        })
    }

    pub(crate) fn id(&self) -> &Id {
        self.id.as_ref().expect("taken only in drop")
    }

    /// Marks the id as listening: it has events to handle even while no request is pending.
    pub(crate) fn set_listening(&self) {
        self.listening.store(true, Ordering::Relaxed);
        self.file.file().expect_events();
    }

    /// Completes a pending `Close` with `status` if it is in `scope`. Returns the number of requests completed. Called
    /// without any lock.
    pub(crate) fn end_closing(&self, scope: CancelScope, status: Status) -> usize {
        let request = lock(&self.closing).take_if(|request| request.is_in(scope));
        request.map_or(0, |request| {
            request.complete(status.0, 0);
            1
        })
    }

    /// Reserves a destination for a connector: two connectors of an endpoint cannot connect to the same one.
    pub(crate) fn take_destination(&self, cookie: Cookie, destination: SockAddr) -> Result<()> {
        let mut destinations = lock(&self.destinations);
        if destinations.iter().any(|&(_, other)| other == destination) {
            return Err(Status::ADDRESS_ALREADY_EXISTS);
        }
        destinations.push((cookie, destination));
        Ok(())
    }

    /// Frees the destination of a connector that has failed to connect or is closed.
    pub(crate) fn leave_destination(&self, cookie: Cookie) {
        lock(&self.destinations).retain(|&(other, _)| other != cookie);
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        drop(self.id.take());
        if *self.listening.get_mut() {
            self.file.file().no_more_events();
        }
        let closing = self.closing.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(request) = closing {
            request.complete(Status::SUCCESS.0, 0);
        }
    }
}

/// The reference of a listener or of a shared endpoint to its endpoint.
#[derive(Default)]
pub(crate) enum OwnEndpoint {
    /// Not bound yet.
    #[default]
    None,
    /// Bound.
    Open(Arc<Endpoint>),
    /// Closed: connectors may still hold references.
    Closed(Weak<Endpoint>),
}

impl OwnEndpoint {
    /// The endpoint, unless it is closed.
    pub(crate) fn open(&self) -> Option<&Arc<Endpoint>> {
        match self {
            OwnEndpoint::Open(endpoint) => Some(endpoint),
            _ => None,
        }
    }

    /// The address and port; `ND_INVALID_DEVICE_STATE` unless it is open.
    pub(crate) fn local_address(&self) -> Result<SockAddr> {
        self.open().and_then(|endpoint| endpoint.id().local_addr()).ok_or(Status::INVALID_DEVICE_STATE)
    }

    /// Closes it, and returns the reference, to be dropped without any lock.
    pub(crate) fn close(&mut self) -> Option<Arc<Endpoint>> {
        let closed = OwnEndpoint::Closed(self.open().map(Arc::downgrade).unwrap_or_default());
        match std::mem::replace(self, closed) {
            OwnEndpoint::Open(endpoint) => Some(endpoint),
            OwnEndpoint::Closed(endpoint) => {
                *self = OwnEndpoint::Closed(endpoint);
                None
            }
            OwnEndpoint::None => None,
        }
    }

    /// As [`close`](Self::close); `request` completes when the last reference is dropped. Without an endpoint, the request
    /// is returned as the error.
    pub(crate) fn close_with(&mut self, request: Request) -> std::result::Result<Arc<Endpoint>, Request> {
        match self.close() {
            Some(endpoint) => {
                *lock(&endpoint.closing) = Some(request);
                Ok(endpoint)
            }
            None => Err(request),
        }
    }

    /// The endpoint of a closed object, while connectors hold it. To be dropped without any lock.
    pub(crate) fn closed(&self) -> Option<Arc<Endpoint>> {
        match self {
            OwnEndpoint::Closed(endpoint) => endpoint.upgrade(),
            _ => None,
        }
    }
}
