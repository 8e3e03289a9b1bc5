//! Completion queues: reaping results.

mod notifying;

use crate::adapter::Adapter;
use crate::lines::Lines;
use crate::lock::{self, CACHE_LINE, Held, Lock, Own, Way};
use crate::notification::Notification;
use crate::overlapped_file::AdapterFile;
use crate::queue_pair::Core;
use crate::reaping::Poll;
use crate::request_queue::{RequestQueue, reap_plain};
use crate::shared_receive_queue::Shared;
use crate::status::{Result, Status};
use crate::types::{Completion, NotifyType};
use crate::verbs::{self, RawQueue, bindings::ibv_wc};
use parking_lot::Mutex;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use win32::io::{Canceller, Overlapped, Registration, Which};

/// How many work completions are taken from the device at a time.
pub(crate) const BATCH: usize = 16;

/// How often in a row a thread must take results to have the queue's lock for its own.
const ENOUGH: u32 = 64;

/// A completion queue, as `IND2CompletionQueue` describes it. All methods may be called from several threads.
pub struct CompletionQueue {
    queue: Arc<Queue>,
    _events: Registration,
    affinity: (u16, u64),
}

const _: () = assert!(align_of::<Queue>() == CACHE_LINE);

/// What is shared with the threads that wait for the queue's completion events.
pub(crate) struct Queue {
    /// Where `cq` is, for the data path: one step less.
    raw: RawQueue,
    cq: Arc<verbs::CompletionQueue>,
    /// On cache lines of its own, and so of the queue's own: all that reaping writes is in it.
    poll: Lock<Poll>,
    notification: Mutex<Notification>,
    file: Arc<AdapterFile>,
    /// Requests have asked for silence: of their successes nobody is to hear.
    has_silent: AtomicBool,
    /// The device never signals solicited events; any completion has to do.
    any_for_solicited: bool,
}

impl CompletionQueue {
    pub(crate) fn new(
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
        let cq = verbs::CompletionQueue::create(adapter.context(), entries, Some(&channel), 0)?;
        let queue = Arc::new(Queue {
            raw: cq.raw(),
            cq: Arc::new(cq),
            poll: Lock::new(Poll::default(), ENOUGH),
            notification: Mutex::new(Notification::default()),
            file: file.clone(),
            has_silent: AtomicBool::new(false),
            any_for_solicited: !limits.quirks.solicited_events,
        });
        let events = file.file().add_source(channel.fd(), queue.clone()).map_err(Status::of_host)?;
        file.file().add_canceller(Arc::downgrade(&queue) as Weak<dyn Canceller>);
        adapter.watch_completion_queue(&queue);
        Ok(CompletionQueue { queue, _events: events, affinity })
    }

    /// Takes up to `results.len()` results; returns how many (`GetResults`). Fewer than asked for means that the
    /// queue was empty.
    #[inline]
    pub fn results(&self, results: &mut [Completion]) -> usize {
        self.queue.results(results.into())
    }

    /// What [`CompletionQueue::results`] does, for somebody who keeps the queue.
    pub fn reaper(&self) -> Reaper {
        Reaper(NonNull::from(&*self.queue))
    }

    /// Asks for `ov` to be completed by the next completion of the given kind (`Notify`).
    ///
    /// Answers `ND_PENDING`, or the queue's own failure.
    ///
    /// # Safety
    /// `ov` must stay valid until the request completes.
    pub unsafe fn notify(&self, kind: NotifyType, ov: *mut Overlapped) -> Status {
        // SAFETY: passed on to the caller.
        unsafe { self.queue.notify(kind, ov) }
    }

    /// Completes all pending notifications with `ND_CANCELED`, in the order they were asked for.
    pub fn cancel(&self) {
        self.queue.cancel(Which::All);
    }

