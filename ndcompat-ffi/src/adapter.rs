//! `IND2Adapter`.

use crate::address;
use crate::com::{HResult, Hold, Interface, Object, Table, UnknownMethods, boundary};
use crate::completion_queue::CompletionQueue;
use crate::connector::Connector;
use crate::guid::{Guid, IID_IND2Adapter, IID_INDCompatAdapter};
use crate::listener::Listener;
use crate::memory_region::MemoryRegion;
use crate::memory_window::MemoryWindow;
use crate::provider::Provider;
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
    pub engine: Arc<ndcompat::Adapter>,
    /// Adapters keep their provider: `Release` on it tells so, and programs look.
    pub _provider: Option<Hold<Provider>>,
}

type Create = unsafe extern "C" fn(*mut c_void, *const Guid, RawHandle, *mut *mut c_void) -> HResult;

#[repr(C)]
pub(crate) struct Methods {
    pub unknown: UnknownMethods,
    pub create_overlapped_file: unsafe extern "C" fn(*mut c_void, *mut RawHandle) -> HResult,
    pub query: unsafe extern "C" fn(*mut c_void, *mut AdapterInfo, *mut u32) -> HResult,
    pub query_address_list: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut u32) -> HResult,
    pub create_completion_queue:
        unsafe extern "C" fn(*mut c_void, *const Guid, RawHandle, u32, u16, u64, *mut *mut c_void) -> HResult,
    pub create_memory_region: Create,
    pub create_memory_window: unsafe extern "C" fn(*mut c_void, *const Guid, *mut *mut c_void) -> HResult,
    pub create_shared_receive_queue: unsafe extern "C" fn(
        *mut c_void,
        *const Guid,
        RawHandle,
        u32,
        u32,
        u32,
        u16,
        u64,
        *mut *mut c_void,
    ) -> HResult,
    pub create_queue_pair: CreateQueuePair,
    pub create_queue_pair_with_srq: CreateQueuePairWithSrq,
    pub create_connector: Create,
    pub create_listener: Create,
}

/// The slots of `INDCompatAdapter` (`ndendpoint.h`): those of the base come first.
#[repr(C)]
pub(crate) struct ExtendedMethods {
    pub base: Methods,
    pub create_shared_endpoint: unsafe extern "C" fn(
        *mut c_void,
        *const Guid,
        RawHandle,
        *const c_void,
        u32,
        *mut *mut c_void,
    ) -> HResult,
}

type CreateQueuePair = unsafe extern "C" fn(
    *mut c_void,
    *const Guid,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    u32,
    u32,
    u32,
    u32,
    u32,
    *mut *mut c_void,
) -> HResult;
type CreateQueuePairWithSrq = unsafe extern "C" fn(
    *mut c_void,
    *const Guid,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    u32,
    u32,
    u32,
    *mut *mut c_void,
) -> HResult;

impl Interface for Adapter {
    type Methods = ExtendedMethods;
    const TABLE: &'static Table<ExtendedMethods> = &Table::new(ExtendedMethods {
        base: Methods {
            unknown: Object::<Self>::UNKNOWN,
            create_overlapped_file,
            query,
            query_address_list,
            create_completion_queue,
            create_memory_region,
            create_memory_window,
            create_shared_receive_queue,
            create_queue_pair,
            create_queue_pair_with_srq,
            create_connector,
            create_listener,
        },
        create_shared_endpoint,
    });
    const IDS: &'static [&'static Guid] = &[&IID_IND2Adapter, &IID_INDCompatAdapter];
}

unsafe fn inner<'a>(this: *mut c_void) -> &'a Arc<ndcompat::Adapter> {
    // SAFETY: C callers pass the object itself.
    unsafe { &Object::<Adapter>::inner(this).engine }
}

/// The file behind a handle that `CreateOverlappedFile` gave.
fn file(handle: RawHandle) -> ndcompat::Result<Arc<File>> {
    File::from_handle(handle).ok_or(Status::INVALID_HANDLE)
}

unsafe extern "C" fn create_overlapped_file(this: *mut c_void, out: *mut RawHandle) -> HResult {
    // SAFETY: the object itself; the result is valid or null.
    boundary(|| unsafe {
        let Some(out) = out.as_mut() else { return Status::INVALID_PARAMETER_1.0 };
        match inner(this).create_overlapped_file() {
            Ok(file) => {
                *out = file.handle();
                // There is a limit to handles, too.
                if *out == RawHandle::NULL { Status::NO_MEMORY.0 } else { Status::SUCCESS.0 }
            }
            Err(status) => {
                *out = RawHandle::NULL;
                status.0
            }
        }
    })
}

/// The version in the caller's structure is not looked at: programs leave it at 1, or uninitialised.
unsafe extern "C" fn query(this: *mut c_void, out: *mut AdapterInfo, length: *mut u32) -> HResult {
    // SAFETY: the object itself; the buffer is the caller's promise.
    boundary(|| unsafe {
        match inner(this).info() {
            Ok(info) => address::give(
                ptr::from_ref(&info).cast(),
                size_of::<AdapterInfo>() as u32,
                out.cast(),
                length,
            ),
            Err(status) => status.0,
        }
    })
}

unsafe extern "C" fn query_address_list(this: *mut c_void, out: *mut c_void, length: *mut u32) -> HResult {
    // SAFETY: the object itself; the buffer is the caller's promise.
    boundary(|| unsafe { address::query_list(inner(this).addresses(), out, length) })
}

