//! Wrappers of system calls, so that they can fail as the device's functions do.

use crate::faults;
use libc::{c_char, c_int, c_uint, c_void};
use std::ffi::CString;
use std::sync::OnceLock;

/// The next function of this name in the search order: a sanitizer's, or libc's.
fn next(name: &str) -> usize {
    let sanitized = CString::new(format!("__interceptor_{name}")).expect("a name");
    let name = CString::new(name).expect("a name");
    // SAFETY: the names are strings.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, sanitized.as_ptr()) };
    if !found.is_null() {
        return found as usize;
    }
    // SAFETY: the name is a string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) as usize }
}

/// Sets errno and returns -1.
fn minus_one(errno: i32) -> c_int {
    crate::set_errno(errno);
    -1
}

macro_rules! system_calls {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(if $can:expr)?, failing by $failed:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`")]
        ///
        /// # Safety
        /// As the C function's manual has it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            static NEXT: OnceLock<usize> = OnceLock::new();
            if true $(&& $can)? && let Err(errno) = faults::call(stringify!($name)) {
                return $failed(errno);
            }
            let address = *NEXT.get_or_init(|| next(stringify!($name)));
            // SAFETY: the function of this name has this type.
            let function: unsafe extern "C" fn($($type),*) -> c_int = unsafe { std::mem::transmute(address) };
            // SAFETY: the arguments are those of the C function, as its caller passes them.
            unsafe { function($($argument),*) }
        }
    )*};
}

system_calls! {
    fn epoll_create1(flags: c_int), failing by minus_one;
    // EPOLL_CTL_DEL of a present descriptor cannot fail.
    fn epoll_ctl(set: c_int, operation: c_int, fd: c_int, event: *mut libc::epoll_event)
        if operation != libc::EPOLL_CTL_DEL, failing by minus_one;
    fn eventfd(count: c_uint, flags: c_int), failing by minus_one;
    fn timerfd_create(clock: c_int, flags: c_int), failing by minus_one;
    fn timerfd_settime(
        timer: c_int,
        flags: c_int,
        time: *const libc::itimerspec,
        former: *mut libc::itimerspec
    ), failing by minus_one;
    fn bind(socket: c_int, address: *const c_void, length: libc::socklen_t), failing by minus_one;
    fn socket(family: c_int, kind: c_int, protocol: c_int), failing by minus_one;
    fn pthread_create(
        thread: *mut libc::pthread_t,
        attributes: *const c_void,
        start: extern "C" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void
    ), failing by std::convert::identity;
}

/// `open64`, of files that exist
///
/// # Safety
/// As the C function's manual has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // The third argument is passed with O_CREAT only. Without it the value read is ignored.
    if let Err(errno) = faults::call("open64") {
        return minus_one(errno);
    }
    // SAFETY: the caller passes a terminated path.
    unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, mode) as c_int }
}
