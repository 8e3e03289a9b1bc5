//! Messages of NTSTATUS values (ND statuses have the same numbers), and the mapping from errno.

use super::*;

/// NTSTATUS values and their texts, sorted by number.
#[rustfmt::skip]
pub(super) const STATUSES: &[(u32, &str)] = &[
    (0x0000_0000, "Success"),
    (0x0000_0102, "The time allowed has passed"),
    (0x0000_0103, "The operation is in progress"),
    (0x8000_0005, "The data does not fit the buffer"),
    (0x8000_0011, "The device is busy"),
    (0x8000_001A, "There are no more entries"),
    (0xC000_0001, "The operation failed"),
    (0xC000_0002, "The operation is not implemented"),
    (0xC000_0005, "The memory may not be accessed this way"),
    (0xC000_0008, "The handle is not valid"),
    (0xC000_000D, "A parameter is wrong"),
    (0xC000_000E, "There is no such device"),
    (0xC000_0010, "The request is not valid for the device"),
    (0xC000_0011, "The end of the file was reached"),
    (0xC000_0017, "There is not enough memory"),
    (0xC000_0022, "Access is denied"),
    (0xC000_0023, "The buffer is too small"),
    (0xC000_0024, "The object has another type"),
    (0xC000_0030, "The parameters do not go together"),
    (0xC000_0034, "The name was not found"),
    (0xC000_003C, "More data arrived than there was room for"),
    (0xC000_003E, "The data is damaged"),
    (0xC000_0043, "The address or object is in use by another"),
    (0xC000_0044, "The quota is used up"),
    (0xC000_009A, "The resources for the operation are used up"),
    (0xC000_009C, "The device found damaged data"),
    (0xC000_009D, "The device is not connected"),
    (0xC000_00A3, "The device is not ready"),
    (0xC000_00B5, "The operation timed out"),
    (0xC000_00BB, "The request is not supported"),
    (0xC000_00BC, "The remote side does not listen"),
    (0xC000_00BD, "The name is taken"),
    (0xC000_00BE, "The network path was not found"),
    (0xC000_00BF, "The network is busy"),
    (0xC000_00C0, "The device does not exist any more"),
    (0xC000_00C2, "The network adapter failed"),
    (0xC000_00C4, "An unexpected network error occurred"),
    (0xC000_00C9, "The network name is gone"),
    (0xC000_00CC, "The network name was not found"),
    (0xC000_00E5, "An internal error occurred"),
    (0xC000_00EF, "The first parameter is wrong"),
    (0xC000_00F0, "The second parameter is wrong"),
    (0xC000_00F1, "The third parameter is wrong"),
    (0xC000_00F2, "The fourth parameter is wrong"),
    (0xC000_00F3, "The fifth parameter is wrong"),
    (0xC000_00F4, "The sixth parameter is wrong"),
    (0xC000_00F5, "The seventh parameter is wrong"),
    (0xC000_00F6, "The eighth parameter is wrong"),
    (0xC000_00F7, "The ninth parameter is wrong"),
    (0xC000_0120, "The request was cancelled"),
    (0xC000_013B, "The connection was closed here"),
    (0xC000_013C, "The peer closed the connection"),
    (0xC000_013D, "The remote side failed the request"),
    (0xC000_013E, "The link failed"),
    (0xC000_013F, "The link timed out"),
    (0xC000_0140, "There is no such connection"),
    (0xC000_0141, "The address is not valid"),
    (0xC000_0184, "The object is in the wrong state for the request"),
    (0xC000_0206, "The buffer size is not valid"),
    (0xC000_0207, "A part of the address is not valid"),
    (0xC000_0208, "Too many wildcards in the address"),
    (0xC000_0209, "There are too many addresses"),
    (0xC000_020A, "The address is taken"),
    (0xC000_020B, "The address was closed"),
    (0xC000_020C, "The connection was disconnected"),
    (0xC000_020D, "The connection was reset"),
    (0xC000_0225, "The object was not found"),
    (0xC000_0236, "The peer refused the connection"),
    (0xC000_0237, "The connection was closed in good order"),
    (0xC000_0238, "The local address is in use"),
    (0xC000_0239, "No local address is bound yet"),
    (0xC000_023A, "There is no connection"),
    (0xC000_023B, "The connection is active already"),
    (0xC000_023C, "The network cannot be reached"),
    (0xC000_023D, "The host cannot be reached"),
    (0xC000_023E, "The host does not speak the protocol"),
    (0xC000_023F, "Nobody serves the port at the destination"),
    (0xC000_0240, "The request was aborted"),
    (0xC000_0241, "The connection was aborted"),
    (0xC000_0246, "No more connections are allowed"),
    (0xC000_02B6, "The device was removed"),
];

/// The text of an NTSTATUS.
pub(super) fn text(status: u32) -> Option<&'static str> {
    STATUSES.binary_search_by_key(&status, |entry| entry.0).ok().map(|index| STATUSES[index].1)
}

