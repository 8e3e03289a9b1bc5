//! Affiliated asynchronous events: those of a queue, which is not destroyed before the program has acknowledged them.

use std::sync::Arc;

use parking_lot::Mutex;
use verbs_sys::*;

use super::context::{Context, Unacknowledged};

/// The events of one kind that an object has, until it is destroyed. Whoever reports them may live longer than the object.
pub(super) struct Affiliated {
    kind: ibv_event_type,
    object: Mutex<Option<Object>>,
    events: Arc<Unacknowledged>,
}

/// The context of an object, and the object as events name it.
struct Object(*mut ibv_context, ibv_async_event__bindgen_ty_1);

// SAFETY: contexts and queues may be used by any thread.
unsafe impl Send for Object {}

impl Affiliated {
    /// None is reported before [`begin`](Self::begin).
    pub(super) fn new(kind: ibv_event_type) -> Arc<Affiliated> {
        Arc::new(Affiliated { kind, object: Mutex::new(None), events: Arc::default() })
    }

    /// From now on, events are reported.
    ///
    /// # Safety
    /// The context is not closed before [`end`](Self::end).
    pub(super) unsafe fn begin(&self, context: *mut ibv_context, object: ibv_async_event__bindgen_ty_1) {
        *self.object.lock() = Some(Object(context, object));
    }

    /// Reports an event; returns whether the object is there.
    pub(super) fn report(&self) -> bool {
        let object = self.object.lock();
        let Some(Object(context, element)) = *object else { return false };
        // SAFETY: not closed before `end`, which takes the object.
        unsafe { Context::report(context, self.kind, element, &self.events) };
        true
    }

    /// Before the object is destroyed: takes back what the program has not seen, and waits until it has acknowledged what it has.
    pub(super) fn end(&self) {
        let Some(Object(context, element)) = self.object.lock().take() else { return };
        // SAFETY: the elements of affiliated events are all pointers.
        let object = unsafe { element.cq }.cast();
        // SAFETY: not closed yet.
        unsafe { Context::withdraw(context, self.kind, object) };
        self.events.wait();
    }

    pub(super) fn acknowledged(&self) {
        self.events.acknowledged(1);
    }
}
