//! The calling thread's last error, error numbers, and the texts that go with them.
//!
//! Winsock and Win32 share one slot, as on Windows: `WSAGetLastError` is `GetLastError`.

mod message;
mod status;

pub use message::describe;
pub use status::{errno_to_win32, errno_to_wsa, nt_to_win32};

use std::cell::Cell;

/// Declares error numbers: each constant and a short text for `FormatMessage`.
macro_rules! codes {
    ($table:ident: $($name:ident = $value:literal, $text:literal;)+) => {
        $(#[doc = concat!("`", stringify!($name), "`: ", $text, ".")]
        pub const $name: u32 = $value;)+

        /// Every number declared above with its text.
        pub(crate) const $table: &[(u32, &str)] = &[$(($name, $text)),+];
    };
}

codes! { WIN32_TEXTS:
    ERROR_SUCCESS = 0, "Success";
    ERROR_INVALID_FUNCTION = 1, "The function is not valid here";
    ERROR_FILE_NOT_FOUND = 2, "The file was not found";
    ERROR_PATH_NOT_FOUND = 3, "The path was not found";
    ERROR_TOO_MANY_OPEN_FILES = 4, "Too many files are open";
    ERROR_ACCESS_DENIED = 5, "Access is denied";
    ERROR_INVALID_HANDLE = 6, "The handle is not valid";
    ERROR_NOT_ENOUGH_MEMORY = 8, "There is not enough memory for this request";
    ERROR_OUTOFMEMORY = 14, "Memory is exhausted";
    ERROR_NO_MORE_FILES = 18, "There are no more entries";
    ERROR_NOT_READY = 21, "The device is not ready";
    ERROR_BAD_COMMAND = 22, "The device cannot do this in its present state";
    ERROR_CRC = 23, "The data failed its check";
    ERROR_BAD_LENGTH = 24, "The length is wrong";
    ERROR_GEN_FAILURE = 31, "The request failed on the device";
    ERROR_SHARING_VIOLATION = 32, "Another user holds the object";
    ERROR_HANDLE_EOF = 38, "The end of the file was reached";
    ERROR_NOT_SUPPORTED = 50, "The request is not supported";
    ERROR_REM_NOT_LIST = 51, "The remote side has no resources for the request";
    ERROR_DUP_NAME = 52, "The address exists already";
    ERROR_DEV_NOT_EXIST = 55, "The device does not exist any more";
    ERROR_UNEXP_NET_ERR = 59, "An unexpected network error occurred";
    ERROR_NETNAME_DELETED = 64, "The connection is gone";
    ERROR_BAD_NET_NAME = 67, "The network name was not found";
    ERROR_TOO_MANY_NAMES = 68, "There are too many addresses";
    ERROR_FILE_EXISTS = 80, "The file exists";
    ERROR_INVALID_PARAMETER = 87, "A parameter is wrong";
    ERROR_BROKEN_PIPE = 109, "The other end of the pipe is closed";
    ERROR_DISK_FULL = 112, "The disk is full";
    ERROR_CALL_NOT_IMPLEMENTED = 120, "The function is not available on this system";
    ERROR_SEM_TIMEOUT = 121, "The operation timed out";
    ERROR_INSUFFICIENT_BUFFER = 122, "The buffer is too small";
    ERROR_INVALID_NAME = 123, "The name is not valid";
    ERROR_MOD_NOT_FOUND = 126, "The module was not found";
    ERROR_PROC_NOT_FOUND = 127, "The procedure was not found in the module";
    ERROR_BUSY = 170, "The resource is in use";
    ERROR_ALREADY_EXISTS = 183, "The object exists already";
    ERROR_BAD_EXE_FORMAT = 193, "The file is not a module that can be loaded";
    ERROR_ENVVAR_NOT_FOUND = 203, "The environment variable is not set";
    ERROR_MORE_DATA = 234, "There is more data than fits";
    WAIT_TIMEOUT = 258, "The wait timed out";
    ERROR_NO_MORE_ITEMS = 259, "There are no more items";
    ERROR_NOT_OWNER = 288, "The caller does not own the object";
    ERROR_MR_MID_NOT_FOUND = 317, "There is no text for this message";
    ERROR_INVALID_ADDRESS = 487, "The address is not valid";
    ERROR_ABANDONED_WAIT_0 = 735, "The wait ended because the handle was closed";
    ERROR_OPERATION_ABORTED = 995, "The operation was cancelled";
    ERROR_IO_INCOMPLETE = 996, "The overlapped operation has not finished";
    ERROR_IO_PENDING = 997, "The overlapped operation is in progress";
    ERROR_NOACCESS = 998, "The memory cannot be accessed";
    ERROR_INVALID_FLAGS = 1004, "The flags are not valid";
    ERROR_NO_UNICODE_TRANSLATION = 1113, "The text has no counterpart in the target encoding";
    ERROR_DLL_INIT_FAILED = 1114, "A module failed to initialise";
    ERROR_IO_DEVICE = 1117, "The device reported an error in the transfer";
    ERROR_NOT_FOUND = 1168, "The element was not found";
    ERROR_INVALID_NETNAME = 1214, "The address has a wrong form";
    ERROR_CONNECTION_REFUSED = 1225, "The peer refused the connection";
    ERROR_GRACEFUL_DISCONNECT = 1226, "The connection was closed in good order";
    ERROR_ADDRESS_ALREADY_ASSOCIATED = 1227, "The local address is in use";
    ERROR_ADDRESS_NOT_ASSOCIATED = 1228, "No local address is bound yet";
    ERROR_CONNECTION_INVALID = 1229, "There is no such connection";
    ERROR_CONNECTION_ACTIVE = 1230, "The connection is active already";
    ERROR_NETWORK_UNREACHABLE = 1231, "The network cannot be reached";
    ERROR_HOST_UNREACHABLE = 1232, "The host cannot be reached";
    ERROR_PROTOCOL_UNREACHABLE = 1233, "The host does not speak the protocol";
    ERROR_PORT_UNREACHABLE = 1234, "Nobody serves the port at the destination";
    ERROR_REQUEST_ABORTED = 1235, "The request was aborted";
    ERROR_CONNECTION_ABORTED = 1236, "The local system gave up the connection";
    ERROR_INTERNAL_ERROR = 1359, "An internal error occurred";
    ERROR_NO_SYSTEM_RESOURCES = 1450, "The system has no resources for this request";
    ERROR_TIMEOUT = 1460, "The time allowed has passed";
    ERROR_DEVICE_REMOVED = 1617, "The device was removed";
    ERROR_INVALID_USER_BUFFER = 1784, "The buffer has an unsuitable size";

    WSAEINTR = 10004, "The call was interrupted";
    WSAEBADF = 10009, "The descriptor is not valid";
    WSAEACCES = 10013, "The address may not be used this way";
    WSAEFAULT = 10014, "A pointer or a buffer length is wrong";
    WSAEINVAL = 10022, "An argument is not valid";
    WSAEMFILE = 10024, "Too many sockets are open";
    WSAEWOULDBLOCK = 10035, "The operation would block";
    WSAEINPROGRESS = 10036, "A blocking operation is in progress";
    WSAEALREADY = 10037, "The operation is in progress already";
    WSAENOTSOCK = 10038, "The descriptor is not a socket";
    WSAEDESTADDRREQ = 10039, "A destination address is needed";
    WSAEMSGSIZE = 10040, "The message is too long";
    WSAEPROTOTYPE = 10041, "The protocol does not fit the socket type";
    WSAENOPROTOOPT = 10042, "The protocol has no such option";
    WSAEPROTONOSUPPORT = 10043, "The protocol is not supported";
    WSAESOCKTNOSUPPORT = 10044, "The socket type is not supported";
    WSAEOPNOTSUPP = 10045, "The socket cannot do this";
    WSAEPFNOSUPPORT = 10046, "The protocol family is not supported";
    WSAEAFNOSUPPORT = 10047, "The address family is not supported";
    WSAEADDRINUSE = 10048, "The address is in use";
    WSAEADDRNOTAVAIL = 10049, "The address is not one of this host";
    WSAENETDOWN = 10050, "The network is down";
    WSAENETUNREACH = 10051, "The network is not reachable";
    WSAENETRESET = 10052, "The network dropped the connection";
    WSAECONNABORTED = 10053, "The connection was aborted here";
    WSAECONNRESET = 10054, "The peer reset the connection";
    WSAENOBUFS = 10055, "There is no buffer space";
    WSAEISCONN = 10056, "The socket is connected already";
    WSAENOTCONN = 10057, "The socket is not connected";
    WSAESHUTDOWN = 10058, "The socket was shut down";
    WSAETIMEDOUT = 10060, "The connection attempt timed out";
    WSAECONNREFUSED = 10061, "The peer refused the connection attempt";
    WSAELOOP = 10062, "The name cannot be resolved";
    WSAENAMETOOLONG = 10063, "The name is too long";
    WSAEHOSTDOWN = 10064, "The host is down";
    WSAEHOSTUNREACH = 10065, "The host is not reachable";
    WSAVERNOTSUPPORTED = 10092, "This version of Winsock is not available";
    WSANOTINITIALISED = 10093, "WSAStartup has not been called";
}

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
