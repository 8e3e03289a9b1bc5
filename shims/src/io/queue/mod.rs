//! The queue of a completion port: packets first in, first out; threads last in, first out.
//!
//! A packet is handed to a waiting thread, so that no later caller can take it. At most as many threads as the limit run at a
//! time: a thread that took a packet counts as running until it waits again, here or elsewhere in this library, or ends. If
//! packets stay in the queue for long, threads that sleep in the kernel are not counted either: they wait for something outside
//! this library.

mod runner;
mod state;

pub(crate) use runner::Idle;
pub(crate) use state::{NoPacket, Packet};

use super::apc::Apcs;
use super::parker::Parker;
use super::poller::Poller;
use super::spin;
use super::sync::{Arc, Lock, Ordering};
use super::sys::{Deadline, EventFd, is_asleep, thread_id};
use runner::Runner;
use state::{Inbox, State, Waiter};
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// How long packets are held back by the limit before the kernel is asked which of the running threads sleep.
const STALLED_AFTER: Duration = Duration::from_millis(10);

/// See the module.
pub(crate) struct Queue {
    pub(crate) poller: Arc<Poller>,
    limit: usize,
    inbox: Inbox,
    state: Lock<State>,
}

/// Why a sleep has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// The thread has produced a packet for itself.
    OwnPacket,
    /// A packet was handed over, or the queue is closed.
    Answered,
    /// It must watch the packets that are held back.
    Watching,
    /// There are asynchronous procedure calls.
    Apc,
}

impl Queue {
    /// A queue with a limit of `limit` running threads.
    pub(crate) fn new(limit: usize) -> io::Result<Arc<Queue>> {
        Ok(Arc::new(Queue { poller: Poller::new()?, limit, inbox: Inbox::default(), state: Lock::default() }))
    }

    /// Adds a packet. If the port is closed, it is dropped.
    #[inline]
    pub(crate) fn post(&self, packet: Packet) {
        if Runner::is_waiting(self, |me, thread| self.give_to_self(me, thread, packet)) {
            return;
        }
        self.inbox.packets.lock().push_back(packet);
        if self.inbox.drain_at_once.load(Ordering::Relaxed) {
            self.drain();
        }
    }

    /// Hands the packet to the calling thread, which waits on this queue and is serving its sources. False if other packets come
    /// first or the limit forbids it.
    fn give_to_self(&self, me: &Runner, thread: u32, packet: Packet) -> bool {
        let mut state = self.state.lock();
        if state.closed || !state.packets.is_empty() || !state.may_run(self.limit) {
            return false;
        }
        let waiter = match state.waiters.last() {
            Some(last) if last.thread == thread => state.waiters.pop(),
            _ => {
                let at = state.waiters.iter().position(|waiter| waiter.thread == thread);
                at.map(|at| state.waiters.remove(at))
            }
        };
        if waiter.is_some() {
            state.start(thread);
            me.own_packet.set(packet);
            me.has_own_packet.set(true);
        }
        waiter.is_some()
    }

    /// Hands arrived packets to waiting threads.
    #[inline(never)]
    fn drain(&self) {
        let woken = {
            let mut state = self.state.lock();
            state.collect(&self.inbox);
            if state.closed {
                state.packets.clear();
                return;
            }
            let woken = state.dispatch(self.limit);
            self.inbox.drain_at_once.store(state.must_drain_at_once(), Ordering::Relaxed);
            woken
        };
        state::wake(&woken);
    }

    /// Takes the next packet, waiting for it until the deadline. The calling thread then counts as running.
    pub(crate) fn next(self: &Arc<Self>, deadline: Deadline) -> Result<Packet, NoPacket> {
        self.next_by(|| deadline)
    }

    /// [`next`](Self::next) as an alertable wait: without a packet it also ends when there are calls, which it leaves to the caller.
    #[cold]
    pub(crate) fn next_alertably(
        self: &Arc<Self>,
        deadline: Deadline,
        apcs: &Apcs,
    ) -> Result<Packet, NoPacket> {
        Runner::with(|me| {
            me.bind(self);
            self.next_for(me, deadline, Some(apcs))
        })
    }

    /// [`next`](Self::next), for a deadline that is computed only if the thread has to wait.
    #[inline(always)]
    pub(crate) fn next_by(self: &Arc<Self>, deadline: impl FnOnce() -> Deadline) -> Result<Packet, NoPacket> {
        Runner::with(|me| {
            me.bind(self);
            // With sources the thread usually has to wait.
            if !self.poller.has_sources()
                && let Some(packet) = self.next_of_runner(me)
            {
                return Ok(packet);
            }
            self.next_for(me, deadline(), None)
        })
    }

