//! `GetStdHandle` and `SetStdHandle`.

use crate::boundary::{guard, guard_bool};
use crate::error::*;
use crate::files::disk::DiskFile;
use crate::object::{Object, RawHandle};
use parking_lot::Mutex;
use std::sync::Arc;

/// The standard handles, opened on first use.
static STANDARD: Mutex<[Option<RawHandle>; 3]> = Mutex::new([None; 3]);

/// `STD_INPUT_HANDLE` is -10, and so on.
fn standard_index(number: u32) -> Result<usize, u32> {
    match (number as i32).wrapping_neg().wrapping_sub(10) {
        index @ 0..=2 => Ok(index as usize),
        _ => Err(ERROR_INVALID_HANDLE),
    }
}

/// Whether the handle is that of standard input.
pub(super) fn is_input(handle: RawHandle) -> bool {
    STANDARD.lock()[0] == Some(handle)
}

/// `GetStdHandle`: NULL if the process was started without that descriptor.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetStdHandle(number: u32) -> RawHandle {
    guard(RawHandle::INVALID, || {
        let get = || {
            let index = standard_index(number)?;
            let mut standard = STANDARD.lock();
            if let Some(handle) = standard[index] {
                return Ok(handle);
            }
            let Some(file) = DiskFile::standard(index as i32) else { return Ok(RawHandle::NULL) };
            let handle = crate::object::open(Object::Disk(Arc::new(file)))?;
            standard[index] = Some(handle);
            Ok(handle)
        };
        get().unwrap_or_else(|code| {
            set_last_error(code);
            RawHandle::INVALID
        })
    })
}

/// `SetStdHandle`: changes what `GetStdHandle` returns, not the C library's streams.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetStdHandle(number: u32, handle: RawHandle) -> i32 {
    guard_bool(|| {
        STANDARD.lock()[standard_index(number)?] = Some(handle);
        Ok(())
    })
}
