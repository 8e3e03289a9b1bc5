//! The provider: which addresses have RDMA, and the adapters behind them.

use crate::adapter::Adapter;
use crate::status::{Result, Status};
use crate::verbs::{self, LocalAddress, SockAddr};
use std::sync::Arc;

/// All addresses of all adapters, with port 0 (`IND2Provider::QueryAddressList`). Empty on a machine without RDMA.
pub fn addresses() -> Result<Vec<SockAddr>> {
    Ok(verbs::addresses().map_err(Status::of_host)?.into_iter().map(|local| local.addr).collect())
}

/// The id of the adapter that `address` belongs to (`IND2Provider::ResolveAddress`); its port does not matter.
///
/// The addresses of one device share its id, as the SPI asks.
pub fn resolve_address(address: SockAddr) -> Result<u64> {
    find(|own| own.same_ip(address), |_| true)?
        .map(|local| local.context.node_guid())
        .ok_or(Status::INVALID_ADDRESS)
}

/// Opens the adapter with this id (`IND2Provider::OpenAdapter`).
pub fn open_adapter(id: u64) -> Result<Arc<Adapter>> {
    let local = find(|_| true, |local| local.context.node_guid() == id)?.ok_or(Status::INVALID_PARAMETER)?;
    Adapter::open(local.addr)
}

/// Opens the adapter that `address` belongs to, whatever its port (`NdOpenAdapter`).
pub fn open_adapter_at(address: SockAddr) -> Result<Arc<Adapter>> {
    let local = find(|own| own.same_ip(address), |_| true)?.ok_or(Status::INVALID_ADDRESS)?;
    Adapter::open(local.addr)
}

/// The first of the addresses `among` that is an adapter's as it is `wanted`.
fn find(
    among: impl Fn(SockAddr) -> bool,
    wanted: impl Fn(&LocalAddress) -> bool,
) -> Result<Option<LocalAddress>> {
    let found = verbs::addresses_among(among).map_err(Status::of_host)?;
    let mut found = found.filter(|local| local.as_ref().map_or(true, &wanted));
    found.next().transpose().map_err(Status::of_host)
}
