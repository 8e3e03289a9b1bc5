use super::*;
use crate::crt::va_list::Arguments;
use crate::text::w;
use std::ptr::null;

// The entry points, which have no names in Rust.
unsafe extern "C" {
    fn ndw_StringCchCopyA(to: *mut u8, size: usize, from: *const u8) -> i32;
    fn ndw_StringCbCopyW(to: *mut Wchar, size: usize, from: *const Wchar) -> i32;
    fn ndw_StringCbCopyNW(to: *mut Wchar, size: usize, from: *const Wchar, count: usize) -> i32;
    fn ndw_StringCchCopyExA(
        to: *mut u8,
        size: usize,
        from: *const u8,
        end: *mut *mut u8,
        remaining: *mut usize,
        flags: u32,
    ) -> i32;
    fn ndw_StringCchCatExA(
        to: *mut u8,
        size: usize,
        from: *const u8,
        end: *mut *mut u8,
        remaining: *mut usize,
        flags: u32,
    ) -> i32;
    fn ndw_StringCbCopyExW(
        to: *mut Wchar,
        size: usize,
        from: *const Wchar,
        end: *mut *mut Wchar,
        remaining: *mut usize,
        flags: u32,
    ) -> i32;
    fn ndw_StringCchVPrintfA(to: *mut u8, size: usize, format: *const u8, arguments: VaList) -> i32;
    fn ndw_StringCbVPrintfExA(
        to: *mut u8,
        size: usize,
        end: *mut *mut u8,
        remaining: *mut usize,
        flags: u32,
        format: *const u8,
        arguments: VaList,
    ) -> i32;
    fn ndw_StringCbLengthW(text: *const Wchar, size: usize, result: *mut usize) -> i32;
    fn ndw_StringCchLengthW(text: *const Wchar, size: usize, result: *mut usize) -> i32;
    fn ndw_StringCchLengthA(text: *const u8, size: usize, result: *mut usize) -> i32;
}

fn on(begin: &[u8], f: impl FnOnce(Target<u8>) -> i32) -> (i32, [u8; 6]) {
    let mut buffer = *b"??????";
    buffer[..begin.len()].copy_from_slice(begin);
    // SAFETY: the buffer has more than 4 characters.
    let status = f(unsafe { Target::new(buffer.as_mut_ptr(), 4, false) });
    (status, buffer)
}

#[test]
fn what_does_not_fit_is_cut_and_told() {
    // SAFETY: `on` gives a target of 4 characters in 6, and the sources are terminated or as long as told.
    unsafe {
        assert_eq!(on(b"", |to| copy(to, c"abc".as_ptr().cast())), (S_OK, *b"abc\0??"));
        assert_eq!(on(b"", |to| copy(to, c"abcd".as_ptr().cast())), (INSUFFICIENT, *b"abc\0??"));
        assert_eq!(on(b"", |to| copy_n(to, b"abcdef".as_ptr(), 3)), (S_OK, *b"abc\0??"));
        assert_eq!(on(b"", |to| copy_n(to, c"a".as_ptr().cast(), 3)), (S_OK, *b"a\0????"));
        assert_eq!(on(b"a\0", |to| cat(to, c"bc".as_ptr().cast())), (S_OK, *b"abc\0??"));
        assert_eq!(on(b"ab\0", |to| cat(to, c"cd".as_ptr().cast())), (INSUFFICIENT, *b"abc\0??"));
        assert_eq!(on(b"a\0", |to| cat_n(to, b"bcd".as_ptr(), 2)), (S_OK, *b"abc\0??"));
    }
}

#[test]
fn wrong_arguments_leave_an_empty_string_or_the_buffer_alone() {
    // SAFETY: `on` gives a target of 4 characters in 6; sources are NULL, terminated, or of a count that is refused; the other
    // sizes are refused, too.
    unsafe {
        assert_eq!(on(b"", |to| copy(to, null())), (INVALID, *b"\0?????"));
        assert_eq!(on(b"", |to| copy_n(to, b"a".as_ptr(), MAX_CCH)), (INVALID, *b"\0?????"));
        // No NUL in the buffer: nothing to append to.
        assert_eq!(on(b"", |to| cat(to, c"a".as_ptr().cast())), (INVALID, *b"??????"));
        let mut buffer = *b"?";
        for size in [0, MAX_CCH + 1] {
            assert_eq!(ndw_StringCchCopyA(buffer.as_mut_ptr(), size, c"".as_ptr().cast()), INVALID);
            assert_eq!(&buffer, b"?");
        }
        assert_eq!(ndw_StringCchCopyA(null_mut(), 4, c"".as_ptr().cast()), INVALID);
    }
}

