//! Event queues, each with a descriptor that a program may wait for.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};

use super::errno;
use super::events::EventQueue;
use super::sync::Signal;
use crate::socket::Poller;

/// An event queue and its descriptor.
pub(super) struct Inbox<T> {
    events: EventQueue<T>,
    /// Held while the epoll set is changed.
    changing: Mutex<()>,
    /// An epoll set, readable while the signal is or, with `sockets`, while sockets of the device are ready. `None`: the signal
    /// itself is the program's descriptor.
    both: Option<(OwnedFd, Share)>,
    /// The device's sockets are in `both`.
    sockets: AtomicBool,
    /// How many wake-ups in a row have led to no event.
    vain: AtomicU32,
    /// How many completion queues are armed whose events come here.
    armed: AtomicUsize,
}

/// After this many wake-ups without an event the device's sockets leave the descriptor (not while a queue is armed), so that traffic
/// for others does not wake it. The next event, or a thread that is about to wait, puts them back.
const VAIN_MAX: u32 = 4;

/// How many queues may have a descriptor that includes the device's sockets. The kernel limits the paths from a file through
/// nested epoll sets: 100 paths of three sets, 50 of four, 10 of five; a program's own sets make a path longer.
const BOTH_MAX: usize = 16;
/// The number of queues that have one.
static BOTH: AtomicUsize = AtomicUsize::new(0);

/// A share in [`BOTH_MAX`].
struct Share;

impl Share {
    fn take() -> Option<Share> {
        let more = |count: usize| (count < BOTH_MAX).then_some(count + 1);
        BOTH.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok().then(|| Share)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        BOTH.fetch_sub(1, Ordering::Relaxed);
    }
}

