//! Files by name: `DeleteFile`, `MoveFile`, `CreateDirectory`, `GetFileAttributes` and related functions.

use super::copy_file::copy_file;
use crate::arguments::{Out, Text};
use crate::boundary::{guard, guard_bool};
use crate::error::*;
use crate::files::{ATTRIBUTE_READONLY, attributes, error_at, folder_of, is_device, path_of, times};
use crate::text::{Unit, narrow_and_wide};
use crate::time::FileTime;
use std::ffi::{CString, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

const INVALID_FILE_ATTRIBUTES: u32 = u32::MAX;
pub(super) const MAX_PATH: usize = 260;

/// `WIN32_FILE_ATTRIBUTE_DATA`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct FileData {
    pub attributes: u32,
    pub creation: FileTime,
    pub last_access: FileTime,
    pub last_write: FileTime,
    pub size_high: u32,
    pub size_low: u32,
}

const _: () = assert!(size_of::<FileData>() == 36);

impl From<&std::fs::Metadata> for FileData {
    fn from(file: &std::fs::Metadata) -> FileData {
        let [creation, last_access, last_write] = times(file);
        FileData {
            attributes: attributes(file),
            creation,
            last_access,
            last_write,
            size_high: (file.len() >> 32) as u32,
            size_low: file.len() as u32,
        }
    }
}

pub(super) fn path<T: Unit>(name: Text<'_, T>) -> Result<std::path::PathBuf, u32> {
    path_of(name.read())
}

fn look(path: &Path) -> Result<std::fs::Metadata, u32> {
    std::fs::metadata(path).map_err(|error| error_at(&error, path))
}

fn get_attributes<T: Unit>(name: Text<'_, T>) -> u32 {
    guard(INVALID_FILE_ATTRIBUTES, || {
        let found = path(name).and_then(|path| look(&path));
        found.map(|file| attributes(&file)).unwrap_or_else(|code| {
            set_last_error(code);
            INVALID_FILE_ATTRIBUTES
        })
    })
}

fn get_attributes_ex<T: Unit>(name: Text<'_, T>, level: u32, data: Out<'_, FileData>) -> i32 {
    guard_bool(|| {
        let path = path(name)?;
        if level != 0 || data.is_null() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        data.put((&look(&path)?).into());
        Ok(())
    })
}

/// Of the attributes only `FILE_ATTRIBUTE_READONLY` has a counterpart on Linux.
fn set_attributes<T: Unit>(name: Text<'_, T>, wanted: u32) -> i32 {
    guard_bool(|| {
        let path = path(name)?;
        let found = look(&path)?;
        let mode = found.permissions().mode();
        let new = match (wanted & ATTRIBUTE_READONLY != 0, mode & 0o222) {
            (true, _) => mode & !0o222,
            (false, 0) => mode | 0o200,
            (false, _) => return Ok(()),
        };
        if is_device(&found) {
            return Err(ERROR_ACCESS_DENIED);
        }
        std::fs::set_permissions(&path, PermissionsExt::from_mode(new))
            .map_err(|error| error_at(&error, &path))
    })
}

pub(super) fn delete_file(path: &Path) -> Result<(), u32> {
    let found = std::fs::symlink_metadata(path).map_err(|error| error_at(&error, path))?;
    // As on Windows, a read-only file cannot be deleted.
    let is_read_only = !found.is_symlink() && attributes(&found) & ATTRIBUTE_READONLY != 0;
    if found.is_dir() || is_read_only || is_device(&found) {
        return Err(ERROR_ACCESS_DENIED);
    }
    std::fs::remove_file(path).map_err(|error| error_at(&error, path))
}

fn delete<T: Unit>(name: Text<'_, T>) -> i32 {
    guard_bool(|| delete_file(&path(name)?))
}

pub(super) const MOVE_REPLACES: u32 = 1;
pub(super) const MOVE_COPIES: u32 = 2;
const MOVE_WRITES_THROUGH: u32 = 8;

fn c_path(path: &Path) -> Result<CString, u32> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| ERROR_INVALID_NAME)
}

/// Renames a file. An existing file of that name is an error unless `replaces`.
fn rename(from: &Path, to: &Path, replaces: bool) -> io::Result<()> {
    if replaces {
        return std::fs::rename(from, to);
    }
    let names = [from, to].map(c_path);
    let [Ok(c_from), Ok(c_to)] = &names else { return Err(io::ErrorKind::InvalidInput.into()) };
    let here = libc::AT_FDCWD;
    // SAFETY: terminated names.
    if unsafe { libc::renameat2(here, c_from.as_ptr(), here, c_to.as_ptr(), libc::RENAME_NOREPLACE) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        // The file system does not support RENAME_NOREPLACE.
        error if error.raw_os_error() == Some(libc::EINVAL) && !to.exists() => std::fs::rename(from, to),
        error => Err(error),
    }
}

