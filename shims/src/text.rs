//! Text: wide strings (`wchar_t`, 32 bits on Linux), UTF-8, and conversion between them.
//!
//! Every narrow string is taken to be UTF-8: it is the ANSI, OEM and thread code page at once. What cannot be
//! converted becomes U+FFFD unless the caller asks for an error.

use crate::error::*;
use std::ffi::{CStr, c_char};

/// `WCHAR`: one Unicode scalar value.
///
/// The sign of C's `wchar_t` differs between architectures and does not matter here.
pub type Wchar = u32;

const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// The characters of a NUL-terminated wide string, `None` for NULL.
///
/// # Safety
/// `text` is NULL or points to a NUL-terminated wide string that outlives the result unchanged.
pub unsafe fn wide<'a>(text: *const Wchar) -> Option<&'a [Wchar]> {
    if text.is_null() {
        return None;
    }
    let mut length = 0;
    // SAFETY: the string is terminated, so every unit up to the NUL may be read.
    while unsafe { text.add(length).read() } != 0 {
        length += 1;
    }
    // SAFETY: the units were just read.
    Some(unsafe { std::slice::from_raw_parts(text, length) })
}

/// The bytes of a NUL-terminated narrow string, `None` for NULL.
///
/// # Safety
/// `text` is NULL or points to a NUL-terminated string that outlives the result unchanged.
pub unsafe fn narrow<'a>(text: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: not NULL, hence a terminated string by the contract.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// The string that a wide string spells.
pub fn from_wide(text: &[Wchar]) -> String {
    text.iter().map(|&unit| char::from_u32(unit).unwrap_or(REPLACEMENT)).collect()
}

/// The wide string that a string spells, without a NUL.
pub fn to_wide(text: &str) -> Vec<Wchar> {
    text.chars().map(u32::from).collect()
}

/// Reads a wide string argument; `None` for NULL.
///
/// # Safety
/// As for [`wide`], for the time of the call.
pub unsafe fn string_from_wide(text: *const Wchar) -> Option<String> {
    // SAFETY: passed on.
    unsafe { wide(text) }.map(from_wide)
}

/// Reads a narrow string argument; `None` for NULL.
///
/// # Safety
/// As for [`narrow`], for the time of the call.
pub unsafe fn string_from_narrow(text: *const c_char) -> Option<String> {
    // SAFETY: passed on.
    unsafe { narrow(text) }.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// Copies `text` and a NUL into a caller's buffer when all of it fits; tells whether it did.
///
/// # Safety
/// `buffer` is NULL or has room for `capacity` units.
pub unsafe fn store<T: Copy + Default>(text: &[T], buffer: *mut T, capacity: usize) -> bool {
    if buffer.is_null() || text.len() >= capacity {
        return false;
    }
    // SAFETY: the buffer has room for the text and one unit more, and a borrowed slice cannot be part of it.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), buffer, text.len());
        buffer.add(text.len()).write(T::default());
    }
    true
}

/// `CP_UTF8`; the other code pages accepted are the ones that stand for the system's own.
pub const CP_UTF8: u32 = 65001;
/// `MB_ERR_INVALID_CHARS`.
pub const MB_ERR_INVALID_CHARS: u32 = 0x8;
/// `WC_ERR_INVALID_CHARS`.
pub const WC_ERR_INVALID_CHARS: u32 = 0x80;

/// `CP_ACP`, `CP_OEMCP`, `CP_THREAD_ACP` and `CP_UTF8` are all UTF-8.
fn is_utf8_page(code_page: u32) -> bool {
    matches!(code_page, 0 | 1 | 3 | CP_UTF8)
}

/// The input of a conversion: `count` units, or with -1 everything up to and including the NUL.
///
/// # Safety
/// `source` points to `count` units, or to a NUL-terminated string when that is -1.
unsafe fn counted<'a, T: Copy + Default + PartialEq>(source: *const T, count: i32) -> Option<&'a [T]> {
    if source.is_null() || count == 0 || count < -1 {
        return None;
    }
    let length = match usize::try_from(count) {
        Ok(length) => length,
        // SAFETY: the string is terminated, so every unit up to the NUL may be read.
        Err(_) => (0..).find(|&i| unsafe { *source.add(i) } == T::default()).map_or(0, |nul| nul + 1),
    };
    // SAFETY: the caller vouches for that many units.
    Some(unsafe { std::slice::from_raw_parts(source, length) })
}

