//! Posting while the queue pair connects and fails, checked by loom for all interleavings and weak memory orders.
//!
//! `readiness.rs` is compiled here once more with loom's atomics.

#![allow(clippy::duplicate_mod, reason = "compiling the same file again is the point")]
#![allow(dead_code, reason = "not everything is modelled")]

#[path = "readiness.rs"]
mod readiness;

mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
}

use crate::types::{RequestFlags, RequestType};
use atomic::Ordering;
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex};
use loom::thread;
use readiness::{Bounds, Readiness};

const BOUNDS: Bounds = Bounds { messages: 100, inline: 10, reads: 100 };

struct QueuePair {
    readiness: Readiness,
    /// Whether the device is ready to send. The connection manager changes it without a lock that posting takes.
    device: UnsafeCell<bool>,
    /// Whether the request queue is flushing, under the queue's lock.
    flushing: Mutex<bool>,
}

impl QueuePair {
    fn new() -> Arc<QueuePair> {
        Arc::new(QueuePair {
            readiness: Readiness::new(),
            device: UnsafeCell::new(false),
            flushing: Mutex::new(false),
        })
    }

    fn connect(&self) {
        // SAFETY: loom checks that there is no other access at the same time.
        self.device.with_mut(|ready| unsafe { *ready = true });
        self.readiness.connected(4, BOUNDS);
    }

    /// Returns whether this was the first failure.
    fn fail(&self) -> bool {
        *self.flushing.lock().unwrap() = true;
        self.readiness.failed(BOUNDS)
    }

    /// Posts as the fast path does, or else as the slow one.
    fn post(&self, kind: RequestType) {
        let fast = self.readiness.bound(kind, RequestFlags::empty()).load(Ordering::Acquire) > 64;
        if !fast && !self.readiness.may_post() {
            return;
        }
        let flushing = self.flushing.lock().unwrap();
        if !*flushing {
            // SAFETY: loom checks that there is no other access at the same time.
            assert!(self.device.with(|ready| unsafe { *ready }), "posted to a device that is not ready");
        }
    }
}

/// Runs `post` on this thread, and the others beside it. Three threads without a limit of preemptions take minutes.
fn beside(others: &[fn(&QueuePair)]) {
    let others = others.to_vec();
    let mut model = loom::model::Builder::new();
    model.preemption_bound = (others.len() > 1).then_some(3);
    model.check(move || {
        let pair = QueuePair::new();
        let threads: Vec<_> = (others.iter().copied())
            .map(|other| {
                let pair = pair.clone();
                thread::spawn(move || other(&pair))
            })
            .collect();
        pair.post(RequestType::Send);
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(pair.readiness.may_post());
    });
}

fn connect(pair: &QueuePair) {
    pair.connect();
}

fn fail(pair: &QueuePair) {
    pair.fail();
}

#[test]
fn who_posts_finds_the_device_ready() {
    beside(&[connect]);
}

#[test]
fn who_posts_to_a_queue_pair_that_was_never_connected_finds_its_queue_flushing() {
    beside(&[fail]);
}

#[test]
fn who_posts_while_connecting_fails_finds_the_device_ready_or_its_queue_flushing() {
    beside(&[connect, fail]);
}

#[test]
fn reads_are_posted_once_their_limit_is_known() {
    loom::model(|| {
        let pair = QueuePair::new();
        let other = pair.clone();
        let thread = thread::spawn(move || other.connect());
        if pair.readiness.bound(RequestType::Read, RequestFlags::empty()).load(Ordering::Acquire) > 0 {
            assert!(pair.readiness.may_read());
            pair.post(RequestType::Read);
        }
        thread.join().unwrap();
    });
}

#[test]
fn one_of_two_failures_is_the_first() {
    loom::model(|| {
        let pair = QueuePair::new();
        pair.connect();
        let other = pair.clone();
        let thread = thread::spawn(move || other.fail());
        let here = pair.fail();
        assert!(here != thread.join().unwrap());
        assert!(pair.readiness.has_failed());
    });
}
