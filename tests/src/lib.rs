//! What the device tests share: the adapter under test, overlapped requests, and a connected pair of ends.
//!
//! The tests run where `ci/lab run` puts them, next to a live RDMA device whose address is in `NDCOMPAT_ADDR`. Without
//! a device they fail: nothing is skipped silently.

pub mod client;
pub mod com;
mod end;
pub mod lab;
pub mod library;
mod operation;
mod shown;

pub use end::{End, Memory, Pair, QUEUE_DEPTH, listen};
pub use operation::Operation;
pub use shown::shows;

use ndcompat::verbs::SockAddr;
use ndcompat::{Adapter, provider};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The address of the device under test.
pub fn address() -> SockAddr {
    address_from("NDCOMPAT_ADDR")
}

/// The IPv6 address of the device under test.
pub fn address6() -> SockAddr {
    address_from("NDCOMPAT_ADDR6")
}

fn address_from(variable: &str) -> SockAddr {
    let text = std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} is not set: run the test as `ci/lab run -- TEST`"));
    let ip: IpAddr = text.parse().unwrap_or_else(|_| panic!("{variable} is no IP address: {text}"));
    SocketAddr::new(ip, 0).into()
}

/// The adapter under test, opened anew.
pub fn adapter() -> Arc<Adapter> {
    let id = provider::resolve_address(address()).expect("NDCOMPAT_ADDR belongs to an RDMA device");
    provider::open_adapter(id).expect("the adapter opens")
}

/// Whether the device under test is soft-iWARP (`siw`), not soft-RoCE (`rxe`).
pub fn is_siw() -> bool {
    std::env::var("NDCOMPAT_DEVICE").is_ok_and(|device| device == "siw")
}

/// Whether siw's driver is the one that `ci/lab` builds and mends (`ci/lib/siw.sh`), not a host's own.
pub fn siw_is_mended() -> bool {
    std::fs::read_to_string("/sys/module/siw/version").is_ok_and(|version| version.trim() == "mended")
}
