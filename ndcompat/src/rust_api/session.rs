//! Sessions: the file and the completion queue of a Rust program's requests.

use crate::device::adapter::Adapter;
use crate::rust_api::dispatcher::Dispatcher;
use crate::rust_api::memory::{Buffer, SharedMemory};
use crate::rust_api::waiting;
use crate::status::Result;
use crate::types::RegionFlags;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use win32::io::{File, Progress};

/// The default depth of a session's completion queue.
const DEPTH: u32 = 256;

/// A file for overlapped requests, and a completion queue for the results of work requests.
///
/// Memory, queue pairs, shared receive queues, listeners and connections are created from it. Clones share it. All methods
/// are thread-safe; a thread that waits handles the session's events meanwhile.
///
/// Requests are futures. There are three ways to wait for one, which can be combined:
///
/// - [`Session::wait`] blocks until it is ready;
/// - [`Session::spin`] polls without sleeping;
/// - `.await` in a task of any executor. A thread of the library handles the session's events, or the executor does, by the
///   descriptor of [`Session::progress`].
///
/// ```
#[doc = include_str!("device.txt")]
/// use ndcompat::{Memory, Offer, Provider, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let acceptor = session.listen(Provider::addresses()?[0])?;
/// let server = std::thread::spawn({
///     let (session, address) = (session.clone(), acceptor.local_address()?);
///     move || -> ndcompat::Result<()> {
///         let pair = session.queue_pair().build()?;
///         let connection = session.wait(session.connect(pair, address, Offer::default()))?;
///         let mut hello = session.buffer(64)?;
///         hello[..5].copy_from_slice(b"hello");
///         let (_buffer, sent) = connection.send(hello.part(..5)).wait();
///         sent.map(drop)
///     }
/// });
/// let pair = session.queue_pair().build()?;
/// let receiving = pair.receive(session.buffer(64)?);
/// let peer = session.wait(acceptor.request())?;
/// let _connection = session.wait(peer.accept(pair, Offer::default()))?;
/// let (buffer, received) = receiving.wait();
/// assert_eq!(&buffer[..received?.bytes], b"hello");
/// # server.join().unwrap()?;
/// # Ok::<(), ndcompat::Status>(())
/// ```
#[derive(Clone)]
pub struct Session {
    pub(crate) dispatcher: Arc<Dispatcher>,
}

/// The configuration of a session: see [`Session::builder`].
///
/// ```
#[doc = include_str!("device.txt")]
/// use ndcompat::{Provider, Session};
///
/// // Up to 4096 requests may be outstanding on all its queue pairs together.
/// let session = Session::builder(&Provider::open_any()?).depth(4096).build()?;
/// # Ok::<(), ndcompat::Status>(())
/// ```
#[derive(Clone)]
pub struct SessionBuilder {
    adapter: Arc<Adapter>,
    depth: u32,
    affinity: (u16, u64),
}

impl SessionBuilder {
    /// The depth of the session's completion queue: how many requests may be outstanding at once, receives included. The default is 256.
    /// If there are more, the queue is enlarged, where the device can
    /// ([`CQ_RESIZE`](crate::types::AdapterFlags::CQ_RESIZE)); otherwise those beyond what it holds fail with `ND_NO_MORE_ENTRIES`.
    pub fn depth(self, results: u32) -> SessionBuilder {
        SessionBuilder { depth: results, ..self }
    }

    /// Processor group and affinity mask for notifications, a hint. The default is none.
    pub fn affinity(self, group: u16, mask: u64) -> SessionBuilder {
        SessionBuilder { affinity: (group, mask), ..self }
    }

    /// Creates the session.
    ///
    /// # Errors
    /// `ND_INVALID_PARAMETER_3` for a depth of 0 or beyond
    /// [`max_completion_queue_depth`](crate::types::AdapterInfo::max_completion_queue_depth); `ND_DEVICE_REMOVED` once the
    /// device is gone; `ND_NO_MEMORY` or `ND_INSUFFICIENT_RESOURCES` if memory or descriptors run out.
    pub fn build(self) -> Result<Session> {
        let file = self.adapter.create_overlapped_file()?;
        let queue = self.adapter.create_completion_queue(&file, self.depth, self.affinity)?;
        Ok(Session { dispatcher: Dispatcher::new(self.adapter, file, queue) })
    }
}

