//! `IND2MemoryWindow`.

use crate::com::{Guid, Interface, Table, This};
use crate::interfaces::{IID_IND2MemoryWindow, IND2MemoryWindow, IND2MemoryWindowVtbl};
use std::sync::Arc;

pub(crate) struct MemoryWindow(pub Arc<ndcompat::MemoryWindow>);

impl Interface for MemoryWindow {
    type Vtbl = IND2MemoryWindowVtbl;
    const IDS: &'static [&'static Guid] = &[&IID_IND2MemoryWindow];

    fn table() -> &'static Table<Self> {
        static TABLE: Table<MemoryWindow> = Table::new();
        &TABLE
    }
}

impl IND2MemoryWindow for MemoryWindow {
    unsafe fn get_remote_token(this: This<Self>) -> u32 {
        this.0.remote_token()
    }
}
