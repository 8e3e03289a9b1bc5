//! The `printf` family with Microsoft's meaning, as functions that take a `va_list`.
//!
//! Rust cannot define variadic functions, so the headers define those and come here. A `va_list` parameter is a
//! pointer on x86-64 (an array, which decays) and on AArch64 (a structure passed by reference), so it passes
//! through Rust untouched.
//!
//! A stream of glibc is narrow or wide from its first use on, a stream of Windows takes both at any time. So
//! wide output is formatted in memory and leaves as UTF-8 through narrow functions only.

use super::format::{Format, rewrite};
use super::set_errno;
use crate::text::{self, Wchar};
use libc::FILE;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

/// A `va_list` parameter.
pub type VaList = *mut c_void;

/// `_TRUNCATE`: cut what does not fit instead of failing.
pub const TRUNCATE: usize = usize::MAX;

unsafe extern "C" {
    fn vfprintf(stream: *mut FILE, format: *const c_char, args: VaList) -> c_int;
    fn vsnprintf(buffer: *mut c_char, size: usize, format: *const c_char, args: VaList) -> c_int;
    fn vfwprintf(stream: *mut FILE, format: *const Wchar, args: VaList) -> c_int;
    fn open_wmemstream(buffer: *mut *mut Wchar, size: *mut usize) -> *mut FILE;
    fn fwrite(data: *const c_void, size: usize, count: usize, stream: *mut FILE) -> usize;
    static stdout: *mut FILE;
}

/// The locale in which glibc converts between wide and narrow strings: UTF-8, whatever the program set.
struct Utf8Locale(libc::locale_t);

// SAFETY: a locale object is never modified after its creation.
unsafe impl Send for Utf8Locale {}
// SAFETY: as above.
unsafe impl Sync for Utf8Locale {}

/// Makes UTF-8 the thread's character set while it lives.
struct Utf8Scope(libc::locale_t);

impl Utf8Scope {
    fn enter(needed: bool) -> Utf8Scope {
        static LOCALE: OnceLock<Utf8Locale> = OnceLock::new();
        if !needed {
            return Utf8Scope(null_mut());
        }
        let locale = LOCALE.get_or_init(|| {
            // SAFETY: the name is terminated; without a base a new object is made, or NULL returned.
            Utf8Locale(unsafe { libc::newlocale(libc::LC_CTYPE_MASK, c"C.UTF-8".as_ptr(), null_mut()) })
        });
        // SAFETY: a live locale object; NULL only asks for the present one.
        Utf8Scope(unsafe { libc::uselocale(locale.0) })
    }
}

impl Drop for Utf8Scope {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the thread's former locale, which is in force until changed here.
            unsafe { libc::uselocale(self.0) };
        }
    }
}

/// Rewrites a narrow format; `None` (and `EINVAL`) for NULL and for a format that is refused.
///
/// # Safety
/// `format` is NULL or a terminated string.
unsafe fn narrow_format(format: *const c_char) -> Option<Format<u8>> {
    // SAFETY: passed on.
    let format = unsafe { text::narrow(format) }.and_then(|format| rewrite(format, false));
    if format.is_none() {
        set_errno(libc::EINVAL);
    }
    format
}

/// Formats narrow text into a buffer as C99 says: cut to fit, terminated, the full length returned.
///
/// # Safety
/// `buffer` has room for `size` bytes; `format` is NULL or terminated; `args` fit the format.
unsafe fn format_narrow(buffer: *mut c_char, size: usize, format: *const c_char, args: VaList) -> c_int {
    // SAFETY: passed on.
    let Some(format) = (unsafe { narrow_format(format) }) else { return -1 };
    let _utf8 = Utf8Scope::enter(format.mixes_widths);
    // SAFETY: the rewritten format takes the same arguments as the one the caller wrote.
    unsafe { vsnprintf(buffer, size, format.text.as_ptr().cast(), args) }
}

/// Formats wide text; `None` when the format is NULL or refused, or an argument cannot be converted.
///
/// # Safety
/// `format` is NULL or terminated; `args` fit the format.
pub(crate) unsafe fn format_wide(format: *const Wchar, args: VaList) -> Option<Vec<Wchar>> {
    // SAFETY: passed on.
    let Some(format) = (unsafe { text::wide(format) }).and_then(|format| rewrite(format, true)) else {
        set_errno(libc::EINVAL);
        return None;
    };
    let (mut data, mut length) = (null_mut(), 0);
    let _utf8 = Utf8Scope::enter(format.mixes_widths);
    // SAFETY: both locations outlive the stream; the rewritten format takes the caller's arguments; the buffer is
    // ours after the close, which sets its address and length.
    unsafe {
        let stream = open_wmemstream(&mut data, &mut length);
        if stream.is_null() {
            return None;
        }
        let printed = vfwprintf(stream, format.text.as_ptr(), args);
        let closed = libc::fclose(stream);
        let text = (printed >= 0 && closed == 0 && !data.is_null())
            .then(|| std::slice::from_raw_parts(data, length).to_vec());
        libc::free(data.cast());
        text
    }
}

