//! The C boundary: panics stop here, errors become the thread's last error, results are written to the caller's memory.

use crate::cancellation::put_off;
use crate::error::*;
use crate::handle::RawHandle;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of a C entry point. A panic is turned into `failed` and `ERROR_INTERNAL_ERROR`, and `pthread_cancel` is
/// deferred.
pub(crate) fn guard<R>(failed: R, body: impl FnOnce() -> R) -> R {
    put_off(|| guard_quick(failed, body))
}

/// As [`guard`], for a body that calls no cancellation point of the C library.
#[inline(always)]
pub(crate) fn guard_quick<R>(failed: R, body: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        set_last_error(ERROR_INTERNAL_ERROR);
        failed
    })
}

/// For entry points that return a handle: an error becomes the last error.
pub(crate) fn guard_handle(body: impl FnOnce() -> Result<RawHandle, u32>) -> RawHandle {
    guard(RawHandle::NULL, || {
        body().unwrap_or_else(|code| {
            set_last_error(code);
            RawHandle::NULL
        })
    })
}

/// For entry points that return a `BOOL`: an error becomes the last error.
pub(crate) fn guard_bool(body: impl FnOnce() -> Result<(), u32>) -> i32 {
    put_off(|| guard_bool_quick(body))
}

/// As [`guard_bool`], for a body as that of [`guard_quick`].
#[inline(always)]
pub(crate) fn guard_bool_quick(body: impl FnOnce() -> Result<(), u32>) -> i32 {
    guard_quick(0, || match body() {
        Ok(()) => 1,
        Err(code) => {
            set_last_error(code);
            0
        }
    })
}

/// Sets the last error, and returns `value`.
pub(crate) fn fail<R>(code: u32, value: R) -> R {
    set_last_error(code);
    value
}

/// # Safety
/// `target` must be null or valid for a write.
pub(crate) unsafe fn put<T>(target: *mut T, value: T) {
    if !target.is_null() {
        // SAFETY: not NULL, hence writable, as the caller promises.
        unsafe { target.write(value) };
    }
}
