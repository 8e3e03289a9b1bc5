//! Waiting for an object or a time with a call in place of a blocked thread.

use crate::io::Idle;
use crate::io::alarm::{self, Alarm};
use crate::io::signal::{Signal, Waiter};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::{Arc, Weak};
use std::time::Instant;

/// A wait for one object.
pub(crate) struct Watch {
    /// The argument is true after a time-out. Runs on the thread that sets the object or on the alarm thread: it must be short.
    call: Box<dyn Fn(bool) + Send + Sync>,
    state: Mutex<State>,
    /// Notified when `over` changes.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// Changes each time it is set.
    number: u64,
    /// The number of the last wait that has ended: its call has returned, or will not be made.
    over: u64,
    pending: Option<Pending>,
}

struct Pending {
    signal: Arc<Signal>,
    waiter: Arc<Waiter>,
    alarm: Option<Alarm>,
}

impl Watch {
    pub(crate) fn new(call: impl Fn(bool) + Send + Sync + 'static) -> Arc<Watch> {
        Arc::new(Watch { call: Box::new(call), state: Mutex::default(), ended: Condvar::new() })
    }

    /// Waits for an object, in place of an earlier one, or until a time (`None`: never), and then makes the call once. It has the
    /// effect of a satisfied wait on the object.
    pub(crate) fn set(self: &Arc<Self>, signal: &Arc<Signal>, until: Option<Instant>) {
        let mut state = self.stopped();
        state.number += 1;
        let number = state.number;
        let watch = Arc::downgrade(self);
        let is_set = move || {
            if let Some(watch) = Weak::upgrade(&watch) {
                watch.is_set(number);
            }
        };
        let Some(waiter) = signal.watch(is_set) else {
            drop(state);
            return self.make_call(number, false);
        };
        let late = {
            let (watch, signal, waiter) = (Arc::downgrade(self), signal.clone(), waiter.clone());
            move || {
                if signal.unwatch(&waiter)
                    && let Some(watch) = watch.upgrade()
                {
                    drop(watch.take(number));
                    watch.make_call(number, true);
                }
            }
        };
        let alarm = until.and_then(|until| alarm::set(until, late));
        state.pending = Some(Pending { signal: signal.clone(), waiter, alarm });
    }

    /// Stops an earlier wait, and returns the state, which no thread has set again.
    fn stopped(&self) -> MutexGuard<'_, State> {
        loop {
            self.cancel();
            let state = self.state.lock();
            if state.over == state.number {
                return state;
            }
        }
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
        self.make_call(number, false);
    }

    fn make_call(&self, number: u64, timed_out: bool) {
        (self.call)(timed_out);
        self.end(number);
    }

    fn end(&self, number: u64) {
        let mut state = self.state.lock();
        state.over = state.over.max(number);
        drop(state);
        self.ended.notify_all();
    }

    /// Stops waiting; whether that was before the end. Otherwise the call has returned: what it has queued can be counted.
    pub(crate) fn cancel(&self) -> bool {
        let (number, pending) = {
            let mut state = self.state.lock();
            (state.number, state.pending.take())
        };
        if pending.is_some_and(Pending::stop) {
            self.end(number);
            return true;
        }
        let mut state = self.state.lock();
        if state.over < number {
            let _idle = Idle::enter();
            self.ended.wait_while(&mut state, |state| state.over < number);
        }
        false
    }
}

impl Pending {
    /// Whether that was before the end.
    fn stop(self) -> bool {
        let in_time = self.signal.unwatch(&self.waiter);
        if let Some(alarm) = self.alarm {
            alarm::cancel(alarm);
        }
        in_time
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Who makes the call holds a reference, so none is being made.
        if let Some(pending) = self.state.get_mut().pending.take() {
            pending.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::held_call::HeldCall;
    use super::*;
    use std::thread;

    /// Who cancels may free what the call uses: the call, which queues a callback, has ended by then.
    #[test]
    fn cancelling_waits_for_a_call_that_is_being_made() {
        let (held, call) = HeldCall::new();
        let watch = Watch::new(move |_| call());
        let signal = Signal::new(false, false);
        watch.set(&signal, None);
        thread::scope(|scope| {
            scope.spawn(|| signal.set());
            assert!(!held.ends_before(|| watch.cancel()));
        });
        signal.reset();
        watch.set(&signal, None);
        assert!(watch.cancel() && !watch.cancel());
    }

    /// Otherwise both calls are made, and only one can be stopped.
    #[test]
    fn threads_that_set_it_at_once_leave_one_wait() {
        let (held, call) = HeldCall::new();
        let watch = Watch::new(move |_| call());
        let signal = Signal::new(true, false);
        watch.set(&signal, None);
        thread::scope(|scope| {
            scope.spawn(|| signal.set());
            held.ends_before_two(|| watch.set(&signal, None));
        });
        // Each wait has a reference.
        assert_eq!(Arc::weak_count(&watch), 1);
        assert!(watch.cancel() && !watch.cancel());
        assert_eq!(Arc::weak_count(&watch), 0);
    }
}
