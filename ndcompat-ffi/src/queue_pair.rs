//! `IND2QueuePair`: the data path as C calls it.

use crate::com::{HResult, Interface, Object, Table, UnknownMethods, boundary, status};
use crate::guid::{Guid, IID_IND2QueuePair};
use crate::memory_region::MemoryRegion;
use crate::memory_window::MemoryWindow;
use ndcompat::types::Sge;
use ndcompat::{Poster, SgeList, Status};
use std::ffi::c_void;

pub(crate) struct QueuePair(pub ndcompat::QueuePair, Poster);

impl QueuePair {
    pub(crate) fn new(pair: ndcompat::QueuePair) -> QueuePair {
        let poster = pair.poster();
        QueuePair(pair, poster)
    }
}

#[repr(C)]
pub(crate) struct Methods {
    pub unknown: UnknownMethods,
    pub flush: unsafe extern "C" fn(*mut c_void) -> HResult,
    pub send: unsafe extern "C" fn(*mut c_void, *mut c_void, *const Sge, u32, u32) -> HResult,
    pub receive: unsafe extern "C" fn(*mut c_void, *mut c_void, *const Sge, u32) -> HResult,
    pub bind: Bind,
    pub invalidate: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, u32) -> HResult,
    pub read: Rdma,
    pub write: Rdma,
}

type Bind = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *const c_void,
    usize,
    u32,
) -> HResult;
type Rdma = unsafe extern "C" fn(*mut c_void, *mut c_void, *const Sge, u32, u64, u32, u32) -> HResult;

impl Interface for QueuePair {
    type Methods = Methods;
    const TABLE: &'static Table<Methods> = &Table::new(Methods {
        unknown: Object::<Self>::UNKNOWN,
        flush,
        send,
        receive,
        bind,
        invalidate,
        read,
        write,
    });
    const IDS: &'static [&'static Guid] = &[&IID_IND2QueuePair];
}

#[inline(always)]
unsafe fn inner<'a>(this: *mut c_void) -> &'a ndcompat::QueuePair {
    // SAFETY: C callers pass the object itself.
    unsafe { &Object::<QueuePair>::inner(this).0 }
}

/// What posts to the queue pair, which the object keeps.
#[inline(always)]
unsafe fn poster(this: *mut c_void) -> Poster {
    // SAFETY: C callers pass the object itself.
    unsafe { Object::<QueuePair>::inner(this).1 }
}

unsafe extern "C" fn flush(this: *mut c_void) -> HResult {
    // SAFETY: the object itself.
    boundary(|| status(unsafe { inner(this) }.flush()))
}

unsafe extern "C" fn send(
    this: *mut c_void,
    context: *mut c_void,
    sge: *const Sge,
    count: u32,
    flags: u32,
) -> HResult {
    // SAFETY: the object itself; list and memory are the caller's promise.
    unsafe { poster(this).send(context as u64, SgeList::new(sge, count), flags).0 }
}

unsafe extern "C" fn receive(
    this: *mut c_void,
    context: *mut c_void,
    sge: *const Sge,
    count: u32,
) -> HResult {
    // SAFETY: the object itself; list and memory are the caller's promise.
    unsafe { poster(this).receive(context as u64, SgeList::new(sge, count)).0 }
}

unsafe extern "C" fn bind(
    this: *mut c_void,
    context: *mut c_void,
    region: *mut c_void,
    window: *mut c_void,
    buffer: *const c_void,
    length: usize,
    flags: u32,
) -> HResult {
    // SAFETY: the object itself; what the pointers lead to is the caller's promise.
    boundary(|| unsafe {
        let Some(region) = Object::<MemoryRegion>::find(region) else { return Status::INVALID_PARAMETER_2.0 };
        let Some(window) = Object::<MemoryWindow>::find(window) else { return Status::INVALID_PARAMETER_3.0 };
        let start = buffer as usize;
        let Some(end) = start.checked_add(length) else { return Status::ACCESS_VIOLATION.0 };
        status(inner(this).bind(context as u64, &region.0, &window.0, start..end, flags))
    })
}

unsafe extern "C" fn invalidate(
    this: *mut c_void,
    context: *mut c_void,
    window: *mut c_void,
    flags: u32,
) -> HResult {
    // SAFETY: as above.
    boundary(|| unsafe {
        let Some(window) = Object::<MemoryWindow>::find(window) else { return Status::INVALID_PARAMETER_2.0 };
        status(inner(this).invalidate(context as u64, &window.0, flags))
    })
}

unsafe extern "C" fn read(
    this: *mut c_void,
    context: *mut c_void,
    sge: *const Sge,
    count: u32,
    address: u64,
    token: u32,
    flags: u32,
) -> HResult {
    // SAFETY: the object itself; list and memory are the caller's promise.
    unsafe { poster(this).read(context as u64, SgeList::new(sge, count), address, token, flags).0 }
}

unsafe extern "C" fn write(
    this: *mut c_void,
    context: *mut c_void,
    sge: *const Sge,
    count: u32,
    address: u64,
    token: u32,
    flags: u32,
) -> HResult {
    // SAFETY: the object itself; list and memory are the caller's promise.
    unsafe { poster(this).write(context as u64, SgeList::new(sge, count), address, token, flags).0 }
}
