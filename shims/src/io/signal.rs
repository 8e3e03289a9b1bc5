//! Signals: the state of events and of everything else a thread can wait for, and the waits themselves.
//!
//! A waiting thread makes progress on the files whose requests will set what it waits for: a signal therefore
//! knows the pollers behind it, and a wait leads the poller instead of sleeping on a futex.

use super::parker::Parker;
use super::poller::Poller;
use super::runner::Idle;
use super::sync::{Arc, AtomicBool, AtomicU32, Lock, Ordering};
use super::sys::{Deadline, EventFd};
use std::io;
use std::os::fd::RawFd;

/// A flag that threads can wait for.
pub(crate) struct Signal {
    /// Whether one wait uses the flag up (auto reset).
    auto: bool,
    state: Lock<State>,
}

#[derive(Default)]
struct State {
    set: bool,
    /// Waiting threads, oldest first, each with the index that this signal has in its wait.
    waiters: Vec<(Arc<Waiter>, u32)>,
    /// The pollers of the requests that will set this signal, and how many requests each has.
    pollers: Vec<(Arc<Poller>, usize)>,
    /// Mirrors `set` for programs with a poll loop of their own.
    fd: Option<EventFd>,
}

/// One thread in one wait.
struct Waiter {
    parker: Arc<Parker>,
    /// [`Waiter::OPEN`], or the index of the signal that ended the wait, or [`Waiter::OVER`].
    outcome: AtomicU32,
    /// Waits for all of its signals at once, so none can be handed to it singly.
    all: bool,
    /// The set of pollers to watch has grown.
    replan: AtomicBool,
}

impl Waiter {
    const OPEN: u32 = u32::MAX;
    const OVER: u32 = u32::MAX - 1;

