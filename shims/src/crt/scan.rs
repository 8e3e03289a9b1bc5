//! The `scanf` family with Microsoft's meaning: `l` is 32 bits, and text has the width of the function. The functions whose names
//! end in `_s` have the buffer's size after each string argument.

use super::print::VaList;
use super::set_errno;
use super::va_list::Arguments;
use crate::arguments;
use crate::text::{self, Unit, Wchar};
use libc::FILE;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;

/// `EOF`.
const EOF: c_int = -1;

/// A text assignment: the program's buffer.
struct Text {
    target: *mut c_void,
    /// In characters; `None` if the program has told none.
    size: Option<u32>,
    wide: bool,
    read: Read,
}

/// What a `%n` has found: how much was read up to there.
struct Count {
    target: *mut c_void,
    /// Of the program's variable, in bytes.
    size: usize,
    /// glibc's, -1 if the conversion was not reached.
    bytes: c_int,
}

/// The text that glibc has read, which may not fit.
enum Read {
    /// `%c`: so many characters at most, and no NUL.
    Plain(Vec<u8>),
    /// Terminated, and allocated by glibc (`%ms`); NULL before.
    Terminated(*mut c_char),
}

impl Drop for Read {
    fn drop(&mut self) {
        if let Read::Terminated(text) = self {
            // SAFETY: NULL, or allocated by glibc for this place alone.
            unsafe { libc::free(text.cast()) };
        }
    }
}

/// An assignment: a number, by its address, or text; or what counts as none.
enum Assignment {
    Number(u64),
    Text(Text),
    Count(Box<Count>),
}

/// A parsed format: the format for glibc, and the assignments in order.
struct Plan {
    format: Vec<u8>,
    assignments: Vec<Assignment>,
}

/// The length of the set of a `%[`, from after the bracket up to and including the closing one.
fn set(rest: &[u8]) -> Option<usize> {
    let start = rest.first().map_or(0, |c| usize::from(*c == b'^'));
    // A closing bracket at the start belongs to the set.
    rest.iter().skip(start + 1).position(|c| *c == b']').map(|end| start + 1 + end + 1)
}

/// What a function reads by: its width, and whether the size of its buffer follows each text.
#[derive(Clone, Copy)]
struct Rules {
    wide: bool,
    sized: bool,
}

