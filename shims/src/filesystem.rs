//! Files by name: whether they are there, and whether two names mean the same one. Programs ask this of provider
//! libraries. Nothing is read or written.

use crate::crt::file::path;
use crate::error::*;
use crate::object::{Object, RawHandle, guard, guard_bool, handle};
use crate::text::{self, Wchar};
use crate::time::{FileTime, file_time};
use std::ffi::{CStr, c_char, c_void};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::Arc;

const INVALID_FILE_ATTRIBUTES: u32 = u32::MAX;
const FILE_ATTRIBUTE_READONLY: u32 = 0x1;
const FILE_ATTRIBUTE_DIRECTORY: u32 = 0x10;
const FILE_ATTRIBUTE_NORMAL: u32 = 0x80;
const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
const FILE_READ_ATTRIBUTES: u32 = 0x80;
const OPEN_EXISTING: u32 = 3;

/// `BY_HANDLE_FILE_INFORMATION`.
#[repr(C)]
#[derive(Debug, Default, PartialEq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct FileInformation {
    pub attributes: u32,
    pub creation: FileTime,
    pub last_access: FileTime,
    pub last_write: FileTime,
    pub volume: u32,
    pub size_high: u32,
    pub size_low: u32,
    pub links: u32,
    pub index_high: u32,
    pub index_low: u32,
}

const _: () = assert!(size_of::<FileInformation>() == 52);

fn from_io(error: io::Error) -> u32 {
    errno_to_win32(error.raw_os_error().unwrap_or(libc::EINVAL))
}

fn attributes(file: &Metadata) -> u32 {
    let of = |condition, attribute| if condition { attribute } else { 0 };
    match of(file.is_dir(), FILE_ATTRIBUTE_DIRECTORY) | of(file.mode() & 0o222 == 0, FILE_ATTRIBUTE_READONLY)
    {
        0 => FILE_ATTRIBUTE_NORMAL,
        some => some,
    }
}

fn attributes_of(name: Option<String>) -> u32 {
    guard(INVALID_FILE_ATTRIBUTES, || {
        let name = name.filter(|name| !name.is_empty()).ok_or(ERROR_PATH_NOT_FOUND);
        let found = name.and_then(|name| std::fs::metadata(path(&name)).map_err(from_io));
        found.map(|file| attributes(&file)).unwrap_or_else(|code| {
            set_last_error(code);
            INVALID_FILE_ATTRIBUTES
        })
    })
}

fn open(name: Option<String>, access: u32, disposition: u32, flags: u32) -> RawHandle {
    guard(RawHandle::INVALID, || {
        let open = || {
            if access & !FILE_READ_ATTRIBUTES != 0 || disposition != OPEN_EXISTING {
                return Err(ERROR_NOT_SUPPORTED);
            }
            let name = name.filter(|name| !name.is_empty()).ok_or(ERROR_PATH_NOT_FOUND)?;
            // Without access to the contents, which Linux grants whoever finds the file.
            let mut options = OpenOptions::new();
            let file = options.read(true).custom_flags(libc::O_PATH).open(path(&name)).map_err(from_io)?;
            if file.metadata().map_err(from_io)?.is_dir() && flags & FILE_FLAG_BACKUP_SEMANTICS == 0 {
                return Err(ERROR_ACCESS_DENIED);
            }
            match handle::open(Object::Path(Arc::new(OwnedFd::from(file)))) {
                RawHandle::NULL => Err(ERROR_NO_SYSTEM_RESOURCES),
                handle => Ok(handle),
            }
        };
        open().unwrap_or_else(|code| {
            set_last_error(code);
            RawHandle::INVALID
        })
    })
}

fn information(file: &Metadata) -> FileInformation {
    let time = |seconds: i64, nanoseconds: i64| file_time(seconds as u64, nanoseconds as u64);
    FileInformation {
        attributes: attributes(file),
        // Linux tells when a file was changed, not when it was made.
        creation: time(file.ctime(), file.ctime_nsec()),
        last_access: time(file.atime(), file.atime_nsec()),
        last_write: time(file.mtime(), file.mtime_nsec()),
        volume: (file.dev() ^ (file.dev() >> 32)) as u32,
        size_high: (file.size() >> 32) as u32,
        size_low: file.size() as u32,
        links: file.nlink() as u32,
        index_high: (file.ino() >> 32) as u32,
        index_low: file.ino() as u32,
    }
}

/// # Safety
/// `name` is NULL or terminated.
unsafe fn narrow(name: *const c_char) -> Option<String> {
    // SAFETY: passed on.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

/// `GetFileAttributesA`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetFileAttributesA(name: *const c_char) -> u32 {
    // SAFETY: the function's contract.
    attributes_of(unsafe { narrow(name) })
}

