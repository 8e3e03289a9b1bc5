//! New descriptors. They come from the C library's functions, not from direct system calls, so that tests can make those fail.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// The descriptor that a function of the C library has just made, or the errno that it has set.
pub(crate) fn made(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, and owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// An eventfd that blocks.
pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: the arguments are numbers; the kernel accesses no memory of the process.
    made(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) })
}

/// The result of a function of the C library that returns -1 and sets errno.
pub(crate) fn succeeded(result: i32) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