/// Parses a format; `None` for unknown conversions.
///
/// # Safety
/// The arguments fit the format.
unsafe fn plan(format: &[u8], rules: Rules, arguments: &mut Arguments) -> Option<Plan> {
    let mut plan = Plan { format: Vec::with_capacity(format.len() + 8), assignments: Vec::new() };
    let mut rest = format;
    while let [unit, tail @ ..] = rest {
        plan.format.push(*unit);
        rest = tail;
        if *unit != b'%' {
            continue;
        }
        if let [b'%', tail @ ..] = rest {
            plan.format.push(b'%');
            rest = tail;
            continue;
        }
        let suppressed = rest.first() == Some(&b'*');
        let (modifiers, tail) = rest.split_at(
            usize::from(suppressed)
                + rest[usize::from(suppressed)..].iter().take_while(|c| c.is_ascii_digit()).count(),
        );
        plan.format.extend_from_slice(modifiers);
        let width = std::str::from_utf8(&modifiers[usize::from(suppressed)..]).ok()?.parse::<usize>().ok();
        // POSIX's: text in memory that is allocated for it. The C library does that, for code that is Linux's.
        let allocated = !rules.sized && tail.first() == Some(&b'm');
        let tail = &tail[usize::from(allocated)..];
        let prefix = ["I64", "I32", "hh", "ll", "h", "l", "w", "L", "I", "z", "t", "j"]
            .into_iter()
            .find(|prefix| tail.starts_with(prefix.as_bytes()))
            .unwrap_or("");
        let (letter, tail) = tail[prefix.len()..].split_first()?;
        rest = tail;
        let length = match (letter, prefix) {
            (b'd' | b'i' | b'o' | b'u' | b'x' | b'X', "I64" | "ll" | "I") => "ll",
            (b'd' | b'i' | b'o' | b'u' | b'x' | b'X', "h" | "hh" | "z" | "t" | "j") => prefix,
            (b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'p', _) => "",
            // As for printf: a variable of that type has Linux's size.
            (b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A', "l" | "L") => prefix,
            (b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A', _) => "",
            (b's' | b'c' | b'S' | b'C' | b'[', _) => "",
            (b'n', _) if !suppressed => "",
            _ => return None,
        };
        let is_plain = letter.eq_ignore_ascii_case(&b'c');
        if (matches!(letter, b's' | b'S' | b'[') || allocated) && !suppressed {
            plan.format.push(b'm');
        }
        plan.format.extend_from_slice(length.as_bytes());
        plan.format.push(letter.to_ascii_lowercase());
        if *letter == b'[' {
            let set = set(rest)?;
            plan.format.extend_from_slice(&rest[..set]);
            rest = &rest[set..];
        }
        if suppressed {
            continue;
        }
        // SAFETY: each assignment has a pointer among the arguments.
        let place = unsafe { arguments.next() };
        let assignment = if *letter == b'n' {
            let size = match prefix {
                "hh" => 1,
                "h" => 2,
                "I64" | "ll" | "I" | "z" | "t" | "j" => 8,
                _ => 4,
            };
            Assignment::Count(Box::new(Count { target: place as *mut c_void, size, bytes: -1 }))
        } else if !allocated && matches!(letter, b's' | b'c' | b'S' | b'C' | b'[') {
            let wide = match prefix {
                "h" => false,
                "l" | "w" => true,
                _ => rules.wide != letter.is_ascii_uppercase(),
            };
            Assignment::Text(Text {
                target: place as *mut c_void,
                // SAFETY: in a function that tells sizes, the pointer of a text is followed by that of its buffer.
                size: rules.sized.then(|| unsafe { arguments.next() } as u32),
                wide,
                read: if is_plain {
                    Read::Plain(vec![0; width.unwrap_or(1)])
                } else {
                    Read::Terminated(null_mut())
                },
            })
        } else {
            Assignment::Number(place)
        };
        plan.assignments.push(assignment);
    }
    plan.format.push(0);
    Some(plan)
}

impl Text {
    /// Where glibc puts it.
    fn place(&mut self) -> u64 {
        match &mut self.read {
            Read::Plain(text) => text.as_mut_ptr().expose_provenance() as u64,
            Read::Terminated(text) => (&raw mut *text).expose_provenance() as u64,
        }
    }

    /// Copies the text to the program's buffer; `false`, and an empty string, if it does not fit.
    ///
    /// # Safety
    /// The buffer has room for the size told, or for all of the text if none was; glibc has read the text.
    unsafe fn deliver(&self) -> bool {
        let (bytes, plain) = match &self.read {
            // The buffer was zeroed: the last byte that is not zero shows how much there was.
            Read::Plain(text) => {
                (&text[..text.iter().rposition(|c| *c != 0).map_or(0, |last| last + 1)], true)
            }
            // SAFETY: terminated, as glibc has read it.
            Read::Terminated(text) => (unsafe { text::narrow(*text) }.unwrap_or_default(), false),
        };
        let room = |needed: usize| self.size.map_or(needed + usize::from(!plain), |size| size as usize);
        if self.wide {
            let units = text::to_wide(&String::from_utf8_lossy(bytes));
            // SAFETY: NULL or a buffer of so many wide characters.
            put(&units, unsafe { text::cells(self.target.cast::<Wchar>(), room(units.len())) }, plain)
        } else {
            // SAFETY: NULL or a buffer of so many bytes.
            put(bytes, unsafe { text::cells(self.target.cast::<u8>(), room(bytes.len())) }, plain)
        }
    }
}

impl Count {
    /// Stores what was counted in the program's variable, in characters if wide text was read.
    ///
    /// # Safety
    /// The variable has the size that its conversion says.
    unsafe fn deliver(&self, wide: Option<&CStr>) {
        let Ok(bytes) = usize::try_from(self.bytes) else { return };
        let read = wide.map(|text| String::from_utf8_lossy(&text.to_bytes()[..bytes]).chars().count());
        let count = read.unwrap_or(bytes) as u64;
        // SAFETY: so many bytes, as the caller promises.
        if let Some(target) = unsafe { text::cells(self.target.cast::<u8>(), self.size) } {
            text::copy_to(target, &count.to_le_bytes()[..self.size]);
        }
    }
}

/// Stores text, with a NUL unless it is `plain`; `false`, and an empty string, if it does not fit.
fn put<T: Unit>(units: &[T], target: Option<&[Cell<T>]>, plain: bool) -> bool {
    let Some(target) = target else { return false };
    let fits = units.len() + usize::from(!plain) <= target.len();
    let units = if fits { units } else { &[] };
    text::copy_to(target, units);
    if let Some(end) = target.get(units.len()).filter(|_| !plain || !fits) {
        end.set(T::default());
    }
    fits
}

/// Where text comes from.
enum Source<'a> {
    Text(&'a CStr),
    Stream(*mut FILE),
}

/// Reads by a format: the number of assignments, `EOF` if the text ends before the first.
///
/// # Safety
/// The arguments fit the format; a stream is open.
unsafe fn scan(source: Option<Source<'_>>, format: Option<&[u8]>, rules: Rules, arguments: VaList) -> c_int {
    unsafe extern "C" {
        fn vsscanf(text: *const c_char, format: *const c_char, arguments: VaList) -> c_int;
        fn vfscanf(stream: *mut FILE, format: *const c_char, arguments: VaList) -> c_int;
    }
    let planned = source.zip(format).and_then(|(source, format)| {
        // SAFETY: a `va_list` parameter points to what it is made of.
        let arguments = unsafe { &mut *arguments.cast::<Arguments>() };
        // SAFETY: the arguments fit the format.
        let plan = unsafe { plan(format, rules, arguments) };
        plan.map(|plan| (source, plan))
    });
    let Some((source, mut plan)) = planned else {
        set_errno(libc::EINVAL);
        return EOF;
    };
    let places: Vec<u64> = plan
        .assignments
        .iter_mut()
        .map(|assignment| match assignment {
            Assignment::Number(place) => *place,
            Assignment::Text(text) => text.place(),
            Assignment::Count(count) => (&raw mut count.bytes).expose_provenance() as u64,
        })
        .collect();
    let (format, mut places) = (plan.format.as_ptr().cast(), Arguments::on_stack(&places));
    let count = match source {
        // SAFETY: a place for each conversion of the rewritten format; a terminated text.
        Source::Text(text) => unsafe { vsscanf(text.as_ptr(), format, places.list()) },
        // SAFETY: a place for each conversion of the rewritten format; an open stream, as the caller promises.
        Source::Stream(stream) => unsafe { vfscanf(stream, format, places.list()) },
    };
    let characters = match source {
        Source::Text(text) if rules.wide => Some(text),
        _ => None,
    };
    let mut assigned = 0;
    for assignment in &plan.assignments {
        match assignment {
            // SAFETY: the arguments fit the format, as the caller promises.
            Assignment::Count(count) => unsafe { count.deliver(characters) },
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

const NARROW: Rules = Rules { wide: false, sized: false };
const NARROW_S: Rules = Rules { wide: false, sized: true };
const WIDE: Rules = Rules { wide: true, sized: false };
const WIDE_S: Rules = Rules { wide: true, sized: true };

/// # Safety
/// As for [`ndw_vsscanf_s`].
unsafe fn from_text(
    text: arguments::Text<'_, u8>,
    format: arguments::Text<'_, u8>,
    rules: Rules,
    arguments: VaList,
) -> c_int {
    // SAFETY: the arguments fit the format, as this function asks.
    unsafe { scan(text.c_str().map(Source::Text), format.units(), rules, arguments) }
}

/// # Safety
/// As for [`ndw_vsscanf_s`].
unsafe fn from_wide_text(
    text: arguments::Text<'_, Wchar>,
    format: arguments::Text<'_, Wchar>,
    rules: Rules,
    arguments: VaList,
) -> c_int {
    let (text, format) = (text.read().and_then(|text| CString::new(text).ok()), format.read());
    let source = text.as_deref().map(Source::Text);
    // SAFETY: the arguments fit the format, as this function asks.
    unsafe { scan(source, format.as_deref().map(str::as_bytes), rules, arguments) }
}

/// # Safety
/// As for [`ndw_vfscanf_s`].
unsafe fn from_stream<T: Unit>(
    stream: *mut FILE,
    format: arguments::Text<'_, T>,
    rules: Rules,
    arguments: VaList,
) -> c_int {
    let source = (!stream.is_null()).then_some(Source::Stream(stream));
    let format = format.read();
    // SAFETY: the arguments fit the format, and the stream is open, as this function asks.
    unsafe { scan(source, format.as_deref().map(str::as_bytes), rules, arguments) }
}

/// `sscanf`, with a `va_list`.
///
/// # Safety
/// `arguments` fit the format: a place for each conversion, with room for the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vsscanf(
    text: arguments::Text<'_, u8>,
    format: arguments::Text<'_, u8>,
    arguments: VaList,
) -> c_int {
    // SAFETY: the arguments fit the format, as this function asks.
    unsafe { from_text(text, format, NARROW, arguments) }
}

/// `sscanf_s`, with a `va_list`.
///
/// # Safety
/// `arguments` fit the format: a place for each conversion, and a size behind that of text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vsscanf_s(
    text: arguments::Text<'_, u8>,
    format: arguments::Text<'_, u8>,
    arguments: VaList,
) -> c_int {
    // SAFETY: the arguments fit the format, as this function asks.
    unsafe { from_text(text, format, NARROW_S, arguments) }
}

/// `swscanf`, with a `va_list`.
///
/// # Safety
/// As for [`ndw_vsscanf`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vswscanf(
    text: arguments::Text<'_, Wchar>,
    format: arguments::Text<'_, Wchar>,
    arguments: VaList,
) -> c_int {
    // SAFETY: the arguments fit the format, as this function asks.
    unsafe { from_wide_text(text, format, WIDE, arguments) }
}

/// `swscanf_s`, with a `va_list`.
///
/// # Safety
/// As for [`ndw_vsscanf_s`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vswscanf_s(
    text: arguments::Text<'_, Wchar>,
    format: arguments::Text<'_, Wchar>,
    arguments: VaList,
) -> c_int {
    // SAFETY: the arguments fit the format, as this function asks.
    unsafe { from_wide_text(text, format, WIDE_S, arguments) }
}

/// `fscanf`, with a `va_list`.
///
/// # Safety
/// As for [`ndw_vsscanf`]; the stream is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vfscanf(
    stream: *mut FILE,
    format: arguments::Text<'_, u8>,
    arguments: VaList,
) -> c_int {
    // SAFETY: the arguments fit the format, and the stream is open, as this function asks.
    unsafe { from_stream(stream, format, NARROW, arguments) }
}

