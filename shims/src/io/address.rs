//! Threads and tasks that wait for an address, such as that of an `OVERLAPPED`.
//!
//! The address is only a key: the memory may be freed when its waiters are woken.

use super::parker::Parker;
use super::sync::{Arc, AtomicUsize, Lock, Ordering, fence};
use std::task::Waker;

#[derive(Default)]
pub(crate) struct AddressWaiters {
    /// The number of waiting threads.
    waiting: AtomicUsize,
    list: Lock<Vec<(usize, Arc<Parker>)>>,
    /// The number of waiting tasks, which most programs do not have.
    task_count: AtomicUsize,
    /// Tasks of asynchronous Rust programs. Each is woken once.
    tasks: Lock<Vec<(usize, Waker)>>,
}

impl AddressWaiters {
    /// Wakes the threads that wait for `address`, after their result was published.
    pub(crate) fn wake(&self, address: usize) {
        // Pairs with the fences in `register` and `register_task`: either this sees the waiter, or the waiter sees the result.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            let list = self.list.lock();
            list.iter().filter(|(other, _)| *other == address).for_each(|(_, parker)| parker.wake());
        }
        if self.task_count.load(Ordering::Relaxed) > 0 {
            self.wake_tasks(address);
        }
    }

    /// Wakes the tasks that wait for `address`, without holding a lock: a waker may run any code.
    #[cold]
    fn wake_tasks(&self, address: usize) {
        let woken = self.take_tasks(address);
        woken.into_iter().for_each(|(_, task)| task.wake());
    }

    fn take_tasks(&self, address: usize) -> Vec<(usize, Waker)> {
        let mut tasks = self.tasks.lock();
        let taken: Vec<_> = tasks.extract_if(.., |(other, _)| *other == address).collect();
        self.task_count.fetch_sub(taken.len(), Ordering::Relaxed);
        taken
    }

    /// Registers `task` to be woken once for `address`, in place of earlier tasks. The caller must check its condition
    /// afterwards.
    pub(crate) fn register_task(&self, address: usize, task: &Waker) {
        // Dropping and cloning wakers may run any code, so it is done without the lock.
        let (before, task) = (self.take_tasks(address), task.clone());
        self.tasks.lock().push((address, task));
        self.task_count.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        drop(before);
    }

    /// Removes the tasks of `address`.
    pub(crate) fn forget_tasks(&self, address: usize) {
        drop(self.take_tasks(address));
    }

    /// Registers the thread of `parker` to be woken for `address` until the result is dropped. The caller must check its
    /// condition afterwards.
    #[inline]
    pub(crate) fn register<'a>(&'a self, address: usize, parker: &'a Arc<Parker>) -> Registered<'a> {
        self.list.lock().push((address, parker.clone()));
        self.waiting.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        Registered { waiters: self, address, parker }
    }
}

pub(crate) struct Registered<'a> {
    waiters: &'a AddressWaiters,
    address: usize,
    parker: &'a Arc<Parker>,
}

impl Drop for Registered<'_> {
    #[inline]
    fn drop(&mut self) {
        let mut list = self.waiters.list.lock();
        let own = |(address, parker): &(usize, Arc<Parker>)| {
            *address == self.address && Arc::ptr_eq(parker, self.parker)
        };
        if let Some(at) = list.iter().position(own) {
            list.swap_remove(at);
            self.waiters.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
