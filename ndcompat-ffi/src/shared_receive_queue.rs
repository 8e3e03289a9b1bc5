//! `IND2SharedReceiveQueue`.

use crate::com::{HResult, Interface, Object, Table, boundary, pending, status};
use crate::guid::{Guid, IID_IND2Overlapped, IID_IND2SharedReceiveQueue};
use crate::overlapped::{OverlappedInterface, OverlappedMethods};
use ndcompat::types::Sge;
use ndcompat::{SgeList, Status};
use std::ffi::c_void;
use std::sync::Arc;
use win32::io::{File, Overlapped};

pub(crate) struct SharedReceiveQueue(pub Arc<ndcompat::SharedReceiveQueue>);

#[repr(C)]
pub(crate) struct Methods {
    pub overlapped: OverlappedMethods,
    pub get_notify_affinity: unsafe extern "C" fn(*mut c_void, *mut u16, *mut u64) -> HResult,
    pub modify: unsafe extern "C" fn(*mut c_void, u32, u32) -> HResult,
    pub notify: unsafe extern "C" fn(*mut c_void, *mut Overlapped) -> HResult,
    pub receive: unsafe extern "C" fn(*mut c_void, *mut c_void, *const Sge, u32) -> HResult,
}

impl Interface for SharedReceiveQueue {
    type Methods = Methods;
    const TABLE: &'static Table<Methods> = &Table::new(Methods {
        overlapped: Object::<Self>::OVERLAPPED,
        get_notify_affinity,
        modify,
        notify,
        receive,
    });
    const IDS: &'static [&'static Guid] = &[&IID_IND2SharedReceiveQueue, &IID_IND2Overlapped];

    fn released(&self) {
        self.0.cancel();
    }
}

impl OverlappedInterface for SharedReceiveQueue {
    fn file(&self) -> &File {
        self.0.file()
    }

    fn cancel(&self) {
        self.0.cancel();
    }
}

unsafe fn inner<'a>(this: *mut c_void) -> &'a ndcompat::SharedReceiveQueue {
    // SAFETY: C callers pass the object itself.
    unsafe { &Object::<SharedReceiveQueue>::inner(this).0 }
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

unsafe extern "C" fn modify(this: *mut c_void, depth: u32, threshold: u32) -> HResult {
    // SAFETY: the object itself.
    boundary(|| status(unsafe { inner(this) }.modify(depth, threshold)))
}

unsafe extern "C" fn notify(this: *mut c_void, ov: *mut Overlapped) -> HResult {
    if ov.is_null() {
        return Status::INVALID_PARAMETER_1.0;
    }
    // SAFETY: the object itself; the OVERLAPPED is the caller's promise.
    boundary(|| {
        // A reference of the call's own, as in `IND2CompletionQueue::Notify`.
        // SAFETY: as above.
        let queue = unsafe { Object::<SharedReceiveQueue>::inner(this) }.0.clone();
        // SAFETY: as above.
        pending(unsafe { queue.notify(ov) })
    })
}

unsafe extern "C" fn receive(
    this: *mut c_void,
    context: *mut c_void,
    sge: *const Sge,
    count: u32,
) -> HResult {
    // SAFETY: the object itself; list and memory are the caller's promise.
    unsafe {
        let pieces = SgeList::new(sge, count).pieces();
        status(pieces.and_then(|sge| inner(this).receive(context as u64, sge)))
    }
}
