//! Queue pairs and shared receive queues of a session. Their requests own their memory.

use crate::data::queue_pair::{QueuePair, QueuePairConfig};
use crate::data::shared_receive_queue::{SharedReceiveQueue, SharedReceiveQueueConfig};
use crate::rust_api::dispatcher::Dispatcher;
use crate::rust_api::memory::{IntoPart, RemoteMemory, SharedMemory};
use crate::rust_api::operation::Operation;
use crate::rust_api::request_table::Queue;
use crate::rust_api::session::Session;
use crate::rust_api::transfer::Transfer;
use crate::status::{Result, Status};
use crate::types::{RequestFlags, RequestType, Sge};
use std::fmt;
use std::sync::Arc;

/// The default depth of each queue, in requests.
const DEPTH: u32 = 16;

/// The configuration of a queue pair: see [`Session::queue_pair`].
///
/// ```
#[doc = include_str!("device.txt")]
/// use ndcompat::{Provider, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let pair = session.queue_pair().receives(64).requests(32).inline(64).name(7).build()?;
/// # Ok::<(), ndcompat::Status>(())
/// ```
#[derive(Clone)]
pub struct PairBuilder {
    dispatcher: Arc<Dispatcher>,
    shared: Option<SharedReceives>,
    name: u64,
    receives: u32,
    requests: u32,
    inline: u32,
}

impl Session {
    /// Configures a queue pair whose results go to this session. By default 16 receives and 16 other requests may be
    /// outstanding.
    pub fn queue_pair(&self) -> PairBuilder {
        PairBuilder {
            dispatcher: self.dispatcher.clone(),
            shared: None,
            name: 0,
            receives: DEPTH,
            requests: DEPTH,
            inline: 0,
        }
    }

    /// Creates a queue of `depth` receives for several queue pairs of the session. [`SharedReceives::low`] completes when
    /// fewer than `threshold` are outstanding.
    ///
    /// # Errors
    /// `ND_INVALID_PARAMETER_3` for a depth of 0 or beyond
    /// [`max_shared_receive_queue_depth`](crate::types::AdapterInfo::max_shared_receive_queue_depth);
    /// `ND_INSUFFICIENT_RESOURCES` if the device has no room; `ND_DEVICE_REMOVED` once it is gone.
    pub fn shared_receives(&self, depth: u32, threshold: u32) -> Result<SharedReceives> {
        let config = SharedReceiveQueueConfig::new(depth).threshold(threshold);
        let queue = self.dispatcher.adapter().create_shared_receive_queue(self.dispatcher.file(), config)?;
        Ok(SharedReceives { dispatcher: self.dispatcher.clone(), queue })
    }
}

impl PairBuilder {
    /// How many receives may be outstanding.
    pub fn receives(self, depth: u32) -> PairBuilder {
        PairBuilder { receives: depth, ..self }
    }

    /// How many sends, reads and writes may be outstanding together.
    pub fn requests(self, depth: u32) -> PairBuilder {
        PairBuilder { requests: depth, ..self }
    }

    /// How many bytes a request with [`RequestFlags::INLINE`] may have. The default is 0.
    pub fn inline(self, bytes: u32) -> PairBuilder {
        PairBuilder { inline: bytes, ..self }
    }

    /// The value of [`Done::queue_pair`](crate::Done::queue_pair) in its results. The default is 0.
    pub fn name(self, name: u64) -> PairBuilder {
        PairBuilder { name, ..self }
    }

    /// Takes receives from this queue, which must be of the same session, instead of one of its own.
    pub fn shared_receives(self, shared: &SharedReceives) -> PairBuilder {
        PairBuilder { shared: Some(shared.clone()), ..self }
    }

    /// Creates the queue pair.
    ///
    /// # Errors
    /// `ND_INVALID_PARAMETER_4` for a shared receive queue of another session; `_5` to `_9` for numbers beyond those of
    /// [`AdapterInfo`](crate::types::AdapterInfo), in the order of `CreateQueuePair`; `ND_INSUFFICIENT_RESOURCES` if the
    /// device has no room; `ND_DEVICE_REMOVED` once it is gone; `ND_BUFFER_OVERFLOW` once the session's
    /// completion queue has overrun.
    pub fn build(self) -> Result<Pair> {
        let dispatcher = self.dispatcher;
        if self.shared.as_ref().is_some_and(|shared| !Arc::ptr_eq(&shared.dispatcher, &dispatcher)) {
            return Err(Status::INVALID_PARAMETER_4);
        }
        let pair = dispatcher.adapter().create_queue_pair(QueuePairConfig {
            receive_completion_queue: dispatcher.queue().clone(),
            initiator_completion_queue: dispatcher.queue().clone(),
            context: self.name,
            shared_receive_queue: self.shared.map(|shared| shared.queue),
            receive_queue_depth: self.receives,
            initiator_queue_depth: self.requests,
            max_receive_sge: 1,
            max_initiator_sge: 1,
            inline_data_size: self.inline,
        })?;
        let pair = Arc::new(pair);
        dispatcher.add_pair(&pair)?;
        Ok(Pair { dispatcher, pair })
    }
}

