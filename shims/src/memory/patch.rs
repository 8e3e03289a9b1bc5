//! Replaces functions by a jump at their beginning.
//!
//! The jump reaches two gigabytes, so it goes to a relay near the code, and from there to the replacement. Other threads may be
//! running the code: the changed page is prepared elsewhere and moved into place atomically by the kernel. The jump is five bytes
//! long, as the first instruction of these functions usually is, so that no thread is in the middle of it.

use super::{maps, page_size};
use crate::error::{ERROR_NOT_SUPPORTED, errno_to_win32};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::ops::Range;

/// A replacement: it gets the six argument registers, and the return address.
pub type Replacement = extern "C" fn(usize, usize, usize, usize, usize, usize, usize) -> isize;

/// The distance that a jump is certain to cover between any place in the code and any relay.
const REACH: usize = (1 << 31) - (1 << 26);

fn last_error() -> u32 {
    errno_to_win32(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// Writable anonymous pages: anywhere, or at a free address.
fn new_pages(address: usize) -> Result<usize, u32> {
    let flags =
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | if address == 0 { 0 } else { libc::MAP_FIXED_NOREPLACE };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping that replaces none.
    let page = unsafe { libc::mmap(address as _, page_size(), protection, flags, -1, 0) };
    if page == libc::MAP_FAILED { Err(last_error()) } else { Ok(page as usize) }
}

/// Makes code of a page of [`new_pages`].
fn seal(page: usize) -> Result<(), u32> {
    const CODE: c_int = libc::PROT_READ | libc::PROT_EXEC;
    // SAFETY: a page of ours that nobody writes any more.
    match unsafe { libc::mprotect(page as _, page_size(), CODE) } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

/// A free page close to the code.
fn new_page_near(code: &Range<usize>) -> Result<usize, u32> {
    let size = page_size();
    let mut places: Vec<usize> = maps::gaps()
        .into_iter()
        .filter(|gap| gap.len() > size)
        .map(|gap| if gap.end <= code.start { gap.end - size } else { gap.start })
        .filter(|place| place.abs_diff(code.start) < REACH)
        .collect();
    places.sort_by_key(|place| place.abs_diff(code.start));
    places.into_iter().find_map(|place| new_pages(place).ok()).ok_or(ERROR_NOT_SUPPORTED)
}

/// Relay: pushes the return address as 7th argument, calls the replacement, whose address follows the code: `push [rsp];
/// call [rip+7]; add rsp, 8; ret`.
fn relay(replacement: Replacement) -> [u8; 24] {
    let mut code = [0xCC; 24];
    code[..14].copy_from_slice(&[
        0xFF, 0x34, 0x24, 0xFF, 0x15, 0x07, 0x00, 0x00, 0x00, 0x48, 0x83, 0xC4, 0x08, 0xC3,
    ]);
    code[16..].copy_from_slice(&(replacement as usize).to_le_bytes());
    code
}

/// The place of the jump in a function: after an `endbr64`. `None` if there is a jump already.
///
/// # Safety
/// The function's code can be read.
unsafe fn entry(function: usize) -> Option<usize> {
    const MARK: [u8; 4] = [0xF3, 0x0F, 0x1E, 0xFA];
    // SAFETY: functions have this much code.
    let begin = unsafe { (function as *const [u8; 8]).read_unaligned() };
    let entry = if begin.starts_with(&MARK) { function + MARK.len() } else { function };
    // SAFETY: two bytes behind the mark at most, within the code that functions have.
    let code = unsafe { (entry as *const [u8; 2]).read_unaligned() };
    (!matches!(code, [0xE9 | 0xEB | 0xCC, _] | [0xFF, 0x25] | [0x49, 0xBB])).then_some(entry)
}

/// Redirects each function to its replacement.
///
/// # Errors
/// `ERROR_NOT_SUPPORTED` on other processors than x86-64, or if something is redirected already; what the kernel says.
///
/// # Safety
/// The functions are in the mapping, and the replacements do what they do.
pub unsafe fn redirect(functions: &[(usize, Replacement)], code: &maps::Mapping) -> Result<(), u32> {
    let inside = |function: usize| code.range.contains(&function);
    if !cfg!(target_arch = "x86_64")
        || !code.read
        || !code.execute
        || !functions.iter().all(|(function, _)| inside(*function))
    {
        return Err(ERROR_NOT_SUPPORTED);
    }
    let size = page_size();
    let relays = new_page_near(&code.range)?;
    let mut copies = BTreeMap::new();
    for (number, (function, replacement)) in functions.iter().enumerate() {
        let code = relay(*replacement);
        let place = relays + number * code.len();
        // SAFETY: the page of relays, which has room.
        unsafe { (place as *mut [u8; 24]).write_unaligned(code) };
        // SAFETY: the address of a function that is loaded, whose code can be read.
        let entry = unsafe { entry(*function) }.ok_or(ERROR_NOT_SUPPORTED)?;
        let page = entry & !(size - 1);
        let copy = match copies.get(&page) {
            Some(copy) => *copy,
            None => {
                let copy = new_pages(0)?;
                // SAFETY: a page of code, and one of ours.
                unsafe { std::ptr::copy_nonoverlapping(page as *const u8, copy as *mut u8, size) };
                copies.insert(page, copy);
                copy
            }
        };
        let distance = place.wrapping_sub(entry + 5) as i32;
        let jump = (copy + entry - page) as *mut u8;
        // SAFETY: the copy of the function's page.
        unsafe { jump.write(0xE9) };
        // SAFETY: the same page: functions are aligned to 16 bytes.
        unsafe { jump.wrapping_add(1).cast::<i32>().write_unaligned(distance) };
    }
    seal(relays)?;
    for copy in copies.values() {
        seal(*copy)?;
    }
    for (page, copy) in copies {
        const FLAGS: c_int = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: the same code, but for the jumps.
        if unsafe { libc::mremap(copy as _, size, size, FLAGS, page) } == libc::MAP_FAILED {
            return Err(last_error());
        }
    }
    Ok(())
}
