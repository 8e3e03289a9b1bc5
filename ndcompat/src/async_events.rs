//! A device's asynchronous events: what happens to it and its queues, and belongs to no request.

use crate::completion_queue::Queue;
use crate::removal::Removal;
use crate::shared_receive_queue::Shared;
use crate::status::Status;
use crate::verbs::bindings::*;
use crate::verbs::{AsyncEvent, Context};
use std::os::fd::RawFd;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use win32::io::{Source, WeakList};

/// The asynchronous events of one device.
///
/// A process has one context for a device, however often it opens the adapter, and each event can be read once: so
/// all that any of those adapters must hear of is here.
pub(crate) struct AsyncEvents {
    context: Arc<Context>,
    removals: Watched<Removal>,
    completion_queues: Watched<Queue>,
    shared_receive_queues: Watched<Shared>,
}

/// Objects that the device may report about.
struct Watched<T>(Mutex<WeakList<T>>);

impl<T> Watched<T> {
    fn new() -> Watched<T> {
        Watched(Mutex::default())
    }

    fn add(&self, object: &Arc<T>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(Arc::downgrade(object));
    }

    fn living(&self) -> Vec<Arc<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).living()
    }
}

impl AsyncEvents {
    /// The events of the device that `context` is open on.
    pub(crate) fn of(context: &Arc<Context>) -> std::io::Result<Arc<AsyncEvents>> {
        static DEVICES: Mutex<Vec<Weak<AsyncEvents>>> = Mutex::new(Vec::new());
        let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        devices.retain(|device| device.strong_count() > 0);
        let same = |device: &Arc<AsyncEvents>| device.context.as_ptr() == context.as_ptr();
        if let Some(known) = devices.iter().filter_map(Weak::upgrade).find(same) {
            return Ok(known);
        }
        context.set_async_nonblocking()?;
        let new = Arc::new(AsyncEvents {
            context: context.clone(),
            removals: Watched::new(),
            completion_queues: Watched::new(),
            shared_receive_queues: Watched::new(),
        });
        devices.push(Arc::downgrade(&new));
        Ok(new)
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.context.async_fd()
    }

    pub(crate) fn watch_removal(&self, removal: &Arc<Removal>) {
        self.removals.add(removal);
    }

    pub(crate) fn watch_completion_queue(&self, queue: &Arc<Queue>) {
        self.completion_queues.add(queue);
    }

    pub(crate) fn watch_shared_receive_queue(&self, queue: &Arc<Shared>) {
        self.shared_receive_queues.add(queue);
    }

    /// Tells those whom an event concerns.
    fn handle(&self, event: AsyncEvent) {
        tracing::debug!(kind = event.kind(), "asynchronous event");
        let (queues, shared) = (self.completion_queues.living(), self.shared_receive_queues.living());
        match event.kind() {
            // Overrun is the one way a queue fails by itself; verbs does not say more.
            IBV_EVENT_CQ_ERR => {
                let cq = event.cq().map_or(ptr::null(), <*mut ibv_cq>::cast_const);
                queues
                    .iter()
                    .filter(|queue| queue.is(cq))
                    .for_each(|queue| queue.fail(Status::BUFFER_OVERFLOW));
            }
            IBV_EVENT_SRQ_LIMIT_REACHED | IBV_EVENT_SRQ_ERR => {
                let failed = event.kind() == IBV_EVENT_SRQ_ERR;
                let status = if failed { Status::UNSUCCESSFUL } else { Status::SUCCESS };
                let srq = event.srq().map_or(ptr::null(), <*mut ibv_srq>::cast_const);
                shared.iter().filter(|queue| queue.is(srq)).for_each(|queue| queue.alert(status));
            }
            IBV_EVENT_DEVICE_FATAL => self.removals.living().iter().for_each(|removal| removal.happened()),
            _ => {}
        }
        // A queue waits, when it goes, for its events to be acknowledged: the event goes first.
        drop(event);
    }
}

impl Source for AsyncEvents {
    fn ready(&self) {
        while let Ok(Some(event)) = self.context.async_event() {
            self.handle(event);
        }
    }
}
