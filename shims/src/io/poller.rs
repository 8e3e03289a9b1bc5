//! Threadless progress: threads that wait watch the sources themselves.
//!
//! Of the threads that wait on one poller, one leads: it sleeps in `epoll_wait` and serves what becomes ready,
//! for everybody. The others sleep on futexes until their condition comes true or the lead falls to them.

use super::background;
use super::parker::Parker;
use super::sync::{Arc, AtomicBool, AtomicUsize, Lock, Ordering};
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
    seats: Lock<Seats>,
    /// How many sources there are. Without any there is nothing to lead, and a futex is cheaper than epoll. Changes with the
    /// seats locked.
    count: AtomicUsize,
    /// Counts the looks that threads take, so that the background thread sees which files are attended.
    looks: AtomicUsize,
    /// How many threads wait in a poller over this one.
    guests: AtomicUsize,
    /// The program sleeps in a poll loop of its own on what this poller completes: a mere look from it must not
    /// send the background thread away.
    watched_outside: AtomicBool,
    /// The background thread watches this poller, or a file whose completions go to its port.
    pub(crate) adopted: AtomicBool,
}

/// Sources by their keys, in order: mostly so few that nothing finds them faster.
#[derive(Default)]
struct Sources(Vec<(u64, Arc<dyn Source>)>);

impl Sources {
    fn find(&self, key: u64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&key, |(other, _)| *other)
    }

    #[inline]
    fn get(&self, key: u64) -> Option<Arc<dyn Source>> {
        self.find(key).ok().map(|at| self.0[at].1.clone())
    }

    fn insert(&mut self, key: u64, source: Arc<dyn Source>) {
        if let Err(at) = self.find(key) {
            self.0.insert(at, (key, source));
        }
    }

    fn remove(&mut self, key: u64) -> Option<Arc<dyn Source>> {
        self.find(key).ok().map(|at| self.0.remove(at).1)
    }
}

#[derive(Default)]
struct Seats {
    led: bool,
    followers: Vec<Arc<Parker>>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Arc<Poller>> {
        Ok(Arc::new(Poller {
            epoll: Epoll::new()?,
            sources: Lock::default(),
            seats: Lock::default(),
            count: AtomicUsize::new(0),
            looks: AtomicUsize::new(0),
            guests: AtomicUsize::new(0),
            watched_outside: AtomicBool::new(false),
            adopted: AtomicBool::new(false),
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
        let heir = {
            let seats = self.seats.lock();
            self.count.fetch_add(1, Ordering::Relaxed);
            self.heir(&seats)
        };
        if let Some(heir) = heir {
            heir.wake();
        }
        Ok(())
    }

    /// Undoes [`Poller::add`].
    pub(crate) fn remove(&self, fd: RawFd, key: u64) {
        let source = self.sources.lock().remove(key);
        if source.is_some() {
            self.epoll.unwatch(fd);
            let _seats = self.seats.lock();
            self.count.fetch_sub(1, Ordering::Relaxed);
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
        // A kick that came after its addressee had gone must not keep the set readable for ever.
        if self.serve(&ready) {
            let seats = self.seats.lock();
            if !seats.led {
                self.epoll.drain_kick();
            }
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
        let mut seat = Seat { poller: self, parker, standing: Standing::Outside };
        loop {
            if let Some(answer) = done() {
                return Some(answer);
            }
            if deadline.passed() {
                return None;
            }
            if seat.take() {
                self.lead(parker, deadline);
            } else {
                parker.park(deadline);
            }
        }
    }

    fn lead(self: &Arc<Self>, parker: &Parker, deadline: Deadline) {
        self.attend();
        let mut ready = Ready::new();
        parker.park_leading(self, || self.epoll.wait(&mut ready, deadline));
        if self.serve(&ready) {
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
        if self.adopted.load(Ordering::Relaxed) {
            background::take_back(self);
        }
    }

    /// Whether a thread watches the sources now.
    pub(crate) fn is_watched(&self) -> bool {
        self.guests.load(Ordering::SeqCst) > 0 || self.seats.lock().led
    }

    /// Whether there is anything to serve.
    pub(crate) fn has_sources(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// The follower who should take the lead, if it is free and worth taking. The youngest: its cache is warm.
    fn heir(&self, seats: &Seats) -> Option<Arc<Parker>> {
        if seats.led || !self.has_sources() { None } else { seats.followers.last().cloned() }
    }

    /// The count of looks so far.
    pub(crate) fn looks(&self) -> usize {
        self.looks.load(Ordering::Relaxed)
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

#[derive(PartialEq)]
enum Standing {
    Outside,
    Follower,
    Leader,
}

/// A waiting thread's place; leaving it hands on the lead.
struct Seat<'a> {
    poller: &'a Poller,
    parker: &'a Arc<Parker>,
    standing: Standing,
}

impl Seat<'_> {
    /// Takes the lead if it is free, else queues up for it. Says whether this thread leads.
    #[inline]
    fn take(&mut self) -> bool {
        if self.standing != Standing::Leader {
            let mut seats = self.poller.seats.lock();
            if !seats.led && self.poller.has_sources() {
                seats.led = true;
                if self.standing == Standing::Follower {
                    seats.followers.retain(|other| !Arc::ptr_eq(other, self.parker));
                }
                self.standing = Standing::Leader;
            } else if self.standing == Standing::Outside {
                seats.followers.push(self.parker.clone());
                self.standing = Standing::Follower;
            }
        }
        self.standing == Standing::Leader
    }
}

impl Drop for Seat<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.standing != Standing::Outside {
            self.leave();
        }
    }
}

impl Seat<'_> {
    fn leave(&self) {
        let led_by_me = self.standing == Standing::Leader;
        let heir = {
            let mut seats = self.poller.seats.lock();
            if led_by_me {
                seats.led = false;
            } else {
                seats.followers.retain(|other| !Arc::ptr_eq(other, self.parker));
            }
            self.poller.heir(&seats)
        };
        // A follower that leaves may have been the one that was woken to lead: wake the next one then.
        match heir {
            Some(heir) => heir.wake(),
            None if led_by_me => background::left_alone(),
            None => {}
        }
    }
}
