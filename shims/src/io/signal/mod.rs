//! Signals: the state of events and of all other objects that threads can wait for. The waits are in `waiting.rs`.
//!
//! A waiting thread serves the files whose requests will set its signals, so a signal knows their pollers.

mod owned;
mod waiting;

pub(crate) use waiting::{wait, wait_any};

use super::parker::Parker;
use super::poller::Poller;
use super::sync::{Arc, AtomicBool, AtomicU32, Lock, Ordering};
use super::sys::{EventFd, thread_id};
use std::io;
use std::os::fd::RawFd;

/// The effect of a satisfied wait on its signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// None: it stays set until it is reset.
    Manual,
    /// It is reset.
    Auto,
    /// Its count is decremented; it is set while that is not 0.
    Semaphore,
    /// The thread owns it, and may wait for it again, until it has released it as often.
    Mutex,
}

/// Something that threads can wait for.
pub(crate) struct Signal {
    kind: Kind,
    state: Lock<State>,
}

#[derive(Default)]
struct State {
    /// The number of waits that it can satisfy; a wait that leaves it set takes none. It is set while this is not 0.
    count: u32,
    /// The most that `count` may be.
    most: u32,
    /// The owner of a mutex, and how many releases are due.
    owner: u32,
    held: u32,
    /// The last owner of a mutex has ended without releasing it.
    abandoned: bool,
    /// Waiting threads, oldest first, each with the index that this signal has in its wait.
    waiters: Vec<(Arc<Waiter>, u32)>,
    /// The pollers of the requests that will set this signal, and how many requests each has.
    pollers: Vec<(Arc<Poller>, usize)>,
    /// Mirrors whether it is set, for programs with a poll loop of their own.
    fd: Option<EventFd>,
}

/// One thread in one wait, or a call that is to be made once.
pub(crate) struct Waiter {
    notify: Notify,
    thread: u32,
    /// [`Waiter::OPEN`], or the index of the signal that ended the wait, with [`Waiter::ABANDONED`] or not, or
    /// [`Waiter::OVER`].
    outcome: AtomicU32,
    /// A wait for all signals: they cannot be acquired one by one.
    all: bool,
    /// The set of pollers to watch has grown.
    replan: AtomicBool,
}

enum Notify {
    Thread(Arc<Parker>),
    Call(Box<dyn Fn() + Send + Sync>),
}

/// The result of a wait: the index of the signal, and whether it is an abandoned mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) index: usize,
    pub(crate) abandoned: bool,
}

/// How a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Taken(Taken),
    /// Asynchronous procedure calls are to be run.
    Apc,
    TimedOut,
}

impl Waiter {
    const OPEN: u32 = u32::MAX;
    const OVER: u32 = u32::MAX - 1;
    const ABANDONED: u32 = 1 << 16;

    fn new(notify: Notify, all: bool) -> Arc<Waiter> {
        Arc::new(Waiter {
            notify,
            thread: thread_id(),
            outcome: AtomicU32::new(Waiter::OPEN),
            all,
            replan: AtomicBool::new(false),
        })
    }

