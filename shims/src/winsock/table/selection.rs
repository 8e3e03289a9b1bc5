//! The network events that a program has selected on a socket, and the record of those that have occurred.
//!
//! Each event is recorded once, and again only after its re-enabling call (for `FD_READ` a receive). Readiness is checked
//! whenever the kernel reports a change, and after each such call.

use super::{CONNECT_FAILED, CONNECTED_ITSELF, CONNECTING, Known, RECEIVING_SHUT, RESET, known};
use crate::cancellation::put_off;
use crate::error::*;
use crate::io::signal::Signal;
use crate::io::sys::Deadline;
use crate::io::{Attachment, File};
use crate::winsock::system::{self, has_peer, int_option};
use crate::winsock::wire::peer_has_ended;
use parking_lot::Mutex;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `FD_READ`.
pub const FD_READ: i32 = 1;
/// `FD_WRITE`.
pub const FD_WRITE: i32 = 2;
/// `FD_OOB`.
pub const FD_OOB: i32 = 4;
/// `FD_ACCEPT`.
pub const FD_ACCEPT: i32 = 8;
/// `FD_CONNECT`.
pub const FD_CONNECT: i32 = 16;
/// `FD_CLOSE`.
pub const FD_CLOSE: i32 = 32;
/// `FD_ADDRESS_LIST_CHANGE`.
pub const FD_ADDRESS_LIST_CHANGE: i32 = 512;

/// `FD_MAX_EVENTS`.
const KINDS: usize = 10;
/// The index of an error in the list: the number of the bit.
const fn bit(event: i32) -> usize {
    event.trailing_zeros() as usize
}

/// `WSANETWORKEVENTS`.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct NetworkEvents {
    /// `lNetworkEvents`.
    pub events: i32,
    /// `iErrorCode`.
    pub errors: [i32; KINDS],
}

impl NetworkEvents {
    /// The kinds of events that have occurred, with their errors.
    pub(in crate::winsock) fn kinds(&self) -> impl Iterator<Item = (usize, i32)> {
        let kinds = self.errors.into_iter().enumerate();
        kinds.filter(|(kind, _)| self.events & 1 << kind != 0)
    }

    /// Adds some events of others.
    fn add(&mut self, events: i32, others: &NetworkEvents) {
        let added = NetworkEvents { events, ..*others };
        added.kinds().for_each(|(kind, error)| self.errors[kind] = error);
        self.events |= events;
    }
}

/// The number of sockets on which events have ever been selected. Usually 0, and then calls check nothing else.
static SELECTIONS: AtomicUsize = AtomicUsize::new(0);

/// The selection of a socket, and what has occurred there.
#[derive(Default)]
pub(in crate::winsock) struct Selected(Mutex<State>);

/// As on Windows, only the selection itself is a new one with each call.
#[derive(Default)]
struct State {
    selection: Option<Selection>,
    /// It has had one.
    counts: bool,
    /// The network event record: what `WSAEnumNetworkEvents` returns next, as far as it is selected then.
    record: NetworkEvents,
    /// Recorded and not re-enabled.
    told: i32,
    /// Those of them that are told again when something new arrives, as they were selected anew. The kernel reports what has arrived before
    /// once more beside room to send, so one may be told again for that.
    rearmed: i32,
    connected: bool,
}

/// Events of what arrives.
const ARRIVALS: i32 = FD_READ | FD_ACCEPT | FD_OOB;

struct Selection {
    mask: i32,
    signal: Arc<Signal>,
    attachment: Attachment,
}

