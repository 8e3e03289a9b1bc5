//! `IND2Listener`.

use crate::address;
use crate::com::{HResult, Interface, Object, Table, boundary, pending, status};
use crate::connector::Connector;
use crate::guid::{Guid, IID_IND2Listener, IID_IND2Overlapped, IID_INDCompatListener};
use crate::overlapped::{OverlappedInterface, OverlappedMethods};
use ndcompat::Status;
use std::ffi::c_void;
use std::sync::Arc;
use win32::io::{File, Overlapped};

pub(crate) struct Listener(pub Arc<ndcompat::Listener>);

#[repr(C)]
pub(crate) struct Methods {
    pub overlapped: OverlappedMethods,
    pub bind: unsafe extern "C" fn(*mut c_void, *const c_void, u32) -> HResult,
    pub listen: unsafe extern "C" fn(*mut c_void, u32) -> HResult,
    pub get_local_address: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut u32) -> HResult,
    pub get_connection_request: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut Overlapped) -> HResult,
}

/// The slots of `INDCompatListener` (`ndendpoint.h`): those of the base come first.
#[repr(C)]
pub(crate) struct ExtendedMethods {
    pub base: Methods,
    pub close: unsafe extern "C" fn(*mut c_void, *mut Overlapped) -> HResult,
}

impl Interface for Listener {
    type Methods = ExtendedMethods;
    const TABLE: &'static Table<ExtendedMethods> = &Table::new(ExtendedMethods {
        base: Methods {
            overlapped: Object::<Self>::OVERLAPPED,
            bind,
            listen,
            get_local_address,
            get_connection_request,
        },
        close,
    });
    const IDS: &'static [&'static Guid] = &[&IID_IND2Listener, &IID_IND2Overlapped, &IID_INDCompatListener];

    fn released(&self) {
        self.0.close();
    }
}

impl OverlappedInterface for Listener {
    fn file(&self) -> &File {
        self.0.file()
    }

    fn cancel(&self) {
        self.0.clone().cancel();
    }
}

/// A reference of the call's own: the request it starts may complete, and the program release the object on another
/// thread, before the call is back.
unsafe fn inner(this: *mut c_void) -> Arc<ndcompat::Listener> {
    // SAFETY: C callers pass the object itself.
    unsafe { Object::<Listener>::inner(this) }.0.clone()
}

unsafe extern "C" fn bind(this: *mut c_void, address: *const c_void, length: u32) -> HResult {
    // SAFETY: the object itself; the address is the caller's promise.
    boundary(|| unsafe {
        status(address::read(address, length as usize).and_then(|address| inner(this).bind(address)))
    })
}

unsafe extern "C" fn listen(this: *mut c_void, backlog: u32) -> HResult {
    // SAFETY: the object itself.
    boundary(|| status(unsafe { inner(this) }.listen(backlog)))
}

unsafe extern "C" fn get_local_address(this: *mut c_void, out: *mut c_void, length: *mut u32) -> HResult {
    // SAFETY: the object itself; the buffer is the caller's promise.
    boundary(|| unsafe { address::write(inner(this).local_address(), out, length) })
}

unsafe extern "C" fn get_connection_request(
    this: *mut c_void,
    connector: *mut c_void,
    ov: *mut Overlapped,
) -> HResult {
    if ov.is_null() {
        return Status::INVALID_PARAMETER_2.0;
    }
    // SAFETY: the object itself; what the pointers lead to is the caller's promise.
    boundary(|| unsafe {
        let Some(connector) = Object::<Connector>::find(connector) else {
            return Status::INVALID_PARAMETER_1.0;
        };
        pending(inner(this).connection_request(&connector.0, ov))
    })
}

unsafe extern "C" fn close(this: *mut c_void, ov: *mut Overlapped) -> HResult {
    if ov.is_null() {
        return Status::INVALID_PARAMETER_1.0;
    }
    // SAFETY: the object itself; the OVERLAPPED is the caller's promise.
    boundary(|| pending(unsafe { inner(this).close_request(ov) }))
}
