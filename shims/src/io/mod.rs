//! The I/O manager: overlapped files, their requests, and completion ports.
//!
//! A driver (the engine) creates a [`File`], gives it its file descriptors as [`Source`]s, and turns every
//! `OVERLAPPED` it is handed into a [`Request`], which it completes exactly once.

mod file;
mod overlapped;
mod request;

pub use file::{Canceller, File, Registration, Source};
pub use overlapped::{Overlapped, STATUS_CANCELLED, STATUS_PENDING, STATUS_SUCCESS};
pub use request::{Request, result};
