//! Waiting for an object or a time with a call in place of a blocked thread.

use crate::io::alarm::{self, Alarm};
use crate::io::signal::{Signal, Waiter};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// A wait for one object.
pub(crate) struct Watch {
    /// The argument is true after a time-out. Runs on the thread that sets the object or on the alarm thread: it must be short.
    call: Box<dyn Fn(bool) + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Changes each time it is set.
    number: u64,
    pending: Option<Pending>,
}

struct Pending {
    signal: Arc<Signal>,
    waiter: Arc<Waiter>,
    alarm: Option<Alarm>,
}

impl Watch {
    pub(crate) fn new(call: impl Fn(bool) + Send + Sync + 'static) -> Arc<Watch> {
        Arc::new(Watch { call: Box::new(call), state: Mutex::default() })
    }

    /// Waits for an object, in place of an earlier one, or until a time (`None`: never), and then makes the call once. It has the
    /// effect of a satisfied wait on the object.
    pub(crate) fn set(self: &Arc<Self>, signal: &Arc<Signal>, until: Option<Instant>) {
        self.cancel();
        let mut state = self.state.lock();
        state.number += 1;
        let number = state.number;
        let watch = Arc::downgrade(self);
        let is_set = move || {
            if let Some(watch) = Weak::upgrade(&watch) {
                watch.is_set(number);
            }
        };
        let waiter = signal.watch(is_set);
        if waiter.is_claimed() {
            drop(state);
            return (self.call)(false);
        }
        let late = {
            let (watch, signal, waiter) = (Arc::downgrade(self), signal.clone(), waiter.clone());
            move || {
                if signal.unwatch(&waiter)
                    && let Some(watch) = watch.upgrade()
                {
                    drop(watch.take(number));
                    (watch.call)(true);
                }
            }
        };
        let alarm = until.and_then(|until| alarm::set(until, late));
        state.pending = Some(Pending { signal: signal.clone(), waiter, alarm });
    }

    /// The wait with that number, unless it was set again since.
    fn take(&self, number: u64) -> Option<Pending> {
        let mut state = self.state.lock();
        if state.number == number { state.pending.take() } else { None }
    }

    fn is_set(&self, number: u64) {
        if let Some(alarm) = self.take(number).and_then(|pending| pending.alarm) {
            alarm::cancel(alarm);
        }
        (self.call)(false);
    }

    /// Stops waiting; whether that was before the end. A call that has started may still be running.
    pub(crate) fn cancel(&self) -> bool {
        let Some(pending) = self.state.lock().pending.take() else { return false };
        let cancelled = pending.signal.unwatch(&pending.waiter);
        if let Some(alarm) = pending.alarm {
            alarm::cancel(alarm);
        }
        cancelled
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.cancel();
    }
}
