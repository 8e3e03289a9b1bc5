//! Calendar time: `localtime_s`, `gmtime_s`, `asctime_s`, `ctime_s`, `strftime`; `clock`.

use super::failed;
use crate::text::{Unit, Wchar};
use libc::{time_t, tm};
use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;

/// The latest time that Windows knows: the end of the year 3000, UTC.
const LATEST: time_t = 32_535_215_999;
/// What `asctime` writes, with its NUL.
const TEXT: usize = 26;

/// Splits a time into a calendar's fields; all of them are -1 when there is no such time.
///
/// # Safety
/// Both are NULL or valid.
unsafe fn split(
    result: *mut tm,
    time: *const time_t,
    by: unsafe extern "C" fn(*const time_t, *mut tm) -> *mut tm,
) -> c_int {
    if result.is_null() {
        return failed(libc::EINVAL);
    }
    // SAFETY: NULL or readable.
    let valid = unsafe { time.as_ref() }.is_some_and(|time| (0..=LATEST).contains(time));
    // SAFETY: a time that the function can take, and a place for its fields.
    if !valid || unsafe { by(time, result) }.is_null() {
        // SAFETY: not NULL, hence writable.
        let fields = unsafe { &mut *result };
        for field in [
            &mut fields.tm_sec,
            &mut fields.tm_min,
            &mut fields.tm_hour,
            &mut fields.tm_mday,
            &mut fields.tm_mon,
            &mut fields.tm_year,
            &mut fields.tm_wday,
            &mut fields.tm_yday,
            &mut fields.tm_isdst,
        ] {
            *field = -1;
        }
        return failed(libc::EINVAL);
    }
    0
}

/// `localtime_s` in Microsoft's order of arguments, which is not that of C11.
///
/// # Safety
/// `result` is NULL or may be written to; `time` is NULL or may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_localtime_s(result: *mut tm, time: *const time_t) -> c_int {
    // SAFETY: both are NULL or valid, as this function asks.
    unsafe { split(result, time, libc::localtime_r) }
}

/// `gmtime_s`, likewise.
///
/// # Safety
/// `result` is NULL or may be written to; `time` is NULL or may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_gmtime_s(result: *mut tm, time: *const time_t) -> c_int {
    // SAFETY: both are NULL or valid, as this function asks.
    unsafe { split(result, time, libc::gmtime_r) }
}

/// `asctime_s`: 26 characters, the last two a line feed and the NUL.
///
/// # Safety
/// `buffer` is NULL or has room for `size` bytes; `time` is NULL or may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_asctime_s(buffer: *mut c_char, size: usize, time: *const tm) -> c_int {
    unsafe extern "C" {
        fn asctime_r(time: *const tm, buffer: *mut c_char) -> *mut c_char;
    }
    if buffer.is_null() || size == 0 {
        return failed(libc::EINVAL);
    }
    // SAFETY: room for one byte at least.
    unsafe { buffer.write(0) };
    let valid = |time: &tm| {
        (0..=59).contains(&time.tm_sec)
            && (0..=59).contains(&time.tm_min)
            && (0..=23).contains(&time.tm_hour)
            && (1..=31).contains(&time.tm_mday)
            && (0..=11).contains(&time.tm_mon)
            && (0..=8099).contains(&time.tm_year)
            && (0..=6).contains(&time.tm_wday)
    };
    // SAFETY: NULL or readable.
    let valid = size >= TEXT && unsafe { time.as_ref() }.is_some_and(valid);
    // SAFETY: the fields are in their limits, so the text has room.
    if !valid || unsafe { asctime_r(time, buffer) }.is_null() {
        return failed(libc::EINVAL);
    }
    0
}

/// `ctime_s`: local time as `asctime_s` writes it.
///
/// # Safety
/// `buffer` is NULL or has room for `size` bytes; `time` is NULL or may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_ctime_s(buffer: *mut c_char, size: usize, time: *const time_t) -> c_int {
    if buffer.is_null() || size == 0 {
        return failed(libc::EINVAL);
    }
    // SAFETY: room for one byte at least.
    unsafe { buffer.write(0) };
    let mut fields = MaybeUninit::<tm>::uninit();
    // SAFETY: a place of ours, and a time that is NULL or readable.
    match unsafe { ndw_localtime_s(fields.as_mut_ptr(), time) } {
        // SAFETY: the buffer has `size` bytes; the fields were written.
        0 => unsafe { ndw_asctime_s(buffer, size, fields.as_ptr()) },
        error => error,
    }
}

