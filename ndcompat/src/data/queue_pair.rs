//! Queue pairs: creation, and the link to their connection.
//!
//! The parameters are in `config`, whether requests may be posted is in `readiness`, the end of a queue pair in `failure`. Posting
//! is in `posting`.

mod config;
mod failure;
#[cfg(test)]
mod model;
mod readiness;
mod receiver;

pub use config::QueuePairConfig;
use readiness::{Bounds, Readiness};
pub(crate) use receiver::RETRIES;
use receiver::{LONG, Receiver};

use crate::data::completion_queue::CompletionQueue;
use crate::data::request_queue::{QueueOwner, RequestQueue};
use crate::data::shared_receive_queue::SharedReceiveQueue;
use crate::device::adapter::Adapter;
use crate::status::{Result, Status};
use crate::sync::cache_aligned::CacheAligned;
use crate::sync::mutex::lock;
use crate::types::{RequestFlags, RequestType, Sge};
use crate::verbs::{self, Id, bindings::*};
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::atomic::{self, AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// A queue pair (`IND2QueuePair`). All methods are thread-safe. Dropping it ends its connection.
///
/// [`Pair`](crate::Pair) does the same without `unsafe`: its requests own their memory.
///
/// ```
#[doc = include_str!("../rust_api/connected_objects.txt")]
/// use ndcompat::types::{Completion, RegionFlags, RequestFlags, Sge};
/// use ndcompat::{Provider, QueuePairConfig, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let (adapter, file) = (session.adapter(), session.file());
/// let queue = adapter.create_completion_queue(file, 64, (0, 0))?;
/// let pair = || adapter.create_queue_pair(QueuePairConfig::new(&queue));
/// let (active, passive) = (pair()?, pair()?);
///
/// let mut memory = [0; 10];
/// let region = adapter.create_memory_region(file)?;
/// // SAFETY: the memory outlives the region, and nothing else uses it.
/// unsafe { region.begin_register(memory.as_mut_ptr(), 10, RegionFlags::ALLOW_LOCAL_WRITE) }?.wait()?;
/// let (buffer, token) = (memory.as_ptr() as u64, region.local_token());
/// let first = [Sge { buffer, length: 5, token }];
/// let second = [Sge { buffer: buffer + 5, length: 5, token }];
///
/// // SAFETY: the memory is valid until the request has completed.
/// unsafe { passive.receive(1, &second) }?;
/// let connection = connect(&session, &active, &passive)?;
/// // SAFETY: the memory is valid until the request has completed.
/// unsafe { active.send(2, &first, RequestFlags::empty()) }?;
/// let mut results = [Completion::default(); 2];
/// let mut count = 0;
/// while count < 2 {
///     count += queue.wait_for_results(&mut results[count..])?;
/// }
/// assert!(results.iter().all(|result| result.status.is_success()));
/// # drop((connection, active, passive));
/// # drop(region);
/// # Ok::<(), ndcompat::Status>(())
/// ```
pub struct QueuePair {
    pub(crate) core: Arc<Core>,
}

/// The state of a queue pair, shared with its connection and its completion queues.
pub(crate) struct Core {
    adapter: Arc<Adapter>,
    pub(crate) qp: ManuallyDrop<verbs::QueuePair>,
    pub(crate) initiator: ManuallyDrop<CacheAligned<RequestQueue>>,
    /// None with a shared receive queue.
    pub(crate) receive: ManuallyDrop<Option<CacheAligned<RequestQueue>>>,
    shared: Option<Arc<SharedReceiveQueue>>,
    pub(super) initiator_completion_queue: Arc<CompletionQueue>,
    pub(super) receive_completion_queue: Arc<CompletionQueue>,
    pub(crate) limits: PostLimits,
    number: u32,
    readiness: Readiness,
    /// The fast path takes receives with one SGE that is shorter than this, in bytes. 0 with a shared receive queue.
    pub(crate) receive_bound: AtomicU64,
    /// See [`QueueOwner::is_lossy`].
    pub(super) lossy: AtomicBool,
    /// Whether the peer has receives for messages.
    receiver: Receiver,
    connection: Mutex<Option<Weak<dyn Connection>>>,
    /// The [`path`] that the device's queue pair has.
    path: AtomicU32,
}

/// A port of the device, and the index of a partition in its table: where a connection goes.
fn path(port: u8, partition: u16) -> u32 {
    u32::from(port) << 16 | u32::from(partition)
}

/// What a queue pair reports to its connection.
pub(crate) trait Connection: Send + Sync {
    /// The queue pair was released.
    fn released(&self);

    /// A request has failed. On RoCE, this may be the only sign that the connection is gone.
    fn failed(&self);

    /// The device has flushed receives, as the peer has disconnected; see [`Core::defer_flushed`].
    fn flushed(&self);

    /// Waits until no call of the program is changing the connection.
    fn wait_for_calls(&self);
}

/// The limits that posting checks.
pub(crate) struct PostLimits {
    pub max_initiator_sge: u32,
    pub max_receive_sge: u32,
    /// The limit of SGEs of a read on the device; reads with more are split.
    pub device_read_sge: u32,
    pub max_inline: u32,
    pub max_transfer: u64,
    /// The flags of a read that are not ignored. Programs leave `INLINE` set, and not every device can fence reads.
    pub read_flags: RequestFlags,
}

/// Programs post two SGEs on queue pairs created for one, which Windows hardware has room for.
const MIN_SGE: u32 = 2;

/// Access flags of the queue pair: all, as regions and windows restrict access.
const ACCESS: ibv_access_flags = IBV_ACCESS_LOCAL_WRITE as ibv_access_flags
    | IBV_ACCESS_REMOTE_WRITE as ibv_access_flags
    | IBV_ACCESS_REMOTE_READ as ibv_access_flags;

impl Adapter {
    /// Creates a queue pair.
    ///
    /// # Errors
    /// `ND_INVALID_PARAMETER_2`, `_3` or `_4` for a receive completion queue, an initiator completion queue or a shared
    /// receive queue of another adapter; `_5` to `_9` for depths, numbers of SGEs and inline bytes beyond
    /// [`AdapterInfo`](crate::types::AdapterInfo)'s; `ND_INSUFFICIENT_RESOURCES` if the device has no room;
    /// `ND_DEVICE_REMOVED`.
    pub fn create_queue_pair(self: &Arc<Self>, config: QueuePairConfig) -> Result<QueuePair> {
        self.check()?;
        QueuePair::new(self, config)
    }
}

impl QueuePair {
    fn new(adapter: &Arc<Adapter>, config: QueuePairConfig) -> Result<QueuePair> {
        let foreign = |queue: &CompletionQueue| !Arc::ptr_eq(queue.adapter(), adapter);
        if foreign(&config.receive_completion_queue) {
            return Err(Status::INVALID_PARAMETER_2);
        }
        if foreign(&config.initiator_completion_queue) {
            return Err(Status::INVALID_PARAMETER_3);
        }
        let shared = config.shared_receive_queue;
        if shared.as_ref().is_some_and(|shared| !Arc::ptr_eq(shared.adapter(), adapter)) {
            return Err(Status::INVALID_PARAMETER_4);
        }
        let limits = adapter.limits();
        let mut asked = ibv_qp_cap {
            max_send_wr: config.initiator_queue_depth,
            max_recv_wr: config.receive_queue_depth,
            max_send_sge: config.max_initiator_sge,
            max_recv_sge: config.max_receive_sge,
            max_inline_data: config.inline_data_size,
        };
        if shared.is_some() {
            (asked.max_recv_wr, asked.max_recv_sge) = (0, 0);
        }
        limits.check_queue_pair(&asked, shared.is_some())?;
        let info = &limits.info;
        let max_initiator_sge = asked.max_send_sge.max(MIN_SGE).min(info.max_initiator_sge);
        let max_receive_sge = asked.max_recv_sge.max(1);
        let max_inline = asked.max_inline_data.min(info.max_inline_data_size);
        let qp = verbs::QueuePair::create(verbs::QueuePairConfig {
            pd: adapter.pd().clone(),
            send_cq: config.initiator_completion_queue.verbs().clone(),
            recv_cq: config.receive_completion_queue.verbs().clone(),
            srq: shared.as_ref().map(|shared| shared.shared.srq.clone()),
            cap: ibv_qp_cap {
                max_send_wr: limits.send_requests(asked.max_send_wr, max_initiator_sge),
                max_recv_wr: asked.max_recv_wr.max(1),
                max_send_sge: max_initiator_sge,
                max_recv_sge: max_receive_sge,
                max_inline_data: max_inline,
            },
            cookie: 0,
        })
        .map_err(|error| Status::of_creation(&error))?;
        tracing::debug!(target: "ndcompat::queue", device = adapter.device_name(), qp = qp.number(),
            receive_cq = config.receive_completion_queue.verbs().number(),
            initiator_cq = config.initiator_completion_queue.verbs().number(),
            srq = shared.as_ref().map(|shared| shared.shared.srq.number()), "CreateQueuePair");
        // The default partition.
        qp.to_init(1, 0, ACCESS)?;
        let (fenced_reads, signal_reads) = (limits.quirks.fenced_reads, limits.quirks.reads_are_overtaken);
        let mut read_flags = RequestFlags::all().difference(RequestFlags::INLINE);
        read_flags.set(RequestFlags::READ_FENCE, fenced_reads);
        let limits = PostLimits {
            max_initiator_sge,
            max_receive_sge,
            device_read_sge: limits.quirks.read_sge,
            max_inline,
            max_transfer: info.max_transfer_length.into(),
            read_flags,
        };
        let core = Arc::new_cyclic(|core: &Weak<Core>| Core {
            adapter: adapter.clone(),
            number: qp.number(),
            receive_bound: AtomicU64::new(if shared.is_some() { 0 } else { limits.max_transfer + 1 }),
            qp: ManuallyDrop::new(qp),
            initiator: ManuallyDrop::new(RequestQueue::new(
                asked.max_send_wr,
                signal_reads,
                config.context,
                core.clone() as _,
            )),
            receive: ManuallyDrop::new(
                shared
                    .is_none()
                    .then(|| RequestQueue::new(asked.max_recv_wr, false, config.context, core.clone() as _)),
            ),
            shared: shared.clone(),
            initiator_completion_queue: config.initiator_completion_queue,
            receive_completion_queue: config.receive_completion_queue,
            readiness: Readiness::new(),
            limits,
            lossy: AtomicBool::new(adapter.limits().quirks.lossy_flush),
            receiver: Receiver::default(),
            connection: Mutex::default(),
            path: AtomicU32::new(path(1, 0)),
        });
        if let Some(shared) = &shared {
            core.receive_completion_queue.add_shared(
                (Arc::downgrade(&core) as _, core.number),
                config.context,
                &shared.shared,
            );
        }
        adapter.add_removable(Arc::downgrade(&core) as _);
        Ok(QueuePair { core })
    }

    /// Cancels all outstanding requests (`IND2QueuePair::Flush`). Allowed in any state. Requests posted later are
    /// cancelled, too.
    ///
    /// # Errors
    /// None.
    pub fn flush(&self) -> Result<()> {
        self.flushing()();
        Ok(())
    }

    /// Cancels all outstanding requests, and keeps the device from using their memory from then on.
    ///
    /// # Errors
    /// The status of `ibv_destroy_qp`: the device may go on using the memory.
    pub(crate) fn end_device_use(&self) -> Result<()> {
        self.core.fail();
        self.core.end_device_use().map_err(Status::from)
    }

    /// What [`flush`](Self::flush) does, with a reference of its own: as soon as there are results, another thread may release a queue pair
    /// that is not borrowed.
    #[doc(hidden)]
    pub fn flushing(&self) -> impl FnOnce() + use<> {
        let core = self.core.clone();
        move || {
            tracing::debug!(target: "ndcompat::queue", qp = core.number, "Flush");
            core.fail();
        }
    }

    /// The adapter that the queue pair belongs to.
    pub fn adapter(&self) -> &Arc<Adapter> {
        &self.core.adapter
    }
}

impl fmt::Debug for QueuePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuePair").field("number", &self.core.number).finish_non_exhaustive()
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        if let Some(connection) = self.core.connection() {
            connection.released();
        }
    }
}

