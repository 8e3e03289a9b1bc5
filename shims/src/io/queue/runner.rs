//! The queue that a thread has used last, and whether it counts as running there.

use super::super::sync::{Arc, Ordering, Weak, thread_local};
use super::Queue;
use super::state::{Packet, Waiter};
use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::atomic::AtomicBool;

thread_local! {
    static CURRENT: Runner = Runner::default();
}

/// Whether any thread has used a port. Before that no thread counts as running, so other waits need not check.
static PORTS_USED: AtomicBool = AtomicBool::new(false);

/// A thread. It stops counting as running on a queue when it uses another one, or ends.
pub(super) struct Runner {
    queue: RefCell<Weak<Queue>>,
    running: Cell<bool>,
    /// The queue that the thread waits on now, and the thread's number.
    pub(super) waiting: Cell<(*const Queue, u32)>,
    /// The packet that the thread has produced for itself while it waits, if `has_own_packet`. It is taken before anything else.
    pub(super) own_packet: Cell<Packet>,
    pub(super) has_own_packet: Cell<bool>,
    /// The thread's waiter, for its next wait.
    pub(super) spare: Cell<Option<Arc<Waiter>>>,
}

impl Default for Runner {
    fn default() -> Runner {
        Runner {
            queue: RefCell::default(),
            running: Cell::default(),
            waiting: Cell::new((ptr::null(), 0)),
            own_packet: Cell::default(),
            has_own_packet: Cell::default(),
            spare: Cell::default(),
        }
    }
}

impl Runner {
    /// Runs `body` with the calling thread's record. A thread whose thread-locals are destroyed stops counting as running at
    /// once.
    #[inline(always)]
    pub(super) fn with<R>(body: impl FnOnce(&Runner) -> R) -> R {
        match CURRENT.try_with(ptr::from_ref) {
            // SAFETY: a thread's own data live until it ends.
            Ok(runner) => body(unsafe { &*runner }),
            Err(_) => body(&Runner::default()),
        }
    }

    /// Whether the calling thread is waiting on `queue` and `body`, which gets the thread's id, returns true.
    #[inline]
    pub(super) fn is_waiting(queue: &Queue, body: impl FnOnce(&Runner, u32) -> bool) -> bool {
        let ask = |runner: &Runner| {
            let (own, thread) = runner.waiting.get();
            ptr::eq(own, queue) && body(runner, thread)
        };
        CURRENT.try_with(ask).unwrap_or(false)
    }

    /// Binds the thread to `queue`. It no longer counts as running on another one.
    #[inline]
    pub(super) fn bind(&self, queue: &Arc<Queue>) {
        if !ptr::eq(self.queue.borrow().as_ptr(), Arc::as_ptr(queue)) {
            self.bind_anew(queue);
        }
    }

    #[cold]
    fn bind_anew(&self, queue: &Arc<Queue>) {
        PORTS_USED.store(true, Ordering::Relaxed);
        let former = self.queue.replace(Arc::downgrade(queue)).upgrade();
        if let (true, Some(former)) = (self.running.take(), former) {
            former.stop_running();
        }
    }

    /// Whether the thread has been counted as running on the queue it is bound to.
    #[inline]
    pub(super) fn is_counted(&self) -> bool {
        self.running.get()
    }

    /// Clears and returns [`is_counted`](Self::is_counted): the thread is about to wait.
    #[inline]
    pub(super) fn take_count(&self) -> bool {
        self.running.take()
    }

    /// The thread has been counted as running on the queue it is bound to.
    #[inline]
    pub(super) fn count(&self) {
        self.running.set(true);
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        if let (Some(queue), true) = (self.queue.take().upgrade(), self.running.get()) {
            queue.stop_running();
        }
    }
}

/// Until dropped, the calling thread does not count as running on its port: it waits for something.
pub(crate) struct Idle(Option<Arc<Queue>>);

impl Idle {
    #[inline]
    pub(crate) fn enter() -> Idle {
        Idle::enter_if(|| true)
    }

    /// [`enter`](Self::enter), if the thread is to wait: who does not makes no room for another. Only a thread that counts is asked.
    #[inline]
    pub(crate) fn enter_if(is_to_wait: impl FnOnce() -> bool) -> Idle {
        if Idle::is_needed() && is_to_wait() { Idle::leave() } else { Idle(None) }
    }

    /// Whether the calling thread counts as running.
    #[inline]
    pub(crate) fn is_needed() -> bool {
        PORTS_USED.load(Ordering::Relaxed) && CURRENT.try_with(|runner| runner.running.get()).unwrap_or(false)
    }

    fn leave() -> Idle {
        let leave = |runner: &Runner| {
            runner.running.set(false);
            let queue = runner.queue.borrow().upgrade();
            Idle(queue.filter(|queue| queue.stop_running()))
        };
        CURRENT.try_with(leave).unwrap_or(Idle(None))
    }
}

impl Drop for Idle {
    #[inline]
    fn drop(&mut self) {
        if let Some(queue) = &self.0 {
            queue.start_running();
            if CURRENT.try_with(Runner::count).is_err() {
                queue.stop_running();
            }
        }
    }
}
