//! The properties of the lock under loom. Loom's cell panics on two accesses that are not ordered.

use super::atomic::Ordering;
use super::lock::Lock;
use super::machine::{self, GaveUp, give_up_after};
use super::membarrier::{Barrier, leave_out};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

type Counter = Lock<UnsafeCell<usize>>;

fn add(lock: &Counter) {
    increment(&lock.lock());
}

fn increment(counter: &UnsafeCell<usize>) {
    // SAFETY: loom checks that there is no other access at the same time.
    counter.with_mut(|value| unsafe { *value += 1 });
}

fn value(lock: &Counter) -> usize {
    // SAFETY: loom checks that there is no other access at the same time.
    lock.lock().with(|value| unsafe { *value })
}

/// Runs `work`; 0 if the thread gives up waiting, which it does before it has the lock.
fn unless_it_gives_up(work: impl FnOnce() -> usize) -> Option<usize> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|reason| reason.downcast::<GaveUp>().unwrap_or_else(|failure| resume_unwind(failure)))
        .ok()
}

/// Runs loom with a limit of preemptions: few bugs need more, and no limit takes minutes.
fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(check);
}

/// The owner takes the lock `times` times, while each of the `others` does its work.
fn owner_and(times: usize, others: &'static [fn(&Counter) -> usize]) {
    model(move || {
        let lock = Arc::new(Lock::new(UnsafeCell::new(0), 0));
        add(&lock);
        assert!(machine::enter(&lock.bias), "the owner by now");
        lock.bias.inside.store(0, Ordering::Release);
        let threads: Vec<_> = others
            .iter()
            .map(|other| {
                let lock = lock.clone();
                thread::spawn(move || unless_it_gives_up(|| other(&lock)))
            })
            .collect();
        let own = unless_it_gives_up(|| {
            (0..times).for_each(|_| add(&lock));
            times
        });
        let added = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .fold(own, |sum, added| Some(sum? + added?));
        if let Some(added) = added {
            assert_eq!(value(&lock), 1 + added);
        }
    });
}

fn one(lock: &Counter) -> usize {
    add(lock);
    1
}

fn two(lock: &Counter) -> usize {
    add(lock);
    add(lock);
    2
}

fn perhaps_one(lock: &Counter) -> usize {
    lock.try_lock().map_or(0, |counter| {
        increment(&counter);
        1
    })
}

#[test]
fn the_owner_and_a_newcomer_are_never_both_inside() {
    owner_and(2, &[two]);
}

#[test]
fn the_owner_and_two_newcomers_are_never_inside_together() {
    give_up_after(5);
    owner_and(1, &[one, one]);
}

#[test]
fn try_lock_excludes_other_threads() {
    give_up_after(5);
    owner_and(1, &[one, perhaps_one]);
}

/// Two threads at once choose the owner and revoke the bias.
#[test]
fn threads_that_come_first_at_once_take_turns() {
    model(|| {
        let lock = Arc::new(Lock::new(UnsafeCell::new(0), 0));
        let other = lock.clone();
        let other = thread::spawn(move || two(&other));
        add(&lock);
        other.join().unwrap();
        assert_eq!(value(&lock), 3);
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_model_finds_the_owners_barrier_missing() {
    leave_out(Barrier::Owner);
    owner_and(2, &[two]);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_model_finds_the_kernels_barrier_missing() {
    leave_out(Barrier::Revoker);
    owner_and(2, &[two]);
}
