//! A queue of events, and a signal for those who wait for one.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ptr;

use super::sync::{Lock, Signal, thread_local};

thread_local! {
    /// The queue for which this thread drives the device, and from which it takes an event afterwards.
    static DRIVES_FOR: Cell<*const ()> = const { Cell::new(ptr::null()) };
}

struct Events<T> {
    queue: VecDeque<T>,
    /// The signal is readable.
    signaled: bool,
    /// An event was added without a signal, by the thread that will take one.
    silent: bool,
}

/// An event queue.
pub(super) struct EventQueue<T> {
    events: Lock<Events<T>>,
    /// Readable while there are events, except those that a thread adds while it drives the device for this queue, until it has
    /// taken one.
    signal: Signal,
}

impl<T> EventQueue<T> {
    /// An empty queue, with a signal that is not readable.
    pub(super) fn new(signal: Signal) -> EventQueue<T> {
        let events = Lock::new(Events { queue: VecDeque::new(), signaled: false, silent: false });
        EventQueue { events, signal }
    }

    pub(super) fn signal(&self) -> &Signal {
        &self.signal
    }

    /// Adds an event.
    pub(super) fn push(&self, event: T) {
        let mut events = self.events.lock();
        events.queue.push_back(event);
        if DRIVES_FOR.with(Cell::get) == ptr::from_ref(self).cast() {
            events.silent = true;
        } else {
            self.raise(&mut events);
        }
    }

    /// For every event, so that an edge-triggered wait sees an edge for each, as with the kernel's channels.
    fn raise(&self, events: &mut Events<T>) {
        events.signaled = true;
        self.signal.set();
    }

    /// Takes the first event. `taken` is called before another thread can see that it was taken.
    pub(super) fn pop(&self, taken: impl FnOnce(&T)) -> Option<T> {
        let mut events = self.events.lock();
        let event = events.queue.pop_front();
        if let Some(event) = &event {
            taken(event);
        }
        self.update_signal(&mut events);
        event
    }

    /// Whether there is no event.
    pub(super) fn is_empty(&self) -> bool {
        self.events.lock().queue.is_empty()
    }

    /// Removes the events for which `chosen` is true.
    pub(super) fn remove(&self, chosen: impl Fn(&T) -> bool) -> Vec<T> {
        let mut events = self.events.lock();
        let (taken, rest) = events.queue.drain(..).partition::<VecDeque<_>, _>(|event| chosen(event));
        events.queue = rest;
        self.update_signal(&mut events);
        taken.into()
    }

    /// Makes the signal readable if events are left, and not readable if none is.
    fn update_signal(&self, events: &mut Events<T>) {
        if events.queue.is_empty() {
            if std::mem::take(&mut events.signaled) {
                self.signal.clear();
            }
        } else if events.silent {
            self.raise(events);
        }
        events.silent = false;
    }

    /// Drives the device by `drive`, then takes an event. Events that this thread adds meanwhile are not signalled, unless some are
    /// left afterwards.
    pub(super) fn drive<R>(&self, drive: impl FnOnce() -> R, taken: impl FnOnce(&T)) -> (R, Option<T>) {
        DRIVES_FOR.with(|drives_for| drives_for.set(ptr::from_ref(self).cast()));
        let result = drive();
        DRIVES_FOR.with(|drives_for| drives_for.set(ptr::null()));
        (result, self.pop(taken))
    }
}
