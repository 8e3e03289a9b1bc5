//! Memory: heaps, virtual memory, aligned blocks, system information.

pub mod aligned;
pub mod heap;
mod intercept;
mod kernel;
mod maps;
mod patch;
mod protection;
mod regions;
pub mod section;
pub mod secured;
pub mod system;
pub mod virtual_memory;

use crate::error::set_last_error;

pub use intercept::install as watch_all_memory;

/// The size of a page.
pub fn page_size() -> usize {
    // SAFETY: sysconf only reads its argument; Linux always knows the page size.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// `VirtualAlloc` reserves at multiples of this, as on Windows.
pub const ALLOCATION_GRANULARITY: usize = 0x1_0000;

/// A BOOL: FALSE with the thread's last error set.
fn outcome(result: Result<(), u32>) -> i32 {
    match result {
        Ok(()) => 1,
        Err(code) => {
            set_last_error(code);
            0
        }
    }
}

/// A pointer: NULL with the thread's last error set.
fn pointer<T>(result: Result<*mut T, u32>) -> *mut T {
    result.unwrap_or_else(|code| {
        set_last_error(code);
        std::ptr::null_mut()
    })
}
