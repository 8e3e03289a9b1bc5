//! What is known of an open file, and changed of it: `GetFileInformationByHandleEx`, `SetFileInformationByHandle`, its times and name.

use super::file_names::{MOVE_REPLACES, move_file};
use super::files::{disk, writable};
use super::folders::answer;
use crate::arguments::{In, Out};
use crate::boundary::{guard, guard_bool};
use crate::error::*;
use crate::files::disk::DiskFile;
use crate::files::{ATTRIBUTE_READONLY, SECTOR, attributes, error_of, is_device, path_of, times};
use crate::object::RawHandle;
use crate::text::{Unit, Wchar, narrow_and_wide};
use crate::time::{FileTime, unix_time};
use std::ffi::c_void;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// `FILE_INFO_BY_HANDLE_CLASS`.
mod class {
    pub const BASIC: i32 = 0;
    pub const STANDARD: i32 = 1;
    pub const NAME: i32 = 2;
    pub const RENAME: i32 = 3;
    pub const DISPOSITION: i32 = 4;
    pub const ALLOCATION: i32 = 5;
    pub const END_OF_FILE: i32 = 6;
    pub const ATTRIBUTE_TAG: i32 = 9;
    pub const IO_PRIORITY: i32 = 12;
    pub const STORAGE: i32 = 16;
    pub const ALIGNMENT: i32 = 17;
    pub const ID: i32 = 18;
    pub const DISPOSITION_EX: i32 = 21;
    pub const RENAME_EX: i32 = 22;
    /// The first that there is not.
    pub const END: i32 = 25;
}

/// `FILE_BASIC_INFO`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct BasicInformation {
    pub creation: i64,
    pub last_access: i64,
    pub last_write: i64,
    pub change: i64,
    pub attributes: u32,
}

/// `FILE_STANDARD_INFO`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct StandardInformation {
    pub allocation: i64,
    pub end_of_file: i64,
    pub links: u32,
    pub delete_pending: u8,
    pub directory: u8,
}

/// `FILE_RENAME_INFO`, with room for one character.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct RenameInformation {
    pub flags: u32,
    pub root: usize,
    pub length: u32,
    pub name: [Wchar; 1],
}

/// `FILE_STORAGE_INFO`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct StorageInformation {
    pub logical: u32,
    pub atomic: u32,
    pub fast: u32,
    pub effective: u32,
    pub flags: u32,
    pub sector_offset: u32,
    pub partition_offset: u32,
}

impl StorageInformation {
    /// The sectors are aligned on the device and in the partition.
    const ALIGNED: u32 = 3;

    /// The sector that `GetDiskFreeSpace` tells. A larger one is of use only for speed: the block of the file system.
    fn new(block: u64) -> StorageInformation {
        StorageInformation {
            logical: SECTOR,
            atomic: SECTOR,
            fast: u32::try_from(block).map_or(SECTOR, |block| block.max(SECTOR)),
            effective: SECTOR,
            flags: StorageInformation::ALIGNED,
            sector_offset: 0,
            partition_offset: 0,
        }
    }
}

/// `FILE_ID_INFO`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct IdInformation {
    pub volume: u64,
    pub file: [u64; 2],
}

/// Stores a result.
///
/// # Safety
/// `place` has room for `size` bytes.
unsafe fn put<T>(place: *mut c_void, size: u32, value: T) -> Result<(), u32> {
    if (size as usize) < size_of::<T>() {
        return Err(ERROR_BAD_LENGTH);
    }
    // SAFETY: so much room, as was just looked at.
    unsafe { place.cast::<T>().write_unaligned(value) };
    Ok(())
}

/// Reads what the program gives.
///
/// # Safety
/// `place` has `size` bytes, which are a `T` if they are as many.
unsafe fn take<T: Copy>(place: *const c_void, size: u32) -> Result<T, u32> {
    if (size as usize) < size_of::<T>() {
        return Err(ERROR_BAD_LENGTH);
    }
    // SAFETY: so many bytes, as was just looked at.
    Ok(unsafe { place.cast::<T>().read_unaligned() })
}

fn units(time: FileTime) -> i64 {
    i64::from(time.high) << 32 | i64::from(time.low)
}