    fn claim(&self, outcome: u32) -> bool {
        self.outcome.compare_exchange(Waiter::OPEN, outcome, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The signal that has satisfied this wait.
    fn handed(&self) -> Option<Taken> {
        let outcome = self.outcome.load(Ordering::Acquire);
        (outcome < Waiter::OVER).then_some(Taken {
            index: (outcome & !Waiter::ABANDONED) as usize,
            abandoned: outcome & Waiter::ABANDONED != 0,
        })
    }

    /// For who has satisfied the wait, or may have.
    fn wake(&self) {
        match &self.notify {
            Notify::Thread(parker) => parker.wake(),
            Notify::Call(call) => call(),
        }
    }

    /// Has a thread see which pollers its wait is about now. A call is made by who sets the signal alone.
    fn plan_again(&self) {
        if let Notify::Thread(parker) = &self.notify {
            self.replan.store(true, Ordering::Release);
            parker.wake();
        }
    }
}

impl State {
    /// Whether a wait of `thread` would be satisfied at once.
    #[inline]
    fn is_set_for(&self, thread: u32) -> bool {
        self.count != 0 || (self.held != 0 && self.owner == thread)
    }

    /// Applies the effect of a satisfied wait of `thread`. Returns whether it has acquired an abandoned mutex.
    #[inline]
    fn take(&mut self, kind: Kind, thread: u32) -> bool {
        match kind {
            Kind::Manual => false,
            Kind::Auto => {
                self.reset();
                false
            }
            Kind::Semaphore => {
                self.count -= 1;
                false
            }
            Kind::Mutex => {
                self.count = 0;
                self.owner = thread;
                self.held += 1;
                std::mem::take(&mut self.abandoned)
            }
        }
    }

    #[inline]
    fn set(&mut self, kind: Kind) -> Woken {
        if self.count != 0 {
            return None;
        }
        self.raise();
        self.hand(kind)
    }

    /// Satisfies the waits that can be; returns the threads to wake.
    #[inline]
    fn hand(&mut self, kind: Kind) -> Woken {
        if self.waiters.is_empty() { None } else { Some(self.hand_to_waiters(kind)) }
    }

    #[inline(never)]
    fn hand_to_waiters(&mut self, kind: Kind) -> Vec<Arc<Waiter>> {
        let mut woken = Vec::new();
        let mut waiters = std::mem::take(&mut self.waiters);
        waiters.retain(|(waiter, index)| {
            if waiter.all {
                woken.push(waiter.clone());
                return true;
            }
            if self.count == 0 {
                return true;
            }
            let abandoned = if self.abandoned { Waiter::ABANDONED } else { 0 };
            if waiter.claim(*index | abandoned) {
                self.take(kind, waiter.thread);
                woken.push(waiter.clone());
            }
            false
        });
        self.waiters = waiters;
        woken
    }

    fn raise(&mut self) {
        self.count = 1;
        if let Some(fd) = &self.fd {
            fd.set();
        }
    }

    fn reset(&mut self) {
        if self.count != 0 {
            self.count = 0;
            if let Some(fd) = &self.fd {
                fd.clear();
            }
        }
    }

    /// A mutex has no owner any more.
    fn free(&mut self) -> Woken {
        self.owner = 0;
        self.held = 0;
        self.set(Kind::Mutex)
    }
}

/// The threads to wake, without the lock; `None` if nobody waits.
type Woken = Option<Vec<Arc<Waiter>>>;

#[inline]
fn wake(woken: Woken) {
    if let Some(waiters) = woken {
        wake_all(waiters);
    }
}

#[inline(never)]
fn wake_all(waiters: Vec<Arc<Waiter>>) {
    waiters.iter().for_each(|waiter| waiter.wake());
}

impl Signal {
    fn of(kind: Kind, count: u32, most: u32) -> Arc<Signal> {
        Arc::new(Signal { kind, state: Lock::new(State { count, most, ..State::default() }) })
    }

    /// The signal of an event.
    pub(crate) fn new(auto: bool, set: bool) -> Arc<Signal> {
        Signal::of(if auto { Kind::Auto } else { Kind::Manual }, set.into(), 1)
    }

    pub(crate) fn semaphore(count: u32, most: u32) -> Arc<Signal> {
        Signal::of(Kind::Semaphore, count, most)
    }

    /// A mutex without an owner.
    pub(crate) fn mutex() -> Arc<Signal> {
        Signal::of(Kind::Mutex, 1, 1)
    }

    pub(crate) fn set(&self) {
        let woken = self.state.lock().set(self.kind);
        wake(woken);
    }

    pub(crate) fn reset(&self) {
        self.state.lock().reset();
    }

    /// Satisfies the waits that setting it would satisfy, and leaves it reset.
    pub(crate) fn pulse(&self) {
        let mut state = self.state.lock();
        let woken = state.set(self.kind);
        state.reset();
        drop(state);
        wake(woken);
    }

    /// Adds to a semaphore's count; returns the previous one. `None` above the maximum.
    pub(crate) fn release(&self, more: u32) -> Option<u32> {
        let mut state = self.state.lock();
        let before = state.count;
        state.count = before.checked_add(more).filter(|count| *count <= state.most)?;
        let woken = state.hand(self.kind);
        drop(state);
        wake(woken);
        Some(before)
    }

    /// Releases a mutex once. False if the calling thread does not own it.
    pub(crate) fn unlock(&self) -> bool {
        let mut state = self.state.lock();
        if state.held == 0 || state.owner != thread_id() {
            return false;
        }
        if state.held > 1 {
            state.held -= 1;
            return true;
        }
        let woken = state.free();
        drop(state);
        owned::remove(self);
        wake(woken);
        true
    }

    /// Abandons the mutex: the calling thread, which owns it, ends.
    fn abandon(&self) {
        let mut state = self.state.lock();
        if state.held != 0 && state.owner == thread_id() {
            state.abandoned = true;
            let woken = state.free();
            drop(state);
            wake(woken);
        }
    }

    /// Resets the signal, which a request of `poller` will set.
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
            waiters.iter().for_each(|waiter| waiter.plan_again());
        }
    }

