//! Endpoints: what keeps a local address and port taken.
//!
//! As NDKPI has them. A listener makes one, and every connector that was accepted through it holds it too; it goes with the
//! last of them. Until then the kernel's id goes on listening, which keeps the port from everybody else on the machine,
//! but a closed listener hears of newcomers no more: they are refused. A shared endpoint is made for several connectors to
//! connect from. A plain connector has an endpoint of its own, its id.
//!
//! rdma_cm lets ids share an address if all of them have said so, and after the first was bound exclusively. So only who has
//! an address already can take it again.

use crate::adapter::Adapter;
use crate::overlapped_file::AdapterFile;
use crate::removal::Removable;
use crate::status::{Result, Status};
use crate::verbs::{Id, SockAddr};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use win32::io::{Canceller, File, Overlapped, Request, Which};

/// Binds a new id to an address that is nobody else's; port 0 takes a free one.
pub(crate) fn bind(file: &AdapterFile, cookie: usize, address: SockAddr) -> Result<Id> {
    let new = || Id::create(file.connections()?.verbs(), cookie).map_err(Status::of_host);
    let id = new()?;
    id.bind_addr(address).map_err(|error| match error.raw_os_error() {
        Some(libc::EADDRINUSE) if address.port() == 0 => Status::TOO_MANY_ADDRESSES,
        Some(libc::EADDRINUSE) => Status::SHARING_VIOLATION,
        // Also what a wildcard and an address with the same port are to each other.
        Some(libc::EADDRNOTAVAIL)
            if new().is_ok_and(|other| other.bind_addr(address.with_port(0)).is_ok()) =>
        {
            Status::SHARING_VIOLATION
        }
        Some(libc::ENOMEM) => Status::INSUFFICIENT_RESOURCES,
        _ => Status::INVALID_ADDRESS,
    })?;
    // A wildcard is bound to no device yet; connecting will tell.
    if !id.verbs().is_null() && id.verbs() != file.adapter().context().as_ptr() {
        return Err(Status::INVALID_ADDRESS);
    }
    Ok(id)
}

/// Binds another id to an address whose id has been told to share it.
pub(crate) fn bind_again(file: &AdapterFile, cookie: usize, address: SockAddr) -> io::Result<Id> {
    let id = Id::create(file.connections().map_err(|_| io::ErrorKind::NotConnected)?.verbs(), cookie)?;
    id.set_reuse_addr(true)?;
    id.bind_addr(address)?;
    Ok(id)
}

