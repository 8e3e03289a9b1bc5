//! `_wfopen`, `fopen_s` and related functions, `fputws`.

use super::print::write_wide;
use super::{failed, kind, set_errno};
use crate::arguments::{Out, Text};
use crate::cancellation::put_off;
use crate::text::{self, Wchar};
use libc::FILE;
use std::ffi::{CString, c_int};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

/// Converts a Windows file name to Linux's form.
pub(crate) fn path(name: &str) -> String {
    match name.to_ascii_uppercase().as_str() {
        "NUL" => "/dev/null".into(),
        "CON" | "CONIN$" | "CONOUT$" => "/dev/tty".into(),
        _ => name.replace('\\', "/"),
    }
}

/// Converts an open mode to glibc's: text and binary are the same, and the encoding is always UTF-8.
fn mode(mode: &str) -> String {
    let basic = mode.split(',').next().unwrap_or_default();
    let kept = basic.chars().filter(|c| "rwa+x".contains(*c));
    // `N`: not inherited by child processes.
    kept.chain(basic.contains('N').then_some('e')).collect()
}

/// A file name and an open mode as C strings; `None` and `EINVAL` when one is NULL.
fn names(file: Text<'_, Wchar>, open_mode: Text<'_, Wchar>) -> Option<(CString, CString)> {
    c_strings(file.read().map(|name| path(&name).into_bytes()), open_mode.read())
}

/// The same for narrow strings. The name is not converted, as by fopen.
fn narrow_names(file: Text<'_, u8>, open_mode: Text<'_, u8>) -> Option<(CString, CString)> {
    c_strings(file.units().map(<[u8]>::to_vec), open_mode.read())
}

fn c_strings(file: Option<Vec<u8>>, open_mode: Option<String>) -> Option<(CString, CString)> {
    let names = file.zip(open_mode);
    let names = names.and_then(|(file, m)| CString::new(file).ok().zip(CString::new(mode(&m)).ok()));
    if names.is_none() {
        set_errno(libc::EINVAL);
    }
    names
}

/// A stream that was opened, unless it is a folder's: those are `EACCES` on Windows.
///
/// # Safety
/// The stream is NULL, with the reason in `errno`, or open and used by nobody else.
unsafe fn no_folder(stream: *mut FILE) -> *mut FILE {
    if stream.is_null() {
        if last_errno() == libc::EISDIR {
            set_errno(libc::EACCES);
        }
        return stream;
    }
    // SAFETY: open, as the caller promises.
    if kind(unsafe { libc::fileno(stream) }) != libc::S_IFDIR {
        return stream;
    }
    // SAFETY: open, and used by nobody else, as the caller promises.
    unsafe { libc::fclose(stream) };
    set_errno(libc::EACCES);
    null_mut()
}

fn open(names: Option<(CString, CString)>) -> *mut FILE {
    let Some((file, mode)) = names else { return null_mut() };
    put_off(|| {
        // SAFETY: both are terminated.
        let stream = unsafe { libc::fopen(file.as_ptr(), mode.as_ptr()) };
        // SAFETY: NULL or new.
        unsafe { no_folder(stream) }
    })
}

/// Reopens the stream `old` with another file. It is closed in any case. NULL and `EINVAL` for NULL.
///
/// # Safety
/// `old` is NULL or an open stream.
unsafe fn reopen(names: Option<(CString, CString)>, old: *mut FILE) -> *mut FILE {
    if old.is_null() {
        set_errno(libc::EINVAL);
        return null_mut();
    }
    let Some((file, mode)) = names else { return null_mut() };
    put_off(|| {
        // SAFETY: both are terminated, and the stream is open, as the caller promises.
        let stream = unsafe { libc::freopen(file.as_ptr(), mode.as_ptr(), old) };
        // SAFETY: NULL or open, and the caller does not know it yet.
        unsafe { no_folder(stream) }
    })
}

