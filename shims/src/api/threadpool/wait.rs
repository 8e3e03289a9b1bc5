//! Waits of thread pools.

use super::{Base, Environment, Instance, Member, close, create, time, with_member};
use crate::api::handle;
use crate::arguments::In;
use crate::error::*;
use crate::object::callbacks;
use crate::object::timer::{Timer, due_time};
use crate::object::watch::Watch;
use crate::object::{Object, RawHandle};
use crate::time::FileTime;
use parking_lot::Mutex;
use std::ffi::c_void;
use std::sync::Arc;

/// `PTP_WAIT_CALLBACK`.
type WaitCallback = unsafe extern "C" fn(*mut Instance, *mut c_void, RawHandle, u32);

struct PoolWait {
    base: Arc<Base>,
    watch: Arc<Watch>,
    /// The timer that is waited for, which goes off for who waits when its last handle is closed, too.
    timer: Mutex<Option<Arc<Timer>>>,
}

impl Member for PoolWait {
    fn base(&self) -> &Base {
        &self.base
    }

    fn stop(&self) {
        self.watch.cancel();
    }
}

/// `CreateThreadpoolWait`.
///
/// # Safety
/// As for [`super::work::ndw_CreateThreadpoolWork`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CreateThreadpoolWait(
    callback: Option<WaitCallback>,
    context: *mut c_void,
    environment: In<'_, Environment>,
) -> RawHandle {
    create(environment, context, |base, caller| {
        let callback = callback.ok_or(ERROR_INVALID_PARAMETER)?;
        callbacks::start_timed_threads()?;
        let ended = move |timed_out: bool| {
            let result = if timed_out { WAIT_TIMEOUT } else { 0 };
            // SAFETY: the program's callback, of this type, with the context that it gave for it.
            caller
                .submit(move |instance, context, wait| unsafe { callback(instance, context, wait, result) });
        };
        Ok(PoolWait { base, watch: Watch::new(ended), timer: Mutex::default() })
    })
}

/// `SetThreadpoolWait`: waits once for the object, in place of an earlier one; NULL stops waiting.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetThreadpoolWait(wait: RawHandle, object: RawHandle, timeout: In<'_, FileTime>) {
    set(wait, object, timeout);
}

/// `SetThreadpoolWaitEx`: whether it was waiting before, and that was cancelled. There is nothing for the last argument to say.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetThreadpoolWaitEx(
    wait: RawHandle,
    object: RawHandle,
    timeout: In<'_, FileTime>,
    _reserved: *const c_void,
) -> i32 {
    set(wait, object, timeout).into()
}

/// Whether a wait was cancelled.
fn set(wait: RawHandle, object: RawHandle, timeout: In<'_, FileTime>) -> bool {
    let mut cancelled = false;
    with_member::<PoolWait>(wait, |wait| {
        cancelled = wait.watch.cancel();
        let object = handle::get(object).filter(|object| !matches!(object, Object::Mutex(_)));
        let signal = object.as_ref().and_then(Object::signal);
        *wait.timer.lock() = if let Some(Object::Timer(timer)) = object { Some(timer) } else { None };
        if let Some(signal) = signal {
            wait.watch.set(&signal, time(timeout).and_then(due_time));
        }
    });
    cancelled
}

/// `WaitForThreadpoolWaitCallbacks`: with `cancel` callbacks that have not started are dropped.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WaitForThreadpoolWaitCallbacks(wait: RawHandle, cancel: i32) {
    with_member::<PoolWait>(wait, |wait| wait.base.wait(cancel));
}

/// `CloseThreadpoolWait`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CloseThreadpoolWait(wait: RawHandle) {
    close::<PoolWait>(wait);
}