/// A format of `strftime` in which what has Microsoft's `#` is written as glibc has it; `None` if nothing has.
fn without_marks<T: Unit + From<u8> + Into<u32>>(format: &[T]) -> Option<Vec<T>> {
    let is = |unit: Option<&T>, c: u8| unit.is_some_and(|unit| (*unit).into() == u32::from(c));
    let mut plain = Vec::with_capacity(format.len() + 32);
    let mut found = false;
    let mut rest = format;
    while let Some((unit, tail)) = rest.split_first() {
        plain.push(*unit);
        rest = tail;
        if !is(Some(unit), b'%') {
            continue;
        }
        let Some((next, tail)) = rest.split_first() else { break };
        rest = tail;
        let Some((letter, tail)) = is(Some(next), b'#').then(|| rest.split_first()).flatten() else {
            plain.push(*next);
            continue;
        };
        rest = tail;
        found = true;
        let in_full = match u8::try_from((*letter).into()).unwrap_or(0) {
            // The long forms.
            b'c' => "A, %B %d, %Y, %H:%M:%S",
            b'x' => "A, %B %d, %Y",
            // Without leading zeros.
            b'D' => "-m/%-d/%-y",
            b'F' => "-Y-%-m-%-d",
            b'R' => "-H:%-M",
            b'T' => "-H:%-M:%-S",
            b'r' => "-I:%-M:%-S %p",
            b'C' | b'd' | b'e' | b'H' | b'I' | b'j' | b'm' | b'M' | b'S' | b'U' | b'V' | b'w' | b'W'
            | b'y' | b'Y' => "-",
            // The others are as without it.
            _ => "",
        };
        plain.extend(in_full.bytes().map(T::from));
        if matches!(in_full, "" | "-") {
            plain.push(*letter);
        }
    }
    plain.push(T::default());
    found.then_some(plain)
}

unsafe extern "C" {
    fn strftime(buffer: *mut u8, size: usize, format: *const u8, time: *const tm) -> usize;
    fn wcsftime(buffer: *mut Wchar, size: usize, format: *const Wchar, time: *const tm) -> usize;
}

/// `strftime`, with Microsoft's `#`: `%#d` without leading zeros, `%#x` and `%#c` in long form.
///
/// # Safety
/// As for C's: `buffer` has room for `size` bytes, `format` is terminated and `time` readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_strftime(
    buffer: *mut u8,
    size: usize,
    format: *const u8,
    time: *const tm,
) -> usize {
    // SAFETY: terminated, as this function asks.
    let plain = unsafe { u8::units(format) }.and_then(without_marks);
    // SAFETY: what this function asks is what C's does.
    unsafe { strftime(buffer, size, plain.as_ref().map_or(format, |plain| plain.as_ptr()), time) }
}

/// `wcsftime`, likewise.
///
/// # Safety
/// As for [`ndw_strftime`], in characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_wcsftime(
    buffer: *mut Wchar,
    size: usize,
    format: *const Wchar,
    time: *const tm,
) -> usize {
    // SAFETY: terminated, as this function asks.
    let plain = unsafe { Wchar::units(format) }.and_then(without_marks);
    // SAFETY: what this function asks is what C's does.
    unsafe { wcsftime(buffer, size, plain.as_ref().map_or(format, |plain| plain.as_ptr()), time) }
}

