//! Shared receive queues: receives for messages to any of several queue pairs.

use crate::data::scatter_gather::{self, Filled};
use crate::device::adapter::{Adapter, AdapterFile};
use crate::device::async_events::{Acknowledged, AsyncEventHandler};
use crate::device::removal::Removable;
use crate::status::{Result, Status};
use crate::sync::mutex::lock;
use crate::types::Sge;
use crate::verbs::{self, AsyncEvent, bindings::*, errno, ops};
use std::fmt;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard};
use win32::io::{CancelScope, Canceller, File, Outstanding, Overlapped, Request};

/// The parameters of `IND2Adapter::CreateSharedReceiveQueue`. [`new`](Self::new) sets the defaults, and a method for each
/// parameter changes it.
///
/// ```
/// use ndcompat::SharedReceiveQueueConfig;
///
/// let config = SharedReceiveQueueConfig::new(64).max_sge(2).threshold(8);
/// assert_eq!((config.depth, config.affinity), (64, (0, 0)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SharedReceiveQueueConfig {
    /// How many receives may be outstanding.
    pub depth: u32,
    /// The limit of SGEs of a receive.
    pub max_sge: u32,
    /// `Notify` completes when fewer receives than this are outstanding; with 0, never.
    pub threshold: u32,
    /// Processor group and affinity mask; only returned by [`SharedReceiveQueue::notify_affinity`].
    pub affinity: (u16, u64),
}

impl SharedReceiveQueueConfig {
    /// A queue of `depth` receives of one SGE each, without threshold and affinity.
    pub fn new(depth: u32) -> SharedReceiveQueueConfig {
        SharedReceiveQueueConfig { depth, max_sge: 1, threshold: 0, affinity: (0, 0) }
    }

    /// The limit of SGEs of a receive.
    pub fn max_sge(self, entries: u32) -> SharedReceiveQueueConfig {
        SharedReceiveQueueConfig { max_sge: entries, ..self }
    }

    /// `Notify` completes when fewer receives than this are outstanding.
    pub fn threshold(self, receives: u32) -> SharedReceiveQueueConfig {
        SharedReceiveQueueConfig { threshold: receives, ..self }
    }

    /// Processor group and affinity mask, a hint.
    pub fn affinity(self, group: u16, mask: u64) -> SharedReceiveQueueConfig {
        SharedReceiveQueueConfig { affinity: (group, mask), ..self }
    }
}

/// A shared receive queue (`IND2SharedReceiveQueue`). All methods are thread-safe.
///
/// ```
#[doc = include_str!("../rust_api/device.txt")]
/// use ndcompat::{Provider, QueuePairConfig, Session, SharedReceiveQueueConfig};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let (adapter, file) = (session.adapter(), session.file());
/// let config = SharedReceiveQueueConfig::new(64).threshold(4);
/// let shared = adapter.create_shared_receive_queue(file, config)?;
/// // Fewer than four receives are outstanding, so this completes at once.
/// shared.begin_notify()?.wait()?;
///
/// let queue = adapter.create_completion_queue(file, 64, (0, 0))?;
/// let config = QueuePairConfig::new(&queue).shared_receive_queue(&shared);
/// let pair = adapter.create_queue_pair(config)?;
/// # Ok::<(), ndcompat::Status>(())
/// ```
pub struct SharedReceiveQueue {
    pub(crate) shared: Arc<Shared>,
    affinity: (u16, u64),
}

impl fmt::Debug for SharedReceiveQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedReceiveQueue").field("affinity", &self.affinity).finish_non_exhaustive()
    }
}

/// The queue as its queue pairs and completion queues share it.
pub(crate) struct Shared {
    pub(crate) srq: Arc<verbs::SharedReceiveQueue>,
    file: Arc<AdapterFile>,
    max_sge: u32,
    requests: Arc<Outstanding>,
    state: Mutex<State>,
}

struct State {
    /// The contexts of the outstanding receives, by index; receives complete in any order.
    contexts: Vec<Option<u64>>,
    /// The free indices.
    free: Vec<u32>,
    /// The limit of outstanding receives. The device's limit is the number of indices.
    depth: u32,
    threshold: u32,
    /// The pending `Notify` requests.
    waiting: Vec<Request>,
    /// The limit that the device's event is armed with. It is signalled once.
    armed: Option<u32>,
    /// How many expected limit events are to be ignored, as the low level was noticed before them.
    stale_events: u32,
    /// Why the queue is unusable.
    failed: Option<Status>,
}