/// Hands a converted text out: its length when `capacity` is 0, else the number of units written.
///
/// # Safety
/// `target` has room for `capacity` units.
unsafe fn deliver<T: Copy>(text: &[T], target: *mut T, capacity: i32) -> i32 {
    if capacity != 0 {
        if text.len() > capacity as usize {
            set_last_error(ERROR_INSUFFICIENT_BUFFER);
            return 0;
        }
        // SAFETY: the target has room for the text, which is ours and thus no part of it.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), target, text.len()) };
    }
    i32::try_from(text.len()).unwrap_or(0)
}

fn fail(code: u32) -> i32 {
    set_last_error(code);
    0
}

/// `MultiByteToWideChar`: UTF-8 only, whatever the code page is called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_MultiByteToWideChar(
    code_page: u32,
    flags: u32,
    source: *const c_char,
    source_len: i32,
    target: *mut Wchar,
    target_len: i32,
) -> i32 {
    if !is_utf8_page(code_page) || target_len < 0 || (target_len > 0 && target.is_null()) {
        return fail(ERROR_INVALID_PARAMETER);
    }
    // SAFETY: the function's contract is that of `counted`.
    let Some(bytes) = (unsafe { counted(source.cast::<u8>(), source_len) }) else {
        return fail(ERROR_INVALID_PARAMETER);
    };
    if flags & MB_ERR_INVALID_CHARS != 0 && std::str::from_utf8(bytes).is_err() {
        return fail(ERROR_NO_UNICODE_TRANSLATION);
    }
    let text = to_wide(&String::from_utf8_lossy(bytes));
    // SAFETY: the function's contract gives the room.
    unsafe { deliver(&text, target, target_len) }
}

/// `WideCharToMultiByte`: UTF-8 only, whatever the code page is called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WideCharToMultiByte(
    code_page: u32,
    flags: u32,
    source: *const Wchar,
    source_len: i32,
    target: *mut c_char,
    target_len: i32,
    default_char: *const c_char,
    used_default_char: *mut i32,
) -> i32 {
    // As on Windows, a replacement cannot be chosen for UTF-8 when it is asked for by name.
    let replacement_asked = !default_char.is_null() || !used_default_char.is_null();
    if !is_utf8_page(code_page)
        || target_len < 0
        || (target_len > 0 && target.is_null())
        || (code_page == CP_UTF8 && replacement_asked)
    {
        return fail(ERROR_INVALID_PARAMETER);
    }
    // SAFETY: the function's contract is that of `counted`.
    let Some(units) = (unsafe { counted(source, source_len) }) else {
        return fail(ERROR_INVALID_PARAMETER);
    };
    let invalid = units.iter().any(|&unit| char::from_u32(unit).is_none());
    if invalid && flags & WC_ERR_INVALID_CHARS != 0 {
        return fail(ERROR_NO_UNICODE_TRANSLATION);
    }
    if !used_default_char.is_null() {
        // SAFETY: a BOOL by the function's contract.
        unsafe { used_default_char.write(invalid.into()) };
    }
    // SAFETY: the function's contract gives the room.
    unsafe { deliver(from_wide(units).as_bytes(), target.cast(), target_len) }
}

/// `lstrlenW`: 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_lstrlenW(text: *const Wchar) -> i32 {
    // SAFETY: NULL or a terminated string by the function's contract.
    unsafe { wide(text) }.map_or(0, |text| text.len() as i32)
}

/// `lstrlenA`: 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_lstrlenA(text: *const c_char) -> i32 {
    // SAFETY: NULL or a terminated string by the function's contract.
    unsafe { narrow(text) }.map_or(0, |text| text.len() as i32)
}

/// Orders as the `lstrcmp` family does (NULL first), by code point: no locale is consulted.
fn compare(a: Option<String>, b: Option<String>, ignore_case: bool) -> i32 {
    let fold = |text: Option<String>| match ignore_case {
        true => text.map(|text| text.to_lowercase()),
        false => text,
    };
    fold(a).cmp(&fold(b)) as i32
}

/// `lstrcmpiW`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_lstrcmpiW(a: *const Wchar, b: *const Wchar) -> i32 {
    // SAFETY: NULL or terminated strings by the function's contract.
    unsafe { compare(string_from_wide(a), string_from_wide(b), true) }
}

/// `lstrcmpiA`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_lstrcmpiA(a: *const c_char, b: *const c_char) -> i32 {
    // SAFETY: NULL or terminated strings by the function's contract.
    unsafe { compare(string_from_narrow(a), string_from_narrow(b), true) }
}

/// `lstrcmpW`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_lstrcmpW(a: *const Wchar, b: *const Wchar) -> i32 {
    // SAFETY: NULL or terminated strings by the function's contract.
    unsafe { compare(string_from_wide(a), string_from_wide(b), false) }
}

