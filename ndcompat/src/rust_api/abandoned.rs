//! The `OVERLAPPED` of an operation that was dropped while its request was pending: freed when that has completed.

use crate::status::Status;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};
use win32::io::{Overlapped, forget_tasks, wake_when_complete};

/// `None` once it is freed.
struct Abandoned(Mutex<Option<NonNull<Overlapped>>>);

// SAFETY: an OVERLAPPED consists of atomics, and the lock says who frees it.
unsafe impl Send for Abandoned {}
// SAFETY: as above.
unsafe impl Sync for Abandoned {}

/// Frees it when its request has completed, which may be now.
///
/// # Safety
/// It was a box; a request was begun on it, and nobody else uses it.
pub unsafe fn free_when_complete(ov: NonNull<Overlapped>) {
    Arc::new(Abandoned(Mutex::new(Some(ov)))).wait(ov);
}

impl Abandoned {
    /// No waker of this is registered: so `ov` is there until this registers one.
    fn wait(self: Arc<Self>, ov: NonNull<Overlapped>) {
        wake_when_complete(ov.as_ptr(), &Waker::from(self.clone()));
        self.free_if_complete();
    }

    fn free_if_complete(&self) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ov) = *kept else { return };
        // SAFETY: it is there, as nobody has freed it, and the field is atomic.
        let status = unsafe { &(*ov.as_ptr()).internal }.load(Ordering::Acquire);
        if Status(status as i32) != Status::PENDING {
            *kept = None;
            // While it is there: another one may get the address, and have tasks.
            forget_tasks(ov.as_ptr());
            // SAFETY: it was a box, and its request has completed.
            drop(unsafe { Box::from_raw(ov.as_ptr()) });
        }
    }
}

impl Wake for Abandoned {
    fn wake(self: Arc<Self>) {
        self.free_if_complete();
        let pending = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ov) = pending {
            // Something else has woken it.
            self.wait(ov);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use win32::io::{File, Request, STATUS_CANCELLED, wake};

    #[test]
    fn what_was_abandoned_is_freed_when_its_request_has_completed() {
        let file = File::new().unwrap();
        // Before, meanwhile and after.
        for wakes in [None, Some(0), Some(3)] {
            let ov = NonNull::from(Box::leak(Box::<Overlapped>::default()));
            // SAFETY: it stays until the request has completed.
            let mut request = Some(unsafe { File::begin(&file, ov.as_ptr()) });
            let mut complete = || {
                let request: Request = request.take().unwrap();
                request.complete(STATUS_CANCELLED, 0);
            };
            if wakes.is_none() {
                complete();
            }
            let abandoned = Arc::new(Abandoned(Mutex::new(Some(ov))));
            abandoned.clone().wait(ov);
            if let Some(wakes) = wakes {
                (0..wakes).for_each(|_| wake(ov.as_ptr()));
                assert_eq!((Arc::strong_count(&abandoned), abandoned.0.lock().unwrap().is_some()), (2, true));
                complete();
            }
            assert_eq!((Arc::strong_count(&abandoned), abandoned.0.lock().unwrap().is_some()), (1, false));
        }
    }
}