impl fmt::Debug for PairBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairBuilder")
            .field("receives", &self.receives)
            .field("requests", &self.requests)
            .field("inline", &self.inline)
            .finish_non_exhaustive()
    }
}

/// A queue pair of a session. Requests take their memory, and return it when they have completed.
///
/// Dropping it ends its connection and cancels outstanding requests.
///
/// A message, a write and a read:
///
/// ```
#[doc = include_str!("connected.txt")]
/// use ndcompat::types::RegionFlags;
/// use ndcompat::{Provider, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// // Receives are posted before the peer sends.
/// let (client, server, receiving) = connected(&session, |pair| Ok(pair.receive(session.buffer(64)?)))?;
/// let mut message = session.buffer(5)?;
/// message.copy_from_slice(b"hello");
/// let (message, sent) = client.send(message).wait();
/// sent?;
/// let (received, done) = receiving.wait();
/// assert_eq!(&received[..done?.bytes], b"hello");
///
/// let target = session.shared_memory(5, RegionFlags::ALLOW_REMOTE_WRITE | RegionFlags::ALLOW_REMOTE_READ)?;
/// client.write(message, target.remote(0)).wait().1?;
///
/// let copy = session.shared_memory(5, RegionFlags::RDMA_READ_SINK)?;
/// let (copy, read) = client.read(copy, target.remote(0)).wait();
/// read?;
/// let mut bytes = [0; 5];
/// copy.load(0, &mut bytes);
/// assert_eq!(&bytes, b"hello");
/// # Ok::<(), ndcompat::Status>(())
/// ```
///
/// The program cannot access the memory of an outstanding request:
///
/// ```compile_fail,E0382
/// # fn example(pair: &ndcompat::Pair, buffer: ndcompat::Buffer) {
/// let receiving = pair.receive(buffer);
/// drop(buffer); // the device may be writing to it
/// # }
/// ```
pub struct Pair {
    dispatcher: Arc<Dispatcher>,
    pub(crate) pair: Arc<QueuePair>,
}

impl Pair {
    /// Receives the peer's next message. Allowed, and advisable, before the queue pair is connected: on some devices a
    /// message without a receive ends the connection.
    ///
    /// Dropping the future does not take the receive back: the next message goes there, and is lost. [`Transfer`] shows how to wait for a
    /// limited time.
    ///
    /// Fails with `ND_NO_MORE_ENTRIES` if the receive queue, or the session's completion queue, is full; `ND_INVALID_DEVICE_REQUEST` if receives come from a
    /// shared queue; `ND_BUFFER_OVERFLOW` for 4 GiB or more; `ND_DATA_OVERRUN` if the message was longer; `ND_CANCELED`
    /// when the connection ends.
    pub fn receive<P: IntoPart>(&self, into: P) -> Transfer<P::Memory> {
        self.post(RequestType::Receive, into, |pair, context, sge| {
            // SAFETY: the dispatcher keeps the memory until the request has completed.
            unsafe { pair.receive(context, &[sge]) }
        })
    }

    /// Sends a message, which the peer's next receive takes.
    ///
    /// Fails with `ND_CONNECTION_INVALID` before the queue pair is connected; `ND_NO_MORE_ENTRIES` if the queue is full;
    /// `ND_BUFFER_OVERFLOW` beyond [`max_transfer_length`](crate::types::AdapterInfo::max_transfer_length); `ND_CANCELED`
    /// when the connection ends.
    pub fn send<P: IntoPart>(&self, from: P) -> Transfer<P::Memory> {
        self.send_with(from, RequestFlags::empty())
    }

    /// As [`send`](Self::send), with flags. `SILENT_SUCCESS` has no meaning here: each request has its result. Fails with
    /// `ND_INVALID_PARAMETER_4` for flags that do not apply to sends.
    pub fn send_with<P: IntoPart>(&self, from: P, flags: RequestFlags) -> Transfer<P::Memory> {
        let flags = flags.difference(RequestFlags::SILENT_SUCCESS);
        self.post(RequestType::Send, from, |pair, context, sge| {
            // SAFETY: the dispatcher keeps the memory until the request has completed.
            unsafe { pair.send(context, &[sge], flags) }
        })
    }

    /// Writes to the peer's memory.
    ///
    /// Fails as [`send`](Self::send) does, and with `ND_ACCESS_VIOLATION` or `ND_CANCELED` if the peer does not allow it.
    pub fn write<P: IntoPart>(&self, from: P, to: RemoteMemory) -> Transfer<P::Memory> {
        self.write_with(from, to, RequestFlags::empty())
    }