    /// Changes the number of results the queue holds (`Resize`).
    pub fn resize(&self, depth: u32) -> Result<()> {
        self.adapter().check()?;
        let limits = self.adapter().limits();
        if !limits.quirks.cq_resize {
            return Err(Status::NOT_SUPPORTED);
        }
        if depth == 0 || depth > limits.info.max_completion_queue_depth {
            return Err(Status::INVALID_PARAMETER);
        }
        // Results in the stash are not in the device's queue, but they are in the user's.
        let mut poll = self.queue.poll.lock();
        self.queue.collect(&mut poll);
        let after = std::mem::take(&mut poll.after);
        let resized = if poll.stash.len() > depth as usize {
            Err(Status::BUFFER_OVERFLOW)
        } else {
            self.queue.cq.resize(limits.completion_entries(depth)).map_err(|error| {
                match error.raw_os_error() {
                    Some(libc::EINVAL) => Status::BUFFER_OVERFLOW,
                    _ => error.into(),
                }
            })
        };
        drop(poll);
        after.run();
        resized
    }

    /// Processor group and affinity mask that notifications are processed on.
    pub fn notify_affinity(&self) -> Result<(u16, u64)> {
        self.adapter().check()?;
        Ok(self.affinity)
    }

    /// The file that the queue's requests run on.
    pub fn file(&self) -> &Arc<win32::io::File> {
        self.queue.file.file()
    }

    pub(crate) fn adapter(&self) -> &Arc<Adapter> {
        self.queue.file.adapter()
    }

    pub(crate) fn verbs(&self) -> &Arc<verbs::CompletionQueue> {
        &self.queue.cq
    }

    /// Reports, from now on, the requests that the failed queue pair `core` keeps from the device.
    pub(crate) fn flush(&self, core: &Arc<Core>) {
        self.queue.flush(core);
    }

    /// Keeps the queue of a destroyed queue pair until no completion can point into it. If that had failed, the device may
    /// yet report what has been reported as cancelled.
    pub(crate) fn retire(&self, queue: Lines<RequestQueue>, failed: Option<*const Core>) {
        if failed.is_some() || !queue.is_idle() {
            self.queue.poll.lock().retire(queue, failed);
        }
    }
}

impl CompletionQueue {
    /// Expects completions of a queue pair's shared receives.
    pub(crate) fn add_shared(&self, core: &Arc<Core>, context: u64, shared: &Arc<Shared>) {
        self.queue.poll.lock().add_shared(core, context, shared);
    }

    /// Forgets a destroyed queue pair's shared receives once no completion of theirs can come.
    pub(crate) fn retire_shared(&self, number: u32, failed: Option<*const Core>) {
        self.queue.poll.lock().retire_shared(number, failed);
    }

    /// A request is about to be posted whose success the device may report, although nobody asked for it.
    #[inline(always)]
    pub(crate) fn expect_silent(&self) {
        if !self.queue.has_silent.load(Ordering::Relaxed) {
            self.queue.has_silent.store(true, Ordering::Release);
        }
    }

    /// Takes what has completed off the device, so that silent requests free their slots.
    pub(crate) fn make_room(&self) {
        let mut poll = self.queue.poll.lock();
        self.queue.collect(&mut poll);
        let after = std::mem::take(&mut poll.after);
        drop(poll);
        after.run();
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Takes results from a queue that somebody else keeps: for the data path, a step less.
#[derive(Clone, Copy)]
pub struct Reaper(NonNull<Queue>);

// SAFETY: all methods of a queue may be called from several threads.
unsafe impl Send for Reaper {}
// SAFETY: as above.
unsafe impl Sync for Reaper {}

impl Reaper {
    /// [`CompletionQueue::results`].
    ///
    /// # Safety
    /// The completion queue must be alive, and the room be there.
    #[inline(always)]
    pub unsafe fn results(&self, room: ResultRoom) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.0.as_ref() }.results(room)
    }
}

/// Room for results as C passes it: a pointer, and how many have room there. What is there need not be results.
#[derive(Clone, Copy)]
pub struct ResultRoom {
    start: *mut Completion,
    count: u32,
}

impl ResultRoom {
    /// Room for `count` results that lie one after another.
    #[inline(always)]
    pub const fn new(start: *mut Completion, count: u32) -> ResultRoom {
        ResultRoom { start, count }
    }

    /// All of it.
    ///
    /// # Safety
    /// It must be there, and be nobody else's for as long as the slice is used.
    unsafe fn all<'a>(self) -> &'a mut [Completion] {
        // SAFETY: the caller's promise; what the slice is made of is written before it is read.
        unsafe { slice::from_raw_parts_mut(self.start, self.count as usize) }
    }
}

