//! ND status values.

use crate::cause::{self, Cause};
use crate::diagnosis::host;
use std::fmt;
use std::io;

/// An ND status, numerically an `HRESULT` that equals the `NTSTATUS` of the same meaning.
///
/// Zero and positive values are successes (`ND_SUCCESS`, `ND_TIMEOUT`, `ND_PENDING`), negative ones warnings and errors.
///
/// ```
/// use ndcompat::Status;
///
/// let status = Status::CONNECTION_REFUSED;
/// assert_eq!(status.name(), Some("ND_CONNECTION_REFUSED"));
/// assert_eq!(status.to_string(), "ND_CONNECTION_REFUSED (0xC0000236)");
/// assert!(!status.is_success() && status.ok().is_err());
/// ```
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Status(pub i32);

/// The result of a call into the engine; the error is never a success status.
pub type Result<T> = std::result::Result<T, Status>;

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        impl Status {
            $(#[doc = concat!("`", $text, "`")] $(#[$doc])* pub const $name: Status = Status($value as u32 as i32);)*

            /// All named values.
            pub const NAMED: &[Status] = &[$(Status::$name),*];

            /// The name of the value in the SPI, if it has one.
            ///
            /// ```
            /// assert_eq!(ndcompat::Status(0x0000_0103).name(), Some("ND_PENDING"));
            /// assert_eq!(ndcompat::Status(1).name(), None);
            /// ```
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(Status::$name => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    SUCCESS = 0x0000_0000, "ND_SUCCESS";
    TIMEOUT = 0x0000_0102, "ND_TIMEOUT";
    PENDING = 0x0000_0103, "ND_PENDING";
    BUFFER_OVERFLOW = 0x8000_0005, "ND_BUFFER_OVERFLOW";
    DEVICE_BUSY = 0x8000_0011, "ND_DEVICE_BUSY";
    NO_MORE_ENTRIES = 0x8000_001A, "ND_NO_MORE_ENTRIES";
    NO_INTERFACE = 0x8000_4002, "E_NOINTERFACE";
    POINTER = 0x8000_4003, "E_POINTER";
    UNSUCCESSFUL = 0xC000_0001, "ND_UNSUCCESSFUL";
    ACCESS_VIOLATION = 0xC000_0005, "ND_ACCESS_VIOLATION";
    INVALID_HANDLE = 0xC000_0008, "ND_INVALID_HANDLE";
    INVALID_PARAMETER = 0xC000_000D, "ND_INVALID_PARAMETER";
    INVALID_DEVICE_REQUEST = 0xC000_0010, "ND_INVALID_DEVICE_REQUEST";
    NO_MEMORY = 0xC000_0017, "ND_NO_MEMORY";
    /// No permission to use the RDMA devices; not in `ndstatus.h`.
    ACCESS_DENIED = 0xC000_0022, "STATUS_ACCESS_DENIED";
    INVALID_PARAMETER_MIX = 0xC000_0030, "ND_INVALID_PARAMETER_MIX";
    DATA_OVERRUN = 0xC000_003C, "ND_DATA_OVERRUN";
    /// The peer could not receive the message; not in `ndstatus.h`, but reported by Windows providers.
    DATA_ERROR = 0xC000_003E, "STATUS_DATA_ERROR";
    SHARING_VIOLATION = 0xC000_0043, "ND_SHARING_VIOLATION";
    INSUFFICIENT_RESOURCES = 0xC000_009A, "ND_INSUFFICIENT_RESOURCES";
    DEVICE_NOT_READY = 0xC000_00A3, "ND_DEVICE_NOT_READY";
    IO_TIMEOUT = 0xC000_00B5, "ND_IO_TIMEOUT";
    NOT_SUPPORTED = 0xC000_00BB, "ND_NOT_SUPPORTED";
    /// The destination is not the address of a host; not in `ndstatus.h`.
    BAD_NETWORK_NAME = 0xC000_00CC, "STATUS_BAD_NETWORK_NAME";
    INTERNAL_ERROR = 0xC000_00E5, "ND_INTERNAL_ERROR";
    INVALID_PARAMETER_1 = 0xC000_00EF, "ND_INVALID_PARAMETER_1";
    INVALID_PARAMETER_2 = 0xC000_00F0, "ND_INVALID_PARAMETER_2";
    INVALID_PARAMETER_3 = 0xC000_00F1, "ND_INVALID_PARAMETER_3";
    INVALID_PARAMETER_4 = 0xC000_00F2, "ND_INVALID_PARAMETER_4";
    INVALID_PARAMETER_5 = 0xC000_00F3, "ND_INVALID_PARAMETER_5";
    INVALID_PARAMETER_6 = 0xC000_00F4, "ND_INVALID_PARAMETER_6";
    INVALID_PARAMETER_7 = 0xC000_00F5, "ND_INVALID_PARAMETER_7";
    INVALID_PARAMETER_8 = 0xC000_00F6, "ND_INVALID_PARAMETER_8";
    INVALID_PARAMETER_9 = 0xC000_00F7, "ND_INVALID_PARAMETER_9";
    INVALID_PARAMETER_10 = 0xC000_00F8, "ND_INVALID_PARAMETER_10";
    CANCELED = 0xC000_0120, "ND_CANCELED";
    REMOTE_ERROR = 0xC000_013D, "ND_REMOTE_ERROR";
    INVALID_ADDRESS = 0xC000_0141, "ND_INVALID_ADDRESS";
    INVALID_DEVICE_STATE = 0xC000_0184, "ND_INVALID_DEVICE_STATE";
    INVALID_BUFFER_SIZE = 0xC000_0206, "ND_INVALID_BUFFER_SIZE";
    TOO_MANY_ADDRESSES = 0xC000_0209, "ND_TOO_MANY_ADDRESSES";
    ADDRESS_ALREADY_EXISTS = 0xC000_020A, "ND_ADDRESS_ALREADY_EXISTS";
    /// `NotifyDisconnect` ended by a local `Disconnect`; not in `ndstatus.h`.
    CONNECTION_DISCONNECTED = 0xC000_020C, "STATUS_CONNECTION_DISCONNECTED";
    CONNECTION_REFUSED = 0xC000_0236, "ND_CONNECTION_REFUSED";
    /// A second `Bind`; not in `ndstatus.h`.
    ADDRESS_ALREADY_ASSOCIATED = 0xC000_0238, "STATUS_ADDRESS_ALREADY_ASSOCIATED";
    /// `Connect` before `Bind`; not in `ndstatus.h`.
    ADDRESS_NOT_ASSOCIATED = 0xC000_0239, "STATUS_ADDRESS_NOT_ASSOCIATED";
    CONNECTION_INVALID = 0xC000_023A, "ND_CONNECTION_INVALID";
    CONNECTION_ACTIVE = 0xC000_023B, "ND_CONNECTION_ACTIVE";
    NETWORK_UNREACHABLE = 0xC000_023C, "ND_NETWORK_UNREACHABLE";
    HOST_UNREACHABLE = 0xC000_023D, "ND_HOST_UNREACHABLE";
    CONNECTION_ABORTED = 0xC000_0241, "ND_CONNECTION_ABORTED";
    DEVICE_REMOVED = 0xC000_02B6, "ND_DEVICE_REMOVED";
}

impl Status {
    /// Whether the value is a success (the `SUCCEEDED` macro).
    ///
    /// ```
    /// use ndcompat::Status;
    ///
    /// assert!(Status::SUCCESS.is_success() && Status::PENDING.is_success());
    /// assert!(!Status::BUFFER_OVERFLOW.is_success());
    /// ```
    pub fn is_success(self) -> bool {
        self.0 >= 0
    }

    /// The status of a result without a value.
    ///
    /// ```
    /// use ndcompat::Status;
    ///
    /// assert_eq!(Status::of(Ok(())), Status::SUCCESS);
    /// assert_eq!(Status::of(Err(Status::NO_MEMORY)), Status::NO_MEMORY);
    /// ```
    #[inline(always)]
    pub fn of(result: Result<()>) -> Status {
        result.err().unwrap_or(Status::SUCCESS)
    }

    /// `Ok` for `ND_SUCCESS`, the status itself otherwise.
    ///
    /// # Errors
    /// The status itself, also `ND_PENDING`, unless it is `ND_SUCCESS`.
    ///
    /// ```
    /// use ndcompat::Status;
    ///
    /// assert_eq!(Status::SUCCESS.ok(), Ok(()));
    /// assert_eq!(Status::PENDING.ok(), Err(Status::PENDING));
    /// ```
    #[inline(always)]
    pub fn ok(self) -> Result<()> {
        if self == Status::SUCCESS { Ok(()) } else { Err(self) }
    }

    /// The status for an errno of Linux; `ND_UNSUCCESSFUL` for one without a counterpart. Some calls map errnos themselves.
    ///
    /// ```
    /// use ndcompat::Status;
    ///
    /// assert_eq!(Status::from_errno(libc::ECONNREFUSED), Status::CONNECTION_REFUSED);
    /// assert_eq!(Status::from_errno(libc::ELOOP), Status::UNSUCCESSFUL);
    /// ```
    pub fn from_errno(errno: i32) -> Status {
        match errno {
            0 => Status::SUCCESS,
            libc::ENOMEM => Status::INSUFFICIENT_RESOURCES,
            libc::EAGAIN | libc::ENOSPC | libc::ENOBUFS | libc::EMFILE | libc::ENFILE => {
                Status::INSUFFICIENT_RESOURCES
            }
            libc::EFAULT | libc::EACCES | libc::EPERM => Status::ACCESS_VIOLATION,
            libc::EBUSY => Status::DEVICE_BUSY,
            libc::EINVAL => Status::INVALID_PARAMETER,
            libc::ENODEV | libc::EIO | libc::ENXIO => Status::DEVICE_REMOVED,
            libc::ENOSYS | libc::EOPNOTSUPP => Status::NOT_SUPPORTED,
            libc::EADDRINUSE => Status::SHARING_VIOLATION,
            libc::EADDRNOTAVAIL | libc::EAFNOSUPPORT => Status::INVALID_ADDRESS,
            libc::ECONNREFUSED => Status::CONNECTION_REFUSED,
            libc::ECONNRESET | libc::ECONNABORTED | libc::EPIPE => Status::CONNECTION_ABORTED,
            libc::ENETUNREACH | libc::ENETDOWN => Status::NETWORK_UNREACHABLE,
            libc::EHOSTUNREACH | libc::EHOSTDOWN => Status::HOST_UNREACHABLE,
            libc::ETIMEDOUT => Status::IO_TIMEOUT,
            libc::ENOTCONN => Status::CONNECTION_INVALID,
            libc::EISCONN => Status::CONNECTION_ACTIVE,
            _ => Status::UNSUCCESSFUL,
        }
    }

    /// What is beneath the last failure with this status in this process: the call with its errno, or the event. For messages: other
    /// threads fail, too. `None` if no call has failed, as for an argument that is refused.
    ///
    /// ```
    /// use ndcompat::Status;
    ///
    /// let status = Status::from(std::io::Error::from_raw_os_error(libc::ETIMEDOUT));
    /// assert_eq!(status.cause().and_then(|cause| cause.errno), Some(libc::ETIMEDOUT));
    /// assert_eq!(Status::INVALID_PARAMETER_MIX.cause(), None);
    /// ```
    pub fn cause(self) -> Option<Cause> {
        cause::last(self.0)
    }

    /// The nearest kind of the standard library.
    pub(crate) fn io_kind(self) -> io::ErrorKind {
        match self {
            Status::CONNECTION_REFUSED => io::ErrorKind::ConnectionRefused,
            Status::CONNECTION_ABORTED => io::ErrorKind::ConnectionAborted,
            Status::CONNECTION_INVALID => io::ErrorKind::NotConnected,
            Status::IO_TIMEOUT | Status::TIMEOUT => io::ErrorKind::TimedOut,
            Status::HOST_UNREACHABLE => io::ErrorKind::HostUnreachable,
            Status::NETWORK_UNREACHABLE => io::ErrorKind::NetworkUnreachable,
            Status::SHARING_VIOLATION | Status::ADDRESS_ALREADY_EXISTS => io::ErrorKind::AddrInUse,
            Status::INVALID_ADDRESS => io::ErrorKind::AddrNotAvailable,
            Status::ACCESS_DENIED | Status::ACCESS_VIOLATION => io::ErrorKind::PermissionDenied,
            Status::NOT_SUPPORTED => io::ErrorKind::Unsupported,
            Status::NO_MEMORY => io::ErrorKind::OutOfMemory,
            Status::INVALID_PARAMETER => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::Other,
        }
    }

    /// The status of a failure of the machine rather than of the device: `ND_NO_MEMORY` if memory runs out,
    /// `STATUS_ACCESS_DENIED` without permission for the device. Logs an explanation.
    pub(crate) fn of_host(error: io::Error) -> Status {
        host::report(&error);
        match error.raw_os_error() {
            Some(libc::ENOMEM) => Status::NO_MEMORY.because(&error),
            Some(libc::EACCES | libc::EPERM) => Status::ACCESS_DENIED.because(&error),
            _ => error.into(),
        }
    }

    /// The status for an error, without keeping its cause.
    pub(crate) fn from_io(error: &io::Error) -> Status {
        let inside = || error.get_ref()?.downcast_ref::<Status>().copied();
        error.raw_os_error().map(Status::from_errno).or_else(inside).unwrap_or(Status::UNSUCCESSFUL)
    }

    /// This status, for the error of a call, which [`cause`](Self::cause) then tells.
    #[cold]
    pub(crate) fn because(self, error: &io::Error) -> Status {
        cause::keep_call(self.0, error);
        self
    }

    /// The status if the device fails to create a queue within the adapter's limits.
    pub(crate) fn of_creation(error: &io::Error) -> Status {
        host::report(error);
        let status = match error.raw_os_error().map(Status::from_errno) {
            Some(status @ (Status::DEVICE_REMOVED | Status::NOT_SUPPORTED)) => status,
            _ => Status::INSUFFICIENT_RESOURCES,
        };
        status.because(error)
    }
}

impl From<io::Error> for Status {
    fn from(error: io::Error) -> Status {
        Status::from_io(&error).because(&error)
    }
}

/// With the nearest kind; the status is inside.
///
/// ```
/// use ndcompat::Status;
/// use std::io::{Error, ErrorKind};
///
/// let error = Error::from(Status::CONNECTION_REFUSED);
/// assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
/// assert_eq!(error.downcast::<Status>().unwrap(), Status::CONNECTION_REFUSED);
/// ```
impl From<Status> for io::Error {
    fn from(status: Status) -> io::Error {
        io::Error::new(status.io_kind(), status)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#010X}", self.0),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?} ({:#010X})", self.0)
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_ntstatus_values() {
        assert_eq!(Status::PENDING.0, 0x103);
        assert_eq!(Status::CANCELED.0 as u32, 0xC000_0120);
        assert!(Status::TIMEOUT.is_success() && !Status::NO_MORE_ENTRIES.is_success());
    }

    #[test]
    fn errno_keeps_its_meaning() {
        assert_eq!(Status::from(io::Error::from_raw_os_error(libc::EADDRINUSE)), Status::SHARING_VIOLATION);
        assert_eq!(Status::from(io::Error::other("no errno")), Status::UNSUCCESSFUL);
        assert_eq!(format!("{}", Status::CANCELED), "ND_CANCELED (0xC0000120)");
    }
}
