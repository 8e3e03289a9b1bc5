//! Overlapped operations: results, cancellation, callbacks.

use super::wait::{WAIT_IO_COMPLETION, ndw_WaitForSingleObjectEx};
use crate::boundary::{guard, guard_bool, put};
use crate::error::*;
use crate::io::apc::Apcs;
use crate::io::pool::{self, Callback};
use crate::io::sys::{Deadline, thread_id};
use crate::io::{
    CancelScope, File, Overlapped, SKIP_PORT_ON_SUCCESS, SKIP_SET_EVENT, STATUS_PENDING, STATUS_SUCCESS,
    file_of, result_before,
};
use crate::object::RawHandle;
use std::sync::atomic::Ordering;

/// The status of an operation that the library has not started: the program completes it by setting the event, or the object of
/// `handle` in its place. If it still says pending then, it has succeeded.
///
/// # Safety
/// `overlapped` must be valid.
unsafe fn result_of_stranger(
    handle: RawHandle,
    overlapped: *const Overlapped,
    millis: u32,
    alertable: i32,
) -> Result<i32, u32> {
    // SAFETY: valid as the caller promises; the field is atomic, so that others may change it meanwhile.
    let status = || unsafe { (*overlapped).internal.load(Ordering::Acquire) } as i32;
    // It may have been the library's, and have completed meanwhile.
    if millis == 0 || status() != STATUS_PENDING {
        return Ok(status());
    }
    // SAFETY: valid as the caller promises, and the program has set the event, which nobody changes.
    let event = unsafe { (*overlapped).event };
    if event == RawHandle::NULL
        && let Some(file) = File::from_handle(handle)
        && file.own_signal().is_none()
    {
        // The file's requests set nothing. One of them may be completing just now.
        // SAFETY: valid as the caller promises.
        return unsafe { waited_result(&file, overlapped, millis, alertable) };
    }
    let waited_for = if event == RawHandle::NULL { handle } else { event };
    match ndw_WaitForSingleObjectEx(waited_for, millis, alertable) {
        0 if status() == STATUS_PENDING => Ok(STATUS_SUCCESS),
        0 => Ok(status()),
        WAIT_TIMEOUT => Ok(STATUS_PENDING),
        WAIT_IO_COMPLETION => Err(WAIT_IO_COMPLETION),
        _ => Err(last_error()),
    }
}

/// The status of a file's operation; that of asynchronous procedure calls, if they have ended the wait.
///
/// # Safety
/// `overlapped` must be valid.
unsafe fn waited_result(
    file: &File,
    overlapped: *const Overlapped,
    millis: u32,
    alertable: i32,
) -> Result<i32, u32> {
    let apcs = (alertable != 0).then(Apcs::current);
    // SAFETY: the OVERLAPPED stays valid during the wait, as the caller promises.
    let status = unsafe { result_before(file, overlapped, Deadline::after_millis(millis), apcs.as_deref()) };
    status.ok_or_else(|| {
        apcs.iter().for_each(|apcs| _ = apcs.run());
        WAIT_IO_COMPLETION
    })
}

/// # Safety
/// `overlapped` must be valid; `bytes` null or valid for a write.
unsafe fn overlapped_result(
    file: RawHandle,
    overlapped: *const Overlapped,
    bytes: *mut u32,
    millis: u32,
    unfinished: u32,
    alertable: i32,
) -> i32 {
    guard_bool(|| {
        if overlapped.is_null() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        // SAFETY: not NULL, hence valid as the caller promises; the field is atomic.
        let now = unsafe { (*overlapped).internal.load(Ordering::Acquire) } as i32;
        let status = if now == STATUS_PENDING {
            // SAFETY: not NULL, hence valid as the caller promises; whether a file has it is only looked up.
            match unsafe { file_of(overlapped) } {
                // SAFETY: not NULL, hence valid until the wait is over, as the caller promises.
                Some(file) => unsafe { waited_result(&file, overlapped, millis, alertable) }?,
                // SAFETY: not NULL, hence valid until the wait is over, as the caller promises.
                None => unsafe { result_of_stranger(file, overlapped, millis, alertable) }?,
            }
        } else {
            now
        };
        if status == STATUS_PENDING {
            return Err(unfinished);
        }
        // SAFETY: that of a request that has completed.
        let transferred = unsafe { &(*overlapped).internal_high }.load(Ordering::Relaxed);
        // SAFETY: NULL or writable.
        unsafe { put(bytes, transferred as u32) };
        if status < 0 { Err(failed_status_to_win32(status)) } else { Ok(()) }
    })
}

