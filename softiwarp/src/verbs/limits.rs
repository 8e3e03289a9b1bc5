//! The limits of the device.

/// The longest scatter/gather list.
pub(super) const PIECES_MAX: usize = 16;
/// The most bytes of inline data.
pub(super) const INLINE_MAX: u32 = 1024;
/// The deepest queue of requests.
pub(super) const DEPTH_MAX: u32 = 1 << 16;
/// The deepest completion queue.
pub(super) const COMPLETIONS_MAX: u32 = 1 << 20;
/// The most outstanding reads of a connection in each direction.
pub(super) const READS_MAX: u16 = 128;
