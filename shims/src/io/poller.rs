//! Progress without a thread of its own: waiting threads watch the sources themselves.
//!
//! One of the threads that wait on a poller leads: it sleeps in `epoll_wait` and serves ready sources for all. The others, the
//! followers, sleep on futexes until their condition is true or they take over the lead.
//!
//! A thread that fails to take the lead joins the followers and tries once more; a thread that gives up the lead looks for
//! followers afterwards. So one of the two sees the other.

use super::parker::Parker;
use super::sync::{Arc, AtomicBool, AtomicUsize, Lock, Ordering};
use super::sys::{Deadline, Epoll, Ready};
use super::unattended::{self, Watcher};
use crate::cancellation::put_off;
use std::io;
use std::os::fd::RawFd;

const EPOLLIN: u32 = libc::EPOLLIN as u32;
const EPOLLET: u32 = libc::EPOLLET as u32;

/// Something with a file descriptor whose readiness means progress for requests.
pub trait Source: Send + Sync {
    /// The descriptor is readable: reads from it without blocking and completes requests. Called again while it stays readable.
    ///
    /// May run on several threads at a time, and may find nothing to do. It must not wait for a request.
    fn ready(&self);

    /// Whether edge-triggered calls of [`ready`](Self::ready) suffice. Level-triggered ones cost every wait a second look at the
    /// descriptor.
    fn needs_each_once(&self) -> bool {
        false
    }

    /// The epoll events to watch for.
    fn events(&self) -> u32 {
        EPOLLIN | if self.needs_each_once() { EPOLLET } else { 0 }
    }

    /// As [`ready`](Self::ready), with the events that occurred.
    fn ready_for(&self, _events: u32) {
        self.ready();
    }
}

/// A set of sources and the threads that wait for them.
pub(crate) struct Poller {
    epoll: Epoll,
    sources: Lock<Sources>,
    /// A thread leads.
    led: AtomicBool,
    /// The followers, oldest first, and their number.
    followers: Lock<Vec<Arc<Parker>>>,
    following: AtomicUsize,
    /// The number of sources. Without any there is no leader, as a futex is cheaper than epoll.
    count: AtomicUsize,
    /// Counts the polls of threads, so that the background thread sees which pollers are attended.
    looks: AtomicUsize,
    /// The number of threads and poll loops that watch this one beside others.
    guests: AtomicUsize,
    /// The program has a descriptor of this poller. Its loop may sleep, so one poll does not mean that the poller is watched.
    watched_outside: AtomicBool,
    /// The background thread watches this poller.
    pub(crate) adopted: AtomicBool,
}

/// A source in a poller.
struct Entry {
    fd: RawFd,
    source: Arc<dyn Source>,
    /// How often it was added: a device's descriptors belong to each of its files, and files share a port's poller.
    additions: usize,
}

/// Sources in the order of their descriptors.
#[derive(Default)]
struct Sources {
    list: Vec<Entry>,
    /// The index of the last look-up, which is often the next one, too.
    last: usize,
}

impl Sources {
    fn find(&self, fd: RawFd) -> Result<usize, usize> {
        self.list.binary_search_by_key(&fd, |entry| entry.fd)
    }

    #[inline]
    fn get(&mut self, fd: RawFd) -> Option<Arc<dyn Source>> {
        match self.list.get(self.last) {
            Some(entry) if entry.fd == fd => Some(entry.source.clone()),
            _ => self.look_for(fd),
        }
    }

    #[inline(never)]
    fn look_for(&mut self, fd: RawFd) -> Option<Arc<dyn Source>> {
        self.last = self.find(fd).ok()?;
        Some(self.list[self.last].source.clone())
    }
}

impl Poller {
    pub(crate) fn new() -> io::Result<Arc<Poller>> {
        Ok(Arc::new(Poller {
            epoll: Epoll::new()?,
            sources: Lock::default(),
            led: AtomicBool::new(false),
            followers: Lock::default(),
            following: AtomicUsize::new(0),
            count: AtomicUsize::new(0),
            looks: AtomicUsize::new(0),
            guests: AtomicUsize::new(0),
            watched_outside: AtomicBool::new(false),
            adopted: AtomicBool::new(false),
        }))
    }

    /// The epoll descriptor: readable when a source is.
    pub(crate) fn fd(&self) -> RawFd {
        self.epoll.fd()
    }

