//! Files opened by `CreateFile`.

use super::range_locks::RangeLocks;
use super::{ATTRIBUTE_READONLY, attributes, error_at, error_of, is_device};
use crate::error::*;
use crate::io::File as OverlappedFile;
use crate::io::signal::Signal;
use std::ffi::CString;
use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

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

/// An open file.
pub struct DiskFile {
    file: ManuallyDrop<File>,
    /// Whether the descriptor is someone else's: it is not closed.
    lent: AtomicBool,
    reads: bool,
    writes: bool,
    /// Writes append.
    appends: bool,
    /// A regular file: it has a position and an end.
    regular: bool,
    directory: bool,
    /// It was opened for overlapped operations.
    overlaps: bool,
    /// The [`File`] of its overlapped operations, created on first use.
    port_side: OnceLock<Option<Arc<OverlappedFile>>>,
    /// Always set: a wait for a file that is not overlapped ends at once.
    signal: Arc<Signal>,
    /// Whether it is removed when it is closed.
    goes: AtomicBool,
    locks: RangeLocks,
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        self.locks.unlock_all(&self.file);
        // It may have been removed already.
        if let (true, Ok(path)) = (self.goes(), self.path()) {
            let _ = if self.directory { std::fs::remove_dir(path) } else { std::fs::remove_file(path) };
        }
        if !*self.lent.get_mut() {
            // SAFETY: its last use.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

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
    fn of(file: File, reads: bool, writes: bool) -> io::Result<DiskFile> {
        let kind = file.metadata()?.file_type();
        Ok(DiskFile::with(file, kind, reads, writes))
    }

    fn with(file: File, kind: FileType, reads: bool, writes: bool) -> DiskFile {
        DiskFile {
            reads,
            writes,
            appends: false,
            regular: kind.is_file(),
            directory: kind.is_dir(),
            overlaps: false,
            port_side: OnceLock::new(),
            signal: Signal::new(true, true),
            goes: AtomicBool::new(false),
            locks: RangeLocks::default(),
            file: ManuallyDrop::new(file),
            lent: AtomicBool::new(false),
        }
    }

    /// The file of a descriptor that stays the program's; `None` if it is closed.
    pub fn borrowed(fd: i32) -> Option<DiskFile> {
        // SAFETY: takes no pointer; a closed descriptor is an error.
        let modes = unsafe { libc::fcntl(fd, libc::F_GETFL) };
        if modes < 0 {
            return None;
        }
        // SAFETY: an open descriptor, which nothing here closes.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
        let kind = file.metadata().ok()?.file_type();
        let mode = modes & libc::O_ACCMODE;
        let file = ManuallyDrop::into_inner(file);
        let mut file = DiskFile::with(file, kind, mode != libc::O_WRONLY, mode != libc::O_RDONLY);
        file.lent = AtomicBool::new(true);
        file.appends = modes & libc::O_APPEND != 0;
        Some(file)
    }

    /// Its descriptor, which is the caller's from now on.
    pub fn lend(&self) -> i32 {
        self.lent.store(true, Ordering::Relaxed);
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

    /// The signal for waits on its handle.
    pub(crate) fn signal(&self) -> Arc<Signal> {
        match self.overlapped() {
            Some(file) => file.signal().clone(),
            None => self.signal.clone(),
        }
    }

    /// The [`File`] of its overlapped operations, if it was opened for these.
    pub fn overlapped(&self) -> Option<Arc<OverlappedFile>> {
        if !self.overlaps {
            return None;
        }
        self.port_side.get_or_init(|| OverlappedFile::sharing().ok()).clone()
    }

    /// Whether it was opened for overlapped operations.
    pub fn overlaps(&self) -> bool {
        self.overlaps
    }

    /// Whether it may be read.
    pub fn reads(&self) -> bool {
        self.reads
    }

    /// Whether it may be written to.
    pub fn writes(&self) -> bool {
        self.writes
    }

    /// Whether it is a file with a position.
    pub fn is_regular(&self) -> bool {
        self.regular
    }

    /// The result of fstat(2).
    ///
    /// # Errors
    /// What the system says as a Win32 error.
    pub fn metadata(&self) -> Result<Metadata, u32> {
        self.file.metadata().map_err(|error| error_of(&error))
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// A name that leads to this very file, also if it was opened without access.
    pub fn link(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }

    /// Its present path.
    ///
    /// # Errors
    /// `ERROR_FILE_NOT_FOUND` if it was removed, or what the system says.
    pub fn path(&self) -> Result<PathBuf, u32> {
        match self.metadata()?.nlink() {
            0 => Err(ERROR_FILE_NOT_FOUND),
            _ => std::fs::read_link(self.link()).map_err(|error| error_of(&error)),
        }
    }

    /// Whether it is removed when it is closed.
    pub fn goes(&self) -> bool {
        self.goes.load(Ordering::Relaxed)
    }

    /// Has it removed when it is closed, or not.
    ///
    /// # Errors
    /// `ERROR_ACCESS_DENIED` for a read-only file and a device, `ERROR_DIR_NOT_EMPTY`, or what the system says.
    pub fn go(&self, goes: bool) -> Result<(), u32> {
        let found = self.metadata()?;
        if goes && (is_device(&found) || attributes(&found) & ATTRIBUTE_READONLY != 0) {
            return Err(ERROR_ACCESS_DENIED);
        }
        if goes && self.directory {
            let mut inside = std::fs::read_dir(self.link()).map_err(|error| error_of(&error))?;
            if inside.next().is_some() {
                return Err(ERROR_DIR_NOT_EMPTY);
            }
        }
        self.goes.store(goes, Ordering::Relaxed);
        Ok(())
    }

    /// Sets the times of the last access and the last write; `None` leaves one as it is.
    ///
    /// # Errors
    /// What the system says as a Win32 error.
    pub fn set_times(&self, times: [Option<libc::timespec>; 2]) -> Result<(), u32> {
        let times = times.map(|time| time.unwrap_or(libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_OMIT }));
        let link = CString::new(self.link().into_os_string().into_encoded_bytes())
            .map_err(|_| ERROR_INVALID_NAME)?;
        // SAFETY: a terminated name and two times of ours.
        match unsafe { libc::utimensat(libc::AT_FDCWD, link.as_ptr(), times.as_ptr(), 0) } {
            0 => Ok(()),
            _ => Err(error_of(&io::Error::last_os_error())),
        }
    }

    /// The locks of its parts.
    pub fn locks(&self) -> &RangeLocks {
        &self.locks
    }

    /// `GetFileType`.
    ///
    /// # Errors
    /// What the system says as a Win32 error.
    pub fn kind(&self) -> Result<u32, u32> {
        let kind = self.metadata()?.file_type();
        Ok(match () {
            () if kind.is_char_device() => 2,
            () if kind.is_fifo() || kind.is_socket() => 3,
            () => 1,
        })
    }

    /// Reads at a given or at the present position; returns the number of bytes. `ERROR_HANDLE_EOF` only with a given position.
    ///
    /// # Errors
    /// `ERROR_ACCESS_DENIED` without the right, `ERROR_HANDLE_EOF`, or what the system says.
    pub fn read(&self, buffer: &mut [u8], at: Option<u64>) -> Result<usize, u32> {
        if self.directory {
            return Err(ERROR_INVALID_FUNCTION);
        }
        if !self.reads {
            return Err(ERROR_ACCESS_DENIED);
        }
        let position = at.filter(|_| self.regular);
        let read = loop {
            let read = match position {
                Some(at) => self.file.read_at(buffer, at),
                None => io::Read::read(&mut &*self.file, buffer),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other.map_err(|error| error_of(&error))?,
            }
        };
        match position {
            _ if read != 0 || buffer.is_empty() => Ok(read),
            Some(_) => Err(ERROR_HANDLE_EOF),
            // The other end of the pipe was closed.
            None if self.kind()? == 3 => Err(ERROR_BROKEN_PIPE),
            None => Ok(0),
        }
    }

    /// Writes everything at a given or at the present position; `u64::MAX` appends.
    ///
    /// # Errors
    /// `ERROR_ACCESS_DENIED` without the right, or what the system says.
    pub fn write(&self, mut buffer: &[u8], at: Option<u64>) -> Result<usize, u32> {
        if !self.writes {
            return Err(ERROR_ACCESS_DENIED);
        }
        let mut position = match at.filter(|_| self.regular && !self.appends) {
            Some(u64::MAX) => Some(self.metadata()?.len()),
            other => other,
        };
        let length = buffer.len();
        while !buffer.is_empty() {
            let written = match position {
                Some(at) => self.file.write_at(buffer, at),
                None if self.regular => io::Write::write(&mut &*self.file, buffer),
                None => without_sigpipe(|| io::Write::write(&mut &*self.file, buffer)),
            };
            match written {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Some was written; the next call will report the error.
                Err(_) if buffer.len() < length => return Ok(length - buffer.len()),
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => return Err(ERROR_NO_DATA),
                Err(error) => return Err(error_of(&error)),
                Ok(written) => {
                    buffer = &buffer[written..];
                    position = position.map(|at| at + written as u64);
                }
            }
        }
        Ok(length)
    }

    /// Moves the position relative to the beginning, the present position or the end. Returns the new one.
    ///
    /// # Errors
    /// `ERROR_INVALID_PARAMETER` for an unknown method, `ERROR_NEGATIVE_SEEK`, or what the system says.
    pub fn seek(&self, distance: i64, method: u32) -> Result<u64, u32> {
        let whence = match method {
            0 => libc::SEEK_SET,
            1 => libc::SEEK_CUR,
            2 => libc::SEEK_END,
            _ => return Err(ERROR_INVALID_PARAMETER),
        };
        // SAFETY: takes no pointer.
        let position = unsafe { libc::lseek(self.file.as_raw_fd(), distance, whence) };
        match io::Error::last_os_error().raw_os_error() {
            _ if position >= 0 => Ok(position as u64),
            Some(libc::EINVAL) => Err(ERROR_NEGATIVE_SEEK),
            Some(libc::ESPIPE) => Err(ERROR_INVALID_FUNCTION),
            code => Err(errno_to_win32(code.unwrap_or(libc::EINVAL))),
        }
    }
}

/// Runs a write so that a closed pipe is an error, without the SIGPIPE that would end the program.
fn without_sigpipe<R>(write: impl FnOnce() -> R) -> R {
    let mut sets = [MaybeUninit::<libc::sigset_t>::zeroed(); 3];
    let [pipe, before, pending] = sets.each_mut().map(MaybeUninit::as_mut_ptr);
    // SAFETY: initialises a set of ours.
    unsafe { libc::sigemptyset(pipe) };
    // SAFETY: changes that set.
    unsafe { libc::sigaddset(pipe, libc::SIGPIPE) };
    // SAFETY: initialises a set of ours.
    unsafe { libc::sigpending(pending) };
    // SAFETY: reads that set.
    let was_pending = unsafe { libc::sigismember(pending, libc::SIGPIPE) } == 1;
    // SAFETY: reads the one set, and initialises another.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, pipe, before) };
    let result = write();
    if !was_pending {
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: reads a set and a time of ours. A signal of the write's is this thread's, and taken here.
        unsafe { libc::sigtimedwait(pipe, std::ptr::null_mut(), &now) };
    }
    // SAFETY: the set was initialised when the signal was blocked.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
    result
}
