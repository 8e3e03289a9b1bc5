//! Sleeping on a 32-bit word until it changes.

use crate::error::{ERROR_TIMEOUT, set_last_error};
use std::ptr::null;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

/// Every sleeper of a word, whatever it sleeps for.
pub const ANYONE: u32 = u32::MAX;

/// The end of a wait; `None` for one that never ends.
#[derive(Clone, Copy)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// No end.
    pub const NEVER: Deadline = Deadline(None);

    /// The end of a wait of so many milliseconds, `INFINITE` among them.
    pub fn after(milliseconds: u32) -> Deadline {
        let ends = milliseconds != u32::MAX;
        Deadline(ends.then(|| Instant::now() + Duration::from_millis(milliseconds.into())))
    }

    fn left(self) -> Option<Duration> {
        self.0.map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// Whether the time has passed.
    pub fn passed(self) -> bool {
        self.left() == Some(Duration::ZERO)
    }
}

/// Sleeps while `word` is `expected`, as one that a wake-up for `group` is meant for.
///
/// Returns after a wake-up, a change, the deadline, or for no reason: the caller looks again.
pub fn wait(word: &AtomicU32, expected: u32, group: u32, deadline: Deadline) {
    let left = deadline.left().map(|left| {
        // FUTEX_WAIT_BITSET takes a point in time of the monotonic clock.
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is writable.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        let nanoseconds = now.tv_nsec as u64 + u64::from(left.subsec_nanos());
        libc::timespec {
            tv_sec: now.tv_sec + (left.as_secs() + nanoseconds / 1_000_000_000) as libc::time_t,
            tv_nsec: (nanoseconds % 1_000_000_000) as _,
        }
    });
    let timeout = left.as_ref().map_or(null(), |end| &raw const *end);
    let operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word is live, and the time is NULL or valid during the call.
    unsafe { libc::syscall(libc::SYS_futex, word, operation, expected, timeout, null::<u32>(), group) };
}

/// Wakes at most `count` sleepers of `group`. The word is only named, never looked at.
pub fn wake(word: *const AtomicU32, count: i32, group: u32) {
    let operation = libc::FUTEX_WAKE_BITSET | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: a wake-up uses nothing but the address.
    unsafe { libc::syscall(libc::SYS_futex, word, operation, count, null::<u32>(), null::<u32>(), group) };
}

/// Reports a wait that timed out.
pub fn timed_out() -> i32 {
    set_last_error(ERROR_TIMEOUT);
    0
}
