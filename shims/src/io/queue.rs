//! The queue of a completion port: packets first in, first out; threads last in, first out.
//!
//! A packet is handed to a thread that waits already, so that no later caller can steal it. No more threads
//! than the limit run at a time: a thread that took a packet counts as running until it waits again, here or
//! elsewhere in this library, or ends. When packets lie there for long, a thread that the kernel says is asleep
//! does not count either: it waits for something that this library does not see.

use super::parker::Parker;
use super::poller::Poller;
use super::runner::Runner;
use super::spin;
use super::sync::{Arc, AtomicBool, Lock, Ordering, fence};
use super::sys::{Deadline, EventFd, is_asleep, thread_id};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// How long packets lie in the queue, in spite of waiting threads, before the running threads are looked into.
const PATIENCE: Duration = Duration::from_millis(10);

/// A completion packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) key: usize,
    pub(crate) overlapped: usize,
    pub(crate) bytes: u32,
    pub(crate) status: i32,
}

/// Why there is no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPacket {
    TimedOut,
    Closed,
}

pub(crate) struct Queue {
    pub(crate) poller: Arc<Poller>,
    limit: usize,
    inbox: Inbox,
    state: Lock<State>,
}

/// Where packets arrive, with a lock of its own: while nobody waits, those who post and those who take hardly meet.
#[derive(Default)]
#[repr(align(128))]
struct Inbox {
    packets: Lock<VecDeque<Packet>>,
    /// Posting alone is not enough: somebody waits, or looks at the descriptor, or the queue is closed. Set before the
    /// inbox is emptied, so that who posts later sees it.
    attended: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Out of the inbox, and earlier than all there.
    packets: VecDeque<Packet>,
    waiters: Vec<Arc<Waiter>>,
    running: Vec<Running>,
    closed: bool,
    /// One of the waiters looks after packets that the limit holds back.
    watched: bool,
    /// Mirrors "there are packets" for programs with a poll loop of their own.
    fd: Option<EventFd>,
}

/// A thread that took a packet and has not come back.
struct Running {
    thread: u32,
    asleep: bool,
}

/// One thread, in whatever queue it waits. Answers and tasks come while it is in the queue's list, under the queue's lock; a
/// wake-up may come late, and wake a later wait for nothing.
pub(super) struct Waiter {
    thread: u32,
    parker: Arc<Parker>,
    answer: Lock<Option<Result<Packet, NoPacket>>>,
    answered: AtomicBool,
    /// This waiter is the one who watches over packets held back.
    watching: AtomicBool,
}

/// Why a sleep is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// There is a packet that the thread has given itself.
    Kept,
    /// There is an answer.
    Answered,
    /// It has become the one who watches.
    Watching,
}

impl Waiter {
    /// The calling thread's.
    #[cold]
    fn new() -> Arc<Waiter> {
        Arc::new(Waiter {
            thread: thread_id(),
            parker: Parker::current(),
            answer: Lock::default(),
            answered: AtomicBool::new(false),
            watching: AtomicBool::new(false),
        })
    }

    /// Wakes the thread, wherever it waits.
    fn wake(&self, poller: &Poller) {
        self.parker.wake();
        fence(Ordering::SeqCst);
        poller.rouse(self.name());
    }

    /// What it waits for as the leader.
    fn name(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn give(&self, answer: Result<Packet, NoPacket>) {
        *self.answer.lock() = Some(answer);
        self.answered.store(true, Ordering::Release);
    }

    fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Acquire)
    }

    fn answer(&self) -> Option<Result<Packet, NoPacket>> {
        if self.answered.swap(false, Ordering::Acquire) { self.answer.lock().take() } else { None }
    }
}

impl State {
    /// Empties the inbox. Says whether there was anything in it.
    ///
    /// Whoever queues up does so: from then on who posts does it, so while somebody waits nothing stays in there.
    #[inline]
    fn collect(&mut self, inbox: &Inbox) -> bool {
        let mut arrived = inbox.packets.lock();
        let any = !arrived.is_empty();
        if any {
            self.collect_all(&mut arrived);
        }
        any
    }

    #[inline(never)]
    fn collect_all(&mut self, arrived: &mut VecDeque<Packet>) {
        if !self.packets.is_empty() {
            return self.packets.append(arrived);
        }
        std::mem::swap(&mut self.packets, arrived);
        if let Some(fd) = &self.fd {
            fd.set();
        }
    }

