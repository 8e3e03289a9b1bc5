//! The structures and flags of the SPI, with the layout of C (`nddef.h`, `ndspi.h`).

use crate::status::Status;
use crate::verbs::bindings::ibv_sge;
use bitflags::bitflags;
use std::mem::offset_of;

/// `ND2_SGE`: a scatter/gather element, local memory of a request.
///
/// The layout is that of `ibv_sge` on 64-bit machines, so that an array is posted without a copy.
/// [`QueuePair`](crate::QueuePair) shows how one is posted.
///
/// ```
/// use ndcompat::types::Sge;
///
/// let (bytes, token) = ([0_u8; 64], 0x1234); // the token is that of a memory region around the bytes
/// let sge = Sge { buffer: bytes.as_ptr() as u64, length: bytes.len() as u32, token };
/// assert_eq!(size_of_val(&sge), 16);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Sge {
    /// Address of the buffer.
    pub buffer: u64,
    /// Length of the buffer in bytes.
    pub length: u32,
    /// Local token of the memory region that contains the buffer.
    pub token: u32,
}

const _: () = assert!(
    size_of::<Sge>() == size_of::<ibv_sge>()
        && align_of::<Sge>() == align_of::<ibv_sge>()
        && offset_of!(Sge, buffer) == offset_of!(ibv_sge, addr)
        && offset_of!(Sge, length) == offset_of!(ibv_sge, length)
        && offset_of!(Sge, token) == offset_of!(ibv_sge, lkey)
);

/// `ND2_REQUEST_TYPE`: the type of a request.
///
/// ```
/// use ndcompat::types::RequestType;
///
/// assert_eq!(RequestType::Read as u32, 4); // as in ndspi.h
/// ```
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RequestType {
    /// A receive.
    #[default]
    Receive = 0,
    /// A send.
    Send = 1,
    /// The binding of a memory window.
    Bind = 2,
    /// The invalidation of a memory window.
    Invalidate = 3,
    /// An RDMA read.
    Read = 4,
    /// An RDMA write.
    Write = 5,
}

/// `ND2_RESULT`: one completion, as `GetResults` returns it. [`QueuePair`](crate::QueuePair) shows where it comes from.
///
/// ```
/// use ndcompat::types::{Completion, RequestType};
/// use ndcompat::{Result, Status};
///
/// /// The bytes that a receive has brought; nothing for requests of other kinds.
/// fn received(completion: &Completion) -> Result<Option<u32>> {
///     completion.status.ok()?;
///     Ok((completion.request_type == RequestType::Receive).then_some(completion.bytes_transferred))
/// }
///
/// let failed = Completion { status: Status::CANCELED, ..Completion::default() };
/// assert_eq!(received(&failed), Err(Status::CANCELED));
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Completion {
    /// Outcome of the request.
    pub status: Status,
    /// Length in bytes of what was received or read; otherwise 0.
    pub bytes_transferred: u32,
    /// The context that the queue pair was created with.
    pub queue_pair_context: u64,
    /// The context that the request was posted with.
    pub request_context: u64,
    /// The type of the request.
    pub request_type: RequestType,
}

const _: () = assert!(
    size_of::<Completion>() == 32
        && offset_of!(Completion, queue_pair_context) == 8
        && offset_of!(Completion, request_context) == 16
        && offset_of!(Completion, request_type) == 24
);

/// `ND2_ADAPTER_INFO`: the limits and features of an adapter. Each field says its unit.
///
/// ```
#[doc = include_str!("rust_api/device.txt")]
/// use ndcompat::Provider;
/// use ndcompat::types::{AdapterFlags, VERSION_2};
///
/// let info = Provider::open_any()?.info()?;
/// assert_eq!(info.info_version, VERSION_2);
/// assert!(info.adapter_flags.contains(AdapterFlags::LOOPBACK));
/// println!("{} receives, {} other requests", info.max_receive_queue_depth, info.max_initiator_queue_depth);
/// # Ok::<(), ndcompat::Status>(())
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct AdapterInfo {
    /// Version of this structure: [`VERSION_2`].
    pub info_version: u32,
    /// The PCI id of the vendor.
    pub vendor_id: u16,
    /// The vendor's id of the device.
    pub device_id: u16,
    /// The id of the adapter, unique on the machine.
    pub adapter_id: u64,
    /// Largest memory region, in bytes.
    pub max_registration_size: usize,
    /// Largest memory window, in bytes.
    pub max_window_size: usize,
    /// Most SGEs of a send or write.
    pub max_initiator_sge: u32,
    /// Most SGEs of a receive.
    pub max_receive_sge: u32,
    /// Most SGEs of a read.
    pub max_read_sge: u32,
    /// Longest message, read or write, in bytes.
    pub max_transfer_length: u32,
    /// Most inline data of a request, in bytes.
    pub max_inline_data_size: u32,
    /// Most reads that the peer may have outstanding on a connection.
    pub max_inbound_read_limit: u32,
    /// Most reads that this side may have outstanding on a connection.
    pub max_outbound_read_limit: u32,
    /// Deepest receive queue of a queue pair, in requests.
    pub max_receive_queue_depth: u32,
    /// Deepest initiator queue of a queue pair, in requests.
    pub max_initiator_queue_depth: u32,
    /// Deepest shared receive queue, in requests.
    pub max_shared_receive_queue_depth: u32,
    /// Deepest completion queue, in results.
    pub max_completion_queue_depth: u32,
    /// Up to this length, in bytes, inline data is faster.
    pub inline_request_threshold: u32,
    /// From this length on, in bytes, reads and writes are faster than sends.
    pub large_request_threshold: u32,
    /// Most private data of `Connect`, in bytes.
    pub max_caller_data: u32,
    /// Most private data of `Accept` and `Reject`, in bytes.
    pub max_callee_data: u32,
    /// Features.
    pub adapter_flags: AdapterFlags,
}

