//! Calls that are not overlapped, on a socket whose overlapped requests pend: they come after these.

use super::{Direction, Driver, End};
use crate::error::{WSAEINTR, WSAESHUTDOWN, WSAETIMEDOUT, WSAEWOULDBLOCK, errno_to_wsa};
use crate::io::sys::Deadline;
use crate::winsock::calls::Call;
use crate::winsock::{system, table, wire};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The longest sleep of a thread that waits for the socket and for the end of requests at once.
const SLICE: Duration = Duration::from_millis(20);

/// How many sockets have, or once had, a request that pends. While there is none, a call needs no look at the table.
static PENDED: AtomicUsize = AtomicUsize::new(0);

/// Waits until the requests that pend in this direction have completed, so that their bytes and those of the caller do not mix.
/// Fails if output has ended, and if a call that must not wait would have to: `may_wait` is false, or the socket is non-blocking.
#[inline]
pub(in crate::winsock) fn after_pending(
    fd: RawFd,
    direction: Direction,
    may_wait: bool,
    call: &Call,
) -> Result<(), u32> {
    if PENDED.load(Ordering::Relaxed) == 0 { Ok(()) } else { wait(fd, direction, may_wait, call) }
}

#[cold]
fn wait(fd: RawFd, direction: Direction, may_wait: bool, call: &Call) -> Result<(), u32> {
    let Some(socket) = table::known(fd) else { return Ok(()) };
    let Some(driver) = socket.existing_driver() else { return Ok(()) };
    let mut queue = driver.queue(direction).lock();
    if queue.end != End::None {
        return Err(WSAESHUTDOWN);
    }
    // What the socket is ready for is theirs.
    driver.run(&mut queue);
    // Accepts and connects transfer nothing: what the call says beside them is the kernel's to say.
    if !queue.pending.first.as_ref().is_some_and(|first| first.operation.transfers()) {
        return Ok(());
    }
    drop(queue);
    if !may_wait || !system::is_blocking(fd) {
        return Err(WSAEWOULDBLOCK);
    }
    let limit = match direction {
        Direction::In => libc::SO_RCVTIMEO,
        Direction::Out => libc::SO_SNDTIMEO,
    };
    driver.drain(direction, call, wire::limit(fd, limit))
}

impl Driver {
    /// A request is about to pend.
    #[inline]
    pub(super) fn pends(&self) {
        if !self.has_pended.load(Ordering::Relaxed) && !self.has_pended.swap(true, Ordering::Relaxed) {
            PENDED.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until no request pends in this direction.
    pub(super) fn drain(&self, direction: Direction, call: &Call, deadline: Deadline) -> Result<(), u32> {
        let events = match direction {
            Direction::In => libc::POLLIN,
            Direction::Out => libc::POLLOUT,
        };
        loop {
            let mut queue = self.queue(direction).lock();
            queue.ready = true;
            self.run(&mut queue);
            if queue.closed || call.is_over() {
                return Err(WSAEINTR);
            }
            if queue.pending.is_empty() {
                return Ok(());
            }
            drop(queue);
            if deadline.passed() {
                return Err(WSAETIMEDOUT);
            }
            // Another thread may have been served, or have cancelled the requests.
            let slice = deadline.remaining().map_or(SLICE, |left| left.min(SLICE));
            system::poll(self.fd, events, Deadline::after(slice)).map_err(errno_to_wsa)?;
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if *self.has_pended.get_mut() {
            PENDED.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