    /// The next of the packets collected.
    fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        if let Some(fd) = self.fd.as_ref().filter(|_| self.packets.is_empty()) {
            fd.clear();
        }
        Some(packet)
    }

    /// The next of all packets.
    #[inline]
    fn pop_any(&mut self, inbox: &Inbox) -> Option<Packet> {
        if self.packets.is_empty() && !self.collect(inbox) { None } else { self.pop() }
    }

    fn wants_attention(&self) -> bool {
        self.closed || self.fd.is_some() || !self.waiters.is_empty()
    }

    fn may_run(&self, limit: usize) -> bool {
        // The number of all is the common answer: few ports have runners that were found asleep.
        self.running.len() < limit || self.running.iter().filter(|runner| !runner.asleep).count() < limit
    }

    fn start(&mut self, thread: u32) {
        self.running.push(Running { thread, asleep: false });
    }

    fn stop(&mut self, thread: u32) {
        if let Some(at) = self.running.iter().position(|runner| runner.thread == thread) {
            self.running.swap_remove(at);
        }
    }

    fn forget(&mut self, waiter: &Arc<Waiter>) {
        self.waiters.retain(|other| !Arc::ptr_eq(other, waiter));
    }

    /// Hands packets that may run now to waiting threads, and has somebody watch over those that may not.
    fn settle(&mut self, limit: usize) -> Woken {
        let mut woken = Woken::new();
        while !self.packets.is_empty() && self.may_run(limit) {
            let Some(waiter) = self.waiters.pop() else { break };
            if let Some(packet) = self.pop() {
                self.start(waiter.thread);
                waiter.give(Ok(packet));
            }
            woken.push(waiter);
        }
        if !self.watched
            && !self.packets.is_empty()
            && let Some(waiter) = self.waiters.last()
        {
            self.watched = true;
            waiter.watching.store(true, Ordering::Release);
            woken.push(waiter.clone());
        }
        woken
    }
}

/// Threads to be woken once the lock is free. Mostly one at most, for which nothing is allocated.
type Woken = SmallVec<[Arc<Waiter>; 1]>;

impl Queue {
    fn wake(&self, woken: Woken) {
        woken.iter().for_each(|waiter| waiter.wake(&self.poller));
    }

    /// A queue that lets `limit` threads run at a time.
    pub(crate) fn new(limit: usize) -> io::Result<Arc<Queue>> {
        Ok(Arc::new(Queue { poller: Poller::new()?, limit, inbox: Inbox::default(), state: Lock::default() }))
    }

    /// Adds a packet. One for a closed port is dropped: nobody can ask for it any more.
    #[inline]
    pub(crate) fn post(&self, packet: Packet) {
        if Runner::is_waiting(self, |me, thread| self.keep(me, thread, packet)) {
            return;
        }
        self.inbox.packets.lock().push_back(packet);
        if self.inbox.attended.load(Ordering::Relaxed) {
            self.attend();
        }
    }

