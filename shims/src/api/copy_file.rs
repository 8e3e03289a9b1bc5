//! Copies of files: `CopyFile`, `CopyFileEx`.

use crate::arguments::Text;
use crate::boundary::guard_bool;
use crate::error::*;
use crate::files::disk::DiskFile;
use crate::files::{ATTRIBUTE_READONLY, attributes, error_at, error_of, is_device, path_of};
use crate::object::{self, Object, RawHandle, handle};
use crate::text::{Unit, narrow_and_wide};
use std::ffi::c_void;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// `LPPROGRESS_ROUTINE`: the size and what has been copied, of all of the file and of the stream, of which a file has one here; the
/// stream's number, the reason, both files, and what the caller has given. Each `LARGE_INTEGER` is one register or place on the stack.
pub type ProgressRoutine =
    unsafe extern "C" fn(i64, i64, i64, i64, u32, u32, RawHandle, RawHandle, *mut c_void) -> u32;

const CHUNK_FINISHED: u32 = 0;
const STREAM_SWITCH: u32 = 1;

const PROGRESS_CANCEL: u32 = 1;
const PROGRESS_STOP: u32 = 2;
const PROGRESS_QUIET: u32 = 3;

const FAIL_IF_EXISTS: u32 = 0x1;
const RESTARTABLE: u32 = 0x2;
const OPEN_SOURCE_FOR_WRITE: u32 = 0x4;
const ALLOW_DECRYPTED_DESTINATION: u32 = 0x8;
const COPY_SYMLINK: u32 = 0x800;
const NO_BUFFERING: u32 = 0x1000;
const FLAGS: u32 = FAIL_IF_EXISTS
    | RESTARTABLE
    | OPEN_SOURCE_FOR_WRITE
    | ALLOW_DECRYPTED_DESTINATION
    | COPY_SYMLINK
    | NO_BUFFERING;

/// As much is copied from one look at the progress to the next.
const CHUNK: u64 = 1 << 20;

fn failed(error: io::Error) -> u32 {
    error_of(&error)
}

/// How a copy is to be made, and who hears of it.
struct Copying {
    flags: u32,
    routine: Option<ProgressRoutine>,
    data: *mut c_void,
    /// NULL, or a BOOL that any thread may set meanwhile.
    cancel: *const i32,
}

impl Copying {
    /// With nobody who hears of it.
    fn quiet(must_be_new: bool) -> Copying {
        Copying {
            flags: if must_be_new { FAIL_IF_EXISTS } else { 0 },
            routine: None,
            data: std::ptr::null_mut(),
            cancel: std::ptr::null(),
        }
    }

    fn is_cancelled(&self) -> bool {
        // SAFETY: NULL or the caller's, who keeps it for the time of the call. Volatile, as it changes meanwhile.
        !self.cancel.is_null() && unsafe { self.cancel.read_volatile() } != 0
    }
}

/// A handle to a file, for the time of the copy.
struct Shown(RawHandle);

impl Shown {
    fn new(file: &File, reads: bool, writes: bool) -> Result<Shown, u32> {
        let file = file.try_clone().and_then(|file| DiskFile::of(file, reads, writes)).map_err(failed)?;
        object::open(Object::Disk(Arc::new(file))).map(Shown)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        drop(handle::close(self.0));
    }
}

/// Why a copy has ended early.
enum End {
    /// A Win32 error.
    Failed(u32),
    /// What has been copied stays.
    Stopped,
    /// It goes.
    Cancelled,
}

/// Copies the bytes, and tells the routine of each part.
fn copy_bytes(source: &mut File, target: &mut File, how: &Copying) -> Result<(), End> {
    let size = source.metadata().map_err(|error| End::Failed(failed(error)))?.len() as i64;
    let mut routine = match how.routine {
        None => None,
        Some(routine) => {
            let shown = Shown::new(source, true, how.flags & OPEN_SOURCE_FOR_WRITE != 0);
            let both = shown.and_then(|source| Ok((source, Shown::new(target, false, true)?)));
            Some((routine, both.map_err(End::Failed)?))
        }
    };
    if routine.is_none() && how.cancel.is_null() {
        // The kernel may copy it by itself.
        io::copy(source, target).map_err(|error| End::Failed(failed(error)))?;
        return Ok(());
    }
    let (mut done, mut reason) = (0, STREAM_SWITCH);
    loop {
        let answer = routine.as_ref().map_or(0, |(routine, (source, target))| {
            // SAFETY: the caller's routine, with what the caller has given for it.
            unsafe { routine(size, done, size, done, 1, reason, source.0, target.0, how.data) }
        });
        match answer {
            PROGRESS_CANCEL => return Err(End::Cancelled),
            PROGRESS_STOP => return Err(End::Stopped),
            PROGRESS_QUIET => routine = None,
            _ => {}
        }
        if how.is_cancelled() {
            return Err(End::Cancelled);
        }
        match io::copy(&mut source.by_ref().take(CHUNK), target)
            .map_err(|error| End::Failed(failed(error)))?
        {
            0 => return Ok(()),
            more => (done, reason) = (done + more as i64, CHUNK_FINISHED),
        }
    }
}

/// Removes the file that a copy was to be, unless another has its name by now.
fn remove(target: &File, to: &Path) {
    let place = |found: &Metadata| (found.dev(), found.ino());
    // What a link leads to, and not the link.
    let Ok(name) = std::fs::canonicalize(to) else { return };
    let is_it = target.metadata().is_ok_and(|target| {
        target.is_file() && std::fs::metadata(&name).is_ok_and(|named| place(&named) == place(&target))
    });
    if is_it {
        let _ = std::fs::remove_file(name);
    }
}

