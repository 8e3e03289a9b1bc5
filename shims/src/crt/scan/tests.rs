use super::*;
use crate::text::{self, w};
use std::ffi::CStr;
use std::ptr::null_mut;

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
        assert_eq!(ndw_vswscanf_s(Text::terminated(&text), Text::terminated(&format), list.list()), 2);
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
        let format = Text::terminated(&format);
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
        let [text, format] = [&text, &format].map(|text| Text::terminated(text));
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
        assert_eq!(ndw_vsscanf_s(Text::NULL, c"%d".into(), none.list()), EOF);
        assert_eq!(ndw_vsscanf_s(c"1".into(), Text::NULL, none.list()), EOF);
    }
}

/// What comes of a stream of these bytes, which are a file's.
fn with_stream<R>(content: &[u8], use_it: impl FnOnce(*mut FILE) -> R) -> R {
    // SAFETY: a file and a stream of the test's, and bytes that are there.
    unsafe {
        let file = libc::memfd_create(c"scanned".as_ptr(), libc::MFD_CLOEXEC);
        assert_eq!(libc::write(file, content.as_ptr().cast(), content.len()), content.len() as isize);
        assert_eq!(libc::lseek(file, 0, libc::SEEK_SET), 0);
        let stream = libc::fdopen(file, c"r".as_ptr());
        assert!(!stream.is_null());
        let result = use_it(stream);
        libc::fclose(stream);
        result
    }
}

fn read(stream: *mut FILE, format: &CStr, values: &[u64]) -> c_int {
    // SAFETY: an open stream, a terminated format, and a place for each conversion.
    unsafe { ndw_vfscanf(stream, format.into(), Arguments::on_stack(values).list()) }
}

fn read_wide(stream: *mut FILE, format: &str, values: &[u64]) -> c_int {
    let format = w(format);
    // SAFETY: an open stream, a terminated format, and a place for each conversion.
    unsafe { ndw_vfwscanf(stream, Text::terminated(&format), Arguments::on_stack(values).list()) }
}

fn scanned_wide(text: &str, format: &str, values: &[u64]) -> c_int {
    let (text, format) = (w(text), w(format));
    let [text, format] = [&text, &format].map(|text| Text::terminated(text));
    // SAFETY: terminated texts, and a place for each conversion.
    unsafe { ndw_vswscanf(text, format, Arguments::on_stack(values).list()) }
}

fn next(stream: *mut FILE) -> c_int {
    // SAFETY: an open stream.
    unsafe { libc::fgetc(stream) }
}

#[test]
fn bytes_of_zero_are_stored_as_they_are_read() {
    let mut buffer = [b'?'; 8];
    let at = buffer.as_mut_ptr() as u64;
    with_stream(b"\0a\0b\0 x\0y z", |stream| {
        assert_eq!((read(stream, c"%c", &[at]), &buffer[..2]), (1, &b"\0?"[..]));
        assert_eq!((read(stream, c"%4c", &[at]), &buffer[..5]), (1, &b"a\0b\0?"[..]));
        assert_eq!((read(stream, c"%s", &[at]), &buffer[..5]), (1, &b"x\0y\0?"[..]));
        assert_eq!((read(stream, c" %[^\n]", &[at]), &buffer[..3]), (1, &b"z\0y"[..]));
    });
    // With a size, and by a wide function.
    let mut wide = [9 as Wchar; 4];
    let wide_at = wide.as_mut_ptr() as u64;
    with_stream(b"\0\0", |stream| {
        // SAFETY: an open stream, and a place with a size.
        let count = unsafe { ndw_vfscanf_s(stream, c"%c".into(), Arguments::on_stack(&[at, 1]).list()) };
        assert_eq!((count, buffer[0]), (1, 0));
        assert_eq!((read_wide(stream, "%c", &[wide_at]), wide), (1, [0, 9, 9, 9]));
    });
}

#[test]
fn wide_functions_read_characters_and_leave_whole_ones() {
    let (mut wide, mut number) = ([9 as Wchar; 4], 7i32);
    let [at, number_at] = [wide.as_mut_ptr() as u64, (&raw mut number) as u64];
    assert_eq!((scanned_wide("\u{e9}", "%c", &[at]), wide), (1, [0xE9, 9, 9, 9]));
    assert_eq!((scanned_wide("\u{e9}\u{1F600}x", "%2lc", &[at]), wide), (1, [0xE9, 0x1F600, 9, 9]));
    assert_eq!((scanned_wide("x\u{e4}\u{e9}", "%[^\u{e9}]", &[at]), wide), (1, [0x78, 0xE4, 0, 9]));
    assert_eq!((scanned_wide("\u{e4}\u{f6}\u{fc}", "%2s", &[at]), wide), (1, [0xE4, 0xF6, 0, 9]));
    with_stream("\u{e9}\u{e8}\u{e4}\u{f6} 5\u{fc}\u{1F600}".as_bytes(), |stream| {
        assert_eq!((read_wide(stream, "%c", &[at]), wide[..2].to_vec()), (1, vec![0xE9, 0xF6]));
        assert_eq!((read_wide(stream, "%1[\u{e8}-\u{ea}]", &[at]), wide[..2].to_vec()), (1, vec![0xE8, 0]));
        assert_eq!(
            (read_wide(stream, "%ls %n", &[at, number_at]), wide[..3].to_vec(), number),
            (1, vec![0xE4, 0xF6, 0], 3)
        );
        // What does not match is whole for whoever reads next, by whichever function.
        assert_eq!((read_wide(stream, "%d", &[number_at]), number), (1, 5));
        assert_eq!((read_wide(stream, "%d", &[number_at]), number), (0, 5));
        assert_eq!((next(stream), next(stream)), (0xC3, 0xBC));
        assert_eq!(read_wide(stream, "x", &[]), 0);
        assert_eq!((read_wide(stream, "%c", &[at]), wide[0]), (1, 0x1F600));
        assert_eq!((read_wide(stream, "%c", &[at]), next(stream)), (EOF, EOF));
    });
    // Nor is what is no character changed by being looked at.
    with_stream(b"\xE4x", |stream| {
        assert_eq!(
            (read_wide(stream, "%d", &[number_at]), next(stream), next(stream)),
            (0, 0xE4, b'x'.into())
        );
    });
}

