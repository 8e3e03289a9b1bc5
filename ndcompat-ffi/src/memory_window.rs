//! `IND2MemoryWindow`.

use crate::com::{Interface, Object, Table, UnknownMethods};
use crate::guid::{Guid, IID_IND2MemoryWindow};
use std::ffi::c_void;
use std::sync::Arc;

pub(crate) struct MemoryWindow(pub Arc<ndcompat::MemoryWindow>);

#[repr(C)]
pub(crate) struct Methods {
    pub unknown: UnknownMethods,
    pub get_remote_token: unsafe extern "C" fn(*mut c_void) -> u32,
}

impl Interface for MemoryWindow {
    type Methods = Methods;
    const TABLE: &'static Table<Methods> =
        &Table::new(Methods { unknown: Object::<Self>::UNKNOWN, get_remote_token });
    const IDS: &'static [&'static Guid] = &[&IID_IND2MemoryWindow];
}

unsafe extern "C" fn get_remote_token(this: *mut c_void) -> u32 {
    // SAFETY: C callers pass the object itself.
    unsafe { &Object::<MemoryWindow>::inner(this).0 }.remote_token()
}
