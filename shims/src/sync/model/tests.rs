//! What must hold under every interleaving.

use super::Deadline;
use super::barrier::Barrier;
use super::condition::ConditionVariable;
use super::critical::CriticalSection;
use super::once::{InitOnce, Task};
use super::srw::SrwLock;
use shuttle::sync::atomic::{AtomicUsize, Ordering::*};
use shuttle::thread;
use std::sync::Arc;

fn check(test: fn()) {
    crate::model::check(test, 1000);
}

fn spawn<T: Send + Sync + 'static>(shared: &Arc<T>, body: fn(&T)) -> thread::JoinHandle<()> {
    let shared = shared.clone();
    thread::spawn(move || body(&shared))
}

fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// A lock, and who is inside: readers count one each, a writer a hundred.
#[derive(Default)]
struct Guarded {
    lock: SrwLock,
    inside: AtomicUsize,
}

impl Guarded {
    fn write(&self) {
        self.lock.write();
        assert_eq!(self.inside.fetch_add(100, SeqCst), 0);
        thread::yield_now();
        self.inside.fetch_sub(100, SeqCst);
        self.lock.unlock_write();
    }

    fn read(&self) {
        self.lock.read();
        assert!(self.inside.fetch_add(1, SeqCst) < 100);
        thread::yield_now();
        self.inside.fetch_sub(1, SeqCst);
        self.lock.unlock_read();
    }
}

#[test]
fn an_srw_lock_forgets_nobody() {
    check(|| {
        let guarded = Arc::new(Guarded::default());
        let writers = [(); 2].map(|()| spawn(&guarded, |guarded| (0..2).for_each(|_| guarded.write())));
        let readers = [(); 2].map(|()| spawn(&guarded, |guarded| (0..2).for_each(|_| guarded.read())));
        join(writers.into_iter().chain(readers));
        assert!(guarded.lock.try_write());
    });
}

#[test]
fn a_critical_section_forgets_nobody() {
    check(|| {
        let shared = Arc::new((CriticalSection::new(0), AtomicUsize::new(0)));
        let threads = [(); 3].map(|()| {
            spawn(&shared, |(section, inside)| {
                for _ in 0..2 {
                    section.enter();
                    assert!(section.try_enter());
                    assert_eq!(inside.fetch_add(1, SeqCst), 0);
                    section.leave();
                    inside.fetch_sub(1, SeqCst);
                    section.leave();
                }
            })
        });
        join(threads);
        assert!(shared.0.try_enter());
    });
}

#[test]
fn no_wake_up_of_a_condition_variable_is_lost() {
    check(|| {
        let shared = Arc::new((ConditionVariable::default(), SrwLock::default(), AtomicUsize::new(0)));
        let takers = [(); 2].map(|()| {
            spawn(&shared, |(condition, lock, items)| {
                lock.write();
                while items.load(SeqCst) == 0 {
                    condition.sleep(Deadline::Never, || lock.unlock_write(), || lock.write());
                }
                items.fetch_sub(1, SeqCst);
                lock.unlock_write();
            })
        });
        let (condition, lock, items) = &*shared;
        for _ in 0..2 {
            lock.write();
            items.fetch_add(1, SeqCst);
            lock.unlock_write();
            condition.wake(1);
        }
        join(takers);
    });
}

#[test]
fn a_wake_up_goes_to_one_that_has_not_timed_out() {
    check(|| {
        let shared = Arc::new((ConditionVariable::default(), SrwLock::default(), AtomicUsize::new(0)));
        let impatient = spawn(&shared, |(condition, lock, woken)| {
            lock.write();
            if condition.sleep(Deadline::Now, || lock.unlock_write(), || lock.write()) {
                woken.fetch_add(1, SeqCst);
            }
            lock.unlock_write();
        });
        let patient = spawn(&shared, |(condition, lock, woken)| {
            lock.write();
            while woken.load(SeqCst) == 0 {
                condition.sleep(Deadline::Never, || lock.unlock_write(), || lock.write());
                woken.fetch_add(1, SeqCst);
            }
            lock.unlock_write();
        });
        let (condition, lock, woken) = &*shared;
        // One at a time: each is for the patient one or for one that says so.
        while woken.load(SeqCst) == 0 {
            lock.write();
            lock.unlock_write();
            condition.wake(1);
            thread::yield_now();
        }
        condition.wake(1);
        join([impatient, patient]);
    });
}

#[test]
fn one_of_many_initialises_and_the_others_wait_for_it() {
    check(|| {
        let shared = Arc::new((InitOnce::default(), AtomicUsize::new(0)));
        let threads = [(); 3].map(|()| {
            spawn(&shared, |(once, runs)| match once.begin(false).unwrap() {
                // The first fails, the second does it.
                Task::Initialise if runs.fetch_add(1, SeqCst) == 0 => once.complete(false, None).unwrap(),
                Task::Initialise => once.complete(false, Some(0x40)).unwrap(),
                Task::Use(context) => assert_eq!((context, runs.load(SeqCst)), (0x40, 2)),
            })
        });
        join(threads);
        assert_eq!(shared.1.load(SeqCst), 2);
    });
}

#[test]
fn nobody_passes_a_barrier_alone_and_it_is_left_when_it_goes() {
    check(|| {
        let shared = Arc::new((Barrier::new(3), AtomicUsize::new(0), AtomicUsize::new(0)));
        let threads = [(); 3].map(|()| {
            spawn(&shared, |(barrier, came, last)| {
                for round in 1..=2 {
                    came.fetch_add(1, SeqCst);
                    last.fetch_add(barrier.enter().into(), SeqCst);
                    assert!(came.load(SeqCst) >= 3 * round);
                }
                barrier.wait_until_left();
            })
        });
        join(threads);
        assert_eq!(shared.2.load(SeqCst), 2);
    });
}
