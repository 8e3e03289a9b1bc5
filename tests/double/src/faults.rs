//! What is to go wrong.

use ndcompat::verbs::bindings::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Which side of a queue pair a completion belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A send, read or write.
    Initiator,
    /// A receive.
    Receive,
}

/// A connection-management event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CmEvent {
    /// `RDMA_CM_EVENT_*`
    pub kind: rdma_cm_event_type,
    /// As the kernel gives it: a negative errno, or the reason of a rejection.
    pub status: i32,
    /// The private data.
    pub data: Vec<u8>,
}

enum Fault {
    Call(&'static str, i32),
    Stall(&'static str, Duration),
    Completion(Side, ibv_wc_status),
    Event(rdma_cm_event_type, Option<CmEvent>),
}

static FAULTS: Mutex<Vec<Fault>> = Mutex::new(Vec::new());
/// How many there are, so that the data path need not take the lock when all is well.
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

/// The next call of the C function `name` fails with `errno`. Those of `context->ops` are named `post_send` and so on.
pub fn fail(name: &'static str, errno: i32) {
    add(Fault::Call(name, errno));
}

/// The next call of the C function `name` takes this long.
pub fn stall(name: &'static str, time: Duration) {
    add(Fault::Stall(name, time));
}

/// The next request that completes on `side` does so with `status` (`IBV_WC_*`), which fails its queue pair.
pub fn complete_with(side: Side, status: ibv_wc_status) {
    add(Fault::Completion(side, status));
}

/// The next event of the given kind is another one instead, or none.
pub fn replace_event(kind: rdma_cm_event_type, with: Option<CmEvent>) {
    add(Fault::Event(kind, with));
}

/// How many of the faults asked for have not happened.
pub fn pending() -> usize {
    COUNT.load(Ordering::Acquire)
}

pub(crate) fn forget_all() {
    lock().clear();
    COUNT.store(0, Ordering::Release);
}

#[inline]
pub(crate) fn call(name: &str) -> Result<(), i32> {
    let stalled = take(|fault| match fault {
        Fault::Stall(function, time) if *function == name => Some(*time),
        _ => None,
    });
    if let Some(time) = stalled {
        std::thread::sleep(time);
    }
    let due = take(|fault| match fault {
        Fault::Call(function, errno) if *function == name => Some(*errno),
        _ => None,
    });
    due.map_or(Ok(()), Err)
}

#[inline]
pub(crate) fn completion(side: Side) -> Option<ibv_wc_status> {
    take(|fault| match fault {
        Fault::Completion(wanted, status) if *wanted == side => Some(*status),
        _ => None,
    })
}

/// What becomes of an event: nothing, or perhaps another one.
pub(crate) fn event(event: CmEvent) -> Option<CmEvent> {
    let replaced = take(|fault| match fault {
        Fault::Event(kind, with) if *kind == event.kind => Some(with.clone()),
        _ => None,
    });
    replaced.unwrap_or(Some(event))
}
