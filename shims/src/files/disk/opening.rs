//! Opening files, and files of descriptors that are there.

use super::DiskFile;
use crate::error::*;
use crate::files::{ATTRIBUTE_READONLY, error_at, error_of, is_device};
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const GENERIC_READ: u32 = 0x8000_0000;
const GENERIC_WRITE: u32 = 0x4000_0000;
const GENERIC_EXECUTE: u32 = 0x2000_0000;
const GENERIC_ALL: u32 = 0x1000_0000;
const FILE_READ_DATA: u32 = 0x1;
const FILE_WRITE_DATA: u32 = 0x2;
const FILE_APPEND_DATA: u32 = 0x4;

const CREATE_NEW: u32 = 1;
const CREATE_ALWAYS: u32 = 2;
const OPEN_EXISTING: u32 = 3;
const OPEN_ALWAYS: u32 = 4;
const TRUNCATE_EXISTING: u32 = 5;

const FLAG_WRITE_THROUGH: u32 = 0x8000_0000;
const FLAG_OVERLAPPED: u32 = 0x4000_0000;
const FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
const FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;

/// The arguments of `CreateFile`.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// `dwDesiredAccess`.
    pub access: u32,
    /// `dwCreationDisposition`.
    pub disposition: u32,
    /// `dwFlagsAndAttributes`.
    pub flags: u32,
}

impl DiskFile {
    /// The file of a descriptor that stays the program's; `None` if it is closed.
    pub fn borrowed(fd: i32) -> Option<DiskFile> {
        // SAFETY: takes no pointer; a closed descriptor is an error.
        let modes = unsafe { libc::fcntl(fd, libc::F_GETFL) };
        if modes < 0 {
            return None;
        }
        // SAFETY: an open descriptor, which nothing here closes.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
        let found = file.metadata().ok()?;
        let mode = modes & libc::O_ACCMODE;
        let file = ManuallyDrop::into_inner(file);
        let mut file = DiskFile::with(file, &found, mode != libc::O_WRONLY, mode != libc::O_RDONLY);
        (file.lent, file.borrowed) = (AtomicBool::new(true), true);
        file.appends = modes & libc::O_APPEND != 0;
        Some(file)
    }

    /// Its descriptor, which is the caller's from now on. What is to be removed when it is closed loses its name at once: of the
    /// descriptor's end nobody will hear.
    pub fn lend(&self) -> i32 {
        self.lent.store(true, Ordering::Relaxed);
        if self.goes.swap(false, Ordering::Relaxed) {
            self.remove();
        }
        self.file.as_raw_fd()
    }

    /// A file for a descriptor that the process was started with; `None` if it is closed.
    pub fn standard(fd: i32) -> Option<DiskFile> {
        // SAFETY: takes no pointer; a closed descriptor is an error.
        let modes = unsafe { libc::fcntl(fd, libc::F_GETFL) };
        // SAFETY: takes no pointer; a closed descriptor is an error.
        let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) };
        if modes < 0 || copy < 0 {
            return None;
        }
        // SAFETY: a descriptor that was just made.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(copy) });
        let mode = modes & libc::O_ACCMODE;
        let mut file = DiskFile::of(file, mode != libc::O_WRONLY, mode != libc::O_RDONLY).ok()?;
        file.appends = modes & libc::O_APPEND != 0;
        Some(file)
    }

    /// Opens or creates a file; returns whether it existed. Share modes have no counterpart on Linux.
    ///
    /// # Errors
    /// What the system says as a Win32 error; `ERROR_INVALID_PARAMETER` for a disposition that there is not.
    pub fn open(path: &Path, wanted: Wanted) -> Result<(DiskFile, bool), u32> {
        let has = |right| wanted.access & right != 0;
        let reads = has(GENERIC_READ | GENERIC_EXECUTE | GENERIC_ALL | FILE_READ_DATA);
        let writes = has(GENERIC_WRITE | GENERIC_ALL | FILE_WRITE_DATA);
        let appends = has(FILE_APPEND_DATA) && !writes;
        let flag = |flag| wanted.flags & flag != 0;
        match wanted.disposition {
            CREATE_NEW | CREATE_ALWAYS | OPEN_EXISTING | OPEN_ALWAYS => {}
            TRUNCATE_EXISTING if writes => {}
            _ => return Err(ERROR_INVALID_PARAMETER),
        }
        let creates = matches!(wanted.disposition, CREATE_NEW | CREATE_ALWAYS | OPEN_ALWAYS);
        let truncates = matches!(wanted.disposition, CREATE_ALWAYS | TRUNCATE_EXISTING);
        let found = std::fs::metadata(path);
        let existed = found.is_ok();
        if existed && wanted.disposition == CREATE_NEW {
            return Err(ERROR_FILE_EXISTS);
        }
        if found.is_ok_and(|found| found.is_dir()) {
            if !flag(FLAG_BACKUP_SEMANTICS) || creates && wanted.disposition != OPEN_ALWAYS || truncates {
                return Err(ERROR_ACCESS_DENIED);
            }
            let mut options = OpenOptions::new();
            let file = options.read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(path);
            let file = file.map_err(|error| error_at(&error, path))?;
            return Ok((DiskFile::of(file, false, false).map_err(|error| error_of(&error))?, true));
        }
        let mut custom = 0;
        if flag(FLAG_WRITE_THROUGH) {
            custom |= libc::O_DSYNC;
        }
        let changes = writes || appends || creates && !existed || truncates;
        if !reads && !changes {
            // No access to the contents: O_PATH, which needs no permission on the file.
            custom |= libc::O_PATH;
        }
        let mut options = OpenOptions::new();
        // Truncating needs write access on Linux, whatever access was asked for.
        options.read(reads || !changes).write(changes && !appends).append(appends).custom_flags(custom);
        options.mode(if wanted.flags & ATTRIBUTE_READONLY != 0 { 0o444 } else { 0o666 });
        match wanted.disposition {
            CREATE_NEW => options.create_new(true),
            CREATE_ALWAYS => options.create(true).truncate(true),
            OPEN_ALWAYS => options.create(changes),
            TRUNCATE_EXISTING => options.truncate(true),
            _ => &mut options,
        };
        let failed = |error: io::Error| match error.raw_os_error() {
            Some(libc::EEXIST) => ERROR_FILE_EXISTS,
            _ => error_at(&error, path),
        };
        let mut file = DiskFile::of(options.open(path).map_err(failed)?, reads, writes || appends)
            .map_err(|error| error_of(&error))?;
        file.appends = appends;
        file.overlaps = flag(FLAG_OVERLAPPED);
        if flag(FLAG_DELETE_ON_CLOSE) {
            file.goes = AtomicBool::new(!is_device(&file.metadata()?));
        }
        Ok((file, existed))
    }
}
