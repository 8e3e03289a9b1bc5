//! What must hold under every interleaving. A lost wake-up shows as a deadlock.

use super::address::AddressWaiters;
use super::apc::Apcs;
use super::dormancy::{Dormancy, TICKING};
use super::parker::Parker;
use super::poller::{Poller, Source};
use super::queue::{NoPacket, Packet, Queue};
use super::signal::{Outcome, Signal, Waiter, wait, wait_any};
use super::sync::{Arc, AtomicBool, AtomicU32, AtomicUsize, Lock, Ordering};
use super::sys::{Deadline, EventFd};
use super::thread_end;
use shuttle::thread;

fn check(test: fn()) {
    crate::model::check(test, 500);
}

type Action = Box<dyn FnOnce() + Send>;

/// Each time it is raised, the device serves one action to whoever makes progress.
struct Device {
    fd: EventFd,
    actions: Lock<Vec<Action>>,
}

impl Device {
    fn new() -> Arc<Device> {
        Arc::new(Device { fd: EventFd::new().unwrap(), actions: Lock::new(Vec::new()) })
    }

    fn watched_by(poller: &Arc<Poller>) -> Arc<Device> {
        let device = Device::new();
        poller.add(device.fd.fd(), device.clone()).unwrap();
        device
    }

    fn raise(&self, action: impl FnOnce() + Send + 'static) {
        self.actions.lock().push(Box::new(action));
        self.fd.set();
    }
}

impl Source for Device {
    fn ready(&self) {
        self.fd.clear();
        loop {
            let action = self.actions.lock().pop();
            match action {
                Some(action) => action(),
                None => break,
            }
        }
    }
}

fn spawn(body: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::spawn(body)
}

fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

fn wait_all(signals: &[Arc<Signal>], deadline: Deadline) -> bool {
    matches!(wait(signals, true, None, deadline), Outcome::Taken(_))
}

fn packet(key: usize) -> Packet {
    Packet { key, overlapped: 0, bytes: 0, status: 0 }
}

#[test]
fn every_waiter_of_a_request_is_woken_whoever_leads() {
    check(|| {
        let poller = Poller::new().unwrap();
        let device = Device::watched_by(&poller);
        let signals = [Signal::new(true, false), Signal::new(false, false), Signal::new(true, false)];
        signals.iter().for_each(|signal| signal.begin(&poller));
        let waiters = signals
            .clone()
            .map(|signal| spawn(move || assert_eq!(wait_any(&[signal], Deadline::Never), Some(0))));
        for signal in signals {
            let poller = poller.clone();
            device.raise(move || signal.finish(&poller, || ()));
        }
        join(waiters);
    });
}

#[test]
fn a_result_reaches_who_waits_at_its_address() {
    check(|| {
        let poller = Poller::new().unwrap();
        let device = Device::watched_by(&poller);
        let addresses = Arc::new(AddressWaiters::default());
        let results: [_; 2] = std::array::from_fn(|_| Arc::new(AtomicUsize::new(0)));
        let waiters = results.clone().map(|result| {
            let (poller, addresses) = (poller.clone(), addresses.clone());
            spawn(move || {
                Parker::with(|parker| {
                    let _registered = addresses.register(Arc::as_ptr(&result).addr(), parker);
                    let done = || (result.load(Ordering::Acquire) != 0).then_some(());
                    poller.wait(parker, Deadline::Never, done).unwrap();
                });
            })
        });
        let publish = |result: Arc<AtomicUsize>| {
            let addresses = addresses.clone();
            move || {
                result.store(1, Ordering::Release);
                addresses.wake(Arc::as_ptr(&result).addr());
            }
        };
        let [first, second] = results;
        // One comes through the device, one from a thread that has nothing to do with the poller.
        device.raise(publish(first));
        publish(second)();
        join(waiters);
    });
}

#[test]
fn a_poll_beside_the_leader_takes_nothing_from_it() {
    check(|| {
        let poller = Poller::new().unwrap();
        let _device = Device::watched_by(&poller);
        let signal = Signal::new(true, false);
        signal.begin(&poller);
        let waiter = {
            let signal = signal.clone();
            spawn(move || assert!(wait_any(&[signal], Deadline::Never).is_some()))
        };
        let other = {
            let poller = poller.clone();
            spawn(move || (0..2).for_each(|_| poller.poll()))
        };
        // Only a kick can bring the leader out.
        signal.finish(&poller, || ());
        join([waiter, other]);
    });
}

