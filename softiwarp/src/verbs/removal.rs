//! When the device is gone: while a file exists that the process was told of.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::inotify;

static FILE: OnceLock<PathBuf> = OnceLock::new();

/// The device is gone while this file exists. When somebody makes it, the device is removed, with all that is pending; a device that
/// is asked for after the file was deleted is a new one. The first call counts.
pub fn gone_while_exists(file: PathBuf) {
    let _ = FILE.set(file);
}

/// Whether it is gone.
pub(super) fn is_gone() -> bool {
    FILE.get().is_some_and(|file| file.exists())
}

/// A descriptor that is readable when files have come to the folder of the file; `None` if the process was told of none.
///
/// # Errors
/// The system's error: no descriptor is left, or there is no such folder.
pub(super) fn watch() -> io::Result<Option<OwnedFd>> {
    let Some(file) = FILE.get() else { return Ok(None) };
    let set = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    inotify::add_watch(&set, folder, inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO)?;
    Ok(Some(set))
}

/// Discards what the descriptor tells.
pub(super) fn drain(set: &OwnedFd) {
    let mut told = [MaybeUninit::uninit(); 4096];
    while matches!(rustix::io::read(set, &mut told), Ok((told, _)) if !told.is_empty()) {}
}
