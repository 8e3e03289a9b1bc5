//! The epoll set of a device and its deadlines; serves its connections.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::epoll;

use super::arrivals::Arrivals;
use super::batching::Batches;
use super::checks::Checks;
use super::schedule::Schedule;
use super::timer::Timer;
use crate::completion::CompletionQueue;
use crate::memory::Spread;

/// What a poller watches.
pub(super) trait Pollable: Send + Sync {
    /// The socket is ready for reading or writing, as requested. Returns whether a connection that is up has received something.
    fn ready(&self) -> bool;
    /// This deadline has passed. It may have been replaced meanwhile.
    fn expired(&self, at: Instant);
    /// Sends the requests that were posted and held back to be batched.
    fn flush(&self) {}
    /// Ends it if one of its completion queues has lost a completion.
    fn check(&self) {}
    /// Goes on with a message that has waited for a receive.
    fn resume(&self) {}
    /// The device is removed: ends the connection or listener, and reports that.
    fn remove(&self);
}

/// How many events one call handles.
const BATCH: usize = 16;
/// The key of the timer in the epoll set. Connections count from 1 on.
const TIMER: u64 = 0;
/// How often in a row a thread that was woken serves the same connection without asking the set.
const UNASKED_MAX: u32 = 16;
/// How long after a thread of the program has last driven the poller the background thread takes over, in nanoseconds.
const TAKEOVER_DELAY: u64 = 2_000_000;
/// The same after it has found something to do: the program may be waiting for memory to change, without calling anything.
const TAKEOVER_DELAY_MIN: u64 = 64_000;
/// The take-over timer is set again, by a system call, after this part of its time.
const NOTES_PER_DELAY: u64 = 4;
/// The clock is read at every 16th poll only.
const LOOKS_PER_NOTE: u64 = 16;

/// A descriptor of another kind than a connection's.
struct Watched<F> {
    descriptor: OwnedFd,
    tell: F,
}

impl<F: Fn(&OwnedFd) + Send + Sync> Pollable for Watched<F> {
    fn ready(&self) -> bool {
        (self.tell)(&self.descriptor);
        false
    }

    fn expired(&self, _at: Instant) {}

    fn remove(&self) {}
}

/// The sockets of a device. It holds its connections until they have ended, and they hold it ([`Poller::clear`]).
///
/// Threads of the program make progress by
/// - [`progress`](Poller::progress), for a thread that polls a completion queue and has found it empty;
/// - [`drive`](Poller::drive) or [`drive_or`](Poller::drive_or), which wait;
/// - [`drive`](Poller::drive) without waiting, for a thread that has waited for [`descriptor`](Poller::descriptor).
///
/// If none does for 2 ms, a [`Background`](super::Background) takes over. Any thread may call these, also from a
/// [`Handler`](super::Handler), but not from a callback of a completion queue or a shared receive queue.
pub struct Poller {
    epoll: OwnedFd,
    entries: Mutex<HashMap<u64, Arc<dyn Pollable>, BuildHasherDefault<Spread>>>,
    timer: Timer,
    schedule: Schedule<Instant>,
    next: AtomicU64,
    /// The key of the connection that was ready last, if it was the only one.
    last: AtomicU64,
    /// How often it may be served without asking the set, as it is the only one that is ready each time.
    unasked: AtomicU32,
    /// Counts looks.
    looks: AtomicU64,
    batches: Batches<Arc<dyn Pollable>>,
    /// Expires if no thread of the program has driven the poller for some time.
    takeover: Timer,
    begin: Instant,
    /// The time that `takeover` is set to next, in nanoseconds.
    delay: AtomicU64,
    removed: AtomicBool,
    checks: Checks,
    pub(super) arrivals: Arrivals,
}

impl Poller {
    /// A poller with nothing to watch.
    ///
    /// # Errors
    /// What the system says: no file descriptor is left.
    pub fn new() -> io::Result<Arc<Poller>> {
        let poller = Arc::new(Poller {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            entries: Mutex::default(),
            timer: Timer::new()?,
            schedule: Schedule::new(),
            next: AtomicU64::new(TIMER + 1),
            last: AtomicU64::new(TIMER),
            unasked: AtomicU32::new(0),
            looks: AtomicU64::new(0),
            batches: Batches::new(),
            takeover: Timer::new()?,
            begin: Instant::now(),
            delay: AtomicU64::new(TAKEOVER_DELAY),
            removed: AtomicBool::new(false),
            checks: Checks::new(),
            arrivals: Arrivals::default(),
        });
        epoll::add(&poller.epoll, &poller.timer, epoll::EventData::new_u64(TIMER), epoll::EventFlags::IN)?;
        Ok(poller)
    }

