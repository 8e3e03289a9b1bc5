//! The interface to TCP.

use std::io;

/// A stream of bytes both ways that does not block: a call that cannot do anything fails with
/// [`io::ErrorKind::WouldBlock`].
pub trait Stream {
    /// Writes some of the pieces' bytes, in order. Returns how many.
    ///
    /// # Errors
    /// `WouldBlock`; all else ends the connection.
    ///
    /// # Safety
    /// Each piece must be readable during the call. Its content may change meanwhile.
    unsafe fn write(&mut self, pieces: &[libc::iovec]) -> io::Result<usize>;

    /// Reads into the pieces, in order. Returns the number of bytes; 0 is the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock`; all else ends the connection.
    ///
    /// # Safety
    /// Each piece must be writable during the call. Others may write there meanwhile.
    unsafe fn read(&mut self, pieces: &[libc::iovec]) -> io::Result<usize>;

    /// Tells the peer that nothing more will be written.
    fn finish(&mut self);
}
