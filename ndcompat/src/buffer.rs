//! Registered memory for Rust programs, and safe forms of the calls that move data in and out of it.

use crate::adapter::Adapter;
use crate::memory_region::MemoryRegion;
use crate::operation::Operation;
use crate::queue_pair::QueuePair;
use crate::status::{Result, Status};
use crate::types::Sge;
use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::Arc;
use win32::io::File;

/// Memory of its own, registered while it lives.
///
/// The device, and peers that know its token, may change the bytes at any time, so they are only ever copied. Requests
/// that are outstanding when the buffer goes fail: the device cannot reach the memory any more.
pub struct Buffer {
    /// Goes before the memory does.
    region: Arc<MemoryRegion>,
    bytes: Box<[UnsafeCell<u8>]>,
}

// SAFETY: the bytes are only accessed by copies through raw pointers, of which none is handed out.
unsafe impl Send for Buffer {}
// SAFETY: as above, and only a mutable borrow changes them.
unsafe impl Sync for Buffer {}

/// Memory of a peer, as the peer has announced it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteMemory {
    /// Where it begins.
    pub address: u64,
    /// Its remote token.
    pub token: u32,
}

impl Buffer {
    /// Registers `length` bytes, all 0, with `ND_MR_FLAG_*` flags.
    pub fn new(adapter: &Arc<Adapter>, file: &Arc<File>, length: usize, flags: u32) -> Result<Buffer> {
        let bytes: Box<[UnsafeCell<u8>]> = (0..length).map(|_| UnsafeCell::new(0)).collect();
        let region = adapter.create_memory_region(file)?;
        let start = bytes.as_ptr() as *mut u8;
        // SAFETY: the bytes outlive the region, and others use them by copies only; the call begins a request unless it
        // fails.
        let registration = unsafe {
            Operation::begin(file, |ov| match region.register(start, length, flags, ov) {
                Status::PENDING => Ok(()),
                status => Err(status),
            })
        };
        registration?.wait()?;
        Ok(Buffer { region, bytes })
    }

    /// Copies `data` to `offset`.
    ///
    /// # Panics
    /// If it does not fit.
    pub fn store(&mut self, offset: usize, data: &[u8]) {
        let target = self.bytes[offset..offset + data.len()].as_ptr() as *mut u8;
        // SAFETY: the bytes are there, and nobody holds a reference to them.
        unsafe { target.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
    }

    /// Copies from `offset` to `data`.
    ///
    /// # Panics
    /// If there are not so many bytes.
    pub fn load(&self, offset: usize, data: &mut [u8]) {
        let source = self.bytes[offset..offset + data.len()].as_ptr() as *const u8;
        // SAFETY: as above.
        unsafe { data.as_mut_ptr().copy_from_nonoverlapping(source, data.len()) };
    }

    /// What a peer needs to know to read or write here, from `offset` on, if the flags allow it.
    pub fn remote(&self, offset: usize) -> RemoteMemory {
        RemoteMemory { address: self.bytes[offset..].as_ptr() as u64, token: self.region.remote_token() }
    }

    fn sge(&self, range: Range<usize>) -> Sge {
        let bytes = &self.bytes[range];
        let (buffer, length) = (bytes.as_ptr() as u64, bytes.len() as u32);
        Sge { buffer, length, token: self.region.local_token() }
    }
}

// Why the calls below are sound: the device reaches the memory only while it is registered, and that is while it lives.
impl QueuePair {
    /// [`QueuePair::send`] of part of a buffer.
    pub fn send_from(&self, context: u64, buffer: &Buffer, range: Range<usize>, flags: u32) -> Result<()> {
        // SAFETY: see above.
        unsafe { self.send(context, &[buffer.sge(range)], flags) }
    }

    /// [`QueuePair::receive`] into part of a buffer.
    pub fn receive_into(&self, context: u64, buffer: &Buffer, range: Range<usize>) -> Result<()> {
        // SAFETY: see above.
        unsafe { self.receive(context, &[buffer.sge(range)]) }
    }

    /// [`QueuePair::write`] of part of a buffer.
    pub fn write_from(
        &self,
        context: u64,
        buffer: &Buffer,
        range: Range<usize>,
        remote: RemoteMemory,
        flags: u32,
    ) -> Result<()> {
        // SAFETY: see above.
        unsafe { self.write(context, &[buffer.sge(range)], remote.address, remote.token, flags) }
    }

    /// [`QueuePair::read`] into part of a buffer.
    pub fn read_into(
        &self,
        context: u64,
        buffer: &Buffer,
        range: Range<usize>,
        remote: RemoteMemory,
        flags: u32,
    ) -> Result<()> {
        // SAFETY: see above.
        unsafe { self.read(context, &[buffer.sge(range)], remote.address, remote.token, flags) }
    }
}
