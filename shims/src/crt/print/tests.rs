//! Calls with argument lists made by hand, as no variadic function can be called from Rust.

use super::*;
use crate::crt::va_list::Arguments;
use crate::text::w;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;

fn args(stack: &[u64]) -> Arguments {
    Arguments::on_stack(stack)
}

fn list(args: &mut Arguments) -> VaList {
    args.list()
}

/// The bytes of a C string.
fn start(text: &CStr) -> *const u8 {
    text.as_ptr().cast()
}

fn narrow(format: &str, stack: &[u64]) -> String {
    let format = CString::new(format).unwrap();
    let mut buffer = [0; 128];
    // SAFETY: the arguments of each test fit its format.
    let n = unsafe { ndw_vsnprintf(buffer.as_mut_ptr(), 128, start(&format), list(&mut args(stack))) };
    std::str::from_utf8(&buffer[..n as usize]).unwrap().to_owned()
}

fn wide(format: &str, stack: &[u64]) -> String {
    let mut buffer = [0; 128];
    // SAFETY: the arguments of each test fit its format.
    let n = unsafe { ndw_vswprintf(buffer.as_mut_ptr(), 128, w(format).as_ptr(), list(&mut args(stack))) };
    text::from_wide(&buffer[..n as usize])
}

#[test]
fn integers_of_windows_widths() {
    // The upper half of a 32-bit argument's slot is not defined.
    let minus_one = 0xDEAD_BEEF_FFFF_FFFF;
    assert_eq!(narrow("%ld|%lu|%lx", &[minus_one; 3]), "-1|4294967295|ffffffff");
    assert_eq!(narrow("%I64d|%9Id|%I32d", &[u64::MAX, 5, minus_one]), "-1|        5|-1");
    assert_eq!(narrow("%9ul %s", &[7, c"end".as_ptr() as u64]), "        7l end");
    assert_eq!(wide("%I64x %zu %.2f", &[1 << 40, 3, 1.5f64.to_bits()]), "10000000000 3 1.50");
}

#[test]
fn strings_of_either_width_without_a_locale() {
    let (n, long) = (c"gr\u{fc}n".as_ptr() as u64, w("gr\u{fc}n \u{1F600}"));
    let l = long.as_ptr() as u64;
    assert_eq!(
        narrow("%s, %S, %ls, %hs", &[n, l, l, n]),
        "gr\u{fc}n, gr\u{fc}n \u{1F600}, gr\u{fc}n \u{1F600}, gr\u{fc}n"
    );
    assert_eq!(
        wide("<%-11s|%S|%hs|%.2s>", &[l, n, n, l]),
        "<gr\u{fc}n \u{1F600}     |gr\u{fc}n|gr\u{fc}n|gr>"
    );
    assert_eq!(wide("%c%C%hc", &[0xFC, 0x41, 0x42]), "\u{fc}AB");
    assert_eq!(narrow("%c%C", &[0x41, 0xFC]), "A\u{fc}");
}

#[test]
fn text_may_have_zeros_before_it() {
    let n = c" a".as_ptr() as u64;
    assert_eq!(narrow("<%04s|%-04s|%0*s|%01s>", &[n, n, 3, n, n]), "<00 a| a  |0 a| a>");
    assert_eq!(narrow("%0*s|%03c|%05.1s|%s", &[-4i64 as u64, n, 0x41, n, n]), " a  |00A|0000 | a");
    let long = w("\u{fc}");
    let l = long.as_ptr() as u64;
    assert_eq!(wide("<%04s|%04hs|%d>", &[l, n, 7]), "<000\u{fc}|00 a|7>");
}

#[test]
fn what_is_no_number_is_shown_as_windows_does() {
    let (indefinite, nan) = (0xFFF8_0000_0000_0000u64, 0x7FF8_0000_0000_0000u64);
    let (inf, two) = (f64::INFINITY.to_bits(), 2.0f64.to_bits());
    assert_eq!(narrow("%f|%f|%f", &[nan, indefinite, inf]), "nan|-nan(ind)|inf");
    assert_eq!(
        narrow("%12f|%-12f|%012f|%G", &[indefinite; 4]),
        "   -nan(ind)|-nan(ind)   |   -nan(ind)|-NAN(IND)"
    );
    // Other numbers beside it keep their form.
    let args = [indefinite, (-2.0f64).to_bits(), 8, 1, two, two];
    assert_eq!(narrow("%e|%08.2f|%0*.*f|%-8.1fx", &args), "-nan(ind)|-0002.00|000002.0|2.0     x");
    assert_eq!(narrow("%s %5.1f|%#010.0a", &[c"nan".as_ptr() as u64, two, two]), "nan   2.0|0x0001.p+1");
    assert_eq!(narrow("%a|%.1A", &[two, two]), "0x1.0000000000000p+1|0X1.0P+1");
    let text = w("-nan");
    assert_eq!(wide("%10f|%s", &[indefinite, text.as_ptr() as u64]), " -nan(ind)|-nan");
}

