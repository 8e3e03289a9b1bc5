//! Timers as descriptors, for the sources of a file.

use crate::verbs::descriptor::{made, succeeded};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::time::Duration;

/// A timerfd: readable when it has expired.
pub struct Timer(OwnedFd);

impl Timer {
    pub fn new() -> io::Result<Timer> {
        // SAFETY: the arguments are numbers; the kernel accesses no memory of the process.
        let fd =
            unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) };
        Ok(Timer(made(fd)?))
    }

    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Sets it to expire once, after this time.
    pub fn start(&self, after: Duration) -> io::Result<()> {
        // A time of zero would stop it.
        let after = after.max(Duration::from_nanos(1));
        let spec = libc::itimerspec {
            it_value: libc::timespec {
                tv_sec: after.as_secs().try_into().unwrap_or(libc::time_t::MAX),
                tv_nsec: after.subsec_nanos().into(),
            },
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
        };
        // SAFETY: reads the time; the former one is not asked for.
        succeeded(unsafe { libc::timerfd_settime(self.fd(), 0, &spec, null_mut()) })
    }

    /// Reads it, so that it is not readable until it expires again.
    pub fn clear(&self) {
        // Fails if it has not expired.
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    #[test]
    fn a_timer_runs_down_once() {
        let timer = Timer::new().unwrap();
        let is_readable = |seconds| {
            let limit = Timespec { tv_sec: seconds, tv_nsec: 0 };
            poll(&mut [PollFd::new(&timer.0, PollFlags::IN)], Some(&limit)) == Ok(1)
        };
        timer.start(Duration::ZERO).unwrap();
        assert!(is_readable(20));
        timer.clear();
        assert!(!is_readable(0));
    }
}
