//! The provider: the addresses of adapters, and opening adapters.
//!
//! ```
#![doc = include_str!("../rust_api/device.txt")]
//! use ndcompat::provider;
//!
//! let address = provider::addresses()?[0];
//! let id = provider::resolve_address(address)?;
//! assert_eq!(provider::open_adapter(id)?.info()?.adapter_id, id);
//! // The same by one call.
//! assert_eq!(provider::open_adapter_at(address)?.info()?.adapter_id, id);
//! // An adapter's own address is reached from itself.
//! assert_eq!(provider::local_address_for(address.with_port(5000))?, address);
//! # Ok::<(), ndcompat::Status>(())
//! ```

use crate::device::adapter::Adapter;
use crate::diagnosis;
use crate::status::{Result, Status};
use crate::verbs::{self, Context, LocalAddress, SockAddr};
use std::sync::Arc;

/// All addresses of all adapters, with port 0 (`IND2Provider::QueryAddressList`). Empty on a machine without RDMA, unless
/// the emulator is enabled.
///
/// # Errors
/// `ND_NO_MEMORY` or `ND_INSUFFICIENT_RESOURCES` if memory or descriptors run out; `ND_INVALID_PARAMETER` if
/// `NDCOMPAT_EMULATOR` has an invalid value.
pub fn addresses() -> Result<Vec<SockAddr>> {
    Ok(locals()?.into_iter().map(|local| local.addr).collect())
}

/// As [`addresses`], without those of the emulator (`ND_QUERY_EXCLUDE_EMULATOR_ADDRESSES`).
///
/// # Errors
/// As [`addresses`].
pub fn addresses_of_hardware() -> Result<Vec<SockAddr>> {
    let all = verbs::addresses().map_err(Status::of_host)?.into_iter();
    Ok(all.filter(|local| !local.context.library().is_emulator()).map(|local| local.addr).collect())
}

/// The id of the adapter that has `address` (`IND2Provider::ResolveAddress`). The port is ignored.
///
/// All addresses of a device have the same id, as the SPI requires.
///
/// # Errors
/// `ND_INVALID_ADDRESS` if no adapter has the address; `ND_NO_MEMORY` or `ND_INSUFFICIENT_RESOURCES` if memory or
/// descriptors run out.
pub fn resolve_address(address: SockAddr) -> Result<u64> {
    id_of(address)?.ok_or_else(|| not_local(address))
}

/// The id of the adapter that has `address`, if there is one. The port is ignored.
///
/// # Errors
/// `ND_NO_MEMORY` or `ND_INSUFFICIENT_RESOURCES` if memory or descriptors run out; `STATUS_ACCESS_DENIED` without
/// permission for the devices.
pub fn id_of(address: SockAddr) -> Result<Option<u64>> {
    let Some(local) = find(|own| own.same_ip(address), |_| true)? else { return Ok(None) };
    Ok(Some(local.context.adapter_id(&devices()?)))
}

/// The status for an address that no adapter has. Logs the addresses that adapters have.
pub fn not_local(address: SockAddr) -> Status {
    diagnosis::not_local(address, &addresses().unwrap_or_default());
    Status::INVALID_ADDRESS
}

/// Opens the adapter with this id (`IND2Provider::OpenAdapter`).
///
/// # Errors
/// `ND_INVALID_PARAMETER` if no adapter has the id; `ND_NO_MEMORY` or `ND_INSUFFICIENT_RESOURCES` if memory or descriptors
/// run out.
pub fn open_adapter(id: u64) -> Result<Arc<Adapter>> {
    let devices = devices()?;
    let has_id = |local: &LocalAddress| local.context.adapter_id(&devices) == id;
    let local = find(|_| true, has_id)?.ok_or(Status::INVALID_PARAMETER)?;
    Adapter::open(&local)
}

/// Opens the adapter that has `address` (`NdOpenAdapter`). The port is ignored.
///
/// # Errors
/// `ND_INVALID_ADDRESS` if no adapter has the address; `ND_NO_MEMORY` or `ND_INSUFFICIENT_RESOURCES` if memory or
/// descriptors run out.
pub fn open_adapter_at(address: SockAddr) -> Result<Arc<Adapter>> {
    adapter_at(address)?.ok_or_else(|| not_local(address))
}

/// As [`open_adapter_at`], but `None` if no adapter has the address.
///
/// # Errors
/// Those of [`open_adapter_at`], except `ND_INVALID_ADDRESS`.
pub fn adapter_at(address: SockAddr) -> Result<Option<Arc<Adapter>>> {
    let local = find(|own| own.same_ip(address), |_| true)?;
    local.map(|local| Adapter::open(&local)).transpose()
}

/// The source address that the routing table has for `remote`, with port 0. It need not be an adapter's.
///
/// # Errors
/// `ND_NETWORK_UNREACHABLE` without a route; `ND_INVALID_ADDRESS` if `remote` is not the address of a host;
/// `ND_INSUFFICIENT_RESOURCES` if descriptors run out.
pub fn local_address_for(remote: SockAddr) -> Result<SockAddr> {
    let remote = scoped(remote);
    // An adapter's address is reached from itself.
    if let Some(own) = find(|own| own.same_ip(remote), |_| true)? {
        return Ok(own.addr);
    }
    let local = win32::winsock::local_address_for(remote.into());
    let local = local.map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL | libc::EAFNOSUPPORT) => Status::INVALID_ADDRESS.because(&error),
        Some(libc::ENETUNREACH | libc::ENETDOWN | libc::EHOSTUNREACH) => {
            Status::NETWORK_UNREACHABLE.because(&error)
        }
        _ => Status::of_host(error),
    })?;
    Ok(SockAddr::from(local).with_port(0))
}

/// Adds the scope to a link-local address without one, if it is unambiguous: that of the interface with this address, or
/// else of the only RDMA interface with a link-local address.
pub fn scoped(address: SockAddr) -> SockAddr {
    let own = verbs::scoped(address);
    if !own.lacks_scope() {
        return own;
    }
    let is_link_local = |own: SockAddr| own.with_scope(0).lacks_scope();
    let Ok(Some(adapters)) = verbs::addresses_among(is_link_local) else { return own };
    match &adapters.flatten().collect::<Vec<_>>()[..] {
        [only] => verbs::scoped_like(own, only.addr),
        _ => own,
    }
}

/// All devices.
fn devices() -> Result<Vec<Arc<Context>>> {
    Context::all().map_err(Status::of_host)
}

/// All local addresses of all devices.
fn locals() -> Result<Vec<LocalAddress>> {
    match verbs::addresses_among(|_| true).map_err(Status::of_host)? {
        Some(found) => found.collect::<std::io::Result<_>>().map_err(Status::of_host),
        None => {
            diagnosis::no_device();
            Ok(Vec::new())
        }
    }
}

/// The first address of `among` that is `wanted` and has an adapter.
fn find(
    among: impl Fn(SockAddr) -> bool,
    wanted: impl Fn(&LocalAddress) -> bool,
) -> Result<Option<LocalAddress>> {
    let found = verbs::addresses_among(among).map_err(Status::of_host)?;
    let Some(found) = found else {
        diagnosis::no_device();
        return Ok(None);
    };
    let mut found = found.filter(|local| local.as_ref().map_or(true, &wanted));
    found.next().transpose().map_err(Status::of_host)
}
