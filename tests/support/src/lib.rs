//! Shared code of the device tests: the adapter under test, overlapped requests, connected pairs of ends.
//!
//! The tests run in `ci/lab run`, on a live RDMA device whose address is in `NDCOMPAT_ADDR`. Without a device they fail: none is
//! skipped silently.

pub mod chance;
pub mod client;
pub mod com;
mod end;
mod guid;
#[path = "../../../ndcompat-ffi/src/interfaces.rs"]
mod interfaces;
pub mod lab;
pub mod layout;
pub mod library;
pub mod log;
mod operation;
pub mod seed;
mod shown;
pub mod storm;
pub mod waits;
pub mod watched;

pub use end::{End, Memory, Pair, QUEUE_DEPTH, establish, listen};
pub use operation::Operation;
pub use shown::shows;

use ndcompat::verbs::{Library, SockAddr};
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

/// Opens the adapter under test.
pub fn adapter() -> Arc<Adapter> {
    let id = provider::resolve_address(address()).expect("NDCOMPAT_ADDR belongs to an RDMA device");
    provider::open_adapter(id).expect("the adapter opens")
}

/// The verbs library of the device under test.
pub fn library() -> &'static Library {
    let locals = ndcompat::verbs::addresses().expect("the machine tells its addresses");
    let local = locals.iter().find(|local| local.addr.same_ip(address()));
    local.expect("NDCOMPAT_ADDR belongs to an RDMA device").context.library()
}

/// Whether the device under test is the emulator.
pub fn is_emulator() -> bool {
    std::env::var("NDCOMPAT_DEVICE").is_ok_and(|device| device == "emulator")
}

/// Whether the device under test speaks iWARP.
pub fn is_iwarp() -> bool {
    is_siw() || is_emulator()
}

/// Whether the device under test is soft-iWARP (`siw`), not soft-RoCE (`rxe`).
pub fn is_siw() -> bool {
    std::env::var("NDCOMPAT_DEVICE").is_ok_and(|device| device == "siw")
}

/// Whether siw's driver is the patched one that `ci/lab` builds (`ci/lib/siw.sh`), not the host's own.
pub fn siw_is_mended() -> bool {
    std::fs::read_to_string("/sys/module/siw/version").is_ok_and(|version| version.trim() == "mended")
}
