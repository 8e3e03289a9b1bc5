//! Priorities of threads and of the process.

use super::number;
use crate::api::thread::thread_number;
use crate::arguments::Out;
use crate::boundary::guard_bool;
use crate::error::ERROR_NOACCESS;
use crate::object::RawHandle;
use crate::process;
use crate::processor::priority;

/// `SetThreadPriority`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetThreadPriority(thread: RawHandle, level: i32) -> i32 {
    guard_bool(|| priority::set_level(thread_number(thread)?, level))
}

/// `GetThreadPriority`: `THREAD_PRIORITY_ERROR_RETURN` on errors.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetThreadPriority(thread: RawHandle) -> i32 {
    number(i32::MAX, || priority::level(thread_number(thread)?))
}

/// `SetPriorityClass`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetPriorityClass(process: RawHandle, class: u32) -> i32 {
    guard_bool(|| {
        process::own(process)?;
        priority::set_class(class)
    })
}

/// `GetPriorityClass`: 0 on errors.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetPriorityClass(process: RawHandle) -> u32 {
    number(0, || process::own(process).map(|()| priority::class()))
}

/// `SetThreadPriorityBoost`: accepted without effect. Linux' scheduler has no such boosts.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetThreadPriorityBoost(thread: RawHandle, _disable: i32) -> i32 {
    guard_bool(|| thread_number(thread).map(|_| ()))
}

/// `GetThreadPriorityBoost`: disabled.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetThreadPriorityBoost(thread: RawHandle, disabled: Out<'_, i32>) -> i32 {
    guard_bool(|| {
        thread_number(thread)?;
        disabled.required(ERROR_NOACCESS)?.put(1);
        Ok(())
    })
}

/// `SetProcessPriorityBoost`: as for threads.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetProcessPriorityBoost(process: RawHandle, _disable: i32) -> i32 {
    guard_bool(|| process::own(process))
}

/// `GetProcessPriorityBoost`: disabled.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetProcessPriorityBoost(process: RawHandle, disabled: Out<'_, i32>) -> i32 {
    guard_bool(|| {
        process::own(process)?;
        disabled.required(ERROR_NOACCESS)?.put(1);
        Ok(())
    })
}
