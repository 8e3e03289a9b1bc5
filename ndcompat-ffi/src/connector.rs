//! `IND2Connector`.

use crate::address;
use crate::com::{HResult, Interface, Object, Table, boundary, pending, status};
use crate::guid::{Guid, IID_IND2Connector, IID_IND2Overlapped, IID_INDCompatConnector};
use crate::overlapped::{OverlappedInterface, OverlappedMethods};
use crate::queue_pair::QueuePair;
use crate::shared_endpoint::SharedEndpoint;
use ndcompat::Status;
use ndcompat::connector::Offer;
use std::ffi::c_void;
use std::slice;
use std::sync::Arc;
use win32::io::{File, Overlapped};

pub(crate) struct Connector(pub Arc<ndcompat::Connector>);

#[repr(C)]
pub(crate) struct Methods {
    pub overlapped: OverlappedMethods,
    pub bind: unsafe extern "C" fn(*mut c_void, *const c_void, u32) -> HResult,
    pub connect: Connect,
    pub complete_connect: unsafe extern "C" fn(*mut c_void, *mut Overlapped) -> HResult,
    pub accept: Accept,
    pub reject: unsafe extern "C" fn(*mut c_void, *const c_void, u32) -> HResult,
    pub get_read_limits: unsafe extern "C" fn(*mut c_void, *mut u32, *mut u32) -> HResult,
    pub get_private_data: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut u32) -> HResult,
    pub get_local_address: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut u32) -> HResult,
    pub get_peer_address: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut u32) -> HResult,
    pub notify_disconnect: unsafe extern "C" fn(*mut c_void, *mut Overlapped) -> HResult,
    pub disconnect: unsafe extern "C" fn(*mut c_void, *mut Overlapped) -> HResult,
}

/// The slots of `INDCompatConnector` (`ndendpoint.h`): those of the base come first.
#[repr(C)]
pub(crate) struct ExtendedMethods {
    pub base: Methods,
    pub connect_with_shared_endpoint: ConnectWithSharedEndpoint,
}

type Connect = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    *const c_void,
    u32,
    u32,
    u32,
    *const c_void,
    u32,
    *mut Overlapped,
) -> HResult;
type ConnectWithSharedEndpoint = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *const c_void,
    u32,
    u32,
    u32,
    *const c_void,
    u32,
    *mut Overlapped,
) -> HResult;
type Accept =
    unsafe extern "C" fn(*mut c_void, *mut c_void, u32, u32, *const c_void, u32, *mut Overlapped) -> HResult;

impl Interface for Connector {
    type Methods = ExtendedMethods;
    const TABLE: &'static Table<ExtendedMethods> = &Table::new(ExtendedMethods {
        base: Methods {
            overlapped: Object::<Self>::OVERLAPPED,
            bind,
            connect,
            complete_connect,
            accept,
            reject,
            get_read_limits,
            get_private_data,
            get_local_address,
            get_peer_address,
            notify_disconnect,
            disconnect,
        },
        connect_with_shared_endpoint,
    });
    const IDS: &'static [&'static Guid] = &[&IID_IND2Connector, &IID_IND2Overlapped, &IID_INDCompatConnector];

    fn released(&self) {
        self.0.close();
    }
}

impl OverlappedInterface for Connector {
    fn file(&self) -> &File {
        self.0.file()
    }

    fn cancel(&self) {
        self.0.clone().cancel();
    }
}

/// A reference of the call's own: the request it starts may complete, and the program release the object on another
/// thread, before the call is back.
unsafe fn inner(this: *mut c_void) -> Arc<ndcompat::Connector> {
    // SAFETY: C callers pass the object itself.
    unsafe { Object::<Connector>::inner(this) }.0.clone()
}

