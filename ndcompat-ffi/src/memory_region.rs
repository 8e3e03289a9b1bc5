//! `IND2MemoryRegion`.

use crate::com::{Guid, HResult, Interface, Table, This};
use crate::interfaces::{IID_IND2MemoryRegion, IID_IND2Overlapped, IND2MemoryRegion, IND2MemoryRegionVtbl};
use crate::overlapped::Requests;
use ndcompat::Status;
use ndcompat::types::RegionFlags;
use std::ffi::c_void;
use std::sync::Arc;
use win32::io::{File, Overlapped};

pub(crate) struct MemoryRegion(pub Arc<ndcompat::MemoryRegion>);

impl Interface for MemoryRegion {
    type Vtbl = IND2MemoryRegionVtbl;
    const IDS: &'static [&'static Guid] = &[&IID_IND2MemoryRegion, &IID_IND2Overlapped];

    fn table() -> &'static Table<Self> {
        static TABLE: Table<MemoryRegion> = Table::new();
        &TABLE
    }
}

impl Requests for MemoryRegion {
    fn file(&self) -> &File {
        self.0.file()
    }

    fn cancel(&self) {
        self.0.clone().cancel();
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        self.0.cancel();
        self.0.requests().wait_for_none();
    }
}

impl IND2MemoryRegion for MemoryRegion {
    unsafe fn register(
        this: This<Self>,
        buffer: *const c_void,
        length: usize,
        flags: RegionFlags,
        ov: *mut Overlapped,
    ) -> HResult {
        if ov.is_null() {
            return Status::INVALID_PARAMETER_4.0;
        }
        // SAFETY: C callers keep the buffer mapped while it is registered, and the `OVERLAPPED` until the request completes.
        unsafe { this.0.register(buffer.cast_mut().cast(), length, flags, ov) }.0
    }

    unsafe fn deregister(this: This<Self>, ov: *mut Overlapped) -> HResult {
        if ov.is_null() {
            return Status::INVALID_PARAMETER_1.0;
        }
        // SAFETY: C callers keep the `OVERLAPPED` valid until the request completes; it is not null.
        unsafe { this.0.deregister(ov) }.0
    }

    unsafe fn get_local_token(this: This<Self>) -> u32 {
        this.0.local_token()
    }

    unsafe fn get_remote_token(this: This<Self>) -> u32 {
        this.0.remote_token()
    }
}