/// As the `_s` functions do: stores the stream in `place` and returns the error.
fn store(place: Out<'_, *mut FILE>, open: impl FnOnce() -> *mut FILE) -> c_int {
    if place.is_null() {
        return failed(libc::EINVAL);
    }
    place.put(null_mut());
    let opened = open();
    place.put(opened);
    if opened.is_null() { last_errno() } else { 0 }
}

/// `_wfopen`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__wfopen(file: Text<'_, Wchar>, open_mode: Text<'_, Wchar>) -> *mut FILE {
    open(names(file, open_mode))
}

/// `_wfopen_s`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__wfopen_s(
    stream: Out<'_, *mut FILE>,
    file: Text<'_, Wchar>,
    open_mode: Text<'_, Wchar>,
) -> c_int {
    store(stream, || open(names(file, open_mode)))
}

/// `_fsopen` of a narrow name, without the share mode.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_open_stream(file: Text<'_, u8>, open_mode: Text<'_, u8>) -> *mut FILE {
    open(narrow_names(file, open_mode))
}

/// `fopen_s`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_fopen_s(
    stream: Out<'_, *mut FILE>,
    file: Text<'_, u8>,
    open_mode: Text<'_, u8>,
) -> c_int {
    store(stream, || open(narrow_names(file, open_mode)))
}

/// `freopen_s`.
///
/// # Safety
/// `old` is NULL or an open stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_freopen_s(
    stream: Out<'_, *mut FILE>,
    file: Text<'_, u8>,
    open_mode: Text<'_, u8>,
    old: *mut FILE,
) -> c_int {
    // SAFETY: NULL or an open stream, as this function asks.
    store(stream, || unsafe { reopen(narrow_names(file, open_mode), old) })
}

/// `tmpnam_s`: a name in the folder of temporary files that nothing has yet.
///
/// # Safety
/// `name` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_tmpnam_s(name: *mut u8, size: usize) -> c_int {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    if name.is_null() {
        return failed(libc::EINVAL);
    }
    let free = loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("s{:x}.{number:x}", std::process::id()));
        if std::fs::symlink_metadata(&path).is_err() {
            break path.into_os_string().into_encoded_bytes();
        }
    };
    // SAFETY: so much room, as this function asks.
    if unsafe { text::store(&free, name, size) } {
        return 0;
    }
    // SAFETY: so much room, as this function asks.
    unsafe { text::store(&[], name, size) };
    failed(libc::ERANGE)
}

/// `_wfreopen`.
///
/// # Safety
/// `stream` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__wfreopen(
    file: Text<'_, Wchar>,
    open_mode: Text<'_, Wchar>,
    stream: *mut FILE,
) -> *mut FILE {
    // SAFETY: NULL or an open stream, as this function asks.
    unsafe { reopen(names(file, open_mode), stream) }
}

/// The `errno` of a failed call of the C library.
fn last_errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)
}

/// `_fcloseall`: flushes every stream and closes none, as glibc cannot enumerate them. Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__fcloseall() -> c_int {
    // SAFETY: NULL stands for all streams.
    put_off(|| unsafe { libc::fflush(null_mut()) })
}

