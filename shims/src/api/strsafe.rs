//! `<strsafe.h>`: functions to copy, append, format and measure that always terminate the text and report truncation.
//!
//! Each exists for bytes and for wide characters, with sizes in characters (`Cch`) or bytes (`Cb`), and in a long form (`Ex`)
//! with flags that also returns the end of the text and the room left.

use crate::arguments::Out;
use crate::crt::print::{Formatted, VaList};
use crate::error::*;
use crate::text::{self, Unit, Wchar, narrow_and_wide};
use std::cell::Cell;
use std::ptr::null_mut;

/// `STRSAFE_MAX_CCH`: the largest buffer, in characters.
const MAX_CCH: usize = 0x7FFF_FFFF;

const IGNORE_NULLS: u32 = 0x100;
const FILL_BEHIND_NULL: u32 = 0x200;
const FILL_ON_FAILURE: u32 = 0x400;
const NULL_ON_FAILURE: u32 = 0x800;
const NO_TRUNCATION: u32 = 0x1000;
const VALID_FLAGS: u32 = 0x1FFF;

const S_OK: i32 = 0;
/// `STRSAFE_E_INVALID_PARAMETER`: the Win32 error as an HRESULT.
const INVALID: i32 = (0x8007_0000 | ERROR_INVALID_PARAMETER) as i32;
/// `STRSAFE_E_INSUFFICIENT_BUFFER`, likewise.
const INSUFFICIENT: i32 = (0x8007_0000 | ERROR_INSUFFICIENT_BUFFER) as i32;

/// The target of a function: the buffer, the flags, and the out parameters of the long forms.
struct Target<'a, T> {
    /// `None` for NULL.
    buffer: Option<&'a [Cell<T>]>,
    /// In characters.
    size: usize,
    /// Bytes after the last whole character.
    odd: usize,
    /// The first character to write: the end of the present text when appending.
    start: usize,
    end: Out<'a, *mut T>,
    remaining: Out<'a, usize>,
    /// `remaining` is in bytes.
    bytes: bool,
    flags: u32,
    /// One of the long forms: a buffer of size 0 is no error if nothing is to be written.
    extended: bool,
}

