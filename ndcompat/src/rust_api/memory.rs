//! Registered memory for Rust programs.

use crate::device::adapter::Adapter;
use crate::memory::memory_region::MemoryRegion;
use crate::status::{Result, Status};
use crate::types::{RegionFlags, Sge};
use std::alloc::{Layout, alloc_zeroed};
use std::fmt;
use std::ops::{Bound, Deref, DerefMut, Range, RangeBounds};
use std::ptr::NonNull;
use std::sync::Arc;
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
use std::sync::atomic::{AtomicU8, Ordering};
use win32::io::File;

/// Memory of a peer that RDMA reads and writes name.
///
/// The peer makes it of its own memory, by [`SharedMemory::remote`], and sends it: in private data, or in a message.
///
/// ```
#[doc = include_str!("connected.txt")]
/// use ndcompat::types::RegionFlags;
/// use ndcompat::{Provider, RemoteMemory, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let (client, server, receiving) = connected(&session, |pair| Ok(pair.receive(session.buffer(12)?)))?;
/// let memory = session.shared_memory(100, RegionFlags::ALLOW_REMOTE_READ)?;
/// memory.store(96, b"tail");
/// let mut message = session.buffer(12)?;
/// message.copy_from_slice(&memory.remote(0).to_bytes());
/// client.send(message).wait().1?;
///
/// let (message, received) = receiving.wait();
/// assert_eq!(received?.bytes, 12);
/// let there = RemoteMemory::from_bytes(message[..].try_into().unwrap());
/// let copy = session.shared_memory(4, RegionFlags::RDMA_READ_SINK)?;
/// let (copy, read) = server.read(copy, there.at(96)).wait();
/// read?;
/// let mut bytes = [0; 4];
/// copy.load(0, &mut bytes);
/// assert_eq!(&bytes, b"tail");
/// # Ok::<(), ndcompat::Status>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RemoteMemory {
    /// The address of its first byte, in the peer's address space.
    pub address: u64,
    /// Its remote token, in network order, as `GetRemoteToken` returns it.
    pub token: u32,
}

impl RemoteMemory {
    /// The memory `offset` bytes further on.
    pub fn at(self, offset: u64) -> RemoteMemory {
        RemoteMemory { address: self.address.wrapping_add(offset), ..self }
    }

    /// Encodes it for a message to the peer: the address in network order, then the token.
    ///
    /// ```
    /// use ndcompat::RemoteMemory;
    /// let memory = RemoteMemory { address: 0x1000, token: u32::to_be(7) };
    /// assert_eq!(memory.to_bytes(), [0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 7]);
    /// assert_eq!(RemoteMemory::from_bytes(&memory.to_bytes()), memory);
    /// ```
    pub fn to_bytes(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&self.address.to_be_bytes());
        bytes[8..].copy_from_slice(&self.token.to_ne_bytes());
        bytes
    }

    /// Decodes what [`to_bytes`](Self::to_bytes) has encoded.
    pub fn from_bytes(bytes: &[u8; 12]) -> RemoteMemory {
        let [address @ .., a, b, c, d] = *bytes;
        RemoteMemory { address: u64::from_be_bytes(address), token: u32::from_ne_bytes([a, b, c, d]) }
    }
}

/// Bytes on the heap that are registered for as long as this lives. Only its owner has references to them.
struct Registered {
    region: Arc<MemoryRegion>,
    /// A box of the global allocator's, freed after deregistration.
    bytes: NonNull<[u8]>,
}

// SAFETY: it owns the bytes, like a box.
unsafe impl Send for Registered {}
// SAFETY: the region is `Sync`; the types that own this decide who accesses the bytes.
unsafe impl Sync for Registered {}

