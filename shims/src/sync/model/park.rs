//! A model of [`crate::sync::park`]: one queue under one lock, whose sleepers wake when they are taken out.

use super::Deadline;
pub(super) use parking_lot_core::FilterOp;
use shuttle::sync::Mutex;
use shuttle::thread::{self, Thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parked {
    Woken,
    TimedOut,
    Refused,
}

struct Sleeper {
    key: usize,
    kind: usize,
    thread: Thread,
    /// Not of shuttle: it changes along with the queue, and is no point where threads could be switched.
    woken: Arc<AtomicBool>,
}

shuttle::lazy_static! {
    static ref QUEUE: Mutex<Vec<Sleeper>> = Mutex::new(Vec::new());
}

/// Spinning would only make for more schedules.
pub(super) struct SpinWait;

impl SpinWait {
    pub(super) fn new() -> SpinWait {
        SpinWait
    }

    pub(super) fn spin(&mut self) -> bool {
        false
    }
}

pub(super) fn park(
    key: usize,
    kind: usize,
    validate: impl FnOnce() -> bool,
    before_sleep: impl FnOnce(),
    timed_out: impl FnOnce(),
    deadline: Deadline,
) -> Parked {
    let woken = Arc::new(AtomicBool::new(false));
    {
        let mut queue = QUEUE.lock().unwrap();
        if !validate() {
            return Parked::Refused;
        }
        queue.push(Sleeper { key, kind, thread: thread::current(), woken: woken.clone() });
    }
    before_sleep();
    if deadline == Deadline::Now {
        thread::yield_now();
        let mut queue = QUEUE.lock().unwrap();
        if !woken.load(Ordering::SeqCst) {
            queue.retain(|sleeper| !Arc::ptr_eq(&sleeper.woken, &woken));
            timed_out();
            return Parked::TimedOut;
        }
    }
    while !woken.load(Ordering::SeqCst) {
        thread::park();
    }
    Parked::Woken
}

pub(super) fn unpark(key: usize, mut choose: impl FnMut(usize) -> FilterOp, then: impl FnOnce(usize, bool)) {
    let mut queue = QUEUE.lock().unwrap();
    let (mut chosen, mut others_stay, mut at) = (Vec::new(), false, 0);
    while at < queue.len() {
        if queue[at].key != key {
            at += 1;
            continue;
        }
        match choose(queue[at].kind) {
            FilterOp::Unpark => chosen.push(queue.remove(at)),
            FilterOp::Skip => {
                others_stay = true;
                at += 1;
            }
            FilterOp::Stop => {
                others_stay = true;
                break;
            }
        }
    }
    then(chosen.len(), others_stay);
    for sleeper in chosen {
        sleeper.woken.store(true, Ordering::SeqCst);
        sleeper.thread.unpark();
    }
}

pub(super) fn oldest(count: usize) -> impl FnMut(usize) -> FilterOp {
    let mut left = count;
    move |_| {
        if left == 0 {
            return FilterOp::Stop;
        }
        left -= 1;
        FilterOp::Unpark
    }
}