const _: () = assert!(size_of::<AdapterInfo>() == 96 && offset_of!(AdapterInfo, adapter_flags) == 92);

/// `ND_VERSION_2`, the interface version in [`AdapterInfo::info_version`].
pub const VERSION_2: u32 = 0x2_0000;

bitflags! {
    /// `ND_ADAPTER_FLAG_*`: what an adapter supports, in [`AdapterInfo::adapter_flags`].
    ///
    /// ```
    #[doc = include_str!("rust_api/device.txt")]
    /// use ndcompat::types::AdapterFlags;
    /// use ndcompat::{Provider, Session, Status};
    ///
    /// let session = Session::new(&Provider::open_any()?)?;
    /// let queue = session.adapter().create_completion_queue(session.file(), 16, (0, 0))?;
    /// let flags = session.adapter().info()?.adapter_flags;
    /// match queue.resize(32) {
    ///     Ok(()) => assert!(flags.contains(AdapterFlags::CQ_RESIZE)),
    ///     Err(status) => assert_eq!(status, Status::NOT_SUPPORTED),
    /// }
    /// # Ok::<(), ndcompat::Status>(())
    /// ```
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct AdapterFlags: u32 {
        /// Data is placed in memory in the order in which it was sent.
        const IN_ORDER_DMA = 0x1;
        /// Completion queues are processed independently of each other.
        const MULTI_ENGINE = 0x8;
        /// Completion queues can be resized.
        const CQ_RESIZE = 0x100;
        /// A connection may have both ends on this adapter.
        const LOOPBACK = 0x1_0000;
    }

    /// `ND_MR_FLAG_*`: the accesses allowed to a memory region. Other bits are ignored, as vendors use them.
    ///
    /// ```
    /// use ndcompat::types::RegionFlags;
    ///
    /// let flags = RegionFlags::ALLOW_REMOTE_READ | RegionFlags::ALLOW_REMOTE_WRITE;
    /// assert!(flags.contains(RegionFlags::ALLOW_LOCAL_WRITE)); // included in remote writing
    /// ```
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct RegionFlags: u32 {
        /// The adapter may write to the region.
        const ALLOW_LOCAL_WRITE = 0x1;
        /// Peers may read the region.
        const ALLOW_REMOTE_READ = 0x2;
        /// Peers may write to the region. Includes [`ALLOW_LOCAL_WRITE`](Self::ALLOW_LOCAL_WRITE).
        const ALLOW_REMOTE_WRITE = 0x5;
        /// The region may be the target of RDMA reads.
        const RDMA_READ_SINK = 0x8;
        const _ = !0;
    }

    /// `ND_OP_FLAG_*`: options of a request on a queue pair. Each type of request allows some of them.
    ///
    /// ```
    #[doc = include_str!("rust_api/connected.txt")]
    /// use ndcompat::types::RequestFlags;
    /// use ndcompat::{Provider, Session};
    ///
    /// let session = Session::new(&Provider::open_any()?)?;
    /// let (client, _server, receiving) = connected(&session, |pair| Ok(pair.receive(session.buffer(8)?)))?;
    /// client.send_with(session.buffer(8)?, RequestFlags::SOLICIT | RequestFlags::READ_FENCE).wait().1?;
    /// assert_eq!(receiving.wait().1?.bytes, 8);
    /// # Ok::<(), ndcompat::Status>(())
    /// ```
    #[repr(transparent)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct RequestFlags: u32 {
        /// No result when the request succeeds.
        const SILENT_SUCCESS = 0x1;
        /// Begin after all earlier reads have completed.
        const READ_FENCE = 0x2;
        /// Let the receiver's completion satisfy a solicited notification (`ND_OP_FLAG_SEND_AND_SOLICIT_EVENT`).
        const SOLICIT = 0x4;
        /// The window may be read.
        const ALLOW_READ = 0x8;
        /// The window may be written.
        const ALLOW_WRITE = 0x10;
        /// Copy the data during the call; the tokens of the SGEs are ignored.
        const INLINE = 0x20;
    }
}

/// The kind of completion that a `Notify` waits for (`ND_CQ_NOTIFY_*`). [`Operation`](crate::Operation) shows how it is
/// waited for.
///
/// ```
/// use ndcompat::types::NotifyType;
///
/// assert_eq!(NotifyType::Any as u32, 1); // as in ndspi.h
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotifyType {
    /// A failure of the queue itself.
    Errors = 0,
    /// Any completion.
    Any = 1,
    /// A receive of a message sent with [`RequestFlags::SOLICIT`], or a failed request.
    Solicited = 2,
}
