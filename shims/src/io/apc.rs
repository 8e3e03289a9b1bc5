//! Asynchronous procedure calls, which a thread runs in its next alertable wait.

use super::parker::Parker;
use super::sync::{Arc, AtomicBool, Lock, Ordering, thread_local};
use crate::cancellation::put_off;
use std::collections::VecDeque;

/// A call.
pub(crate) type Apc = Box<dyn FnOnce() + Send>;

/// The calls of one thread.
pub(crate) struct Apcs {
    parker: Arc<Parker>,
    /// There are some.
    any: AtomicBool,
    /// `None` once the thread has ended.
    queue: Lock<Option<VecDeque<Queued>>>,
}

struct Queued {
    apc: Apc,
    /// Who may remove it, by a number.
    owner: Option<usize>,
}

thread_local! {
    static CURRENT: Arc<Apcs> = Arc::new(Apcs::new());
}

impl Apcs {
    fn new() -> Apcs {
        Apcs {
            parker: Parker::current(),
            any: AtomicBool::new(false),
            queue: Lock::new(Some(VecDeque::new())),
        }
    }

    /// The queue of the calling thread. (While its thread-locals are being destroyed, a temporary one.)
    pub(crate) fn current() -> Arc<Apcs> {
        CURRENT.try_with(Arc::clone).unwrap_or_else(|_| Arc::new(Apcs::new()))
    }

    /// Adds a call, and ends an alertable wait of the thread. False if the thread has ended.
    pub(crate) fn queue(&self, apc: Apc) -> bool {
        self.add(Queued { apc, owner: None })
    }

    /// The same for a call that its owner may [`remove`](Self::remove).
    pub(crate) fn queue_of(&self, owner: usize, apc: Apc) -> bool {
        self.add(Queued { apc, owner: Some(owner) })
    }

    fn add(&self, queued: Queued) -> bool {
        {
            let mut queue = self.queue.lock();
            let Some(queue) = queue.as_mut() else { return false };
            queue.push_back(queued);
            self.any.store(true, Ordering::Release);
        }
        self.parker.wake();
        true
    }

    /// Removes the calls of an owner that have not begun: they end no wait any more.
    pub(crate) fn remove(&self, owner: usize) {
        let mut queue = self.queue.lock();
        let Some(calls) = queue.as_mut() else { return };
        let (removed, left): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(calls).into_iter().partition(|queued| queued.owner == Some(owner));
        *calls = left;
        if calls.is_empty() {
            self.any.store(false, Ordering::Release);
        }
        drop(queue);
        drop(removed);
    }

    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Runs all calls, including those added meanwhile. Returns whether there were any. Only for the thread itself.
    pub(crate) fn run(&self) -> bool {
        let mut ran = false;
        loop {
            let next = {
                let mut queue = self.queue.lock();
                let next = queue.as_mut().and_then(VecDeque::pop_front);
                if next.is_none() {
                    self.any.store(false, Ordering::Release);
                }
                next
            };
            let Some(Queued { apc, .. }) = next else { return ran };
            ran = true;
            // The program's, which may call what is a point of cancellation.
            put_off(apc);
        }
    }

    /// The thread ends: the remaining calls are dropped.
    pub(crate) fn close(&self) {
        drop(self.queue.lock().take());
    }
}
