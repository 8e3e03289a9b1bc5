//! `FormatMessage`: texts for Win32 and Winsock errors, NTSTATUS and ND statuses, and errnos; and the program's own.

use super::inserts::{Inserts, expand};
use super::status;
use super::*;
use crate::memory::heap::ndw_LocalAlloc;
use crate::text::{self, Wchar};
use std::ffi::{CStr, c_char, c_void};

/// `FORMAT_MESSAGE_ALLOCATE_BUFFER`.
pub const FORMAT_MESSAGE_ALLOCATE_BUFFER: u32 = 0x100;
/// `FORMAT_MESSAGE_IGNORE_INSERTS`.
pub const FORMAT_MESSAGE_IGNORE_INSERTS: u32 = 0x200;
/// `FORMAT_MESSAGE_FROM_STRING`.
pub const FORMAT_MESSAGE_FROM_STRING: u32 = 0x400;
/// `FORMAT_MESSAGE_FROM_HMODULE`.
pub const FORMAT_MESSAGE_FROM_HMODULE: u32 = 0x800;
/// `FORMAT_MESSAGE_FROM_SYSTEM`.
pub const FORMAT_MESSAGE_FROM_SYSTEM: u32 = 0x1000;
/// `FORMAT_MESSAGE_ARGUMENT_ARRAY`.
pub const FORMAT_MESSAGE_ARGUMENT_ARRAY: u32 = 0x2000;
/// `FORMAT_MESSAGE_MAX_WIDTH_MASK`: the bits that tell the width of a line; all of them: no width.
pub const FORMAT_MESSAGE_MAX_WIDTH_MASK: u32 = 0xFF;

fn win32_text(code: u32) -> Option<&'static str> {
    WIN32_TEXTS.iter().find(|(number, _)| *number == code).map(|(_, text)| *text)
}

/// The C library's text for an errno.
fn errno_text(errno: u32) -> Option<String> {
    let mut buffer = [0; 128];
    let errno = i32::try_from(errno).ok()?;
    // SAFETY: the POSIX form, which writes a terminated string into the buffer when it knows the number.
    unsafe {
        (libc::strerror_r(errno, buffer.as_mut_ptr(), buffer.len()) == 0)
            .then(|| CStr::from_ptr(buffer.as_ptr()).to_string_lossy().into_owned())
    }
}

/// The text for a number, whatever it is: a Win32 or Winsock error, an HRESULT that wraps one, an NTSTATUS or ND
/// status, or else an errno. The errors of this runtime come first where the numbers overlap.
pub fn describe(code: u32) -> Option<String> {
    let wrapped = (code >> 16 == 0x8007).then_some(code & 0xFFFF);
    win32_text(wrapped.unwrap_or(code))
        .or_else(|| status::find(code).map(|status| status.text))
        .map(str::to_owned)
        .or_else(|| errno_text(code))
}

/// The message that is asked for. `source` is the program's own text.
///
/// # Safety
/// `arguments` are those of the text.
unsafe fn format(
    flags: u32,
    source: impl FnOnce() -> Option<String>,
    code: u32,
    wide: bool,
    arguments: *mut c_void,
) -> Result<String, u32> {
    let width = flags & FORMAT_MESSAGE_MAX_WIDTH_MASK;
    let (text, inserts) = if flags & FORMAT_MESSAGE_FROM_STRING != 0 {
        let text = source().ok_or(ERROR_INVALID_PARAMETER)?;
        let array = flags & FORMAT_MESSAGE_ARGUMENT_ARRAY != 0;
        let ignored = flags & FORMAT_MESSAGE_IGNORE_INSERTS != 0;
        // SAFETY: the caller vouches for the arguments.
        (text, (!ignored).then(|| unsafe { Inserts::new(arguments, array, wide) }))
    } else if flags & (FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_FROM_HMODULE) != 0 {
        (describe(code).ok_or(ERROR_MR_MID_NOT_FOUND)? + ".\r\n", None)
    } else {
        return Err(ERROR_INVALID_PARAMETER);
    };
    match expand(&text, width, inserts)? {
        message if message.is_empty() => Err(ERROR_NO_WORK_DONE),
        message => Ok(message),
    }
}

