//! Completion queues.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::bindings::*;
use super::{CompletionChannel, CompletionEvent, Context, errno, ops};

/// A completion queue.
pub struct CompletionQueue {
    raw: NonNull<ibv_cq>,
    context: Arc<Context>,
    channel: Option<Arc<CompletionChannel>>,
    /// How many events have been taken and not acknowledged.
    events: AtomicU32,
}

// SAFETY: verbs calls on a queue are thread-safe.
unsafe impl Send for CompletionQueue {}
// SAFETY: as above.
unsafe impl Sync for CompletionQueue {}

impl CompletionQueue {
    /// Creates a queue for at least `depth` completions whose events go to `channel` and carry `cookie`.
    pub fn create(
        context: &Arc<Context>,
        depth: u32,
        channel: Option<&Arc<CompletionChannel>>,
        cookie: usize,
    ) -> io::Result<CompletionQueue> {
        let depth = c_depth(depth)?;
        let raw_channel = channel.map_or(ptr::null_mut(), |channel| channel.as_ptr());
        // SAFETY: context and channel are live; the cookie is not dereferenced.
        let raw = unsafe { ibv_create_cq(context.as_ptr(), depth, cookie as *mut _, raw_channel, 0) };
        Ok(CompletionQueue {
            raw: errno::created(raw)?,
            context: Arc::clone(context),
            channel: channel.cloned(),
            events: AtomicU32::new(0),
        })
    }

    /// The C object.
    #[inline(always)]
    pub fn as_ptr(&self) -> *mut ibv_cq {
        self.raw.as_ptr()
    }

    /// The device.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The channel of its events.
    pub fn channel(&self) -> Option<&Arc<CompletionChannel>> {
        self.channel.as_ref()
    }

    /// How many completions it holds: at least what was asked for.
    pub fn depth(&self) -> u32 {
        // SAFETY: the queue is live.
        unsafe { self.raw.as_ref().cqe as u32 }
    }

    /// Takes up to as many completions as there is room for.
    pub fn poll<'a>(&self, room: &'a mut [MaybeUninit<ibv_wc>]) -> io::Result<&'a [ibv_wc]> {
        // SAFETY: the queue is live.
        let found = unsafe { self.raw().poll(room) };
        if found < 0 {
            return Err(io::Error::from_raw_os_error(errno::errno(found)));
        }
        // SAFETY: the provider has filled that many.
        Ok(unsafe { slice::from_raw_parts(room.as_ptr().cast(), found as usize) })
    }

    /// The queue without its owner.
    pub fn raw(&self) -> RawQueue {
        RawQueue(self.raw)
    }

    /// Arms the queue: its next completion (or next solicited or failed one) sends one event to the channel.
    #[inline(always)]
    pub fn req_notify(&self, solicited_only: bool) -> io::Result<()> {
        // SAFETY: the queue is live.
        errno::verbs(unsafe { ops::req_notify_cq(self.as_ptr(), solicited_only.into()) })
    }

    /// Keeps an event of the queue until the queue goes. To acknowledge all at once saves each wake-up a lock.
    pub fn keep(&self, event: CompletionEvent) {
        assert!(ptr::eq(event.cq(), self.as_ptr()));
        std::mem::forget(event);
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives the queue room for at least `depth` completions; not every device can.
    pub fn resize(&self, depth: u32) -> io::Result<()> {
        // SAFETY: the queue is live.
        errno::verbs(unsafe { ibv_resize_cq(self.as_ptr(), c_depth(depth)?) })
    }
}

/// Names a completion queue that somebody else keeps.
#[derive(Clone, Copy)]
pub struct RawQueue(NonNull<ibv_cq>);

// SAFETY: verbs calls on a queue are thread-safe.
unsafe impl Send for RawQueue {}
// SAFETY: as above.
unsafe impl Sync for RawQueue {}

impl RawQueue {
    /// Like [`CompletionQueue::poll`], in C's terms: how many completions `room` begins with now; negative for failure.
    ///
    /// # Safety
    /// The queue must be live.
    #[inline(always)]
    pub unsafe fn poll(&self, room: &mut [MaybeUninit<ibv_wc>]) -> c_int {
        let count = room.len() as c_int & c_int::MAX;
        // SAFETY: there is room for that many, if not for more; the rest is the caller's promise.
        unsafe { ops::poll_cq(self.0.as_ptr(), count, room.as_mut_ptr().cast()) }
    }
}

fn c_depth(depth: u32) -> io::Result<c_int> {
    c_int::try_from(depth).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: every queue pair on it holds it, so none is left; the events kept have not been acknowledged. Destruction
        // waits for those that others have.
        unsafe {
            ibv_ack_cq_events(self.as_ptr(), *self.events.get_mut());
            ibv_destroy_cq(self.as_ptr());
        }
    }
}