impl Core {
    pub(crate) fn adapter(&self) -> &Arc<Adapter> {
        &self.adapter
    }

    /// The SGE list to post for a request without data.
    pub(crate) fn empty_list(&self) -> &'static [Sge] {
        self.adapter.limits().quirks.empty_list()
    }

    /// Links the queue pair to its connection. Fails if it has another.
    pub(crate) fn attach(&self, new: Weak<dyn Connection>) -> Result<()> {
        let mut connection = lock(&self.connection);
        if connection.as_ref().is_some_and(|other| other.strong_count() > 0) || self.readiness.may_post() {
            return Err(Status::CONNECTION_ACTIVE);
        }
        *connection = Some(new);
        Ok(())
    }

    /// Removes the link to a connection that was not established.
    pub(crate) fn detach(&self) {
        *lock(&self.connection) = None;
    }

    fn connection(&self) -> Option<Arc<dyn Connection>> {
        lock(&self.connection).as_ref()?.upgrade()
    }

    /// The port of the device that the connection uses.
    pub(super) fn port(&self) -> u8 {
        (self.path.load(Ordering::Relaxed) >> 16) as u8
    }

    /// Sets the port and the partition of the connection `id` on a queue pair in the INIT state, which has those of an earlier attempt.
    ///
    /// # Errors
    /// `EINVAL` if the peer has given up.
    pub(crate) fn use_path(&self, id: &Id) -> std::io::Result<()> {
        // iWARP has no partitions, and gives no port here.
        let (port, partition) = if self.adapter.limits().quirks.iwarp {
            (id.port_num(), 0)
        } else {
            let (attr, _) = id.init_qp_attr(IBV_QPS_INIT)?;
            (attr.port_num, attr.pkey_index)
        };
        let port = port.max(1);
        let path = path(port, partition);
        if self.path.load(Ordering::Relaxed) != path {
            self.qp.to_init(port, partition, ACCESS)?;
            // Only its one connection changes it.
            self.path.store(path, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Before the connecting side asks its peer. The page has `Accept` complete once the connecting side has called `CompleteConnect`, so a
    /// receive that is posted before that is in time. Over iWARP the peer may send sooner.
    pub(crate) fn expect_receives(&self) {
        self.qp.wait_until_ready();
    }

    /// The connecting side has completed the connection: its receives are there.
    pub(crate) fn has_receives(&self) {
        self.qp.set_ready();
    }

    /// Allows requests other than receives, with the outbound read limit of the connection.
    pub(crate) fn set_ready(&self, outbound_reads: u32) {
        self.readiness.connected(outbound_reads, self.bounds());
    }

    fn bounds(&self) -> Bounds {
        let limits = &self.limits;
        // Long messages take the slow path, which gives them their time.
        let messages = (limits.max_transfer + 1).min(LONG);
        Bounds { messages, inline: u64::from(limits.max_inline) + 1, reads: limits.max_transfer + 1 }
    }

    /// The bound for the fast path.
    #[inline(always)]
    pub(crate) fn bound(&self, kind: RequestType, flags: RequestFlags) -> &AtomicU64 {
        self.readiness.bound(kind, flags)
    }

    /// The queue pair number.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The peer's receives.
    pub(crate) fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Whether the queue pair is connected and has not failed.
    pub(crate) fn is_ready(&self) -> bool {
        self.readiness.is_ready()
    }

    /// Whether receives come from a shared queue.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Reaps the completions of the initiator queue, which frees the slots of silent requests.
    #[cold]
    pub(crate) fn reap_initiator(&self) {
        self.initiator_completion_queue.reap_all();
    }

    /// Whether requests other than receives may be posted.
    #[inline]
    pub(crate) fn was_connected(&self) -> bool {
        self.readiness.may_post()
    }

    /// Checks that requests other than receives may be posted.
    ///
    /// # Errors
    /// `ND_CONNECTION_INVALID`.
    #[inline]
    pub(crate) fn check_connected(&self) -> Result<()> {
        if self.was_connected() || self.is_being_connected() {
            Ok(())
        } else {
            Err(Status::CONNECTION_INVALID)
        }
    }

    /// Waits for an `Accept` or `CompleteConnect` in progress, then checks again: the peer's first message may arrive, and
    /// another thread answer it, before that call returns.
    #[cold]
    fn is_being_connected(&self) -> bool {
        if let Some(connection) = self.connection() {
            connection.wait_for_calls();
        }
        self.was_connected()
    }

    /// Whether the connection allows reads by this side.
    #[inline]
    pub(crate) fn may_read(&self) -> bool {
        self.readiness.may_read()
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        tracing::trace!(target: "ndcompat::queue", qp = self.number, "released");
        if self.shared.is_some() {
            // Drivers such as mlx5's take a queue pair's completions with it, but the receives are the shared queue's.
            self.receive_completion_queue.save_completions();
        }
        // The device's queue pair goes first: its queued completions point into the request queues. SAFETY: the queue pair
        // is not used after this.
        unsafe { ManuallyDrop::drop(&mut self.qp) };
        // SAFETY: the field is not used after this.
        let initiator = unsafe { ManuallyDrop::take(&mut self.initiator) };
        // SAFETY: the field is not used after this.
        let receive = unsafe { ManuallyDrop::take(&mut self.receive) };
        let failed = self.readiness.has_failed();
        let owner: &dyn QueueOwner = &*self;
        self.initiator_completion_queue.retire(initiator, failed.then_some(owner));
        match receive {
            Some(receive) => self.receive_completion_queue.retire(receive, failed.then_some(owner)),
            None => self.receive_completion_queue.retire_shared(self.number, owner, failed),
        }
    }
}
