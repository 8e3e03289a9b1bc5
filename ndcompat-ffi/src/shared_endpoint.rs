//! `INDCompatSharedEndpoint`, an extension.

use crate::address;
use crate::com::{Guid, HResult, Interface, Pointer, Table, This, pending};
use crate::interfaces::{
    IID_IND2Overlapped, IID_INDCompatSharedEndpoint, INDCompatSharedEndpoint, INDCompatSharedEndpointVtbl,
};
use crate::overlapped::Requests;
use ndcompat::Status;
use std::sync::Arc;
use win32::io::{File, Overlapped};

pub(crate) struct SharedEndpoint(pub Arc<ndcompat::SharedEndpoint>);

impl Interface for SharedEndpoint {
    type Vtbl = INDCompatSharedEndpointVtbl;
    const IDS: &'static [&'static Guid] = &[&IID_INDCompatSharedEndpoint, &IID_IND2Overlapped];

    fn table() -> &'static Table<Self> {
        static TABLE: Table<SharedEndpoint> = Table::new();
        &TABLE
    }
}

impl Requests for SharedEndpoint {
    fn file(&self) -> &File {
        self.0.file()
    }

    fn cancel(&self) {
        self.0.clone().cancel();
    }
}

impl Drop for SharedEndpoint {
    fn drop(&mut self) {
        self.0.close();
        self.0.requests().wait_for_none();
    }
}

impl INDCompatSharedEndpoint for SharedEndpoint {
    unsafe fn get_local_address(this: This<Self>, out: Pointer, length: *mut u32) -> HResult {
        // SAFETY: C callers pass a buffer of `*length` bytes and its length, or null.
        unsafe { address::write(this.0.local_address(), out, length) }
    }

    unsafe fn close(this: This<Self>, ov: *mut Overlapped) -> HResult {
        if ov.is_null() {
            return Status::INVALID_PARAMETER_1.0;
        }
        // Holds a reference during the call, as in `connector`.
        let endpoint = this.0.clone();
        // SAFETY: C callers keep the `OVERLAPPED` valid until the request completes; it is not null.
        pending(unsafe { endpoint.close_request(ov) })
    }
}
