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
    let _timer = free_signal().and_then(|signal| Timer::start(signal, limit).ok());
    call()
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

/// A timer that signals the thread it was started on.
struct Timer(libc::timer_t);

impl Timer {
    fn start(signal: i32, limit: Duration) -> io::Result<Timer> {
        // SAFETY: all-zero is valid for both structures.
        let (mut event, mut spec): (libc::sigevent, libc::itimerspec) =
            unsafe { (MaybeUninit::zeroed().assume_init(), MaybeUninit::zeroed().assume_init()) };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        // SAFETY: has no preconditions.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer = ptr::null_mut();
        // SAFETY: both structures are valid.
        if unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let timer = Timer(timer);
        spec.it_value.tv_sec = limit.as_secs() as libc::time_t;
        spec.it_value.tv_nsec = limit.subsec_nanos().into();
        // A first signal may come just before the call goes to sleep.
        spec.it_interval.tv_sec = 1;
        // SAFETY: the timer was made above.
        if unsafe { libc::timer_settime(timer.0, 0, &spec, ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(timer)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: made by `start`, and not used again.
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
