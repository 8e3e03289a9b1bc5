//! A console's modes, window, colours and text, where a handle leads to a terminal. Any other handle is `ERROR_INVALID_HANDLE`, by
//! which programs find out that their output goes to a file.

use super::handle::get;
use super::standard_handles;
use crate::arguments::{Out, Text};
use crate::boundary::guard_bool;
use crate::error::*;
use crate::files::disk::DiskFile;
use crate::files::error_of;
use crate::object::{Object, RawHandle};
use crate::text::{Unit, narrow_and_wide};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, isatty, tcflush, tcgetattr, tcgetwinsize, tcsetattr,
};
use std::ffi::c_void;
use std::fmt::Write;
use std::sync::Arc;

/// `COORD`: column and row, from 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct Coord {
    pub x: i16,
    pub y: i16,
}

/// `SMALL_RECT`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct SmallRect {
    pub left: i16,
    pub top: i16,
    pub right: i16,
    pub bottom: i16,
}

/// `CONSOLE_SCREEN_BUFFER_INFO`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct ScreenBufferInfo {
    pub size: Coord,
    pub cursor: Coord,
    pub attributes: u16,
    pub window: SmallRect,
    pub largest_window: Coord,
}

/// `ENABLE_PROCESSED_INPUT` and so on: what a terminal has a flag for.
const INPUT_MODES: [(u32, LocalModes); 3] =
    [(0x1, LocalModes::ISIG), (0x2, LocalModes::ICANON), (0x4, LocalModes::ECHO)];
/// `ENABLE_PROCESSED_OUTPUT`, `ENABLE_WRAP_AT_EOL_OUTPUT`, `ENABLE_VIRTUAL_TERMINAL_PROCESSING`: what every terminal does.
const OUTPUT_MODE: u32 = 0x1 | 0x2 | 0x4;

/// Light grey on black, a console's first colours.
const FIRST_ATTRIBUTES: u16 = 7;
const BRIGHT: u16 = 8;

/// The file of a handle that leads to a terminal.
fn terminal(handle: RawHandle) -> Result<Arc<DiskFile>, u32> {
    match get(handle) {
        Some(Object::Disk(file)) if isatty(file.file()) => Ok(file),
        _ => Err(ERROR_INVALID_HANDLE),
    }
}

/// Writes text and control sequences.
fn put(file: &DiskFile, text: &str) -> Result<(), u32> {
    file.write(text.as_bytes(), None).map(|_| ())
}

fn termios(file: &DiskFile) -> Result<Termios, u32> {
    tcgetattr(file.file()).map_err(|error| error_of(&error.into()))
}

/// Whether the handle is for input. Descriptors of a terminal are mostly open for both directions.
fn is_input(console: RawHandle, file: &DiskFile) -> bool {
    file.reads() && (!file.writes() || standard_handles::is_input(console))
}

/// `GetConsoleMode`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetConsoleMode(console: RawHandle, mode: Out<'_, u32>) -> i32 {
    guard_bool(|| {
        let file = terminal(console)?;
        let found = if is_input(console, &file) {
            let now = termios(&file)?.local_modes;
            INPUT_MODES.iter().filter(|(_, flag)| now.contains(*flag)).map(|(mode, _)| mode).sum()
        } else {
            OUTPUT_MODE
        };
        mode.required(ERROR_NOACCESS)?.put(found);
        Ok(())
    })
}

/// `SetConsoleMode`: signals, lines and echo of an input. All others, and those of an output, are accepted without effect.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetConsoleMode(console: RawHandle, mode: u32) -> i32 {
    guard_bool(|| {
        let file = terminal(console)?;
        if !is_input(console, &file) {
            return Ok(());
        }
        let mut now = termios(&file)?;
        for (bit, flag) in INPUT_MODES {
            now.local_modes.set(flag, mode & bit != 0);
        }
        tcsetattr(file.file(), OptionalActions::Now, &now).map_err(|error| error_of(&error.into()))
    })
}

/// `FlushConsoleInputBuffer`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_FlushConsoleInputBuffer(console: RawHandle) -> i32 {
    guard_bool(|| {
        let file = terminal(console)?;
        tcflush(file.file(), QueueSelector::IFlush).map_err(|error| error_of(&error.into()))
    })
}

/// `GetConsoleScreenBufferInfo`: the terminal's window. Where its cursor is, and which colours it has, is not known: the first ones.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetConsoleScreenBufferInfo(console: RawHandle, info: Out<'_, ScreenBufferInfo>) -> i32 {
    guard_bool(|| {
        let file = terminal(console)?;
        let window = tcgetwinsize(file.file()).map_err(|error| error_of(&error.into()))?;
        let side =
            |cells: u16, otherwise| if cells == 0 { otherwise } else { cells.min(i16::MAX as u16) as i16 };
        let size = Coord { x: side(window.ws_col, 80), y: side(window.ws_row, 25) };
        info.required(ERROR_NOACCESS)?.put(ScreenBufferInfo {
            size,
            cursor: Coord::default(),
            attributes: FIRST_ATTRIBUTES,
            window: SmallRect { left: 0, top: 0, right: size.x - 1, bottom: size.y - 1 },
            largest_window: size,
        });
        Ok(())
    })
}

