//! SIGINT, for commands that end with what they have measured so far.

use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait for anything without a look at whether there was a SIGINT.
pub const SLICE: Duration = Duration::from_millis(100);

static CAME: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: libc::c_int) {
    CAME.store(true, Ordering::Relaxed);
}

/// From now on, the first SIGINT is noted only. The next one ends the program, in case that it still waits for something.
pub fn catch() {
    // SAFETY: an all-zero structure is a valid one.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: the structure is writable.
    unsafe { libc::sigaction(libc::SIGINT, ptr::null(), &mut action) };
    // Shells have background jobs ignore it.
    if action.sa_sigaction == libc::SIG_IGN {
        return;
    }
    action.sa_sigaction = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
    action.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART;
    // SAFETY: the handler does nothing but store to an atomic.
    unsafe { libc::sigaction(libc::SIGINT, &action, ptr::null_mut()) };
}

/// Whether there was a SIGINT.
pub fn came() -> bool {
    CAME.load(Ordering::Relaxed)
}

/// Sleeps, until a SIGINT at most.
pub fn sleep(time: Duration) {
    until(time, |slice| {
        thread::sleep(slice);
        None::<()>
    });
}

/// What `wait` returns, which is called with how long it may wait, again and again until the time is over or there was a SIGINT.
pub fn until<T>(time: Duration, mut wait: impl FnMut(Duration) -> Option<T>) -> Option<T> {
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let outcome = wait(left.min(SLICE));
        if outcome.is_some() || left <= SLICE || came() {
            return outcome;
        }
    }
}
