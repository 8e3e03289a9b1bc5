//! The state of sockets beside their descriptors.
//!
//! A `SOCKET` is a descriptor, and any socket's descriptor is a `SOCKET`: one created outside this library is added on first use.

pub(in crate::winsock) mod overlapped;
pub(in crate::winsock) mod selection;

use super::Socket;
use super::changes::{Addresses, Changes};
use super::system;
use crate::error::*;
use crate::io::File;
use overlapped::Driver;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

/// A socket in the table.
pub(crate) struct Known {
    pub(in crate::winsock) fd: RawFd,
    pub(in crate::winsock) family: i32,
    pub(in crate::winsock) stream: bool,
    /// The inode of the socket, whose descriptor may have been closed and reused.
    inode: AtomicU64,
    driver: OnceLock<Arc<Driver>>,
    addresses: OnceLock<Arc<Changes>>,
    marks: AtomicU32,
    /// An errno taken from the socket by SO_ERROR that the program has not asked for yet.
    pub(in crate::winsock) error: AtomicI32,
    /// The time-outs for receiving and sending that were set, in milliseconds: the kernel rounds them up to its ticks.
    time_outs: [AtomicU32; 2],
    connected: Mutex<Option<Instant>>,
    /// The listener whose `AcceptEx` is to make this socket a connection.
    accepted_by: Mutex<Weak<Driver>>,
    /// Connections that a condition of `WSAAccept` has put off.
    pub(in crate::winsock) deferred: Mutex<VecDeque<OwnedFd>>,
}

/// `O_NONBLOCK` was set by this library: for the program the socket is blocking.
pub(in crate::winsock) const OURS_NOT_TO_WAIT: u32 = 1;
/// A non-blocking `connect` is in progress.
pub(in crate::winsock) const CONNECTING: u32 = 2;
/// It has failed.
pub(in crate::winsock) const CONNECT_FAILED: u32 = 4;
/// Receiving was shut down.
pub(in crate::winsock) const RECEIVING_SHUT: u32 = 8;
/// `SO_EXCLUSIVEADDRUSE`.
pub(in crate::winsock) const EXCLUSIVE: u32 = 16;
/// `DisconnectEx` has made it reusable.
pub(in crate::winsock) const REUSED: u32 = 32;

/// The peer has reset the connection, which the kernel tells once, and Windows each time.
pub(in crate::winsock) const RESET: u32 = 64;

/// It is being closed.
pub(in crate::winsock) const GONE: u32 = 128;

/// It is connected by a call for this socket, and was not accepted.
pub(in crate::winsock) const CONNECTED_ITSELF: u32 = 256;

/// A socket for datagrams that had no local address when that was last looked at.
pub(in crate::winsock) const UNBOUND: u32 = 512;

/// `SO_RCVBUF` is zero.
pub(in crate::winsock) const NO_RECEIVE_BUFFER: u32 = 1024;

/// `SO_SNDBUF` is zero.
pub(in crate::winsock) const NO_SEND_BUFFER: u32 = 2048;

/// The kernel's longest tick, in milliseconds.
const LONGEST_TICK: u32 = 10;

const CHUNK: usize = 1 << 10;
type Chunk = [Mutex<Option<Arc<Known>>>; CHUNK];

/// By descriptor, in chunks allocated on demand.
static TABLE: [OnceLock<Box<Chunk>>; 1 << 10] = [const { OnceLock::new() }; 1 << 10];

fn place(fd: RawFd) -> Option<&'static Mutex<Option<Arc<Known>>>> {
    let fd = usize::try_from(fd).ok()?;
    let chunk = TABLE.get(fd / CHUNK)?;
    let chunk = chunk.get_or_init(|| Box::new([const { Mutex::new(None) }; CHUNK]));
    Some(&chunk[fd % CHUNK])
}

/// The inode number of a socket, which is unique while it exists.
fn inode_of(fd: RawFd) -> Result<u64, u32> {
    match system::status(fd) {
        Ok(status) if status.st_mode & libc::S_IFMT == libc::S_IFSOCK => Ok(status.st_ino),
        _ => Err(WSAENOTSOCK),
    }
}

/// The descriptor of a `SOCKET`.
pub(in crate::winsock) fn descriptor(socket: Socket) -> Result<RawFd, u32> {
    RawFd::try_from(socket).map_err(|_| WSAENOTSOCK)
}

/// The table's entry of a descriptor, if any.
pub(in crate::winsock) fn known(fd: RawFd) -> Option<Arc<Known>> {
    place(fd)?.lock().clone()
}

/// The socket of a descriptor if it has one of the marks. Those of a socket that was closed without this library are not the next one's.
pub(in crate::winsock) fn marked(fd: RawFd, marks: u32) -> Option<Arc<Known>> {
    let known = place(fd)?.lock();
    let socket = known.as_ref().filter(|socket| socket.is_marked(marks))?;
    (inode_of(fd) == Ok(socket.inode.load(Ordering::Acquire))).then(|| socket.clone())
}