unsafe extern "C" fn create_completion_queue(
    this: *mut c_void,
    iid: *const Guid,
    handle: RawHandle,
    depth: u32,
    group: u16,
    affinity: u64,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: the object itself; what the pointers lead to is the caller's promise.
    boundary(|| unsafe {
        Object::hand_out(iid, out, || {
            inner(this)
                .create_completion_queue(&file(handle)?, depth, (group, affinity))
                .map(CompletionQueue::new)
        })
    })
}

unsafe extern "C" fn create_memory_region(
    this: *mut c_void,
    iid: *const Guid,
    handle: RawHandle,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: as above.
    boundary(|| unsafe {
        Object::hand_out(iid, out, || inner(this).create_memory_region(&file(handle)?).map(MemoryRegion))
    })
}

unsafe extern "C" fn create_memory_window(
    this: *mut c_void,
    iid: *const Guid,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: as above.
    boundary(|| unsafe {
        Object::hand_out(iid, out, || inner(this).create_memory_window().map(MemoryWindow))
    })
}

#[allow(clippy::too_many_arguments)] // the SPI's signature
unsafe extern "C" fn create_shared_receive_queue(
    this: *mut c_void,
    iid: *const Guid,
    handle: RawHandle,
    depth: u32,
    max_sge: u32,
    threshold: u32,
    group: u16,
    affinity: u64,
    out: *mut *mut c_void,
) -> HResult {
    let config = SharedReceiveQueueConfig { depth, max_sge, threshold, affinity: (group, affinity) };
    // SAFETY: the object itself; what the pointers lead to is the caller's promise.
    boundary(|| unsafe {
        Object::hand_out(iid, out, || {
            inner(this).create_shared_receive_queue(&file(handle)?, config).map(SharedReceiveQueue)
        })
    })
}

#[allow(clippy::too_many_arguments)] // the SPI's signature
unsafe extern "C" fn create_queue_pair(
    this: *mut c_void,
    iid: *const Guid,
    receive_completion_queue: *mut c_void,
    initiator_completion_queue: *mut c_void,
    context: *mut c_void,
    receive_queue_depth: u32,
    initiator_queue_depth: u32,
    max_receive_sge: u32,
    max_initiator_sge: u32,
    inline_data_size: u32,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: the object itself; what the pointers lead to is the caller's promise.
    boundary(|| unsafe {
        Object::hand_out(iid, out, || {
            let receive = Object::<CompletionQueue>::find(receive_completion_queue);
            let initiator = Object::<CompletionQueue>::find(initiator_completion_queue);
            let config = QueuePairConfig {
                receive_completion_queue: receive.ok_or(Status::INVALID_PARAMETER_2)?.0.clone(),
                initiator_completion_queue: initiator.ok_or(Status::INVALID_PARAMETER_3)?.0.clone(),
                context: context as u64,
                shared_receive_queue: None,
                receive_queue_depth,
                initiator_queue_depth,
                max_receive_sge,
                max_initiator_sge,
                inline_data_size,
            };
            inner(this).create_queue_pair(config).map(QueuePair::new)
        })
    })
}

#[allow(clippy::too_many_arguments)] // the SPI's signature
unsafe extern "C" fn create_queue_pair_with_srq(
    this: *mut c_void,
    iid: *const Guid,
    receive_completion_queue: *mut c_void,
    initiator_completion_queue: *mut c_void,
    shared_receive_queue: *mut c_void,
    context: *mut c_void,
    initiator_queue_depth: u32,
    max_initiator_sge: u32,
    inline_data_size: u32,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: the object itself; what the pointers lead to is the caller's promise.
    boundary(|| unsafe {
        Object::hand_out(iid, out, || {
            let receive = Object::<CompletionQueue>::find(receive_completion_queue);
            let initiator = Object::<CompletionQueue>::find(initiator_completion_queue);
            let shared = Object::<SharedReceiveQueue>::find(shared_receive_queue);
            let config = QueuePairConfig {
                receive_completion_queue: receive.ok_or(Status::INVALID_PARAMETER_2)?.0.clone(),
                initiator_completion_queue: initiator.ok_or(Status::INVALID_PARAMETER_3)?.0.clone(),
                context: context as u64,
                shared_receive_queue: Some(shared.ok_or(Status::INVALID_PARAMETER_4)?.0.clone()),
                receive_queue_depth: 0,
                initiator_queue_depth,
                max_receive_sge: 0,
                max_initiator_sge,
                inline_data_size,
            };
            inner(this).create_queue_pair(config).map(QueuePair::new)
        })
    })
}

unsafe extern "C" fn create_connector(
    this: *mut c_void,
    iid: *const Guid,
    handle: RawHandle,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: the object itself; what the pointers lead to is the caller's promise.
    boundary(|| unsafe {
        Object::hand_out(iid, out, || inner(this).create_connector(&file(handle)?).map(Connector))
    })
}

unsafe extern "C" fn create_listener(
    this: *mut c_void,
    iid: *const Guid,
    handle: RawHandle,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: as above.
    boundary(|| unsafe {
        Object::hand_out(iid, out, || inner(this).create_listener(&file(handle)?).map(Listener))
    })
}

unsafe extern "C" fn create_shared_endpoint(
    this: *mut c_void,
    iid: *const Guid,
    handle: RawHandle,
    address: *const c_void,
    length: u32,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: the object itself; what the pointers lead to is the caller's promise.
    boundary(|| unsafe {
        Object::hand_out(iid, out, || {
            let address = address::read(address, length as usize)?;
            inner(this).create_shared_endpoint(&file(handle)?, address).map(SharedEndpoint)
        })
    })
}
