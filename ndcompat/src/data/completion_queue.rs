//! Completion queues: reaping results (`GetResults`). Notifications are in `notifying`, the polling for failures that some
//! devices need in `failures`.

mod failures;
mod notifying;

use crate::data::backlog::{BATCH, Backlog};
use crate::data::notification::Notification;
use crate::data::request_queue::{QueueOwner, RequestQueue, reap_in_order};
use crate::data::shared_receive_queue::Shared;
use crate::device::adapter::{Adapter, AdapterFile};
use crate::device::limits::HEADROOM;
use crate::status::{Result, Status};
use crate::sync::cache_aligned::{CACHE_LINE, CacheAligned};
use crate::sync::lock::{Held, Lock};
use crate::types::{Completion, NotifyType};
use crate::verbs::{self, RawQueue, bindings::ibv_wc};
use failures::Failures;
use parking_lot::Mutex;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Weak};
use win32::io::{CancelScope, Canceller, File, Outstanding, Overlapped, Registration};

/// How many times in a row a thread must take results to own the queue's lock.
const ENOUGH: u32 = 64;

/// A completion queue (`IND2CompletionQueue`). All methods are thread-safe.
///
/// [`QueuePair`](crate::QueuePair) has an example with results.
///
/// ```
#[doc = include_str!("../rust_api/device.txt")]
/// use ndcompat::types::{Completion, NotifyType};
/// use ndcompat::{Provider, Session, Status};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let queue = session.adapter().create_completion_queue(session.file(), 64, (0, 0))?;
/// let mut results = [Completion::default(); 16];
/// assert_eq!(queue.results(&mut results), 0); // does not wait
/// let notified = queue.begin_notify(NotifyType::Any)?; // completes when there is a result
/// queue.cancel();
/// assert_eq!(notified.wait(), Err(Status::CANCELED));
/// # Ok::<(), ndcompat::Status>(())
/// ```
pub struct CompletionQueue {
    queue: Arc<Queue>,
    _events: Registration,
    failures: Failures,
    affinity: (u16, u64),
}

const _: () = assert!(align_of::<Queue>() == CACHE_LINE);

/// The state of a completion queue, shared with the threads that wait for its events.
pub(crate) struct Queue {
    /// The address of `cq`, which saves the data path an indirection.
    raw: RawQueue,
    cq: Arc<verbs::CompletionQueue>,
    /// Everything that reaping writes. The lock is on separate cache lines.
    backlog: Lock<Backlog>,
    notification: Mutex<Notification>,
    file: Arc<AdapterFile>,
    requests: Arc<Outstanding>,
    /// The status that the queue has failed with, once it has.
    failed: AtomicI32,
    /// The device does not signal solicited events: for `Solicited`, it is armed for any.
    any_for_solicited: bool,
}

impl Adapter {
    /// Creates a completion queue for `depth` results (`IND2Adapter::CreateCompletionQueue`) whose `Notify` requests run on
    /// `file`.
    ///
    /// `affinity` (processor group and mask) is only returned by [`CompletionQueue::notify_affinity`]: notifications are
    /// processed by the caller's threads.
    ///
    /// # Errors
    /// `ND_INVALID_PARAMETER_3` for a depth of 0 or beyond [`AdapterInfo`](crate::types::AdapterInfo)'s; `ND_DEVICE_REMOVED`;
    /// otherwise the errno of `ibv_create_cq` as a status.
    pub fn create_completion_queue(
        self: &Arc<Self>,
        file: &Arc<File>,
        depth: u32,
        affinity: (u16, u64),
    ) -> Result<Arc<CompletionQueue>> {
        self.check()?;
        Ok(Arc::new(CompletionQueue::new(self, self.file(file)?, depth, affinity)?))
    }
}

