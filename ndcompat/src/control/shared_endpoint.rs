//! Shared endpoints: a local address that several connectors connect from.

use crate::control::endpoint::{Endpoint, OwnEndpoint, bind};
use crate::device::adapter::{Adapter, AdapterFile};
use crate::device::connection_channel::Cookie;
use crate::device::removal::Removable;
use crate::diagnosis;
use crate::status::{Result, Status};
use crate::sync::mutex::lock;
use crate::verbs::SockAddr;
use std::fmt;
use std::sync::{Arc, Mutex};
use win32::io::{CancelScope, Canceller, File, Outstanding, Overlapped};

/// A local address that several connectors connect from: NDKPI's shared endpoint (`INDCompatSharedEndpoint`, an extension).
/// All methods are thread-safe. Dropping it closes it.
///
/// ```
#[doc = include_str!("../rust_api/device.txt")]
/// use ndcompat::{Offer, Provider, QueuePairConfig, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let adapter = session.adapter();
/// let endpoint = adapter.create_shared_endpoint(session.file(), adapter.addresses()?[0])?;
/// // Port 0: a free port was chosen.
/// let own = endpoint.local_address()?;
/// assert_ne!(own.port(), 0);
///
/// // Any number of connectors connect from it, each to a peer of its own.
/// let acceptor = session.listen(adapter.addresses()?[0].into())?;
/// let queue = adapter.create_completion_queue(session.file(), 16, (0, 0))?;
/// let pair = adapter.create_queue_pair(QueuePairConfig::new(&queue))?;
/// let connector = adapter.create_connector(session.file())?;
/// let to = acceptor.local_address()?.into();
/// let connecting = connector.begin_connect_with_shared_endpoint(&pair, &endpoint, to, Offer::new())?;
/// let incoming = session.wait(acceptor.request())?;
/// assert_eq!(incoming.peer_address()?, own.into());
/// incoming.reject(b"")?;
/// assert!(connecting.wait().is_err());
///
/// // The address is free once its connectors are gone, too.
/// let closing = endpoint.begin_close()?;
/// drop(connector);
/// closing.wait()?;
/// # Ok::<(), ndcompat::Status>(())
/// ```
pub struct SharedEndpoint {
    file: Arc<AdapterFile>,
    requests: Arc<Outstanding>,
    own: Mutex<OwnEndpoint>,
}

impl fmt::Debug for SharedEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedEndpoint").field("adapter", self.file.adapter()).finish_non_exhaustive()
    }
}

impl Adapter {
    /// Reserves a local address for several connectors (`INDCompatAdapter::CreateSharedEndpoint`, an extension). With port
    /// 0, a free port is chosen. Requests run on `file`.
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; `ND_SHARING_VIOLATION` if the address is taken;
    /// `ND_TOO_MANY_ADDRESSES` if no port is free; `ND_INVALID_ADDRESS` if it is not the adapter's;
    /// `ND_INSUFFICIENT_RESOURCES`.
    pub fn create_shared_endpoint(
        self: &Arc<Self>,
        file: &Arc<File>,
        address: SockAddr,
    ) -> Result<Arc<SharedEndpoint>> {
        self.check()?;
        SharedEndpoint::new(self.file(file)?, address)
    }
}

impl SharedEndpoint {
    fn new(file: Arc<AdapterFile>, address: SockAddr) -> Result<Arc<SharedEndpoint>> {
        let not_bound = |&status: &_| diagnosis::not_bound(address, &file.adapter().device_name(), status);
        let id = bind(&file, Cookie::NOBODY, address).inspect_err(not_bound)?;
        id.set_reuse_addr(true).map_err(Status::of_host)?;
        tracing::debug!(target: "ndcompat::connection", address = id.local_addr().map(tracing::field::display), "CreateSharedEndpoint");
        let own = Mutex::new(OwnEndpoint::Open(Endpoint::new(file.clone(), id)));
        let shared = Arc::new(SharedEndpoint { file, requests: Arc::default(), own });
        shared.file.register(&shared);
        Ok(shared)
    }

    /// The local address and port (`INDCompatSharedEndpoint::GetLocalAddress`).
    ///
    /// # Errors
    /// `ND_INVALID_DEVICE_STATE` once it is closed.
    pub fn local_address(&self) -> Result<SockAddr> {
        lock(&self.own).local_address()
    }

    /// Closes the endpoint, and completes `ov` when all its connectors are closed, too, and the address is free
    /// (`INDCompatSharedEndpoint::Close`). No further connector can connect from it.
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; `ND_INVALID_DEVICE_STATE` if it is closed already.
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub unsafe fn close_request(&self, ov: *mut Overlapped) -> Result<()> {
        self.adapter().check()?;
        let mut own = lock(&self.own);
        if own.open().is_none() {
            return Err(Status::INVALID_DEVICE_STATE);
        }
        tracing::debug!(target: "ndcompat::connection", address = own.local_address().ok().map(tracing::field::display),
            "Close of a shared endpoint");
        // SAFETY: the caller keeps `ov` valid until the request completes.
        let request = unsafe { self.requests.begin(self.file(), ov) };
        let closed = own.close_with(request);
        drop(own);
        drop(closed);
        Ok(())
    }

    /// Closes the endpoint, and cancels a pending `Close`. The address stays in use until all connectors are closed.
    pub fn close(&self) {
        let endpoint = lock(&self.own).close();
        drop(endpoint);
        self.cancel();
    }

    /// Completes a pending `Close` with `ND_CANCELED`. The endpoint stays closed.
    pub fn cancel(&self) {
        Canceller::cancel(self, CancelScope::All);
    }

    /// The pending requests.
    pub fn requests(&self) -> &Outstanding {
        &self.requests
    }

    /// The file that the endpoint's requests run on.
    pub fn file(&self) -> &Arc<File> {
        self.file.file()
    }

    /// The adapter that the endpoint belongs to.
    pub fn adapter(&self) -> &Arc<Adapter> {
        self.file.adapter()
    }

    pub(crate) fn endpoint(&self) -> Result<Arc<Endpoint>> {
        lock(&self.own).open().cloned().ok_or(Status::INVALID_DEVICE_STATE)
    }

    fn end_closing(&self, scope: CancelScope, status: Status) -> usize {
        let endpoint = lock(&self.own).closed();
        endpoint.map_or(0, |endpoint| endpoint.end_closing(scope, status))
    }
}

impl Canceller for SharedEndpoint {
    fn cancel(&self, scope: CancelScope) -> usize {
        self.end_closing(scope, Status::CANCELED)
    }
}

impl Removable for SharedEndpoint {
    fn device_removed(self: Arc<Self>) {
        self.end_closing(CancelScope::All, Status::DEVICE_REMOVED);
    }
}

impl Drop for SharedEndpoint {
    fn drop(&mut self) {
        self.close();
    }
}
