//! Adapters: an open RDMA device, and the files that the requests of its objects run on.
//!
//! The `create_*` methods are in the modules of the objects that they create.

use crate::device::async_events::{AsyncEventHandler, AsyncEvents};
use crate::device::clock::Clock;
use crate::device::connection_channel::ConnectionChannel;
use crate::device::limits::Limits;
use crate::device::removal::{Removable, Removal};
use crate::device::routes::Routes;
use crate::diagnosis::{self, host};
use crate::status::{Result, Status};
use crate::sync::membarrier;
use crate::sync::mutex::lock;
use crate::types::AdapterInfo;
use crate::verbs::{self, Context, LocalAddress, ProtectionDomain, SockAddr};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use win32::io::{Canceller, File, Registration, SKIP_PORT_ON_SUCCESS, SKIP_SET_EVENT};

/// An open adapter (`IND2Adapter`). Everything created from it keeps it open. All methods are thread-safe.
///
/// ```
#[doc = include_str!("../rust_api/device.txt")]
/// use ndcompat::Provider;
///
/// let adapter = Provider::open_any()?;
/// let info = adapter.info()?;
/// println!("{}: messages up to {} bytes", adapter.device_name(), info.max_transfer_length);
/// assert!(!adapter.addresses()?.is_empty() && info.max_completion_queue_depth > 0);
/// # Ok::<(), ndcompat::Status>(())
/// ```
pub struct Adapter {
    context: Arc<Context>,
    pd: Arc<ProtectionDomain>,
    limits: Limits,
    removal: Arc<Removal>,
    events: Arc<AsyncEvents>,
    routes: Routes,
    files: Mutex<BTreeMap<usize, Weak<AdapterFile>>>,
}

impl Adapter {
    /// Opens the adapter that has the address.
    pub(crate) fn open(local: &LocalAddress) -> Result<Arc<Adapter>> {
        // The locks of the data path need this, which takes milliseconds.
        membarrier::prepare();
        let removal = Removal::watch(local.context.library(), local.addr)?;
        let context = removal.context()?;
        if verbs::is_fallback(context.library()) {
            diagnosis::no_device();
        }
        let events = AsyncEvents::of(&context)?;
        let pd = ProtectionDomain::create(&context)?;
        let limits = Limits::probe(&context, &pd)?;
        events.add_handler(Arc::downgrade(&removal) as _);
        tracing::info!(target: "ndcompat::device", device = context.name(), address = %local.addr,
            id = format_args!("{:#018x}", limits.info.adapter_id), "adapter opened");
        let (routes, files) = (Routes::default(), Mutex::default());
        Ok(Arc::new(Adapter { context, pd, limits, removal, events, routes, files }))
    }

    /// Creates a file for the overlapped requests of this adapter's objects (`IND2Adapter::CreateOverlappedFile`).
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; `ND_NO_MEMORY` if memory or descriptors run out.
    pub fn create_overlapped_file(&self) -> Result<Arc<File>> {
        self.check()?;
        let file = File::new().map_err(|error| {
            host::report(&error);
            Status::NO_MEMORY.because(&error)
        })?;
        // Both are required by the SPI. The first has no effect, as methods return `ND_PENDING`, never success.
        file.add_notification_modes(SKIP_PORT_ON_SUCCESS | SKIP_SET_EVENT);
        Ok(file)
    }

    /// The adapter's limits and features (`IND2Adapter::Query`).
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone.
    pub fn info(&self) -> Result<AdapterInfo> {
        self.check()?;
        Ok(self.limits.info)
    }

    /// The name of the device, as `ibv_devices` lists it.
    pub fn device_name(&self) -> String {
        self.context.name()
    }

    /// The deviations of the device from the verbs manual that the library compensates for: the name of each, and its
    /// meaning for programs.
    pub fn quirks(&self) -> Vec<(&'static str, &'static str)> {
        self.limits.quirks.in_force()
    }

    /// The addresses of this adapter, with port 0 (`IND2Adapter::QueryAddressList`).
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone; otherwise the errno of listing the machine's addresses as a status.
    pub fn addresses(&self) -> Result<Vec<SockAddr>> {
        self.check()?;
        let mine = |local: &LocalAddress| local.context.is_same_device(&self.context);
        Ok(verbs::addresses()?.into_iter().filter(mine).map(|local| local.addr).collect())
    }

