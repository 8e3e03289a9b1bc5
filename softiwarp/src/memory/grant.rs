//! The memory that a token gives access to, and its use.

use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{RwLock, RwLockReadGuard};

use super::{Access, Denied, Rights};

/// Memory that a token gives access to: a region, or a bound window.
pub(super) struct Grant {
    pub(super) token: u32,
    pub(super) domain: u64,
    /// Of a window: the only queue pair whose peer may use it.
    pub(super) queue_pair: Option<u32>,
    /// The offset of its first byte, as peers and work requests name it.
    pub(super) first: u64,
    pub(super) memory: NonNull<u8>,
    pub(super) length: usize,
    pub(super) rights: Rights,
    /// Of a window: its region.
    pub(super) region: Option<Arc<Grant>>,
    /// How many windows are bound to it. Changed with the table locked.
    pub(super) windows: AtomicUsize,
    /// Whether it may still be used. Locked for reading during each use.
    live: RwLock<bool>,
}

// SAFETY: only copies and the kernel dereference the pointer, on any thread; the caller of `Memory::register` has promised that
// the memory stays mapped.
unsafe impl Send for Grant {}
// SAFETY: all that changes is behind a lock or atomic; the memory is used by copies and by the kernel alone, from any thread.
unsafe impl Sync for Grant {}

impl Grant {
    /// Memory at the pointer `memory`, whose first byte has the offset `first`.
    pub(super) fn new(
        (token, domain, queue_pair): (u32, u64, Option<u32>),
        (first, memory, length): (u64, NonNull<u8>, usize),
        rights: Rights,
        region: Option<Arc<Grant>>,
    ) -> Grant {
        let (windows, live) = (AtomicUsize::new(0), RwLock::new(true));
        Grant { token, domain, queue_pair, first, memory, length, rights, region, windows, live }
    }

    /// Forbids further use, and returns when no use is left.
    pub(super) fn end(&self) {
        *self.live.write() = false;
    }

    /// The memory from `offset` on, if `access` to it is allowed.
    pub(super) fn check(
        self: &Arc<Grant>,
        domain: u64,
        offset: u64,
        length: usize,
        access: Access,
    ) -> Result<Span, Denied> {
        let (stream, allowed) = match access {
            // The token of a window is valid for peers only.
            Access::Gather => (self.queue_pair.is_none(), true),
            Access::Scatter => (self.queue_pair.is_none(), self.rights.local_write),
            Access::PeerReads(by) => (self.queue_pair.is_none_or(|only| only == by), self.rights.remote_read),
            Access::PeerWrites(by) => {
                (self.queue_pair.is_none_or(|only| only == by), self.rights.remote_write)
            }
        };
        if self.domain != domain || !stream {
            return Err(Denied::Stream);
        }
        if !allowed {
            return Err(Denied::Rights);
        }
        self.part(offset, length)
    }

    /// The memory from `offset` on, if it lies within the bounds.
    pub(super) fn part(self: &Arc<Grant>, offset: u64, length: usize) -> Result<Span, Denied> {
        offset.checked_add(length as u64).ok_or(Denied::Wrap)?;
        let at =
            offset.checked_sub(self.first).and_then(|at| usize::try_from(at).ok()).ok_or(Denied::Bounds)?;
        match self.length.checked_sub(at) {
            Some(room) if length <= room => Ok(Span { grant: Arc::clone(self), at, length }),
            _ => Err(Denied::Bounds),
        }
    }
}

/// A range of memory that may be accessed.
#[derive(Clone)]
pub struct Span {
    grant: Arc<Grant>,
    at: usize,
    length: usize,
}

impl Span {
    /// Its length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks whether it is empty")]
    pub fn len(&self) -> usize {
        self.length
    }

    /// The span without its first bytes, or an empty one.
    pub fn skip(&mut self, bytes: usize) {
        let bytes = bytes.min(self.length);
        self.at += bytes;
        self.length -= bytes;
    }

    /// Keeps the memory registered meanwhile. `None` if it no longer is.
    pub fn hold(&self) -> Option<Held<'_>> {
        // Recursive: one call may hold a region several times, also while another thread waits to end it.
        let live = self.grant.live.read_recursive();
        live.then(|| Held { span: self, _live: live })
    }
}

/// The end of a message's part that is stored after the rest, in bytes.
pub(crate) const TAIL: usize = 64;

/// A range of memory in use, which stays registered meanwhile.
pub struct Held<'a> {
    span: &'a Span,
    _live: RwLockReadGuard<'a, bool>,
}

impl Held<'_> {
    /// Its first byte. Valid for [`len`](Self::len) bytes while this value lives.
    pub fn pointer(&self) -> *mut u8 {
        // SAFETY: `part` has checked that the grant's memory goes that far.
        unsafe { self.span.grant.memory.as_ptr().add(self.span.at) }
    }

    /// Its length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks whether it is empty")]
    pub fn len(&self) -> usize {
        self.span.length
    }

    /// Copies `bytes` to its start, as many as fit. Returns how many.
    ///
    /// The last 57 bytes at least come after all others and in their order: a program may poll the end of what a peer writes, and then
    /// use all of it. (`memcpy` may store the end before the beginning.)
    pub fn fill(&self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.len());
        let start = self.pointer();
        let aligned = |at: usize| at + start.wrapping_add(at).align_offset(size_of::<u64>());
        let (head, tail) = bytes[..count].split_at(aligned(count.saturating_sub(TAIL)).min(count));
        // SAFETY: `count` bytes are mapped and writable (`Memory::register`). `bytes` does not overlap them, as no
        // reference to registered memory exists.
        unsafe { ptr::copy_nonoverlapping(head.as_ptr(), start, head.len()) };
        let (words, rest) = tail.as_chunks();
        let mut to = start.wrapping_add(head.len());
        for word in words {
            // SAFETY: eight of the `count` bytes, aligned. Only the program accesses them meanwhile, as with any device.
            let place = unsafe { AtomicU64::from_ptr(to.cast()) };
            place.store(u64::from_ne_bytes(*word), Ordering::Release);
            to = to.wrapping_add(word.len());
        }
        for byte in rest {
            // SAFETY: one of the `count` bytes. Only the program accesses it meanwhile, as with any device.
            let place = unsafe { AtomicU8::from_ptr(to) };
            place.store(*byte, Ordering::Release);
            to = to.wrapping_add(1);
        }
        count
    }

    /// Appends its bytes to `out`.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.len());
        let room = out.spare_capacity_mut().as_mut_ptr().cast();
        // SAFETY: the bytes are mapped and readable (`Memory::register`); the vector has reserved room for them, outside
        // registered memory.
        unsafe { ptr::copy_nonoverlapping(self.pointer(), room, self.len()) };
        // SAFETY: that many more bytes were just written.
        unsafe { out.set_len(out.len() + self.len()) };
    }
}
