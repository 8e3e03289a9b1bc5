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
    /// The system has given it; until then it is waited for.
    granted: bool,
    /// The process that locked it; a child made by `fork` has the table, too.
    process: u32,
}

impl Held {
    fn is(&self, range: &Range<u64>, exclusive: bool, granted: bool) -> bool {
        self.range == *range && self.exclusive == exclusive && self.granted == granted
    }
}

impl RangeLocks {
    fn held(&self) -> MutexGuard<'_, Vec<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks a part of `file`, which may be beyond its end. An exclusive lock must not overlap another one of the same handle; a shared
    /// one may, and counts once the exclusive one is released.
    ///
    /// # Errors
    /// `ERROR_LOCK_VIOLATION` if it is locked and `waits` is false; `ERROR_ACCESS_DENIED` if the file was not opened for
    /// writing (exclusive) or reading (shared), or what the system says.
    pub fn lock(&self, file: &File, range: Range<u64>, exclusive: bool, waits: bool) -> Result<(), u32> {
        let in_the_way =
            |other: &Held| (exclusive || other.exclusive && !other.granted) && overlap(&range, &other.range);
        let mut held = self.held();
        while held.iter().any(in_the_way) {
            if !waits {
                return Err(ERROR_LOCK_VIOLATION);
            }
            held = self.released.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        // What is locked exclusively already must stay so.
        let mut lacking = parts(&range, &held);
        lacking.retain(|(_, kind)| *kind != libc::F_WRLCK);
        let process = std::process::id();
        held.push(Held { range: range.clone(), exclusive, granted: false, process });
        drop(held);
        let kind = if exclusive { libc::F_WRLCK } else { libc::F_RDLCK };
        let locked = match lacking.is_empty() && !range.is_empty() {
            // Nothing to ask the system for, which would refuse it.
            true if access(file) == libc::O_WRONLY => Err(ERROR_ACCESS_DENIED),
            _ => lacking.iter().try_for_each(|(part, _)| set(file, kind, part, waits)),
        };
        match locked {
            Ok(()) => {
                let mut held = self.held();
                let own = held.iter_mut().find(|lock| lock.is(&range, exclusive, false));
                own.into_iter().for_each(|lock| lock.granted = true);
                self.released.notify_all();
            }
            Err(_) => _ = self.forget(file, &range, exclusive, false),
        }
        locked
    }

    /// Removes a lock, and has the system hold what is left of the others. `None` if it is not there.
    fn forget(
        &self,
        file: &File,
        range: &Range<u64>,
        exclusive: bool,
        granted: bool,
    ) -> Option<Result<(), u32>> {
        let mut held = self.held();
        let index = held.iter().position(|lock| lock.is(range, exclusive, granted))?;
        held.swap_remove(index);
        let left = parts(range, &held);
        // With the table locked: nobody has the part meanwhile. Less than before is always to be had.
        let set = left.iter().try_for_each(|(part, kind)| set(file, *kind, part, false));
        self.released.notify_all();
        Some(set)
    }

    /// Releases a part of `file`, which must have been locked as one.
    ///
    /// # Errors
    /// `ERROR_NOT_LOCKED`.
    pub fn unlock(&self, file: &File, range: Range<u64>) -> Result<(), u32> {
        // An exclusive lock goes first, as on Windows.
        let mut both = [true, false].into_iter();
        both.find_map(|exclusive| self.forget(file, &range, exclusive, true)).unwrap_or(Err(ERROR_NOT_LOCKED))
    }

    /// Whether the system has none of the locks any more that are held here: `file` was closed, and its descriptor is another open
    /// file's.
    pub fn are_gone(&self, file: &File) -> bool {
        const LAST: u64 = i64::MAX as u64;
        let of_system = |lock: &Held| lock.granted && !lock.range.is_empty() && lock.range.start <= LAST;
        if !self.held().iter().any(of_system) {
            return false;
        }
        let known = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()));
        known.is_ok_and(|known| {
            known.starts_with("pos:") && !known.lines().any(|line| line.starts_with("lock:"))
        })
    }

    /// Holds nothing any more, and has the system release nothing.
    pub fn forget_all(&self) {
        self.held().clear();
        self.released.notify_all();
    }

    /// Releases what this process has locked, before `file` is closed. Closing is not enough: a child that has been forked, and has not
    /// run its program yet, has the open file as well.
    pub fn unlock_all(&mut self, file: &File) {
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if held.iter().any(|lock| lock.process == process) {
            release(file);
        }
    }
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Releases all that an open file holds.
pub fn release(file: &File) {
    // Nothing can be done about a failure; closing releases them.
    let _ = set(file, libc::F_UNLCK, &(0..u64::MAX), false);
}

/// What the file was opened for: `O_RDONLY`, `O_WRONLY` or `O_RDWR`.
pub fn access(file: &File) -> i32 {
    // SAFETY: takes no pointer.
    let modes = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    modes & libc::O_ACCMODE
}

/// The parts of a range with the lock that each has from `held`, as the kernel calls it: the strongest. Of those that are waited for,
/// shared ones count: the system may just have given them, so that the release of another one must leave them.
fn parts(range: &Range<u64>, held: &[Held]) -> Vec<(Range<u64>, i32)> {
    let ends = held.iter().flat_map(|lock| [lock.range.start, lock.range.end]);
    let mut cuts: Vec<u64> = ends.filter(|end| range.contains(end)).chain([range.start, range.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let kind = |part: &Range<u64>| {
        let over = held.iter().filter(|lock| (lock.granted || !lock.exclusive) && overlap(part, &lock.range));
        let mut over = over.map(|lock| lock.exclusive);
        match over.next() {
            None => libc::F_UNLCK,
            Some(exclusive) if exclusive || over.any(|exclusive| exclusive) => libc::F_WRLCK,
            Some(_) => libc::F_RDLCK,
        }
    };
    cuts.windows(2).map(|ends| ends[0]..ends[1]).map(|part| (part.clone(), kind(&part))).collect()
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