#[test]
fn nothing_fits_into_nothing() {
    let (mut narrow, mut wide) = (b'?', u32::from(b'?'));
    // SAFETY: no arguments, and nothing is written.
    unsafe {
        assert_eq!(ndw__vsnprintf(&mut narrow, 0, start(c""), list(&mut args(&[]))), 0);
        assert_eq!(ndw__vsnwprintf(&mut wide, 0, w("").as_ptr(), list(&mut args(&[]))), 0);
    }
    assert_eq!((narrow, wide), (b'?', u32::from(b'?')));
}

#[test]
fn the_argument_of_a_star_before_a_width_is_passed_over() {
    let mut narrow = [0; 8];
    // SAFETY: two numbers, and the buffer has the room told.
    let n = unsafe { ndw_vsnprintf(narrow.as_mut_ptr(), 8, start(c"%0*2d"), list(&mut args(&[1, 3]))) };
    assert_eq!((n, &narrow[..3]), (2, &b"03\0"[..]));
    let mut wide = [0; 8];
    // SAFETY: two numbers for the format's two, which is terminated, and the buffer has the 8 characters told.
    let n = unsafe { ndw_vswprintf(wide.as_mut_ptr(), 8, w("%*12d").as_ptr(), list(&mut args(&[1, 3]))) };
    assert_eq!(n, -1);
    // SAFETY: two numbers for the format's two, which is terminated, and the buffer has the 8 characters told.
    let n = unsafe { ndw_vswprintf(wide.as_mut_ptr(), 8, w("%0*2d").as_ptr(), list(&mut args(&[1, 3]))) };
    assert_eq!((n, &wide[..3]), (2, &w("03")[..]));
}

#[test]
fn bounded_functions_differ_in_what_they_do_with_too_much() {
    let text = c"abcd".as_ptr() as u64;
    let f = start(c"%s");
    let wf = w("%hs");
    type Bounded = unsafe extern "C" fn(*mut u8, usize, *const u8, VaList) -> c_int;
    let run = |function: Bounded, size: usize| {
        let mut buffer = [b'?'; 6];
        // SAFETY: the buffer has more room than is told.
        let n = unsafe { function(buffer.as_mut_ptr(), size, f, list(&mut args(&[text]))) };
        (n, buffer)
    };
    assert_eq!(run(ndw_vsnprintf, 3), (4, *b"ab\0???"));
    assert_eq!(run(ndw__vsnprintf, 3), (-1, *b"abc???"));
    assert_eq!(run(ndw__vsnprintf, 4), (4, *b"abcd??"));
    assert_eq!(run(ndw__vsnprintf, 5), (4, *b"abcd\0?"));
    assert_eq!(run(ndw__vsnprintf, 0), (-1, *b"??????"));
    assert_eq!(run(ndw_vsprintf_s, 4), (-1, *b"\0?????"));
    assert_eq!(run(ndw_vsprintf_s, 5), (4, *b"abcd\0?"));

    type WideBounded = unsafe extern "C" fn(*mut Wchar, usize, *const Wchar, VaList) -> c_int;
    let run = |function: WideBounded, size: usize| {
        let mut buffer = [u32::from(b'?'); 6];
        // SAFETY: the buffer has more room than is told.
        let n = unsafe { function(buffer.as_mut_ptr(), size, wf.as_ptr(), list(&mut args(&[text]))) };
        (n, buffer.map(|c| c as u8))
    };
    assert_eq!(run(ndw_vswprintf, 3), (-1, *b"ab\0???"));
    assert_eq!(run(ndw__vsnwprintf, 4), (4, *b"abcd??"));
    assert_eq!(run(ndw_vswprintf_s, 3), (-1, *b"\0?????"));

    // SAFETY: nothing is written.
    unsafe {
        assert_eq!(ndw__vscprintf(f, list(&mut args(&[text]))), 4);
        assert_eq!(ndw__vscwprintf(wf.as_ptr(), list(&mut args(&[text]))), 4);
        assert_eq!(ndw__vsnprintf(null_mut(), 0, f, list(&mut args(&[text]))), 4);
        assert_eq!(ndw_vprintf(std::ptr::null(), list(&mut args(&[]))), -1);
    }
}

