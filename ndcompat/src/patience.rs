//! A time limit for a system call that has none.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::time::Duration;

/// Runs `call`, whose system calls fail with `EINTR` once `limit` has passed.
///
/// For a worker thread of ours: an iWARP driver may keep `rdma_connect` in the kernel for minutes, and only a signal
/// gets it out. The kernel sends one, aimed at this thread alone, when the time is up, and then every second until
/// the call gives in. Where no signal can be had, `call` runs without a limit.
pub(crate) fn with_limit<R>(limit: Duration, call: impl FnOnce() -> R) -> R {
    thread_local! {
        static TIMER: Option<Timer> = free_signal().and_then(|signal| Timer::new(signal).ok());
    }
    TIMER.with(|timer| {
        let Some(timer) = timer else { return call() };
        timer.set(limit);
        let result = call();
        timer.set(Duration::ZERO);
        result
    })
}

/// A real-time signal that nobody uses, with a handler that does nothing but interrupt.
fn free_signal() -> Option<i32> {
    static SIGNAL: OnceLock<Option<i32>> = OnceLock::new();
    extern "C" fn interrupt(_signal: i32) {}
    *SIGNAL.get_or_init(|| {
        (libc::SIGRTMIN()..=libc::SIGRTMAX()).rev().find(|&signal| {
            let mut now = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: a query, into memory of the right size, where all-zero is valid.
            let known = unsafe { libc::sigaction(signal, ptr::null(), now.as_mut_ptr()) == 0 };
            // SAFETY: as above.
            let unused = known && unsafe { now.assume_init() }.sa_sigaction == libc::SIG_DFL;
            // SAFETY: all-zero is an action without flags, so system calls are not restarted.
            let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
            action.sa_sigaction = interrupt as extern "C" fn(i32) as usize;
            // SAFETY: the handler touches nothing.
            unused && unsafe { libc::sigaction(signal, &action, ptr::null_mut()) == 0 }
        })
    })
}

/// A timer that signals the thread it was made on.
struct Timer(libc::timer_t);

impl Timer {
    fn new(signal: i32) -> io::Result<Timer> {
        // SAFETY: all-zero is valid for both structures.
        let (mut event, mut signals): (libc::sigevent, libc::sigset_t) =
            unsafe { (MaybeUninit::zeroed().assume_init(), MaybeUninit::zeroed().assume_init()) };
        // SAFETY: the set is writable. The thread may have been started with all signals blocked.
        unsafe {
            libc::sigaddset(&mut signals, signal);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &signals, ptr::null_mut());
        }
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        // SAFETY: has no preconditions.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer = ptr::null_mut();
        // SAFETY: both structures are valid.
        if unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Timer(timer))
    }

    /// Lets the first signal come after `limit`; none, if that is zero.
    fn set(&self, limit: Duration) {
        let time = |time: Duration| libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: time.subsec_nanos().into(),
        };
        // More than one: the first may come just before the call goes to sleep.
        let spec = libc::itimerspec { it_value: time(limit), it_interval: time(Duration::from_secs(1)) };
        // SAFETY: the timer is live, the times are valid.
        unsafe { libc::timer_settime(self.0, 0, &spec, ptr::null_mut()) };
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and not used again.
        unsafe { libc::timer_delete(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Sleeps in the kernel for `seconds`, unless interrupted: true if so.
    fn sleep(seconds: i64) -> bool {
        let time = libc::timespec { tv_sec: seconds, tv_nsec: 0 };
        // SAFETY: a valid time.
        unsafe { libc::nanosleep(&time, ptr::null_mut()) != 0 }
    }

    #[test]
    fn a_call_that_takes_too_long_is_interrupted() {
        let begin = Instant::now();
        assert!(with_limit(Duration::from_millis(50), || sleep(30)));
        assert!(begin.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_call_in_time_is_left_alone() {
        assert!(!with_limit(Duration::from_secs(30), || sleep(0)));
        assert!(!sleep(0), "and no signal comes later");
    }
}
