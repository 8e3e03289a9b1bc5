//! A child made by `fork` has callbacks and timers of its own, whatever its parent used.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use win32::api::registered_wait::ndw_QueueUserWorkItem;
use win32::api::timer_queue::{ndw_CreateTimerQueueTimer, ndw_DeleteTimerQueueTimer};
use win32::object::RawHandle;

/// A fork finds no other test within a call of the library.
static TURN: Mutex<()> = Mutex::new(());

static CALLS: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn work(_: *mut c_void) -> u32 {
    CALLS.fetch_add(1, Ordering::SeqCst);
    0
}

unsafe extern "C" fn timer(_: *mut c_void, _: u8) {
    CALLS.fetch_add(1, Ordering::SeqCst);
}

/// Waits until a callback has run, and one of a timer. The child is ended from outside if none does.
fn callbacks_run() {
    const ONCE: u32 = 8;
    CALLS.store(0, Ordering::SeqCst);
    let mut handle = RawHandle::NULL;
    // SAFETY: the functions live, and take no context.
    unsafe {
        assert_eq!(ndw_QueueUserWorkItem(Some(work), null_mut(), 0), 1);
        assert_eq!(
            ndw_CreateTimerQueueTimer(&mut handle, RawHandle::NULL, Some(timer), null_mut(), 1, 0, ONCE),
            1
        );
    }
    while CALLS.load(Ordering::SeqCst) < 2 {
        std::thread::yield_now();
    }
}

#[test]
fn a_child_runs_callbacks_and_timers_of_its_own() {
    let _turn = TURN.lock();
    callbacks_run();
    fork_and_run_callbacks();
    callbacks_run();
}

/// Forks; the child must come to callbacks.
fn fork_and_run_callbacks() {
    // SAFETY: no thread is within a call of the library but its own.
    let (child, mut status) = (unsafe { libc::fork() }, 0);
    if child == 0 {
        // SAFETY: ends the child if it hangs.
        unsafe { libc::alarm(60) };
        callbacks_run();
        // SAFETY: leaves without unwinding into the test harness.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: the status is written to a place of ours.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child's status");
}

#[test]
fn a_fork_finds_no_thread_of_the_library_at_work() {
    const OFTEN: usize = 300;
    let _turn = TURN.lock();
    let timers: Vec<_> = (0..50)
        .map(|_| {
            let mut handle = RawHandle::NULL;
            // SAFETY: the function lives, and takes no context.
            let created = unsafe {
                ndw_CreateTimerQueueTimer(&mut handle, RawHandle::NULL, Some(timer), null_mut(), 1, 1, 0)
            };
            assert_eq!(created, 1);
            handle
        })
        .collect();
    (0..OFTEN).for_each(|_| fork_and_run_callbacks());
    for timer in timers {
        assert_eq!(ndw_DeleteTimerQueueTimer(RawHandle::NULL, timer, RawHandle::INVALID), 1);
    }
}