/// `fputws`: writes UTF-8; the stream stays narrow.
///
/// # Safety
/// `stream` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_fputws(string: Text<'_, Wchar>, stream: *mut FILE) -> c_int {
    match string.units() {
        // SAFETY: the stream is not NULL, hence open, as this function asks.
        Some(string) if !stream.is_null() => put_off(|| unsafe { write_wide(stream, string) }.min(0)),
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
    fn a_file_that_cannot_be_opened_gives_its_error_and_no_stream() {
        let mut stream = std::ptr::dangling_mut::<FILE>();
        // SAFETY: terminated names or NULL, and open streams.
        unsafe {
            assert_eq!(ndw_fopen_s((&mut stream).into(), c"/no/such/file".into(), c"r".into()), libc::ENOENT);
            assert!(stream.is_null());
            assert_eq!(ndw_fopen_s((&mut stream).into(), Text::NULL, c"r".into()), libc::EINVAL);
            assert_eq!(ndw_fopen_s(Out::NULL, c"/dev/null".into(), c"r".into()), libc::EINVAL);
            // Text mode and its encoding are words of Windows only.
            assert_eq!(ndw_fopen_s((&mut stream).into(), c"/dev/null".into(), c"rt,ccs=UTF-8".into()), 0);
            let old = stream;
            assert_eq!(ndw_freopen_s((&mut stream).into(), c"/dev/null".into(), c"w".into(), old), 0);
            libc::fclose(stream);
            assert_eq!(
                ndw_freopen_s((&mut stream).into(), c"/dev/null".into(), c"w".into(), null_mut()),
                libc::EINVAL
            );
        }
    }

    #[test]
    fn a_folder_cannot_be_opened() {
        let mut stream = null_mut::<FILE>();
        for mode in [c"r", c"w", c"r+"] {
            assert_eq!(ndw_fopen_s((&mut stream).into(), c"/tmp".into(), mode.into()), libc::EACCES);
            assert!(stream.is_null() && ndw_open_stream(c"/tmp".into(), mode.into()).is_null());
        }
        assert!(ndw__wfopen(Text::terminated(&w("\\tmp")), Text::terminated(&w("r"))).is_null());
        assert_eq!(last_errno(), libc::EACCES);
        // SAFETY: an open stream, which is gone afterwards.
        unsafe {
            assert_eq!(ndw_fopen_s((&mut stream).into(), c"/dev/null".into(), c"r".into()), 0);
            let old = stream;
            assert_eq!(ndw_freopen_s((&mut stream).into(), c"/tmp".into(), c"r".into(), old), libc::EACCES);
        }
    }

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
            let stream = ndw__wfopen(Text::terminated(&name), Text::terminated(&w("w")));
            assert!(!stream.is_null());
            assert_eq!(ndw_fputws(Text::terminated(&w("\u{fc}1\n")), stream), 0);
            let stream = ndw__wfreopen(Text::terminated(&name), Text::terminated(&w("a+")), stream);
            assert_eq!(ndw_fputws(Text::terminated(&w("2\n")), stream), 0);
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
            let mut stream = null_mut::<FILE>();
            let error =
                ndw__wfopen_s((&mut stream).into(), Text::terminated(&name), Text::terminated(&w(mode)));
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
        assert_eq!(
            ndw__wfopen_s(Out::NULL, Text::terminated(&name), Text::terminated(&w("r"))),
            libc::EINVAL
        );
    }

    #[test]
    fn null_and_missing_files() {
        // SAFETY: NULL or terminated names.
        unsafe {
            assert!(ndw__wfopen(Text::NULL, Text::terminated(&w("r"))).is_null());
            assert!(ndw__wfopen(Text::terminated(&w("/nonexistent/x")), Text::terminated(&w("r"))).is_null());
            assert!(
                ndw__wfreopen(Text::terminated(&w("NUL")), Text::terminated(&w("w")), null_mut()).is_null()
            );
            assert_eq!(ndw_fputws(Text::NULL, null_mut()), -1);
        }
    }

    #[test]
    fn a_temporary_name_is_new_each_time() {
        let mut names = [[b'?'; 260]; 2];
        for name in &mut names {
            // SAFETY: there is so much room.
            assert_eq!(unsafe { ndw_tmpnam_s(name.as_mut_ptr(), name.len()) }, 0);
        }
        assert_ne!(names[0], names[1]);
        let path = std::ffi::CStr::from_bytes_until_nul(&names[0]).unwrap().to_str().unwrap();
        assert!(path.starts_with('/') && !fs::exists(path).unwrap());
        // SAFETY: there is so much room.
        assert_eq!(unsafe { ndw_tmpnam_s(names[0].as_mut_ptr(), 3) }, libc::ERANGE);
        assert_eq!(names[0][0], 0);
        // SAFETY: nothing is written.
        assert_eq!(unsafe { ndw_tmpnam_s(null_mut(), 260) }, libc::EINVAL);
    }
}