    /// Watches `fd` until [`Poller::remove`] was called as often as this was.
    ///
    /// A descriptor is in the set once, however often it is added: the kernel refuses a second one, and each event is served
    /// once.
    pub(crate) fn add(&self, fd: RawFd, source: Arc<dyn Source>) -> io::Result<()> {
        {
            let mut sources = self.sources.lock();
            match sources.find(fd) {
                Ok(at) if Arc::ptr_eq(&sources.list[at].source, &source) => {
                    sources.list[at].additions += 1;
                    return Ok(());
                }
                Ok(_) => return Err(io::Error::from_raw_os_error(libc::EEXIST)),
                // Under the lock, so that no thread serves or removes it before it is listed.
                Err(at) => {
                    self.epoll.watch(fd, fd as u64, source.events())?;
                    sources.list.insert(at, Entry { fd, source, additions: 1 });
                }
            }
            self.count.fetch_add(1, Ordering::SeqCst);
        }
        if let Some(next_leader) = self.next_leader() {
            next_leader.wake();
        }
        Ok(())
    }

    /// Updates the watched events of `fd`.
    pub(crate) fn watch_again(&self, fd: RawFd) -> io::Result<()> {
        let sources = self.sources.lock();
        match sources.find(fd) {
            Ok(at) => self.epoll.watch_again(fd, fd as u64, sources.list[at].source.events()),
            Err(_) => Err(io::Error::from_raw_os_error(libc::ENOENT)),
        }
    }

    /// Undoes one [`Poller::add`].
    pub(crate) fn remove(&self, fd: RawFd) {
        let removed = {
            let mut sources = self.sources.lock();
            let Ok(at) = sources.find(fd) else { return };
            sources.list[at].additions -= 1;
            if sources.list[at].additions > 0 {
                return;
            }
            self.epoll.unwatch(fd);
            self.count.fetch_sub(1, Ordering::SeqCst);
            sources.list.remove(at)
        };
        // The source may be dropped here, so without the lock.
        drop(removed);
    }

    /// Serves what is ready now.
    pub(crate) fn poll(&self) {
        if !self.watched_outside.load(Ordering::Relaxed) {
            self.count_look();
        }
        self.serve_ready();
    }

    /// Like [`Poller::poll`], but is not counted as attendance.
    pub(crate) fn serve_ready(&self) {
        let mut ready = Ready::new();
        self.epoll.poll(&mut ready);
        // A kick for a thread that has left must not keep the set readable for ever. A leader's own is left to the leader.
        if self.serve(&ready)
            && let Some(_lead) = self.claim_lead()
        {
            self.epoll.kick().clear();
        }
    }

    /// Serves until nothing is ready, for an edge-triggered poll loop.
    pub(crate) fn serve_all(&self) {
        loop {
            let mut ready = Ready::new();
            self.epoll.poll(&mut ready);
            if self.serve(&ready)
                && let Some(_lead) = self.claim_lead()
            {
                self.epoll.kick().clear();
            }
            // A leader's kick stays; nothing else is left then.
            if ready.found().all(|(key, _)| key == Epoll::KICK) {
                return;
            }
        }
    }

    /// A poll loop of the program attends to the sources until [`Poller::left_by_poll_loop`].
    pub(crate) fn watched_by_poll_loop(&self) {
        self.guests.fetch_add(1, Ordering::SeqCst);
        self.count_look();
    }

    /// Undoes one [`Poller::watched_by_poll_loop`].
    pub(crate) fn left_by_poll_loop(&self) {
        self.guests.fetch_sub(1, Ordering::SeqCst);
        unattended::left_alone();
    }

    /// Waits, serving sources, until `done` gives an answer; `None` when the deadline comes first. `parker` is the calling
    /// thread's: whoever changes what `done` looks at wakes it.
    #[inline]
    pub(crate) fn wait<R>(
        &self,
        parker: &Arc<Parker>,
        deadline: Deadline,
        mut done: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        // In most cases the result is that of the thread's own last turn.
        parker.look_now();
        let mut seat = Seat::Outside;
        loop {
            if let Some(answer) = done() {
                return Some(answer);
            }
            if deadline.passed() {
                return None;
            }
            if seat.lead(self, parker) {
                self.lead(parker, deadline);
            } else {
                parker.park(deadline);
            }
        }
    }

    fn lead(&self, parker: &Parker, deadline: Deadline) {
        self.count_look();
        let mut ready = Ready::new();
        parker.park_in_epoll(self.epoll.kick(), || self.epoll.wait(&mut ready, deadline));
        if self.serve(&ready) {
            self.epoll.kick().clear();
        }
    }