fn watch(set: &OwnedFd, fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(epoll::add(set, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?)
}

impl<T> Inbox<T> {
    /// An empty queue. With `drives`, threads that wait for its descriptor may drive the device, unless [`BOTH_MAX`] queues do so
    /// already.
    pub(super) fn new(drives: bool) -> io::Result<Inbox<T>> {
        let signal = Signal::new()?;
        let both = match drives.then(Share::take).flatten() {
            None => None,
            Some(share) => {
                let both = epoll::create(epoll::CreateFlags::CLOEXEC)?;
                watch(&both, signal.as_fd())?;
                Some((both, share))
            }
        };
        let (events, changing) = (EventQueue::new(signal), Mutex::new(()));
        let (sockets, vain, armed) = (AtomicBool::new(false), AtomicU32::new(0), AtomicUsize::new(0));
        Ok(Inbox { events, changing, both, sockets, vain, armed })
    }

    /// Whether the program has set the descriptor to non-blocking mode. Then it must expect to find no event, so the descriptor
    /// may become readable for the device's sockets, too, and the thread that wakes drives them. In blocking mode a readable
    /// descriptor must mean an event, so other threads drive the device.
    pub(super) fn look_for_sockets(&self, poller: Option<&Poller>) -> bool {
        let nonblocking = self.is_nonblocking();
        if let Some(poller) = poller
            && self.sockets.load(Ordering::Relaxed) != self.wants_sockets(nonblocking)
        {
            self.change_sockets(poller, nonblocking);
        }
        nonblocking
    }

    fn is_nonblocking(&self) -> bool {
        // SAFETY: this command takes no pointer.
        unsafe { libc::fcntl(self.descriptor(), libc::F_GETFL) & libc::O_NONBLOCK != 0 }
    }

    fn wants_sockets(&self, nonblocking: bool) -> bool {
        nonblocking && (self.vain.load(Ordering::Relaxed) < VAIN_MAX || self.is_armed())
    }

    /// Adds the sockets to the descriptor, or takes them away. Whether they are wanted is asked under the lock, so that the last one
    /// who asks decides.
    fn change_sockets(&self, poller: &Poller, nonblocking: bool) {
        let Some((both, _)) = self.both.as_ref().filter(|_| self.events.signal().is_own()) else { return };
        let _changing = self.changing.lock();
        let wanted = self.wants_sockets(nonblocking);
        if self.sockets.swap(wanted, Ordering::Relaxed) != wanted {
            // If the set cannot be changed, the background thread drives the device.
            let _ = if wanted {
                watch(both, poller.descriptor())
            } else {
                epoll::delete(both, poller.descriptor()).map_err(io::Error::from)
            };
        }
    }

    /// A thread is about to wait for an event: the sockets are for it.
    pub(super) fn expect(&self, poller: &Poller) {
        if self.vain.load(Ordering::Relaxed) != 0 && self.vain.swap(0, Ordering::Relaxed) >= VAIN_MAX {
            self.change_sockets(poller, self.is_nonblocking());
        }
    }

    fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Relaxed) != 0
    }

    /// A completion queue is armed whose events come here.
    pub(super) fn arm(&self, poller: &Poller) {
        self.armed.fetch_add(1, Ordering::Relaxed);
        self.expect(poller);
    }

    /// It is not armed any more.
    pub(super) fn disarm(&self) {
        self.armed.fetch_sub(1, Ordering::Relaxed);
    }

    /// The descriptor for the program.
    pub(super) fn descriptor(&self) -> RawFd {
        self.both.as_ref().map_or_else(|| self.events.signal().as_raw_fd(), |(both, _)| both.as_raw_fd())
    }

    /// Adds an event.
    pub(super) fn push(&self, event: T) {
        self.events.push(event);
    }

    /// Whether there is no event.
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Removes the events for which `chosen` is true.
    pub(super) fn remove(&self, chosen: impl Fn(&T) -> bool) -> Vec<T> {
        self.events.remove(chosen)
    }

    /// Without a limit.
    #[cfg(test)]
    fn next(&self, poller: Option<&Poller>, taken: impl Fn(&T)) -> Result<T, c_int> {
        self.next_within(poller, None, taken)
    }

    /// Takes the next event. If there is none, drives the device and waits, unless the descriptor is in non-blocking mode. For a child of
    /// the process that has made the queue none comes any more: the device and the descriptor are its parent's.
    /// `ETIMEDOUT` if there is none within a limit, or somewhat earlier.
    pub(super) fn next_within(
        &self,
        poller: Option<&Poller>,
        limit: Option<Duration>,
        taken: impl Fn(&T),
    ) -> Result<T, c_int> {
        if !self.events.signal().is_own() {
            return self.events.pop(&taken).ok_or(libc::ENODEV);
        }
        let expect = || poller.map_or((), |poller| self.expect(poller));
        if let Some(event) = self.events.pop(&taken) {
            expect();
            return Ok(event);
        }
        loop {
            // `sockets` tells the last known mode of the descriptor; saves an fcntl.
            let drives = self.sockets.load(Ordering::Relaxed);
            let look = |poller: &Poller| self.events.drive(|| poller.drive_woken(), &taken).1;
            if let Some(event) = poller.filter(|_| drives).and_then(look) {
                expect();
                return Ok(event);
            }
            if drives {
                self.vain.fetch_add(1, Ordering::Relaxed);
            }
            if self.look_for_sockets(poller) {
                return poller
                    .filter(|_| !drives)
                    .map_or_else(|| self.events.pop(&taken), look)
                    .ok_or(libc::EAGAIN);
            }
            let wait = || match poller {
                Some(poller) => {
                    let signal = self.events.signal().as_fd();
                    poller.wait_or(signal, limit, || !self.events.is_empty()).map(drop)
                }
                None => {
                    let mut entry = [PollFd::new(self.events.signal(), PollFlags::IN)];
                    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
                    poll(&mut entry, limit.as_ref()).map(drop).map_err(io::Error::from)
                }
            };
            match self.events.drive(wait, &taken) {
                (_, Some(event)) => return Ok(event),
                (waited, None) => waited.map_err(|error| errno(&error))?,
            }
            if limit.is_some() {
                return Err(libc::ETIMEDOUT);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_nonblocking<T>(inbox: &Inbox<T>) {
        // SAFETY: this command takes no pointer.
        assert_eq!(unsafe { libc::fcntl(inbox.descriptor(), libc::F_SETFL, libc::O_NONBLOCK) }, 0);
    }

    #[test]
    fn a_descriptor_that_wakes_in_vain_leaves_the_sockets_to_others_until_a_thread_waits() {
        let poller = Poller::new().unwrap();
        let inbox = Inbox::<u32>::new(true).unwrap();
        set_nonblocking(&inbox);
        let wakes = || {
            // What is in the set is what its descriptor is readable for.
            inbox.look_for_sockets(Some(&poller));
            inbox.sockets.load(Ordering::Relaxed)
        };
        let asks = |count: u32| {
            for _ in 0..count {
                assert_eq!(inbox.next(Some(&poller), |_| {}), Err(libc::EAGAIN));
            }
        };
        assert!(wakes());
        asks(VAIN_MAX - 1);
        assert!(wakes(), "not yet");
        asks(1);
        assert!(!wakes());
        inbox.push(1);
        assert_eq!(inbox.next(Some(&poller), |_| {}), Ok(1));
        assert!(wakes(), "there are events");
        asks(VAIN_MAX);
        assert!(!wakes());
        inbox.arm(&poller);
        assert!(wakes(), "a completion queue is armed");
        asks(2 * VAIN_MAX);
        assert!(wakes(), "it still is");
        inbox.disarm();
        assert!(!wakes());
        inbox.expect(&poller);
        assert!(wakes(), "a connection is being made or ended");
    }

    #[test]
    fn who_drives_for_a_queue_is_not_signalled_what_is_left_is() {
        let inbox = Inbox::<u32>::new(false).unwrap();
        let is_readable = || {
            let mut entry = [PollFd::new(inbox.events.signal(), PollFlags::IN)];
            poll(&mut entry, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
        };
        let add = |numbers: &[u32]| {
            for number in numbers {
                inbox.push(*number);
            }
            is_readable()
        };
        assert_eq!(inbox.events.drive(|| add(&[1]), |_| {}), (false, Some(1)));
        assert!(!is_readable(), "none is left");
        assert_eq!(inbox.events.drive(|| add(&[2, 3]), |_| {}), (false, Some(2)));
        assert!(is_readable(), "another thread may take the second");
        assert_eq!(inbox.events.pop(|_| {}), Some(3));
        assert!(!is_readable());
        let elsewhere = || std::thread::scope(|scope| scope.spawn(|| add(&[4])).join().unwrap());
        assert_eq!(inbox.events.drive(elsewhere, |_| {}), (true, Some(4)), "another thread signals");
        assert!(!is_readable());
    }

    #[test]
    fn each_event_is_an_edge_and_the_descriptor_stays_readable_while_there_are_events() {
        let inbox = Inbox::<u32>::new(false).unwrap();
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let mut event = libc::epoll_event { events: (libc::EPOLLIN | libc::EPOLLET) as u32, u64: 0 };
        let fd = inbox.descriptor();
        // SAFETY: the event is there while the call lasts.
        assert_eq!(unsafe { libc::epoll_ctl(set.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event) }, 0);
        let edge = || {
            let mut event = libc::epoll_event { events: 0, u64: 0 };
            // SAFETY: room for one event.
            unsafe { libc::epoll_wait(set.as_raw_fd(), &raw mut event, 1, 0) == 1 }
        };
        assert!(!edge());
        for number in 0..3 {
            inbox.push(number);
            assert!(edge(), "event {number}");
            assert!(!edge(), "once");
        }
        for number in 0..3 {
            assert_eq!(inbox.next(None, |_| {}), Ok(number));
        }
        set_nonblocking(&inbox);
        assert_eq!(inbox.next(None, |_| {}), Err(libc::EAGAIN));
        inbox.push(3);
        assert!(edge(), "after all were taken");
    }
}
