//! Semaphores.

use crate::arguments::{Out, Text};
use crate::boundary::{guard_bool_quick, guard_handle};
use crate::error::*;
use crate::io::signal::Signal;
use crate::object::{self, Object, RawHandle, create_named, handle};
use crate::text::{Unit, narrow_and_wide};
use std::ffi::c_void;
use std::sync::Arc;

fn pick(object: Object) -> Option<Arc<Signal>> {
    if let Object::Semaphore(signal) = object { Some(signal) } else { None }
}

fn create<T: Unit>(_attributes: *const c_void, initial: i32, most: i32, name: Text<'_, T>) -> RawHandle {
    guard_handle(|| {
        if initial < 0 || most <= 0 || initial > most {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let make = || Signal::semaphore(initial as u32, most as u32);
        create_named(name.read(), pick, Object::Semaphore, make)
    })
}

fn create_ex<T: Unit>(
    attributes: *const c_void,
    initial: i32,
    most: i32,
    name: Text<'_, T>,
    _flags: u32,
    _access: u32,
) -> RawHandle {
    create(attributes, initial, most, name)
}

fn open_named<T: Unit>(_access: u32, _inherit: i32, name: Text<'_, T>) -> RawHandle {
    guard_handle(|| object::open_named(name.read(), pick, Object::Semaphore))
}

narrow_and_wide! {
    "`CreateSemaphore`."
    ndw_CreateSemaphoreA ndw_CreateSemaphoreW =
        create(attributes: *const c_void, initial: i32, most: i32, name: Text<'_, T>) -> RawHandle;
    "`CreateSemaphoreEx`. The flags are reserved."
    ndw_CreateSemaphoreExA ndw_CreateSemaphoreExW = create_ex(
        attributes: *const c_void,
        initial: i32,
        most: i32,
        name: Text<'_, T>,
        flags: u32,
        access: u32,
    ) -> RawHandle;
    "`OpenSemaphore`."
    ndw_OpenSemaphoreA ndw_OpenSemaphoreW = open_named(access: u32, inherit: i32, name: Text<'_, T>) -> RawHandle;
}

/// `ReleaseSemaphore`: changes nothing when it fails.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_ReleaseSemaphore(semaphore: RawHandle, more: i32, before: Out<'_, i32>) -> i32 {
    guard_bool_quick(|| {
        if more <= 0 {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let semaphore = handle::get(semaphore).and_then(pick).ok_or(ERROR_INVALID_HANDLE)?;
        let count = semaphore.release(more as u32).ok_or(ERROR_TOO_MANY_POSTS)?;
        before.put(count as i32);
        Ok(())
    })
}