impl<'a, T: Unit> Target<'a, T> {
    /// # Safety
    /// `buffer` is NULL, or has room for `size` characters or, with `bytes`, bytes.
    unsafe fn new(buffer: *mut T, size: usize, bytes: bool) -> Target<'a, T> {
        let unit = if bytes { size_of::<T>() } else { 1 };
        Target {
            // SAFETY: NULL or room for so many characters, as the caller promises.
            buffer: unsafe { text::cells(buffer, size / unit) },
            size: size / unit,
            odd: size % unit,
            start: 0,
            end: Out::NULL,
            remaining: Out::NULL,
            bytes,
            flags: 0,
            extended: false,
        }
    }

    fn extended(mut self, end: Out<'a, *mut T>, remaining: Out<'a, usize>, flags: u32) -> Target<'a, T> {
        (self.end, self.remaining, self.flags, self.extended) = (end, remaining, flags, true);
        self
    }

    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    fn is_valid(&self) -> bool {
        if self.has(IGNORE_NULLS) {
            self.size <= MAX_CCH && !(self.buffer.is_none() && self.size != 0)
        } else {
            self.size != 0 && self.size <= MAX_CCH && self.buffer.is_some()
        }
    }

    /// Fails with an empty string.
    fn refuse(&self) -> i32 {
        if let Some(buffer) = self.buffer.filter(|_| self.size <= MAX_CCH)
            && let Some(first) = buffer.first()
        {
            first.set(T::default());
        }
        INVALID
    }

    /// Moves `start` to the end of the present text.
    fn append(mut self) -> Result<Target<'a, T>, i32> {
        if !self.is_valid() {
            return Err(INVALID);
        }
        if let Some(buffer) = self.buffer.filter(|buffer| !buffer.is_empty()) {
            self.start = buffer.iter().position(|unit| unit.get() == T::default()).ok_or(INVALID)?;
        }
        Ok(self)
    }

    /// Writes text, or as much of it as fits, and a NUL. `None` is a NULL source.
    fn put(self, text: Option<&[T]>) -> i32 {
        if !self.is_valid() {
            return self.refuse();
        }
        let text = match text {
            Some(text) => text,
            None if self.has(IGNORE_NULLS) => &[],
            None => return self.refuse(),
        };
        // As the target is valid, this has `size` characters.
        let buffer = self.buffer.unwrap_or_default();
        let end = |at: usize| buffer[at].set(T::default());
        let mut status = S_OK;
        let mut at = self.start;
        if self.flags & !VALID_FLAGS != 0 {
            status = INVALID;
            if self.size != 0 {
                end(self.start);
            }
        } else if self.size == 0 {
            if !text.is_empty() {
                status = if self.buffer.is_none() { INVALID } else { INSUFFICIENT };
            }
        } else {
            let fits = text.len().min(self.size - self.start - 1);
            text::copy_to(&buffer[self.start..], &text[..fits]);
            at += fits;
            end(at);
            if fits < text.len() {
                status = INSUFFICIENT;
            } else if self.has(FILL_BEHIND_NULL) && self.extended {
                self.fill(&buffer[at + 1..]);
            }
        }
        if status < 0 && self.size != 0 && self.extended {
            if self.has(NO_TRUNCATION) {
                at = self.start;
                end(at);
            }
            if self.has(FILL_ON_FAILURE) {
                self.fill(buffer);
                at = if self.flags & 0xFF == 0 { 0 } else { self.size - 1 };
                end(at);
            }
            if self.has(NULL_ON_FAILURE) {
                at = 0;
                end(at);
            }
        }
        if status == S_OK || status == INSUFFICIENT {
            let start = self.buffer.map_or(null_mut(), |buffer| buffer.as_ptr().cast_mut().cast::<T>());
            self.end.put(start.wrapping_add(at));
            let left = self.size - at.min(self.size);
            self.remaining.put(if self.bytes { left * size_of::<T>() + self.odd } else { left });
        }
        status
    }

    /// Fills the rest of the buffer, with the odd bytes after it, with the lowest byte of the flags.
    fn fill(&self, rest: &[Cell<T>]) {
        let bytes = size_of_val(rest) + self.odd;
        // SAFETY: the caller's buffer ends `odd` bytes after its last character.
        unsafe { rest.as_ptr().cast_mut().cast::<u8>().write_bytes(self.flags as u8, bytes) };
    }
}

/// At most `count` characters of a string, in characters or bytes; `None` for NULL, an error for a count beyond all limits.
///
/// # Safety
/// `text` is NULL or may be read up to its NUL or `count`.
unsafe fn counted<'a, T: Unit>(text: *const T, count: usize, bytes: bool) -> Result<Option<&'a [T]>, i32> {
    let count = if bytes { count / size_of::<T>() } else { count };
    if count >= MAX_CCH {
        return Err(INVALID);
    }
    // SAFETY: NULL or readable up to its NUL or `count`, as the caller promises.
    Ok(unsafe { text::bounded(text, count) })
}

// The functions, for either width and unit of size.

/// # Safety
/// `source` is NULL or terminated.
unsafe fn copy<T: Unit>(target: Target<'_, T>, source: *const T) -> i32 {
    // SAFETY: the source is NULL or terminated, as the caller promises.
    target.put(unsafe { T::units(source) })
}

/// # Safety
/// As for [`counted`].
unsafe fn copy_n<T: Unit>(target: Target<'_, T>, source: *const T, count: usize) -> i32 {
    // SAFETY: NULL, terminated, or so many characters.
    match unsafe { counted(source, count, target.bytes) } {
        Ok(text) => target.put(text),
        Err(_) => target.refuse(),
    }
}