impl Registered {
    fn new(
        adapter: &Arc<Adapter>,
        file: &Arc<File>,
        length: usize,
        flags: RegionFlags,
    ) -> Result<Registered> {
        let region = adapter.create_memory_region(file)?;
        // What cannot be registered is not allocated first: it may be more than there is.
        if length > adapter.limits().info.max_registration_size {
            return Err(Status::INVALID_PARAMETER);
        }
        let bytes = zeros(length)?;
        let registered = Registered { region, bytes };
        // SAFETY: the bytes outlive the region; there are no references to them.
        unsafe { registered.region.begin_register(bytes.cast().as_ptr(), length, flags) }?.wait()?;
        Ok(registered)
    }

    fn start(&self) -> *mut u8 {
        self.bytes.cast().as_ptr()
    }

    fn sge(&self, range: Range<usize>) -> Result<Sge> {
        let length = sge_length(&range)?;
        let buffer = self.start().addr() as u64 + range.start as u64;
        Ok(Sge { buffer, length, token: self.region.local_token() })
    }
}

/// A box of so many bytes, as a pointer.
fn zeros(length: usize) -> Result<NonNull<[u8]>> {
    if length == 0 {
        return Err(Status::INVALID_BUFFER_SIZE);
    }
    let layout = Layout::array::<u8>(length).map_err(|_| Status::INVALID_PARAMETER)?;
    // Not by `Vec`, which ends the process if there is no memory.
    // SAFETY: the layout has bytes.
    let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(Status::NO_MEMORY)?;
    Ok(NonNull::slice_from_raw_parts(start, length))
}

/// The length of an SGE, which has 32 bits.
fn sge_length(range: &Range<usize>) -> Result<u32> {
    u32::try_from(range.len()).map_err(|_| Status::BUFFER_OVERFLOW)
}

impl Drop for Registered {
    fn drop(&mut self) {
        // Others may still hold the region, and deregistration may fail: then the bytes leak, as the device may use them.
        if self.region.release() {
            // SAFETY: it was a box, and is not used again.
            drop(unsafe { Box::from_raw(self.bytes.as_ptr()) });
        }
    }
}

/// Registered memory for sends, receives and the source of writes. Peers cannot access it.
///
/// It is a slice of bytes. A request takes it, and returns it when it has completed. For the target of reads, and for what
/// peers read or write, use [`SharedMemory`].
///
/// Created by [`Session::buffer`](crate::Session::buffer).
///
/// ```
#[doc = include_str!("device.txt")]
/// use ndcompat::{Provider, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let mut buffer = session.buffer(4096)?; // bytes, all 0
/// buffer[..5].copy_from_slice(b"hello");
/// assert_eq!(buffer.len(), 4096);
/// # Ok::<(), ndcompat::Status>(())
/// ```
pub struct Buffer(Registered);

impl Buffer {
    pub(crate) fn new(adapter: &Arc<Adapter>, file: &Arc<File>, length: usize) -> Result<Buffer> {
        Registered::new(adapter, file, length, RegionFlags::ALLOW_LOCAL_WRITE).map(Buffer)
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are valid; a request that uses them owns the buffer, and peers have no access.
        unsafe { self.0.bytes.as_ref() }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the bytes are valid, and `&mut self` makes this the only reference; a request that uses them owns the
        // buffer, and peers have no access.
        unsafe { self.0.bytes.as_mut() }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("length", &self.len()).finish_non_exhaustive()
    }
}

/// Registered memory that peers may access, and that RDMA reads may fill. Clones share it.
///
/// A peer that knows the token may change the bytes at any time, so there are no references to them: [`load`](Self::load)
/// and [`store`](Self::store) copy. The memory lives until the last clone is dropped and the last request on it has
/// completed.
///
/// Created by [`Session::shared_memory`](crate::Session::shared_memory).
///
/// ```
#[doc = include_str!("device.txt")]
/// use ndcompat::types::RegionFlags;
/// use ndcompat::{Provider, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let memory = session.shared_memory(4096, RegionFlags::ALLOW_REMOTE_WRITE)?;
/// memory.store(100, b"hello");
/// // What a peer has to know to write to the last 4000 bytes: 12 bytes, for a message or for private data.
/// let announcement = memory.remote(96).to_bytes();
/// let mut bytes = [0; 5];
/// memory.load(100, &mut bytes);
/// assert_eq!(&bytes, b"hello");
/// # Ok::<(), ndcompat::Status>(())
/// ```
#[derive(Clone)]
pub struct SharedMemory(Arc<Registered>);

