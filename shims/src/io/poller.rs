//! Threadless progress: threads that wait watch the sources themselves.
//!
//! Of the threads that wait on one poller, one leads: it sleeps in `epoll_wait` and serves what becomes ready,
//! for everybody. The others, its followers, sleep on futexes until their condition comes true or the lead falls to them.
//!
//! Whoever would lead tries to, and if in vain, joins the followers and tries once more; whoever gives up the lead looks
//! for followers afterwards. So one of the two sees the other.

use super::background::{self, NOT_ADOPTED};
use super::parker::Parker;
use super::sync::{Arc, AtomicBool, AtomicU64, AtomicUsize, Lock, Ordering};
use super::sys::{Deadline, Epoll, Ready};
use std::io;
use std::os::fd::RawFd;

/// Something with a file descriptor whose readiness means progress for requests.
pub trait Source: Send + Sync {
    /// The descriptor became readable: take from it without blocking and complete requests. Called again while it
    /// stays readable.
    ///
    /// May run on several threads at once, and may find nothing to do. It must not wait for a request itself.
    fn ready(&self);

    /// Whether one call of [`ready`](Self::ready) for each arrival will do, however much of them it takes. To have it called
    /// while something is left costs every wait a second look at the descriptor.
    fn needs_each_once(&self) -> bool {
        false
    }
}

/// A set of sources and the threads that wait for them.
pub(crate) struct Poller {
    epoll: Epoll,
    sources: Lock<Sources>,
    /// A thread leads.
    led: AtomicBool,
    /// What the leader sleeps for, or is about to, if only a kick wakes it; see [`Poller::rouse`]. 0 if it does not.
    sleeping_for: AtomicUsize,
    /// Those who wait without leading, oldest first, and how many they are.
    followers: Lock<Vec<Arc<Parker>>>,
    following: AtomicUsize,
    /// How many sources there are. Without any there is nothing to lead, and a futex is cheaper than epoll.
    count: AtomicUsize,
    /// Counts the looks that threads take, so that the background thread sees which files are attended.
    looks: AtomicUsize,
    /// How many threads wait in a poller over this one.
    guests: AtomicUsize,
    /// The program sleeps in a poll loop of its own on what this poller completes: a mere look from it must not
    /// send the background thread away.
    watched_outside: AtomicBool,
    /// The key under which the background thread watches this poller, if it does.
    pub(crate) adopted: AtomicU64,
}

/// Sources by their keys, in order.
#[derive(Default)]
struct Sources {
    list: Vec<(u64, Arc<dyn Source>)>,
    /// Where the last one was that had to be looked for: mostly it is that one again.
    last: usize,
}

impl Sources {
    fn find(&self, key: u64) -> Result<usize, usize> {
        self.list.binary_search_by_key(&key, |(other, _)| *other)
    }

    #[inline]
    fn get(&mut self, key: u64) -> Option<Arc<dyn Source>> {
        match self.list.get(self.last) {
            Some((other, source)) if *other == key => Some(source.clone()),
            _ => self.look_for(key),
        }
    }

    #[inline(never)]
    fn look_for(&mut self, key: u64) -> Option<Arc<dyn Source>> {
        self.last = self.find(key).ok()?;
        Some(self.list[self.last].1.clone())
    }

    fn insert(&mut self, key: u64, source: Arc<dyn Source>) {
        if let Err(at) = self.find(key) {
            self.list.insert(at, (key, source));
        }
    }

    fn remove(&mut self, key: u64) -> Option<Arc<dyn Source>> {
        self.find(key).ok().map(|at| self.list.remove(at).1)
    }
}

impl Poller {
    pub(crate) fn new() -> io::Result<Arc<Poller>> {
        Ok(Arc::new(Poller {
            epoll: Epoll::new()?,
            sources: Lock::default(),
            led: AtomicBool::new(false),
            sleeping_for: AtomicUsize::new(0),
            followers: Lock::default(),
            following: AtomicUsize::new(0),
            count: AtomicUsize::new(0),
            looks: AtomicUsize::new(0),
            guests: AtomicUsize::new(0),
            watched_outside: AtomicBool::new(false),
            adopted: AtomicU64::new(NOT_ADOPTED),
        }))
    }