/// # Safety
/// As for [`copy`].
unsafe fn cat<T: Unit>(target: Target<'_, T>, source: *const T) -> i32 {
    match target.append() {
        // SAFETY: the source is NULL or terminated.
        Ok(target) => unsafe { copy(target, source) },
        Err(status) => status,
    }
}

/// # Safety
/// As for [`counted`].
unsafe fn cat_n<T: Unit>(target: Target<'_, T>, source: *const T, count: usize) -> i32 {
    let bytes = target.bytes;
    let target = match target.append() {
        Ok(target) => target,
        Err(status) => return status,
    };
    // SAFETY: NULL, terminated, or so many characters.
    match unsafe { counted(source, count, bytes) } {
        Ok(text) => target.put(text),
        Err(status) => status,
    }
}

/// # Safety
/// As for [`Formatted::format`].
unsafe fn print<T: Formatted>(target: Target<'_, T>, format: *const T, arguments: VaList) -> i32 {
    if format.is_null() || !target.is_valid() {
        return target.put(None);
    }
    // SAFETY: the format is terminated, and fits the arguments.
    match unsafe { T::format(format, arguments) } {
        Some(text) => target.put(Some(&text)),
        None => target.refuse(),
    }
}

/// # Safety
/// `text` is NULL or may be read up to its NUL or `size`.
unsafe fn measure<T: Unit>(text: *const T, size: usize, result: Out<'_, usize>, bytes: bool) -> i32 {
    let unit = if bytes { size_of::<T>() } else { 1 };
    let limit = size / unit;
    // SAFETY: NULL or readable up to its NUL or `size`, of which the limit is no more.
    let read = if limit <= MAX_CCH { unsafe { text::bounded(text, limit) } } else { None };
    let found = read.map(<[T]>::len).filter(|length| *length < limit);
    result.put(found.unwrap_or(0) * unit);
    if found.is_some() { S_OK } else { INVALID }
}

/// Declares functions in both widths, for sizes in characters (`false`) or bytes (`true`).
macro_rules! sized {
    ($($bytes:literal $narrow:ident $wide:ident = $call:ident($($arg:ident: $type:ty),*);)+) => {$(
        sized!(@one u8 $bytes $narrow $call $($arg: $type),*);
        sized!(@one Wchar $bytes $wide $call $($arg: $type),*);
    )+};
    (@one $unit:ident $bytes:literal $name:ident $call:ident $($arg:ident: $type:ty),*) => {
        const _: () = {
            type T = $unit;
            #[doc = "See Microsoft's page of the function."]
            ///
            /// # Safety
            /// `buffer` is NULL or has room for `size` characters or bytes; `source` and `format` are NULL or terminated, or
            /// have `count` units; `arguments` fit `format`.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(buffer: *mut T, size: usize, $($arg: $type),*) -> i32 {
                // SAFETY: the buffer is NULL or has the size told, as this function asks.
                let target = unsafe { Target::new(buffer, size, $bytes) };
                // SAFETY: the arguments are what the function called asks for: this one asks for the same.
                unsafe { $call(target, $($arg),*) }
            }
        };
    };
}

/// Declares the long forms likewise. Flags and out parameters come after some arguments and before others.
macro_rules! extended {
    ($($bytes:literal $narrow:ident $wide:ident = $call:ident($($arg:ident: $type:ty),*; $($last:ident: $last_type:ty),*);)+) => {$(
        extended!(@one u8 $bytes $narrow $call ($($arg: $type),*) ($($last: $last_type),*));
        extended!(@one Wchar $bytes $wide $call ($($arg: $type),*) ($($last: $last_type),*));
    )+};
    (@one $unit:ident $bytes:literal $name:ident $call:ident ($($arg:ident: $type:ty),*) ($($last:ident: $last_type:ty),*)) => {
        const _: () = {
            type T = $unit;
            #[doc = "See Microsoft's page of the function."]
            ///
            /// # Safety
            /// `buffer` is NULL or has room for `size` characters or bytes; `source` and `format` are NULL or terminated, or
            /// have `count` units; `arguments` fit `format`.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                buffer: *mut T,
                size: usize,
                $($arg: $type,)*
                end: Out<'_, *mut T>,
                remaining: Out<'_, usize>,
                flags: u32,
                $($last: $last_type),*
            ) -> i32 {
                // SAFETY: the buffer is NULL or has the size told, as this function asks.
                let target = unsafe { Target::new(buffer, size, $bytes) }.extended(end, remaining, flags);
                // SAFETY: the arguments are what the function called asks for: this one asks for the same.
                unsafe { $call(target, $($arg,)* $($last),*) }
            }
        };
    };
}

