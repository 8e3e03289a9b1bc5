//! The current directory, and temporary files.

use super::file_names::{MAX_PATH, path};
use crate::arguments::Text;
use crate::boundary::{guard, guard_bool};
use crate::error::*;
use crate::files::{error_at, error_of};
use crate::text::{self, Unit, narrow_and_wide};
use std::io;

/// The length without the NUL; or, if the buffer is too small, the size needed with it.
///
/// # Safety
/// `buffer` is NULL or has room for `room` units.
pub(super) unsafe fn answer<T: Unit>(text: &str, buffer: *mut T, room: u32) -> u32 {
    let text = T::spell(text);
    // SAFETY: the room is what this function asks for.
    let stored = unsafe { text::store(&text, buffer, room as usize) };
    text.len() as u32 + u32::from(!stored)
}

/// Where temporary files go: first what Windows looks at, then what Linux does. It ends with a slash.
fn temp_folder(variable: impl Fn(&str) -> Option<String>) -> String {
    let mut set = ["TMP", "TEMP", "TMPDIR"].into_iter().filter_map(variable);
    let folder = set.find(|folder| !folder.is_empty()).unwrap_or_else(|| "/tmp".to_owned());
    folder.trim_end_matches(['/', '\\']).to_owned() + "/"
}

/// # Safety
/// As for [`answer`].
unsafe fn temp_path<T: Unit>(room: u32, buffer: *mut T) -> u32 {
    guard(0, || {
        // SAFETY: `room` is the buffer's, as this function asks.
        unsafe { answer(&temp_folder(crate::environment::variable), buffer, room) }
    })
}

/// # Safety
/// As for [`answer`].
unsafe fn current_directory<T: Unit>(room: u32, buffer: *mut T) -> u32 {
    guard(0, || match std::env::current_dir() {
        // SAFETY: `room` is the buffer's, as this function asks.
        Ok(folder) => unsafe { answer(&folder.to_string_lossy(), buffer, room) },
        Err(error) => {
            set_last_error(error_of(&error));
            0
        }
    })
}

fn set_current_directory<T: Unit>(name: Text<'_, T>) -> i32 {
    guard_bool(|| {
        let path = path(name)?;
        std::env::set_current_dir(&path).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOTDIR) => ERROR_DIRECTORY,
            _ => error_at(&error, &path),
        })
    })
}

/// A name in a folder: with the given number, or with one for which a new file is created.
///
/// # Safety
/// `result` is NULL or has room for `MAX_PATH` units.
unsafe fn temp_file_name<T: Unit>(
    folder: Text<'_, T>,
    prefix: Text<'_, T>,
    number: u32,
    result: *mut T,
) -> u32 {
    guard(0, || {
        let make = || {
            let folder = path(folder)?;
            let prefix = prefix.read().unwrap_or_default();
            if result.is_null() {
                return Err(ERROR_INVALID_PARAMETER);
            }
            let prefix: String = prefix.chars().take(3).collect();
            let name = |number: u32| folder.join(format!("{prefix}{:X}.tmp", number & 0xFFFF));
            let give = |number: u32| {
                let text = T::spell(&name(number).to_string_lossy());
                if text.len() >= MAX_PATH {
                    return Err(ERROR_BUFFER_OVERFLOW);
                }
                // SAFETY: room for `MAX_PATH` units, as this function asks.
                unsafe { text::store(&text, result, MAX_PATH) };
                Ok(number & 0xFFFF)
            };
            if number & 0xFFFF != 0 {
                return give(number);
            }
            let first = crate::time::tick_count() as u32;
            for number in
                (0..0xFFFF).map(|step| first.wrapping_add(step)).filter(|number| number & 0xFFFF != 0)
            {
                let mut options = std::fs::OpenOptions::new();
                match options.write(true).create_new(true).open(name(number)) {
                    Ok(_) => return give(number),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(_) if !folder.is_dir() => return Err(ERROR_DIRECTORY),
                    Err(error) => return Err(error_of(&error)),
                }
            }
            Err(ERROR_FILE_EXISTS)
        };
        make().unwrap_or_else(|code| {
            set_last_error(code);
            0
        })
    })
}

