//! Sections: memory with or without a file that can be mapped as views, and shared between processes by a name.
//!
//! A named section is a POSIX shared memory object of the user. Each user holds a lock on it, which the kernel releases when a
//! process ends: so the first and the last user are known, and what a killed process has left is recognised.

use super::kernel::reserve;
use super::protection::{PAGE_EXECUTE_READ, PAGE_EXECUTE_READWRITE, PAGE_READONLY, PAGE_READWRITE};
use super::secured::notify;
use super::{ALLOCATION_GRANULARITY, kernel, page_size};
use crate::error::*;
use crate::files::error_of;
use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, Mode, memfd_create};
use rustix::shm;
use std::collections::BTreeMap;
use std::ffi::{CString, c_int};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

const PAGE_WRITECOPY: u32 = 0x08;
const PAGE_EXECUTE_WRITECOPY: u32 = 0x80;

/// `FILE_MAP_COPY`, `FILE_MAP_WRITE`, `FILE_MAP_READ`, `FILE_MAP_EXECUTE`.
const MAP_COPY: u32 = 0x1;
const MAP_WRITE: u32 = 0x2;
const MAP_READ: u32 = 0x4;
const MAP_EXECUTE: u32 = 0x20;

/// The longest name: with its prefix it must be a valid file name.
const LONGEST_NAME: usize = 200;

/// A section.
pub struct Section {
    file: File,
    size: u64,
    protect: u32,
    name: Option<SharedName>,
}

/// The name of a section, and the process that has it: a child made by `fork` has a copy of the table, but is no user.
struct SharedName {
    name: CString,
    process: u32,
}

impl SharedName {
    fn of_this_process(name: CString) -> Option<SharedName> {
        Some(SharedName { name, process: std::process::id() })
    }
}

/// The name of the shared memory object for a program's name.
fn shared_name(name: &str) -> Result<CString, u32> {
    let plain = ["Global\\", "Local\\"].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    if plain.contains('\\') {
        return Err(ERROR_PATH_NOT_FOUND);
    }
    // A slash would separate folders on Linux.
    let escaped = plain.replace('%', "%25").replace('/', "%2F");
    if escaped.len() > LONGEST_NAME {
        return Err(ERROR_FILENAME_EXCED_RANGE);
    }
    let user = rustix::process::geteuid().as_raw();
    CString::new(format!("/ndcompat-{user}-{escaped}")).map_err(|_| ERROR_INVALID_NAME)
}

/// Locks a whole file, exclusively or shared, waiting or not. Downgrading is atomic.
fn lock(file: &File, kind: c_int, command: c_int) -> bool {
    // SAFETY: plain data.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    // SAFETY: a lock of the open file, described by a structure of ours.
    unsafe { libc::fcntl(file.as_raw_fd(), command, &range) == 0 }
}

fn open_shared(name: &CString, flags: shm::OFlags) -> io::Result<File> {
    Ok(File::from(shm::open(name, shm::OFlags::RDWR | flags, Mode::RUSR | Mode::WUSR)?))
}

/// Whether the object still has its name.
fn is_named(file: &File) -> bool {
    file.metadata().is_ok_and(|found| found.nlink() > 0)
}

impl Drop for Section {
    fn drop(&mut self) {
        let Some(SharedName { name, process }) = &self.name else { return };
        if *process != std::process::id() {
            return;
        }
        // The last one removes it.
        if lock(&self.file, libc::F_WRLCK, libc::F_OFD_SETLK) && is_named(&self.file) {
            let _ = shm::unlink(name);
        }
        // A child that has been forked, and has not run its program yet, has the open file as well: closing does not release it.
        lock(&self.file, libc::F_UNLCK, libc::F_OFD_SETLK);
    }
}

