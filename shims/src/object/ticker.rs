//! Actions at a time, once or periodically.

use crate::io::alarm::{self, Alarm};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) struct Ticker {
    /// Runs on the alarm thread, with the lock: it must be short, and neither set nor cancel the ticker.
    tick: Box<dyn Fn() + Send + Sync>,
    setting: Mutex<Setting>,
}

#[derive(Default)]
struct Setting {
    /// Changes each time it is set or cancelled, so that an earlier alarm is ignored.
    number: u64,
    alarm: Option<Alarm>,
    period: Duration,
}

impl Ticker {
    pub(crate) fn new(tick: impl Fn() + Send + Sync + 'static) -> Arc<Ticker> {
        Arc::new(Ticker { tick: Box::new(tick), setting: Mutex::default() })
    }

    /// Sets the due time (`None`: never) and the period (zero: none). False if that fails.
    pub(crate) fn set(self: &Arc<Self>, due: Option<Instant>, period: Duration) -> bool {
        self.replace(due, period).1
    }

    /// The same; whether an earlier setting was cancelled before it was due, and whether this one is set.
    pub(crate) fn replace(self: &Arc<Self>, due: Option<Instant>, period: Duration) -> (bool, bool) {
        let cancelled = self.cancel();
        let mut setting = self.setting.lock();
        setting.period = period;
        (cancelled, due.is_none_or(|due| self.arm(&mut setting, due)))
    }

    fn arm(self: &Arc<Self>, setting: &mut Setting, when: Instant) -> bool {
        let (ticker, number) = (Arc::downgrade(self), setting.number);
        let tick = move || {
            if let Some(ticker) = ticker.upgrade() {
                ticker.tick(number, when);
            }
        };
        setting.alarm = alarm::set(when, tick);
        setting.alarm.is_some()
    }

    fn tick(self: &Arc<Self>, number: u64, when: Instant) {
        let mut setting = self.setting.lock();
        if setting.number != number {
            return;
        }
        setting.alarm = None;
        if !setting.period.is_zero() {
            // Missed periods are skipped.
            let periods = (when.elapsed().as_nanos() / setting.period.as_nanos()) as u32 + 1;
            let next = when + setting.period * periods;
            self.arm(&mut setting, next);
        }
        // With the lock, so that it has ended when cancelling returns.
        (self.tick)();
    }

    /// Cancels it; whether there was something to cancel. A tick that has started has ended then.
    pub(crate) fn cancel(&self) -> bool {
        let alarm = {
            let mut setting = self.setting.lock();
            setting.number += 1;
            setting.alarm.take()
        };
        let cancelled = alarm.is_some();
        if let Some(alarm) = alarm {
            alarm::cancel(alarm);
        }
        cancelled
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::super::held_call::HeldCall;
    use super::*;

    /// Who cancels may free what a tick uses: the tick, which queues a callback, has ended by then.
    #[test]
    fn cancelling_waits_for_a_tick() {
        let (held, tick) = HeldCall::new();
        let ticker = Ticker::new(tick);
        assert!(ticker.set(Some(Instant::now()), Duration::ZERO));
        assert!(!held.ends_before(|| ticker.cancel()));
    }
}