/// `fscanf_s`, with a `va_list`.
///
/// # Safety
/// As for [`ndw_vsscanf_s`]; the stream is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vfscanf_s(
    stream: *mut FILE,
    format: arguments::Text<'_, u8>,
    arguments: VaList,
) -> c_int {
    // SAFETY: the arguments fit the format, and the stream is open, as this function asks.
    unsafe { from_stream(stream, format, NARROW_S, arguments) }
}

/// `fwscanf`, with a `va_list`. The stream is read as UTF-8, and stays narrow.
///
/// # Safety
/// As for [`ndw_vfscanf`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vfwscanf(
    stream: *mut FILE,
    format: arguments::Text<'_, Wchar>,
    arguments: VaList,
) -> c_int {
    // SAFETY: the arguments fit the format, and the stream is open, as this function asks.
    unsafe { from_stream(stream, format, WIDE, arguments) }
}

/// `fwscanf_s`, with a `va_list`. The stream is read as UTF-8, and stays narrow.
///
/// # Safety
/// As for [`ndw_vfscanf_s`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_vfwscanf_s(
    stream: *mut FILE,
    format: arguments::Text<'_, Wchar>,
    arguments: VaList,
) -> c_int {
    // SAFETY: the arguments fit the format, and the stream is open, as this function asks.
    unsafe { from_stream(stream, format, WIDE_S, arguments) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;
    use std::ffi::CStr;

    fn scanned(text: &CStr, format: &CStr, values: &[u64]) -> c_int {
        // SAFETY: terminated strings, and a value for each place and size in the format.
        unsafe { ndw_vsscanf_s(text.into(), format.into(), Arguments::on_stack(values).list()) }
    }

    #[test]
    fn numbers_have_the_width_that_windows_gives_them() {
        let mut small = [7i32, 7];
        let mut large = 7i64;
        let mut real = 0.0f64;
        let values = [(&raw mut small[0]) as u64, (&raw mut large) as u64, (&raw mut real) as u64];
        assert_eq!(scanned(c"-5 1099511627776 2.5", c"%ld %I64d %lf", &values), 3);
        assert_eq!((small, large, real), ([-5, 7], 1 << 40, 2.5));
        assert_eq!(scanned(c"12%", c"%*d%%", &[]), 0);
        assert_eq!(scanned(c"", c"%d", &values[..1]), EOF);
        assert_eq!(scanned(c"x", c"%d", &values[..1]), 0);
    }

    #[test]
    fn text_keeps_to_the_size_that_is_told() {
        let mut buffer = [b'?'; 6];
        let mut number = 0i32;
        let at = buffer.as_mut_ptr() as u64;
        let number_at = (&raw mut number) as u64;
        let values = |size| [at, size, number_at];
        assert_eq!(scanned(c"abc 5", c"%s %d", &values(4)), 2);
        assert_eq!((&buffer, number), (b"abc\0??", 5));
        // What does not fit ends it there, with an empty string.
        assert_eq!(scanned(c"abcd 5", c"%s %d", &values(4)), 0);
        assert_eq!(&buffer, b"\0bc\0??");
        assert_eq!(scanned(c"abcd 5", c"%3s", &values(4)), 1);
        assert_eq!(&buffer, b"abc\0??");
        assert_eq!(scanned(c"xy", c"%2c", &values(2)), 1);
        assert_eq!(&buffer, b"xyc\0??");
        assert_eq!(scanned(c"xy", c"%2c", &values(1)), 0);
        assert_eq!(scanned(c"]a b", c"%[]a]", &values(6)), 1);
        assert_eq!(&buffer[..3], b"]a\0");
        let mut wide = [9 as Wchar; 3];
        assert_eq!(scanned(c"\xc3\xa4b", c"%S", &[wide.as_mut_ptr() as u64, 3]), 1);
        assert_eq!(wide[..], w("\u{e4}b")[..]);
        // SAFETY: the places have the sizes that follow them, and both texts are terminated.
        unsafe {
            let values = [wide.as_mut_ptr() as u64, 3, at, 6];
            let list = &mut Arguments::on_stack(&values);
            let (text, format) = (w("hi there"), w("%s %hs"));
            assert_eq!(
                ndw_vswscanf_s(
                    arguments::Text::terminated(&text),
                    arguments::Text::terminated(&format),
                    list.list()
                ),
                2
            );
        }
        assert_eq!((&wide[..], &buffer), (&w("hi")[..], b"there\0"));
    }

    #[test]
    fn a_stream_is_read_up_to_what_does_not_match() {
        let content = c"7 word \xc3\xa4 x";
        // SAFETY: the bytes that there are, which stay; the places have the sizes that follow them.
        unsafe {
            let length = content.count_bytes();
            let stream = libc::fmemopen(content.as_ptr().cast_mut().cast(), length, c"r".as_ptr());
            let (mut number, mut word, mut wide) = (0i32, [9u8; 5], [9 as Wchar; 2]);
            let number_at = (&raw mut number) as u64;
            let values = [number_at, word.as_mut_ptr() as u64, 5];
            let format = c"%ld %s".into();
            assert_eq!(ndw_vfscanf_s(stream, format, Arguments::on_stack(&values).list()), 2);
            assert_eq!((number, &word), (7, b"word\0"));
            let (values, format) = ([wide.as_mut_ptr() as u64, 2, number_at], w("%s %d"));
            let format = arguments::Text::terminated(&format);
            assert_eq!(ndw_vfwscanf_s(stream, format, Arguments::on_stack(&values).list()), 1);
            assert_eq!(wide[..], w("\u{e4}")[..]);
            assert_eq!(libc::fgetc(stream), i32::from(b'x'), "what does not match stays");
            let values = [number_at];
            assert_eq!(ndw_vfscanf_s(stream, c"%d".into(), Arguments::on_stack(&values).list()), EOF);
            assert_eq!(ndw_vfscanf_s(null_mut(), c"%d".into(), Arguments::on_stack(&values).list()), EOF);
            libc::fclose(stream);
        }
    }

    #[test]
    fn without_sizes_text_has_the_width_of_the_function() {
        let (mut name, mut narrow, mut number, mut large) = ([9 as Wchar; 5], [9u8; 4], 0i32, 0i64);
        let [name_at, number_at] = [name.as_mut_ptr() as u64, (&raw mut number) as u64];
        let [narrow_at, large_at] = [narrow.as_mut_ptr() as u64, (&raw mut large) as u64];
        let wide = |text: &str, format: &str, values: &[u64]| {
            let (text, format) = (w(text), w(format));
            let [text, format] = [&text, &format].map(|text| arguments::Text::terminated(text));
            // SAFETY: terminated texts, and a place for each conversion.
            unsafe { ndw_vswscanf(text, format, Arguments::on_stack(values).list()) }
        };
        assert_eq!(wide("h\u{f6}st 8080", "%s %ld", &[name_at, number_at]), 2);
        assert_eq!((&name[..], number), (&w("h\u{f6}st")[..], 8080));
        assert_eq!(wide("k=v 12", "%1[a-z]=%hs %n%c", &[name_at, narrow_at, number_at, large_at]), 3);
        assert_eq!((&name[..2], &narrow[..2], number), (&w("k")[..], &b"v\0"[..], 4));
        assert_eq!(wide("\u{f6} ", "%hs%n", &[narrow_at, number_at]), 1);
        assert_eq!((&narrow[..3], number), (&b"\xC3\xB6\0"[..], 1), "characters are counted");
        let unsized_scan = |text: &CStr, format: &CStr, values: &[u64]| {
            // SAFETY: terminated texts, and a place for each conversion.
            unsafe { ndw_vsscanf(text.into(), format.into(), Arguments::on_stack(values).list()) }
        };
        assert_eq!(unsized_scan(c"123456789012 ab", c"%I64d %2c%n", &[large_at, narrow_at, number_at]), 2);
        assert_eq!((large, &narrow[..3], number), (123_456_789_012, &b"ab\0"[..], 15));
        // What is not reached is not counted.
        number = 7;
        assert_eq!(unsized_scan(c"x", c"%I64d%n", &[large_at, number_at]), 0);
        assert_eq!(number, 7);
        large = -1;
        assert_eq!(unsized_scan(c"ab", c"ab%hn%lln", &[number_at, large_at]), 0);
        assert_eq!((number, large), (2, 2));
        // POSIX's.
        let mut allocated: *mut c_char = null_mut();
        assert_eq!(unsized_scan(c"word", c"%ms", &[(&raw mut allocated) as u64]), 1);
        // SAFETY: allocated by the C library, and freed once.
        unsafe {
            assert_eq!(text::narrow(allocated), Some(&b"word"[..]));
            libc::free(allocated.cast());
        }
    }

    #[test]
    fn no_text_and_unknown_conversions_are_refused() {
        assert_eq!(scanned(c"1", c"%y", &[0]), EOF);
        // SAFETY: NULL.
        unsafe {
            let none = &mut Arguments::on_stack(&[]);
            assert_eq!(ndw_vsscanf_s(arguments::Text::NULL, c"%d".into(), none.list()), EOF);
            assert_eq!(ndw_vsscanf_s(c"1".into(), arguments::Text::NULL, none.list()), EOF);
        }
    }
}
