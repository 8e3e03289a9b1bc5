//! Random numbers: `BCryptGenRandom` and `RtlGenRandom`, by the kernel's generator.

use crate::arguments::{Out, Text};
use crate::boundary::guard;
use crate::error::errno_to_win32;
use crate::text::Wchar;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::ffi::c_int;

const SUCCESS: i32 = 0;
const INVALID_HANDLE: i32 = 0xC000_0008_u32 as i32;
const INVALID_PARAMETER: i32 = 0xC000_000D_u32 as i32;
const NOT_FOUND: i32 = 0xC000_0225_u32 as i32;
const INTERNAL_ERROR: i32 = 0xC000_00E5_u32 as i32;
const UNSUCCESSFUL: i32 = 0xC000_0001_u32 as i32;

/// `BCRYPT_RNG_ALG_HANDLE`, which `BCryptOpenAlgorithmProvider` gives, too.
const GENERATOR: usize = 0x81;
/// `BCRYPT_USE_SYSTEM_PREFERRED_RNG`.
const SYSTEM_PREFERRED: u32 = 2;

/// Fills the memory with random bytes.
pub(super) fn fill(memory: &mut [u8]) -> Result<(), u32> {
    let mut done = 0;
    while done < memory.len() {
        match getrandom(&mut memory[done..], GetRandomFlags::empty()) {
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(errno_to_win32(error.raw_os_error())),
        }
    }
    Ok(())
}

/// As [`fill`], for a buffer of the program.
///
/// # Safety
/// `buffer` has room for `length` bytes, which nobody else uses meanwhile.
pub(super) unsafe fn fill_for_caller(buffer: *mut u8, length: u32) -> Result<(), u32> {
    // SAFETY: the room is there, as this function asks; only the kernel looks at it, which writes.
    fill(unsafe { std::slice::from_raw_parts_mut(buffer, length as usize) })
}

/// `BCryptGenRandom`: an NTSTATUS.
///
/// # Safety
/// `buffer` must be NULL or have room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_BCryptGenRandom(
    algorithm: usize,
    buffer: *mut u8,
    length: u32,
    flags: u32,
) -> i32 {
    let wanted = match algorithm {
        0 => flags & SYSTEM_PREFERRED != 0,
        other => other == GENERATOR,
    };
    if !wanted {
        return INVALID_HANDLE;
    }
    if buffer.is_null() {
        return INVALID_PARAMETER;
    }
    guard(INTERNAL_ERROR, || {
        // SAFETY: not NULL, and the program says that `length` is its size.
        unsafe { fill_for_caller(buffer, length) }.map_or(UNSUCCESSFUL, |()| SUCCESS)
    })
}

/// `BCryptOpenAlgorithmProvider`: random numbers (`L"RNG"`) are the only algorithm.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_BCryptOpenAlgorithmProvider(
    algorithm: Out<'_, usize>,
    name: Text<'_, Wchar>,
    _implementation: *const Wchar,
    _flags: u32,
) -> i32 {
    let Some(name) = name.read().filter(|_| !algorithm.is_null()) else {
        return INVALID_PARAMETER;
    };
    if name != "RNG" {
        return NOT_FOUND;
    }
    algorithm.put(GENERATOR);
    SUCCESS
}

/// `BCryptCloseAlgorithmProvider`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_BCryptCloseAlgorithmProvider(algorithm: usize, _flags: u32) -> i32 {
    if algorithm == GENERATOR { SUCCESS } else { INVALID_HANDLE }
}

/// `RtlGenRandom`, whose symbol is `SystemFunction036`.
///
/// # Safety
/// `buffer` must be NULL or have room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_SystemFunction036(buffer: *mut u8, length: u32) -> u8 {
    // SAFETY: not NULL, and the program says that `length` is its size.
    guard(0, || u8::from(!buffer.is_null() && unsafe { fill_for_caller(buffer, length) }.is_ok()))
}

