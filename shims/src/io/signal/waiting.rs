//! Waits: for one of several signals, or for all of them.
//!
//! A waiting thread serves the files whose requests will set its signals: it leads their poller instead of sleeping on a futex.

use super::super::apc::Apcs;
use super::super::parker::Parker;
use super::super::poller::Poller;
use super::super::queue::Idle;
use super::super::sync::{Arc, Ordering};
use super::super::sys::{Deadline, EventFd, sleep_on, thread_id};
use super::{Kind, Notify, Outcome, Signal, Taken, Waiter};

/// Waits until one of `signals` is set, and returns its index, with the effect of its kind. `None` at the deadline.
pub(crate) fn wait_any(signals: &[Arc<Signal>], deadline: Deadline) -> Option<usize> {
    match wait(signals, false, None, deadline) {
        Outcome::Taken(taken) => Some(taken.index),
        _ => None,
    }
}

/// Waits until one of `signals` is set, or all of them, which must be different ones, are set at the same time. The wait then does
/// to the one, or to all, what their kinds say. With `apcs` it also ends when there are such calls.
pub(crate) fn wait(signals: &[Arc<Signal>], all: bool, apcs: Option<&Apcs>, deadline: Deadline) -> Outcome {
    let outcome = if all {
        // Several locks are always taken in the order of their addresses.
        let mut ordered: Vec<&Signal> = signals.iter().map(|signal| &**signal).collect();
        ordered.sort_by_key(|signal| std::ptr::from_ref(*signal));
        let look = || take_all(&ordered);
        wait_with(signals, apcs, deadline, look, |_| look(), true)
    } else {
        let take =
            |(index, signal): (usize, &Arc<Signal>)| Some(Taken { index, abandoned: signal.try_acquire()? });
        let look = || signals.iter().enumerate().find_map(take);
        wait_with(signals, apcs, deadline, look, Waiter::handed, false)
    };
    if let Outcome::Taken(taken) = outcome {
        let taken = if all { signals } else { &signals[taken.index..=taken.index] };
        taken.iter().filter(|signal| signal.kind == Kind::Mutex).for_each(super::owned::add);
    }
    outcome
}

/// Takes all signals, if all are set.
fn take_all(ordered: &[&Signal]) -> Option<Taken> {
    let thread = thread_id();
    let mut states: Vec<_> = ordered.iter().map(|signal| signal.state.lock()).collect();
    if !states.iter().all(|state| state.is_set_for(thread)) {
        return None;
    }
    let mut abandoned = false;
    for (signal, state) in ordered.iter().zip(&mut states) {
        abandoned |= state.take(signal.kind, thread);
    }
    Some(Taken { index: 0, abandoned })
}

/// A wait that `look` may satisfy at once, and `taken` later.
#[inline(always)]
fn wait_with(
    signals: &[Arc<Signal>],
    apcs: Option<&Apcs>,
    deadline: Deadline,
    look: impl Fn() -> Option<Taken>,
    taken: impl Fn(&Waiter) -> Option<Taken>,
    all: bool,
) -> Outcome {
    if let Some(taken) = look() {
        return Outcome::Taken(taken);
    }
    if apcs.is_some_and(Apcs::any) {
        return Outcome::Apc;
    }
    if deadline.passed() {
        pollers(signals).iter().for_each(|poller| poller.poll());
        return look().map_or(Outcome::TimedOut, Outcome::Taken);
    }
    // One parker for the whole wait: while thread-locals are being destroyed, each look at the thread's gives another one.
    Parker::with(|parker| {
        let enlisted = Enlisted::new(parker, signals, all);
        enlisted.wait(deadline, apcs, || taken(&enlisted.waiter))
    })
}

/// The different pollers behind `signals`.
fn pollers(signals: &[Arc<Signal>]) -> Vec<Arc<Poller>> {
    let mut found: Vec<Arc<Poller>> = Vec::new();
    for signal in signals {
        for (poller, _) in &signal.state.lock().pollers {
            if !found.iter().any(|other| Arc::ptr_eq(other, poller)) {
                found.push(poller.clone());
            }
        }
    }
    found
}

