//! `MultiByteToWideChar` and `WideCharToMultiByte`: conversion between code pages and wide strings. Every code page is UTF-8.

use super::{Wchar, bounded, from_wide, to_wide};
use crate::error::*;
use std::ffi::{c_char, c_void};

/// `CP_UTF8`. The other accepted code pages stand for the system's.
pub const CP_UTF8: u32 = 65001;
/// `MB_ERR_INVALID_CHARS`.
pub const MB_ERR_INVALID_CHARS: u32 = 0x8;
/// `WC_ERR_INVALID_CHARS`.
pub const WC_ERR_INVALID_CHARS: u32 = 0x80;
/// `MB_PRECOMPOSED`, `MB_COMPOSITE` and `MB_USEGLYPHCHARS`: for code pages other than `CP_UTF8`.
const MB_OLD: u32 = 0x1 | 0x2 | 0x4;
/// `WC_DISCARDNS`, `WC_SEPCHARS`, `WC_DEFAULTCHAR`, `WC_COMPOSITECHECK`, `WC_NO_BEST_FIT_CHARS`: likewise.
const WC_OLD: u32 = 0x10 | 0x20 | 0x40 | 0x200 | 0x400;

/// `CP_ACP`, `CP_OEMCP`, `CP_THREAD_ACP` and `CP_UTF8` are all UTF-8.
fn is_utf8_page(code_page: u32) -> bool {
    matches!(code_page, 0 | 1 | 3 | CP_UTF8)
}

/// Whether flags are valid: `CP_UTF8` takes only the strict one.
fn are_known(flags: u32, code_page: u32, strict: u32, old: u32) -> bool {
    flags & !(if code_page == CP_UTF8 { strict } else { strict | old }) == 0
}

/// The input of a conversion: `count` units, or with a negative number everything up to and including the NUL.
///
/// # Safety
/// `source` points to `count` units, or to a NUL-terminated string when that is negative.
unsafe fn counted<'a, T: Copy + Default + PartialEq>(source: *const T, count: i32) -> Option<&'a [T]> {
    if source.is_null() || count == 0 {
        return None;
    }
    let length = match usize::try_from(count) {
        Ok(length) => length,
        // SAFETY: not NULL, hence terminated, as the caller promises.
        Err(_) => unsafe { bounded(source, usize::MAX) }.map_or(0, |text| text.len() + 1),
    };
    // SAFETY: the source has so many units: as many as the caller tells, or as were looked at up to the NUL.
    Some(unsafe { std::slice::from_raw_parts(source, length) })
}

/// Writes a converted text. Returns its length if `capacity` is 0, else the number of units written. Of a text that is too long
/// `fitting` tells how much of it goes into so many units: this much is written, as on Windows, and the call fails.
///
/// # Safety
/// `target` has room for `capacity` units.
unsafe fn deliver<T: Copy>(
    text: &[T],
    target: *mut T,
    capacity: i32,
    fitting: impl FnOnce(usize) -> usize,
) -> i32 {
    let room = capacity as usize;
    let written = match capacity {
        0 => 0,
        _ if text.len() > room => fitting(room),
        _ => text.len(),
    };
    if written != 0 {
        // SAFETY: the target has room for so much of the text, which is ours and thus no part of it.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), target, written) };
    }
    if capacity != 0 && written < text.len() {
        return fail(ERROR_INSUFFICIENT_BUFFER);
    }
    i32::try_from(text.len()).unwrap_or(0)
}

/// The bytes of the characters that fit whole into so many.
fn whole_characters(text: &str, room: usize) -> usize {
    (0..=room).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0)
}

fn fail(code: u32) -> i32 {
    set_last_error(code);
    0
}

/// `MultiByteToWideChar`: UTF-8 only, whatever the code page is called.
///
/// # Safety
/// `source` is NULL, has `source_len` bytes, or is terminated if that is negative; `target` has room for `target_len`
/// characters.
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
    if source.cast::<c_void>() == target.cast_const().cast() {
        return fail(ERROR_INVALID_PARAMETER);
    }
    if !are_known(flags, code_page, MB_ERR_INVALID_CHARS, MB_OLD) {
        return fail(ERROR_INVALID_FLAGS);
    }
    // SAFETY: the source is NULL, has `source_len` bytes, or is terminated if that is negative, as this function asks.
    let Some(bytes) = (unsafe { counted(source.cast::<u8>(), source_len) }) else {
        return fail(ERROR_INVALID_PARAMETER);
    };
    if flags & MB_ERR_INVALID_CHARS != 0 && std::str::from_utf8(bytes).is_err() {
        return fail(ERROR_NO_UNICODE_TRANSLATION);
    }
    let text = to_wide(&String::from_utf8_lossy(bytes));
    // SAFETY: the target has room for `target_len` characters, as this function asks.
    unsafe { deliver(&text, target, target_len, |room| room) }
}

