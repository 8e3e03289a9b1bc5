//! The locks through their entry points.

mod address;
mod barrier;
mod condition;
mod critical;
mod once;
mod srw;

use std::cell::Cell;
use std::thread;
use std::time::Duration;

thread_local! {
    static DELAY: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// What happens between a thread's decision to sleep and its sleep: here, as in life, nothing or something long.
pub(super) fn delay_before_sleep() {
    if !DELAY.get().is_zero() {
        thread::sleep(DELAY.get());
    }
}

/// From here on the calling thread dawdles before each sleep.
fn dawdle(delay: Duration) {
    DELAY.set(delay);
}

/// Runs `f` on a thread of its own.
fn in_another_thread<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(f).join().unwrap())
}

const INFINITE: u32 = u32::MAX;