#[test]
fn truncation_can_be_asked_for() {
    let text = c"abcd".as_ptr() as u64;
    for (size, count, result, expected) in [
        (4, TRUNCATE, -1, b"abc\0??"),
        (5, TRUNCATE, 4, b"abcd\0?"),
        (6, 2, -1, b"ab\0???"),
        (4, 4, -1, b"\0?????"),
    ] {
        let mut buffer = [b'?'; 6];
        // SAFETY: the buffer has more room than is told.
        let n = unsafe {
            ndw__vsnprintf_s(buffer.as_mut_ptr(), size, count, start(c"%s"), list(&mut args(&[text])))
        };
        assert_eq!((n, &buffer), (result, expected), "{size} {count}");
    }
    // SAFETY: nothing is written.
    unsafe {
        let (f, mut list_of) = (start(c"%s"), args(&[text]));
        assert_eq!(ndw__vsnprintf_s(null_mut(), 0, 0, f, list(&mut list_of)), 0);
        assert_eq!(ndw__vsnprintf_s(null_mut(), 4, 0, f, list(&mut args(&[text]))), -1);
    }
}

#[test]
fn bounded_functions_say_in_errno_what_is_wrong() {
    let text = c"abcd".as_ptr() as u64;
    let mut buffer = [b'?'; 6];
    let mut run = |to_nowhere: bool, size: usize, format: *const u8| {
        set_errno(0);
        let target = if to_nowhere { null_mut() } else { buffer.as_mut_ptr() };
        // SAFETY: the buffer has more room than is told.
        let n = unsafe { ndw_vsprintf_s(target, size, format, list(&mut args(&[text]))) };
        (n, std::io::Error::last_os_error().raw_os_error(), buffer[0])
    };
    let f = start(c"%s");
    assert_eq!(run(true, 6, f), (-1, Some(libc::EINVAL), b'?'));
    assert_eq!(run(false, 0, f), (-1, Some(libc::EINVAL), b'?'));
    assert_eq!(run(false, 6, f), (4, Some(0), b'a'));
    assert_eq!(run(false, 4, f), (-1, Some(libc::ERANGE), 0));
    assert_eq!(run(false, 6, f), (4, Some(0), b'a'));
    assert_eq!(run(false, 6, std::ptr::null()), (-1, Some(libc::EINVAL), 0));
}

#[test]
fn a_format_cannot_write_to_memory() {
    let mut written = 7;
    let stack = [(&raw mut written) as u64];
    let mut buffer = [b'?'; 4];
    // SAFETY: the arguments fit the formats.
    unsafe {
        assert_eq!(ndw_vsnprintf(buffer.as_mut_ptr(), 4, start(c"ab%n"), list(&mut args(&stack))), -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(ndw__vscwprintf(w("ab%n").as_ptr(), list(&mut args(&stack))), -1);
    }
    assert_eq!((written, buffer[0]), (7, b'?'));
}

#[test]
fn pointers_have_sixteen_digits() {
    assert_eq!(narrow("%p|%18p|", &[0xAB, 0]), "00000000000000AB|  0000000000000000|");
    assert_eq!(wide("%p", &[u64::MAX]), "FFFFFFFFFFFFFFFF");
}

#[test]
fn wide_and_narrow_output_mix_on_one_stream() {
    let mut ends = [0; 2];
    let name = w("w\u{fc}de");
    // SAFETY: a pipe of ours; the arguments fit the formats.
    let mut reader = unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        let stream = libc::fdopen(ends[1], c"w".as_ptr());
        let wide_args = [name.as_ptr() as u64];
        assert_eq!(ndw_vfwprintf(stream, w("1 %s\n").as_ptr(), list(&mut args(&wide_args))), 7);
        assert_eq!(ndw_vfprintf(stream, start(c"2 %d\n"), list(&mut args(&[2]))), 4);
        assert_eq!(ndw_vfwprintf(stream, w("3\n").as_ptr(), list(&mut args(&[]))), 2);
        libc::fclose(stream);
        File::from_raw_fd(ends[0])
    };
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "1 w\u{fc}de\n2 2\n3\n");
}