/// `GetOverlappedResult`.
///
/// # Safety
/// `overlapped` must be that of a started operation; `bytes` null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetOverlappedResult(
    file: RawHandle,
    overlapped: *const Overlapped,
    bytes: *mut u32,
    wait: i32,
) -> i32 {
    let millis = if wait != 0 { u32::MAX } else { 0 };
    // SAFETY: the OVERLAPPED is NULL, which is refused, or that of a started operation, and `bytes` is NULL or writable, as
    // this function asks.
    unsafe { overlapped_result(file, overlapped, bytes, millis, ERROR_IO_INCOMPLETE, 0) }
}

/// `GetOverlappedResultEx`: an alertable wait runs asynchronous procedure calls, and fails with `WAIT_IO_COMPLETION`.
///
/// # Safety
/// As for [`ndw_GetOverlappedResult`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetOverlappedResultEx(
    file: RawHandle,
    overlapped: *const Overlapped,
    bytes: *mut u32,
    millis: u32,
    alertable: i32,
) -> i32 {
    let unfinished = if millis == 0 { ERROR_IO_INCOMPLETE } else { WAIT_TIMEOUT };
    // SAFETY: the OVERLAPPED is NULL, which is refused, or that of a started operation, and `bytes` is NULL or writable, as
    // this function asks.
    unsafe { overlapped_result(file, overlapped, bytes, millis, unfinished, alertable) }
}

/// `BindIoCompletionCallback`: completions of the file call `callback` on a thread of the library.
///
/// # Safety
/// `callback` must be safe to call on any thread for as long as the file has requests.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_BindIoCompletionCallback(
    file: RawHandle,
    callback: Option<Callback>,
    _flags: u32,
) -> i32 {
    guard_bool(|| {
        let file = File::from_handle(file).ok_or(ERROR_INVALID_HANDLE)?;
        let callback = callback.ok_or(ERROR_INVALID_PARAMETER)?;
        file.bind(&pool::queue().map_err(|error| io_to_win32(&error))?, callback as usize)
    })
}

/// `CancelIoEx`: cancels the request on `overlapped`, or all requests of the file.
///
/// # Safety
/// None beyond C's: `overlapped` is only compared.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CancelIoEx(file: RawHandle, overlapped: *mut Overlapped) -> i32 {
    guard(0, || {
        let Some(file) = File::from_handle(file) else {
            set_last_error(ERROR_INVALID_HANDLE);
            return 0;
        };
        let cancelled = file.cancel(if overlapped.is_null() {
            CancelScope::All
        } else {
            CancelScope::Overlapped(overlapped)
        });
        if cancelled == 0 {
            set_last_error(ERROR_NOT_FOUND);
        }
        (cancelled > 0).into()
    })
}

/// `CancelIo`: cancels the file's requests that the calling thread has started. Succeeds if there are none.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CancelIo(file: RawHandle) -> i32 {
    guard(0, || match File::from_handle(file) {
        Some(file) => {
            file.cancel(CancelScope::Thread(thread_id()));
            1
        }
        None => {
            set_last_error(ERROR_INVALID_HANDLE);
            0
        }
    })
}

/// `SetFileCompletionNotificationModes`: modes can be added, not removed.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetFileCompletionNotificationModes(file: RawHandle, modes: u8) -> i32 {
    guard(0, || match File::from_handle(file) {
        Some(_) if modes & !(SKIP_PORT_ON_SUCCESS | SKIP_SET_EVENT) != 0 => {
            set_last_error(ERROR_INVALID_PARAMETER);
            0
        }
        Some(file) => {
            file.add_notification_modes(modes);
            1
        }
        None => {
            set_last_error(ERROR_INVALID_HANDLE);
            0
        }
    })
}