/// `SetConsoleTextAttribute`: the colours of what is written next.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetConsoleTextAttribute(console: RawHandle, attributes: u16) -> i32 {
    guard_bool(|| put(&*terminal(console)?, &colours(attributes)))
}

/// The control sequence that selects colours. Windows' bits are blue, green, red; a terminal's are red, green, blue.
fn colours(attributes: u16) -> String {
    if attributes == FIRST_ATTRIBUTES {
        return "\x1b[0m".into();
    }
    let number = |colour: u16| (colour & 1) << 2 | colour & 2 | (colour & 4) >> 2;
    let base = |colour: u16| if colour & BRIGHT == 0 { 30 } else { 90 };
    let background = attributes >> 4;
    let mut sequence = format!("\x1b[0;{}", base(attributes) + number(attributes));
    if background & 0xF != 0 {
        // Writing to a string cannot fail.
        let _ = write!(sequence, ";{}", base(background) + 10 + number(background));
    }
    sequence + "m"
}

/// `SetConsoleCursorPosition`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetConsoleCursorPosition(console: RawHandle, position: Coord) -> i32 {
    guard_bool(|| {
        let file = terminal(console)?;
        if position.x < 0 || position.y < 0 {
            return Err(ERROR_INVALID_PARAMETER);
        }
        put(&file, &format!("\x1b[{};{}H", i32::from(position.y) + 1, i32::from(position.x) + 1))
    })
}

fn set_title<T: Unit>(title: Text<'_, T>) -> i32 {
    guard_bool(|| {
        let title = title.read().ok_or(ERROR_INVALID_PARAMETER)?;
        if let Some(file) = DiskFile::standard(libc::STDOUT_FILENO).filter(|file| isatty(file.file())) {
            let title: String = title.chars().filter(|c| !c.is_control()).collect();
            put(&file, &format!("\x1b]0;{title}\x07"))?;
        }
        Ok(())
    })
}

/// # Safety
/// `text` is NULL or has `length` units.
unsafe fn write_console<T: Unit>(
    console: RawHandle,
    text: *const T,
    length: u32,
    written: Out<'_, u32>,
    _reserved: *mut c_void,
) -> i32 {
    guard_bool(|| {
        let file = terminal(console)?;
        if text.is_null() && length > 0 {
            return Err(ERROR_NOACCESS);
        }
        if length > 0 {
            // SAFETY: not NULL, and the caller vouches for its length.
            let units = unsafe { std::slice::from_raw_parts(text, length as usize) };
            put(&file, &T::string(units))?;
        }
        written.put(length);
        Ok(())
    })
}