    /// [`next`](Self::next), for the calling thread, which is bound to this queue.
    #[inline(always)]
    fn next_for(&self, me: &Runner, deadline: Deadline, apcs: Option<&Apcs>) -> Result<Packet, NoPacket> {
        let was_running = me.take_count();
        let called = || apcs.is_some_and(Apcs::any);
        let answer = if deadline.passed() {
            self.take(was_running).unwrap_or_else(|| {
                self.poller.poll();
                let none = || Err(if called() { NoPacket::Apc } else { NoPacket::TimedOut });
                self.take(false).unwrap_or_else(none)
            })
        } else if self.poller.has_sources() {
            // The thread serves them while it waits.
            self.wait(me, was_running, deadline, apcs)
        } else {
            // A packet that arrives while the thread spins saves a sleep and a wake-up.
            let answer = self.take(was_running);
            let look_out = || Parker::with(|parker| parker.spinner.spin(spin::SHORT, || self.take(false)));
            answer.or_else(look_out).unwrap_or_else(|| self.wait(me, false, deadline, apcs))
        };
        match answer {
            // The thread that handed the packet over has counted this one.
            Ok(_) => me.count(),
            Err(NoPacket::TimedOut | NoPacket::Apc) => {
                self.start_running();
                me.count();
            }
            Err(NoPacket::Closed) => {}
        }
        answer
    }

    /// Takes the next packet if there is one and the calling thread counts as running, as it does afterwards. The same as
    /// [`next`](Self::next), which counts the thread out and in again.
    #[inline]
    fn next_of_runner(&self, me: &Runner) -> Option<Packet> {
        if !me.is_counted() {
            return None;
        }
        let mut state = self.state.lock();
        if state.closed || state.running.len() > self.limit { None } else { state.pop_any(&self.inbox) }
    }

    /// Takes one more packet if there is one, for a thread that has just taken one.
    pub(crate) fn another(&self) -> Option<Packet> {
        self.state.lock().pop_any(&self.inbox)
    }

    /// Takes a packet, or finds the queue closed; `None` if the thread has to wait.
    fn take(&self, was_running: bool) -> Option<Result<Packet, NoPacket>> {
        self.take_as(&mut self.state.lock(), thread_id(), was_running)
    }

    #[inline(always)]
    fn take_as(&self, state: &mut State, thread: u32, was_running: bool) -> Option<Result<Packet, NoPacket>> {
        if was_running {
            state.stop(thread);
        }
        if state.closed {
            return Some(Err(NoPacket::Closed));
        }
        if !state.may_run(self.limit) {
            return None;
        }
        let packet = state.pop_any(&self.inbox)?;
        state.start(thread);
        Some(Ok(packet))
    }

    /// Waits in the queue's list, and watches the packets that are held back if told to.
    fn wait(
        &self,
        me: &Runner,
        was_running: bool,
        deadline: Deadline,
        apcs: Option<&Apcs>,
    ) -> Result<Packet, NoPacket> {
        let waiter = me.spare.take().unwrap_or_else(Waiter::new);
        {
            let mut state = self.state.lock();
            // Before taking, which may empty the inbox.
            self.inbox.drain_at_once.store(true, Ordering::Relaxed);
            if let Some(answer) = self.take_as(&mut state, waiter.thread, was_running) {
                self.inbox.drain_at_once.store(state.must_drain_at_once(), Ordering::Relaxed);
                drop(state);
                me.spare.set(Some(waiter));
                return answer;
            }
            if !state.may_run(self.limit) {
                state.collect(&self.inbox);
            }
            state.waiters.push(waiter.clone());
            if !state.packets.is_empty() {
                let woken = state.dispatch(self.limit);
                drop(state);
                state::wake(&woken);
            }
        }
        let outer = me.waiting.replace((self, waiter.thread));
        let answer = self.wait_for_answer(me, &waiter, deadline, apcs);
        me.waiting.set(outer);
        if waiter.watching.load(Ordering::Acquire) {
            let woken = {
                let mut state = self.state.lock();
                waiter.watching.store(false, Ordering::Relaxed);
                state.watched = false;
                state.dispatch(self.limit)
            };
            state::wake(&woken);
        }
        me.spare.set(Some(waiter));
        answer
    }

