//! `TlsAlloc`, `FlsAlloc` and related functions. There are no fibers: each thread counts as one.

use crate::boundary::{guard_bool_quick, guard_quick};
use crate::error::*;
use crate::object::slots::{self, FlsCallback};
use std::ffi::c_void;
use std::ptr::{null_mut, with_exposed_provenance_mut};

/// `TLS_OUT_OF_INDEXES`, `FLS_OUT_OF_INDEXES`.
const OUT_OF_INDEXES: u32 = u32::MAX;

fn allocated(index: Option<usize>) -> u32 {
    index.map_or_else(
        || {
            set_last_error(ERROR_NO_MORE_ITEMS);
            OUT_OF_INDEXES
        },
        |index| index as u32,
    )
}

/// NULL may be a value, so the last error is always set.
fn value(value: Option<usize>) -> *mut c_void {
    set_last_error(if value.is_some() { ERROR_SUCCESS } else { ERROR_INVALID_PARAMETER });
    value.map_or(null_mut(), with_exposed_provenance_mut)
}

fn done(done: bool) -> Result<(), u32> {
    if done { Ok(()) } else { Err(ERROR_INVALID_PARAMETER) }
}

/// `TlsAlloc`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_TlsAlloc() -> u32 {
    guard_quick(OUT_OF_INDEXES, || allocated(slots::tls_alloc()))
}

/// `TlsFree`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_TlsFree(index: u32) -> i32 {
    guard_bool_quick(|| done(slots::tls_free(index as usize)))
}

/// `TlsGetValue`: checks only the range of the index, and clears the last error.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_TlsGetValue(index: u32) -> *mut c_void {
    guard_quick(null_mut(), || value(slots::tls_get(index as usize)))
}

/// `TlsSetValue`: checks only the range of the index.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_TlsSetValue(index: u32, value: *mut c_void) -> i32 {
    guard_bool_quick(|| done(slots::tls_set(index as usize, value.expose_provenance())))
}

/// `FlsAlloc`.
///
/// # Safety
/// The callback must be safe to call on any thread, with the values that are set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_FlsAlloc(callback: Option<FlsCallback>) -> u32 {
    guard_quick(OUT_OF_INDEXES, || allocated(slots::fls_alloc(callback)))
}

/// `FlsFree`: calls the callback for the values of all threads, on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_FlsFree(index: u32) -> i32 {
    guard_bool_quick(|| done(slots::fls_free(index as usize)))
}

/// `FlsGetValue`: clears the last error.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_FlsGetValue(index: u32) -> *mut c_void {
    guard_quick(null_mut(), || value(slots::fls_get(index as usize)))
}

/// `FlsSetValue`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_FlsSetValue(index: u32, value: *mut c_void) -> i32 {
    guard_bool_quick(|| done(slots::fls_set(index as usize, value.expose_provenance())))
}
