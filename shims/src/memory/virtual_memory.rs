//! `VirtualAlloc`, `VirtualFree`, `VirtualProtect` and `VirtualQuery`.
//!
//! Reserved pages are mapped without access and without a claim on memory, committed ones with their protection.
//! Memory that came from elsewhere can be queried and protected, too.

use super::maps::{self, Mapping, Place};
use super::system::HIGHEST_ADDRESS;
use super::{ALLOCATION_GRANULARITY, outcome, page_size, pointer};
use crate::error::*;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::io;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `MEM_COMMIT`.
pub const MEM_COMMIT: u32 = 0x1000;
/// `MEM_RESERVE`.
pub const MEM_RESERVE: u32 = 0x2000;
/// `MEM_DECOMMIT`.
pub const MEM_DECOMMIT: u32 = 0x4000;
/// `MEM_RELEASE`.
pub const MEM_RELEASE: u32 = 0x8000;
/// `MEM_FREE`.
pub const MEM_FREE: u32 = 0x1_0000;
/// `MEM_PRIVATE`.
pub const MEM_PRIVATE: u32 = 0x2_0000;
/// `MEM_MAPPED`.
pub const MEM_MAPPED: u32 = 0x4_0000;
/// `MEM_IMAGE`.
pub const MEM_IMAGE: u32 = 0x100_0000;

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

/// A page that is reserved only: no protection has this value.
const RESERVED: u32 = 0;

/// `MEMORY_BASIC_INFORMATION`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct MemoryInformation {
    pub base_address: usize,
    pub allocation_base: usize,
    pub allocation_protect: u32,
    pub partition: u16,
    pub region_size: usize,
    pub state: u32,
    pub protect: u32,
    pub kind: u32,
}

const _: () = assert!(size_of::<MemoryInformation>() == 48);

