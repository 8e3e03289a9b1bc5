//! `VirtualAlloc`, `VirtualFree`, `VirtualProtect` and `VirtualQuery`.
//!
//! Reserved pages are mapped without access and without a claim on memory, committed ones with their protection. Other memory can
//! be queried and protected, too.

use super::maps::{self, AddressRange, Mapping};
pub use super::protection::*;
use super::regions::{RESERVED, Region, Regions, region_of, regions};
use super::secured::notify;
use super::system::{HIGHEST_ADDRESS, LOWEST_ADDRESS};
use super::{ALLOCATION_GRANULARITY, kernel, outcome, page_size, pointer};
use crate::error::*;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::ops::Range;

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
/// `MEM_RESET`.
pub const MEM_RESET: u32 = 0x8_0000;
/// `MEM_TOP_DOWN`.
pub const MEM_TOP_DOWN: u32 = 0x10_0000;
/// `MEM_IMAGE`.
pub const MEM_IMAGE: u32 = 0x100_0000;

/// `MEM_LARGE_PAGES`.
pub const MEM_LARGE_PAGES: u32 = 0x2000_0000;

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
/// The whole pages that a range of bytes touches.
fn pages(address: usize, size: usize) -> Result<Range<usize>, u32> {
    let mask = page_size() - 1;
    let end = address.checked_add(size).and_then(|end| end.checked_add(mask));
    match end {
        Some(end) if size != 0 && end <= HIGHEST_ADDRESS => Ok(address & !mask..end & !mask),
        _ => Err(ERROR_INVALID_PARAMETER),
    }
}

/// # Safety
/// Nobody relies on an access to the pages that the protection takes away.
unsafe fn protect_pages(pages: &Range<usize>, protection: c_int) -> Result<(), u32> {
    // SAFETY: pages of the program's, whose protection is its own to change, as the caller promises.
    match unsafe { kernel::protect(pages, protection) } {
        0 => Ok(()),
        _ => Err(kernel::last_error_of_kernel()),
    }
}

/// `MEM_RESET`: the contents of the pages may be discarded. They stay reserved or committed.
fn reset(pages: Range<usize>) -> Result<usize, u32> {
    notify(&pages);
    let mut regions = regions();
    let (_, region) = region_of(&mut regions, pages.start).ok_or(ERROR_INVALID_ADDRESS)?;
    if pages.end > region.end {
        return Err(ERROR_INVALID_ADDRESS);
    }
    // SAFETY: pages of the region, whose content the caller gives up. Where the kernel cannot, they keep it.
    unsafe { kernel::advise(&pages, libc::MADV_FREE) };
    Ok(pages.start)
}

fn allocate(address: usize, size: usize, kind: u32, protect: u32) -> Result<usize, u32> {
    let protection = kernel_protection(protect)?;
    if kind == MEM_RESET {
        return reset(pages(address, size)?);
    }
    if kind & MEM_LARGE_PAGES != 0 {
        return allocate_large(address, size, kind, protect);
    }
    let (commits, reserves) = (kind & MEM_COMMIT != 0, kind & MEM_RESERVE != 0 || address == 0);
    if kind & (MEM_COMMIT | MEM_RESERVE) == 0 || kind & !(MEM_COMMIT | MEM_RESERVE | MEM_TOP_DOWN) != 0 {
        return Err(ERROR_INVALID_PARAMETER);
    }
    let mut pages = pages(address, size)?;
    if !reserves {
        notify(&pages);
        // All of a view is committed from the start, also of a section that is only reserved.
        if super::section::view_at(pages.start).is_some_and(|view| pages.end <= view.end) {
            return Ok(pages.start);
        }
    }
    let mut regions = regions();
    if reserves {
        pages.start &= !(ALLOCATION_GRANULARITY - 1);
        if address != 0 && pages.start < LOWEST_ADDRESS {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let base = kernel::reserve(pages.start, pages.len())?;
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
                unsafe { kernel::unmap(&pages) };
            }
            return Err(code);
        }
        region.set(&pages, protect);
    }
    Ok(base)
}

/// With `MEM_LARGE_PAGES`: all at once, of whole large pages.
fn allocate_large(address: usize, size: usize, kind: u32, protect: u32) -> Result<usize, u32> {
    let protection = kernel_protection(protect)?;
    let whole = |number: usize| number.checked_rem(kernel::large_page()) == Some(0);
    let rest = kind & !(MEM_LARGE_PAGES | MEM_TOP_DOWN);
    if rest != MEM_COMMIT | MEM_RESERVE || size == 0 || !whole(size) || !whole(address) {
        return Err(ERROR_INVALID_PARAMETER);
    }
    let mut regions = regions();
    let base = kernel::map_large(address, size, protection)?;
    regions.insert(base, Region { end: base + size, protect, runs: BTreeMap::from([(base, protect)]) });
    Ok(base)
}

