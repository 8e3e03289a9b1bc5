//! What COM has without apartments and registration: `CoInitialize`, and the task allocator, which is the C library's.

use std::cell::Cell;
use std::ffi::c_void;

const S_OK: i32 = 0;
const S_FALSE: i32 = 1;

thread_local! {
    /// How often the thread has initialised COM and not taken it back.
    static USES: Cell<u32> = const { Cell::new(0) };
}

/// `CoInitializeEx`: `S_FALSE` if the thread has done so before. There are no apartments, so that the model does not matter.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CoInitializeEx(_reserved: *const c_void, _model: u32) -> i32 {
    let before = USES.get();
    USES.set(before.saturating_add(1));
    if before == 0 { S_OK } else { S_FALSE }
}

/// `CoInitialize`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CoInitialize(reserved: *const c_void) -> i32 {
    ndw_CoInitializeEx(reserved, 2)
}

/// `CoUninitialize`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CoUninitialize() {
    USES.set(USES.get().saturating_sub(1));
}

/// `CoTaskMemAlloc`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CoTaskMemAlloc(size: usize) -> *mut c_void {
    // SAFETY: any size will do.
    unsafe { libc::malloc(size) }
}

/// `CoTaskMemRealloc`.
///
/// # Safety
/// `block` is NULL or of this allocator; nobody uses it any more unless the call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CoTaskMemRealloc(block: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as this function asks.
    unsafe { libc::realloc(block, size) }
}

/// `CoTaskMemFree`.
///
/// # Safety
/// `block` is NULL, or of this allocator and used by nobody any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CoTaskMemFree(block: *mut c_void) {
    // SAFETY: as this function asks.
    unsafe { libc::free(block) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::{null, null_mut};

    #[test]
    fn com_is_initialised_once_by_each_thread() {
        assert_eq!((ndw_CoInitializeEx(null(), 0), ndw_CoInitialize(null())), (S_OK, S_FALSE));
        assert_eq!(std::thread::spawn(|| ndw_CoInitializeEx(null(), 0)).join().unwrap(), S_OK);
        (0..3).for_each(|_| ndw_CoUninitialize());
        assert_eq!(ndw_CoInitializeEx(null(), 0), S_OK);
        ndw_CoUninitialize();
    }

    #[test]
    fn blocks_of_the_task_allocator() {
        // SAFETY: blocks with the bytes used, freed once.
        unsafe {
            let block = ndw_CoTaskMemAlloc(4).cast::<u32>();
            block.write(7);
            let block = ndw_CoTaskMemRealloc(block.cast(), 400).cast::<u32>();
            assert_eq!(block.read(), 7);
            ndw_CoTaskMemFree(block.cast());
            ndw_CoTaskMemFree(null_mut());
        }
    }
}
