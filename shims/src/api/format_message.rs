//! `FormatMessage`: messages for Win32 and Winsock errors, NTSTATUS, ND statuses and errnos, and the program's own texts.

mod inserts;

use crate::error::*;
use crate::memory::heap::local::ndw_LocalAlloc;
use crate::text::{self, Wchar};
use inserts::{Inserts, expand};
use std::ffi::{c_char, c_void};

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
/// `FORMAT_MESSAGE_MAX_WIDTH_MASK`: the width of a line; all bits set: no width.
pub const FORMAT_MESSAGE_MAX_WIDTH_MASK: u32 = 0xFF;

/// The requested message. `source` is the program's own text.
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
        // SAFETY: the arguments are those of the text, as the caller promises; without that flag they are not looked at.
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

/// Differences between the two functions when there is no message or the buffer is too small.
trait Unit: Copy + Default {
    /// Whether a buffer that is too small gets what fits, and without a message the empty string.
    const LEAVES_TEXT: bool;
    /// Buffers and messages of this size and more are refused.
    const LIMIT: u32;
    /// The error for NULL in place of the pointer that is to be set.
    const NO_PLACE: u32;
}

impl Unit for Wchar {
    const LEAVES_TEXT: bool = true;
    const LIMIT: u32 = u32::MAX;
    const NO_PLACE: u32 = ERROR_INVALID_PARAMETER;
}

impl Unit for u8 {
    const LEAVES_TEXT: bool = false;
    const LIMIT: u32 = 0x8000;
    const NO_PLACE: u32 = ERROR_NOT_ENOUGH_MEMORY;
}

/// Makes a message and writes it to the caller's buffer. Returns its length, 0 on errors.
///
/// # Safety
/// `buffer` has room for `size` units, or is the address of a pointer when the buffer is to be allocated.
unsafe fn deliver<T: Unit>(
    message: impl FnOnce() -> Result<Vec<T>, u32>,
    flags: u32,
    buffer: *mut T,
    size: u32,
) -> u32 {
    let allocates = flags & FORMAT_MESSAGE_ALLOCATE_BUFFER != 0;
    let room = if allocates || buffer.is_null() { 0 } else { size as usize };
    let deliver = || {
        if buffer.is_null() && (allocates || T::LEAVES_TEXT) {
            return Err(T::NO_PLACE);
        }
        if allocates {
            // SAFETY: the caller passed the address of a pointer in the buffer's place. Who looks at it after a failure finds
            // nothing.
            unsafe { buffer.cast::<*mut T>().write_unaligned(std::ptr::null_mut()) };
        }
        if size >= T::LIMIT {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let message = message()?;
        if allocates {
            let room = (size as usize).max(message.len() + 1);
            let block = ndw_LocalAlloc(0, room * size_of::<T>()).cast::<T>();
            // SAFETY: with that flag the buffer has room for a pointer.
            unsafe { buffer.cast::<*mut T>().write_unaligned(block) };
            // SAFETY: NULL, or a block that has the room.
            if !unsafe { text::store(&message, block, room) } {
                return Err(ERROR_NOT_ENOUGH_MEMORY);
            }
            return Ok(message.len() as u32);
        }
        // SAFETY: the buffer has that room.
        if unsafe { text::store(&message, buffer, room) } {
            return Ok(message.len() as u32);
        }
        if T::LEAVES_TEXT && room != 0 {
            // SAFETY: the buffer has `room` units, which is not zero; the text is cut to one less, for the NUL.
            unsafe { text::store(&message[..room - 1], buffer, room) };
        }
        Err(ERROR_INSUFFICIENT_BUFFER)
    };
    deliver().unwrap_or_else(|code| {
        if code == ERROR_NO_WORK_DONE && T::LEAVES_TEXT && room != 0 {
            // SAFETY: the buffer has that room.
            unsafe { text::store(&[], buffer, room) };
        }
        set_last_error(code);
        0
    })
}

/// `FormatMessageW`: the program's own text, or a system message in English.
///
/// # Safety
/// `buffer` has room for `size` characters, or is the address of a pointer with `FORMAT_MESSAGE_ALLOCATE_BUFFER`. With
/// `FORMAT_MESSAGE_FROM_STRING`, `source` is NULL or a terminated string, and `arguments` are what its inserts ask for.
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
    let message = || {
        // SAFETY: terminated if it is asked for.
        let source = || unsafe { text::string_from_wide(source.cast()) };
        // SAFETY: the arguments fit the message.
        let message = unsafe { format(flags, source, code, true, arguments) };
        message.map(|message| text::to_wide(&message))
    };
    // SAFETY: the buffer has room for `size` characters, or for a pointer when one is asked for, as this function asks.
    unsafe { deliver(message, flags, buffer, size) }
}