impl Section {
    /// A section without a file, with or without a name; and whether it existed.
    ///
    /// # Errors
    /// `ERROR_INVALID_PARAMETER` for no size, `ERROR_COMMITMENT_LIMIT` without room, or what the system says.
    pub fn of_memory(size: u64, protect: u32, name: Option<&str>) -> Result<(Section, bool), u32> {
        if size == 0 {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let set_size = |file: &File| {
            file.set_len(size).map_err(|error| match error_of(&error) {
                ERROR_DISK_FULL => ERROR_COMMITMENT_LIMIT,
                code => code,
            })
        };
        let Some(name) = name else {
            let memory = memfd_create(c"ndcompat", MemfdFlags::CLOEXEC);
            let file = File::from(memory.map_err(|error| error_of(&error.into()))?);
            set_size(&file)?;
            return Ok((Section { file, size, protect, name: None }, false));
        };
        let name = shared_name(name)?;
        loop {
            let file = open_shared(&name, shm::OFlags::CREATE).map_err(|error| error_of(&error))?;
            if lock(&file, libc::F_WRLCK, libc::F_OFD_SETLK) {
                // It has no user. Its last user may just have removed it.
                if !is_named(&file) {
                    continue;
                }
                file.set_len(0).map_err(|error| error_of(&error))?;
                set_size(&file)?;
                lock(&file, libc::F_RDLCK, libc::F_OFD_SETLK);
                return Ok((Section { file, size, protect, name: SharedName::of_this_process(name) }, false));
            }
            if let Some(section) = Section::joined(file, protect, &name)? {
                return Ok((section, true));
            }
        }
    }

    /// Opens an object that another process uses; `None` if it no longer does.
    fn joined(file: File, protect: u32, name: &CString) -> Result<Option<Section>, u32> {
        // Its creator downgrades the lock once the size is set.
        if !lock(&file, libc::F_RDLCK, libc::F_OFD_SETLKW) || !is_named(&file) {
            return Ok(None);
        }
        let size = file.metadata().map_err(|error| error_of(&error))?.len();
        Ok((size != 0).then(|| Section {
            file,
            size,
            protect,
            name: SharedName::of_this_process(name.clone()),
        }))
    }

    /// The section of a name; `ERROR_FILE_NOT_FOUND` if there is none.
    ///
    /// # Errors
    /// `ERROR_FILE_NOT_FOUND`, an error of the name, or what the system says.
    pub fn named(name: &str) -> Result<Section, u32> {
        let name = shared_name(name)?;
        let file = open_shared(&name, shm::OFlags::empty()).map_err(|error| error_of(&error))?;
        if lock(&file, libc::F_WRLCK, libc::F_OFD_SETLK) {
            // A killed process has left it.
            if is_named(&file) {
                // SAFETY: a terminated name.
                unsafe { libc::shm_unlink(name.as_ptr()) };
            }
            return Err(ERROR_FILE_NOT_FOUND);
        }
        Section::joined(file, PAGE_READWRITE, &name)?.ok_or(ERROR_FILE_NOT_FOUND)
    }

    /// A section of a file, which is extended if it is shorter; size 0 is that of the file.
    ///
    /// # Errors
    /// `ERROR_FILE_INVALID` for an empty file, or what the system says.
    pub fn of_file(file: File, size: u64, protect: u32) -> Result<Section, u32> {
        let length = file.metadata().map_err(|error| error_of(&error))?.len();
        let size = match size {
            0 if length == 0 => return Err(ERROR_FILE_INVALID),
            0 => length,
            size => size,
        };
        if size > length {
            if !matches!(protect, PAGE_READWRITE | PAGE_EXECUTE_READWRITE) {
                return Err(ERROR_NOT_ENOUGH_MEMORY);
            }
            file.set_len(size).map_err(|error| error_of(&error))?;
        }
        Ok(Section { file, size, protect, name: None })
    }
}

/// The views by address: the end of each, and a reference to its section.
static VIEWS: Mutex<BTreeMap<usize, (usize, Arc<Section>)>> = Mutex::new(BTreeMap::new());

/// The pages of the view that contains an address.
pub fn view_at(address: usize) -> Option<std::ops::Range<usize>> {
    let views = VIEWS.lock();
    let (start, (end, _)) = views.range(..=address).next_back()?;
    (address < *end).then_some(*start..*end)
}

/// Maps a part of a section, anywhere or at an address; 0 bytes means up to the end.
///
/// # Errors
/// `ERROR_INVALID_ADDRESS`, `ERROR_ACCESS_DENIED` for more than the section allows, or what the system says.
pub fn map(
    section: &Arc<Section>,
    access: u32,
    offset: u64,
    bytes: usize,
    address: usize,
) -> Result<usize, u32> {
    const GRANULARITY: u64 = ALLOCATION_GRANULARITY as u64;
    if !offset.is_multiple_of(GRANULARITY) || !address.is_multiple_of(ALLOCATION_GRANULARITY) {
        return Err(ERROR_MAPPED_ALIGNMENT);
    }
    let writable = matches!(section.protect, PAGE_READWRITE | PAGE_EXECUTE_READWRITE);
    let executable =
        matches!(section.protect, PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY);
    let copies = access & (MAP_COPY | MAP_WRITE | MAP_READ) == MAP_COPY;
    let (writes, executes) = (access & MAP_WRITE != 0, access & MAP_EXECUTE != 0);
    if access & (MAP_COPY | MAP_WRITE | MAP_READ) == 0 || writes && !writable || executes && !executable {
        return Err(ERROR_ACCESS_DENIED);
    }
    let left = section.size.checked_sub(offset).filter(|left| *left != 0).ok_or(ERROR_ACCESS_DENIED)?;
    let bytes = match bytes as u64 {
        0 => left,
        bytes if bytes <= left => bytes,
        _ => return Err(ERROR_ACCESS_DENIED),
    };
    let length = usize::try_from(bytes).ok().and_then(|bytes| bytes.checked_next_multiple_of(page_size()));
    let length =
        length.filter(|length| *length <= super::system::HIGHEST_ADDRESS).ok_or(ERROR_NOT_ENOUGH_MEMORY)?;
    let protection = libc::PROT_READ
        | if writes || copies { libc::PROT_WRITE } else { 0 }
        | if executes { libc::PROT_EXEC } else { 0 };
    let flags = if copies { libc::MAP_PRIVATE } else { libc::MAP_SHARED } | libc::MAP_FIXED;
    let start = reserve(address, length)?;
    // SAFETY: the pages were reserved above and are nobody's yet.
    let mapped = unsafe {
        libc::mmap(start as _, length, protection, flags, section.file.as_raw_fd(), offset as libc::off_t)
    };
    if mapped == libc::MAP_FAILED {
        let error = error_of(&io::Error::last_os_error());
        // SAFETY: the pages were reserved by this call, which has handed them to nobody.
        unsafe { kernel::unmap(&(start..start + length)) };
        return Err(error);
    }
    VIEWS.lock().insert(start, (start + length, section.clone()));
    Ok(start)
}

/// Unmaps the view that contains an address.
///
/// # Safety
/// Nobody uses the memory any more.
///
/// # Errors
/// `ERROR_INVALID_ADDRESS` for no view.
pub unsafe fn unmap(address: usize) -> Result<(), u32> {
    let view = view_at(address).ok_or(ERROR_INVALID_ADDRESS)?;
    notify(&view);
    let removed = VIEWS.lock().remove(&view.start).ok_or(ERROR_INVALID_ADDRESS)?;
    // SAFETY: the view, which was still there a moment ago and is now this call's; the contract.
    unsafe { kernel::unmap(&view) };
    drop(removed);
    Ok(())
}

/// Writes a part of a view to its file; 0 bytes means up to the end.
///
/// # Errors
/// `ERROR_INVALID_ADDRESS` for no view, or what the system says.
pub fn flush(address: usize, bytes: usize) -> Result<(), u32> {
    let view = view_at(address).ok_or(ERROR_INVALID_ADDRESS)?;
    let start = address & !(page_size() - 1);
    let end = if bytes == 0 {
        view.end
    } else {
        address.checked_add(bytes).ok_or(ERROR_INVALID_ADDRESS)?.min(view.end)
    };
    // SAFETY: pages of the view.
    match unsafe { libc::msync(start as _, end - start, libc::MS_SYNC) } {
        0 => Ok(()),
        _ => Err(error_of(&io::Error::last_os_error())),
    }
}

/// Whether views can have this protection.
pub fn is_protection(protect: u32) -> bool {
    matches!(
        protect,
        PAGE_READONLY
            | PAGE_READWRITE
            | PAGE_WRITECOPY
            | PAGE_EXECUTE_READ
            | PAGE_EXECUTE_READWRITE
            | PAGE_EXECUTE_WRITECOPY
    )
}

/// Whether a section of this protection needs a file that may be written to.
pub fn needs_writing(protect: u32) -> bool {
    matches!(protect, PAGE_READWRITE | PAGE_EXECUTE_READWRITE)
}
