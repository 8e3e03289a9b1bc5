//! Locks of parts of files: `LockFile`, `LockFileEx` and their counterparts.

use super::files::{disk, finish};
use crate::boundary::guard_bool;
use crate::error::*;
use crate::io::{Overlapped, STATUS_SUCCESS};
use crate::object::RawHandle;
use std::ops::Range;

const FAIL_IMMEDIATELY: u32 = 1;
const EXCLUSIVE: u32 = 2;

fn range(start: u64, low: u32, high: u32) -> Result<Range<u64>, u32> {
    let length = u64::from(high) << 32 | u64::from(low);
    // All of a file is often locked as so many bytes from anywhere.
    if length == u64::MAX {
        return Ok(start..u64::MAX);
    }
    Ok(start..start.checked_add(length).ok_or(ERROR_INVALID_PARAMETER)?)
}

fn place(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// `LockFile`: exclusive, without waiting.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_LockFile(file: RawHandle, at: u32, at_high: u32, low: u32, high: u32) -> i32 {
    guard_bool(|| {
        let file = disk(file)?;
        file.locks().lock(file.locked(), range(place(at, at_high), low, high)?, true, false)
    })
}

/// `UnlockFile`: a part that was locked as one.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_UnlockFile(file: RawHandle, at: u32, at_high: u32, low: u32, high: u32) -> i32 {
    guard_bool(|| {
        let file = disk(file)?;
        file.locks().unlock(file.locked(), range(place(at, at_high), low, high)?)
    })
}

/// `LockFileEx`: at the place in the `OVERLAPPED`. It waits in the call, also on files opened for overlapped operations.
///
/// # Safety
/// `overlapped` is NULL, or an OVERLAPPED that no request has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_LockFileEx(
    file: RawHandle,
    flags: u32,
    reserved: u32,
    low: u32,
    high: u32,
    overlapped: *mut Overlapped,
) -> i32 {
    guard_bool(|| {
        let file = disk(file)?;
        if overlapped.is_null() || reserved != 0 || flags & !(FAIL_IMMEDIATELY | EXCLUSIVE) != 0 {
            return Err(ERROR_INVALID_PARAMETER);
        }
        // SAFETY: not NULL, hence an OVERLAPPED of the program's, which has set the offset.
        let range = range(unsafe { (*overlapped).offset }, low, high)?;
        file.locks().lock(file.locked(), range, flags & EXCLUSIVE != 0, flags & FAIL_IMMEDIATELY == 0)?;
        // SAFETY: not NULL, hence an OVERLAPPED that no request has, as the caller promises.
        unsafe { finish(&file, overlapped, STATUS_SUCCESS, 0) };
        Ok(())
    })
}