impl CompletionQueue {
    fn new(
        adapter: &Arc<Adapter>,
        file: Arc<AdapterFile>,
        depth: u32,
        affinity: (u16, u64),
    ) -> Result<CompletionQueue> {
        let limits = adapter.limits();
        if depth == 0 || depth > limits.info.max_completion_queue_depth {
            return Err(Status::INVALID_PARAMETER_3);
        }
        let channel = verbs::CompletionChannel::create(adapter.context()).map_err(Status::of_host)?;
        let entries = limits.completion_entries(depth);
        let (group, mask) = affinity;
        let processor = (mask != 0).then(|| u32::from(group) * u64::BITS + mask.trailing_zeros());
        let cq = verbs::CompletionQueue::create(adapter.context(), entries, Some(&channel), 0, processor)?;
        let queue = Arc::new(Queue {
            raw: cq.raw(),
            cq: Arc::new(cq),
            backlog: Lock::new(Backlog::default(), ENOUGH),
            notification: Mutex::new(Notification::default()),
            requests: Arc::default(),
            file: file.clone(),
            failed: AtomicI32::new(Status::SUCCESS.0),
            any_for_solicited: !limits.quirks.solicited_events,
        });
        let events = file.file().add_source(channel.fd(), queue.clone()).map_err(Status::of_host)?;
        tracing::debug!(target: "ndcompat::queue", device = adapter.device_name(), cq = queue.cq.number(), depth, "CreateCompletionQueue");
        adapter.add_async_event_handler(Arc::downgrade(&queue) as _);
        file.register(&queue);
        Ok(CompletionQueue { queue, _events: events, failures: Failures::default(), affinity })
    }

    /// Takes up to `results.len()` results, and returns their number (`IND2CompletionQueue::GetResults`). If that is less,
    /// the queue is empty. Does not wait.
    #[inline]
    pub fn results(&self, results: &mut [Completion]) -> usize {
        self.queue.results(results.into())
    }

    /// An unowned handle for [`CompletionQueue::results`]; the caller keeps the queue alive.
    pub fn reaper(&self) -> Reaper {
        Reaper(NonNull::from(&*self.queue))
    }

    /// Completes `ov` at the next result of this kind (`IND2CompletionQueue::Notify`), or at once if one has arrived since
    /// the last notification that the program has not taken.
    ///
    /// Returns `ND_PENDING`, or the status that the queue has failed with.
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub unsafe fn notify(&self, kind: NotifyType, ov: *mut Overlapped) -> Status {
        if kind == NotifyType::Solicited && self.adapter().limits().quirks.unsolicited_failures {
            // SAFETY: the caller keeps `ov` valid until the request completes.
            return unsafe { self.notify_solicited(ov) };
        }
        // SAFETY: the caller keeps `ov` valid until the request completes.
        unsafe { self.queue.notify(kind, ov) }
    }

    /// [`CompletionQueue::notify`] for solicited results, on a device that does not signal failures to those.
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    #[cold]
    unsafe fn notify_solicited(&self, ov: *mut Overlapped) -> Status {
        // Without a timer, wait for any result: the device signals failures then.
        let kind = self.failures.prepare(&self.queue).map_or(NotifyType::Any, |()| NotifyType::Solicited);
        // SAFETY: the caller keeps `ov` valid until the request completes.
        let status = unsafe { self.queue.notify(kind, ov) };
        self.failures.start();
        status
    }

    /// The pending requests.
    pub fn requests(&self) -> &Outstanding {
        &self.queue.requests
    }

    /// The status that the queue has failed with, as `Notify` returns it.
    pub(crate) fn failure(&self) -> Option<Status> {
        let status = Status(self.queue.failed.load(Ordering::Acquire));
        (status != Status::SUCCESS).then_some(status)
    }

    /// Completes all pending `Notify` requests with `ND_CANCELED`, oldest first.
    pub fn cancel(&self) {
        self.queue.cancel(CancelScope::All);
    }

    /// Changes the number of results that the queue holds (`IND2CompletionQueue::Resize`).
    ///
    /// # Errors
    /// `ND_NOT_SUPPORTED` if the device cannot; `ND_INVALID_PARAMETER` for a depth of 0 or beyond the adapter's;
    /// `ND_BUFFER_OVERFLOW` if the queue holds more results; `ND_DEVICE_REMOVED`.
    pub fn resize(&self, depth: u32) -> Result<()> {
        self.resize_unless(|_| false, depth)
    }

    /// [`resize`](Self::resize), unless `is_done` says of the number of entries that there are that it is done.
    fn resize_unless(&self, is_done: impl FnOnce(u32) -> bool, depth: u32) -> Result<()> {
        self.adapter().check()?;
        let limits = self.adapter().limits();
        if !limits.quirks.cq_resize {
            return Err(Status::NOT_SUPPORTED);
        }
        if depth == 0 || depth > limits.info.max_completion_queue_depth {
            return Err(Status::INVALID_PARAMETER);
        }
        // Results in the backlog count: to the program, they are in the queue.
        let mut backlog = self.queue.backlog.lock();
        self.queue.collect(&mut backlog);
        let deferred = std::mem::take(&mut backlog.deferred);
        let resized = if is_done(self.queue.cq.depth()) {
            Ok(())
        } else if backlog.len() > depth as usize {
            Err(Status::BUFFER_OVERFLOW)
        } else {
            self.queue.cq.resize(limits.completion_entries(depth)).map_err(|error| {
                match error.raw_os_error() {
                    Some(libc::EINVAL) => Status::BUFFER_OVERFLOW.because(&error),
                    _ => error.into(),
                }
            })
        };
        drop(backlog);
        deferred.run();
        tracing::debug!(target: "ndcompat::queue", cq = self.queue.cq.number(), depth, status = %Status::of(resized), "Resize");
        resized
    }