/// Whether the socket of a descriptor has one of the marks.
pub(in crate::winsock) fn is_marked(fd: RawFd, marks: u32) -> bool {
    marked(fd, marks).is_some()
}

/// Whether an error that connecting a stream has told says that the peer has reset the connection: EPIPE, if it had ended its output.
pub(in crate::winsock) fn is_reset(errno: libc::c_int) -> bool {
    matches!(errno, libc::ECONNRESET | libc::EPIPE)
}

/// Remembers that the connection of a descriptor was reset, if `errno` says so.
#[inline]
pub(in crate::winsock) fn note_reset(fd: RawFd, errno: libc::c_int) {
    if errno == libc::ECONNRESET
        && let Ok(socket) = get(fd)
    {
        socket.mark(RESET);
    }
}

/// The same for the socket of a driver, whose queue is locked: its entry is there, and is not to be replaced now.
#[inline]
pub(in crate::winsock) fn note_reset_of_driver(fd: RawFd, errno: libc::c_int) {
    if errno == libc::ECONNRESET
        && let Some(socket) = known(fd)
    {
        socket.mark(RESET);
    }
}

/// Whether the connection of a descriptor was reset, and that has been told once.
pub(in crate::winsock) fn was_reset(fd: RawFd) -> bool {
    marked(fd, RESET).is_some_and(|socket| socket.stream)
}

/// The entry of a `SOCKET`, for frequent calls: does not check whether the descriptor was reused, by a socket that was not created here.
pub(in crate::winsock) fn usual(socket: Socket) -> Result<Arc<Known>, u32> {
    let fd = descriptor(socket)?;
    known(fd).map_or_else(|| get(fd), Ok)
}

/// The socket of a descriptor; `WSAENOTSOCK` if it is none.
pub(in crate::winsock) fn get(fd: RawFd) -> Result<Arc<Known>, u32> {
    let place = place(fd).ok_or(WSAENOTSOCK)?;
    let (former, socket) = {
        let mut known = place.lock();
        let inode = inode_of(fd)?;
        if let Some(socket) = &*known
            && socket.inode.load(Ordering::Acquire) == inode
        {
            return Ok(socket.clone());
        }
        let option = |option| system::int_option(fd, option).map_err(|_| WSAENOTSOCK);
        let socket = Arc::new(Known {
            fd,
            family: option(libc::SO_DOMAIN)?,
            stream: option(libc::SO_TYPE)? == libc::SOCK_STREAM,
            inode: AtomicU64::new(inode),
            driver: OnceLock::new(),
            addresses: OnceLock::new(),
            marks: AtomicU32::new(0),
            error: AtomicI32::new(0),
            time_outs: Default::default(),
            connected: Mutex::default(),
            accepted_by: Mutex::default(),
            deferred: Mutex::default(),
        });
        (known.replace(socket.clone()), socket)
    };
    if let Some(former) = former {
        // The descriptor was closed without this library.
        former.leave();
        former.abort();
        former.is_accepted_no_more();
    }
    Ok(socket)
}

/// Removes the entry that a socket which was closed without this library has left to a new one with its descriptor.
pub(in crate::winsock) fn forget_former(fd: RawFd) {
    if known(fd).is_some() {
        let _ = get(fd);
    }
}

/// Removes a socket from the table.
pub(in crate::winsock) fn forget(fd: RawFd) -> Option<Arc<Known>> {
    place(fd)?.lock().take()
}

impl Known {
    /// The driver of its overlapped requests.
    #[inline]
    pub(in crate::winsock) fn driver(&self) -> Result<&Arc<Driver>, u32> {
        match self.driver.get() {
            Some(driver) => Ok(driver),
            None => self.make_driver(),
        }
    }

    #[cold]
    fn make_driver(&self) -> Result<&Arc<Driver>, u32> {
        let file = File::sharing().map_err(|_| WSAENOBUFS)?;
        Ok(self.driver.get_or_init(|| Driver::new(self.fd, file)))
    }

    /// As above, if there is one.
    pub(in crate::winsock) fn existing_driver(&self) -> Option<&Arc<Driver>> {
        self.driver.get()
    }

    /// The file of its overlapped requests.
    pub(in crate::winsock) fn file(&self) -> Result<&Arc<File>, u32> {
        self.driver().map(|driver| driver.file())
    }

    /// The watcher of address changes of its family.
    pub(in crate::winsock) fn addresses(&self) -> Result<&Arc<Changes>, u32> {
        if let Some(changes) = self.addresses.get() {
            return Ok(changes);
        }
        let addresses = Addresses::of(self.family).map_err(|error| super::wsa_error(&error))?;
        let changes = Changes::of(Box::new(addresses));
        let file = self.file()?;
        if self.addresses.set(changes.clone()).is_ok() {
            file.keep_source(changes.fd(), changes.clone()).map_err(|error| super::wsa_error(&error))?;
            let canceller = Arc::downgrade(&changes);
            file.add_canceller(canceller);
        }
        self.addresses.get().ok_or(WSAENOBUFS)
    }

