//! Conversion between numbers and strings.

use super::set_errno;
use crate::arguments::Text;
use crate::text::{self, Wchar};
use std::ffi::c_int;

/// The number at the start of a wide string, clamped to `-max - 1` ..= `max`; 0 if there is none.
fn number(text: Text<'_, Wchar>, max: i64) -> i64 {
    let Some(text) = text.read() else {
        set_errno(libc::EINVAL);
        return 0;
    };
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    let value = digits
        .chars()
        .map_while(|c| c.to_digit(10))
        .fold(0i128, |value, digit| (value * 10 + i128::from(digit)).min(i128::from(i64::MAX) + 1));
    let signed = if negative { -value } else { value };
    let clamped = signed.clamp(-i128::from(max) - 1, i128::from(max));
    if clamped != signed {
        set_errno(libc::ERANGE);
    }
    clamped as i64
}

/// The digits of a number. Only base 10 has a sign. `None` for an invalid base.
fn digits(magnitude: u64, negative: bool, radix: c_int) -> Option<Vec<u8>> {
    let radix = u64::try_from(radix).ok().filter(|radix| (2..=36).contains(radix))?;
    let mut rest = magnitude;
    let mut text = Vec::new();
    loop {
        text.push(b"0123456789abcdefghijklmnopqrstuvwxyz"[(rest % radix) as usize]);
        rest /= radix;
        if rest == 0 {
            break;
        }
    }
    text.extend(negative.then_some(b'-'));
    text.reverse();
    Some(text)
}

/// Writes a number to a buffer. Returns 0, or the error, which is also in `errno`, with an empty string.
///
/// # Safety
/// `buffer` is NULL or has room for `size` units.
unsafe fn store<T: Copy + Default + From<u8>>(digits: Option<Vec<u8>>, buffer: *mut T, size: usize) -> c_int {
    let text: Option<Vec<T>> = digits.map(|digits| digits.into_iter().map(T::from).collect());
    let error = if buffer.is_null() || size == 0 {
        libc::EINVAL
    } else {
        // SAFETY: the buffer has room for `size` units, as the caller promises.
        if text.as_ref().is_some_and(|text| unsafe { text::store(text, buffer, size) }) {
            return 0;
        }
        // SAFETY: room for one unit at least.
        unsafe { buffer.write(T::default()) };
        if text.is_some() { libc::ERANGE } else { libc::EINVAL }
    };
    set_errno(error);
    error
}

/// Declares the wide and the narrow function for one type of number.
macro_rules! bounded {
    ($($wide:ident $narrow:ident $value:ident: $number:ty => $magnitude:expr, $negative:expr, $bits:expr, $doc:literal;)+) => {
        $(#[doc = $doc]
        ///
        /// # Safety
        /// `buffer` is NULL or has room for `size` characters.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $wide($value: $number, buffer: *mut Wchar, size: usize, radix: c_int) -> c_int {
            let magnitude = if radix == 10 { $magnitude } else { $bits };
            // SAFETY: C's caller has room for `size` characters.
            unsafe { store(digits(magnitude.into(), radix == 10 && $negative, radix), buffer, size) }
        }

        #[doc = $doc]
        ///
        /// # Safety
        /// `buffer` is NULL or has room for `size` bytes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $narrow($value: $number, buffer: *mut u8, size: usize, radix: c_int) -> c_int {
            let magnitude = if radix == 10 { $magnitude } else { $bits };
            // SAFETY: C's caller has room for `size` characters.
            unsafe { store(digits(magnitude.into(), radix == 10 && $negative, radix), buffer, size) }
        })+
    };
}

bounded! {
    ndw__itow_s ndw__itoa_s n: c_int => n.unsigned_abs(), n < 0, n as u32, "`_itow_s`, `_itoa_s`; `_ltow_s`, `_ltoa_s`.";
    ndw__ultow_s ndw__ultoa_s n: u32 => n, false, n, "`_ultow_s`, `_ultoa_s`.";
    ndw__i64tow_s ndw__i64toa_s n: i64 => n.unsigned_abs(), n < 0, n as u64, "`_i64tow_s`, `_i64toa_s`.";
    ndw__ui64tow_s ndw__ui64toa_s n: u64 => n, false, n, "`_ui64tow_s`, `_ui64toa_s`.";
}

/// `_itow`: into a buffer that is large enough for any number in the base.
///
/// # Safety
/// `buffer` is NULL or has room for 34 characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__itow(value: c_int, buffer: *mut Wchar, radix: c_int) -> *mut Wchar {
    // SAFETY: C's caller has room for every number: none has more than 33 characters, a sign included.
    unsafe { ndw__itow_s(value, buffer, 34, radix) };
    buffer
}

