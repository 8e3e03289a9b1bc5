//! Waiting for objects.

use super::{RawHandle, guard, handle};
use crate::error::*;
use crate::io::signal::{Signal, wait_all, wait_any};
use crate::io::sys::Deadline;
use std::sync::Arc;

/// `WAIT_OBJECT_0`.
const WAIT_OBJECT_0: u32 = 0;
/// `WAIT_FAILED`.
const WAIT_FAILED: u32 = u32::MAX;
/// `MAXIMUM_WAIT_OBJECTS`.
const MAXIMUM_WAIT_OBJECTS: usize = 64;

fn failed(code: u32) -> u32 {
    set_last_error(code);
    WAIT_FAILED
}

/// What a wait for one object waits for. Here pseudo handles will do: that of the process, which does not end before
/// the wait does, and that of the thread.
fn signal(handle: RawHandle) -> Result<Arc<Signal>, u32> {
    if handle == RawHandle::INVALID {
        return Ok(Signal::new(false, false));
    }
    handle::resolve(handle).and_then(|object| object.signal()).ok_or(ERROR_INVALID_HANDLE)
}

/// Waits for one object.
fn wait_one(handle: RawHandle, millis: u32) -> u32 {
    match signal(handle) {
        Ok(signal) => match wait_any(&[signal], Deadline::after_millis(millis)) {
            Some(_) => WAIT_OBJECT_0,
            None => WAIT_TIMEOUT,
        },
        Err(code) => failed(code),
    }
}

fn wait_many(handles: &[RawHandle], all: bool, millis: u32) -> u32 {
    let signal = |&handle| handle::get(handle).and_then(|object| object.signal());
    let Some(signals) = handles.iter().map(signal).collect::<Option<Vec<_>>>() else {
        return failed(ERROR_INVALID_HANDLE);
    };
    let deadline = Deadline::after_millis(millis);
    if !all {
        return wait_any(&signals, deadline).map_or(WAIT_TIMEOUT, |index| WAIT_OBJECT_0 + index as u32);
    }
    let repeated = |(at, signal)| signals[..at].iter().any(|earlier| Arc::ptr_eq(earlier, signal));
    if signals.iter().enumerate().any(repeated) {
        return failed(ERROR_INVALID_PARAMETER);
    }
    if wait_all(&signals, deadline) { WAIT_OBJECT_0 } else { WAIT_TIMEOUT }
}

/// `WaitForSingleObject`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WaitForSingleObject(handle: RawHandle, millis: u32) -> u32 {
    guard(WAIT_FAILED, || wait_one(handle, millis))
}

/// `WaitForSingleObjectEx`. There are no asynchronous procedure calls, so an alertable wait is like any other.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WaitForSingleObjectEx(handle: RawHandle, millis: u32, _alertable: i32) -> u32 {
    guard(WAIT_FAILED, || wait_one(handle, millis))
}

/// `WaitForMultipleObjects`.
///
/// # Safety
/// `handles` must point to `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WaitForMultipleObjects(
    count: u32,
    handles: *const RawHandle,
    all: i32,
    millis: u32,
) -> u32 {
    guard(WAIT_FAILED, || {
        let count = count as usize;
        if count == 0 || count > MAXIMUM_WAIT_OBJECTS || handles.is_null() {
            return failed(ERROR_INVALID_PARAMETER);
        }
        // SAFETY: the caller vouches for the array.
        wait_many(unsafe { std::slice::from_raw_parts(handles, count) }, all != 0, millis)
    })
}

/// `WaitForMultipleObjectsEx`: see [`ndw_WaitForSingleObjectEx`].
///
/// # Safety
/// As for [`ndw_WaitForMultipleObjects`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WaitForMultipleObjectsEx(
    count: u32,
    handles: *const RawHandle,
    all: i32,
    millis: u32,
    _alertable: i32,
) -> u32 {
    // SAFETY: the caller vouches for the array.
    unsafe { ndw_WaitForMultipleObjects(count, handles, all, millis) }
}

/// `SignalObjectAndWait`, for events. Setting and waiting are two steps, as they in effect are on Windows too.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SignalObjectAndWait(
    event: RawHandle,
    wait: RawHandle,
    millis: u32,
    _alertable: i32,
) -> u32 {
    guard(WAIT_FAILED, || match handle::get(event) {
        Some(super::Object::Event(event)) => match signal(wait) {
            Ok(signal) => {
                event.set();
                wait_any(&[signal], Deadline::after_millis(millis)).map_or(WAIT_TIMEOUT, |_| WAIT_OBJECT_0)
            }
            Err(code) => failed(code),
        },
        _ => failed(ERROR_INVALID_HANDLE),
    })
}
