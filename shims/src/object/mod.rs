//! Kernel objects: the handle table, events, threads, and waiting for them.

pub(crate) mod callbacks;
pub mod handle;
pub(crate) mod names;
mod overlapped;
pub(crate) mod slots;
mod sync;
mod table;
pub mod thread;
pub(crate) mod ticker;
pub(crate) mod timer;
mod tls_indices;
pub(crate) mod watch;

#[cfg(test)]
pub(crate) mod held_call;
#[cfg(test)]
mod model;

pub use crate::handle::RawHandle;

use crate::error::*;
use crate::files::disk::DiskFile;
use crate::files::search::Search;
use crate::io::signal::Signal;
use crate::io::{File, Port};
use crate::memory::section::Section;
use std::any::Any;
use std::sync::Arc;

pub(crate) use thread::Thread;

/// The object of a handle.
#[derive(Clone)]
pub(crate) enum Object {
    Event(Arc<Signal>),
    Semaphore(Arc<Signal>),
    Mutex(Arc<Signal>),
    Timer(Arc<timer::Timer>),
    File(Arc<File>),
    Port(Arc<Port>),
    Thread(Arc<Thread>),
    /// From `CreateFile`.
    Disk(Arc<DiskFile>),
    /// From `CreateFileMapping`.
    Section(Arc<Section>),
    /// From `FindFirstFile`.
    Search(Arc<Search>),
    /// Objects with a close function of their own; see [`callbacks`].
    Opaque(Arc<dyn Any + Send + Sync>),
}

impl Object {
    /// The object's signal, if it can be waited for.
    pub(crate) fn signal(&self) -> Option<Arc<Signal>> {
        match self {
            Object::Event(signal) | Object::Semaphore(signal) | Object::Mutex(signal) => Some(signal.clone()),
            Object::Timer(timer) => Some(timer.signal().clone()),
            Object::File(file) => Some(file.signal().clone()),
            Object::Thread(thread) => Some(thread.ended().clone()),
            Object::Disk(file) => Some(file.signal()),
            Object::Port(_) | Object::Search(_) | Object::Section(_) | Object::Opaque(_) => None,
        }
    }
}

/// Opens a handle to an object.
pub(crate) fn open(object: Object) -> Result<RawHandle, u32> {
    match handle::open(object) {
        RawHandle::NULL => Err(ERROR_NO_SYSTEM_RESOURCES),
        handle => Ok(handle),
    }
}

/// The same for functions that create: the last error says whether the object `existed`.
pub(crate) fn open_created(object: Object, existed: bool) -> Result<RawHandle, u32> {
    let handle = open(object)?;
    set_last_error(if existed { ERROR_ALREADY_EXISTS } else { ERROR_SUCCESS });
    Ok(handle)
}

/// Opens a handle to a named object, or to the one that `make` creates. The last error says whether it existed.
pub(crate) fn create_named<T: Send + Sync + 'static>(
    name: Option<String>,
    pick: fn(Object) -> Option<Arc<T>>,
    wrap: fn(Arc<T>) -> Object,
    make: impl FnOnce() -> Arc<T>,
) -> Result<RawHandle, u32> {
    let (object, existed) = names::create(name, pick, wrap, make)?;
    open_created(wrap(object), existed)
}

/// Opens a handle to the object of a name, if it is of the kind that `pick` accepts.
pub(crate) fn open_named<T>(
    name: Option<String>,
    pick: fn(Object) -> Option<Arc<T>>,
    wrap: fn(Arc<T>) -> Object,
) -> Result<RawHandle, u32> {
    open(wrap(names::open(name, pick)?))
}
