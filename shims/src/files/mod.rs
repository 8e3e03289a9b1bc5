//! Files by name and by handle.

pub mod disk;
pub mod range_locks;
pub mod search;

use crate::crt::file::path;
use crate::error::*;
use crate::time::{FileTime, file_time};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The bytes of a sector, whatever the device has.
pub const SECTOR: u32 = 512;

/// `FILE_ATTRIBUTE_READONLY`.
pub const ATTRIBUTE_READONLY: u32 = 0x1;
/// `FILE_ATTRIBUTE_DIRECTORY`.
pub const ATTRIBUTE_DIRECTORY: u32 = 0x10;
/// `FILE_ATTRIBUTE_NORMAL`.
pub const ATTRIBUTE_NORMAL: u32 = 0x80;

/// The Win32 error of a call on a file.
pub fn error_of(error: &io::Error) -> u32 {
    match error.raw_os_error() {
        Some(libc::ENOTEMPTY) => ERROR_DIR_NOT_EMPTY,
        Some(libc::EXDEV) => ERROR_NOT_SAME_DEVICE,
        Some(libc::EISDIR | libc::EROFS | libc::ETXTBSY) => ERROR_ACCESS_DENIED,
        Some(libc::ENAMETOOLONG) => ERROR_FILENAME_EXCED_RANGE,
        Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => ERROR_DISK_FULL,
        Some(code) => errno_to_win32(code),
        None if error.kind() == io::ErrorKind::InvalidInput => ERROR_INVALID_NAME,
        None => ERROR_GEN_FAILURE,
    }
}

/// The same of a call with a file name: tells a missing folder from a missing file.
pub fn error_at(error: &io::Error, path: &Path) -> u32 {
    match error_of(error) {
        ERROR_FILE_NOT_FOUND if !folder_of(path).is_dir() => ERROR_PATH_NOT_FOUND,
        code => code,
    }
}

/// The folder that holds a file.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => path,
    }
}

/// Converts a program's file name to a Linux path.
///
/// # Errors
/// `ERROR_PATH_NOT_FOUND` for no name, `ERROR_INVALID_NAME` for one that cannot be.
pub fn path_of(name: Option<String>) -> Result<PathBuf, u32> {
    let name = name.filter(|name| !name.is_empty()).ok_or(ERROR_PATH_NOT_FOUND)?;
    Ok(path(&name).into())
}

/// The attributes of a file.
pub fn attributes(file: &Metadata) -> u32 {
    let of = |condition, attribute| if condition { attribute } else { 0 };
    let folder = of(file.is_dir(), ATTRIBUTE_DIRECTORY);
    match folder | of(file.mode() & 0o222 == 0, ATTRIBUTE_READONLY) {
        0 => ATTRIBUTE_NORMAL,
        some => some,
    }
}

/// Whether it is a device of the machine, as `NUL` is: it is nobody's to delete, replace or restrict.
pub fn is_device(file: &Metadata) -> bool {
    file.file_type().is_char_device() || file.file_type().is_block_device()
}

/// Creation, last access and last write. The time of the last change stands in for that of the creation.
pub fn times(file: &Metadata) -> [FileTime; 3] {
    let time = |seconds: i64, nanoseconds: i64| file_time(seconds as u64, nanoseconds as u64);
    [
        time(file.ctime(), file.ctime_nsec()),
        time(file.atime(), file.atime_nsec()),
        time(file.mtime(), file.mtime_nsec()),
    ]
}
