//! A thread that took a packet and then waits for something does not count against its port's concurrency value.

use super::device::*;
use crate::api::completion_port::with_queue;
use crate::api::locks::{ndw_WaitOnAddress, ndw_WakeByAddressSingle};
use crate::io::sys::Deadline;
use crate::sync::condition::ConditionVariable;
use crate::sync::critical::CriticalSection;
use crate::sync::once::{InitOnce, Task};
use crate::sync::srw::SrwLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Runs `block` on a thread that took a packet, and `release` once it does not count as running. Afterwards it must.
fn does_not_run_in(block: impl FnOnce() + Send, release: impl FnOnce()) {
    let port = port(1);
    let running = move || with_queue(port, |queue| queue.running()).unwrap();
    post(port, 0, 1);
    let took = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(dequeue(port, 10_000).key, 1);
            assert_eq!(running(), 1);
            took.store(true, Ordering::SeqCst);
            block();
            assert_eq!(running(), 1);
        });
        until(|| took.load(Ordering::SeqCst) && running() == 0);
        release();
    });
    close(port);
}

/// A thread counts as asleep shortly before it can be woken.
fn wake_until(awake: &AtomicBool, wake: impl Fn()) {
    until(|| {
        wake();
        awake.load(Ordering::SeqCst)
    });
}

#[test]
fn entering_a_critical_section() {
    let section = CriticalSection::new(0);
    section.enter();
    does_not_run_in(|| section.enter(), || section.leave());
}

#[test]
fn acquiring_an_srw_lock() {
    let lock = SrwLock::default();
    lock.write();
    does_not_run_in(|| lock.read(), || lock.unlock_write());
    does_not_run_in(|| lock.write(), || lock.unlock_read());
}

#[test]
fn sleeping_on_a_condition_variable() {
    let (condition, awake) = (ConditionVariable::default(), AtomicBool::new(false));
    let sleep = || {
        assert!(condition.sleep(Deadline::Never, || (), || ()));
        awake.store(true, Ordering::SeqCst);
    };
    does_not_run_in(sleep, || wake_until(&awake, || condition.wake(1)));
}

#[test]
fn waiting_on_an_address() {
    let (value, seen, awake) = (AtomicU32::new(0), 0u32, AtomicBool::new(false));
    let wait = || {
        // SAFETY: an atomic of ours, and a comparand of its size.
        unsafe { ndw_WaitOnAddress((&raw const value).cast(), (&raw const seen).cast(), 4, u32::MAX) };
        awake.store(true, Ordering::SeqCst);
    };
    does_not_run_in(wait, || wake_until(&awake, || ndw_WakeByAddressSingle((&raw const value).cast())));
}

#[test]
fn waiting_for_an_initialisation() {
    let once = InitOnce::default();
    assert_eq!(once.begin(false), Ok(Task::Initialise));
    let wait = || assert_eq!(once.begin(false), Ok(Task::Use(4)));
    does_not_run_in(wait, || once.complete(false, Some(4)).unwrap());
}