/// Puts a message where the caller wants it: its length, 0 on errors.
///
/// # Safety
/// `buffer` has room for `size` units, or holds a pointer when the buffer is to be allocated.
unsafe fn deliver<T: Copy + Default>(
    message: Result<Vec<T>, u32>,
    flags: u32,
    buffer: *mut T,
    size: u32,
) -> u32 {
    let delivered = message.and_then(|message| {
        if buffer.is_null() {
            let allocated = flags & FORMAT_MESSAGE_ALLOCATE_BUFFER != 0;
            return Err(if allocated { ERROR_NOT_ENOUGH_MEMORY } else { ERROR_INVALID_PARAMETER });
        }
        let (target, room) = if flags & FORMAT_MESSAGE_ALLOCATE_BUFFER != 0 {
            let room = (size as usize).max(message.len() + 1);
            let block = ndw_LocalAlloc(0, room * size_of::<T>()).cast::<T>();
            // SAFETY: the caller passed the address of a pointer in the buffer's place.
            unsafe { buffer.cast::<*mut T>().write_unaligned(block) };
            if block.is_null() {
                return Err(ERROR_NOT_ENOUGH_MEMORY);
            }
            (block, room)
        } else {
            (buffer, size as usize)
        };
        // SAFETY: the target has that room.
        let stored = unsafe { text::store(&message, target, room) };
        if stored { Ok(message.len() as u32) } else { Err(ERROR_INSUFFICIENT_BUFFER) }
    });
    delivered.unwrap_or_else(|code| {
        set_last_error(code);
        0
    })
}

/// `FormatMessageW`: the program's own text, or a system message in English.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_FormatMessageW(
    flags: u32,
    source: *const c_void,
    code: u32,
    _language: u32,
    buffer: *mut Wchar,
    size: u32,
    arguments: *mut c_void,
) -> u32 {
    // SAFETY: the function's contract.
    unsafe {
        let message = format(flags, || text::string_from_wide(source.cast()), code, true, arguments);
        deliver(message.map(|message| text::to_wide(&message)), flags, buffer, size)
    }
}

