//! Waiting for objects.

use super::handle::{get, resolve};
use crate::boundary::guard_quick;
use crate::error::*;
use crate::io::apc::Apcs;
use crate::io::signal::{self, Outcome, Signal};
use crate::io::sys::Deadline;
use crate::object::{Object, RawHandle};
use std::sync::Arc;

/// `WAIT_OBJECT_0`.
const WAIT_OBJECT_0: u32 = 0;
/// `WAIT_ABANDONED_0`.
const WAIT_ABANDONED_0: u32 = 0x80;
/// `WAIT_IO_COMPLETION`.
pub(super) const WAIT_IO_COMPLETION: u32 = 0xC0;
/// `WAIT_FAILED`.
const WAIT_FAILED: u32 = u32::MAX;
/// `MAXIMUM_WAIT_OBJECTS`.
const MAXIMUM_WAIT_OBJECTS: usize = 64;

/// The object of a wait for one, and its signal. Pseudo handles are allowed there: the process's, which is never signalled during
/// the wait, and the thread's. The object is held during the wait: a timer whose last handle is closed meanwhile still goes off.
fn waited_for(handle: RawHandle) -> Result<(Option<Object>, Arc<Signal>), u32> {
    if handle == RawHandle::INVALID {
        return Ok((None, Signal::new(false, false)));
    }
    let object = resolve(handle).ok_or(ERROR_INVALID_HANDLE)?;
    let signal = object.signal().ok_or(ERROR_INVALID_HANDLE)?;
    Ok((Some(object), signal))
}

/// Waits, and runs the asynchronous procedure calls that end the wait.
pub(super) fn wait(signals: &[Arc<Signal>], all: bool, millis: u32, alertable: i32) -> u32 {
    let deadline = Deadline::after_millis(millis);
    let apcs = (alertable != 0).then(Apcs::current);
    match signal::wait(signals, all, apcs.as_deref(), deadline) {
        Outcome::Taken(taken) => {
            (if taken.abandoned { WAIT_ABANDONED_0 } else { WAIT_OBJECT_0 }) + taken.index as u32
        }
        Outcome::Apc => {
            apcs.iter().for_each(|apcs| {
                apcs.run();
            });
            WAIT_IO_COMPLETION
        }
        Outcome::TimedOut => WAIT_TIMEOUT,
    }
}

fn wait_many(handles: &[RawHandle], all: bool, millis: u32, alertable: i32) -> Result<u32, u32> {
    // Held during the wait, as that of a wait for one.
    let objects = handles.iter().map(|&handle| get(handle)).collect::<Option<Vec<_>>>();
    let objects = objects.ok_or(ERROR_INVALID_HANDLE)?;
    let signals =
        objects.iter().map(Object::signal).collect::<Option<Vec<_>>>().ok_or(ERROR_INVALID_HANDLE)?;
    let repeated = |(at, signal)| signals[..at].iter().any(|earlier| Arc::ptr_eq(earlier, signal));
    if all && signals.iter().enumerate().any(repeated) {
        return Err(ERROR_INVALID_PARAMETER);
    }
    Ok(wait(&signals, all, millis, alertable))
}

/// For entry points that return the outcome of a wait: an error becomes the last error.
fn guard_wait(body: impl FnOnce() -> Result<u32, u32>) -> u32 {
    guard_quick(WAIT_FAILED, || {
        body().unwrap_or_else(|code| {
            set_last_error(code);
            WAIT_FAILED
        })
    })
}

/// `WaitForSingleObject`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WaitForSingleObject(handle: RawHandle, millis: u32) -> u32 {
    ndw_WaitForSingleObjectEx(handle, millis, 0)
}

/// `WaitForSingleObjectEx`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WaitForSingleObjectEx(handle: RawHandle, millis: u32, alertable: i32) -> u32 {
    guard_wait(|| {
        let (_held, signal) = waited_for(handle)?;
        Ok(wait(&[signal], false, millis, alertable))
    })
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
    // SAFETY: `handles` points to `count` handles, as this function asks.
    unsafe { ndw_WaitForMultipleObjectsEx(count, handles, all, millis, 0) }
}

/// `WaitForMultipleObjectsEx`.
///
/// # Safety
/// As for [`ndw_WaitForMultipleObjects`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WaitForMultipleObjectsEx(
    count: u32,
    handles: *const RawHandle,
    all: i32,
    millis: u32,
    alertable: i32,
) -> u32 {
    guard_wait(|| {
        let count = count as usize;
        if count == 0 || count > MAXIMUM_WAIT_OBJECTS || handles.is_null() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        // SAFETY: not NULL, hence an array of `count` handles, as this function asks.
        let handles = unsafe { std::slice::from_raw_parts(handles, count) };
        wait_many(handles, all != 0, millis, alertable)
    })
}

/// `SignalObjectAndWait`: sets an event, or releases a semaphore or a mutex once, and waits. The two steps are not atomic, as in
/// effect on Windows, too.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SignalObjectAndWait(
    object: RawHandle,
    awaited: RawHandle,
    millis: u32,
    alertable: i32,
) -> u32 {
    guard_wait(|| {
        let object = get(object).ok_or(ERROR_INVALID_HANDLE)?;
        let (_held, signal) = waited_for(awaited)?;
        match object {
            Object::Event(event) => event.set(),
            Object::Semaphore(semaphore) => drop(semaphore.release(1).ok_or(ERROR_TOO_MANY_POSTS)?),
            Object::Mutex(mutex) if mutex.unlock() => {}
            Object::Mutex(_) => return Err(ERROR_NOT_OWNER),
            _ => return Err(ERROR_INVALID_HANDLE),
        }
        Ok(wait(&[signal], false, millis, alertable))
    })
}