/// A waiter in the lists of its signals, until dropped.
struct Enlisted<'a> {
    parker: &'a Arc<Parker>,
    waiter: Arc<Waiter>,
    signals: &'a [Arc<Signal>],
}

impl<'a> Enlisted<'a> {
    fn new(parker: &'a Arc<Parker>, signals: &'a [Arc<Signal>], all: bool) -> Enlisted<'a> {
        let waiter = Waiter::new(Notify::Thread(parker.clone()), all);
        for (index, signal) in signals.iter().enumerate() {
            signal.enlist(&waiter, index as u32);
            if waiter.handed().is_some() {
                break;
            }
        }
        Enlisted { parker, waiter, signals }
    }

    fn wait(
        &self,
        deadline: Deadline,
        apcs: Option<&Apcs>,
        mut taken: impl FnMut() -> Option<Taken>,
    ) -> Outcome {
        let _idle = Idle::enter();
        loop {
            let mut step = || match taken() {
                Some(taken) => Some(Some(Outcome::Taken(taken))),
                None if apcs.is_some_and(Apcs::any) => Some(Some(Outcome::Apc)),
                None => self.waiter.replan.swap(false, Ordering::AcqRel).then_some(None),
            };
            let ended = match wait_on(self.parker, &pollers(self.signals), deadline, &mut step) {
                Some(Some(Outcome::Taken(taken))) => return Outcome::Taken(taken),
                Some(None) => continue,
                Some(Some(ended)) => ended,
                None => Outcome::TimedOut,
            };
            // A signal acquired at the last moment must not be lost.
            if self.waiter.claim(Waiter::OVER) {
                return ended;
            }
            return taken().map_or(ended, Outcome::Taken);
        }
    }
}

impl Drop for Enlisted<'_> {
    fn drop(&mut self) {
        // The thread that satisfies a wait for one signal removes the waiter from its list.
        if self.signals.len() > 1 || self.waiter.handed().is_none() {
            self.signals.iter().for_each(|signal| signal.delist(&self.waiter));
        }
    }
}

/// Waits for `done`, serving `pollers`. Who changes what it looks at wakes `parker`, the thread's.
fn wait_on<R>(
    parker: &Arc<Parker>,
    pollers: &[Arc<Poller>],
    deadline: Deadline,
    done: &mut dyn FnMut() -> Option<R>,
) -> Option<R> {
    match pollers {
        [poller] => poller.wait(parker, deadline, done),
        [] => loop {
            let answer = done();
            if answer.is_some() || deadline.passed() {
                return answer;
            }
            parker.park(deadline);
        },
        several => match EventFd::new() {
            Ok(kick) => wait_on_several(parker, several, &Arc::new(kick), deadline, done),
            // Out of descriptors: serve one poller; the background thread serves the others.
            Err(_) => several[0].wait(parker, deadline, done),
        },
    }
}

/// A poller that a thread watches beside others, until dropped.
struct Watched<'a>(&'a Poller);

impl<'a> Watched<'a> {
    fn new(poller: &'a Arc<Poller>) -> Watched<'a> {
        poller.watched_by_poll_loop();
        Watched(poller)
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.0.left_by_poll_loop();
    }
}

/// Waits for `done`, serving `pollers`. Whoever wakes the thread sets `kick`.
///
/// By `poll(2)`, as the kernel limits how often epoll sets may be in one another.
fn wait_on_several<R>(
    parker: &Parker,
    pollers: &[Arc<Poller>],
    kick: &Arc<EventFd>,
    deadline: Deadline,
    done: &mut dyn FnMut() -> Option<R>,
) -> Option<R> {
    let _watched: Vec<_> = pollers.iter().map(Watched::new).collect();
    let fds: Vec<_> = pollers.iter().map(|poller| poller.fd()).chain([kick.fd()]).collect();
    parker.look_now();
    loop {
        let answer = done();
        if answer.is_some() || deadline.passed() {
            return answer;
        }
        let mut ready = Vec::new();
        parker.park_in_epoll(kick, || ready = sleep_on(&fds, deadline));
        for at in ready {
            match pollers.get(at) {
                Some(poller) => poller.poll(),
                None => kick.clear(),
            }
        }
    }
}
