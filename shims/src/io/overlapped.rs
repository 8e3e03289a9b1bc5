//! `OVERLAPPED`, and the NTSTATUS values that the I/O core itself uses.

use crate::handle::RawHandle;
use std::sync::atomic::AtomicUsize;

/// NTSTATUS: success.
pub const STATUS_SUCCESS: i32 = 0;
/// NTSTATUS: the operation has not completed yet.
pub const STATUS_PENDING: i32 = 0x103;
/// NTSTATUS: the operation was cancelled.
pub const STATUS_CANCELLED: i32 = 0xC000_0120_u32 as i32;

/// The Windows `OVERLAPPED` structure. `internal` holds the status, `internal_high` the byte count.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Overlapped {
    /// `Internal`: the NTSTATUS; [`STATUS_PENDING`] until the operation completes.
    pub internal: AtomicUsize,
    /// `InternalHigh`: the number of bytes transferred.
    pub internal_high: AtomicUsize,
    /// `Offset` and `OffsetHigh` (or `Pointer`): ignored.
    pub offset: u64,
    /// `hEvent`: an event to set at completion, or `NULL`; a set low-order bit means no completion packet.
    pub event: RawHandle,
}

impl Overlapped {
    /// One whose request has no completion packet on a port, as the low-order bit of `hEvent` says, and sets no event.
    pub fn without_packet() -> Overlapped {
        Overlapped { event: RawHandle(1), ..Overlapped::default() }
    }
}

const _: () = assert!(size_of::<Overlapped>() == 32 && align_of::<Overlapped>() == 8);