/// `GetFileInformationByHandleEx`: the classes basic, standard, name, attribute tag, storage, alignment and id; the others are `ERROR_NOT_SUPPORTED`.
///
/// # Safety
/// `place` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetFileInformationByHandleEx(
    file: RawHandle,
    class: i32,
    place: *mut c_void,
    size: u32,
) -> i32 {
    guard_bool(|| {
        let file = disk(file)?;
        if place.is_null() || !(0..class::END).contains(&class) {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let found = file.metadata()?;
        match class {
            class::BASIC => {
                let [creation, last_access, last_write] = times(&found).map(units);
                let attributes = attributes(&found);
                // Linux' time of the last change is Windows', too.
                let it = BasicInformation { creation, last_access, last_write, change: creation, attributes };
                // SAFETY: so much room, as C's caller promises.
                unsafe { put(place, size, it) }
            }
            class::STANDARD => {
                let it = StandardInformation {
                    allocation: found.blocks() as i64 * 512,
                    end_of_file: if found.is_dir() { 0 } else { found.len() as i64 },
                    links: found.nlink() as u32,
                    delete_pending: file.goes().into(),
                    directory: found.is_dir().into(),
                };
                // SAFETY: so much room, as C's caller promises.
                unsafe { put(place, size, it) }
            }
            // SAFETY: so much room, as C's caller promises.
            class::NAME => unsafe { put_name(&file, place, size) },
            // SAFETY: so much room, as C's caller promises.
            class::ATTRIBUTE_TAG => unsafe { put(place, size, [attributes(&found), 0]) },
            class::ID => {
                let it = IdInformation { volume: found.dev(), file: [found.ino(), 0] };
                // SAFETY: so much room, as C's caller promises.
                unsafe { put(place, size, it) }
            }
            // SAFETY: so much room, as C's caller promises.
            class::STORAGE => unsafe { put(place, size, StorageInformation::new(found.blksize())) },
            // Any buffer will do, even without `FILE_FLAG_NO_BUFFERING`'s alignment.
            // SAFETY: so much room, as C's caller promises.
            class::ALIGNMENT => unsafe { put(place, size, 0u32) },
            _ => Err(ERROR_NOT_SUPPORTED),
        }
    })
}

/// `FILE_NAME_INFO`: the length in bytes, and as much of the name as fits, without a NUL.
///
/// # Safety
/// `place` has room for `size` bytes.
unsafe fn put_name(file: &DiskFile, place: *mut c_void, size: u32) -> Result<(), u32> {
    let name = Wchar::spell(&file.path()?.to_string_lossy());
    // SAFETY: so much room, as this function asks.
    unsafe { put(place, size, (name.len() * size_of::<Wchar>()) as u32)? };
    let room = size as usize / size_of::<Wchar>() - 1;
    for (index, unit) in name.iter().take(room).enumerate() {
        // SAFETY: the room counts the units behind the length.
        unsafe { place.cast::<Wchar>().wrapping_add(1 + index).write_unaligned(*unit) };
    }
    if room < name.len() { Err(ERROR_MORE_DATA) } else { Ok(()) }
}

/// `SetFileInformationByHandle`: the classes basic, rename, disposition, allocation, end of file and, without effect, I/O priority.
///
/// # Safety
/// `place` is NULL or has `size` bytes, which are what the class says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_SetFileInformationByHandle(
    handle: RawHandle,
    class: i32,
    place: *const c_void,
    size: u32,
) -> i32 {
    guard_bool(|| {
        let file = disk(handle)?;
        if place.is_null() || !(0..class::END).contains(&class) {
            return Err(ERROR_INVALID_PARAMETER);
        }
        match class {
            // SAFETY: C's caller gives what the class says.
            class::BASIC => set_basic(&file, unsafe { take(place, size)? }),
            class::RENAME | class::RENAME_EX => {
                // SAFETY: C's caller gives what the class says.
                let wanted: RenameInformation = unsafe { take(place, size)? };
                // SAFETY: the same, and the name is behind the other fields.
                let name = unsafe { name_of(&wanted, place, size)? };
                let from = file.path()?;
                let replaces = if wanted.flags & 1 != 0 { MOVE_REPLACES } else { 0 };
                move_file(&from, &path_of(Some(name))?, replaces)
            }
            // SAFETY: C's caller gives what the class says.
            class::DISPOSITION => file.go(unsafe { take::<u8>(place, size)? } != 0),
            // SAFETY: C's caller gives what the class says.
            class::DISPOSITION_EX => file.go(unsafe { take::<u32>(place, size)? } & 1 != 0),
            class::ALLOCATION | class::END_OF_FILE => {
                // SAFETY: C's caller gives what the class says.
                let length = u64::try_from(unsafe { take::<i64>(place, size)? });
                let length = length.map_err(|_| ERROR_INVALID_PARAMETER)?;
                let file = writable(handle)?;
                if class == class::ALLOCATION && length >= file.metadata()?.len() {
                    return reserve(&file, length);
                }
                file.file().set_len(length).map_err(|error| error_of(&error))
            }
            // SAFETY: C's caller gives what the class says.
            class::IO_PRIORITY => match unsafe { take::<i32>(place, size)? } {
                0..=2 => Ok(()),
                _ => Err(ERROR_INVALID_PARAMETER),
            },
            _ => Err(ERROR_NOT_SUPPORTED),
        }
    })
}

