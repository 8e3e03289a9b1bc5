//! `pthread_cancel`, by which programs end threads that wait for an event. Only the library that is preloaded (feature `preload`) has to do
//! with it; the others' callers see to that themselves.
//!
//! Frames of Rust cannot be unwound by a cancellation, so it is put off while a function runs. What waits for an event returns now and then to
//! a frame that may be unwound, as it has nothing to drop, and is cancelled there ([`waits`](super::waits)).

#[cfg(feature = "preload")]
use std::any::Any;
#[cfg(feature = "preload")]
use std::cell::Cell;
#[cfg(feature = "preload")]
use std::ffi::c_int;
#[cfg(feature = "preload")]
use std::time::Duration;

/// How long a thread waits before it looks whether it is cancelled.
#[cfg(feature = "preload")]
pub(super) const LOOKS_UP: Duration = Duration::from_millis(100);

#[cfg(feature = "preload")]
unsafe extern "C" {
    // Missing in the libc crate, and the same in all C libraries on Linux.
    fn pthread_setcancelstate(state: c_int, former: *mut c_int) -> c_int;
}

#[cfg(feature = "preload")]
unsafe extern "C-unwind" {
    /// Ends the thread if it is cancelled.
    pub(super) fn pthread_testcancel();
}

/// While it exists, the thread is not cancelled.
pub(super) struct PutOff(#[cfg(feature = "preload")] c_int);

impl PutOff {
    #[inline]
    pub(super) fn new() -> PutOff {
        #[cfg(feature = "preload")]
        {
            const PTHREAD_CANCEL_DISABLE: c_int = 1;
            let mut former = PTHREAD_CANCEL_DISABLE;
            // SAFETY: the former state is written to a local. To forbid it does not cancel anything.
            unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut former) };
            PutOff(former)
        }
        #[cfg(not(feature = "preload"))]
        PutOff()
    }
}

#[cfg(feature = "preload")]
impl Drop for PutOff {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: no former state is asked for. To allow it again cancels nothing by itself.
        unsafe { pthread_setcancelstate(self.0, std::ptr::null_mut()) };
    }
}

#[cfg(feature = "preload")]
thread_local! {
    /// What a wait of this thread goes on with when it has looked up: the program may have destroyed the channel meanwhile. If the thread is
    /// cancelled, this goes with it.
    static WAITS_ON: Cell<Option<Box<dyn Any>>> = const { Cell::new(None) };
}

/// What a wait is for: `find` says that when it begins.
pub(super) fn begun<T: 'static>(find: impl FnOnce() -> T) -> T {
    #[cfg(feature = "preload")]
    if let Some(waits_on) = WAITS_ON.take()
        && let Ok(waits_on) = waits_on.downcast()
    {
        return *waits_on;
    }
    find()
}

/// The wait looks up, and is to go on with this.
pub(super) fn looks_up<T: 'static>(waits_on: T) {
    #[cfg(feature = "preload")]
    WAITS_ON.set(Some(Box::new(waits_on)));
    #[cfg(not(feature = "preload"))]
    drop(waits_on);
}
