//! Text: wide strings (`wchar_t`, 32 bits on Linux) and UTF-8.
//!
//! Narrow strings are UTF-8: the ANSI, OEM and thread code pages are all UTF-8. What cannot be converted becomes U+FFFD unless
//! the caller asks for an error.

pub mod code_page;

use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::{CStr, c_char};

/// `WCHAR`: one Unicode scalar value.
///
/// The sign of C's `wchar_t` differs between architectures and does not matter here.
pub type Wchar = u32;

const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// The units of a text before its NUL, at most `limit`; `None` for NULL. There was no NUL if the result has `limit` units.
///
/// # Safety
/// `text` is NULL, or may be read up to its NUL or `limit`, and does not change while the result is used.
pub unsafe fn bounded<'a, T: Copy + Default + PartialEq>(text: *const T, limit: usize) -> Option<&'a [T]> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the search stops at the NUL and at the limit.
    let is_nul = |at: &usize| unsafe { text.wrapping_add(*at).read() } == T::default();
    let length = (0..limit).find(is_nul).unwrap_or(limit);
    // SAFETY: the units were just read.
    Some(unsafe { std::slice::from_raw_parts(text, length) })
}

/// A caller's buffer, `None` for NULL. Cells, because the caller's pointers may alias.
///
/// # Safety
/// `buffer` is NULL, or `size` units from there on may be read and written while the result is used.
pub unsafe fn cells<'a, T>(buffer: *mut T, size: usize) -> Option<&'a [Cell<T>]> {
    // A larger size is from a caller that does not know the size of its buffer.
    let size = size.min(isize::MAX as usize / size_of::<T>());
    // SAFETY: not NULL, and so many units, as the caller promises. A cell has the layout of what is in it.
    (!buffer.is_null()).then(|| unsafe { std::slice::from_raw_parts(buffer.cast::<Cell<T>>(), size) })
}

/// Copies units to the start of a buffer, which must have the room. They may overlap.
pub fn copy_to<T: Copy>(buffer: &[Cell<T>], units: &[T]) {
    let target = &buffer[..units.len()];
    // SAFETY: the target has just as many units. No other thread uses the buffer, as `Cell` is not `Sync`.
    unsafe { std::ptr::copy(units.as_ptr(), target.as_ptr().cast::<T>().cast_mut(), units.len()) };
}

/// The characters of a NUL-terminated wide string, `None` for NULL.
///
/// # Safety
/// `text` is NULL or points to a NUL-terminated wide string that outlives the result unchanged.
pub unsafe fn wide<'a>(text: *const Wchar) -> Option<&'a [Wchar]> {
    // SAFETY: NULL or terminated, as the caller promises.
    unsafe { bounded(text, usize::MAX) }
}

/// The bytes of a NUL-terminated narrow string, `None` for NULL.
///
/// # Safety
/// `text` is NULL or points to a NUL-terminated string that outlives the result unchanged.
pub unsafe fn narrow<'a>(text: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: not NULL, hence a terminated string by the contract.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// Converts a wide string; invalid units become U+FFFD.
pub fn from_wide(text: &[Wchar]) -> String {
    text.iter().map(|&unit| char::from_u32(unit).unwrap_or(REPLACEMENT)).collect()
}

/// Converts a wide string; `None` if a unit is no character (a surrogate, or beyond U+10FFFF).
pub fn exact(text: &[Wchar]) -> Option<String> {
    text.iter().map(|&unit| char::from_u32(unit)).collect()
}

/// Converts to a wide string, without a NUL.
pub fn to_wide(text: &str) -> Vec<Wchar> {
    text.chars().map(u32::from).collect()
}

/// Reads a wide string argument; `None` for NULL.
///
/// # Safety
/// As for [`wide`], for the time of the call.
pub unsafe fn string_from_wide(text: *const Wchar) -> Option<String> {
    // SAFETY: NULL or terminated, and unchanged during the call, as the caller promises.
    unsafe { wide(text) }.map(from_wide)
}

