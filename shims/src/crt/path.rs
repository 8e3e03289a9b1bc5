//! `_splitpath_s`, `_makepath_s`, `_fullpath`. Both kinds of slashes are recognised, as on Windows; added ones are Linux's.

use super::{failed, set_errno};
use crate::arguments::Text;
use crate::text::{Unit, narrow_and_wide, store};
use std::ffi::c_int;
use std::path::Path;
use std::ptr::null_mut;

/// Drive, folder, name and extension; concatenated they are the path.
fn split(path: &str) -> [&str; 4] {
    let bytes = path.as_bytes();
    let drive = if bytes.get(1) == Some(&b':') { 2 } else { 0 };
    let folder = path.rfind(['/', '\\']).map_or(drive, |slash| (slash + 1).max(drive));
    let extension = path[folder..].rfind('.').map_or(path.len(), |dot| folder + dot);
    [&path[..drive], &path[drive..folder], &path[folder..extension], &path[extension..]]
}

/// # Safety
/// Each place is NULL or has room for as many units as its size says.
#[allow(clippy::too_many_arguments)]
unsafe fn split_into<T: Unit>(
    path: Text<'_, T>,
    drive: *mut T,
    drive_size: usize,
    folder: *mut T,
    folder_size: usize,
    name: *mut T,
    name_size: usize,
    extension: *mut T,
    extension_size: usize,
) -> c_int {
    let places = [(drive, drive_size), (folder, folder_size), (name, name_size), (extension, extension_size)];
    let empty_all = || {
        for (place, _) in places.iter().filter(|(place, size)| !place.is_null() && *size > 0) {
            // SAFETY: room for one unit at least.
            unsafe { place.write(T::default()) };
        }
    };
    let path = path.read();
    let (Some(path), true) = (path, places.iter().all(|(place, size)| place.is_null() == (*size == 0)))
    else {
        empty_all();
        return failed(libc::EINVAL);
    };
    for ((place, size), part) in places.into_iter().zip(split(&path)) {
        // SAFETY: not NULL, hence room for `size` units, as the caller promises.
        if !place.is_null() && !unsafe { store(&T::spell(part), place, size) } {
            empty_all();
            return failed(libc::ERANGE);
        }
    }
    0
}

/// # Safety
/// `path` is NULL or has room for `size` units.
unsafe fn make<T: Unit>(
    path: *mut T,
    size: usize,
    drive: Text<'_, T>,
    folder: Text<'_, T>,
    name: Text<'_, T>,
    extension: Text<'_, T>,
) -> c_int {
    if path.is_null() || size == 0 {
        return failed(libc::EINVAL);
    }
    let [drive, folder, name, extension] =
        [drive, folder, name, extension].map(|part| part.read().unwrap_or_default());
    let mut made = String::new();
    if let Some(letter) = drive.chars().next() {
        made.extend([letter, ':']);
    }
    made.push_str(&folder);
    if !folder.is_empty() && !folder.ends_with(['/', '\\']) {
        made.push('/');
    }
    made.push_str(&name);
    if !extension.is_empty() && !extension.starts_with('.') {
        made.push('.');
    }
    made.push_str(&extension);
    // SAFETY: not NULL, hence room for `size` units, as the caller promises.
    if unsafe { store(&T::spell(&made), path, size) } {
        return 0;
    }
    // SAFETY: room for one unit at least.
    unsafe { path.write(T::default()) };
    failed(libc::ERANGE)
}

/// The absolute path without `.` and `..`, without looking at the file system.
fn full(path: &str) -> std::io::Result<String> {
    let path = path.replace('\\', "/");
    let path =
        if path.is_empty() { std::env::current_dir()? } else { std::path::absolute(Path::new(&path))? };
    let mut parts: Vec<&str> = Vec::new();
    let path = path.to_string_lossy();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let end = if path.ends_with('/') && !parts.is_empty() { "/" } else { "" };
    Ok(format!("/{}{end}", parts.join("/")))
}

