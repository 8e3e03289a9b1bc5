//! The folders of the system: `GetSystemDirectory`, `GetWindowsDirectory`, `GetSystemWindowsDirectory`.

use super::folders::answer;
use crate::boundary::guard;
use crate::library::runtime_path;
use crate::text::{Unit, narrow_and_wide};
use std::path::{Path, PathBuf};

/// What stands for Windows' own folder: nothing on Linux is of its kind.
const WINDOWS: &str = "/";

/// The folder of the library, which stands for what is in Windows' system folder.
fn system_folder() -> PathBuf {
    let absolute = |path: PathBuf| if path.is_absolute() { Some(path) } else { path.canonicalize().ok() };
    // Linked into a program, its path is what the program was called by.
    let file = runtime_path().map(PathBuf::from).and_then(absolute).or_else(|| std::env::current_exe().ok());
    file.as_deref().and_then(Path::parent).unwrap_or(Path::new(WINDOWS)).to_owned()
}

/// # Safety
/// As for [`answer`].
unsafe fn system_directory<T: Unit>(buffer: *mut T, room: u32) -> u32 {
    // SAFETY: `room` is the buffer's, as this function asks.
    guard(0, || unsafe { answer(&system_folder().to_string_lossy(), buffer, room) })
}

/// # Safety
/// As for [`answer`].
unsafe fn windows_directory<T: Unit>(buffer: *mut T, room: u32) -> u32 {
    // SAFETY: `room` is the buffer's, as this function asks.
    guard(0, || unsafe { answer(WINDOWS, buffer, room) })
}

narrow_and_wide! {
    "`GetSystemDirectory`: the folder of the library."
    ndw_GetSystemDirectoryA ndw_GetSystemDirectoryW = unsafe system_directory(buffer: *mut T, room: u32) -> u32;
    "`GetWindowsDirectory`: the root."
    ndw_GetWindowsDirectoryA ndw_GetWindowsDirectoryW = unsafe windows_directory(buffer: *mut T, room: u32) -> u32;
    "`GetSystemWindowsDirectory`: the same."
    ndw_GetSystemWindowsDirectoryA ndw_GetSystemWindowsDirectoryW
        = unsafe windows_directory(buffer: *mut T, room: u32) -> u32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;
    use std::ptr::null_mut;

    #[test]
    fn the_folders_of_the_system_are_told_if_there_is_room() {
        let mut buffer = [9u32; 300];
        // SAFETY: no call is told of more room than there is.
        unsafe {
            // Here the library is part of the program.
            let expected = std::env::current_exe().unwrap();
            let expected = expected.parent().unwrap().to_str().unwrap();
            let length = ndw_GetSystemDirectoryW(buffer.as_mut_ptr(), 300);
            assert_eq!(text::from_wide(&buffer[..length as usize]), expected);
            assert_eq!(buffer[length as usize], 0);
            buffer[0] = 9;
            assert_eq!(ndw_GetSystemDirectoryW(buffer.as_mut_ptr(), length), length + 1);
            assert_eq!((ndw_GetSystemDirectoryW(null_mut(), 0), buffer[0]), (length + 1, 9));
            let mut narrow = [9u8; 2];
            for call in [ndw_GetWindowsDirectoryA, ndw_GetSystemWindowsDirectoryA] {
                assert_eq!((call(narrow.as_mut_ptr(), 1), narrow[0]), (2, 9));
                assert_eq!((call(narrow.as_mut_ptr(), 2), narrow), (1, *b"/\0"));
                narrow = [9; 2];
            }
        }
    }
}
