//! The system calls that blocking is made of: epoll, eventfd and futex.

pub(crate) use crate::futex::Deadline;

use super::sync::AtomicU32;
use crate::futex;
use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Sleeps while `word` holds `expected`, until a wake-up or the deadline; may return spuriously.
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, deadline: Deadline) {
    futex::wait(word, expected, futex::ANYONE, deadline);
}

/// Wakes one thread that sleeps on `word`.
pub(crate) fn futex_wake(word: &AtomicU32) {
    futex::wake(word, 1, futex::ANYONE);
}

/// Looks again and again without giving the processor up; but once on a machine that has only one.
pub(crate) fn spin_until<R>(how_long: Duration, mut look: impl FnMut() -> Option<R>) -> Option<R> {
    static ALONE: OnceLock<bool> = OnceLock::new();
    if *ALONE
        .get_or_init(|| std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1))
    {
        return look();
    }
    let end = Instant::now() + how_long;
    let mut pause = 1;
    loop {
        let found = look();
        if found.is_some() {
            return found;
        }
        // At growing distances, for the other side's sake: it works on what is looked at.
        (0..pause).for_each(|_| std::hint::spin_loop());
        if pause < 8 {
            pause *= 2;
        } else if Instant::now() > end {
            return None;
        }
    }
}

/// The kernel's number of the calling thread.
pub(crate) fn thread_id() -> u32 {
    thread_local! {
        static ID: Cell<u32> = const { Cell::new(0) };
    }
    if ID.get() == 0 {
        // SAFETY: no memory is involved.
        ID.set(unsafe { libc::gettid() } as u32);
    }
    ID.get()
}

/// Whether the kernel has a thread of this process neither running nor ready to run.
pub(crate) fn is_asleep(thread: u32) -> bool {
    // The state is the letter after the name, which may itself contain anything, in parentheses.
    match std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")) {
        Ok(stat) => !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('R')),
        Err(_) => true,
    }
}

fn own(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor just returned by the kernel, owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// An eventfd used as a flag that epoll can see.
pub(crate) struct EventFd(OwnedFd);

impl EventFd {
    pub(crate) fn new() -> io::Result<EventFd> {
        // SAFETY: no memory is involved.
        own(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }).map(EventFd)
    }

    pub(crate) fn set(&self) {
        let one = 1u64;
        // SAFETY: the buffer is eight valid bytes. It can only fail when the counter is full, that is: set.
        unsafe { libc::write(self.fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    pub(crate) fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: the buffer is eight valid bytes. It can only fail when the flag is clear already.
        unsafe { libc::read(self.fd(), (&raw mut count).cast(), size_of::<u64>()) };
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// What an [`Epoll`] found ready.
pub(crate) struct Ready {
    events: [MaybeUninit<libc::epoll_event>; 16],
    /// So many of them are there.
    len: usize,
}

impl Ready {
    pub(crate) fn new() -> Ready {
        Ready { events: [const { MaybeUninit::uninit() }; 16], len: 0 }
    }

    /// The keys of the ready descriptors.
    pub(crate) fn keys(&self) -> impl Iterator<Item = u64> {
        // SAFETY: the kernel has filled so many.
        self.events[..self.len].iter().map(|event| unsafe { event.assume_init_ref() }.u64)
    }
}

/// An epoll set with a built-in flag, the kick, that brings a thread out of [`Epoll::wait`].
pub(crate) struct Epoll {
    epoll: OwnedFd,
    kick: EventFd,
}

impl Epoll {
    /// The key under which the kick reports itself.
    pub(crate) const KICK: u64 = 0;

    pub(crate) fn new() -> io::Result<Epoll> {
        // SAFETY: no memory is involved.
        let epoll = own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let set = Epoll { epoll, kick: EventFd::new()? };
        set.watch(set.kick.fd(), Epoll::KICK, false)?;
        Ok(set)
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }

    /// Watches `fd`; `once`: reports each arrival once, not what is there again and again.
    pub(crate) fn watch(&self, fd: RawFd, key: u64, once: bool) -> io::Result<()> {
        let events = libc::EPOLLIN as u32 | if once { libc::EPOLLET as u32 } else { 0 };
        let mut event = libc::epoll_event { events, u64: key };
        // SAFETY: `event` is valid for the duration of the call.
        match unsafe { libc::epoll_ctl(self.fd(), libc::EPOLL_CTL_ADD, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Stops watching `fd`. One that was closed before has left the set by itself.
    pub(crate) fn unwatch(&self, fd: RawFd) {
        // SAFETY: removal takes no event.
        unsafe { libc::epoll_ctl(self.fd(), libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) };
    }

    /// Sleeps until something is ready, the kick included, or the deadline; a signal ends it early.
    pub(crate) fn wait(&self, ready: &mut Ready, deadline: Deadline) {
        // Rounded up, so that a wait never returns early.
        let millis = |left: Duration| left.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(i32::MAX);
        self.collect(ready, deadline.remaining().map_or(-1, millis));
    }

    /// Looks what is ready now.
    pub(crate) fn poll(&self, ready: &mut Ready) {
        self.collect(ready, 0);
    }

    fn collect(&self, ready: &mut Ready, timeout: i32) {
        let (events, room) = (ready.events.as_mut_ptr(), ready.events.len());
        // Not libc's function, which is a point where threads may be cancelled: that costs more than the rest of it, and
        // our callers' frames cannot be unwound so.
        // SAFETY: the buffer holds `room` events; no signal mask is given.
        let found = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait,
                self.fd(),
                events,
                room,
                timeout,
                ptr::null::<libc::sigset_t>(),
                0,
            )
        };
        ready.len = found.try_into().unwrap_or(0);
    }

    pub(crate) fn kick(&self) {
        self.kick.set();
    }

    pub(crate) fn drain_kick(&self) {
        self.kick.clear();
    }
}

/// Runs `start` with all signals blocked, for threads that inherit this and serve no signals of the program.
pub fn with_signals_blocked<R>(start: impl FnOnce() -> R) -> R {
    // SAFETY: a signal set is plain data, for which zero is a valid value.
    let (mut all, mut former): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
    // SAFETY: both sets are valid for the duration of the calls.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, &mut former);
    }
    let result = start();
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &former, std::ptr::null_mut()) };
    result
}
