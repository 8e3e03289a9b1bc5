//! A thread that drives a poller while no thread of the program does: for targets whose program computes.
//!
//! It sleeps on a timer that the program's threads set again while they drive the poller, so that it does not wake up meanwhile.
//! When the timer expires, it is on duty: it waits on the poller's epoll set and drives it, until the program does so again.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use super::poller::Poller;

/// The thread. Dropping it ends the thread and joins it, unless the thread itself drops it.
pub struct Background {
    poller: Arc<Poller>,
    /// Readable when the thread is to end.
    end: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts it. A poller needs one at most.
    ///
    /// # Errors
    /// The system's error: no thread or file descriptor is available.
    pub fn start(poller: Arc<Poller>) -> io::Result<Background> {
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (seen, driven) = (Arc::clone(&end), Arc::clone(&poller));
        let start = || thread::Builder::new().name("softiwarp".to_owned()).spawn(move || run(&driven, &seen));
        let thread = with_signals_blocked(start)?;
        poller.set_background(true);
        Ok(Background { poller, end, thread: Some(thread) })
    }
}

/// Synchronous signals. A program's crash handler must see those of every thread.
const SYNCHRONOUS: [i32; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS, libc::SIGABRT];

/// Runs `start` with all but synchronous signals blocked, which new threads inherit: a handler of the program must not run on a
/// thread that the program does not know, nor a thread of the program that expects a signal lose it to this one.
fn with_signals_blocked<R>(start: impl FnOnce() -> R) -> R {
    let (mut all, mut former) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: initialises the set that it is given.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    for signal in SYNCHRONOUS {
        // SAFETY: the set was initialised above.
        unsafe { libc::sigdelset(all.as_mut_ptr(), signal) };
    }
    // SAFETY: reads the one set and initialises the other. It fails for an unknown first argument only.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), former.as_mut_ptr()) };
    let result = start();
    // SAFETY: the set was initialised by the first call.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, former.as_ptr(), null_mut()) };
    result
}

fn run(poller: &Poller, end: &OwnedFd) {
    let mut on_duty = false;
    loop {
        let set = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // `poll` ignores a negative descriptor.
        let descriptor = if on_duty { poller.descriptor().as_raw_fd() } else { -1 };
        let mut all = [end.as_raw_fd(), poller.takeover().as_raw_fd(), descriptor].map(set);
        // SAFETY: an array of three entries that outlives the call.
        unsafe { libc::poll(all.as_mut_ptr(), 3, -1) };
        let [ended, expired, _] = all.map(|one| one.revents != 0);
        if ended {
            return;
        }
        if expired {
            poller.takeover().clear();
            on_duty = poller.take_over();
        } else if poller.is_relieved() {
            // The program has set the timer, or will, and handles what is ready.
            on_duty = false;
        } else {
            poller.turn(Some(Duration::ZERO));
        }
    }
}

impl Background {
    /// Ends the thread without waiting for that: it may wait for the caller.
    pub(crate) fn dismiss(mut self) {
        self.thread = None;
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.poller.set_background(false);
        // Cannot fail: it is written once.
        let _ = rustix::io::write(&self.end, &1_u64.to_ne_bytes());
        if let Some(thread) =
            self.thread.take().filter(|thread| thread.thread().id() != thread::current().id())
        {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}