    /// As [`write`](Self::write), with flags. `SILENT_SUCCESS` has no meaning here. Fails with `ND_INVALID_PARAMETER_6` for
    /// flags that do not apply to writes.
    pub fn write_with<P: IntoPart>(
        &self,
        from: P,
        to: RemoteMemory,
        flags: RequestFlags,
    ) -> Transfer<P::Memory> {
        let flags = flags.difference(RequestFlags::SILENT_SUCCESS);
        self.post(RequestType::Write, from, |pair, context, sge| {
            // SAFETY: the dispatcher keeps the memory until the request has completed.
            unsafe { pair.write(context, &[sge], to.address, to.token, flags) }
        })
    }

    /// Reads the peer's memory into [`SharedMemory`] that was created with
    /// [`RDMA_READ_SINK`](crate::types::RegionFlags::RDMA_READ_SINK): over iWARP the peer writes the response.
    ///
    /// Fails as [`write`](Self::write) does, and with `ND_INVALID_DEVICE_REQUEST` on a connection without an outbound read
    /// limit: see [`Offer`](crate::Offer).
    pub fn read<P: IntoPart<Memory = SharedMemory>>(
        &self,
        into: P,
        from: RemoteMemory,
    ) -> Transfer<SharedMemory> {
        self.read_with(into, from, RequestFlags::empty())
    }

    /// As [`read`](Self::read), with flags. `SILENT_SUCCESS` has no meaning here.
    pub fn read_with<P: IntoPart<Memory = SharedMemory>>(
        &self,
        into: P,
        from: RemoteMemory,
        flags: RequestFlags,
    ) -> Transfer<SharedMemory> {
        let flags = flags.difference(RequestFlags::SILENT_SUCCESS);
        self.post(RequestType::Read, into, |pair, context, sge| {
            // SAFETY: the dispatcher keeps the memory until the request has completed.
            unsafe { pair.read(context, &[sge], from.address, from.token, flags) }
        })
    }

    pub(crate) fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.dispatcher
    }

    /// Cancels all outstanding requests. The queue pair is of no further use.
    pub fn flush(&self) {
        let _ = self.pair.flush();
    }

    fn post<P: IntoPart>(
        &self,
        kind: RequestType,
        part: P,
        post: impl Fn(&QueuePair, u64, Sge) -> Result<()>,
    ) -> Transfer<P::Memory> {
        let queue = Queue::Pair(self.pair.clone());
        Transfer::begin(&self.dispatcher, kind, part.into_part(), queue, |context, sge| {
            post(&self.pair, context, sge)
        })
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // Outstanding requests hold the device's queue pair: cancel them.
        self.flush();
        self.dispatcher.take_results();
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").finish_non_exhaustive()
    }
}

/// A queue of receives for several queue pairs of a session. Clones share it.
///
/// Receives that are still outstanding free their memory when the session ends.
///
/// ```
#[doc = include_str!("device.txt")]
/// use ndcompat::{Provider, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let shared = session.shared_receives(128, 32)?;
/// let pairs = [1, 2].map(|name| session.queue_pair().name(name).shared_receives(&shared).build());
/// // A message to either of the pairs; `Done::queue_pair` is the name of that pair.
/// let receiving = shared.receive(session.buffer(64)?);
/// # for pair in pairs { pair?; }
/// # assert!(!receiving.is_done());
/// # Ok::<(), ndcompat::Status>(())
/// ```
#[derive(Clone)]
pub struct SharedReceives {
    dispatcher: Arc<Dispatcher>,
    queue: Arc<SharedReceiveQueue>,
}

impl SharedReceives {
    /// Receives the next message to any of the queue pairs. [`Done::queue_pair`](crate::Done::queue_pair) names the pair.
    ///
    /// Fails with `ND_NO_MORE_ENTRIES` if the queue is full; `ND_BUFFER_OVERFLOW` for 4 GiB or more; `ND_DATA_OVERRUN` if
    /// the message was longer.
    pub fn receive<P: IntoPart>(&self, into: P) -> Transfer<P::Memory> {
        let queue = Queue::Shared(self.queue.clone());
        Transfer::begin(&self.dispatcher, RequestType::Receive, into.into_part(), queue, |context, sge| {
            // SAFETY: the dispatcher keeps the memory until the request has completed.
            unsafe { self.queue.receive(context, &[sge]) }
        })
    }

    /// Completes when fewer receives than the threshold are outstanding.
    ///
    /// # Errors
    /// `ND_DEVICE_REMOVED` once the device is gone.
    pub fn low(&self) -> Result<Operation> {
        self.queue.begin_notify()
    }
}

impl fmt::Debug for SharedReceives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedReceives").finish_non_exhaustive()
    }
}
