//! The start of programs with `wmain`.

use crate::broken_pipe::make_broken_pipes_errors;
use crate::text::{self, Wchar};
use std::ffi::{CStr, c_char, c_int};
use std::ptr::null_mut;

/// `wmain` with all its parameters. One with fewer ignores the rest.
pub type WideMain = unsafe extern "C" fn(c_int, *mut *mut Wchar, *mut *mut Wchar) -> c_int;

/// A NULL-terminated array of wide strings that a program may modify.
struct WideArray {
    strings: Vec<Vec<Wchar>>,
    pointers: Vec<*mut Wchar>,
}

impl WideArray {
    fn new<'a>(strings: impl Iterator<Item = &'a [u8]>) -> WideArray {
        let mut strings: Vec<Vec<Wchar>> = strings
            .map(|bytes| String::from_utf8_lossy(bytes).chars().map(u32::from).chain([0]).collect())
            .collect();
        let pointers = strings.iter_mut().map(|string| string.as_mut_ptr()).chain([null_mut()]).collect();
        WideArray { strings, pointers }
    }
}

/// The strings of a NULL-terminated array.
///
/// # Safety
/// `array` is NULL or a NULL-terminated array of strings, all of which stay as they are.
unsafe fn strings<'a>(array: *const *const c_char) -> impl Iterator<Item = &'a [u8]> {
    (0..).map_while(move |i| {
        if array.is_null() {
            return None;
        }
        // SAFETY: no NULL came before this element.
        let element = unsafe { array.wrapping_add(i).read() };
        // SAFETY: NULL at the array's end, else terminated.
        unsafe { text::narrow(element) }
    })
}

/// Selects UTF-8 for the C library's multibyte functions if the user's locale has another character set.
///
/// Everything else stays as in a C program that has not called `setlocale`.
fn use_utf8() {
    // SAFETY: a terminated name; the program has no other thread of its own yet.
    unsafe { libc::setlocale(libc::LC_CTYPE, c"".as_ptr()) };
    // SAFETY: takes a number; the program has no other thread of its own yet that could change the locale.
    let encoding = unsafe { libc::nl_langinfo(libc::CODESET) };
    // SAFETY: `nl_langinfo` gives a terminated text, which stays until the locale changes: here, afterwards.
    if unsafe { CStr::from_ptr(encoding) } != c"UTF-8" {
        // SAFETY: a terminated name; the program has no other thread of its own yet.
        unsafe { libc::setlocale(libc::LC_CTYPE, c"C.UTF-8".as_ptr()) };
    }
}

/// Runs `main` with the arguments and the environment as wide strings; the `main` of the glue library calls it.
///
/// # Safety
/// `argv` and `environment` are NULL-terminated arrays of strings, `main` is a `wmain`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_run_wmain(
    argv: *const *const c_char,
    environment: *const *const c_char,
    main: WideMain,
) -> c_int {
    use_utf8();
    make_broken_pipes_errors();
    // SAFETY: an array of terminated strings that ends with NULL.
    let mut arguments = WideArray::new(unsafe { strings(argv) });
    // SAFETY: an array of terminated strings that ends with NULL.
    let mut environment = WideArray::new(unsafe { strings(environment) });
    let count = arguments.strings.len() as c_int;
    // SAFETY: `main` is a `wmain`; both arrays live until it returns.
    unsafe { main(count, arguments.pointers.as_mut_ptr(), environment.pointers.as_mut_ptr()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, PoisonError};

    /// A program starts once; the tests set the locale one after the other.
    static START: Mutex<()> = Mutex::new(());

    unsafe extern "C" fn main(argc: c_int, argv: *mut *mut Wchar, envp: *mut *mut Wchar) -> c_int {
        // SAFETY: the arrays have the elements looked at.
        let text = |array: *mut *mut Wchar, i| unsafe { text::string_from_wide(*array.add(i)) };
        assert_eq!(argc, 2);
        assert_eq!(text(argv, 0).as_deref(), Some("program"));
        assert_eq!(text(argv, 1).as_deref(), Some("gr\u{fc}n \u{1F600}"));
        assert_eq!(text(argv, 2), None);
        assert_eq!(text(envp, 0).as_deref(), Some("A=b"));
        assert_eq!(text(envp, 1), None);
        7
    }

    unsafe extern "C" fn broken(argc: c_int, argv: *mut *mut Wchar, _envp: *mut *mut Wchar) -> c_int {
        // SAFETY: one argument.
        assert_eq!(unsafe { text::wide(*argv) }, Some(&[0x61, 0xFFFD, 0x62, 0xFFFD][..]));
        // A program may modify its arguments.
        // SAFETY: the first argument is there, with one character at least, in memory made for this program.
        unsafe { **argv = 0x41 };
        argc
    }

    #[test]
    fn what_is_no_utf8_becomes_a_replacement_character() {
        let _alone = START.lock().unwrap_or_else(PoisonError::into_inner);
        let argv = [c"a\xFFb\xE4\xBD".as_ptr(), std::ptr::null()];
        // SAFETY: NULL-terminated arrays of strings; no environment.
        assert_eq!(unsafe { ndw_run_wmain(argv.as_ptr(), std::ptr::null(), broken) }, 1);
    }

    #[test]
    fn arguments_arrive_as_wide_strings() {
        let _alone = START.lock().unwrap_or_else(PoisonError::into_inner);
        let argv = [c"program".as_ptr(), c"gr\u{fc}n \u{1F600}".as_ptr(), std::ptr::null()];
        let environment = [c"A=b".as_ptr(), std::ptr::null()];
        // SAFETY: NULL-terminated arrays of strings.
        assert_eq!(unsafe { ndw_run_wmain(argv.as_ptr(), environment.as_ptr(), main) }, 7);
    }
}
