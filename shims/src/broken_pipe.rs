//! Writes to a pipe that nobody reads any more. They are errors (`EPIPE`): Windows has no SIGPIPE, which would end the program.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs one write without the SIGPIPE that it may raise. The program's own handling of the signal stays as it is.
pub(crate) fn without_sigpipe<R>(write: impl FnOnce() -> R) -> R {
    let mut sets = [MaybeUninit::<libc::sigset_t>::zeroed(); 3];
    let [pipe, before, pending] = sets.each_mut().map(MaybeUninit::as_mut_ptr);
    // SAFETY: initialises a set of ours.
    unsafe { libc::sigemptyset(pipe) };
    // SAFETY: changes that set.
    unsafe { libc::sigaddset(pipe, libc::SIGPIPE) };
    // SAFETY: initialises a set of ours.
    unsafe { libc::sigpending(pending) };
    // SAFETY: reads that set.
    let was_pending = unsafe { libc::sigismember(pending, libc::SIGPIPE) } == 1;
    // SAFETY: reads the one set, and initialises another.
    if unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, pipe, before) } != 0 {
        return write();
    }
    let result = write();
    if !was_pending {
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: reads a set and a time of ours. A signal of the write's is this thread's, and taken here.
        unsafe { libc::sigtimedwait(pipe, null_mut(), &now) };
    }
    // SAFETY: the set was initialised when the signal was blocked.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, null_mut()) };
    result
}

/// Makes a write to a pipe without a reader an error (`EPIPE`) from now on: Windows has no SIGPIPE, which would end the program.
///
/// The C library writes what is in a stream at many places (when its buffer is full, in `fflush` and `fclose`, at the end of the
/// program), so that no single call could be guarded. Instead the signal is handled, by a function that does nothing, unless the
/// program has a handler of its own or ignores it. Unlike `SIG_IGN` a handler is not passed on to programs that this one starts.
pub(crate) fn make_broken_pipes_errors() {
    extern "C" fn nothing(_signal: c_int) {}
    // Two threads may come here at the same time, and do the same.
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.load(Ordering::Relaxed) {
        return;
    }
    let exchange = |new: *const libc::sigaction| {
        // SAFETY: plain data, for which zeroes are a value.
        let mut former: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: NULL, which asks only, or an action that was there, or one that may run at any time, as it does nothing.
        (unsafe { libc::sigaction(libc::SIGPIPE, new, &mut former) } == 0).then_some(former)
    };
    if let Some(former) = exchange(null())
        && former.sa_sigaction == libc::SIG_DFL
    {
        let mut ours = former;
        ours.sa_sigaction = nothing as extern "C" fn(c_int) as libc::sighandler_t;
        ours.sa_flags = libc::SA_RESTART;
        replace(ours, |new| exchange(new), |action| action.sa_sigaction);
    }
    DONE.store(true, Ordering::Relaxed);
}

/// Puts `ours` in the place of `SIG_DFL`. Another thread may set a handler at any time, and only an exchange tells what was there: what
/// the program has set meanwhile is put back.
fn replace<A: Copy>(
    ours: A,
    mut exchange: impl FnMut(&A) -> Option<A>,
    handler: impl Fn(&A) -> libc::sighandler_t,
) {
    let mut put = ours;
    let mut expected = [libc::SIG_DFL, handler(&ours)];
    while let Some(found) = exchange(&put)
        && !expected.contains(&handler(&found))
    {
        expected = [handler(&put); 2];
        put = found;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is there in the end, if other threads set these before each exchange; 0 stands for nothing.
    fn left(others: &[usize]) -> usize {
        const OURS: usize = 9;
        let (mut others, mut present) = (others.iter(), libc::SIG_DFL);
        let exchange = |new: &usize| {
            present = others.next().copied().filter(|other| *other != 0).unwrap_or(present);
            Some(std::mem::replace(&mut present, *new))
        };
        replace(OURS, exchange, |action| *action);
        present
    }

    #[test]
    fn a_handler_that_another_thread_sets_meanwhile_stays() {
        assert_eq!((left(&[]), left(&[9])), (9, 9));
        assert_eq!((left(&[5]), left(&[5, 6]), left(&[5, 6, 7]), left(&[5, 0, 7])), (5, 6, 7, 5));
    }
}