#[test]
fn a_request_begun_after_the_wait_is_served_by_it() {
    check(|| {
        let signal = Signal::new(false, false);
        let waiter = {
            let signal = signal.clone();
            spawn(move || assert!(wait_any(&[signal], Deadline::Never).is_some()))
        };
        let poller = Poller::new().unwrap();
        signal.begin(&poller);
        let device = Device::watched_by(&poller);
        device.raise(move || signal.finish(&poller, || ()));
        join([waiter]);
    });
}

#[test]
fn an_auto_reset_signal_releases_exactly_one() {
    check(|| {
        let signals = [Signal::new(true, false), Signal::new(true, false)];
        let taken = Arc::new(AtomicUsize::new(0));
        let waiters = [Deadline::Soon, Deadline::Soon, Deadline::Now].map(|deadline| {
            let (signals, taken) = (signals.clone(), taken.clone());
            spawn(move || {
                if wait_any(&signals, deadline).is_some() {
                    taken.fetch_add(1, Ordering::SeqCst);
                }
            })
        });
        signals[1].set();
        join(waiters);
        let left = usize::from(wait_any(&signals, Deadline::Now).is_some());
        assert_eq!(taken.load(Ordering::SeqCst) + left, 1);
    });
}

#[test]
fn waiting_for_all_takes_all_or_nothing() {
    check(|| {
        let signals = [Signal::new(true, false), Signal::new(true, false)];
        let all = {
            let signals = signals.clone();
            spawn(move || assert!(wait_all(&signals, Deadline::Never)))
        };
        let reversed = {
            let signals = [signals[1].clone(), signals[0].clone()];
            spawn(move || assert!(wait_all(&signals, Deadline::Never)))
        };
        // One more of the first than the pairs use up, which the single wait takes.
        let single = {
            let signals = [signals[0].clone()];
            spawn(move || assert!(wait_any(&signals, Deadline::Never).is_some()))
        };
        let mut threads = vec![all, reversed, single];
        // Sets until everybody is served: a set of what is set already does not count.
        let setter = {
            let signals = signals.clone();
            spawn(move || {
                for _ in 0..40 {
                    signals[0].set();
                    signals[1].set();
                    thread::yield_now();
                }
                signals.iter().for_each(|signal| signal.set());
            })
        };
        threads.push(setter);
        // A wait for all may be out of luck as long as others come first; shuttle's fair yields end that.
        join(threads);
    });
}

#[test]
fn packets_reach_waiting_threads_once() {
    check(|| {
        let queue = Queue::new(2).unwrap();
        let device = Device::watched_by(&queue.poller);
        let taken = Arc::new(AtomicUsize::new(0));
        let takers = [Deadline::Never, Deadline::Never, Deadline::Soon].map(|deadline| {
            let (queue, taken) = (queue.clone(), taken.clone());
            spawn(move || match queue.next(deadline) {
                Ok(packet) => {
                    taken.fetch_add(packet.key, Ordering::SeqCst);
                }
                Err(none) => assert!(none == NoPacket::TimedOut && deadline == Deadline::Soon),
            })
        });
        let poster = {
            let queue = queue.clone();
            spawn(move || queue.post(packet(1)))
        };
        for key in [10, 100] {
            let queue = queue.clone();
            device.raise(move || queue.post(packet(key)));
        }
        join(takers);
        join([poster]);
        device.ready();
        while let Some(packet) = queue.another() {
            taken.fetch_add(packet.key, Ordering::SeqCst);
        }
        assert_eq!(taken.load(Ordering::SeqCst), 111);
    });
}

#[test]
fn packets_held_back_by_the_limit_come_when_the_thread_waits_or_ends() {
    check(|| {
        let queue = Queue::new(1).unwrap();
        let (elsewhere, running) = (Signal::new(true, false), Arc::new(AtomicUsize::new(0)));
        let takers: [_; 3] = std::array::from_fn(|way| {
            let (queue, elsewhere, running) = (queue.clone(), elsewhere.clone(), running.clone());
            spawn(move || {
                for _ in 0..2 {
                    assert!(queue.next(Deadline::Never).is_ok());
                    // No more threads run than the limit allows.
                    assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0);
                    thread::yield_now();
                    running.fetch_sub(1, Ordering::SeqCst);
                    match way {
                        0 => elsewhere.set(),
                        1 => assert!(wait_any(std::slice::from_ref(&elsewhere), Deadline::Never).is_some()),
                        _ => {}
                    }
                    if way == 1 {
                        break;
                    }
                }
            })
        });
        (0..5).for_each(|key| queue.post(packet(key)));
        join(takers);
        assert_eq!(queue.another(), None);
    });
}

