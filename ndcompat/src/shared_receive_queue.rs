//! Shared receive queues: receives that any of several queue pairs may use.

use crate::adapter::Adapter;
use crate::overlapped_file::AdapterFile;
use crate::removal::Removable;
use crate::scatter_gather;
use crate::status::{Result, Status};
use crate::types::Sge;
use crate::verbs::{self, bindings::*, errno, ops};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use win32::io::{Canceller, File, Overlapped, Request, Which};

/// What a shared receive queue is created with (`CreateSharedReceiveQueue`).
#[derive(Clone, Copy, Debug)]
pub struct SharedReceiveQueueConfig {
    /// How many receives may be outstanding.
    pub depth: u32,
    /// How many entries a receive's scatter/gather list may have.
    pub max_sge: u32,
    /// With fewer receives outstanding, notifications complete; 0 is never.
    pub threshold: u32,
    /// Processor group and affinity mask, a wish.
    pub affinity: (u16, u64),
}

/// A shared receive queue (`IND2SharedReceiveQueue`). All methods are thread-safe.
pub struct SharedReceiveQueue {
    pub(crate) shared: Arc<Shared>,
    affinity: (u16, u64),
}

/// The queue as its queue pairs and completion queues share it.
pub(crate) struct Shared {
    pub(crate) srq: Arc<verbs::SharedReceiveQueue>,
    file: Arc<AdapterFile>,
    max_sge: u32,
    state: Mutex<State>,
}

struct State {
    /// The contexts of the outstanding receives. They complete in any order, so the places are a pool.
    contexts: Vec<u64>,
    free: Vec<u32>,
    /// How many receives the user may have outstanding; the device takes as many as there are places.
    depth: u32,
    threshold: u32,
    waiting: Vec<Request>,
    /// The device watches the level, and will report once.
    armed: bool,
    /// Reports of the device that are on their way and no news any more.
    overtaken: u32,
}

impl State {
    fn outstanding(&self) -> u32 {
        (self.contexts.len() - self.free.len()) as u32
    }

    fn grow_to(&mut self, places: u32) {
        let old = self.contexts.len() as u32;
        self.contexts.resize(places.max(old) as usize, 0);
        self.free.extend(old..places);
    }

    /// The waiting requests, if the queue has run low.
    fn low(&mut self) -> Vec<Request> {
        if self.waiting.is_empty() || self.outstanding() >= self.threshold {
            return Vec::new();
        }
        // The device counts receives in use, which are no more than those outstanding here: it has seen it too.
        self.overtaken += u32::from(std::mem::take(&mut self.armed));
        std::mem::take(&mut self.waiting)
    }
}

impl SharedReceiveQueue {
    pub(crate) fn new(
        file: Arc<AdapterFile>,
        config: SharedReceiveQueueConfig,
    ) -> Result<SharedReceiveQueue> {
        let adapter = file.adapter().clone();
        let limits = adapter.limits();
        if config.depth == 0 || config.depth > limits.info.max_shared_receive_queue_depth {
            return Err(Status::INVALID_PARAMETER_3);
        }
        if config.max_sge > limits.info.max_receive_sge {
            return Err(Status::INVALID_PARAMETER_4);
        }
        let max_sge = config.max_sge.max(1);
        let places = limits.shared_receive_places(config.depth);
        let srq = verbs::SharedReceiveQueue::create(adapter.pd(), places, max_sge, 0)
            .map_err(|error| Status::of_creation(&error))?;
        let mut state = State {
            contexts: Vec::new(),
            free: Vec::new(),
            depth: config.depth,
            threshold: config.threshold,
            waiting: Vec::new(),
            armed: false,
            overtaken: 0,
        };
        state.grow_to(places);
        let shared = Arc::new(Shared { srq: Arc::new(srq), file, max_sge, state: Mutex::new(state) });
        shared.file.file().add_canceller(Arc::downgrade(&shared) as Weak<dyn Canceller>);
        adapter.watch_shared_receive_queue(&shared);
        Ok(SharedReceiveQueue { shared, affinity: config.affinity })
    }

