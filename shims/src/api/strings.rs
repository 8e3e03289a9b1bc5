//! `lstrlen` and related functions, `CompareString`. No locale is used: letters are ordered by code point without regard to case,
//! and of two texts that differ in case only the lower-case one comes first.

use crate::arguments::Text;
use crate::boundary::guard;
use crate::error::*;
use crate::text::{Unit, Wchar, narrow_and_wide};
use std::cmp::Ordering;
use std::ffi::c_void;

/// `NORM_IGNORECASE` and `LINGUISTIC_IGNORECASE`.
const IGNORE_CASE: u32 = 0x1 | 0x10;
/// The other flags of `CompareString`, which have no effect without a locale.
const OTHER_FLAGS: u32 = 0x2 | 0x4 | 0x8 | 0x20 | 0x1000 | 0x1_0000 | 0x2_0000 | 0x800_0000 | 0x1000_0000;

fn compare(a: &str, b: &str, ignore_case: bool) -> Ordering {
    let folded = |text: &str| text.to_lowercase();
    let order = folded(a).cmp(&folded(b));
    if ignore_case { order } else { order.then_with(|| b.cmp(a)) }
}

/// `lstrcmp`, `lstrcmpi`: NULL comes first.
fn compare_strings<T: Unit>(a: Text<'_, T>, b: Text<'_, T>, ignore_case: bool) -> i32 {
    guard(0, || match (a.read(), b.read()) {
        (Some(a), Some(b)) => compare(&a, &b, ignore_case) as i32,
        (a, b) => a.is_some() as i32 - b.is_some() as i32,
    })
}

fn compare_exactly<T: Unit>(a: Text<'_, T>, b: Text<'_, T>) -> i32 {
    compare_strings(a, b, false)
}

fn compare_roughly<T: Unit>(a: Text<'_, T>, b: Text<'_, T>) -> i32 {
    compare_strings(a, b, true)
}

fn length<T: Unit>(text: Text<'_, T>) -> i32 {
    text.units().map_or(0, |text| text.len() as i32)
}

/// # Safety
/// `source` is NULL or terminated, `target` NULL or with room for it. They may overlap.
unsafe fn copy<T: Unit>(target: *mut T, source: *const T) -> *mut T {
    // SAFETY: NULL or terminated.
    let text = unsafe { T::units(source) }.filter(|_| !target.is_null());
    let Some(length) = text.map(<[T]>::len) else { return std::ptr::null_mut() };
    // SAFETY: the target has room for the text and its NUL. They may overlap.
    unsafe { target.copy_from(source, length + 1) };
    target
}

/// # Safety
/// As for [`copy`], behind what `target` holds.
unsafe fn append<T: Unit>(target: *mut T, source: *const T) -> *mut T {
    // SAFETY: NULL or terminated.
    let Some(length) = (unsafe { T::units(target) }).map(<[T]>::len) else { return std::ptr::null_mut() };
    // SAFETY: behind the text there is room for the other one.
    let copied = unsafe { copy(target.wrapping_add(length), source) };
    if copied.is_null() { copied } else { target }
}

/// Copies as much as fits, and a NUL.
///
/// # Safety
/// `source` is NULL or terminated, `target` NULL or with room for `room` units.
unsafe fn copy_bounded<T: Unit>(target: *mut T, source: *const T, room: i32) -> *mut T {
    // SAFETY: NULL or terminated.
    let text = unsafe { T::units(source) }.filter(|_| !target.is_null());
    let Some(length) = text.map(<[T]>::len) else { return std::ptr::null_mut() };
    if let Some(most) = usize::try_from(room).ok().and_then(|room| room.checked_sub(1)) {
        let length = length.min(most);
        // SAFETY: the target has room for so many units. They may overlap.
        unsafe { target.copy_from(source, length) };
        // SAFETY: and for one more.
        unsafe { target.wrapping_add(length).write(T::default()) };
    }
    target
}

/// A text of `length` units, or with a negative number one that ends with a NUL.
///
/// # Safety
/// `text` is NULL or such a text.
unsafe fn counted<'a, T: Unit>(text: *const T, length: i32) -> Option<&'a [T]> {
    match usize::try_from(length) {
        // SAFETY: so many units, as the caller promises.
        Ok(length) if !text.is_null() => Some(unsafe { std::slice::from_raw_parts(text, length) }),
        Ok(_) => None,
        // SAFETY: NULL or terminated, as the caller promises of a text without length.
        Err(_) => unsafe { T::units(text) },
    }
}

