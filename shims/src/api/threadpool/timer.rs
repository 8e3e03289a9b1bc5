//! Timers of thread pools.

use super::{Base, Environment, Member, WorkCallback, close, create, member, time, with_member};
use crate::arguments::In;
use crate::boundary::guard;
use crate::error::*;
use crate::object::RawHandle;
use crate::object::callbacks;
use crate::object::ticker::Ticker;
use crate::object::timer::due_time;
use crate::time::FileTime;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

struct PoolTimer {
    base: Arc<Base>,
    ticker: Arc<Ticker>,
    is_set: AtomicBool,
}

impl Member for PoolTimer {
    fn base(&self) -> &Base {
        &self.base
    }

    fn stop(&self) {
        self.ticker.cancel();
    }
}

/// `CreateThreadpoolTimer`.
///
/// # Safety
/// As for [`super::work::ndw_CreateThreadpoolWork`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CreateThreadpoolTimer(
    callback: Option<WorkCallback>,
    context: *mut c_void,
    environment: In<'_, Environment>,
) -> RawHandle {
    create(environment, context, |base, caller| {
        let callback = callback.ok_or(ERROR_INVALID_PARAMETER)?;
        callbacks::start_timed_threads()?;
        let tick = move || {
            // SAFETY: the program's callback, of this type, with the context that it gave for it.
            caller.submit(move |instance, context, timer| unsafe { callback(instance, context, timer) })
        };
        Ok(PoolTimer { base, ticker: Ticker::new(tick), is_set: AtomicBool::new(false) })
    })
}

/// `SetThreadpoolTimer`: NULL stops it. The window is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetThreadpoolTimer(timer: RawHandle, due: In<'_, FileTime>, period: u32, _window: u32) {
    ndw_SetThreadpoolTimerEx(timer, due, period, _window);
}

/// `SetThreadpoolTimerEx`: whether it was set before, and cancelled before it was due.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetThreadpoolTimerEx(
    timer: RawHandle,
    due: In<'_, FileTime>,
    period: u32,
    _window: u32,
) -> i32 {
    let mut cancelled = false;
    with_member::<PoolTimer>(timer, |timer| {
        let due = time(due);
        timer.is_set.store(due.is_some(), Ordering::SeqCst);
        let period = Duration::from_millis(period.into());
        cancelled = timer.ticker.replace(due.and_then(due_time), period).0;
    });
    cancelled.into()
}

/// `IsThreadpoolTimerSet`: TRUE once it was set to a time, even if that has passed.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_IsThreadpoolTimerSet(timer: RawHandle) -> i32 {
    guard(0, || member::<PoolTimer>(timer).is_ok_and(|timer| timer.is_set.load(Ordering::SeqCst)).into())
}

/// `WaitForThreadpoolTimerCallbacks`: with `cancel` callbacks that have not started are dropped.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WaitForThreadpoolTimerCallbacks(timer: RawHandle, cancel: i32) {
    with_member::<PoolTimer>(timer, |timer| timer.base.wait(cancel));
}

/// `CloseThreadpoolTimer`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CloseThreadpoolTimer(timer: RawHandle) {
    close::<PoolTimer>(timer);
}
