//! Queue pairs: their making, their failing, and who is connected with them. Posting is in `posting`.

use crate::adapter::Adapter;
use crate::completion_queue::CompletionQueue;
use crate::connector::Connector;
use crate::lines::Lines;
use crate::removal::Removable;
use crate::request_queue::RequestQueue;
use crate::shared_receive_queue::SharedReceiveQueue;
use crate::status::{Result, Status};
use crate::types::Sge;
use crate::verbs::{self, bindings::*};
use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What a queue pair is created with (`CreateQueuePair`). Depths count requests, the limits are the adapter's.
pub struct QueuePairConfig {
    /// Where receives complete.
    pub receive_completion_queue: Arc<CompletionQueue>,
    /// Where all other requests complete.
    pub initiator_completion_queue: Arc<CompletionQueue>,
    /// Returned with every completion.
    pub context: u64,
    /// Where its receives come from, instead of a queue of its own.
    pub shared_receive_queue: Option<Arc<SharedReceiveQueue>>,
    /// How many receives may be outstanding. Without meaning, like `max_receive_sge`, with a shared queue.
    pub receive_queue_depth: u32,
    /// How many other requests may be outstanding.
    pub initiator_queue_depth: u32,
    /// How many entries a receive's scatter/gather list may have.
    pub max_receive_sge: u32,
    /// How many entries another request's scatter/gather list may have.
    pub max_initiator_sge: u32,
    /// How many bytes a request may carry inline.
    pub inline_data_size: u32,
}

/// A queue pair (`IND2QueuePair`). All methods are thread-safe. Dropping it disconnects it.
pub struct QueuePair {
    pub(crate) core: Arc<Core>,
}

/// The queue pair as its connection and its completion queues share it.
pub(crate) struct Core {
    adapter: Arc<Adapter>,
    pub(crate) qp: ManuallyDrop<verbs::QueuePair>,
    pub(crate) initiator: ManuallyDrop<Lines<RequestQueue>>,
    /// None with a shared receive queue.
    pub(crate) receive: ManuallyDrop<Option<Lines<RequestQueue>>>,
    shared: Option<Arc<SharedReceiveQueue>>,
    initiator_completion_queue: Arc<CompletionQueue>,
    receive_completion_queue: Arc<CompletionQueue>,
    pub(crate) limits: PostLimits,
    number: u32,
    state: AtomicU8,
    /// What the only piece of a request must be shorter than to be posted without further ado, otherwise and inline; nothing
    /// is, before requests may be posted.
    bounds: [AtomicU64; 2],
    /// The same of a receive.
    pub(crate) receive_bound: AtomicU64,
    /// The device may not report all that it had when the queue pair failed.
    lossy: AtomicBool,
    /// Reads that may be outstanding. With none, a read would wait for ever.
    outbound_reads: AtomicU32,
    connection: Mutex<Weak<Connector>>,
}

/// What posting checks.
pub(crate) struct PostLimits {
    pub max_initiator_sge: u32,
    pub max_receive_sge: u32,
    /// Longer reads are split.
    pub device_read_sge: u32,
    pub max_inline: u32,
    pub max_transfer: u64,
    /// What the device takes for no entries at all.
    pub empty_list: &'static [Sge],
    pub fenced_reads: bool,
}

/// Not connected yet: takes receives only.
const IDLE: u8 = 0;
/// Connected, or about to be: the device is ready to send.
const READY: u8 = 1;
/// Failed, flushed or disconnected: requests are accepted, and reported as cancelled.
const FAILED: u8 = 2;

/// Programs post two pieces on queue pairs they created for one; Windows hardware has room for that.
const MIN_SGE: u32 = 2;

/// All a peer may ever do; regions and windows decide.
const ACCESS: ibv_access_flags = IBV_ACCESS_LOCAL_WRITE as ibv_access_flags
    | IBV_ACCESS_REMOTE_WRITE as ibv_access_flags
    | IBV_ACCESS_REMOTE_READ as ibv_access_flags;