impl State {
    fn outstanding(&self) -> u32 {
        (self.contexts.len() - self.free.len()) as u32
    }

    fn grow_to(&mut self, entries: u32) {
        let old = self.contexts.len() as u32;
        self.contexts.resize(entries.max(old) as usize, None);
        self.free.extend(old..entries);
    }

    /// Whether there are pending requests, and fewer receives than the threshold are outstanding.
    fn is_low(&self) -> bool {
        !self.waiting.is_empty() && self.outstanding() < self.threshold
    }

    /// Takes the pending requests if fewer receives than the threshold are outstanding.
    fn low(&mut self) -> Vec<Request> {
        if !self.is_low() {
            return Vec::new();
        }
        // The device counts unused receives, which are no more than the outstanding ones: if there are fewer than its limit, it has
        // signalled its event, too.
        let outstanding = self.outstanding();
        self.stale_events += u32::from(self.armed.take_if(|limit| outstanding < *limit).is_some());
        std::mem::take(&mut self.waiting)
    }
}

impl Adapter {
    /// Creates a shared receive queue whose `Notify` requests run on `file`.
    ///
    /// # Errors
    /// `ND_INVALID_PARAMETER_3` for a depth of 0 or beyond [`AdapterInfo`](crate::types::AdapterInfo)'s,
    /// `ND_INVALID_PARAMETER_4` for too many SGEs; `ND_INSUFFICIENT_RESOURCES` if the device has no room;
    /// `ND_DEVICE_REMOVED`.
    pub fn create_shared_receive_queue(
        self: &Arc<Self>,
        file: &Arc<File>,
        config: SharedReceiveQueueConfig,
    ) -> Result<Arc<SharedReceiveQueue>> {
        self.check()?;
        Ok(Arc::new(SharedReceiveQueue::new(self.file(file)?, config)?))
    }
}

impl SharedReceiveQueue {
    fn new(file: Arc<AdapterFile>, config: SharedReceiveQueueConfig) -> Result<SharedReceiveQueue> {
        let adapter = file.adapter().clone();
        let limits = adapter.limits();
        if config.depth == 0 || config.depth > limits.info.max_shared_receive_queue_depth {
            return Err(Status::INVALID_PARAMETER_3);
        }
        if config.max_sge > limits.info.max_receive_sge {
            return Err(Status::INVALID_PARAMETER_4);
        }
        let max_sge = config.max_sge.max(1);
        let entries = limits.shared_receive_entries(config.depth);
        let srq = verbs::SharedReceiveQueue::create(adapter.pd(), entries, max_sge, 0)
            .map_err(|error| Status::of_creation(&error))?;
        tracing::debug!(target: "ndcompat::queue", device = adapter.device_name(), srq = srq.number(), depth = config.depth,
            threshold = config.threshold, "CreateSharedReceiveQueue");
        let mut state = State {
            contexts: Vec::new(),
            free: Vec::new(),
            depth: config.depth,
            threshold: config.threshold,
            waiting: Vec::new(),
            armed: None,
            stale_events: 0,
            failed: None,
        };
        state.grow_to(entries);
        let shared = Arc::new(Shared {
            srq: Arc::new(srq),
            file,
            max_sge,
            requests: Arc::default(),
            state: Mutex::new(state),
        });
        adapter.add_async_event_handler(Arc::downgrade(&shared) as _);
        shared.file.register(&shared);
        Ok(SharedReceiveQueue { shared, affinity: config.affinity })
    }