/// `clock` by Microsoft's rule: the time since the process was started, not that of its processors, in units of
/// `CLOCKS_PER_SEC`, which are microseconds.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_clock() -> libc::clock_t {
    crate::boundary::guard(-1, || (crate::time::since_start() / 1000) as libc::clock_t)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;
    use std::ptr::{null, null_mut};

    fn fields() -> tm {
        // SAFETY: plain numbers, and a pointer that may be NULL.
        unsafe { std::mem::zeroed() }
    }

    #[test]
    fn a_time_is_split_and_written() {
        let mut split = fields();
        let mut text = [1 as c_char; TEXT];
        // SAFETY: pointers to locals, and the text has the room told and is terminated after a success.
        unsafe {
            assert_eq!(ndw_gmtime_s(&mut split, &86_399), 0);
            assert_eq!((split.tm_year, split.tm_mday, split.tm_hour, split.tm_sec), (70, 1, 23, 59));
            assert_eq!(ndw_asctime_s(text.as_mut_ptr(), TEXT, &split), 0);
            assert_eq!(CStr::from_ptr(text.as_ptr()), c"Thu Jan  1 23:59:59 1970\n");
            let mut local = fields();
            assert_eq!(ndw_localtime_s(&mut local, &86_399), 0);
            assert_eq!(libc::mktime(&mut local), 86_399);
            assert_eq!(ndw_ctime_s(text.as_mut_ptr(), TEXT, &86_399), 0);
        }
    }

    #[test]
    fn a_mark_takes_leading_zeros_away_or_makes_dates_long() {
        let time = tm {
            tm_year: 105,
            tm_mday: 2,
            tm_wday: 0,
            tm_yday: 1,
            tm_hour: 3,
            tm_min: 4,
            tm_sec: 5,
            ..fields()
        };
        let text = |format: &CStr| {
            let mut buffer = [1u8; 100];
            // SAFETY: so much room, a terminated format, and all fields of a time.
            let length = unsafe { ndw_strftime(buffer.as_mut_ptr(), 100, format.as_ptr().cast(), &time) };
            assert_eq!(buffer[length], 0);
            String::from_utf8(buffer[..length].to_vec()).unwrap()
        };
        assert_eq!(text(c"%#d.%#m. %#H:%#M:%#S %#j %#y"), "2.1. 3:4:5 2 5");
        assert_eq!(text(c"%d.%m. %H %%#d %#%d"), "02.01. 03 %#d %d");
        assert_eq!(text(c"%#x | %#c"), "Sunday, January 02, 2005 | Sunday, January 02, 2005, 03:04:05");
        assert_eq!(text(c"%#D %#F %#R %#T %#r"), "1/2/5 2005-1-2 3:4 3:4:5 3:4:5 AM");
        assert_eq!(text(c"%#B%#a"), "JanuarySun");
        let (format, mut wide) = (crate::text::w("%#d\u{e4}"), [1; 8]);
        // SAFETY: so much room, a terminated format, and all fields of a time.
        assert_eq!(unsafe { ndw_wcsftime(wide.as_mut_ptr(), 8, format.as_ptr(), &time) }, 2);
        assert_eq!(wide[..3], crate::text::w("2\u{e4}")[..]);
    }

    #[test]
    fn the_clock_goes_on_while_the_process_waits() {
        let before = ndw_clock();
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(before >= 0 && ndw_clock() - before >= 20_000);
    }

    #[test]
    fn what_is_no_time_leaves_minus_ones_and_empty_text() {
        let mut split = fields();
        let mut text = [1 as c_char; TEXT];
        // SAFETY: pointers to locals or NULL, and the text has the room told.
        unsafe {
            for time in [-1, LATEST + 1] {
                split.tm_year = 5;
                assert_eq!(ndw_gmtime_s(&mut split, &time), libc::EINVAL);
                assert_eq!((split.tm_year, split.tm_isdst), (-1, -1));
            }
            assert_eq!(ndw_localtime_s(&mut split, null()), libc::EINVAL);
            assert_eq!(ndw_localtime_s(null_mut(), &0), libc::EINVAL);
            assert_eq!(ndw_asctime_s(text.as_mut_ptr(), TEXT, &split), libc::EINVAL);
            assert_eq!(text[0], 0);
            assert_eq!(ndw_gmtime_s(&mut split, &0), 0);
            let no_such_day = tm { tm_wday: 7, ..split };
            assert_eq!(ndw_asctime_s(text.as_mut_ptr(), TEXT, &no_such_day), libc::EINVAL);
            assert_eq!(ndw_asctime_s(text.as_mut_ptr(), TEXT - 1, &split), libc::EINVAL);
            assert_eq!(ndw_asctime_s(null_mut(), TEXT, &split), libc::EINVAL);
            assert_eq!(ndw_asctime_s(text.as_mut_ptr(), TEXT, null()), libc::EINVAL);
            assert_eq!(ndw_ctime_s(text.as_mut_ptr(), TEXT, &-1), libc::EINVAL);
            assert_eq!(ndw_ctime_s(text.as_mut_ptr(), 0, &0), libc::EINVAL);
        }
    }
}