/// Reads a narrow string argument; `None` for NULL.
///
/// # Safety
/// As for [`narrow`], for the time of the call.
pub unsafe fn string_from_narrow(text: *const c_char) -> Option<String> {
    // SAFETY: NULL or terminated, and unchanged during the call, as the caller promises.
    unsafe { narrow(text) }.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// The unit of text: what differs between the narrow and the wide form of a function.
pub trait Unit: Copy + Default + PartialEq {
    /// Reads a string argument; `None` for NULL.
    ///
    /// # Safety
    /// As for [`wide`], for the time of the call.
    unsafe fn read(text: *const Self) -> Option<String>;

    /// The units of a string, without a NUL.
    fn spell(text: &str) -> Vec<Self>;

    /// Converts units to a string.
    fn string(units: &[Self]) -> String;

    /// Units as narrow text. What is narrow stays as it is, whether it is UTF-8 or not.
    fn bytes(units: &[Self]) -> Cow<'_, [u8]>;

    /// Units as wide text. What is wide stays as it is.
    fn characters(units: &[Self]) -> Cow<'_, [Wchar]>;

    /// The units of a string argument, `None` for NULL.
    ///
    /// # Safety
    /// As for [`wide`].
    unsafe fn units<'a>(text: *const Self) -> Option<&'a [Self]>;
}

impl Unit for u8 {
    unsafe fn read(text: *const u8) -> Option<String> {
        // SAFETY: NULL or terminated, and unchanged during the call, as the trait asks.
        unsafe { string_from_narrow(text.cast()) }
    }

    fn spell(text: &str) -> Vec<u8> {
        text.as_bytes().to_vec()
    }

    fn string(units: &[u8]) -> String {
        String::from_utf8_lossy(units).into_owned()
    }

    fn bytes(units: &[u8]) -> Cow<'_, [u8]> {
        units.into()
    }

    fn characters(units: &[u8]) -> Cow<'_, [Wchar]> {
        to_wide(&String::from_utf8_lossy(units)).into()
    }

    unsafe fn units<'a>(text: *const u8) -> Option<&'a [u8]> {
        // SAFETY: NULL or terminated, and unchanged while the result is used, as the trait asks.
        unsafe { narrow(text.cast()) }
    }
}

impl Unit for Wchar {
    unsafe fn read(text: *const Wchar) -> Option<String> {
        // SAFETY: NULL or terminated, and unchanged during the call, as the trait asks.
        unsafe { string_from_wide(text) }
    }

    fn spell(text: &str) -> Vec<Wchar> {
        to_wide(text)
    }

    fn string(units: &[Wchar]) -> String {
        from_wide(units)
    }

    fn bytes(units: &[Wchar]) -> Cow<'_, [u8]> {
        from_wide(units).into_bytes().into()
    }

    fn characters(units: &[Wchar]) -> Cow<'_, [Wchar]> {
        units.into()
    }

    unsafe fn units<'a>(text: *const Wchar) -> Option<&'a [Wchar]> {
        // SAFETY: NULL or terminated, and unchanged while the result is used, as the trait asks.
        unsafe { wide(text) }
    }
}

/// Declares entry points in both widths, each of which calls a generic function: `unsafe` if that is unsafe. `T` is the unit of
/// text.
macro_rules! narrow_and_wide {
    ($($doc:literal $narrow:ident $wide:ident = $($call:ident)+($($arg:ident: $type:ty),* $(,)?) -> $result:ty;)*) => {$(
        $crate::text::entry_point! { $doc $narrow u8 = $($call)+($($arg: $type),*) -> $result }
        $crate::text::entry_point! { $doc $wide $crate::text::Wchar = $($call)+($($arg: $type),*) -> $result }
    )*};
}
pub(crate) use narrow_and_wide;

/// Declares one entry point, in a module of its own where `T` is the unit of text.
macro_rules! entry_point {
    ($doc:literal $name:ident $unit:ty = unsafe $call:ident($($arg:ident: $type:ty),*) -> $result:ty) => {
        pub use $name::$name;
        #[allow(non_snake_case)]
        mod $name {
            use super::*;
            type T = $unit;
            #[doc = $doc]
            ///
            /// # Safety
            /// As for the function called: each buffer is NULL or has the room told, each text is NULL or terminated, each stream is
            /// open, and arguments fit their format.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $type),*) -> $result {
                // SAFETY: this function passes its arguments on unchanged, and asks of them what the function called does.
                unsafe { $call::<T>($($arg),*) }
            }
        }
    };
    ($doc:literal $name:ident $unit:ty = $call:ident($($arg:ident: $type:ty),*) -> $result:ty) => {
        pub use $name::$name;
        #[allow(non_snake_case)]
        mod $name {
            use super::*;
            type T = $unit;
            #[doc = $doc]
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($($arg: $type),*) -> $result {
                $call::<T>($($arg),*)
            }
        }
    };
}
pub(crate) use entry_point;

/// Copies `text` and a NUL into a caller's buffer when all of it fits; tells whether it did.
///
/// # Safety
/// `buffer` is NULL or has room for `capacity` units.
pub unsafe fn store<T: Copy + Default>(text: &[T], buffer: *mut T, capacity: usize) -> bool {
    // SAFETY: NULL or room for so many units, as the caller promises.
    let Some(buffer) = (unsafe { cells(buffer, capacity) }).filter(|buffer| text.len() < buffer.len()) else {
        return false;
    };
    copy_to(buffer, text);
    buffer[text.len()].set(T::default());
    true
}

/// A wide string with its NUL.
pub(crate) fn w(text: &str) -> Vec<Wchar> {
    text.chars().map(u32::from).chain([0]).collect()
}
