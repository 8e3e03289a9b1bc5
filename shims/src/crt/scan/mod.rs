//! The `scanf` family with Microsoft's meaning: `l` is 32 bits, and text has the width of the function. The functions whose names
//! end in `_s` have the buffer's size after each string argument.

mod plan;
mod stream;

use super::print::VaList;
use super::set_errno;
use super::va_list::Arguments;
use crate::arguments::Text;
use crate::cancellation::put_off;
use crate::text::{Wchar, narrow_and_wide};
use libc::FILE;
use plan::{Assignment, Plan, Width};
use std::ffi::{c_char, c_int};

/// `EOF`.
const EOF: c_int = -1;

// Under these names `%a` is a number, as in C99, whatever follows it.
unsafe extern "C" {
    #[link_name = "__isoc99_vsscanf"]
    fn vsscanf(text: *const c_char, format: *const c_char, arguments: VaList) -> c_int;
    #[link_name = "__isoc99_vfscanf"]
    fn vfscanf(stream: *mut FILE, format: *const c_char, arguments: VaList) -> c_int;
    #[link_name = "__isoc99_vswscanf"]
    fn vswscanf(text: *const Wchar, format: *const Wchar, arguments: VaList) -> c_int;
}

/// Where text comes from.
enum Source<T> {
    Text(*const T),
    Stream(*mut FILE),
}

/// A width of text that can be read.
trait Scanned: Width {
    /// Reads by glibc's meaning of a format.
    ///
    /// # Safety
    /// The text is terminated, or the stream is open; so is the format, and each of its conversions has a place.
    unsafe fn scan(source: Source<Self>, format: &[Self], places: &[u64]) -> c_int;
}

impl Scanned for u8 {
    unsafe fn scan(source: Source<u8>, format: &[u8], places: &[u64]) -> c_int {
        let (format, mut places) = (format.as_ptr().cast(), Arguments::on_stack(places));
        match source {
            // SAFETY: terminated, and a place for each conversion, as the trait asks.
            Source::Text(text) => unsafe { vsscanf(text.cast(), format, places.list()) },
            // SAFETY: open and terminated, and a place for each conversion, as the trait asks.
            Source::Stream(stream) => unsafe { vfscanf(stream, format, places.list()) },
        }
    }
}

impl Scanned for Wchar {
    unsafe fn scan(source: Source<Wchar>, format: &[Wchar], places: &[u64]) -> c_int {
        match source {
            Source::Text(text) => {
                let mut places = Arguments::on_stack(places);
                // SAFETY: terminated, and a place for each conversion, as the trait asks.
                unsafe { vswscanf(text, format.as_ptr(), places.list()) }
            }
            // SAFETY: open, and a place for each conversion, as the trait asks.
            Source::Stream(stream) => unsafe { stream::scan(stream, format, places) },
        }
    }
}

/// Reads by a format: the number of assignments, `EOF` if the text ends before the first. With `sized`, the size of its buffer follows
/// each text.
///
/// # Safety
/// The arguments fit the format; a text is terminated, a stream open.
unsafe fn scan<T: Scanned>(
    source: Option<Source<T>>,
    format: Option<&[T]>,
    sized: bool,
    arguments: VaList,
) -> c_int {
    let planned = source.zip(format).and_then(|(source, format)| {
        // SAFETY: a `va_list` parameter points to what it is made of.
        let arguments = unsafe { &mut *arguments.cast::<Arguments>() };
        // SAFETY: the arguments fit the format.
        let plan = unsafe { Plan::of(format, sized, arguments) };
        plan.map(|plan| (source, plan))
    });
    let Some((source, mut plan)) = planned else {
        set_errno(libc::EINVAL);
        return EOF;
    };
    let places = plan.places();
    // SAFETY: a place for each conversion of the rewritten format; the source is as the caller promises.
    let count = put_off(|| unsafe { T::scan(source, &plan.format, &places) });
    let mut assigned = 0;
    for assignment in &plan.assignments {
        match assignment {
            // SAFETY: the arguments fit the format, as the caller promises.
            Assignment::Count(count) => unsafe { count.deliver() },
            _ if assigned >= count => {}
            // SAFETY: the arguments fit the format, as the caller promises, so the text's place has the size that follows it, or
            // room for any text; it is among those that glibc has counted.
            Assignment::Text(text) if !unsafe { text.deliver() } => {
                set_errno(libc::ENOMEM);
                return assigned;
            }
            _ => assigned += 1,
        }
    }
    count
}

