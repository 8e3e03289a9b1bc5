//! Wide characters from streams: `fgetwc`, `ungetwc`, `fgetws`. The streams stay narrow, as for wide output, and are read as UTF-8.

use super::set_errno;
use crate::cancellation::put_off;
use crate::text::{self, Wchar};
use libc::FILE;
use std::cell::Cell;
use std::ffi::c_int;
use std::ptr::null_mut;

/// `WEOF`.
const END: u32 = u32::MAX;
/// For bytes that are no character.
const REPLACEMENT: Wchar = char::REPLACEMENT_CHARACTER as Wchar;

unsafe extern "C" {
    fn flockfile(stream: *mut FILE);
    fn funlockfile(stream: *mut FILE);
    fn getc_unlocked(stream: *mut FILE) -> c_int;
    fn fwide(stream: *mut FILE, mode: c_int) -> c_int;
    fn fgetwc(stream: *mut FILE) -> u32;
    fn ungetwc(character: u32, stream: *mut FILE) -> u32;
}

/// A stream that no other thread uses meanwhile.
pub(super) struct Locked {
    stream: *mut FILE,
    /// The last character that was read, and its bytes.
    last: Wchar,
    bytes: [u8; 4],
    length: usize,
}

impl Locked {
    /// # Safety
    /// The stream is open, and stays so.
    pub(super) unsafe fn new(stream: *mut FILE) -> Locked {
        // SAFETY: open, as the caller promises.
        unsafe { flockfile(stream) };
        Locked { stream, last: 0, bytes: [0; 4], length: 0 }
    }

    /// The next byte; `None` at the end, and when an error hinders.
    fn byte(&mut self) -> Option<u8> {
        // SAFETY: open, as who made this has promised, and locked by this thread.
        u8::try_from(unsafe { getc_unlocked(self.stream) }).ok()
    }

    /// Gives a byte back, which is read next.
    fn give_back(&mut self, byte: u8) -> bool {
        // SAFETY: open, as who made this has promised. Its lock may be taken again by this thread.
        unsafe { libc::ungetc(byte.into(), self.stream) >= 0 }
    }

    /// Whether code that knows nothing of this library has read wide characters from it: then the C library does so.
    fn is_wide(&self) -> bool {
        // SAFETY: open, as who made this has promised. 0 asks only.
        unsafe { fwide(self.stream, 0) > 0 }
    }

    /// The next character; `None` at the end.
    pub(super) fn character(&mut self) -> Option<Wchar> {
        self.length = 0;
        let character = if self.is_wide() {
            // SAFETY: open, as who made this has promised.
            Some(unsafe { fgetwc(self.stream) }).filter(|character| *character != END)
        } else {
            self.decoded()
        };
        self.last = character?;
        character
    }

    /// The same by UTF-8.
    fn decoded(&mut self) -> Option<Wchar> {
        let first = self.byte()?;
        (self.bytes[0], self.length) = (first, 1);
        let length = match first {
            0..0x80 => return Some(first.into()),
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => return Some(REPLACEMENT),
        };
        while self.length < length {
            match self.byte() {
                Some(byte @ 0x80..=0xBF) => self.bytes[self.length] = byte,
                other => {
                    other.map(|byte| self.give_back(byte));
                    return Some(REPLACEMENT);
                }
            }
            self.length += 1;
        }
        let character = std::str::from_utf8(&self.bytes[..length]).ok().and_then(|text| text.chars().next());
        Some(character.map_or(REPLACEMENT, Wchar::from))
    }

    /// Gives the character back that was read last, as it was if it is none: it is read next.
    pub(super) fn give_back_last(&mut self) {
        if self.length == 0 {
            // SAFETY: open, as who made this has promised.
            unsafe { ungetwc(self.last, self.stream) };
            return;
        }
        let bytes = self.bytes;
        bytes[..self.length].iter().rev().for_each(|byte| {
            self.give_back(*byte);
        });
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: locked by this thread once more than it was unlocked.
        unsafe { funlockfile(self.stream) };
    }
}

/// `fgetwc`: the next character, `WEOF` at the end.
///
/// # Safety
/// `stream` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_fgetwc(stream: *mut FILE) -> u32 {
    if stream.is_null() {
        set_errno(libc::EINVAL);
        return END;
    }
    // SAFETY: open, as this function asks.
    put_off(|| unsafe { Locked::new(stream) }.character().unwrap_or(END))
}

/// `ungetwc`: gives a character back, which is read next; `WEOF` if that cannot be done.
///
/// # Safety
/// `stream` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_ungetwc(character: u32, stream: *mut FILE) -> u32 {
    if stream.is_null() {
        set_errno(libc::EINVAL);
        return END;
    }
    put_off(|| {
        // SAFETY: open, as this function asks.
        let mut stream = unsafe { Locked::new(stream) };
        if stream.is_wide() {
            // SAFETY: open, as this function asks.
            return unsafe { ungetwc(character, stream.stream) };
        }
        let Some(scalar) = char::from_u32(character) else { return END };
        let given = scalar.encode_utf8(&mut [0; 4]).bytes().rev().all(|byte| stream.give_back(byte));
        if given { character } else { END }
    })
}