/// Writes wide text to a stream as UTF-8; returns the number of characters, -1 on an error.
///
/// # Safety
/// `stream` is an open stream.
pub(super) unsafe fn write_wide(stream: *mut FILE, text: &[Wchar]) -> c_int {
    let bytes = text::from_wide(text);
    // SAFETY: an open stream and bytes of ours.
    match unsafe { fwrite(bytes.as_ptr().cast(), 1, bytes.len(), stream) } {
        written if written == bytes.len() => text.len() as c_int,
        _ => -1,
    }
}

/// What a bounded function does with text that does not fit its buffer.
enum Overflow {
    /// C99: cut to fit and terminate; -1 for wide text.
    Cut,
    /// `_vsnprintf`: fill the buffer, without a NUL when there is no room for it.
    Fill,
    /// The `_s` functions: an empty string.
    Empty,
}

/// Puts formatted text into a buffer; its length, or -1 when it did not fit or there is none.
///
/// # Safety
/// `buffer` is NULL or has room for `size` units.
unsafe fn fill<T: Copy + Default>(
    buffer: *mut T,
    size: usize,
    text: Option<&[T]>,
    overflow: Overflow,
) -> c_int {
    let Some(text) = text else {
        if matches!(overflow, Overflow::Empty) && !buffer.is_null() && size != 0 {
            // SAFETY: room for one unit at least.
            unsafe { buffer.write(T::default()) };
        }
        return -1;
    };
    // SAFETY: passed on.
    if unsafe { text::store(text, buffer, size) } {
        return text.len() as c_int;
    }
    if buffer.is_null() || size == 0 {
        if matches!(overflow, Overflow::Fill) && buffer.is_null() && size == 0 {
            return text.len() as c_int;
        }
        if buffer.is_null() || matches!(overflow, Overflow::Empty) {
            set_errno(libc::EINVAL);
        }
        return -1;
    }
    let kept = match overflow {
        Overflow::Cut => size - 1,
        Overflow::Fill => size.min(text.len()),
        Overflow::Empty => {
            set_errno(libc::ERANGE);
            0
        }
    };
    // SAFETY: no more than `size` units of the buffer and of the text's length are touched.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), buffer, kept);
        if kept < size {
            buffer.add(kept).write(T::default());
        }
    }
    let full = matches!(overflow, Overflow::Fill) && text.len() == size;
    if full { size as c_int } else { -1 }
}

/// Formats narrow text of any length.
///
/// # Safety
/// `format` is NULL or terminated; `args` fit the format.
pub(crate) unsafe fn format_owned(format: *const c_char, args: VaList) -> Option<Vec<u8>> {
    unsafe extern "C" {
        fn vasprintf(result: *mut *mut c_char, format: *const c_char, args: VaList) -> c_int;
    }
    // SAFETY: passed on.
    let format = unsafe { narrow_format(format) }?;
    let _utf8 = Utf8Scope::enter(format.mixes_widths);
    let mut data: *mut c_char = null_mut();
    // SAFETY: the rewritten format takes the caller's arguments; on success the buffer is ours to free.
    unsafe {
        let length = usize::try_from(vasprintf(&mut data, format.text.as_ptr().cast(), args)).ok()?;
        let text = std::slice::from_raw_parts(data.cast::<u8>(), length).to_vec();
        libc::free(data.cast());
        Some(text)
    }
}

/// What `_vsnprintf_s` and its wide sibling do with formatted text: at most `count` units go into the buffer, or what
/// fits with `_TRUNCATE`; -1 when something was cut.
///
/// # Safety
/// `buffer` is NULL or has room for `size` units.
unsafe fn fill_bounded<T: Copy + Default>(
    buffer: *mut T,
    size: usize,
    count: usize,
    text: Option<&[T]>,
) -> c_int {
    if buffer.is_null() && size == 0 && count == 0 && text.is_some() {
        return 0;
    }
    let limit = if count == TRUNCATE { size.saturating_sub(1) } else { count };
    let cut = text.is_some_and(|text| limit < text.len());
    let text = text.map(|text| &text[..limit.min(text.len())]);
    // SAFETY: passed on.
    let stored = unsafe { fill(buffer, size, text, Overflow::Empty) };
    if cut { -1 } else { stored }
}

/// `vprintf`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vprintf(format: *const c_char, args: VaList) -> c_int {
    // SAFETY: the function's contract; `stdout` is an open stream or the program closed it, as in C.
    unsafe { ndw_vfprintf(stdout, format, args) }
}

