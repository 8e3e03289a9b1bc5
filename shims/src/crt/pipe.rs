//! Pipes: `_popen` and `_pclose`, and `_write`, which is not ended by a broken one.

use super::{kind, set_errno};
use crate::arguments::Text;
use crate::broken_pipe::{make_broken_pipes_errors, without_sigpipe};
use crate::cancellation::put_off;
use crate::text::{Unit, Wchar, narrow_and_wide};
use libc::FILE;
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr::null_mut;

/// `_write`.
///
/// # Safety
/// `count` bytes can be read from `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__write(fd: c_int, data: *const c_void, count: u32) -> c_int {
    let write = || {
        // SAFETY: so many bytes, as this function asks.
        let written = unsafe { libc::write(fd, data, count as usize) as c_int };
        (written, std::io::Error::last_os_error())
    };
    put_off(|| {
        let (written, error) = if kind(fd) == libc::S_IFREG { write() } else { without_sigpipe(write) };
        if written < 0 {
            set_errno(error.raw_os_error().unwrap_or(libc::EINVAL));
        }
        written
    })
}

/// For streams that the headers write to by the C library's functions.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_make_broken_pipes_errors() {
    make_broken_pipes_errors();
}

unsafe extern "C" {
    /// Forgets what is in the stream's buffer.
    fn __fpurge(stream: *mut FILE);
}

const READS: &CStr = c"re";
const WRITES: &CStr = c"we";

/// glibc's form of a mode of `_popen`: text and binary are the same. The program's end is not passed on to other processes, as on
/// Windows.
fn mode(mode: &str) -> Option<&'static CStr> {
    let mut letters = mode.trim_start().chars();
    let mode = match letters.next()? {
        'r' => READS,
        'w' => WRITES,
        _ => return None,
    };
    letters.all(|letter| "tbe".contains(letter)).then_some(mode)
}

fn open<T: Unit>(command: Text<'_, T>, open_mode: Text<'_, T>) -> *mut FILE {
    // A narrow one is not converted, as by popen.
    let command = command.units().and_then(|command| CString::new(T::bytes(command)).ok());
    let Some((command, mode)) = command.zip(open_mode.read().as_deref().and_then(mode)) else {
        set_errno(libc::EINVAL);
        return null_mut();
    };
    if mode == WRITES {
        make_broken_pipes_errors();
    }
    // SAFETY: terminated texts.
    put_off(|| unsafe { libc::popen(command.as_ptr(), mode.as_ptr()) })
}

narrow_and_wide! {
    "`_popen`: a stream to or from a command of Linux's shell."
    ndw__popen ndw__wpopen = open(command: Text<'_, T>, open_mode: Text<'_, T>) -> *mut FILE;
}

/// The exit code in a wait status. A signal's is that of a shell.
fn exit_code(status: c_int) -> c_int {
    if libc::WIFSIGNALED(status) { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) }
}

/// `_pclose`: closes the stream, waits for the command, and returns its exit code; -1 on an error.
///
/// # Safety
/// `stream` is NULL, or one of `_popen`'s that nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__pclose(stream: *mut FILE) -> c_int {
    if stream.is_null() {
        set_errno(libc::EINVAL);
        return -1;
    }
    let status = put_off(|| {
        // What nobody reads any more would be tried again, and the result be the error's.
        // SAFETY: an open stream, as this function asks.
        if unsafe { libc::fflush(stream) } != 0 {
            // SAFETY: an open stream, as this function asks.
            unsafe { __fpurge(stream) };
        }
        // SAFETY: a stream of `popen`'s that nobody uses any more, as this function asks.
        unsafe { libc::pclose(stream) }
    });
    if status == -1 { -1 } else { exit_code(status) }
}

