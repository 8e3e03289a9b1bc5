//! The machine's RDMA addresses, and the choice of the one that leads to a peer.

use crate::device::adapter::Adapter;
use crate::device::provider;
use crate::status::{Result, Status};
use crate::verbs::SockAddr;
use std::net::SocketAddr;
use std::sync::Arc;

/// The RDMA devices of this machine.
///
/// ```
#[doc = include_str!("device.txt")]
/// use ndcompat::Provider;
///
/// for address in Provider::addresses()? {
///     println!("{address} is {}", Provider::open(address)?.device_name());
/// }
/// # let peer = Provider::addresses()?[0].ip();
/// // The local address that leads to a peer.
/// let own = Provider::resolve((peer, 5000).into())?;
/// let adapter = Provider::open(own)?;
/// # assert_eq!(own.port(), 0);
/// # Ok::<(), ndcompat::Status>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Provider;

impl Provider {
    /// All addresses of all adapters, with port 0. None on a machine without RDMA.
    ///
    /// # Errors
    /// `ND_NO_MEMORY` or `ND_INSUFFICIENT_RESOURCES` if memory or descriptors run out; `ND_ACCESS_VIOLATION` without
    /// permission for rdma_cm's device (`/dev/infiniband/rdma_cm`).
    pub fn addresses() -> Result<Vec<SocketAddr>> {
        Ok(provider::addresses()?.into_iter().map(SocketAddr::from).collect())
    }

    /// The local RDMA address that leads to `peer`, with port 0 (`NdResolveAddress`).
    ///
    /// # Errors
    /// `ND_NETWORK_UNREACHABLE` without a route to the peer; `ND_INVALID_ADDRESS` if the route's interface has no RDMA.
    pub fn resolve(peer: SocketAddr) -> Result<SocketAddr> {
        let local = provider::local_address_for(peer.into())?;
        provider::resolve_address(local)?;
        Ok(local.into())
    }

    /// Opens the adapter that has `address`. The port is ignored.
    ///
    /// # Errors
    /// `ND_INVALID_ADDRESS` if no adapter has it; `ND_NO_MEMORY` or `ND_INSUFFICIENT_RESOURCES` if memory or descriptors
    /// run out.
    pub fn open(address: SocketAddr) -> Result<Arc<Adapter>> {
        provider::open_adapter_at(provider::scoped(SockAddr::from(address)))
    }

    /// Opens the adapter that leads to `peer`.
    ///
    /// # Errors
    /// Those of [`resolve`](Self::resolve) and [`open`](Self::open).
    pub fn open_towards(peer: SocketAddr) -> Result<Arc<Adapter>> {
        Provider::open(Provider::resolve(peer)?)
    }

    /// Opens the adapter of the first address of [`addresses`](Self::addresses).
    ///
    /// # Errors
    /// `ND_INVALID_ADDRESS` on a machine without RDMA; those of [`open`](Self::open).
    pub fn open_any() -> Result<Arc<Adapter>> {
        Provider::open(*Provider::addresses()?.first().ok_or(Status::INVALID_ADDRESS)?)
    }
}
