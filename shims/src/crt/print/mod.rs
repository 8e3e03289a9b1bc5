//! The `printf` family with Microsoft's meaning, as functions that take a `va_list`.
//!
//! Rust cannot define variadic functions, so the headers define those and come here. A `va_list` parameter is a
//! pointer on x86-64 (an array, which decays) and on AArch64 (a structure passed by reference), so it passes
//! through Rust untouched.
//!
//! A stream of glibc is narrow or wide from its first use on, a stream of Windows takes both at any time. So
//! wide output is formatted in memory and leaves as UTF-8 through narrow functions only.

use super::format::{Format, has_nan, resolve, rewrite};
use super::set_errno;
use super::va_list::Arguments;
pub use super::va_list::VaList;
use crate::broken_pipe::make_broken_pipes_errors;
use crate::cancellation::put_off;
use crate::text::{self, Unit, Wchar, narrow_and_wide};
use libc::FILE;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

/// `_TRUNCATE`: cut what does not fit instead of failing.
pub const TRUNCATE: usize = usize::MAX;

unsafe extern "C" {
    fn vfprintf(stream: *mut FILE, format: *const c_char, args: VaList) -> c_int;
    fn vasprintf(result: *mut *mut c_char, format: *const c_char, args: VaList) -> c_int;
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
// SAFETY: shared threads only read it: a locale object is never modified after its creation.
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

/// Rewrites a format for glibc; `None`, with `EINVAL` in `errno`, for NULL and for a format that is refused.
///
/// # Safety
/// `format` is NULL or a terminated string.
unsafe fn rewritten<T: Unit + From<u8> + Into<u32>>(
    format: *const T,
    wide: bool,
    mark_fractions: bool,
) -> Option<Format<T>> {
    // SAFETY: NULL or terminated, as the caller promises.
    let format = unsafe { T::units(format) }.and_then(|format| rewrite(format, wide, mark_fractions));
    if format.is_none() {
        set_errno(libc::EINVAL);
    }
    format
}

/// Formats by a rewritten format, with what glibc cannot be told. Numbers that are none are rare, so they are looked for in what was
/// printed, which is then printed again.
///
/// # Safety
/// `format` is NULL or terminated; `args` fit it.
unsafe fn formatted<T: Unit + From<u8> + Into<u32>>(
    format: *const T,
    args: VaList,
    wide: bool,
    print: unsafe fn(&Format<T>, VaList) -> Option<Vec<T>>,
) -> Option<Vec<T>> {
    // SAFETY: NULL or terminated, as the caller promises.
    let plain = unsafe { rewritten(format, wide, false) }?;
    // SAFETY: what a parameter of this type points to. The copy is as good as one by `va_copy`.
    let again = plain.fractions.then(|| unsafe { args.cast::<Arguments>().read() });
    // SAFETY: the rewritten format takes the caller's arguments.
    let mut text = unsafe { print(&plain, args) }?;
    let mut marked = plain.marked;
    if let Some(mut again) = again
        && has_nan(&text)
    {
        // SAFETY: NULL or terminated, as the caller promises.
        let format = unsafe { rewritten(format, wide, true) }?;
        // SAFETY: the rewritten format takes the caller's arguments.
        text = unsafe { print(&format, again.list()) }?;
        marked = true;
    }
    Some(if marked { resolve(&text) } else { text })
}

/// # Safety
/// `args` fit the format.
unsafe fn print_narrow(format: &Format<u8>, args: VaList) -> Option<Vec<u8>> {
    let _utf8 = Utf8Scope::enter(format.mixes_widths);
    let mut data: *mut c_char = null_mut();
    // SAFETY: the format takes the arguments, as the caller promises.
    let length = unsafe { vasprintf(&mut data, format.text.as_ptr().cast(), args) };
    let length = usize::try_from(length).ok()?;
    // SAFETY: so many bytes were written.
    let text = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) }.to_vec();
    // SAFETY: `vasprintf` has made it by `malloc`; its bytes were copied above.
    unsafe { libc::free(data.cast()) };
    Some(text)
}

