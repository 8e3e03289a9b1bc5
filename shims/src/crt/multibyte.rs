//! `mbstowcs_s`, `wcstombs_s`, `wctomb_s`. The character set is always UTF-8, whatever the locale.

use super::print::TRUNCATE;
use super::string::STRUNCATE;
use super::{failed, set_errno};
use crate::arguments::{Out, Text};
use crate::text::{Unit, Wchar, cells, copy_to, exact, store, to_wide};
use std::ffi::{c_char, c_int};

/// Writes the first `count` units of a converted text, and their number with the NUL. `cut` returns where the text may be
/// truncated.
///
/// # Safety
/// `target` is NULL or has room for `size` units.
unsafe fn deliver<T: Unit>(
    converted: Out<'_, usize>,
    target: *mut T,
    size: usize,
    text: Option<&[T]>,
    count: usize,
    cut: impl Fn(&[T], usize) -> usize,
) -> c_int {
    converted.put(0);
    if target.is_null() != (size == 0) {
        return failed(libc::EINVAL);
    }
    let refuse = |error| {
        if !target.is_null() {
            // SAFETY: room for one unit at least.
            unsafe { target.write(T::default()) };
        }
        failed(error)
    };
    let Some(text) = text else { return refuse(libc::EILSEQ) };
    if target.is_null() {
        converted.put(text.len() + 1);
        return 0;
    }
    let wanted = cut(text, count.min(text.len()));
    let (end, result) = match wanted < size {
        true => (wanted, 0),
        false if count == TRUNCATE => (cut(text, size - 1), STRUNCATE),
        false => return refuse(libc::ERANGE),
    };
    // SAFETY: not NULL, hence room for `size` units, as the caller promises.
    let fits = unsafe { store(&text[..end], target, size) };
    debug_assert!(fits);
    converted.put(end + 1);
    if result != 0 {
        set_errno(result);
    }
    result
}

/// `mbstowcs_s`.
///
/// # Safety
/// `target` must be NULL or have room for `size` characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_mbstowcs_s(
    converted: Out<'_, usize>,
    target: *mut Wchar,
    size: usize,
    source: Text<'_, u8>,
    count: usize,
) -> c_int {
    let Some(source) = source.units() else {
        // SAFETY: the target is NULL or has room for `size` characters, as this function asks.
        unsafe { deliver(converted, target, size, None, 0, |_, end| end) };
        return failed(libc::EINVAL);
    };
    let text = std::str::from_utf8(source).ok().map(to_wide);
    // SAFETY: the target is NULL or has room for `size` characters, as this function asks.
    unsafe { deliver(converted, target, size, text.as_deref(), count, |_, end| end) }
}

/// `wcstombs_s`: truncates between characters only.
///
/// # Safety
/// `target` must be NULL or have room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_wcstombs_s(
    converted: Out<'_, usize>,
    target: *mut c_char,
    size: usize,
    source: Text<'_, Wchar>,
    count: usize,
) -> c_int {
    let target = target.cast::<u8>();
    let Some(source) = source.units() else {
        // SAFETY: the target is NULL or has room for `size` bytes, as this function asks.
        unsafe { deliver(converted, target, size, None, 0, |_, end| end) };
        return failed(libc::EINVAL);
    };
    let text = exact(source).map(String::into_bytes);
    let is_inner = |byte: Option<&u8>| byte.is_some_and(|byte| byte & 0xC0 == 0x80);
    let cut = |text: &[u8], end: usize| (0..=end).rev().find(|end| !is_inner(text.get(*end))).unwrap_or(0);
    // SAFETY: the target is NULL or has room for `size` bytes, as this function asks.
    unsafe { deliver(converted, target, size, text.as_deref(), count, cut) }
}