/// Private data a caller passed; `None` for a length without data.
unsafe fn private_data<'a>(data: *const c_void, length: u32) -> Option<&'a [u8]> {
    if data.is_null() {
        return if length == 0 { Some(&[]) } else { None };
    }
    // SAFETY: the caller's array.
    Some(unsafe { slice::from_raw_parts(data.cast(), length as usize) })
}

unsafe extern "C" fn bind(this: *mut c_void, address: *const c_void, length: u32) -> HResult {
    // SAFETY: the object itself; the address is the caller's promise.
    boundary(|| unsafe {
        status(address::read(address, length as usize).and_then(|address| inner(this).bind(address)))
    })
}

unsafe extern "C" fn connect(
    this: *mut c_void,
    queue_pair: *mut c_void,
    destination: *const c_void,
    destination_length: u32,
    inbound_read_limit: u32,
    outbound_read_limit: u32,
    data: *const c_void,
    data_length: u32,
    ov: *mut Overlapped,
) -> HResult {
    if ov.is_null() {
        return Status::INVALID_PARAMETER_8.0;
    }
    // SAFETY: the object itself; what the pointers lead to is the caller's promise.
    boundary(|| unsafe {
        let Some(queue_pair) = Object::<QueuePair>::find(queue_pair) else {
            return Status::INVALID_PARAMETER_1.0;
        };
        let Some(private_data) = private_data(data, data_length) else { return Status::ACCESS_VIOLATION.0 };
        let destination = match address::read(destination, destination_length as usize) {
            Ok(destination) => destination,
            Err(status) => return status.0,
        };
        let offer = Offer { inbound_read_limit, outbound_read_limit, private_data };
        pending(inner(this).connect(&queue_pair.0, destination, offer, ov))
    })
}

unsafe extern "C" fn complete_connect(this: *mut c_void, ov: *mut Overlapped) -> HResult {
    if ov.is_null() {
        return Status::INVALID_PARAMETER_1.0;
    }
    // SAFETY: the object itself; the OVERLAPPED is the caller's promise.
    boundary(|| pending(unsafe { inner(this).complete_connect(ov) }))
}

unsafe extern "C" fn accept(
    this: *mut c_void,
    queue_pair: *mut c_void,
    inbound_read_limit: u32,
    outbound_read_limit: u32,
    data: *const c_void,
    data_length: u32,
    ov: *mut Overlapped,
) -> HResult {
    if ov.is_null() {
        return Status::INVALID_PARAMETER_6.0;
    }
    // SAFETY: the object itself; what the pointers lead to is the caller's promise.
    boundary(|| unsafe {
        let Some(queue_pair) = Object::<QueuePair>::find(queue_pair) else {
            return Status::INVALID_PARAMETER_1.0;
        };
        let Some(private_data) = private_data(data, data_length) else { return Status::ACCESS_VIOLATION.0 };
        let offer = Offer { inbound_read_limit, outbound_read_limit, private_data };
        pending(inner(this).accept(&queue_pair.0, offer, ov))
    })
}

unsafe extern "C" fn reject(this: *mut c_void, data: *const c_void, length: u32) -> HResult {
    // SAFETY: the object itself; the data is the caller's promise.
    boundary(|| unsafe {
        let Some(private_data) = private_data(data, length) else { return Status::ACCESS_VIOLATION.0 };
        status(inner(this).reject(private_data))
    })
}

unsafe extern "C" fn get_read_limits(this: *mut c_void, inbound: *mut u32, outbound: *mut u32) -> HResult {
    // SAFETY: the object itself; the results are valid or null.
    boundary(|| match unsafe { inner(this) }.read_limits() {
        Ok(limits) => {
            // SAFETY: as above.
            unsafe {
                if let Some(inbound) = inbound.as_mut() {
                    *inbound = limits.0;
                }
                if let Some(outbound) = outbound.as_mut() {
                    *outbound = limits.1;
                }
            }
            Status::SUCCESS.0
        }
        Err(status) => status.0,
    })
}