/// `GetLargePageMinimum`: 0 where there are none.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetLargePageMinimum() -> usize {
    kernel::large_page()
}

/// The pages of a call of `VirtualFree`.
fn pages_to_free(regions: &mut Regions, address: usize, size: usize, kind: u32) -> Result<Range<usize>, u32> {
    let (base, region) = region_of(regions, address).ok_or(ERROR_INVALID_ADDRESS)?;
    let pages = match kind {
        MEM_RELEASE if address == base => base..region.end,
        MEM_RELEASE => return Err(ERROR_INVALID_ADDRESS),
        _ if size != 0 => pages(address, size)?,
        _ if address == base => base..region.end,
        _ => return Err(ERROR_INVALID_PARAMETER),
    };
    if pages.end <= region.end { Ok(pages) } else { Err(ERROR_INVALID_ADDRESS) }
}

/// # Safety
/// Nobody uses the memory any more.
unsafe fn free(address: usize, size: usize, kind: u32) -> Result<(), u32> {
    if !matches!(kind, MEM_RELEASE | MEM_DECOMMIT) || (kind == MEM_RELEASE && size != 0) {
        return Err(ERROR_INVALID_PARAMETER);
    }
    let pages = pages_to_free(&mut regions(), address, size, kind)?;
    // Without the lock, as callbacks of the program are called. They may have changed the regions.
    notify(&pages);
    let mut regions = regions();
    let pages = pages_to_free(&mut regions, address, size, kind)?;
    if kind == MEM_RELEASE {
        // SAFETY: the whole region, which nobody uses any more, as the caller promises.
        unsafe { kernel::unmap(&pages) };
        regions.remove(&pages.start);
        return Ok(());
    }
    // SAFETY: pages of the region, which nobody uses any more.
    unsafe { protect_pages(&pages, libc::PROT_NONE) }?;
    // SAFETY: nobody uses what they hold; a new commit finds zeroes.
    unsafe { kernel::empty(&pages) }?;
    let (_, region) = region_of(&mut regions, pages.start).ok_or(ERROR_INVALID_ADDRESS)?;
    region.set(&pages, RESERVED);
    Ok(())
}

/// Changes the protection and returns that of the first page before.
///
/// # Safety
/// Nobody relies on an access to the pages that the protection takes away.
unsafe fn protect(address: usize, size: usize, protect: u32) -> Result<u32, u32> {
    let protection = kernel_protection(protect)?;
    let pages = pages(address, size)?;
    notify(&pages);
    let mut regions = regions();
    let region = region_of(&mut regions, pages.start).map(|(_, region)| region);
    let before = match &region {
        Some(region) if pages.end > region.end || !region.is_committed(&pages) => {
            return Err(ERROR_INVALID_ADDRESS);
        }
        Some(region) => region.run(pages.start).1,
        None => match maps::at(pages.start) {
            AddressRange::Mapped(mapping) => windows_protection(&mapping),
            AddressRange::Free(_) => return Err(ERROR_INVALID_ADDRESS),
        },
    };
    // SAFETY: pages of the program's, whose protection is its own to change, as the caller promises.
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
        AddressRange::Mapped(mapping) => {
            information.allocation_base = mapping.range.start;
            information.region_size = mapping.range.end - page;
            information.state = MEM_COMMIT;
            information.protect = windows_protection(&mapping);
            information.allocation_protect = information.protect;
            information.kind = match &mapping {
                Mapping { shared: true, .. } => MEM_MAPPED,
                Mapping { file: true, .. } => MEM_IMAGE,
                _ => MEM_PRIVATE,
            };
            if let Some(view) = super::section::view_at(page) {
                information.allocation_base = view.start;
                information.region_size = mapping.range.end.min(view.end) - page;
                information.kind = MEM_MAPPED;
            }
        }
        AddressRange::Free(range) => {
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
///
/// # Safety
/// Nobody uses the memory any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_VirtualFree(address: usize, size: usize, kind: u32) -> i32 {
    // SAFETY: C's caller uses the memory no more.
    outcome(unsafe { free(address, size, kind) })
}

/// `VirtualProtect`.
///
/// # Safety
/// Nobody relies on an access to the pages that the protection takes away; `old_protect` is NULL or may be written to.
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
    // SAFETY: nobody relies on an access that the protection takes away.
    let before = unsafe { protect(address, size, new_protect) };
    // SAFETY: not NULL, hence writable.
    outcome(before.map(|before| unsafe { old_protect.write(before) }))
}

/// `VirtualQuery`: the number of bytes written, 0 on errors.
///
/// # Safety
/// `information` is NULL or has room for `length` bytes.
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
    // SAFETY: C's caller has room for the structure.
    SIZE * outcome(result.map(|found| unsafe { information.write(found) })) as usize
}

#[cfg(test)]
mod tests;