/// The kernel's protection for a Windows one.
fn kernel_protection(protect: u32) -> Result<c_int, u32> {
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

fn windows_protection(mapping: &Mapping) -> u32 {
    match (mapping.read, mapping.write, mapping.execute) {
        (_, true, true) => PAGE_EXECUTE_READWRITE,
        (_, true, false) => PAGE_READWRITE,
        (true, false, true) => PAGE_EXECUTE_READ,
        (true, false, false) => PAGE_READONLY,
        (false, false, true) => PAGE_EXECUTE,
        (false, false, false) => PAGE_NOACCESS,
    }
}

/// What one `MEM_RESERVE` made.
struct Region {
    end: usize,
    protect: u32,
    /// Where each run of equal pages starts, and their protection or [`RESERVED`].
    runs: BTreeMap<usize, u32>,
}

impl Region {
    /// The run of equal pages from `page` on.
    fn run(&self, page: usize) -> (usize, u32) {
        let protect = self.runs.range(..=page).next_back().map_or(RESERVED, |(_, protect)| *protect);
        let next = self.runs.range(page + 1..).find(|(_, next)| **next != protect);
        (next.map_or(self.end, |(start, _)| *start), protect)
    }

    fn set(&mut self, pages: &Range<usize>, protect: u32) {
        let (_, behind) = self.run(pages.end);
        self.runs.retain(|start, _| !pages.contains(start));
        self.runs.insert(pages.start, protect);
        if pages.end < self.end {
            self.runs.insert(pages.end, behind);
        }
    }

    fn is_committed(&self, pages: &Range<usize>) -> bool {
        let mut page = pages.start;
        while page < pages.end {
            let (end, protect) = self.run(page);
            if protect == RESERVED {
                return false;
            }
            page = end;
        }
        true
    }
}

type Regions = BTreeMap<usize, Region>;

fn regions() -> MutexGuard<'static, Regions> {
    static REGIONS: Mutex<Regions> = Mutex::new(BTreeMap::new());
    REGIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The region that holds an address, with its base.
fn region_of(regions: &mut Regions, address: usize) -> Option<(usize, &mut Region)> {
    let (base, region) = regions.range_mut(..=address).next_back()?;
    (address < region.end).then_some((*base, region))
}

/// The whole pages that a range of bytes touches.
fn pages(address: usize, size: usize) -> Result<Range<usize>, u32> {
    let mask = page_size() - 1;
    let end = address.checked_add(size).and_then(|end| end.checked_add(mask));
    match end {
        Some(end) if size != 0 && end <= HIGHEST_ADDRESS => Ok(address & !mask..end & !mask),
        _ => Err(ERROR_INVALID_PARAMETER),
    }
}

fn last_error_of_kernel() -> u32 {
    errno_to_win32(io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// # Safety
/// Nobody relies on an access to the pages that the protection takes away.
unsafe fn protect_pages(pages: &Range<usize>, protection: c_int) -> Result<(), u32> {
    // SAFETY: the contract.
    match unsafe { libc::mprotect(pages.start as *mut c_void, pages.len(), protection) } {
        0 => Ok(()),
        _ => Err(last_error_of_kernel()),
    }
}

/// Maps pages without access: at `address`, or anywhere at a multiple of the granularity.
fn map(address: usize, size: usize) -> Result<usize, u32> {
    const FLAGS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let map = |address: usize, size: usize, flags: c_int| {
        // SAFETY: a new mapping that replaces none.
        let result = unsafe { libc::mmap(address as _, size, libc::PROT_NONE, FLAGS | flags, -1, 0) };
        if result == libc::MAP_FAILED { Err(last_error_of_kernel()) } else { Ok(result as usize) }
    };
    if address != 0 {
        return map(address, size, libc::MAP_FIXED_NOREPLACE).map_err(|_| ERROR_INVALID_ADDRESS);
    }
    let start = map(0, size + ALLOCATION_GRANULARITY, 0)?;
    let base = start.next_multiple_of(ALLOCATION_GRANULARITY);
    let (front, back) = (base - start, start + ALLOCATION_GRANULARITY - base);
    // SAFETY: what is cut off belongs to the mapping just made.
    unsafe {
        if front != 0 {
            libc::munmap(start as _, front);
        }
        if back != 0 {
            libc::munmap((base + size) as _, back);
        }
    }
    Ok(base)
}

fn allocate(address: usize, size: usize, kind: u32, protect: u32) -> Result<usize, u32> {
    let protection = kernel_protection(protect)?;
    let (commits, reserves) = (kind & MEM_COMMIT != 0, kind & MEM_RESERVE != 0 || address == 0);
    if kind & (MEM_COMMIT | MEM_RESERVE) == 0 || kind & (MEM_DECOMMIT | MEM_RELEASE) != 0 {
        return Err(ERROR_INVALID_PARAMETER);
    }
    let mut pages = pages(address, size)?;
    let mut regions = regions();
    if reserves {
        pages.start &= !(ALLOCATION_GRANULARITY - 1);
        let base = map(pages.start, pages.len())?;
        pages = base..base + pages.len();
        let runs = BTreeMap::from([(base, RESERVED)]);
        regions.insert(base, Region { end: pages.end, protect, runs });
    }
    let base = pages.start;
    let (_, region) = region_of(&mut regions, base).ok_or(ERROR_INVALID_ADDRESS)?;
    if pages.end > region.end {
        return Err(ERROR_INVALID_ADDRESS);
    }
    if commits {
        // SAFETY: pages of the region: new ones, or the caller asks for the change.
        if let Err(code) = unsafe { protect_pages(&pages, protection) } {
            if reserves {
                regions.remove(&base);
                // SAFETY: mapped above, and known to nobody.
                unsafe { libc::munmap(base as _, pages.len()) };
            }
            return Err(code);
        }
        region.set(&pages, protect);
    }
    Ok(base)
}

/// # Safety
/// Nobody uses the memory any more.
unsafe fn free(address: usize, size: usize, kind: u32) -> Result<(), u32> {
    if !matches!(kind, MEM_RELEASE | MEM_DECOMMIT) || (kind == MEM_RELEASE && size != 0) {
        return Err(ERROR_INVALID_PARAMETER);
    }
    let mut regions = regions();
    let (base, region) = region_of(&mut regions, address).ok_or(ERROR_INVALID_ADDRESS)?;
    match kind {
        MEM_RELEASE if address != base => Err(ERROR_INVALID_ADDRESS),
        MEM_RELEASE => {
            // SAFETY: the whole region, and the contract.
            unsafe { libc::munmap(base as _, region.end - base) };
            regions.remove(&base);
            Ok(())
        }
        _ => {
            let pages = match size {
                0 if address == base => base..region.end,
                0 => return Err(ERROR_INVALID_PARAMETER),
                _ => pages(address, size)?,
            };
            if pages.end > region.end {
                return Err(ERROR_INVALID_ADDRESS);
            }
            // SAFETY: pages of the region, and the contract. A new commit finds zeroes.
            unsafe {
                protect_pages(&pages, libc::PROT_NONE)?;
                libc::madvise(pages.start as _, pages.len(), libc::MADV_DONTNEED);
            }
            region.set(&pages, RESERVED);
            Ok(())
        }
    }
}

/// Changes the protection and returns that of the first page before.
///
/// # Safety
/// Nobody relies on an access to the pages that the protection takes away.
unsafe fn protect(address: usize, size: usize, protect: u32) -> Result<u32, u32> {
    let protection = kernel_protection(protect)?;
    let pages = pages(address, size)?;
    let mut regions = regions();
    let region = region_of(&mut regions, pages.start).map(|(_, region)| region);
    let before = match &region {
        Some(region) if pages.end > region.end || !region.is_committed(&pages) => {
            return Err(ERROR_INVALID_ADDRESS);
        }
        Some(region) => region.run(pages.start).1,
        None => match maps::at(pages.start) {
            Place::Mapped(mapping) => windows_protection(&mapping),
            Place::Free(_) => return Err(ERROR_INVALID_ADDRESS),
        },
    };
    // SAFETY: the contract.
    unsafe { protect_pages(&pages, protection) }.map_err(|_| ERROR_INVALID_ADDRESS)?;
    if let Some(region) = region {
        region.set(&pages, protect);
    }
    Ok(before)
}

fn query(address: usize) -> Result<MemoryInformation, u32> {
    if address > HIGHEST_ADDRESS {
        return Err(ERROR_INVALID_PARAMETER);
    }
    let page = address & !(page_size() - 1);
    let mut information = MemoryInformation { base_address: page, ..Default::default() };
    if let Some((base, region)) = region_of(&mut regions(), page) {
        let (end, protect) = region.run(page);
        information.allocation_base = base;
        information.allocation_protect = region.protect;
        information.region_size = end - page;
        information.state = if protect == RESERVED { MEM_RESERVE } else { MEM_COMMIT };
        information.protect = protect;
        information.kind = MEM_PRIVATE;
        return Ok(information);
    }
    match maps::at(page) {
        Place::Mapped(mapping) => {
            information.allocation_base = mapping.range.start;
            information.region_size = mapping.range.end - page;
            information.state = MEM_COMMIT;
            information.protect = windows_protection(&mapping);
            information.allocation_protect = information.protect;
            information.kind = match mapping {
                Mapping { shared: true, .. } => MEM_MAPPED,
                Mapping { file: true, .. } => MEM_IMAGE,
                _ => MEM_PRIVATE,
            };
        }
        Place::Free(range) => {
            information.region_size = range.end.min(HIGHEST_ADDRESS + 1) - page;
            information.state = MEM_FREE;
            information.protect = PAGE_NOACCESS;
        }
    }
    Ok(information)
}

/// `VirtualAlloc`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_VirtualAlloc(address: usize, size: usize, kind: u32, protect: u32) -> *mut c_void {
    pointer(allocate(address, size, kind, protect).map(|base| base as *mut c_void))
}

/// `VirtualFree`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_VirtualFree(address: usize, size: usize, kind: u32) -> i32 {
    // SAFETY: the function's contract.
    outcome(unsafe { free(address, size, kind) })
}

/// `VirtualProtect`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_VirtualProtect(
    address: usize,
    size: usize,
    new_protect: u32,
    old_protect: *mut u32,
) -> i32 {
    if old_protect.is_null() {
        return outcome(Err(ERROR_NOACCESS));
    }
    // SAFETY: the function's contract.
    outcome(unsafe { protect(address, size, new_protect).map(|before| old_protect.write(before)) })
}

