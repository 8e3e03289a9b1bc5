//! Posting: Send, Receive, Read and Write, from the caller's arguments to the device.
//!
//! The fast path, for requests with one SGE on a connected queue pair, is [`Poster::initiate`] and [`Poster::receive`].
//! Everything else, errors included, takes the slow path: [`Poster::initiate_checked`] and [`Poster::receive_checked`].
//!
//! The fast path returns a [`Status`] as the C interface does, which saves the instructions to convert a `Result`.

use crate::data::queue_pair::{Core, QueuePair};
use crate::data::request_queue::{RequestQueue, Ticket};
use crate::data::scatter_gather::{self, Filled, Gathered, SgeList};
use crate::data::work_request::{Remote, WorkRequest, post_receive};
use crate::diagnosis;
use crate::status::{Result, Status};
use crate::types::{RequestFlags, RequestType, Sge};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

/// The flags allowed for `Send`.
const SEND_FLAGS: RequestFlags = RDMA_FLAGS.union(RequestFlags::SOLICIT);
/// The flags allowed for `Read` and `Write`. A read ignores `INLINE`, which programs leave set.
const RDMA_FLAGS: RequestFlags =
    RequestFlags::SILENT_SUCCESS.union(RequestFlags::READ_FENCE).union(RequestFlags::INLINE);

/// An unowned handle to post with; the caller keeps the queue pair alive. It is the fastest way to post, for the C
/// interfaces; the methods of [`QueuePair`] are built on it.
///
/// ```
#[doc = include_str!("../rust_api/device.txt")]
/// use ndcompat::types::{RequestFlags, Sge};
/// use ndcompat::{Provider, QueuePairConfig, Session, SgeList, Status};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let queue = session.adapter().create_completion_queue(session.file(), 16, (0, 0))?;
/// let pair = session.adapter().create_queue_pair(QueuePairConfig::new(&queue))?;
/// let pieces = [Sge::default()];
/// // SAFETY: the queue pair is alive; the list is empty.
/// let status = unsafe { pair.poster().send(1, SgeList::from(&pieces[..]), RequestFlags::empty()) };
/// assert_eq!(status, Status::CONNECTION_INVALID); // not connected yet
/// # Ok::<(), ndcompat::Status>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Poster(NonNull<Core>);

// SAFETY: all methods of a queue pair may be called from several threads.
unsafe impl Send for Poster {}
// SAFETY: all methods of a queue pair may be called from several threads.
unsafe impl Sync for Poster {}

impl QueuePair {
    /// An unowned handle to post with; the caller keeps the queue pair alive.
    pub fn poster(&self) -> Poster {
        // SAFETY: the pointer of an `Arc` is not null.
        Poster(unsafe { NonNull::new_unchecked(Arc::as_ptr(&self.core).cast_mut()) })
    }

    /// Sends the data of `sge` as a message, which the peer's next receive takes (`IND2QueuePair::Send`). Thread-safe.
    ///
    /// # Errors
    /// `ND_CONNECTION_INVALID` before the queue pair is connected; `ND_NO_MORE_ENTRIES` when the queue is full;
    /// `ND_DATA_OVERRUN` for too many SGEs; `ND_BUFFER_OVERFLOW` for too many bytes; `ND_INVALID_PARAMETER_4` for flags
    /// that `Send` does not allow. After an error there is no result.
    ///
    /// # Safety
    /// The memory of the SGEs must stay valid until the request completes (with `INLINE`: during the call).
    pub unsafe fn send(&self, context: u64, sge: &[Sge], flags: RequestFlags) -> Result<()> {
        // SAFETY: the caller keeps the memory of the SGEs valid until the request completes; `self` keeps the queue pair
        // alive, and a slice is valid for its length.
        unsafe { self.poster().send(context, sge.into(), flags) }.ok()
    }

    /// Writes the data of `sge` to the peer's memory at `address` (`IND2QueuePair::Write`). `token` is what the peer's
    /// [`remote_token`](crate::MemoryRegion::remote_token) returned.
    ///
    /// # Errors
    /// Those of [`QueuePair::send`]; for flags `ND_INVALID_PARAMETER_6`.
    ///
    /// # Safety
    /// As [`QueuePair::send`].
    pub unsafe fn write(
        &self,
        context: u64,
        sge: &[Sge],
        address: u64,
        token: u32,
        flags: RequestFlags,
    ) -> Result<()> {
        // SAFETY: the caller keeps the memory of the SGEs valid until the request completes; `self` keeps the queue pair
        // alive, and a slice is valid for its length.
        unsafe { self.poster().write(context, sge.into(), address, token, flags) }.ok()
    }