narrow_and_wide! {
    "`SetConsoleTitle`: of the terminal behind standard output, if there is one."
    ndw_SetConsoleTitleA ndw_SetConsoleTitleW = set_title(title: Text<'_, T>) -> i32;
    "`WriteConsole`."
    ndw_WriteConsoleA ndw_WriteConsoleW
        = unsafe write_console(console: RawHandle, text: *const T, length: u32, written: Out<'_, u32>, reserved: *mut c_void) -> i32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::handle::close_handle;
    use crate::files::disk::Wanted;
    use crate::object;
    use crate::text::Wchar;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::ptr::{null, null_mut};

    /// A terminal: the side of whoever looks at it, and a handle for the program.
    struct Screen {
        viewer: File,
        handle: RawHandle,
    }

    impl Screen {
        fn new(access: u32) -> Screen {
            let viewer: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
            grantpt(&viewer).unwrap();
            unlockpt(&viewer).unwrap();
            tcsetwinsize(&viewer, Winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
            let path = ptsname(&viewer, Vec::new()).unwrap().into_string().unwrap();
            let (file, _) =
                DiskFile::open(path.as_ref(), Wanted { access, disposition: OPEN_EXISTING, flags: 0 })
                    .unwrap();
            let handle = object::open(Object::Disk(Arc::new(file))).unwrap();
            Screen { viewer: viewer.into(), handle }
        }

        fn shows(&mut self, expected: &str) {
            let mut text = vec![0; expected.len()];
            self.viewer.read_exact(&mut text).unwrap();
            assert_eq!(String::from_utf8(text).unwrap(), expected);
        }
    }

    impl Drop for Screen {
        fn drop(&mut self) {
            close_handle(self.handle);
        }
    }

    const OPEN_EXISTING: u32 = 3;
    const READ: u32 = 0x8000_0000;
    const WRITE: u32 = 0x4000_0000;

    #[test]
    fn text_colours_and_positions_come_to_the_terminal() {
        let mut screen = Screen::new(WRITE);
        let mut written = 0;
        let text: Vec<Wchar> = "naïve".chars().map(|c| c as Wchar).collect();
        // SAFETY: five units.
        let done = unsafe {
            ndw_WriteConsoleW(screen.handle, text.as_ptr(), 5, Out::from(&mut written), null_mut())
        };
        assert_eq!((done, written), (1, 5));
        screen.shows("naïve");
        // Bright red on blue.
        assert_eq!(ndw_SetConsoleTextAttribute(screen.handle, 0x4 | 0x8 | 0x10), 1);
        screen.shows("\x1b[0;91;44m");
        assert_eq!(ndw_SetConsoleTextAttribute(screen.handle, FIRST_ATTRIBUTES), 1);
        screen.shows("\x1b[0m");
        assert_eq!(ndw_SetConsoleCursorPosition(screen.handle, Coord { x: 4, y: 9 }), 1);
        screen.shows("\x1b[10;5H");
        assert_eq!(
            (ndw_SetConsoleCursorPosition(screen.handle, Coord { x: -1, y: 0 }), last_error()),
            (0, ERROR_INVALID_PARAMETER)
        );
        // SAFETY: NULL is refused.
        let nothing = unsafe { ndw_WriteConsoleA(screen.handle, null(), 1, Out::NULL, null_mut()) };
        assert_eq!((nothing, last_error()), (0, ERROR_NOACCESS));
    }

    #[test]
    fn the_screen_is_as_large_as_the_terminals_window() {
        let screen = Screen::new(WRITE);
        let mut info = ScreenBufferInfo::default();
        assert_eq!(ndw_GetConsoleScreenBufferInfo(screen.handle, Out::from(&mut info)), 1);
        assert_eq!((info.size, info.attributes), (Coord { x: 100, y: 40 }, FIRST_ATTRIBUTES));
        assert_eq!(info.window, SmallRect { left: 0, top: 0, right: 99, bottom: 39 });
        let nowhere = ndw_GetConsoleScreenBufferInfo(screen.handle, Out::NULL);
        assert_eq!((nowhere, last_error()), (0, ERROR_NOACCESS));
    }

    fn mode_of(handle: RawHandle) -> (i32, u32) {
        let mut mode = 99;
        (ndw_GetConsoleMode(handle, Out::from(&mut mode)), mode)
    }

    #[test]
    fn lines_echo_and_signals_of_an_input_are_switched() {
        let screen = Screen::new(READ);
        assert_eq!(mode_of(screen.handle), (1, 7));
        assert_eq!((ndw_SetConsoleMode(screen.handle, 1), mode_of(screen.handle)), (1, (1, 1)));
        assert_eq!((ndw_SetConsoleMode(screen.handle, 6), mode_of(screen.handle)), (1, (1, 6)));
        assert_eq!(ndw_FlushConsoleInputBuffer(screen.handle), 1);
        let output = Screen::new(WRITE);
        assert_eq!((ndw_SetConsoleMode(output.handle, 1), mode_of(output.handle)), (1, (1, OUTPUT_MODE)));
    }

    #[test]
    fn what_is_no_terminal_is_no_console() {
        let file = DiskFile::open(
            "/dev/null".as_ref(),
            Wanted { access: WRITE, disposition: OPEN_EXISTING, flags: 0 },
        );
        let handle = object::open(Object::Disk(Arc::new(file.unwrap().0))).unwrap();
        for console in [handle, RawHandle::NULL, RawHandle::INVALID] {
            let results = [
                mode_of(console).0,
                ndw_SetConsoleMode(console, 0),
                ndw_FlushConsoleInputBuffer(console),
                ndw_GetConsoleScreenBufferInfo(console, Out::NULL),
                ndw_SetConsoleTextAttribute(console, 7),
                ndw_SetConsoleCursorPosition(console, Coord::default()),
                // SAFETY: no text.
                unsafe { ndw_WriteConsoleA(console, null(), 0, Out::NULL, null_mut()) },
            ];
            assert_eq!((results, last_error()), ([0; 7], ERROR_INVALID_HANDLE));
        }
        assert_eq!(close_handle(handle), 1);
    }

    #[test]
    fn a_title_is_a_text() {
        assert_eq!(ndw_SetConsoleTitleA(Text::from(c"ndcompat")), 1);
        assert_eq!((ndw_SetConsoleTitleW(Text::NULL), last_error()), (0, ERROR_INVALID_PARAMETER));
    }
}
