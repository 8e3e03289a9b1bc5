//! NTSTATUS values (ND's statuses are the NTSTATUS of the same number), and what they and errno map to.

use super::*;

/// One NTSTATUS: its number, the Win32 error it maps to, and its text.
pub(crate) struct Status {
    pub value: u32,
    pub win32: u32,
    pub text: &'static str,
}

const fn status(value: u32, win32: u32, text: &'static str) -> Status {
    Status { value, win32, text }
}

/// Sorted by number. The pairs are those of `RtlNtStatusToDosError`.
#[rustfmt::skip]
pub(crate) const STATUSES: &[Status] = &[
    status(0x0000_0000, ERROR_SUCCESS, "Success"),
    status(0x0000_0102, ERROR_TIMEOUT, "The time allowed has passed"),
    status(0x0000_0103, ERROR_IO_PENDING, "The operation is in progress"),
    status(0x8000_0005, ERROR_MORE_DATA, "The data does not fit the buffer"),
    status(0x8000_0011, ERROR_BUSY, "The device is busy"),
    status(0x8000_001A, ERROR_NO_MORE_FILES, "There are no more entries"),
    status(0xC000_0001, ERROR_GEN_FAILURE, "The operation failed"),
    status(0xC000_0002, ERROR_INVALID_FUNCTION, "The operation is not implemented"),
    status(0xC000_0005, ERROR_NOACCESS, "The memory may not be accessed this way"),
    status(0xC000_0008, ERROR_INVALID_HANDLE, "The handle is not valid"),
    status(0xC000_000D, ERROR_INVALID_PARAMETER, "A parameter is wrong"),
    status(0xC000_000E, ERROR_FILE_NOT_FOUND, "There is no such device"),
    status(0xC000_0010, ERROR_INVALID_FUNCTION, "The request is not valid for the device"),
    status(0xC000_0011, ERROR_HANDLE_EOF, "The end of the file was reached"),
    status(0xC000_0017, ERROR_NOT_ENOUGH_MEMORY, "There is not enough memory"),
    status(0xC000_0022, ERROR_ACCESS_DENIED, "Access is denied"),
    status(0xC000_0023, ERROR_INSUFFICIENT_BUFFER, "The buffer is too small"),
    status(0xC000_0024, ERROR_INVALID_HANDLE, "The object has another type"),
    status(0xC000_0030, ERROR_INVALID_PARAMETER, "The parameters do not go together"),
    status(0xC000_0034, ERROR_FILE_NOT_FOUND, "The name was not found"),
    status(0xC000_003C, ERROR_IO_DEVICE, "More data arrived than there was room for"),
    status(0xC000_003E, ERROR_CRC, "The data is damaged"),
    status(0xC000_0043, ERROR_SHARING_VIOLATION, "The address or object is in use by another"),
    status(0xC000_0044, ERROR_NOT_ENOUGH_QUOTA, "The quota is used up"),
    status(0xC000_009A, ERROR_NO_SYSTEM_RESOURCES, "The resources for the operation are used up"),
    status(0xC000_009C, ERROR_CRC, "The device found damaged data"),
    status(0xC000_009D, ERROR_DEVICE_NOT_CONNECTED, "The device is not connected"),
    status(0xC000_00A3, ERROR_NOT_READY, "The device is not ready"),
    status(0xC000_00B5, ERROR_SEM_TIMEOUT, "The operation timed out"),
    status(0xC000_00BB, ERROR_NOT_SUPPORTED, "The request is not supported"),
    status(0xC000_00BC, ERROR_REM_NOT_LIST, "The remote side does not listen"),
    status(0xC000_00BD, ERROR_DUP_NAME, "The name is taken"),
    status(0xC000_00BE, ERROR_BAD_NETPATH, "The network path was not found"),
    status(0xC000_00BF, ERROR_NETWORK_BUSY, "The network is busy"),
    status(0xC000_00C0, ERROR_DEV_NOT_EXIST, "The device does not exist any more"),
    status(0xC000_00C2, ERROR_ADAP_HDW_ERR, "The network adapter failed"),
    status(0xC000_00C4, ERROR_UNEXP_NET_ERR, "An unexpected network error occurred"),
    status(0xC000_00C9, ERROR_NETNAME_DELETED, "The network name is gone"),
    status(0xC000_00CC, ERROR_BAD_NET_NAME, "The network name was not found"),
    status(0xC000_00E5, ERROR_INTERNAL_ERROR, "An internal error occurred"),
    status(0xC000_00EF, ERROR_INVALID_PARAMETER, "The first parameter is wrong"),
    status(0xC000_00F0, ERROR_INVALID_PARAMETER, "The second parameter is wrong"),
    status(0xC000_00F1, ERROR_INVALID_PARAMETER, "The third parameter is wrong"),
    status(0xC000_00F2, ERROR_INVALID_PARAMETER, "The fourth parameter is wrong"),
    status(0xC000_00F3, ERROR_INVALID_PARAMETER, "The fifth parameter is wrong"),
    status(0xC000_00F4, ERROR_INVALID_PARAMETER, "The sixth parameter is wrong"),
    status(0xC000_00F5, ERROR_INVALID_PARAMETER, "The seventh parameter is wrong"),
    status(0xC000_00F6, ERROR_INVALID_PARAMETER, "The eighth parameter is wrong"),
    status(0xC000_00F7, ERROR_INVALID_PARAMETER, "The ninth parameter is wrong"),
    status(0xC000_0120, ERROR_OPERATION_ABORTED, "The request was cancelled"),
    status(0xC000_013B, ERROR_NETNAME_DELETED, "The connection was closed here"),
    status(0xC000_013C, ERROR_NETNAME_DELETED, "The peer closed the connection"),
    status(0xC000_013D, ERROR_REM_NOT_LIST, "The remote side failed the request"),
    status(0xC000_013E, ERROR_UNEXP_NET_ERR, "The link failed"),
    status(0xC000_013F, ERROR_UNEXP_NET_ERR, "The link timed out"),
    status(0xC000_0140, ERROR_UNEXP_NET_ERR, "There is no such connection"),
    status(0xC000_0141, ERROR_UNEXP_NET_ERR, "The address is not valid"),
    status(0xC000_0184, ERROR_BAD_COMMAND, "The object is in the wrong state for the request"),
    status(0xC000_0206, ERROR_INVALID_USER_BUFFER, "The buffer size is not valid"),
    status(0xC000_0207, ERROR_INVALID_NETNAME, "A part of the address is not valid"),
    status(0xC000_0208, ERROR_INVALID_NETNAME, "Too many wildcards in the address"),
    status(0xC000_0209, ERROR_TOO_MANY_NAMES, "There are too many addresses"),
    status(0xC000_020A, ERROR_DUP_NAME, "The address is taken"),
    status(0xC000_020B, ERROR_NETNAME_DELETED, "The address was closed"),
    status(0xC000_020C, ERROR_NETNAME_DELETED, "The connection was disconnected"),
    status(0xC000_020D, ERROR_NETNAME_DELETED, "The connection was reset"),
    status(0xC000_0225, ERROR_NOT_FOUND, "The object was not found"),
    status(0xC000_0236, ERROR_CONNECTION_REFUSED, "The peer refused the connection"),
    status(0xC000_0237, ERROR_GRACEFUL_DISCONNECT, "The connection was closed in good order"),
    status(0xC000_0238, ERROR_ADDRESS_ALREADY_ASSOCIATED, "The local address is in use"),
    status(0xC000_0239, ERROR_ADDRESS_NOT_ASSOCIATED, "No local address is bound yet"),
    status(0xC000_023A, ERROR_CONNECTION_INVALID, "There is no connection"),
    status(0xC000_023B, ERROR_CONNECTION_ACTIVE, "The connection is active already"),
    status(0xC000_023C, ERROR_NETWORK_UNREACHABLE, "The network cannot be reached"),
    status(0xC000_023D, ERROR_HOST_UNREACHABLE, "The host cannot be reached"),
    status(0xC000_023E, ERROR_PROTOCOL_UNREACHABLE, "The host does not speak the protocol"),
    status(0xC000_023F, ERROR_PORT_UNREACHABLE, "Nobody serves the port at the destination"),
    status(0xC000_0240, ERROR_REQUEST_ABORTED, "The request was aborted"),
    status(0xC000_0241, ERROR_CONNECTION_ABORTED, "The connection was aborted"),
    status(0xC000_0246, ERROR_CONNECTION_COUNT_LIMIT, "No more connections are allowed"),
    status(0xC000_02B6, ERROR_DEVICE_REMOVED, "The device was removed"),
];

