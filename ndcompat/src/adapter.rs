//! Adapters: one RDMA device, opened.

use crate::async_events::AsyncEvents;
use crate::completion_queue::{CompletionQueue, Queue};
use crate::connector::Connector;
use crate::endpoint::SharedEndpoint;
use crate::limits::Limits;
use crate::listener::Listener;
use crate::membarrier;
use crate::memory_region::MemoryRegion;
use crate::memory_window::MemoryWindow;
use crate::overlapped_file::AdapterFile;
use crate::queue_pair::{QueuePair, QueuePairConfig};
use crate::removal::{Removable, Removal};
use crate::routes::Routes;
use crate::shared_receive_queue::{Shared, SharedReceiveQueue, SharedReceiveQueueConfig};
use crate::status::{Result, Status};
use crate::types::AdapterInfo;
use crate::verbs::{Context, ProtectionDomain, SockAddr, addresses};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use win32::io::{File, Registration, SKIP_PORT_ON_SUCCESS, SKIP_SET_EVENT};

/// An opened adapter (`IND2Adapter`). Everything created from it keeps it open. All methods are thread-safe.
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
    /// Opens the adapter that `address` belongs to.
    pub(crate) fn open(address: SockAddr) -> Result<Arc<Adapter>> {
        // Here, where it may take a while: the locks of the data path are to be had for less then.
        membarrier::prepare();
        let removal = Removal::watch(address)?;
        let context = removal.context()?;
        let pd = ProtectionDomain::create(&context)?;
        let limits = Limits::probe(&context, &pd)?;
        let events = AsyncEvents::of(&context)?;
        events.watch_removal(&removal);
        let (routes, files) = (Routes::default(), Mutex::default());
        Ok(Arc::new(Adapter { context, pd, limits, removal, events, routes, files }))
    }

    /// Opens a file for the overlapped requests of this adapter's objects (`CreateOverlappedFile`).
    pub fn create_overlapped_file(&self) -> Result<Arc<File>> {
        self.check()?;
        let file = File::new().map_err(|_| Status::NO_MEMORY)?;
        // As the SPI asks. Requests answer ND_PENDING and complete later, so the first has nothing to skip.
        file.add_notification_modes(SKIP_PORT_ON_SUCCESS | SKIP_SET_EVENT);
        Ok(file)
    }

    /// What the adapter can do (`Query`). Fails once the device is gone.
    pub fn info(&self) -> Result<AdapterInfo> {
        self.check()?;
        Ok(self.limits.info)
    }

    /// The name of the device, as `ibv_devices` lists it.
    pub fn device_name(&self) -> String {
        self.context.name()
    }

    /// The addresses that reach this adapter, with port 0 (`QueryAddressList`).
    pub fn addresses(&self) -> Result<Vec<SockAddr>> {
        self.check()?;
        let mine = |local: &crate::verbs::LocalAddress| local.context.as_ptr() == self.context.as_ptr();
        Ok(addresses()?.into_iter().filter(mine).map(|local| local.addr).collect())
    }

    /// Creates a completion queue for `depth` results whose notifications run on `file`.
    ///
    /// `affinity` (group and mask) is a wish, returned by [`CompletionQueue::notify_affinity`]: the threads that wait
    /// are the caller's own.
    pub fn create_completion_queue(
        self: &Arc<Self>,
        file: &Arc<File>,
        depth: u32,
        affinity: (u16, u64),
    ) -> Result<Arc<CompletionQueue>> {
        self.check()?;
        Ok(Arc::new(CompletionQueue::new(self, self.file(file)?, depth, affinity)?))
    }

    /// Creates a memory region without memory, whose requests run on `file`.
    pub fn create_memory_region(self: &Arc<Self>, file: &Arc<File>) -> Result<Arc<MemoryRegion>> {
        self.check()?;
        Ok(Arc::new(MemoryRegion::new(self.file(file)?)))
    }

    /// Creates a memory window that is not bound.
    pub fn create_memory_window(self: &Arc<Self>) -> Result<Arc<MemoryWindow>> {
        self.check()?;
        Ok(Arc::new(MemoryWindow::new(self)?))
    }

    /// Creates a shared receive queue whose notifications run on `file`.
    pub fn create_shared_receive_queue(
        self: &Arc<Self>,
        file: &Arc<File>,
        config: SharedReceiveQueueConfig,
    ) -> Result<Arc<SharedReceiveQueue>> {
        self.check()?;
        Ok(Arc::new(SharedReceiveQueue::new(self.file(file)?, config)?))
    }

    /// Creates a queue pair.
    pub fn create_queue_pair(self: &Arc<Self>, config: QueuePairConfig) -> Result<QueuePair> {
        self.check()?;
        QueuePair::new(self, config)
    }

    /// Creates a connector whose requests run on `file`.
    pub fn create_connector(self: &Arc<Self>, file: &Arc<File>) -> Result<Arc<Connector>> {
        self.check()?;
        Connector::new(self.file(file)?)
    }

    /// Creates a listener whose requests run on `file`.
    pub fn create_listener(self: &Arc<Self>, file: &Arc<File>) -> Result<Arc<Listener>> {
        self.check()?;
        Listener::new(self.file(file)?)
    }

    /// Takes a local address for several connectors to connect from, whose requests run on `file`; port 0 takes a free one
    /// (an extension: `CreateSharedEndpoint`).
    pub fn create_shared_endpoint(
        self: &Arc<Self>,
        file: &Arc<File>,
        address: SockAddr,
    ) -> Result<Arc<SharedEndpoint>> {
        self.check()?;
        SharedEndpoint::new(self.file(file)?, address)
    }

    /// What this adapter keeps for `file`, while any object uses it.
    fn file(self: &Arc<Self>, file: &Arc<File>) -> Result<Arc<AdapterFile>> {
        let key = Arc::as_ptr(file) as usize;
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Whether `address` is the one that the adapter was opened with; of other addresses the kernel knows.
    pub(crate) fn is_at(&self, address: SockAddr) -> bool {
        self.removal.watches(address)
    }

    /// `ND_DEVICE_REMOVED` once the device is gone. Called without any lock, by all that is no cleaning up.
    pub(crate) fn check(&self) -> Result<()> {
        self.removal.check()
    }

    /// Whether a failure is to be blamed on the device, which is gone. Called without any lock.
    pub(crate) fn is_gone(&self) -> bool {
        self.removal.has_happened()
    }

    /// Whether the device is known to be gone, which takes no look. May be called with locks held.
    #[inline]
    pub(crate) fn is_known_gone(&self) -> bool {
        self.removal.is_known()
    }

    /// A connection-management event said that the device is gone.
    pub(crate) fn removed(&self) {
        self.removal.happened();
    }

    /// Lets `object` know when the device is gone.
    pub(crate) fn tell_of_removal(&self, object: Weak<dyn Removable>) {
        self.removal.tell(object);
    }

    /// Lets whoever waits on `file` hear of the device's failures and of its removal.
    pub(crate) fn add_events_to(&self, file: &Arc<File>) -> Result<[Registration; 2]> {
        Ok([
            file.add_source(self.events.fd(), self.events.clone()).map_err(Status::of_host)?,
            file.add_source(self.removal.fd(), self.removal.clone()).map_err(Status::of_host)?,
        ])
    }

    pub(crate) fn watch_completion_queue(&self, queue: &Arc<Queue>) {
        self.events.watch_completion_queue(queue);
        self.tell_of_removal(Arc::downgrade(queue) as _);
    }

    pub(crate) fn watch_shared_receive_queue(&self, queue: &Arc<Shared>) {
        self.events.watch_shared_receive_queue(queue);
        self.tell_of_removal(Arc::downgrade(queue) as _);
    }
}