/// # Safety
/// `args` fit the format.
unsafe fn print_wide(format: &Format<Wchar>, args: VaList) -> Option<Vec<Wchar>> {
    let (mut data, mut length) = (null_mut(), 0);
    let _utf8 = Utf8Scope::enter(format.mixes_widths);
    // SAFETY: both places outlive the stream.
    let stream = unsafe { open_wmemstream(&mut data, &mut length) };
    if stream.is_null() {
        return None;
    }
    // SAFETY: the format takes the arguments, as the caller promises.
    let printed = unsafe { vfwprintf(stream, format.text.as_ptr(), args) };
    // SAFETY: opened above.
    let closed = unsafe { libc::fclose(stream) };
    let text = (printed >= 0 && closed == 0 && !data.is_null())
        // SAFETY: the close has set both.
        .then(|| unsafe { std::slice::from_raw_parts(data, length) }.to_vec());
    // SAFETY: from `malloc`, or NULL.
    unsafe { libc::free(data.cast()) };
    text
}

/// A width of text that can be formatted.
pub(crate) trait Formatted: Unit {
    /// Formats text of any length; `None` when the format is NULL or refused, or an argument cannot be converted.
    ///
    /// # Safety
    /// `format` is NULL or terminated; `args` fit the format.
    unsafe fn format(format: *const Self, args: VaList) -> Option<Vec<Self>>;

    /// Formats text to a stream, which stays narrow; returns the number of units, -1 on an error.
    ///
    /// # Safety
    /// `stream` is open; `format` is NULL or terminated; `args` fit the format.
    unsafe fn print(stream: *mut FILE, format: *const Self, args: VaList) -> c_int;
}

impl Formatted for u8 {
    unsafe fn format(format: *const u8, args: VaList) -> Option<Vec<u8>> {
        // SAFETY: the format is NULL or terminated and fits the arguments, as the trait asks.
        unsafe { formatted(format, args, false, print_narrow) }
    }

    unsafe fn print(stream: *mut FILE, format: *const u8, args: VaList) -> c_int {
        // SAFETY: NULL or terminated, as the trait asks.
        let Some(plain) = (unsafe { rewritten(format, false, false) }) else { return -1 };
        make_broken_pipes_errors();
        if plain.marked || plain.fractions {
            // SAFETY: the format is NULL or terminated and fits the arguments, as the trait asks.
            let Some(text) = (unsafe { Self::format(format, args) }) else { return -1 };
            // SAFETY: an open stream and bytes of ours.
            let written = unsafe { fwrite(text.as_ptr().cast(), 1, text.len(), stream) };
            return if written == text.len() { written as c_int } else { -1 };
        }
        let _utf8 = Utf8Scope::enter(plain.mixes_widths);
        // SAFETY: an open stream; the rewritten format takes the caller's arguments.
        unsafe { vfprintf(stream, plain.text.as_ptr().cast(), args) }
    }
}

impl Formatted for Wchar {
    unsafe fn format(format: *const Wchar, args: VaList) -> Option<Vec<Wchar>> {
        // SAFETY: the format is NULL or terminated and fits the arguments, as the trait asks.
        unsafe { formatted(format, args, true, print_wide) }
    }

    unsafe fn print(stream: *mut FILE, format: *const Wchar, args: VaList) -> c_int {
        // SAFETY: the format is NULL or terminated and fits the arguments, as the trait asks.
        let Some(text) = (unsafe { Self::format(format, args) }) else { return -1 };
        // SAFETY: the stream is open.
        unsafe { write_wide(stream, &text) }
    }
}