    /// Reads the peer's memory at `address` into the memory of `sge` (`IND2QueuePair::Read`). `token` is what the peer's
    /// [`remote_token`](crate::MemoryRegion::remote_token) returned.
    ///
    /// # Errors
    /// Those of [`QueuePair::write`]; `ND_INVALID_DEVICE_REQUEST` on a connection without an outbound read limit.
    ///
    /// # Safety
    /// As [`QueuePair::send`]; the memory is written to.
    pub unsafe fn read(
        &self,
        context: u64,
        sge: &[Sge],
        address: u64,
        token: u32,
        flags: RequestFlags,
    ) -> Result<()> {
        // SAFETY: the caller keeps the memory of the SGEs valid for writes until the request completes; `self` keeps the
        // queue pair alive, and a slice is valid for its length.
        unsafe { self.poster().read(context, sge.into(), address, token, flags) }.ok()
    }

    /// Posts a receive into the memory of `sge` (`IND2QueuePair::Receive`). Allowed in any state.
    ///
    /// # Errors
    /// `ND_INVALID_DEVICE_REQUEST` if receives come from a shared queue; `ND_NO_MORE_ENTRIES` when the queue is full;
    /// `ND_DATA_OVERRUN` for too many SGEs; `ND_BUFFER_OVERFLOW` for too many bytes. After an error there is no result.
    ///
    /// # Safety
    /// The memory of the SGEs must stay valid until the request completes; the device writes to it.
    pub unsafe fn receive(&self, context: u64, sge: &[Sge]) -> Result<()> {
        // SAFETY: the caller keeps the memory of the SGEs valid for writes until the request completes; `self` keeps the
        // queue pair alive, and a slice is valid for its length.
        unsafe { self.poster().receive(context, sge.into()) }.ok()
    }
}

impl Poster {
    /// [`QueuePair::send`].
    ///
    /// # Safety
    /// The queue pair must be alive, `list` valid, and the memory of the SGEs as in [`QueuePair::send`].
    #[inline(always)]
    pub unsafe fn send(self, context: u64, list: SgeList, flags: RequestFlags) -> Status {
        // SAFETY: the queue pair is alive, `list` is valid, and so is the memory of its SGEs until the request completes:
        // the conditions of `Poster::send`.
        unsafe { self.initiate(context, list, flags, RequestType::Send, Remote::default()) }
    }

    /// [`QueuePair::write`].
    ///
    /// # Safety
    /// As [`Poster::send`].
    #[inline(always)]
    pub unsafe fn write(
        self,
        context: u64,
        list: SgeList,
        address: u64,
        token: u32,
        flags: RequestFlags,
    ) -> Status {
        // SAFETY: the queue pair is alive, `list` is valid, and so is the memory of its SGEs until the request completes:
        // the conditions of `Poster::send`.
        unsafe { self.initiate(context, list, flags, RequestType::Write, Remote { address, token }) }
    }

    /// [`QueuePair::read`].
    ///
    /// # Safety
    /// As [`Poster::send`].
    #[inline(always)]
    pub unsafe fn read(
        self,
        context: u64,
        list: SgeList,
        address: u64,
        token: u32,
        flags: RequestFlags,
    ) -> Status {
        // SAFETY: the queue pair is alive, `list` is valid, and so is the memory of its SGEs, for writes, until the request
        // completes: the conditions of `Poster::send`.
        unsafe { self.initiate(context, list, flags, RequestType::Read, Remote { address, token }) }
    }

    /// [`QueuePair::receive`].
    ///
    /// # Safety
    /// As [`Poster::send`].
    #[inline(always)]
    pub unsafe fn receive(self, context: u64, list: SgeList) -> Status {
        // SAFETY: the caller keeps the queue pair alive.
        let core = unsafe { self.core() };
        // SAFETY: the caller passes a list that is null or valid for its count during the call.
        if let Some(one) = unsafe { list.only_below(&core.receive_bound) }
            // SAFETY: without a receive queue the bound is 0, and no length is less.
            && let queue = unsafe { core.receive.as_ref().unwrap_unchecked() }
            && let Some((reserved, ticket)) = queue.try_reserve(context, RequestType::Receive, false, 0)
        {
            return reserved.conclude(post_receive(core, slice::from_ref(one), ticket));
        }
        // SAFETY: the queue pair is alive, `list` is valid, and so is the memory of its SGEs, for writes, until the request
        // completes: the conditions of `Poster::send`.
        unsafe { self.receive_checked(context, list) }
    }

