//! Bounded copies (`strcpy_s` and its family), comparison without case.
//!
//! Where Windows would call the invalid-parameter handler and end the program, these return the error.

use super::print::TRUNCATE;
use super::set_errno;
use crate::text::Wchar;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

/// `STRUNCATE`: the copy was cut because `_TRUNCATE` allowed it.
pub const STRUNCATE: c_int = 80;

/// What a comparison returns for NULL (`_NLSCMPERROR`).
const COMPARE_ERROR: c_int = c_int::MAX;

/// A unit of a string: a byte or a wide character.
trait Unit: Copy + Default + PartialEq {
    /// The unit with the 26 letters in lower case, as the "C" locale has it.
    fn fold(self) -> i64;
}

impl Unit for u8 {
    fn fold(self) -> i64 {
        self.to_ascii_lowercase().into()
    }
}

impl Unit for Wchar {
    fn fold(self) -> i64 {
        u8::try_from(self).map_or(self.into(), |byte| byte.fold())
    }
}

/// An error is the result, and `errno` too.
fn failed(error: c_int) -> c_int {
    set_errno(error);
    error
}

/// The length of a string, looked for in at most `limit` units.
///
/// # Safety
/// `text` may be read up to its NUL or `limit`.
unsafe fn length<T: Unit>(text: *const T, limit: usize) -> usize {
    // SAFETY: the search stops at the NUL and at the limit.
    (0..limit).find(|&i| unsafe { *text.add(i) } == T::default()).unwrap_or(limit)
}

/// Puts at most `count` units of `source` and a NUL behind the first `start` units of `target`.
///
/// # Safety
/// `target` is NULL or has room for `size` units, `source` is NULL or a string of `count` units or with a NUL.
unsafe fn copy<T: Unit>(target: *mut T, size: usize, start: usize, source: *const T, count: usize) -> c_int {
    if target.is_null() || size == 0 {
        return failed(libc::EINVAL);
    }
    let room = size - start - 1;
    let (copied, result) = if source.is_null() {
        (None, libc::EINVAL)
    } else {
        // More than one unit past the room need not be looked at to know that the text is too long.
        // SAFETY: the source may be read up to its NUL or `count`.
        match unsafe { length(source, count.min(room + 1)) } {
            n if n <= room => (Some(n), 0),
            _ if count == TRUNCATE => (Some(room), STRUNCATE),
            _ => (None, libc::ERANGE),
        }
    };
    // SAFETY: `start + room + 1` units are the target's size. The regions may not overlap on Windows either, but
    // `copy` makes that harmless.
    unsafe {
        match copied {
            Some(n) => {
                std::ptr::copy(source, target.add(start), n);
                target.add(start + n).write(T::default());
            }
            None => {
                target.write(T::default());
                return failed(result);
            }
        }
    }
    result
}

/// What `strncpy_s` and `strncat_s` copy from: a count of zero reads nothing, so NULL will do.
fn counted<T: Unit>(source: *const T, count: usize, nothing: &T) -> *const T {
    if count == 0 && source.is_null() { nothing } else { source }
}

/// As [`copy`], behind the string that the target holds.
///
/// # Safety
/// As for [`copy`].
unsafe fn append<T: Unit>(target: *mut T, size: usize, source: *const T, count: usize) -> c_int {
    if count == 0 && target.is_null() && size == 0 {
        return 0;
    }
    if target.is_null() || size == 0 {
        return failed(libc::EINVAL);
    }
    // SAFETY: the target has `size` units.
    let start = unsafe { length(target, size) };
    if start == size {
        // SAFETY: as above.
        unsafe { target.write(T::default()) };
        return failed(libc::EINVAL);
    }
    // SAFETY: passed on.
    unsafe { copy(target, size, start, counted(source, count, &T::default()), count) }
}

/// `strncpy_s` and `wcsncpy_s`: no target is fine when nothing is to be copied.
///
/// # Safety
/// As for [`copy`].
unsafe fn copy_counted<T: Unit>(target: *mut T, size: usize, source: *const T, count: usize) -> c_int {
    if count == 0 && target.is_null() && size == 0 {
        return 0;
    }
    // SAFETY: passed on.
    unsafe { copy(target, size, 0, counted(source, count, &T::default()), count) }
}

