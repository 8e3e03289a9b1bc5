//! Bounded copies (`strcpy_s` and its family), comparison without case.
//!
//! Where Windows calls the invalid-parameter handler, which ends the program, these return the error.

use super::print::TRUNCATE;
use super::{failed, set_errno};
use crate::text::{self, Unit, Wchar, narrow_and_wide};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// `STRUNCATE`: the copy was cut because `_TRUNCATE` allowed it.
pub const STRUNCATE: c_int = 80;

/// What a comparison returns for NULL (`_NLSCMPERROR`).
const COMPARE_ERROR: c_int = c_int::MAX;

/// A unit of text whose case can be ignored.
trait Fold: Unit {
    /// The unit with the 26 letters in lower case, as the "C" locale has it.
    fn fold(self) -> i64;
}

impl Fold for u8 {
    fn fold(self) -> i64 {
        self.to_ascii_lowercase().into()
    }
}

impl Fold for Wchar {
    fn fold(self) -> i64 {
        u8::try_from(self).map_or(self.into(), |byte| byte.fold())
    }
}

/// Copies at most `count` units of `source` and a NUL to `target` from `start` on, which is within it.
///
/// # Safety
/// `source` is NULL or a string of `count` units or with a NUL.
unsafe fn put<T: Unit>(target: &[Cell<T>], start: usize, source: *const T, count: usize) -> c_int {
    let room = target.len() - start - 1;
    // One unit more than fits shows that the text is too long. SAFETY: NULL, or readable up to its NUL or `count`, as the caller
    // promises.
    let text = unsafe { text::bounded(source, count.min(room + 1)) };
    let error = match text {
        Some(text) if text.len() <= room || count == TRUNCATE => {
            let copied = &text[..text.len().min(room)];
            text::copy_to(&target[start..], copied);
            target[start + copied.len()].set(T::default());
            return if text.len() <= room { 0 } else { STRUNCATE };
        }
        Some(_) => libc::ERANGE,
        None => libc::EINVAL,
    };
    target[0].set(T::default());
    failed(error)
}

/// The source of `strncpy_s` and `strncat_s`, which may be NULL with a count of zero.
fn counted<T: Unit>(source: *const T, count: usize, nothing: &T) -> *const T {
    if count == 0 && source.is_null() { nothing } else { source }
}

/// `strncpy_s` and `wcsncpy_s`: the target may be NULL if nothing is to be copied.
///
/// # Safety
/// `to` is NULL or has room for `size` units; `from` is NULL or a string of `count` units or with a NUL.
unsafe fn copy_counted<T: Unit>(to: *mut T, size: usize, from: *const T, count: usize) -> c_int {
    if count == 0 && to.is_null() && size == 0 {
        return 0;
    }
    // SAFETY: NULL or `size` units, as the caller promises.
    let Some(target) = (unsafe { text::cells(to, size) }).filter(|target| !target.is_empty()) else {
        return failed(libc::EINVAL);
    };
    // SAFETY: the source is NULL, or a string of `count` units or with a NUL, as the caller promises.
    unsafe { put(target, 0, counted(from, count, &T::default()), count) }
}

/// `strncat_s` and `wcsncat_s`.
///
/// # Safety
/// As for [`copy_counted`].
unsafe fn append_counted<T: Unit>(to: *mut T, size: usize, from: *const T, count: usize) -> c_int {
    if count == 0 && to.is_null() && size == 0 {
        return 0;
    }
    // SAFETY: NULL or `size` units, as the caller promises.
    let Some(target) = (unsafe { text::cells(to, size) }).filter(|target| !target.is_empty()) else {
        return failed(libc::EINVAL);
    };
    let Some(start) = target.iter().position(|unit| unit.get() == T::default()) else {
        target[0].set(T::default());
        return failed(libc::EINVAL);
    };
    // SAFETY: the source is NULL, or a string of `count` units or with a NUL, as the caller promises.
    unsafe { put(target, start, counted(from, count, &T::default()), count) }
}