/// The Win32 error that corresponds to an errno.
pub fn errno_to_win32(errno: i32) -> u32 {
    match errno {
        0 => ERROR_SUCCESS,
        libc::EPERM | libc::EACCES => ERROR_ACCESS_DENIED,
        libc::ENOENT => ERROR_FILE_NOT_FOUND,
        libc::ENOTDIR => ERROR_PATH_NOT_FOUND,
        libc::EBADF => ERROR_INVALID_HANDLE,
        libc::ENOMEM => ERROR_NOT_ENOUGH_MEMORY,
        libc::EFAULT => ERROR_NOACCESS,
        libc::EBUSY | libc::ETXTBSY => ERROR_BUSY,
        libc::EEXIST => ERROR_ALREADY_EXISTS,
        libc::ENODEV | libc::ENXIO => ERROR_DEV_NOT_EXIST,
        libc::EINVAL => ERROR_INVALID_PARAMETER,
        libc::EMFILE | libc::ENFILE => ERROR_TOO_MANY_OPEN_FILES,
        libc::ENOSPC => ERROR_DISK_FULL,
        libc::EPIPE => ERROR_BROKEN_PIPE,
        libc::ENOSYS => ERROR_CALL_NOT_IMPLEMENTED,
        libc::EOPNOTSUPP => ERROR_NOT_SUPPORTED,
        libc::EAGAIN | libc::ENOBUFS => ERROR_NO_SYSTEM_RESOURCES,
        libc::EIO => ERROR_IO_DEVICE,
        libc::ECANCELED => ERROR_OPERATION_ABORTED,
        libc::ETIMEDOUT => ERROR_SEM_TIMEOUT,
        libc::ECONNREFUSED => ERROR_CONNECTION_REFUSED,
        libc::ENETUNREACH => ERROR_NETWORK_UNREACHABLE,
        libc::EHOSTUNREACH => ERROR_HOST_UNREACHABLE,
        libc::EADDRINUSE => ERROR_ADDRESS_ALREADY_ASSOCIATED,
        _ => ERROR_GEN_FAILURE,
    }
}

/// The Win32 error of a failed system call.
pub(crate) fn io_to_win32(error: &std::io::Error) -> u32 {
    errno_to_win32(error.raw_os_error().unwrap_or(libc::ENOMEM))
}

/// The Winsock error of a socket call's errno.
pub fn errno_to_wsa(errno: i32) -> u32 {
    match errno {
        0 => ERROR_SUCCESS,
        libc::EINTR => WSAEINTR,
        libc::EBADF | libc::ENOTSOCK => WSAENOTSOCK,
        libc::EPERM | libc::EACCES => WSAEACCES,
        libc::EFAULT => WSAEFAULT,
        libc::EINVAL => WSAEINVAL,
        libc::EMFILE | libc::ENFILE => WSAEMFILE,
        libc::EAGAIN => WSAEWOULDBLOCK,
        libc::EINPROGRESS => WSAEINPROGRESS,
        libc::EALREADY => WSAEALREADY,
        libc::EDESTADDRREQ => WSAEDESTADDRREQ,
        libc::EMSGSIZE => WSAEMSGSIZE,
        libc::EPROTOTYPE => WSAEPROTOTYPE,
        libc::ENOPROTOOPT => WSAENOPROTOOPT,
        libc::EPROTONOSUPPORT => WSAEPROTONOSUPPORT,
        libc::ESOCKTNOSUPPORT => WSAESOCKTNOSUPPORT,
        libc::EOPNOTSUPP => WSAEOPNOTSUPP,
        libc::EPFNOSUPPORT => WSAEPFNOSUPPORT,
        libc::EAFNOSUPPORT => WSAEAFNOSUPPORT,
        libc::EADDRINUSE => WSAEADDRINUSE,
        libc::EADDRNOTAVAIL => WSAEADDRNOTAVAIL,
        libc::ENETUNREACH => WSAENETUNREACH,
        libc::ENETRESET => WSAENETRESET,
        libc::ECONNABORTED => WSAECONNABORTED,
        libc::ECONNRESET => WSAECONNRESET,
        libc::ENOBUFS | libc::ENOMEM => WSAENOBUFS,
        libc::EISCONN => WSAEISCONN,
        libc::ENOTCONN => WSAENOTCONN,
        libc::ESHUTDOWN => WSAESHUTDOWN,
        libc::ETIMEDOUT => WSAETIMEDOUT,
        libc::ECONNREFUSED => WSAECONNREFUSED,
        libc::EHOSTDOWN => WSAEHOSTDOWN,
        libc::EHOSTUNREACH => WSAEHOSTUNREACH,
        _ => WSAENETDOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_sorted_for_the_search() {
        assert!(STATUSES.is_sorted_by(|a, b| a.0 < b.0));
    }
}
