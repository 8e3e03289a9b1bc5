//! `IND2MemoryRegion`.

use crate::com::{HResult, Interface, Object, Table, boundary};
use crate::guid::{Guid, IID_IND2MemoryRegion, IID_IND2Overlapped};
use crate::overlapped::{OverlappedInterface, OverlappedMethods};
use ndcompat::Status;
use std::ffi::c_void;
use std::sync::Arc;
use win32::io::{File, Overlapped};

pub(crate) struct MemoryRegion(pub Arc<ndcompat::MemoryRegion>);

#[repr(C)]
pub(crate) struct Methods {
    pub overlapped: OverlappedMethods,
    pub register: unsafe extern "C" fn(*mut c_void, *const c_void, usize, u32, *mut Overlapped) -> HResult,
    pub deregister: unsafe extern "C" fn(*mut c_void, *mut Overlapped) -> HResult,
    pub get_local_token: unsafe extern "C" fn(*mut c_void) -> u32,
    pub get_remote_token: unsafe extern "C" fn(*mut c_void) -> u32,
}

impl Interface for MemoryRegion {
    type Methods = Methods;
    const TABLE: &'static Table<Methods> = &Table::new(Methods {
        overlapped: Object::<Self>::OVERLAPPED,
        register,
        deregister,
        get_local_token,
        get_remote_token,
    });
    const IDS: &'static [&'static Guid] = &[&IID_IND2MemoryRegion, &IID_IND2Overlapped];

    fn released(&self) {
        self.0.cancel();
    }
}

impl OverlappedInterface for MemoryRegion {
    fn file(&self) -> &File {
        self.0.file()
    }

    fn cancel(&self) {
        self.0.clone().cancel();
    }
}

unsafe fn inner<'a>(this: *mut c_void) -> &'a Arc<ndcompat::MemoryRegion> {
    // SAFETY: C callers pass the object itself.
    unsafe { &Object::<MemoryRegion>::inner(this).0 }
}

unsafe extern "C" fn register(
    this: *mut c_void,
    buffer: *const c_void,
    length: usize,
    flags: u32,
    ov: *mut Overlapped,
) -> HResult {
    if ov.is_null() {
        return Status::INVALID_PARAMETER_4.0;
    }
    // SAFETY: the object itself; buffer and OVERLAPPED are the caller's promise.
    boundary(|| unsafe { inner(this).register(buffer.cast_mut().cast(), length, flags, ov) }.0)
}

unsafe extern "C" fn deregister(this: *mut c_void, ov: *mut Overlapped) -> HResult {
    if ov.is_null() {
        return Status::INVALID_PARAMETER_1.0;
    }
    // SAFETY: the object itself; the OVERLAPPED is the caller's promise.
    boundary(|| unsafe { inner(this).deregister(ov) }.0)
}

unsafe extern "C" fn get_local_token(this: *mut c_void) -> u32 {
    // SAFETY: the object itself.
    unsafe { inner(this) }.local_token()
}

unsafe extern "C" fn get_remote_token(this: *mut c_void) -> u32 {
    // SAFETY: the object itself.
    unsafe { inner(this) }.remote_token()
}
