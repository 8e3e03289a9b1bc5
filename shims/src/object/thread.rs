//! Threads, and giving up the processor.

use super::{Object, RawHandle, guard, guard_bool, handle};
use crate::error::*;
use crate::io::Idle;
use crate::io::signal::{Signal, wait_any};
use crate::io::sys::{Deadline, thread_id};
use std::cell::OnceCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// `STILL_ACTIVE`: the exit code of a thread that has not ended.
const STILL_ACTIVE: u32 = 259;

/// A thread that a handle can name.
pub(crate) struct Thread {
    /// The kernel's number of the thread; 0 until it runs.
    id: AtomicU32,
    /// Of use once it has ended: threads from elsewhere end with 0.
    exit_code: AtomicU32,
    ended: Arc<Signal>,
    /// Set when the thread may run: `CREATE_SUSPENDED` delays that until `ResumeThread`.
    resumed: Arc<Signal>,
    /// The suspend count, which only `CREATE_SUSPENDED` makes anything but zero.
    suspended: AtomicU32,
}

impl Thread {
    fn new(suspended: bool) -> Arc<Thread> {
        Arc::new(Thread {
            id: AtomicU32::new(0),
            exit_code: AtomicU32::new(0),
            ended: Signal::new(false, false),
            resumed: Signal::new(false, !suspended),
            suspended: AtomicU32::new(suspended.into()),
        })
    }

    /// Set when the thread has ended.
    pub(super) fn ended(&self) -> &Arc<Signal> {
        &self.ended
    }
}

/// The calling thread's own entry; its end is the end of the thread.
struct Own(Arc<Thread>);

impl Drop for Own {
    fn drop(&mut self) {
        self.0.ended.set();
    }
}

thread_local! {
    static OWN: OnceCell<Own> = const { OnceCell::new() };
}

fn own(thread: impl FnOnce() -> Arc<Thread>) -> Arc<Thread> {
    let adopt = |own: &OnceCell<Own>| {
        let own = own.get_or_init(|| {
            let thread = thread();
            thread.id.store(thread_id(), Ordering::Relaxed);
            Own(thread)
        });
        own.0.clone()
    };
    OWN.try_with(adopt).unwrap_or_else(|_| Thread::new(false))
}

/// The calling thread, whoever created it.
pub(super) fn current() -> Arc<Thread> {
    own(|| Thread::new(false))
}

/// `LPTHREAD_START_ROUTINE`. It may end by `ExitThread`, which unwinds its frames.
type Start = unsafe extern "C-unwind" fn(*mut c_void) -> u32;

struct Launch {
    thread: Arc<Thread>,
    start: Start,
    parameter: *mut c_void,
    /// Set once the thread has its number.
    ready: Arc<Signal>,
}

/// Prepares the new thread; nothing that needs dropping may stay alive in the frames below the start routine,
/// because `pthread_exit` unwinds them.
extern "C-unwind" fn run(launch: *mut c_void) -> *mut c_void {
    let (start, parameter) = enter(launch.cast());
    // SAFETY: the creator of the thread vouches for the routine and its parameter.
    let code = unsafe { start(parameter) };
    leave(code);
    std::ptr::null_mut()
}

fn enter(launch: *mut Launch) -> (Start, *mut c_void) {
    // SAFETY: made by `Box::into_raw` in `create` for this thread alone.
    let launch = unsafe { Box::from_raw(launch) };
    let thread = own(|| launch.thread.clone());
    launch.ready.set();
    wait_any(std::slice::from_ref(&thread.resumed), Deadline::Never);
    (launch.start, launch.parameter)
}

fn leave(code: u32) {
    current().exit_code.store(code, Ordering::Release);
}

const CREATE_SUSPENDED: u32 = 4;

/// Starts a thread; gives its handle and number.
fn create(stack: usize, start: Start, parameter: *mut c_void, flags: u32) -> Result<(RawHandle, u32), u32> {
    let thread = Thread::new(flags & CREATE_SUSPENDED != 0);
    let handle = handle::open(Object::Thread(thread.clone()));
    if handle == RawHandle::NULL {
        return Err(ERROR_NO_SYSTEM_RESOURCES);
    }
    let ready = Signal::new(false, false);
    let launch = Launch { thread: thread.clone(), start, parameter, ready: ready.clone() };
    let launch = Box::into_raw(Box::new(launch));
    if let Err(errno) = spawn(stack, launch.cast()) {
        // SAFETY: no thread was started, so the box is still ours.
        drop(unsafe { Box::from_raw(launch) });
        super::handle::ndw_CloseHandle(handle);
        return Err(errno_to_win32(errno));
    }
    wait_any(&[ready], Deadline::Never);
    Ok((handle, thread.id.load(Ordering::Relaxed)))
}

