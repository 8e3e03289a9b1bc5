//! Functions of Windows that are a few lines on top of others (`ndwin/small.h`). Those that the headers define inline instead are here for
//! programs that ask `GetProcAddress` for them.

use super::file_mapping::{ndw_CreateFileMappingA, ndw_CreateFileMappingW, ndw_MapViewOfFileEx};
use super::thread::ndw_SleepEx;
use super::uuid::{Guid, ndw_UuidCreate};
use super::wait::ndw_WaitForMultipleObjectsEx;
use crate::arguments::{Out, Text};
use crate::boundary::guard_bool;
use crate::crt::path::{ndw__fullpath, ndw__wfullpath};
use crate::error::*;
use crate::library::{ndw_GetModuleFileNameA, ndw_GetModuleFileNameW};
use crate::memory::virtual_memory::{ndw_VirtualAlloc, ndw_VirtualFree};
use crate::object::RawHandle;
use crate::text::{self, Unit, Wchar, narrow_and_wide};
use std::ffi::{c_int, c_ulong, c_void};
use std::ptr::null_mut;

/// `GetCurrentProcess()`: there is no other process.
const THIS_PROCESS: RawHandle = RawHandle::INVALID;
/// `NUMA_NO_PREFERRED_NODE`.
const NO_NODE: u32 = u32::MAX;
/// `CP_ACP`, `CP_OEMCP`, `CP_UTF8`: all of them are UTF-8.
const CODE_PAGES: [u32; 3] = [0, 1, 65001];

fn this(process: RawHandle) -> Result<(), u32> {
    if process == THIS_PROCESS { Ok(()) } else { Err(ERROR_INVALID_HANDLE) }
}

/// `WIN32_MEMORY_RANGE_ENTRY`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemoryRange {
    start: usize,
    size: usize,
}

/// `PrefetchVirtualMemory`: a hint.
///
/// # Safety
/// `ranges` is NULL or has `count` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_PrefetchVirtualMemory(
    process: RawHandle,
    count: usize,
    ranges: *mut MemoryRange,
    flags: u32,
) -> i32 {
    guard_bool(|| {
        this(process)?;
        // SAFETY: NULL or so many entries, as this function asks.
        let ranges = unsafe { text::cells(ranges, count) }.filter(|ranges| !ranges.is_empty() && flags == 0);
        for range in ranges.ok_or(ERROR_INVALID_PARAMETER)? {
            let range = range.get();
            let start = range.start & !(crate::memory::page_size() - 1);
            let length = range.start.wrapping_add(range.size).wrapping_sub(start);
            // SAFETY: changes nothing that a program sees.
            unsafe { libc::posix_madvise(start as *mut c_void, length, libc::POSIX_MADV_WILLNEED) };
        }
        Ok(())
    })
}

/// `VirtualAllocExNuma`: the node is preferred, not required.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_VirtualAllocExNuma(
    process: RawHandle,
    address: usize,
    size: usize,
    kind: u32,
    protect: u32,
    node: u32,
) -> *mut c_void {
    let refused = match this(process) {
        Err(code) => Some(code),
        Ok(()) => (node >= 64 && node != NO_NODE).then_some(ERROR_INVALID_PARAMETER),
    };
    if let Some(code) = refused {
        set_last_error(code);
        return null_mut();
    }
    let start = ndw_VirtualAlloc(address, size, kind, protect);
    if !start.is_null() && node != NO_NODE {
        const MPOL_PREFERRED: c_int = 1;
        let nodes: c_ulong = 1 << node;
        let bits: c_ulong = 65;
        // SAFETY: memory that was just made, and a set of 64 bits.
        unsafe { libc::syscall(libc::SYS_mbind, start, size, MPOL_PREFERRED, &nodes, bits, 0) };
    }
    start
}

/// `VirtualFreeEx`: of this process.
///
/// # Safety
/// As for [`ndw_VirtualFree`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_VirtualFreeEx(process: RawHandle, start: usize, size: usize, kind: u32) -> i32 {
    if let Err(code) = this(process) {
        set_last_error(code);
        return 0;
    }
    // SAFETY: as this function asks.
    unsafe { ndw_VirtualFree(start, size, kind) }
}

/// `CreateFileMappingNumaA`, without the node.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CreateFileMappingNumaA(
    file: RawHandle,
    security: *const c_void,
    protect: u32,
    high: u32,
    low: u32,
    name: Text<'_, u8>,
    _node: u32,
) -> RawHandle {
    ndw_CreateFileMappingA(file, security, protect, high, low, name)
}

/// `CreateFileMappingNumaW`, without the node.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_CreateFileMappingNumaW(
    file: RawHandle,
    security: *const c_void,
    protect: u32,
    high: u32,
    low: u32,
    name: Text<'_, Wchar>,
    _node: u32,
) -> RawHandle {
    ndw_CreateFileMappingW(file, security, protect, high, low, name)
}