#[test]
fn closing_a_port_releases_everybody() {
    check(|| {
        let queue = Queue::new(1).unwrap();
        let _device = Device::watched_by(&queue.poller);
        let waiters: [_; 3] = std::array::from_fn(|_| {
            let queue = queue.clone();
            spawn(move || assert_eq!(queue.next(Deadline::Never), Err(NoPacket::Closed)))
        });
        queue.close();
        join(waiters);
    });
}

#[test]
fn a_first_source_finds_a_leader_among_those_who_wait_already() {
    check(|| {
        let queue = Queue::new(4).unwrap();
        let takers: [_; 2] = std::array::from_fn(|_| {
            let queue = queue.clone();
            spawn(move || assert!(queue.next(Deadline::Never).is_ok()))
        });
        let device = Device::watched_by(&queue.poller);
        for key in 0..2 {
            let queue = queue.clone();
            device.raise(move || queue.post(packet(key)));
        }
        join(takers);
    });
}

#[test]
fn a_mutex_belongs_to_one_and_outlives_its_owner() {
    check(|| {
        let (mutex, inside) = (Signal::mutex(), Arc::new(AtomicUsize::new(0)));
        let threads = [false, true, false].map(|leaves_it| {
            let (mutex, inside) = (mutex.clone(), inside.clone());
            spawn(move || {
                let outcome = wait(std::slice::from_ref(&mutex), false, None, Deadline::Never);
                assert!(matches!(outcome, Outcome::Taken(_)));
                assert_eq!(wait_any(std::slice::from_ref(&mutex), Deadline::Now), Some(0));
                assert!(mutex.unlock());
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                thread::yield_now();
                inside.fetch_sub(1, Ordering::SeqCst);
                if leaves_it {
                    thread_end::ended()
                } else {
                    assert!(mutex.unlock())
                }
                assert!(!mutex.unlock());
            })
        });
        join(threads);
        assert_eq!(wait_any(&[mutex], Deadline::Now), Some(0));
    });
}

#[test]
fn a_semaphore_ends_as_many_waits_as_it_was_released() {
    check(|| {
        let semaphore = Signal::semaphore(0, 3);
        let waiters = [(); 3].map(|()| {
            let signals = [semaphore.clone()];
            spawn(move || assert!(wait_any(&signals, Deadline::Never).is_some()))
        });
        // One that may give up takes nothing with it then.
        let hasty = {
            let semaphore = semaphore.clone();
            spawn(move || {
                if wait_any(std::slice::from_ref(&semaphore), Deadline::Soon).is_some() {
                    while semaphore.release(1).is_none() {
                        thread::yield_now();
                    }
                }
            })
        };
        for more in [1, 2] {
            while semaphore.release(more).is_none() {
                thread::yield_now();
            }
        }
        join(waiters);
        join([hasty]);
        assert_eq!(wait_any(&[semaphore], Deadline::Now), None);
    });
}

#[test]
fn a_procedure_call_ends_an_alertable_wait() {
    check(|| {
        let signal = Signal::new(true, false);
        let (sender, receiver) = shuttle::sync::mpsc::channel();
        let waiter = {
            let signals = [signal.clone()];
            spawn(move || {
                let apcs = Apcs::current();
                sender.send(apcs.clone()).unwrap();
                let (mut ran, mut taken) = (false, false);
                while !(ran && taken) {
                    match wait(&signals, false, Some(&apcs), Deadline::Never) {
                        Outcome::Taken(_) => taken = true,
                        Outcome::Apc => ran = apcs.run(),
                        Outcome::TimedOut => unreachable!(),
                    }
                }
            })
        };
        let apcs = receiver.recv().unwrap();
        assert!(apcs.queue(Box::new(|| ())));
        signal.set();
        join([waiter]);
    });
}