    /// A source of `poller` will set the signal, until [`Signal::detach`]. Its state stays as it is.
    pub(crate) fn attach(&self, poller: &Arc<Poller>) {
        let waiters: Vec<_> = {
            let mut state = self.state.lock();
            if state.fd.is_some() {
                poller.watch_outside();
            }
            match state.pollers.iter_mut().find(|(other, _)| Arc::ptr_eq(other, poller)) {
                Some((_, count)) => *count += 1,
                None => state.pollers.push((poller.clone(), 1)),
            }
            state.waiters.iter().map(|(waiter, _)| waiter.clone()).collect()
        };
        waiters.iter().for_each(|waiter| waiter.plan_again());
    }

    /// Undoes one [`Signal::attach`].
    pub(crate) fn detach(&self, poller: &Arc<Poller>) {
        let mut state = self.state.lock();
        if let Some(at) = state.pollers.iter().position(|(other, _)| Arc::ptr_eq(other, poller)) {
            state.pollers[at].1 -= 1;
            if state.pollers[at].1 == 0 {
                state.pollers.swap_remove(at);
            }
        }
    }

    /// Ends [`Signal::begin`]: runs `publish` and sets the signal, atomically for all users of the signal. So a thread that has
    /// seen what `publish` wrote can reset the signal without being overtaken by the set.
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
            state.set(self.kind)
        };
        wake(woken);
    }

    /// A descriptor that is readable while the signal is set. It belongs to the signal.
    pub(crate) fn fd(&self) -> io::Result<RawFd> {
        let mut state = self.state.lock();
        if state.fd.is_none() {
            let fd = EventFd::new()?;
            if state.count != 0 {
                fd.set();
            }
            state.fd = Some(fd);
            state.pollers.iter().for_each(|(poller, _)| poller.watch_outside());
        }
        Ok(state.fd.as_ref().map_or(-1, EventFd::fd))
    }

    /// Satisfies a wait of the calling thread, if possible at once; returns whether by an abandoned mutex.
    fn try_acquire(&self) -> Option<bool> {
        let mut state = self.state.lock();
        // The thread matters for a mutex only.
        let thread = if self.kind == Kind::Mutex { thread_id() } else { 0 };
        state.is_set_for(thread).then(|| state.take(self.kind, thread))
    }

    /// Acquires the signal for `waiter` if it is set, else queues the waiter.
    /// Has the waiter claimed when the signal is set. Returns whether it is set already.
    fn enlist(&self, waiter: &Arc<Waiter>, index: u32) -> bool {
        let mut state = self.state.lock();
        if state.is_set_for(waiter.thread) && !waiter.all {
            let abandoned = if state.abandoned { Waiter::ABANDONED } else { 0 };
            if waiter.claim(index | abandoned) {
                state.take(self.kind, waiter.thread);
            }
            true
        } else {
            state.waiters.push((waiter.clone(), index));
            false
        }
    }

    /// Makes the thread that next sets the signal call `call` once, which has the effect of a satisfied wait. Until then
    /// [`Signal::unwatch`] undoes it. `None` if the signal is set already: it has that effect now, and nothing is called.
    pub(crate) fn watch(&self, call: impl Fn() + Send + Sync + 'static) -> Option<Arc<Waiter>> {
        let waiter = Waiter::new(Notify::Call(Box::new(call)), false);
        (!self.enlist(&waiter, 0)).then_some(waiter)
    }

    /// Undoes [`Signal::watch`]. Returns whether that was in time.
    pub(crate) fn unwatch(&self, waiter: &Arc<Waiter>) -> bool {
        let in_time = waiter.claim(Waiter::OVER);
        if in_time {
            self.delist(waiter);
        }
        in_time
    }

    fn delist(&self, waiter: &Arc<Waiter>) {
        self.state.lock().waiters.retain(|(other, _)| !Arc::ptr_eq(other, waiter));
    }
}