impl QueuePair {
    pub(crate) fn new(adapter: &Arc<Adapter>, config: QueuePairConfig) -> Result<QueuePair> {
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
        qp.to_init(1, ACCESS)?;
        let limits = PostLimits {
            max_initiator_sge,
            max_receive_sge,
            device_read_sge: limits.quirks.read_sge,
            max_inline,
            max_transfer: info.max_transfer_length.into(),
            empty_list: limits.quirks.empty_list(),
            fenced_reads: limits.quirks.fenced_reads,
        };
        let core = Arc::new_cyclic(|core: &Weak<Core>| Core {
            adapter: adapter.clone(),
            number: qp.number(),
            receive_bound: AtomicU64::new(if shared.is_some() { 0 } else { limits.max_transfer + 1 }),
            qp: ManuallyDrop::new(qp),
            initiator: ManuallyDrop::new(RequestQueue::new(asked.max_send_wr, config.context, core.clone())),
            receive: ManuallyDrop::new(
                shared.is_none().then(|| RequestQueue::new(asked.max_recv_wr, config.context, core.clone())),
            ),
            shared: shared.clone(),
            initiator_completion_queue: config.initiator_completion_queue,
            receive_completion_queue: config.receive_completion_queue,
            limits,
            state: AtomicU8::new(IDLE),
            bounds: [AtomicU64::new(0), AtomicU64::new(0)],
            lossy: AtomicBool::new(adapter.limits().quirks.lossy_flush),
            outbound_reads: AtomicU32::new(0),
            connection: Mutex::default(),
        });
        if let Some(shared) = &shared {
            core.receive_completion_queue.add_shared(&core, config.context, &shared.shared);
        }
        adapter.tell_of_removal(Arc::downgrade(&core) as _);
        Ok(QueuePair { core })
    }

    /// Cancels all outstanding requests (`Flush`). Legal in any state; the queue pair is of no further use.
    pub fn flush(&self) -> Result<()> {
        self.core.fail();
        Ok(())
    }

    /// The adapter that the queue pair belongs to.
    pub fn adapter(&self) -> &Arc<Adapter> {
        &self.core.adapter
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        if let Some(connector) = self.core.connector() {
            connector.abandon();
        }
    }
}

impl Core {
    pub(crate) fn adapter(&self) -> &Arc<Adapter> {
        &self.adapter
    }