    /// Sleeps until another thread hands over a packet, this one gets its own, or the wait ends without one.
    fn wait_for_answer(
        &self,
        me: &Runner,
        waiter: &Arc<Waiter>,
        deadline: Deadline,
        apcs: Option<&Apcs>,
    ) -> Result<Packet, NoPacket> {
        loop {
            let watching = waiter.watching.load(Ordering::Acquire);
            let until = if watching { deadline.min(Deadline::after(STALLED_AFTER)) } else { deadline };
            let done = || {
                if me.has_own_packet.get() {
                    // The common case: the thread has served the source itself.
                    Some(Reason::OwnPacket)
                } else if waiter.is_answered() {
                    Some(Reason::Answered)
                } else if apcs.is_some_and(Apcs::any) {
                    Some(Reason::Apc)
                } else {
                    (!watching && waiter.watching.load(Ordering::Acquire)).then_some(Reason::Watching)
                }
            };
            let ended = self.poller.wait(&waiter.parker, until, done);
            match ended {
                Some(Reason::OwnPacket) => {
                    me.has_own_packet.set(false);
                    return Ok(me.own_packet.get());
                }
                Some(Reason::Watching) => continue,
                Some(Reason::Answered | Reason::Apc) | None => {}
            }
            let asleep = if watching && ended.is_none() { self.running_asleep() } else { Vec::new() };
            let mut state = self.state.lock();
            if me.has_own_packet.take() {
                return Ok(me.own_packet.get());
            }
            if let Some(answer) = waiter.answer() {
                return answer;
            }
            if matches!(ended, Some(Reason::Apc)) {
                state.remove(waiter);
                return Err(NoPacket::Apc);
            }
            if deadline.passed() {
                state.remove(waiter);
                return Err(NoPacket::TimedOut);
            }
            state.collect(&self.inbox);
            if watching && state.packets.is_empty() {
                state.watched = false;
                waiter.watching.store(false, Ordering::Release);
            } else if watching {
                state.running.iter_mut().for_each(|runner| runner.asleep |= asleep.contains(&runner.thread));
                if state.may_run(self.limit)
                    && let Some(packet) = state.pop()
                {
                    state.remove(waiter);
                    state.start(waiter.thread);
                    return Ok(packet);
                }
            }
        }
    }

    /// The threads that count as running and sleep. The kernel is asked without the lock, in which a thread that has finished a packet
    /// would sleep.
    fn running_asleep(&self) -> Vec<u32> {
        let running: Vec<u32> = self.state.lock().running.iter().map(|runner| runner.thread).collect();
        running.into_iter().filter(|&thread| is_asleep(thread)).collect()
    }

    /// Ends all waits: the last handle was closed.
    pub(crate) fn close(&self) {
        let waiters = {
            let mut state = self.state.lock();
            state.closed = true;
            self.inbox.drain_at_once.store(true, Ordering::Relaxed);
            state.collect(&self.inbox);
            while state.pop().is_some() {}
            let waiters = std::mem::take(&mut state.waiters);
            waiters.iter().for_each(|waiter| waiter.give(Err(NoPacket::Closed)));
            waiters
        };
        waiters.iter().for_each(|waiter| waiter.wake());
    }

    /// A descriptor that is readable while there are packets. It belongs to the queue.
    pub(crate) fn fd(&self) -> io::Result<RawFd> {
        let mut state = self.state.lock();
        if state.fd.is_none() {
            let fd = EventFd::new()?;
            if !state.packets.is_empty() {
                fd.set();
            }
            state.fd = Some(fd);
            self.inbox.drain_at_once.store(true, Ordering::Relaxed);
            state.collect(&self.inbox);
        }
        Ok(state.fd.as_ref().map_or(-1, EventFd::fd))
    }

    /// How many threads wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().waiters.len()
    }

    /// How many threads count as running, those found asleep among them.
    #[cfg(test)]
    pub(crate) fn running(&self) -> usize {
        self.state.lock().running.len()
    }

    /// The calling thread no longer counts as running. Returns whether the queue is open.
    pub(super) fn stop_running(&self) -> bool {
        let (woken, is_open) = {
            let mut state = self.state.lock();
            state.stop(thread_id());
            (state.dispatch(self.limit), !state.closed)
        };
        state::wake(&woken);
        is_open
    }

    /// The calling thread counts as running again.
    pub(super) fn start_running(&self) {
        self.state.lock().start(thread_id());
    }
}
