//! The parts of Microsoft's C run-time library whose meaning differs from glibc's, or that glibc lacks.

pub mod case;
pub mod conio;
pub mod environment;
pub mod file;
pub mod format;
pub mod locale;
pub mod message;
pub mod multibyte;
pub mod number;
pub mod path;
pub mod pipe;
pub mod print;
pub mod scan;
pub mod start;
pub mod string;
pub mod time;
pub(crate) mod va_list;
pub mod wide_input;

pub(crate) use crate::error::set_errno;

use std::mem::MaybeUninit;

/// The kind of a descriptor's file, as `S_IFREG` is one; 0 if it is closed.
pub(crate) fn kind(fd: i32) -> libc::mode_t {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: room for the answer.
    if unsafe { libc::fstat(fd, found.as_mut_ptr()) } != 0 {
        return 0;
    }
    // SAFETY: filled by the call.
    unsafe { found.assume_init() }.st_mode & libc::S_IFMT
}

/// Sets `errno` and returns the error.
pub(crate) fn failed(error: i32) -> i32 {
    set_errno(error);
    error
}