    /// The state of `file` on this adapter, shared by all objects that use it.
    pub(crate) fn file(self: &Arc<Self>, file: &Arc<File>) -> Result<Arc<AdapterFile>> {
        let key = Arc::as_ptr(file) as usize;
        let mut files = lock(&self.files);
        if let Some(known) = files.get(&key).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let new = AdapterFile::new(self, file)?;
        files.retain(|_, file| file.strong_count() > 0);
        files.insert(key, Arc::downgrade(&new));
        Ok(new)
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(crate) fn pd(&self) -> &Arc<ProtectionDomain> {
        &self.pd
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Whether the adapter was opened by `address`. It may have others.
    pub(crate) fn is_at(&self, address: SockAddr) -> bool {
        self.removal.watches(address)
    }

    /// Fails with `ND_DEVICE_REMOVED` once the device is gone. Called without any lock, by all calls except releases.
    pub(crate) fn check(&self) -> Result<()> {
        self.removal.check()
    }

    /// Whether the device is gone, which then is the cause of a failure. Called without any lock.
    pub(crate) fn is_gone(&self) -> bool {
        self.removal.is_gone_now()
    }

    /// Whether the device is known to be gone, so that its objects have been told, or are being told.
    pub(crate) fn is_known_gone(&self) -> bool {
        self.removal.is_known()
    }

    /// Handles an rdma_cm event that the device is gone.
    pub(crate) fn removed(&self) {
        self.removal.device_removed();
    }

    /// Registers `object`, which is notified when the device is gone.
    pub(crate) fn add_removable(&self, object: Weak<dyn Removable>) {
        self.removal.add(object);
    }

    /// Adds the device's asynchronous events and its removal to the sources of `file`.
    pub(crate) fn add_events_to(&self, file: &Arc<File>) -> Result<[Registration; 2]> {
        Ok([
            file.add_source(self.events.fd(), self.events.clone()).map_err(Status::of_host)?,
            file.add_source(self.removal.fd(), self.removal.clone()).map_err(Status::of_host)?,
        ])
    }

    /// Registers `object` for the device's asynchronous events.
    pub(crate) fn add_async_event_handler(&self, object: Weak<dyn AsyncEventHandler>) {
        self.events.add_handler(object);
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter").field("device", &self.device_name()).finish_non_exhaustive()
    }
}

/// The state of a file on one adapter.
pub(crate) struct AdapterFile {
    file: Arc<File>,
    adapter: Arc<Adapter>,
    connections: OnceLock<(Arc<ConnectionChannel>, Registration)>,
    clock: OnceLock<(Arc<Clock>, Registration)>,
    _adapter_events: [Registration; 2],
}

impl AdapterFile {
    fn new(adapter: &Arc<Adapter>, file: &Arc<File>) -> Result<Arc<AdapterFile>> {
        let adapter_events = adapter.add_events_to(file)?;
        Ok(Arc::new(AdapterFile {
            file: file.clone(),
            adapter: adapter.clone(),
            connections: OnceLock::new(),
            clock: OnceLock::new(),
            _adapter_events: adapter_events,
        }))
    }

    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }

    pub(crate) fn adapter(&self) -> &Arc<Adapter> {
        &self.adapter
    }

    /// Registers an object with requests on this file: for their cancellation, and for the removal of the device.
    pub(crate) fn register<T: Canceller + Removable + 'static>(&self, object: &Arc<T>) {
        self.file.add_canceller(Arc::downgrade(object) as Weak<dyn Canceller>);
        self.adapter.add_removable(Arc::downgrade(object) as Weak<dyn Removable>);
    }

    /// The clock of the queue pairs and sessions of the file. The first call makes it.
    pub(crate) fn clock(&self) -> Result<&Clock> {
        if self.clock.get().is_none() {
            // If another thread was first, its clock is kept.
            drop(self.clock.set(Clock::on(&self.file).map_err(Status::of_host)?));
        }
        let (clock, _) = self.clock.get().expect("set above");
        Ok(clock)
    }

    /// The rdma_cm channel of the file's connectors and listeners. The first call opens it.
    pub(crate) fn connections(&self) -> Result<&Arc<ConnectionChannel>> {
        if self.connections.get().is_none() {
            // If another thread was first, its channel is kept.
            drop(
                self.connections.set(ConnectionChannel::open(self.adapter.context().library(), &self.file)?),
            );
        }
        let (channel, _) = self.connections.get().expect("set above");
        Ok(channel)
    }
}