#[test]
fn a_stream_that_is_wide_already_is_read_by_formats() {
    unsafe extern "C" {
        fn fwide(stream: *mut FILE, mode: c_int) -> c_int;
    }
    let (mut wide, mut number) = ([9 as Wchar; 4], 7i32);
    let [at, number_at] = [wide.as_mut_ptr() as u64, (&raw mut number) as u64];
    with_stream(b"ab 5x", |stream| {
        // SAFETY: an open stream.
        assert!(unsafe { fwide(stream, 1) } > 0);
        assert_eq!((read_wide(stream, "%s%d", &[at, number_at]), number), (2, 5));
        assert_eq!((read_wide(stream, "%c", &[at]), wide[0]), (1, b'x'.into()));
    });
}

#[test]
fn the_bytes_of_a_narrow_format_are_what_they_are() {
    let mut buffer = [b'?'; 4];
    let at = buffer.as_mut_ptr() as u64;
    with_stream(b"\xE4\xF6\xFC", |stream| {
        assert_eq!((read(stream, c"%[\xE4\xF6]", &[at]), &buffer), (1, b"\xE4\xF6\0?"));
        // SAFETY: an open stream, and a place with a size.
        let count = unsafe { ndw_vfscanf_s(stream, c"%[\xFC]".into(), Arguments::on_stack(&[at, 4]).list()) };
        assert_eq!((count, &buffer[..2]), (1, &b"\xFC\0"[..]));
    });
}

#[test]
fn a_width_of_zero_is_none_and_none_is_without_bound() {
    let mut buffer = [b'?'; 4];
    let at = buffer.as_mut_ptr() as u64;
    assert_eq!((scanned(c"ab", c"%0c", &[at, 4]), &buffer), (1, b"a???"));
    for width in ["18446744073709551615", "2147483648", "99999999999999999999999"] {
        let format = std::ffi::CString::new(format!("%{width}c")).unwrap();
        set_errno(0);
        assert_eq!(scanned(c"ab", &format, &[at, 4]), EOF, "{width}");
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINVAL));
    }
}

#[test]
fn a_number_in_hexadecimal_may_have_letters_behind_it() {
    let mut real = 0.0f32;
    assert_eq!((scanned(c"0x1.8p1s", c"%as", &[(&raw mut real) as u64]), real), (1, 3.0));
}

#[test]
fn memory_that_is_allocated_has_the_width_that_is_asked_for() {
    let mut allocated: *mut Wchar = null_mut();
    let places = [(&raw mut allocated) as u64];
    // SAFETY: terminated texts, a place for the pointer; the memory is freed once.
    unsafe {
        let mut values = Arguments::on_stack(&places);
        assert_eq!(ndw_vsscanf(c"word".into(), c"%mls".into(), values.list()), 1);
        assert_eq!(text::string_from_wide(allocated).as_deref(), Some("word"));
        libc::free(allocated.cast());
    }
}

#[test]
fn numbers_of_a_wide_stream_end_where_they_end_elsewhere() {
    let (mut ints, mut reals, mut tail) = ([7i32; 4], [0.0f64; 4], 0 as Wchar);
    let int_at = |at: usize, ints: &mut [i32; 4]| (&raw mut ints[at]) as u64;
    with_stream(b"-12x0x1Fg 017 0x10,+9;1234", |stream| {
        let values = [int_at(0, &mut ints), (&raw mut tail) as u64, int_at(1, &mut ints)];
        assert_eq!(
            (read_wide(stream, "%d%c%x", &values), ints[..2].to_vec(), tail),
            (3, vec![-12, 31], b'x'.into())
        );
        let values = [int_at(0, &mut ints), int_at(1, &mut ints), int_at(2, &mut ints), int_at(3, &mut ints)];
        assert_eq!((read_wide(stream, "g%i%i,%i;%2d", &values), ints), (4, [15, 16, 9, 12]));
        assert_eq!((read_wide(stream, "%*d%n", &values), ints[0], next(stream)), (0, 2, EOF));
    });
    let real_at = |at: usize, reals: &mut [f64; 4]| (&raw mut reals[at]) as u64;
    with_stream(b"1.5e-1 -inf 0x1p4 .5.5 e", |stream| {
        let values =
            [real_at(0, &mut reals), real_at(1, &mut reals), real_at(2, &mut reals), real_at(3, &mut reals)];
        assert_eq!(read_wide(stream, "%lf%lf%lf%lf", &values), 4);
        assert_eq!(reals, [0.15, f64::NEG_INFINITY, 16.0, 0.5]);
        assert_eq!((read_wide(stream, "%*f%lf", &values), next(stream)), (0, b'e'.into()));
    });
    let mut large = 0i64;
    with_stream(b"123456789012%", |stream| {
        assert_eq!((read_wide(stream, "%I64d%%", &[(&raw mut large) as u64]), large), (1, 123_456_789_012));
        assert_eq!(read_wide(stream, "%d", &[(&raw mut large) as u64]), EOF);
    });
}
