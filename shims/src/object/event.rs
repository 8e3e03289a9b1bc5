//! Events. Names are not supported: they serve to share events between processes.

use super::{Object, RawHandle, guard, guard_bool, handle};
use crate::error::*;
use crate::io::signal::Signal;
use std::ffi::{c_char, c_void};
use std::sync::Arc;

const CREATE_EVENT_MANUAL_RESET: u32 = 1;
const CREATE_EVENT_INITIAL_SET: u32 = 2;

fn create(flags: u32, named: bool) -> RawHandle {
    guard(RawHandle::NULL, || {
        let failed = |code| {
            set_last_error(code);
            RawHandle::NULL
        };
        if flags & !(CREATE_EVENT_MANUAL_RESET | CREATE_EVENT_INITIAL_SET) != 0 {
            return failed(ERROR_INVALID_PARAMETER);
        }
        if named {
            return failed(ERROR_NOT_SUPPORTED);
        }
        let signal =
            Signal::new(flags & CREATE_EVENT_MANUAL_RESET == 0, flags & CREATE_EVENT_INITIAL_SET != 0);
        match handle::open(Object::Event(signal)) {
            RawHandle::NULL => failed(ERROR_NO_SYSTEM_RESOURCES),
            handle => {
                set_last_error(ERROR_SUCCESS);
                handle
            }
        }
    })
}

fn get(handle: RawHandle) -> Result<Arc<Signal>, u32> {
    match handle::get(handle) {
        Some(Object::Event(signal)) => Ok(signal),
        _ => Err(ERROR_INVALID_HANDLE),
    }
}

/// Whether a name asks for a named object: an empty one does not.
///
/// # Safety
/// `name` is NULL or terminated.
unsafe fn is_named<T: Copy + Default + PartialEq>(name: *const T) -> bool {
    // SAFETY: a terminated string has a unit.
    !name.is_null() && unsafe { name.read() } != T::default()
}

fn flags(manual_reset: i32, initial: i32) -> u32 {
    let manual = if manual_reset != 0 { CREATE_EVENT_MANUAL_RESET } else { 0 };
    manual | if initial != 0 { CREATE_EVENT_INITIAL_SET } else { 0 }
}

/// `CreateEventW`. There are no named events.
///
/// # Safety
/// The name must be null or terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CreateEventW(
    _attributes: *const c_void,
    manual_reset: i32,
    initial: i32,
    name: *const i32,
) -> RawHandle {
    // SAFETY: the function's contract.
    create(flags(manual_reset, initial), unsafe { is_named(name) })
}

/// `CreateEventA`. There are no named events.
///
/// # Safety
/// The name must be null or terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CreateEventA(
    _attributes: *const c_void,
    manual_reset: i32,
    initial: i32,
    name: *const c_char,
) -> RawHandle {
    // SAFETY: the function's contract.
    create(flags(manual_reset, initial), unsafe { is_named(name) })
}

/// `CreateEventExW`. There are no named events.
///
/// # Safety
/// The name must be null or terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CreateEventExW(
    _attributes: *const c_void,
    name: *const i32,
    flags: u32,
    _access: u32,
) -> RawHandle {
    // SAFETY: the function's contract.
    create(flags, unsafe { is_named(name) })
}

/// `CreateEventExA`. There are no named events.
///
/// # Safety
/// The name must be null or terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CreateEventExA(
    _attributes: *const c_void,
    name: *const c_char,
    flags: u32,
    _access: u32,
) -> RawHandle {
    // SAFETY: the function's contract.
    create(flags, unsafe { is_named(name) })
}

/// `SetEvent`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetEvent(event: RawHandle) -> i32 {
    guard_bool(|| get(event).map(|signal| signal.set()))
}

/// `ResetEvent`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_ResetEvent(event: RawHandle) -> i32 {
    guard_bool(|| get(event).map(|signal| signal.reset()))
}

/// Linux addition: a descriptor that is readable while the event is set, for poll loops.
///
/// It belongs to the event: do not read or close it, and `dup` it if it must outlive the event. It shows the
/// event's state and uses nothing up: take an auto-reset event with `WaitForSingleObject(event, 0)`. Gives -1
/// and sets the last error when `event` is no event or descriptors have run out.
#[unsafe(no_mangle)]
pub extern "C" fn ndcompat_event_fd(event: RawHandle) -> i32 {
    guard(-1, || {
        let fd = get(event).and_then(|signal| {
            signal.fd().map_err(|error| errno_to_win32(error.raw_os_error().unwrap_or(libc::EMFILE)))
        });
        fd.unwrap_or_else(|code| {
            set_last_error(code);
            -1
        })
    })
}