/// `vfprintf`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vfprintf(stream: *mut FILE, format: *const c_char, args: VaList) -> c_int {
    // SAFETY: NULL or a terminated string by the function's contract.
    let Some(format) = (unsafe { narrow_format(format) }) else { return -1 };
    let _utf8 = Utf8Scope::enter(format.mixes_widths);
    // SAFETY: an open stream; the rewritten format takes the caller's arguments.
    unsafe { vfprintf(stream, format.text.as_ptr().cast(), args) }
}

/// `vsnprintf`: as in C99, so the length that the whole text has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vsnprintf(
    buffer: *mut c_char,
    size: usize,
    format: *const c_char,
    args: VaList,
) -> c_int {
    // SAFETY: the function's contract.
    unsafe { format_narrow(buffer, size, format, args) }
}

/// `vsprintf`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vsprintf(buffer: *mut c_char, format: *const c_char, args: VaList) -> c_int {
    // SAFETY: the function's contract: the buffer is large enough, whatever its size.
    unsafe { format_narrow(buffer, c_int::MAX as usize, format, args) }
}

/// `_vscprintf`: the length the text would have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__vscprintf(format: *const c_char, args: VaList) -> c_int {
    // SAFETY: the function's contract; nothing is written.
    unsafe { format_narrow(null_mut(), 0, format, args) }
}

/// `_vsnprintf`: -1 when the text is longer than the buffer; no NUL when it just fills it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__vsnprintf(
    buffer: *mut c_char,
    size: usize,
    format: *const c_char,
    args: VaList,
) -> c_int {
    // SAFETY: the function's contract.
    unsafe { fill(buffer.cast(), size, format_owned(format, args).as_deref(), Overflow::Fill) }
}

/// `vsprintf_s`: an empty string and -1 when the text does not fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vsprintf_s(
    buffer: *mut c_char,
    size: usize,
    format: *const c_char,
    args: VaList,
) -> c_int {
    // SAFETY: the function's contract.
    unsafe { fill(buffer.cast(), size, format_owned(format, args).as_deref(), Overflow::Empty) }
}

/// `_vsnprintf_s`: at most `count` characters, or what fits with `_TRUNCATE`; -1 when something was cut.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__vsnprintf_s(
    buffer: *mut c_char,
    size: usize,
    count: usize,
    format: *const c_char,
    args: VaList,
) -> c_int {
    // SAFETY: the function's contract.
    unsafe { fill_bounded(buffer.cast(), size, count, format_owned(format, args).as_deref()) }
}

/// `vwprintf`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vwprintf(format: *const Wchar, args: VaList) -> c_int {
    // SAFETY: as for `ndw_vprintf`.
    unsafe { ndw_vfwprintf(stdout, format, args) }
}

/// `vfwprintf`: UTF-8 comes out, and the stream stays narrow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vfwprintf(stream: *mut FILE, format: *const Wchar, args: VaList) -> c_int {
    // SAFETY: the function's contract.
    unsafe { format_wide(format, args).map_or(-1, |text| write_wide(stream, &text)) }
}

/// `vswprintf` (with the buffer's size): cut and -1 when the text does not fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vswprintf(
    buffer: *mut Wchar,
    size: usize,
    format: *const Wchar,
    args: VaList,
) -> c_int {
    // SAFETY: the function's contract.
    unsafe { fill(buffer, size, format_wide(format, args).as_deref(), Overflow::Cut) }
}

/// `_vscwprintf`: the length the text would have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__vscwprintf(format: *const Wchar, args: VaList) -> c_int {
    // SAFETY: the function's contract.
    unsafe { format_wide(format, args).map_or(-1, |text| text.len() as c_int) }
}

/// `_vsnwprintf`: -1 when the text is longer than the buffer; no NUL when it just fills it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__vsnwprintf(
    buffer: *mut Wchar,
    size: usize,
    format: *const Wchar,
    args: VaList,
) -> c_int {
    // SAFETY: the function's contract.
    unsafe { fill(buffer, size, format_wide(format, args).as_deref(), Overflow::Fill) }
}

/// `vswprintf_s`: an empty string and -1 when the text does not fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vswprintf_s(
    buffer: *mut Wchar,
    size: usize,
    format: *const Wchar,
    args: VaList,
) -> c_int {
    // SAFETY: the function's contract.
    unsafe { fill(buffer, size, format_wide(format, args).as_deref(), Overflow::Empty) }
}

/// `_vsnwprintf_s`: at most `count` characters, or what fits with `_TRUNCATE`; -1 when something was cut.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__vsnwprintf_s(
    buffer: *mut Wchar,
    size: usize,
    count: usize,
    format: *const Wchar,
    args: VaList,
) -> c_int {
    // SAFETY: the function's contract.
    unsafe { fill_bounded(buffer, size, count, format_wide(format, args).as_deref()) }
}

#[cfg(test)]
mod tests;