impl SharedMemory {
    pub(crate) fn new(
        adapter: &Arc<Adapter>,
        file: &Arc<File>,
        length: usize,
        flags: RegionFlags,
    ) -> Result<SharedMemory> {
        let flags = flags | RegionFlags::ALLOW_LOCAL_WRITE;
        Registered::new(adapter, file, length, flags).map(|registered| SharedMemory(Arc::new(registered)))
    }

    /// The length in bytes.
    pub fn len(&self) -> usize {
        self.0.bytes.len()
    }

    /// Always false: a length of 0 cannot be registered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory region.
    pub(crate) fn region(&self) -> &Arc<MemoryRegion> {
        &self.0.region
    }

    fn check(&self, offset: usize, length: usize) {
        let end = offset.checked_add(length);
        assert!(end.is_some_and(|end| end <= self.len()), "{length} bytes at {offset} of {}", self.len());
    }

    /// The address of the first byte, for who knows that nobody else is using some of the bytes: no other thread, no request, and no peer
    /// that has the token. The memory is there as long as a clone of this is.
    ///
    /// ```
    #[doc = include_str!("device.txt")]
    /// use ndcompat::types::RegionFlags;
    /// use ndcompat::{Provider, Session};
    ///
    /// let session = Session::new(&Provider::open_any()?)?;
    /// let memory = session.shared_memory(4096, RegionFlags::RDMA_READ_SINK)?;
    /// memory.store(0, b"read before");
    /// // SAFETY: the range is inside the memory; peers may not write to it, and no read into it is outstanding.
    /// let bytes = unsafe { std::slice::from_raw_parts(memory.as_ptr(), 4) };
    /// assert_eq!(bytes, b"read");
    /// # Ok::<(), ndcompat::Status>(())
    /// ```
    pub fn as_ptr(&self) -> *mut u8 {
        self.0.start()
    }

    /// The address of `length` bytes from `offset` on.
    fn range(&self, offset: usize, length: usize) -> *mut u8 {
        self.check(offset, length);
        // SAFETY: `check` has verified that it is inside the memory.
        unsafe { self.0.start().add(offset) }
    }

    /// Copies `data` to `offset`, byte by byte. Accesses of another thread or of a peer at the same time may see or leave a mixture. Does
    /// not order other accesses: for a peer that reads a flag and then data, store the data, then a
    /// [`fence`](std::sync::atomic::fence) that releases, then the flag.
    ///
    /// # Panics
    /// If the range is not inside the memory.
    pub fn store(&self, offset: usize, data: &[u8]) {
        let to = self.range(offset, data.len());
        // SAFETY: both ranges are as long; `data` is no part of the memory, to which there are no references.
        unsafe { copy_bytes(data.as_ptr(), to, data.len()) };
    }

    /// Copies from `offset` to `data`, byte by byte. A write of another thread or of a peer at the same time may be seen in part. Does not
    /// order other accesses: for a flag that a peer writes after data, load the flag, then a [`fence`](std::sync::atomic::fence) that
    /// acquires, then the data.
    ///
    /// # Panics
    /// If the range is not inside the memory.
    pub fn load(&self, offset: usize, data: &mut [u8]) {
        let from = self.range(offset, data.len());
        // SAFETY: both ranges are as long; `data` is no part of the memory, to which there are no references.
        unsafe { copy_bytes(from, data.as_mut_ptr(), data.len()) };
    }

