//! The three ways in which rdma-core reports errors, as [`std::io::Error`].

use std::cell::Cell;
use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::Arc;

/// The positive errno from the result of a verb; 0 for success.
///
/// The manual says that errnos are positive; libsiw returns negative ones.
#[inline(always)]
pub fn errno(rc: i32) -> i32 {
    rc.wrapping_abs()
}

/// The result of libsiw when the driver refuses its doorbell, while the connection is ending: the requests are in the
/// device's queue by then. It is not `EPERM`: the other errors of libsiw are negative errnos other than -1.
pub const UNANNOUNCED: i32 = -1;

/// What a call was made on.
pub(super) trait Subject {
    /// The name of its device, if it has one yet.
    fn device_name(&self) -> Option<String>;
}

/// Nothing that has a device.
impl Subject for () {
    fn device_name(&self) -> Option<String> {
        None
    }
}

impl<T: Subject> Subject for Arc<T> {
    fn device_name(&self) -> Option<String> {
        (**self).device_name()
    }
}

/// The result of `call`, an `ibv_*` function that returns an errno.
#[inline]
pub(super) fn verbs(on: &impl Subject, call: &'static str, rc: i32) -> io::Result<()> {
    match errno(rc) {
        0 => Ok(()),
        code => Err(failed(on, call, io::Error::from_raw_os_error(code))),
    }
}

/// The result of `call`, which returns -1 and sets errno, as all of `rdma_*` do.
#[inline]
pub(super) fn posix(on: &impl Subject, call: &'static str, rc: i32) -> io::Result<()> {
    if rc == 0 { Ok(()) } else { Err(failed(on, call, io::Error::last_os_error())) }
}

/// The object that `call` has created, or the errno that it has set.
#[inline]
pub(super) fn created<T>(on: &impl Subject, call: &'static str, object: *mut T) -> io::Result<NonNull<T>> {
    NonNull::new(object).ok_or_else(|| failed(on, call, io::Error::last_os_error()))
}

/// Clears errno, to tell whether the next call sets it.
pub(super) fn clear() {
    // SAFETY: every thread has an errno, whose address this returns.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the pointer is to errno of this thread.
    unsafe { place.write(0) };
}

/// A call that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCall {
    /// The name of the function.
    pub call: &'static str,
    /// The device, if the call was made on one.
    pub device: Option<String>,
    errno: i32,
}

thread_local! {
    /// The last call of this thread that failed.
    static LAST: Cell<Option<FailedCall>> = const { Cell::new(None) };
}

/// This thread's last failed call, if its errno was this.
pub fn last_failed_call(errno: i32) -> Option<FailedCall> {
    // Not while the thread ends.
    let last = LAST.try_with(|last| {
        let known = last.take();
        last.set(known.clone());
        known
    });
    last.ok().flatten().filter(|last| last.errno == errno)
}

/// Logs a failed call at a low level, as the failure may be expected by the caller.
#[cold]
fn failed(on: &impl Subject, call: &'static str, error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::WouldBlock {
        let (device, errno) = (on.device_name(), error.raw_os_error().unwrap_or(0));
        tracing::debug!(target: "ndcompat::verbs", errno, device, "{call}: {error}");
        let _ = LAST.try_with(|last| last.set(Some(FailedCall { call, device, errno })));
    }
    error
}

/// `None` for the error of a non-blocking call that has found nothing.
pub(super) fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(e) => Err(e),
    }
}

/// Sets `O_NONBLOCK`.
pub(super) fn set_nonblocking(fd: RawFd) -> io::Result<()> {
    // SAFETY: the arguments of these commands are numbers; the kernel accesses no memory of the process.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the arguments of this command are numbers; the kernel accesses no memory of the process.
    posix(&(), "fcntl", unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errno_has_no_sign() {
        assert_eq!(errno(0), 0);
        assert_eq!(errno(libc::EINVAL), libc::EINVAL);
        assert_eq!(errno(-libc::ENOMEM), libc::ENOMEM);
        assert_eq!(
            verbs(&(), "ibv_modify_qp", -libc::ENOMEM).unwrap_err().raw_os_error(),
            Some(libc::ENOMEM)
        );
        assert!(verbs(&(), "ibv_modify_qp", 0).is_ok());
    }

    #[test]
    fn the_last_failed_call_is_known_by_its_errno() {
        assert!(verbs(&(), "ibv_reg_mr", libc::ENOMEM).is_err() && verbs(&(), "ibv_post_send", 0).is_ok());
        assert_eq!(last_failed_call(libc::ENOMEM).map(|last| last.call), Some("ibv_reg_mr"));
        assert_eq!(last_failed_call(libc::EIO), None);
    }

    #[test]
    fn nothing_found_is_no_error() {
        assert_eq!(found(Ok(3)).unwrap(), Some(3));
        assert_eq!(found::<i32>(Err(io::Error::from_raw_os_error(libc::EAGAIN))).unwrap(), None);
        assert!(found::<i32>(Err(io::Error::from_raw_os_error(libc::EIO))).is_err());
    }
}