    /// Posts a receive into the memory of `sge`, for a message to any of the queue pairs
    /// (`IND2SharedReceiveQueue::Receive`).
    ///
    /// # Errors
    /// `ND_NO_MORE_ENTRIES` when the queue is full; `ND_DATA_OVERRUN` for too many SGEs; `ND_BUFFER_OVERFLOW` for too many
    /// bytes. After an error there is no result.
    ///
    /// # Safety
    /// The memory of the SGEs must stay valid until the request completes; the device writes to it.
    pub unsafe fn receive(&self, context: u64, sge: &[Sge]) -> Result<()> {
        let shared = &self.shared;
        let limits = shared.file.adapter().limits();
        scatter_gather::check(sge, shared.max_sge, limits.info.max_transfer_length.into())?;
        let mut filled = Filled::default();
        let sge = scatter_gather::without_empty(sge, &mut filled);
        let sge = if sge.is_empty() { limits.quirks.empty_list() } else { sge };
        let mut state = shared.lock();
        if state.outstanding() >= state.depth {
            return Err(Status::NO_MORE_ENTRIES);
        }
        let index = state.free.pop().ok_or(Status::NO_MORE_ENTRIES)?;
        let mut wr = ibv_recv_wr {
            wr_id: wr_id(index),
            next: ptr::null_mut(),
            sg_list: sge.as_ptr().cast_mut().cast(),
            num_sge: sge.len() as i32,
        };
        let mut bad = ptr::null_mut();
        // SAFETY: the queue is alive, the request is filled in, and the caller keeps the memory of the SGEs valid for
        // writes until it completes.
        match errno(unsafe { ops::post_srq_recv(shared.srq.as_ptr(), &mut wr, &mut bad) }) {
            0 => {
                state.contexts[index as usize] = Some(context);
                Ok(())
            }
            error => {
                state.free.push(index);
                Err(if error == libc::ENOMEM { Status::NO_MORE_ENTRIES } else { Status::from_errno(error) })
            }
        }
    }

    /// Changes depth and threshold, both in receives (`IND2SharedReceiveQueue::Modify`); 0 leaves either unchanged.
    ///
    /// # Errors
    /// `ND_INVALID_PARAMETER` for a depth beyond the adapter's; `ND_BUFFER_OVERFLOW` if more receives are outstanding;
    /// `ND_INSUFFICIENT_RESOURCES` if the device's queue cannot grow; `ND_DEVICE_REMOVED`.
    pub fn modify(&self, depth: u32, threshold: u32) -> Result<()> {
        self.adapter().check()?;
        let shared = &self.shared;
        let limits = shared.file.adapter().limits();
        if depth > limits.info.max_shared_receive_queue_depth {
            return Err(Status::INVALID_PARAMETER);
        }
        let mut state = shared.lock();
        if depth != 0 {
            if depth < state.outstanding() {
                return Err(Status::BUFFER_OVERFLOW);
            }
            if depth > state.contexts.len() as u32 {
                shared.srq.resize(depth).map_err(|error| Status::INSUFFICIENT_RESOURCES.because(&error))?;
                state.grow_to(depth);
            }
            state.depth = depth;
        }
        if threshold != 0 {
            state.threshold = threshold;
        }
        tracing::debug!(target: "ndcompat::queue", srq = shared.srq.number(), depth, threshold, "Modify");
        shared.watch_level(state)
    }

    /// Completes `ov` when fewer receives than the threshold are outstanding (`IND2SharedReceiveQueue::Notify`), or at once
    /// if they are.
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED`; `ND_UNSUCCESSFUL` if the queue has failed; the errno of `ibv_modify_srq` as a status. After an error, `ov` is not used.
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub unsafe fn notify(&self, ov: *mut Overlapped) -> Result<()> {
        self.adapter().check()?;
        let mut state = self.shared.lock();
        if let Some(status) = state.failed {
            return Err(status);
        }
        // Arm first: it may fail, and a call that fails must not begin a request.
        self.shared.arm(&mut state)?;
        // SAFETY: the caller keeps `ov` valid until the request completes.
        state.waiting.push(unsafe { self.shared.requests.begin(self.file(), ov) });
        let low = state.low();
        drop(state);
        complete(low, Status::SUCCESS);
        Ok(())
    }

    /// The pending requests.
    pub fn requests(&self) -> &Outstanding {
        &self.shared.requests
    }

    /// Completes all pending `Notify` requests with `ND_CANCELED`.
    pub fn cancel(&self) {
        Canceller::cancel(&*self.shared, CancelScope::All);
    }

    /// The affinity that the queue was created with: processor group and mask (`IND2SharedReceiveQueue::GetNotifyAffinity`).
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED`.
    pub fn notify_affinity(&self) -> Result<(u16, u64)> {
        self.adapter().check()?;
        Ok(self.affinity)
    }