/// `MapViewOfFileExNuma`, without the node.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_MapViewOfFileExNuma(
    section: RawHandle,
    access: u32,
    high: u32,
    low: u32,
    bytes: usize,
    address: usize,
    _node: u32,
) -> *mut c_void {
    ndw_MapViewOfFileEx(section, access, high, low, bytes, address)
}

/// Stores the return addresses from the caller of the function on that this is part of.
///
/// # Safety
/// `frames` has room for `count` addresses.
#[inline(always)]
unsafe fn capture(skip: u32, count: u32, frames: *mut *mut c_void, hash: Out<'_, u32>) -> u16 {
    let mut found = [null_mut(); 128];
    // SAFETY: room for so many.
    let all = unsafe { libc::backtrace(found.as_mut_ptr(), 128) };
    // SAFETY: so much room, as this function asks.
    let Some(frames) = (unsafe { text::cells(frames, count as usize) }) else { return 0 };
    // The first is in the function that was called.
    let wanted = found[..all.max(0) as usize].iter().skip(1).skip(skip as usize);
    let stored = frames.iter().zip(wanted).map(|(place, frame)| place.set(*frame)).count();
    hash.put(frames[..stored].iter().fold(0u32, |sum, frame| sum.wrapping_add(frame.get() as usize as u32)));
    stored as u16
}

/// `RtlCaptureStackBackTrace`: from the caller on.
///
/// # Safety
/// `frames` has room for `count` addresses.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn ndw_RtlCaptureStackBackTrace(
    skip: u32,
    count: u32,
    frames: *mut *mut c_void,
    hash: Out<'_, u32>,
) -> u16 {
    // SAFETY: as this function asks.
    unsafe { capture(skip, count, frames, hash) }
}

/// `CaptureStackBackTrace`.
///
/// # Safety
/// As for [`ndw_RtlCaptureStackBackTrace`].
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn ndw_CaptureStackBackTrace(
    skip: u32,
    count: u32,
    frames: *mut *mut c_void,
    hash: Out<'_, u32>,
) -> u16 {
    // SAFETY: as this function asks.
    unsafe { capture(skip, count, frames, hash) }
}

/// What differs between the widths.
pub(super) trait Named: Unit {
    /// # Safety
    /// There is room for `size` units.
    unsafe fn module_name(buffer: *mut Self, size: u32) -> u32;
    fn full_path(file: Text<'_, Self>) -> *mut Self;
}

impl Named for u8 {
    unsafe fn module_name(buffer: *mut u8, size: u32) -> u32 {
        // SAFETY: as the trait asks.
        unsafe { ndw_GetModuleFileNameA(null_mut(), buffer.cast(), size) }
    }
    fn full_path(file: Text<'_, u8>) -> *mut u8 {
        // SAFETY: no buffer.
        unsafe { ndw__fullpath(null_mut(), file, 0) }
    }
}

impl Named for Wchar {
    unsafe fn module_name(buffer: *mut Wchar, size: u32) -> u32 {
        // SAFETY: as the trait asks.
        unsafe { ndw_GetModuleFileNameW(null_mut(), buffer, size) }
    }
    fn full_path(file: Text<'_, Wchar>) -> *mut Wchar {
        // SAFETY: no buffer.
        unsafe { ndw__wfullpath(null_mut(), file, 0) }
    }
}

/// # Safety
/// `buffer` is NULL or has as much room as `size` says.
unsafe fn image_name<T: Named>(process: RawHandle, flags: u32, buffer: *mut T, size: *mut u32) -> i32 {
    guard_bool(|| {
        this(process)?;
        if flags & !1 != 0 || buffer.is_null() || size.is_null() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        // SAFETY: not NULL, hence the caller's.
        let room = unsafe { size.read() };
        // SAFETY: so much room, as the caller promises.
        let length = unsafe { T::module_name(buffer, room) };
        if length == 0 || length == room {
            return Err(last_error());
        }
        // SAFETY: not NULL, hence the caller's.
        unsafe { size.write(length) };
        Ok(())
    })
}

/// # Safety
/// `buffer` is NULL or has room for `size` units; `part` is NULL or writable.
pub(super) unsafe fn full_path<T: Named + PartialEq + From<u8>>(
    file: Text<'_, T>,
    size: u32,
    buffer: *mut T,
    part: Out<'_, *mut T>,
) -> u32 {
    let path = match file.units() {
        None | Some([]) => {
            set_last_error(ERROR_INVALID_PARAMETER);
            return 0;
        }
        _ => T::full_path(file),
    };
    // SAFETY: NULL, or terminated.
    let Some(units) = (unsafe { T::units(path) }) else {
        set_last_error(ERROR_INVALID_NAME);
        return 0;
    };
    let length = units.len();
    // SAFETY: NULL or so much room, as the caller promises.
    let stored = unsafe { text::store(units, buffer, size as usize) };
    let last = units.iter().rposition(|unit| *unit == T::from(b'/')).map_or(0, |slash| slash + 1);
    // SAFETY: allocated for this call, and not used any more.
    unsafe { libc::free(path.cast()) };
    if !stored {
        return length as u32 + 1;
    }
    part.put(if last < length { buffer.wrapping_add(last) } else { null_mut() });
    length as u32
}

narrow_and_wide! {
    "`QueryFullProcessImageName`: of this process."
    ndw_QueryFullProcessImageNameA ndw_QueryFullProcessImageNameW
        = unsafe image_name(process: RawHandle, flags: u32, buffer: *mut T, size: *mut u32) -> i32;
    "`GetFullPathName`."
    ndw_GetFullPathNameA ndw_GetFullPathNameW
        = unsafe full_path(file: Text<'_, T>, size: u32, buffer: *mut T, part: Out<'_, *mut T>) -> u32;
}

/// `STARTUPINFO` of both widths: the size, and what is not known.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct StartupInfo {
    size: u32,
    padding: u32,
    unknown: [u64; 12],
}

