//! `IND2Connector`, and its extension `INDCompatConnector`.

use crate::address;
use crate::com::{Guid, HResult, Interface, Object, Pointer, Table, This, pending, status};
use crate::interfaces::{
    IID_IND2Connector, IID_IND2Overlapped, IID_INDCompatConnector, IND2Connector, INDCompatConnector,
    INDCompatConnectorVtbl,
};
use crate::object::Reference;
use crate::overlapped::Requests;
use crate::queue_pair::QueuePair;
use crate::shared_endpoint::SharedEndpoint;
use ndcompat::connector::Offer;
use ndcompat::{Result, Status};
use std::ffi::c_void;
use std::slice;
use std::sync::Arc;
use win32::io::{File, Overlapped};

pub(crate) struct Connector(pub Arc<ndcompat::Connector>);

impl Connector {
    /// Returns a reference for the time of a call: before it returns, the request may complete and another thread may
    /// release the object.
    fn engine(&self) -> Arc<ndcompat::Connector> {
        self.0.clone()
    }
}

impl Interface for Connector {
    type Vtbl = INDCompatConnectorVtbl;
    const IDS: &'static [&'static Guid] = &[&IID_IND2Connector, &IID_IND2Overlapped, &IID_INDCompatConnector];

    fn table() -> &'static Table<Self> {
        static TABLE: Table<Connector> = Table::new();
        &TABLE
    }
}

impl Requests for Connector {
    fn file(&self) -> &File {
        self.0.file()
    }

    fn cancel(&self) {
        self.engine().cancel();
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        self.0.close();
        self.0.requests().wait_for_none();
    }
}

/// The private data of a caller; null for none.
///
/// # Safety
/// `data` must be null, or valid for reads of `length` bytes while the result is used.
unsafe fn private_data<'a>(data: *const c_void, length: u32) -> Result<&'a [u8]> {
    match (data.is_null(), length) {
        (true, 0) => Ok(&[]),
        (true, _) => Err(Status::ACCESS_VIOLATION),
        // SAFETY: the caller says that `length` bytes are readable.
        _ => Ok(unsafe { slice::from_raw_parts(data.cast(), length as usize) }),
    }
}

/// What `Connect` and `Accept` propose to the peer.
///
/// # Safety
/// As [`private_data`].
unsafe fn offer<'a>(
    inbound_read_limit: u32,
    outbound_read_limit: u32,
    data: *const c_void,
    length: u32,
) -> Result<Offer<'a>> {
    // SAFETY: the caller says that `length` bytes are readable while the result is used, or passes null.
    let private_data = unsafe { private_data(data, length)? };
    Ok(Offer { inbound_read_limit, outbound_read_limit, private_data })
}

/// The queue pair of an interface pointer, which is the first parameter.
///
/// # Safety
/// `queue_pair` must be null or an interface pointer.
unsafe fn queue_pair(queue_pair: Pointer) -> Result<Reference<QueuePair>> {
    // SAFETY: the caller passes an interface pointer, or null.
    unsafe { Object::find(queue_pair) }.ok_or(Status::INVALID_PARAMETER_1)
}

impl IND2Connector for Connector {
    unsafe fn bind(this: This<Self>, address: *const c_void, length: u32) -> HResult {
        // SAFETY: C callers pass an address of `length` bytes, or null.
        let address = unsafe { address::read(address, length as usize) };
        status(address.and_then(|address| this.engine().bind(address)))
    }

    unsafe fn connect(
        this: This<Self>,
        queue_pair: Pointer,
        address: *const c_void,
        length: u32,
        inbound_read_limit: u32,
        outbound_read_limit: u32,
        data: *const c_void,
        data_length: u32,
        ov: *mut Overlapped,
    ) -> HResult {
        if ov.is_null() {
            return Status::INVALID_PARAMETER_8.0;
        }
        let begin = || {
            // SAFETY: C callers pass an interface pointer, or null.
            let queue_pair = unsafe { self::queue_pair(queue_pair)? };
            // SAFETY: C callers pass private data of this length, or null; it is used during the call.
            let offer = unsafe { offer(inbound_read_limit, outbound_read_limit, data, data_length)? };
            // SAFETY: C callers pass an address of `length` bytes, or null.
            let destination = unsafe { address::read(address, length as usize)? };
            // SAFETY: C callers keep the `OVERLAPPED` valid until the request completes; it is not null.
            unsafe { this.engine().connect(&queue_pair.0, destination, offer, ov) }
        };
        pending(begin())
    }

    unsafe fn complete_connect(this: This<Self>, ov: *mut Overlapped) -> HResult {
        if ov.is_null() {
            return Status::INVALID_PARAMETER_1.0;
        }
        // SAFETY: C callers keep the `OVERLAPPED` valid until the request completes; it is not null.
        pending(unsafe { this.engine().complete_connect(ov) })
    }

    unsafe fn accept(
        this: This<Self>,
        queue_pair: Pointer,
        inbound_read_limit: u32,
        outbound_read_limit: u32,
        data: *const c_void,
        data_length: u32,
        ov: *mut Overlapped,
    ) -> HResult {
        if ov.is_null() {
            return Status::INVALID_PARAMETER_6.0;
        }
        let begin = || {
            // SAFETY: C callers pass an interface pointer, or null.
            let queue_pair = unsafe { self::queue_pair(queue_pair)? };
            // SAFETY: C callers pass private data of this length, or null; it is used during the call.
            let offer = unsafe { offer(inbound_read_limit, outbound_read_limit, data, data_length)? };
            // SAFETY: C callers keep the `OVERLAPPED` valid until the request completes; it is not null.
            unsafe { this.engine().accept(&queue_pair.0, offer, ov) }
        };
        pending(begin())
    }

