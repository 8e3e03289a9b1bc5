//! `INDCompatSharedEndpoint`, an extension.

use crate::address;
use crate::com::{HResult, Interface, Object, Table, boundary, pending};
use crate::guid::{Guid, IID_IND2Overlapped, IID_INDCompatSharedEndpoint};
use crate::overlapped::{OverlappedInterface, OverlappedMethods};
use ndcompat::Status;
use std::ffi::c_void;
use std::sync::Arc;
use win32::io::{File, Overlapped};

pub(crate) struct SharedEndpoint(pub Arc<ndcompat::SharedEndpoint>);

#[repr(C)]
pub(crate) struct Methods {
    pub overlapped: OverlappedMethods,
    pub get_local_address: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut u32) -> HResult,
    pub close: unsafe extern "C" fn(*mut c_void, *mut Overlapped) -> HResult,
}

impl Interface for SharedEndpoint {
    type Methods = Methods;
    const TABLE: &'static Table<Methods> =
        &Table::new(Methods { overlapped: Object::<Self>::OVERLAPPED, get_local_address, close });
    const IDS: &'static [&'static Guid] = &[&IID_INDCompatSharedEndpoint, &IID_IND2Overlapped];

    fn released(&self) {
        self.0.close();
    }
}

impl OverlappedInterface for SharedEndpoint {
    fn file(&self) -> &File {
        self.0.file()
    }

    fn cancel(&self) {
        self.0.clone().cancel();
    }
}

/// A reference of the call's own, as in `listener`.
unsafe fn inner(this: *mut c_void) -> Arc<ndcompat::SharedEndpoint> {
    // SAFETY: C callers pass the object itself.
    unsafe { Object::<SharedEndpoint>::inner(this) }.0.clone()
}

unsafe extern "C" fn get_local_address(this: *mut c_void, out: *mut c_void, length: *mut u32) -> HResult {
    // SAFETY: the object itself; the buffer is the caller's promise.
    boundary(|| unsafe { address::write(inner(this).local_address(), out, length) })
}

unsafe extern "C" fn close(this: *mut c_void, ov: *mut Overlapped) -> HResult {
    if ov.is_null() {
        return Status::INVALID_PARAMETER_1.0;
    }
    // SAFETY: the object itself; the OVERLAPPED is the caller's promise.
    boundary(|| pending(unsafe { inner(this).close_request(ov) }))
}
