//! Requests: the life of one overlapped operation, and waiting for its result.

use super::address::AddressWaiters;
use super::parker::Parker;
use super::runner::Idle;
use super::signal::Signal;
use super::sync::{Arc, AtomicUsize, Ordering, fence};
use super::sys::{Deadline, thread_id};
use super::{File, Overlapped, STATUS_CANCELLED, STATUS_PENDING};
use crate::object::{Object, handle};

/// One pending overlapped operation. Dropping it completes it with [`STATUS_CANCELLED`].
///
/// It holds the file and the event itself: callers close their handles to both early.
pub struct Request {
    file: Arc<File>,
    event: Option<Arc<Signal>>,
    ov: *mut Overlapped,
    /// The low-order bit of `hEvent` was set: the caller wants no completion packet.
    tagged: bool,
    /// The file was bound to a port when it began.
    bound: bool,
    /// The thread that began it.
    thread: u32,
}

/// Which of the pending requests are meant.
#[derive(Clone, Copy, Debug)]
pub enum Which {
    /// All of them.
    All,
    /// The one on this `OVERLAPPED`.
    On(*mut Overlapped),
    /// Those that the thread with this number began.
    OfThread(u32),
}

// SAFETY: the OVERLAPPED is handed over to the request until completion, and its fields are atomics.
unsafe impl Send for Request {}

impl Request {
    /// # Safety
    /// As for [`File::begin`].
    pub(super) unsafe fn begin(file: &Arc<File>, ov: *mut Overlapped) -> Request {
        // SAFETY: the caller vouches for `ov`. No reference is made to it: other fields may be uninitialised.
        let named = unsafe { (&raw const (*ov).event).read() };
        let event = match handle::get(named) {
            Some(Object::Event(event)) => Some(event),
            _ => file.own_signal().cloned(),
        };
        let bound = file.is_bound();
        // SAFETY: as above; stores to atomics need no initialised value before them.
        unsafe {
            (&raw mut (*ov).internal_high).write(AtomicUsize::new(mark_of(file)));
            fence(Ordering::Release);
            (&raw mut (*ov).internal).write(AtomicUsize::new(STATUS_PENDING as usize));
        }
        if let Some(event) = &event {
            event.begin(file.poller_if(bound));
        }
        file.expect_events();
        Request { file: file.clone(), event, ov, tagged: named.is_tagged(), bound, thread: thread_id() }
    }

    /// Completes the operation; afterwards nothing here touches its `OVERLAPPED` again.
    #[inline]
    pub fn complete(mut self, status: i32, bytes: usize) {
        self.finish(status, bytes);
    }

    /// Whether it is one of those that are meant.
    pub fn is_among(&self, which: Which) -> bool {
        match which {
            Which::All => true,
            Which::On(ov) => self.ov == ov,
            Which::OfThread(thread) => self.thread == thread,
        }
    }

    /// The address of the caller's `OVERLAPPED`.
    pub fn overlapped(&self) -> *mut Overlapped {
        self.ov
    }

    fn finish(&mut self, status: i32, bytes: usize) {
        let ov = std::mem::replace(&mut self.ov, std::ptr::null_mut());
        let publish = || {
            // SAFETY: valid until the second store, and not used after it.
            unsafe {
                (*ov).internal_high.store(bytes, Ordering::Relaxed);
                (*ov).internal.store(status as u32 as usize, Ordering::Release);
            }
        };
        let begun_on = self.file.poller_if(self.bound);
        match &self.event {
            Some(event) => event.finish(begun_on, publish),
            None => publish(),
        }
        waiters_of(ov).wake(ov.addr());
        // There is a fence in the call before.
        begun_on.rouse(ov.addr());
        // Who came to wait later waits on the port's.
        if !self.bound && self.file.is_bound() {
            self.file.poller().rouse(ov.addr());
        }
        if !self.tagged {
            self.file.post(ov.addr(), status, bytes);
        }
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

/// What `InternalHigh` holds while an operation is pending: whose it is. On Windows, too, it has no meaning until then.
fn mark_of(file: &File) -> usize {
    std::ptr::from_ref(file).addr()
}

/// Who waits for which `OVERLAPPED`, whatever file it belongs to; sharded by address.
static WAITERS: [AddressWaiters; SHARDS] = [const { AddressWaiters::new() }; SHARDS];
const SHARDS: usize = 16;

fn waiters_of(ov: *const Overlapped) -> &'static AddressWaiters {
    // Neighbours are 32 bytes apart or more; the factor spreads larger strides.
    &WAITERS[((ov.addr() >> 5).wrapping_mul(0x9E37_79B9) >> 7) % SHARDS]
}

/// The status of an overlapped operation; with `wait`, blocks until there is a final one.
///
/// Works for any `ov` of any file: `file` is only the one whose progress is driven first. The event of the
/// operation is neither needed nor used up.
///
/// # Safety
/// `ov` must point to a valid `OVERLAPPED` whose operation was started. It must stay valid until the operation
/// has completed; `file` must stay valid until the call returns.
pub unsafe fn result(file: &File, ov: *const Overlapped, wait: bool) -> i32 {
    let deadline = if wait { Deadline::Never } else { Deadline::Now };
    // SAFETY: the caller vouches for `ov`.
    unsafe { result_before(file, ov, deadline) }
}

/// Waits, for at most `limit`, until `done`; asked again whenever the operation on `ov` completes.
///
/// For a driver that wants to see its own request through. `ov` is only a name here: it may be gone already.
pub fn wait_for(
    file: &Arc<File>,
    ov: *const Overlapped,
    limit: std::time::Duration,
    done: impl Fn() -> bool,
) -> bool {
    let poller = file.poller().clone();
    let _idle = Idle::enter();
    Parker::with(|parker| {
        let _registered = waiters_of(ov).register(ov.addr(), parker);
        poller.wait_as(parker, Deadline::after(limit), || done().then_some(())).is_some()
    })
}

/// Like [`result`], giving up at `deadline`.
///
/// # Safety
/// As for [`result`].
pub(super) unsafe fn result_before(file: &File, ov: *const Overlapped, deadline: Deadline) -> i32 {
    let status = || {
        // SAFETY: the caller vouches for `ov`.
        let status = unsafe { (*ov).internal.load(Ordering::Acquire) } as i32;
        (status != STATUS_PENDING).then_some(status)
    };
    if let Some(status) = status() {
        return status;
    }
    if deadline.passed() {
        file.progress();
        return status().unwrap_or(STATUS_PENDING);
    }
    // The caller's reference to the file may go when the operation completes: hold what is used afterwards.
    let (poller, mark) = (file.poller().clone(), mark_of(file));
    let _idle = Idle::enter();
    // The leader hears of all that completes on its own file. Mostly that is what it waits for.
    let strange = Some(STATUS_PENDING);
    let status_of_own = || match status() {
        // SAFETY: as above.
        None if unsafe { (*ov).internal_high.load(Ordering::Relaxed) } != mark => strange,
        status => status,
    };
    match poller.wait_leading(ov.addr(), deadline, status_of_own) {
        Some(answer) if answer != strange => return answer.unwrap_or(STATUS_PENDING),
        _ => {}
    }
    Parker::with(|parker| {
        let _registered = waiters_of(ov).register(ov.addr(), parker);
        poller.wait_as(parker, deadline, status).unwrap_or(STATUS_PENDING)
    })
}