    /// Offers `sge` to the next send to any of the queue pairs (`Receive`).
    ///
    /// # Safety
    /// The memory named in `sge` must stay valid until the request completes; it is written to.
    pub unsafe fn receive(&self, context: u64, sge: &[Sge]) -> Result<()> {
        let shared = &self.shared;
        let limits = shared.file.adapter().limits();
        scatter_gather::check(sge, shared.max_sge, limits.info.max_transfer_length.into())?;
        let sge = if sge.is_empty() { limits.quirks.empty_list() } else { sge };
        let mut state = shared.lock();
        if state.outstanding() >= state.depth {
            return Err(Status::NO_MORE_ENTRIES);
        }
        let place = state.free.pop().ok_or(Status::NO_MORE_ENTRIES)?;
        let mut wr = ibv_recv_wr {
            wr_id: wr_id(place),
            next: ptr::null_mut(),
            sg_list: sge.as_ptr().cast_mut().cast(),
            num_sge: sge.len() as i32,
        };
        let mut bad = ptr::null_mut();
        // SAFETY: the queue lives, the request is well-formed; its memory is the caller's promise.
        match errno(unsafe { ops::post_srq_recv(shared.srq.as_ptr(), &mut wr, &mut bad) }) {
            0 => {
                state.contexts[place as usize] = context;
                Ok(())
            }
            error => {
                state.free.push(place);
                Err(if error == libc::ENOMEM { Status::NO_MORE_ENTRIES } else { Status::from_errno(error) })
            }
        }
    }

    /// Changes depth and threshold (`Modify`); 0 leaves either as it is.
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
                shared.srq.resize(depth).map_err(|_| Status::INSUFFICIENT_RESOURCES)?;
                state.grow_to(depth);
            }
            state.depth = depth;
        }
        if threshold != 0 {
            state.threshold = threshold;
        }
        shared.watch_level(state)
    }

    /// Completes `ov` when fewer receives are outstanding than the threshold (`Notify`), at once if so.
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub unsafe fn notify(&self, ov: *mut Overlapped) -> Result<()> {
        self.adapter().check()?;
        let mut state = self.shared.lock();
        // First what can fail: a call that fails leaves no request behind.
        self.shared.arm(&mut state)?;
        // SAFETY: passed on to the caller.
        state.waiting.push(unsafe { self.file().begin(ov) });
        let low = state.low();
        drop(state);
        complete(low, Status::SUCCESS);
        Ok(())
    }

    /// Completes all pending notifications with `ND_CANCELED`.
    pub fn cancel(&self) {
        Canceller::cancel(&*self.shared, Which::All);
    }

    /// Processor group and affinity mask that notifications are processed on.
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

/// Marks a `wr_id` as the place of a shared receive; the others are addresses of slots, which are even.
const SHARED: u64 = 1;

fn wr_id(place: u32) -> u64 {
    u64::from(place) << 1 | SHARED
}

/// Whether a work completion is that of a shared receive.
#[inline(always)]
pub(crate) fn is_shared(wr_id: u64) -> bool {
    wr_id & SHARED != 0
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees the place of a completed receive and returns its context, and, if the queue has run low, the requests that
    /// wait for that.
    pub(crate) fn reap(&self, wr_id: u64) -> (u64, Vec<Request>) {
        let place = (wr_id >> 1) as u32;
        let mut state = self.lock();
        state.free.push(place);
        let low = state.low();
        (state.contexts[place as usize], low)
    }

    /// Completes what waits for a low queue if it is low, and otherwise has the device watch its level.
    fn watch_level(&self, mut state: MutexGuard<'_, State>) -> Result<()> {
        if !state.waiting.is_empty() {
            self.arm(&mut state)?;
        }
        let low = state.low();
        drop(state);
        complete(low, Status::SUCCESS);
        Ok(())
    }

    /// Has the device watch the level, unless the queue is low already or nobody is to be told.
    fn arm(&self, state: &mut State) -> Result<()> {
        if state.threshold != 0 && state.outstanding() >= state.threshold {
            // The device sees a receive used before its completion is reaped here.
            self.srq.set_limit(state.threshold)?;
            state.armed = true;
        }
        Ok(())
    }

    /// The device reported that the queue has run low, or (with an error) that it has failed.
    pub(crate) fn alert(&self, status: Status) {
        let mut state = self.lock();
        if status == Status::SUCCESS && state.overtaken > 0 {
            state.overtaken -= 1;
            return;
        }
        state.armed = false;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        complete(waiting, status);
    }

    /// Whether this is the queue that a verbs asynchronous event names.
    pub(crate) fn is(&self, srq: *const ibv_srq) -> bool {
        self.srq.as_ptr().cast_const() == srq
    }
}

fn complete(requests: Vec<Request>, status: Status) {
    for request in requests {
        request.complete(status.0, 0);
    }
}

impl Removable for Shared {
    fn device_removed(self: Arc<Self>) {
        self.alert(Status::DEVICE_REMOVED);
    }
}

impl Canceller for Shared {
    fn cancel(&self, which: Which) -> usize {
        let chosen = |request: &mut Request| request.is_among(which);
        let cancelled: Vec<_> = self.lock().waiting.extract_if(.., chosen).collect();
        let count = cancelled.len();
        complete(cancelled, Status::CANCELED);
        count
    }
}
