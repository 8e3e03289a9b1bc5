//! A model of the system calls in [`crate::io::sys`]: level-triggered descriptors, and futexes that lose a wake-up
//! which comes too early.

use super::sync::{Arc, AtomicU32, Ordering};
use shuttle::rand::Rng;
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread::{self, Thread};
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// Time is chance: whoever asks whether a finite deadline has passed gets any answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deadline {
    Now,
    Soon,
    Never,
}

impl Deadline {
    /// The core sets such a deadline only as a last resort, without which it must do here.
    pub(crate) fn after(_time: Duration) -> Deadline {
        Deadline::Never
    }

    pub(crate) fn passed(self) -> bool {
        match self {
            Deadline::Now => true,
            Deadline::Soon => shuttle::rand::thread_rng().gen_bool(0.3),
            Deadline::Never => false,
        }
    }
}

shuttle::lazy_static! {
    /// The level of every descriptor, and who sleeps until one rises.
    static ref DESCRIPTORS: (Mutex<Vec<bool>>, Condvar) = (Mutex::new(Vec::new()), Condvar::new());
    static ref SLEEPERS: Mutex<Vec<(usize, Thread)>> = Mutex::new(Vec::new());
}

pub(crate) fn thread_id() -> u32 {
    usize::from(shuttle::current::me()) as u32
}

/// Never: in the model a thread that waits does so where the library sees it.
pub(crate) fn is_asleep(_thread: u32) -> bool {
    false
}

fn address(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word).addr()
}

pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, deadline: Deadline) {
    {
        let mut sleepers = SLEEPERS.lock().unwrap();
        if word.load(Ordering::SeqCst) != expected {
            return;
        }
        if deadline == Deadline::Never {
            sleepers.push((address(word), thread::current()));
        }
    }
    match deadline {
        Deadline::Never => thread::park(),
        _ => thread::yield_now(),
    }
}

pub(crate) fn futex_wake(word: &AtomicU32) {
    let mut sleepers = SLEEPERS.lock().unwrap();
    if let Some(at) = sleepers.iter().position(|(other, _)| *other == address(word)) {
        sleepers.remove(at).1.unpark();
    }
}

/// In the model as good as spinning: others get their turn.
pub(crate) fn spin_until<R>(_: Duration, mut look: impl FnMut() -> Option<R>) -> Option<R> {
    thread::yield_now();
    look()
}

pub(crate) struct EventFd(usize);

impl EventFd {
    pub(crate) fn new() -> io::Result<EventFd> {
        let mut levels = DESCRIPTORS.0.lock().unwrap();
        levels.push(false);
        Ok(EventFd(levels.len() - 1))
    }

    pub(crate) fn set(&self) {
        DESCRIPTORS.0.lock().unwrap()[self.0] = true;
        DESCRIPTORS.1.notify_all();
    }

    pub(crate) fn clear(&self) {
        DESCRIPTORS.0.lock().unwrap()[self.0] = false;
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.0 as RawFd
    }
}

pub(crate) fn sleep_on(_: &[RawFd], _: Deadline) -> Vec<usize> {
    unreachable!("a thread of the model waits for one poller")
}

pub(crate) struct Ready(Vec<u64>);

impl Ready {
    pub(crate) fn new() -> Ready {
        Ready(Vec::new())
    }

    pub(crate) fn found(&self) -> impl Iterator<Item = (u64, u32)> {
        self.0.iter().map(|key| (*key, libc::EPOLLIN as u32))
    }
}

pub(crate) struct Epoll {
    watched: Mutex<Vec<(RawFd, u64)>>,
    kick: Arc<EventFd>,
}

impl Epoll {
    pub(crate) const KICK: u64 = u64::MAX;

    pub(crate) fn new() -> io::Result<Epoll> {
        let kick = Arc::new(EventFd::new()?);
        Ok(Epoll { watched: Mutex::new(vec![(kick.fd(), Epoll::KICK)]), kick })
    }

    pub(crate) fn fd(&self) -> RawFd {
        unreachable!("the model nests no epoll sets")
    }

    pub(crate) fn watch(&self, fd: RawFd, key: u64, _events: u32) -> io::Result<()> {
        // One lock for all, so that a sleeper sees what is added.
        let _levels = DESCRIPTORS.0.lock().unwrap();
        self.watched.lock().unwrap().push((fd, key));
        DESCRIPTORS.1.notify_all();
        Ok(())
    }

    pub(crate) fn watch_again(&self, _fd: RawFd, _key: u64, _events: u32) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn unwatch(&self, fd: RawFd) {
        self.watched.lock().unwrap().retain(|(other, _)| *other != fd);
    }

    fn look(&self, levels: &[bool]) -> Vec<u64> {
        let watched = self.watched.lock().unwrap();
        watched.iter().filter(|(fd, _)| levels[*fd as usize]).map(|(_, key)| *key).collect()
    }

    pub(crate) fn wait(&self, ready: &mut Ready, deadline: Deadline) {
        let mut levels = DESCRIPTORS.0.lock().unwrap();
        loop {
            ready.0 = self.look(&levels);
            if !ready.0.is_empty() || deadline != Deadline::Never {
                return;
            }
            levels = DESCRIPTORS.1.wait(levels).unwrap();
        }
    }

    pub(crate) fn poll(&self, ready: &mut Ready) {
        self.wait(ready, Deadline::Now);
    }

    pub(crate) fn kick(&self) -> &Arc<EventFd> {
        &self.kick
    }
}