/// Whether both are one name in one folder, however the folder is spelled. Two links to one file are two names.
fn is_same_name(from: &Path, to: &Path) -> bool {
    let place = |path: &Path| {
        let folder = std::fs::metadata(folder_of(path)).ok()?;
        Some((folder.dev(), folder.ino(), path.file_name()?.to_owned()))
    };
    from == to || place(from).is_some_and(|from| place(to) == Some(from))
}

pub(super) fn move_file(from: &Path, to: &Path, flags: u32) -> Result<(), u32> {
    if flags & !(MOVE_REPLACES | MOVE_COPIES | MOVE_WRITES_THROUGH) != 0 {
        return Err(ERROR_NOT_SUPPORTED);
    }
    let found = std::fs::symlink_metadata(from).map_err(|error| error_at(&error, from))?;
    let replaces = flags & MOVE_REPLACES != 0;
    // A link to a device may go: it is the link that is replaced.
    let is_kept = || {
        std::fs::metadata(to).is_ok_and(|there| there.is_dir())
            || std::fs::symlink_metadata(to).is_ok_and(|there| is_device(&there))
    };
    if is_device(&found) || replaces && is_kept() {
        return Err(ERROR_ACCESS_DENIED);
    }
    // Of a file that is there already under that very name nothing is left to do.
    if is_same_name(from, to) {
        return Ok(());
    }
    // A link is replaced, not what it leads to.
    let is_read_only =
        |there: std::fs::Metadata| !there.is_symlink() && attributes(&there) & ATTRIBUTE_READONLY != 0;
    if replaces && std::fs::symlink_metadata(to).is_ok_and(is_read_only) {
        return Err(ERROR_ACCESS_DENIED);
    }
    match rename(from, to, replaces) {
        Ok(()) => Ok(()),
        Err(error)
            if error.raw_os_error() == Some(libc::EXDEV) && flags & MOVE_COPIES != 0 && found.is_file() =>
        {
            copy_file(from, to, !replaces)?;
            std::fs::remove_file(from).map_err(|error| error_at(&error, from))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(ERROR_ALREADY_EXISTS),
        Err(error) => match error_at(&error, to) {
            // The file exists, so the target folder does not.
            ERROR_FILE_NOT_FOUND => Err(ERROR_PATH_NOT_FOUND),
            code => Err(code),
        },
    }
}

fn move_ex<T: Unit>(from: Text<'_, T>, to: Text<'_, T>, flags: u32) -> i32 {
    guard_bool(|| {
        let from = path(from)?;
        move_file(&from, &path(to)?, flags)
    })
}

fn move_simply<T: Unit>(from: Text<'_, T>, to: Text<'_, T>) -> i32 {
    move_ex(from, to, MOVE_COPIES)
}

fn create_directory<T: Unit>(name: Text<'_, T>, _security: *const c_void) -> i32 {
    guard_bool(|| {
        let path = path(name)?;
        std::fs::create_dir(&path).map_err(|error| match error_at(&error, &path) {
            ERROR_FILE_NOT_FOUND => ERROR_PATH_NOT_FOUND,
            code => code,
        })
    })
}

fn remove_directory<T: Unit>(name: Text<'_, T>) -> i32 {
    guard_bool(|| {
        let path = path(name)?;
        std::fs::remove_dir(&path).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOTDIR) if path.exists() => ERROR_DIRECTORY,
            _ => error_at(&error, &path),
        })
    })
}

narrow_and_wide! {
    "`GetFileAttributes`."
    ndw_GetFileAttributesA ndw_GetFileAttributesW = get_attributes(name: Text<'_, T>) -> u32;
    "`GetFileAttributesEx`."
    ndw_GetFileAttributesExA ndw_GetFileAttributesExW
        = get_attributes_ex(name: Text<'_, T>, level: u32, data: Out<'_, FileData>) -> i32;
    "`SetFileAttributes`."
    ndw_SetFileAttributesA ndw_SetFileAttributesW = set_attributes(name: Text<'_, T>, attributes: u32) -> i32;
    "`DeleteFile`: a file that is open lives on until it is closed."
    ndw_DeleteFileA ndw_DeleteFileW = delete(name: Text<'_, T>) -> i32;
    "`MoveFile`."
    ndw_MoveFileA ndw_MoveFileW = move_simply(from: Text<'_, T>, to: Text<'_, T>) -> i32;
    "`MoveFileEx`: without `MOVEFILE_DELAY_UNTIL_REBOOT`."
    ndw_MoveFileExA ndw_MoveFileExW = move_ex(from: Text<'_, T>, to: Text<'_, T>, flags: u32) -> i32;
    "`CreateDirectory`."
    ndw_CreateDirectoryA ndw_CreateDirectoryW = create_directory(name: Text<'_, T>, security: *const c_void) -> i32;
    "`RemoveDirectory`."
    ndw_RemoveDirectoryA ndw_RemoveDirectoryW = remove_directory(name: Text<'_, T>) -> i32;
}

#[cfg(test)]
pub(super) mod tests;