/// `GetFileAttributesW`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetFileAttributesW(name: *const Wchar) -> u32 {
    // SAFETY: the function's contract.
    attributes_of(unsafe { text::string_from_wide(name) })
}

/// `CreateFileA`: opens what exists, for its attributes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CreateFileA(
    name: *const c_char,
    access: u32,
    _share: u32,
    _security: *const c_void,
    disposition: u32,
    flags: u32,
    _template: RawHandle,
) -> RawHandle {
    // SAFETY: the function's contract.
    open(unsafe { narrow(name) }, access, disposition, flags)
}

/// `CreateFileW`: opens what exists, for its attributes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CreateFileW(
    name: *const Wchar,
    access: u32,
    _share: u32,
    _security: *const c_void,
    disposition: u32,
    flags: u32,
    _template: RawHandle,
) -> RawHandle {
    // SAFETY: the function's contract.
    open(unsafe { text::string_from_wide(name) }, access, disposition, flags)
}

/// `GetFileInformationByHandle`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetFileInformationByHandle(file: RawHandle, found: *mut FileInformation) -> i32 {
    guard_bool(|| {
        let Some(Object::Path(fd)) = handle::get(file) else { return Err(ERROR_INVALID_HANDLE) };
        if found.is_null() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let file = File::from(fd.try_clone().map_err(from_io)?);
        // SAFETY: writable by the function's contract.
        unsafe { found.write(information(&file.metadata().map_err(from_io)?)) };
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::handle::ndw_CloseHandle;
    use crate::object::wait::ndw_WaitForSingleObject;
    use crate::text::w;

    fn create(name: &str, access: u32, disposition: u32, flags: u32) -> RawHandle {
        // SAFETY: a terminated name.
        unsafe {
            let none = std::ptr::null();
            ndw_CreateFileW(w(name).as_ptr(), access, 7, none, disposition, flags, RawHandle::NULL)
        }
    }

    fn found(file: RawHandle) -> FileInformation {
        let mut found = FileInformation::default();
        // SAFETY: a place of ours.
        assert_eq!(unsafe { ndw_GetFileInformationByHandle(file, &mut found) }, 1);
        found
    }

    #[test]
    fn attributes_by_name() {
        // SAFETY: terminated names.
        let of = |name: &str| unsafe { ndw_GetFileAttributesW(w(name).as_ptr()) };
        assert_eq!(of("/proc/self/"), FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_READONLY);
        assert_eq!(of("\\dev\\null"), FILE_ATTRIBUTE_NORMAL);
        assert_eq!((of("/none-such"), last_error()), (INVALID_FILE_ATTRIBUTES, ERROR_FILE_NOT_FOUND));
        assert_eq!((of(""), last_error()), (INVALID_FILE_ATTRIBUTES, ERROR_PATH_NOT_FOUND));
        // SAFETY: a terminated name.
        assert_eq!(unsafe { ndw_GetFileAttributesA(c"/dev/null".as_ptr()) }, FILE_ATTRIBUTE_NORMAL);
    }

    #[test]
    fn two_names_of_one_file_are_found_out() {
        let [null, same, zero] = ["/dev/null", "/dev/../dev/null", "/dev/zero"]
            .map(|name| create(name, FILE_READ_ATTRIBUTES, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL));
        assert_eq!(found(null), found(same));
        assert_ne!((found(null).index_low, found(null).volume), (found(zero).index_low, found(zero).volume));
        assert_eq!(ndw_WaitForSingleObject(null, 0), u32::MAX);
        [null, same, zero].into_iter().for_each(|file| assert_eq!(ndw_CloseHandle(file), 1));
        let mut none = FileInformation::default();
        // SAFETY: a place of ours.
        assert_eq!(unsafe { ndw_GetFileInformationByHandle(null, &mut none) }, 0);
        assert_eq!(last_error(), ERROR_INVALID_HANDLE);
    }

    #[test]
    fn only_what_exists_is_opened_and_only_for_its_attributes() {
        for (name, access, disposition, flags, error) in [
            ("/none-such", FILE_READ_ATTRIBUTES, OPEN_EXISTING, 0, ERROR_FILE_NOT_FOUND),
            ("/dev", FILE_READ_ATTRIBUTES, OPEN_EXISTING, 0, ERROR_ACCESS_DENIED),
            ("/dev/null", 0x8000_0000, OPEN_EXISTING, 0, ERROR_NOT_SUPPORTED),
            ("/dev/null", FILE_READ_ATTRIBUTES, 2, 0, ERROR_NOT_SUPPORTED),
        ] {
            assert_eq!(create(name, access, disposition, flags), RawHandle::INVALID, "{name}");
            assert_eq!(last_error(), error, "{name}");
        }
        let folder = create("/dev", 0, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS);
        assert_ne!(found(folder).attributes & FILE_ATTRIBUTE_DIRECTORY, 0);
        assert_eq!(ndw_CloseHandle(folder), 1);
    }
}
