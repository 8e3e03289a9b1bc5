//! Locks of parts of a file: open file description locks of Linux, and a table of them for what Linux does not tell apart.

use super::error_of;
use crate::error::*;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The locks that one open file holds.
#[derive(Default)]
pub struct RangeLocks {
    held: Mutex<Vec<Held>>,
    released: Condvar,
}

struct Held {
    range: Range<u64>,
    exclusive: bool,
    /// The process that locked it; a child made by `fork` has the table, too.
    process: u32,
}

impl RangeLocks {
    fn held(&self) -> MutexGuard<'_, Vec<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks a part of `file`, which may be beyond its end. A lock of the same file handle is in the way as well.
    ///
    /// # Errors
    /// `ERROR_LOCK_VIOLATION` if it is locked and `waits` is false; `ERROR_ACCESS_DENIED` if the file was not opened for
    /// writing (exclusive) or reading (shared), or what the system says.
    pub fn lock(&self, file: &File, range: Range<u64>, exclusive: bool, waits: bool) -> Result<(), u32> {
        let new = Held { range: range.clone(), exclusive, process: std::process::id() };
        let in_the_way = |other: &Held| (exclusive || other.exclusive) && overlap(&range, &other.range);
        let mut held = self.held();
        while held.iter().any(in_the_way) {
            if !waits {
                return Err(ERROR_LOCK_VIOLATION);
            }
            held = self.released.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        held.push(new);
        drop(held);
        let kind = if exclusive { libc::F_WRLCK } else { libc::F_RDLCK };
        let locked = set(file, kind, &range, waits);
        if locked.is_err() {
            self.forget(&range, exclusive);
        }
        locked
    }

    /// Removes a lock from the table; returns the other locks that overlap it, `None` if it was not there.
    fn forget(&self, range: &Range<u64>, exclusive: bool) -> Option<Vec<Range<u64>>> {
        let mut held = self.held();
        let index = held.iter().position(|lock| lock.range == *range && lock.exclusive == exclusive)?;
        held.swap_remove(index);
        self.released.notify_all();
        Some(held.iter().filter(|other| overlap(range, &other.range)).map(|it| it.range.clone()).collect())
    }

    /// Releases a part of `file`, which must have been locked as one.
    ///
    /// # Errors
    /// `ERROR_NOT_LOCKED`.
    pub fn unlock(&self, file: &File, range: Range<u64>) -> Result<(), u32> {
        // An exclusive lock goes first, as on Windows.
        let others = [true, false]
            .into_iter()
            .find_map(|exclusive| self.forget(&range, exclusive))
            .ok_or(ERROR_NOT_LOCKED)?;
        // Linux would release what another shared lock of this file has, too.
        let mut parts = vec![range];
        for other in others {
            parts = parts.into_iter().flat_map(|part| without(part, &other)).collect();
        }
        parts.iter().try_for_each(|part| set(file, libc::F_UNLCK, part, false))
    }

    /// Releases what this process has locked, before `file` is closed. Closing is not enough: a child that has been forked, and has not
    /// run its program yet, has the open file as well.
    pub fn unlock_all(&mut self, file: &File) {
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if held.iter().any(|lock| lock.process == process) {
            // Nothing can be done about a failure; closing releases them.
            let _ = set(file, libc::F_UNLCK, &(0..u64::MAX), false);
        }
    }
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// `part` without `other`: the pieces before and after it.
fn without(part: Range<u64>, other: &Range<u64>) -> [Range<u64>; 2] {
    [part.start..part.end.min(other.start), part.start.max(other.end)..part.end]
}

/// fcntl(2) with a lock. Linux counts bytes up to 2^63; nothing is locked beyond.
fn set(file: &File, kind: i32, range: &Range<u64>, waits: bool) -> Result<(), u32> {
    const LAST: u64 = i64::MAX as u64;
    if range.is_empty() || range.start > LAST {
        return Ok(());
    }
    let lock = libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: range.start as i64,
        // 0 is all that follows.
        l_len: if range.end > LAST { 0 } else { (range.end - range.start) as i64 },
        l_pid: 0,
    };
    let command = if waits { libc::F_OFD_SETLKW } else { libc::F_OFD_SETLK };
    loop {
        // SAFETY: the kernel reads a structure of ours.
        if unsafe { libc::fcntl(file.as_raw_fd(), command, &lock) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EAGAIN | libc::EACCES) => return Err(ERROR_LOCK_VIOLATION),
            Some(libc::EBADF) => return Err(ERROR_ACCESS_DENIED),
            _ => return Err(error_of(&error)),
        }
    }
}
