//! A time limit for a system call that has none.

use std::cell::{Cell, OnceCell};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

thread_local! {
    static TIMER: OnceCell<Option<Timer>> = const { OnceCell::new() };
}

/// Runs `call`, whose system calls fail with `EINTR` once `limit` has passed, or up to a sixteenth of it later.
///
/// For a worker thread of ours: an iWARP driver may keep `rdma_connect` in the kernel for minutes, and only a signal
/// gets it out. The kernel sends one, aimed at this thread alone, when the time is up, and then every second until
/// the call gives in. Where no signal can be had, `call` runs without a limit.
///
/// After a call that was quick and successful the time runs on, and counts for the next ones that begin soon: connections made
/// in a row cost no system calls here. A job without a limit stops it ([`without_limit`]), and a thread that gets no job is
/// gone sooner.
pub(crate) fn with_limit<R>(limit: Duration, call: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
    TIMER.with(|timer| {
        let timer = timer.get_or_init(|| free_signal().and_then(|signal| Timer::new(signal).ok()));
        let Some(timer) = timer else { return call() };
        timer.start(limit);
        let result = call();
        if result.is_err() || !timer.is_young(limit) {
            timer.stop();
        }
        result
    })
}

/// Runs `call`, which no time limit of an earlier one shall interrupt.
pub(crate) fn without_limit<R>(call: impl FnOnce() -> R) -> R {
    TIMER.with(|timer| {
        if let Some(Some(timer)) = timer.get() {
            timer.stop();
        }
    });
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

/// A timer that signals the thread it was made on.
struct Timer {
    id: libc::timer_t,
    /// Since when it runs, with which limit.
    runs: Cell<Option<(Instant, Duration)>>,
}

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
        Ok(Timer { id: timer, runs: Cell::new(None) })
    }

    /// Lets the first signal come after `limit`, or a little later.
    fn start(&self, limit: Duration) {
        if !self.is_young(limit) {
            self.set(limit + limit / 16);
            self.runs.set(Some((Instant::now(), limit)));
        }
    }

    /// Whether it runs with this limit, and began a moment ago.
    fn is_young(&self, limit: Duration) -> bool {
        self.runs.get().is_some_and(|(since, with)| with == limit && since.elapsed() < limit / 16)
    }

    /// Lets no signal come.
    fn stop(&self) {
        if self.runs.take().is_some() {
            self.set(Duration::ZERO);
        }
    }

    fn set(&self, first: Duration) {
        let time = |time: Duration| libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: time.subsec_nanos().into(),
        };
        // More than one: the first may come just before the call goes to sleep.
        let spec = libc::itimerspec { it_value: time(first), it_interval: time(Duration::from_secs(1)) };
        // SAFETY: the timer is live, the times are valid.
        unsafe { libc::timer_settime(self.id, 0, &spec, ptr::null_mut()) };
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and not used again.
        unsafe { libc::timer_delete(self.id) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sleeps in the kernel for `seconds`, unless interrupted: true if so.
    fn sleep(seconds: i64) -> bool {
        let time = libc::timespec { tv_sec: seconds, tv_nsec: 0 };
        // SAFETY: a valid time.
        unsafe { libc::nanosleep(&time, ptr::null_mut()) != 0 }
    }

    /// As `sleep`, as a result.
    fn try_sleep(seconds: i64) -> io::Result<()> {
        if sleep(seconds) { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }

    #[test]
    fn a_call_that_takes_too_long_is_interrupted() {
        let begin = Instant::now();
        assert!(with_limit(Duration::from_millis(50), || try_sleep(30)).is_err());
        assert!(begin.elapsed() < Duration::from_secs(20));
        assert!(!sleep(2), "and no signal comes later");
    }

    #[test]
    fn calls_in_a_row_are_interrupted_in_time() {
        let limit = Duration::from_secs(2);
        assert!(with_limit(limit, || try_sleep(0)).is_ok());
        let begin = Instant::now();
        assert!(with_limit(limit, || try_sleep(30)).is_err());
        let took = begin.elapsed();
        assert!((limit..Duration::from_secs(20)).contains(&took), "{took:?}");
    }

    #[test]
    fn a_call_in_time_is_left_alone() {
        assert!(with_limit(Duration::from_secs(30), || try_sleep(0)).is_ok());
        assert!(!sleep(0), "and no signal comes later");
    }

    #[test]
    fn a_call_without_a_limit_has_none_left_from_the_last() {
        assert!(with_limit(Duration::from_secs(1), || try_sleep(0)).is_ok());
        assert!(!without_limit(|| sleep(2)));
    }

    #[test]
    fn a_long_call_leaves_no_limit() {
        assert!(with_limit(Duration::from_secs(2), || try_sleep(1)).is_ok());
        assert!(!sleep(2));
    }
}
