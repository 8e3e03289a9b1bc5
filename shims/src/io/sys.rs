//! The system calls of blocking: epoll, eventfd and futex. Waits do not use the C library's functions, which are cancellation
//! points.

pub(crate) use crate::futex::Deadline;

use super::sync::AtomicU32;
use super::threads::outside;
pub(crate) use super::threads::thread_id;
use crate::cancellation::put_off;
use crate::futex;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Sleeps while `word` holds `expected`, until a wake-up or the deadline; may return spuriously.
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, deadline: Deadline) {
    outside(|| futex::wait(word, expected, deadline));
}

/// Wakes one thread that sleeps on `word`.
pub(crate) fn futex_wake(word: &AtomicU32) {
    futex::wake(word, 1);
}

/// Polls without yielding the processor; only once on a machine with one processor.
pub(crate) fn spin_until<R>(how_long: Duration, mut look: impl FnMut() -> Option<R>) -> Option<R> {
    static ALONE: OnceLock<bool> = OnceLock::new();
    // It reads files.
    let processors = || put_off(std::thread::available_parallelism);
    if *ALONE.get_or_init(|| processors().is_ok_and(|processors| processors.get() == 1)) {
        return look();
    }
    let end = Instant::now() + how_long;
    let mut pause = 1;
    loop {
        let found = look();
        if found.is_some() {
            return found;
        }
        // With growing pauses, as polling slows the thread that writes the cache line.
        (0..pause).for_each(|_| std::hint::spin_loop());
        if pause < 8 {
            pause *= 2;
        } else if Instant::now() > end {
            return None;
        }
    }
}

/// Whether the kernel has a thread of this process neither running nor ready to run.
pub(crate) fn is_asleep(thread: u32) -> bool {
    // The state is the letter after the name, which may itself contain anything, in parentheses.
    match put_off(|| std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"))) {
        Ok(stat) => !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('R')),
        Err(_) => true,
    }
}

/// A descriptor whose close is not a cancellation point, unlike that of `OwnedFd`. It is the C library that closes it, too: so
/// ThreadSanitizer knows that whoever gets the same number later has another one.
struct Descriptor(ManuallyDrop<OwnedFd>);

impl Descriptor {
    fn new(fd: OwnedFd) -> Descriptor {
        Descriptor(ManuallyDrop::new(fd))
    }
}

/// A new descriptor from the C library. Its functions are used here, not direct system calls, so that tests can make them fail.
fn new_descriptor(fd: RawFd) -> io::Result<Descriptor> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, and owned by nobody else.
    Ok(Descriptor::new(unsafe { OwnedFd::from_raw_fd(fd) }))
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: it is closed nowhere else, and not used again.
        put_off(|| unsafe { ManuallyDrop::drop(&mut self.0) });
    }
}

/// An eventfd used as a flag that epoll can see.
pub(crate) struct EventFd(Descriptor);

impl EventFd {
    pub(crate) fn new() -> io::Result<EventFd> {
        // SAFETY: no memory is involved.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        Ok(EventFd(new_descriptor(fd)?))
    }

    pub(crate) fn set(&self) {
        // Fails only if the counter is full, that is, set.
        let _ = rustix::io::write(&*self.0.0, &1u64.to_ne_bytes());
    }

    pub(crate) fn clear(&self) {
        // Fails only if the flag is clear.
        let _ = rustix::io::read(&*self.0.0, &mut [0; size_of::<u64>()]);
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.0.0.as_raw_fd()
    }
}

/// Sleeps until one of `fds` is readable or the deadline has come; a signal ends it early. Returns which are readable, by index.
pub(crate) fn sleep_on(fds: &[RawFd], deadline: Deadline) -> Vec<usize> {
    // SAFETY: used for this call alone. One that is not open is reported as such.
    let borrowed = |fd: &RawFd| unsafe { BorrowedFd::borrow_raw(*fd) };
    let borrowed: Vec<_> = fds.iter().map(borrowed).collect();
    let mut entries: Vec<_> = borrowed.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let left = deadline.remaining().and_then(|left| Timespec::try_from(left).ok());
    match outside(|| poll(&mut entries, left.as_ref())) {
        Ok(_) => (0..fds.len()).filter(|at| !entries[*at].revents().is_empty()).collect(),
        Err(Errno::INTR) => Vec::new(),
        // More than the limit of open descriptors has become, or no memory: whoever waits looks after each of them.
        Err(_) => {
            // Not the C library's sleep, which is a cancellation point.
            let _ = outside(|| rustix::thread::nanosleep(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 }));
            (0..fds.len()).collect()
        }
    }
}

