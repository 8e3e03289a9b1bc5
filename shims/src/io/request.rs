//! Requests: the life of one overlapped operation.

use super::{File, Overlapped, STATUS_CANCELLED, STATUS_PENDING};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One pending overlapped operation. Dropping it completes it with [`STATUS_CANCELLED`].
pub struct Request {
    _file: Arc<File>,
    ov: *mut Overlapped,
}

// SAFETY: the OVERLAPPED is handed over to the request until completion, and its fields are atomics.
unsafe impl Send for Request {}

impl Request {
    pub(super) fn new(file: Arc<File>, ov: *mut Overlapped) -> Request {
        // SAFETY: the caller of `File::begin` vouches for `ov`.
        unsafe { (*ov).internal.store(STATUS_PENDING as usize, Ordering::Relaxed) };
        Request { _file: file, ov }
    }

    /// Completes the operation; afterwards nothing here touches its `OVERLAPPED` again.
    pub fn complete(self, status: i32, bytes: usize) {
        self.finish(status, bytes);
        std::mem::forget(self);
    }

    /// The address of the caller's `OVERLAPPED`.
    pub fn overlapped(&self) -> *mut Overlapped {
        self.ov
    }

    fn finish(&self, status: i32, bytes: usize) {
        // SAFETY: valid until completion, which is now.
        unsafe {
            (*self.ov).internal_high.store(bytes, Ordering::Relaxed);
            (*self.ov).internal.store(status as usize, Ordering::Release);
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.finish(STATUS_CANCELLED, 0);
    }
}

/// The status of an overlapped operation; with `wait`, blocks until there is a final one.
///
/// Works for any `ov` of any file: `file` is only the one whose progress is driven first.
///
/// # Safety
/// `ov` must point to a valid `OVERLAPPED` whose operation was started.
pub unsafe fn result(file: &File, ov: *const Overlapped, wait: bool) -> i32 {
    loop {
        // SAFETY: the caller vouches for `ov`.
        let status = unsafe { (*ov).internal.load(Ordering::Acquire) } as i32;
        if status != STATUS_PENDING || !wait {
            return status;
        }
        file.progress();
    }
}
