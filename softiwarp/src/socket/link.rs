//! A socket as a queue pair's stream.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsRawFd;

use socket2::Socket;

use crate::queue_pair::Stream;
use crate::report;

/// A connected socket in non-blocking mode.
pub(super) struct Link<'a>(pub(super) &'a Socket);

fn message(pieces: &[libc::iovec]) -> libc::msghdr {
    // SAFETY: a structure of C for which zeros mean nothing.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = pieces.as_ptr().cast_mut();
    message.msg_iovlen = pieces.len();
    message
}

fn counted(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| {
        let error = io::Error::last_os_error();
        // The connection is lost then.
        report::is_limit(&error);
        error
    })
}

fn again<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            result => return result,
        }
    }
}

impl Stream for Link<'_> {
    unsafe fn write(&mut self, pieces: &[libc::iovec]) -> io::Result<usize> {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // The usual case: no iovec list for the system to read.
        if let [piece] = pieces {
            let fd = self.0.as_raw_fd();
            // SAFETY: the caller says that the piece is readable.
            return again(|| counted(unsafe { libc::send(fd, piece.iov_base, piece.iov_len, flags) }));
        }
        let message = message(pieces);
        // SAFETY: the message lists the pieces, which the caller says are readable.
        again(|| counted(unsafe { libc::sendmsg(self.0.as_raw_fd(), &raw const message, flags) }))
    }

    unsafe fn read(&mut self, pieces: &[libc::iovec]) -> io::Result<usize> {
        if let [piece] = pieces {
            let (fd, flags) = (self.0.as_raw_fd(), libc::MSG_DONTWAIT);
            // SAFETY: the caller says that the piece is writable.
            return again(|| counted(unsafe { libc::recv(fd, piece.iov_base, piece.iov_len, flags) }));
        }
        let mut message = message(pieces);
        // SAFETY: the message lists the pieces, which the caller says are writable.
        again(|| counted(unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) }))
    }

    fn finish(&mut self) {
        // Fails only if the peer is gone already.
        let _ = self.0.shutdown(Shutdown::Write);
    }
}