impl From<&mut [Completion]> for ResultRoom {
    #[inline(always)]
    fn from(results: &mut [Completion]) -> ResultRoom {
        // No queue holds more.
        ResultRoom::new(results.as_mut_ptr(), results.len().try_into().unwrap_or(u32::MAX))
    }
}

/// What is asked of the device, and for whom: in one piece of memory, so that no registers must be saved for the latter.
#[repr(C)]
struct Call {
    room: ResultRoom,
    batch: [MaybeUninit<ibv_wc>; BATCH],
}

impl Call {
    /// Takes the result of what was found at `place`, if that is the success of a plain request.
    ///
    /// # Safety
    /// The device must have filled that place, for which there must be one in the room. The lock of the queue must be held, and
    /// nothing be kept.
    #[inline(always)]
    unsafe fn take(&mut self, place: usize) -> bool {
        // SAFETY: passed on to the caller.
        unsafe {
            let completion = reap_plain(self.batch.get_unchecked(place).assume_init_ref());
            completion.inspect(|&completion| self.room.start.add(place).write(completion)).is_some()
        }
    }
}

impl Queue {
    /// Takes the successes of plain requests, if there are one or two, and leaves all else to others, which could do this, too:
    /// what is usual takes few instructions, and calls nothing but the device.
    #[inline(always)]
    fn results(&self, room: ResultRoom) -> usize {
        if room.count > BATCH as u32 {
            return self.results_of_many(room);
        }
        self.results_up_to(room, room.count)
    }

    #[inline(never)]
    fn results_of_many(&self, room: ResultRoom) -> usize {
        self.results_up_to(room, BATCH as u32)
    }

    /// As [`Queue::results`], of which the device is asked for at most so many in the first place.
    #[inline(always)]
    fn results_up_to(&self, room: ResultRoom, most: u32) -> usize {
        match Own::take(&self.poll) {
            Some(poll) => self.results_with(poll, room, most),
            None => self.results_shared(room, most),
        }
    }

    #[inline(never)]
    fn results_shared(&self, room: ResultRoom, most: u32) -> usize {
        match lock::Shared::take(&self.poll) {
            Some(poll) => self.results_with(poll, room, most),
            None => self.results_later(room),
        }
    }

    #[inline(always)]
    fn results_with<'a, W: Way<'a>>(
        &'a self,
        mut poll: Held<'a, Poll, W>,
        room: ResultRoom,
        most: u32,
    ) -> usize {
        if poll.kept {
            return self.results_of_stash(room, poll.into_either());
        }
        let mut call = Call { batch: [const { MaybeUninit::uninit() }; BATCH], room };
        // SAFETY: the queue lives as long as `cq`; there is room for so many.
        let found = unsafe { self.raw.poll(call.batch.get_unchecked_mut(..most as usize)) };
        // One or two are most probable: without a loop.
        // SAFETY: there are as many as are asked for.
        if found == 1 && unsafe { call.take(0) } {
            poll.reaped += 1;
            return 1;
        }
        if found <= 0 {
            // A queue that cannot be polled has failed, which its asynchronous event tells.
            poll.found_empty();
            return 0;
        }
        // SAFETY: as above.
        if found == 2 && unsafe { call.take(0) } {
            // SAFETY: as above.
            if unsafe { call.take(1) } {
                poll.reaped += 2;
                return 2;
            }
            // SAFETY: as above.
            return unsafe { self.results_of_batch(&mut call, poll.into_either(), 1, 2) };
        }
        // SAFETY: the device has filled as many as it says.
        unsafe { self.results_of_batch(&mut call, poll.into_either(), 0, found as usize) }
    }

    /// Takes the successes of plain requests that are `found`, and leaves all else to [`Queue::results_of_any`].
    ///
    /// # Safety
    /// So many must have been found.
    #[inline(never)]
    unsafe fn results_of_batch(
        &self,
        call: &mut Call,
        mut poll: Held<'_, Poll>,
        mut taken: usize,
        found: usize,
    ) -> usize {
        // SAFETY: passed on to the caller.
        while taken < found && unsafe { call.take(taken) } {
            taken += 1;
        }
        poll.reaped += taken as u64;
        if taken < found || found == BATCH && call.room.count > BATCH as u32 {
            // SAFETY: as above.
            let left = unsafe { slice::from_raw_parts(call.batch.as_ptr().cast(), found) };
            return self.results_of_any(call.room, poll, taken, &left[taken..]);
        }
        taken
    }

