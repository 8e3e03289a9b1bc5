//! `INIT_ONCE`, in its callback form.

use super::sleep;
use crate::error::{ERROR_INVALID_PARAMETER, set_last_error};
use crate::futex::{self, ANYONE, Deadline};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

const RUNNING: usize = 1;
const DONE: usize = 2;

/// `INIT_ONCE`: the callback's context, whose two low bits are free, and the state in those.
#[repr(transparent)]
#[derive(Default)]
pub struct InitOnce(AtomicUsize);

impl InitOnce {
    /// The half that holds the state: both supported architectures store it first.
    fn word(&self) -> &AtomicU32 {
        const { assert!(cfg!(target_endian = "little")) };
        // SAFETY: the low half of a live, aligned atomic.
        unsafe { &*(&raw const self.0).cast::<AtomicU32>() }
    }

    /// Runs `initialise` unless it succeeded before, and returns the context; `None` when it fails.
    pub fn execute(&self, initialise: impl FnOnce() -> Option<usize>) -> Option<usize> {
        loop {
            match self.0.compare_exchange(0, RUNNING, Acquire, Acquire) {
                Ok(_) => break,
                Err(state) if state & DONE != 0 => return Some(state & !3),
                Err(_) => sleep(self.word(), RUNNING as u32, ANYONE, Deadline::Never),
            }
        }
        let context = initialise().map(|context| context & !3);
        self.0.store(context.map_or(0, |context| context | DONE), Release);
        futex::wake(self.word(), i32::MAX, ANYONE);
        context
    }
}

/// `PINIT_ONCE_FN`.
pub type InitOnceFn = unsafe extern "C" fn(*const InitOnce, *mut c_void, *mut *mut c_void) -> i32;

/// `InitOnceInitialize`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_InitOnceInitialize(once: *mut InitOnce) {
    if !once.is_null() {
        // SAFETY: room for an object that nobody uses yet, by the function's contract.
        unsafe { once.write(InitOnce::default()) };
    }
}

/// `InitOnceExecuteOnce`: FALSE when the callback fails; the next caller then tries again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_InitOnceExecuteOnce(
    once: *const InitOnce,
    callback: Option<InitOnceFn>,
    parameter: *mut c_void,
    context: *mut *mut c_void,
) -> i32 {
    // SAFETY: NULL or a live object by the function's contract.
    let (Some(once_ref), Some(callback)) = (unsafe { once.as_ref() }, callback) else {
        set_last_error(ERROR_INVALID_PARAMETER);
        return 0;
    };
    let result = once_ref.execute(|| {
        let mut made = std::ptr::null_mut();
        // SAFETY: the function's contract; the place for the context is ours.
        (unsafe { callback(once, parameter, &mut made) } != 0).then_some(made as usize)
    });
    match result {
        Some(made) if !context.is_null() => {
            // SAFETY: writable by the function's contract.
            unsafe { context.write(made as *mut c_void) };
            1
        }
        Some(_) => 1,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Duration;

    unsafe extern "C" fn count(_: *const InitOnce, runs: *mut c_void, context: *mut *mut c_void) -> i32 {
        // SAFETY: the test passes an atomic and room for a context.
        unsafe {
            (*runs.cast::<AtomicU32>()).fetch_add(1, SeqCst);
            thread::sleep(Duration::from_millis(5));
            *context = 0x1000 as *mut c_void;
        }
        1
    }

    #[test]
    fn one_of_many_initialises_and_all_get_the_context() {
        let (once, runs) = (InitOnce::default(), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut context = std::ptr::null_mut();
                    let parameter = (&raw const runs).cast_mut().cast();
                    // SAFETY: objects of ours.
                    let done =
                        unsafe { ndw_InitOnceExecuteOnce(&once, Some(count), parameter, &mut context) };
                    assert_eq!((done, context as usize), (1, 0x1000));
                });
            }
        });
        assert_eq!(runs.into_inner(), 1);
    }

    unsafe extern "C" fn fails(_: *const InitOnce, _: *mut c_void, context: *mut *mut c_void) -> i32 {
        // SAFETY: room for a context.
        unsafe { *context = 0x2000 as *mut c_void };
        0
    }

    #[test]
    fn a_callback_that_fails_leaves_context_and_last_error_alone() {
        let (once, mut context) = (InitOnce::default(), 0x30 as *mut c_void);
        set_last_error(0xBEEF);
        // SAFETY: objects of ours.
        let done = unsafe { ndw_InitOnceExecuteOnce(&once, Some(fails), std::ptr::null_mut(), &mut context) };
        assert_eq!((done, context as usize, crate::error::last_error()), (0, 0x30, 0xBEEF));
    }

    #[test]
    fn a_failure_leaves_it_to_the_next() {
        let once = InitOnce::default();
        assert_eq!(once.execute(|| None), None);
        assert_eq!(once.execute(|| Some(8)), Some(8));
        assert_eq!(once.execute(|| unreachable!()), Some(8));
    }
}