/// `FormatMessageA`: the program's own text, or a system message in English.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_FormatMessageA(
    flags: u32,
    source: *const c_void,
    code: u32,
    _language: u32,
    buffer: *mut c_char,
    size: u32,
    arguments: *mut c_void,
) -> u32 {
    // SAFETY: the function's contract.
    unsafe {
        let message = format(flags, || text::string_from_narrow(source.cast()), code, false, arguments);
        deliver(message.map(String::into_bytes), flags, buffer.cast(), size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::heap::ndw_LocalFree;
    use crate::text::w;
    use std::ptr::{null, null_mut};

    const SYSTEM: u32 = FORMAT_MESSAGE_FROM_SYSTEM;

    fn message(flags: u32, code: u32, room: u32) -> (u32, String) {
        let mut buffer = [0u8; 128];
        set_last_error(0);
        // SAFETY: no more room told than there is.
        let length = unsafe {
            ndw_FormatMessageA(flags, null(), code, 0, buffer.as_mut_ptr().cast(), room, null_mut())
        };
        (length, String::from_utf8(buffer[..length as usize].to_vec()).unwrap())
    }

    #[test]
    fn every_kind_of_number_has_its_text() {
        assert_eq!(describe(87).as_deref(), Some("A parameter is wrong"));
        assert_eq!(describe(0x8007_0057), describe(87));
        assert_eq!(describe(10022).as_deref(), Some("An argument is not valid"));
        assert_eq!(describe(0xC000_0120).as_deref(), Some("The request was cancelled"));
        assert_eq!(describe(libc::ENOTCONN as u32).as_deref(), Some("Transport endpoint is not connected"));
        assert_eq!(describe(0xDEAD_BEEF), None);
        for status in status::STATUSES {
            assert!(describe(status.value).is_some());
        }
    }

    #[test]
    fn messages_end_like_those_of_windows() {
        assert_eq!(message(SYSTEM, 258, 128).1, "The wait timed out.\r\n");
        assert_eq!(message(SYSTEM | FORMAT_MESSAGE_MAX_WIDTH_MASK, 258, 128).1, "The wait timed out. ");
        assert_eq!(message(SYSTEM | 9, 258, 128).1, "The wait\r\ntimed\r\nout. ");
        assert_eq!(message(SYSTEM, 258, 22).0, 21);
        for (flags, code, room, error) in [
            (SYSTEM, 258, 21, ERROR_INSUFFICIENT_BUFFER),
            (SYSTEM, 0xDEAD_BEEF, 128, ERROR_MR_MID_NOT_FOUND),
            (0, 258, 128, ERROR_INVALID_PARAMETER),
            (FORMAT_MESSAGE_FROM_STRING, 258, 128, ERROR_INVALID_PARAMETER),
        ] {
            assert_eq!(message(flags, code, room).0, 0);
            assert_eq!(last_error(), error);
        }
    }

    #[test]
    fn the_buffer_can_be_allocated() {
        let mut allocated: *mut Wchar = null_mut();
        let target = (&raw mut allocated).cast();
        let flags = SYSTEM | FORMAT_MESSAGE_ALLOCATE_BUFFER;
        // SAFETY: the address of a pointer, as the flag demands; the block is freed once.
        unsafe {
            let length = ndw_FormatMessageW(flags, null(), 0xC000_0236, 0, target, 0, null_mut());
            let message = text::string_from_wide(allocated).unwrap();
            assert_eq!(
                (length as usize, &message[..]),
                (message.len(), "The peer refused the connection.\r\n")
            );
            assert!(ndw_LocalFree(allocated.cast()).is_null());
            // The size is the least one then.
            ndw_FormatMessageW(flags, null(), 87, 0, target, 1000, null_mut());
            allocated.add(999).write(0);
            assert!(ndw_LocalFree(allocated.cast()).is_null());
            assert_eq!(ndw_FormatMessageW(flags, null(), 87, 0, null_mut(), 0, null_mut()), 0);
            assert_eq!(last_error(), ERROR_NOT_ENOUGH_MEMORY);
            assert_eq!(ndw_FormatMessageW(SYSTEM, null(), 87, 0, null_mut(), 9, null_mut()), 0);
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
        }
    }

    #[test]
    fn texts_of_the_program_in_either_width() {
        const STRING: u32 = FORMAT_MESSAGE_FROM_STRING | FORMAT_MESSAGE_ARGUMENT_ARRAY;
        let (name, number) = (w("w\u{fc}rfel"), 7u64);
        let arguments = [name.as_ptr() as u64, number];
        let mut wide = [0; 64];
        // SAFETY: the texts are terminated and fit their arguments.
        unsafe {
            let list = arguments.as_ptr().cast_mut().cast();
            let length = ndw_FormatMessageW(
                STRING,
                w("%1: %2!03d!%n").as_ptr().cast(),
                0,
                0,
                wide.as_mut_ptr(),
                64,
                list,
            );
            assert_eq!(text::from_wide(&wide[..length as usize]), "w\u{fc}rfel: 007\r\n");
            let mut narrow = [0u8; 64];
            let target = narrow.as_mut_ptr().cast();
            let length = ndw_FormatMessageA(STRING, c"%1!S!".as_ptr().cast(), 0, 0, target, 64, list);
            assert_eq!(&narrow[..length as usize], "w\u{fc}rfel".as_bytes());
            // Nothing is a failure, and leaves the buffer alone.
            for (text, error) in
                [(c"", ERROR_NO_WORK_DONE), (c"%0", ERROR_NO_WORK_DONE), (c"a%", ERROR_INVALID_PARAMETER)]
            {
                assert_eq!(ndw_FormatMessageA(STRING, text.as_ptr().cast(), 0, 0, target, 64, list), 0);
                assert_eq!((last_error(), narrow[0]), (error, b'w'), "{text:?}");
            }
            // An insert needs arguments, unless inserts are ignored.
            let text = c"%1".as_ptr().cast();
            assert_eq!(ndw_FormatMessageA(STRING, text, 0, 0, target, 64, null_mut()), 0);
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
            let ignoring = STRING | FORMAT_MESSAGE_IGNORE_INSERTS;
            assert_eq!(ndw_FormatMessageA(ignoring, text, 0, 0, target, 64, null_mut()), 2);
            assert_eq!(&narrow[..3], b"%1\0");
        }
    }
}