/// `CSTR_LESS_THAN`, `CSTR_EQUAL` or `CSTR_GREATER_THAN`; 0 and the last error.
///
/// # Safety
/// As for [`counted`].
unsafe fn compare_counted<T: Unit>(
    flags: u32,
    a: *const T,
    a_length: i32,
    b: *const T,
    b_length: i32,
) -> i32 {
    guard(0, || {
        // SAFETY: NULL, terminated, or so many units.
        let a = unsafe { counted(a, a_length) };
        // SAFETY: NULL, terminated, or so many units.
        let b = unsafe { counted(b, b_length) };
        let error = match (a, b) {
            (None, _) | (_, None) => ERROR_INVALID_PARAMETER,
            _ if flags & !(IGNORE_CASE | OTHER_FLAGS) != 0 => ERROR_INVALID_FLAGS,
            (Some(a), Some(b)) => {
                return compare(&T::string(a), &T::string(b), flags & IGNORE_CASE != 0) as i32 + 2;
            }
        };
        set_last_error(error);
        0
    })
}

/// # Safety
/// As for [`counted`].
unsafe fn compare_in_locale<T: Unit>(
    _locale: u32,
    flags: u32,
    a: *const T,
    a_length: i32,
    b: *const T,
    b_length: i32,
) -> i32 {
    // SAFETY: texts with their lengths, as the caller promises.
    unsafe { compare_counted(flags, a, a_length, b, b_length) }
}

narrow_and_wide! {
    "`lstrlen`: 0 for NULL."
    ndw_lstrlenA ndw_lstrlenW = length(text: Text<'_, T>) -> i32;
    "`lstrcmp`."
    ndw_lstrcmpA ndw_lstrcmpW = compare_exactly(a: Text<'_, T>, b: Text<'_, T>) -> i32;
    "`lstrcmpi`."
    ndw_lstrcmpiA ndw_lstrcmpiW = compare_roughly(a: Text<'_, T>, b: Text<'_, T>) -> i32;
    "`lstrcpy`: NULL if one of the two is."
    ndw_lstrcpyA ndw_lstrcpyW = unsafe copy(target: *mut T, source: *const T) -> *mut T;
    "`lstrcat`: NULL if one of the two is."
    ndw_lstrcatA ndw_lstrcatW = unsafe append(target: *mut T, source: *const T) -> *mut T;
    "`lstrcpyn`: NULL if one of the two is."
    ndw_lstrcpynA ndw_lstrcpynW = unsafe copy_bounded(target: *mut T, source: *const T, room: i32) -> *mut T;
    "`CompareString`."
    ndw_CompareStringA ndw_CompareStringW
        = unsafe compare_in_locale(locale: u32, flags: u32, a: *const T, a_length: i32, b: *const T, b_length: i32) -> i32;
}

/// `CompareStringEx`.
///
/// # Safety
/// `a` and `b` are NULL or texts of the lengths told, with a NUL behind them where a length is negative.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CompareStringEx(
    _locale: *const Wchar,
    flags: u32,
    a: *const Wchar,
    a_length: i32,
    b: *const Wchar,
    b_length: i32,
    _version: *const c_void,
    _reserved: *const c_void,
    _parameter: isize,
) -> i32 {
    // SAFETY: C's caller has texts of these lengths, or with a NUL behind them.
    unsafe { compare_counted(flags, a, a_length, b, b_length) }
}

