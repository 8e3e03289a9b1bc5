//! System calls on sockets that move no data, with errnos for errors. Any number may be passed as a socket: the kernel refuses
//! invalid ones.

use crate::io::sys::Deadline;
use libc::{c_int, pollfd, sockaddr, sockaddr_storage, socklen_t};
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// A C structure of numbers and pointers, for which any bytes are a valid value.
///
/// # Safety
/// That is so.
pub(super) unsafe trait Plain: Copy {
    /// All zero.
    fn zeroed() -> Self {
        // SAFETY: a value, by the promise of the trait.
        unsafe { std::mem::zeroed() }
    }
}

macro_rules! plain {
    ($($type:ty),*) => {
        // SAFETY: numbers and pointers only.
        $(unsafe impl Plain for $type {})*
    };
}

plain!(
    c_int,
    u32,
    usize,
    [u16; 2],
    [u32; 3],
    [u8; 256],
    libc::linger,
    libc::timeval,
    libc::stat,
    libc::msghdr
);
plain!(libc::addrinfo, sockaddr_storage, libc::sockaddr_nl);

/// The errno of the last system call.
pub(super) fn errno() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// The result of a system call that returns 0, or -1 and an errno.
pub(super) fn checked(result: c_int) -> Result<(), c_int> {
    if result == 0 { Ok(()) } else { Err(errno()) }
}

/// Repeats a system call while signals interrupt it.
pub(super) fn retry(mut call: impl FnMut() -> isize) -> Result<usize, c_int> {
    loop {
        match call() {
            result if result >= 0 => return Ok(result as usize),
            _ => match errno() {
                libc::EINTR => {}
                errno => return Err(errno),
            },
        }
    }
}

/// An option of a socket.
pub(super) fn option<T: Plain>(fd: RawFd, level: c_int, option: c_int) -> Result<T, c_int> {
    let mut value = T::zeroed();
    let mut size = size_of::<T>() as socklen_t;
    // SAFETY: the value has the size that the kernel is told.
    checked(unsafe { libc::getsockopt(fd, level, option, (&raw mut value).cast(), &mut size) })?;
    Ok(value)
}

/// An option of the socket level that is an int.
pub(super) fn int_option(fd: RawFd, name: c_int) -> Result<c_int, c_int> {
    option(fd, libc::SOL_SOCKET, name)
}

/// Sets an option of a socket.
pub(super) fn set_option<T: Plain>(fd: RawFd, level: c_int, option: c_int, value: T) -> Result<(), c_int> {
    let size = size_of::<T>() as socklen_t;
    // SAFETY: the value has the size that the kernel is told.
    checked(unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), size) })
}

/// An `ioctl` that writes an int.
pub(super) fn int_ioctl(fd: RawFd, code: u32) -> Result<c_int, c_int> {
    let mut value = 0;
    // SAFETY: room for an int.
    checked(unsafe { libc::ioctl(fd, code.into(), &raw mut value) })?;
    Ok(value)
}

/// `fstat` of the descriptor.
pub(super) fn status(fd: RawFd) -> Result<libc::stat, c_int> {
    let mut status = libc::stat::zeroed();
    // SAFETY: room for what is written.
    checked(unsafe { libc::fstat(fd, &mut status) })?;
    Ok(status)
}

/// A new socket, close-on-exec.
pub(super) fn socket(family: c_int, kind: c_int, protocol: c_int) -> Result<OwnedFd, c_int> {
    // SAFETY: takes no pointer.
    match unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) } {
        // SAFETY: a descriptor that the call has just made; nobody else knows it.
        fd if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(errno()),
    }
}