/// `lstrcmpA`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_lstrcmpA(a: *const c_char, b: *const c_char) -> i32 {
    // SAFETY: NULL or terminated strings by the function's contract.
    unsafe { compare(string_from_narrow(a), string_from_narrow(b), false) }
}

/// A wide literal with its NUL, for tests.
#[cfg(test)]
pub(crate) fn w(text: &str) -> Vec<Wchar> {
    text.chars().map(u32::from).chain([0]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::{null, null_mut};

    #[test]
    fn to_wide_counts_then_converts() {
        let source = c"gr\u{fc}n \u{1F600}";
        let mut target = [9; 16];
        // SAFETY: terminated input, and the room given is there.
        unsafe {
            assert_eq!(ndw_MultiByteToWideChar(CP_UTF8, 0, source.as_ptr(), -1, null_mut(), 0), 7);
            assert_eq!(ndw_MultiByteToWideChar(0, 0, source.as_ptr(), -1, target.as_mut_ptr(), 7), 7);
        }
        assert_eq!(target[..8], [0x67, 0x72, 0xFC, 0x6E, 0x20, 0x1F600, 0, 9]);
    }

    #[test]
    fn a_count_converts_without_the_nul() {
        let source = w("abc");
        let mut target = [9; 8];
        // SAFETY: three units of input, and the room given is there.
        let n = unsafe {
            ndw_WideCharToMultiByte(0, 0, source.as_ptr(), 2, target.as_mut_ptr(), 8, null(), null_mut())
        };
        assert_eq!((n, target[..3].to_vec()), (2, vec![b'a' as c_char, b'b' as c_char, 9]));
    }

    #[test]
    fn conversion_errors() {
        let mut target = [0; 2];
        // SAFETY: terminated or counted input, and the room given is there.
        unsafe {
            assert_eq!(ndw_MultiByteToWideChar(CP_UTF8, 0, c"abc".as_ptr(), -1, target.as_mut_ptr(), 2), 0);
            assert_eq!(last_error(), ERROR_INSUFFICIENT_BUFFER);
            for (page, source, len, room) in [
                (1252, c"abc".as_ptr(), -1, 2),
                (0, null(), -1, 2),
                (0, c"abc".as_ptr(), 0, 2),
                (0, c"abc".as_ptr(), -1, -1),
            ] {
                set_last_error(0);
                assert_eq!(ndw_MultiByteToWideChar(page, 0, source, len, target.as_mut_ptr(), room), 0);
                assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
            }
            let bad = c"\xFF";
            assert_eq!(
                ndw_MultiByteToWideChar(0, MB_ERR_INVALID_CHARS, bad.as_ptr(), -1, target.as_mut_ptr(), 2),
                0
            );
            assert_eq!(last_error(), ERROR_NO_UNICODE_TRANSLATION);
            assert_eq!(ndw_MultiByteToWideChar(0, 0, bad.as_ptr(), -1, target.as_mut_ptr(), 2), 2);
            assert_eq!(target, [0xFFFD, 0]);

            let lone = [0xD800, 0];
            let mut used = 7;
            assert_eq!(ndw_WideCharToMultiByte(0, 0, lone.as_ptr(), -1, null_mut(), 0, null(), &mut used), 4);
            assert_eq!(used, 1);
            let strict = WC_ERR_INVALID_CHARS;
            assert_eq!(
                ndw_WideCharToMultiByte(
                    CP_UTF8,
                    strict,
                    lone.as_ptr(),
                    -1,
                    null_mut(),
                    0,
                    null(),
                    null_mut()
                ),
                0
            );
            assert_eq!(last_error(), ERROR_NO_UNICODE_TRANSLATION);
            assert_eq!(
                ndw_WideCharToMultiByte(CP_UTF8, 0, lone.as_ptr(), -1, null_mut(), 0, null(), &mut used),
                0
            );
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
        }
    }

    #[test]
    fn comparing_ignores_case_and_puts_null_first() {
        // SAFETY: NULL or terminated strings.
        unsafe {
            assert_eq!(ndw_lstrcmpiW(w("Pfad").as_ptr(), w("pFAD").as_ptr()), 0);
            assert_eq!(ndw_lstrcmpiA(c"a".as_ptr(), c"B".as_ptr()), -1);
            assert_eq!(ndw_lstrcmpA(c"a".as_ptr(), c"B".as_ptr()), 1);
            assert_eq!(ndw_lstrcmpW(null(), w("").as_ptr()), -1);
            assert_eq!(ndw_lstrlenW(w("abc").as_ptr()), 3);
            assert_eq!(ndw_lstrlenW(null()), 0);
            assert_eq!(ndw_lstrlenA(c"\u{fc}".as_ptr()), 2);
        }
    }
}
