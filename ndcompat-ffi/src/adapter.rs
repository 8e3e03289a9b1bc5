//! `IND2Adapter`, and its extension `INDCompatAdapter`.

use crate::address;
use crate::com::{Guid, HResult, Interface, Object, Out, Pointer, Table, This};
use crate::completion_queue::CompletionQueue;
use crate::connector::Connector;
use crate::interfaces::{
    IID_IND2Adapter, IID_INDCompatAdapter, IND2Adapter, INDCompatAdapter, INDCompatAdapterVtbl,
};
use crate::listener::Listener;
use crate::memory_region::MemoryRegion;
use crate::memory_window::MemoryWindow;
use crate::object::Reference;
use crate::queue_pair::QueuePair;
use crate::shared_endpoint::SharedEndpoint;
use crate::shared_receive_queue::SharedReceiveQueue;
use ndcompat::types::AdapterInfo;
use ndcompat::{QueuePairConfig, SharedReceiveQueueConfig, Status};
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use win32::io::File;
use win32::object::RawHandle;

pub(crate) struct Adapter {
    engine: Arc<ndcompat::Adapter>,
    /// An object that the adapter keeps alive: its provider.
    _keep_alive: Option<Box<dyn Send + Sync>>,
}

impl Adapter {
    /// Creates the object. `keep_alive` is dropped with it.
    pub(crate) fn new(engine: Arc<ndcompat::Adapter>, keep_alive: Option<Box<dyn Send + Sync>>) -> Adapter {
        Adapter { engine, _keep_alive: keep_alive }
    }
}

impl Interface for Adapter {
    type Vtbl = INDCompatAdapterVtbl;
    const IDS: &'static [&'static Guid] = &[&IID_IND2Adapter, &IID_INDCompatAdapter];

    fn table() -> &'static Table<Self> {
        static TABLE: Table<Adapter> = Table::new();
        &TABLE
    }
}

/// The file of a handle that `CreateOverlappedFile` has returned.
fn file(handle: RawHandle) -> ndcompat::Result<Arc<File>> {
    File::from_handle(handle).ok_or(Status::INVALID_HANDLE)
}

/// The completion queue of an interface pointer; otherwise the error `status`.
///
/// # Safety
/// `queue` must be null or an interface pointer.
unsafe fn completion_queue(
    queue: Pointer,
    status: Status,
) -> ndcompat::Result<Arc<ndcompat::CompletionQueue>> {
    // SAFETY: the caller passes an interface pointer, or null.
    let queue: Reference<CompletionQueue> = unsafe { Object::find(queue) }.ok_or(status)?;
    Ok(queue.0.clone())
}

/// A configuration of a queue pair that completes its requests on these completion queues; the rest is the default.
///
/// # Safety
/// Both must be null or interface pointers.
unsafe fn on_queues(receive: Pointer, initiator: Pointer) -> ndcompat::Result<QueuePairConfig> {
    // SAFETY: the caller passes an interface pointer, or null.
    let receive = unsafe { completion_queue(receive, Status::INVALID_PARAMETER_2)? };
    // SAFETY: the caller passes an interface pointer, or null.
    let initiator = unsafe { completion_queue(initiator, Status::INVALID_PARAMETER_3)? };
    let config = QueuePairConfig::new(&receive);
    Ok(QueuePairConfig { initiator_completion_queue: initiator, ..config })
}

impl IND2Adapter for Adapter {
    unsafe fn create_overlapped_file(this: This<Self>, out: *mut RawHandle) -> HResult {
        // SAFETY: C callers pass a valid result pointer, or null.
        let Some(out) = (unsafe { out.as_mut() }) else { return Status::INVALID_PARAMETER_1.0 };
        match this.engine.create_overlapped_file() {
            Ok(file) => {
                *out = file.handle();
                // Null if the handle table is full.
                if *out == RawHandle::NULL { Status::NO_MEMORY.0 } else { Status::SUCCESS.0 }
            }
            Err(status) => {
                *out = RawHandle::NULL;
                status.0
            }
        }
    }

    // `InfoVersion` of the caller's structure is ignored: programs set it to 1, or leave it uninitialized.
    unsafe fn query(this: This<Self>, out: *mut AdapterInfo, length: *mut u32) -> HResult {
        let info = match this.engine.info() {
            Ok(info) => info,
            Err(status) => return status.0,
        };
        let size = size_of::<AdapterInfo>() as u32;
        // SAFETY: C callers pass a buffer of `*length` bytes and its length, or null.
        unsafe { address::give(ptr::from_ref(&info).cast(), size, out.cast(), length) }
    }

    unsafe fn query_address_list(this: This<Self>, out: Pointer, length: *mut u32) -> HResult {
        // SAFETY: C callers pass a buffer of `*length` bytes and its length, or null.
        unsafe { address::query_list(this.engine.addresses(), out, length) }
    }

    unsafe fn create_completion_queue(
        this: This<Self>,
        iid: *const Guid,
        handle: RawHandle,
        depth: u32,
        group: u16,
        affinity: usize,
        out: Out,
    ) -> HResult {
        let make = || {
            let affinity = (group, affinity as u64);
            let queue = this.engine.create_completion_queue(&file(handle)?, depth, affinity)?;
            Ok(CompletionQueue::new(queue))
        };
        // SAFETY: C callers pass pointers to a GUID and to the result, or null.
        unsafe { Object::hand_out(iid, out, make) }
    }

