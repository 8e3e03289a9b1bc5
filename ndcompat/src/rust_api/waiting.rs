//! Waiting for futures, by blocking or by polling.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use win32::io::{self, File, Overlapped};

/// The waker of a thread that waits for a future.
#[derive(Default)]
struct Sleeper {
    /// Woken since the future was last polled.
    woken: AtomicBool,
    /// Never used for a request: its address identifies the sleep that [`io::wake`] ends.
    name: Overlapped,
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        io::wake(&self.name);
    }
}

/// Blocks until `future` is ready, at most for `limit`. Meanwhile, the thread handles the events of `file`.
pub(crate) fn wait<F: Future>(file: &Arc<File>, limit: Option<Duration>, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    // Often it is ready already.
    if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return Some(output);
    }
    let sleeper = Arc::new(Sleeper { woken: AtomicBool::new(true), ..Sleeper::default() });
    let waker = Waker::from(sleeper.clone());
    let mut context = Context::from_waker(&waker);
    io::wait_until(file, &sleeper.name, limit, || {
        if !sleeper.woken.swap(false, Ordering::Acquire) {
            return None;
        }
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    })
}

/// Polls `future` until it is ready, at most for `limit`, without sleeping.
pub(crate) fn spin<F: Future>(limit: Option<Duration>, future: F) -> Option<F::Output> {
    /// How many polls go between two looks at the clock.
    const ROUNDS: u32 = 256;
    // A limit beyond what the clock can count is none.
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut context = Context::from_waker(Waker::noop());
    let mut future = pin!(future);
    loop {
        for _ in 0..ROUNDS {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return Some(output);
            }
            std::hint::spin_loop();
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return None;
        }
    }
}

/// Wakes tasks. A waker that panics must neither keep the others from being woken nor end the library's own thread.
pub(crate) fn wake_all(tasks: impl IntoIterator<Item = Waker>) {
    for task in tasks {
        if catch_unwind(AssertUnwindSafe(|| task.wake())).is_err() {
            tracing::error!(target: "ndcompat::session", "a program's waker has panicked");
        }
    }
}

/// A waker for others to call, whose panics end there.
struct Caught(Waker);

impl Wake for Caught {
    fn wake(self: Arc<Self>) {
        wake_all([self.0.clone()]);
    }
}

/// A waker that wakes `task`, and does not panic.
pub(crate) fn caught(task: &Waker) -> Waker {
    Arc::new(Caught(task.clone())).into()
}

/// Whether the waker does anything: that of a thread that spins does not.
pub(crate) fn is_wanted(waker: &Waker) -> bool {
    !waker.will_wake(Waker::noop())
}
