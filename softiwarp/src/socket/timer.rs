//! A timer as a file descriptor, which is readable once it has expired.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

pub(super) struct Timer(OwnedFd);

impl Timer {
    /// A disarmed timer.
    pub(super) fn new() -> io::Result<Timer> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Timer(timerfd_create(TimerfdClockId::Monotonic, flags)?))
    }

    /// Arms it to expire after this time, in place of an earlier setting.
    pub(super) fn set(&self, after: Duration) {
        const NEVER: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Zero would disarm it.
        let after = after.max(Duration::from_nanos(1));
        let it_value = Timespec {
            tv_sec: after.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: after.subsec_nanos().into(),
        };
        let time = Itimerspec { it_interval: NEVER, it_value };
        // Cannot fail for a valid timer.
        let _ = timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &time);
    }

    /// Clears it, so that it is not readable until it expires again.
    pub(super) fn clear(&self) {
        // It need not have expired.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
