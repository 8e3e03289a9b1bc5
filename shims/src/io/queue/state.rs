//! The state of a port's queue: packets, waiting threads, and running threads.

use super::super::parker::Parker;
use super::super::sync::{Arc, AtomicBool, Lock, Ordering};
use super::super::sys::{EventFd, thread_id};
use smallvec::SmallVec;
use std::collections::VecDeque;

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
    /// Asynchronous procedure calls are there to be run.
    Apc,
}

/// Arriving packets, under a lock of their own: while no thread waits, posting does not contend with taking.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Inbox {
    pub(super) packets: Lock<VecDeque<Packet>>,
    /// A posting thread must drain the inbox: a thread waits, the queue has a descriptor, or it is closed. Set before the inbox
    /// is drained, so that later posts see it.
    pub(super) drain_at_once: AtomicBool,
}

/// The state of a queue except its inbox, under the queue's lock.
#[derive(Default)]
pub(super) struct State {
    /// Packets drained from the inbox, so older than those in it.
    pub(super) packets: VecDeque<Packet>,
    pub(super) waiters: Vec<Arc<Waiter>>,
    pub(super) running: Vec<Running>,
    pub(super) closed: bool,
    /// A waiter watches the packets that the limit holds back.
    pub(super) watched: bool,
    /// Readable while there are packets, for programs with a poll loop of their own.
    pub(super) fd: Option<EventFd>,
}

/// A thread that took a packet and has not waited since.
pub(super) struct Running {
    pub(super) thread: u32,
    /// It sleeps in the kernel, and does not count against the limit.
    pub(super) asleep: bool,
}

/// A waiting thread's record, the same in every queue. Answers are stored while it is in the queue's list, under the queue's
/// lock. A late wake-up may end a later sleep spuriously.
pub(super) struct Waiter {
    pub(super) thread: u32,
    pub(super) parker: Arc<Parker>,
    pub(super) answer: Lock<Option<Result<Packet, NoPacket>>>,
    pub(super) answered: AtomicBool,
    /// This waiter watches the packets that are held back.
    pub(super) watching: AtomicBool,
}

impl Waiter {
    /// The calling thread's record.
    #[cold]
    pub(super) fn new() -> Arc<Waiter> {
        Arc::new(Waiter {
            thread: thread_id(),
            parker: Parker::current(),
            answer: Lock::default(),
            answered: AtomicBool::new(false),
            watching: AtomicBool::new(false),
        })
    }

    pub(super) fn wake(&self) {
        self.parker.wake();
    }

    pub(super) fn give(&self, answer: Result<Packet, NoPacket>) {
        *self.answer.lock() = Some(answer);
        self.answered.store(true, Ordering::Release);
    }

    pub(super) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Acquire)
    }

    pub(super) fn answer(&self) -> Option<Result<Packet, NoPacket>> {
        if self.answered.swap(false, Ordering::Acquire) { self.answer.lock().take() } else { None }
    }
}

impl State {
    /// Drains the inbox. Returns whether it held anything.
    ///
    /// A thread does so before it waits. From then on posting threads do, so nothing stays in the inbox while a thread waits.
    #[inline]
    pub(super) fn collect(&mut self, inbox: &Inbox) -> bool {
        let mut arrived = inbox.packets.lock();
        let any = !arrived.is_empty();
        if any {
            self.collect_all(&mut arrived);
        }
        any
    }

    #[inline(never)]
    pub(super) fn collect_all(&mut self, arrived: &mut VecDeque<Packet>) {
        if !self.packets.is_empty() {
            return self.packets.append(arrived);
        }
        std::mem::swap(&mut self.packets, arrived);
        if let Some(fd) = &self.fd {
            fd.set();
        }
    }

    /// The next of the collected packets.
    pub(super) fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        if let Some(fd) = self.fd.as_ref().filter(|_| self.packets.is_empty()) {
            fd.clear();
        }
        Some(packet)
    }

    /// The next packet, from the inbox if none is collected.
    #[inline]
    pub(super) fn pop_any(&mut self, inbox: &Inbox) -> Option<Packet> {
        if self.packets.is_empty() && !self.collect(inbox) { None } else { self.pop() }
    }

    /// Whether posting threads must drain the inbox.
    pub(super) fn must_drain_at_once(&self) -> bool {
        self.closed || self.fd.is_some() || !self.waiters.is_empty()
    }

    /// Whether the limit allows one more thread to run.
    pub(super) fn may_run(&self, limit: usize) -> bool {
        // The total usually decides: few ports have threads found asleep.
        self.running.len() < limit || self.running.iter().filter(|runner| !runner.asleep).count() < limit
    }

    pub(super) fn start(&mut self, thread: u32) {
        self.running.push(Running { thread, asleep: false });
    }

    pub(super) fn stop(&mut self, thread: u32) {
        if let Some(at) = self.running.iter().position(|runner| runner.thread == thread) {
            self.running.swap_remove(at);
        }
    }

    pub(super) fn remove(&mut self, waiter: &Arc<Waiter>) {
        self.waiters.retain(|other| !Arc::ptr_eq(other, waiter));
    }

    /// Hands packets to waiting threads as far as the limit allows, and makes one of them watch the rest.
    pub(super) fn dispatch(&mut self, limit: usize) -> Woken {
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

/// Threads to wake once the lock is released. One, the common case, needs no allocation.
pub(super) type Woken = SmallVec<[Arc<Waiter>; 1]>;

/// Wakes the threads, without the queue's lock.
pub(super) fn wake(woken: &Woken) {
    woken.iter().for_each(|waiter| waiter.wake());
}
