//! `_aligned_malloc` and its family, `_recalloc`.

use crate::crt::set_errno;
use std::ffi::c_void;
use std::ptr::null_mut;

/// `_aligned_malloc`: NULL and `EINVAL` when the alignment is no power of two.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__aligned_malloc(size: usize, alignment: usize) -> *mut c_void {
    if !alignment.is_power_of_two() {
        set_errno(libc::EINVAL);
        return null_mut();
    }
    let mut block = null_mut();
    // SAFETY: the place for the result is ours. Less than a pointer's alignment cannot be asked for.
    match unsafe { libc::posix_memalign(&mut block, alignment.max(size_of::<usize>()), size) } {
        0 => block,
        error => {
            set_errno(error);
            null_mut()
        }
    }
}

/// `_aligned_free`.
///
/// # Safety
/// `block` is NULL or a block of these functions that nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__aligned_free(block: *mut c_void) {
    // SAFETY: NULL or a block of this family by the function's contract.
    unsafe { libc::free(block) };
}

/// `_aligned_realloc`: allocates for NULL, frees for size 0.
///
/// # Safety
/// `block` is NULL or a block of these functions; nobody uses it any more unless the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__aligned_realloc(
    block: *mut c_void,
    size: usize,
    alignment: usize,
) -> *mut c_void {
    if !block.is_null() && size == 0 {
        // SAFETY: a block of this family that nobody uses any more, as this function asks.
        unsafe { ndw__aligned_free(block) };
        return null_mut();
    }
    let new = ndw__aligned_malloc(size, alignment);
    if !block.is_null() && !new.is_null() {
        // SAFETY: a block of `malloc`'s that is not freed yet, as this function asks.
        let old_size = unsafe { libc::malloc_usable_size(block) };
        // SAFETY: two blocks, each of which has at least as many bytes as the smaller size.
        unsafe { std::ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast(), old_size.min(size)) };
        // SAFETY: a block of `malloc`'s that nobody uses any more, as this function asks for when it succeeds.
        unsafe { libc::free(block) };
    }
    new
}

/// `_recalloc`: what is new is zero. So is, afterwards, what the block has room for beyond what was asked for, which a later call may
/// ask for.
///
/// # Safety
/// `block` is NULL or a block of `malloc`'s; nobody uses it any more unless the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__recalloc(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else {
        set_errno(libc::ENOMEM);
        return null_mut();
    };
    if bytes == 0 {
        // SAFETY: NULL, or a block that nobody uses any more, as this function asks.
        unsafe { libc::free(block) };
        return null_mut();
    }
    // SAFETY: NULL, or a block that is not freed yet, as this function asks.
    let former = unsafe { libc::malloc_usable_size(block) };
    // SAFETY: likewise; nobody uses it any more if this succeeds.
    let grown = unsafe { libc::realloc(block, bytes) }.cast::<u8>();
    if !grown.is_null() {
        // SAFETY: a block that was just made.
        let room = unsafe { libc::malloc_usable_size(grown.cast()) };
        let kept = former.min(bytes);
        // SAFETY: the block has so much room, and nobody else uses it.
        unsafe { grown.wrapping_add(kept).write_bytes(0, room - kept) };
    }
    grown.cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_block_grows_by_is_zero() {
        // SAFETY: blocks of the family with the bytes used, each freed once.
        unsafe {
            let mut block = ndw__recalloc(null_mut(), 32, 2).cast::<u8>();
            assert!((0..64).all(|at| block.add(at).read() == 0));
            block.write_bytes(7, 64);
            block = ndw__recalloc(block.cast(), 10, 1).cast();
            block = ndw__recalloc(block.cast(), 64, 1).cast();
            assert_eq!((0..64).position(|at| block.add(at).read() == 0), Some(10));
            assert!((10..64).all(|at| block.add(at).read() == 0));
            block = ndw__recalloc(block.cast(), 100, 10).cast();
            assert!((64..1000).all(|at| block.add(at).read() == 0));
            assert!(ndw__recalloc(block.cast(), usize::MAX, 2).is_null());
            assert_eq!(block.read(), 7, "it stays");
            assert!(ndw__recalloc(block.cast(), 0, 1).is_null());
        }
    }

    #[test]
    fn blocks_have_their_alignment_and_keep_their_content() {
        for alignment in [1, 16, 64, 4096, 1 << 21] {
            let block = ndw__aligned_malloc(100, alignment);
            assert!(!block.is_null() && (block as usize).is_multiple_of(alignment));
            // SAFETY: blocks of the family with the bytes used.
            unsafe {
                block.cast::<u64>().write(42);
                let grown = ndw__aligned_realloc(block, 10_000, alignment);
                assert!((grown as usize).is_multiple_of(alignment));
                assert_eq!(grown.cast::<u64>().read(), 42);
                assert!(ndw__aligned_realloc(grown, 0, alignment).is_null());
            }
        }
        for alignment in [0, 3, 24] {
            set_errno(0);
            assert!(ndw__aligned_malloc(1, alignment).is_null());
            assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINVAL));
        }
        // A block that cannot be had again stays.
        let block = ndw__aligned_malloc(8, 64).cast::<u64>();
        // SAFETY: blocks of the family with the bytes used.
        unsafe {
            block.write(42);
            assert!(ndw__aligned_realloc(block.cast(), 16, 24).is_null());
            assert_eq!(block.read(), 42);
            ndw__aligned_free(block.cast());
        }
        // SAFETY: NULL is fine.
        unsafe { ndw__aligned_free(ndw__aligned_realloc(null_mut(), 1, 8)) };
    }
}
