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
    /// How many events have been read and not acknowledged.
    events: AtomicU32,
}

// SAFETY: verbs calls on a queue are thread-safe.
unsafe impl Send for CompletionQueue {}
// SAFETY: verbs lets several threads poll and arm a queue at once; the count of events is atomic.
unsafe impl Sync for CompletionQueue {}

impl CompletionQueue {
    /// Creates a queue for at least `depth` completions whose events go to `channel` and carry `cookie`. The device interrupts this
    /// `processor`, as far as the driver has it so, or else that which is next in turn.
    ///
    /// # Errors
    /// The errno of `ibv_create_cq`; `EINVAL` for more entries than an `int` holds.
    pub fn create(
        context: &Arc<Context>,
        depth: u32,
        channel: Option<&Arc<CompletionChannel>>,
        cookie: usize,
        processor: Option<u32>,
    ) -> io::Result<CompletionQueue> {
        let depth = c_depth(depth)?;
        let raw_channel = channel.map_or(ptr::null_mut(), |channel| channel.as_ptr());
        // SAFETY: context and channel are live; the cookie is not dereferenced.
        let create = |vector| unsafe {
            (context.library().ibv_create_cq)(context.as_ptr(), depth, cookie as *mut _, raw_channel, vector)
        };
        static TURN: AtomicU32 = AtomicU32::new(0);
        let processor = processor.unwrap_or_else(|| TURN.fetch_add(1, Ordering::Relaxed));
        let vector = processor % context.completion_vectors();
        let mut raw = create(vector as c_int);
        // Not every driver has all the vectors that it reports, or can have them now. EIO: the device is gone.
        if raw.is_null() && vector > 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EIO) {
            raw = create(0);
        }
        Ok(CompletionQueue {
            raw: errno::created(context, "ibv_create_cq", raw)?,
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

    /// The depth of the queue: at least what was asked for.
    pub fn depth(&self) -> u32 {
        // SAFETY: the queue is live: `self` owns it, and destroys it only when it is dropped.
        unsafe { self.raw.as_ref().cqe as u32 }
    }

    /// Takes completions, up to the length of `room`.
    ///
    /// # Errors
    /// The negative result of `ibv_poll_cq`: the queue has failed.
    pub fn poll<'a>(&self, room: &'a mut [MaybeUninit<ibv_wc>]) -> io::Result<&'a [ibv_wc]> {
        // SAFETY: the queue is live: `self` owns it, and destroys it only when it is dropped.
        let found = unsafe { self.raw().poll(room) };
        if found < 0 {
            return Err(io::Error::from_raw_os_error(errno::errno(found)));
        }
        // SAFETY: the provider has filled that many.
        Ok(unsafe { slice::from_raw_parts(room.as_ptr().cast(), found as usize) })
    }

    /// An unowned handle of the queue.
    pub fn raw(&self) -> RawQueue {
        RawQueue(self.raw)
    }

    /// Arms the queue: its next completion (or next solicited or failed one) sends one event to the channel.
    ///
    /// # Errors
    /// The errno of `ibv_req_notify_cq`.
    #[inline(always)]
    pub fn req_notify(&self, solicited_only: bool) -> io::Result<()> {
        // SAFETY: the queue is live: `self` owns it, and destroys it only when it is dropped.
        errno::verbs(&self.context, "ibv_req_notify_cq", unsafe {
            ops::req_notify_cq(self.as_ptr(), solicited_only.into())
        })
    }

    /// Leaves the acknowledgement of an event to the destruction of the queue. Acknowledging all together saves a lock at
    /// each wake-up.
    pub fn acknowledge_later(&self, event: CompletionEvent) {
        assert!(ptr::eq(event.cq(), self.as_ptr()));
        std::mem::forget(event);
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of the queue, as `rdma resource` has it.
    pub fn number(&self) -> u32 {
        // SAFETY: the queue is live: `self` owns it, and destroys it only when it is dropped.
        unsafe { (*self.as_ptr()).handle }
    }

    /// Changes the depth to at least `depth` completions. Not every device supports it.
    ///
    /// # Errors
    /// The errno of `ibv_resize_cq`; `EINVAL` for more entries than an `int` holds.
    pub fn resize(&self, depth: u32) -> io::Result<()> {
        // SAFETY: the queue is live: `self` owns it, and destroys it only when it is dropped.
        errno::verbs(&self.context, "ibv_resize_cq", unsafe {
            (self.context.library().ibv_resize_cq)(self.as_ptr(), c_depth(depth)?)
        })
    }
}

/// An unowned handle of a completion queue.
#[derive(Clone, Copy)]
pub struct RawQueue(NonNull<ibv_cq>);

// SAFETY: verbs calls on a queue are thread-safe.
unsafe impl Send for RawQueue {}
// SAFETY: verbs lets several threads poll a queue at once.
unsafe impl Sync for RawQueue {}

impl RawQueue {
    /// As [`CompletionQueue::poll`]; returns the number of completions written to `room`, negative after a failure.
    ///
    /// # Safety
    /// The queue must be live.
    #[inline(always)]
    pub unsafe fn poll(&self, room: &mut [MaybeUninit<ibv_wc>]) -> c_int {
        let count = room.len() as c_int & c_int::MAX;
        // SAFETY: there is room for `count` completions; the caller says that the queue is live.
        unsafe { ops::poll_cq(self.0.as_ptr(), count, room.as_mut_ptr().cast()) }
    }
}

fn c_depth(depth: u32) -> io::Result<c_int> {
    c_int::try_from(depth).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: the queue is live; this is the number of events that were not acknowledged.
        unsafe { (self.context.library().ibv_ack_cq_events)(self.as_ptr(), *self.events.get_mut()) };
        // SAFETY: every queue pair on it holds it, so none is left. This waits until other threads have acknowledged their
        // events.
        unsafe { (self.context.library().ibv_destroy_cq)(self.as_ptr()) };
    }
}
