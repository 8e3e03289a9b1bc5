//! Fault injection.

use ndcompat::verbs::bindings::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The queue of a queue pair that a completion belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A send, read or write.
    Initiator,
    /// A receive.
    Receive,
}

/// An event of the connection manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CmEvent {
    /// `RDMA_CM_EVENT_*`
    pub kind: rdma_cm_event_type,
    /// As from the kernel: a negative errno, or the reason of a rejection.
    pub status: i32,
    /// The private data.
    pub data: Vec<u8>,
}

enum Fault {
    Call(&'static str, i32),
    Stall(&'static str, Duration),
    Hold(&'static str, Arc<Mutex<Receiver<()>>>),
    Completion(Side, ibv_wc_status),
    Event(rdma_cm_event_type, Option<CmEvent>),
}

/// Whether the completions of reads are held back.
static READS_WAIT: AtomicBool = AtomicBool::new(false);
/// Whether the next posted request is queued without ringing the doorbell.
static UNANNOUNCED: AtomicBool = AtomicBool::new(false);

/// Whether stopped queue pairs keep their requests.
static FLUSHES_NOTHING: AtomicBool = AtomicBool::new(false);

/// Whether a queue pair that is destroyed takes its completions along.
static TAKES_COMPLETIONS: AtomicBool = AtomicBool::new(false);

static FAULTS: Mutex<Vec<Fault>> = Mutex::new(Vec::new());
/// The number of faults, so that the data path takes the lock only if there are any.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn lock() -> MutexGuard<'static, Vec<Fault>> {
    FAULTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add(fault: Fault) {
    lock().push(fault);
    COUNT.fetch_add(1, Ordering::Release);
}

fn take<T>(matching: impl Fn(&Fault) -> Option<T>) -> Option<T> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    let mut faults = lock();
    let (at, found) = faults.iter().enumerate().find_map(|(at, fault)| Some((at, matching(fault)?)))?;
    faults.remove(at);
    COUNT.fetch_sub(1, Ordering::Release);
    Some(found)
}

/// The next call of the C function `name` fails with `errno`. Those of `context->ops` are named `post_send` and so on,
/// and `post_send of a list` each request of a list but the first.
pub fn fail(name: &'static str, errno: i32) {
    add(Fault::Call(name, errno));
}

/// The next call of the C function `name` takes this long.
pub fn stall(name: &'static str, time: Duration) {
    add(Fault::Stall(name, time));
}

/// The next call of the C function `name` waits until what is returned is dropped.
#[must_use]
pub fn hold(name: &'static str) -> Sender<()> {
    let (held, waits) = channel();
    add(Fault::Hold(name, Arc::new(Mutex::new(waits))));
    held
}

/// The next request that completes on `side` has this `status` (`IBV_WC_*`), which puts its queue pair in the error state.
pub fn complete_with(side: Side, status: ibv_wc_status) {
    add(Fault::Completion(side, status));
}

/// Replaces the next event of this kind by another one, or drops it.
pub fn replace_event(kind: rdma_cm_event_type, with: Option<CmEvent>) {
    add(Fault::Event(kind, with));
}

/// Holds the completions of reads back until [`complete_reads`](crate::complete_reads), so that later requests overtake them.
pub fn delay_reads() {
    READS_WAIT.store(true, Ordering::Release);
}

#[inline]
pub(crate) fn reads_wait() -> bool {
    READS_WAIT.load(Ordering::Relaxed)
}

/// The next request posted to a send queue is queued and stays there, and the call returns -1, as libsiw does when the driver
/// refuses its doorbell.
pub fn refuse_doorbell() {
    UNANNOUNCED.store(true, Ordering::Release);
}

#[inline]
pub(crate) fn doorbell_is_refused() -> bool {
    UNANNOUNCED.load(Ordering::Relaxed) && UNANNOUNCED.swap(false, Ordering::AcqRel)
}

/// Queue pairs that are stopped from now on do not report their requests, as on some iWARP devices those that were posted after the
/// peer's close.
pub fn flush_nothing() {
    FLUSHES_NOTHING.store(true, Ordering::Release);
}

pub(crate) fn flushes_nothing() -> bool {
    FLUSHES_NOTHING.load(Ordering::Relaxed)
}

/// A queue pair that is destroyed from now on takes its completions along, as on mlx5.
pub fn take_completions_along() {
    TAKES_COMPLETIONS.store(true, Ordering::Release);
}

pub(crate) fn takes_completions_along() -> bool {
    TAKES_COMPLETIONS.load(Ordering::Relaxed)
}

/// The number of faults that have not happened yet.
pub fn pending() -> usize {
    COUNT.load(Ordering::Acquire)
}

/// Removes all faults.
pub fn forget_all() {
    lock().clear();
    READS_WAIT.store(false, Ordering::Release);
    UNANNOUNCED.store(false, Ordering::Release);
    FLUSHES_NOTHING.store(false, Ordering::Release);
    TAKES_COMPLETIONS.store(false, Ordering::Release);
    COUNT.store(0, Ordering::Release);
}

/// The state of [`fail_call`]: the call to fail, and what has happened so far.
#[derive(Default)]
struct Walk {
    due: (String, usize),
    /// How often each function was called.
    calls: Calls,
    failed: Option<&'static str>,
}

/// Numbers of calls, by function.
pub type Calls = BTreeMap<&'static str, usize>;

static WALK: Mutex<Option<Walk>> = Mutex::new(None);
/// Whether [`fail_call`] is active, so that the data path need not take the lock.
static WALKING: AtomicBool = AtomicBool::new(false);

fn walk() -> MutexGuard<'static, Option<Walk>> {
    WALK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes one of the following calls of `function` on any thread fail: the one with this number, counted from 0. All calls are
/// counted. (Their order in a program of several threads changes from run to run, that of one function's calls hardly.)
pub fn fail_call(function: &str, number: usize) {
    *walk() = Some(Walk { due: (function.to_owned(), number), ..Walk::default() });
    WALKING.store(true, Ordering::Release);
}

/// Ends [`fail_call`]. Returns the name of the function, if the call has failed: there may have been fewer; and the numbers of
/// all calls.
pub fn call_that_failed() -> (Option<&'static str>, Calls) {
    WALKING.store(false, Ordering::Release);
    walk().take().map_or((None, Calls::new()), |walk| (walk.failed, walk.calls))
}

/// The name of the function that has failed since [`fail_call`], if one has.
pub fn failed_call() -> Option<&'static str> {
    walk().as_ref().and_then(|walk| walk.failed)
}

/// The errno of a function for which the test gives none.
fn usual_errno(name: &str) -> i32 {
    match name {
        "pthread_create" => libc::EAGAIN,
        "eventfd" | "epoll_create1" | "timerfd_create" | "socket" | "open64" => libc::EMFILE,
        "bind" => libc::EADDRINUSE,
        "epoll_ctl" => libc::ENOSPC,
        _ => libc::ENOMEM,
    }
}

fn count_call(name: &'static str) -> Result<(), i32> {
    let mut walk = walk();
    let Some(walk) = walk.as_mut() else { return Ok(()) };
    let calls = walk.calls.entry(name).or_default();
    *calls += 1;
    if walk.due.0 != name || *calls != walk.due.1 + 1 {
        return Ok(());
    }
    walk.failed = Some(name);
    Err(usual_errno(name))
}

#[inline]
pub(crate) fn call(name: &'static str) -> Result<(), i32> {
    if WALKING.load(Ordering::Acquire) {
        count_call(name)?;
    }
    stalled(name);
    let due = take(|fault| match fault {
        Fault::Call(function, errno) if *function == name => Some(*errno),
        _ => None,
    });
    due.map_or(Ok(()), Err)
}

/// Delays a call of the C function `name` as long as the test has asked for.
#[inline]
pub(crate) fn stalled(name: &str) {
    let time = take(|fault| match fault {
        Fault::Stall(function, time) if *function == name => Some(*time),
        _ => None,
    });
    if let Some(time) = time {
        std::thread::sleep(time);
    }
    let held = take(|fault| match fault {
        Fault::Hold(function, waits) if *function == name => Some(waits.clone()),
        _ => None,
    });
    if let Some(waits) = held {
        // Fails once the other end is dropped.
        let _ = waits.lock().unwrap_or_else(PoisonError::into_inner).recv();
    }
}

#[inline]
pub(crate) fn completion(side: Side) -> Option<ibv_wc_status> {
    take(|fault| match fault {
        Fault::Completion(wanted, status) if *wanted == side => Some(*status),
        _ => None,
    })
}

/// The event to be sent in place of this one, if any.
pub(crate) fn event(event: CmEvent) -> Option<CmEvent> {
    let replaced = take(|fault| match fault {
        Fault::Event(kind, with) if *kind == event.kind => Some(with.clone()),
        _ => None,
    });
    replaced.unwrap_or(Some(event))
}
