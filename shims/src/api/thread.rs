//! Threads, `Sleep` and `SwitchToThread`.

use super::handle::{CURRENT_THREAD, resolve};
use super::wait::{WAIT_IO_COMPLETION, wait};
use crate::boundary::{guard, guard_bool, guard_handle};
use crate::error::*;
use crate::io::Idle;
use crate::io::sys::thread_id;
use crate::object::thread::{self, Start, Thread, create};
use crate::object::{Object, RawHandle};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

/// `STILL_ACTIVE`: the exit code of a thread that has not ended.
const STILL_ACTIVE: u32 = 259;
/// `CREATE_SUSPENDED`.
const CREATE_SUSPENDED: u32 = 4;

/// The kernel's id of a handle's thread; pseudo handles are resolved. `ERROR_INVALID_HANDLE` for another kind of handle,
/// `ERROR_ACCESS_DENIED` for a thread that has ended.
pub(super) fn thread_number(handle: RawHandle) -> Result<u32, u32> {
    let thread = find(handle)?;
    match thread.number() {
        0 => Err(ERROR_INVALID_HANDLE),
        _ if thread.exit_code().is_some() => Err(ERROR_ACCESS_DENIED),
        number => Ok(number),
    }
}

/// `CreateThread`.
///
/// # Safety
/// `start` must be safe to run with `parameter` on another thread; `id` must be null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_CreateThread(
    _attributes: *const c_void,
    stack: usize,
    start: Option<Start>,
    parameter: *mut c_void,
    flags: u32,
    id: *mut u32,
) -> RawHandle {
    guard(RawHandle::NULL, || {
        let created = start
            .ok_or(ERROR_INVALID_PARAMETER)
            .and_then(|start| create(stack, start, parameter, flags & CREATE_SUSPENDED != 0, false));
        match created {
            Ok((handle, number)) => {
                if !id.is_null() {
                    // SAFETY: not NULL, hence writable, as this function asks.
                    unsafe { id.write(number) };
                }
                handle
            }
            Err(code) => {
                set_last_error(code);
                RawHandle::NULL
            }
        }
    })
}

/// `_beginthreadex`.
///
/// # Safety
/// As for [`ndw_CreateThread`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__beginthreadex(
    attributes: *const c_void,
    stack: u32,
    start: Option<Start>,
    parameter: *mut c_void,
    flags: u32,
    id: *mut u32,
) -> RawHandle {
    // SAFETY: the routine may run with the parameter on another thread, and `id` is NULL or writable, as this function asks.
    unsafe { ndw_CreateThread(attributes, stack as usize, start, parameter, flags, id) }
}

/// The routine of `_beginthread`.
type StartAlone = unsafe extern "C-unwind" fn(*mut c_void);

thread_local! {
    /// The routine and argument of a thread from `_beginthread`.
    static ALONE: Cell<Option<(StartAlone, *mut c_void)>> = const { Cell::new(None) };
}

/// # Safety
/// `launch` is from `Box::into_raw` of [`ndw__beginthread`], for this thread alone.
unsafe extern "C-unwind" fn start_alone(launch: *mut c_void) -> u32 {
    // SAFETY: made by `Box::into_raw` in `ndw__beginthread` for this thread alone. Nothing of it is left in this frame, which
    // `pthread_exit` unwinds.
    ALONE.set(Some(*unsafe { Box::from_raw(launch.cast::<(StartAlone, *mut c_void)>()) }));
    if let Some((start, parameter)) = ALONE.take() {
        // SAFETY: who called `_beginthread` promised that the routine may run with the parameter on this thread.
        unsafe { start(parameter) };
    }
    0
}

/// `_beginthread`: the handle is closed when the thread ends. -1 and `errno` on failure.
///
/// # Safety
/// As for [`ndw_CreateThread`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw__beginthread(
    start: Option<StartAlone>,
    stack: u32,
    parameter: *mut c_void,
) -> RawHandle {
    guard(RawHandle::INVALID, || {
        let failed = |errno| {
            crate::crt::set_errno(errno);
            RawHandle::INVALID
        };
        let Some(start) = start else { return failed(libc::EINVAL) };
        let launch = Box::into_raw(Box::new((start, parameter)));
        match create(stack as usize, start_alone, launch.cast(), false, true) {
            Ok((handle, _)) => handle,
            Err(_) => {
                // SAFETY: no thread was started, so the box is still ours.
                drop(unsafe { Box::from_raw(launch) });
                failed(libc::EAGAIN)
            }
        }
    })
}

