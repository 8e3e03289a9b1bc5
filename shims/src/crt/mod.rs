//! The parts of Microsoft's C run-time library whose meaning differs from glibc's, or that glibc lacks.

pub mod file;
pub mod format;
pub mod number;
pub mod print;
pub mod start;
pub mod string;
pub(crate) mod va_list;

/// Sets the C library's `errno`.
pub(crate) fn set_errno(code: i32) {
    // SAFETY: the location belongs to the calling thread.
    unsafe { *libc::__errno_location() = code };
}
