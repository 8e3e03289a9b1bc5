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
    find(|local| local.addr.ip() == address.ip())?
        .map(|local| local.context.node_guid())
        .ok_or(Status::INVALID_ADDRESS)
}

/// Opens the adapter with this id (`IND2Provider::OpenAdapter`).
pub fn open_adapter(id: u64) -> Result<Arc<Adapter>> {
    let local = find(|local| local.context.node_guid() == id)?.ok_or(Status::INVALID_PARAMETER)?;
    Adapter::open(local.addr)
}

fn find(wanted: impl Fn(&LocalAddress) -> bool) -> Result<Option<LocalAddress>> {
    Ok(verbs::addresses().map_err(Status::of_host)?.into_iter().find(wanted))
}