    /// For a thread that polls `queue` and has found it empty: makes the progress of the connections that complete to it, and
    /// now and then of all. Returns whether there was any. Costs one system call: it reads the socket of a connection that
    /// was busy lately, so that a message is received by that call alone.
    pub fn progress(&self, queue: &CompletionQueue) -> bool {
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        if looks.is_multiple_of(LOOKS_PER_NOTE) || self.batches.is_on_duty() {
            self.note();
        }
        self.flush();
        queue.look().unwrap_or_else(|| self.turn(Some(Duration::ZERO)))
    }

    /// Makes the progress of all connections that are ready or have reached a deadline. If there is none, waits up to `wait`
    /// for one; `None` is for ever. Returns whether there was one.
    ///
    /// Another thread may have done so just before this waits. To wait for a completion, therefore, arm its queue, poll once
    /// more, and wait by [`drive_or`](Self::drive_or) for the notification of the queue.
    pub fn drive(&self, wait: Option<Duration>) -> bool {
        self.driven(|| self.turn(wait))
    }

    /// As [`drive`](Self::drive), but also returns when `other` is readable.
    pub fn drive_or(&self, other: BorrowedFd<'_>, wait: Option<Duration>) -> bool {
        self.wait_or(other, wait, || false).unwrap_or(false)
    }

    /// The same, with the error if a signal has ended the wait. Does not wait if `done`, which is asked after what was held back has been
    /// sent: that may have been all there was to wait for.
    pub(crate) fn wait_or(
        &self,
        other: BorrowedFd<'_>,
        wait: Option<Duration>,
        done: impl FnOnce() -> bool,
    ) -> io::Result<bool> {
        self.driven(|| {
            let wait = if done() { Some(Duration::ZERO) } else { wait };
            let set = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            let mut both = [set(other.as_raw_fd()), set(self.epoll.as_raw_fd())];
            // SAFETY: an array of two entries that outlives the call.
            if unsafe { libc::poll(both.as_mut_ptr(), 2, milliseconds(wait)) } < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(both[1].revents != 0 && self.turn_woken())
        })
    }

