//! The I/O manager: overlapped files, their requests, and completion ports.
//!
//! A driver (the engine) creates a [`File`], gives it its file descriptors as [`Source`]s, and turns every
//! `OVERLAPPED` it is handed into a [`Request`], which it completes exactly once.

mod address;
pub(crate) mod alarm;
pub(crate) mod apc;
mod dormancy;
mod file;
mod outstanding;
mod overlapped;
mod parker;
mod poller;
pub(crate) mod pool;
mod port;
pub(crate) mod queue;
mod request;
pub(crate) mod signal;
mod spin;
pub(crate) mod sync;
pub(crate) mod sys;
pub(crate) mod thread_end;
pub(crate) mod threads;
mod unattended;
mod weak_list;

pub(crate) use file::Attachment;
pub use file::{CancelScope, Canceller, File, Progress, Registration, SKIP_PORT_ON_SUCCESS, SKIP_SET_EVENT};
pub use outstanding::{Held, Outstanding};
pub use overlapped::{Overlapped, STATUS_CANCELLED, STATUS_PENDING, STATUS_SUCCESS};
pub use poller::Source;
pub use port::Port;
pub(crate) use queue::Idle;
pub use request::{Request, forget_tasks, result, wait_for, wait_until, wake, wake_when_complete};
pub(crate) use request::{file_of, result_before};
pub use threads::with_signals_blocked;
pub use weak_list::WeakList;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod weak_memory;