impl fmt::Debug for SessionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionBuilder")
            .field("depth", &self.depth)
            .field("affinity", &self.affinity)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Creates a session with a completion queue of 256 results.
    ///
    /// # Errors
    /// Those of [`SessionBuilder::build`].
    pub fn new(adapter: &Arc<Adapter>) -> Result<Session> {
        Session::builder(adapter).build()
    }

    /// Configures a session.
    pub fn builder(adapter: &Arc<Adapter>) -> SessionBuilder {
        SessionBuilder { adapter: adapter.clone(), depth: DEPTH, affinity: (0, 0) }
    }

    /// The adapter of the session.
    pub fn adapter(&self) -> &Arc<Adapter> {
        self.dispatcher.adapter()
    }

    /// The file that the session's requests run on. Objects that are created from the adapter need it.
    pub fn file(&self) -> &Arc<File> {
        self.dispatcher.file()
    }

    /// Allocates and registers `length` bytes, all 0, for requests of this program.
    ///
    /// # Errors
    /// `ND_INVALID_BUFFER_SIZE` for a length of 0; `ND_INVALID_PARAMETER` beyond
    /// [`max_registration_size`](crate::types::AdapterInfo::max_registration_size); `ND_NO_MEMORY` if there is not so much;
    /// `ND_INSUFFICIENT_RESOURCES` if the device or the limit on locked memory does not allow it; `ND_DEVICE_REMOVED` once
    /// the device is gone.
    pub fn buffer(&self, length: usize) -> Result<Buffer> {
        Buffer::new(self.dispatcher.adapter(), self.dispatcher.file(), length)
    }

    /// Allocates and registers `length` bytes, all 0, that peers may access as `flags` say. The target of RDMA reads needs
    /// [`RDMA_READ_SINK`](RegionFlags::RDMA_READ_SINK).
    ///
    /// # Errors
    /// Those of [`buffer`](Self::buffer).
    pub fn shared_memory(&self, length: usize, flags: RegionFlags) -> Result<SharedMemory> {
        SharedMemory::new(self.dispatcher.adapter(), self.dispatcher.file(), length, flags)
    }

    /// Blocks until `future` is ready. Meanwhile, the thread handles the session's events.
    ///
    /// It may be any future of this library, or an `async` block of them, also of several sessions.
    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        waiting::wait(self.dispatcher.file(), None, future).expect("there is no limit")
    }

    /// As [`wait`](Self::wait), but for no longer than `limit`: then `None`, and the future is dropped.
    ///
    /// A receive that is dropped takes the peer's next message all the same. So for a [`Transfer`](crate::Transfer), pass `&mut transfer`,
    /// or use [`Transfer::wait_for`](crate::Transfer::wait_for), which gives it back.
    pub fn wait_for<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        waiting::wait(self.dispatcher.file(), Some(limit), future)
    }

    /// As [`wait`](Self::wait), but polls without sleeping: the least latency, at the cost of a processor.
    pub fn spin<F: Future>(&self, future: F) -> F::Output {
        waiting::spin(None, future).expect("there is no limit")
    }

    /// As [`spin`](Self::spin), but for no longer than `limit`: then `None`, and the future is dropped.
    pub fn spin_for<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        waiting::spin(Some(limit), future)
    }

    /// A descriptor for an executor's reactor or a poll loop. When it is readable, [`Progress::turn`] handles the session's
    /// events. See the example `tokio`.
    ///
    /// ```
    #[doc = include_str!("device.txt")]
    /// use ndcompat::{Provider, Session};
    /// use std::os::fd::{AsFd, AsRawFd};
    ///
    /// let session = Session::new(&Provider::open_any()?)?;
    /// let progress = session.progress();
    /// let mut ready = libc::pollfd { fd: progress.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    /// // SAFETY: one valid pollfd; the descriptor is open for as long as `progress` lives.
    /// unsafe { libc::poll(&mut ready, 1, 0) };
    /// progress.turn();
    /// # Ok::<(), ndcompat::Status>(())
    /// ```
    pub fn progress(&self) -> Progress {
        self.dispatcher.file().drive()
    }

    /// Takes the results that have arrived, without sleeping, and wakes the tasks that wait for them. Waiting for or
    /// polling a future does this, too.
    pub fn poll(&self) {
        self.dispatcher.take_results();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outstanding = self.dispatcher.outstanding();
        f.debug_struct("Session").field("outstanding", &outstanding).finish_non_exhaustive()
    }
}
