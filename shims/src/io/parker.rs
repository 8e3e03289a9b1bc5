//! How a thread sleeps: on a futex, or in the epoll set of a poller that it leads, until that is kicked.
//!
//! A parker is a binary semaphore with one owner. Whoever changes what the owner waits for calls
//! [`Parker::wake`]; the owner re-examines its condition after every return from a sleep. The token that `wake`
//! leaves behind makes the order of the two irrelevant.

use super::spin::{self, Spinner};
use super::sync::{Arc, AtomicU32, Lock, Ordering, Weak, thread_local};
use super::sys::{Deadline, EventFd, futex_wait, futex_wake};

/// Awake, or about to check whether to sleep.
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
    /// The kick of the epoll set in which the owner sleeps, or slept last.
    kick: Lock<Weak<EventFd>>,
}

thread_local! {
    static CURRENT: Arc<Parker> = Parker::new();
}

impl Parker {
    /// A parker that no thread owns yet.
    pub(crate) fn new() -> Arc<Parker> {
        Arc::new(Parker {
            state: AtomicU32::new(EMPTY),
            spinner: Spinner::default(),
            kick: Lock::new(Weak::new()),
        })
    }

    /// The calling thread's parker. (While its thread-locals are being destroyed, a temporary one.)
    pub(crate) fn current() -> Arc<Parker> {
        CURRENT.try_with(Arc::clone).unwrap_or_else(|_| Parker::new())
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
            // If the owner has left that set meanwhile, the kick is spurious, which is harmless.
            IN_EPOLL => {
                let kick = self.kick.lock().upgrade();
                if let Some(kick) = kick {
                    kick.set();
                }
            }
            _ => {}
        }
    }

    /// Consumes an earlier token. The owner checks its condition next. Only for the owner.
    pub(crate) fn look_now(&self) {
        if self.state.load(Ordering::Relaxed) == NOTIFIED {
            self.state.swap(EMPTY, Ordering::Acquire);
        }
    }

    /// Sleeps until woken or the deadline. Only for the owner.
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

    /// Runs `sleep`, which sleeps in an epoll set and returns when `kick` is set. Only for the owner.
    pub(crate) fn park_in_epoll(&self, kick: &Arc<EventFd>, sleep: impl FnOnce()) {
        {
            let mut last = self.kick.lock();
            if !std::ptr::eq(last.as_ptr(), Arc::as_ptr(kick)) {
                *last = Arc::downgrade(kick);
            }
        }
        if self.fall_asleep(IN_EPOLL) {
            sleep();
            self.state.swap(EMPTY, Ordering::Acquire);
        }
    }

    /// Announces a sleep, unless there is a token, which is then consumed.
    fn fall_asleep(&self, how: u32) -> bool {
        if self.state.compare_exchange(EMPTY, how, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return true;
        }
        self.state.swap(EMPTY, Ordering::Acquire);
        false
    }
}
