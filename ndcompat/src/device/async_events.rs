//! The asynchronous events of a device (`ibv_get_async_event`): failures of the device and its queues.

use crate::device::limits::is_siw;
use crate::device::siw_mapping::cover_refused_offset;
use crate::verbs::{AsyncEvent, CompletionQueue, Context, bindings::ibv_context};
use parking_lot::{Condvar, Mutex};
use std::os::fd::RawFd;
use std::ptr;
use std::sync::{Arc, Weak};
use std::time::Duration;
use win32::io::{Source, WeakList};

/// The events of each device in use. An entry stays until everything in it is released, as the next cover must be created
/// after this one is gone.
static DEVICES: Mutex<Vec<InUse>> = Mutex::new(Vec::new());
/// Signalled when an entry has been removed from [`DEVICES`].
static RELEASED: Condvar = Condvar::new();
/// The limit of the wait for the removal of an entry: in a forked process, the thread that would remove it may not exist.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);

/// What is to be done about an event once it is acknowledged: destroying its object waits for that.
pub(crate) type Acknowledged = Box<dyn FnOnce()>;

/// An object that asynchronous events may concern.
pub(crate) trait AsyncEventHandler: Send + Sync {
    /// Handles an event, which may concern this object, another, or none.
    fn async_event(&self, event: &AsyncEvent) -> Option<Acknowledged>;
}

/// A device in use.
struct InUse {
    context: *mut ibv_context,
    events: Weak<AsyncEvents>,
}

// SAFETY: the pointer is only compared.
unsafe impl Send for InUse {}

/// The asynchronous events of one device.
///
/// All adapters of a device share it: librdmacm has one context for each device, and each event can be read only once.
pub(crate) struct AsyncEvents {
    context: Arc<Context>,
    handlers: Mutex<WeakList<dyn AsyncEventHandler>>,
    /// Exists while the device is in use: see [`cover_refused_offset`].
    cover: Option<CompletionQueue>,
}

impl AsyncEvents {
    /// The events of the device of `context`. Called before anything is created on the device.
    pub(crate) fn of(context: &Arc<Context>) -> std::io::Result<Arc<AsyncEvents>> {
        let mut devices = DEVICES.lock();
        while let Some(at) = devices.iter().position(|device| device.context == context.as_ptr()) {
            if let Some(known) = devices[at].events.upgrade() {
                return Ok(known);
            }
            // Another thread is releasing the entry.
            if RELEASED.wait_for(&mut devices, RELEASE_TIMEOUT).timed_out() {
                devices.retain(|device| device.context != context.as_ptr());
            }
        }
        context.set_async_nonblocking()?;
        let cover = is_siw(context).then(|| cover_refused_offset(context)).flatten();
        let new = Arc::new(AsyncEvents { context: context.clone(), handlers: Mutex::default(), cover });
        devices.push(InUse { context: context.as_ptr(), events: Arc::downgrade(&new) });
        Ok(new)
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.context.async_fd()
    }

    /// Adds a handler, which gets all events.
    pub(crate) fn add_handler(&self, handler: Weak<dyn AsyncEventHandler>) {
        self.handlers.lock().add(handler);
    }

    /// Passes an event on to all handlers.
    fn handle(&self, event: AsyncEvent) {
        tracing::debug!(target: "ndcompat::device", device = self.context.name(), kind = event.kind(), "asynchronous event");
        let handlers = self.handlers.lock().living();
        let deferred: Vec<_> = handlers.iter().filter_map(|handler| handler.async_event(&event)).collect();
        // Acknowledge before the handlers are dropped, as destroying a queue waits for that.
        drop(event);
        deferred.into_iter().for_each(|work| work());
    }
}

impl Source for AsyncEvents {
    fn ready(&self) {
        while let Ok(Some(event)) = self.context.async_event() {
            self.handle(event);
        }
    }
}

impl Drop for AsyncEvents {
    fn drop(&mut self) {
        self.cover = None;
        DEVICES.lock().retain(|device| !ptr::eq(device.events.as_ptr(), self));
        RELEASED.notify_all();
    }
}