    /// Waits as a thread of the program, which keeps the background thread off.
    fn driven<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.batches.begin_driving();
        self.flush();
        let result = wait();
        self.batches.end_driving();
        self.note();
        result
    }

    /// The same for the background thread, which does not count as driving.
    pub(super) fn turn(&self, wait: Option<Duration>) -> bool {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; BATCH];
        // SAFETY: the array has room for `BATCH` events.
        let count = unsafe {
            let room = BATCH as libc::c_int;
            libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), room, milliseconds(wait))
        };
        let count = usize::try_from(count).unwrap_or(0);
        let mut received = false;
        for event in &events[..count] {
            let key = event.u64;
            if key == TIMER {
                self.expire();
                continue;
            }
            if let Some(entry) = self.entry(key) {
                received = entry.ready();
            }
        }
        if count != 0 {
            let only = if count == 1 && received { events[0].u64 } else { TIMER };
            let again = self.last.swap(only, Ordering::Relaxed) == only && only != TIMER;
            self.unasked.store(if again { UNASKED_MAX } else { 0 }, Ordering::Relaxed);
        }
        count != 0
    }

    /// As [`drive`](Self::drive) without waiting, for a thread that has waited for [`descriptor`](Self::descriptor). While one
    /// connection alone is busy, it mostly serves that one, which spares a system call.
    pub(crate) fn drive_woken(&self) -> bool {
        self.driven(|| self.turn_woken())
    }

    fn turn_woken(&self) -> bool {
        let spend = |left: u32| left.checked_sub(1);
        if self.unasked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_ok()
            && let Some(entry) = self.entry(self.last.load(Ordering::Relaxed))
            && entry.ready()
        {
            return true;
        }
        self.turn(Some(Duration::ZERO))
    }

    /// Whether there is nothing to watch.
    pub fn is_idle(&self) -> bool {
        self.entries.lock().is_empty()
    }

    /// Drops all connections and listeners. Those without another reference are closed as at the end of a process: no event
    /// is reported, no request flushed.
    pub fn clear(&self) {
        self.schedule.clear();
        self.batches.clear();
        self.arrivals.clear();
        // Dropped without the lock, as closing sockets takes time.
        let entries = std::mem::take(&mut *self.entries.lock());
        drop(entries);
    }

    /// Removes the device: ends all listeners and all connections. Their outstanding requests are flushed, and their end is
    /// reported, before this returns, unless another thread is just reporting something of the connection, which then reports that, too.
    /// No more can be made.
    pub fn remove_device(&self) {
        self.removed.store(true, Ordering::SeqCst);
        for entry in self.all() {
            entry.remove();
        }
    }

    /// Ends all connections whose completion queue has overflowed.
    pub(super) fn check(&self) {
        // Ending a connection may overflow the next queue, which asks again.
        self.checks.ask(|| self.all().iter().for_each(|entry| entry.check()));
    }

    fn all(&self) -> Vec<Arc<dyn Pollable>> {
        self.entries.lock().values().cloned().collect()
    }

    /// The epoll set. When it is readable, call [`drive`](Self::drive). It may be added to another epoll set; do not change
    /// it or read events from it.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Counts the looks of the program's threads.
    pub(crate) fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Notes that a thread of the program drives the poller: the background thread stays off for some time.
    fn note(&self) {
        if !self.batches.has_background() {
            return;
        }
        let now = self.begin.elapsed().as_nanos() as u64;
        let delay = self.delay.load(Ordering::Relaxed);
        self.batches.note(now, delay / NOTES_PER_DELAY, |relieved| {
            if !relieved {
                self.delay.store((delay * 2).min(TAKEOVER_DELAY), Ordering::Relaxed);
            }
            self.takeover.set(Duration::from_nanos(delay));
        });
    }

    /// The background thread starts, or has ended.
    pub(super) fn set_background(&self, there: bool) {
        self.batches.set_background(there, |listed| listed.flush());
        if there {
            self.takeover.set(Duration::from_nanos(TAKEOVER_DELAY));
        }
    }

    /// The timer on which the background thread sleeps while the program drives the poller.
    pub(super) fn takeover(&self) -> &Timer {
        &self.takeover
    }

    /// Whether the program drives the poller again.
    pub(super) fn is_relieved(&self) -> bool {
        !self.batches.is_on_duty()
    }

    /// The take-over timer has expired: returns whether the background thread is on duty now.
    pub(super) fn take_over(&self) -> bool {
        let taken = self.batches.take_over(|listed| listed.flush());
        if taken && self.turn(Some(Duration::ZERO)) {
            self.delay.store(TAKEOVER_DELAY_MIN, Ordering::Relaxed);
        }
        taken
    }

    /// Has a connection flushed at the next look, or refuses ([`Batches::defer`]).
    pub(super) fn defer(&self, connection: impl FnOnce() -> Option<Arc<dyn Pollable>>) -> bool {
        self.batches.defer(connection)
    }

    /// Sends what was held back.
    pub(crate) fn flush(&self) {
        self.batches.flush(|listed| listed.flush());
    }

    fn expire(&self) {
        self.timer.clear();
        let resume = |key| self.entry(key).map_or((), |entry| entry.resume());
        let expired = |at, key| self.entry(key).map_or((), |entry| entry.expired(at));
        self.schedule.expire(Instant::now(), resume, expired, |at| self.set_timer(at));
    }

    fn set_timer(&self, at: Instant) {
        self.timer.set(at.saturating_duration_since(Instant::now()));
    }

    fn entry(&self, key: u64) -> Option<Arc<dyn Pollable>> {
        self.entries.lock().get(&key).cloned()
    }

    /// Has `tell` called, by whoever drives the poller, when `descriptor` is readable, until the device is removed. It must read what
    /// there is.
    ///
    /// # Errors
    /// The system's error.
    pub fn watch(
        &self,
        descriptor: OwnedFd,
        tell: impl Fn(&OwnedFd) + Send + Sync + 'static,
    ) -> io::Result<()> {
        let (key, watched) = (self.key(), Arc::new(Watched { descriptor, tell }));
        self.add(key, &watched.descriptor, epoll::EventFlags::IN, Arc::clone(&watched) as Arc<dyn Pollable>)
    }

    /// A new key for something to watch.
    pub(super) fn key(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Watches a socket.
    pub(super) fn add(
        &self,
        key: u64,
        socket: &impl AsFd,
        interest: epoll::EventFlags,
        entry: Arc<dyn Pollable>,
    ) -> io::Result<()> {
        self.entries.lock().insert(key, entry);
        let added = if self.removed.load(Ordering::SeqCst) {
            Err(io::Error::from_raw_os_error(libc::ENODEV))
        } else {
            Ok(epoll::add(&self.epoll, socket, epoll::EventData::new_u64(key), interest)?)
        };
        if added.is_err() {
            self.entries.lock().remove(&key);
        }
        added
    }

    /// Changes the events that a socket is watched for.
    pub(super) fn change(&self, key: u64, socket: &impl AsFd, interest: epoll::EventFlags) {
        // Fails only for a socket that is no longer watched.
        let _ = epoll::modify(&self.epoll, socket, epoll::EventData::new_u64(key), interest);
    }

    /// Stops watching a socket.
    pub(super) fn remove(&self, key: u64, socket: &impl AsFd) {
        let _ = epoll::delete(&self.epoll, socket);
        // Dropped without the lock, as it may be the last reference.
        let entry = self.entries.lock().remove(&key);
        drop(entry);
    }

    /// Replaces the deadline `before` by one that is `after` from now; `None` for none. Returns the new one.
    pub(super) fn deadline(
        &self,
        key: u64,
        before: Option<Instant>,
        after: Option<Duration>,
    ) -> Option<Instant> {
        if before.is_none() && after.is_none() {
            return None;
        }
        let at = after.map(|after| Instant::now() + after);
        self.schedule.replace(key, before, at, |at| self.set_timer(at));
        at
    }

    /// Has `resume` called soon, by whoever drives the poller. May be called with a queue pair locked.
    pub(super) fn wake(&self, key: u64) {
        self.schedule.wake(key, Instant::now(), |at| self.set_timer(at));
    }
}

