//! Connection management: librdmacm's event channels, their events, and ids.
//!
//! Ids never have a queue pair attached. That makes librdmacm leave the two phases of a connection to the caller, and
//! the queue pair's states too; [`ConnectParam::qp_num`] tells it which queue pair is meant.

mod channel;
mod event;
mod id;

pub use channel::EventChannel;
pub use event::{Event, EventKind};
pub use id::{ConnectParam, Id};