    /// The fast path of Send, Read and Write.
    ///
    /// # Safety
    /// As [`Poster::send`].
    #[inline(always)]
    unsafe fn initiate(
        self,
        context: u64,
        list: SgeList,
        flags: RequestFlags,
        kind: RequestType,
        remote: Remote,
    ) -> Status {
        // SAFETY: the caller keeps the queue pair alive.
        let core = unsafe { self.core() };
        let counting = if kind == RequestType::Read { flags & core.limits.read_flags } else { flags };
        if allowed(kind).contains(flags)
            // SAFETY: the caller passes a list that is null or valid for its count during the call.
            && let Some(one) = unsafe { list.only_below(core.bound(kind, counting)) }
            && let Some((reserved, ticket)) =
                core.initiator.try_reserve(context, kind, counting.contains(RequestFlags::SILENT_SUCCESS), one.length)
        {
            let request = WorkRequest { kind, sge: slice::from_ref(one), flags: counting, remote };
            return reserved.conclude(request.post(core, ticket));
        }
        // SAFETY: the queue pair is alive, `list` is valid, and so is the memory of its SGEs until the request completes:
        // the conditions of `Poster::send`.
        unsafe { self.initiate_checked(context, list, flags, kind, remote) }
    }

    /// The slow path of Send, Read and Write: checks every argument.
    ///
    /// # Safety
    /// As [`Poster::send`].
    #[cold]
    #[inline(never)]
    unsafe fn initiate_checked(
        self,
        context: u64,
        list: SgeList,
        mut flags: RequestFlags,
        kind: RequestType,
        remote: Remote,
    ) -> Status {
        // SAFETY: the caller keeps the queue pair alive.
        let core = unsafe { self.arc() };
        // SAFETY: the caller passes a list that is null or valid for its count during the call.
        let sge = match unsafe { list.pieces() } {
            Ok(sge) => sge,
            Err(status) => return status,
        };
        if !allowed(kind).contains(flags) {
            let send = kind == RequestType::Send;
            return if send { Status::INVALID_PARAMETER_4 } else { Status::INVALID_PARAMETER_6 };
        }
        if kind == RequestType::Read {
            if core.was_connected() && !core.may_read() {
                // It may as well have failed before it was connected.
                if core.is_ready() {
                    diagnosis::no_reads(&core.adapter().device_name(), core.number());
                }
                return Status::INVALID_DEVICE_REQUEST;
            }
            flags &= core.limits.read_flags;
        }
        // SAFETY: the caller keeps the memory of the SGEs valid until the request completes.
        Status::of(unsafe { core.initiate(context, WorkRequest { kind, sge, flags, remote }) })
    }

    /// The slow path of Receive: checks every argument.
    ///
    /// # Safety
    /// As [`Poster::send`].
    #[cold]
    #[inline(never)]
    unsafe fn receive_checked(self, context: u64, list: SgeList) -> Status {
        // SAFETY: the caller keeps the queue pair alive.
        let core = unsafe { self.arc() };
        // SAFETY: the caller passes a list that is null or valid for its count during the call.
        let list = unsafe { list.pieces() };
        Status::of(list.and_then(|sge| core.receive(context, sge)))
    }

    /// The queue pair.
    ///
    /// # Safety
    /// It must be alive.
    #[inline(always)]
    unsafe fn core<'a>(self) -> &'a Core {
        // SAFETY: the caller keeps the queue pair alive.
        unsafe { self.0.as_ref() }
    }

    /// The queue pair as an `Arc` that does not own a reference.
    ///
    /// # Safety
    /// As [`Poster::core`].
    unsafe fn arc(self) -> ManuallyDrop<Arc<Core>> {
        // SAFETY: the pointer came from an `Arc`; the reference made here is never dropped.
        ManuallyDrop::new(unsafe { Arc::from_raw(self.0.as_ptr()) })
    }
}

/// The flags allowed for a request of this type.
#[inline(always)]
fn allowed(kind: RequestType) -> RequestFlags {
    if kind == RequestType::Send { SEND_FLAGS } else { RDMA_FLAGS }
}

