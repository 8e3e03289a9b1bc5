//! Calls that wait on a socket, and their end when another thread closes it.
//!
//! On Windows such a call fails with `WSAEINTR`. On Linux it would go on, and the socket with it. So the calls on each descriptor are
//! counted: who closes a socket that has some shuts it down, which wakes them, and waits until they have left.

mod count;
mod sync {
    pub(super) use std::sync::atomic::{AtomicU32, Ordering};
}

use crate::io::threads::ForkLock;
use count::Count;
use rustix::time::Timespec;
use smallvec::SmallVec;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use sync::AtomicU32;

const CHUNK: usize = 1 << 10;
type Chunk = [Count; CHUNK];

/// By descriptor, in chunks allocated on demand.
static COUNTS: [OnceLock<Box<Chunk>>; 1 << 10] = [const { OnceLock::new() }; 1 << 10];

/// The calls of a process are not those of its forked child.
static OF_PARENT: ForkLock<()> = ForkLock::new((), |()| {
    COUNTS.iter().filter_map(OnceLock::get).flat_map(|chunk| &**chunk).for_each(Count::reset);
});

/// The count of a descriptor; `None` for what is none.
fn count(fd: RawFd) -> Option<&'static Count> {
    let fd = usize::try_from(fd).ok()?;
    let chunk = COUNTS.get(fd / CHUNK)?.get_or_init(|| {
        drop(OF_PARENT.lock());
        Box::new([const { Count(AtomicU32::new(0)) }; CHUNK])
    });
    Some(&chunk[fd % CHUNK])
}

/// Time between two looks, without the C library, whose sleep is a cancellation point.
fn nap() {
    const TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000 };
    let _ = rustix::thread::nanosleep(&TIME);
}

/// How long a call may take to end. It takes longer only if its thread is stopped, or is the very thread that closes the socket, in the
/// handler of a signal.
const LONGEST: Duration = Duration::from_secs(1);

/// How long the shutdown of receiving has to end the calls: it sends the peer nothing, so that a close may still reset the connection.
/// It does not end those that send.
const RECEIVING: Duration = Duration::from_millis(20);

/// A call on a socket, until dropped.
pub(super) struct Call(Option<&'static Count>);

impl Call {
    /// Waits while another thread closes the socket of the descriptor, which is another one's or nobody's afterwards.
    #[inline]
    pub(super) fn on(fd: RawFd) -> Call {
        loop {
            match Call::unless_closing(fd) {
                Some(call) => return call,
                None => nap(),
            }
        }
    }

    #[inline]
    fn unless_closing(fd: RawFd) -> Option<Call> {
        let count = count(fd);
        count.is_none_or(Count::enter).then(|| Call(count))
    }

    /// One call on several sockets. Who waits for the close of one keeps none of the others: its thread may wait for this one.
    pub(super) fn on_each(fds: impl Iterator<Item = RawFd> + Clone) -> SmallVec<[Call; 64]> {
        loop {
            match fds.clone().map(Call::unless_closing).collect() {
                Some(calls) => return calls,
                None => nap(),
            }
        }
    }

    /// Whether another thread closes the socket, which is shut down: the call fails.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.0.is_some_and(Count::is_closing)
    }
}

impl Drop for Call {
    #[inline]
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            count.leave();
        }
    }
}

/// The close of a descriptor, on which no call begins until this is dropped.
pub(super) struct Closing {
    fd: RawFd,
    count: Option<&'static Count>,
}

impl Closing {
    /// Waits while another thread closes the socket that has, or had, the descriptor.
    pub(super) fn of(fd: RawFd) -> Closing {
        let count = count(fd);
        while !count.is_none_or(Count::close) {
            nap();
        }
        Closing { fd, count }
    }

    /// Ends the calls on the socket.
    pub(super) fn end_calls(&self) {
        let begin = Instant::now();
        while self.count.is_some_and(Count::has_calls) && begin.elapsed() < LONGEST {
            let how = if begin.elapsed() < RECEIVING { libc::SHUT_RD } else { libc::SHUT_RDWR };
            // Again and again: one of the calls may be about to begin.
            // SAFETY: takes no pointer. It wakes whoever waits, even where it fails because there is no connection.
            unsafe { libc::shutdown(self.fd, how) };
            nap();
        }
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        if let Some(count) = self.count {
            count.open();
        }
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
pub(super) mod tests;