/// A count for strings that end with their NUL. Not `TRUNCATE`.
const UNBOUNDED: usize = usize::MAX - 1;

/// # Safety
/// `to` is NULL or has room for `size` units; `from` is NULL or terminated.
unsafe fn copy<T: Unit>(to: *mut T, size: usize, from: *const T) -> c_int {
    // SAFETY: target and source are as the caller promises.
    unsafe { copy_counted(to, size, from, UNBOUNDED) }
}

/// # Safety
/// As for [`copy`].
unsafe fn append<T: Unit>(to: *mut T, size: usize, from: *const T) -> c_int {
    // SAFETY: target and source are as the caller promises.
    unsafe { append_counted(to, size, from, UNBOUNDED) }
}

/// Compares without regard to case: the difference of the first units that differ.
///
/// # Safety
/// Both are NULL or strings that may be read up to a NUL or `count`.
unsafe fn compare_counted<T: Fold>(a: *const T, b: *const T, count: usize) -> c_int {
    if a.is_null() || b.is_null() {
        set_errno(libc::EINVAL);
        return COMPARE_ERROR;
    }
    for i in 0..count {
        // SAFETY: no NULL came before, and the count is not reached.
        let x = unsafe { a.wrapping_add(i).read() };
        // SAFETY: the same holds for the other text, which has been equal so far.
        let y = unsafe { b.wrapping_add(i).read() };
        if x.fold() != y.fold() {
            return (x.fold() - y.fold()) as c_int;
        }
        if x == T::default() {
            break;
        }
    }
    0
}

/// # Safety
/// Both are NULL or terminated.
unsafe fn compare<T: Fold>(a: *const T, b: *const T) -> c_int {
    // SAFETY: both are NULL or terminated, as the caller promises.
    unsafe { compare_counted(a, b, usize::MAX) }
}

/// Compares bytes without regard to case, a NUL like any other.
///
/// # Safety
/// Both are NULL or have `count` bytes.
unsafe fn compare_bytes(a: *const u8, b: *const u8, count: usize) -> c_int {
    if count != 0 && (a.is_null() || b.is_null()) {
        set_errno(libc::EINVAL);
        return COMPARE_ERROR;
    }
    if count == 0 {
        return 0;
    }
    // SAFETY: the caller has `count` bytes at each address.
    let a = unsafe { std::slice::from_raw_parts(a, count) };
    // SAFETY: as many as at the first address.
    let b = unsafe { std::slice::from_raw_parts(b, count) };
    let differences = a.iter().zip(b).map(|(a, b)| a.fold() - b.fold());
    differences.into_iter().find(|difference| *difference != 0).unwrap_or(0) as c_int
}

/// The length of a string of at most `size` units; 0 for NULL.
///
/// # Safety
/// `text` is NULL or may be read up to its NUL or `size`.
unsafe fn bounded_length<T: Unit>(text: *const T, size: usize) -> usize {
    // SAFETY: NULL or readable up to its NUL or `size`, as the caller promises.
    unsafe { text::bounded(text, size) }.map_or(0, <[T]>::len)
}

/// A copy of a string in memory from `malloc`; NULL for NULL.
///
/// # Safety
/// `text` is NULL or terminated.
pub(super) unsafe fn duplicate<T: Unit>(text: *const T) -> *mut T {
    // SAFETY: NULL or terminated, as the caller promises.
    let Some(text) = (unsafe { T::units(text) }) else { return null_mut() };
    let size = text.len() + 1;
    // SAFETY: takes a number.
    let block = unsafe { libc::malloc(size * size_of::<T>()) }.cast::<T>();
    // SAFETY: NULL, or a new block with room for the text and its NUL.
    unsafe { text::store(text, block, size) };
    block
}

