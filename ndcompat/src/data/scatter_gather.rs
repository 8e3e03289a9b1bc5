//! Scatter/gather lists (`ND2_SGE` arrays).

use crate::device::limits::MAX_SGE;
use crate::status::{Result, Status};
use crate::types::Sge;
use std::mem::MaybeUninit;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most inline data that any device takes, in bytes. It is gathered on the stack.
const MAX_INLINE: usize = 1024;

/// An array of SGEs as C passes it: a pointer and a count. [`Poster`](crate::Poster) posts one.
///
/// ```
/// use ndcompat::SgeList;
/// use ndcompat::types::Sge;
///
/// let pieces = [Sge::default(); 2];
/// let list = SgeList::new(pieces.as_ptr(), 2);
/// // SAFETY: the array has two elements.
/// assert_eq!(unsafe { list.pieces() }?.len(), 2);
/// # Ok::<(), ndcompat::Status>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SgeList {
    pieces: *const Sge,
    count: u32,
}

impl SgeList {
    /// The array of `count` SGEs at `pieces`.
    #[inline(always)]
    pub const fn new(pieces: *const Sge, count: u32) -> SgeList {
        SgeList { pieces, count }
    }

    /// The SGEs as a slice. It is empty if the count is 0, even if the pointer is invalid.
    ///
    /// # Errors
    /// `ND_INVALID_PARAMETER_2` for null with a count above 0.
    ///
    /// # Safety
    /// The pointer must be valid for reads of `count` SGEs, which must not change while the slice is used.
    pub unsafe fn pieces<'a>(self) -> Result<&'a [Sge]> {
        if self.count == 0 {
            return Ok(&[]);
        }
        if self.pieces.is_null() {
            return Err(Status::INVALID_PARAMETER_2);
        }
        // SAFETY: the caller says that the pointer is valid for `count` SGEs, and that they do not change.
        Ok(unsafe { slice::from_raw_parts(self.pieces, self.count as usize) })
    }

    /// The SGE of a list of one, if it is shorter than `bound`.
    ///
    /// The order of the tests makes compilers emit a branch for each.
    ///
    /// # Safety
    /// As [`SgeList::pieces`].
    #[inline(always)]
    pub(crate) unsafe fn only_below<'a>(self, bound: &AtomicU64) -> Option<&'a Sge> {
        if self.count != 1 {
            return None;
        }
        let bound = bound.load(Ordering::Acquire);
        // SAFETY: null, or valid for one SGE, as the caller says.
        let one = unsafe { self.pieces.as_ref()? };
        if u64::from(one.length) < bound { Some(one) } else { None }
    }
}

impl From<&[Sge]> for SgeList {
    #[inline(always)]
    fn from(sge: &[Sge]) -> SgeList {
        // No device takes more than `u32::MAX`.
        SgeList::new(sge.as_ptr(), sge.len().try_into().unwrap_or(u32::MAX))
    }
}

/// Checks the number of SGEs and their total length against the limits; returns the length in bytes.
pub(crate) fn check(sge: &[Sge], max_sge: u32, max_bytes: u64) -> Result<u64> {
    if sge.len() > max_sge as usize {
        return Err(Status::DATA_OVERRUN);
    }
    let bytes = sge.iter().map(|sge| u64::from(sge.length)).sum();
    if bytes > max_bytes { Err(Status::BUFFER_OVERFLOW) } else { Ok(bytes) }
}

/// Room for the SGEs of a list that has empty ones.
pub(crate) type Filled = [Sge; MAX_SGE as usize];

/// The SGEs of a list without those of no bytes, which add nothing to a message. Drivers disagree about them: Linux 6.1's siw crashes
/// the machine when one precedes another SGE. `into` has room for what is left if there are any; the list must not be longer.
pub(crate) fn without_empty<'a>(sge: &'a [Sge], into: &'a mut Filled) -> &'a [Sge] {
    if sge.iter().all(|piece| piece.length > 0) {
        return sge;
    }
    let mut count = 0;
    for (place, piece) in into.iter_mut().zip(sge.iter().filter(|piece| piece.length > 0)) {
        *place = *piece;
        count += 1;
    }
    &into[..count]
}

/// A buffer for the gathered data of an inline request.
pub(crate) type Gathered = MaybeUninit<[u8; MAX_INLINE]>;

/// Gathers the data of an inline request into one SGE, for a queue pair that takes fewer.
///
/// # Safety
/// The SGEs must be valid for reads, and their lengths must add up to `length`, which must not exceed the buffer.
#[cold]
pub(crate) unsafe fn gather(pieces: &[Sge], into: &mut Gathered, length: u32) -> Sge {
    let start = into.as_mut_ptr().cast::<u8>();
    let mut at = start;
    for piece in pieces {
        // SAFETY: the SGE is valid for reads, and fits into the rest of the buffer, as `length` is the sum.
        unsafe { at.copy_from_nonoverlapping(piece.buffer as *const u8, piece.length as usize) };
        at = at.wrapping_add(piece.length as usize);
    }
    Sge { buffer: start as u64, length, token: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sges_of_no_bytes_are_left_out() {
        let piece = |length| Sge { buffer: 0x1000 + u64::from(length), length, token: 1 };
        for (list, left) in [
            (vec![], vec![]),
            (vec![0], vec![]),
            (vec![0, 10], vec![10]),
            (vec![10, 0, 20], vec![10, 20]),
            (vec![0, 0, 5, 0], vec![5]),
            ((1..=MAX_SGE).collect(), (1..=MAX_SGE).collect()),
            (vec![0; MAX_SGE as usize], vec![]),
        ] {
            let list: Vec<_> = list.into_iter().map(piece).collect();
            let mut filled = Filled::default();
            let seen: Vec<_> =
                without_empty(&list, &mut filled).iter().map(|sge| (sge.buffer, sge.length)).collect();
            let expected: Vec<_> = left.into_iter().map(|length| (piece(length).buffer, length)).collect();
            assert_eq!(seen, expected);
        }
    }
}