/// Makes another link to what a link leads to.
fn copy_link(from: &Path, to: &Path, must_be_new: bool) -> Result<(), u32> {
    let leads_to = std::fs::read_link(from).map_err(|error| error_at(&error, from))?;
    let make = || std::os::unix::fs::symlink(&leads_to, to);
    match make() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        done => return done.map_err(|error| at_target(&error, to)),
    }
    if must_be_new {
        return Err(ERROR_FILE_EXISTS);
    }
    let there = std::fs::symlink_metadata(to).map_err(|error| error_at(&error, to))?;
    let is_read_only = !there.is_symlink() && attributes(&there) & ATTRIBUTE_READONLY != 0;
    if there.is_dir() || is_device(&there) || is_read_only {
        return Err(ERROR_ACCESS_DENIED);
    }
    let source = std::fs::symlink_metadata(from).map_err(|error| error_at(&error, from))?;
    if (source.dev(), source.ino()) == (there.dev(), there.ino()) {
        return Err(ERROR_SHARING_VIOLATION);
    }
    std::fs::remove_file(to).and_then(|()| make()).map_err(|error| error_at(&error, to))
}

/// The error of what could not be made.
fn at_target(error: &io::Error, to: &Path) -> u32 {
    match error.kind() {
        io::ErrorKind::AlreadyExists => ERROR_FILE_EXISTS,
        _ => error_at(error, to),
    }
}

pub(super) fn copy_file(from: &Path, to: &Path, must_be_new: bool) -> Result<(), u32> {
    copy_as(from, to, &Copying::quiet(must_be_new))
}

fn copy_as(from: &Path, to: &Path, how: &Copying) -> Result<(), u32> {
    let has = |flag| how.flags & flag != 0;
    if has(COPY_SYMLINK) && std::fs::symlink_metadata(from).is_ok_and(|found| found.is_symlink()) {
        return copy_link(from, to, has(FAIL_IF_EXISTS));
    }
    let found = std::fs::metadata(from).map_err(|error| error_at(&error, from))?;
    if found.is_dir() || std::fs::metadata(to).is_ok_and(|there| there.is_dir()) {
        return Err(ERROR_ACCESS_DENIED);
    }
    let mut options = OpenOptions::new();
    options.read(true).write(has(OPEN_SOURCE_FOR_WRITE)).custom_flags(libc::O_NOCTTY);
    let mut source = options.open(from).map_err(|error| error_at(&error, from))?;
    let found = source.metadata().map_err(failed)?;
    // The superuser could write to it.
    let is_read_only = |there: Metadata| attributes(&there) & ATTRIBUTE_READONLY != 0 && !has(FAIL_IF_EXISTS);
    if std::fs::metadata(to).is_ok_and(is_read_only) {
        return Err(ERROR_ACCESS_DENIED);
    }
    let mut options = OpenOptions::new();
    // Not truncated yet: it may be the source under another name.
    options.write(true).create(true).truncate(false).create_new(has(FAIL_IF_EXISTS));
    options.mode(found.mode()).custom_flags(libc::O_NOCTTY);
    let mut target = options.open(to).map_err(|error| at_target(&error, to))?;
    let there = target.metadata().map_err(failed)?;
    let is_device = is_device(&there);
    if !is_device && (found.dev(), found.ino()) == (there.dev(), there.ino()) {
        return Err(ERROR_SHARING_VIOLATION);
    }
    if there.is_file() {
        target.set_len(0).map_err(failed)?;
    }
    match copy_bytes(&mut source, &mut target, how) {
        Ok(()) => {}
        Err(End::Failed(code)) => return Err(code),
        Err(End::Stopped) => return Err(ERROR_REQUEST_ABORTED),
        Err(End::Cancelled) => {
            remove(&target, to);
            return Err(ERROR_REQUEST_ABORTED);
        }
    }
    if is_device {
        return Ok(());
    }
    target.set_permissions(found.permissions()).map_err(failed)?;
    // The copy was last written to when the source was, unless the file system has its own idea.
    let _ = found.modified().and_then(|last_write| target.set_modified(last_write));
    Ok(())
}

fn paths<T: Unit>(from: Text<'_, T>, to: Text<'_, T>) -> Result<[PathBuf; 2], u32> {
    Ok([path_of(from.read())?, path_of(to.read())?])
}

pub(super) fn copy<T: Unit>(from: Text<'_, T>, to: Text<'_, T>, must_be_new: i32) -> i32 {
    guard_bool(|| {
        let [from, to] = paths(from, to)?;
        copy_file(&from, &to, must_be_new != 0)
    })
}

/// # Safety
/// `cancel` is NULL or can be read until the call ends, and the routine may be called with `data`.
unsafe fn copy_ex<T: Unit>(
    from: Text<'_, T>,
    to: Text<'_, T>,
    routine: Option<ProgressRoutine>,
    data: *mut c_void,
    cancel: *const i32,
    flags: u32,
) -> i32 {
    guard_bool(|| {
        let [from, to] = paths(from, to)?;
        if flags & !FLAGS != 0 {
            return Err(ERROR_INVALID_PARAMETER);
        }
        copy_as(&from, &to, &Copying { flags, routine, data, cancel })
    })
}

narrow_and_wide! {
    "`CopyFile`."
    ndw_CopyFileA ndw_CopyFileW = copy(from: Text<'_, T>, to: Text<'_, T>, must_be_new: i32) -> i32;
    "`CopyFileEx`: the routine hears of each part, and can end the copy, as can `*cancel`."
    ndw_CopyFileExA ndw_CopyFileExW = unsafe copy_ex(
        from: Text<'_, T>,
        to: Text<'_, T>,
        routine: Option<ProgressRoutine>,
        data: *mut c_void,
        cancel: *const i32,
        flags: u32,
    ) -> i32;
}

#[cfg(test)]
mod tests;