/// `wctomb_s`: the bytes of one character, without a NUL. There are no shift states: without a target and size the result is 0.
///
/// # Safety
/// `target` must be NULL or have room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_wctomb_s(
    length: Out<'_, c_int>,
    target: *mut c_char,
    size: usize,
    character: Wchar,
) -> c_int {
    // SAFETY: NULL, or room for so many bytes, as this function asks.
    let cells = unsafe { cells(target.cast::<u8>(), size) };
    let Some(cells) = cells else {
        if size != 0 {
            return failed(libc::EINVAL);
        }
        length.put(0);
        return 0;
    };
    if size > i32::MAX as usize {
        return failed(libc::EINVAL);
    }
    let mut bytes = [0; 4];
    let Some(bytes) = char::from_u32(character).map(|character| character.encode_utf8(&mut bytes)) else {
        length.put(-1);
        return failed(libc::EILSEQ);
    };
    if bytes.len() > cells.len() {
        cells.iter().for_each(|byte| byte.set(0));
        length.put(-1);
        return failed(libc::ERANGE);
    }
    copy_to(cells, bytes.as_bytes());
    length.put(bytes.len() as c_int);
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;
    use std::ptr::null_mut;

    #[test]
    fn utf8_becomes_wide_as_far_as_there_is_room() {
        let mut wide = [7 as Wchar; 6];
        let mut length = 77;
        let mut convert = |size: usize, source: Text<'_, u8>, count: usize| {
            wide.fill(7);
            let target = if size == 0 { null_mut() } else { wide.as_mut_ptr() };
            // SAFETY: `wide` has 6 characters, no call is told of more, and with no size the target is NULL.
            let result = unsafe { ndw_mbstowcs_s((&mut length).into(), target, size, source, count) };
            (result, length, wide[0], wide[2])
        };
        let (k, l) = (u32::from('K') as Wchar, u32::from('l') as Wchar);
        assert_eq!(convert(0, c"Köln".into(), 0), (0, 5, 7, 7), "how much is needed");
        assert_eq!(convert(5, c"Köln".into(), TRUNCATE), (0, 5, k, l));
        assert_eq!(convert(6, c"Köln".into(), 2), (0, 3, k, 0));
        assert_eq!(convert(4, c"Köln".into(), 4), (libc::ERANGE, 0, 0, 7));
        assert_eq!(convert(3, c"Köln".into(), TRUNCATE), (STRUNCATE, 3, k, 0));
        assert_eq!(convert(6, c"\xC3".into(), 4), (libc::EILSEQ, 0, 0, 7));
        assert_eq!(convert(6, Text::NULL, 4), (libc::EINVAL, 0, 0, 7));
        // SAFETY: nothing is written.
        assert_eq!(unsafe { ndw_mbstowcs_s(Out::NULL, null_mut(), 3, c"x".into(), 1) }, libc::EINVAL);
    }

    #[test]
    fn wide_becomes_utf8_and_no_character_is_cut_in_two() {
        let mut narrow = [7u8; 8];
        let mut length = 77;
        let mut convert = |size: usize, source: &str, count: usize| {
            narrow.fill(7);
            let target = if size == 0 { null_mut() } else { narrow.as_mut_ptr().cast() };
            let source = w(source);
            // SAFETY: `narrow` has 8 bytes, no call is told of more, and with no size the target is NULL.
            let result = unsafe {
                ndw_wcstombs_s((&mut length).into(), target, size, Text::terminated(&source), count)
            };
            (result, length, narrow)
        };
        assert_eq!(convert(0, "Köln", 0), (0, 6, [7; 8]));
        assert_eq!(convert(6, "Köln", TRUNCATE), (0, 6, *b"K\xC3\xB6ln\0\x07\x07"));
        assert_eq!(convert(8, "Köln", 2), (0, 2, *b"K\0\x07\x07\x07\x07\x07\x07"));
        assert_eq!(convert(3, "Köln", TRUNCATE), (STRUNCATE, 2, *b"K\0\x07\x07\x07\x07\x07\x07"));
        assert_eq!(convert(5, "Köln", 5), (libc::ERANGE, 0, *b"\0\x07\x07\x07\x07\x07\x07\x07"));
        let surrogate = [0xD800 as Wchar, 0];
        let target = narrow.as_mut_ptr().cast();
        // SAFETY: `narrow` has the 8 bytes told.
        let result =
            unsafe { ndw_wcstombs_s((&mut length).into(), target, 8, Text::terminated(&surrogate), 8) };
        assert_eq!((result, length, narrow[0]), (libc::EILSEQ, 0, 0));
    }

    #[test]
    fn one_character_becomes_bytes_without_a_nul() {
        let mut length = 77;
        let mut bytes = [7u8; 4];
        let mut convert = |size: usize, character: Wchar| {
            bytes.fill(7);
            // SAFETY: there are four bytes, and no call is told of more.
            let result =
                unsafe { ndw_wctomb_s(Out::from(&mut length), bytes.as_mut_ptr().cast(), size, character) };
            (result, length, bytes)
        };
        assert_eq!(convert(4, 0xF6), (0, 2, [0xC3, 0xB6, 7, 7]));
        assert_eq!(convert(1, u32::from('x')), (0, 1, [b'x', 7, 7, 7]));
        assert_eq!(convert(1, 0xF6), (libc::ERANGE, -1, [0, 7, 7, 7]));
        assert_eq!(convert(4, 0xD800), (libc::EILSEQ, -1, [7; 4]));
        // SAFETY: nothing is written.
        unsafe {
            assert_eq!(ndw_wctomb_s(Out::from(&mut length), null_mut(), 1, 0xF6), libc::EINVAL);
            assert_eq!((ndw_wctomb_s(Out::from(&mut length), null_mut(), 0, 0xF6), length), (0, 0));
        }
    }
}
