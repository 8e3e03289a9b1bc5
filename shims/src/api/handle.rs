//! Handles: lookup, `CloseHandle`, `DuplicateHandle`.

use crate::arguments::Out;
use crate::boundary::guard_bool;
use crate::error::*;
use crate::io::File;
use crate::object::{Object, RawHandle, handle, thread};
use crate::process;
use crate::winsock;
use std::sync::Arc;

/// `GetCurrentThread()`.
pub(super) const CURRENT_THREAD: RawHandle = RawHandle(usize::MAX - 1);

/// The object of a handle or of a socket passed as a handle. Pseudo handles are not resolved.
pub(super) fn get(handle: RawHandle) -> Option<Object> {
    match handle::as_descriptor(handle) {
        Some(fd) => winsock::file_of(fd).map(Object::File),
        None => handle::get(handle),
    }
}

/// Like [`get`], and resolves the pseudo handle of the current thread.
pub(super) fn resolve(handle: RawHandle) -> Option<Object> {
    if handle == CURRENT_THREAD { Some(Object::Thread(thread::current())) } else { get(handle) }
}

impl File {
    /// The file of a handle, if it is one. The low two bits of the handle are ignored.
    pub fn from_handle(handle: RawHandle) -> Option<Arc<File>> {
        match get(handle) {
            Some(Object::File(file)) => Some(file),
            Some(Object::Disk(file)) => file.overlapped(),
            _ => None,
        }
    }
}

/// `CloseHandle`: closing a pseudo handle does nothing.
///
/// # Safety
/// A socket passed as a handle must be the caller's: its descriptor is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CloseHandle(handle: RawHandle) -> i32 {
    guard_bool(|| {
        if handle == RawHandle::INVALID || handle == CURRENT_THREAD {
            return Ok(());
        }
        if let Some(fd) = handle::as_descriptor(handle) {
            return winsock::close(fd).map_err(|_| ERROR_INVALID_HANDLE);
        }
        if let Some(Object::Search(_) | Object::Opaque(_)) = handle::get(handle) {
            // These are closed by functions of their own.
            return Err(ERROR_INVALID_HANDLE);
        }
        if handle::flags(handle).is_some_and(|flags| flags & PROTECT_FROM_CLOSE != 0) {
            return Err(ERROR_INVALID_HANDLE);
        }
        let object = handle::close(handle).ok_or(ERROR_INVALID_HANDLE)?;
        if let Object::File(file) = &object {
            file.handle_closed();
        }
        // The last reference may be dropped here, which must not happen under the table's lock.
        drop(object);
        Ok(())
    })
}

/// [`ndw_CloseHandle`], for tests, which close what they have opened.
#[cfg(test)]
pub(crate) fn close_handle(handle: RawHandle) -> i32 {
    // SAFETY: the test's own.
    unsafe { ndw_CloseHandle(handle) }
}

/// `HANDLE_FLAG_INHERIT`: stored; on a socket, the inverse of close-on-exec. There is no CreateProcess to inherit handles.
const INHERIT: u8 = 1;
/// `HANDLE_FLAG_PROTECT_FROM_CLOSE`: not for sockets.
const PROTECT_FROM_CLOSE: u8 = 2;

/// The descriptor of a socket passed as a handle.
fn socket(handle: RawHandle) -> Option<Result<i32, u32>> {
    let fd = handle::as_descriptor(handle)?;
    Some(if winsock::file_of(fd).is_some() { Ok(fd) } else { Err(ERROR_INVALID_HANDLE) })
}

/// `GetHandleInformation`.
///
/// # Safety
/// `flags` must be null or valid for a write.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetHandleInformation(handle: RawHandle, flags: Out<'_, u32>) -> i32 {
    guard_bool(|| {
        let found = match socket(handle) {
            // SAFETY: takes no pointer.
            Some(fd) => match unsafe { libc::fcntl(fd?, libc::F_GETFD) } {
                now if now >= 0 => u8::from(now & libc::FD_CLOEXEC == 0) * INHERIT,
                _ => return Err(ERROR_INVALID_HANDLE),
            },
            None => handle::flags(handle).ok_or(ERROR_INVALID_HANDLE)?,
        };
        flags.required(ERROR_NOACCESS)?.put(found.into());
        Ok(())
    })
}