/// `UnlockFileEx`: the same as `UnlockFile`, at the place in the `OVERLAPPED`. No packet comes of it.
///
/// # Safety
/// `overlapped` is NULL, or an OVERLAPPED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_UnlockFileEx(
    file: RawHandle,
    reserved: u32,
    low: u32,
    high: u32,
    overlapped: *mut Overlapped,
) -> i32 {
    guard_bool(|| {
        let file = disk(file)?;
        if overlapped.is_null() || reserved != 0 {
            return Err(ERROR_INVALID_PARAMETER);
        }
        // SAFETY: not NULL, hence an OVERLAPPED of the program's, which has set the offset.
        let start = unsafe { (*overlapped).offset };
        file.locks().unlock(file.locked(), range(start, low, high)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::file_names::tests::Folder;
    use crate::api::files::ndw_CreateFileW;
    use crate::api::handle::close_handle;
    use crate::arguments::Text;
    use crate::text::w;
    use std::os::unix::fs::MetadataExt;
    use std::ptr::{null, null_mut};

    const READ: u32 = 0x8000_0000;
    const WRITE: u32 = 0x4000_0000;
    const BOTH: u32 = 0xC000_0000;

    fn open(name: &str, access: u32) -> RawHandle {
        let file = ndw_CreateFileW(Text::terminated(&w(name)), access, 7, null(), 3, 0, RawHandle::NULL);
        assert_ne!(file, RawHandle::INVALID);
        file
    }

    fn lock(file: RawHandle, at: u64, length: u64, flags: u32) -> u32 {
        let mut overlapped = Overlapped { offset: at, ..Overlapped::default() };
        // SAFETY: an OVERLAPPED of this function's, which no request has.
        match unsafe { ndw_LockFileEx(file, flags, 0, length as u32, (length >> 32) as u32, &mut overlapped) }
        {
            0 => last_error(),
            _ => 0,
        }
    }

    fn unlock(file: RawHandle, at: u64, length: u64) -> u32 {
        let mut overlapped = Overlapped { offset: at, ..Overlapped::default() };
        // SAFETY: an OVERLAPPED of this function's.
        match unsafe { ndw_UnlockFileEx(file, 0, length as u32, (length >> 32) as u32, &mut overlapped) } {
            0 => last_error(),
            _ => 0,
        }
    }

    #[test]
    fn a_locked_part_is_in_the_way_of_every_other_lock() {
        let folder = Folder::new();
        let name = folder.file("x", b"text");
        let (one, two) = (open(&name, BOTH), open(&name, BOTH));
        assert_eq!(lock(one, 0, 10, EXCLUSIVE | FAIL_IMMEDIATELY), 0);
        assert_eq!(lock(two, 9, 1, FAIL_IMMEDIATELY), ERROR_LOCK_VIOLATION);
        for file in [one, two] {
            assert_eq!(lock(file, 9, 1, EXCLUSIVE | FAIL_IMMEDIATELY), ERROR_LOCK_VIOLATION);
            assert_eq!(ndw_LockFile(file, 3, 0, u32::MAX, u32::MAX), 0);
            assert_eq!(last_error(), ERROR_LOCK_VIOLATION);
        }
        assert_eq!((ndw_LockFile(two, 10, 0, 1, 0), ndw_UnlockFile(two, 10, 0, 1, 0)), (1, 1));
        assert_eq!(unlock(two, 0, 10), ERROR_NOT_LOCKED);
        assert_eq!(unlock(one, 0, 9), ERROR_NOT_LOCKED, "not the part that was locked");
        assert_eq!((unlock(one, 0, 10), lock(two, 0, u64::MAX, EXCLUSIVE)), (0, 0));
        assert_eq!(close_handle(two), 1);
        assert_eq!(lock(one, 0, 1, EXCLUSIVE | FAIL_IMMEDIATELY), 0, "closing releases it");
        assert_eq!(close_handle(one), 1);
    }

    #[test]
    fn an_exclusive_lock_can_be_made_a_shared_one_without_a_gap() {
        let folder = Folder::new();
        let name = folder.file("x", b"text");
        let (one, two) = (open(&name, BOTH), open(&name, BOTH));
        assert_eq!(lock(one, 0, 10, EXCLUSIVE | FAIL_IMMEDIATELY), 0);
        assert_eq!(lock(one, 5, 10, 0), 0, "of the same handle");
        assert_eq!(lock(two, 4, 1, FAIL_IMMEDIATELY), ERROR_LOCK_VIOLATION);
        assert_eq!(lock(two, 5, 1, FAIL_IMMEDIATELY), ERROR_LOCK_VIOLATION, "it is exclusive still");
        assert_eq!(unlock(one, 0, 10), 0);
        assert_eq!(lock(two, 0, 5, EXCLUSIVE | FAIL_IMMEDIATELY), 0);
        assert_eq!(lock(two, 5, 10, EXCLUSIVE | FAIL_IMMEDIATELY), ERROR_LOCK_VIOLATION);
        assert_eq!(lock(two, 5, 10, FAIL_IMMEDIATELY), 0);
        assert_eq!((unlock(one, 5, 10), unlock(two, 5, 10), unlock(two, 0, 5)), (0, 0, 0));
        // Of the same range, the exclusive one goes first.
        assert_eq!((lock(one, 0, 1, EXCLUSIVE), lock(one, 0, 1, 0), unlock(one, 0, 1)), (0, 0, 0));
        assert_eq!((lock(two, 0, 1, FAIL_IMMEDIATELY), unlock(one, 0, 1)), (0, 0));
        assert_eq!((unlock(two, 0, 1), unlock(one, 0, 1)), (0, ERROR_NOT_LOCKED));
        for file in [one, two] {
            assert_eq!(close_handle(file), 1);
        }
    }

    #[test]
    fn shared_locks_of_one_handle_come_and_go_on_two_threads() {
        let folder = Folder::new();
        let name = folder.file("x", b"text");
        let (one, two) = (open(&name, READ), open(&name, BOTH));
        let comes_and_goes = move || {
            for _ in 0..2000 {
                assert_eq!(lock(one, 0, 10, FAIL_IMMEDIATELY), 0);
                assert_eq!(lock(two, 0, 10, EXCLUSIVE | FAIL_IMMEDIATELY), ERROR_LOCK_VIOLATION);
                assert_eq!(unlock(one, 0, 10), 0);
            }
        };
        let threads = [(); 2].map(|()| std::thread::spawn(comes_and_goes));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(lock(two, 0, 10, EXCLUSIVE | FAIL_IMMEDIATELY), 0);
        for file in [one, two] {
            assert_eq!(close_handle(file), 1);
        }
    }

    #[test]
    fn a_lock_that_is_waited_for_is_none_yet() {
        let folder = Folder::new();
        let name = folder.file("x", b"text");
        let (one, two) = (open(&name, BOTH), open(&name, BOTH));
        assert_eq!(lock(two, 0, 10, EXCLUSIVE), 0);
        let waiter = std::thread::spawn(move || lock(one, 0, 10, EXCLUSIVE));
        let inode = std::fs::metadata(&name).unwrap().ino();
        let waits = |line: &str| line.contains("-> OFDLCK") && line.contains(&format!(":{inode} "));
        while !std::fs::read_to_string("/proc/locks").unwrap().lines().any(waits) {
            std::thread::yield_now();
        }
        assert_eq!(lock(one, 0, 10, FAIL_IMMEDIATELY), ERROR_LOCK_VIOLATION);
        assert_eq!(unlock(one, 0, 10), ERROR_NOT_LOCKED);
        assert_eq!((unlock(two, 0, 10), waiter.join().unwrap()), (0, 0));
        assert_eq!((lock(one, 0, 10, FAIL_IMMEDIATELY), unlock(one, 0, 10), unlock(one, 0, 10)), (0, 0, 0));
        let writer = open(&name, WRITE);
        assert_eq!((lock(writer, 20, 1, EXCLUSIVE), lock(writer, 20, 1, 0)), (0, 0));
        for file in [one, two, writer] {
            assert_eq!(close_handle(file), 1);
        }
    }

    #[test]
    fn shared_locks_of_one_file_are_released_one_by_one() {
        let folder = Folder::new();
        let name = folder.file("x", b"text");
        let (one, two) = (open(&name, READ), open(&name, BOTH));
        assert_eq!((lock(one, 0, 10, 0), lock(one, 5, 10, 0), lock(two, 0, 20, 0)), (0, 0, 0));
        assert_eq!(unlock(two, 0, 20), 0);
        assert_eq!(unlock(one, 0, 10), 0);
        assert_eq!(lock(two, 0, 5, EXCLUSIVE | FAIL_IMMEDIATELY), 0);
        assert_eq!(lock(two, 5, 5, EXCLUSIVE | FAIL_IMMEDIATELY), ERROR_LOCK_VIOLATION);
        assert_eq!((unlock(one, 5, 10), lock(two, 5, 5, EXCLUSIVE | FAIL_IMMEDIATELY)), (0, 0));
        for file in [one, two] {
            assert_eq!(close_handle(file), 1);
        }
    }

    #[test]
    fn a_handle_takes_either_kind_of_lock_whatever_it_was_opened_for() {
        let folder = Folder::new();
        let name = folder.file("x", b"text");
        let (reader, writer, other) = (open(&name, READ), open(&name, WRITE), open(&name, BOTH));
        for file in [reader, writer] {
            assert_eq!(lock(file, 0, 10, EXCLUSIVE | FAIL_IMMEDIATELY), 0);
            assert_eq!(lock(other, 9, 1, FAIL_IMMEDIATELY), ERROR_LOCK_VIOLATION);
            assert_eq!((lock(file, 0, 10, 0), unlock(file, 0, 10)), (0, 0), "made a shared one");
            assert_eq!((lock(other, 0, 1, FAIL_IMMEDIATELY), unlock(other, 0, 1)), (0, 0));
            assert_eq!(lock(other, 0, 1, EXCLUSIVE | FAIL_IMMEDIATELY), ERROR_LOCK_VIOLATION);
            assert_eq!(unlock(file, 0, 10), 0);
            assert_eq!(lock(file, 3, 1, EXCLUSIVE | FAIL_IMMEDIATELY), 0);
            assert_eq!(close_handle(file), 1);
            assert_eq!(lock(other, 0, 10, EXCLUSIVE | FAIL_IMMEDIATELY), 0, "closing releases it");
            assert_eq!(unlock(other, 0, 10), 0);
        }
        let nothing = open(&name, 0);
        for kind in [EXCLUSIVE, 0] {
            assert_eq!(lock(nothing, 0, 1, kind), ERROR_ACCESS_DENIED, "without access there are no locks");
        }
        for file in [nothing, other] {
            assert_eq!(close_handle(file), 1);
        }
    }

    #[test]
    fn closing_releases_what_a_forked_child_still_has_open() {
        crate::alone::run("api::file_locks::tests::with_a_forked_child");
    }

    #[test]
    #[ignore = "run by the test above: it forks"]
    fn with_a_forked_child() {
        let folder = Folder::new();
        let name = folder.file("x", b"text");
        let (one, two) = (open(&name, BOTH), open(&name, BOTH));
        assert_eq!(lock(one, 0, 1, EXCLUSIVE), 0);
        let (mut status, closed) = (0, crate::alone::child(|| close_handle(one)));
        // SAFETY: a child of this test's; `status` is ours.
        unsafe { libc::waitpid(closed, &mut status, 0) };
        assert_eq!(libc::WEXITSTATUS(status), 1);
        assert_eq!(lock(two, 0, 1, EXCLUSIVE | FAIL_IMMEDIATELY), ERROR_LOCK_VIOLATION, "the parent has it");
        let waits = crate::alone::child(|| {
            loop {
                // SAFETY: takes no pointer.
                unsafe { libc::pause() };
            }
        });
        assert_eq!(close_handle(one), 1);
        assert_eq!(lock(two, 0, 1, EXCLUSIVE | FAIL_IMMEDIATELY), 0);
        // SAFETY: a child of this test's.
        unsafe { libc::kill(waits, libc::SIGKILL) };
        assert_eq!(close_handle(two), 1);
    }

    #[test]
    fn a_lock_waits_until_the_part_is_released() {
        let folder = Folder::new();
        let name = folder.file("x", b"text");
        let (one, two) = (open(&name, BOTH), open(&name, BOTH));
        for file in [one, two] {
            assert_eq!(lock(one, 0, 1, EXCLUSIVE), 0);
            let waiter = std::thread::spawn(move || (lock(file, 0, 1, EXCLUSIVE), unlock(file, 0, 1)));
            assert_eq!(unlock(one, 0, 1), 0);
            assert_eq!(waiter.join().unwrap(), (0, 0));
        }
        for file in [one, two] {
            assert_eq!(close_handle(file), 1);
        }
    }

    #[test]
    fn wrong_arguments_of_locks() {
        let folder = Folder::new();
        let file = open(&folder.file("x", b"text"), BOTH);
        let mut overlapped = Overlapped::default();
        for (flags, reserved, at) in
            [(4, 0, &raw mut overlapped), (0, 1, &raw mut overlapped), (0, 0, null_mut())]
        {
            // SAFETY: an OVERLAPPED of this test's, or NULL.
            assert_eq!(unsafe { ndw_LockFileEx(file, flags, reserved, 1, 0, at) }, 0);
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
        }
        for (reserved, at) in [(0, null_mut()), (1, &raw mut overlapped)] {
            set_last_error(0);
            // SAFETY: NULL, or an OVERLAPPED of this test's.
            assert_eq!(unsafe { ndw_UnlockFileEx(file, reserved, 1, 0, at) }, 0);
            assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
        }
        assert_eq!(lock(file, u64::MAX - 1, 2, 0), ERROR_INVALID_PARAMETER);
        assert_eq!(
            (lock(file, 0, 0, EXCLUSIVE), lock(file, 0, 1, EXCLUSIVE)),
            (0, 0),
            "no bytes are in no way"
        );
        assert_eq!(lock(RawHandle::NULL, 0, 1, 0), ERROR_INVALID_HANDLE);
        assert_eq!(close_handle(file), 1);
        assert_eq!(lock(file, 0, 1, 0), ERROR_INVALID_HANDLE);
    }
}