/// The ready descriptors of an [`Epoll`].
pub(crate) struct Ready {
    events: [MaybeUninit<epoll::Event>; 16],
    /// Their number.
    len: usize,
}

impl Ready {
    pub(crate) fn new() -> Ready {
        Ready { events: [const { MaybeUninit::uninit() }; 16], len: 0 }
    }

    /// The keys of the ready descriptors, with their events.
    pub(crate) fn found(&self) -> impl Iterator<Item = (u64, u32)> {
        self.events[..self.len].iter().map(|event| {
            // SAFETY: the kernel has filled so many.
            let event = unsafe { event.assume_init_ref() };
            ({ event.data }.u64(), { event.flags }.bits())
        })
    }
}

/// An epoll set with a built-in flag, the kick, that brings a thread out of [`Epoll::wait`].
pub(crate) struct Epoll {
    epoll: Descriptor,
    kick: Arc<EventFd>,
}

impl Epoll {
    /// The key under which the kick reports itself.
    pub(crate) const KICK: u64 = u64::MAX;

    pub(crate) fn new() -> io::Result<Epoll> {
        // SAFETY: no memory is involved.
        let epoll = new_descriptor(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let set = Epoll { epoll, kick: Arc::new(EventFd::new()?) };
        set.watch(set.kick.fd(), Epoll::KICK, libc::EPOLLIN as u32)?;
        Ok(set)
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.epoll.0.as_raw_fd()
    }

    /// Watches `fd` for `events`.
    pub(crate) fn watch(&self, fd: RawFd, key: u64, events: u32) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, key, events)
    }

    /// Changes the watched events of `fd`. Present ones are reported.
    pub(crate) fn watch_again(&self, fd: RawFd, key: u64, events: u32) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, key, events)
    }

    fn control(&self, operation: i32, fd: RawFd, key: u64, events: u32) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: key };
        // SAFETY: reads the event. A descriptor that is closed is refused.
        match unsafe { libc::epoll_ctl(self.fd(), operation, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(match io::Error::last_os_error() {
                // ENOSPC here means the limit of max_user_watches (epoll(7)), not a full disk; EINVAL that of a descriptor in
                // too many sets, which the kernel counts along all paths.
                error if matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EINVAL)) => {
                    io::Error::from_raw_os_error(libc::ENOBUFS)
                }
                error => error,
            }),
        }
    }

    /// Stops watching `fd`. A closed descriptor has left the set by itself.
    pub(crate) fn unwatch(&self, fd: RawFd) {
        // SAFETY: used for this call alone. One that is not in the set is refused.
        let _ = epoll::delete(&*self.epoll.0, unsafe { BorrowedFd::borrow_raw(fd) });
    }

    /// Sleeps until something is ready, the kick included, or the deadline; a signal ends it early.
    pub(crate) fn wait(&self, ready: &mut Ready, deadline: Deadline) {
        // In whole milliseconds, for old kernels, rounded up so that a wait does not return early.
        let timeout = |left: Duration| {
            let millis = left.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as i64;
            Timespec { tv_sec: millis / 1000, tv_nsec: (millis % 1000 * 1_000_000) as _ }
        };
        let timeout = deadline.remaining().map(timeout);
        outside(|| self.collect(ready, timeout.as_ref()));
    }

    /// Returns what is ready now.
    pub(crate) fn poll(&self, ready: &mut Ready) {
        self.collect(ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    }

    fn collect(&self, ready: &mut Ready, timeout: Option<&Timespec>) {
        ready.len =
            epoll::wait(&*self.epoll.0, &mut ready.events, timeout).map_or(0, |(found, _)| found.len());
    }

    /// Setting it ends a sleep in the set.
    pub(crate) fn kick(&self) -> &Arc<EventFd> {
        &self.kick
    }
}
