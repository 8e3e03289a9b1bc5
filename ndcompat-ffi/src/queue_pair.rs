//! `IND2QueuePair`: the data path as C calls it.

use crate::com::{Guid, HResult, Interface, Object, Pointer, Table, This, status};
use crate::interfaces::{IID_IND2QueuePair, IND2QueuePair, IND2QueuePairVtbl};
use crate::memory_region::MemoryRegion;
use crate::memory_window::MemoryWindow;
use ndcompat::types::{RequestFlags, Sge};
use ndcompat::{Poster, SgeList, Status};
use std::ffi::c_void;

/// The queue pair, and the handle to post with, which is valid while the queue pair lives.
pub(crate) struct QueuePair(pub ndcompat::QueuePair, Poster);

impl QueuePair {
    pub(crate) fn new(pair: ndcompat::QueuePair) -> QueuePair {
        let poster = pair.poster();
        QueuePair(pair, poster)
    }
}

impl Interface for QueuePair {
    type Vtbl = IND2QueuePairVtbl;
    const IDS: &'static [&'static Guid] = &[&IID_IND2QueuePair];

    fn table() -> &'static Table<Self> {
        static TABLE: Table<QueuePair> = Table::new();
        &TABLE
    }
}

impl IND2QueuePair for QueuePair {
    unsafe fn flush(this: This<Self>) -> HResult {
        // Holds a reference during the call: before it returns, another thread may have taken the last result and released the queue
        // pair.
        let flush = this.0.flushing();
        flush();
        Status::SUCCESS.0
    }

    #[inline(always)]
    unsafe fn send(
        this: This<Self>,
        context: Pointer,
        sge: *const Sge,
        count: u32,
        flags: RequestFlags,
    ) -> HResult {
        // SAFETY: C callers pass `count` SGEs, whose memory stays valid until the request completes; the object keeps the
        // queue pair alive.
        unsafe { this.1.send(context as u64, SgeList::new(sge, count), flags).0 }
    }

    #[inline(always)]
    unsafe fn receive(this: This<Self>, context: Pointer, sge: *const Sge, count: u32) -> HResult {
        // SAFETY: C callers pass `count` SGEs, whose memory stays valid until the request completes; the object keeps the
        // queue pair alive.
        unsafe { this.1.receive(context as u64, SgeList::new(sge, count)).0 }
    }

    unsafe fn bind(
        this: This<Self>,
        context: Pointer,
        region: Pointer,
        window: Pointer,
        buffer: *const c_void,
        length: usize,
        flags: RequestFlags,
    ) -> HResult {
        // SAFETY: C callers pass an interface pointer, or null.
        let Some(region) = (unsafe { Object::<MemoryRegion>::find(region) }) else {
            return Status::INVALID_PARAMETER_2.0;
        };
        // SAFETY: C callers pass an interface pointer, or null.
        let Some(window) = (unsafe { Object::<MemoryWindow>::find(window) }) else {
            return Status::INVALID_PARAMETER_3.0;
        };
        let start = buffer as usize;
        let Some(end) = start.checked_add(length) else { return Status::ACCESS_VIOLATION.0 };
        // SAFETY: there are no Rust references to the memory of C callers.
        status(unsafe { this.0.bind(context as u64, &region.0, &window.0, start..end, flags) })
    }

    unsafe fn invalidate(
        this: This<Self>,
        context: Pointer,
        window: Pointer,
        flags: RequestFlags,
    ) -> HResult {
        // SAFETY: C callers pass an interface pointer, or null.
        let Some(window) = (unsafe { Object::<MemoryWindow>::find(window) }) else {
            return Status::INVALID_PARAMETER_2.0;
        };
        status(this.0.invalidate(context as u64, &window.0, flags))
    }

    #[inline(always)]
    unsafe fn read(
        this: This<Self>,
        context: Pointer,
        sge: *const Sge,
        count: u32,
        address: u64,
        token: u32,
        flags: RequestFlags,
    ) -> HResult {
        // SAFETY: C callers pass `count` SGEs, whose memory stays valid until the request completes; the object keeps the
        // queue pair alive.
        unsafe { this.1.read(context as u64, SgeList::new(sge, count), address, token, flags).0 }
    }

    #[inline(always)]
    unsafe fn write(
        this: This<Self>,
        context: Pointer,
        sge: *const Sge,
        count: u32,
        address: u64,
        token: u32,
        flags: RequestFlags,
    ) -> HResult {
        // SAFETY: C callers pass `count` SGEs, whose memory stays valid until the request completes; the object keeps the
        // queue pair alive.
        unsafe { this.1.write(context as u64, SgeList::new(sge, count), address, token, flags).0 }
    }
}
