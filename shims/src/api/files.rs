//! Files by handle: `CreateFile`, `ReadFile`, `WriteFile`, sizes, positions.

use crate::arguments::{InOut, Out, Text};
use crate::boundary::{guard, guard_bool};
use crate::error::*;
use crate::files::disk::{DiskFile, Wanted};
use crate::files::{attributes, error_of, path_of, times};
use crate::io::{Overlapped, STATUS_SUCCESS};
use crate::object::{Object, RawHandle, handle};
use crate::text::{Unit, narrow_and_wide};
use crate::time::FileTime;
use crate::winsock;
use std::ffi::c_void;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

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

const STATUS_END_OF_FILE: i32 = 0xC000_0011_u32 as i32;
/// `INVALID_FILE_SIZE` and `INVALID_SET_FILE_POINTER`.
const INVALID: u32 = u32::MAX;

pub(super) fn disk(handle: RawHandle) -> Result<Arc<DiskFile>, u32> {
    match handle::get(handle) {
        Some(Object::Disk(file)) => Ok(file),
        _ => Err(ERROR_INVALID_HANDLE),
    }
}

pub(super) fn create<T: Unit>(
    name: Text<'_, T>,
    access: u32,
    _share: u32,
    _security: *const c_void,
    disposition: u32,
    flags: u32,
    _template: RawHandle,
) -> RawHandle {
    guard(RawHandle::INVALID, || {
        let open = || {
            let path = path_of(name.read())?;
            let (file, existed) = DiskFile::open(&path, Wanted { access, disposition, flags })?;
            let handle = crate::object::open(Object::Disk(Arc::new(file)))?;
            // CREATE_ALWAYS and OPEN_ALWAYS report an existing file by the last error.
            let tells = matches!(disposition, 2 | 4) && existed;
            set_last_error(if tells { ERROR_ALREADY_EXISTS } else { ERROR_SUCCESS });
            Ok(handle)
        };
        open().unwrap_or_else(|code| {
            set_last_error(code);
            RawHandle::INVALID
        })
    })
}

narrow_and_wide! {
    "`CreateFile`: for what Linux has; share modes are not kept."
    ndw_CreateFileA ndw_CreateFileW = create(
        name: Text<'_, T>,
        access: u32,
        share: u32,
        security: *const c_void,
        disposition: u32,
        flags: u32,
        template: RawHandle,
    ) -> RawHandle;
}

/// Completes an operation with an `OVERLAPPED`.
///
/// # Safety
/// `overlapped` is an OVERLAPPED of the program's that no request has.
pub(super) unsafe fn finish(file: &DiskFile, overlapped: *mut Overlapped, status: i32, bytes: usize) {
    if let Some(file) = file.overlapped().filter(|_| status == STATUS_SUCCESS) {
        // SAFETY: an OVERLAPPED that no request has, as the caller promises.
        unsafe { file.finish_at_once(overlapped, bytes) };
        return;
    }
    // SAFETY: an OVERLAPPED of the program's is writable. No reference is made: fields may be uninitialised.
    unsafe { (*overlapped).internal_high = AtomicUsize::new(bytes) };
    // SAFETY: writable, as the field before it was; who polls for the status must find the rest, so it comes last.
    unsafe { (*overlapped).internal = AtomicUsize::new(status as usize) };
    // SAFETY: the program has set the event.
    let event = unsafe { (*overlapped).event };
    if let (STATUS_SUCCESS, Some(Object::Event(event))) = (status, handle::get(event)) {
        event.set();
    }
}

/// Reads or writes.
///
/// # Safety
/// `overlapped` is NULL, or an OVERLAPPED that no request has.
unsafe fn transfer(
    file: RawHandle,
    count: Out<'_, u32>,
    overlapped: *mut Overlapped,
    run: impl FnOnce(&DiskFile, Option<u64>) -> Result<usize, u32>,
) -> i32 {
    guard_bool(|| {
        count.put(0);
        let file = disk(file)?;
        if overlapped.is_null() && (count.is_null() || file.overlaps()) {
            return Err(ERROR_INVALID_PARAMETER);
        }
        // SAFETY: not NULL, hence an OVERLAPPED of the program's, which has set the offset.
        let at = (!overlapped.is_null()).then(|| unsafe { (*overlapped).offset });
        let result = run(&file, at);
        if let Some(at) = at {
            let (status, bytes) = match result {
                Ok(bytes) => (STATUS_SUCCESS, bytes),
                Err(ERROR_HANDLE_EOF) => (STATUS_END_OF_FILE, 0),
                Err(code) => return Err(code),
            };
            if !file.overlaps() && file.is_regular() && at != u64::MAX {
                // The position of a file that is not overlapped moves, too.
                let _ = file.seek(at.saturating_add(bytes as u64) as i64, 0);
            }
            if status == STATUS_SUCCESS
                && file.always_pends()
                && let Some(file) = file.overlapped()
            {
                // SAFETY: not NULL, hence an OVERLAPPED that no request has, as the caller promises.
                unsafe { file.finish_as_pended(overlapped, bytes) };
                return Err(ERROR_IO_PENDING);
            }
            // SAFETY: not NULL, hence an OVERLAPPED that no request has, as the caller promises.
            unsafe { finish(&file, overlapped, status, bytes) };
        }
        count.put(result? as u32);
        Ok(())
    })
}

