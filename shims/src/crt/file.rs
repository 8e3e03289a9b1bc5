//! Streams opened by wide names, and wide strings written to streams.

use super::print::write_wide;
use super::set_errno;
use crate::text::{self, Wchar};
use libc::FILE;
use std::ffi::{CString, c_int};
use std::ptr::null_mut;

/// The Linux name of a file that was named in the Windows way.
pub(crate) fn path(name: &str) -> String {
    match name.to_ascii_uppercase().as_str() {
        "NUL" => "/dev/null".into(),
        "CON" | "CONIN$" | "CONOUT$" => "/dev/tty".into(),
        _ => name.replace('\\', "/"),
    }
}

/// The mode for glibc: text and binary are the same, and the encoding of a text stream is always UTF-8.
fn mode(mode: &str) -> String {
    let basic = mode.split(',').next().unwrap_or_default();
    let kept = basic.chars().filter(|c| "rwa+x".contains(*c));
    // `N`: not inherited by child processes.
    kept.chain(basic.contains('N').then_some('e')).collect()
}

/// Both names as C strings; `None` and `EINVAL` when one is NULL.
///
/// # Safety
/// Both are NULL or terminated.
unsafe fn names(file: *const Wchar, open_mode: *const Wchar) -> Option<(CString, CString)> {
    // SAFETY: passed on.
    let names = unsafe { text::string_from_wide(file).zip(text::string_from_wide(open_mode)) };
    let names = names.and_then(|(f, m)| CString::new(path(&f)).ok().zip(CString::new(mode(&m)).ok()));
    if names.is_none() {
        set_errno(libc::EINVAL);
    }
    names
}

/// `_wfopen`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__wfopen(file: *const Wchar, open_mode: *const Wchar) -> *mut FILE {
    // SAFETY: NULL or terminated by the function's contract.
    match unsafe { names(file, open_mode) } {
        // SAFETY: both are terminated.
        Some((file, mode)) => unsafe { libc::fopen(file.as_ptr(), mode.as_ptr()) },
        None => null_mut(),
    }
}

/// `_wfopen_s`: the error is the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__wfopen_s(
    stream: *mut *mut FILE,
    file: *const Wchar,
    open_mode: *const Wchar,
) -> c_int {
    if stream.is_null() {
        set_errno(libc::EINVAL);
        return libc::EINVAL;
    }
    // SAFETY: the function's contract.
    let opened = unsafe {
        stream.write(ndw__wfopen(file, open_mode));
        !(*stream).is_null()
    };
    if opened { 0 } else { std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL) }
}

/// `_wfreopen`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__wfreopen(
    file: *const Wchar,
    open_mode: *const Wchar,
    stream: *mut FILE,
) -> *mut FILE {
    if stream.is_null() {
        set_errno(libc::EINVAL);
        return null_mut();
    }
    // SAFETY: NULL or terminated by the function's contract.
    match unsafe { names(file, open_mode) } {
        // SAFETY: both are terminated, and the stream is open by the function's contract.
        Some((file, mode)) => unsafe { libc::freopen(file.as_ptr(), mode.as_ptr(), stream) },
        None => null_mut(),
    }
}

/// `_fcloseall`: glibc writes out every stream but closes none, and does not count them: 0.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__fcloseall() -> c_int {
    // SAFETY: NULL stands for all streams.
    unsafe { libc::fflush(null_mut()) }
}

/// `fputws`: UTF-8 comes out, and the stream stays narrow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_fputws(string: *const Wchar, stream: *mut FILE) -> c_int {
    // SAFETY: NULL or terminated, and an open stream, by the function's contract.
    match unsafe { text::wide(string) } {
        // SAFETY: as above.
        Some(string) if !stream.is_null() => unsafe { write_wide(stream, string) }.min(0),
        _ => {
            set_errno(libc::EINVAL);
            -1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;
    use std::fs;

    #[test]
    fn names_and_modes_are_translated() {
        assert_eq!(path("logs\\run.txt"), "logs/run.txt");
        assert_eq!(path("nul"), "/dev/null");
        assert_eq!(mode("rb"), "r");
        assert_eq!(mode("a+t"), "a+");
        assert_eq!(mode("wN, ccs=UTF-8"), "we");
    }

    #[test]
    fn a_stream_can_be_reopened_under_a_wide_name() {
        let file = std::env::temp_dir().join(format!("ndcompat-{}-gr\u{fc}n.txt", std::process::id()));
        let name = w(file.to_str().unwrap());
        // SAFETY: terminated names, open streams.
        unsafe {
            let stream = ndw__wfopen(name.as_ptr(), w("w").as_ptr());
            assert!(!stream.is_null());
            assert_eq!(ndw_fputws(w("\u{fc}1\n").as_ptr(), stream), 0);
            let stream = ndw__wfreopen(name.as_ptr(), w("a+").as_ptr(), stream);
            assert_eq!(ndw_fputws(w("2\n").as_ptr(), stream), 0);
            assert_eq!(ndw__fcloseall(), 0);
            assert_eq!(fs::read_to_string(&file).unwrap(), "\u{fc}1\n2\n");
            libc::fclose(stream);
        }
        fs::remove_file(file).unwrap();
    }

    #[test]
    fn modes_do_what_they_say() {
        let file = std::env::temp_dir().join(format!("ndcompat-{}-modes.txt", std::process::id()));
        let name = w(file.to_str().unwrap());
        let open = |mode: &str| {
            let mut stream = null_mut();
            // SAFETY: terminated names.
            let error = unsafe { ndw__wfopen_s(&mut stream, name.as_ptr(), w(mode).as_ptr()) };
            assert_eq!(error == 0, !stream.is_null());
            (error, stream)
        };
        // Writes a character, if the stream lets one, and closes it.
        let write = |(error, stream): (c_int, *mut FILE)| {
            assert_eq!(error, 0);
            // SAFETY: an open stream.
            unsafe {
                let written = libc::fputc(b'x'.into(), stream);
                libc::fclose(stream);
                written >= 0
            }
        };
        let length = || fs::metadata(&file).unwrap().len();
        assert_eq!(open("rb").0, libc::ENOENT);
        assert_eq!(open("r+b").0, libc::ENOENT);
        assert!(write(open("wb")) && length() == 1);
        assert!(!write(open("rt")) && length() == 1);
        assert!(write(open("a, ccs=UTF-8")) && length() == 2);
        assert!(write(open("r+")) && length() == 2);
        assert_eq!(open("wx").0, libc::EEXIST);
        assert!(write(open("w+")) && length() == 1);
        assert_eq!(open("q").0, libc::EINVAL);
        fs::remove_file(&file).unwrap();
        // SAFETY: NULL is refused.
        assert_eq!(unsafe { ndw__wfopen_s(null_mut(), name.as_ptr(), w("r").as_ptr()) }, libc::EINVAL);
    }

    #[test]
    fn null_and_missing_files() {
        // SAFETY: NULL or terminated names.
        unsafe {
            assert!(ndw__wfopen(std::ptr::null(), w("r").as_ptr()).is_null());
            assert!(ndw__wfopen(w("/nonexistent/x").as_ptr(), w("r").as_ptr()).is_null());
            assert!(ndw__wfreopen(w("NUL").as_ptr(), w("w").as_ptr(), null_mut()).is_null());
            assert_eq!(ndw_fputws(std::ptr::null(), null_mut()), -1);
        }
    }
}
