//! `DisconnectEx`: the end of a connection, after what was to be sent before.

use super::super::{Known, REUSED};
use super::{Driver, End, Step};
use crate::error::{WSAEINTR, errno_to_wsa};
use crate::io::Idle;
use crate::io::sys::Deadline;
use crate::winsock::calls::Call;
use crate::winsock::system::{self, lingering};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

/// The longest sleep of a thread that waits for room and for the end of requests at once.
const SLICE: Duration = Duration::from_millis(20);

/// One `DisconnectEx`.
pub(in crate::winsock) struct Disconnect {
    /// The socket, if it is to be made ready for another connection.
    pub(in crate::winsock) reused: Option<Arc<Known>>,
}

impl Disconnect {
    pub(in crate::winsock) fn attempt(&mut self, fd: RawFd) -> Step {
        // As on Windows, what the peer still sends can be received. SAFETY: takes no pointer. What it says to a connection that was
        // reset does not matter.
        unsafe { libc::shutdown(fd, libc::SHUT_WR) };
        self.reused.take().map_or(Step::done(0), Step::Renew)
    }
}

impl Driver {
    /// Waits until the pending output has left, and ends the connection.
    pub(in crate::winsock) fn disconnect(&self, mut disconnect: Disconnect) -> Result<(), u32> {
        let (_idle, call) = (Idle::enter(), Call::on(self.fd));
        loop {
            let mut queue = self.output.lock();
            queue.end = queue.end.or(End::Reached);
            queue.ready = true;
            self.run(&mut queue);
            if queue.closed || call.is_over() {
                return Err(WSAEINTR);
            }
            if queue.pending.is_empty() {
                break;
            }
            drop(queue);
            // Another thread may have taken the room, or cancelled the requests.
            system::poll(self.fd, libc::POLLOUT, Deadline::after(SLICE)).map_err(errno_to_wsa)?;
        }
        match disconnect.attempt(self.fd) {
            Step::Renew(socket) => self.reuse(&socket).map_err(errno_to_wsa),
            _ => Ok(()),
        }
    }

    /// Makes the socket anew, so that it can be connected again.
    pub(super) fn reuse(&self, socket: &Known) -> Result<(), i32> {
        self.abort();
        let fd = self.fd;
        let protocol = system::int_option(fd, libc::SO_PROTOCOL)?;
        let renew = || {
            let fresh = system::socket(socket.family, libc::SOCK_STREAM, protocol)?;
            system::set_blocking(fresh.as_raw_fd(), system::is_blocking(fd))?;
            // Its close takes its time when the locks are free.
            let former = lingering(fd);
            socket.replace(&fresh)?;
            Ok::<_, i32>(former)
        };
        let _former = self.renew(renew).ok_or(libc::ENOTSOCK)??;
        socket.became_another();
        socket.mark(REUSED);
        Ok(())
    }
}
