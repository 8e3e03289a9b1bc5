//! Files opened by `CreateFile`.

mod input;
mod opening;
mod transfer;

pub use opening::Wanted;

use super::range_locks::{self, RangeLocks};
use super::{ATTRIBUTE_READONLY, attributes, error_of, is_device};
use crate::error::*;
use crate::io::File as OverlappedFile;
use crate::io::signal::Signal;
use std::ffi::CString;
use std::fs::{File, Metadata};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// An open file.
pub struct DiskFile {
    file: ManuallyDrop<File>,
    /// Whether the descriptor is someone else's: it is not closed.
    lent: AtomicBool,
    /// Device and inode: whether a lent descriptor still has this file.
    identity: (u64, u64),
    /// It was made for a descriptor of the program's.
    borrowed: bool,
    reads: bool,
    writes: bool,
    /// Writes append.
    appends: bool,
    /// A regular file: it has a position and an end.
    regular: bool,
    directory: bool,
    /// It was opened for overlapped operations.
    overlaps: bool,
    /// And without the system's buffers.
    unbuffered: bool,
    /// The [`File`] of its overlapped operations, created on first use.
    port_side: OnceLock<Option<Arc<OverlappedFile>>>,
    /// Always set: a wait for a file that is not overlapped ends at once, unless it is a terminal that is read.
    signal: Arc<Signal>,
    /// What watches a terminal, from the first wait on.
    input: OnceLock<Option<input::Input>>,
    /// Whether it is removed when it is closed.
    goes: AtomicBool,
    locks: RangeLocks,
    /// What holds its locks instead of `file`, from the first lock on.
    lock_side: OnceLock<Option<File>>,
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        if *self.lent.get_mut() && !self.has_descriptor() {
            self.disown();
        }
        self.locks.unlock_all(self.lock_side.get().and_then(Option::as_ref).unwrap_or(&self.file));
        if self.goes() {
            self.remove();
        }
        // It watches the descriptor.
        drop(self.input.take());
        if !*self.lent.get_mut() {
            // SAFETY: its last use.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

impl DiskFile {
    /// A file that was opened for that.
    pub(crate) fn of(file: File, reads: bool, writes: bool) -> io::Result<DiskFile> {
        let found = file.metadata()?;
        Ok(DiskFile::with(file, &found, reads, writes))
    }

    fn with(file: File, found: &Metadata, reads: bool, writes: bool) -> DiskFile {
        let kind = found.file_type();
        DiskFile {
            identity: (found.dev(), found.ino()),
            borrowed: false,
            reads,
            writes,
            appends: false,
            regular: kind.is_file(),
            directory: kind.is_dir(),
            overlaps: false,
            unbuffered: false,
            port_side: OnceLock::new(),
            signal: Signal::new(false, true),
            input: OnceLock::new(),
            goes: AtomicBool::new(false),
            locks: RangeLocks::default(),
            lock_side: OnceLock::new(),
            file: ManuallyDrop::new(file),
            lent: AtomicBool::new(false),
        }
    }

    /// The signal for waits on its handle.
    pub(crate) fn signal(&self) -> Arc<Signal> {
        match self.overlapped() {
            Some(file) => file.signal().clone(),
            None => self.input().map_or(&self.signal, input::Input::signal).clone(),
        }
    }

    /// A descriptor of the program's may be closed at any time: it is not watched.
    fn input(&self) -> Option<&input::Input> {
        if !self.reads || self.regular || self.borrowed {
            return None;
        }
        self.input.get_or_init(|| input::Input::of(&self.file)).as_ref()
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

    /// Whether its overlapped operations never complete at once on Windows, so that programs take the packet for the only word on them.
    pub fn always_pends(&self) -> bool {
        self.overlaps && self.unbuffered
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

    /// Whether a descriptor that is not its own has become another file's, or is another open file of the same one: opened for
    /// something else, or without the locks that are held here.
    pub fn is_stale(&self) -> bool {
        let Some(there) = DiskFile::borrowed(self.file.as_raw_fd()) else { return true };
        let opened = |file: &DiskFile| (file.identity, file.appends);
        // A handle may have been opened for less than its descriptor (a file that is to be created), never for more.
        let lacks = self.reads && !there.reads || self.writes && !there.writes;
        // What was given for a descriptor has its very rights.
        let more = self.borrowed && (there.reads, there.writes) != (self.reads, self.writes);
        let unlocked = || !matches!(self.lock_side.get(), Some(Some(_))) && self.locks.are_gone(&self.file);
        opened(self) != opened(&there) || lacks || more || unlocked()
    }

    /// Whether its descriptor, which may be someone else's to close, still has this file.
    fn has_descriptor(&self) -> bool {
        self.file.metadata().is_ok_and(|found| (found.dev(), found.ino()) == self.identity)
    }

    /// Removes it. It may have been removed already.
    fn remove(&self) {
        if let Ok(path) = self.path() {
            let _ = if self.directory { std::fs::remove_dir(path) } else { std::fs::remove_file(path) };
        }
    }

    /// Has nothing done to the descriptor any more, which is another file's by now.
    pub fn disown(&self) {
        self.goes.store(false, Ordering::Relaxed);
        if let Some(Some(own)) = self.lock_side.get() {
            range_locks::release(own);
        }
        self.locks.forget_all();
    }

    /// What the system gives its locks to. Linux locks for writing only what may be written to, and for reading what may be read, and
    /// Windows either on any handle that has access. So a handle without both has the file opened for both, if the user may. A
    /// descriptor that someone else closes keeps its locks: they must go with it.
    pub fn locked(&self) -> &File {
        let opened = || {
            let lent = self.borrowed || self.lent.load(Ordering::Relaxed);
            let lacks = (self.reads || self.writes) && range_locks::access(&self.file) != libc::O_RDWR;
            let both = || File::options().read(true).write(true).open(self.link()).ok();
            (self.regular && lacks && !lent).then(both).flatten()
        };
        self.lock_side.get_or_init(opened).as_ref().unwrap_or(&self.file)
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
}
