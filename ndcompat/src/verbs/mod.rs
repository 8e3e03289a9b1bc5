//! Safe owned objects over the C API of rdma-core, which nothing else in the crate calls.
//!
//! [`bindings`] are generated (`ci/bindings`); [`ops`] has the inline functions of the C headers. Dropping an object
//! destroys the C object; each object keeps those that it depends on alive. Nothing here depends on NetworkDirect. Errors
//! are [`std::io::Error`]s with the errno.

pub use verbs_sys as bindings;

pub mod ops;

mod address;
mod channel;
mod cm;
mod cq;
pub(crate) mod descriptor;
mod device;
mod emulator;
mod errno;
mod library;
mod mr;
mod mw;
pub mod nodes;
mod pd;
mod qp;
mod sockaddr;
mod srq;

pub use address::{LocalAddress, addresses, addresses_among, scoped, scoped_like};
pub use channel::{CompletionChannel, CompletionEvent};
pub use cm::{ConnectParam, Event, EventChannel, EventKind, Id};
pub use cq::{CompletionQueue, RawQueue};
pub use device::{AsyncEvent, Context, Transport};
pub(crate) use emulator::is_fallback;
pub use errno::{UNANNOUNCED, errno, last_failed_call};
pub use library::{EMULATOR, Library, RDMA_CORE};
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
