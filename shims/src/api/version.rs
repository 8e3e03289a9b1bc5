//! The version of Windows that is reported: 10, whose functions this library offers.

use crate::arguments::{In, Out};
use crate::boundary::guard_bool;
use crate::error::*;
use crate::object::RawHandle;
use crate::process;
use crate::text::{Wchar, narrow_and_wide};

const MAJOR: u32 = 10;
const MINOR: u32 = 0;
/// Windows 10 of 2018, and Windows Server 2019.
const BUILD: u32 = 17763;
/// `VER_PLATFORM_WIN32_NT`.
const PLATFORM: u32 = 2;
/// `VER_NT_WORKSTATION`.
const WORKSTATION: u8 = 1;

/// `OSVERSIONINFOEX`, in either width.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct VersionInfo<T> {
    size: u32,
    major: u32,
    minor: u32,
    build: u32,
    platform: u32,
    service_pack: [T; 128],
    service_pack_major: u16,
    service_pack_minor: u16,
    suite_mask: u16,
    product_type: u8,
    reserved: u8,
}

const VER_MINORVERSION: u32 = 0x01;
const VER_MAJORVERSION: u32 = 0x02;
const VER_BUILDNUMBER: u32 = 0x04;
const VER_PLATFORMID: u32 = 0x08;
const VER_SERVICEPACKMINOR: u32 = 0x10;
const VER_SERVICEPACKMAJOR: u32 = 0x20;
const VER_SUITENAME: u32 = 0x40;
const VER_PRODUCT_TYPE: u32 = 0x80;
const ALL: u32 = 0xFF;

const EQUAL: u8 = 1;
const GREATER: u8 = 2;
const GREATER_EQUAL: u8 = 3;
const LESS: u8 = 4;
const LESS_EQUAL: u8 = 5;
const AND: u8 = 6;
const OR: u8 = 7;

/// The condition for one of the fields: three bits for each, in the order of the flags.
fn condition(mask: u64, what: u32) -> u8 {
    (mask >> (3 * what.trailing_zeros()) & 7) as u8
}

/// Compares an actual value with a required one; `None` for an unknown condition.
fn holds<N: PartialOrd>(condition: u8, there: N, wanted: N) -> Option<bool> {
    Some(match condition {
        EQUAL => there == wanted,
        GREATER => there > wanted,
        GREATER_EQUAL => there >= wanted,
        LESS => there < wanted,
        LESS_EQUAL => there <= wanted,
        _ => return None,
    })
}

fn verify<T: Copy>(wanted: In<'_, VersionInfo<T>>, what: u32, mask: u64) -> i32 {
    let wanted = wanted.read();
    let result = wanted.filter(|_| what & ALL != 0 && mask != 0).and_then(|wanted| {
        let asked = |flag: u32| what & flag != 0;
        let mut all = true;
        for (flag, there, value) in [
            (VER_BUILDNUMBER, BUILD, wanted.build),
            (VER_PLATFORMID, PLATFORM, wanted.platform),
            (VER_PRODUCT_TYPE, WORKSTATION.into(), wanted.product_type.into()),
        ] {
            if asked(flag) {
                all &= holds(condition(mask, flag), there, value)?;
            }
        }
        if asked(VER_SUITENAME) {
            // There are no suites.
            all &= match condition(mask, VER_SUITENAME) {
                AND => wanted.suite_mask == 0,
                OR => wanted.suite_mask == 0,
                _ => return None,
            };
        }
        // Version and service pack numbers are compared as one number, by the condition of the first part.
        let parts = [
            (VER_MAJORVERSION, MAJOR, wanted.major),
            (VER_MINORVERSION, MINOR, wanted.minor),
            (VER_SERVICEPACKMAJOR, 0, wanted.service_pack_major.into()),
            (VER_SERVICEPACKMINOR, 0, wanted.service_pack_minor.into()),
        ];
        let asked_parts: Vec<_> = parts.iter().filter(|(flag, ..)| asked(*flag)).collect();
        if let Some((first, ..)) = asked_parts.first() {
            let there: Vec<u32> = asked_parts.iter().map(|(_, there, _)| *there).collect();
            let values: Vec<u32> = asked_parts.iter().map(|(_, _, value)| *value).collect();
            all &= holds(condition(mask, *first), there, values)?;
        }
        Some(all)
    });
    let error = match result {
        Some(true) => return 1,
        Some(false) => ERROR_OLD_WIN_VERSION,
        None => ERROR_BAD_ARGUMENTS,
    };
    set_last_error(error);
    0
}