/// The program's buffer for a read.
///
/// # Safety
/// `buffer` is NULL or has room for `length` bytes, which nobody else uses meanwhile.
pub(super) unsafe fn room<'a>(buffer: *mut c_void, length: u32) -> Result<&'a mut [u8], u32> {
    match length {
        0 => Ok(&mut []),
        _ if buffer.is_null() => Err(ERROR_NOACCESS),
        // SAFETY: so much room, as the caller promises. It is given to the kernel alone, which only writes.
        _ => Ok(unsafe { std::slice::from_raw_parts_mut(buffer.cast(), length as usize) }),
    }
}

/// The program's buffer for a write.
///
/// # Safety
/// `buffer` is NULL or has `length` bytes, which nobody changes meanwhile.
pub(super) unsafe fn bytes<'a>(buffer: *const c_void, length: u32) -> Result<&'a [u8], u32> {
    match length {
        0 => Ok(&[]),
        _ if buffer.is_null() => Err(ERROR_NOACCESS),
        // SAFETY: so many bytes, as the caller promises.
        _ => Ok(unsafe { std::slice::from_raw_parts(buffer.cast(), length as usize) }),
    }
}

/// [`transfer`] on a socket.
///
/// # Safety
/// As for `WSARecv` and `WSASend`.
unsafe fn transfer_on_socket(
    fd: i32,
    buffer: *const c_void,
    length: u32,
    count: Out<'_, u32>,
    overlapped: *mut Overlapped,
    call: winsock::transfer::OnSocket,
) -> i32 {
    guard_bool(|| {
        if buffer.is_null() && length != 0 {
            return Err(ERROR_NOACCESS);
        }
        if count.is_null() && overlapped.is_null() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let mut transferred = 0;
        // SAFETY: buffer and OVERLAPPED are as for a request of the socket, as the caller promises.
        let done =
            unsafe { call(fd, buffer.cast_mut().cast(), length, (&mut transferred).into(), overlapped) };
        count.put(transferred);
        done
    })
}

/// `ReadFile`: at the position of the file, or of the `OVERLAPPED`. It is complete when the call returns, also on files opened
/// for overlapped operations; on those without buffers it is told as one that pends. The end of the file is 0 bytes, or `ERROR_HANDLE_EOF` with an `OVERLAPPED`. On a socket it is
/// `WSARecv`, with Win32 error codes.
///
/// # Safety
/// `buffer` is NULL or has room for `length` bytes; `overlapped` is NULL or an OVERLAPPED that no request has. On a socket both
/// stay, unused by anybody else, until the request has completed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_ReadFile(
    file: RawHandle,
    buffer: *mut c_void,
    length: u32,
    count: Out<'_, u32>,
    overlapped: *mut Overlapped,
) -> i32 {
    if let Some(fd) = handle::as_descriptor(file) {
        // SAFETY: C's caller keeps buffer and OVERLAPPED until the request has completed.
        return unsafe { transfer_on_socket(fd, buffer, length, count, overlapped, winsock::transfer::read) };
    }
    // SAFETY: C's caller has so much room.
    let room = unsafe { room(buffer, length) };
    // SAFETY: C's caller has an OVERLAPPED that no request has, or NULL.
    unsafe { transfer(file, count, overlapped, |file, at| file.read(room?, at)) }
}

/// `WriteFile`: as `ReadFile`, on a socket `WSASend`. Appends if the position in the `OVERLAPPED` has all bits set.
///
/// # Safety
/// `buffer` is NULL or has `length` bytes; `overlapped` is NULL or an OVERLAPPED that no request has. On a socket both stay
/// unchanged until the request has completed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WriteFile(
    file: RawHandle,
    buffer: *const c_void,
    length: u32,
    count: Out<'_, u32>,
    overlapped: *mut Overlapped,
) -> i32 {
    if let Some(fd) = handle::as_descriptor(file) {
        // SAFETY: C's caller keeps buffer and OVERLAPPED until the request has completed.
        return unsafe {
            transfer_on_socket(fd, buffer, length, count, overlapped, winsock::transfer::write)
        };
    }
    // SAFETY: C's caller has so many bytes.
    let bytes = unsafe { bytes(buffer, length) };
    // SAFETY: C's caller has an OVERLAPPED that no request has, or NULL.
    unsafe { transfer(file, count, overlapped, |file, at| file.write(bytes?, at)) }
}

