//! Completion ports.

use super::File;
use super::queue::{Packet, Queue};
use super::sync::{Arc, Lock};
use super::sys::{Deadline, Epoll};
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// A completion port. Handles own the port, files only its queue. It is closed with its last handle.
pub struct Port {
    queue: Arc<Queue>,
    /// The result of [`Port::fd`].
    exported: Lock<Option<Epoll>>,
}

impl Port {
    /// A port that lets `threads` run at a time; 0: as many as there are processors.
    ///
    /// # Errors
    /// Those of `epoll_create1(2)` and `eventfd(2)`.
    pub fn new(threads: u32) -> io::Result<Arc<Port>> {
        let limit = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            _ => threads as usize,
        };
        Ok(Arc::new(Port { queue: Queue::new(limit)?, exported: Lock::default() }))
    }

    /// Binds `file` with `key`; false if it is bound to a port already.
    pub fn bind(&self, file: &File, key: usize) -> bool {
        file.bind(&self.queue, key).is_ok()
    }

    /// Adds a packet that belongs to no request (`PostQueuedCompletionStatus`).
    pub fn post(&self, key: usize) {
        self.queue.post(Packet { key, overlapped: 0, bytes: 0, status: 0 });
    }

    /// Takes a packet and returns its key; waits up to `limit`, serving the files of the port.
    pub fn next(&self, limit: Option<Duration>) -> Option<usize> {
        let deadline = limit.map_or(Deadline::Never, Deadline::after);
        self.queue.next(deadline).ok().map(|packet| packet.key)
    }

    /// Serves the files of the port; never blocks.
    pub fn serve(&self) {
        self.queue.poller.poll();
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// A descriptor that is readable when there are packets or a source is ready. It belongs to the port.
    pub(crate) fn fd(&self) -> io::Result<RawFd> {
        let mut exported = self.exported.lock();
        if exported.is_none() {
            let outer = Epoll::new()?;
            outer.watch(self.queue.fd()?, 1, libc::EPOLLIN as u32)?;
            outer.watch(self.queue.poller.fd(), 2, libc::EPOLLIN as u32)?;
            *exported = Some(outer);
        }
        Ok(exported.as_ref().map_or(-1, Epoll::fd))
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.queue.close();
    }
}
