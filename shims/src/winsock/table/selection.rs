//! The network events that a program has selected on a socket, and the record of those that have occurred.
//!
//! Each event is recorded once, and again only after its re-enabling call (for `FD_READ` a receive). Readiness is checked
//! whenever the kernel reports a change, and after each such call.

use super::{CONNECT_FAILED, CONNECTING, Known, known};
use crate::error::*;
use crate::io::signal::Signal;
use crate::io::sys::Deadline;
use crate::io::{Attachment, File};
use crate::winsock::system::{self, has_peer, int_option};
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

/// The number of sockets with selected events. Usually 0, and then calls check nothing else.
static SELECTIONS: AtomicUsize = AtomicUsize::new(0);

/// The selection of a socket.
#[derive(Default)]
pub(in crate::winsock) struct Selected(Mutex<Option<Selection>>);

struct Selection {
    mask: i32,
    signal: Arc<Signal>,
    attachment: Attachment,
    /// The network event record: what `WSAEnumNetworkEvents` returns next.
    record: NetworkEvents,
    /// Recorded and not re-enabled.
    told: i32,
    connected: bool,
}

impl Selection {
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
                socket.unmark(CONNECTING);
                socket.error.store(errno, Ordering::Relaxed);
                now.events |= FD_CONNECT;
                now.errors[bit(FD_CONNECT)] = errno_to_wsa(errno) as i32;
                if errno != 0 {
                    return now;
                }
                socket.became_connected(fd);
            } else if !has_peer(fd) {
                return now;
            }
            self.connected = true;
        }
        let waiting = bytes_waiting(fd);
        if is(libc::POLLIN) && (waiting > 0 || !socket.stream) {
            now.events |= FD_READ;
        }
        if is(libc::POLLOUT) && !is(libc::POLLERR | libc::POLLHUP) {
            now.events |= FD_WRITE;
        }
        if is(libc::POLLPRI) {
            now.events |= FD_OOB;
        }
        if socket.stream && is(libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR) && waiting == 0 {
            now.events |= FD_CLOSE;
            now.errors[bit(FD_CLOSE)] = if is(libc::POLLERR) { WSAECONNRESET as i32 } else { 0 };
        }
        now
    }

    fn look(&mut self, socket: &Known) {
        let possible = self.possible(socket);
        let new = possible.events & self.mask & !self.told;
        if new == 0 {
            return;
        }
        self.told |= new;
        self.record.events |= new;
        for (kind, error) in possible.errors.iter().enumerate() {
            if new & 1 << kind != 0 {
                self.record.errors[kind] = *error;
            }
        }
        self.signal.set();
    }
}

/// The bytes that a receive would find.
pub(in crate::winsock) fn bytes_waiting(fd: RawFd) -> i32 {
    system::int_ioctl(fd, libc::FIONREAD as u32).unwrap_or(0)
}

impl Selected {
    /// Handles a change of the socket.
    pub(in crate::winsock) fn look(&self, fd: RawFd) {
        if SELECTIONS.load(Ordering::SeqCst) == 0 {
            return;
        }
        if let Some(selection) = &mut *self.0.lock()
            && let Some(socket) = known(fd)
        {
            selection.look(&socket);
        }
    }

    /// Selects events, in place of earlier ones.
    pub(in crate::winsock) fn select(&self, file: &File, socket: &Known, signal: Arc<Signal>, mask: i32) {
        let attachment = file.attach(&signal);
        let record = NetworkEvents::default();
        let selection = Selection { mask, signal, attachment, record, told: 0, connected: false };
        let former = {
            let mut selected = self.0.lock();
            let former = selected.take();
            if former.is_none() {
                SELECTIONS.fetch_add(1, Ordering::SeqCst);
            }
            // Once others find it: who takes the edge of what comes later looks again.
            selected.insert(selection).look(socket);
            former
        };
        if let Some(former) = former {
            file.detach(&former.signal, &former.attachment);
        }
    }

    /// Takes the record since the last call, if events are selected; resets the event.
    pub(in crate::winsock) fn take(&self, signal: Option<&Signal>) -> Option<NetworkEvents> {
        let mut selection = self.0.lock();
        let selection = selection.as_mut()?;
        // Atomic with the reset, so that later events set it again.
        if let Some(signal) = signal {
            signal.reset();
        }
        Some(std::mem::take(&mut selection.record))
    }

    /// Ends the selection.
    pub(in crate::winsock) fn clear(&self, file: &File) {
        if let Some(former) = self.0.lock().take() {
            file.detach(&former.signal, &former.attachment);
            SELECTIONS.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn is_active(&self) -> bool {
        self.0.lock().is_some()
    }
}

/// Re-enables events.
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
        && let Some(selection) = &mut *driver.selected.0.lock()
    {
        selection.told &= !events;
        selection.look(&socket);
    }
}

/// The event and the network events that are selected on a socket.
pub(in crate::winsock) fn of(fd: RawFd) -> Option<(Arc<Signal>, i32)> {
    if SELECTIONS.load(Ordering::SeqCst) == 0 {
        return None;
    }
    let socket = known(fd)?;
    let selection = socket.existing_driver()?.selected.0.lock();
    selection.as_ref().map(|selection| (selection.signal.clone(), selection.mask))
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
