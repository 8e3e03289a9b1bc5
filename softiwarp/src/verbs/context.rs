//! Contexts and their asynchronous events.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};
use verbs_sys::*;

use super::inbox::Inbox;
use super::process::Process;

/// An opened device.
#[repr(C)]
pub(super) struct Context {
    pub raw: ibv_context,
    pub events: Inbox<Asynchronous>,
    /// The device was removed.
    removed: AtomicBool,
    process: Process,
}

/// An asynchronous event, and where it is counted if it is of a queue.
pub(super) struct Asynchronous {
    pub raw: ibv_async_event,
    pub events: Option<Arc<Unacknowledged>>,
}

/// The number of events of a queue that the program has taken and not acknowledged.
#[derive(Default)]
pub(super) struct Unacknowledged {
    count: Mutex<u32>,
    none: Condvar,
}

impl Unacknowledged {
    pub(super) fn taken(&self) {
        *self.count.lock() += 1;
    }

    pub(super) fn acknowledged(&self, count: u32) {
        let mut left = self.count.lock();
        *left = left.saturating_sub(count);
        if *left == 0 {
            self.none.notify_all();
        }
    }

    /// Waits until all events are acknowledged.
    pub(super) fn wait(&self) {
        let mut left = self.count.lock();
        while *left > 0 {
            self.none.wait(&mut left);
        }
    }
}

// SAFETY: what the events point to may be used by any thread.
unsafe impl Send for Context {}
// SAFETY: the context of C is not changed once it is made.
unsafe impl Sync for Context {}

struct Open(*mut Context);

// SAFETY: contexts may be used by any thread.
unsafe impl Send for Open {}

/// The contexts that are open.
static OPEN: Mutex<Vec<Open>> = Mutex::new(Vec::new());

impl Context {
    pub(super) fn open(raw: ibv_context, events: Inbox<Asynchronous>) -> *mut Context {
        let (removed, process) = (AtomicBool::new(false), Process::this());
        let new = Box::into_raw(Box::new(Context { raw, events, removed, process }));
        OPEN.lock().push(Open(new));
        new
    }

    /// # Safety
    /// From [`open`](Self::open), closed once, and not used any more.
    pub(super) unsafe fn close(context: *mut Context) {
        OPEN.lock().retain(|open| open.0 != context);
        // SAFETY: from `open`, closed once, as the caller says.
        drop(unsafe { Box::from_raw(context) });
    }

    /// Whether the device was removed.
    ///
    /// # Safety
    /// The context has not been closed.
    pub(super) unsafe fn is_removed(context: *mut ibv_context) -> bool {
        // SAFETY: contexts are ours.
        unsafe { &*context.cast::<Context>() }.removed.load(Ordering::Acquire)
    }

    /// Whether it is of this process, and not of its parent.
    ///
    /// # Safety
    /// The context has not been closed.
    pub(super) unsafe fn is_own(context: *mut ibv_context) -> bool {
        // SAFETY: contexts are ours.
        unsafe { &*context.cast::<Context>() }.process.is_this()
    }

    /// Reports to all contexts that the device was removed.
    pub(super) fn device_removed() {
        let open = OPEN.lock();
        for context in open.iter() {
            // SAFETY: a context leaves the list, which is locked, before it is closed.
            let context = unsafe { &*context.0 };
            if !context.removed.swap(true, Ordering::AcqRel) {
                let element = ibv_async_event__bindgen_ty_1 { port_num: 0 };
                let raw = ibv_async_event { element, event_type: IBV_EVENT_DEVICE_FATAL };
                context.events.push(Asynchronous { raw, events: None });
            }
        }
    }

    /// Reports an asynchronous event of a queue.
    ///
    /// # Safety
    /// The context has not been closed.
    pub(super) unsafe fn report(
        context: *mut ibv_context,
        event_type: ibv_event_type,
        element: ibv_async_event__bindgen_ty_1,
        events: &Arc<Unacknowledged>,
    ) {
        let raw = ibv_async_event { element, event_type };
        // SAFETY: contexts are ours.
        unsafe { &*context.cast::<Context>() }
            .events
            .push(Asynchronous { raw, events: Some(Arc::clone(events)) });
    }

    /// Removes the asynchronous events of a kind that are of `object`, which is about to go.
    ///
    /// # Safety
    /// The context has not been closed.
    pub(super) unsafe fn withdraw(
        context: *mut ibv_context,
        event_type: ibv_event_type,
        object: *mut c_void,
    ) {
        // SAFETY: contexts are ours.
        let own = unsafe { &*context.cast::<Context>() };
        own.events.remove(|Asynchronous { raw, .. }| {
            // SAFETY: the elements of these events are all pointers.
            raw.event_type == event_type && unsafe { raw.element.cq }.cast() == object
        });
    }
}
