//! The `Nd*` helper functions (`ndsupport.h`), which find and open adapters of all providers by their addresses.
//!
//! The provider of this library is asked first, then the others in the catalogue. ND v1 providers are ignored: their
//! adapters are neither listed nor found.

use crate::adapter::Adapter;
use crate::address;
use crate::com::{HResult, Object, boundary};
use crate::guid::{Guid, IID_INDAdapter};
use crate::other_providers;
use ndcompat::SockAddr;
use ndcompat::{Result, Status, provider};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `NdQueryAddressList`: leave out the addresses of the emulator.
pub(crate) const EXCLUDE_EMULATOR: u32 = 1;
/// `NdQueryAddressList`: leave out ND v2 adapters, that is, all. The flag for ND v1 adapters has no effect.
pub(crate) const EXCLUDE_ND2: u32 = 4;

/// How many calls of `NdStartup` had no `NdCleanup` yet.
static STARTED: AtomicUsize = AtomicUsize::new(0);

fn started() -> Result<()> {
    if STARTED.load(Ordering::Acquire) == 0 { Err(Status::DEVICE_NOT_READY) } else { Ok(()) }
}

fn answer(result: Result<()>) -> HResult {
    result.err().unwrap_or(Status::SUCCESS).0
}

/// Must be called before the other functions. Calls are counted.
#[unsafe(no_mangle)]
pub extern "C" fn NdStartup() -> HResult {
    ndcompat::logging::start();
    STARTED.fetch_add(1, Ordering::AcqRel);
    // Programs rely on this, as the helper library of Windows starts Winsock.
    win32::winsock::startup::start();
    Status::SUCCESS.0
}

/// Must be called once for each `NdStartup`; otherwise returns `ND_DEVICE_NOT_READY`. Existing objects stay usable. The
/// last call unloads the providers that have no objects.
#[unsafe(no_mangle)]
pub extern "C" fn NdCleanup() -> HResult {
    let decrement = |count: usize| count.checked_sub(1);
    match STARTED.fetch_update(Ordering::AcqRel, Ordering::Acquire, decrement) {
        Ok(count) => {
            if count == 1 {
                NdFlushProviders();
            }
            win32::winsock::startup::clean_up();
            Status::SUCCESS.0
        }
        Err(_) => Status::DEVICE_NOT_READY.0,
    }
}

/// Unloads the providers that are not in use.
#[unsafe(no_mangle)]
pub extern "C" fn NdFlushProviders() {
    boundary(|| {
        other_providers::flush();
        Status::SUCCESS.0
    });
}

/// The addresses of all providers without duplicates, with or without those of the emulator.
fn addresses(emulator: bool) -> Result<Vec<SockAddr>> {
    let mut addresses = if emulator { provider::addresses()? } else { provider::addresses_of_hardware()? };
    for other in other_providers::instances().flat_map(|other| other.addresses()) {
        let other = other.with_port(0);
        if !addresses.contains(&other) {
            addresses.push(other);
        }
    }
    Ok(addresses)
}

/// Checks that a provider has an address.
fn check(address: SockAddr) -> Result<()> {
    match provider::id_of(address) {
        Ok(Some(_)) => Ok(()),
        Ok(None) if other_providers::check(address).is_ok() => Ok(()),
        Ok(None) => Err(provider::not_local(address)),
        Err(status) => other_providers::check(address).map_err(|_| status),
    }
}

/// The addresses of all adapters, as a `SOCKET_ADDRESS_LIST`.
///
/// # Safety
/// `length` must be valid or null, `list` null or have `*length` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NdQueryAddressList(flags: u32, list: *mut c_void, length: *mut usize) -> HResult {
    boundary(|| {
        if let Err(status) = started() {
            return status.0;
        }
        // SAFETY: C callers pass a pointer to a length, or null.
        let Some(length) = (unsafe { length.as_mut() }) else { return Status::INVALID_PARAMETER_3.0 };
        let addresses =
            if flags & EXCLUDE_ND2 != 0 { Ok(Vec::new()) } else { addresses(flags & EXCLUDE_EMULATOR == 0) };
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
        // SAFETY: the buffer is large enough, and C callers align it for the list.
        unsafe { address::write_list(&addresses, list) };
        Status::SUCCESS.0
    })
}

/// The address of the local adapter that leads to a remote address, with port 0.
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
    boundary(|| {
        // SAFETY: C callers pass an address of the length that they say, or null.
        let read = || unsafe { address::read(remote, remote_length) };
        let found = started().and_then(|()| read()).and_then(local_address_for);
        // SAFETY: C callers pass a pointer to a length, or null.
        let Some(length) = (unsafe { length.as_mut() }) else { return Status::INVALID_PARAMETER_4.0 };
        let mut room = (*length).min(u32::MAX as usize) as u32;
        // SAFETY: C callers pass a buffer of the length that they say, or null.
        let status = unsafe { address::write(found, local, &mut room) };
        *length = room as usize;
        status
    })
}