impl Core {
    /// Checks the SGEs and posts a request whose flags have been checked.
    ///
    /// # Safety
    /// As [`QueuePair::send`].
    unsafe fn initiate(self: &Arc<Self>, context: u64, request: WorkRequest<'_>) -> Result<()> {
        self.check_connected()?;
        let WorkRequest { kind, mut sge, flags, .. } = request;
        let limits = &self.limits;
        let mut gathered = Gathered::uninit();
        let (mut one, mut filled) = ([Sge::default()], Filled::default());
        let length;
        if flags.contains(RequestFlags::INLINE) {
            length = scatter_gather::check(sge, u32::MAX, limits.max_inline.into())?;
            if sge.len() as u32 > limits.max_initiator_sge {
                // SAFETY: the caller keeps the memory of the SGEs valid for reads; the data fits, as no device takes more
                // inline.
                one[0] = unsafe { scatter_gather::gather(sge, &mut gathered, length as u32) };
                sge = &one;
            }
        } else {
            length = scatter_gather::check(sge, limits.max_initiator_sge, limits.max_transfer)?;
            self.expect_message(length);
        }
        sge = scatter_gather::without_empty(sge, &mut filled);
        if sge.is_empty() {
            sge = self.empty_list();
        }
        let request = WorkRequest { sge, ..request };
        let split = kind == RequestType::Read && sge.len() as u32 > limits.device_read_sge;
        let silent = flags.contains(RequestFlags::SILENT_SUCCESS);
        // No device takes more than `u32::MAX`.
        self.post_initiator(kind, context, silent, length as u32, |ticket| {
            if split { request.post_split(self, ticket) } else { request.post(self, ticket) }
        })
    }

    /// Posts a request without effect, which completes in order: an RDMA write of no bytes. `first` runs before it is
    /// posted, if there is room for it.
    pub(crate) fn no_op(
        self: &Arc<Self>,
        kind: RequestType,
        context: u64,
        flags: RequestFlags,
        first: impl Fn(),
    ) -> Result<()> {
        self.check_connected()?;
        let (sge, silent) = (self.empty_list(), flags.contains(RequestFlags::SILENT_SUCCESS));
        let flags = flags & RequestFlags::READ_FENCE;
        let request = WorkRequest { kind, sge, flags, remote: Remote::default() };
        self.post_initiator(kind, context, silent, 0, |ticket| {
            first();
            request.post(self, ticket)
        })
    }

    /// Checks and posts a receive.
    fn receive(self: &Arc<Self>, context: u64, sge: &[Sge]) -> Result<()> {
        let Some(queue) = &*self.receive else { return Err(Status::INVALID_DEVICE_REQUEST) };
        scatter_gather::check(sge, self.limits.max_receive_sge, self.limits.max_transfer)?;
        let mut filled = Filled::default();
        let sge = scatter_gather::without_empty(sge, &mut filled);
        let sge = if sge.is_empty() { self.empty_list() } else { sge };
        self.post(queue, RequestType::Receive, context, false, 0, |ticket| post_receive(self, sge, ticket))
    }

    /// Posts a request of `bytes` bytes to the initiator queue by `device`. If the queue is full, frees the slots of completed silent
    /// requests first.
    pub(crate) fn post_initiator(
        self: &Arc<Self>,
        kind: RequestType,
        context: u64,
        silent: bool,
        bytes: u32,
        device: impl Fn(Ticket) -> i32,
    ) -> Result<()> {
        let posted = self.post(&self.initiator, kind, context, silent, bytes, &device);
        if posted == Err(Status::NO_MORE_ENTRIES) && self.initiator.has_silent() {
            self.reap_initiator();
            return self.post(&self.initiator, kind, context, silent, bytes, &device);
        }
        posted
    }

    /// Posts a request to a queue, or accepts it on a failed queue pair, to be reported as cancelled.
    fn post(
        self: &Arc<Self>,
        queue: &RequestQueue,
        kind: RequestType,
        context: u64,
        silent: bool,
        bytes: u32,
        device: impl FnOnce(Ticket) -> i32,
    ) -> Result<()> {
        if let Some((reserved, ticket)) = queue.reserve(context, kind, silent, bytes) {
            return reserved.conclude(device(ticket)).ok();
        }
        if !queue.accept_flushed(context, kind) {
            return Err(Status::NO_MORE_ENTRIES);
        }
        self.report_flushed();
        Ok(())
    }
}
