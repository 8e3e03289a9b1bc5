//! Mapping of socket errnos to Winsock errors, and to the NTSTATUS of a request.

use crate::error::*;

/// NTSTATUS: the message was longer than its buffers, which are full.
pub(super) const STATUS_BUFFER_OVERFLOW: i32 = 0x8000_0005_u32 as i32;
/// `STATUS_PORT_UNREACHABLE`: nobody serves the port that a datagram went to.
pub(super) const STATUS_PORT_UNREACHABLE: i32 = 0xC000_023F_u32 as i32;

/// The NTSTATUS of a request that ends with an errno.
pub(super) fn status_of(errno: i32) -> i32 {
    let status: u32 = match errno {
        0 => 0,
        libc::EACCES | libc::EPERM => 0xC000_0022,
        libc::EFAULT => 0xC000_0005,
        libc::EBADF | libc::ENOTSOCK => 0xC000_0008,
        libc::ENOMEM | libc::ENOBUFS | libc::EMFILE | libc::ENFILE => 0xC000_009A,
        libc::EMSGSIZE => 0x8000_0005,
        libc::EOPNOTSUPP => 0xC000_00BB,
        libc::EINVAL => 0xC000_000D,
        libc::ETIMEDOUT => 0xC000_00B5,
        libc::EADDRNOTAVAIL | libc::EAFNOSUPPORT => 0xC000_0141,
        libc::EADDRINUSE => 0xC000_020A,
        libc::ENOTCONN | libc::EDESTADDRREQ => 0xC000_0140,
        libc::ESHUTDOWN => 0xC000_00B0,
        libc::EISCONN => 0xC000_023B,
        libc::ECONNRESET | libc::EPIPE => 0xC000_020D,
        libc::ECONNREFUSED => 0xC000_0236,
        libc::ECONNABORTED => 0xC000_0241,
        libc::ENETUNREACH | libc::ENETDOWN => 0xC000_023C,
        libc::EHOSTUNREACH | libc::EHOSTDOWN => 0xC000_023D,
        libc::ECANCELED => 0xC000_0120,
        _ => 0xC000_00C4,
    };
    status as i32
}

/// The Winsock error of a completed request, as `WSAGetOverlappedResult` returns it.
pub(super) fn error_of(status: i32) -> u32 {
    match status as u32 {
        0 => ERROR_SUCCESS,
        0x0000_0103 => WSA_IO_INCOMPLETE,
        0xC000_0008 | 0xC000_0024 => WSAENOTSOCK,
        0xC000_0017 | 0xC000_0044 | 0xC000_009A => WSAENOBUFS,
        0xC000_0043 | 0xC000_020A => WSAEADDRINUSE,
        0x0000_0102 | 0xC000_00B5 | 0xC000_013F => WSAETIMEDOUT,
        0xC000_0237 => WSAEDISCON,
        0xC000_013C | 0xC000_020C | 0xC000_020D | 0xC000_013E | 0xC000_023F => WSAECONNRESET,
        0xC000_013B | 0xC000_0241 => WSAECONNABORTED,
        0xC000_00BE | 0xC000_023C | 0xC000_023E => WSAENETUNREACH,
        0xC000_023D => WSAEHOSTUNREACH,
        0xC000_0120 => WSA_OPERATION_ABORTED,
        0x8000_0005 | 0xC000_0206 => WSAEMSGSIZE,
        0xC000_0005 | 0xC000_0023 => WSAEFAULT,
        0xC000_00A3 => WSAEWOULDBLOCK,
        0xC000_0140 => WSAENOTCONN,
        0xC000_00B0 => WSAESHUTDOWN,
        0xC000_0236 | 0xC000_00BC => WSAECONNREFUSED,
        0xC000_0141 | 0xC000_0207 => WSAEADDRNOTAVAIL,
        0xC000_00BB | 0xC000_0002 => WSAEOPNOTSUPP,
        0xC000_0022 => WSAEACCES,
        0xC000_023B => WSAEISCONN,
        0xC000_000D => WSAEINVAL,
        _ => WSAENETDOWN,
    }
}

/// The Win32 error of a Winsock error, for file functions.
pub(super) fn win32_of(code: u32) -> u32 {
    match code {
        WSAEFAULT => ERROR_NOACCESS,
        WSAENOTSOCK => ERROR_INVALID_HANDLE,
        WSAEINVAL => ERROR_INVALID_PARAMETER,
        WSAEACCES => ERROR_ACCESS_DENIED,
        WSAEOPNOTSUPP => ERROR_NOT_SUPPORTED,
        WSAENOBUFS => ERROR_NO_SYSTEM_RESOURCES,
        WSAEMSGSIZE => ERROR_MORE_DATA,
        WSAETIMEDOUT => ERROR_SEM_TIMEOUT,
        WSAECONNRESET => ERROR_NETNAME_DELETED,
        WSAECONNABORTED => ERROR_CONNECTION_ABORTED,
        WSAECONNREFUSED => ERROR_CONNECTION_REFUSED,
        WSAENOTCONN => ERROR_PIPE_NOT_CONNECTED,
        WSAESHUTDOWN => ERROR_GRACEFUL_DISCONNECT,
        // Winsock's codes for pending and cancelled are Win32's.
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_tells_the_error_that_the_call_would_have() {
        for errno in [
            libc::EACCES,
            libc::EFAULT,
            libc::ENOTSOCK,
            libc::ENOBUFS,
            libc::EMSGSIZE,
            libc::EOPNOTSUPP,
            libc::EINVAL,
            libc::ETIMEDOUT,
            libc::EADDRNOTAVAIL,
            libc::EADDRINUSE,
            libc::ENOTCONN,
            libc::EISCONN,
            libc::ECONNRESET,
            libc::ECONNREFUSED,
            libc::ECONNABORTED,
            libc::ENETUNREACH,
            libc::EHOSTUNREACH,
            libc::ESHUTDOWN,
        ] {
            assert_eq!(error_of(status_of(errno)), errno_to_wsa(errno), "errno {errno}");
        }
        assert_eq!(error_of(status_of(libc::ECANCELED)), WSA_OPERATION_ABORTED);
    }
}