    /// How many results of the program's own the queue has room for. The rest is for hidden completions.
    pub(crate) fn room(&self) -> usize {
        // Held, as resizing changes the number.
        let backlog = self.queue.backlog.lock();
        let depth = self.queue.cq.depth();
        drop(backlog);
        depth.saturating_sub(HEADROOM) as usize
    }

    /// Makes the queue larger if it has [`room`](Self::room) for so many results only, and the device can. Returns the room.
    pub(crate) fn enlarge(&self, room: usize) -> usize {
        let limits = self.adapter().limits();
        let is_larger = |entries: u32| entries.saturating_sub(HEADROOM) as usize > room;
        let most = limits.info.max_completion_queue_depth;
        let depth = u32::try_from(room).unwrap_or(u32::MAX).min(most);
        if is_larger(limits.completion_entries(depth)) {
            // Another thread may have been first, and made it larger still. A failure leaves it as it is.
            let _ = self.resize_unless(is_larger, depth);
        }
        self.room()
    }

    /// The affinity that the queue was created with: processor group and mask (`IND2CompletionQueue::GetNotifyAffinity`).
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED`.
    pub fn notify_affinity(&self) -> Result<(u16, u64)> {
        self.adapter().check()?;
        Ok(self.affinity)
    }

    /// The file that the queue's requests run on.
    pub fn file(&self) -> &Arc<File> {
        self.queue.file.file()
    }

    pub(crate) fn adapter_file(&self) -> &Arc<AdapterFile> {
        &self.queue.file
    }

    pub(crate) fn adapter(&self) -> &Arc<Adapter> {
        self.queue.file.adapter()
    }

    pub(crate) fn verbs(&self) -> &Arc<verbs::CompletionQueue> {
        &self.queue.cq
    }

    /// From now on, reports the requests that are flushed on a failed queue pair.
    pub(crate) fn flush(&self, queue_pair: Weak<dyn QueueOwner>) {
        self.queue.flush(queue_pair);
    }

    /// Keeps a request queue of a destroyed queue pair until no completion can point to its slots. `failed` is the queue
    /// pair if it has failed: the device may still complete requests that were reported as cancelled.
    pub(crate) fn retire(&self, queue: CacheAligned<RequestQueue>, failed: Option<&dyn QueueOwner>) {
        let mut backlog = self.queue.backlog.lock();
        if failed.is_some() || !queue.is_idle() {
            backlog.retire(queue, failed);
        }
    }
}

impl CompletionQueue {
    /// Registers a queue pair with a shared receive queue.
    pub(crate) fn add_shared(
        &self,
        queue_pair: (Weak<dyn QueueOwner>, u32),
        context: u64,
        shared: &Arc<Shared>,
    ) {
        let mut backlog = self.queue.backlog.lock();
        backlog.add_shared(queue_pair, context, shared, &self.queue.cq);
        let deferred = std::mem::take(&mut backlog.deferred);
        drop(backlog);
        deferred.run();
    }

    /// Removes a destroyed queue pair with a shared receive queue, once no completion of its receives can come.
    pub(crate) fn retire_shared(&self, number: u32, queue_pair: &dyn QueueOwner, failed: bool) {
        self.queue.backlog.lock().retire_shared(number, queue_pair, failed);
    }

    /// Takes the device's completions before its driver removes them. May be called with locks held: what is to be done without any is left
    /// to whoever takes results next.
    pub(crate) fn save_completions(&self) {
        let mut backlog = self.queue.backlog.lock();
        backlog.add_all(&self.queue.cq);
        // If nobody took results any more, the references would keep this queue, and it them.
        let released = backlog.deferred.take_released();
        backlog.update_pending();
        drop(backlog);
        drop(released);
    }

    /// Reaps the device's completions, which frees the slots of silent requests.
    pub(crate) fn reap_all(&self) {
        self.reap_and(|_| {});
    }

    /// Reaps the device's completions, then does something.
    fn reap_and<T>(&self, then: impl FnOnce(&mut Backlog) -> T) -> T {
        let mut backlog = self.queue.backlog.lock();
        self.queue.collect(&mut backlog);
        let done = then(&mut backlog);
        let deferred = std::mem::take(&mut backlog.deferred);
        drop(backlog);
        deferred.run();
        done
    }

    /// Whether the oldest request of an initiator queue is a `Send`, and was the same one at the last call.
    pub(crate) fn is_waiting_to_send(&self, queue: &RequestQueue) -> bool {
        let backlog = self.queue.backlog.lock();
        let waits = queue.is_waiting_to_send();
        drop(backlog);
        // It may have completed, and nobody has taken its result.
        waits && self.reap_and(|_| queue.is_waiting_to_send())
    }

    /// Whether a queue has no requests.
    pub(crate) fn is_idle(&self, queue: &RequestQueue) -> bool {
        let _backlog = self.queue.backlog.lock();
        queue.is_idle()
    }

    /// Whether the device has not reported a request of a queue that it is to report.
    pub(crate) fn awaits_device(&self, queue: &RequestQueue) -> bool {
        self.reap_and(|_| queue.awaits_device())
    }

    /// How many outstanding requests of a queue are to be sent until the device reports one.
    pub(crate) fn unreported(&self, queue: &RequestQueue) -> u64 {
        let _backlog = self.queue.backlog.lock();
        queue.unreported()
    }

    /// Whether the device reports none of the outstanding requests of a queue if they succeed.
    pub(crate) fn is_unsignalled(&self, queue: &RequestQueue) -> bool {
        self.reap_and(|_| queue.is_unsignalled())
    }

    /// Fails the oldest request of an initiator queue if it is a `Send` that still waits, as its receiver is not ready.
    pub(crate) fn time_out(&self, queue: &RequestQueue) {
        self.reap_and(|backlog| {
            if queue.is_waiting_to_send() {
                backlog.time_out(queue);
            }
        });
    }
}

impl fmt::Debug for CompletionQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionQueue").field("number", &self.queue.cq.number()).finish_non_exhaustive()
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        tracing::trace!(target: "ndcompat::queue", cq = self.queue.cq.number(), "released");
        self.cancel();
    }
}

/// An unowned handle to take results with (`GetResults`); the caller keeps the queue alive.
///
/// ```
#[doc = include_str!("../rust_api/device.txt")]
/// use ndcompat::types::Completion;
/// use ndcompat::{Provider, Reaper, ResultRoom, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let queue = session.adapter().create_completion_queue(session.file(), 16, (0, 0))?;
/// let reaper: Reaper = queue.reaper();
/// let mut results = [Completion::default(); 8];
/// // SAFETY: the queue is alive, and the array is the caller's own.
/// assert_eq!(unsafe { reaper.results(ResultRoom::from(&mut results[..])) }, 0);
/// # Ok::<(), ndcompat::Status>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Reaper(NonNull<Queue>);

// SAFETY: all methods of a queue may be called from several threads.
unsafe impl Send for Reaper {}
// SAFETY: it is the address of a queue, whose methods are thread-safe.
unsafe impl Sync for Reaper {}

impl Reaper {
    /// [`CompletionQueue::results`].
    ///
    /// # Safety
    /// The completion queue must be alive, and `room` valid for writes.
    #[inline(always)]
    pub unsafe fn results(&self, room: ResultRoom) -> usize {
        // SAFETY: the caller keeps the queue alive.
        unsafe { self.0.as_ref() }.results(room)
    }
}

/// An array for results as C passes it: a pointer and a count. It may be uninitialized.
///
/// ```
/// use ndcompat::ResultRoom;
/// use ndcompat::types::Completion;
/// use std::mem::MaybeUninit;
///
/// let mut results = [const { MaybeUninit::<Completion>::uninit() }; 8];
/// let room = ResultRoom::new(results.as_mut_ptr().cast(), 8);
/// # let _ = room;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ResultRoom {
    start: *mut Completion,
    count: u32,
}

