//! `LocalAlloc` and related functions. Every block is fixed.

use super::super::pointer;
use super::{HeapHandle, allocate_raw, header_of, release};
use crate::error::*;
use std::ffi::c_void;

/// `LMEM_ZEROINIT`.
pub const LMEM_ZEROINIT: u32 = 0x40;
/// `LMEM_MODIFY`: only the kind of the block is to change, and there is one kind.
const LMEM_MODIFY: u32 = 0x80;

/// The mark of the blocks, which is no heap's number.
const LOCAL: HeapHandle = 0x4C4F_4341;

/// `LocalAlloc`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_LocalAlloc(flags: u32, size: usize) -> *mut c_void {
    pointer(allocate_raw(LOCAL, size, flags & LMEM_ZEROINIT != 0))
}

/// `LocalFree`: NULL on success, else the block.
///
/// # Safety
/// `memory` is NULL or a block of these functions that was not freed, and that nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_LocalFree(memory: *mut c_void) -> *mut c_void {
    if memory.is_null() {
        return memory;
    }
    // SAFETY: not NULL, hence a block of some heap that its owner frees, as this function asks.
    match unsafe { release(LOCAL, memory) } {
        Ok(()) => std::ptr::null_mut(),
        Err(_) => {
            set_last_error(ERROR_INVALID_HANDLE);
            memory
        }
    }
}

/// `LocalSize`: the size that was asked for; 0 for NULL and what is no block.
///
/// # Safety
/// `memory` is NULL or a block of these functions or of a heap that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_LocalSize(memory: *mut c_void) -> usize {
    // SAFETY: NULL or a live block, as this function asks.
    match unsafe { header_of(memory, LOCAL) } {
        Ok(header) => header.size,
        Err(_) => {
            set_last_error(ERROR_INVALID_HANDLE);
            0
        }
    }
}

/// `LocalReAlloc`: the block may move, whatever the flags say.
///
/// # Safety
/// `memory` is NULL or a block of these functions or of a heap that was not freed; nobody uses it any more unless the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_LocalReAlloc(memory: *mut c_void, size: usize, flags: u32) -> *mut c_void {
    let reallocate = || {
        // SAFETY: NULL or a live block, as this function asks.
        let old = unsafe { header_of(memory, LOCAL) }.map_err(|_| ERROR_INVALID_HANDLE)?.size;
        if flags & LMEM_MODIFY != 0 {
            return Ok(memory);
        }
        let new = allocate_raw(LOCAL, size, flags & LMEM_ZEROINIT != 0)?;
        // SAFETY: two blocks, each of which has at least as many bytes as the smaller size.
        unsafe { std::ptr::copy_nonoverlapping(memory.cast::<u8>(), new.cast::<u8>(), old.min(size)) };
        // SAFETY: a live block that nobody uses any more, as this function asks.
        unsafe { release(LOCAL, memory) }?;
        Ok(new)
    };
    pointer(reallocate())
}