narrow_and_wide! {
    "`GetTempPath`: with a slash at the end."
    ndw_GetTempPathA ndw_GetTempPathW = unsafe temp_path(room: u32, buffer: *mut T) -> u32;
    "`GetTempFileName`."
    ndw_GetTempFileNameA ndw_GetTempFileNameW
        = unsafe temp_file_name(folder: Text<'_, T>, prefix: Text<'_, T>, number: u32, result: *mut T) -> u32;
    "`GetCurrentDirectory`."
    ndw_GetCurrentDirectoryA ndw_GetCurrentDirectoryW = unsafe current_directory(room: u32, buffer: *mut T) -> u32;
    "`SetCurrentDirectory`."
    ndw_SetCurrentDirectoryA ndw_SetCurrentDirectoryW = set_current_directory(name: Text<'_, T>) -> i32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::file_names::tests::Folder;
    use crate::text::w;
    use std::path::Path;
    use std::ptr::null_mut;

    fn result(done: i32) -> u32 {
        if done == 1 { 0 } else { last_error() }
    }

    #[test]
    fn paths_need_their_room() {
        let mut buffer = [9u8; 300];
        // SAFETY: `buffer` has 300 units; no folder of a test is as long, and the calls are told no more than is needed.
        unsafe {
            let needed = temp_path::<u8>(0, null_mut());
            assert_eq!((temp_path(needed - 1, buffer.as_mut_ptr()), buffer[0]), (needed, 9));
            assert_eq!(temp_path(needed, buffer.as_mut_ptr()), needed - 1);
            assert_eq!(&buffer[needed as usize - 2..needed as usize], b"/\0");
            let needed = current_directory::<u8>(0, null_mut());
            assert_eq!(current_directory(needed, buffer.as_mut_ptr()), needed - 1);
            assert_eq!(
                result(set_current_directory(Text::terminated(&w("/none-such")))),
                ERROR_FILE_NOT_FOUND
            );
            assert_eq!(result(set_current_directory(Text::terminated(&w("/dev/null")))), ERROR_DIRECTORY);
        }
    }

    #[test]
    fn temporary_files_go_where_tmp_and_temp_say() {
        let folder = |set: &[(&str, &str)]| {
            temp_folder(|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(folder(&[("TMP", "/a"), ("TEMP", "/b"), ("TMPDIR", "/c")]), "/a/");
        assert_eq!(folder(&[("TMP", ""), ("TEMP", "/b/"), ("TMPDIR", "/c")]), "/b/");
        assert_eq!(folder(&[("TMPDIR", "/c//")]), "/c/");
        assert_eq!((folder(&[]), folder(&[("TMP", "/")])), ("/tmp/".to_owned(), "/".to_owned()));
    }

    #[test]
    fn a_temporary_file_has_a_name_of_its_own() {
        let folder = Folder::new();
        let (place, mut name) = (w(&folder.0), [0u32; MAX_PATH]);
        // SAFETY: `name` has room for `MAX_PATH` units, as the function asks, and holds a terminated name after each success.
        unsafe {
            let number = temp_file_name(
                Text::terminated(&place),
                Text::terminated(&w("prefix")),
                0,
                name.as_mut_ptr(),
            );
            let first = text::string_from_wide(name.as_ptr()).unwrap();
            assert_eq!(first, folder.name(&format!("pre{number:X}.tmp")));
            assert_eq!(std::fs::metadata(&first).unwrap().len(), 0, "and is there");
            let other =
                temp_file_name(Text::terminated(&place), Text::terminated(&w("pre")), 0, name.as_mut_ptr());
            assert!(number != 0 && other != 0 && other != number);
            assert_eq!(
                temp_file_name(
                    Text::terminated(&place),
                    Text::terminated(&w("x")),
                    0x1_ABCD,
                    name.as_mut_ptr()
                ),
                0xABCD
            );
            let given = text::string_from_wide(name.as_ptr()).unwrap();
            assert!(
                given == folder.name("xABCD.tmp") && !Path::new(&given).exists(),
                "a name that was given is made by nobody"
            );
            assert_eq!(
                temp_file_name(Text::terminated(&w(&folder.name("none"))), Text::NULL, 0, name.as_mut_ptr()),
                0
            );
            assert_eq!(last_error(), ERROR_DIRECTORY);
            assert_eq!(temp_file_name(Text::terminated(&place), Text::NULL, 1, null_mut()), 0);
        }
    }
}