/// The entry of an NTSTATUS.
pub(crate) fn find(status: u32) -> Option<&'static Status> {
    STATUSES.binary_search_by_key(&status, |entry| entry.value).ok().map(|index| &STATUSES[index])
}

/// The Win32 error that an NTSTATUS stands for, as `RtlNtStatusToDosError` gives it.
///
/// A status that wraps a Win32 error (facility 7) gives that error; an unknown one `ERROR_MR_MID_NOT_FOUND`.
pub fn nt_to_win32(status: i32) -> u32 {
    let status = status as u32;
    match find(status) {
        Some(entry) => entry.win32,
        None if matches!(status >> 16, 0xC007 | 0x8007 | 0xC001 | 0x8001) => status & 0xFFFF,
        None => ERROR_MR_MID_NOT_FOUND,
    }
}

/// The Win32 error nearest to an errno.
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
        libc::EAGAIN => ERROR_NO_SYSTEM_RESOURCES,
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
        assert!(STATUSES.is_sorted_by(|a, b| a.value < b.value));
    }

    #[test]
    fn known_statuses_map_to_their_win32_error() {
        for (status, error) in [
            (0x0000_0000u32, 0),
            (0x0000_0103, 997),
            (0x8000_0005, 234),
            (0x8000_001A, 18),
            (0xC000_000D, 87),
            (0xC000_0043, 32),
            (0xC000_00B5, 121),
            (0xC000_00F7, 87),
            (0xC000_0120, 995),
            (0xC000_020C, 64),
            (0xC000_0236, 1225),
            (0xC000_0241, 1236),
        ] {
            assert_eq!(nt_to_win32(status as i32), error, "{status:#x}");
        }
    }

    #[test]
    fn no_status_maps_to_the_wait_timeout() {
        // A failed packet must be told from an empty port by the last error alone.
        assert!(STATUSES.iter().all(|entry| entry.win32 != WAIT_TIMEOUT));
    }

    #[test]
    fn wrapped_and_unknown_statuses() {
        assert_eq!(nt_to_win32(0xC007_0005u32 as i32), 5);
        assert_eq!(nt_to_win32(0xC0FF_1234u32 as i32), ERROR_MR_MID_NOT_FOUND);
    }
}