    /// Ties the queue pair to a connector, which must be its only one.
    pub(crate) fn attach(&self, connector: &Weak<Connector>) -> Result<()> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if connection.strong_count() > 0 || self.state.load(Ordering::Acquire) != IDLE {
            return Err(Status::CONNECTION_ACTIVE);
        }
        *connection = connector.clone();
        Ok(())
    }

    /// Unties the queue pair from a connector that did not come to use it.
    pub(crate) fn detach(&self) {
        *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = Weak::new();
    }

    fn connector(&self) -> Option<Arc<Connector>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Moves a queue pair that was never connected to the port its connection uses.
    pub(crate) fn use_port(&self, port: u8) -> Result<()> {
        if port > 1 {
            self.qp.to_init(port, ACCESS)?;
        }
        Ok(())
    }

    /// The device may send from now on, and have so many reads outstanding.
    pub(crate) fn set_ready(&self, outbound_reads: u32) {
        self.outbound_reads.store(outbound_reads, Ordering::Relaxed);
        // A queue pair that was flushed meanwhile stays failed.
        let _ = self.state.compare_exchange(IDLE, READY, Ordering::AcqRel, Ordering::Acquire);
        self.open_for_requests();
    }

    fn open_for_requests(&self) {
        let limits = [self.limits.max_transfer, self.limits.max_inline.into()];
        for (bound, limit) in self.bounds.iter().zip(limits) {
            bound.store(limit + 1, Ordering::Relaxed);
        }
    }

    /// What the only piece of a request must be shorter than to be posted without further ado.
    #[inline(always)]
    pub(crate) fn bound(&self, inline: bool) -> &AtomicU64 {
        &self.bounds[usize::from(inline)]
    }

    /// What peers know the queue pair by.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Whether receives come from a shared queue.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Takes the completions of the initiator queue, so that silent requests free their slots.
    #[cold]
    pub(crate) fn reap_initiator(&self) {
        self.initiator_completion_queue.make_room();
    }

    /// Prepares the completion queue for a silent request.
    #[inline(always)]
    pub(crate) fn expect_silent(&self) {
        self.initiator_completion_queue.expect_silent();
    }

    /// Whether requests other than receives may be posted.
    #[inline]
    pub(crate) fn was_connected(&self) -> bool {
        self.state.load(Ordering::Relaxed) != IDLE
    }

    /// Whether the connection was made for reads from this side.
    #[inline]
    pub(crate) fn may_read(&self) -> bool {
        self.outbound_reads.load(Ordering::Relaxed) != 0
    }

    /// Cancels what is outstanding, and all that is posted from now on.
    pub(crate) fn fail(self: &Arc<Self>) {
        if self.state.swap(FAILED, Ordering::AcqRel) == FAILED {
            return;
        }
        self.open_for_requests();
        // First nothing more goes to the device, so that it flushes all it has.
        self.initiator.start_flushing();
        if let Some(receive) = &*self.receive {
            receive.start_flushing();
        }
        if let Err(error) = self.stop() {
            tracing::debug!(%error, "flushing a queue pair");
        }
        self.report_flushed();
    }

    /// Has the device let go of what it has. All queues keep their requests from it by now.
    fn stop(&self) -> io::Result<()> {
        // A shared receive that is being filled would be lost with the queue pair.
        if !self.adapter.limits().quirks.cuts_acknowledgements || self.shared.is_some() {
            return self.qp.to_error();
        }
        // SAFETY: who posts holds the lock of a queue, and finds it flushing.
        unsafe { self.qp.destroy()? };
        self.lossy.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether the device reports no more than it has by now.
    pub(crate) fn is_lossy(&self) -> bool {
        self.lossy.load(Ordering::Acquire)
    }

    /// Lets the completion queues report requests that were kept from the device.
    #[cold]
    pub(crate) fn report_flushed(self: &Arc<Self>) {
        self.initiator_completion_queue.flush(self);
        if !Arc::ptr_eq(&self.initiator_completion_queue, &self.receive_completion_queue) {
            self.receive_completion_queue.flush(self);
        }
    }

    /// A request failed, so the connection is gone, whether or not the connection manager will say so.
    pub(crate) fn broken(self: &Arc<Self>) {
        let connector = self.connector();
        self.fail();
        if let Some(connector) = connector {
            connector.broken();
        }
    }

    /// The request queues that complete on `cq`.
    pub(crate) fn queues_on<'a>(
        &'a self,
        cq: &'a Arc<verbs::CompletionQueue>,
    ) -> impl Iterator<Item = &'a RequestQueue> {
        let on = move |queue: &CompletionQueue| Arc::ptr_eq(queue.verbs(), cq);
        let initiator = on(&self.initiator_completion_queue).then_some(&**self.initiator);
        let receive = self.receive.as_deref().filter(|_| on(&self.receive_completion_queue));
        initiator.into_iter().chain(receive)
    }
}

impl Removable for Core {
    fn device_removed(self: Arc<Self>) {
        self.fail();
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: nothing uses the fields after this. The device must let go of the queue pair before its request
        // queues may go, and completions already queued still point into those.
        let (initiator, receive) = unsafe {
            ManuallyDrop::drop(&mut self.qp);
            (ManuallyDrop::take(&mut self.initiator), ManuallyDrop::take(&mut self.receive))
        };
        let failed = (*self.state.get_mut() == FAILED).then_some(&raw const *self);
        self.initiator_completion_queue.retire(initiator, failed);
        match receive {
            Some(receive) => self.receive_completion_queue.retire(receive, failed),
            None => self.receive_completion_queue.retire_shared(self.number, failed),
        }
    }
}
