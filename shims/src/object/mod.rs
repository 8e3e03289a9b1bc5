//! Objects that a `HANDLE` can name: the handle table, events, threads, and waiting for any of them.

pub mod event;
pub mod handle;
pub mod thread;
pub mod wait;

use crate::error::{ERROR_INTERNAL_ERROR, set_last_error};
use crate::io::signal::Signal;
use crate::io::{File, Port};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

pub(crate) use thread::Thread;

/// A `HANDLE` as the C side sees it: a table value, never a real pointer.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct RawHandle(pub usize);

impl RawHandle {
    /// The `NULL` handle.
    pub const NULL: RawHandle = RawHandle(0);
    /// `INVALID_HANDLE_VALUE`, which is also the pseudo handle of the process.
    pub const INVALID: RawHandle = RawHandle(usize::MAX);

    /// Whether the low-order bit is set, which in `OVERLAPPED.hEvent` asks for no completion packet.
    pub fn is_tagged(self) -> bool {
        self.0 & 1 != 0
    }
}

/// What a handle names.
#[derive(Clone)]
pub(crate) enum Object {
    Event(Arc<Signal>),
    File(Arc<File>),
    Port(Arc<Port>),
    Thread(Arc<Thread>),
    /// What `CreateFile` opened.
    Path(Arc<OwnedFd>),
}

impl Object {
    /// What a wait for the object waits for, if it can be waited for.
    fn signal(&self) -> Option<Arc<Signal>> {
        match self {
            Object::Event(signal) => Some(signal.clone()),
            Object::File(file) => Some(file.signal().clone()),
            Object::Thread(thread) => Some(thread.ended().clone()),
            Object::Port(_) | Object::Path(_) => None,
        }
    }
}

/// Runs the body of a C entry point: a panic ends here, as `failed` and `ERROR_INTERNAL_ERROR`.
pub(crate) fn guard<R>(failed: R, body: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        set_last_error(ERROR_INTERNAL_ERROR);
        failed
    })
}

/// For entry points that answer with a `BOOL`: the error becomes the last error.
pub(crate) fn guard_bool(body: impl FnOnce() -> Result<(), u32>) -> i32 {
    guard(0, || match body() {
        Ok(()) => 1,
        Err(code) => {
            set_last_error(code);
            0
        }
    })
}

#[cfg(test)]
mod tests;
