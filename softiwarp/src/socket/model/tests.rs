//! No request stays held back with nobody to send it, no check that was asked for is left out, and nothing that is due is forgotten.

use std::sync::Arc;

use loom::thread;

use super::batching::{Batches, Pace};
use super::checks::Checks;
use super::schedule::Schedule;
use super::sync::Lock;

/// A poller with one connection, whose queue pair is the number of requests that are posted and not sent.
struct Model {
    batches: Batches<()>,
    pace: Pace,
    pair: Lock<u32>,
    /// The take-over timer is set. A lock of the kernel's orders its changes, and the time between setting and expiry what a thread
    /// did before it found the timer set.
    timer: Lock<bool>,
}

impl Model {
    fn new() -> Arc<Model> {
        let timer = Lock::new(true);
        let model = Model { batches: Batches::new(), pace: Pace::new(), pair: Lock::new(0), timer };
        model.batches.set_background(true, |()| {});
        // Of the requests after a look the first two are not held back.
        model.post();
        model.post();
        assert_eq!(*model.pair.lock(), 0);
        Arc::new(model)
    }

    fn post(&self) {
        let mut pair = self.pair.lock();
        *pair += 1;
        if !self.pace.holds(1, 8, || self.batches.defer(|| Some(()))) {
            self.send(&mut pair);
        }
    }

    fn send(&self, pair: &mut u32) {
        self.pace.sent();
        *pair = 0;
    }

    fn flush(&self, (): ()) {
        self.send(&mut self.pace.unlist(|| self.pair.lock()));
    }

    /// The look of a thread that polls.
    fn look(&self) {
        self.batches.flush(|listed| self.flush(listed));
    }

    /// As the poller does. No time passes, so a timer that was set is left alone until it expires.
    fn note(&self) {
        self.batches.note(1, 1, |_| *self.timer.lock() = true);
    }

    fn begin_driving(&self) {
        self.batches.begin_driving();
        self.look();
    }

    fn end_driving(&self) {
        self.batches.end_driving();
        self.note();
    }

    /// The timer expires, if it is set.
    fn expire(&self) {
        let set = std::mem::take(&mut *self.timer.lock());
        if set {
            self.batches.take_over(|listed| self.flush(listed));
        }
    }

    fn unsent(&self) -> u32 {
        *self.pair.lock()
    }
}

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

fn run(model: &Arc<Model>, body: impl FnOnce(&Model) + 'static) -> thread::JoinHandle<()> {
    let model = Arc::clone(model);
    thread::spawn(move || body(&model))
}

#[test]
fn the_next_look_sends_what_is_held_back() {
    check(|| {
        let model = Model::new();
        let looks = run(&model, Model::look);
        for _ in 0..3 {
            model.post();
        }
        looks.join().unwrap();
        model.look();
        assert_eq!(model.unsent(), 0);
    });
}

#[test]
fn nothing_is_held_back_while_a_thread_waits_in_drive() {
    check(|| {
        let model = Model::new();
        let drives = run(&model, Model::begin_driving);
        model.post();
        model.post();
        drives.join().unwrap();
        assert_eq!(model.unsent(), 0);
    });
}

#[test]
fn nothing_is_held_back_while_the_background_thread_is_on_duty() {
    check(|| {
        let model = Model::new();
        let takes_over = run(&model, Model::expire);
        model.post();
        model.post();
        takes_over.join().unwrap();
        assert_eq!(model.unsent(), 0);
    });
}

#[test]
fn what_is_held_back_is_sent_when_the_timer_expires_whoever_came_and_went() {
    check(|| {
        let model = Model::new();
        let expires = run(&model, Model::expire);
        let drives = run(&model, |model| {
            model.begin_driving();
            model.end_driving();
        });
        model.post();
        expires.join().unwrap();
        drives.join().unwrap();
        model.expire();
        assert_eq!(model.unsent(), 0);
    });
}

#[test]
fn a_thread_that_relieves_the_background_thread_leaves_it_on_duty_or_a_timer_set() {
    check(|| {
        let model = Model::new();
        model.expire();
        let expires = run(&model, Model::expire);
        model.note();
        expires.join().unwrap();
        assert!(model.batches.is_on_duty() || *model.timer.lock());
    });
}

#[test]
fn a_thread_that_leaves_drive_leaves_the_background_thread_on_duty_or_a_timer_set() {
    check(|| {
        let model = Model::new();
        model.note();
        let expires = run(&model, Model::expire);
        model.begin_driving();
        model.end_driving();
        expires.join().unwrap();
        assert!(model.batches.is_on_duty() || *model.timer.lock());
    });
}

