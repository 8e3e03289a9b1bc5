//! Sleeping on a 32-bit word until it changes, and when to give up.

use std::ptr::null;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

/// When a wait gives up; earlier ones are less than later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deadline {
    /// At once: the wait is a mere look.
    Now,
    At(Instant),
    Never,
}

impl Deadline {
    pub(crate) fn after(time: Duration) -> Deadline {
        Instant::now().checked_add(time).map_or(Deadline::Never, Deadline::At)
    }

    /// From a Windows time-out, where `INFINITE` is all ones.
    pub(crate) fn after_millis(millis: u32) -> Deadline {
        match millis {
            0 => Deadline::Now,
            u32::MAX => Deadline::Never,
            _ => Deadline::after(Duration::from_millis(millis.into())),
        }
    }

    pub(crate) fn passed(self) -> bool {
        self.remaining().is_some_and(|left| left.is_zero())
    }

    pub(crate) fn remaining(self) -> Option<Duration> {
        match self {
            Deadline::Now => Some(Duration::ZERO),
            Deadline::At(at) => Some(at.saturating_duration_since(Instant::now())),
            Deadline::Never => None,
        }
    }
}

/// Every sleeper of a word, whatever it sleeps for.
pub(crate) const ANYONE: u32 = u32::MAX;

/// Sleeps while `word` is `expected`, as one that a wake-up for `group` is meant for.
///
/// Returns after a wake-up, a change, the deadline, or for no reason: the caller looks again.
pub(crate) fn wait(word: &AtomicU32, expected: u32, group: u32, deadline: Deadline) {
    let end = deadline.remaining().map(|left| {
        // FUTEX_WAIT_BITSET takes a point in time of the monotonic clock.
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is writable.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        let nanoseconds = now.tv_nsec as u64 + u64::from(left.subsec_nanos());
        libc::timespec {
            tv_sec: now.tv_sec.saturating_add_unsigned(left.as_secs() + nanoseconds / 1_000_000_000),
            tv_nsec: (nanoseconds % 1_000_000_000) as _,
        }
    });
    let timeout = end.as_ref().map_or(null(), std::ptr::from_ref);
    let operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word is live, and the time is NULL or valid during the call.
    unsafe { libc::syscall(libc::SYS_futex, word, operation, expected, timeout, null::<u32>(), group) };
}

/// Wakes at most `count` sleepers of `group`. The word is only named, never looked at.
pub(crate) fn wake(word: *const AtomicU32, count: i32, group: u32) {
    let operation = libc::FUTEX_WAKE_BITSET | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: a wake-up uses nothing but the address.
    unsafe { libc::syscall(libc::SYS_futex, word, operation, count, null::<u32>(), null::<u32>(), group) };
}