/// Starts a detached thread at `run`.
fn spawn(stack: usize, launch: *mut c_void) -> Result<(), i32> {
    // SAFETY: a function of the same ABI, that differs only in being allowed to unwind, which `pthread_exit` does.
    let entry = unsafe {
        std::mem::transmute::<
            extern "C-unwind" fn(*mut c_void) -> *mut c_void,
            extern "C" fn(*mut c_void) -> *mut c_void,
        >(run)
    };
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut id = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: the attributes are initialised first and destroyed last; all pointers are to locals.
    let errno = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        if stack > 0 {
            // Windows' sizes are often too small for what lies on a Linux stack: never below the default.
            let mut default = 0;
            libc::pthread_attr_getstacksize(attributes.as_ptr(), &mut default);
            libc::pthread_attr_setstacksize(
                attributes.as_mut_ptr(),
                stack.next_multiple_of(65536).max(default),
            );
        }
        let errno = libc::pthread_create(id.as_mut_ptr(), attributes.as_ptr(), entry, launch);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        errno
    };
    if errno == 0 { Ok(()) } else { Err(errno) }
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
        let created =
            start.ok_or(ERROR_INVALID_PARAMETER).and_then(|start| create(stack, start, parameter, flags));
        match created {
            Ok((handle, number)) => {
                if !id.is_null() {
                    // SAFETY: the caller vouches for `id`.
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
    // SAFETY: the caller vouches for the arguments.
    unsafe { ndw_CreateThread(attributes, stack as usize, start, parameter, flags, id) }
}

/// `ExitThread`.
///
/// # Safety
/// The frames of the calling thread must allow forced unwinding, as those of C and C++ do.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ndw_ExitThread(code: u32) -> ! {
    leave(code);
    // SAFETY: the caller vouches for its frames; this one holds nothing.
    unsafe { pthread_exit(std::ptr::null_mut()) }
}

/// `_endthreadex`.
///
/// # Safety
/// As for [`ndw_ExitThread`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ndw__endthreadex(code: u32) -> ! {
    // SAFETY: the caller vouches for its frames.
    unsafe { ndw_ExitThread(code) }
}

unsafe extern "C-unwind" {
    // The `libc` crate declares it as never unwinding.
    fn pthread_exit(value: *mut c_void) -> !;
}

fn thread(handle: RawHandle) -> Result<Arc<Thread>, u32> {
    match handle::resolve(handle) {
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
        let thread = thread(handle)?;
        if code.is_null() {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let ended = wait_any(std::slice::from_ref(&thread.ended), Deadline::Now).is_some();
        let value = if ended { thread.exit_code.load(Ordering::Acquire) } else { STILL_ACTIVE };
        // SAFETY: the caller vouches for `code`.
        unsafe { code.write(value) };
        Ok(())
    })
}

/// `ResumeThread`, for threads created with `CREATE_SUSPENDED`: gives the suspend count before the call.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_ResumeThread(handle: RawHandle) -> u32 {
    guard(u32::MAX, || match thread(handle) {
        Ok(thread) => {
            let before = thread.suspended.swap(0, Ordering::AcqRel);
            thread.resumed.set();
            before
        }
        Err(code) => {
            set_last_error(code);
            u32::MAX
        }
    })
}

/// `GetCurrentThread`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetCurrentThread() -> RawHandle {
    handle::CURRENT_THREAD
}

/// `GetCurrentThreadId`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetCurrentThreadId() -> u32 {
    thread_id()
}

/// `GetThreadId`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetThreadId(handle: RawHandle) -> u32 {
    guard(0, || match thread(handle) {
        Ok(thread) => thread.id.load(Ordering::Relaxed),
        Err(code) => {
            set_last_error(code);
            0
        }
    })
}

/// `Sleep`: 0 gives up the rest of the time slice.
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

/// `SleepEx`. There are no asynchronous procedure calls, so it never ends early.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SleepEx(millis: u32, _alertable: i32) -> u32 {
    ndw_Sleep(millis);
    0
}

/// `SwitchToThread`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_SwitchToThread() -> i32 {
    std::thread::yield_now();
    1
}
