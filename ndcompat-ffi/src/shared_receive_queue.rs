//! `IND2SharedReceiveQueue`.

use crate::com::{Guid, HResult, Interface, Pointer, Table, This, pending, status};
use crate::interfaces::{
    IID_IND2Overlapped, IID_IND2SharedReceiveQueue, IND2SharedReceiveQueue, IND2SharedReceiveQueueVtbl,
};
use crate::overlapped::{Requests, give_affinity};
use ndcompat::types::Sge;
use ndcompat::{SgeList, Status};
use std::sync::Arc;
use win32::io::{File, Overlapped};

pub(crate) struct SharedReceiveQueue(pub Arc<ndcompat::SharedReceiveQueue>);

impl Interface for SharedReceiveQueue {
    type Vtbl = IND2SharedReceiveQueueVtbl;
    const IDS: &'static [&'static Guid] = &[&IID_IND2SharedReceiveQueue, &IID_IND2Overlapped];

    fn table() -> &'static Table<Self> {
        static TABLE: Table<SharedReceiveQueue> = Table::new();
        &TABLE
    }
}

impl Requests for SharedReceiveQueue {
    fn file(&self) -> &File {
        self.0.file()
    }

    fn cancel(&self) {
        self.0.cancel();
    }
}

impl Drop for SharedReceiveQueue {
    fn drop(&mut self) {
        self.0.cancel();
        self.0.requests().wait_for_none();
    }
}

impl IND2SharedReceiveQueue for SharedReceiveQueue {
    unsafe fn get_notify_affinity(this: This<Self>, group: *mut u16, affinity: *mut usize) -> HResult {
        // SAFETY: C callers pass valid result pointers, or null.
        unsafe { give_affinity(|| this.0.notify_affinity(), group, affinity) }
    }

    unsafe fn modify(this: This<Self>, depth: u32, threshold: u32) -> HResult {
        status(this.0.modify(depth, threshold))
    }

    unsafe fn notify(this: This<Self>, ov: *mut Overlapped) -> HResult {
        if ov.is_null() {
            return Status::INVALID_PARAMETER_1.0;
        }
        // Holds a reference during the call, as in `IND2CompletionQueue::Notify`.
        let queue = this.0.clone();
        // SAFETY: C callers keep the `OVERLAPPED` valid until the request completes; it is not null.
        pending(unsafe { queue.notify(ov) })
    }

    unsafe fn receive(this: This<Self>, context: Pointer, sge: *const Sge, count: u32) -> HResult {
        // SAFETY: C callers pass `count` SGEs.
        let pieces = unsafe { SgeList::new(sge, count).pieces() };
        // SAFETY: C callers keep the memory of the SGEs valid until the request completes.
        status(pieces.and_then(|sge| unsafe { this.0.receive(context as u64, sge) }))
    }
}
