//! Messages of pollers to the background thread: whether a thread attends to their requests.

use super::dormancy::{Dormancy, TICKING};
use super::parker::Parker;
use super::sync::{Arc, AtomicU32};
use super::threads::ForkLock;
use std::os::fd::RawFd;

static DORMANCY: Dormancy = Dormancy(AtomicU32::new(TICKING));

/// The background thread, once it runs. The lock is held while it is being started. A forked child has none until it needs one.
pub(super) static THREAD: ForkLock<Option<Background>> = ForkLock::new(None, |thread| {
    DORMANCY.tick();
    thread.take()
});

#[derive(Clone)]
pub(super) struct Background {
    pub(super) parker: Arc<Parker>,
    /// The epoll set of the adopted pollers.
    pub(super) watcher: Arc<dyn Watcher>,
}

/// Watches descriptors.
pub(super) trait Watcher: Send + Sync {
    /// Stops watching a descriptor, if it is watched.
    fn unwatch(&self, fd: RawFd);
}

fn thread() -> Option<Background> {
    THREAD.lock().clone()
}

/// See [`Dormancy::left_alone`].
#[inline]
pub(super) fn left_alone() {
    DORMANCY.left_alone(wake);
}

#[cold]
fn wake() {
    if let Some(thread) = thread() {
        thread.parker.wake();
    }
}

/// Stops the background thread from watching the poller of this descriptor.
pub(super) fn unwatch(fd: RawFd) {
    if let Some(thread) = thread() {
        thread.watcher.unwatch(fd);
    }
}

/// See [`Dormancy::sleep`].
pub(super) fn sleep(anything_left_alone: impl FnOnce() -> bool, sleep: impl FnOnce(&dyn Fn() -> bool)) {
    DORMANCY.sleep(anything_left_alone, sleep);
}
