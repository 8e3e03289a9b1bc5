//! System information: processors, page size, memory.

use super::{ALLOCATION_GRANULARITY, outcome, page_size};
use crate::arguments::{InOut, Out};
use crate::error::*;
use crate::processor::topology::topology;
use crate::processor::{Set, mask_of, number_of};
use std::fs;

/// The range of user addresses, for `GetSystemInfo`.
pub(super) const LOWEST_ADDRESS: usize = ALLOCATION_GRANULARITY;
pub(super) const HIGHEST_ADDRESS: usize = 0x7FFF_FFFE_FFFF;

/// `SYSTEM_INFO`.
#[repr(C)]
#[derive(Default)]
#[allow(missing_docs)] // the fields are Windows'
pub struct SystemInfo {
    pub processor_architecture: u16,
    pub reserved: u16,
    pub page_size: u32,
    pub minimum_address: usize,
    pub maximum_address: usize,
    pub active_processor_mask: usize,
    pub number_of_processors: u32,
    pub processor_type: u32,
    pub allocation_granularity: u32,
    pub processor_level: u16,
    pub processor_revision: u16,
}

const _: () = assert!(size_of::<SystemInfo>() == 48);

/// `MEMORYSTATUSEX`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct MemoryStatus {
    pub length: u32,
    /// Percent of the physical memory in use.
    pub memory_load: u32,
    pub total_physical: u64,
    pub available_physical: u64,
    pub total_page_file: u64,
    pub available_page_file: u64,
    pub total_virtual: u64,
    pub available_virtual: u64,
    pub available_extended_virtual: u64,
}

const _: () = assert!(size_of::<MemoryStatus>() == 64);

/// `PROCESSOR_ARCHITECTURE_AMD64` or `PROCESSOR_ARCHITECTURE_ARM64`.
const ARCHITECTURE: u16 = if cfg!(target_arch = "aarch64") { 12 } else { 9 };
/// `PROCESSOR_AMD_X8664`; other processors have no number.
const PROCESSOR_TYPE: u32 = if cfg!(target_arch = "x86_64") { 8664 } else { 0 };

/// The online processors.
pub fn processors() -> u32 {
    // SAFETY: sysconf only reads its argument.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as u32
}

/// Reads the text of `/proc/meminfo`. The commit limit is memory and swap, and so is what is available of it.
fn memory_status(meminfo: &str) -> Option<MemoryStatus> {
    let bytes = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    };
    let (total, available) = (bytes("MemTotal")?, bytes("MemAvailable")?);
    let user_space = (HIGHEST_ADDRESS - LOWEST_ADDRESS + 1) as u64;
    Some(MemoryStatus {
        length: size_of::<MemoryStatus>() as u32,
        memory_load: (total.saturating_sub(available) * 100 / total.max(1)) as u32,
        total_physical: total,
        available_physical: available,
        total_page_file: total + bytes("SwapTotal").unwrap_or(0),
        available_page_file: available + bytes("SwapFree").unwrap_or(0),
        total_virtual: user_space,
        available_virtual: user_space,
        available_extended_virtual: 0,
    })
}

/// The processors of the group of this one; a machine has one at least.
fn group_mask(online: &Set, processor: usize) -> u64 {
    let (group, number) = number_of(processor);
    mask_of(online, group).max(1 << number)
}

/// `GetSystemInfo`: of the group that the calling thread runs in.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetSystemInfo(info: Out<'_, SystemInfo>) {
    if info.is_null() {
        return;
    }
    let mask = group_mask(&topology().online, crate::processor::current());
    let filled = SystemInfo {
        processor_architecture: ARCHITECTURE,
        page_size: page_size() as u32,
        minimum_address: LOWEST_ADDRESS,
        maximum_address: HIGHEST_ADDRESS,
        active_processor_mask: mask as usize,
        number_of_processors: mask.count_ones(),
        processor_type: PROCESSOR_TYPE,
        allocation_granularity: ALLOCATION_GRANULARITY as u32,
        ..SystemInfo::default()
    };
    info.put(filled);
}

/// `GetNativeSystemInfo`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetNativeSystemInfo(info: Out<'_, SystemInfo>) {
    ndw_GetSystemInfo(info);
}

/// `GlobalMemoryStatusEx`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GlobalMemoryStatusEx(status: InOut<'_, MemoryStatus>) -> i32 {
    if status.read().is_none_or(|status| status.length as usize != size_of::<MemoryStatus>()) {
        return outcome(Err(ERROR_INVALID_PARAMETER));
    }
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    outcome(memory_status(&meminfo).map(|filled| status.put(filled)).ok_or(ERROR_NOT_SUPPORTED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::processor::ndw_GetActiveProcessorCount;

    #[test]
    fn system_info_of_this_machine() {
        let mut info = SystemInfo::default();
        ndw_GetSystemInfo(Out::from(&mut info));
        assert_eq!(info.page_size as usize, page_size());
        assert_eq!(info.allocation_granularity, 65536);
        assert_eq!(info.active_processor_mask.count_ones(), info.number_of_processors);
        // The thread may have moved to another group since.
        let counts = |group| ndw_GetActiveProcessorCount(group) == info.number_of_processors;
        assert!((0..topology().groups()).any(counts));
    }

    #[test]
    fn system_info_is_of_one_group() {
        let online: Set = (0..100).filter(|processor| *processor != 3).collect();
        assert_eq!(group_mask(&online, 0), u64::MAX - 8);
        assert_eq!(group_mask(&online, 70), (1 << 36) - 1);
        assert_eq!(group_mask(&Set::new(), 0), 1);
    }

    #[test]
    fn memory_status_from_text() {
        let text =
            "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 250 kB\nSwapTotal: 50 kB\nSwapFree: 10 kB\n";
        let status = memory_status(text).unwrap();
        assert_eq!((status.memory_load, status.total_physical), (75, 1_024_000));
        assert_eq!((status.total_page_file, status.available_page_file), (1050 * 1024, 260 * 1024));
        assert_eq!(memory_status("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn memory_status_checks_its_length() {
        let mut status = MemoryStatus::default();
        assert_eq!(ndw_GlobalMemoryStatusEx(InOut::from(&mut status)), 0);
        assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
        status.length = 64;
        assert_eq!(ndw_GlobalMemoryStatusEx(InOut::from(&mut status)), 1);
        assert_eq!(ndw_GlobalMemoryStatusEx(InOut::NULL), 0);
        assert!(status.total_physical > 0 && status.available_physical <= status.total_physical);
    }
}