/// `SetHandleInformation`: unknown bits of the mask are ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SetHandleInformation(handle: RawHandle, mask: u32, flags: u32) -> i32 {
    guard_bool(|| {
        let mask = (mask as u8) & (INHERIT | PROTECT_FROM_CLOSE);
        let flags = flags as u8;
        let Some(fd) = socket(handle) else {
            return handle::change_flags(handle, mask, flags).map(|_| ()).ok_or(ERROR_INVALID_HANDLE);
        };
        let fd = fd?;
        if mask & flags & PROTECT_FROM_CLOSE != 0 {
            return Err(ERROR_NOT_SUPPORTED);
        }
        let closes = if flags & INHERIT != 0 { 0 } else { libc::FD_CLOEXEC };
        // SAFETY: takes no pointer.
        if mask & INHERIT != 0 && unsafe { libc::fcntl(fd, libc::F_SETFD, closes) } < 0 {
            return Err(ERROR_INVALID_HANDLE);
        }
        Ok(())
    })
}

/// `DUPLICATE_CLOSE_SOURCE`.
const DUPLICATE_CLOSE_SOURCE: u32 = 1;

/// `DuplicateHandle`, within this process. Access rights and inheritance are ignored. Without a target process the source can
/// only be closed; it is closed even if it cannot be duplicated.
///
/// # Safety
/// `target` must be null or valid for a write.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_DuplicateHandle(
    source_process: RawHandle,
    source: RawHandle,
    target_process: RawHandle,
    target: Out<'_, RawHandle>,
    _access: u32,
    _inherit: i32,
    options: u32,
) -> i32 {
    guard_bool(|| {
        let here = |process| process == RawHandle::INVALID;
        let closes = options & DUPLICATE_CLOSE_SOURCE != 0;
        let nowhere = target_process == RawHandle::NULL && closes;
        if !here(source_process) || !(here(target_process) || nowhere) {
            return Err(ERROR_INVALID_HANDLE);
        }
        let object = resolve(source).ok_or(ERROR_INVALID_HANDLE)?;
        let duplicate = if target.is_null() || nowhere { None } else { Some(handle::open(object)) };
        if closes {
            drop(handle::close(source));
        }
        match duplicate {
            Some(RawHandle::NULL) => Err(ERROR_TOO_MANY_OPEN_FILES),
            Some(duplicate) => {
                target.put(duplicate);
                Ok(())
            }
            None => Ok(()),
        }
    })
}

/// How many sockets are open, which no table here counts.
fn sockets() -> usize {
    let is_socket = |path: std::path::PathBuf| {
        std::fs::read_link(path).is_ok_and(|file| file.to_string_lossy().starts_with("socket:"))
    };
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    open.filter(|entry| is_socket(entry.path())).count()
}

/// `GetProcessHandleCount`: handles of this process, and its sockets.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetProcessHandleCount(process: RawHandle, count: Out<'_, u32>) -> i32 {
    guard_bool(|| {
        process::own(process)?;
        count.required(ERROR_NOACCESS)?.put((handle::count() + sockets()) as u32);
        Ok(())
    })
}

/// `GetCurrentProcess`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetCurrentProcess() -> RawHandle {
    RawHandle::INVALID
}