/// `itoa`, `ltoa`: as `_itow`.
///
/// # Safety
/// `buffer` is NULL or has room for 34 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__itoa(value: c_int, buffer: *mut u8, radix: c_int) -> *mut u8 {
    // SAFETY: as for ndw__itow.
    unsafe { ndw__itoa_s(value, buffer, 34, radix) };
    buffer
}

/// `ultoa`.
///
/// # Safety
/// As for [`ndw__itoa`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__ultoa(value: u32, buffer: *mut u8, radix: c_int) -> *mut u8 {
    // SAFETY: as for ndw__itow.
    unsafe { ndw__ultoa_s(value, buffer, 34, radix) };
    buffer
}

/// `_wtoi`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__wtoi(text: Text<'_, Wchar>) -> c_int {
    number(text, i32::MAX.into()) as c_int
}

/// `_wtol`: a Windows `long`, so 32 bits.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__wtol(text: Text<'_, Wchar>) -> i32 {
    number(text, i32::MAX.into()) as i32
}

/// `_wtoi64`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__wtoi64(text: Text<'_, Wchar>) -> i64 {
    number(text, i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;
    use std::ptr::null_mut;

    #[test]
    fn numbers_stop_at_the_first_other_character_and_at_the_limits() {
        for (text, number) in [
            ("42", 42),
            (" \t-17x9", -17),
            ("+5", 5),
            ("", 0),
            ("x", 0),
            ("- 1", 0),
            ("99999999999", i32::MAX),
            ("-99999999999", i32::MIN),
        ] {
            assert_eq!(ndw__wtol(Text::terminated(&w(text))), number, "{text:?}");
            assert_eq!(ndw__wtoi(Text::terminated(&w(text))), number, "{text:?}");
        }
        assert_eq!(ndw__wtoi64(Text::terminated(&w("99999999999"))), 99_999_999_999);
        let endless = "9".repeat(60);
        assert_eq!(ndw__wtoi64(Text::terminated(&w(&endless))), i64::MAX);
        assert_eq!(ndw__wtoi64(Text::terminated(&w(&format!("-{endless}")))), i64::MIN);
        assert_eq!(ndw__wtol(Text::NULL), 0);
    }

    #[test]
    fn numbers_in_any_base() {
        for (value, radix, text) in [(-12, 10, "-12"), (0, 10, "0"), (-1, 16, "ffffffff"), (5, 2, "101")] {
            let mut buffer = [0; 34];
            // SAFETY: 34 characters hold any number with its NUL, and the result is terminated.
            let text_of = unsafe { text::wide(ndw__itow(value, buffer.as_mut_ptr(), radix)) };
            assert_eq!(text::from_wide(text_of.unwrap()), text);
        }
    }

    #[test]
    fn numbers_in_a_bounded_buffer() {
        let narrow = |value: i64, size: usize, radix: c_int| {
            let mut buffer = [b'?'; 24];
            // SAFETY: the buffer has 24 bytes, and no call is told of more.
            let error = unsafe { ndw__i64toa_s(value, buffer.as_mut_ptr(), size, radix) };
            (error, String::from_utf8(buffer.split(|c| *c == 0).next().unwrap().to_vec()).unwrap())
        };
        assert_eq!(narrow(i64::MIN, 21, 10), (0, "-9223372036854775808".into()));
        assert_eq!(narrow(-1, 17, 16), (0, "f".repeat(16)));
        assert_eq!(narrow(35, 2, 36), (0, "z".into()));
        // The sign and the NUL want room, too.
        assert_eq!(narrow(-12, 3, 10), (libc::ERANGE, String::new()));
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ERANGE));
        for radix in [-1, 0, 1, 37] {
            assert_eq!(narrow(1, 20, radix), (libc::EINVAL, String::new()), "{radix}");
        }
        let mut wide = [9; 11];
        // SAFETY: the buffer has 11 characters, no call is told of more, and NULL is refused.
        unsafe {
            assert_eq!(ndw__itow_s(1, null_mut(), 8, 10), libc::EINVAL);
            assert_eq!((ndw__itow_s(1, wide.as_mut_ptr(), 0, 10), wide[0]), (libc::EINVAL, 9));
            assert_eq!(ndw__ultow_s(u32::MAX, wide.as_mut_ptr(), 11, 10), 0);
            assert_eq!(wide[..], w("4294967295")[..]);
            assert_eq!(ndw__itow_s(-1, wide.as_mut_ptr(), 11, 16), 0);
            assert_eq!(wide[..9], w("ffffffff")[..]);
        }
    }
}
