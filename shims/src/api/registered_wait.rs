//! `RegisterWaitForSingleObject`, `QueueUserWorkItem`.

use super::handle;
use crate::boundary::guard_bool;
use crate::error::*;
use crate::files::disk::DiskFile;
use crate::io::pool;
use crate::io::signal::Signal;
use crate::object::callbacks::{self, Callbacks, Completion};
use crate::object::timer::Timer;
use crate::object::watch::Watch;
use crate::object::{Object, RawHandle};
use std::ffi::c_void;
use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// `WAITORTIMERCALLBACK`: the second argument is TRUE after a time-out.
pub type WaitOrTimerCallback = unsafe extern "C" fn(*mut c_void, u8);

/// `WT_EXECUTEONLYONCE`. The other flags select a kind of thread for the callback; there is only one kind here.
pub(super) const WT_EXECUTEONLYONCE: u32 = 8;

struct RegisteredWait {
    signal: Arc<Signal>,
    /// The file that is waited for, whose signal says what is there when it is asked for.
    file: Option<Weak<DiskFile>>,
    /// The timer that is waited for, which goes off for who waits when its last handle is closed, too.
    _timer: Option<Arc<Timer>>,
    timeout: Option<Duration>,
    watch: Arc<Watch>,
    callbacks: Arc<Callbacks>,
    is_over: AtomicBool,
}

impl RegisteredWait {
    fn wait(&self) {
        if let Some(file) = &self.file {
            let Some(file) = file.upgrade() else { return };
            file.signal();
        }
        let until = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.watch.set(&self.signal, until);
        // UnregisterWait may have been called before the wait was stored.
        if self.is_over.load(Ordering::SeqCst) {
            self.watch.cancel();
        }
    }
}

/// `RegisterWaitForSingleObject`: calls the callback whenever the object is signalled or the time-out has passed since the last
/// call. Calls do not overlap.
///
/// # Safety
/// `wait` must be valid for a write; the callback must be safe to call on any thread with `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_RegisterWaitForSingleObject(
    wait: *mut RawHandle,
    object: RawHandle,
    callback: Option<WaitOrTimerCallback>,
    context: *mut c_void,
    millis: u32,
    flags: u32,
) -> i32 {
    guard_bool(|| {
        let callback = callback.filter(|_| !wait.is_null()).ok_or(ERROR_INVALID_PARAMETER)?;
        let object = handle::get(object).ok_or(ERROR_INVALID_HANDLE)?;
        if let Object::Mutex(_) = object {
            return Err(ERROR_NOT_SUPPORTED);
        }
        let signal = object.signal().ok_or(ERROR_INVALID_HANDLE)?;
        let file = if let Object::Disk(file) = &object { Some(Arc::downgrade(file)) } else { None };
        let timer = if let Object::Timer(timer) = object { Some(timer) } else { None };
        callbacks::start_timed_threads()?;
        let context = context.expose_provenance();
        let registered = Arc::new_cyclic(|registered: &Weak<RegisteredWait>| {
            let registered = registered.clone();
            let call = move |timed_out: bool| {
                let Some(registered) = registered.upgrade() else { return };
                let callbacks = registered.callbacks.clone();
                callbacks.submit(move || {
                    // SAFETY: who registered the wait promised that the callback may be called on any thread with this context.
                    unsafe { callback(with_exposed_provenance_mut(context), timed_out.into()) };
                    if flags & WT_EXECUTEONLYONCE == 0 && !registered.is_over.load(Ordering::SeqCst) {
                        registered.wait();
                    }
                });
            };
            RegisteredWait {
                signal,
                file,
                _timer: timer,
                timeout: (millis != u32::MAX).then(|| Duration::from_millis(millis.into())),
                watch: Watch::new(call),
                callbacks: Arc::default(),
                is_over: AtomicBool::new(false),
            }
        });
        let handle = callbacks::open(registered.clone())?;
        // SAFETY: not NULL, hence writable, as this function asks. Before the wait begins: the callback may want to know it.
        unsafe { wait.write(handle) };
        registered.wait();
        Ok(())
    })
}

/// `UnregisterWaitEx`: no callback starts any more. `ERROR_IO_PENDING` if one still runs: `completion` is an event to set when it
/// has returned, or `INVALID_HANDLE_VALUE` to wait for it.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_UnregisterWaitEx(wait: RawHandle, completion: RawHandle) -> i32 {
    guard_bool(|| {
        let completion = Completion::of(completion)?;
        let wait = callbacks::take::<RegisteredWait>(wait)?;
        wait.is_over.store(true, Ordering::SeqCst);
        wait.watch.cancel();
        wait.callbacks.complete(completion)
    })
}

/// `UnregisterWait`: as `UnregisterWaitEx` without `completion`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_UnregisterWait(wait: RawHandle) -> i32 {
    ndw_UnregisterWaitEx(wait, RawHandle::NULL)
}

/// `QueueUserWorkItem`: runs the routine on a thread of the library. The flags are ignored.
///
/// # Safety
/// The routine must be safe to call on any thread with `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_QueueUserWorkItem(
    routine: Option<unsafe extern "C" fn(*mut c_void) -> u32>,
    context: *mut c_void,
    _flags: u32,
) -> i32 {
    guard_bool(|| {
        let routine = routine.ok_or(ERROR_INVALID_PARAMETER)?;
        let context = context.expose_provenance();
        let job = Box::new(move || {
            // SAFETY: the routine may be called on any thread with its context, as this function asks.
            unsafe { routine(with_exposed_provenance_mut(context)) };
        });
        pool::run(job).map_err(|_| ERROR_NO_SYSTEM_RESOURCES)
    })
}
