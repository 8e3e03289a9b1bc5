//! Callbacks on threads of the library: the number of an object's callbacks that are queued or running, and waiting for them.

use super::{Object, RawHandle, handle};
use crate::error::{ERROR_INVALID_HANDLE, ERROR_IO_PENDING, io_to_win32};
use crate::io::signal::Signal;
use crate::io::{Idle, alarm, pool};
use parking_lot::{Condvar, Mutex};
use std::any::Any;
use std::sync::Arc;

/// The callbacks of one object.
#[derive(Default)]
pub(crate) struct Callbacks {
    counts: Mutex<Counts>,
    idle: Condvar,
}

#[derive(Default)]
struct Counts {
    queued: usize,
    /// How often those that were queued have been cancelled.
    cancelled: usize,
    running: usize,
    /// The events to set when the last one has returned.
    at_end: Option<Arc<Signal>>,
}

impl Counts {
    fn is_idle(&self) -> bool {
        self.queued + self.running == 0
    }
}

/// What is notified when the last callback has returned.
pub(crate) enum Completion {
    Nobody,
    /// The caller, who waits for it.
    Caller,
    Event(Arc<Signal>),
}

impl Completion {
    /// From a program's handle: NULL, `INVALID_HANDLE_VALUE`, or an event.
    pub(crate) fn of(handle: RawHandle) -> Result<Completion, u32> {
        match handle {
            RawHandle::NULL => Ok(Completion::Nobody),
            RawHandle::INVALID => Ok(Completion::Caller),
            _ => match handle::get(handle) {
                Some(Object::Event(event)) => Ok(Completion::Event(event)),
                _ => Err(ERROR_INVALID_HANDLE),
            },
        }
    }
}

impl Callbacks {
    /// Queues `call` on a thread of the library. False if there is no thread.
    pub(crate) fn submit(self: &Arc<Self>, call: impl FnOnce() + Send + 'static) -> bool {
        self.submit_to(call, |job| pool::run(job).is_ok())
    }

    /// As above, on what thread `run` says.
    pub(crate) fn submit_to(
        self: &Arc<Self>,
        call: impl FnOnce() + Send + 'static,
        run: impl FnOnce(pool::Job) -> bool,
    ) -> bool {
        let before = {
            let mut counts = self.counts.lock();
            counts.queued += 1;
            counts.cancelled
        };
        let callbacks = self.clone();
        let job = move || {
            if callbacks.begin(before) {
                call();
                callbacks.end();
            }
        };
        let taken = run(Box::new(job));
        if !taken {
            self.cancel();
        }
        taken
    }

    /// Takes a call that was queued after so many cancellations; false if it was cancelled.
    fn begin(&self, before: usize) -> bool {
        let mut counts = self.counts.lock();
        if counts.cancelled != before {
            return false;
        }
        counts.queued -= 1;
        counts.running += 1;
        true
    }

    fn end(&self) {
        let mut counts = self.counts.lock();
        counts.running -= 1;
        self.tell(counts);
    }

    fn tell(&self, mut counts: parking_lot::MutexGuard<'_, Counts>) {
        if counts.is_idle() {
            let event = counts.at_end.take();
            self.idle.notify_all();
            drop(counts);
            if let Some(event) = event {
                event.set();
            }
        }
    }

    /// Drops callbacks that have not started.
    pub(crate) fn cancel(&self) {
        let mut counts = self.counts.lock();
        counts.queued = 0;
        counts.cancelled += 1;
        self.tell(counts);
    }

    /// Whether none is queued or running.
    pub(crate) fn is_idle(&self) -> bool {
        self.counts.lock().is_idle()
    }

    /// Waits until none is queued or running.
    pub(crate) fn wait(&self) {
        let _idle = Idle::enter();
        let mut counts = self.counts.lock();
        while !counts.is_idle() {
            self.idle.wait(&mut counts);
        }
    }

    /// Arranges the notification of the end of the last callback. `ERROR_IO_PENDING` if it has not ended yet.
    pub(crate) fn complete(&self, completion: Completion) -> Result<(), u32> {
        if let Completion::Caller = completion {
            self.wait();
            return Ok(());
        }
        let mut counts = self.counts.lock();
        let is_idle = counts.is_idle();
        if let Completion::Event(event) = completion {
            counts.at_end = Some(event);
            self.tell(counts);
        }
        if is_idle { Ok(()) } else { Err(ERROR_IO_PENDING) }
    }
}

/// Starts the threads of callbacks. Called before an object with callbacks is created, so that using it cannot fail.
pub(crate) fn start_threads() -> Result<(), u32> {
    pool::queue().map(drop).map_err(|error| io_to_win32(&error))
}

/// As above; the object's callbacks may also be due at a time.
pub(crate) fn start_timed_threads() -> Result<(), u32> {
    start_threads()?;
    alarm::start().map_err(|error| io_to_win32(&error))
}

/// Opens a handle that `CloseHandle` refuses.
pub(crate) fn open<T: Any + Send + Sync>(object: Arc<T>) -> Result<RawHandle, u32> {
    super::open(Object::Opaque(object))
}

/// The object of such a handle, if it is of that type.
pub(crate) fn get<T: Any + Send + Sync>(handle: RawHandle) -> Result<Arc<T>, u32> {
    match handle::get(handle) {
        Some(Object::Opaque(object)) => object.downcast().map_err(|_| ERROR_INVALID_HANDLE),
        _ => Err(ERROR_INVALID_HANDLE),
    }
}

/// As above; the handle is closed.
pub(crate) fn take<T: Any + Send + Sync>(handle: RawHandle) -> Result<Arc<T>, u32> {
    let object = get(handle)?;
    handle::close(handle).map(|_| object).ok_or(ERROR_INVALID_HANDLE)
}

/// Closes the handle, if it is that of the object at that address.
pub(crate) fn close_if(handle: RawHandle, object: *const ()) {
    if let Some(Object::Opaque(found)) = handle::get(handle)
        && std::ptr::eq(Arc::as_ptr(&found).cast(), object)
    {
        drop(handle::close(handle));
    }
}