/// `_endthread`.
///
/// # Safety
/// As for [`ndw_ExitThread`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ndw__endthread() -> ! {
    // SAFETY: the frames of the thread allow forced unwinding, as this function asks; this one holds nothing.
    unsafe { ndw_ExitThread(0) }
}

/// `PAPCFUNC`.
type ApcRoutine = unsafe extern "C" fn(usize);

/// `QueueUserAPC`: the thread runs the routine in its next alertable wait, or first of all if it has not started.
///
/// # Safety
/// The routine must be safe to run with `data` on that thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_QueueUserAPC(
    routine: Option<ApcRoutine>,
    handle: RawHandle,
    data: usize,
) -> u32 {
    let queued = guard_bool(|| {
        let thread = find(handle)?;
        let routine = routine.ok_or(ERROR_INVALID_PARAMETER)?;
        // SAFETY: the routine may run with `data` on that thread, as this function asks.
        let apc = Box::new(move || unsafe { routine(data) });
        if thread.queue_apc(apc) { Ok(()) } else { Err(ERROR_GEN_FAILURE) }
    });
    queued as u32
}

/// `ExitThread`.
///
/// # Safety
/// The frames of the calling thread must allow forced unwinding, as those of C and C++ do.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ndw_ExitThread(code: u32) -> ! {
    // SAFETY: the frames of the thread allow forced unwinding, as this function asks; this one holds nothing.
    unsafe { thread::exit(code) }
}

/// `_endthreadex`.
///
/// # Safety
/// As for [`ndw_ExitThread`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ndw__endthreadex(code: u32) -> ! {
    // SAFETY: the frames of the thread allow forced unwinding, as this function asks; this one holds nothing.
    unsafe { ndw_ExitThread(code) }
}

/// The thread of a handle.
pub(super) fn find(handle: RawHandle) -> Result<Arc<Thread>, u32> {
    match resolve(handle) {
        Some(Object::Thread(thread)) => Ok(thread),
        _ => Err(ERROR_INVALID_HANDLE),
    }
}

/// `GetExitCodeThread`.
///
/// # Safety
/// `code` must be null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetExitCodeThread(handle: RawHandle, code: *mut u32) -> i32 {
    guard_bool(|| {
        let thread = find(handle)?;
        if code.is_null() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let value = thread.exit_code().unwrap_or(STILL_ACTIVE);
        // SAFETY: not NULL, hence writable, as this function asks.
        unsafe { code.write(value) };
        Ok(())
    })
}

/// `ResumeThread`, for threads created with `CREATE_SUSPENDED`: returns the previous suspend count.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_ResumeThread(handle: RawHandle) -> u32 {
    guard(u32::MAX, || match find(handle) {
        Ok(thread) => thread.resume(),
        Err(code) => {
            set_last_error(code);
            u32::MAX
        }
    })
}

/// `GetCurrentThread`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetCurrentThread() -> RawHandle {
    CURRENT_THREAD
}

/// `GetCurrentThreadId`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetCurrentThreadId() -> u32 {
    thread_id()
}

/// `GetThreadId`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetThreadId(handle: RawHandle) -> u32 {
    guard(0, || match find(handle) {
        Ok(thread) => thread.number(),
        Err(code) => {
            set_last_error(code);
            0
        }
    })
}

/// `OpenThread`: a running thread of this process that was created by this library or has called it. Rights and inheritance are
/// ignored.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_OpenThread(_access: u32, _inherit: i32, number: u32) -> RawHandle {
    guard_handle(|| {
        // The calling thread is always known.
        let found = if number == thread_id() { Some(thread::current()) } else { thread::of_number(number) };
        crate::object::open(Object::Thread(found.ok_or(ERROR_INVALID_PARAMETER)?))
    })
}

/// `Sleep`: 0 yields the processor.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_Sleep(millis: u32) {
    guard((), || {
        let _idle = Idle::enter();
        match millis {
            0 => std::thread::yield_now(),
            u32::MAX => loop {
                std::thread::park();
            },
            _ => std::thread::sleep(Duration::from_millis(millis.into())),
        }
    });
}

/// `SleepEx`: if alertable, it runs asynchronous procedure calls and returns after them.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SleepEx(millis: u32, alertable: i32) -> u32 {
    if alertable == 0 {
        ndw_Sleep(millis);
        return 0;
    }
    guard(
        0,
        || if wait(&[], false, millis, alertable) == WAIT_IO_COMPLETION { WAIT_IO_COMPLETION } else { 0 },
    )
}

/// `SwitchToThread`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SwitchToThread() -> i32 {
    std::thread::yield_now();
    1
}
