//! Objects that a `HANDLE` can name: the handle table, events, threads, and waiting for any of them.

/// A `HANDLE` as the C side sees it: a table value, never a real pointer.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct RawHandle(pub usize);

impl RawHandle {
    /// The `NULL` handle.
    pub const NULL: RawHandle = RawHandle(0);
    /// `INVALID_HANDLE_VALUE`.
    pub const INVALID: RawHandle = RawHandle(usize::MAX);

    /// Whether the low-order bit is set, which in `OVERLAPPED.hEvent` asks for no completion packet.
    pub fn is_tagged(self) -> bool {
        self.0 & 1 != 0
    }
}
