//! The three ways in which rdma-core reports failure, as one.

use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;

/// The positive errno in the result of a verb that returns one, 0 for success.
///
/// The manual says positive; siw's provider library returns negative ones.
#[inline(always)]
pub fn errno(rc: i32) -> i32 {
    rc.wrapping_abs()
}

/// The result of an `ibv_*` call that returns an errno.
#[inline]
pub(super) fn verbs(rc: i32) -> io::Result<()> {
    match errno(rc) {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// The result of a call that returns -1 and sets errno, as all of `rdma_*` do.
#[inline]
pub(super) fn posix(rc: i32) -> io::Result<()> {
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The object that a call made, or the errno it set.
#[inline]
pub(super) fn created<T>(object: *mut T) -> io::Result<NonNull<T>> {
    NonNull::new(object).ok_or_else(io::Error::last_os_error)
}

/// Says `None` where a non-blocking call found nothing.
pub(super) fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(e) => Err(e),
    }
}

/// Makes reads from `fd` return at once.
pub(super) fn set_nonblocking(fd: RawFd) -> io::Result<()> {
    // SAFETY: fcntl with these commands takes no pointers.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    posix(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errno_has_no_sign() {
        assert_eq!(errno(0), 0);
        assert_eq!(errno(libc::EINVAL), libc::EINVAL);
        assert_eq!(errno(-libc::ENOMEM), libc::ENOMEM);
        assert_eq!(verbs(-libc::ENOMEM).unwrap_err().raw_os_error(), Some(libc::ENOMEM));
        assert!(verbs(0).is_ok());
    }

    #[test]
    fn nothing_found_is_no_error() {
        assert_eq!(found(Ok(3)).unwrap(), Some(3));
        assert_eq!(found::<i32>(Err(io::Error::from_raw_os_error(libc::EAGAIN))).unwrap(), None);
        assert!(found::<i32>(Err(io::Error::from_raw_os_error(libc::EIO))).is_err());
    }
}