    /// Serves what is ready. Returns whether there was a kick.
    #[inline(always)]
    fn serve(&self, ready: &Ready) -> bool {
        let mut kicked = false;
        for (key, events) in ready.found() {
            if key == Epoll::KICK {
                kicked = true;
                continue;
            }
            let source = self.sources.lock().get(key as RawFd);
            if let Some(source) = source {
                put_off(|| source.ready_for(events));
            }
        }
        kicked
    }

    /// The program got a descriptor that shows completions of this poller.
    pub(crate) fn watch_outside(&self) {
        self.watched_outside.store(true, Ordering::Relaxed);
    }

    /// A thread attends to the sources now, so the background thread need not.
    fn count_look(&self) {
        self.looks.store(self.looks.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        if self.is_adopted() {
            self.take_back();
        }
    }

    /// The background thread stops attending: a thread does so, or nothing is pending.
    #[cold]
    pub(crate) fn take_back(&self) {
        if self.adopted.swap(false, Ordering::SeqCst) {
            unattended::unwatch(self.fd());
        }
        unattended::left_alone();
    }

    /// Whether a thread watches the sources now.
    pub(crate) fn is_watched(&self) -> bool {
        self.guests.load(Ordering::SeqCst) > 0 || self.led.load(Ordering::SeqCst)
    }

    /// Whether the background thread watches the sources.
    pub(crate) fn is_adopted(&self) -> bool {
        self.adopted.load(Ordering::Relaxed)
    }

    /// Whether there is anything to serve.
    pub(crate) fn has_sources(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Takes the lead, if it is free and worth taking.
    #[inline]
    fn take_lead(&self) -> Option<Lead<'_>> {
        if self.has_sources() { self.claim_lead() } else { None }
    }

    /// Takes the lead, if it is free.
    #[inline]
    fn claim_lead(&self) -> Option<Lead<'_>> {
        let taken = self.led.compare_exchange(false, true, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        taken.then(|| Lead(self))
    }

    /// The follower that should take the lead, if it is free and worth taking: the youngest, whose cache is warm.
    #[inline]
    fn next_leader(&self) -> Option<Arc<Parker>> {
        if self.following.load(Ordering::SeqCst) == 0 { None } else { self.next_leader_of_many() }
    }

    #[inline(never)]
    fn next_leader_of_many(&self) -> Option<Arc<Parker>> {
        let worth_taking = self.has_sources() && !self.led.load(Ordering::SeqCst);
        if worth_taking { self.followers.lock().last().cloned() } else { None }
    }

    /// The count of polls so far.
    pub(crate) fn looks(&self) -> usize {
        self.looks.load(Ordering::Relaxed)
    }
}

impl Watcher for Poller {
    fn unwatch(&self, fd: RawFd) {
        self.remove(fd);
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        if self.is_adopted() {
            self.take_back();
        }
    }
}

/// The lead of a poller. Dropping it hands it on.
struct Lead<'a>(&'a Poller);

impl Drop for Lead<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.led.store(false, Ordering::SeqCst);
        match self.0.next_leader() {
            Some(next_leader) => next_leader.wake(),
            None => unattended::left_alone(),
        }
    }
}

/// A thread among a poller's followers, until it is dropped.
struct Follower<'a> {
    poller: &'a Poller,
    parker: &'a Arc<Parker>,
}

impl<'a> Follower<'a> {
    #[cold]
    fn new(poller: &'a Poller, parker: &'a Arc<Parker>) -> Follower<'a> {
        poller.followers.lock().push(parker.clone());
        poller.following.fetch_add(1, Ordering::SeqCst);
        Follower { poller, parker }
    }
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        self.poller.followers.lock().retain(|other| !Arc::ptr_eq(other, self.parker));
        self.poller.following.fetch_sub(1, Ordering::SeqCst);
        // If this thread was woken to lead, the next one must be woken in its place.
        if let Some(next_leader) = self.poller.next_leader() {
            next_leader.wake();
        }
    }
}

/// A waiting thread's place.
enum Seat<'a> {
    Outside,
    Follower(#[expect(dead_code, reason = "lives for its end")] Follower<'a>),
    Leader(#[expect(dead_code, reason = "lives for its end")] Lead<'a>),
}

impl<'a> Seat<'a> {
    /// Takes the lead if it is free, else joins the followers. Returns whether the thread leads.
    #[inline]
    fn lead(&mut self, poller: &'a Poller, parker: &'a Arc<Parker>) -> bool {
        if let Seat::Leader(_) = self {
            return true;
        }
        if let Some(lead) = poller.take_lead() {
            *self = Seat::Leader(lead);
            return true;
        }
        if let Seat::Outside = self {
            *self = Seat::Follower(Follower::new(poller, parker));
            return self.lead(poller, parker);
        }
        false
    }
}
