//! Futexes, and deadlines of waits.

use rustix::thread::futex::{self, Flags};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::num::NonZeroU32;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

/// The deadline of a wait. Earlier ones are less than later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deadline {
    /// The wait only polls.
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
        match self {
            Deadline::Now => true,
            Deadline::At(at) => at <= Instant::now(),
            Deadline::Never => false,
        }
    }

    /// The point in time; `None` for never.
    pub(crate) fn instant(self) -> Option<Instant> {
        match self {
            Deadline::Now => Some(Instant::now()),
            Deadline::At(at) => Some(at),
            Deadline::Never => None,
        }
    }

    pub(crate) fn remaining(self) -> Option<Duration> {
        match self {
            Deadline::Now => Some(Duration::ZERO),
            Deadline::At(at) => Some(at.saturating_duration_since(Instant::now())),
            Deadline::Never => None,
        }
    }
}

/// Sleeps while `word` is `expected`.
///
/// Returns after a wake-up, a change, the deadline, or spuriously: the caller checks again.
pub(crate) fn wait(word: &AtomicU32, expected: u32, deadline: Deadline) {
    let end = deadline.remaining().map(|left| {
        // The kernel takes an absolute time of the monotonic clock.
        let now = clock_gettime(ClockId::Monotonic);
        let nanoseconds = now.tv_nsec as u64 + u64::from(left.subsec_nanos());
        let seconds = left.as_secs() + nanoseconds / 1_000_000_000;
        Timespec {
            tv_sec: now.tv_sec.saturating_add_unsigned(seconds),
            tv_nsec: (nanoseconds % 1_000_000_000) as _,
        }
    });
    // The possible errors are a time-out, a signal, and a changed word.
    let _ = futex::wait_bitset(word, Flags::PRIVATE, expected, end.as_ref(), NonZeroU32::MAX);
}

/// Wakes at most `count` sleepers.
pub(crate) fn wake(word: &AtomicU32, count: u32) {
    // Cannot fail for a mapped word.
    let _ = futex::wake(word, Flags::PRIVATE, count);
}
