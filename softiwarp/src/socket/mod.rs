//! Connections over the kernel's TCP sockets, none of which blocks.
//!
//! A [`Poller`] watches the sockets of a device; whoever calls [`Poller::drive`] moves them. A [`Listener`] takes
//! connections, a [`Connection`] is one. A [`Handler`] receives the events of connections.

mod arrivals;
mod background;
mod backlog;
mod batching;
mod checks;
mod connection;
mod link;
mod listener;
#[cfg(test)]
mod model;
mod poller;
mod schedule;
mod sync;
mod timer;

pub use background::Background;
pub use connection::{Connection, Ended, Event, Handler, Posting, SharedPair};
pub use listener::Listener;
#[cfg(test)]
pub(crate) use model::Lock as ModelLock;
pub use poller::Poller;
pub(crate) use sync::Lock;
