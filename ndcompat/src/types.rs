//! The SPI's own structures and flags, laid out as C callers lay them out (`nddef.h`, `ndspi.h`).

use crate::status::Status;
use crate::verbs::bindings::ibv_sge;
use std::mem::offset_of;

/// `ND2_SGE`: one piece of local memory in a request.
///
/// The layout is that of `ibv_sge` on 64-bit machines, so an array of these goes to the device as it is.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Sge {
    /// Address of the buffer.
    pub buffer: u64,
    /// Length of the buffer in bytes.
    pub length: u32,
    /// Local token of the memory region around the buffer.
    pub token: u32,
}

const _: () = assert!(
    size_of::<Sge>() == size_of::<ibv_sge>()
        && align_of::<Sge>() == align_of::<ibv_sge>()
        && offset_of!(Sge, buffer) == offset_of!(ibv_sge, addr)
        && offset_of!(Sge, length) == offset_of!(ibv_sge, length)
        && offset_of!(Sge, token) == offset_of!(ibv_sge, lkey)
);

/// `ND2_REQUEST_TYPE`: what kind of request a completion belongs to.
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

/// `ND2_RESULT`: one completion, as `GetResults` returns it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Completion {
    /// Outcome of the request.
    pub status: Status,
    /// Bytes received; meaningful for receives only, zero otherwise.
    pub bytes_transferred: u32,
    /// The context the queue pair was created with.
    pub queue_pair_context: u64,
    /// The context the request was posted with.
    pub request_context: u64,
    /// The kind of request.
    pub request_type: RequestType,
}

const _: () = assert!(
    size_of::<Completion>() == 32
        && offset_of!(Completion, queue_pair_context) == 8
        && offset_of!(Completion, request_context) == 16
        && offset_of!(Completion, request_type) == 24
);

/// `ND2_ADAPTER_INFO`: what an adapter can do. See `IND2Adapter::Query` for the units.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // the fields are the SPI's, described there
pub struct AdapterInfo {
    pub info_version: u32,
    pub vendor_id: u16,
    pub device_id: u16,
    pub adapter_id: u64,
    pub max_registration_size: usize,
    pub max_window_size: usize,
    pub max_initiator_sge: u32,
    pub max_receive_sge: u32,
    pub max_read_sge: u32,
    pub max_transfer_length: u32,
    pub max_inline_data_size: u32,
    pub max_inbound_read_limit: u32,
    pub max_outbound_read_limit: u32,
    pub max_receive_queue_depth: u32,
    pub max_initiator_queue_depth: u32,
    pub max_shared_receive_queue_depth: u32,
    pub max_completion_queue_depth: u32,
    pub inline_request_threshold: u32,
    pub large_request_threshold: u32,
    pub max_caller_data: u32,
    pub max_callee_data: u32,
    pub adapter_flags: u32,
}

const _: () = assert!(size_of::<AdapterInfo>() == 96 && offset_of!(AdapterInfo, adapter_flags) == 92);

/// `ND_VERSION_2`, the interface version in [`AdapterInfo::info_version`].
pub const VERSION_2: u32 = 0x2_0000;

/// Bits of [`AdapterInfo::adapter_flags`].
pub mod adapter_flags {
    /// Data is placed in memory in the order it was sent.
    pub const IN_ORDER_DMA: u32 = 0x1;
    /// Completion queues make progress independently of each other.
    pub const MULTI_ENGINE: u32 = 0x8;
    /// Completion queues can be resized.
    pub const CQ_RESIZE: u32 = 0x100;
    /// A connection may have both ends on this adapter.
    pub const LOOPBACK: u32 = 0x1_0000;
}

/// Flags of `IND2MemoryRegion::Register`.
pub mod mr_flags {
    /// The adapter may write to the region.
    pub const ALLOW_LOCAL_WRITE: u32 = 0x1;
    /// Peers may read the region.
    pub const ALLOW_REMOTE_READ: u32 = 0x2;
    /// The bit of `ND_MR_FLAG_ALLOW_REMOTE_WRITE` (5) that is its own; the other is local write.
    pub const REMOTE_WRITE_BIT: u32 = 0x4;
    /// The region may be the sink of RDMA reads.
    pub const RDMA_READ_SINK: u32 = 0x8;
}

/// Flags of the requests on a queue pair.
pub mod op_flags {
    /// No completion when the request succeeds.
    pub const SILENT_SUCCESS: u32 = 0x1;
    /// Wait for all earlier reads.
    pub const READ_FENCE: u32 = 0x2;
    /// Let the receiver's completion satisfy a solicited notification.
    pub const SOLICIT: u32 = 0x4;
    /// The window may be read.
    pub const ALLOW_READ: u32 = 0x8;
    /// The window may be written.
    pub const ALLOW_WRITE: u32 = 0x10;
    /// Copy the data while posting; tokens are not looked at.
    pub const INLINE: u32 = 0x20;
}

/// What a `Notify` on a completion queue waits for (`ND_CQ_NOTIFY_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotifyType {
    /// An error of the queue itself.
    Errors = 0,
    /// Any completion.
    Any = 1,
    /// A receive whose sender asked for it, or a failed request.
    Solicited = 2,
}