/// Writes wide text to a stream as UTF-8; returns the number of characters, -1 on an error.
///
/// # Safety
/// `stream` is an open stream.
pub(super) unsafe fn write_wide(stream: *mut FILE, text: &[Wchar]) -> c_int {
    let bytes = text::from_wide(text);
    make_broken_pipes_errors();
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
fn fill<T: Unit>(buffer: Option<&[Cell<T>]>, text: Option<&[T]>, overflow: Overflow) -> c_int {
    let Some(text) = text else {
        if let (Overflow::Empty, Some([first, ..])) = (overflow, buffer) {
            first.set(T::default());
        }
        return -1;
    };
    let Some(buffer) = buffer else {
        set_errno(libc::EINVAL);
        return -1;
    };
    let length = text.len() as c_int;
    if buffer.is_empty() {
        if matches!(overflow, Overflow::Empty) {
            set_errno(libc::EINVAL);
        }
        return if matches!(overflow, Overflow::Fill) && text.is_empty() { 0 } else { -1 };
    }
    let (kept, result) = match overflow {
        _ if text.len() < buffer.len() => (text.len(), length),
        Overflow::Fill if text.len() == buffer.len() => (text.len(), length),
        Overflow::Fill => (buffer.len(), -1),
        Overflow::Cut => (buffer.len() - 1, -1),
        Overflow::Empty => {
            set_errno(libc::ERANGE);
            (0, -1)
        }
    };
    text::copy_to(buffer, &text[..kept]);
    if let Some(end) = buffer.get(kept) {
        end.set(T::default());
    }
    result
}

/// Puts at most `count` units of formatted text into a buffer, or what fits with `_TRUNCATE`; -1 when something was cut.
fn fill_counted<T: Unit>(buffer: Option<&[Cell<T>]>, count: usize, text: Option<&[T]>) -> c_int {
    let limit = match count {
        TRUNCATE => buffer.map_or(0, |buffer| buffer.len().saturating_sub(1)),
        count => count,
    };
    let cut = text.is_some_and(|text| limit < text.len());
    let text = text.map(|text| &text[..limit.min(text.len())]);
    let stored = fill(buffer, text, Overflow::Empty);
    if cut { -1 } else { stored }
}

/// # Safety
/// `format` is NULL or terminated, and `args` fit it.
unsafe fn to_stdout<T: Formatted>(format: *const T, args: VaList) -> c_int {
    // SAFETY: the format and the arguments are as the caller promises; `stdout` is an open stream or the program closed it, as in C.
    unsafe { to_stream(stdout, format, args) }
}

/// # Safety
/// `stream` is open; `format` is NULL or terminated, and `args` fit it.
unsafe fn to_stream<T: Formatted>(stream: *mut FILE, format: *const T, args: VaList) -> c_int {
    // SAFETY: the stream, the format and the arguments are as the caller promises.
    put_off(|| unsafe { T::print(stream, format, args) })
}

/// # Safety
/// `format` is NULL or terminated, and `args` fit it.
unsafe fn measure<T: Formatted>(format: *const T, args: VaList) -> c_int {
    // SAFETY: the format is NULL or terminated and fits the arguments, as the caller promises.
    unsafe { T::format(format, args) }.map_or(-1, |text| text.len() as c_int)
}

/// # Safety
/// `buffer` is NULL or has room for `size` units; `format` is NULL or terminated, and `args` fit it.
unsafe fn print_filling<T: Formatted>(buffer: *mut T, size: usize, format: *const T, args: VaList) -> c_int {
    if buffer.is_null() && size == 0 {
        // SAFETY: the format is NULL or terminated and fits the arguments, as the caller promises.
        return unsafe { measure(format, args) };
    }
    // SAFETY: the format is NULL or terminated and fits the arguments, as the caller promises.
    let text = unsafe { T::format(format, args) };
    // SAFETY: the buffer is NULL or has `size` units.
    fill(unsafe { text::cells(buffer, size) }, text.as_deref(), Overflow::Fill)
}

/// # Safety
/// As for [`print_filling`].
unsafe fn print_whole<T: Formatted>(buffer: *mut T, size: usize, format: *const T, args: VaList) -> c_int {
    // SAFETY: the format is NULL or terminated and fits the arguments, as the caller promises.
    let text = unsafe { T::format(format, args) };
    // SAFETY: the buffer is NULL or has `size` units.
    fill(unsafe { text::cells(buffer, size) }, text.as_deref(), Overflow::Empty)
}

/// # Safety
/// As for [`print_filling`].
unsafe fn print_counted<T: Formatted>(
    buffer: *mut T,
    size: usize,
    count: usize,
    format: *const T,
    args: VaList,
) -> c_int {
    // SAFETY: the format is NULL or terminated and fits the arguments, as the caller promises.
    let text = unsafe { T::format(format, args) };
    if buffer.is_null() && size == 0 && count == 0 && text.is_some() {
        return 0;
    }
    // SAFETY: the buffer is NULL or has `size` units.
    fill_counted(unsafe { text::cells(buffer, size) }, count, text.as_deref())
}

narrow_and_wide! {
    "`vprintf`, `vwprintf`."
    ndw_vprintf ndw_vwprintf = unsafe to_stdout(format: *const T, args: VaList) -> c_int;
    "`vfprintf`, `vfwprintf`."
    ndw_vfprintf ndw_vfwprintf = unsafe to_stream(stream: *mut FILE, format: *const T, args: VaList) -> c_int;
    "`_vscprintf`, `_vscwprintf`: the length the text would have."
    ndw__vscprintf ndw__vscwprintf = unsafe measure(format: *const T, args: VaList) -> c_int;
    "`_vsnprintf`, `_vsnwprintf`: -1 when the text is longer than the buffer; no NUL when it just fills it."
    ndw__vsnprintf ndw__vsnwprintf = unsafe print_filling(buffer: *mut T, size: usize, format: *const T, args: VaList) -> c_int;
    "`vsprintf_s`, `vswprintf_s`: an empty string and -1 when the text does not fit."
    ndw_vsprintf_s ndw_vswprintf_s = unsafe print_whole(buffer: *mut T, size: usize, format: *const T, args: VaList) -> c_int;
    "`_vsnprintf_s`, `_vsnwprintf_s`: at most `count` units, or what fits with `_TRUNCATE`; -1 when something was cut."
    ndw__vsnprintf_s ndw__vsnwprintf_s = unsafe print_counted(
        buffer: *mut T,
        size: usize,
        count: usize,
        format: *const T,
        args: VaList,
    ) -> c_int;
}

/// `vsnprintf`, as in C99: cut to fit, terminated; returns the length of the whole text.
///
/// # Safety
/// `buffer` has room for `size` bytes; `format` is NULL or terminated, and `args` fit it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vsnprintf(
    buffer: *mut u8,
    size: usize,
    format: *const u8,
    args: VaList,
) -> c_int {
    // SAFETY: NULL or terminated, as this function asks.
    let Some(plain) = (unsafe { rewritten(format, false, false) }) else { return -1 };
    if plain.marked || plain.fractions {
        // SAFETY: the format is NULL or terminated and fits the arguments, as this function asks.
        let Some(text) = (unsafe { u8::format(format, args) }) else { return -1 };
        if size > 0 {
            let kept = text.len().min(size - 1);
            // SAFETY: one byte more than is kept fits.
            unsafe { text::store(&text[..kept], buffer, kept + 1) };
        }
        return text.len() as c_int;
    }
    let _utf8 = Utf8Scope::enter(plain.mixes_widths);
    // SAFETY: room for `size` bytes, and the rewritten format takes the same arguments as the one the caller wrote.
    unsafe { vsnprintf(buffer.cast(), size, plain.text.as_ptr().cast(), args) }
}

/// `vsprintf`.
///
/// # Safety
/// `buffer` has room for the text; `format` is NULL or terminated, and `args` fit it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vsprintf(buffer: *mut u8, format: *const u8, args: VaList) -> c_int {
    // SAFETY: the buffer is large enough for the text, as this function asks, so its size need not be known.
    unsafe { ndw_vsnprintf(buffer, c_int::MAX as usize, format, args) }
}

/// `vswprintf` (with the buffer's size): cut, and -1, when the text does not fit.
///
/// # Safety
/// `buffer` is NULL or has room for `size` characters; `format` is NULL or terminated, and `args` fit it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vswprintf(
    buffer: *mut Wchar,
    size: usize,
    format: *const Wchar,
    args: VaList,
) -> c_int {
    // SAFETY: the format is NULL or terminated and fits the arguments.
    let text = unsafe { Wchar::format(format, args) };
    // SAFETY: the buffer is NULL or has `size` units.
    fill(unsafe { text::cells(buffer, size) }, text.as_deref(), Overflow::Cut)
}

#[cfg(test)]
mod tests;
