//! `HANDLE`.

/// A `HANDLE` as C programs see it: an entry of the handle table, never a pointer.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct RawHandle(pub usize);

impl RawHandle {
    /// The `NULL` handle.
    pub const NULL: RawHandle = RawHandle(0);
    /// `INVALID_HANDLE_VALUE`, which is also the pseudo handle of the process.
    pub const INVALID: RawHandle = RawHandle(usize::MAX);

    /// Whether the low-order bit is set, which in `OVERLAPPED.hEvent` asks for no completion packet.
    pub fn is_tagged(self) -> bool {
        self.0 & 1 != 0
    }
}