/// # Safety
/// The arguments fit the format; the text is NULL or terminated.
unsafe fn scan_text<T: Scanned>(
    text: Text<'_, T>,
    format: Text<'_, T>,
    sized: bool,
    arguments: VaList,
) -> c_int {
    let source = (!text.as_ptr().is_null()).then(|| Source::Text(text.as_ptr()));
    // SAFETY: the arguments fit the format, as this function asks, and the text is not NULL.
    unsafe { scan(source, format.units(), sized, arguments) }
}

/// # Safety
/// The arguments fit the format; the stream is NULL or open.
unsafe fn scan_stream<T: Scanned>(
    stream: *mut FILE,
    format: Text<'_, T>,
    sized: bool,
    arguments: VaList,
) -> c_int {
    let source = (!stream.is_null()).then_some(Source::Stream(stream));
    // SAFETY: the arguments fit the format, and the stream is open, as this function asks.
    unsafe { scan(source, format.units(), sized, arguments) }
}

/// # Safety
/// As for [`scan_text`].
unsafe fn from_text<T: Scanned>(text: Text<'_, T>, format: Text<'_, T>, arguments: VaList) -> c_int {
    // SAFETY: the arguments fit the format, as this function asks.
    unsafe { scan_text(text, format, false, arguments) }
}

/// # Safety
/// As for [`scan_text`]; the argument behind each text's is its size.
unsafe fn from_text_sized<T: Scanned>(text: Text<'_, T>, format: Text<'_, T>, arguments: VaList) -> c_int {
    // SAFETY: the arguments fit the format, as this function asks.
    unsafe { scan_text(text, format, true, arguments) }
}

/// # Safety
/// As for [`scan_stream`].
unsafe fn from_stream<T: Scanned>(stream: *mut FILE, format: Text<'_, T>, arguments: VaList) -> c_int {
    // SAFETY: the arguments fit the format, and the stream is open, as this function asks.
    unsafe { scan_stream(stream, format, false, arguments) }
}

/// # Safety
/// As for [`scan_stream`]; the argument behind each text's is its size.
unsafe fn from_stream_sized<T: Scanned>(stream: *mut FILE, format: Text<'_, T>, arguments: VaList) -> c_int {
    // SAFETY: the arguments fit the format, and the stream is open, as this function asks.
    unsafe { scan_stream(stream, format, true, arguments) }
}

narrow_and_wide! {
    "`sscanf`, `swscanf`, with a `va_list`: a place for each conversion, with room for the text."
    ndw_vsscanf ndw_vswscanf = unsafe from_text(text: Text<'_, T>, format: Text<'_, T>, arguments: VaList) -> c_int;
    "`sscanf_s`, `swscanf_s`, with a `va_list`: a place for each conversion, and a size behind that of text."
    ndw_vsscanf_s ndw_vswscanf_s = unsafe from_text_sized(text: Text<'_, T>, format: Text<'_, T>, arguments: VaList) -> c_int;
    "`fscanf`, `fwscanf`, with a `va_list`. For the wide one the stream is read as UTF-8, and stays narrow."
    ndw_vfscanf ndw_vfwscanf = unsafe from_stream(stream: *mut FILE, format: Text<'_, T>, arguments: VaList) -> c_int;
    "`fscanf_s`, `fwscanf_s`, with a `va_list`. For the wide one the stream is read as UTF-8, and stays narrow."
    ndw_vfscanf_s ndw_vfwscanf_s = unsafe from_stream_sized(stream: *mut FILE, format: Text<'_, T>, arguments: VaList) -> c_int;
}

#[cfg(test)]
mod tests;