const _: () = assert!(size_of::<StartupInfo>() == 104);

/// `GetStartupInfoA`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetStartupInfoA(info: Out<'_, StartupInfo>) {
    info.put(StartupInfo { size: size_of::<StartupInfo>() as u32, padding: 0, unknown: [0; 12] });
}

/// `GetStartupInfoW`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetStartupInfoW(info: Out<'_, StartupInfo>) {
    ndw_GetStartupInfoA(info);
}

/// `MsgWaitForMultipleObjectsEx`: there are no messages.
///
/// # Safety
/// `handles` is NULL or has `count` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_MsgWaitForMultipleObjectsEx(
    count: u32,
    handles: *const RawHandle,
    millis: u32,
    _wake: u32,
    flags: u32,
) -> u32 {
    const WAIT_ALL: u32 = 1;
    const ALERTABLE: u32 = 2;
    const INPUT_AVAILABLE: u32 = 4;
    if flags & !(WAIT_ALL | ALERTABLE | INPUT_AVAILABLE) != 0 {
        set_last_error(ERROR_INVALID_PARAMETER);
        return u32::MAX;
    }
    let alertable = i32::from(flags & ALERTABLE != 0);
    if count == 0 {
        // WAIT_IO_COMPLETION or WAIT_TIMEOUT
        return if ndw_SleepEx(millis, alertable) != 0 { 0xC0 } else { 0x102 };
    }
    // SAFETY: so many entries, as this function asks.
    unsafe {
        ndw_WaitForMultipleObjectsEx(count, handles, i32::from(flags & WAIT_ALL != 0), millis, alertable)
    }
}

/// `MsgWaitForMultipleObjects`.
///
/// # Safety
/// As for [`ndw_MsgWaitForMultipleObjectsEx`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_MsgWaitForMultipleObjects(
    count: u32,
    handles: *const RawHandle,
    all: i32,
    millis: u32,
    wake: u32,
) -> u32 {
    // SAFETY: as this function asks.
    unsafe { ndw_MsgWaitForMultipleObjectsEx(count, handles, millis, wake, u32::from(all != 0)) }
}

/// `FlushInstructionCache`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_FlushInstructionCache(process: RawHandle, _address: usize, _size: usize) -> i32 {
    #[cfg(target_arch = "aarch64")]
    unsafe extern "C" {
        fn __clear_cache(start: usize, end: usize);
    }
    guard_bool(|| {
        this(process)?;
        #[cfg(target_arch = "aarch64")]
        // SAFETY: changes nothing but what the processor has read ahead.
        unsafe {
            __clear_cache(_address, _address.wrapping_add(_size));
        }
        Ok(())
    })
}

/// `CPINFO`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodePageInfo {
    longest: u32,
    default: [u8; 2],
    /// And what is left of the structure, which programs compare as bytes.
    lead_bytes: [u8; 14],
}

/// `GetCPInfo`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetCPInfo(page: u32, info: Out<'_, CodePageInfo>) -> i32 {
    guard_bool(|| {
        if !CODE_PAGES.contains(&page) || info.is_null() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        info.put(CodePageInfo { longest: 4, default: [b'?', 0], lead_bytes: [0; 14] });
        Ok(())
    })
}

/// `GetACP`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetACP() -> u32 {
    65001
}

/// `GetOEMCP`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetOEMCP() -> u32 {
    65001
}

