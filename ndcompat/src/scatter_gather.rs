//! Scatter/gather lists: which pieces of the caller's memory a request sends or fills.

use crate::status::{Result, Status};
use crate::types::Sge;
use std::mem::MaybeUninit;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most that any device takes inline, and so the most that is gathered on the stack.
const MAX_INLINE: usize = 1024;

/// A list as C passes it: a pointer and a number of pieces.
#[derive(Clone, Copy)]
pub struct SgeList {
    pieces: *const Sge,
    count: u32,
}

impl SgeList {
    /// The list of `count` pieces that lie one after another.
    #[inline(always)]
    pub const fn new(pieces: *const Sge, count: u32) -> SgeList {
        SgeList { pieces, count }
    }

    /// The pieces. A list without a pointer is empty, or `ND_INVALID_PARAMETER_2`.
    ///
    /// # Safety
    /// There must be as many as the list says, unchanged for as long as the result is used.
    pub unsafe fn pieces<'a>(self) -> Result<&'a [Sge]> {
        if self.count == 0 {
            return Ok(&[]);
        }
        if self.pieces.is_null() {
            return Err(Status::INVALID_PARAMETER_2);
        }
        // SAFETY: the caller's promise.
        Ok(unsafe { slice::from_raw_parts(self.pieces, self.count as usize) })
    }

    /// The only piece, if it is shorter than the `bound`.
    ///
    /// In this order, so that compilers let each test be a branch: together the first and the last would take longer.
    ///
    /// # Safety
    /// As [`SgeList::pieces`].
    #[inline(always)]
    pub(crate) unsafe fn only_below<'a>(self, bound: &AtomicU64) -> Option<&'a Sge> {
        if self.count != 1 {
            return None;
        }
        let bound = bound.load(Ordering::Relaxed);
        // SAFETY: the caller's promise.
        let one = unsafe { self.pieces.as_ref()? };
        if u64::from(one.length) < bound { Some(one) } else { None }
    }
}

impl From<&[Sge]> for SgeList {
    #[inline(always)]
    fn from(sge: &[Sge]) -> SgeList {
        // More than a device takes is too many, whatever the number.
        SgeList::new(sge.as_ptr(), sge.len().try_into().unwrap_or(u32::MAX))
    }
}

/// Checks a list; returns the bytes in it.
pub(crate) fn check(sge: &[Sge], max_sge: u32, max_bytes: u64) -> Result<u64> {
    if sge.len() > max_sge as usize {
        return Err(Status::DATA_OVERRUN);
    }
    let bytes = sge.iter().map(|sge| u64::from(sge.length)).sum();
    if bytes > max_bytes { Err(Status::BUFFER_OVERFLOW) } else { Ok(bytes) }
}

/// Room for what an inline request gathers.
pub(crate) type Gathered = MaybeUninit<[u8; MAX_INLINE]>;

/// Copies the pieces of an inline request together, for a queue pair that takes fewer pieces.
///
/// # Safety
/// The pieces must be readable and be `length` bytes in all, for which there must be room.
#[cold]
pub(crate) unsafe fn gather(pieces: &[Sge], into: &mut Gathered, length: u32) -> Sge {
    let start = into.as_mut_ptr().cast::<u8>();
    let mut at = start;
    for piece in pieces {
        // SAFETY: the caller's promise.
        unsafe {
            at.copy_from_nonoverlapping(piece.buffer as *const u8, piece.length as usize);
            at = at.add(piece.length as usize);
        }
    }
    Sge { buffer: start as u64, length, token: 0 }
}
