//! Threads that wait for something at a certain address.
//!
//! The address is only a name: what lies there may be gone when its waiters are woken.

use super::parker::Parker;
use super::sync::{Arc, AtomicUsize, Lock, Ordering, fence};

pub(crate) struct AddressWaiters {
    count: AtomicUsize,
    list: Lock<Vec<(usize, Arc<Parker>)>>,
}

impl AddressWaiters {
    pub(crate) const fn new() -> AddressWaiters {
        AddressWaiters { count: AtomicUsize::new(0), list: Lock::new(Vec::new()) }
    }

    /// Wakes the threads that wait at `address`, after what they wait for was published there.
    pub(crate) fn wake(&self, address: usize) {
        // Pairs with the fence in `register`: either this sees the waiter, or the waiter sees the result.
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::Relaxed) > 0 {
            let list = self.list.lock();
            list.iter().filter(|(other, _)| *other == address).for_each(|(_, parker)| parker.wake());
        }
    }

    /// Lets the thread that `parker` belongs to be woken for `address`, as long as the result lives. It must look for what
    /// it waits for afterwards.
    #[inline]
    pub(crate) fn register<'a>(&'a self, address: usize, parker: &'a Arc<Parker>) -> Registered<'a> {
        self.list.lock().push((address, parker.clone()));
        self.count.fetch_add(1, Ordering::Relaxed);
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
            self.waiters.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