    fn claim(&self, outcome: u32) -> bool {
        self.outcome.compare_exchange(Waiter::OPEN, outcome, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The index of the signal that was handed to this wait.
    fn handed(&self) -> Option<usize> {
        let outcome = self.outcome.load(Ordering::Acquire);
        (outcome < Waiter::OVER).then_some(outcome as usize)
    }
}

impl State {
    #[inline]
    fn set(&mut self, auto: bool) -> Vec<Arc<Waiter>> {
        if self.set {
            return Vec::new();
        }
        if self.waiters.is_empty() {
            self.raise();
            return Vec::new();
        }
        self.hand(auto)
    }

    /// Sets what is waited for; says who is to be woken.
    #[inline(never)]
    fn hand(&mut self, auto: bool) -> Vec<Arc<Waiter>> {
        let (mut woken, mut handed) = (Vec::new(), false);
        self.waiters.retain(|(waiter, index)| {
            if waiter.all {
                woken.push(waiter.clone());
                return true;
            }
            if auto && handed {
                return true;
            }
            if waiter.claim(*index) {
                handed = true;
                woken.push(waiter.clone());
            }
            false
        });
        if !(auto && handed) {
            self.raise();
        }
        woken
    }

    fn raise(&mut self) {
        self.set = true;
        if let Some(fd) = &self.fd {
            fd.set();
        }
    }

    fn reset(&mut self) {
        if self.set {
            self.set = false;
            if let Some(fd) = &self.fd {
                fd.clear();
            }
        }
    }
}

#[inline]
fn wake(waiters: Vec<Arc<Waiter>>) {
    if !waiters.is_empty() {
        wake_all(&waiters);
    }
}

#[inline(never)]
fn wake_all(waiters: &[Arc<Waiter>]) {
    waiters.iter().for_each(|waiter| waiter.parker.wake());
}

impl Signal {
    pub(crate) fn new(auto: bool, set: bool) -> Arc<Signal> {
        Arc::new(Signal { auto, state: Lock::new(State { set, ..State::default() }) })
    }

    pub(crate) fn set(&self) {
        let woken = self.state.lock().set(self.auto);
        wake(woken);
    }

    pub(crate) fn reset(&self) {
        self.state.lock().reset();
    }

    /// Resets the signal, which from now on some request of `poller` will set.
    pub(crate) fn begin(&self, poller: &Arc<Poller>) {
        let mut state = self.state.lock();
        state.reset();
        if state.fd.is_some() {
            poller.watch_outside();
        }
        if let Some((_, requests)) = state.pollers.iter_mut().find(|(other, _)| Arc::ptr_eq(other, poller)) {
            *requests += 1;
            return;
        }
        state.pollers.push((poller.clone(), 1));
        if !state.waiters.is_empty() {
            let waiters: Vec<_> = state.waiters.iter().map(|(waiter, _)| waiter.clone()).collect();
            drop(state);
            waiters.iter().for_each(|waiter| waiter.replan.store(true, Ordering::Release));
            wake(waiters);
        }
    }

    /// Ends what [`Signal::begin`] began: runs `publish` and sets the signal, in one step for all who look at
    /// the signal. So whoever saw what `publish` wrote, and then resets the signal, is not overtaken.
    pub(crate) fn finish(&self, poller: &Arc<Poller>, publish: impl FnOnce()) {
        let woken = {
            let mut state = self.state.lock();
            publish();
            if let Some(at) = state.pollers.iter().position(|(other, _)| Arc::ptr_eq(other, poller)) {
                state.pollers[at].1 -= 1;
                if state.pollers[at].1 == 0 {
                    state.pollers.swap_remove(at);
                }
            }
            state.set(self.auto)
        };
        wake(woken);
    }

    /// A descriptor that is readable while the signal is set. It belongs to the signal.
    pub(crate) fn fd(&self) -> io::Result<RawFd> {
        let mut state = self.state.lock();
        if state.fd.is_none() {
            let fd = EventFd::new()?;
            if state.set {
                fd.set();
            }
            state.fd = Some(fd);
            state.pollers.iter().for_each(|(poller, _)| poller.watch_outside());
        }
        Ok(state.fd.as_ref().map_or(-1, EventFd::fd))
    }

    fn try_acquire(&self) -> bool {
        let mut state = self.state.lock();
        let set = state.set;
        if set && self.auto {
            state.reset();
        }
        set
    }

    /// Acquires the signal for `waiter` if it is set, else queues the waiter.
    fn enlist(&self, waiter: &Arc<Waiter>, index: u32) {
        let mut state = self.state.lock();
        if state.set && !waiter.all {
            if waiter.claim(index) && self.auto {
                state.reset();
            }
        } else {
            state.waiters.push((waiter.clone(), index));
        }
    }

    fn delist(&self, waiter: &Arc<Waiter>) {
        self.state.lock().waiters.retain(|(other, _)| !Arc::ptr_eq(other, waiter));
    }
}

/// Waits until one of `signals` is set, and says which; an auto-reset signal is thereby used up. `None` when
/// the deadline comes first.
pub(crate) fn wait_any(signals: &[Arc<Signal>], deadline: Deadline) -> Option<usize> {
    let look = || signals.iter().position(|signal| signal.try_acquire());
    if let Some(index) = look() {
        return Some(index);
    }
    if deadline.passed() {
        pollers(signals).iter().for_each(|poller| poller.poll());
        return look();
    }
    let waiter = Enlisted::new(signals, false);
    waiter.wait(deadline, || waiter.handed())
}

/// Waits until all of `signals`, which must be different ones, are set at the same time, and uses up the
/// auto-reset ones. Says whether that happened before the deadline.
pub(crate) fn wait_all(signals: &[Arc<Signal>], deadline: Deadline) -> bool {
    // Everybody who holds several locks takes them in the order of their addresses.
    let mut ordered: Vec<&Signal> = signals.iter().map(|signal| &**signal).collect();
    ordered.sort_by_key(|signal| std::ptr::from_ref(*signal));
    let look = || {
        let mut states: Vec<_> = ordered.iter().map(|signal| signal.state.lock()).collect();
        let all = states.iter().all(|state| state.set);
        if all {
            for (signal, state) in ordered.iter().zip(&mut states) {
                if signal.auto {
                    state.reset();
                }
            }
        }
        all.then_some(())
    };
    if look().is_some() {
        return true;
    }
    if deadline.passed() {
        pollers(signals).iter().for_each(|poller| poller.poll());
        return look().is_some();
    }
    let waiter = Enlisted::new(signals, true);
    waiter.wait(deadline, look).is_some()
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

/// A waiter in the lists of its signals, for as long as this lives.
struct Enlisted<'a> {
    waiter: Arc<Waiter>,
    signals: &'a [Arc<Signal>],
}

impl<'a> Enlisted<'a> {
    fn new(signals: &'a [Arc<Signal>], all: bool) -> Enlisted<'a> {
        let waiter = Arc::new(Waiter {
            parker: Parker::current(),
            outcome: AtomicU32::new(Waiter::OPEN),
            all,
            replan: AtomicBool::new(false),
        });
        for (index, signal) in signals.iter().enumerate() {
            signal.enlist(&waiter, index as u32);
            if waiter.handed().is_some() {
                break;
            }
        }
        Enlisted { waiter, signals }
    }

    fn handed(&self) -> Option<usize> {
        self.waiter.handed()
    }

    fn wait<R>(&self, deadline: Deadline, mut done: impl FnMut() -> Option<R>) -> Option<R> {
        let _idle = Idle::enter();
        loop {
            let mut step = || match done() {
                Some(answer) => Some(Some(answer)),
                None => self.waiter.replan.swap(false, Ordering::AcqRel).then_some(None),
            };
            match wait_on(&pollers(self.signals), deadline, &mut step) {
                Some(Some(answer)) => return Some(answer),
                Some(None) => {}
                // What is handed over at the last moment must not be lost.
                None if self.waiter.claim(Waiter::OVER) => return None,
                None => return done(),
            }
        }
    }
}

impl Drop for Enlisted<'_> {
    fn drop(&mut self) {
        // Whoever hands the only signal over takes the waiter off its list.
        if self.signals.len() > 1 || self.waiter.handed().is_none() {
            self.signals.iter().for_each(|signal| signal.delist(&self.waiter));
        }
    }
}

/// Waits for `done`, making progress on `pollers`.
fn wait_on<R>(pollers: &[Arc<Poller>], deadline: Deadline, done: &mut dyn FnMut() -> Option<R>) -> Option<R> {
    match pollers {
        [poller] => poller.wait(deadline, done),
        [] => {
            let parker = Parker::current();
            loop {
                let answer = done();
                if answer.is_some() || deadline.passed() {
                    return answer;
                }
                parker.park(deadline);
            }
        }
        several => match Poller::over(several) {
            Ok(nest) => nest.wait(deadline, done),
            // Out of descriptors: watch one, the background thread sees to the others.
            Err(_) => several[0].wait(deadline, done),
        },
    }
}
