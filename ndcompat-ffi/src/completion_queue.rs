//! `IND2CompletionQueue`.

use crate::com::{Guid, HResult, Interface, Table, This, status};
use crate::interfaces::{
    IID_IND2CompletionQueue, IID_IND2Overlapped, IND2CompletionQueue, IND2CompletionQueueVtbl,
};
use crate::overlapped::{Requests, give_affinity};
use ndcompat::types::{Completion, NotifyType};
use ndcompat::{Reaper, ResultRoom, Status};
use std::sync::Arc;
use win32::io::{File, Overlapped};

pub(crate) struct CompletionQueue(pub Arc<ndcompat::CompletionQueue>, Reaper);

impl CompletionQueue {
    pub(crate) fn new(queue: Arc<ndcompat::CompletionQueue>) -> CompletionQueue {
        let reaper = queue.reaper();
        CompletionQueue(queue, reaper)
    }
}

impl Interface for CompletionQueue {
    type Vtbl = IND2CompletionQueueVtbl;
    const IDS: &'static [&'static Guid] = &[&IID_IND2CompletionQueue, &IID_IND2Overlapped];

    fn table() -> &'static Table<Self> {
        static TABLE: Table<CompletionQueue> = Table::new();
        &TABLE
    }
}

impl Requests for CompletionQueue {
    fn file(&self) -> &File {
        self.0.file()
    }

    fn cancel(&self) {
        self.0.clone().cancel();
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        self.0.cancel();
        self.0.requests().wait_for_none();
    }
}

impl IND2CompletionQueue for CompletionQueue {
    unsafe fn get_notify_affinity(this: This<Self>, group: *mut u16, affinity: *mut usize) -> HResult {
        // SAFETY: C callers pass valid result pointers, or null.
        unsafe { give_affinity(|| this.0.notify_affinity(), group, affinity) }
    }

    unsafe fn resize(this: This<Self>, depth: u32) -> HResult {
        status(this.0.resize(depth))
    }

    unsafe fn notify(this: This<Self>, kind: u32, ov: *mut Overlapped) -> HResult {
        let kind = match kind {
            0 => NotifyType::Errors,
            1 => NotifyType::Any,
            2 => NotifyType::Solicited,
            _ => return Status::INVALID_PARAMETER_1.0,
        };
        if ov.is_null() {
            return Status::INVALID_PARAMETER_2.0;
        }
        // Holds a reference during the call: before it returns, the request may complete and another thread may release the
        // queue.
        let queue = this.0.clone();
        // SAFETY: C callers keep the `OVERLAPPED` valid until the request completes; it is not null.
        unsafe { queue.notify(kind, ov) }.0
    }

    #[inline(always)]
    unsafe fn get_results(this: This<Self>, results: *mut Completion, count: u32) -> u32 {
        if results.is_null() {
            return 0;
        }
        // SAFETY: the object keeps the queue alive; C callers pass an array of `count` results.
        unsafe { this.1.results(ResultRoom::new(results, count)) as u32 }
    }
}
