//! How a thread sleeps: on a futex, or in the epoll set of a poller that it leads.
//!
//! A parker is a binary semaphore with one owner. Whoever changes what the owner waits for calls
//! [`Parker::wake`]; the owner re-examines its condition after every return from a sleep. The token that `wake`
//! leaves behind makes the order of the two irrelevant.

use super::poller::Poller;
use super::spin::{self, Spinner};
use super::sync::{Arc, AtomicU32, Lock, Ordering, Weak, thread_local};
use super::sys::{Deadline, futex_wait, futex_wake};

/// Awake, or about to look whether it may sleep.
const EMPTY: u32 = 0;
/// Woken: the next sleep returns at once.
const NOTIFIED: u32 = 1;
/// Asleep on the futex.
const IN_FUTEX: u32 = 2;
/// Asleep in `epoll_wait`.
const IN_EPOLL: u32 = 3;

pub(crate) struct Parker {
    state: AtomicU32,
    /// Whether the owner spins before it sleeps.
    pub(crate) spinner: Spinner,
    /// The poller that the owner leads, or led last.
    led: Lock<Weak<Poller>>,
}

thread_local! {
    static CURRENT: Arc<Parker> = Arc::new(Parker::new());
}

impl Parker {
    fn new() -> Parker {
        Parker { state: AtomicU32::new(EMPTY), spinner: Spinner::default(), led: Lock::new(Weak::new()) }
    }

    /// The calling thread's parker. (While the thread's locals are being destroyed: a temporary one.)
    pub(crate) fn current() -> Arc<Parker> {
        CURRENT.try_with(Arc::clone).unwrap_or_else(|_| Arc::new(Parker::new()))
    }

    /// Runs `body` with the calling thread's parker.
    #[inline]
    pub(crate) fn with<R>(body: impl FnOnce(&Arc<Parker>) -> R) -> R {
        let mut body = Some(body);
        match CURRENT.try_with(|parker| body.take().map(|body| body(parker))) {
            Ok(Some(result)) => result,
            _ => body.take().expect("not run above")(&Parker::current()),
        }
    }

    /// Ends the owner's sleep, or its next one.
    pub(crate) fn wake(&self) {
        match self.state.swap(NOTIFIED, Ordering::AcqRel) {
            IN_FUTEX => futex_wake(&self.state),
            // Should the owner have left that poller meanwhile, the kick is spurious, which is harmless.
            IN_EPOLL => {
                let led = self.led.lock().upgrade();
                if let Some(poller) = led {
                    poller.kick();
                }
            }
            _ => {}
        }
    }

    /// Uses up a token from before: what came with it, the owner looks at next. Only the owner may call this.
    pub(crate) fn look_now(&self) {
        if self.state.load(Ordering::Relaxed) == NOTIFIED {
            self.state.swap(EMPTY, Ordering::Acquire);
        }
    }

    /// Sleeps until woken or the deadline. Only the owner may call this.
    pub(crate) fn park(&self, deadline: Deadline) {
        let woken = || (self.state.load(Ordering::Relaxed) == NOTIFIED).then_some(());
        self.spinner.spin(spin::LONG, woken);
        if self.fall_asleep(IN_FUTEX) {
            while self.state.load(Ordering::Relaxed) == IN_FUTEX && !deadline.passed() {
                futex_wait(&self.state, IN_FUTEX, deadline);
            }
            self.state.swap(EMPTY, Ordering::Acquire);
        }
    }

    /// Runs `sleep`, which sleeps in the epoll set of `poller` and returns when that is kicked. Only the owner
    /// may call this.
    pub(crate) fn park_leading(&self, poller: &Arc<Poller>, sleep: impl FnOnce()) {
        {
            let mut led = self.led.lock();
            if !std::ptr::eq(led.as_ptr(), Arc::as_ptr(poller)) {
                *led = Arc::downgrade(poller);
            }
        }
        if self.fall_asleep(IN_EPOLL) {
            sleep();
            self.state.swap(EMPTY, Ordering::Acquire);
        }
    }

    /// Announces a sleep, unless a token is there, which is then used up.
    fn fall_asleep(&self, how: u32) -> bool {
        if self.state.compare_exchange(EMPTY, how, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return true;
        }
        self.state.swap(EMPTY, Ordering::Acquire);
        false
    }
}