/// `VirtualQuery`: the number of bytes written, 0 on errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_VirtualQuery(
    address: usize,
    information: *mut MemoryInformation,
    length: usize,
) -> usize {
    const SIZE: usize = size_of::<MemoryInformation>();
    let result = match length {
        _ if information.is_null() => Err(ERROR_NOACCESS),
        ..SIZE => Err(ERROR_BAD_LENGTH),
        _ => query(address),
    };
    // SAFETY: room for the structure by the function's contract.
    SIZE * outcome(result.map(|found| unsafe { information.write(found) })) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    fn state(address: usize) -> (usize, usize, u32, u32) {
        let mut found = MemoryInformation::default();
        // SAFETY: the target is ours.
        assert_eq!(unsafe { ndw_VirtualQuery(address, &mut found, 48) }, 48);
        (found.allocation_base, found.region_size, found.state, found.protect)
    }

    // SAFETY of every block below: memory allocated in the same test, which nobody else knows.

    #[test]
    fn reserve_commit_decommit_release() {
        let base = ndw_VirtualAlloc(0, 10 * PAGE, MEM_RESERVE, PAGE_NOACCESS) as usize;
        assert!(base != 0 && base.is_multiple_of(ALLOCATION_GRANULARITY));
        assert_eq!(state(base), (base, 10 * PAGE, MEM_RESERVE, 0));

        let middle = base + 2 * PAGE;
        assert_eq!(ndw_VirtualAlloc(middle + 5, PAGE, MEM_COMMIT, PAGE_READWRITE) as usize, middle);
        assert_eq!(state(base), (base, 2 * PAGE, MEM_RESERVE, 0));
        assert_eq!(state(middle + 9), (base, 2 * PAGE, MEM_COMMIT, PAGE_READWRITE));
        assert_eq!(state(middle + 2 * PAGE), (base, 6 * PAGE, MEM_RESERVE, 0));
        // SAFETY: see above.
        unsafe {
            (middle as *mut u64).write(7);
            assert_eq!(ndw_VirtualFree(middle, 2 * PAGE, MEM_DECOMMIT), 1);
            assert_eq!(state(base), (base, 10 * PAGE, MEM_RESERVE, 0));
            assert!(!ndw_VirtualAlloc(middle, PAGE, MEM_COMMIT, PAGE_READWRITE).is_null());
            assert_eq!((middle as *mut u64).read(), 0);

            assert_eq!(ndw_VirtualFree(base, PAGE, MEM_RELEASE), 0);
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
            assert_eq!(ndw_VirtualFree(middle, 0, MEM_RELEASE), 0);
            assert_eq!(last_error(), ERROR_INVALID_ADDRESS);
            assert_eq!(ndw_VirtualFree(base, 0, MEM_RELEASE), 1);
            assert_eq!(ndw_VirtualFree(base, 0, MEM_RELEASE), 0);
        }
    }

    #[test]
    fn reserving_at_an_address_rounds_it_down() {
        let base = ndw_VirtualAlloc(0, 0x4_0000, MEM_RESERVE, PAGE_READONLY) as usize;
        // SAFETY: see above.
        assert_eq!(unsafe { ndw_VirtualFree(base, 0, MEM_RELEASE) }, 1);
        // Up to the end of the last page, from the beginning of 64 KiB.
        let kind = MEM_RESERVE | MEM_COMMIT;
        let again = ndw_VirtualAlloc(base + 0x1_0000 + 5000, PAGE, kind, PAGE_READWRITE) as usize;
        assert_eq!(again, base + 0x1_0000);
        assert_eq!(state(again + 5000), (again, 2 * PAGE, MEM_COMMIT, PAGE_READWRITE));
        // The rest of the 64 KiB can be had by nobody else.
        assert_eq!(state(again).1, 3 * PAGE);
        // SAFETY: see above.
        unsafe {
            (again as *mut u8).add(3 * PAGE - 1).write(1);
            assert_eq!(ndw_VirtualFree(again, 0, MEM_RELEASE), 1);
        }
        assert_eq!(state(again).2, MEM_FREE);
    }

    #[test]
    fn committed_pages_can_be_committed_again() {
        let base = ndw_VirtualAlloc(0, 2 * PAGE, MEM_COMMIT, PAGE_READWRITE) as usize;
        // SAFETY: see above.
        unsafe {
            (base as *mut u64).write(7);
            assert_eq!(ndw_VirtualAlloc(base, PAGE, MEM_COMMIT, PAGE_READONLY) as usize, base);
            assert_eq!((base as *mut u64).read(), 7);
            assert_eq!(state(base), (base, PAGE, MEM_COMMIT, PAGE_READONLY));
            // What is not committed can be decommitted, too; size 0 means all.
            assert_eq!(ndw_VirtualFree(base, 0, MEM_DECOMMIT), 1);
            assert_eq!(ndw_VirtualFree(base, 2 * PAGE, MEM_DECOMMIT), 1);
            assert_eq!(state(base), (base, 2 * PAGE, MEM_RESERVE, 0));
            assert_eq!(ndw_VirtualFree(base + PAGE, 0, MEM_DECOMMIT), 0);
            assert_eq!(ndw_VirtualFree(base, 0, MEM_RELEASE), 1);
        }
    }

    #[test]
    fn every_field_of_a_query() {
        let base = ndw_VirtualAlloc(0, 3 * PAGE, MEM_RESERVE, PAGE_NOACCESS) as usize;
        ndw_VirtualAlloc(base + PAGE, PAGE, MEM_COMMIT, PAGE_READWRITE);
        let mut found = MemoryInformation::default();
        // SAFETY: the target is ours.
        assert_eq!(unsafe { ndw_VirtualQuery(base + PAGE + 77, &mut found, 100) }, 48);
        let expected = MemoryInformation {
            base_address: base + PAGE,
            allocation_base: base,
            allocation_protect: PAGE_NOACCESS,
            partition: 0,
            region_size: PAGE,
            state: MEM_COMMIT,
            protect: PAGE_READWRITE,
            kind: MEM_PRIVATE,
        };
        assert_eq!(found, expected);
        // SAFETY: see above.
        unsafe {
            for (size, kind) in [(0, 0), (PAGE, MEM_RESERVE), (0, MEM_RELEASE | MEM_DECOMMIT)] {
                assert_eq!(ndw_VirtualFree(base, size, kind), 0);
                assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
            }
            assert_eq!(ndw_VirtualFree(base, 0, MEM_RELEASE), 1);
            assert_eq!(ndw_VirtualFree(base, 1, MEM_RELEASE), 0);
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
        }
    }

    #[test]
    fn commit_without_address_reserves_too() {
        let base = ndw_VirtualAlloc(0, 1, MEM_COMMIT, PAGE_READWRITE) as usize;
        assert_eq!(state(base), (base, PAGE, MEM_COMMIT, PAGE_READWRITE));
        assert!(ndw_VirtualAlloc(base, PAGE, MEM_RESERVE, PAGE_READWRITE).is_null());
        assert_eq!(last_error(), ERROR_INVALID_ADDRESS);
        assert!(ndw_VirtualAlloc(base, 2 * PAGE, MEM_COMMIT, PAGE_READWRITE).is_null());
        assert_eq!(last_error(), ERROR_INVALID_ADDRESS);
        // SAFETY: see above.
        assert_eq!(unsafe { ndw_VirtualFree(base, 0, MEM_RELEASE) }, 1);
    }

    #[test]
    fn protection_changes_committed_pages_only() {
        let base = ndw_VirtualAlloc(0, 4 * PAGE, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) as usize;
        let mut old = 0;
        // SAFETY: see above.
        unsafe {
            assert_eq!(ndw_VirtualProtect(base + PAGE, PAGE, PAGE_READONLY, &mut old), 1);
            assert_eq!(old, PAGE_READWRITE);
            assert_eq!(state(base), (base, PAGE, MEM_COMMIT, PAGE_READWRITE));
            assert_eq!(state(base + PAGE), (base, PAGE, MEM_COMMIT, PAGE_READONLY));
            assert_eq!(ndw_VirtualProtect(base, 2 * PAGE, PAGE_READWRITE, &mut old), 1);
            assert_eq!(state(base), (base, 4 * PAGE, MEM_COMMIT, PAGE_READWRITE));
            assert_eq!(ndw_VirtualFree(base, PAGE, MEM_DECOMMIT), 1);
            assert_eq!(ndw_VirtualProtect(base, 2 * PAGE, PAGE_READONLY, &mut old), 0);
            assert_eq!(last_error(), ERROR_INVALID_ADDRESS);
            assert_eq!(ndw_VirtualProtect(base, PAGE, PAGE_READONLY, std::ptr::null_mut()), 0);
            assert_eq!(last_error(), ERROR_NOACCESS);
            assert_eq!(ndw_VirtualFree(base, 0, MEM_RELEASE), 1);
        }
    }

    #[test]
    fn foreign_memory_can_be_queried() {
        let local = 0u8;
        let (_, size, found, protect) = state(&raw const local as usize);
        assert!(size >= PAGE);
        assert_eq!((found, protect), (MEM_COMMIT, PAGE_READWRITE));
        let (_, _, found, protect) = state(foreign_memory_can_be_queried as *const () as usize);
        assert_eq!((found, protect), (MEM_COMMIT, PAGE_EXECUTE_READ));
        let (base, _, found, protect) = state(0);
        assert_eq!((base, found, protect), (0, MEM_FREE, PAGE_NOACCESS));
    }

    #[test]
    fn bad_arguments() {
        for (size, kind, protect) in [
            (0, MEM_COMMIT, PAGE_READWRITE),
            (1, 0, PAGE_READWRITE),
            (1, MEM_COMMIT, 0),
            (1, MEM_COMMIT, PAGE_READWRITE | PAGE_READONLY),
            (usize::MAX, MEM_COMMIT, PAGE_READWRITE),
        ] {
            set_last_error(0);
            assert!(ndw_VirtualAlloc(0, size, kind, protect).is_null());
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
        }
        let mut found = MemoryInformation::default();
        // SAFETY: the target is ours, or NULL.
        unsafe {
            assert_eq!(ndw_VirtualQuery(0, &mut found, 47), 0);
            assert_eq!(last_error(), ERROR_BAD_LENGTH);
            assert_eq!(ndw_VirtualQuery(usize::MAX, &mut found, 48), 0);
            assert_eq!(ndw_VirtualQuery(0, std::ptr::null_mut(), 48), 0);
        }
    }
}
