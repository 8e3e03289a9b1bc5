//! Names of errnos.

macro_rules! names {
    ($($name:ident)*) => {
        /// The name of an errno that calls of RDMA fail with: `ECONNREFUSED`.
        pub fn name(errno: i32) -> Option<&'static str> {
            match errno {
                $(libc::$name => Some(stringify!($name)),)*
                _ => None,
            }
        }
    };
}

names! {
    EPERM ENOENT EINTR EIO ENXIO E2BIG EBADF EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE
    EMFILE EFBIG ENOSPC ESPIPE EROFS EPIPE EDOM ERANGE ENAMETOOLONG ENOSYS ENOTEMPTY ELOOP EPROTO EOVERFLOW EMSGSIZE EPROTONOSUPPORT
    EOPNOTSUPP EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH ENETRESET ECONNABORTED ECONNRESET ENOBUFS EISCONN
    ENOTCONN ESHUTDOWN ETIMEDOUT ECONNREFUSED EHOSTDOWN EHOSTUNREACH EALREADY EINPROGRESS ESTALE EDQUOT ECANCELED
}

/// An errno with its name: `ECONNREFUSED (111)`.
pub fn shown(errno: i32) -> String {
    name(errno).map_or_else(|| format!("errno {errno}"), |name| format!("{name} ({errno})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errnos_have_names() {
        assert_eq!(
            (shown(libc::ECONNREFUSED), shown(4095)),
            ("ECONNREFUSED (111)".into(), "errno 4095".into())
        );
    }
}