/// Three answers, as Mellanox's provider gives them: without a buffer the length needed, with a short one what fits and
/// the length as it was, with a long enough one the data and its length; the first two as `ND_BUFFER_OVERFLOW`.
unsafe extern "C" fn get_private_data(this: *mut c_void, out: *mut c_void, length: *mut u32) -> HResult {
    // SAFETY: the object itself; the results are valid or null.
    boundary(|| unsafe {
        let data = match inner(this).private_data() {
            Ok(data) => data,
            Err(status) => return status.0,
        };
        let Some(length) = length.as_mut() else { return Status::INVALID_PARAMETER_2.0 };
        if out.is_null() {
            *length = data.len() as u32;
            return Status::BUFFER_OVERFLOW.0;
        }
        let fits = data.len().min(*length as usize);
        out.cast::<u8>().copy_from_nonoverlapping(data.as_ptr(), fits);
        if fits < data.len() {
            // A caller that measures with a length of zero wants to know; who passes a short buffer does not look.
            if *length == 0 {
                *length = data.len() as u32;
            }
            return Status::BUFFER_OVERFLOW.0;
        }
        *length = data.len() as u32;
        Status::SUCCESS.0
    })
}

unsafe extern "C" fn get_local_address(this: *mut c_void, out: *mut c_void, length: *mut u32) -> HResult {
    // SAFETY: the object itself; the buffer is the caller's promise.
    boundary(|| unsafe { address::write(inner(this).local_address(), out, length) })
}

unsafe extern "C" fn get_peer_address(this: *mut c_void, out: *mut c_void, length: *mut u32) -> HResult {
    // SAFETY: the object itself; the buffer is the caller's promise.
    boundary(|| unsafe { address::write(inner(this).peer_address(), out, length) })
}

unsafe extern "C" fn notify_disconnect(this: *mut c_void, ov: *mut Overlapped) -> HResult {
    if ov.is_null() {
        return Status::INVALID_PARAMETER_1.0;
    }
    // SAFETY: the object itself; the OVERLAPPED is the caller's promise.
    boundary(|| pending(unsafe { inner(this).notify_disconnect(ov) }))
}

unsafe extern "C" fn disconnect(this: *mut c_void, ov: *mut Overlapped) -> HResult {
    if ov.is_null() {
        return Status::INVALID_PARAMETER_1.0;
    }
    // SAFETY: the object itself; the OVERLAPPED is the caller's promise.
    boundary(|| pending(unsafe { inner(this).disconnect(ov) }))
}

#[allow(clippy::too_many_arguments)] // that of Connect, and one more
unsafe extern "C" fn connect_with_shared_endpoint(
    this: *mut c_void,
    queue_pair: *mut c_void,
    endpoint: *mut c_void,
    destination: *const c_void,
    destination_length: u32,
    inbound_read_limit: u32,
    outbound_read_limit: u32,
    data: *const c_void,
    data_length: u32,
    ov: *mut Overlapped,
) -> HResult {
    if ov.is_null() {
        return Status::INVALID_PARAMETER_9.0;
    }
    // SAFETY: the object itself; what the pointers lead to is the caller's promise.
    boundary(|| unsafe {
        let Some(queue_pair) = Object::<QueuePair>::find(queue_pair) else {
            return Status::INVALID_PARAMETER_1.0;
        };
        let Some(endpoint) = Object::<SharedEndpoint>::find(endpoint) else {
            return Status::INVALID_PARAMETER_2.0;
        };
        let Some(private_data) = private_data(data, data_length) else { return Status::ACCESS_VIOLATION.0 };
        let destination = match address::read(destination, destination_length as usize) {
            Ok(destination) => destination,
            Err(status) => return status.0,
        };
        let offer = Offer { inbound_read_limit, outbound_read_limit, private_data };
        let connector = inner(this);
        pending(connector.connect_with_shared_endpoint(&queue_pair.0, &endpoint.0, destination, offer, ov))
    })
}
