//! `PAGE_*` protections.

use super::maps::Mapping;
use crate::error::ERROR_INVALID_PARAMETER;
use std::ffi::c_int;

/// `PAGE_NOACCESS`.
pub const PAGE_NOACCESS: u32 = 0x01;
/// `PAGE_READONLY`.
pub const PAGE_READONLY: u32 = 0x02;
/// `PAGE_READWRITE`.
pub const PAGE_READWRITE: u32 = 0x04;
/// `PAGE_EXECUTE`.
pub const PAGE_EXECUTE: u32 = 0x10;
/// `PAGE_EXECUTE_READ`.
pub const PAGE_EXECUTE_READ: u32 = 0x20;
/// `PAGE_EXECUTE_READWRITE`.
pub const PAGE_EXECUTE_READWRITE: u32 = 0x40;
/// `PAGE_NOCACHE` and `PAGE_WRITECOMBINE`: hints for devices, taken and ignored.
const PAGE_HINTS: u32 = 0x200 | 0x400;

/// `PAGE_*` as the kernel has it.
pub(super) fn kernel_protection(protect: u32) -> Result<c_int, u32> {
    Ok(match protect & !PAGE_HINTS {
        PAGE_NOACCESS => libc::PROT_NONE,
        PAGE_READONLY => libc::PROT_READ,
        PAGE_READWRITE => libc::PROT_READ | libc::PROT_WRITE,
        PAGE_EXECUTE => libc::PROT_EXEC,
        PAGE_EXECUTE_READ => libc::PROT_READ | libc::PROT_EXEC,
        PAGE_EXECUTE_READWRITE => libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
        _ => return Err(ERROR_INVALID_PARAMETER),
    })
}

/// The protection of a mapping as `PAGE_*`.
pub(super) fn windows_protection(mapping: &Mapping) -> u32 {
    match (mapping.read, mapping.write, mapping.execute) {
        (_, true, true) => PAGE_EXECUTE_READWRITE,
        (_, true, false) => PAGE_READWRITE,
        (true, false, true) => PAGE_EXECUTE_READ,
        (true, false, false) => PAGE_READONLY,
        (false, false, true) => PAGE_EXECUTE,
        (false, false, false) => PAGE_NOACCESS,
    }
}
