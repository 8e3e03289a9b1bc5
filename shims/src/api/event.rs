//! Events.

use crate::arguments::Text;
use crate::boundary::{guard, guard_bool_quick, guard_handle};
use crate::error::*;
use crate::io::signal::Signal;
use crate::object::{self, Object, RawHandle, create_named, handle};
use crate::text::{Unit, Wchar, narrow_and_wide};
use std::ffi::c_void;
use std::sync::Arc;

const CREATE_EVENT_MANUAL_RESET: u32 = 1;
const CREATE_EVENT_INITIAL_SET: u32 = 2;

fn pick(object: Object) -> Option<Arc<Signal>> {
    if let Object::Event(signal) = object { Some(signal) } else { None }
}

fn get(handle: RawHandle) -> Result<Arc<Signal>, u32> {
    handle::get(handle).and_then(pick).ok_or(ERROR_INVALID_HANDLE)
}

fn create_ex<T: Unit>(_attributes: *const c_void, name: Text<'_, T>, flags: u32, _access: u32) -> RawHandle {
    guard_handle(|| {
        if flags & !(CREATE_EVENT_MANUAL_RESET | CREATE_EVENT_INITIAL_SET) != 0 {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let (manual, set) = (flags & CREATE_EVENT_MANUAL_RESET != 0, flags & CREATE_EVENT_INITIAL_SET != 0);
        create_named(name.read(), pick, Object::Event, || Signal::new(!manual, set))
    })
}

fn create<T: Unit>(
    attributes: *const c_void,
    manual_reset: i32,
    initial: i32,
    name: Text<'_, T>,
) -> RawHandle {
    let manual = if manual_reset != 0 { CREATE_EVENT_MANUAL_RESET } else { 0 };
    let set = if initial != 0 { CREATE_EVENT_INITIAL_SET } else { 0 };
    create_ex(attributes, name, manual | set, 0)
}

fn open<T: Unit>(_access: u32, _inherit: i32, name: Text<'_, T>) -> RawHandle {
    guard_handle(|| object::open_named(name.read(), pick, Object::Event))
}

narrow_and_wide! {
    "`CreateEvent`."
    ndw_CreateEventA ndw_CreateEventW =
        create(attributes: *const c_void, manual_reset: i32, initial: i32, name: Text<'_, T>) -> RawHandle;
    "`CreateEventEx`."
    ndw_CreateEventExA ndw_CreateEventExW =
        create_ex(attributes: *const c_void, name: Text<'_, T>, flags: u32, access: u32) -> RawHandle;
    "`OpenEvent`."
    ndw_OpenEventA ndw_OpenEventW = open(access: u32, inherit: i32, name: Text<'_, T>) -> RawHandle;
}

/// `PulseEvent`: releases the waiting threads, or one of them, and leaves the event reset.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_PulseEvent(event: RawHandle) -> i32 {
    guard_bool_quick(|| get(event).map(|signal| signal.pulse()))
}

/// `SetEvent`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetEvent(event: RawHandle) -> i32 {
    guard_bool_quick(|| get(event).map(|signal| signal.set()))
}

/// `ResetEvent`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_ResetEvent(event: RawHandle) -> i32 {
    guard_bool_quick(|| get(event).map(|signal| signal.reset()))
}

/// Linux addition: a descriptor that is readable while the event is set, for poll loops.
///
/// It belongs to the event: do not read or close it, and `dup` it if it must outlive the event. It only shows the state: reset an
/// auto-reset event with `WaitForSingleObject(event, 0)`. Returns -1 and sets the last error if `event` is not an event or
/// descriptors have run out.
#[unsafe(no_mangle)]
pub extern "C" fn ndcompat_event_fd(event: RawHandle) -> i32 {
    guard(-1, || {
        let fd = get(event).and_then(|signal| signal.fd().map_err(|error| io_to_win32(&error)));
        fd.unwrap_or_else(|code| {
            set_last_error(code);
            -1
        })
    })
}

/// `WSACreateEvent`: a manual-reset event. The rest of the family are the functions for any event.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WSACreateEvent() -> RawHandle {
    create::<Wchar>(std::ptr::null(), 1, 0, Text::NULL)
}
