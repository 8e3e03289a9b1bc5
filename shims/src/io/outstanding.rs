//! Counts an object's outstanding requests, so that its release can wait for the last completion; or what else threads do for it.

use super::queue::Idle;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// The number of requests that were started and have not completed.
///
/// A released object cancels its requests. Another thread may be completing one of them at that moment, and uses its `OVERLAPPED`
/// until it is done.
#[derive(Debug, Default)]
pub struct Outstanding(AtomicUsize);

/// One outstanding request; dropped when it has completed.
pub(crate) struct Counted(Arc<Outstanding>);

/// How often the waiting thread yields before it sleeps.
const YIELDS: usize = 64;
/// The time of a sleep, which is rare: the other thread must be blocked in the kernel.
const NAP: Duration = Duration::from_micros(100);

impl Outstanding {
    /// Counts a request until the result is dropped.
    pub(crate) fn count(self: &Arc<Self>) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }

    /// Counts what the calling thread does until the result is dropped.
    pub fn hold(&self) -> Held<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Held(self)
    }

    /// Whether all have completed.
    pub fn is_none(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }

    /// Waits until all have completed, which the caller has made sure of.
    pub fn wait_for_none(&self) {
        let none = || self.is_none();
        if none() {
            return;
        }
        let _idle = Idle::enter();
        for _ in 0..YIELDS {
            thread::yield_now();
            if none() {
                return;
            }
        }
        while !none() {
            thread::sleep(NAP);
        }
    }
}

/// What a thread does; dropped when it is done.
#[derive(Debug)]
pub struct Held<'a>(&'a Outstanding);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}