    unsafe fn create_memory_region(
        this: This<Self>,
        iid: *const Guid,
        handle: RawHandle,
        out: Out,
    ) -> HResult {
        let make = || this.engine.create_memory_region(&file(handle)?).map(MemoryRegion);
        // SAFETY: C callers pass pointers to a GUID and to the result, or null.
        unsafe { Object::hand_out(iid, out, make) }
    }

    unsafe fn create_memory_window(this: This<Self>, iid: *const Guid, out: Out) -> HResult {
        let make = || this.engine.create_memory_window().map(MemoryWindow);
        // SAFETY: C callers pass pointers to a GUID and to the result, or null.
        unsafe { Object::hand_out(iid, out, make) }
    }

    unsafe fn create_shared_receive_queue(
        this: This<Self>,
        iid: *const Guid,
        handle: RawHandle,
        depth: u32,
        max_sge: u32,
        threshold: u32,
        group: u16,
        affinity: usize,
        out: Out,
    ) -> HResult {
        let affinity = (group, affinity as u64);
        let config = SharedReceiveQueueConfig { depth, max_sge, threshold, affinity };
        let make = || this.engine.create_shared_receive_queue(&file(handle)?, config).map(SharedReceiveQueue);
        // SAFETY: C callers pass pointers to a GUID and to the result, or null.
        unsafe { Object::hand_out(iid, out, make) }
    }

    unsafe fn create_queue_pair(
        this: This<Self>,
        iid: *const Guid,
        receive_queue: Pointer,
        initiator_queue: Pointer,
        context: Pointer,
        receive_queue_depth: u32,
        initiator_queue_depth: u32,
        max_receive_sge: u32,
        max_initiator_sge: u32,
        inline_data_size: u32,
        out: Out,
    ) -> HResult {
        let make = || {
            // SAFETY: C callers pass interface pointers, or null.
            let on = unsafe { on_queues(receive_queue, initiator_queue)? };
            let config = QueuePairConfig {
                context: context as u64,
                receive_queue_depth,
                initiator_queue_depth,
                max_receive_sge,
                max_initiator_sge,
                inline_data_size,
                ..on
            };
            this.engine.create_queue_pair(config).map(QueuePair::new)
        };
        // SAFETY: C callers pass pointers to a GUID and to the result, or null.
        unsafe { Object::hand_out(iid, out, make) }
    }

    unsafe fn create_queue_pair_with_srq(
        this: This<Self>,
        iid: *const Guid,
        receive_queue: Pointer,
        initiator_queue: Pointer,
        shared_queue: Pointer,
        context: Pointer,
        initiator_queue_depth: u32,
        max_initiator_sge: u32,
        inline_data_size: u32,
        out: Out,
    ) -> HResult {
        let make = || {
            // SAFETY: C callers pass interface pointers, or null.
            let on = unsafe { on_queues(receive_queue, initiator_queue)? };
            // SAFETY: C callers pass an interface pointer, or null.
            let shared = unsafe { Object::<SharedReceiveQueue>::find(shared_queue) };
            let config = QueuePairConfig {
                context: context as u64,
                shared_receive_queue: Some(shared.ok_or(Status::INVALID_PARAMETER_4)?.0.clone()),
                receive_queue_depth: 0,
                initiator_queue_depth,
                max_receive_sge: 0,
                max_initiator_sge,
                inline_data_size,
                ..on
            };
            this.engine.create_queue_pair(config).map(QueuePair::new)
        };
        // SAFETY: C callers pass pointers to a GUID and to the result, or null.
        unsafe { Object::hand_out(iid, out, make) }
    }

    unsafe fn create_connector(this: This<Self>, iid: *const Guid, handle: RawHandle, out: Out) -> HResult {
        let make = || this.engine.create_connector(&file(handle)?).map(Connector);
        // SAFETY: C callers pass pointers to a GUID and to the result, or null.
        unsafe { Object::hand_out(iid, out, make) }
    }

    unsafe fn create_listener(this: This<Self>, iid: *const Guid, handle: RawHandle, out: Out) -> HResult {
        let make = || this.engine.create_listener(&file(handle)?).map(Listener);
        // SAFETY: C callers pass pointers to a GUID and to the result, or null.
        unsafe { Object::hand_out(iid, out, make) }
    }
}

impl INDCompatAdapter for Adapter {
    unsafe fn create_shared_endpoint(
        this: This<Self>,
        iid: *const Guid,
        handle: RawHandle,
        address: *const c_void,
        length: u32,
        out: Out,
    ) -> HResult {
        let make = || {
            // SAFETY: C callers pass an address of `length` bytes, or null.
            let address = unsafe { address::read(address, length as usize)? };
            this.engine.create_shared_endpoint(&file(handle)?, address).map(SharedEndpoint)
        };
        // SAFETY: C callers pass pointers to a GUID and to the result, or null.
        unsafe { Object::hand_out(iid, out, make) }
    }
}
