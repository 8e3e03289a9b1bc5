//! Passing slots between posting and reaping, checked by loom for all interleavings and weak memory orders.
//!
//! `state.rs` is compiled here once more with loom's atomics. Posting is one thread and reaping another, as the locks of
//! the request queue and of the completion queue admit one thread at a time. The model's device orders posting before
//! completion, as devices do.

#![allow(clippy::duplicate_mod, reason = "compiling the same file again is the point")]
#![allow(dead_code, reason = "not everything is modelled")]

#[path = "state.rs"]
mod state;

mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicU32, Ordering};
}

use crate::types::RequestType;
use atomic::{AtomicU32, Ordering};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use state::{AtomicState, State};

/// More requests than slots, so that slots are used again.
const REQUESTS: u64 = 3;
const SLOTS: usize = 2;

struct Slot {
    context: UnsafeCell<u64>,
    state: AtomicState,
}

impl Slot {
    fn set_context(&self, context: u64) {
        // SAFETY: loom checks that there is no other access at the same time.
        self.context.with_mut(|place| unsafe { *place = context });
    }

    fn context(&self) -> u64 {
        // SAFETY: loom checks that there is no other access at the same time.
        self.context.with(|place| unsafe { *place })
    }
}

struct Queue {
    slots: [Slot; SLOTS],
    /// How many requests were posted to the device, which completes them at once.
    device: AtomicU32,
}

impl Queue {
    fn new() -> Arc<Queue> {
        let slot = || Slot { context: UnsafeCell::new(0), state: AtomicState::new(State::FREE) };
        Arc::new(Queue { slots: [slot(), slot()], device: AtomicU32::new(0) })
    }

    fn slot(&self, request: u64) -> &Slot {
        &self.slots[request as usize % SLOTS]
    }
}

/// Posts all requests, each when its slot is free; `post` hands over the filled slot.
fn post_all(queue: &Queue, post: impl Fn(&Queue, &Slot)) {
    for request in 1..=REQUESTS {
        let slot = queue.slot(request);
        while !slot.state.is_free() {
            thread::yield_now();
        }
        slot.set_context(request);
        post(queue, slot);
    }
}

#[test]
fn a_slot_is_read_as_it_was_posted_and_filled_again_when_it_is_free() {
    loom::model(|| {
        let queue = Queue::new();
        let posting = queue.clone();
        let poster = thread::spawn(move || {
            post_all(&posting, |queue, slot| {
                slot.state.post(State::posted(RequestType::Send, false, true));
                queue.device.fetch_add(1, Ordering::Release);
            });
        });
        for request in 1..=REQUESTS {
            while u64::from(queue.device.load(Ordering::Acquire)) < request {
                thread::yield_now();
            }
            let slot = queue.slot(request);
            assert!(slot.state.of_completed().is_plain());
            assert_eq!(slot.context(), request);
            slot.state.free();
        }
        poster.join().unwrap();
    });
}

#[test]
fn a_request_that_the_device_does_not_get_is_handed_over_by_its_slot() {
    loom::model(|| {
        let queue = Queue::new();
        let posting = queue.clone();
        let poster = thread::spawn(move || {
            post_all(&posting, |_, slot| slot.state.flush(RequestType::Receive));
        });
        for request in 1..=REQUESTS {
            let slot = queue.slot(request);
            while !slot.state.load().is_completed() {
                thread::yield_now();
            }
            assert_eq!(slot.context(), request);
            slot.state.free();
        }
        poster.join().unwrap();
    });
}