    pub(in crate::winsock) fn is_marked(&self, marks: u32) -> bool {
        self.marks.load(Ordering::Relaxed) & marks != 0
    }

    pub(in crate::winsock) fn mark(&self, marks: u32) {
        self.marks.fetch_or(marks, Ordering::Relaxed);
    }

    /// Returns whether it had one of them.
    pub(in crate::winsock) fn unmark(&self, marks: u32) -> bool {
        self.marks.fetch_and(!marks, Ordering::Relaxed) & marks != 0
    }

    /// Notes a time-out that was set.
    pub(in crate::winsock) fn set_time_out(&self, sending: bool, millis: u32) {
        self.time_outs[usize::from(sending)].store(millis, Ordering::Relaxed);
    }

    /// The time-out that was set and became `rounded`; itself if none was.
    pub(in crate::winsock) fn time_out(&self, sending: bool, rounded: u32) -> u32 {
        let set = self.time_outs[usize::from(sending)].load(Ordering::Relaxed);
        let is_of = |more| set != 0 && more < LONGEST_TICK;
        if rounded.checked_sub(set).is_some_and(is_of) { set } else { rounded }
    }

    /// Notes how connecting this stream has ended, as the kernel tells by `errno`; returns the error of a failure. A peer that does not
    /// accept is ECONNREFUSED: a reset is told only of a connection that was there, and so is the next call's to tell.
    pub(in crate::winsock) fn connecting_ended(&self, errno: libc::c_int) -> Result<(), libc::c_int> {
        let reset = is_reset(errno);
        if errno != 0 && !reset {
            self.unmark(CONNECTING);
            return Err(errno);
        }
        self.became_connected();
        if reset {
            self.error.store(libc::ECONNRESET, Ordering::Relaxed);
            self.mark(RESET);
        }
        Ok(())
    }

    /// This socket is connected.
    pub(in crate::winsock) fn became_connected(&self) {
        self.was_accepted();
        self.mark(CONNECTED_ITSELF);
    }

    /// The descriptor has a socket now that a listener has accepted.
    pub(in crate::winsock) fn was_accepted(&self) {
        self.became_another();
        *self.connected.lock() = Some(Instant::now());
    }

    /// Puts another socket behind the descriptor.
    pub(in crate::winsock) fn replace(&self, other: &OwnedFd) -> Result<(), libc::c_int> {
        let inode = inode_of(other.as_raw_fd()).map_err(|_| libc::ENOTSOCK)?;
        // `get`, in another thread, sees both or neither: otherwise it would take this for a close without this library.
        let _entry = place(self.fd).ok_or(libc::ENOTSOCK)?.lock();
        system::replace(self.fd, other)?;
        self.inode.store(inode, Ordering::Release);
        Ok(())
    }

    /// The descriptor has another socket now.
    pub(in crate::winsock) fn became_another(&self) {
        self.unmark(CONNECTING | CONNECT_FAILED | RECEIVING_SHUT | RESET | CONNECTED_ITSELF);
        *self.connected.lock() = None;
        *self.accepted_by.lock() = Weak::new();
    }

    /// For how many seconds it has been connected.
    pub(in crate::winsock) fn connected_for(&self) -> Option<u64> {
        self.connected.lock().map(|since| since.elapsed().as_secs())
    }

    /// Afterwards the descriptor is not used.
    pub(in crate::winsock) fn leave(&self) {
        self.mark(GONE);
        if let Some(driver) = self.driver.get() {
            driver.leave();
        }
    }

    /// Notes that a request of `AcceptEx` is about to be started that is to make this socket a connection of the listener. False if
    /// another one is under way. Who closes the socket looks there after it has marked it as gone: so either finds the other.
    pub(in crate::winsock) fn will_be_accepted_by(self: &Arc<Self>, listener: &Arc<Driver>) -> bool {
        let former = self.accepted_by.lock().upgrade();
        if former.is_some_and(|former| former.accepts_into(self)) {
            return false;
        }
        *self.accepted_by.lock() = Arc::downgrade(listener);
        true
    }

    /// Cancels that request: the socket is gone.
    pub(in crate::winsock) fn is_accepted_no_more(self: &Arc<Self>) {
        let listener = self.accepted_by.lock().upgrade();
        if let Some(listener) = listener {
            listener.cancel_accept(self);
        }
    }

    /// Cancels pending requests.
    pub(in crate::winsock) fn abort(&self) {
        if let Some(driver) = self.driver.get() {
            driver.abort();
        }
    }
}

/// The file of a socket, for functions that take handles.
pub(crate) fn file_of(fd: RawFd) -> Option<Arc<File>> {
    get(fd).ok()?.file().ok().cloned()
}