/// `memcpy_s`, which clears the target on errors, and `memmove_s`, which leaves it alone.
///
/// # Safety
/// `target` is NULL or has room for `size` bytes, `source` is NULL or has `count` bytes.
unsafe fn move_bytes(
    target: *mut c_void,
    size: usize,
    source: *const c_void,
    count: usize,
    clears: bool,
) -> c_int {
    if count == 0 {
        return 0;
    }
    if target.is_null() {
        return failed(libc::EINVAL);
    }
    if source.is_null() || size < count {
        if clears {
            // SAFETY: the target has `size` bytes.
            unsafe { target.cast::<u8>().write_bytes(0, size) };
        }
        return failed(if source.is_null() { libc::EINVAL } else { libc::ERANGE });
    }
    // SAFETY: the source has `count` bytes, and the target no less.
    unsafe { std::ptr::copy(source.cast::<u8>(), target.cast(), count) };
    0
}

narrow_and_wide! {
    "`strcpy_s`, `wcscpy_s`."
    ndw_strcpy_s ndw_wcscpy_s = unsafe copy(to: *mut T, size: usize, from: *const T) -> c_int;
    "`strncpy_s`, `wcsncpy_s`."
    ndw_strncpy_s ndw_wcsncpy_s = unsafe copy_counted(to: *mut T, size: usize, from: *const T, count: usize) -> c_int;
    "`strcat_s`, `wcscat_s`."
    ndw_strcat_s ndw_wcscat_s = unsafe append(to: *mut T, size: usize, from: *const T) -> c_int;
    "`strncat_s`, `wcsncat_s`."
    ndw_strncat_s ndw_wcsncat_s = unsafe append_counted(to: *mut T, size: usize, from: *const T, count: usize) -> c_int;
    "`_stricmp`, `_wcsicmp`."
    ndw__stricmp ndw__wcsicmp = unsafe compare(a: *const T, b: *const T) -> c_int;
    "`_strnicmp`, `_wcsnicmp`."
    ndw__strnicmp ndw__wcsnicmp = unsafe compare_counted(a: *const T, b: *const T, count: usize) -> c_int;
    "`strnlen_s`, `wcsnlen_s`."
    ndw_strnlen_s ndw_wcsnlen_s = unsafe bounded_length(text: *const T, size: usize) -> usize;
    "`_strdup`, `_wcsdup`."
    ndw__strdup ndw__wcsdup = unsafe duplicate(text: *const T) -> *mut T;
}

/// `memcpy_s`.
///
/// # Safety
/// `to` is NULL or has room for `size` bytes, `from` is NULL or has `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_memcpy_s(
    to: *mut c_void,
    size: usize,
    from: *const c_void,
    count: usize,
) -> c_int {
    // SAFETY: the target has `size` bytes and the source `count`, or they are NULL, as this function asks.
    unsafe { move_bytes(to, size, from, count, true) }
}

/// `memmove_s`.
///
/// # Safety
/// As for [`ndw_memcpy_s`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_memmove_s(
    to: *mut c_void,
    size: usize,
    from: *const c_void,
    count: usize,
) -> c_int {
    // SAFETY: the target has `size` bytes and the source `count`, or they are NULL, as this function asks.
    unsafe { move_bytes(to, size, from, count, false) }
}

/// `_memicmp`.
///
/// # Safety
/// Both are NULL or have `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__memicmp(a: *const c_void, b: *const c_void, count: usize) -> c_int {
    // SAFETY: both are NULL or have `count` bytes, as this function asks.
    unsafe { compare_bytes(a.cast(), b.cast(), count) }
}