    /// The file that the queue's requests run on.
    pub fn file(&self) -> &Arc<File> {
        self.shared.file.file()
    }

    /// The adapter that the queue belongs to.
    pub fn adapter(&self) -> &Arc<Adapter> {
        self.shared.file.adapter()
    }
}

impl Drop for SharedReceiveQueue {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// The bit that marks the `wr_id` of a shared receive, whose other bits are the index. The `wr_id` of any other request is
/// the address of a slot, which is even.
const SHARED: u64 = 1;

fn wr_id(index: u32) -> u64 {
    u64::from(index) << 1 | SHARED
}

/// Whether a completion is that of a shared receive.
#[inline(always)]
pub(crate) fn is_shared(wr_id: u64) -> bool {
    wr_id & SHARED != 0
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Removes a completed receive. Returns its context and whether [`complete_if_low`](Self::complete_if_low) is to be called, without a
    /// lock. `None` if no such receive is outstanding.
    pub(crate) fn reap(&self, wr_id: u64) -> Option<(u64, bool)> {
        let index = (wr_id >> 1) as u32;
        let mut state = self.lock();
        let context = state.contexts.get_mut(index as usize)?.take()?;
        state.free.push(index);
        Some((context, state.is_low()))
    }

    /// Completes the pending requests if fewer receives than the threshold are outstanding.
    pub(crate) fn complete_if_low(&self) {
        let low = self.lock().low();
        complete(low, Status::SUCCESS);
    }

    /// Completes the pending requests if fewer receives than the threshold are outstanding, and otherwise arms the limit
    /// event.
    fn watch_level(&self, mut state: MutexGuard<'_, State>) -> Result<()> {
        if !state.waiting.is_empty() {
            self.arm(&mut state)?;
        }
        drop(state);
        self.complete_if_low();
        Ok(())
    }

    /// Arms the device's limit event, unless fewer receives than the threshold are outstanding, or there is no threshold.
    fn arm(&self, state: &mut State) -> Result<()> {
        if state.threshold != 0 && state.outstanding() >= state.threshold {
            // The device counts a receive as used before its completion is reaped here.
            self.srq.set_limit(state.threshold)?;
            state.armed = Some(state.threshold);
        }
        Ok(())
    }

    /// Whether the limit that is armed is known to have been signalled. A limit that was armed when receives were few is signalled by
    /// the next message only, so an event that is expected to be stale may be that of the limit now. A device without a limit has
    /// signalled it; siw reports the last one for ever.
    fn has_signalled(&self, state: &State) -> bool {
        state.armed.is_some() && self.srq.query().is_ok_and(|now| now.srq_limit == 0)
    }

    /// Handles the device's limit event, or, with an error as `status`, the failure of the queue.
    fn limit_event(&self, status: Status) {
        let mut state = self.lock();
        if status == Status::SUCCESS && state.stale_events > 0 && !self.has_signalled(&state) {
            state.stale_events -= 1;
            return;
        }
        state.armed = None;
        if !status.is_success() {
            state.failed = Some(status);
        }
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        complete(waiting, status);
    }
}

fn complete(requests: Vec<Request>, status: Status) {
    for request in requests {
        request.complete(status.0, 0);
    }
}

impl AsyncEventHandler for Shared {
    fn async_event(&self, event: &AsyncEvent) -> Option<Acknowledged> {
        let status = match event.kind() {
            IBV_EVENT_SRQ_LIMIT_REACHED => Status::SUCCESS,
            IBV_EVENT_SRQ_ERR => Status::UNSUCCESSFUL,
            _ => return None,
        };
        if event.srq() == Some(self.srq.as_ptr()) {
            self.limit_event(status);
        }
        None
    }
}

impl Removable for Shared {
    fn device_removed(self: Arc<Self>) {
        self.limit_event(Status::DEVICE_REMOVED);
    }
}

impl Canceller for Shared {
    fn cancel(&self, scope: CancelScope) -> usize {
        let chosen = |request: &mut Request| request.is_in(scope);
        let cancelled: Vec<_> = self.lock().waiting.extract_if(.., chosen).collect();
        let count = cancelled.len();
        if count > 0 {
            tracing::debug!(target: "ndcompat::queue", srq = self.srq.number(), requests = count, "Cancel");
        }
        complete(cancelled, Status::CANCELED);
        count
    }
}
