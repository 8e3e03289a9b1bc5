//! The calling thread's last error, error numbers, and the texts that go with them.
//!
//! Winsock and Win32 share one slot, as on Windows: `WSAGetLastError` is `GetLastError`.

mod codes;
mod inserts;
mod message;
mod status;

pub use codes::*;
pub use message::describe;
pub use status::{errno_to_win32, errno_to_wsa, nt_to_win32};

use std::cell::Cell;

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