impl State {
    /// The present readiness of the socket, with the error of each event.
    fn possible(&mut self, socket: &Known) -> NetworkEvents {
        let fd = socket.fd;
        let mut now = NetworkEvents::default();
        let wanted = libc::POLLIN | libc::POLLOUT | libc::POLLPRI | libc::POLLRDHUP;
        let Ok(ready) = system::poll(fd, wanted, Deadline::Now) else { return now };
        let is = |events: i16| ready & events != 0;
        if socket.stream && int_option(fd, libc::SO_ACCEPTCONN) == Ok(1) {
            now.events = if is(libc::POLLIN) { FD_ACCEPT } else { 0 };
            return now;
        }
        let connecting = socket.is_marked(CONNECTING);
        if socket.stream && (connecting || !self.connected) {
            self.connected = false;
            if connecting {
                if !is(libc::POLLOUT | libc::POLLERR | libc::POLLHUP) {
                    return now;
                }
                let errno = int_option(fd, libc::SO_ERROR).unwrap_or_else(|errno| errno);
                if let Err(errno) = socket.connecting_ended(errno) {
                    socket.error.store(errno, Ordering::Relaxed);
                    socket.mark(CONNECT_FAILED);
                    now.events = FD_CONNECT;
                    now.errors[bit(FD_CONNECT)] = errno_to_wsa(errno) as i32;
                    return now;
                }
            } else if !has_peer(fd) && !socket.is_marked(RESET) {
                return now;
            }
            self.connected = true;
        }
        if socket.is_marked(CONNECTED_ITSELF) {
            now.events |= FD_CONNECT;
        }
        let waiting = bytes_waiting(fd);
        // A receive tells that a datagram was refused; there is room all the same.
        let refused = !socket.stream && is(libc::POLLERR);
        if is(libc::POLLIN) && (waiting > 0 || !socket.stream) || refused {
            now.events |= FD_READ;
        }
        if is(libc::POLLOUT) && (refused || !is(libc::POLLERR | libc::POLLHUP)) {
            now.events |= FD_WRITE;
        }
        if is(libc::POLLPRI) {
            now.events |= FD_OOB;
        }
        // What the program itself has shut down looks like the peer's end.
        // Who has taken the error from the kernel has left the mark.
        let reset = is(libc::POLLERR) || socket.is_marked(RESET);
        let ended = reset
            || is(libc::POLLRDHUP | libc::POLLHUP)
                && (!socket.is_marked(RECEIVING_SHUT) || peer_has_ended(fd, is(libc::POLLHUP)));
        // Nothing is received any more after that: what waits does not come first.
        if socket.stream && ended && (waiting == 0 || socket.is_marked(RECEIVING_SHUT)) {
            now.events |= FD_CLOSE;
            now.errors[bit(FD_CLOSE)] = if reset { WSAECONNRESET as i32 } else { 0 };
        }
        now
    }

    /// Records what has become possible, and sets the event if there is something to tell.
    fn look(&mut self, socket: &Known) {
        let Some(mask) = self.selection.as_ref().map(|selection| selection.mask) else { return };
        let possible = self.possible(socket);
        let new = possible.events & mask & !self.told;
        self.told |= new;
        self.record.add(new, &possible);
        if new != 0 {
            self.signal();
        }
    }

    /// Sets the event if the record has something that is selected.
    fn signal(&self) {
        if let Some(selection) = &self.selection
            && self.record.events & selection.mask != 0
        {
            selection.signal.set();
        }
    }
}

/// The bytes that a receive would find.
pub(in crate::winsock) fn bytes_waiting(fd: RawFd) -> i32 {
    system::int_ioctl(fd, libc::FIONREAD as u32).unwrap_or(0)
}

impl Selected {
    /// Handles a change of the socket: `arrived` says that something may have.
    pub(in crate::winsock) fn look(&self, fd: RawFd, arrived: bool) {
        if SELECTIONS.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut state = self.0.lock();
        if state.selection.is_some()
            && let Some(socket) = known(fd)
        {
            if arrived {
                state.told &= !std::mem::take(&mut state.rearmed);
            }
            state.look(&socket);
        }
    }