impl ResultRoom {
    /// An array of `count` results at `start`.
    #[inline(always)]
    pub const fn new(start: *mut Completion, count: u32) -> ResultRoom {
        ResultRoom { start, count }
    }

    /// The array as a slice.
    ///
    /// # Safety
    /// It must be valid for writes, without other references while the slice is used, and written before it is read.
    unsafe fn all<'a>(self) -> &'a mut [Completion] {
        // SAFETY: the caller says that the array is valid for writes and has no other references, and reads nothing before
        // it is written.
        unsafe { slice::from_raw_parts_mut(self.start, self.count as usize) }
    }
}

impl From<&mut [Completion]> for ResultRoom {
    #[inline(always)]
    fn from(results: &mut [Completion]) -> ResultRoom {
        // No queue holds more than `u32::MAX` results.
        ResultRoom::new(results.as_mut_ptr(), results.len().try_into().unwrap_or(u32::MAX))
    }
}

/// The state of one `GetResults`. One structure in memory takes no registers of the fast path.
struct Call {
    room: ResultRoom,
    batch: [MaybeUninit<ibv_wc>; BATCH],
}

impl Queue {
    /// `GetResults`. The fast path, for one completion whose result is due, calls nothing but the provider's poll function.
    /// All else is in [`Queue::results_of`].
    #[inline(always)]
    fn results(&self, room: ResultRoom) -> usize {
        let mut call = Call { room, batch: [const { MaybeUninit::uninit() }; BATCH] };
        let Some(mut backlog) = self.backlog.try_lock() else {
            return self.results_of(self.backlog.lock(), &call, 0);
        };
        if backlog.pending {
            return self.results_of(backlog, &call, 0);
        }
        let most = (room.count as usize).min(BATCH);
        // SAFETY: `cq` keeps the device's queue alive. Errors of polling are ignored: an asynchronous event reports the
        // queue's failure.
        let found = unsafe { self.raw.poll(&mut call.batch[..most]) };
        if found == 1
            // SAFETY: polling has filled the first element.
            && let wc = unsafe { call.batch[0].assume_init_ref() }
            // SAFETY: a request queue stays in memory while completions can point to it; the lock is held.
            && let Some(result) = unsafe { reap_in_order(wc) }
        {
            // SAFETY: the array has at least one element, as no more than `room.count` were polled.
            unsafe { call.room.start.write(result) };
            backlog.count += 1;
            return 1;
        }
        if found <= 0 {
            return 0;
        }
        self.results_of(backlog, &call, found as usize)
    }