/// The next connection of a listener, and its peer's address.
pub(super) fn accept(listener: RawFd) -> Result<(OwnedFd, sockaddr_storage), c_int> {
    let mut peer = sockaddr_storage::zeroed();
    let connection = retry(|| {
        let mut size = size_of::<sockaddr_storage>() as socklen_t;
        let place = (&raw mut peer).cast::<sockaddr>();
        // SAFETY: the address has the size that the kernel is told.
        unsafe { libc::accept4(listener, place, &mut size, libc::SOCK_CLOEXEC) as isize }
    })?;
    // SAFETY: a descriptor that the call has just made; nobody else knows it.
    Ok((unsafe { OwnedFd::from_raw_fd(connection as RawFd) }, peer))
}

/// Replaces the socket of the descriptor `fd` by `socket` (dup2).
pub(super) fn replace(fd: RawFd, socket: &OwnedFd) -> Result<(), c_int> {
    use std::os::fd::AsRawFd;
    // SAFETY: takes no pointer; what it closes is a socket, which the table of sockets has for its own.
    let moved = unsafe { libc::dup3(socket.as_raw_fd(), fd, libc::O_CLOEXEC) };
    if moved < 0 { Err(errno()) } else { Ok(()) }
}

/// The address that the socket is bound to, all zero if it has none.
pub(super) fn local_address(fd: RawFd) -> Result<sockaddr_storage, c_int> {
    let mut address = sockaddr_storage::zeroed();
    let mut size = size_of::<sockaddr_storage>() as socklen_t;
    // SAFETY: the address has the size that the kernel is told.
    checked(unsafe { libc::getsockname(fd, (&raw mut address).cast(), &mut size) })?;
    Ok(address)
}

/// Whether the socket is connected.
pub(super) fn has_peer(fd: RawFd) -> bool {
    let mut peer = sockaddr_storage::zeroed();
    let mut size = size_of::<sockaddr_storage>() as socklen_t;
    // SAFETY: the address has the size that the kernel is told.
    checked(unsafe { libc::getpeername(fd, (&raw mut peer).cast(), &mut size) }).is_ok()
}

/// Whether the socket is blocking.
pub(super) fn is_blocking(fd: RawFd) -> bool {
    // SAFETY: takes no pointer.
    let modes = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    modes & libc::O_NONBLOCK == 0
}

/// Makes the socket blocking or non-blocking.
pub(super) fn set_blocking(fd: RawFd, blocking: bool) -> Result<(), c_int> {
    // SAFETY: takes no pointer.
    let former = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if former < 0 {
        return Err(errno());
    }
    let modes = if blocking { former & !libc::O_NONBLOCK } else { former | libc::O_NONBLOCK };
    if modes == former {
        return Ok(());
    }
    // SAFETY: takes no pointer.
    checked(unsafe { libc::fcntl(fd, libc::F_SETFL, modes) })
}

/// `poll` until an entry is ready or the deadline; returns the number of ready ones. Signals neither end nor prolong it.
pub(super) fn poll_all(entries: &mut [pollfd], deadline: Deadline) -> Result<usize, c_int> {
    retry(|| {
        // Rounded up, so that it never returns early.
        let millis = |left: Duration| left.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(c_int::MAX);
        let time = deadline.remaining().map_or(-1, millis);
        // SAFETY: the slice has as many entries as told, and outlives the call.
        unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, time) as isize }
    })
}

/// The `events` of poll that are present or arrive in time.
pub(super) fn poll(fd: RawFd, events: i16, deadline: Deadline) -> Result<i16, c_int> {
    let mut entry = [pollfd { fd, events, revents: 0 }];
    poll_all(&mut entry, deadline)?;
    Ok(entry[0].revents)
}

/// Another descriptor of a socket whose close takes the time of its `SO_LINGER`.
pub(super) fn lingering(fd: RawFd) -> Option<OwnedFd> {
    let linger = option::<libc::linger>(fd, libc::SOL_SOCKET, libc::SO_LINGER).ok()?;
    if linger.l_onoff == 0 || linger.l_linger == 0 {
        return None;
    }
    // SAFETY: the caller's socket, which is open.
    let socket = unsafe { BorrowedFd::borrow_raw(fd) };
    rustix::io::fcntl_dupfd_cloexec(socket, 0).ok()
}
