//! Conversion to lower and upper case in place: `_strlwr`, `_strupr` and their bounded and wide forms.
//!
//! Only A to Z are converted, as in the "C" locale.

use super::failed;
use crate::text::{self, Unit, Wchar};
use std::ffi::c_int;

/// Changes the case of a string that is terminated within `size` units. Returns 0 or the error; an unterminated string is
/// emptied.
///
/// # Safety
/// `text` is NULL or may be read and written up to its NUL or `size`.
unsafe fn bounded<T: Unit>(text: *mut T, size: usize, change: fn(T) -> T) -> c_int {
    // SAFETY: NULL or readable up to its NUL or `size`, as the caller promises.
    let Some(length) = (unsafe { text::bounded(text, size) }).map(<[T]>::len) else {
        return failed(libc::EINVAL);
    };
    let ended = length < size;
    // SAFETY: so many units may be read and written, as the caller promises, and one more with a NUL.
    let units = unsafe { text::cells(text, length + usize::from(ended)) }.unwrap_or_default();
    if !ended {
        if let Some(first) = units.first() {
            first.set(T::default());
        }
        return failed(libc::EINVAL);
    }
    units[..length].iter().for_each(|unit| unit.set(change(unit.get())));
    0
}

/// Changes the case of a string, and returns it; NULL for NULL.
///
/// # Safety
/// `text` is NULL or terminated.
unsafe fn whole<T: Unit>(text: *mut T, change: fn(T) -> T) -> *mut T {
    // SAFETY: NULL or terminated, as the caller promises; the NUL ends the search whatever size is told.
    unsafe { bounded(text, usize::MAX, change) };
    text
}

/// Declares the two functions of one width and one direction: for a string, and for one of a known size.
macro_rules! cases {
    ($($name:ident $bounded:ident $unit:ty, $change:expr;)+) => {
        $(#[doc = "Changes the case of a string in place."]
        ///
        /// # Safety
        /// `text` is NULL or terminated.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(text: *mut $unit) -> *mut $unit {
            // SAFETY: the text is NULL or terminated, as this function asks.
            unsafe { whole(text, $change) }
        }

        #[doc = "Changes the case of a string in a buffer of known size: 0, or the error."]
        ///
        /// # Safety
        /// `text` is NULL or has `size` units.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $bounded(text: *mut $unit, size: usize) -> c_int {
            // SAFETY: the text is NULL or has `size` units, as this function asks.
            unsafe { bounded(text, size, $change) }
        })+
    };
}

fn wide(unit: Wchar, change: fn(&u8) -> u8) -> Wchar {
    u8::try_from(unit).map_or(unit, |byte| change(&byte).into())
}

cases! {
    ndw__strlwr ndw__strlwr_s u8, |unit| unit.to_ascii_lowercase();
    ndw__strupr ndw__strupr_s u8, |unit| unit.to_ascii_uppercase();
    ndw__wcslwr ndw__wcslwr_s Wchar, |unit| wide(unit, u8::to_ascii_lowercase);
    ndw__wcsupr ndw__wcsupr_s Wchar, |unit| wide(unit, u8::to_ascii_uppercase);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;
    use std::ptr::null_mut;

    #[test]
    fn letters_change_their_case_in_place() {
        let mut narrow = *b"aZ1\xc3\xa4\0";
        let mut wide = w("aZ1\u{e4}");
        // SAFETY: terminated strings.
        unsafe {
            assert_eq!(ndw__strupr(narrow.as_mut_ptr()), narrow.as_mut_ptr());
            assert_eq!(&narrow, b"AZ1\xc3\xa4\0");
            assert_eq!(ndw__wcslwr(wide.as_mut_ptr()), wide.as_mut_ptr());
            assert_eq!(wide, w("az1\u{e4}"));
            assert_eq!(ndw__strlwr(null_mut()), null_mut());
        }
    }

    #[test]
    fn a_string_without_an_end_is_emptied() {
        let mut text = *b"abc";
        // SAFETY: three units each time.
        unsafe {
            assert_eq!(ndw__strupr_s(text.as_mut_ptr(), 3), libc::EINVAL);
            assert_eq!(&text, b"\0bc");
            assert_eq!(ndw__strupr_s(text.as_mut_ptr().add(1), 0), libc::EINVAL);
            assert_eq!(&text, b"\0bc");
            assert_eq!(ndw__strupr_s(null_mut(), 3), libc::EINVAL);
            assert_eq!(ndw__wcsupr_s(w("ab").as_mut_ptr(), 3), 0);
        }
    }
}
