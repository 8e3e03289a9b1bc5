//! `<conio.h>`: keys, one at a time, from the terminal behind standard input. Without one there are none.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::read;
use rustix::stdio::stdin;
use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::ffi::c_int;

/// `EOF`.
const EOF: c_int = -1;

/// The terminal, until it is dropped without line editing, and without echo.
struct Keys {
    before: Termios,
}

impl Keys {
    /// `None` if standard input is no terminal.
    fn new() -> Option<Keys> {
        let before = tcgetattr(stdin()).ok()?;
        let mut now = before.clone();
        now.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        // Enter is a carriage return, as on Windows.
        now.input_modes.remove(InputModes::ICRNL);
        tcsetattr(stdin(), OptionalActions::Now, &now).ok()?;
        Some(Keys { before })
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // The terminal may have gone.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

/// `_kbhit`: whether a key waits to be read.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__kbhit() -> c_int {
    let waits = || {
        let _keys = Keys::new()?;
        let stdin = stdin();
        let mut input = [PollFd::new(&stdin, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        (poll(&mut input, Some(&now)).ok()? > 0).then_some(1)
    };
    waits().unwrap_or(0)
}

/// `_getch`: waits for a key; `EOF` without a terminal. A key that is not a character is the bytes that the terminal sends for it.
#[unsafe(no_mangle)]
pub extern "C" fn ndw__getch() -> c_int {
    let Some(_keys) = Keys::new() else { return EOF };
    let mut key = [0; 1];
    loop {
        return match read(stdin(), &mut key) {
            Ok(1) => key[0].into(),
            Err(rustix::io::Errno::INTR) => continue,
            _ => EOF,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;

    #[test]
    fn keys_come_one_at_a_time_and_the_terminal_is_as_before() {
        crate::alone::run("crt::conio::tests::keys_of_a_child");
    }

    /// In a child, whose standard input is a terminal of its own.
    #[test]
    #[ignore = "forks; the test above runs it"]
    fn keys_of_a_child() {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let path = ptsname(&screen, Vec::new()).unwrap().into_string().unwrap();
        let terminal = File::options().read(true).write(true).open(path).unwrap();
        let mut screen = File::from(screen);
        let before = tcgetattr(&terminal).unwrap().local_modes;
        let (mut told, tells) = std::io::pipe().unwrap();
        let child = crate::alone::child(|| {
            // SAFETY: takes no pointer.
            unsafe { libc::dup2(terminal.as_raw_fd(), 0) };
            let nothing = ndw__kbhit();
            // From now on a key may come.
            let _ = (&tells).write(&[nothing as u8]);
            while ndw__kbhit() == 0 {
                std::thread::yield_now();
            }
            let keys = [ndw__getch() as u8, ndw__getch() as u8];
            let _ = (&tells).write(&keys);
            0
        });
        let mut byte = [9; 1];
        told.read_exact(&mut byte).unwrap();
        assert_eq!(byte[0], 0, "no key yet");
        screen.write_all(b"x").unwrap();
        screen.write_all(b"\r").unwrap();
        let mut keys = [0; 2];
        told.read_exact(&mut keys).unwrap();
        // SAFETY: a child of ours, waited for once.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        assert_eq!(keys[0], b'x');
        assert!(matches!(keys[1], b'\r' | b'\n'), "Enter");
        assert_eq!(tcgetattr(&terminal).unwrap().local_modes, before);
    }
}
