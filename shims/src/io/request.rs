//! Requests: overlapped operations, and waiting for their results.

use super::address::AddressWaiters;
use super::apc::Apcs;
use super::file::{CancelScope, File};
use super::outstanding::Counted;
use super::overlapped::{Overlapped, STATUS_CANCELLED, STATUS_PENDING, STATUS_SUCCESS};
use super::parker::Parker;
use super::queue::Idle;
use super::signal::Signal;
use super::sync::{Arc, AtomicUsize, Ordering, fence};
use super::sys::{Deadline, thread_id};
use std::sync::LazyLock;
use std::task::Waker;

/// One pending overlapped operation. Dropping it completes it with [`STATUS_CANCELLED`].
///
/// It holds the file and the event itself: callers close their handles to both early.
pub struct Request {
    file: Arc<File>,
    event: Option<Arc<Signal>>,
    ov: *mut Overlapped,
    /// The low-order bit of `hEvent` was set: the caller wants no completion packet.
    tagged: bool,
    /// The file was bound to a port when the request was started.
    bound: bool,
    /// The thread that started it.
    thread: u32,
    /// Dropped once the `OVERLAPPED` is no longer accessed, before waiters are woken.
    counted: Option<Counted>,
}

// SAFETY: the OVERLAPPED is handed over to the request until completion, and its fields are atomics.
unsafe impl Send for Request {}

impl Request {
    /// Starts a request, which will set `event` or else the file's; with `tagged` without a packet.
    ///
    /// # Safety
    /// As for [`File::begin`].
    pub(crate) unsafe fn begin(
        file: &Arc<File>,
        ov: *mut Overlapped,
        event: Option<Arc<Signal>>,
        tagged: bool,
    ) -> Request {
        let event = event.or_else(|| file.own_signal().cloned());
        let bound = file.is_bound();
        // SAFETY: valid for writes, as the caller promises. No reference is made: its fields may be uninitialised, and stores
        // to atomics need a value before them.
        unsafe { (*ov).internal_high = AtomicUsize::new(mark_of(file)) };
        fence(Ordering::Release);
        // SAFETY: valid for writes, as the caller promises; after the fence, so that whoever sees the status sees the mark.
        unsafe { (*ov).internal = AtomicUsize::new(STATUS_PENDING as usize) };
        if let Some(event) = &event {
            event.begin(file.poller_if(bound));
        }
        file.expect_events();
        Request { file: file.clone(), event, ov, tagged, bound, thread: thread_id(), counted: None }
    }

    /// As [`File::finish_at_once`], with `pended` as [`File::finish_as_pended`].
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn finish_at_once(
        file: &File,
        ov: *mut Overlapped,
        event: Option<Arc<Signal>>,
        tagged: bool,
        bytes: usize,
        pended: bool,
    ) {
        let port = ((pended || file.tells_of_success()) && !tagged).then(|| file.port()).flatten();
        // SAFETY: valid for writes, as the caller promises. No reference is made: its fields may be uninitialised, and stores
        // to atomics need a value before them.
        unsafe { (*ov).internal_high = AtomicUsize::new(bytes) };
        fence(Ordering::Release);
        // SAFETY: valid for writes, as the caller promises; after the fence, so that whoever sees the status sees the count.
        unsafe { (*ov).internal = AtomicUsize::new(STATUS_SUCCESS as usize) };
        event.as_ref().or(file.own_signal()).into_iter().for_each(|signal| signal.set());
        if let Some(port) = port {
            port.post(ov.addr(), STATUS_SUCCESS, bytes);
        }
    }

    /// See [`Outstanding`](super::Outstanding).
    pub(crate) fn counted(mut self, counted: Counted) -> Request {
        self.counted = Some(counted);
        self
    }

    /// Completes the operation. Its `OVERLAPPED` is not accessed afterwards.
    #[inline]
    pub fn complete(mut self, status: i32, bytes: usize) {
        self.finish(status, bytes);
    }

    /// Whether it is in the scope of a cancellation.
    pub fn is_in(&self, scope: CancelScope) -> bool {
        match scope {
            CancelScope::All => true,
            CancelScope::Overlapped(ov) => self.ov == ov,
            CancelScope::Thread(thread) => self.thread == thread,
        }
    }

    /// The address of the caller's `OVERLAPPED`.
    pub fn overlapped(&self) -> *mut Overlapped {
        self.ov
    }

    fn finish(&mut self, status: i32, bytes: usize) {
        let ov = std::mem::replace(&mut self.ov, std::ptr::null_mut());
        let mut port = None;
        let mut publish = || {
            // SAFETY: `begin` asks that it stays until the request completes, which the store of the status below does, and has
            // initialised the field.
            let internal_high = unsafe { &(*ov).internal_high };
            internal_high.store(bytes, Ordering::Relaxed);
            port = self.file.publish(|| {
                // SAFETY: `begin` asks that it stays until the request completes, which this store does.
                unsafe { &(*ov).internal }.store(status as u32 as usize, Ordering::Release);
            });
        };
        let begun_on = self.file.poller_if(self.bound);
        match &self.event {
            Some(event) => event.finish(begun_on, publish),
            None => publish(),
        }
        if let Some(port) = port
            && !self.tagged
        {
            port.post(ov.addr(), status, bytes);
        }
        // A woken thread may release the request's object, which waits until no request is outstanding.
        self.counted = None;
        waiters_of(ov).wake(ov.addr());
        self.file.no_more_events();
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if !self.ov.is_null() {
            self.finish(STATUS_CANCELLED, 0);
        }
    }
}