    unsafe fn reject(this: This<Self>, data: *const c_void, length: u32) -> HResult {
        // SAFETY: C callers pass private data of this length, or null; it is used during the call.
        let private_data = unsafe { private_data(data, length) };
        status(private_data.and_then(|data| this.engine().reject(data)))
    }

    unsafe fn get_read_limits(this: This<Self>, inbound: *mut u32, outbound: *mut u32) -> HResult {
        let limits = match this.engine().read_limits() {
            Ok(limits) => limits,
            Err(status) => return status.0,
        };
        // SAFETY: C callers pass a valid result pointer, or null.
        if let Some(inbound) = unsafe { inbound.as_mut() } {
            *inbound = limits.0;
        }
        // SAFETY: C callers pass a valid result pointer, or null.
        if let Some(outbound) = unsafe { outbound.as_mut() } {
            *outbound = limits.1;
        }
        Status::SUCCESS.0
    }

    // As in Mellanox's provider: without a buffer, stores the length needed; with a short buffer, stores what fits and
    // leaves the length unchanged; both return `ND_BUFFER_OVERFLOW`. Otherwise stores the data and its length.
    unsafe fn get_private_data(this: This<Self>, out: Pointer, length: *mut u32) -> HResult {
        let data = match this.engine().private_data() {
            Ok(data) => data,
            Err(status) => return status.0,
        };
        // SAFETY: C callers pass a pointer to a length, or null.
        let Some(length) = (unsafe { length.as_mut() }) else { return Status::INVALID_PARAMETER_2.0 };
        if out.is_null() {
            *length = data.len() as u32;
            return Status::BUFFER_OVERFLOW.0;
        }
        let fits = data.len().min(*length as usize);
        // SAFETY: the buffer has the length that was passed.
        unsafe { out.cast::<u8>().copy_from_nonoverlapping(data.as_ptr(), fits) };
        if fits < data.len() {
            // Only a caller that passes a length of 0 gets the length needed.
            if *length == 0 {
                *length = data.len() as u32;
            }
            return Status::BUFFER_OVERFLOW.0;
        }
        *length = data.len() as u32;
        Status::SUCCESS.0
    }

    unsafe fn get_local_address(this: This<Self>, out: Pointer, length: *mut u32) -> HResult {
        // SAFETY: C callers pass a buffer of `*length` bytes and its length, or null.
        unsafe { address::write(this.engine().local_address(), out, length) }
    }

    unsafe fn get_peer_address(this: This<Self>, out: Pointer, length: *mut u32) -> HResult {
        // SAFETY: C callers pass a buffer of `*length` bytes and its length, or null.
        unsafe { address::write(this.engine().peer_address(), out, length) }
    }

    unsafe fn notify_disconnect(this: This<Self>, ov: *mut Overlapped) -> HResult {
        if ov.is_null() {
            return Status::INVALID_PARAMETER_1.0;
        }
        // SAFETY: C callers keep the `OVERLAPPED` valid until the request completes; it is not null.
        pending(unsafe { this.engine().notify_disconnect(ov) })
    }

    unsafe fn disconnect(this: This<Self>, ov: *mut Overlapped) -> HResult {
        if ov.is_null() {
            return Status::INVALID_PARAMETER_1.0;
        }
        // SAFETY: C callers keep the `OVERLAPPED` valid until the request completes; it is not null.
        pending(unsafe { this.engine().disconnect(ov) })
    }
}

impl INDCompatConnector for Connector {
    unsafe fn connect_with_shared_endpoint(
        this: This<Self>,
        queue_pair: Pointer,
        endpoint: Pointer,
        address: *const c_void,
        length: u32,
        inbound_read_limit: u32,
        outbound_read_limit: u32,
        data: *const c_void,
        data_length: u32,
        ov: *mut Overlapped,
    ) -> HResult {
        if ov.is_null() {
            return Status::INVALID_PARAMETER_9.0;
        }
        let begin = || {
            // SAFETY: C callers pass an interface pointer, or null.
            let queue_pair = unsafe { self::queue_pair(queue_pair)? };
            // SAFETY: C callers pass an interface pointer, or null.
            let endpoint = unsafe { Object::<SharedEndpoint>::find(endpoint) };
            let endpoint = &endpoint.ok_or(Status::INVALID_PARAMETER_2)?.0;
            // SAFETY: C callers pass private data of this length, or null; it is used during the call.
            let offer = unsafe { offer(inbound_read_limit, outbound_read_limit, data, data_length)? };
            // SAFETY: C callers pass an address of `length` bytes, or null.
            let destination = unsafe { address::read(address, length as usize)? };
            // SAFETY: C callers keep the `OVERLAPPED` valid until the request completes; it is not null.
            unsafe {
                this.engine().connect_with_shared_endpoint(&queue_pair.0, endpoint, destination, offer, ov)
            }
        };
        pending(begin())
    }
}