#[test]
fn a_procedure_call_ends_an_alertable_wait_at_a_port_and_takes_no_packet() {
    check(|| {
        let (queue, taken) = (Queue::new(1).unwrap(), Arc::new(AtomicUsize::new(0)));
        let (sender, receiver) = shuttle::sync::mpsc::channel();
        let alertable = {
            let (queue, taken) = (queue.clone(), taken.clone());
            spawn(move || {
                let apcs = Apcs::current();
                sender.send(apcs.clone()).unwrap();
                loop {
                    match queue.next_alertably(Deadline::Never, &apcs) {
                        Ok(packet) => _ = taken.fetch_add(packet.key, Ordering::SeqCst),
                        Err(none) => {
                            assert!(none == NoPacket::Apc && apcs.run());
                            return;
                        }
                    }
                }
            })
        };
        let other = {
            let (queue, taken) = (queue.clone(), taken.clone());
            spawn(move || match queue.next(Deadline::Never) {
                Ok(packet) => _ = taken.fetch_add(packet.key, Ordering::SeqCst),
                Err(none) => assert!(none == NoPacket::Closed),
            })
        };
        let apcs = receiver.recv().unwrap();
        let poster = {
            let queue = queue.clone();
            spawn(move || [1, 10].into_iter().for_each(|key| queue.post(packet(key))))
        };
        assert!(apcs.queue(Box::new(|| ())));
        join([alertable, poster]);
        while let Some(packet) = queue.another() {
            taken.fetch_add(packet.key, Ordering::SeqCst);
        }
        queue.close();
        join([other]);
        assert_eq!(taken.load(Ordering::SeqCst), 11);
    });
}

/// Watches the signal, and counts the calls.
fn counted(signal: &Signal, calls: &Arc<AtomicUsize>) -> Option<Arc<Waiter>> {
    let calls = calls.clone();
    signal.watch(move || {
        calls.fetch_add(1, Ordering::SeqCst);
    })
}

#[test]
fn a_watch_is_called_once_or_taken_back() {
    check(|| {
        let (signal, calls) = (Signal::new(true, false), Arc::new(AtomicUsize::new(0)));
        let watch = counted(&signal, &calls);
        let watch = watch.expect("it is not set yet");
        let setter = {
            let signal = signal.clone();
            spawn(move || signal.set())
        };
        let in_time = signal.unwatch(&watch);
        join([setter]);
        assert_eq!(calls.load(Ordering::SeqCst), usize::from(!in_time));
        assert_eq!(wait_any(&[signal], Deadline::Now).is_some(), in_time);
    });
}

#[test]
fn a_watch_is_called_once_though_the_pollers_of_its_signal_change() {
    check(|| {
        let (signal, calls) = (Signal::new(true, false), Arc::new(AtomicUsize::new(0)));
        let watch = counted(&signal, &calls);
        assert!(watch.is_some());
        let setter = {
            let signal = signal.clone();
            spawn(move || signal.set())
        };
        signal.attach(&Poller::new().unwrap());
        join([setter]);
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn who_watches_a_signal_that_is_being_set_is_told_once() {
    check(|| {
        let (signal, calls) = (Signal::new(true, false), Arc::new(AtomicUsize::new(0)));
        let setter = {
            let signal = signal.clone();
            spawn(move || signal.set())
        };
        let watch = counted(&signal, &calls);
        join([setter]);
        assert_eq!(calls.load(Ordering::SeqCst), usize::from(watch.is_some()));
        assert!(!wait_all(&[signal], Deadline::Now));
    });
}

#[test]
fn the_background_thread_sleeps_through_nothing_that_is_left_alone() {
    check(|| {
        let dormancy = Arc::new(Dormancy(AtomicU32::new(TICKING)));
        let pending: [_; 2] = std::array::from_fn(|_| Arc::new(AtomicBool::new(false)));
        let (poller, parker) = (Poller::new().unwrap(), Parker::new());
        let background = {
            let (dormancy, pending, parker) = (dormancy.clone(), pending.clone(), parker.clone());
            spawn(move || {
                // Adopts what it finds, and sleeps until it has found all.
                let mut found = 0;
                while found < pending.len() {
                    let any = || pending.iter().any(|one| one.load(Ordering::SeqCst));
                    dormancy.sleep(any, |is_over| {
                        poller.wait(&parker, Deadline::Never, || is_over().then_some(()));
                    });
                    found += pending.iter().filter(|one| one.swap(false, Ordering::SeqCst)).count();
                }
            })
        };
        let leaving = pending.map(|pending| {
            let (dormancy, parker) = (dormancy.clone(), parker.clone());
            spawn(move || {
                pending.store(true, Ordering::SeqCst);
                dormancy.left_alone(|| parker.wake());
            })
        });
        join(leaving.into_iter().chain([background]));
    });
}
