//! Numbers from and to strings.

use super::set_errno;
use crate::text::{self, Wchar};
use std::ffi::c_int;

/// The number that a wide string starts with, at most `max` and at least `-max - 1`; 0 for none.
///
/// # Safety
/// `text` is NULL or terminated.
unsafe fn number(text: *const Wchar, max: i64) -> i64 {
    // SAFETY: passed on.
    let Some(text) = (unsafe { text::string_from_wide(text) }) else {
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

/// The digits of a number; only base 10 has a sign, in others a negative number is shown as its bits. `None` for an
/// impossible base.
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

/// Puts a number into a buffer: 0, or the error, which `errno` gets too, and an empty string.
///
/// # Safety
/// `buffer` is NULL or has room for `size` units.
unsafe fn store<T: Copy + Default + From<u8>>(digits: Option<Vec<u8>>, buffer: *mut T, size: usize) -> c_int {
    let text: Option<Vec<T>> = digits.map(|digits| digits.into_iter().map(T::from).collect());
    let error = if buffer.is_null() || size == 0 {
        libc::EINVAL
    } else {
        // SAFETY: passed on.
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

/// Declares the two functions, wide and narrow, that write one type of number into a buffer of known size.
macro_rules! bounded {
    ($($wide:ident $narrow:ident $value:ident: $number:ty => $magnitude:expr, $negative:expr, $bits:expr, $doc:literal;)+) => {
        $(#[doc = $doc]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $wide($value: $number, buffer: *mut Wchar, size: usize, radix: c_int) -> c_int {
            let magnitude = if radix == 10 { $magnitude } else { $bits };
            // SAFETY: the function's contract.
            unsafe { store(digits(magnitude.into(), radix == 10 && $negative, radix), buffer, size) }
        }

        #[doc = $doc]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $narrow($value: $number, buffer: *mut u8, size: usize, radix: c_int) -> c_int {
            let magnitude = if radix == 10 { $magnitude } else { $bits };
            // SAFETY: the function's contract.
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__itow(value: c_int, buffer: *mut Wchar, radix: c_int) -> *mut Wchar {
    // SAFETY: the function's contract: no number has more than 33 characters, a sign included.
    unsafe { ndw__itow_s(value, buffer, 34, radix) };
    buffer
}

/// `_wtoi`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__wtoi(text: *const Wchar) -> c_int {
    // SAFETY: the function's contract.
    unsafe { number(text, i32::MAX.into()) as c_int }
}

/// `_wtol`: a Windows `long`, so 32 bits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__wtol(text: *const Wchar) -> i32 {
    // SAFETY: the function's contract.
    unsafe { number(text, i32::MAX.into()) as i32 }
}

/// `_wtoi64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__wtoi64(text: *const Wchar) -> i64 {
    // SAFETY: the function's contract.
    unsafe { number(text, i64::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;
    use std::ptr::{null, null_mut};

    // SAFETY of every block below: the buffers have the sizes told, the strings are terminated or NULL.

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
            // SAFETY: see above.
            unsafe {
                assert_eq!(ndw__wtol(w(text).as_ptr()), number, "{text:?}");
                assert_eq!(ndw__wtoi(w(text).as_ptr()), number, "{text:?}");
            }
        }
        // SAFETY: see above.
        unsafe {
            assert_eq!(ndw__wtoi64(w("99999999999").as_ptr()), 99_999_999_999);
            let endless = "9".repeat(60);
            assert_eq!(ndw__wtoi64(w(&endless).as_ptr()), i64::MAX);
            assert_eq!(ndw__wtoi64(w(&format!("-{endless}")).as_ptr()), i64::MIN);
            assert_eq!(ndw__wtol(null()), 0);
        }
    }

    #[test]
    fn numbers_in_any_base() {
        for (value, radix, text) in [(-12, 10, "-12"), (0, 10, "0"), (-1, 16, "ffffffff"), (5, 2, "101")] {
            let mut buffer = [0; 34];
            // SAFETY: see above.
            let text_of = unsafe { text::wide(ndw__itow(value, buffer.as_mut_ptr(), radix)) };
            assert_eq!(text::from_wide(text_of.unwrap()), text);
        }
    }

    #[test]
    fn numbers_in_a_bounded_buffer() {
        let narrow = |value: i64, size: usize, radix: c_int| {
            let mut buffer = [b'?'; 24];
            // SAFETY: see above.
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
        // SAFETY: see above.
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
