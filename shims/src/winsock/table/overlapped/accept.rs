//! `AcceptEx`: the connection replaces the socket of the program's descriptor.

use super::super::{GONE, Known};
use super::{Receive, Step};
use crate::io::STATUS_CANCELLED;
use crate::winsock::address::sockaddr_size;
use crate::winsock::system::{self, Plain};
use crate::winsock::wire::Piece;
use libc::{c_int, sockaddr, sockaddr_storage};
use std::os::fd::RawFd;
use std::ptr::null_mut;
use std::sync::Arc;

/// The caller's buffer: data first, then the local and the remote address.
#[derive(Clone, Copy)]
pub(in crate::winsock) struct Room {
    pub(in crate::winsock) start: *mut u8,
    pub(in crate::winsock) data: usize,
    pub(in crate::winsock) local: usize,
    pub(in crate::winsock) remote: usize,
}

/// The room of an address beyond its size.
const EXTRA: usize = 16;

/// One `AcceptEx`.
pub(in crate::winsock) struct Accept {
    pub(in crate::winsock) into: Arc<Known>,
    pub(in crate::winsock) into_fd: RawFd,
    pub(in crate::winsock) room: Room,
}

// SAFETY: the buffer is the program's, which lets every thread write there until the request has completed.
unsafe impl Send for Accept {}

impl Accept {
    pub(in crate::winsock) fn attempt(&mut self, listener: RawFd) -> Step {
        // The program is closing the socket: the connection is another one's.
        const GONE_AWAY: Step = Step::Done { status: STATUS_CANCELLED, bytes: 0, drained: false };
        if self.into.is_marked(GONE) {
            return GONE_AWAY;
        }
        let (connection, remote) = loop {
            match system::accept(listener) {
                Ok(accepted) => break accepted,
                Err(libc::EAGAIN) => return Step::Blocked,
                // A connection that was aborted already. Linux also reports network errors of the new connection here.
                Err(libc::ECONNABORTED | libc::EPROTO | libc::ENETDOWN | libc::EHOSTUNREACH) => {}
                Err(errno) => return Step::failed(errno),
            }
        };
        let Ok(driver) = self.into.driver() else { return Step::failed(libc::ENOBUFS) };
        let driver = driver.clone();
        let replace = || (!self.into.is_marked(GONE)).then(|| self.into.replace(&connection));
        match driver.renew(replace).flatten() {
            None => return GONE_AWAY,
            Some(Err(errno)) => return Step::failed(errno),
            Some(Ok(())) => drop(connection),
        }
        self.into.was_accepted();
        let local = system::local_address(self.into_fd).unwrap_or(sockaddr_storage::zeroed());
        let Room { start, data, local: local_room, remote: remote_room } = self.room;
        let places = [(data, local_room, local), (data + local_room, remote_room, remote)];
        for (at, room, address) in places {
            // SAFETY: `AcceptEx` has a buffer with this room, until the request has completed.
            unsafe { put_address(start.wrapping_add(at), room, &address) };
        }
        if self.room.data == 0 {
            return Step::done(0);
        }
        // SAFETY: the first part of the buffer of `AcceptEx`, until the request has completed.
        let piece = unsafe { Piece::new(start, data) };
        let receive = Receive { stream: true, ..Receive::new([piece].into_iter().collect(), 0) };
        Step::Await(driver, receive)
    }
}

/// Whether an address of `family` fits into a part of this size.
pub(in crate::winsock) fn fits(family: i32, part: usize) -> bool {
    sockaddr_size(family).is_none_or(|size| part >= size + EXTRA)
}

/// # Safety
/// `target` has room for `room` bytes.
unsafe fn put_address(target: *mut u8, room: usize, address: &sockaddr_storage) {
    let size = sockaddr_size(address.ss_family.into()).unwrap_or(0).min(room);
    // SAFETY: no more than the target has room for, and no more than an address has.
    unsafe { target.copy_from_nonoverlapping((&raw const *address).cast(), size) };
}

/// The two addresses, with their sizes, in a buffer that `AcceptEx` has filled.
///
/// # Safety
/// It is such a buffer.
pub(in crate::winsock) unsafe fn addresses_in(room: Room) -> [(*mut sockaddr, usize); 2] {
    let address = |at: usize, size: usize| {
        if size < size_of::<libc::sa_family_t>() {
            return (null_mut(), 0);
        }
        let address = room.start.wrapping_add(at).cast::<sockaddr>();
        // SAFETY: the family lies within its part of the buffer.
        let family = unsafe { address.cast::<libc::sa_family_t>().read_unaligned() };
        (address, sockaddr_size(family.into()).unwrap_or(0).min(size))
    };
    [address(room.data, room.local), address(room.data + room.local, room.remote)]
}

/// Makes the listener non-blocking for `AcceptEx`.
pub(in crate::winsock) fn prepare(listener: RawFd) -> Result<(), c_int> {
    system::set_blocking(listener, false)
}
