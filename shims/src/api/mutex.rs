//! Mutexes: owned by a thread, which may take them again; abandoned when it ends.

use crate::arguments::Text;
use crate::boundary::{guard_bool_quick, guard_handle};
use crate::error::*;
use crate::futex::Deadline;
use crate::io::signal::{Signal, wait_any};
use crate::object::{self, Object, RawHandle, create_named, handle};
use crate::text::{Unit, narrow_and_wide};
use std::ffi::c_void;
use std::sync::Arc;

const CREATE_MUTEX_INITIAL_OWNER: u32 = 1;

fn pick(object: Object) -> Option<Arc<Signal>> {
    if let Object::Mutex(signal) = object { Some(signal) } else { None }
}

fn create_ex<T: Unit>(_attributes: *const c_void, name: Text<'_, T>, flags: u32, _access: u32) -> RawHandle {
    guard_handle(|| {
        if flags & !CREATE_MUTEX_INITIAL_OWNER != 0 {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let make = || {
            let mutex = Signal::mutex();
            if flags & CREATE_MUTEX_INITIAL_OWNER != 0 {
                // Cannot block: the mutex is new.
                wait_any(std::slice::from_ref(&mutex), Deadline::Now);
            }
            mutex
        };
        create_named(name.read(), pick, Object::Mutex, make)
    })
}

fn create<T: Unit>(attributes: *const c_void, owned: i32, name: Text<'_, T>) -> RawHandle {
    create_ex(attributes, name, if owned != 0 { CREATE_MUTEX_INITIAL_OWNER } else { 0 }, 0)
}

fn open_named<T: Unit>(_access: u32, _inherit: i32, name: Text<'_, T>) -> RawHandle {
    guard_handle(|| object::open_named(name.read(), pick, Object::Mutex))
}

narrow_and_wide! {
    "`CreateMutex`. A mutex that exists is not taken."
    ndw_CreateMutexA ndw_CreateMutexW =
        create(attributes: *const c_void, owned: i32, name: Text<'_, T>) -> RawHandle;
    "`CreateMutexEx`."
    ndw_CreateMutexExA ndw_CreateMutexExW =
        create_ex(attributes: *const c_void, name: Text<'_, T>, flags: u32, access: u32) -> RawHandle;
    "`OpenMutex`."
    ndw_OpenMutexA ndw_OpenMutexW = open_named(access: u32, inherit: i32, name: Text<'_, T>) -> RawHandle;
}

/// `ReleaseMutex`: by the owner only, once for each wait.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_ReleaseMutex(mutex: RawHandle) -> i32 {
    guard_bool_quick(|| {
        let mutex = handle::get(mutex).and_then(pick).ok_or(ERROR_INVALID_HANDLE)?;
        if mutex.unlock() { Ok(()) } else { Err(ERROR_NOT_OWNER) }
    })
}