/// # Safety
/// `info` is NULL, or says how large it is.
unsafe fn version<T: Default + Copy>(info: *mut VersionInfo<T>) -> i32 {
    const REST: usize = 8;
    let whole = size_of::<VersionInfo<T>>() as u32;
    // SAFETY: not NULL, hence readable at least up to the size that it tells, which is its first field.
    let told = (!info.is_null()).then(|| unsafe { (*info).size });
    if !told.is_some_and(|size| size == whole || size == whole - REST as u32) {
        set_last_error(ERROR_INSUFFICIENT_BUFFER);
        return 0;
    }
    let version = VersionInfo {
        size: told.unwrap_or(0),
        major: MAJOR,
        minor: MINOR,
        build: BUILD,
        platform: PLATFORM,
        service_pack: [T::default(); 128],
        service_pack_major: 0,
        service_pack_minor: 0,
        suite_mask: 0,
        product_type: WORKSTATION,
        reserved: 0,
    };
    let size = version.size as usize;
    // SAFETY: so many bytes are there, of a structure without padding.
    unsafe { info.cast::<u8>().copy_from_nonoverlapping((&raw const version).cast(), size) };
    1
}

/// `VerSetConditionMask`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_VerSetConditionMask(mask: u64, what: u32, condition: u8) -> u64 {
    // Of several flags the highest counts.
    match (what & ALL).checked_ilog2() {
        Some(flag) if condition & 7 != 0 => mask | u64::from(condition & 7) << (3 * flag),
        _ => mask,
    }
}

/// `GetVersion`: major, minor and build number in one.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetVersion() -> u32 {
    BUILD << 16 | MINOR << 8 | MAJOR
}

narrow_and_wide! {
    "`VerifyVersionInfo`."
    ndw_VerifyVersionInfoA ndw_VerifyVersionInfoW = verify(wanted: In<'_, VersionInfo<T>>, what: u32, mask: u64) -> i32;
    "`GetVersionEx`."
    ndw_GetVersionExA ndw_GetVersionExW = unsafe version(info: *mut VersionInfo<T>) -> i32;
}

/// `RtlGetVersion`: in both sizes; a status for another one.
///
/// # Safety
/// `info` is NULL, or says how large it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_RtlGetVersion(info: *mut VersionInfo<Wchar>) -> i32 {
    const INVALID_PARAMETER: i32 = 0xC000_000D_u32 as i32;
    // SAFETY: C's caller has a structure of the size that it tells.
    if unsafe { version(info) } == 1 { 0 } else { INVALID_PARAMETER }
}

