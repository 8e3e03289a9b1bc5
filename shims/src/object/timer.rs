//! Waitable timers.

use super::ticker::Ticker;
use crate::io::apc::Apcs;
use crate::io::signal::Signal;
use crate::time::system_time;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The routine of a timer; it gets the time.
pub(crate) type Routine = Arc<dyn Fn(u64) + Send + Sync>;

/// Handles hold it: it is cancelled when the last one is closed.
pub(crate) struct Timer {
    ticker: Arc<Ticker>,
    effect: Arc<Effect>,
}

/// What happens when the timer goes off. The ticker has it, too.
struct Effect {
    signal: Arc<Signal>,
    routine: Mutex<Option<Arc<Call>>>,
}

/// A routine and its thread, until the timer is set again or cancelled. Its address is the owner of what it has queued.
struct Call {
    apcs: Arc<Apcs>,
    routine: Routine,
    /// It is in the thread's queue, and is not queued again until it has run.
    is_queued: Mutex<bool>,
}

/// The time of day, in units of 100 ns.
fn now() -> u64 {
    let now = system_time();
    u64::from(now.high) << 32 | u64::from(now.low)
}

/// The due time on the monotonic clock: `due` is a system time, or relative if it is negative.
pub(crate) fn due_time(due: i64) -> Option<Instant> {
    let left = if due < 0 { due.unsigned_abs() } else { (due as u64).saturating_sub(now()) };
    let duration = Duration::from_secs(left / 10_000_000) + Duration::from_nanos(left % 10_000_000 * 100);
    Instant::now().checked_add(duration)
}

impl Timer {
    pub(crate) fn new(auto: bool) -> Arc<Timer> {
        let effect = Arc::new(Effect { signal: Signal::new(auto, false), routine: Mutex::default() });
        let at_end = effect.clone();
        Arc::new(Timer { ticker: Ticker::new(move || at_end.come()), effect })
    }

    pub(crate) fn signal(&self) -> &Arc<Signal> {
        &self.effect.signal
    }

    /// Sets the timer to `due` (`None`: never) and then every `period`, if that is not zero. False if that fails.
    pub(crate) fn set(
        &self,
        due: Option<Instant>,
        period: Duration,
        routine: Option<(Arc<Apcs>, Routine)>,
    ) -> bool {
        self.cancel();
        self.effect.signal.reset();
        *self.effect.routine.lock() =
            routine.map(|(apcs, routine)| Arc::new(Call { apcs, routine, is_queued: Mutex::default() }));
        let now = Instant::now();
        if due.is_none_or(|due| due > now) {
            return self.ticker.set(due, period);
        }
        // It goes off in this call.
        let next = (!period.is_zero()).then(|| now + period);
        let is_set = self.ticker.set(next, period);
        self.effect.come();
        is_set
    }

    /// Cancels the timer, and what it has queued. Its state stays as it is.
    pub(crate) fn cancel(&self) {
        self.ticker.cancel();
        let call = self.effect.routine.lock().take();
        if let Some(call) = call {
            call.apcs.remove(Arc::as_ptr(&call).addr());
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl Effect {
    fn come(&self) {
        // Queued under the lock, with the only strong reference in the timer, so that it does not begin after it was cancelled.
        if let Some(call) = &*self.routine.lock()
            && !std::mem::replace(&mut *call.is_queued.lock(), true)
        {
            let (waiting, time) = (Arc::downgrade(call), now());
            call.apcs.queue_of(
                Arc::as_ptr(call).addr(),
                Box::new(move || {
                    // Gone if the timer was set again or cancelled meanwhile.
                    if let Some(call) = waiting.upgrade() {
                        *call.is_queued.lock() = false;
                        (call.routine)(time);
                    }
                }),
            );
        }
        self.signal.set();
    }
}
