//! Objects through their entry points.

mod apc;
mod mutex;
mod names;
mod objects;
mod registered_wait;
mod semaphore;
mod slist;
mod threadpool;
mod timer_queue;
mod tls;
mod waitable_timer;

use crate::api::event::*;
use crate::api::handle::*;
use crate::api::wait::*;
use crate::arguments::{Out, Text};
use crate::error::*;
use crate::io::sys::thread_id;
use crate::object::RawHandle;
use std::ptr::null;

const WAIT_FAILED: u32 = u32::MAX;
const WAIT_ABANDONED: u32 = 0x80;
const WAIT_IO_COMPLETION: u32 = 0xC0;
const INFINITE: u32 = u32::MAX;
/// Long, but not for ever: a test that fails should end.
const LONG: u32 = 60_000;

/// Waits until the kernel has the thread, by its number, neither running nor ready to run for a while: it waits, as the test wants,
/// and not for a page or a lock.
fn until_asleep(thread: u32) {
    let mut looks = 0;
    while looks < 50 {
        looks = if crate::io::sys::is_asleep(thread) { looks + 1 } else { 0 };
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn event(manual: i32, set: i32) -> RawHandle {
    ndw_CreateEventA(null(), manual, set, Text::NULL)
}

fn close(handle: RawHandle) {
    assert_eq!(close_handle(handle), 1);
}

fn wait(handle: RawHandle, millis: u32) -> u32 {
    ndw_WaitForSingleObject(handle, millis)
}

fn wait_many(handles: &[RawHandle], all: bool, millis: u32) -> u32 {
    // SAFETY: a slice's own address and length.
    unsafe { ndw_WaitForMultipleObjects(handles.len() as u32, handles.as_ptr(), all.into(), millis) }
}

/// What callbacks of one test share: each says that it was called, and may be held up.
struct Calls {
    /// Counts one up for each call.
    called: RawHandle,
    /// A manual-reset event without which no call returns.
    go_on: RawHandle,
    log: std::sync::Mutex<Vec<u32>>,
}

impl Calls {
    fn new(held_up: bool) -> Calls {
        let called = crate::api::semaphore::ndw_CreateSemaphoreA(null(), 0, i32::MAX, Text::NULL);
        Calls { called, go_on: event(1, (!held_up).into()), log: std::sync::Mutex::default() }
    }

    fn context(&self) -> *mut std::ffi::c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    /// What a callback does with its context.
    ///
    /// # Safety
    /// `context` must be from [`Calls::context`], and the object live.
    unsafe fn note(context: *mut std::ffi::c_void, what: u32) {
        // SAFETY: from `Calls::context`, and the object is live, as the caller promises.
        let calls = unsafe { &*context.cast::<Calls>() };
        calls.log.lock().unwrap().push(what);
        // The object may be gone as soon as its owner hears of the call.
        let (called, go_on) = (calls.called, calls.go_on);
        crate::api::semaphore::ndw_ReleaseSemaphore(called, 1, Out::NULL);
        assert_eq!(wait(go_on, LONG), 0);
    }

    fn log(&self) -> Vec<u32> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        [self.called, self.go_on].into_iter().for_each(close);
    }
}

/// What a call that succeeds or fails has come to: 0, or the last error.
fn code(succeeded: i32) -> u32 {
    if succeeded != 0 { 0 } else { last_error() }
}