/// Compares without regard to case: the difference of the first units that differ.
///
/// # Safety
/// Both are NULL or strings that may be read up to a NUL or `count`.
unsafe fn compare<T: Unit>(a: *const T, b: *const T, count: usize) -> c_int {
    if a.is_null() || b.is_null() {
        set_errno(libc::EINVAL);
        return COMPARE_ERROR;
    }
    for i in 0..count {
        // SAFETY: no NUL came before, and the count is not reached.
        let (x, y) = unsafe { (*a.add(i), *b.add(i)) };
        if x.fold() != y.fold() {
            return (x.fold() - y.fold()) as c_int;
        }
        if x == T::default() {
            break;
        }
    }
    0
}

/// A copy of a string in memory from `malloc`; NULL for NULL.
///
/// # Safety
/// `text` is NULL or terminated.
unsafe fn duplicate<T: Unit>(text: *const T) -> *mut T {
    if text.is_null() {
        return null_mut();
    }
    // SAFETY: the string is terminated, and the new block has room for it and its NUL.
    unsafe {
        let count = length(text, usize::MAX) + 1;
        let block = libc::malloc(count * size_of::<T>()).cast::<T>();
        if !block.is_null() {
            std::ptr::copy_nonoverlapping(text, block, count);
        }
        block
    }
}

/// `memcpy_s` and `memmove_s`, which differ only in what they forbid.
///
/// # Safety
/// `target` is NULL or has room for `size` bytes, `source` is NULL or has `count` bytes.
unsafe fn move_bytes(target: *mut c_void, size: usize, source: *const c_void, count: usize) -> c_int {
    if count == 0 {
        return 0;
    }
    if target.is_null() {
        return failed(libc::EINVAL);
    }
    // SAFETY: the caller vouches for the sizes, and `count` bytes fit where they are copied.
    unsafe {
        if source.is_null() || size < count {
            target.cast::<u8>().write_bytes(0, size);
            return failed(if source.is_null() { libc::EINVAL } else { libc::ERANGE });
        }
        std::ptr::copy(source.cast::<u8>(), target.cast(), count);
    }
    0
}

/// Declares the C entry points that are one call to a generic function.
macro_rules! entry_points {
    ($($name:ident($($arg:ident: $type:ty),+) -> $result:ty = $call:expr, $doc:literal;)+) => {
        $(#[doc = $doc]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),+) -> $result {
            // SAFETY: the contract of the function of that name is the one of the function called.
            unsafe { $call }
        })+
    };
}

type Bytes = *mut u8;
type Text = *const u8;
type WideBuffer = *mut Wchar;
type Wide = *const Wchar;

entry_points! {
    ndw_strcpy_s(to: Bytes, size: usize, from: Text) -> c_int = copy(to, size, 0, from, usize::MAX - 1), "`strcpy_s`.";
    ndw_wcscpy_s(to: WideBuffer, size: usize, from: Wide) -> c_int = copy(to, size, 0, from, usize::MAX - 1), "`wcscpy_s`.";
    ndw_strncpy_s(to: Bytes, size: usize, from: Text, count: usize) -> c_int = copy_counted(to, size, from, count), "`strncpy_s`.";
    ndw_wcsncpy_s(to: WideBuffer, size: usize, from: Wide, count: usize) -> c_int = copy_counted(to, size, from, count), "`wcsncpy_s`.";
    ndw_strcat_s(to: Bytes, size: usize, from: Text) -> c_int = append(to, size, from, usize::MAX - 1), "`strcat_s`.";
    ndw_wcscat_s(to: WideBuffer, size: usize, from: Wide) -> c_int = append(to, size, from, usize::MAX - 1), "`wcscat_s`.";
    ndw_strncat_s(to: Bytes, size: usize, from: Text, count: usize) -> c_int = append(to, size, from, count), "`strncat_s`.";
    ndw_wcsncat_s(to: WideBuffer, size: usize, from: Wide, count: usize) -> c_int = append(to, size, from, count), "`wcsncat_s`.";
    ndw_memcpy_s(to: *mut c_void, size: usize, from: *const c_void, count: usize) -> c_int = move_bytes(to, size, from, count), "`memcpy_s`.";
    ndw_memmove_s(to: *mut c_void, size: usize, from: *const c_void, count: usize) -> c_int = move_bytes(to, size, from, count), "`memmove_s`.";
    ndw__stricmp(a: Text, b: Text) -> c_int = compare(a, b, usize::MAX), "`_stricmp`.";
    ndw__wcsicmp(a: Wide, b: Wide) -> c_int = compare(a, b, usize::MAX), "`_wcsicmp`.";
    ndw__strnicmp(a: Text, b: Text, count: usize) -> c_int = compare(a, b, count), "`_strnicmp`.";
    ndw__wcsnicmp(a: Wide, b: Wide, count: usize) -> c_int = compare(a, b, count), "`_wcsnicmp`.";
    ndw__strdup(text: *const u8) -> *mut u8 = duplicate(text), "`_strdup`.";
    ndw__wcsdup(text: Wide) -> WideBuffer = duplicate(text), "`_wcsdup`.";
}