    /// The address and token for a peer to read or write from `offset` on, as far as the flags allow.
    ///
    /// # Panics
    /// If `offset` is beyond the end.
    pub fn remote(&self, offset: usize) -> RemoteMemory {
        self.check(offset, 0);
        RemoteMemory {
            address: self.0.start().addr() as u64 + offset as u64,
            token: self.0.region.remote_token(),
        }
    }
}

/// Copies bytes, each by an atomic access of its own, as other threads may access the same ones. Larger atomics would be faster, but two
/// threads may access overlapping bytes, which atomics of different sizes must not do.
///
/// # Safety
/// `from` must be valid for reads of `length` bytes, `to` for writes. The two do not overlap.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
unsafe fn copy_bytes(from: *const u8, to: *mut u8, length: usize) {
    for at in 0..length {
        // SAFETY: in range; all others access the bytes by atomics of this size, too.
        let (from, to) =
            unsafe { (AtomicU8::from_ptr(from.add(at).cast_mut()), AtomicU8::from_ptr(to.add(at))) };
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// The same by the instruction that the processor has for it, which takes many bytes at a time. The compiler makes none of a loop over
/// atomics.
///
/// # Safety
/// As above.
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn copy_bytes(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the ranges are valid, as the caller says; the direction flag is clear, as the ABI says. To the compiler it does what the loop
    // above does.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") length => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags)
        );
    }
}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedMemory").field("length", &self.len()).finish_non_exhaustive()
    }
}

/// The memory of an outstanding request, whatever its type.
#[derive(Debug)]
pub enum AnyMemory {
    /// A buffer.
    Buffer(Buffer),
    /// Shared memory.
    Shared(SharedMemory),
}

impl AnyMemory {
    pub(crate) fn sge(&self, range: Range<usize>) -> Result<Sge> {
        match self {
            AnyMemory::Buffer(buffer) => buffer.0.sge(range),
            AnyMemory::Shared(memory) => memory.0.sge(range),
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Buffer {}
    impl Sealed for super::SharedMemory {}
    impl<M> Sealed for super::Part<M> {}
}

/// Registered memory that a request can take: [`Buffer`] or [`SharedMemory`].
///
/// ```
#[doc = include_str!("device.txt")]
/// use ndcompat::{Memory, Provider, Session, Transfer};
///
/// /// Waits for a request on memory of either type, and returns the memory.
/// fn finish<M: Memory>(transfer: Transfer<M>) -> ndcompat::Result<M> {
///     let (memory, result) = transfer.wait();
///     result.map(|_| memory)
/// }
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let pair = session.queue_pair().build()?;
/// assert!(finish(pair.send(session.buffer(8)?)).is_err()); // not connected
/// # Ok::<(), ndcompat::Status>(())
/// ```
pub trait Memory: Sized + Send + sealed::Sealed {
    /// The length in bytes.
    #[doc(hidden)]
    fn length(&self) -> usize;
    #[doc(hidden)]
    fn into_any(self) -> AnyMemory;
    #[doc(hidden)]
    fn from_any(memory: AnyMemory) -> Self;

    /// A range of the memory, in bytes, for a request on that range only. The request takes and returns the whole memory.
    ///
    /// ```
    #[doc = include_str!("connected.txt")]
    /// use ndcompat::{Memory, Provider, Session};
    ///
    /// let session = Session::new(&Provider::open_any()?)?;
    /// let (client, server, receiving) = connected(&session, |pair| Ok(pair.receive(session.buffer(64)?)))?;
    /// let (message, sent) = client.send(session.buffer(64)?.part(..5)).wait();
    /// assert_eq!((message.len(), sent?.bytes), (64, 5));
    /// # assert_eq!(receiving.wait().1?.bytes, 5);
    /// # Ok::<(), ndcompat::Status>(())
    /// ```
    ///
    /// # Panics
    /// If the range is not inside the memory.
    fn part(self, range: impl RangeBounds<usize>) -> Part<Self> {
        let after = |at: &usize| at.checked_add(1).expect("beyond all memory");
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(start) => after(start),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(end) => after(end),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.length(),
        };
        assert!(start <= end && end <= self.length(), "{start}..{end} of {} bytes", self.length());
        Part { memory: self, range: start..end }
    }
}

impl Memory for Buffer {
    fn length(&self) -> usize {
        self.len()
    }