/// `CompareStringOrdinal`: by code point, with letters in upper case on request.
///
/// # Safety
/// `a` and `b` are NULL or texts of the lengths told, with a NUL behind them where a length is negative.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CompareStringOrdinal(
    a: *const Wchar,
    a_length: i32,
    b: *const Wchar,
    b_length: i32,
    ignore_case: i32,
) -> i32 {
    guard(0, || {
        // SAFETY: NULL, terminated, or so many units.
        let a = unsafe { counted(a, a_length) };
        // SAFETY: NULL, terminated, or so many units.
        let (Some(a), Some(b)) = (a, unsafe { counted(b, b_length) }) else {
            set_last_error(ERROR_INVALID_PARAMETER);
            return 0;
        };
        // Only mappings of one character to one, as in Windows' table.
        let fold = |unit: &Wchar| match char::from_u32(*unit) {
            Some(c) if ignore_case != 0 => {
                let mut upper = c.to_uppercase();
                upper.next().filter(|_| upper.next().is_none()).map_or(*unit, u32::from)
            }
            _ => *unit,
        };
        a.iter().map(fold).cmp(b.iter().map(fold)) as i32 + 2
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;
    use std::ptr::{null, null_mut};

    #[test]
    fn comparing_ignores_case_and_puts_null_first() {
        assert_eq!(compare_roughly(Text::terminated(&w("Pfad")), Text::terminated(&w("pFAD"))), 0);
        assert_eq!(compare_roughly(c"a".into(), c"B".into()), -1);
        assert_eq!(compare_exactly(c"a".into(), c"B".into()), -1, "a letter is a letter first");
        assert_eq!(compare_exactly(c"a".into(), c"A".into()), -1, "and in lower case first");
        assert_eq!(compare_exactly(c"b".into(), c"A".into()), 1);
        assert_eq!(compare_exactly(Text::terminated(&w("x")), Text::terminated(&w("x"))), 0);
        assert_eq!(compare_exactly(Text::NULL, Text::terminated(&w(""))), -1);
        assert_eq!(compare_exactly(Text::terminated(&w("")), Text::NULL), 1);
        assert_eq!(compare_exactly::<u8>(Text::NULL, Text::NULL), 0);
        assert_eq!(length(Text::terminated(&w("abc"))), 3);
        assert_eq!(length::<Wchar>(Text::NULL), 0);
        assert_eq!(length(c"\u{fc}".into()), 2);
    }

    #[test]
    fn copies_take_null_for_nothing() {
        let mut buffer = [b'?'; 8];
        let target = buffer.as_mut_ptr();
        // SAFETY: `buffer` has 8 units, which each copy fits with what is there; sources are terminated, and NULL is refused.
        unsafe {
            assert_eq!(copy(target, c"abc".as_ptr().cast::<u8>()), target);
            assert_eq!(append(target, c"de".as_ptr().cast::<u8>()), target);
            assert_eq!(std::slice::from_raw_parts(target, 8), b"abcde\0??");
            assert_eq!(copy_bounded(target, c"vwxyz".as_ptr().cast::<u8>(), 4), target);
            assert_eq!(std::slice::from_raw_parts(target, 8), b"vwx\0e\0??");
            assert_eq!(copy_bounded(target, c"1".as_ptr().cast::<u8>(), 0), target);
            assert_eq!(copy_bounded(target, c"1".as_ptr().cast::<u8>(), -1), target);
            assert_eq!(copy_bounded(target, c"1".as_ptr().cast::<u8>(), 1), target);
            assert_eq!(std::slice::from_raw_parts(target, 4), b"\0wx\0");
            for null in [
                copy(target, null()),
                copy(null_mut(), target),
                append(target, null()),
                append(null_mut(), target),
                copy_bounded(target, null(), 4),
                copy_bounded(null_mut(), target, 4),
            ] {
                assert!(null.is_null());
            }
            assert_eq!(std::slice::from_raw_parts(target, 4), b"\0wx\0");
        }
    }

    #[test]
    fn strings_of_a_length_are_compared() {
        let (a, b) = (w("Abc"), w("aBd"));
        // SAFETY: the lengths told are within the strings, whose NULs end those of no length; NULL is refused.
        unsafe {
            for (flags, a_length, b_length, result) in
                [(1, 2, 2, 2), (0x10, 2, 2, 2), (1, -1, -1, 1), (1, -5, 2, 3), (0, 2, 2, 3), (1, 0, 0, 2)]
            {
                assert_eq!(
                    compare_in_locale(0x409, flags, a.as_ptr(), a_length, b.as_ptr(), b_length),
                    result,
                    "{flags} {a_length} {b_length}"
                );
            }
            let same = |flags, a, b| compare_counted::<Wchar>(flags, a, -1, b, -1);
            assert_eq!((same(0, null(), b.as_ptr()), last_error()), (0, ERROR_INVALID_PARAMETER));
            assert_eq!((same(0, a.as_ptr(), null()), last_error()), (0, ERROR_INVALID_PARAMETER));
            assert_eq!((same(0x8000, a.as_ptr(), b.as_ptr()), last_error()), (0, ERROR_INVALID_FLAGS));
            let ex = ndw_CompareStringEx(null(), 1, a.as_ptr(), 2, b.as_ptr(), 2, null(), null(), 0);
            assert_eq!(ex, 2);
        }
    }

    #[test]
    fn an_ordinal_comparison_goes_by_code_point() {
        let ordinal = |a: &str, b: &str, ignore| {
            let (a, b) = (w(a), w(b));
            // SAFETY: both strings are terminated, and live until the call returns.
            unsafe { ndw_CompareStringOrdinal(a.as_ptr(), -1, b.as_ptr(), -1, ignore) }
        };
        assert_eq!((ordinal("a", "B", 0), ordinal("a", "B", 1)), (3, 1));
        assert_eq!((ordinal("\u{e4}", "\u{c4}", 1), ordinal("\u{df}", "SS", 1)), (2, 3));
        assert_eq!((ordinal("", "", 0), ordinal("ab", "a", 0)), (2, 3));
        // SAFETY: one string is terminated; the other, NULL, is refused.
        unsafe {
            assert_eq!(ndw_CompareStringOrdinal(null(), -1, w("").as_ptr(), -1, 0), 0);
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
        }
    }
}