/// Keeps the narrow signatures honest: `char` is one byte.
const _: () = assert!(size_of::<c_char>() == size_of::<u8>());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{self, w};
    use std::ptr::null;

    const FRESH: [u8; 6] = *b"??????";

    /// Runs `f` on a buffer that holds `text`.
    fn on(text: &[u8], f: impl FnOnce(*mut u8) -> c_int) -> (c_int, [u8; 6]) {
        let mut buffer = FRESH;
        buffer[..text.len()].copy_from_slice(text);
        let result = f(buffer.as_mut_ptr());
        (result, buffer)
    }

    fn c(text: &std::ffi::CStr) -> *const u8 {
        text.as_ptr().cast()
    }

    // SAFETY of every block below: the buffers have the sizes told, the strings are terminated or NULL.

    #[test]
    fn copies_are_whole_or_empty() {
        // SAFETY: see above.
        unsafe {
            assert_eq!(on(b"", |to| ndw_strcpy_s(to, 4, c(c"abc"))), (0, *b"abc\0??"));
            assert_eq!(on(b"", |to| ndw_strcpy_s(to, 4, c(c"abcd"))), (libc::ERANGE, *b"\0?????"));
            assert_eq!(on(b"", |to| ndw_strcpy_s(to, 4, null())), (libc::EINVAL, *b"\0?????"));
            assert_eq!(on(b"", |to| ndw_strcpy_s(to, 0, c(c""))), (libc::EINVAL, FRESH));
            assert_eq!(ndw_strcpy_s(null_mut(), 4, c(c"abc")), libc::EINVAL);
            let mut wide = [9; 4];
            assert_eq!(ndw_wcscpy_s(wide.as_mut_ptr(), 4, w("abc").as_ptr()), 0);
            assert_eq!(wide[..], w("abc")[..]);
        }
    }

    #[test]
    fn counted_copies_may_be_cut() {
        // SAFETY: see above.
        unsafe {
            assert_eq!(on(b"", |to| ndw_strncpy_s(to, 4, c(c"abcdef"), 3)), (0, *b"abc\0??"));
            assert_eq!(on(b"", |to| ndw_strncpy_s(to, 4, c(c"abcdef"), 4)), (libc::ERANGE, *b"\0?????"));
            assert_eq!(on(b"", |to| ndw_strncpy_s(to, 4, c(c"abcdef"), TRUNCATE)), (STRUNCATE, *b"abc\0??"));
            assert_eq!(on(b"", |to| ndw_strncpy_s(to, 4, c(c"ab"), TRUNCATE)), (0, *b"ab\0???"));
            assert_eq!(ndw_strncpy_s(null_mut(), 0, null(), 0), 0);
            // Nothing to be copied leaves an empty string, an error too, and only an error is in `errno`.
            set_errno(0);
            assert_eq!(on(b"ab\0", |to| ndw_strncpy_s(to, 4, null(), 0)), (0, *b"\0b\0???"));
            assert_eq!(on(b"", |to| ndw_strncpy_s(to, 4, c(c"abcdef"), TRUNCATE)), (STRUNCATE, *b"abc\0??"));
            assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(0));
            assert_eq!(on(b"ab\0", |to| ndw_strncpy_s(to, 4, null(), 1)), (libc::EINVAL, *b"\0b\0???"));
            assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINVAL));
            assert_eq!(on(b"", |to| ndw_strncpy_s(to, 0, c(c"a"), 0)), (libc::EINVAL, FRESH));
            assert_eq!(on(b"", |to| ndw_strncpy_s(to, 1, c(c"a"), TRUNCATE)), (STRUNCATE, *b"\0?????"));
            let mut wide = [9; 3];
            assert_eq!(ndw_wcsncpy_s(wide.as_mut_ptr(), 3, w("abc").as_ptr(), 3), libc::ERANGE);
            assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ERANGE));
            assert_eq!((wide, ndw_wcsncpy_s(wide.as_mut_ptr(), 3, w("abc").as_ptr(), 2)), ([0, 9, 9], 0));
            assert_eq!(wide[..], w("ab")[..]);
        }
    }

    #[test]
    fn appending_counts_what_is_there() {
        // SAFETY: see above.
        unsafe {
            assert_eq!(on(b"ab\0", |to| ndw_strcat_s(to, 5, c(c"cd"))), (0, *b"abcd\0?"));
            assert_eq!(on(b"ab\0", |to| ndw_strcat_s(to, 4, c(c"cd"))), (libc::ERANGE, *b"\0b\0???"));
            assert_eq!(on(b"", |to| ndw_strcat_s(to, 6, c(c"cd"))), (libc::EINVAL, *b"\0?????"));
            assert_eq!(on(b"ab\0", |to| ndw_strcat_s(to, 4, null())), (libc::EINVAL, *b"\0b\0???"));
            assert_eq!(ndw_strcat_s(null_mut(), 4, c(c"")), libc::EINVAL);
            assert_eq!(on(b"ab\0", |to| ndw_strncat_s(to, 3, null(), 0)), (0, *b"ab\0???"));
            assert_eq!(ndw_strncat_s(null_mut(), 0, null(), 0), 0);
            assert_eq!(on(b"ab\0", |to| ndw_strncat_s(to, 4, c(c"cdef"), 1)), (0, *b"abc\0??"));
            assert_eq!(
                on(b"ab\0", |to| ndw_strncat_s(to, 4, c(c"cdef"), TRUNCATE)),
                (STRUNCATE, *b"abc\0??")
            );
        }
    }

    #[test]
    fn memory_copies_clear_the_target_on_errors() {
        // SAFETY: see above.
        unsafe {
            assert_eq!(on(b"", |to| ndw_memcpy_s(to.cast(), 6, c(c"abc").cast(), 3)), (0, *b"abc???"));
            assert_eq!(
                on(b"", |to| ndw_memcpy_s(to.cast(), 2, c(c"abc").cast(), 3)),
                (libc::ERANGE, *b"\0\0????")
            );
            assert_eq!(on(b"", |to| ndw_memcpy_s(to.cast(), 2, null(), 1)), (libc::EINVAL, *b"\0\0????"));
            assert_eq!(ndw_memcpy_s(null_mut(), 0, null(), 0), 0);
        }
    }

    #[test]
    fn comparison_folds_letters_only() {
        // SAFETY: see above.
        unsafe {
            assert_eq!(ndw__wcsicmp(w("NdPing").as_ptr(), w("nDpING").as_ptr()), 0);
            assert!(ndw__wcsicmp(w("a").as_ptr(), w("B").as_ptr()) < 0);
            assert!(ndw__stricmp(c(c"abc"), c(c"ab")) > 0);
            assert_eq!(ndw__strnicmp(c(c"abX"), c(c"ABy"), 2), 0);
            assert!(ndw__wcsnicmp(w("ab").as_ptr(), w("ac").as_ptr(), 9) < 0);
            assert_ne!(ndw__wcsicmp(w("\u{c4}").as_ptr(), w("\u{e4}").as_ptr()), 0);
            assert_eq!(ndw__wcsicmp(null(), w("").as_ptr()), COMPARE_ERROR);
        }
    }

    #[test]
    fn duplicates_belong_to_malloc() {
        // SAFETY: see above.
        unsafe {
            let copy = ndw__wcsdup(w("ab").as_ptr());
            assert_eq!(text::wide(copy), Some(&w("ab")[..2]));
            libc::free(copy.cast());
            assert!(ndw__strdup(null()).is_null());
        }
    }
}
