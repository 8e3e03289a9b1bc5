//! The calling thread's last error, error codes, and their messages.
//!
//! Winsock and Win32 share one slot, as on Windows: `WSAGetLastError` is `GetLastError`.

mod codes;
mod description;
mod nt;
mod status;
mod texts;

pub use codes::*;
pub use description::describe;
pub(crate) use nt::failed_status_to_win32;
pub use nt::nt_to_win32;
pub(crate) use status::io_to_win32;
pub use status::{errno_to_win32, errno_to_wsa};

use std::cell::Cell;

/// `WSA_IO_PENDING`: Winsock's name for [`ERROR_IO_PENDING`].
pub const WSA_IO_PENDING: u32 = ERROR_IO_PENDING;
/// `WSA_IO_INCOMPLETE`: Winsock's name for [`ERROR_IO_INCOMPLETE`].
pub const WSA_IO_INCOMPLETE: u32 = ERROR_IO_INCOMPLETE;
/// `WSA_OPERATION_ABORTED`: Winsock's name for [`ERROR_OPERATION_ABORTED`].
pub const WSA_OPERATION_ABORTED: u32 = ERROR_OPERATION_ABORTED;
/// `WSA_INVALID_HANDLE`: Winsock's name for [`ERROR_INVALID_HANDLE`].
pub const WSA_INVALID_HANDLE: u32 = ERROR_INVALID_HANDLE;
/// `WSA_NOT_ENOUGH_MEMORY`: Winsock's name for [`ERROR_NOT_ENOUGH_MEMORY`].
pub const WSA_NOT_ENOUGH_MEMORY: u32 = ERROR_NOT_ENOUGH_MEMORY;

thread_local! {
    static LAST_ERROR: Cell<u32> = const { Cell::new(ERROR_SUCCESS) };
}

/// The last error of the calling thread.
pub fn last_error() -> u32 {
    LAST_ERROR.get()
}

/// Sets the last error of the calling thread.
pub fn set_last_error(code: u32) {
    LAST_ERROR.set(code);
}

/// Sets the C library's `errno`.
pub(crate) fn set_errno(code: i32) {
    // SAFETY: takes nothing.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: belongs to the calling thread.
    unsafe { *place = code };
}

/// `GetLastError`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetLastError() -> u32 {
    last_error()
}

/// `SetLastError`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetLastError(code: u32) {
    set_last_error(code);
}

/// `WSAGetLastError`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WSAGetLastError() -> i32 {
    last_error() as i32
}

/// `WSASetLastError`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_WSASetLastError(code: i32) {
    set_last_error(code as u32);
}

/// `RtlNtStatusToDosError`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_RtlNtStatusToDosError(status: i32) -> u32 {
    nt_to_win32(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_error_belongs_to_the_thread_and_winsock_shares_it() {
        ndw_SetLastError(ERROR_BUSY);
        let other = std::thread::spawn(|| ndw_GetLastError()).join().unwrap();
        assert_eq!(other, ERROR_SUCCESS);
        assert_eq!(ndw_GetLastError(), ERROR_BUSY);
        ndw_WSASetLastError(WSAEFAULT as i32);
        assert_eq!(ndw_GetLastError(), WSAEFAULT);
        assert_eq!(ndw_WSAGetLastError(), 10014);
    }

    #[test]
    fn numbers_are_declared_once() {
        let mut numbers: Vec<u32> = WIN32_TEXTS.iter().map(|(code, _)| *code).collect();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count);
    }
}