/// A time-out for the kernel: milliseconds, rounded up.
fn milliseconds(wait: Option<Duration>) -> libc::c_int {
    wait.map_or(-1, |wait| libc::c_int::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(libc::c_int::MAX))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// A connection that receives a byte when it is served.
    struct Entry {
        socket: UnixStream,
        received: AtomicUsize,
    }

    impl Pollable for Entry {
        fn ready(&self) -> bool {
            let received = (&self.socket).read(&mut [0]).is_ok();
            self.received.fetch_add(received.into(), Ordering::Relaxed);
            received
        }

        fn expired(&self, _at: Instant) {}

        fn remove(&self) {}
    }

    fn entry(poller: &Poller) -> (Arc<Entry>, UnixStream) {
        let (socket, peer) = UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        let entry = Arc::new(Entry { socket, received: AtomicUsize::new(0) });
        poller.add(poller.key(), &entry.socket, epoll::EventFlags::IN, Arc::clone(&entry) as _).unwrap();
        (entry, peer)
    }

    #[test]
    fn a_connection_that_is_busy_alone_does_not_keep_the_others_waiting() {
        let poller = Poller::new().unwrap();
        let [(busy, mut sender), (other, mut other_sender)] = [(); 2].map(|()| entry(&poller));
        let received = |entry: &Entry| entry.received.load(Ordering::Relaxed);
        sender.write_all(&[1; 64]).unwrap();
        for count in 1..=2 {
            assert!(poller.drive_woken());
            assert_eq!(received(&busy), count);
        }
        other_sender.write_all(&[1]).unwrap();
        for _ in 0..=UNASKED_MAX {
            assert!(poller.drive_woken());
        }
        assert_eq!(received(&busy), 3 + UNASKED_MAX as usize, "served without asking the set, and with it");
        assert_eq!(received(&other), 1);
    }

    #[test]
    fn who_is_ready_is_served_though_another_was_ready_before() {
        let poller = Poller::new().unwrap();
        let [(busy, mut sender), (other, mut other_sender)] = [(); 2].map(|()| entry(&poller));
        sender.write_all(&[1; 2]).unwrap();
        assert!(poller.drive_woken() && poller.drive_woken());
        other_sender.write_all(&[1]).unwrap();
        assert!(poller.drive_woken());
        assert_eq!([&busy, &other].map(|entry| entry.received.load(Ordering::Relaxed)), [2, 1]);
        assert!(!poller.drive_woken(), "nothing is left");
    }
}
