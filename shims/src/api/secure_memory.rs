//! `AddSecureMemoryCacheCallback`.

use crate::boundary::guard_bool;
use crate::error::*;
use crate::memory::secured::{self, Callback};
use crate::memory::watch_all_memory;

/// `AddSecureMemoryCacheCallback`: the function is called before memory that is registered with an adapter is freed or changes
/// its protection, by any code in the process.
///
/// FALSE with `ERROR_INVALID_PARAMETER` for NULL, and where the library cannot intercept the release of memory: a program must
/// not use a registration cache then.
///
/// # Safety
/// The function may be called until it is removed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_AddSecureMemoryCacheCallback(callback: Option<Callback>) -> i32 {
    guard_bool(|| {
        let callback = callback.ok_or(ERROR_INVALID_PARAMETER)?;
        watch_all_memory()?;
        secured::add(callback)
    })
}

/// `RemoveSecureMemoryCacheCallback`. The function may still be running on another thread.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_RemoveSecureMemoryCacheCallback(callback: Option<Callback>) -> i32 {
    guard_bool(|| secured::remove(callback.ok_or(ERROR_INVALID_PARAMETER)?))
}
