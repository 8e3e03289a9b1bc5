//! What must hold whatever the processor does. A lost wake-up shows as a deadlock.

use super::address::AddressWaiters;
use super::parker::Parker;
use super::sync::{Arc, AtomicUsize, Ordering};
use super::sys::{Deadline, EventFd};
use loom::thread;

/// Two threads wait at the same address for a result, one of them in an epoll set, while a third publishes it, as the completion of a
/// request does.
fn publish_while(sleep: impl Fn(&Parker, &Arc<EventFd>) + Copy + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let addresses = Arc::new(AddressWaiters::default());
        let (result, kick) = (Arc::new(AtomicUsize::new(0)), Arc::new(EventFd::new()));
        let waiter = {
            let (addresses, result) = (addresses.clone(), result.clone());
            thread::spawn(move || {
                Parker::with(|parker| {
                    let _registered = addresses.register(7, parker);
                    parker.look_now();
                    while result.load(Ordering::Acquire) == 0 {
                        sleep(parker, &kick);
                    }
                });
            })
        };
        result.store(1, Ordering::Release);
        addresses.wake(7);
        waiter.join().unwrap();
    });
}

#[test]
fn who_sleeps_on_a_futex_hears_of_a_result() {
    publish_while(|parker, _| parker.park(Deadline::Never));
}

#[test]
fn who_leads_hears_of_a_result() {
    publish_while(|parker, kick| {
        parker.park_in_epoll(kick, || kick.sleep());
        kick.clear();
    });
}

/// A task looks after it was registered, as `register_task` asks.
#[test]
fn a_task_hears_of_a_result() {
    struct Task(loom::sync::Notify);
    impl std::task::Wake for Task {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.notify();
        }
    }
    loom::model(|| {
        let addresses = Arc::new(AddressWaiters::default());
        let result = Arc::new(AtomicUsize::new(0));
        let task = {
            let (addresses, result) = (addresses.clone(), result.clone());
            thread::spawn(move || {
                let task = std::sync::Arc::new(Task(loom::sync::Notify::new()));
                addresses.register_task(7, &task.clone().into());
                if result.load(Ordering::Acquire) == 0 {
                    task.0.wait();
                }
                assert_eq!(result.load(Ordering::Acquire), 1);
                addresses.forget_tasks(7);
            })
        };
        result.store(1, Ordering::Release);
        addresses.wake(7);
        task.join().unwrap();
    });
}

/// Without a list: what a port and an event do, which know their waiters.
#[test]
fn a_wake_up_comes_with_what_was_written_before_it() {
    loom::model(|| {
        let (written, kick) = (Arc::new(AtomicUsize::new(0)), Arc::new(EventFd::new()));
        let parker = Parker::new();
        let waiter = {
            let (parker, written) = (parker.clone(), written.clone());
            thread::spawn(move || {
                for round in 1..=2 {
                    while written.load(Ordering::Relaxed) < round {
                        if round == 1 {
                            parker.park_in_epoll(&kick, || kick.sleep());
                            kick.clear();
                        } else {
                            parker.park(Deadline::Never);
                        }
                    }
                }
            })
        };
        for round in 1..=2 {
            written.store(round, Ordering::Relaxed);
            parker.wake();
        }
        waiter.join().unwrap();
    });
}