    /// Takes results of the stash first, which is mostly all that is kept.
    #[inline(never)]
    fn results_of_stash(&self, room: ResultRoom, mut poll: Held<'_, Poll>) -> usize {
        // SAFETY: who asks for results has room.
        let results = unsafe { room.all() };
        let taken = poll.take_stashed(results);
        poll.note_kept();
        if poll.kept {
            return self.results_of_any(room, poll, taken, &[]);
        }
        if taken == results.len() {
            return taken;
        }
        let mut batch = [const { MaybeUninit::<ibv_wc>::uninit() }; BATCH];
        let most = (results.len() - taken).min(BATCH);
        match self.cq.poll(&mut batch[..most]).unwrap_or_default() {
            [] => {
                poll.found_empty();
                taken
            }
            found => self.results_of_any(room, poll, taken, found),
        }
    }

    /// Waits for the lock first.
    #[cold]
    #[inline(never)]
    fn results_later(&self, room: ResultRoom) -> usize {
        self.results_of_any(room, self.poll.lock(), 0, &[])
    }

    /// Takes results of all kinds, after `taken` others; first those of the completions `found` already.
    #[cold]
    #[inline(never)]
    fn results_of_any(
        &self,
        room: ResultRoom,
        mut poll: Held<'_, Poll>,
        mut taken: usize,
        found: &[ibv_wc],
    ) -> usize {
        // SAFETY: who asks for results has room.
        let results = unsafe { room.all() };
        let mut take = |completion| {
            results[taken] = completion;
            taken += 1;
        };
        poll.reap(found, &mut take);
        taken += poll.take_stashed(&mut results[taken..]);
        while taken < results.len() {
            let most = (results.len() - taken).min(BATCH);
            let found = self.reap(&mut poll, most, |completion| {
                results[taken] = completion;
                taken += 1;
            });
            if found < most {
                poll.found_empty();
                if poll.has_leftovers() {
                    poll.settle_empty(&self.cq);
                    taken += poll.take_stashed(&mut results[taken..]);
                }
                break;
            }
        }
        let after = std::mem::take(&mut poll.after);
        poll.note_kept();
        drop(poll);
        after.run();
        taken
    }

    /// Takes up to `most` completions from the device and gives the visible ones to `take`; returns how many there were.
    fn reap(&self, poll: &mut Poll, most: usize, take: impl FnMut(Completion)) -> usize {
        let mut batch = [const { MaybeUninit::<ibv_wc>::uninit() }; BATCH];
        let found = self.cq.poll(&mut batch[..most]).unwrap_or_default();
        poll.reap(found, take);
        found.len()
    }

    /// Takes everything from the device into the stash.
    #[inline(always)]
    fn collect(&self, poll: &mut Poll) {
        let mut batch = [const { MaybeUninit::<ibv_wc>::uninit() }; BATCH];
        let found = self.cq.poll(&mut batch).unwrap_or_default();
        if found.is_empty() {
            poll.found_empty();
        }
        if !found.is_empty() || poll.kept {
            self.collect_all(poll, found);
        }
    }

    /// Takes into the stash what was `found`, and all that there is besides.
    #[inline(never)]
    fn collect_all(&self, poll: &mut Poll, found: &[ibv_wc]) {
        poll.stash(found);
        if found.len() == BATCH {
            poll.stash_all(&self.cq);
        }
        if poll.has_leftovers() {
            poll.settle_empty(&self.cq);
        }
        poll.note_kept();
    }

    fn flush(&self, core: &Arc<Core>) {
        let mut poll = self.poll.lock();
        poll.add_flushing(core);
        drop(poll);
        self.look_again();
    }

    /// Whether this is the queue that a verbs asynchronous event names.
    pub(crate) fn is(&self, cq: *const verbs::bindings::ibv_cq) -> bool {
        self.cq.as_ptr().cast_const() == cq
    }
}