/// `wcstok` without a place for its state, which is the thread's.
///
/// # Safety
/// `text` is NULL or terminated, and the program's to write to, as is what it was in the thread's last call with one; `separators` are
/// terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_wcstok(text: *mut Wchar, separators: *const Wchar) -> *mut Wchar {
    unsafe extern "C" {
        fn wcstok(text: *mut Wchar, separators: *const Wchar, state: *mut *mut Wchar) -> *mut Wchar;
    }
    thread_local! {
        static STATE: Cell<*mut Wchar> = const { Cell::new(null_mut()) };
    }
    STATE.with(|state| {
        // SAFETY: texts as this function asks; the state is the thread's, and none or what the last call has left there.
        unsafe { wcstok(text, separators, state.as_ptr()) }
    })
}

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

    #[test]
    fn copies_are_whole_or_empty() {
        // SAFETY: `on` gives a buffer of 6 bytes, `wide` has 4 characters, no call is told of more, and the strings are
        // terminated or NULL.
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
        // SAFETY: `on` gives a buffer of 6 bytes, no call is told of more, and the strings are terminated or NULL.
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
        // SAFETY: `on` gives a buffer of 6 bytes, no call is told of more, and the strings are terminated or NULL.
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
    fn memory_moves_leave_the_target_alone_on_errors() {
        // SAFETY: `on` gives a buffer of 6 bytes, as `text` has; what is moved is within them or the 3 letters of the source;
        // NULL is refused.
        unsafe {
            assert_eq!(on(b"", |to| ndw_memmove_s(to.cast(), 6, c(c"abc").cast(), 3)), (0, *b"abc???"));
            let long = c(c"abc").cast();
            assert_eq!(on(b"", |to| ndw_memmove_s(to.cast(), 2, long, 3)), (libc::ERANGE, *b"??????"));
            assert_eq!(on(b"", |to| ndw_memmove_s(to.cast(), 2, null(), 1)), (libc::EINVAL, *b"??????"));
            assert_eq!(ndw_memmove_s(null_mut(), 2, long, 1), libc::EINVAL);
            let mut text = *b"abcdef";
            let to = text.as_mut_ptr();
            assert_eq!(ndw_memmove_s(to.add(1).cast(), 5, to.cast(), 5), 0);
            assert_eq!(text, *b"aabcde");
        }
    }

    #[test]
    fn memory_copies_clear_the_target_on_errors() {
        // SAFETY: `on` gives a buffer of 6 bytes, and no more than the 3 letters of the source are copied; NULL is refused, or
        // has no size.
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
    fn a_bounded_length_stops_at_its_bound() {
        // SAFETY: the strings are as long as told, or NULL.
        unsafe {
            assert_eq!((ndw_strnlen_s(c(c"abc"), 9), ndw_strnlen_s(c(c"abc"), 2)), (3, 2));
            assert_eq!((ndw_strnlen_s(null(), 9), ndw_wcsnlen_s(w("ab").as_ptr(), 9)), (0, 2));
            assert_eq!(ndw__memicmp(b"aB\0c".as_ptr().cast(), b"Ab\0C".as_ptr().cast(), 4), 0);
            assert!(ndw__memicmp(b"a\0b".as_ptr().cast(), b"a\0C".as_ptr().cast(), 3) < 0);
            assert_eq!(
                (ndw__memicmp(null(), null(), 0), ndw__memicmp(null(), null(), 1)),
                (0, COMPARE_ERROR)
            );
        }
    }

    #[test]
    fn comparison_folds_letters_only() {
        // SAFETY: the strings are terminated, or NULL, which is refused.
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
        // SAFETY: the strings are terminated or NULL; the copy is terminated, and freed once.
        unsafe {
            let copy = ndw__wcsdup(w("ab").as_ptr());
            assert_eq!(text::wide(copy), Some(&w("ab")[..2]));
            libc::free(copy.cast());
            assert!(ndw__strdup(null()).is_null());
        }
    }

    #[test]
    fn where_a_text_is_cut_next_is_known_to_the_thread() {
        let (mut words, separators) = (w("a,b;c"), w(",;"));
        // SAFETY: terminated texts, the first of which is cut.
        let next = |text| unsafe { text::string_from_wide(ndw_wcstok(text, separators.as_ptr())) };
        assert_eq!(next(words.as_mut_ptr()).as_deref(), Some("a"));
        let mut others = w("x");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(next(null_mut()), None);
                assert_eq!(next(others.as_mut_ptr()).as_deref(), Some("x"));
            });
        });
        assert_eq!((next(null_mut()).as_deref(), next(null_mut()).as_deref()), (Some("b"), Some("c")));
        assert_eq!((next(null_mut()), next(null_mut())), (None, None));
    }
}
