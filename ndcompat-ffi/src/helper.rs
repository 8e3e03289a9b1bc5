//! The `Nd*` helper functions (`ndsupport.h`): from an IP address to an adapter, of whichever provider.
//!
//! The provider in this library is asked first, then the others in the catalogue. ND v1 providers are left alone, so
//! that no adapter of theirs is listed or found.

use crate::adapter::Adapter;
use crate::address;
use crate::com::{HResult, Object, boundary};
use crate::guid::{Guid, IID_INDAdapter};
use crate::others;
use ndcompat::verbs::SockAddr;
use ndcompat::{Result, Status, provider};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `NdQueryAddressList`: leave out ND v2 adapters, which are all there are. The flags for emulated adapters and for those
/// of ND v1 leave out nothing.
pub(crate) const EXCLUDE_ND2: u32 = 4;

/// How often `NdStartup` was called without its `NdCleanup`.
static STARTED: AtomicUsize = AtomicUsize::new(0);

fn started() -> Result<()> {
    if STARTED.load(Ordering::Acquire) == 0 { Err(Status::DEVICE_NOT_READY) } else { Ok(()) }
}

fn answer(result: Result<()>) -> HResult {
    result.err().unwrap_or(Status::SUCCESS).0
}

/// Must be called before the other functions; counted.
#[unsafe(no_mangle)]
pub extern "C" fn NdStartup() -> HResult {
    STARTED.fetch_add(1, Ordering::AcqRel);
    Status::SUCCESS.0
}

/// Ends what one `NdStartup` began. `ND_DEVICE_NOT_READY` without one. Objects that exist stay usable; the last unloads
/// the providers that have none.
#[unsafe(no_mangle)]
pub extern "C" fn NdCleanup() -> HResult {
    let decrement = |count: usize| count.checked_sub(1);
    match STARTED.fetch_update(Ordering::AcqRel, Ordering::Acquire, decrement) {
        Ok(count) => {
            if count == 1 {
                NdFlushProviders();
            }
            Status::SUCCESS.0
        }
        Err(_) => Status::DEVICE_NOT_READY.0,
    }
}

/// Unloads the providers that are not in use.
#[unsafe(no_mangle)]
pub extern "C" fn NdFlushProviders() {
    boundary(|| {
        others::flush();
        Status::SUCCESS.0
    });
}

/// The addresses of all providers, each once.
fn addresses() -> Result<Vec<SockAddr>> {
    let mut addresses = provider::addresses()?;
    for other in others::instances().flat_map(|other| other.addresses()) {
        let other = other.with_port(0);
        if !addresses.contains(&other) {
            addresses.push(other);
        }
    }
    Ok(addresses)
}

/// Whether an address is some provider's.
fn check(address: SockAddr) -> Result<()> {
    provider::resolve_address(address).map(drop).or_else(|_| others::check(address))
}

/// The addresses of all adapters, as a `SOCKET_ADDRESS_LIST`.
///
/// # Safety
/// `length` must be valid or null, `list` null or have `*length` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NdQueryAddressList(flags: u32, list: *mut c_void, length: *mut usize) -> HResult {
    // SAFETY: passed on to the caller.
    boundary(|| unsafe {
        if let Err(status) = started() {
            return status.0;
        }
        let Some(length) = length.as_mut() else { return Status::INVALID_PARAMETER_3.0 };
        let addresses = if flags & EXCLUDE_ND2 != 0 { Ok(Vec::new()) } else { addresses() };
        let addresses = match addresses {
            Ok(addresses) => addresses,
            Err(status) => return status.0,
        };
        if addresses.is_empty() {
            *length = 0;
            return Status::SUCCESS.0;
        }
        let needed = address::list_size(&addresses);
        if list.is_null() || *length < needed {
            *length = needed;
            return Status::BUFFER_OVERFLOW.0;
        }
        address::write_list(&addresses, list);
        Status::SUCCESS.0
    })
}

/// The local adapter address to reach a remote one from, with port 0.
///
/// # Safety
/// `remote` must have `remote_length` readable bytes, `length` be valid, `local` have `*length` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NdResolveAddress(
    remote: *const c_void,
    remote_length: usize,
    local: *mut c_void,
    length: *mut usize,
) -> HResult {
    // SAFETY: passed on to the caller.
    boundary(|| unsafe {
        let found = started().and_then(|()| address::read(remote, remote_length)).and_then(local_address_for);
        let Some(length) = length.as_mut() else { return Status::INVALID_PARAMETER_4.0 };
        let mut room = (*length).min(u32::MAX as usize) as u32;
        let status = address::write(found, local, &mut room);
        *length = room as usize;
        status
    })
}

/// Asks the routing table, then whether the address it names has RDMA.
fn local_address_for(remote: SockAddr) -> Result<SockAddr> {
    let local =
        win32::winsock::local_address_for(remote.into()).map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL | libc::EAFNOSUPPORT) => Status::INVALID_ADDRESS,
            Some(libc::ENETUNREACH | libc::ENETDOWN | libc::EHOSTUNREACH) => Status::NETWORK_UNREACHABLE,
            _ => Status::UNSUCCESSFUL,
        })?;
    let local = SockAddr::from(local).with_port(0);
    check(local).map(|()| local)
}

/// An address that a helper function was passed: its length and family are checked as documented.
unsafe fn checked(address: *const c_void, length: usize) -> Result<SockAddr> {
    started()?;
    if address.is_null() || length < size_of::<libc::sockaddr>() || length > u32::MAX as usize {
        return Err(Status::INVALID_PARAMETER_2);
    }
    // SAFETY: the caller's promise.
    unsafe { SockAddr::from_raw(address, length) }.map_err(|error| match error.raw_os_error() {
        Some(libc::EAFNOSUPPORT) => Status::INVALID_ADDRESS,
        _ => Status::INVALID_PARAMETER_2,
    })
}

/// Whether an address, whatever its port, is an adapter's.
///
/// # Safety
/// `address` must be null or have `length` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NdCheckAddress(address: *const c_void, length: usize) -> HResult {
    // SAFETY: passed on to the caller.
    boundary(|| answer(unsafe { checked(address, length) }.and_then(check)))
}

/// Opens the adapter that an address, whatever its port, belongs to.
///
/// # Safety
/// The pointers must be valid or null, `address` with `length` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NdOpenAdapter(
    iid: *const Guid,
    address: *const c_void,
    length: usize,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: passed on to the caller.
    boundary(|| unsafe {
        let address = match checked(address, length) {
            Ok(address) => address,
            Err(status) => return status.0,
        };
        if iid.as_ref() == Some(&IID_INDAdapter) {
            if let Some(out) = out.as_mut() {
                *out = std::ptr::null_mut();
            }
            return Status::INVALID_ADDRESS.0;
        }
        let status = Object::hand_out(iid, out, || {
            let engine = provider::open_adapter_at(address)?;
            Ok(Adapter { engine, _provider: None })
        });
        if status >= 0 || iid.is_null() || out.is_null() {
            return status;
        }
        others::open_adapter(iid, address, out, status)
    })
}

/// Opens an ND v1 adapter: ND v1 providers are left alone, so there is none.
///
/// # Safety
/// As [`NdOpenAdapter`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NdOpenV1Adapter(
    address: *const c_void,
    length: usize,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: passed on to the caller.
    unsafe { NdOpenAdapter(&IID_INDAdapter, address, length, out) }
}