/// `IsWow64Process`: no.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_IsWow64Process(process: RawHandle, answer: Out<'_, i32>) -> i32 {
    guard_bool(|| {
        process::own(process)?;
        answer.required(ERROR_NOACCESS)?.put(0);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    fn info(major: u32, minor: u32) -> VersionInfo<u8> {
        // SAFETY: plain numbers.
        let mut info: VersionInfo<u8> = unsafe { std::mem::zeroed() };
        (info.size, info.major, info.minor) = (size_of::<VersionInfo<u8>>() as u32, major, minor);
        info
    }

    #[test]
    fn a_version_is_compared_as_one_number() {
        let mask = |condition| {
            let mask = ndw_VerSetConditionMask(0, VER_MAJORVERSION, condition);
            ndw_VerSetConditionMask(mask, VER_MINORVERSION, condition)
        };
        let both = VER_MAJORVERSION | VER_MINORVERSION;
        for (major, minor, condition, expected) in [
            (10, 0, EQUAL, 1),
            (6, 3, GREATER_EQUAL, 1),
            (6, 3, GREATER, 1),
            (10, 0, GREATER, 0),
            (10, 1, GREATER_EQUAL, 0),
            (11, 0, LESS, 1),
            (10, 0, LESS_EQUAL, 1),
        ] {
            let result = verify(In::from(&info(major, minor)), both, mask(condition));
            assert_eq!(result, expected, "{major}.{minor}, {condition}");
            if expected == 0 {
                assert_eq!(last_error(), ERROR_OLD_WIN_VERSION);
            }
        }
        let product = ndw_VerSetConditionMask(0, VER_PRODUCT_TYPE, EQUAL);
        let workstation = VersionInfo { product_type: WORKSTATION, ..info(0, 0) };
        assert_eq!(verify(In::from(&workstation), VER_PRODUCT_TYPE, product), 1);
        assert_eq!(verify(In::from(&info(0, 0)), VER_PRODUCT_TYPE, product), 0);
    }

    #[test]
    fn no_condition_and_no_structure_are_bad_arguments() {
        assert_eq!(
            (verify(In::from(&info(10, 0)), VER_MAJORVERSION, 0), last_error()),
            (0, ERROR_BAD_ARGUMENTS)
        );
        assert_eq!(verify(In::from(&info(10, 0)), 0, 1), 0);
        assert_eq!(verify(In::<VersionInfo<u8>>::NULL, VER_MAJORVERSION, 8), 0);
        let other = ndw_VerSetConditionMask(0, VER_MINORVERSION, EQUAL);
        assert_eq!(verify(In::from(&info(10, 0)), VER_MAJORVERSION, other), 0);
    }

    #[test]
    fn the_version_fits_the_structure_that_is_given() {
        for (size, full) in [(0, false), (8, true)] {
            let mut info = info(0, 0);
            info.size = info.size - 8 + size;
            info.suite_mask = 7;
            // SAFETY: the size told is there.
            assert_eq!(unsafe { version(&mut info) }, 1);
            assert_eq!((info.major, info.build, info.product_type == WORKSTATION), (MAJOR, BUILD, full));
            assert_eq!(info.suite_mask, if full { 0 } else { 7 });
            info.size = 3;
            // SAFETY: the size told is there, or NULL.
            assert_eq!(unsafe { (version(&mut info), version(null_mut::<VersionInfo<u8>>())) }, (0, 0));
            assert_eq!(last_error(), ERROR_INSUFFICIENT_BUFFER);
        }
        assert_eq!(ndw_GetVersion() & 0xFFFF, 10);
        assert_eq!((size_of::<VersionInfo<u8>>(), size_of::<VersionInfo<u32>>()), (156, 540));
    }

    #[test]
    fn the_process_is_of_64_bits() {
        let mut answer = 7;
        // SAFETY: places of ours, or NULL.
        unsafe {
            assert_eq!((ndw_IsWow64Process(RawHandle::INVALID, Out::from(&mut answer)), answer), (1, 0));
            assert_eq!(
                (ndw_IsWow64Process(RawHandle::NULL, Out::from(&mut answer)), last_error()),
                (0, ERROR_INVALID_HANDLE)
            );
            assert_eq!(
                (ndw_IsWow64Process(RawHandle::INVALID, Out::NULL), last_error()),
                (0, ERROR_NOACCESS)
            );
            let mut info: VersionInfo<Wchar> = std::mem::zeroed();
            assert_eq!(ndw_RtlGetVersion(&mut info), 0xC000_000D_u32 as i32);
            info.size = size_of::<VersionInfo<Wchar>>() as u32;
            assert_eq!((ndw_RtlGetVersion(&mut info), info.major, info.build), (0, MAJOR, BUILD));
        }
    }
}