#[test]
fn a_thread_that_sets_the_timer_late_leaves_the_background_thread_on_duty_or_a_timer_set() {
    check(|| {
        let model = Model::new();
        let sets = run(&model, Model::note);
        let expires = run(&model, Model::expire);
        model.begin_driving();
        model.end_driving();
        for thread in [sets, expires] {
            thread.join().unwrap();
        }
        assert!(model.batches.is_on_duty() || *model.timer.lock());
    });
}

/// What overflows, which of the queues have, and how many were found.
struct Overflows {
    checks: Checks,
    lost: [Lock<bool>; 3],
    found: Lock<u32>,
}

impl Overflows {
    /// The end of a connection of the first queue makes the last one overflow.
    fn overflow(&self, queue: usize) {
        *self.lost[queue].lock() = true;
        self.checks.ask(|| {
            for (at, lost) in self.lost.iter().enumerate() {
                let lost = std::mem::take(&mut *lost.lock());
                *self.found.lock() += u32::from(lost);
                if lost && at == 0 {
                    self.overflow(2);
                }
            }
        });
    }
}

#[test]
fn what_was_there_when_a_check_was_asked_for_is_found_before_all_have_returned() {
    check(|| {
        let lost = [(); 3].map(|()| Lock::new(false));
        let model = Arc::new(Overflows { checks: Checks::new(), lost, found: Lock::new(0) });
        let other = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.overflow(0))
        };
        model.overflow(1);
        other.join().unwrap();
        assert_eq!(*model.found.lock(), 3);
    });
}

/// A schedule, its timer, and how often what was woken has been resumed.
struct Alarm {
    schedule: Schedule<u32>,
    /// The timer has expired, and was not cleared.
    expired: Lock<bool>,
    resumed: Lock<u32>,
    ended: Lock<u32>,
}

impl Alarm {
    const NOW: u32 = 5;

    fn new() -> Arc<Alarm> {
        let (expired, resumed, ended) = (Lock::new(false), Lock::new(0), Lock::new(0));
        Arc::new(Alarm { schedule: Schedule::new(), expired, resumed, ended })
    }

    /// A timer that is set to a time that has come expires at once. To set it takes back that it has expired.
    fn set_timer(&self, at: u32) {
        *self.expired.lock() = at <= Alarm::NOW;
    }

    fn wake(&self) {
        self.schedule.wake(1, Alarm::NOW, |at| self.set_timer(at));
    }

    fn set_deadline(&self, at: u32) {
        self.schedule.replace(2, None, Some(at), |at| self.set_timer(at));
    }

    /// As the poller does, with the set of what is ready.
    fn turn(&self) {
        let expired = *self.expired.lock();
        if expired {
            *self.expired.lock() = false;
            let resume = |_| *self.resumed.lock() += 1;
            self.schedule.expire(Alarm::NOW, resume, |_, _| *self.ended.lock() += 1, |at| self.set_timer(at));
        }
    }

    /// Whoever drives finds all that is left.
    fn finish(&self) {
        for _ in 0..3 {
            self.turn();
        }
    }
}

fn run_alarm(alarm: &Arc<Alarm>, body: impl FnOnce(&Alarm) + 'static) -> thread::JoinHandle<()> {
    let alarm = Arc::clone(alarm);
    thread::spawn(move || body(&alarm))
}

#[test]
fn what_is_woken_is_resumed_whoever_clears_the_timer() {
    check(|| {
        let alarm = Alarm::new();
        // The timer may be set to a later time already.
        alarm.set_deadline(9);
        let drives = run_alarm(&alarm, |alarm| {
            alarm.turn();
            alarm.turn();
        });
        let wakes = run_alarm(&alarm, Alarm::wake);
        alarm.wake();
        alarm.turn();
        for thread in [drives, wakes] {
            thread.join().unwrap();
        }
        alarm.finish();
        assert_eq!((*alarm.resumed.lock(), *alarm.ended.lock()), (2, 0));
    });
}

#[test]
fn a_deadline_that_has_come_is_told_once_beside_what_is_woken() {
    check(|| {
        let alarm = Alarm::new();
        let drives = run_alarm(&alarm, Alarm::turn);
        let wakes = run_alarm(&alarm, Alarm::wake);
        alarm.set_deadline(4);
        alarm.turn();
        for thread in [drives, wakes] {
            thread.join().unwrap();
        }
        alarm.finish();
        assert_eq!((*alarm.resumed.lock(), *alarm.ended.lock()), (1, 1));
    });
}
