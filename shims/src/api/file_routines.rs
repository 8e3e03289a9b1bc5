//! `ReadFileEx` and `WriteFileEx`: a completion routine runs in an alertable wait of the calling thread.

use super::files::disk;
use crate::boundary::guard_bool;
use crate::error::*;
use crate::files::disk::DiskFile;
use crate::io::apc::Apcs;
use crate::io::{Overlapped, STATUS_SUCCESS};
use crate::object::RawHandle;
use std::ffi::c_void;
use std::sync::atomic::AtomicUsize;

/// `LPOVERLAPPED_COMPLETION_ROUTINE`.
type Routine = unsafe extern "C" fn(u32, u32, *mut Overlapped);

/// Runs the operation, and queues the routine.
///
/// # Safety
/// `overlapped` is NULL or valid until the routine has been called, which may be called then.
unsafe fn transfer(
    file: RawHandle,
    overlapped: *mut Overlapped,
    routine: Option<Routine>,
    run: impl FnOnce(&DiskFile, u64) -> Result<usize, u32>,
) -> i32 {
    guard_bool(|| {
        let file = disk(file)?;
        let routine = routine.filter(|_| !overlapped.is_null()).ok_or(ERROR_INVALID_PARAMETER)?;
        // A file that is bound to a port notifies the port instead.
        if !file.overlaps() || file.overlapped().is_some_and(|file| file.is_bound()) {
            return Err(ERROR_INVALID_PARAMETER);
        }
        // SAFETY: not NULL by the filter above, hence valid as the caller promises, and the program has set the offset.
        let bytes = run(&file, unsafe { (*overlapped).offset })?;
        // SAFETY: valid for writes until the routine has been called. No reference is made: the event may be uninitialised.
        unsafe { (*overlapped).internal_high = AtomicUsize::new(bytes) };
        // SAFETY: valid for writes until the routine has been called, which nothing has queued yet.
        unsafe { (*overlapped).internal = AtomicUsize::new(STATUS_SUCCESS as usize) };
        let overlapped = overlapped.expose_provenance();
        Apcs::current().queue(Box::new(move || {
            // SAFETY: the program's routine for its OVERLAPPED, which it has asked to be called.
            unsafe { routine(ERROR_SUCCESS, bytes as u32, std::ptr::with_exposed_provenance_mut(overlapped)) }
        }));
        Ok(())
    })
}

/// `ReadFileEx`: the end of the file is `ERROR_HANDLE_EOF` at once. Only for files that were opened for overlapped operations.
///
/// # Safety
/// As for [`ndw_ReadFile`](super::files::ndw_ReadFile); the routine must be safe to call with the `OVERLAPPED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_ReadFileEx(
    file: RawHandle,
    buffer: *mut c_void,
    length: u32,
    overlapped: *mut Overlapped,
    routine: Option<Routine>,
) -> i32 {
    // SAFETY: `buffer` is NULL or has room for `length` bytes, as `ReadFile` asks.
    let room = unsafe { super::files::room(buffer, length) };
    // SAFETY: `overlapped` is NULL or stays valid until the routine has run, which may be called with it, as this function
    // asks.
    unsafe { transfer(file, overlapped, routine, |file, at| file.read(room?, Some(at))) }
}