#[test]
fn flags_say_what_becomes_of_the_rest() {
    let run = |size: usize, flags: u32, begin: &[u8], append: bool, source: *const u8| {
        let mut buffer = *b"??????";
        buffer[..begin.len()].copy_from_slice(begin);
        let (mut end, mut left) = (null_mut(), 99);
        let at = buffer.as_mut_ptr();
        // SAFETY: the buffer has 6 characters, no test tells a larger size, and the sources are NULL or terminated.
        let status = unsafe {
            if append {
                ndw_StringCchCatExA(at, size, source, &mut end, &mut left, flags)
            } else {
                ndw_StringCchCopyExA(at, size, source, &mut end, &mut left, flags)
            }
        };
        let end = (!end.is_null()).then(|| end as usize - at as usize);
        (status, buffer, end, left)
    };
    let (ab, abcdef) = (c"ab".as_ptr().cast(), c"abcdef".as_ptr().cast());
    assert_eq!(run(4, 0, b"", false, ab), (S_OK, *b"ab\0???", Some(2), 2));
    assert_eq!(run(4, 0, b"", false, abcdef), (INSUFFICIENT, *b"abc\0??", Some(3), 1));
    assert_eq!(run(4, IGNORE_NULLS, b"", false, null()), (S_OK, *b"\0?????", Some(0), 4));
    assert_eq!(run(5, FILL_BEHIND_NULL | 0x7E, b"", false, ab), (S_OK, *b"ab\0~~?", Some(2), 3));
    assert_eq!(run(4, FILL_ON_FAILURE | 0x7E, b"", false, abcdef), (INSUFFICIENT, *b"~~~\0??", Some(3), 1));
    assert_eq!(run(4, FILL_ON_FAILURE, b"", false, abcdef), (INSUFFICIENT, *b"\0\0\0\0??", Some(0), 4));
    assert_eq!(run(4, NULL_ON_FAILURE, b"", false, abcdef), (INSUFFICIENT, *b"\0bc\0??", Some(0), 4));
    assert_eq!(run(4, NO_TRUNCATION, b"", false, abcdef), (INSUFFICIENT, *b"\0bc\0??", Some(0), 4));
    // What was there before stays.
    assert_eq!(run(4, NO_TRUNCATION, b"x\0", true, abcdef), (INSUFFICIENT, *b"x\0b\0??", Some(1), 3));
    assert_eq!(run(4, 0x2000, b"", false, ab), (INVALID, *b"\0?????", None, 99));
    // No room at all is fine for nothing, and where NULL may be.
    // SAFETY: there is no buffer, and the size of 0 says so; the sources are NULL or terminated.
    unsafe {
        let ex = |source| ndw_StringCchCopyExA(null_mut(), 0, source, null_mut(), null_mut(), IGNORE_NULLS);
        assert_eq!((ex(c"".as_ptr().cast()), ex(null()), ex(ab)), (S_OK, S_OK, INVALID));
    }
}

#[test]
fn sizes_in_bytes_count_half_characters() {
    let mut buffer = [9 as Wchar; 4];
    let (mut end, mut left) = (null_mut(), 0);
    // SAFETY: the buffer has 16 bytes, no call is told of more, and the sources are terminated.
    unsafe {
        assert_eq!(ndw_StringCbCopyW(buffer.as_mut_ptr(), 12, w("abc").as_ptr()), INSUFFICIENT);
        assert_eq!(buffer, [97, 98, 0, 9]);
        let at = buffer.as_mut_ptr();
        assert_eq!(ndw_StringCbCopyExW(at, 14, w("a").as_ptr(), &mut end, &mut left, 0), S_OK);
        assert_eq!((left, end), (10, at.add(1)));
        assert_eq!(ndw_StringCbCopyNW(at, 16, w("abc").as_ptr(), 9), S_OK);
        assert_eq!(buffer, [97, 98, 0, 9]);
        let mut length = 7;
        assert_eq!((ndw_StringCbLengthW(at, 16, &mut length), length), (S_OK, 8));
        assert_eq!((ndw_StringCchLengthW(at, 2, &mut length), length), (INVALID, 0));
        assert_eq!(ndw_StringCchLengthW(null(), 2, &mut length), INVALID);
        assert_eq!(ndw_StringCchLengthA(c"ab".as_ptr().cast(), 3, null_mut()), S_OK);
    }
}

#[test]
fn formatted_text_keeps_to_its_buffer() {
    let mut buffer = [1u8; 6];
    let print = |buffer: *mut u8, size: usize, format: *const u8| {
        let values = [1234567u64];
        // SAFETY: the buffer is NULL, which is refused, or has the size told; the format is NULL, or terminated and takes the
        // one number at most.
        unsafe { ndw_StringCchVPrintfA(buffer, size, format, Arguments::on_stack(&values).list()) }
    };
    assert_eq!(
        (print(buffer.as_mut_ptr(), 6, c"%I64d".as_ptr().cast()), &buffer),
        (INSUFFICIENT, b"12345\0")
    );
    assert_eq!((print(buffer.as_mut_ptr(), 6, c"".as_ptr().cast()), buffer[0]), (S_OK, 0));
    assert_eq!((print(buffer.as_mut_ptr(), 6, null()), buffer[0]), (INVALID, 0));
    assert_eq!(print(null_mut(), 6, c"x".as_ptr().cast()), INVALID);
    let mut left = 0;
    // SAFETY: the buffer has 6 bytes, `left` is a local, and the format takes no argument.
    unsafe {
        let mut none = Arguments::on_stack(&[]);
        let format = c"ab".as_ptr().cast();
        let end = null_mut();
        assert_eq!(
            ndw_StringCbVPrintfExA(buffer.as_mut_ptr(), 6, end, &mut left, 0, format, none.list()),
            S_OK
        );
    }
    assert_eq!((left, &buffer[..3]), (4, &b"ab\0"[..]));
}