/// `WideCharToMultiByte`: UTF-8 only, whatever the code page is called.
///
/// # Safety
/// `source` is NULL, has `source_len` characters, or is terminated if that is negative; `target` has room for `target_len`
/// bytes; `used_default_char` is NULL or may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WideCharToMultiByte(
    code_page: u32,
    flags: u32,
    source: *const Wchar,
    source_len: i32,
    target: *mut c_char,
    target_len: i32,
    _default_char: *const c_char,
    used_default_char: *mut i32,
) -> i32 {
    if !is_utf8_page(code_page) || target_len < 0 || (target_len > 0 && target.is_null()) {
        return fail(ERROR_INVALID_PARAMETER);
    }
    if source.cast::<c_void>() == target.cast_const().cast() {
        return fail(ERROR_INVALID_PARAMETER);
    }
    if !are_known(flags, code_page, WC_ERR_INVALID_CHARS, WC_OLD) {
        return fail(ERROR_INVALID_FLAGS);
    }
    // SAFETY: the source is NULL, has `source_len` characters, or is terminated if that is negative, as this function asks.
    let Some(units) = (unsafe { counted(source, source_len) }) else {
        return fail(ERROR_INVALID_PARAMETER);
    };
    let invalid = units.iter().any(|&unit| char::from_u32(unit).is_none());
    if invalid && flags & WC_ERR_INVALID_CHARS != 0 {
        return fail(ERROR_NO_UNICODE_TRANSLATION);
    }
    if !used_default_char.is_null() {
        // SAFETY: not NULL, hence writable, as this function asks.
        unsafe { used_default_char.write(invalid.into()) };
    }
    let text = from_wide(units);
    // SAFETY: the target has room for `target_len` bytes, as this function asks.
    unsafe { deliver(text.as_bytes(), target.cast(), target_len, |room| whole_characters(&text, room)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;
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
            let replacement = c"?".as_ptr();
            for (text, expected) in [(&lone[..], (4, 1)), (&w("ab"), (3, 0))] {
                let n = ndw_WideCharToMultiByte(
                    CP_UTF8,
                    0,
                    text.as_ptr(),
                    -1,
                    null_mut(),
                    0,
                    replacement,
                    &mut used,
                );
                assert_eq!((n, used), expected);
            }
        }
    }

    #[test]
    fn what_fits_is_written_when_the_rest_does_not() {
        let mut wide = [9; 4];
        // SAFETY: a terminated text, and the room told is there.
        let n = unsafe { ndw_MultiByteToWideChar(0, 0, c"abcd".as_ptr(), -1, wide.as_mut_ptr(), 3) };
        assert_eq!((n, last_error()), (0, ERROR_INSUFFICIENT_BUFFER));
        assert_eq!(wide, [0x61, 0x62, 0x63, 9]);
        let source = w("a\u{fc}\u{fc}");
        for (room, written) in
            [(1, &b"a"[..]), (2, b"a"), (3, b"a\xC3\xBC"), (4, b"a\xC3\xBC"), (5, b"a\xC3\xBC\xC3\xBC")]
        {
            let mut narrow = [9u8; 6];
            let target = narrow.as_mut_ptr().cast();
            set_last_error(0);
            // SAFETY: a terminated text that lives on, and the room told is there.
            let n = unsafe {
                ndw_WideCharToMultiByte(0, 0, source.as_ptr(), -1, target, room, null(), null_mut())
            };
            assert_eq!((n, last_error()), (0, ERROR_INSUFFICIENT_BUFFER), "{room}");
            let (text, rest) = narrow.split_at(written.len());
            assert_eq!((text, rest.iter().all(|&byte| byte == 9)), (written, true), "{room}");
        }
    }

    #[test]
    fn conversions_refuse_flags_that_they_do_not_know() {
        for (page, flags, known) in [
            (0, 0, true),
            (0, 1, true),
            (0, MB_ERR_INVALID_CHARS | 1, true),
            (CP_UTF8, MB_ERR_INVALID_CHARS, true),
            (CP_UTF8, 1, false),
            (0, 0x10, false),
            (CP_UTF8, 0x8000_0000, false),
        ] {
            set_last_error(0);
            // SAFETY: a terminated text, and nothing is written.
            let n = unsafe { ndw_MultiByteToWideChar(page, flags, c"ab".as_ptr(), -1, null_mut(), 0) };
            assert_eq!(
                (n, last_error()),
                if known { (3, 0) } else { (0, ERROR_INVALID_FLAGS) },
                "{page} {flags:#x}"
            );
        }
        for (page, flags, known) in [
            (0, 0x400, true),
            (0, WC_ERR_INVALID_CHARS, true),
            (CP_UTF8, WC_ERR_INVALID_CHARS, true),
            (CP_UTF8, 0x400, false),
            (0, 1, false),
        ] {
            set_last_error(0);
            let source = w("ab");
            // SAFETY: the text is terminated and lives on, and with no room nothing is written.
            let n = unsafe {
                ndw_WideCharToMultiByte(page, flags, source.as_ptr(), -1, null_mut(), 0, null(), null_mut())
            };
            assert_eq!(
                (n, last_error()),
                if known { (3, 0) } else { (0, ERROR_INVALID_FLAGS) },
                "{page} {flags:#x}"
            );
        }
    }

    #[test]
    fn any_negative_length_means_up_to_the_nul() {
        let source = w("ab");
        let mut same = [97u32, 0];
        // SAFETY: terminated texts, and nothing is written.
        unsafe {
            for length in [-1, -2, i32::MIN] {
                assert_eq!(ndw_MultiByteToWideChar(0, 0, c"ab".as_ptr(), length, null_mut(), 0), 3);
                assert_eq!(
                    ndw_WideCharToMultiByte(0, 0, source.as_ptr(), length, null_mut(), 0, null(), null_mut()),
                    3
                );
            }
            // Source and target are two.
            let place = same.as_mut_ptr();
            assert_eq!(ndw_MultiByteToWideChar(0, 0, place.cast(), 1, place, 2), 0);
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
            assert_eq!(ndw_WideCharToMultiByte(0, 0, place, 1, place.cast(), 2, null(), null_mut()), 0);
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
        }
    }
}