/// `FormatMessageA`: the program's own text, or a system message in English.
///
/// # Safety
/// `buffer` has room for `size` bytes, or is the address of a pointer with `FORMAT_MESSAGE_ALLOCATE_BUFFER`. With
/// `FORMAT_MESSAGE_FROM_STRING`, `source` is NULL or a terminated string, and `arguments` are what its inserts ask for.
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
    let message = || {
        // SAFETY: terminated if it is asked for.
        let source = || unsafe { text::string_from_narrow(source.cast()) };
        // SAFETY: the arguments fit the message.
        let message = unsafe { format(flags, source, code, false, arguments) };
        message.map(String::into_bytes)
    };
    // SAFETY: the buffer has room for `size` bytes, or for a pointer when one is asked for, as this function asks.
    unsafe { deliver(message, flags, buffer.cast::<u8>(), size) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::heap::local::ndw_LocalFree;
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
        }
    }

    #[test]
    fn a_failure_leaves_null_in_the_place_of_the_buffer() {
        const STRING: u32 = FORMAT_MESSAGE_FROM_STRING | FORMAT_MESSAGE_ALLOCATE_BUFFER;
        let empty = w("");
        for (flags, source, code, error) in [
            (SYSTEM | FORMAT_MESSAGE_ALLOCATE_BUFFER, null(), 0xDEAD_BEEF, ERROR_MR_MID_NOT_FOUND),
            (FORMAT_MESSAGE_ALLOCATE_BUFFER, null(), 87, ERROR_INVALID_PARAMETER),
            (STRING, empty.as_ptr().cast(), 0, ERROR_NO_WORK_DONE),
        ] {
            let mut place = 7usize;
            // SAFETY: the address of a pointer, as the flag demands.
            unsafe {
                let target = &raw mut place;
                assert_eq!(ndw_FormatMessageW(flags, source, code, 0, target.cast(), 0, null_mut()), 0);
                assert_eq!((place, last_error()), (0, error));
                place = 7;
                assert_eq!(
                    ndw_FormatMessageA(flags, source, code, 0, (&raw mut place).cast(), 0, null_mut()),
                    0
                );
                assert_eq!((place, last_error()), (0, error));
            }
        }
    }

    #[test]
    fn without_a_buffer_each_width_has_its_own_error() {
        let allocates = SYSTEM | FORMAT_MESSAGE_ALLOCATE_BUFFER;
        for (flags, size, narrow) in [
            (SYSTEM, 0, ERROR_INSUFFICIENT_BUFFER),
            (SYSTEM, 256, ERROR_INSUFFICIENT_BUFFER),
            (allocates, 0, ERROR_NOT_ENOUGH_MEMORY),
            (allocates, 256, ERROR_NOT_ENOUGH_MEMORY),
        ] {
            // SAFETY: nothing is written.
            unsafe {
                assert_eq!(ndw_FormatMessageA(flags, null(), 87, 0, null_mut(), size, null_mut()), 0);
                assert_eq!(last_error(), narrow);
                assert_eq!(ndw_FormatMessageW(flags, null(), 87, 0, null_mut(), size, null_mut()), 0);
                assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
            }
        }
    }

    #[test]
    fn a_short_buffer_gets_what_fits_if_it_is_wide() {
        const STRING: u32 = FORMAT_MESSAGE_FROM_STRING;
        let full = u32::from(b'x');
        for (size, left) in
            [(0, [full; 6]), (1, [0, full, full, full, full, full]), (4, [116, 101, 115, 0, full, full])]
        {
            let (mut wide, mut narrow) = ([full; 6], [b'x'; 6]);
            // SAFETY: terminated texts, and the room given is there.
            unsafe {
                let source = w("test");
                assert_eq!(
                    ndw_FormatMessageW(
                        STRING,
                        source.as_ptr().cast(),
                        0,
                        0,
                        wide.as_mut_ptr(),
                        size,
                        null_mut()
                    ),
                    0
                );
                assert_eq!((last_error(), wide), (ERROR_INSUFFICIENT_BUFFER, left), "{size}");
                let (source, target) = (c"test".as_ptr().cast(), narrow.as_mut_ptr().cast());
                assert_eq!(ndw_FormatMessageA(STRING, source, 0, 0, target, size, null_mut()), 0);
            }
            assert_eq!((last_error(), narrow), (ERROR_INSUFFICIENT_BUFFER, [b'x'; 6]), "{size}");
        }
        // Nothing to say is no success, and the empty string.
        let mut wide = [full; 2];
        let source = w("");
        // SAFETY: the text is terminated, takes no argument, and `wide` has the 2 characters told.
        let n = unsafe {
            ndw_FormatMessageW(STRING, source.as_ptr().cast(), 0, 0, wide.as_mut_ptr(), 2, null_mut())
        };
        assert_eq!(n, 0);
        assert_eq!((last_error(), wide), (ERROR_NO_WORK_DONE, [0, full]));
    }

    #[test]
    fn narrow_messages_are_shorter_than_32_kib() {
        for (size, fits) in [(0x7FFF_u32, true), (0x8000, false)] {
            let text = "x".repeat(size as usize - 1) + "\0";
            let mut buffer = vec![0u8; size as usize];
            // SAFETY: a terminated text, and the room given is there.
            let length = unsafe {
                let (source, target) = (text.as_ptr().cast(), buffer.as_mut_ptr().cast());
                ndw_FormatMessageA(FORMAT_MESSAGE_FROM_STRING, source, 0, 0, target, size, null_mut())
            };
            assert_eq!(length, if fits { size - 1 } else { 0 });
            assert!(fits || last_error() == ERROR_INVALID_PARAMETER);
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
