//! The only place that touches the C API of rdma-core.
//!
//! [`bindings`] is generated (`ci/bindings`), [`ops`] re-expresses what the C headers define inline, and the rest are
//! owned objects over them: dropping one destroys the C object, and a child keeps its parents alive. Nothing here
//! decides anything about NetworkDirect. Failures are [`std::io::Error`]s that carry the errno.

#[allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    unsafe_op_in_unsafe_fn,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
pub mod bindings;

pub mod ops;

mod address;
mod channel;
mod cm;
mod cq;
mod device;
mod errno;
mod mr;
mod mw;
mod pd;
mod qp;
mod sockaddr;
mod srq;

pub use address::{LocalAddress, addresses, addresses_among};
pub use channel::{CompletionChannel, CompletionEvent};
pub use cm::{ConnectParam, Event, EventChannel, EventKind, Id};
pub use cq::{CompletionQueue, RawQueue};
pub use device::{AsyncEvent, Context, Transport};
pub use errno::errno;
pub use mr::MemoryRegion;
pub use mw::{MemoryWindow, WindowType};
pub use pd::ProtectionDomain;
pub use qp::{QueuePair, QueuePairConfig};
pub use sockaddr::{RawSockAddr, SockAddr};
pub use srq::SharedReceiveQueue;

#[link(name = "ibverbs")]
unsafe extern "C" {}

#[link(name = "rdmacm")]
unsafe extern "C" {}
