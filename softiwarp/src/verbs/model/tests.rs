//! No thread waits for an event that is there, and no signal is left when there is none.

use std::sync::Arc;

use loom::thread;

use super::events::EventQueue;
use super::sync::{Kernel, Signal};

struct Model {
    events: EventQueue<u32>,
    /// The events that come when the sockets are served.
    arriving: &'static [u32],
}

impl Model {
    fn new(arriving: &'static [u32]) -> Arc<Model> {
        Arc::new(Model { events: EventQueue::new(Signal(Kernel::new())), arriving })
    }

    fn kernel(&self) -> &Kernel {
        &self.events.signal().0
    }

    /// As the inbox does in blocking mode.
    fn next(&self) -> u32 {
        self.next_after(&[])
    }

    /// The same; what was held back is sent before the wait, which adds these events.
    fn next_after(&self, flushed: &[u32]) -> u32 {
        if let Some(event) = self.events.pop(|_| {}) {
            return event;
        }
        let mut flushed = flushed;
        loop {
            let drive = || {
                std::mem::take(&mut flushed).iter().for_each(|event| self.events.push(*event));
                if self.events.is_empty() && self.kernel().poll() {
                    self.arriving.iter().for_each(|event| self.events.push(*event));
                }
            };
            if let ((), Some(event)) = self.events.drive(drive, |_| {}) {
                return event;
            }
        }
    }

    fn end(&self) {
        assert_eq!(self.kernel().is_signal_readable(), !self.events.is_empty());
    }
}

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

fn run<R: 'static>(model: &Arc<Model>, body: impl FnOnce(&Model) -> R + 'static) -> thread::JoinHandle<R> {
    let model = Arc::clone(model);
    thread::spawn(move || body(&model))
}

#[test]
fn who_waits_hears_of_an_event_that_another_thread_adds() {
    check(|| {
        let model = Model::new(&[]);
        let adds = run(&model, |model| model.events.push(1));
        assert_eq!(model.next(), 1);
        adds.join().unwrap();
        model.end();
    });
}

#[test]
fn who_drives_takes_one_event_and_another_waiter_the_other() {
    check(|| {
        let model = Model::new(&[1, 2]);
        let other = run(&model, Model::next);
        let arrives = run(&model, |model| model.kernel().arrive());
        let mut taken = [model.next(), other.join().unwrap()];
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
        arrives.join().unwrap();
        model.end();
    });
}

#[test]
fn an_event_of_who_drives_and_one_of_another_thread_both_arrive() {
    check(|| {
        let model = Model::new(&[1]);
        model.kernel().arrive();
        let adds = run(&model, |model| model.events.push(2));
        let mut taken = [model.next(), model.next()];
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
        adds.join().unwrap();
        model.end();
    });
}

#[test]
fn who_waits_takes_what_its_own_sending_has_added() {
    check(|| {
        let model = Model::new(&[]);
        let adds = run(&model, |model| model.events.push(3));
        let first = model.next_after(&[1, 2]);
        // Who finds the other thread's event sends nothing.
        if first != 3 {
            let mut taken = [first, model.next(), model.next()];
            taken.sort_unstable();
            assert_eq!(taken, [1, 2, 3]);
        }
        adds.join().unwrap();
        model.end();
    });
}

#[test]
fn what_is_removed_leaves_the_rest_to_who_waits() {
    check(|| {
        let model = Model::new(&[1, 2]);
        model.kernel().arrive();
        let removes = run(&model, |model| model.events.remove(|event| *event == 1));
        let first = model.next();
        let removed = removes.join().unwrap();
        if first == 1 {
            assert!(removed.is_empty());
            assert_eq!(model.next(), 2);
        } else {
            assert_eq!((first, &removed[..]), (2, &[1][..]));
        }
        model.end();
    });
}

#[test]
fn who_has_driven_signals_what_it_adds_afterwards() {
    check(|| {
        let model = Model::new(&[1]);
        model.kernel().arrive();
        assert_eq!(model.next(), 1);
        let waits = run(&model, Model::next);
        model.events.push(2);
        assert_eq!(waits.join().unwrap(), 2);
        model.end();
    });
}

#[test]
fn the_signal_of_an_event_goes_when_that_is_removed() {
    check(|| {
        let model = Model::new(&[]);
        let adds = run(&model, |model| model.events.push(1));
        model.events.remove(|_| true);
        adds.join().unwrap();
        model.end();
    });
}