    /// The slow path of `GetResults`: takes the `found` completions while they are in order, and all others through the
    /// backlog.
    #[inline(never)]
    fn results_of(&self, mut backlog: Held<'_, Backlog>, call: &Call, found: usize) -> usize {
        // SAFETY: the array belongs to the caller of `GetResults`, for the time of the call; only elements that were
        // written are counted.
        let results = unsafe { call.room.all() };
        // SAFETY: polling has filled `found` elements of the batch.
        let found: &[ibv_wc] = unsafe { slice::from_raw_parts(call.batch.as_ptr().cast(), found) };
        let mut taken = 0;
        for (wc, result) in found.iter().zip(results.iter_mut()) {
            // SAFETY: a request queue stays in memory while completions can point to it, and the lock is held.
            let Some(reaped) = (unsafe { reap_in_order(wc) }) else { break };
            *result = reaped;
            taken += 1;
        }
        backlog.count += taken as u64;
        if !backlog.pending && taken > 0 && taken == found.len() && (taken < BATCH || taken == results.len())
        {
            return taken;
        }
        backlog.add(&found[taken..]);
        taken += backlog.take(&mut results[taken..]);
        while taken < results.len() {
            let most = (results.len() - taken).min(BATCH);
            let mut batch = [const { MaybeUninit::<ibv_wc>::uninit() }; BATCH];
            let found = self.cq.poll(&mut batch[..most]).unwrap_or_default();
            backlog.add(found);
            if found.len() < most && backlog.has_failed_queues() {
                backlog.flush(&self.cq);
            }
            taken += backlog.take(&mut results[taken..]);
            if found.len() < most {
                break;
            }
        }
        let deferred = std::mem::take(&mut backlog.deferred);
        backlog.update_pending();
        drop(backlog);
        deferred.run();
        taken
    }

    /// Moves all completions of the device to the backlog. Returns [`Backlog::pending`].
    fn collect(&self, backlog: &mut Backlog) -> bool {
        backlog.add_all(&self.cq);
        if backlog.pending {
            if backlog.has_failed_queues() {
                backlog.flush(&self.cq);
            }
            backlog.update_pending();
        }
        backlog.pending
    }

    fn flush(&self, queue_pair: Weak<dyn QueueOwner>) {
        let mut backlog = self.backlog.lock();
        backlog.add_flushing(queue_pair);
        drop(backlog);
        self.poll_again();
    }
}