/// # Safety
/// `buffer` is NULL or has room for `size` units.
unsafe fn full_into<T: Unit>(buffer: *mut T, path: Text<'_, T>, size: usize) -> *mut T {
    let full = match full(&path.read().unwrap_or_default()) {
        Ok(full) => T::spell(&full),
        Err(error) => {
            set_errno(error.raw_os_error().unwrap_or(libc::EINVAL));
            return null_mut();
        }
    };
    if !buffer.is_null() {
        // SAFETY: not NULL, hence room for `size` units, as the caller promises.
        return if unsafe { store(&full, buffer, size) } {
            buffer
        } else {
            set_errno(libc::ERANGE);
            null_mut()
        };
    }
    let room = full.len() + 1;
    // SAFETY: takes no pointer.
    let block = unsafe { libc::malloc(room * size_of::<T>()) }.cast::<T>();
    // SAFETY: NULL, or room for the text.
    if unsafe { store(&full, block, room) } { block } else { null_mut() }
}

narrow_and_wide! {
    "`_splitpath_s`, `_wsplitpath_s`."
    ndw__splitpath_s ndw__wsplitpath_s = unsafe split_into(
        path: Text<'_, T>,
        drive: *mut T,
        drive_size: usize,
        folder: *mut T,
        folder_size: usize,
        name: *mut T,
        name_size: usize,
        extension: *mut T,
        extension_size: usize,
    ) -> c_int;
    "`_makepath_s`, `_wmakepath_s`."
    ndw__makepath_s ndw__wmakepath_s = unsafe make(
        path: *mut T,
        size: usize,
        drive: Text<'_, T>,
        folder: Text<'_, T>,
        name: Text<'_, T>,
        extension: Text<'_, T>,
    ) -> c_int;
    "`_fullpath`, `_wfullpath`: without a buffer in one for `free`."
    ndw__fullpath ndw__wfullpath = unsafe full_into(buffer: *mut T, path: Text<'_, T>, size: usize) -> *mut T;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Wchar, string_from_narrow, w};
    use std::ffi::CString;

    fn parts(path: &str) -> [String; 4] {
        let path = CString::new(path).unwrap();
        let mut places = [[7u8; 20]; 4];
        let [drive, folder, name, extension] = places.each_mut().map(|place| place.as_mut_ptr());
        let path = path.as_c_str().into();
        // SAFETY: each place has 20 bytes, and no call is told of more.
        let split = unsafe { ndw__splitpath_s(path, drive, 3, folder, 20, name, 20, extension, 20) };
        assert_eq!(split, 0);
        // SAFETY: each part was terminated by the function, which has succeeded.
        places.map(|place| unsafe { string_from_narrow(place.as_ptr().cast()) }.unwrap())
    }

    #[test]
    fn a_path_is_split_and_put_together_again() {
        for (path, expected) in [
            ("/usr/lib/libc.so.6", ["", "/usr/lib/", "libc.so", ".6"]),
            ("C:\\data\\x.dat", ["C:", "\\data\\", "x", ".dat"]),
            ("c:x", ["c:", "", "x", ""]),
            ("a.b/c", ["", "a.b/", "c", ""]),
            (".profile", ["", "", "", ".profile"]),
            ("", ["", "", "", ""]),
        ] {
            assert_eq!(parts(path), expected, "{path}");
            let text = expected.map(|part| CString::new(part).unwrap());
            let [drive, folder, name, extension] = text.each_ref().map(|part| part.as_c_str().into());
            let mut made = [7u8; 30];
            // SAFETY: `made` has the 30 bytes told, and is terminated after a success.
            unsafe {
                assert_eq!(ndw__makepath_s(made.as_mut_ptr(), 30, drive, folder, name, extension), 0);
                assert_eq!(string_from_narrow(made.as_ptr().cast()).unwrap(), path);
            }
        }
        let mut made = [7 as Wchar; 12];
        let wide = |text: &str| w(text);
        let (folder, name, extension) = (wide("tmp"), wide("log"), wide("txt"));
        let [folder, name, extension] = [&folder, &name, &extension].map(|part| Text::terminated(part));
        // SAFETY: `made` has 12 characters, no call is told of more, and NULL is refused.
        unsafe {
            assert_eq!(ndw__wmakepath_s(made.as_mut_ptr(), 12, Text::NULL, folder, name, extension), 0);
            assert_eq!(made, *w("tmp/log.txt"));
            assert_eq!(
                ndw__wmakepath_s(made.as_mut_ptr(), 11, Text::NULL, folder, name, extension),
                libc::ERANGE
            );
            assert_eq!(made[0], 0);
            assert_eq!(ndw__wmakepath_s(null_mut(), 11, Text::NULL, folder, name, extension), libc::EINVAL);
            assert_eq!(
                ndw__wmakepath_s(made.as_mut_ptr(), 0, Text::NULL, folder, name, extension),
                libc::EINVAL
            );
        }
    }

    #[test]
    fn parts_that_are_not_wanted_have_no_place_and_too_short_a_place_empties_all() {
        let (mut folder, mut name) = ([7u8; 8], [7u8; 8]);
        let (no, path) = (null_mut::<u8>(), c"/var/log/messages");
        let (folder_at, name_at) = (folder.as_mut_ptr(), name.as_mut_ptr());
        // SAFETY: both places have 8 bytes, no call is told of more, and the others are NULL.
        unsafe {
            let split = ndw__splitpath_s(path.into(), no, 0, folder_at, 8, name_at, 8, no, 0);
            assert_eq!((split, *folder_at, *name_at), (libc::ERANGE, 0, 0), "the folder has nine characters");
            let split = ndw__splitpath_s(c"/var/log".into(), no, 0, folder_at, 8, name_at, 8, no, 0);
            assert_eq!((split, &folder[..6], &name[..4]), (0, &b"/var/\0"[..], &b"log\0"[..]));
            assert_eq!(ndw__splitpath_s(path.into(), no, 1, no, 0, no, 0, no, 0), libc::EINVAL);
            assert_eq!(
                ndw__splitpath_s(path.into(), no, 0, no, 0, name.as_mut_ptr(), 0, no, 0),
                libc::EINVAL
            );
            assert_eq!(ndw__splitpath_s(Text::NULL, no, 0, no, 0, name.as_mut_ptr(), 8, no, 0), libc::EINVAL);
        }
        assert_eq!(name[0], 0);
    }

    #[test]
    fn a_full_path_begins_at_the_root_and_looks_nothing_up() {
        let here = std::env::current_dir().unwrap();
        let here = here.to_str().unwrap();
        for (path, expected) in [
            ("/a/./b/../c".to_owned(), "/a/c".to_owned()),
            ("x\\y".to_owned(), format!("{here}/x/y")),
            ("/../..".to_owned(), "/".to_owned()),
            ("/a/".to_owned(), "/a/".to_owned()),
            (String::new(), here.to_owned()),
        ] {
            let text = CString::new(path).unwrap();
            // SAFETY: the block is what the function has allocated, terminated and freed once; `room` has the size told.
            unsafe {
                let block = ndw__fullpath(null_mut(), text.as_c_str().into(), 0);
                assert_eq!(string_from_narrow(block.cast()).unwrap(), expected);
                libc::free(block.cast());
                let mut room = vec![7u8; expected.len() + 1];
                let (at, size) = (room.as_mut_ptr(), room.len());
                assert!(ndw__fullpath(at, text.as_c_str().into(), size - 1).is_null());
                assert_eq!(ndw__fullpath(at, text.as_c_str().into(), size), at);
                assert_eq!(room, CString::new(expected).unwrap().as_bytes_with_nul());
            }
        }
    }
}
