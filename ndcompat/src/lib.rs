//! NetworkDirect SPI v2 over rdma-core: the engine behind the C interfaces.
//!
//! Programs in Rust start with [`Provider`] and [`Session`]: requests own their memory, and threads or tasks of any
//! executor wait for them. `docs/rust.md` of the project is the guide.
//!
//! Below these are the interfaces of the SPI ([`Adapter`], [`CompletionQueue`], [`QueuePair`], ...), one module each. The C
//! library `libndcompat.so` is built on them. Overlapped requests run on the I/O manager of the Win32 runtime
//! ([`overlapped`]).
//!
//! Lengths and sizes are in bytes, depths in requests. Errors are a [`Status`] of the SPI.
//!
//! ```
#![doc = include_str!("rust_api/device.txt")]
//! use ndcompat::{Provider, Session};
//!
//! let session = Session::new(&Provider::open_any()?)?;
//! println!("{}, {} bytes a message", session.adapter().device_name(), session.adapter().info()?.max_transfer_length);
//! # Ok::<(), ndcompat::Status>(())
//! ```

#![deny(clippy::multiple_unsafe_ops_per_block)]
#![cfg_attr(not(feature = "internals"), deny(missing_debug_implementations))]

mod cause;
mod control;
mod data;
mod device;
mod diagnosis;
mod memory;
mod rust_api;
pub mod status;
mod sync;
pub mod types;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod verbs;
#[cfg(not(feature = "internals"))]
#[allow(dead_code, reason = "some of it is for the project's own tests only")]
mod verbs;

pub use control::{connector, listener, shared_endpoint};
pub use data::{completion_queue, queue_pair, shared_receive_queue};
pub use device::{adapter, provider};
pub use memory::{memory_region, memory_window};
pub use rust_api::operation;

pub use adapter::Adapter;
pub use cause::Cause;
pub use completion_queue::{CompletionQueue, Reaper, ResultRoom};
pub use connector::{Connector, Offer};
pub use data::posting::Poster;
pub use data::scatter_gather::SgeList;
pub use listener::Listener;
pub use memory_region::MemoryRegion;
pub use memory_window::MemoryWindow;
pub use operation::Operation;
pub use queue_pair::{QueuePair, QueuePairConfig};
pub use rust_api::catalogue::{Catalogue, RegisteredProvider};
pub use rust_api::connection::{Acceptor, ConnectError, Connection, Incoming};
pub use rust_api::machine::Provider;
pub use rust_api::memory::{Buffer, IntoPart, Memory, Part, RemoteMemory, SharedMemory};
pub use rust_api::pair::{Pair, PairBuilder, SharedReceives};
pub use rust_api::port::Port;
pub use rust_api::request_table::Done;
pub use rust_api::session::{Session, SessionBuilder};
pub use rust_api::transfer::Transfer;
pub use rust_api::window::Window;
pub use shared_endpoint::SharedEndpoint;
pub use shared_receive_queue::{SharedReceiveQueue, SharedReceiveQueueConfig};
pub use status::{Result, Status};
pub use verbs::{RawSockAddr, SockAddr};
/// The Win32 runtime's side of requests. The `unsafe` methods that take an `OVERLAPPED` need it; [`Operation`] does without.
///
/// ```
#[doc = include_str!("rust_api/device.txt")]
/// use ndcompat::overlapped::Overlapped;
/// use ndcompat::types::NotifyType;
/// use ndcompat::{Provider, Session, Status};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let queue = session.adapter().create_completion_queue(session.file(), 16, (0, 0))?;
/// let mut request = Overlapped::default();
/// // SAFETY: the request has completed before `request` goes.
/// assert_eq!(unsafe { queue.notify(NotifyType::Any, &mut request) }, Status::PENDING);
/// queue.cancel();
/// queue.requests().wait_for_none();
/// assert_eq!(*request.internal.get_mut() as i32, Status::CANCELED.0);
/// # Ok::<(), ndcompat::Status>(())
/// ```
pub mod overlapped {
    pub use win32::io::{File, Outstanding, Overlapped, Progress};
}
pub use win32::io::{File, Progress};
pub use win32::logging;