/// `_wsystem`: the exit code of a command of Linux's shell; for NULL whether there is one.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__wsystem(command: Text<'_, Wchar>) -> c_int {
    let Some(command) = command.read() else {
        // SAFETY: NULL asks only.
        return unsafe { libc::system(std::ptr::null()) };
    };
    let Ok(command) = CString::new(command) else { return -1 };
    // SAFETY: a terminated text.
    let status = put_off(|| unsafe { libc::system(command.as_ptr()) });
    if status == -1 { -1 } else { exit_code(status) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;

    #[test]
    fn a_mode_has_a_direction_and_its_letters_do_not_matter() {
        for known in ["r", "rt", "rb", " r"] {
            assert_eq!(mode(known), Some(c"re"), "{known}");
        }
        assert_eq!((mode("w"), mode("wb"), mode("we")), (Some(c"we"), Some(c"we"), Some(c"we")));
        for unknown in ["", "a", "r+", "tr", "rw"] {
            assert_eq!(mode(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_command_is_read_and_its_exit_code_told() {
        let mut line = [0u8; 16];
        // SAFETY: there is so much room, and each stream is closed once.
        unsafe {
            let stream = ndw__popen(c"echo hi; exit 77".into(), c"rt".into());
            assert!(!libc::fgets(line.as_mut_ptr().cast(), 16, stream).is_null());
            assert_eq!((&line[..4], ndw__pclose(stream)), (&b"hi\n\0"[..], 77));
            let (command, open_mode) = (w("test \u{e4} = \"$(cat)\" && kill -9 $$"), w("wb"));
            let stream = ndw__wpopen(Text::terminated(&command), Text::terminated(&open_mode));
            assert!(libc::fputs(c"\xC3\xA4".as_ptr(), stream) >= 0);
            assert_eq!(ndw__pclose(stream), 128 + libc::SIGKILL);
            set_errno(0);
            assert!(ndw__popen(c"true".into(), c"x".into()).is_null());
            assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINVAL));
            assert!(ndw__popen(Text::NULL, c"r".into()).is_null());
            assert_eq!(ndw__pclose(null_mut()), -1);
        }
        assert_eq!(ndw__wsystem(Text::terminated(&w("exit 5"))), 5);
        assert_ne!(ndw__wsystem(Text::NULL), 0);
    }

    /// A pipe's end to write to, of which the other is closed. What tests ignore a program does not.
    fn without_reader() -> c_int {
        let mut ends = [0; 2];
        // SAFETY: room for both ends, which are the test's.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            assert_eq!((libc::pipe(ends.as_mut_ptr()), libc::close(ends[0])), (0, 0));
        }
        ends[1]
    }

    /// What becomes of the signal.
    fn disposition() -> libc::sighandler_t {
        // SAFETY: plain data, for which zeroes are a value.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: asks only; there is room for the answer.
        assert_eq!(unsafe { libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut action) }, 0);
        action.sa_sigaction
    }

    #[test]
    fn a_write_that_nobody_reads_is_an_error() {
        crate::alone::run("crt::pipe::tests::a_pipe_without_a_reader");
    }

    #[test]
    #[ignore = "changes what a signal does; the test above runs it"]
    fn a_pipe_without_a_reader() {
        let end = without_reader();
        // SAFETY: the bytes and the streams are there, and each stream is closed once.
        unsafe {
            assert_eq!(ndw__write(end, c"x".as_ptr().cast(), 1), -1);
            assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EPIPE));
            let stream = ndw__popen(c"exit 3".into(), c"w".into());
            // The command may not have ended yet.
            while libc::fputs(c"x".as_ptr(), stream) >= 0 && libc::fflush(stream) == 0 {
                std::thread::yield_now();
            }
            assert_eq!(ndw__pclose(stream), 3);
            let stream = ndw__popen(c"exec <&-; echo >&2".into(), c"w".into());
            assert!(libc::fputs(c"for nobody".as_ptr(), stream) >= 0);
            assert_eq!(ndw__pclose(stream), 0);
            libc::close(end);
        }
    }

    #[test]
    fn a_single_write_does_not_change_what_the_signal_does() {
        crate::alone::run("crt::pipe::tests::the_signal_is_as_before");
    }

    #[test]
    #[ignore = "changes what a signal does; the test above runs it"]
    fn the_signal_is_as_before() {
        let end = without_reader();
        // SAFETY: the bytes are there, and the stream is closed once.
        unsafe {
            assert_eq!(ndw__write(end, c"x".as_ptr().cast(), 1), -1);
            assert_eq!(ndw__pclose(ndw__popen(c"exit 4".into(), c"r".into())), 4);
            libc::close(end);
        }
        assert_eq!(disposition(), libc::SIG_DFL);
        make_broken_pipes_errors();
        assert_ne!(disposition(), libc::SIG_DFL);
    }

    #[test]
    fn the_programs_own_handler_stays() {
        crate::alone::run("crt::pipe::tests::a_handler_from_before");
    }

    #[test]
    #[ignore = "changes what a signal does; the test above runs it"]
    fn a_handler_from_before() {
        extern "C" fn own(_signal: c_int) {}
        let own = own as extern "C" fn(c_int) as libc::sighandler_t;
        // SAFETY: the handler may run at any time, as it does nothing; the stream is closed once.
        unsafe {
            libc::signal(libc::SIGPIPE, own);
            assert_eq!(ndw__pclose(ndw__popen(c"exit 4".into(), c"w".into())), 4);
        }
        make_broken_pipes_errors();
        assert_eq!(disposition(), own);
    }

    #[test]
    fn the_bytes_of_a_narrow_command_are_what_they_are() {
        let mut bytes = [0u8; 16];
        // SAFETY: there is so much room, and the stream is closed once.
        unsafe {
            let stream = ndw__popen(c"printf %s '\xE4|\xC3\xA4'".into(), c"r".into());
            assert_eq!(libc::fread(bytes.as_mut_ptr().cast(), 1, 16, stream), 4);
            assert_eq!(ndw__pclose(stream), 0);
        }
        assert_eq!(&bytes[..4], b"\xE4|\xC3\xA4");
    }
}