/// `fgetws`: up to the end of the line, or as many characters as there is room for, and a NUL. NULL at the end of the stream, which
/// leaves the buffer alone.
///
/// # Safety
/// `buffer` is NULL or has room for `size` characters; `stream` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_fgetws(buffer: *mut Wchar, size: c_int, stream: *mut FILE) -> *mut Wchar {
    let room = usize::try_from(size).unwrap_or(0);
    // SAFETY: NULL or so much room, as this function asks.
    let target = unsafe { text::cells(buffer, room) }.filter(|target| !target.is_empty());
    let Some((target, false)) = target.map(|target| (target, stream.is_null())) else {
        set_errno(libc::EINVAL);
        return null_mut();
    };
    // SAFETY: open, as this function asks.
    let length = put_off(|| line(unsafe { Locked::new(stream) }, target));
    if length.is_some() { buffer } else { null_mut() }
}

/// Reads a line, as far as there is room for it and a NUL; its length, `None` at the end of the stream.
fn line(mut stream: Locked, target: &[Cell<Wchar>]) -> Option<usize> {
    let mut length = 0;
    while length + 1 < target.len() {
        let Some(character) = stream.character() else {
            if length == 0 {
                return None;
            }
            break;
        };
        target[length].set(character);
        length += 1;
        if character == Wchar::from(b'\n') {
            break;
        }
    }
    target[length].set(0);
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out of a stream of these bytes.
    fn with_stream<R>(content: &[u8], use_it: impl FnOnce(*mut FILE) -> R) -> R {
        let mut content = content.to_vec();
        // SAFETY: bytes that stay until the stream is closed.
        unsafe {
            let stream = libc::fmemopen(content.as_mut_ptr().cast(), content.len(), c"r".as_ptr());
            assert!(!stream.is_null());
            let result = use_it(stream);
            libc::fclose(stream);
            result
        }
    }

    fn line(stream: *mut FILE, size: c_int) -> Option<Vec<Wchar>> {
        let mut buffer = [7; 16];
        assert!(size <= 16);
        // SAFETY: there is so much room, and the stream is open.
        let read = unsafe { ndw_fgetws(buffer.as_mut_ptr(), size, stream) };
        if read.is_null() {
            assert_eq!(buffer[0], 7, "the buffer is left alone");
            return None;
        }
        assert!(std::ptr::eq(read, buffer.as_ptr()));
        Some(buffer.iter().copied().take_while(|c| *c != 0).collect())
    }

    fn text(text: &str) -> Option<Vec<Wchar>> {
        Some(text::to_wide(text))
    }

    #[test]
    fn wide_and_narrow_input_mix_on_one_stream() {
        with_stream("h\u{e9}llo\n\u{1F600}x 5 end".as_bytes(), |stream| {
            // SAFETY: an open stream.
            unsafe {
                assert_eq!(line(stream, 16), text("h\u{e9}llo\n"));
                assert_eq!((ndw_fgetwc(stream), libc::fgetc(stream)), (0x1F600, i32::from(b'x')));
                assert_eq!(ndw_fgetwc(stream), b' '.into());
                assert_eq!(ndw_ungetwc(0x1F600, stream), 0x1F600);
                assert_eq!(ndw_fgetwc(stream), 0x1F600, "what was given back");
                assert_eq!((line(stream, 3), line(stream, 1)), (text("5 "), text("")));
                assert_eq!((line(stream, 16), line(stream, 16)), (text("end"), None));
                assert_eq!(ndw_fgetwc(stream), END);
                assert_ne!(libc::feof(stream), 0);
            }
        });
    }

    #[test]
    fn bytes_that_are_no_character_are_read_as_a_replacement() {
        let replaced = |bytes: &[u8]| with_stream(bytes, |stream| line(stream, 16));
        assert_eq!(replaced(b"\xFFa\xC3b"), text("\u{FFFD}a\u{FFFD}b"));
        assert_eq!(replaced(b"\xED\xA0\x80|\xE2\x82"), text("\u{FFFD}|\u{FFFD}"));
    }

    #[test]
    fn a_stream_that_is_wide_already_stays_so() {
        // SAFETY: a file and a stream of the test's.
        unsafe {
            let file = libc::memfd_create(c"wide".as_ptr(), 0);
            assert_eq!(libc::write(file, c"ab".as_ptr().cast(), 2), 2);
            assert_eq!(libc::lseek(file, 0, libc::SEEK_SET), 0);
            let stream = libc::fdopen(file, c"r".as_ptr());
            assert!(fwide(stream, 1) > 0);
            assert_eq!((ndw_fgetwc(stream), ndw_ungetwc(b'a'.into(), stream)), (97, 97));
            assert_eq!(line(stream, 16), text("ab"));
            libc::fclose(stream);
        }
    }

    #[test]
    fn what_is_no_stream_and_no_buffer_is_refused() {
        // SAFETY: NULL, and an open stream.
        unsafe {
            assert_eq!((ndw_fgetwc(null_mut()), ndw_ungetwc(65, null_mut())), (END, END));
            with_stream(b"ab", |stream| {
                assert!(ndw_fgetws(null_mut(), 5, stream).is_null());
                assert_eq!((line(stream, 0), line(stream, -1), line(null_mut(), 5)), (None, None, None));
                assert_eq!((ndw_ungetwc(END, stream), ndw_ungetwc(0xD800, stream)), (END, END));
                assert_eq!(line(stream, 16), text("ab"));
            });
        }
    }
}