/// An endpoint. It goes with its last holder.
pub(crate) struct Endpoint {
    /// Always there, until the endpoint goes.
    id: Option<Id>,
    file: Arc<AdapterFile>,
    listening: AtomicBool,
    /// The `Close` that waits for the end of it.
    closing: Mutex<Option<Request>>,
    /// Whom its connectors connect to, by their cookies.
    destinations: Mutex<Vec<(usize, SockAddr)>>,
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
        self.id.as_ref().expect("goes only in drop")
    }

    /// Its id listens: newcomers are to be heard, or refused, also while nobody waits for one.
    pub(crate) fn set_listening(&self) {
        self.listening.store(true, Ordering::Relaxed);
        self.file.file().expect_events();
    }

    /// Ends a pending `Close`, if it is on `ov`, with `status`; tells how many it were. Called without any lock.
    pub(crate) fn end_closing(&self, which: Which, status: Status) -> usize {
        let request = lock(&self.closing).take_if(|request| request.is_among(which));
        request.map_or(0, |request| {
            request.complete(status.0, 0);
            1
        })
    }

    /// Notes whom a connector connects to; each destination can have one.
    pub(crate) fn take_destination(&self, cookie: usize, destination: SockAddr) -> Result<()> {
        let mut destinations = lock(&self.destinations);
        if destinations.iter().any(|&(_, other)| other == destination) {
            return Err(Status::ADDRESS_ALREADY_EXISTS);
        }
        destinations.push((cookie, destination));
        Ok(())
    }

    /// A connector has failed to connect, or is gone.
    pub(crate) fn leave_destination(&self, cookie: usize) {
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an object holds of the endpoint that it has made.
#[derive(Default)]
pub(crate) enum Hold {
    /// It has none yet.
    #[default]
    None,
    /// It is the endpoint's own reference.
    Open(Arc<Endpoint>),
    /// It has given its reference up.
    Closed(Weak<Endpoint>),
}

impl Hold {
    pub(crate) fn open(&self) -> Option<&Arc<Endpoint>> {
        match self {
            Hold::Open(endpoint) => Some(endpoint),
            _ => None,
        }
    }

    /// Gives the reference up, to be dropped without any lock.
    pub(crate) fn close(&mut self) -> Option<Arc<Endpoint>> {
        let closed = Hold::Closed(self.open().map(Arc::downgrade).unwrap_or_default());
        match std::mem::replace(self, closed) {
            Hold::Open(endpoint) => Some(endpoint),
            Hold::Closed(endpoint) => {
                *self = Hold::Closed(endpoint);
                None
            }
            Hold::None => None,
        }
    }

    /// Gives the reference up, to be dropped without any lock: `request` completes when all others have done so. Without
    /// an endpoint there is nothing to wait for, and the request comes back.
    pub(crate) fn close_with(&mut self, request: Request) -> std::result::Result<Arc<Endpoint>, Request> {
        match self.close() {
            Some(endpoint) => {
                *lock(&endpoint.closing) = Some(request);
                Ok(endpoint)
            }
            None => Err(request),
        }
    }

    /// The endpoint whose reference was given up, if others keep it; to be dropped without any lock.
    pub(crate) fn closed(&self) -> Option<Arc<Endpoint>> {
        match self {
            Hold::Closed(endpoint) => endpoint.upgrade(),
            _ => None,
        }
    }
}

/// A local address that several connectors connect from: what NDKPI calls a shared endpoint.
/// All methods are thread-safe. Dropping it gives up its own reference to the address.
pub struct SharedEndpoint {
    file: Arc<AdapterFile>,
    hold: Mutex<Hold>,
}

impl SharedEndpoint {
    pub(crate) fn new(file: Arc<AdapterFile>, address: SockAddr) -> Result<Arc<SharedEndpoint>> {
        // Its id hears of nothing: cookie 0 is nobody's.
        let id = bind(&file, 0, address)?;
        id.set_reuse_addr(true).map_err(Status::of_host)?;
        let hold = Mutex::new(Hold::Open(Endpoint::new(file.clone(), id)));
        let shared = Arc::new(SharedEndpoint { file, hold });
        shared.file().add_canceller(Arc::downgrade(&shared) as _);
        shared.adapter().tell_of_removal(Arc::downgrade(&shared) as _);
        Ok(shared)
    }

    /// The address, with its port (`GetLocalAddress`).
    pub fn local_address(&self) -> Result<SockAddr> {
        self.endpoint()?.id().local_addr().ok_or(Status::INVALID_DEVICE_STATE)
    }

    /// Gives the address up, and completes `ov` when all connectors have done so (`Close`). No others can join meanwhile.
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub unsafe fn close_request(&self, ov: *mut Overlapped) -> Result<()> {
        self.adapter().check()?;
        let mut hold = lock(&self.hold);
        if hold.open().is_none() {
            return Err(Status::INVALID_DEVICE_STATE);
        }
        // SAFETY: passed on to the caller.
        let request = unsafe { self.file().begin(ov) };
        let closed = hold.close_with(request);
        drop(hold);
        drop(closed);
        Ok(())
    }

    /// Gives the address up, and cancels a pending `Close`.
    pub fn close(&self) {
        let endpoint = lock(&self.hold).close();
        drop(endpoint);
        self.cancel();
    }

    /// Completes a pending `Close` with `ND_CANCELED`. It is closed all the same.
    pub fn cancel(&self) {
        Canceller::cancel(self, Which::All);
    }

    /// The file that its requests run on.
    pub fn file(&self) -> &Arc<File> {
        self.file.file()
    }

    /// The adapter that it belongs to.
    pub fn adapter(&self) -> &Arc<Adapter> {
        self.file.adapter()
    }

    pub(crate) fn endpoint(&self) -> Result<Arc<Endpoint>> {
        lock(&self.hold).open().cloned().ok_or(Status::INVALID_DEVICE_STATE)
    }

    fn end_closing(&self, which: Which, status: Status) -> usize {
        let endpoint = lock(&self.hold).closed();
        endpoint.map_or(0, |endpoint| endpoint.end_closing(which, status))
    }
}

impl Canceller for SharedEndpoint {
    fn cancel(&self, which: Which) -> usize {
        self.end_closing(which, Status::CANCELED)
    }
}

impl Removable for SharedEndpoint {
    fn device_removed(self: Arc<Self>) {
        self.end_closing(Which::All, Status::DEVICE_REMOVED);
    }
}

impl Drop for SharedEndpoint {
    fn drop(&mut self) {
        self.close();
    }
}