    fn into_any(self) -> AnyMemory {
        AnyMemory::Buffer(self)
    }

    fn from_any(memory: AnyMemory) -> Buffer {
        match memory {
            AnyMemory::Buffer(buffer) => buffer,
            AnyMemory::Shared(_) => unreachable!("a buffer was passed"),
        }
    }
}

impl Memory for SharedMemory {
    fn length(&self) -> usize {
        self.len()
    }

    fn into_any(self) -> AnyMemory {
        AnyMemory::Shared(self)
    }

    fn from_any(memory: AnyMemory) -> SharedMemory {
        match memory {
            AnyMemory::Shared(memory) => memory,
            AnyMemory::Buffer(_) => unreachable!("shared memory was passed"),
        }
    }
}

/// Part of registered memory: see [`Memory::part`]. A request on it takes and returns the whole memory.
///
/// ```
#[doc = include_str!("device.txt")]
/// use ndcompat::{Memory, Provider, Session};
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let pair = session.queue_pair().build()?;
/// // A message goes into the second half.
/// let receiving = pair.receive(session.buffer(64)?.part(32..));
/// pair.flush();
/// let (buffer, received) = receiving.wait();
/// assert_eq!((buffer.len(), received), (64, Err(ndcompat::Status::CANCELED)));
/// # Ok::<(), ndcompat::Status>(())
/// ```
#[derive(Debug)]
pub struct Part<M> {
    pub(crate) memory: M,
    pub(crate) range: Range<usize>,
}

/// What a request can be posted on: a [`Buffer`] or [`SharedMemory`], whole or a [`Part`].
///
/// ```
#[doc = include_str!("connected.txt")]
/// use ndcompat::{IntoPart, Memory, Pair, Provider, Session, Transfer};
///
/// /// Sends anything that a request can be posted on.
/// fn tell<P: IntoPart>(pair: &Pair, what: P) -> Transfer<P::Memory> {
///     pair.send(what)
/// }
///
/// let session = Session::new(&Provider::open_any()?)?;
/// let receives = |pair: &Pair| Ok([pair.receive(session.buffer(8)?), pair.receive(session.buffer(8)?)]);
/// let (client, server, receiving) = connected(&session, receives)?;
/// tell(&client, session.buffer(8)?).wait().1?;
/// tell(&client, session.buffer(8)?.part(..3)).wait().1?;
/// let lengths = receiving.map(|receiving| receiving.wait().1.map(|done| done.bytes));
/// assert_eq!(lengths, [Ok(8), Ok(3)]);
/// # Ok::<(), ndcompat::Status>(())
/// ```
pub trait IntoPart: sealed::Sealed {
    /// The type of memory that the request returns.
    type Memory: Memory;
    #[doc(hidden)]
    fn into_part(self) -> Part<Self::Memory>;
}

impl<M: Memory> IntoPart for M {
    type Memory = M;

    fn into_part(self) -> Part<M> {
        self.part(..)
    }
}

impl<M: Memory> IntoPart for Part<M> {
    type Memory = M;

    fn into_part(self) -> Part<M> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_moves_less_than_four_gigabytes() {
        let most = u32::MAX as usize;
        assert_eq!(sge_length(&(5..5 + most)), Ok(u32::MAX));
        assert_eq!(sge_length(&(5..6 + most)), Err(Status::BUFFER_OVERFLOW));
        assert_eq!(sge_length(&(0..2 * (most + 1))), Err(Status::BUFFER_OVERFLOW));
    }
}