/// `TerminateProcess`, of this process, which ends at once without running anything of the program.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_TerminateProcess(process: RawHandle, code: u32) -> i32 {
    if process == ndw_GetCurrentProcess() {
        // SAFETY: takes no pointer, and does not return.
        unsafe { libc::_exit(code as i32) };
    }
    set_last_error(ERROR_INVALID_HANDLE);
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::signal::Signal;

    fn event() -> RawHandle {
        handle::open(Object::Event(Signal::new(false, false)))
    }

    extern "C" fn fails() {
        // SAFETY: takes no pointer.
        unsafe { libc::_exit(99) };
    }

    #[test]
    fn a_process_that_terminates_itself_runs_no_handler() {
        set_last_error(0);
        assert_eq!(ndw_TerminateProcess(RawHandle::NULL, 1), 0);
        assert_eq!(last_error(), ERROR_INVALID_HANDLE);
        crate::alone::run("api::handle::tests::a_child_terminates_itself");
    }

    #[test]
    #[ignore = "forks; the test above runs it"]
    fn a_child_terminates_itself() {
        let child = crate::alone::child(|| {
            // SAFETY: takes a function that is there as long as the program.
            unsafe { libc::atexit(fails) };
            ndw_TerminateProcess(ndw_GetCurrentProcess(), 7)
        });
        let mut status = 0;
        // SAFETY: room for the status.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 7));
    }

    #[test]
    fn handles_look_like_windows_handles() {
        let handle = event();
        assert!(handle.0 != 0 && handle.0 < 1 << 31 && handle.0.is_multiple_of(4));
        assert!(get(handle).is_some());
        assert_eq!(close_handle(handle), 1);
    }

    fn flags_of(handle: RawHandle) -> (i32, u32) {
        let mut flags = 99;
        (ndw_GetHandleInformation(handle, Out::from(&mut flags)), flags)
    }

    #[test]
    fn a_protected_handle_is_not_closed() {
        let handle = event();
        assert_eq!(flags_of(handle), (1, 0));
        // Only what the mask names changes, and other bits mean nothing.
        assert_eq!(ndw_SetHandleInformation(handle, 0xFFFF_FFFE, 0xFFFF_FFFF), 1);
        assert_eq!(flags_of(handle), (1, u32::from(PROTECT_FROM_CLOSE)));
        assert_eq!((close_handle(handle), last_error()), (0, ERROR_INVALID_HANDLE));
        assert!(get(handle).is_some());
        assert_eq!(ndw_SetHandleInformation(handle, 1, 1), 1);
        assert_eq!(flags_of(handle), (1, 3));
        assert_eq!(ndw_SetHandleInformation(handle, 2, 0), 1);
        assert_eq!((flags_of(handle), close_handle(handle)), ((1, 1), 1));
        // The next handle in its place begins anew.
        for _ in 0..5000 {
            let other = event();
            assert_eq!((flags_of(other), close_handle(other)), ((1, 0), 1));
        }
    }

    #[test]
    fn a_socket_is_inherited_unless_it_is_closed_on_exec() {
        use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        // The lowest numbers are no sockets, and not what Winsock gives.
        // SAFETY: a descriptor of ours, and then a new one.
        let socket =
            unsafe { OwnedFd::from_raw_fd(libc::fcntl(socket.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 8)) };
        let fd = socket.as_raw_fd();
        let handle = RawHandle(fd as usize);
        assert_eq!((flags_of(handle), ndw_SetHandleInformation(handle, 1, 1)), ((1, 0), 1));
        // SAFETY: takes no pointer.
        let closes = || unsafe { libc::fcntl(fd, libc::F_GETFD) } & libc::FD_CLOEXEC;
        assert_eq!((flags_of(handle), closes()), ((1, 1), 0));
        assert_eq!((ndw_SetHandleInformation(handle, 2, 2), last_error()), (0, ERROR_NOT_SUPPORTED));
        assert_eq!((ndw_SetHandleInformation(handle, 3, 0), closes()), (1, libc::FD_CLOEXEC));
    }

    #[test]
    fn only_handles_that_are_open_have_information() {
        let stale = event();
        assert_eq!(close_handle(stale), 1);
        for handle in [RawHandle::NULL, RawHandle::INVALID, CURRENT_THREAD, RawHandle(4000), stale] {
            assert_eq!((flags_of(handle), last_error()), ((0, 99), ERROR_INVALID_HANDLE));
            assert_eq!((ndw_SetHandleInformation(handle, 1, 1), last_error()), (0, ERROR_INVALID_HANDLE));
        }
        let handle = event();
        let nowhere = ndw_GetHandleInformation(handle, Out::NULL);
        assert_eq!((nowhere, last_error()), (0, ERROR_NOACCESS));
        assert_eq!(close_handle(handle), 1);
    }

    #[test]
    fn handles_and_sockets_of_the_process_are_counted() {
        crate::alone::run("api::handle::tests::the_only_thread_counts_handles");
    }

    #[test]
    #[ignore = "counts what all threads have opened; the test above runs it"]
    fn the_only_thread_counts_handles() {
        let count = || {
            let mut count = u32::MAX;
            assert_eq!(ndw_GetProcessHandleCount(ndw_GetCurrentProcess(), Out::from(&mut count)), 1);
            count
        };
        let before = count();
        let handles: Vec<_> = (0..100).map(|_| event()).collect();
        assert_eq!(count(), before + 100);
        // A file that is no handle's is none.
        let sockets = [(); 3].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(count(), before + 103);
        drop((sockets, file));
        handles.into_iter().for_each(|handle| assert_eq!(close_handle(handle), 1));
        assert_eq!(count(), before);
        for (process, place, code) in [
            (RawHandle::NULL, Some(before), ERROR_INVALID_HANDLE),
            (RawHandle::INVALID, None, ERROR_NOACCESS),
        ] {
            let mut place = place;
            let counted = ndw_GetProcessHandleCount(process, place.as_mut().map_or(Out::NULL, Out::from));
            assert_eq!((counted, last_error()), (0, code));
        }
    }

    #[test]
    fn the_two_low_bits_do_not_matter() {
        let handle = event();
        assert!(get(RawHandle(handle.0 | 3)).is_some());
        assert_eq!(close_handle(RawHandle(handle.0 | 1)), 1);
        assert!(get(handle).is_none());
    }

    #[test]
    fn stale_and_foreign_handles_are_found_out() {
        let stale = event();
        assert_eq!(close_handle(stale), 1);
        // Enough to bring the slot into use again several times.
        for _ in 0..20_000 {
            let other = event();
            assert_ne!(other, stale);
            assert!(get(stale).is_none());
            assert_eq!(close_handle(other), 1);
        }
        for foreign in [0, 4, 0x7fff_fffc, 0xffff_fffc, usize::MAX - 7, 0x7fff_1234_5678] {
            set_last_error(0);
            assert_eq!(close_handle(RawHandle(foreign)), 0, "{foreign:#x}");
            assert_eq!(last_error(), ERROR_INVALID_HANDLE);
        }
        assert_eq!(close_handle(stale), 0);
    }

    #[test]
    fn a_duplicate_outlives_its_source() {
        let source = event();
        let mut target = RawHandle::NULL;
        let me = ndw_GetCurrentProcess();
        let duplicate = |options, target: &mut RawHandle| {
            ndw_DuplicateHandle(me, source, me, target.into(), 0, 0, options)
        };
        assert_eq!(duplicate(DUPLICATE_CLOSE_SOURCE | 2, &mut target), 1);
        assert!(get(source).is_none());
        assert!(get(target).is_some());
        assert_eq!(duplicate(2, &mut target), 0);
        assert_eq!(last_error(), ERROR_INVALID_HANDLE);
        assert_eq!(close_handle(target), 1);
    }

    #[test]
    fn duplicates_of_one_object_are_equal_and_each_is_closed_by_itself() {
        let (source, mut target) = (event(), RawHandle::NULL);
        let me = ndw_GetCurrentProcess();
        // The low bits of the source do not matter, and those of the duplicate are clear.
        let tagged = RawHandle(source.0 | 1);
        assert_eq!(ndw_DuplicateHandle(me, tagged, me, Out::from(&mut target), 0, 0, 2), 1);
        assert!(target != source && target.0.is_multiple_of(4));
        let (Some(Object::Event(a)), Some(Object::Event(b))) = (get(source), get(target)) else {
            panic!("no events")
        };
        assert!(std::sync::Arc::ptr_eq(&a, &b));
        // Handles of other processes there are not.
        assert_eq!(ndw_DuplicateHandle(source, source, me, Out::from(&mut target), 0, 0, 2), 0);
        assert_eq!(ndw_DuplicateHandle(me, source, RawHandle::NULL, Out::from(&mut target), 0, 0, 2), 0);
        assert_eq!(last_error(), ERROR_INVALID_HANDLE);
        // To nowhere: a way of closing.
        assert_eq!(ndw_DuplicateHandle(me, source, RawHandle::NULL, Out::NULL, 0, 0, 1), 1);
        assert!(get(source).is_none() && get(target).is_some());
        assert_eq!((close_handle(source), close_handle(target)), (0, 1));
    }
}
