//! `IND2Listener`, and its extension `INDCompatListener`.

use crate::address;
use crate::com::{Guid, HResult, Interface, Object, Pointer, Table, This, pending, status};
use crate::connector::Connector;
use crate::interfaces::{
    IID_IND2Listener, IID_IND2Overlapped, IID_INDCompatListener, IND2Listener, INDCompatListener,
    INDCompatListenerVtbl,
};
use crate::overlapped::Requests;
use ndcompat::Status;
use std::ffi::c_void;
use std::sync::Arc;
use win32::io::{File, Overlapped};

pub(crate) struct Listener(pub Arc<ndcompat::Listener>);

impl Interface for Listener {
    type Vtbl = INDCompatListenerVtbl;
    const IDS: &'static [&'static Guid] = &[&IID_IND2Listener, &IID_IND2Overlapped, &IID_INDCompatListener];

    fn table() -> &'static Table<Self> {
        static TABLE: Table<Listener> = Table::new();
        &TABLE
    }
}

impl Requests for Listener {
    fn file(&self) -> &File {
        self.0.file()
    }

    fn cancel(&self) {
        self.0.clone().cancel();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.close();
        self.0.requests().wait_for_none();
    }
}

// Calls that begin a request hold a reference during the call, as in `connector`.
impl IND2Listener for Listener {
    unsafe fn bind(this: This<Self>, address: *const c_void, length: u32) -> HResult {
        // SAFETY: C callers pass an address of `length` bytes, or null.
        let address = unsafe { address::read(address, length as usize) };
        status(address.and_then(|address| this.0.bind(address)))
    }

    unsafe fn listen(this: This<Self>, backlog: u32) -> HResult {
        status(this.0.listen(backlog))
    }

    unsafe fn get_local_address(this: This<Self>, out: Pointer, length: *mut u32) -> HResult {
        // SAFETY: C callers pass a buffer of `*length` bytes and its length, or null.
        unsafe { address::write(this.0.local_address(), out, length) }
    }

    unsafe fn get_connection_request(this: This<Self>, connector: Pointer, ov: *mut Overlapped) -> HResult {
        if ov.is_null() {
            return Status::INVALID_PARAMETER_2.0;
        }
        // SAFETY: C callers pass an interface pointer, or null.
        let Some(connector) = (unsafe { Object::<Connector>::find(connector) }) else {
            return Status::INVALID_PARAMETER_1.0;
        };
        let listener = this.0.clone();
        // SAFETY: C callers keep the `OVERLAPPED` valid until the request completes; it is not null.
        pending(unsafe { listener.connection_request(&connector.0, ov) })
    }
}

impl INDCompatListener for Listener {
    unsafe fn close(this: This<Self>, ov: *mut Overlapped) -> HResult {
        if ov.is_null() {
            return Status::INVALID_PARAMETER_1.0;
        }
        let listener = this.0.clone();
        // SAFETY: C callers keep the `OVERLAPPED` valid until the request completes; it is not null.
        pending(unsafe { listener.close_request(ov) })
    }
}