/// The source address from the routing table, if an adapter has it.
fn local_address_for(remote: SockAddr) -> Result<SockAddr> {
    let local = provider::local_address_for(remote)?;
    check(local).map(|()| local)
}

/// Reads an address passed to a helper function, and checks its length and family as documented.
unsafe fn checked(address: *const c_void, length: usize) -> Result<SockAddr> {
    started()?;
    if address.is_null() || length < size_of::<libc::sockaddr>() || length > u32::MAX as usize {
        return Err(Status::INVALID_PARAMETER_2);
    }
    // SAFETY: the caller says how many bytes can be read at `address`.
    unsafe { SockAddr::from_raw(address, length) }.map_err(|error| match error.raw_os_error() {
        Some(libc::EAFNOSUPPORT) => Status::INVALID_ADDRESS,
        _ => Status::INVALID_PARAMETER_2,
    })
}

/// Checks that an adapter has an address. The port is ignored.
///
/// # Safety
/// `address` must be null or have `length` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NdCheckAddress(address: *const c_void, length: usize) -> HResult {
    // SAFETY: the caller says how many bytes can be read at `address`.
    boundary(|| answer(unsafe { checked(address, length) }.and_then(check)))
}

/// Opens the adapter that has an address. The port is ignored.
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
    boundary(|| {
        // SAFETY: C callers pass a valid result pointer, or null.
        if let Some(out) = unsafe { out.as_mut() } {
            *out = std::ptr::null_mut();
        }
        // SAFETY: C callers pass an address of the length that they say, or null.
        let address = match unsafe { checked(address, length) } {
            Ok(address) => address,
            Err(status) => return status.0,
        };
        // SAFETY: C callers pass a pointer to a GUID, or null.
        if unsafe { iid.as_ref() } == Some(&IID_INDAdapter) {
            return Status::INVALID_ADDRESS.0;
        }
        let make = || {
            let engine = provider::adapter_at(address)?.ok_or(Status::INVALID_ADDRESS)?;
            Ok(Adapter::new(engine, None))
        };
        // SAFETY: C callers pass pointers to a GUID and to the result, or null.
        let status = unsafe { Object::hand_out(iid, out, make) };
        if status >= 0 || iid.is_null() || out.is_null() {
            return status;
        }
        // SAFETY: neither is null, so both are valid.
        let last = unsafe { other_providers::open_adapter(iid, address, out, status) };
        if last == Status::INVALID_ADDRESS.0 {
            provider::not_local(address);
        }
        last
    })
}

/// Would open an ND v1 adapter: there is none, as ND v1 providers are ignored.
///
/// # Safety
/// As [`NdOpenAdapter`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn NdOpenV1Adapter(
    address: *const c_void,
    length: usize,
    out: *mut *mut c_void,
) -> HResult {
    // SAFETY: the caller passes an address of `length` bytes and a place for the result, or null.
    unsafe { NdOpenAdapter(&IID_INDAdapter, address, length, out) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interfaces::IID_IND2Adapter;
    use crate::provider::DllGetClassObject;
    use std::ptr::{self, NonNull};

    /// The status of `call`, which must clear the result.
    fn cleared(call: impl FnOnce(*mut *mut c_void) -> HResult) -> HResult {
        let mut out: *mut c_void = NonNull::<u64>::dangling().as_ptr().cast();
        let status = call(&mut out);
        assert!(status < 0 && out.is_null(), "{status:#x}");
        status
    }

    /// Opens the adapter of an address, or none; of version 1, too, which fails in any case.
    fn open(iid: *const Guid, address: Option<&[u8; 28]>, length: usize) -> HResult {
        let address = address.map_or(ptr::null(), |address| address.as_ptr().cast());
        // SAFETY: the address is null or has 28 bytes, of which `length` are read; the result is valid, and the id valid or null.
        cleared(|out| unsafe { NdOpenV1Adapter(address, length, out) });
        // SAFETY: as above.
        cleared(|out| unsafe { NdOpenAdapter(iid, address, length, out) })
    }

    #[test]
    fn the_result_of_every_failure_is_null() {
        let mut address = [0; 28];
        let iid: *const Guid = &IID_IND2Adapter;
        // Before NdStartup.
        assert_eq!(open(iid, Some(&address), 28), Status::DEVICE_NOT_READY.0);
        NdStartup();
        for (address, length) in [(None, 28), (Some(&address), 3), (Some(&address), 28)] {
            open(iid, address, length);
        }
        let family = libc::AF_INET as u16;
        address[..2].copy_from_slice(&family.to_ne_bytes());
        assert_eq!(open(ptr::null(), Some(&address), 16), Status::INVALID_PARAMETER.0);
        NdCleanup();
        // SAFETY: the ids are null, and the result is valid.
        let no_id = cleared(|out| unsafe { DllGetClassObject(ptr::null(), ptr::null(), out) });
        assert_eq!(no_id, Status::POINTER.0);
    }
}