/// # Safety
/// `place` has `size` bytes, among them the name that `wanted` tells of.
unsafe fn name_of(wanted: &RenameInformation, place: *const c_void, size: u32) -> Result<String, u32> {
    const AT: usize = std::mem::offset_of!(RenameInformation, name);
    if wanted.root != 0 {
        return Err(ERROR_NOT_SUPPORTED);
    }
    let length = wanted.length as usize;
    if length == 0 || !length.is_multiple_of(size_of::<Wchar>()) || length > size as usize - AT {
        return Err(ERROR_INVALID_PARAMETER);
    }
    // SAFETY: so many bytes are there, as was just looked at.
    let unit =
        |index| unsafe { place.wrapping_byte_add(AT).cast::<Wchar>().wrapping_add(index).read_unaligned() };
    Ok(Wchar::string(&(0..length / size_of::<Wchar>()).map(unit).collect::<Vec<_>>()))
}

/// Has room on the disk for a file, without making it longer.
fn reserve(file: &DiskFile, length: u64) -> Result<(), u32> {
    let length = i64::try_from(length).map_err(|_| ERROR_DISK_FULL)?;
    if length == 0 {
        return Ok(());
    }
    // SAFETY: takes no pointer.
    if unsafe { libc::fallocate(file.file().as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, 0, length) } == 0 {
        return Ok(());
    }
    match std::io::Error::last_os_error() {
        // Not every file system can.
        error if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
        error => Err(error_of(&error)),
    }
}

fn set_basic(file: &DiskFile, wanted: BasicInformation) -> Result<(), u32> {
    let found = file.metadata()?;
    let mode = found.permissions().mode();
    let new = match (wanted.attributes, wanted.attributes & ATTRIBUTE_READONLY != 0, mode & 0o222) {
        (0, ..) => mode,
        (_, true, _) => mode & !0o222,
        (_, false, 0) => mode | 0o200,
        (_, false, _) => mode,
    };
    if is_device(&found) && new != mode {
        return Err(ERROR_ACCESS_DENIED);
    }
    file.set_times([wanted.last_access, wanted.last_write].map(|time| match time {
        -2..=0 => None,
        time => Some(unix_time(time)),
    }))?;
    if new == mode {
        return Ok(());
    }
    std::fs::set_permissions(file.link(), PermissionsExt::from_mode(new)).map_err(|error| error_of(&error))
}

/// `GetFileTime`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetFileTime(
    file: RawHandle,
    creation: Out<'_, FileTime>,
    last_access: Out<'_, FileTime>,
    last_write: Out<'_, FileTime>,
) -> i32 {
    guard_bool(|| {
        let found = times(&disk(file)?.metadata()?);
        for (place, time) in [creation, last_access, last_write].into_iter().zip(found) {
            place.put(time);
        }
        Ok(())
    })
}

/// `SetFileTime`: NULL, 0 and all bits set leave a time as it is. Linux sets no time of creation.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetFileTime(
    file: RawHandle,
    _creation: In<'_, FileTime>,
    last_access: In<'_, FileTime>,
    last_write: In<'_, FileTime>,
) -> i32 {
    guard_bool(|| {
        let file = disk(file)?;
        file.set_times([last_access, last_write].map(|time| match time.read().map(units) {
            None | Some(0 | -1) => None,
            Some(time) => Some(unix_time(time)),
        }))
    })
}

/// `SetFileValidData`: nothing to do, as Linux shows zeros where nothing was written.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetFileValidData(file: RawHandle, length: i64) -> i32 {
    guard_bool(|| match u64::try_from(length) {
        Ok(length) if length <= writable(file)?.metadata()?.len() => Ok(()),
        _ => Err(ERROR_INVALID_PARAMETER),
    })
}

/// # Safety
/// `buffer` is NULL or has room for `room` units.
unsafe fn final_path<T: Unit>(file: RawHandle, buffer: *mut T, room: u32, flags: u32) -> u32 {
    guard(0, || {
        let path = match disk(file) {
            Ok(_) if flags & !0xF != 0 => Err(ERROR_INVALID_PARAMETER),
            Ok(file) => file.path(),
            Err(code) => Err(code),
        };
        match path {
            // SAFETY: `room` is the buffer's, as this function asks.
            Ok(path) => unsafe { answer(&path.to_string_lossy(), buffer, room) },
            Err(code) => {
                set_last_error(code);
                0
            }
        }
    })
}

narrow_and_wide! {
    "`GetFinalPathNameByHandle`: the path on Linux, without a prefix."
    ndw_GetFinalPathNameByHandleA ndw_GetFinalPathNameByHandleW
        = unsafe final_path(file: RawHandle, buffer: *mut T, room: u32, flags: u32) -> u32;
}

#[cfg(test)]
mod tests;