/// `GetFileSizeEx`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetFileSizeEx(file: RawHandle, size: Out<'_, i64>) -> i32 {
    guard_bool(|| {
        let found = disk(file)?.metadata()?.len();
        if size.is_null() {
            return Err(ERROR_NOACCESS);
        }
        size.put(found as i64);
        Ok(())
    })
}

/// Returns a 64-bit number in two halves, as old functions do. A lower half with all bits set may be valid: the last error is 0
/// then.
fn halves(found: Result<u64, u32>, tell_upper: impl FnOnce(u32)) -> u32 {
    match found {
        Ok(number) => {
            tell_upper((number >> 32) as u32);
            if number as u32 == INVALID {
                set_last_error(ERROR_SUCCESS);
            }
            number as u32
        }
        Err(code) => {
            set_last_error(code);
            INVALID
        }
    }
}

/// `GetFileSize`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetFileSize(file: RawHandle, high: Out<'_, u32>) -> u32 {
    guard(INVALID, || {
        let found = disk(file).and_then(|file| Ok(file.metadata()?.len()));
        halves(found, |upper| high.put(upper))
    })
}

/// `SetFilePointer`: without a high half, the distance is signed and the position must fit 32 bits.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetFilePointer(
    file: RawHandle,
    distance: i32,
    high: InOut<'_, i32>,
    method: u32,
) -> u32 {
    guard(INVALID, || {
        let seek = || {
            let file = disk(file)?;
            let Some(upper) = high.read() else {
                let before = file.seek(0, 1)?;
                let position = file.seek(distance.into(), method)?;
                if position > u32::MAX.into() {
                    let _ = file.seek(before as i64, 0);
                    return Err(ERROR_INVALID_PARAMETER);
                }
                return Ok(position);
            };
            file.seek(i64::from(upper) << 32 | i64::from(distance as u32), method)
        };
        halves(seek(), |upper| high.put(upper as i32))
    })
}

/// `SetFilePointerEx`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetFilePointerEx(
    file: RawHandle,
    distance: i64,
    new: Out<'_, i64>,
    method: u32,
) -> i32 {
    guard_bool(|| {
        let position = disk(file)?.seek(distance, method)?;
        new.put(position as i64);
        Ok(())
    })
}

pub(super) fn writable(file: RawHandle) -> Result<Arc<DiskFile>, u32> {
    let file = disk(file)?;
    if file.writes() { Ok(file) } else { Err(ERROR_ACCESS_DENIED) }
}

/// `SetEndOfFile`: at the present position.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetEndOfFile(file: RawHandle) -> i32 {
    guard_bool(|| {
        let file = writable(file)?;
        file.file().set_len(file.seek(0, 1)?).map_err(|error| error_of(&error))
    })
}

/// `FlushFileBuffers`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_FlushFileBuffers(file: RawHandle) -> i32 {
    guard_bool(|| {
        let file = writable(file)?;
        match file.file().sync_all() {
            // Pipes and terminals have nothing to flush.
            Err(error) if file.is_regular() => Err(error_of(&error)),
            _ => Ok(()),
        }
    })
}

/// `FILE_TYPE_PIPE`.
const PIPE: u32 = 3;

/// `GetFileType`: a socket is a pipe.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetFileType(file: RawHandle) -> u32 {
    guard(0, || {
        let kind = match handle::as_descriptor(file) {
            Some(fd) => winsock::file_of(fd).map(|_| PIPE).ok_or(ERROR_INVALID_HANDLE),
            None => disk(file).and_then(|file| file.kind()),
        };
        kind.unwrap_or_else(|code| {
            set_last_error(code);
            0
        })
    })
}

/// `GetFileInformationByHandle`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetFileInformationByHandle(file: RawHandle, found: Out<'_, FileInformation>) -> i32 {
    guard_bool(|| {
        let file = disk(file)?.metadata()?;
        if found.is_null() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let [creation, last_access, last_write] = times(&file);
        let information = FileInformation {
            attributes: attributes(&file),
            creation,
            last_access,
            last_write,
            volume: (file.dev() ^ (file.dev() >> 32)) as u32,
            size_high: (file.size() >> 32) as u32,
            size_low: file.size() as u32,
            links: file.nlink() as u32,
            index_high: (file.ino() >> 32) as u32,
            index_low: file.ino() as u32,
        };
        found.put(information);
        Ok(())
    })
}

#[cfg(test)]
mod tests;
