//! NetworkDirect SPI v2 over rdma-core: the engine behind the C interfaces.
//!
//! One module per SPI object, named like it; [`verbs`] is the only one that touches rdma-core's C API. Overlapped
//! requests run on the Win32 runtime's I/O manager ([`win32::io`]), which this crate serves as a driver would.

pub mod adapter;
mod async_events;
pub mod buffer;
mod completion;
pub mod completion_queue;
mod connection;
pub mod connector;
pub mod endpoint;
mod hardware_window;
mod limits;
mod lines;
pub mod listener;
mod lock;
mod membarrier;
pub mod memory_region;
pub mod memory_window;
mod notification;
pub mod operation;
mod overlapped_file;
mod patience;
mod posting;
pub mod provider;
pub mod queue_pair;
mod reaping;
mod removal;
mod request_queue;
mod routes;
mod scatter_gather;
pub mod shared_receive_queue;
pub mod status;
pub mod types;
pub mod verbs;
mod work_request;
mod worker;

pub use adapter::Adapter;
pub use buffer::{Buffer, RemoteMemory};
pub use completion_queue::{CompletionQueue, Reaper, ResultRoom};
pub use connector::Connector;
pub use endpoint::SharedEndpoint;
pub use listener::Listener;
pub use memory_region::MemoryRegion;
pub use memory_window::MemoryWindow;
pub use operation::Operation;
pub use posting::Poster;
pub use queue_pair::{QueuePair, QueuePairConfig};
pub use scatter_gather::SgeList;
pub use shared_receive_queue::{SharedReceiveQueue, SharedReceiveQueueConfig};
pub use status::{Result, Status};
