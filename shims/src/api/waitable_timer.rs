//! Waitable timers.

use crate::arguments::{In, Text};
use crate::boundary::{guard_bool, guard_handle};
use crate::error::*;
use crate::io::apc::Apcs;
use crate::object::timer::{Routine, Timer, due_time};
use crate::object::{self, Object, RawHandle, create_named, handle};
use crate::text::{Unit, narrow_and_wide};
use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

const CREATE_WAITABLE_TIMER_MANUAL_RESET: u32 = 1;
const CREATE_WAITABLE_TIMER_HIGH_RESOLUTION: u32 = 2;

/// `PTIMERAPCROUTINE`: gets the time at which the timer expired, in two halves.
type TimerRoutine = unsafe extern "C" fn(*mut c_void, u32, u32);

fn pick(object: Object) -> Option<Arc<Timer>> {
    if let Object::Timer(timer) = object { Some(timer) } else { None }
}

fn get(handle: RawHandle) -> Result<Arc<Timer>, u32> {
    handle::get(handle).and_then(pick).ok_or(ERROR_INVALID_HANDLE)
}

fn create_ex<T: Unit>(_attributes: *const c_void, name: Text<'_, T>, flags: u32, _access: u32) -> RawHandle {
    guard_handle(|| {
        if flags & !(CREATE_WAITABLE_TIMER_MANUAL_RESET | CREATE_WAITABLE_TIMER_HIGH_RESOLUTION) != 0 {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let make = || Timer::new(flags & CREATE_WAITABLE_TIMER_MANUAL_RESET == 0);
        create_named(name.read(), pick, Object::Timer, make)
    })
}

fn create<T: Unit>(attributes: *const c_void, manual_reset: i32, name: Text<'_, T>) -> RawHandle {
    let flags = if manual_reset != 0 { CREATE_WAITABLE_TIMER_MANUAL_RESET } else { 0 };
    create_ex(attributes, name, flags, 0)
}

fn open_named<T: Unit>(_access: u32, _inherit: i32, name: Text<'_, T>) -> RawHandle {
    guard_handle(|| object::open_named(name.read(), pick, Object::Timer))
}

narrow_and_wide! {
    "`CreateWaitableTimer`."
    ndw_CreateWaitableTimerA ndw_CreateWaitableTimerW =
        create(attributes: *const c_void, manual_reset: i32, name: Text<'_, T>) -> RawHandle;
    "`CreateWaitableTimerEx`."
    ndw_CreateWaitableTimerExA ndw_CreateWaitableTimerExW =
        create_ex(attributes: *const c_void, name: Text<'_, T>, flags: u32, access: u32) -> RawHandle;
    "`OpenWaitableTimer`."
    ndw_OpenWaitableTimerA ndw_OpenWaitableTimerW =
        open_named(access: u32, inherit: i32, name: Text<'_, T>) -> RawHandle;
}

/// `SetWaitableTimer`: `due` in units of 100 ns, negative if relative; the period in milliseconds. The routine runs in an
/// alertable wait of the calling thread. Waking the system from suspend is not supported: the last error says so.
///
/// # Safety
/// The routine must be safe to call with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_SetWaitableTimer(
    timer: RawHandle,
    due: In<'_, i64>,
    period: i32,
    routine: Option<TimerRoutine>,
    argument: *mut c_void,
    resume: i32,
) -> i32 {
    guard_bool(|| {
        let timer = get(timer)?;
        let due = due.read().filter(|_| period >= 0).ok_or(ERROR_INVALID_PARAMETER)?;
        let argument = argument.expose_provenance();
        let routine = routine.map(|routine| -> (Arc<Apcs>, Routine) {
            let call = move |time: u64| {
                let argument = std::ptr::with_exposed_provenance_mut(argument);
                // SAFETY: the program's routine, of this type, with the argument that it gave for it.
                unsafe { routine(argument, time as u32, (time >> 32) as u32) }
            };
            (Apcs::current(), Arc::new(call))
        });
        if !timer.set(due_time(due), Duration::from_millis(period as u64), routine) {
            return Err(ERROR_NO_SYSTEM_RESOURCES);
        }
        if resume != 0 {
            set_last_error(ERROR_NOT_SUPPORTED);
        }
        Ok(())
    })
}

/// `SetWaitableTimerEx`: as `SetWaitableTimer`. The tolerable delay is ignored.
///
/// # Safety
/// As for [`ndw_SetWaitableTimer`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_SetWaitableTimerEx(
    timer: RawHandle,
    due: In<'_, i64>,
    period: i32,
    routine: Option<TimerRoutine>,
    argument: *mut c_void,
    _wake_context: *const c_void,
    _tolerable_delay: u32,
) -> i32 {
    // SAFETY: the routine is as this function asks, too.
    unsafe { ndw_SetWaitableTimer(timer, due, period, routine, argument, 0) }
}

/// `CancelWaitableTimer`: leaves the timer's state as it is.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CancelWaitableTimer(timer: RawHandle) -> i32 {
    guard_bool(|| get(timer).map(|timer| timer.cancel()))
}