/// `WriteFileEx`.
///
/// # Safety
/// As for [`ndw_WriteFile`](super::files::ndw_WriteFile); the routine must be safe to call with the `OVERLAPPED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_WriteFileEx(
    file: RawHandle,
    buffer: *const c_void,
    length: u32,
    overlapped: *mut Overlapped,
    routine: Option<Routine>,
) -> i32 {
    // SAFETY: `buffer` is NULL or has `length` bytes, as `WriteFile` asks.
    let bytes = unsafe { super::files::bytes(buffer, length) };
    // SAFETY: `overlapped` is NULL or stays valid until the routine has run, which may be called with it, as this function
    // asks.
    unsafe { transfer(file, overlapped, routine, |file, at| file.write(bytes?, Some(at))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::completion_port::ndw_CreateIoCompletionPort;
    use crate::api::event::ndw_CreateEventW;
    use crate::api::file_names::tests::Folder;
    use crate::api::files::create;
    use crate::api::handle::close_handle;
    use crate::api::thread::ndw_SleepEx;
    use crate::api::wait::ndw_WaitForSingleObject;
    use crate::arguments::Text;
    use crate::text::w;
    use std::cell::RefCell;
    use std::ptr::{null, null_mut};

    const READ_WRITE: u32 = 0xC000_0000;
    const OVERLAPPED: u32 = 0x4000_0000;
    const WAIT_IO_COMPLETION: u32 = 192;

    thread_local! {
        static CALLS: RefCell<Vec<(u32, u32, usize)>> = const { RefCell::new(Vec::new()) };
    }

    unsafe extern "C" fn record(error: u32, bytes: u32, overlapped: *mut Overlapped) {
        CALLS.with_borrow_mut(|calls| calls.push((error, bytes, overlapped.addr())));
    }

    fn open(name: &str, flags: u32) -> RawHandle {
        create(Text::terminated(&w(name)), READ_WRITE, 7, null(), 4, flags, RawHandle::NULL)
    }

    #[test]
    fn routines_of_files_run_in_their_order_in_an_alertable_wait() {
        let folder = Folder::new();
        let file = open(&folder.name("file"), OVERLAPPED);
        let event = ndw_CreateEventW(null(), 1, 0, Text::NULL);
        let [mut first, mut second] =
            [0, 4].map(|offset| Overlapped { offset, event, ..Overlapped::default() });
        let mut end = Overlapped { offset: 6, ..Overlapped::default() };
        let mut buffer = [0u8; 8];
        // SAFETY: buffers have the sizes told; they and the OVERLAPPEDs live until the end of the test, which has run every
        // routine by then.
        unsafe {
            assert_eq!(ndw_WriteFileEx(file, c"wor".as_ptr().cast(), 4, &mut first, Some(record)), 1);
            assert_eq!(ndw_WriteFileEx(file, c"d".as_ptr().cast(), 2, &mut second, Some(record)), 1);
            assert_eq!(ndw_SleepEx(0, 0), 0, "not alertable");
            CALLS.with_borrow(|calls| assert!(calls.is_empty()));
            assert_eq!(ndw_SleepEx(0, 1), WAIT_IO_COMPLETION);
            let calls = CALLS.take();
            assert_eq!(calls, [(0, 4, (&raw const first).addr()), (0, 2, (&raw const second).addr())]);
            assert_eq!(ndw_WaitForSingleObject(event, 0), 258, "the event is the program's own");
            let read = ndw_ReadFileEx(file, buffer.as_mut_ptr().cast(), 8, &mut first, Some(record));
            assert_eq!((read, ndw_SleepEx(0, 1)), (1, WAIT_IO_COMPLETION));
            assert_eq!((CALLS.take()[0].1, &buffer[..6]), (6, &b"wor\0d\0"[..]));
            let read = ndw_ReadFileEx(file, buffer.as_mut_ptr().cast(), 8, &mut end, Some(record));
            assert_eq!((read, last_error(), ndw_SleepEx(0, 1)), (0, ERROR_HANDLE_EOF, 0));
        }
        assert_eq!((close_handle(file), close_handle(event)), (1, 1));
    }

    #[test]
    fn what_has_no_routine_is_refused() {
        let folder = Folder::new();
        let (plain, overlapped) =
            (open(&folder.name("plain"), 0), open(&folder.name("overlapped"), OVERLAPPED));
        let bound = open(&folder.name("bound"), OVERLAPPED);
        let port = ndw_CreateIoCompletionPort(bound, RawHandle::NULL, 0, 0);
        let mut place = Overlapped::default();
        let byte = c"x".as_ptr().cast::<c_void>();
        let at = &raw mut place;
        for (file, buffer, at, routine, error) in [
            (plain, byte, at, Some(record as Routine), ERROR_INVALID_PARAMETER),
            (bound, byte, at, Some(record as Routine), ERROR_INVALID_PARAMETER),
            (overlapped, byte, null_mut(), Some(record as Routine), ERROR_INVALID_PARAMETER),
            (overlapped, byte, at, None, ERROR_INVALID_PARAMETER),
            (overlapped, null(), at, Some(record as Routine), ERROR_NOACCESS),
            (port, byte, at, Some(record as Routine), ERROR_INVALID_HANDLE),
            (RawHandle::NULL, byte, at, Some(record as Routine), ERROR_INVALID_HANDLE),
        ] {
            // SAFETY: one byte at most is written from, and nothing is read to: every call is refused before it touches its
            // buffer. `place` lives on.
            unsafe {
                assert_eq!((ndw_WriteFileEx(file, buffer, 1, at, routine), last_error()), (0, error));
                // Nothing is there to be read.
                let read = ndw_ReadFileEx(file, buffer.cast_mut(), 1, at, routine);
                assert_eq!((read, last_error()), (0, error));
            }
        }
        assert_eq!(ndw_SleepEx(0, 1), 0);
        for handle in [plain, overlapped, bound, port] {
            assert_eq!(close_handle(handle), 1);
        }
    }
}