/// `EncodePointer`, which hides nothing.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_EncodePointer(pointer: *mut c_void) -> *mut c_void {
    pointer
}

/// `DecodePointer`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_DecodePointer(pointer: *mut c_void) -> *mut c_void {
    pointer
}

/// `RtlCompareMemory`: how many bytes are the same from the beginning on.
///
/// # Safety
/// `length` bytes of both can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_RtlCompareMemory(first: *const u8, second: *const u8, length: usize) -> usize {
    // SAFETY: so many bytes, as this function asks.
    let byte = |of: *const u8, at: &usize| unsafe { of.wrapping_add(*at).read() };
    let differs = |at: &usize| byte(first, at) != byte(second, at);
    (0..length).find(differs).unwrap_or(length)
}

/// `UuidCreateSequential`: random, as all are here.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_UuidCreateSequential(uuid: Out<'_, Guid>) -> i32 {
    ndw_UuidCreate(uuid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;

    #[test]
    fn names_and_parts_of_paths_are_told() {
        let mut buffer = [0 as Wchar; 300];
        let mut size = 300;
        // SAFETY: there is so much room.
        let told = unsafe { ndw_QueryFullProcessImageNameW(THIS_PROCESS, 0, buffer.as_mut_ptr(), &mut size) };
        assert_eq!(told, 1);
        let expected = std::env::current_exe().unwrap();
        assert_eq!(text::from_wide(&buffer[..size as usize]), expected.to_str().unwrap());
        let mut part = null_mut();
        let name = w("/tmp/x/../file");
        // SAFETY: there is so much room.
        let length = unsafe {
            ndw_GetFullPathNameW(Text::terminated(&name), 300, buffer.as_mut_ptr(), Out::from(&mut part))
        };
        assert_eq!(text::from_wide(&buffer[..length as usize]), "/tmp/file");
        assert!(std::ptr::eq(part, &buffer[5]));
        // SAFETY: nothing is written.
        unsafe {
            assert_eq!(ndw_GetFullPathNameW(Text::terminated(&name), 3, buffer.as_mut_ptr(), Out::NULL), 10);
            assert_eq!(ndw_GetFullPathNameA(Text::NULL, 0, null_mut(), Out::NULL), 0);
            assert_eq!(ndw_QueryFullProcessImageNameW(RawHandle(4), 0, buffer.as_mut_ptr(), &mut size), 0);
        }
        assert_eq!(last_error(), ERROR_INVALID_HANDLE);
    }

    #[test]
    fn memory_on_a_node_is_made_and_fetched() {
        let block = ndw_VirtualAllocExNuma(THIS_PROCESS, 0, 4096, 0x3000, 4, 0);
        assert!(!block.is_null());
        let mut ranges = [MemoryRange { start: block as usize + 5, size: 10 }];
        // SAFETY: one entry, or none.
        unsafe {
            assert_eq!(ndw_PrefetchVirtualMemory(THIS_PROCESS, 1, ranges.as_mut_ptr(), 0), 1);
            assert_eq!(ndw_PrefetchVirtualMemory(THIS_PROCESS, 0, ranges.as_mut_ptr(), 0), 0);
            assert_eq!(ndw_VirtualFreeEx(RawHandle(4), block as usize, 0, 0x8000), 0);
            assert_eq!(ndw_VirtualFreeEx(THIS_PROCESS, block as usize, 0, 0x8000), 1);
            assert_eq!(ndw_RtlCompareMemory(c"abc".as_ptr().cast(), c"abd".as_ptr().cast(), 3), 2);
        }
        assert!(ndw_VirtualAllocExNuma(THIS_PROCESS, 0, 4096, 0x3000, 4, 64).is_null());
    }

    #[test]
    fn frames_are_those_of_the_caller() {
        let mut expected = [null_mut(); 5];
        // SAFETY: room for five.
        assert_eq!(unsafe { libc::backtrace(expected.as_mut_ptr(), 5) }, 5);
        for function in [ndw_RtlCaptureStackBackTrace, ndw_CaptureStackBackTrace] {
            let mut frames = [null_mut(); 5];
            let mut hash = 0;
            // SAFETY: room for five.
            assert_eq!(unsafe { function(0, 5, frames.as_mut_ptr(), Out::from(&mut hash)) }, 5);
            // The first is another place in this very function.
            assert_eq!(frames[1..], expected[1..]);
            assert!(!frames[0].is_null() && frames[0] != frames[1]);
            assert_eq!(hash, frames.iter().fold(0u32, |sum, frame| sum.wrapping_add(*frame as u32)));
            // SAFETY: room for five, of which four are used.
            assert_eq!(unsafe { function(1, 4, frames.as_mut_ptr(), Out::NULL) }, 4);
            assert_eq!(frames[..4], expected[1..]);
        }
    }
}
