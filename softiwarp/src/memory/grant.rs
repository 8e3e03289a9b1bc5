//! The memory that a token gives access to, and its use.

use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};

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
    /// The last 64 bytes come after all others and in their order, each aligned word at once: a program may poll the end of what a
    /// peer writes, and then use all of it. (`memcpy` may store the end before the beginning.)
    pub fn fill(&self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.len());
        let (head, mut tail) = bytes[..count].split_at(count.saturating_sub(TAIL));
        let mut to = self.pointer();
        // SAFETY: `count` bytes are mapped and writable (`Memory::register`). `bytes` does not overlap them, as no
        // reference to registered memory exists.
        unsafe { ptr::copy_nonoverlapping(head.as_ptr(), to, head.len()) };
        to = to.wrapping_add(head.len());
        while let Some(size) = word_at(to, tail.len()) {
            let (word, rest) = tail.split_at(size);
            // SAFETY: so many of the `count` bytes, aligned.
            unsafe { store(to, word) };
            (to, tail) = (to.wrapping_add(size), rest);
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

/// The size of the longest aligned word at an address, of `left` bytes at most; `None` for no bytes.
fn word_at(address: *mut u8, left: usize) -> Option<usize> {
    let fits = |size: &usize| *size <= left && address.addr().is_multiple_of(*size);
    [8, 4, 2, 1].into_iter().find(fits)
}

/// Stores a word after all that was stored before.
///
/// # Safety
/// It has 1, 2, 4 or 8 bytes, for which `to` is aligned and writable. Only the program accesses them meanwhile, as with any device.
unsafe fn store(to: *mut u8, word: &[u8]) {
    if let Ok(word) = word.try_into() {
        // SAFETY: aligned and writable, as the caller promises.
        let place = unsafe { AtomicU64::from_ptr(to.cast()) };
        place.store(u64::from_ne_bytes(word), Ordering::Release);
    } else if let Ok(word) = word.try_into() {
        // SAFETY: aligned and writable, as the caller promises.
        let place = unsafe { AtomicU32::from_ptr(to.cast()) };
        place.store(u32::from_ne_bytes(word), Ordering::Release);
    } else if let Ok(word) = word.try_into() {
        // SAFETY: aligned and writable, as the caller promises.
        let place = unsafe { AtomicU16::from_ptr(to.cast()) };
        place.store(u16::from_ne_bytes(word), Ordering::Release);
    } else if let [byte] = word {
        // SAFETY: writable, as the caller promises.
        let place = unsafe { AtomicU8::from_ptr(to) };
        place.store(*byte, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;

    #[test]
    fn what_is_filled_is_there_and_no_more_wherever_it_is() {
        const ROOM: usize = 256;
        let rights = Rights { local_write: true, remote_read: true, remote_write: true, bind: true };
        let bytes: Vec<u8> = (1..=200).collect();
        let domain = Memory::new().domain();
        let memory = Box::into_raw(vec![0u64; ROOM / 8].into_boxed_slice());
        let start: *mut u8 = memory.cast();
        // SAFETY: the memory lives until it is deregistered, and no reference is made to it.
        let region = unsafe { domain.register(start, ROOM, start as u64, rights) }.expect("a region");
        for (at, count) in (0..9).flat_map(|at| (0..=bytes.len()).map(move |count| (at, count))) {
            // SAFETY: the memory of the region.
            unsafe { ptr::write_bytes(start, 0, ROOM) };
            let span = domain
                .find(region.token(), start as u64 + at as u64, count, Access::Scatter)
                .expect("a span");
            assert_eq!(span.hold().expect("it is registered").fill(&bytes), count);
            // SAFETY: the memory of the region, which nobody writes meanwhile.
            let found = unsafe { std::slice::from_raw_parts(start, ROOM) };
            let expected = [&vec![0; at], &bytes[..count], &vec![0; ROOM - at - count]].concat();
            assert!(found == expected, "{count} bytes at {at}");
        }
        drop(region);
        // SAFETY: made above; it is not registered any more.
        drop(unsafe { Box::from_raw(memory) });
    }

    #[test]
    fn words_are_stored_at_once() {
        let word = |address: usize, left| word_at(ptr::without_provenance_mut(address), left);
        assert_eq!(
            [(8, 64), (8, 7), (8, 3), (8, 1), (8, 0)].map(|(at, left)| word(at, left)),
            [Some(8), Some(4), Some(2), Some(1), None]
        );
        assert_eq!(
            [(12, 64), (10, 64), (9, 64)].map(|(at, left)| word(at, left)),
            [Some(4), Some(2), Some(1)]
        );
    }
}
