//! `IND2CompletionQueue`.

use crate::com::{HResult, Interface, Object, Table, boundary, status};
use crate::guid::{Guid, IID_IND2CompletionQueue, IID_IND2Overlapped};
use crate::overlapped::{OverlappedInterface, OverlappedMethods};
use ndcompat::types::{Completion, NotifyType};
use ndcompat::{Reaper, ResultRoom, Status};
use std::ffi::c_void;
use std::sync::Arc;
use win32::io::{File, Overlapped};

pub(crate) struct CompletionQueue(pub Arc<ndcompat::CompletionQueue>, Reaper);

impl CompletionQueue {
    pub(crate) fn new(queue: Arc<ndcompat::CompletionQueue>) -> CompletionQueue {
        let reaper = queue.reaper();
        CompletionQueue(queue, reaper)
    }
}

#[repr(C)]
pub(crate) struct Methods {
    pub overlapped: OverlappedMethods,
    pub get_notify_affinity: unsafe extern "C" fn(*mut c_void, *mut u16, *mut u64) -> HResult,
    pub resize: unsafe extern "C" fn(*mut c_void, u32) -> HResult,
    pub notify: unsafe extern "C" fn(*mut c_void, u32, *mut Overlapped) -> HResult,
    pub get_results: unsafe extern "C" fn(*mut c_void, *mut Completion, u32) -> u32,
}

impl Interface for CompletionQueue {
    type Methods = Methods;
    const TABLE: &'static Table<Methods> = &Table::new(Methods {
        overlapped: Object::<Self>::OVERLAPPED,
        get_notify_affinity,
        resize,
        notify,
        get_results,
    });
    const IDS: &'static [&'static Guid] = &[&IID_IND2CompletionQueue, &IID_IND2Overlapped];

    fn released(&self) {
        self.0.cancel();
    }
}

impl OverlappedInterface for CompletionQueue {
    fn file(&self) -> &File {
        self.0.file()
    }

    fn cancel(&self) {
        self.0.clone().cancel();
    }
}

#[inline(always)]
unsafe fn inner<'a>(this: *mut c_void) -> &'a ndcompat::CompletionQueue {
    // SAFETY: C callers pass the object itself.
    unsafe { &Object::<CompletionQueue>::inner(this).0 }
}

unsafe extern "C" fn get_notify_affinity(this: *mut c_void, group: *mut u16, affinity: *mut u64) -> HResult {
    // SAFETY: C callers pass valid pointers or null.
    let (Some(group), Some(affinity)) = (unsafe { group.as_mut() }, unsafe { affinity.as_mut() }) else {
        return Status::INVALID_PARAMETER.0;
    };
    // SAFETY: the object itself.
    boundary(|| match unsafe { inner(this) }.notify_affinity() {
        Ok(told) => {
            (*group, *affinity) = told;
            Status::SUCCESS.0
        }
        Err(status) => status.0,
    })
}

unsafe extern "C" fn resize(this: *mut c_void, depth: u32) -> HResult {
    // SAFETY: the object itself.
    boundary(|| status(unsafe { inner(this) }.resize(depth)))
}

unsafe extern "C" fn notify(this: *mut c_void, kind: u32, ov: *mut Overlapped) -> HResult {
    let kind = match kind {
        0 => NotifyType::Errors,
        1 => NotifyType::Any,
        2 => NotifyType::Solicited,
        _ => return Status::INVALID_PARAMETER_1.0,
    };
    if ov.is_null() {
        return Status::INVALID_PARAMETER_2.0;
    }
    // SAFETY: the object itself; the OVERLAPPED is the caller's promise.
    boundary(|| {
        // A reference of the call's own: the request may complete, and the program release the queue on another thread,
        // before the call is back.
        // SAFETY: as above.
        let queue = unsafe { Object::<CompletionQueue>::inner(this) }.0.clone();
        // SAFETY: as above.
        unsafe { queue.notify(kind, ov) }.0
    })
}

unsafe extern "C" fn get_results(this: *mut c_void, results: *mut Completion, count: u32) -> u32 {
    if results.is_null() {
        return 0;
    }
    // SAFETY: the object itself, which keeps the queue; the array is the caller's.
    unsafe { Object::<CompletionQueue>::inner(this).1.results(ResultRoom::new(results, count)) as u32 }
}
