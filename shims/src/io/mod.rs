//! The I/O manager: overlapped files, their requests, and completion ports.
//!
//! A driver (the engine) creates a [`File`], gives it its file descriptors as [`Source`]s, and turns every
//! `OVERLAPPED` it is handed into a [`Request`], which it completes exactly once.

mod address;
mod background;
pub mod file;
mod overlapped;
mod parker;
mod poller;
mod pool;
pub mod port;
pub(crate) mod queue;
mod request;
mod runner;
pub(crate) mod signal;
mod spin;
pub(crate) mod sync;
pub(crate) mod sys;
mod weak_list;

pub use file::{Canceller, File, Registration, SKIP_PORT_ON_SUCCESS, SKIP_SET_EVENT};
pub use overlapped::{Overlapped, STATUS_CANCELLED, STATUS_PENDING, STATUS_SUCCESS};
pub use poller::Source;
pub(crate) use port::Port;
pub use request::{Request, Which, result, wait_for};
pub(crate) use runner::Idle;
pub use sys::with_signals_blocked;
pub use weak_list::WeakList;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