    /// Selects events, in place of earlier ones. What was told before is not told again until its call, or until more arrives.
    pub(in crate::winsock) fn select(&self, file: &File, socket: &Known, signal: Arc<Signal>, mask: i32) {
        let attachment = file.attach(&signal);
        let selection = Selection { mask, signal, attachment };
        let former = {
            let mut state = self.0.lock();
            if !std::mem::replace(&mut state.counts, true) {
                SELECTIONS.fetch_add(1, Ordering::SeqCst);
            }
            let former = state.selection.replace(selection);
            state.rearmed = state.told & ARRIVALS;
            // Once others find it: who takes the edge of what comes later looks again.
            state.look(socket);
            state.signal();
            former
        };
        detach(file, former);
    }

    /// Takes what of the record is selected; resets the event.
    pub(in crate::winsock) fn take(&self, signal: Option<&Signal>) -> NetworkEvents {
        let mut state = self.0.lock();
        // Atomic with the reset, so that later events set it again.
        if let Some(signal) = signal {
            signal.reset();
        }
        let mask = state.selection.as_ref().map_or(0, |selection| selection.mask);
        let told = NetworkEvents { events: state.record.events & mask, ..state.record };
        state.record.events &= !mask;
        told
    }

    /// Records an event that is no readiness of the socket.
    pub(in crate::winsock) fn occurred(&self, event: i32) {
        let mut state = self.0.lock();
        state.record.add(event, &NetworkEvents::default());
        state.signal();
    }

    /// Ends the selection.
    pub(in crate::winsock) fn clear(&self, file: &File) {
        let former = self.0.lock().selection.take();
        detach(file, former);
    }

    /// Forgets what was told: the descriptor has another socket now.
    pub(in crate::winsock) fn renew(&self) {
        let mut state = self.0.lock();
        *state = State { selection: state.selection.take(), counts: state.counts, ..State::default() };
    }

    /// The socket is gone.
    pub(in crate::winsock) fn leave(&self, file: &File) {
        self.clear(file);
        if std::mem::take(&mut self.0.lock().counts) {
            SELECTIONS.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn is_active(&self) -> bool {
        self.0.lock().selection.is_some()
    }
}

fn detach(file: &File, former: Option<Selection>) {
    if let Some(former) = former {
        file.detach(&former.signal, &former.attachment);
    }
}

/// Re-enables events: the call has dealt with what was recorded of them.
#[inline]
pub(in crate::winsock) fn enable(fd: RawFd, events: i32) {
    if SELECTIONS.load(Ordering::SeqCst) > 0 {
        enable_known(fd, events);
    }
}

#[cold]
fn enable_known(fd: RawFd, events: i32) {
    if let Some(socket) = known(fd)
        && let Some(driver) = socket.existing_driver()
    {
        let mut state = driver.selected.0.lock();
        state.told &= !events;
        state.rearmed &= !events;
        state.record.events &= !events;
        // For callers that make no such calls of the C library otherwise.
        put_off(|| state.look(&socket));
    }
}

/// The event and the network events that are selected on a socket.
pub(in crate::winsock) fn of(fd: RawFd) -> Option<(Arc<Signal>, i32)> {
    if SELECTIONS.load(Ordering::SeqCst) == 0 {
        return None;
    }
    let socket = known(fd)?;
    let state = socket.existing_driver()?.selected.0.lock();
    state.selection.as_ref().map(|selection| (selection.signal.clone(), selection.mask))
}

/// Whether events are selected on the socket, which makes it non-blocking.
pub(in crate::winsock) fn is_selected(socket: &Known) -> bool {
    socket.existing_driver().is_some_and(|driver| driver.selected.is_active())
}

/// Notes that a `connect` has not ended with its call. The connection may have, and another thread have looked too soon.
pub(in crate::winsock) fn goes_on_connecting(socket: &Known) {
    socket.unmark(CONNECT_FAILED);
    socket.mark(CONNECTING);
    enable(socket.fd, FD_CONNECT | FD_WRITE);
}

#[cfg(test)]
mod tests;