    /// A poller over several, for one thread that waits for all of them.
    pub(crate) fn over(pollers: &[Arc<Poller>]) -> io::Result<Arc<Poller>> {
        let nest = Poller::new()?;
        for (index, poller) in pollers.iter().enumerate() {
            nest.add(poller.fd(), index as u64 + 1, Arc::new(Guest::new(poller)))?;
        }
        Ok(nest)
    }

    /// The epoll descriptor: readable when a source is.
    pub(crate) fn fd(&self) -> RawFd {
        self.epoll.fd()
    }

    /// Watches `fd` under `key`, which must be unique in this poller for ever, and not [`Epoll::KICK`].
    pub(crate) fn add(&self, fd: RawFd, key: u64, source: Arc<dyn Source>) -> io::Result<()> {
        let once = source.needs_each_once();
        self.sources.lock().insert(key, source);
        if let Err(error) = self.epoll.watch(fd, key, once) {
            self.sources.lock().remove(key);
            return Err(error);
        }
        self.count.fetch_add(1, Ordering::SeqCst);
        if let Some(heir) = self.heir() {
            heir.wake();
        }
        Ok(())
    }

    /// Undoes [`Poller::add`].
    pub(crate) fn remove(&self, fd: RawFd, key: u64) {
        let source = self.sources.lock().remove(key);
        if source.is_some() {
            self.epoll.unwatch(fd);
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Serves what is ready now.
    pub(crate) fn poll(&self) {
        if !self.watched_outside.load(Ordering::Relaxed) {
            self.attend();
        }
        self.serve_ready();
    }

    /// Like [`Poller::poll`], but does not count as somebody's attention.
    pub(crate) fn serve_ready(&self) {
        let mut ready = Ready::new();
        self.epoll.poll(&mut ready);
        // A kick that came after its addressee had gone must not keep the set readable for ever. A leader's own is left to it.
        if self.serve(&ready)
            && let Some(_lead) = self.take_lead()
        {
            self.epoll.drain_kick();
        }
    }

    /// Waits, serving sources, until `done` gives an answer; `None` when the deadline comes first.
    pub(crate) fn wait<R>(
        self: &Arc<Self>,
        deadline: Deadline,
        done: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        Parker::with(|parker| self.wait_as(parker, deadline, done))
    }

    /// Like [`Poller::wait`], for the thread that `parker` belongs to.
    #[inline]
    pub(crate) fn wait_as<R>(
        self: &Arc<Self>,
        parker: &Arc<Parker>,
        deadline: Deadline,
        mut done: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        // Mostly that of the thread's own last wait, in which it served itself.
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

    /// Like [`Poller::wait`], as the leader, which nobody can wake but by [`Poller::rouse`]: so nobody has to know who it is.
    /// `what` names what it waits for, an address that something lies at. `None` if there is nothing to lead, or the lead is
    /// another thread's.
    #[inline]
    pub(crate) fn wait_leading<R>(
        &self,
        what: usize,
        deadline: Deadline,
        mut done: impl FnMut() -> Option<R>,
    ) -> Option<Option<R>> {
        let _lead = self.take_lead()?;
        loop {
            self.attend();
            // Pairs with the fence before `rouse`: either this thread sees what has been published, or it is seen.
            self.sleeping_for.swap(what, Ordering::SeqCst);
            let answer = done();
            if answer.is_some() {
                self.sleeping_for.store(0, Ordering::Relaxed);
                return Some(answer);
            }
            let mut ready = Ready::new();
            self.epoll.wait(&mut ready, deadline);
            self.sleeping_for.store(0, Ordering::Relaxed);
            self.serve_led(&ready);
            let answer = done();
            if answer.is_some() || deadline.passed() {
                return Some(answer);
            }
        }
    }

    /// Wakes the thread that waits for `what` in [`Poller::wait_leading`], if one does, after something was published that it
    /// may be waiting for. A fence must be between the two.
    #[inline]
    pub(crate) fn rouse(&self, what: usize) {
        if self.sleeping_for.load(Ordering::Relaxed) == what {
            self.kick();
        }
    }

    fn lead(self: &Arc<Self>, parker: &Parker, deadline: Deadline) {
        self.attend();
        let mut ready = Ready::new();
        parker.park_leading(self, || self.epoll.wait(&mut ready, deadline));
        self.serve_led(&ready);
    }

    /// Serves what the leader has found ready.
    #[inline(always)]
    fn serve_led(&self, ready: &Ready) {
        if self.serve(ready) {
            self.epoll.drain_kick();
        }
    }

    /// Serves what is ready. Says whether there was a kick.
    #[inline(always)]
    fn serve(&self, ready: &Ready) -> bool {
        let mut kicked = false;
        for key in ready.keys() {
            if key == Epoll::KICK {
                kicked = true;
                continue;
            }
            let source = self.sources.lock().get(key);
            if let Some(source) = source {
                source.ready();
            }
        }
        kicked
    }

    /// The program got a descriptor that shows completions of this poller.
    pub(crate) fn watch_outside(&self) {
        self.watched_outside.store(true, Ordering::Relaxed);
    }

    /// Brings the leader out of its sleep.
    pub(crate) fn kick(&self) {
        self.epoll.kick();
    }

    /// A thread looks after the sources now, so the background thread need not.
    fn attend(&self) {
        self.looks.store(self.looks.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        if self.is_adopted() {
            background::take_back(self);
        }
    }

    /// Whether a thread watches the sources now.
    pub(crate) fn is_watched(&self) -> bool {
        self.guests.load(Ordering::SeqCst) > 0 || self.led.load(Ordering::SeqCst)
    }

    /// Whether the background thread watches the sources.
    pub(crate) fn is_adopted(&self) -> bool {
        self.adopted.load(Ordering::Relaxed) != NOT_ADOPTED
    }

    /// Whether there is anything to serve.
    pub(crate) fn has_sources(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Takes the lead, if it is free and worth taking.
    #[inline]
    fn take_lead(&self) -> Option<Lead<'_>> {
        let taken = self.has_sources()
            && self.led.compare_exchange(false, true, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        taken.then(|| Lead(self))
    }

    /// The follower who should take the lead, if it is free and worth taking. The youngest: its cache is warm.
    #[inline]
    fn heir(&self) -> Option<Arc<Parker>> {
        if self.following.load(Ordering::SeqCst) == 0 { None } else { self.heir_of_many() }
    }

    #[inline(never)]
    fn heir_of_many(&self) -> Option<Arc<Parker>> {
        let worth_taking = self.has_sources() && !self.led.load(Ordering::SeqCst);
        if worth_taking { self.followers.lock().last().cloned() } else { None }
    }

    /// The count of looks so far.
    pub(crate) fn looks(&self) -> usize {
        self.looks.load(Ordering::Relaxed)
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        if self.is_adopted() {
            background::take_back(self);
        }
    }
}

/// A poller as a source of another one.
struct Guest(Arc<Poller>);

impl Guest {
    fn new(poller: &Arc<Poller>) -> Guest {
        poller.guests.fetch_add(1, Ordering::SeqCst);
        poller.attend();
        Guest(poller.clone())
    }
}

impl Source for Guest {
    fn ready(&self) {
        self.0.poll();
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.0.guests.fetch_sub(1, Ordering::SeqCst);
        background::left_alone();
    }
}

/// The lead of a poller. Giving it up hands it on.
struct Lead<'a>(&'a Poller);

impl Drop for Lead<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.led.store(false, Ordering::SeqCst);
        match self.0.heir() {
            Some(heir) => heir.wake(),
            None => background::left_alone(),
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
        // This may have been the one that was woken to lead: then the next one is.
        if let Some(heir) = self.poller.heir() {
            heir.wake();
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
    /// Takes the lead if it is free, else queues up for it. Says whether the thread leads.
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
