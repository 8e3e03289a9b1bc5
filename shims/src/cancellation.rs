//! `pthread_cancel`: Windows has no equivalent, and the library's frames cannot be unwound by it. A thread that is cancelled
//! within a call of the library ends at the first cancellation point after the call.
//!
//! Waits and frequent calls make their system calls without the C library, whose functions are cancellation points. All others
//! disable cancellation meanwhile.

use libc::c_int;

unsafe extern "C" {
    // Missing in the libc crate, and the same in all C libraries on Linux.
    fn pthread_setcancelstate(state: c_int, former: *mut c_int) -> c_int;
}

const PTHREAD_CANCEL_DISABLE: c_int = 1;

/// Runs `body` with cancellation of the calling thread disabled.
#[inline]
pub fn put_off<R>(body: impl FnOnce() -> R) -> R {
    let _former = Former::new();
    body()
}

/// The cancellation state to restore.
struct Former(c_int);

impl Former {
    #[inline]
    fn new() -> Former {
        let mut former = PTHREAD_CANCEL_DISABLE;
        // SAFETY: the former state is written to a local. To forbid it does not cancel anything.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut former) };
        Former(former)
    }
}

impl Drop for Former {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: no result is asked for. Of a thread that may be cancelled at any time, no frame is left that minds.
        unsafe { pthread_setcancelstate(self.0, std::ptr::null_mut()) };
    }
}