sized! {
    false ndw_StringCchCopyA ndw_StringCchCopyW = copy(source: *const T);
    true ndw_StringCbCopyA ndw_StringCbCopyW = copy(source: *const T);
    false ndw_StringCchCopyNA ndw_StringCchCopyNW = copy_n(source: *const T, count: usize);
    true ndw_StringCbCopyNA ndw_StringCbCopyNW = copy_n(source: *const T, count: usize);
    false ndw_StringCchCatA ndw_StringCchCatW = cat(source: *const T);
    true ndw_StringCbCatA ndw_StringCbCatW = cat(source: *const T);
    false ndw_StringCchCatNA ndw_StringCchCatNW = cat_n(source: *const T, count: usize);
    true ndw_StringCbCatNA ndw_StringCbCatNW = cat_n(source: *const T, count: usize);
    false ndw_StringCchVPrintfA ndw_StringCchVPrintfW = print(format: *const T, arguments: VaList);
    true ndw_StringCbVPrintfA ndw_StringCbVPrintfW = print(format: *const T, arguments: VaList);
}

extended! {
    false ndw_StringCchCopyExA ndw_StringCchCopyExW = copy(source: *const T;);
    true ndw_StringCbCopyExA ndw_StringCbCopyExW = copy(source: *const T;);
    false ndw_StringCchCopyNExA ndw_StringCchCopyNExW = copy_n(source: *const T, count: usize;);
    true ndw_StringCbCopyNExA ndw_StringCbCopyNExW = copy_n(source: *const T, count: usize;);
    false ndw_StringCchCatExA ndw_StringCchCatExW = cat(source: *const T;);
    true ndw_StringCbCatExA ndw_StringCbCatExW = cat(source: *const T;);
    false ndw_StringCchCatNExA ndw_StringCchCatNExW = cat_n(source: *const T, count: usize;);
    true ndw_StringCbCatNExA ndw_StringCbCatNExW = cat_n(source: *const T, count: usize;);
    false ndw_StringCchVPrintfExA ndw_StringCchVPrintfExW = print(; format: *const T, arguments: VaList);
    true ndw_StringCbVPrintfExA ndw_StringCbVPrintfExW = print(; format: *const T, arguments: VaList);
}

/// # Safety
/// As for [`measure`].
unsafe fn measure_characters<T: Unit>(text: *const T, size: usize, result: Out<'_, usize>) -> i32 {
    // SAFETY: the text is NULL or readable up to its NUL or `size`, as the caller promises.
    unsafe { measure(text, size, result, false) }
}

/// # Safety
/// As for [`measure`].
unsafe fn measure_bytes<T: Unit>(text: *const T, size: usize, result: Out<'_, usize>) -> i32 {
    // SAFETY: the text is NULL or readable up to its NUL or `size`, as the caller promises.
    unsafe { measure(text, size, result, true) }
}

narrow_and_wide! {
    "`StringCchLength`: fails where no NUL is among the first `size` characters."
    ndw_StringCchLengthA ndw_StringCchLengthW = unsafe measure_characters(text: *const T, size: usize, result: Out<'_, usize>) -> i32;
    "`StringCbLength`: the same in bytes."
    ndw_StringCbLengthA ndw_StringCbLengthW = unsafe measure_bytes(text: *const T, size: usize, result: Out<'_, usize>) -> i32;
}

#[cfg(test)]
mod tests;
