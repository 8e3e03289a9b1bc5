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

/// Sets `errno` and returns the error.
pub(crate) fn failed(error: i32) -> i32 {
    set_errno(error);
    error
}
