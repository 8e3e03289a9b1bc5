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
    /// It has ticked its only time.
    over: bool,
}

impl Setting {
    /// Ends it; its alarm is to be cancelled.
    fn end(&mut self) -> Option<Alarm> {
        self.number += 1;
        self.alarm.take()
    }
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
        let mut setting = self.setting.lock();
        let (former, is_set) = self.exchange(&mut setting, due, period);
        drop(setting);
        (cancel(former), is_set)
    }

    /// As [`set`](Self::set), but leaves alone what has ticked its only time.
    pub(crate) fn set_unless_over(self: &Arc<Self>, due: Option<Instant>, period: Duration) -> bool {
        let mut setting = self.setting.lock();
        if setting.over {
            return true;
        }
        let (former, is_set) = self.exchange(&mut setting, due, period);
        drop(setting);
        cancel(former);
        is_set
    }

    /// Ends the former setting and begins the new one with one lock for both, so that of two threads the second one finds the alarm of
    /// the first.
    fn exchange(
        self: &Arc<Self>,
        setting: &mut Setting,
        due: Option<Instant>,
        period: Duration,
    ) -> (Option<Alarm>, bool) {
        let former = setting.end();
        (setting.period, setting.over) = (period, false);
        (former, due.is_none_or(|due| self.arm(setting, due)))
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
        setting.over = setting.period.is_zero();
        if !setting.over {
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
        let former = self.setting.lock().end();
        cancel(former)
    }
}

/// Cancels an alarm, without the lock; whether there is one.
fn cancel(alarm: Option<Alarm>) -> bool {
    alarm.map(alarm::cancel).is_some()
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::super::held_call::{HeldCall, on_two_threads};
    use super::*;

    /// Who cancels may free what a tick uses: the tick, which queues a callback, has ended by then.
    #[test]
    fn cancelling_waits_for_a_tick() {
        let (held, tick) = HeldCall::new();
        let ticker = Ticker::new(tick);
        assert!(ticker.set(Some(Instant::now()), Duration::ZERO));
        assert!(!held.ends_before(|| ticker.cancel()));
    }

    /// Otherwise both times come, and only one can be cancelled.
    #[test]
    fn threads_that_set_it_at_once_leave_one_alarm() {
        let ticker = Ticker::new(|| {});
        let never = Instant::now() + Duration::from_secs(1 << 30);
        let set = || assert!(ticker.set(Some(never), Duration::ZERO));
        set();
        let held = alarm::hold();
        on_two_threads(set, || drop(held));
        // Each alarm has a reference.
        assert_eq!(Arc::weak_count(&ticker), 1);
        assert!(ticker.cancel() && !ticker.cancel());
        assert_eq!(Arc::weak_count(&ticker), 0);
    }
}
