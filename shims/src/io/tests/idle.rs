//! A thread that took a packet and then waits for something does not count against its port's concurrency value.

use super::device::*;
use crate::io::port::with_queue;
use crate::sync::address::{ndw_WaitOnAddress, ndw_WakeByAddressSingle};
use crate::sync::condition::ConditionVariable;
use crate::sync::critical::CriticalSection;
use crate::sync::once::InitOnce;
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
    let condition = ConditionVariable::default();
    let sleep = || assert!(condition.sleep(u32::MAX, || (), || ()));
    does_not_run_in(sleep, || condition.wake(1));
}

#[test]
fn waiting_on_an_address() {
    let (value, seen) = (AtomicU32::new(0), 0u32);
    let wait = || {
        // SAFETY: an atomic of ours, and a comparand of its size.
        unsafe { ndw_WaitOnAddress((&raw const value).cast(), (&raw const seen).cast(), 4, u32::MAX) };
    };
    does_not_run_in(wait, || ndw_WakeByAddressSingle((&raw const value).cast()));
}

#[test]
fn waiting_for_an_initialisation() {
    let (once, begun, go) = (InitOnce::default(), AtomicBool::new(false), AtomicBool::new(false));
    let initialise = || {
        begun.store(true, Ordering::SeqCst);
        until(|| go.load(Ordering::SeqCst));
        Some(4)
    };
    std::thread::scope(|scope| {
        scope.spawn(|| once.execute(initialise));
        until(|| begun.load(Ordering::SeqCst));
        let wait = || assert_eq!(once.execute(|| None), Some(4));
        does_not_run_in(wait, || go.store(true, Ordering::SeqCst));
    });
}
