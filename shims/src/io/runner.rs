//! What a thread is to completion ports: the queue that it asked last, and whether it counts as running there.

use super::queue::{Packet, Queue, Waiter};
use super::sync::{Arc, Ordering, thread_local};
use crate::object::RawHandle;
use crate::object::handle::Opening;
use std::cell::{Cell, Ref, RefCell};
use std::ptr;
use std::sync::atomic::AtomicBool;

thread_local! {
    static CURRENT: Runner = Runner::default();
}

/// Some thread has asked a port. Before that, none can count as running: who waits for something else is spared the look.
static PORTS_USED: AtomicBool = AtomicBool::new(false);

/// One thread. It is counted out where it runs when it asks another queue, or ends.
pub(super) struct Runner {
    queue: RefCell<Option<Arc<Queue>>>,
    /// The handle by which it asked that queue, if by one.
    handle: Cell<Option<Opening>>,
    running: Cell<bool>,
    /// The queue that the thread waits on now, and the thread's number.
    pub(super) waiting: Cell<(*const Queue, u32)>,
    /// The packet that the thread has given itself while it waits, if it `has_kept` one. It takes it before it does anything else.
    pub(super) kept: Cell<Packet>,
    pub(super) has_kept: Cell<bool>,
    /// The waiter that the thread is in each wait.
    pub(super) spare: Cell<Option<Arc<Waiter>>>,
}

impl Default for Runner {
    fn default() -> Runner {
        Runner {
            queue: RefCell::default(),
            handle: Cell::default(),
            running: Cell::default(),
            waiting: Cell::new((ptr::null(), 0)),
            kept: Cell::default(),
            has_kept: Cell::default(),
            spare: Cell::default(),
        }
    }
}

impl Runner {
    /// Runs `body` with the calling thread. One that is being torn down is counted out as soon as it has been counted.
    #[inline(always)]
    pub(super) fn with<R>(body: impl FnOnce(&Runner) -> R) -> R {
        match CURRENT.try_with(ptr::from_ref) {
            // SAFETY: a thread's own data live until it ends.
            Ok(runner) => body(unsafe { &*runner }),
            Err(_) => body(&Runner::default()),
        }
    }

    /// Whether the calling thread waits on `queue` now and `body` says yes, which gets the thread's number, too.
    #[inline]
    pub(super) fn is_waiting(queue: &Queue, body: impl FnOnce(&Runner, u32) -> bool) -> bool {
        let ask = |runner: &Runner| {
            let (own, thread) = runner.waiting.get();
            ptr::eq(own, queue) && body(runner, thread)
        };
        CURRENT.try_with(ask).unwrap_or(false)
    }

    /// The queue that the thread is bound to, if it was by `handle`, which still names it.
    #[inline]
    pub(super) fn bound_by(&self, handle: RawHandle) -> Option<Ref<'_, Arc<Queue>>> {
        if !self.handle.get()?.is(handle) {
            return None;
        }
        Ref::filter_map(self.queue.borrow(), Option::as_ref).ok()
    }

    /// Binds the thread to `queue`, which it asks by `handle`, or by none. Elsewhere it does not run any more.
    pub(super) fn bind(&self, queue: &Arc<Queue>, handle: Option<Opening>) {
        self.handle.set(handle);
        if self.queue.borrow().as_ref().is_some_and(|own| Arc::ptr_eq(own, queue)) {
            return;
        }
        PORTS_USED.store(true, Ordering::Relaxed);
        let former = self.queue.replace(Some(queue.clone()));
        if let (Some(former), true) = (former, self.running.take()) {
            former.stop_running();
        }
    }

    /// Whether the thread has been counted as running on the queue it is bound to.
    #[inline]
    pub(super) fn is_counted(&self) -> bool {
        self.running.get()
    }

    /// As above, for a thread that is about to wait.
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
        if let (Some(queue), true) = (self.queue.take(), self.running.get()) {
            queue.stop_running();
        }
    }
}

/// For as long as this lives, the calling thread does not count as running on its port: it waits for something.
pub(crate) struct Idle(Option<Arc<Queue>>);

impl Idle {
    #[inline]
    pub(crate) fn enter() -> Idle {
        if !PORTS_USED.load(Ordering::Relaxed) {
            return Idle(None);
        }
        let runs = CURRENT.try_with(|runner| runner.running.get()).unwrap_or(false);
        if runs { Idle::leave() } else { Idle(None) }
    }

    fn leave() -> Idle {
        let leave = |runner: &Runner| {
            runner.running.set(false);
            let queue = runner.queue.borrow().clone();
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