/// `rand_s`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_rand_s(number: Out<'_, u32>) -> c_int {
    let mut bytes = [0; 4];
    match number.is_null() || fill(&mut bytes).is_err() {
        true => crate::crt::failed(libc::EINVAL),
        false => {
            number.put(u32::from_ne_bytes(bytes));
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::w;
    use std::ptr::{null, null_mut};

    #[test]
    fn random_bytes_differ_and_fill_the_buffer() {
        let generate = |length: usize| {
            let mut bytes = vec![0u8; 1 << 20];
            // SAFETY: `bytes` is a megabyte long, and no test asks for more.
            let status =
                unsafe { ndw_BCryptGenRandom(0, bytes.as_mut_ptr(), length as u32, SYSTEM_PREFERRED) };
            assert_eq!(status, SUCCESS);
            assert!(bytes[length..].iter().all(|byte| *byte == 0));
            bytes.truncate(length);
            bytes
        };
        for length in [16, 256, 257, 1 << 20] {
            assert_ne!(generate(length), generate(length));
            // A buffer of this size is not left alone in any part.
            assert!(
                generate(length).chunks(16).all(|part| part.len() < 16 || part.iter().any(|byte| *byte != 0))
            );
        }
        assert!(generate(0).is_empty());
        let mut bytes = [0u8; 32];
        // SAFETY: the array has 32 bytes.
        assert_eq!(unsafe { ndw_SystemFunction036(bytes.as_mut_ptr(), 32) }, 1);
        assert_ne!(bytes, [0; 32]);
    }

    #[test]
    fn numbers_of_rand_s_use_all_their_bits() {
        let (mut all, mut any) = (u32::MAX, 0);
        for _ in 0..100 {
            let mut number = 0;
            assert_eq!(ndw_rand_s((&mut number).into()), 0);
            all &= number;
            any |= number;
        }
        assert_eq!((all, any), (0, u32::MAX));
        assert_eq!(ndw_rand_s(Out::NULL), libc::EINVAL);
    }

    #[test]
    fn generators_are_asked_for_by_handle_or_flag() {
        let mut byte = 0u8;
        let mut handle = 0;
        // SAFETY: `byte` is the one byte that is asked for, NULL is refused, and the handles are the provider's own.
        unsafe {
            for (algorithm, flags, status) in [
                (0, 0, INVALID_HANDLE),
                (0, 1, INVALID_HANDLE),
                (1, 0, INVALID_HANDLE),
                (1, SYSTEM_PREFERRED, INVALID_HANDLE),
                (GENERATOR, 0, SUCCESS),
                (0, SYSTEM_PREFERRED, SUCCESS),
            ] {
                assert_eq!(
                    ndw_BCryptGenRandom(algorithm, &mut byte, 1, flags),
                    status,
                    "{algorithm} {flags}"
                );
            }
            for length in [0, 1] {
                let status = ndw_BCryptGenRandom(0, null_mut(), length, SYSTEM_PREFERRED);
                assert_eq!(status, INVALID_PARAMETER);
            }
            assert_eq!(ndw_SystemFunction036(null_mut(), 1), 0);
            let open = |name: Text<'_, Wchar>, handle: Out<'_, usize>| {
                ndw_BCryptOpenAlgorithmProvider(handle, name, null(), 0)
            };
            assert_eq!(open(Text::terminated(&w("RNG")), (&mut handle).into()), SUCCESS);
            assert_eq!(ndw_BCryptGenRandom(handle, &mut byte, 1, 0), SUCCESS);
            assert_eq!(ndw_BCryptCloseAlgorithmProvider(handle, 0), SUCCESS);
            assert_eq!(ndw_BCryptCloseAlgorithmProvider(0, 0), INVALID_HANDLE);
            assert_eq!(open(Text::terminated(&w("AES")), (&mut handle).into()), NOT_FOUND);
            assert_eq!(open(Text::NULL, (&mut handle).into()), INVALID_PARAMETER);
            assert_eq!(open(Text::terminated(&w("RNG")), Out::NULL), INVALID_PARAMETER);
        }
    }
}