    /// Gives the packet to the calling thread, which waits here and serves completions meanwhile, if it may have it.
    fn keep(&self, me: &Runner, thread: u32, packet: Packet) -> bool {
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
            me.kept.set(packet);
            me.has_kept.set(true);
        }
        waiter.is_some()
    }

    /// Sees to what has arrived.
    #[inline(never)]
    fn attend(&self) {
        let woken = {
            let mut state = self.state.lock();
            state.collect(&self.inbox);
            if state.closed {
                state.packets.clear();
                return;
            }
            let woken = state.settle(self.limit);
            self.inbox.attended.store(state.wants_attention(), Ordering::Relaxed);
            woken
        };
        self.wake(woken);
    }

    /// Takes the next packet, waiting for it until the deadline. The calling thread then counts as running.
    pub(crate) fn next(self: &Arc<Self>, deadline: Deadline) -> Result<Packet, NoPacket> {
        Runner::with(|me| {
            me.bind(self, None);
            self.next_for(me, deadline)
        })
    }

    /// As above, for the calling thread, which is bound to this queue.
    #[inline(always)]
    pub(super) fn next_for(&self, me: &Runner, deadline: Deadline) -> Result<Packet, NoPacket> {
        let was_running = me.take_count();
        let answer = if deadline.passed() {
            self.take(was_running).unwrap_or_else(|| {
                self.poller.poll();
                self.take(false).unwrap_or(Err(NoPacket::TimedOut))
            })
        } else if self.poller.has_sources() {
            // Somebody has to look after them.
            self.wait(me, was_running, deadline)
        } else {
            // One that comes at once saves both sides the hand-over.
            let answer = self.take(was_running);
            let look_out = || Parker::with(|parker| parker.spinner.spin(spin::SHORT, || self.take(false)));
            answer.or_else(look_out).unwrap_or_else(|| self.wait(me, false, deadline))
        };
        match answer {
            // Whoever gave the packet has counted this thread already.
            Ok(_) => me.count(),
            Err(NoPacket::TimedOut) => {
                self.start_running();
                me.count();
            }
            Err(NoPacket::Closed) => {}
        }
        answer
    }

    /// Takes the next packet if there is one and the calling thread runs already, as it then goes on doing. It is what
    /// [`next`](Self::next) would do, which counts the thread out and in again.
    #[inline]
    pub(super) fn next_of_runner(&self, me: &Runner) -> Option<Packet> {
        if !me.is_counted() {
            return None;
        }
        let mut state = self.state.lock();
        if state.closed || state.running.len() > self.limit { None } else { state.pop_any(&self.inbox) }
    }

    /// Takes a packet that lies in the queue already, for a thread that runs already.
    pub(crate) fn another(&self) -> Option<Packet> {
        self.state.lock().pop_any(&self.inbox)
    }

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

    fn wait(&self, me: &Runner, was_running: bool, deadline: Deadline) -> Result<Packet, NoPacket> {
        let waiter = me.spare.take().unwrap_or_else(Waiter::new);
        {
            let mut state = self.state.lock();
            // Before the inbox is emptied, which taking does, too.
            self.inbox.attended.store(true, Ordering::Relaxed);
            if let Some(answer) = self.take_as(&mut state, waiter.thread, was_running) {
                self.inbox.attended.store(state.wants_attention(), Ordering::Relaxed);
                drop(state);
                me.spare.set(Some(waiter));
                return answer;
            }
            if !state.may_run(self.limit) {
                state.collect(&self.inbox);
            }
            state.waiters.push(waiter.clone());
            if !state.packets.is_empty() {
                let woken = state.settle(self.limit);
                drop(state);
                self.wake(woken);
            }
        }
        let outer = me.waiting.replace((self, waiter.thread));
        let answer = self.wait_as(me, &waiter, deadline);
        me.waiting.set(outer);
        if waiter.watching.load(Ordering::Acquire) {
            let woken = {
                let mut state = self.state.lock();
                waiter.watching.store(false, Ordering::Relaxed);
                state.watched = false;
                state.settle(self.limit)
            };
            self.wake(woken);
        }
        me.spare.set(Some(waiter));
        answer
    }

    fn wait_as(&self, me: &Runner, waiter: &Arc<Waiter>, deadline: Deadline) -> Result<Packet, NoPacket> {
        loop {
            let watching = waiter.watching.load(Ordering::Acquire);
            let until = if watching { deadline.min(Deadline::after(PATIENCE)) } else { deadline };
            let done = || {
                if me.has_kept.get() {
                    // Mostly: what the thread has served itself.
                    Some(Reason::Kept)
                } else if waiter.is_answered() {
                    Some(Reason::Answered)
                } else {
                    (!watching && waiter.watching.load(Ordering::Acquire)).then_some(Reason::Watching)
                }
            };
            let led = self.poller.wait_leading(waiter.name(), until, done);
            match led.unwrap_or_else(|| self.poller.wait_as(&waiter.parker, until, done)) {
                Some(Reason::Kept) => {
                    me.has_kept.set(false);
                    return Ok(me.kept.get());
                }
                Some(Reason::Watching) => continue,
                Some(Reason::Answered) | None => {}
            }
            let mut state = self.state.lock();
            if me.has_kept.take() {
                return Ok(me.kept.get());
            }
            if let Some(answer) = waiter.answer() {
                return answer;
            }
            if deadline.passed() {
                state.forget(waiter);
                return Err(NoPacket::TimedOut);
            }
            state.collect(&self.inbox);
            if watching && state.packets.is_empty() {
                state.watched = false;
                waiter.watching.store(false, Ordering::Release);
            } else if watching {
                state.running.iter_mut().for_each(|runner| runner.asleep |= is_asleep(runner.thread));
                if state.may_run(self.limit)
                    && let Some(packet) = state.pop()
                {
                    state.forget(waiter);
                    state.start(waiter.thread);
                    return Ok(packet);
                }
            }
        }
    }

    /// Ends all waits: the last handle is gone.
    pub(crate) fn close(&self) {
        let waiters = {
            let mut state = self.state.lock();
            state.closed = true;
            self.inbox.attended.store(true, Ordering::Relaxed);
            state.collect(&self.inbox);
            while state.pop().is_some() {}
            let waiters = std::mem::take(&mut state.waiters);
            waiters.iter().for_each(|waiter| waiter.give(Err(NoPacket::Closed)));
            waiters
        };
        waiters.iter().for_each(|waiter| waiter.wake(&self.poller));
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
            self.inbox.attended.store(true, Ordering::Relaxed);
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

    /// The calling thread does not run any more. Says whether anybody can ever wait here again.
    pub(super) fn stop_running(&self) -> bool {
        let (woken, is_open) = {
            let mut state = self.state.lock();
            state.stop(thread_id());
            (state.settle(self.limit), !state.closed)
        };
        self.wake(woken);
        is_open
    }

    pub(super) fn start_running(&self) {
        self.state.lock().start(thread_id());
    }
}
