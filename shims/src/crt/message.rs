//! The text of an `errno`: `strerror_s`, `_strerror`.

use super::failed;
use crate::arguments::Text;
use crate::text;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int};

/// `_strerror` uses at most this much of the program's text.
const PREFIX: usize = 94;

/// glibc's message for an errno.
fn message(error: c_int) -> Vec<u8> {
    let mut buffer = [0 as c_char; 256];
    // SAFETY: the room is there. (The variant with an `int` result, which writes there and ends it with a NUL.)
    unsafe { libc::strerror_r(error, buffer.as_mut_ptr(), buffer.len()) };
    // SAFETY: terminated by the call, or by the zeroes before it.
    unsafe { CStr::from_ptr(buffer.as_ptr()) }.to_bytes().to_vec()
}

/// `strerror_s`: truncated if it does not fit.
///
/// # Safety
/// `buffer` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_strerror_s(buffer: *mut c_char, size: usize, error: c_int) -> c_int {
    if buffer.is_null() || size == 0 {
        return failed(libc::EINVAL);
    }
    let message = message(error);
    // SAFETY: as much as fits.
    unsafe { text::store(&message[..message.len().min(size - 1)], buffer.cast::<u8>(), size) };
    0
}

/// `_strerror`: the program's text, a colon, the message of `errno` and a line feed. The result is valid until the thread's next
/// call.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__strerror(prefix: Text<'_, u8>) -> *mut c_char {
    thread_local! {
        static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    let error = std::io::Error::last_os_error().raw_os_error().unwrap_or_default();
    let mut line = Vec::new();
    if let Some(prefix) = prefix.units().filter(|prefix| !prefix.is_empty()) {
        line.extend_from_slice(&prefix[..prefix.len().min(PREFIX)]);
        line.extend_from_slice(b": ");
    }
    line.extend(message(error));
    line.extend_from_slice(b"\n\0");
    TEXT.with_borrow_mut(|text| {
        *text = line;
        text.as_mut_ptr().cast()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crt::set_errno;
    use std::ptr::null_mut;

    #[test]
    fn an_error_has_a_text_with_and_without_a_prefix() {
        let text = |prefix: Text<'_, u8>| {
            set_errno(libc::ENOENT);
            // SAFETY: NULL or terminated; the result is.
            unsafe { CStr::from_ptr(ndw__strerror(prefix)) }.to_str().unwrap().to_owned()
        };
        assert_eq!(text(Text::NULL), "No such file or directory\n");
        assert_eq!(text(c"".into()), "No such file or directory\n");
        assert_eq!(text(c"open".into()), "open: No such file or directory\n");
        let long = std::ffi::CString::new("x".repeat(200)).unwrap();
        assert_eq!(text(long.as_c_str().into()).find(':'), Some(PREFIX));
    }

    #[test]
    fn a_text_is_cut_where_it_does_not_fit() {
        let mut buffer = [1 as c_char; 8];
        // SAFETY: the room told is there.
        unsafe {
            assert_eq!(ndw_strerror_s(buffer.as_mut_ptr(), 8, libc::ENOENT), 0);
            assert_eq!(CStr::from_ptr(buffer.as_ptr()), c"No such");
            assert_eq!(ndw_strerror_s(buffer.as_mut_ptr(), 0, libc::ENOENT), libc::EINVAL);
            assert_eq!(ndw_strerror_s(null_mut(), 8, libc::ENOENT), libc::EINVAL);
        }
    }
}