/// The owner, which `InternalHigh` holds while an operation is pending. On Windows, too, it has no meaning until completion.
fn mark_of(file: &File) -> usize {
    std::ptr::from_ref(file).addr()
}

/// The waiters of each `OVERLAPPED`, of all files; sharded by address.
static WAITERS: LazyLock<[AddressWaiters; SHARDS]> = LazyLock::new(Default::default);
const SHARDS: usize = 16;

fn waiters_of(ov: *const Overlapped) -> &'static AddressWaiters {
    // Neighbours are at least 32 bytes apart; the factor spreads larger strides.
    &WAITERS[((ov.addr() >> 5).wrapping_mul(0x9E37_79B9) >> 7) % SHARDS]
}

/// The file of the pending operation on `ov`, if there is one: a program may have filled in the `OVERLAPPED` by itself.
///
/// # Safety
/// `ov` must point to a valid `OVERLAPPED`.
pub(crate) unsafe fn file_of(ov: *const Overlapped) -> Option<Arc<File>> {
    // SAFETY: a valid `OVERLAPPED`, as the caller promises; the field is atomic.
    File::at(unsafe { (*ov).internal_high.load(Ordering::Relaxed) })
}

/// The status of an overlapped operation; with `wait`, blocks until there is a final one.
///
/// Works for an `ov` of any file; `file` is the one that is served first. The operation's event is neither needed nor reset.
///
/// # Safety
/// `ov` must point to a valid `OVERLAPPED` whose operation was started. It must stay valid until the operation
/// has completed; `file` must stay valid until the call returns.
pub unsafe fn result(file: &File, ov: *const Overlapped, wait: bool) -> i32 {
    let deadline = if wait { Deadline::Never } else { Deadline::Now };
    // SAFETY: a valid `OVERLAPPED` of a started operation, as the caller promises.
    unsafe { result_before(file, ov, deadline, None) }.unwrap_or(STATUS_PENDING)
}

/// Waits up to `limit` until `done`, which is checked whenever the operation on `ov` completes.
///
/// For a driver that waits for its own request. `ov` is only a key: it may be freed already.
pub fn wait_for(
    file: &Arc<File>,
    ov: *const Overlapped,
    limit: std::time::Duration,
    done: impl Fn() -> bool,
) -> bool {
    wait_at(file, ov, Deadline::after(limit), || done().then_some(())).is_some()
}

/// Waits on `file` up to `limit` until `done` returns a value; it is called whenever the operation on `ov` completes, and after
/// [`wake`]. `ov` is only a key.
pub fn wait_until<R>(
    file: &Arc<File>,
    ov: *const Overlapped,
    limit: Option<std::time::Duration>,
    done: impl FnMut() -> Option<R>,
) -> Option<R> {
    wait_at(file, ov, limit.map_or(Deadline::Never, Deadline::after), done)
}

/// Lets the waiters of the operation on `ov`, or of this key, check again.
pub fn wake(ov: *const Overlapped) {
    waiters_of(ov).wake(ov.addr());
}

/// Registers `task` to be woken once, when the operation on `ov` completes or by [`wake`], in place of earlier tasks.
///
/// It may have completed already: check afterwards. The task is woken by the thread that completes the operation, without a lock.
/// Until then the background thread makes progress if no other does.
pub fn wake_when_complete(ov: *const Overlapped, task: &Waker) {
    waiters_of(ov).register_task(ov.addr(), task);
}

/// Undoes [`wake_when_complete`].
pub fn forget_tasks(ov: *const Overlapped) {
    waiters_of(ov).forget_tasks(ov.addr());
}

/// Waits on `file` until `done` returns a value; it is called whenever the operation on `ov` completes.
fn wait_at<R>(
    file: &File,
    ov: *const Overlapped,
    deadline: Deadline,
    done: impl FnMut() -> Option<R>,
) -> Option<R> {
    // The caller's reference to the file may be dropped when the operation completes.
    let poller = file.poller().clone();
    let _idle = Idle::enter();
    Parker::with(|parker| {
        let _registered = waiters_of(ov).register(ov.addr(), parker);
        poller.wait(parker, deadline, done)
    })
}

/// Like [`result`], but returns `None` at `deadline`, and with `apcs` when there are asynchronous procedure calls.
///
/// # Safety
/// As for [`result`].
pub(crate) unsafe fn result_before(
    file: &File,
    ov: *const Overlapped,
    deadline: Deadline,
    apcs: Option<&Apcs>,
) -> Option<i32> {
    let status = || {
        // SAFETY: a valid `OVERLAPPED` until the operation has completed, as the caller promises; the field is atomic.
        let status = unsafe { (*ov).internal.load(Ordering::Acquire) } as i32;
        (status != STATUS_PENDING).then_some(status)
    };
    if let Some(status) = status() {
        return Some(status);
    }
    if deadline.passed() {
        file.progress();
        return Some(status().unwrap_or(STATUS_PENDING));
    }
    let called = || apcs.is_some_and(Apcs::any).then_some(None);
    wait_at(file, ov, deadline, || status().map(Some).or_else(called)).unwrap_or(Some(STATUS_PENDING))
}
