//! Asynchronous procedure calls and alertable waits.

use super::*;
use crate::api::completion_port::*;
use crate::api::overlapped::ndw_GetOverlappedResultEx;
use crate::api::thread::*;
use crate::io::{File, Overlapped, STATUS_PENDING};
use std::cell::RefCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static RAN: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

unsafe extern "C" fn note(data: usize) {
    RAN.with_borrow_mut(|ran| ran.push(data));
}

unsafe extern "C" fn note_and_queue(data: usize) {
    RAN.with_borrow_mut(|ran| ran.push(data));
    queue(note, data + 1);
}

fn queue(routine: unsafe extern "C" fn(usize), data: usize) {
    // SAFETY: the routines above are safe anywhere.
    assert_eq!(unsafe { ndw_QueueUserAPC(Some(routine), ndw_GetCurrentThread(), data) }, 1);
}

fn ran() -> Vec<usize> {
    RAN.take()
}

#[test]
fn calls_run_in_their_order_in_an_alertable_wait_and_in_no_other() {
    let event = event(0, 0);
    (1..=3).for_each(|data| queue(note, data));
    assert_eq!([wait(event, 0), ndw_SleepEx(1, 0), wait(event, 1)], [WAIT_TIMEOUT, 0, WAIT_TIMEOUT]);
    assert_eq!(ran(), []);
    assert_eq!((ndw_SleepEx(INFINITE, 1), ran()), (WAIT_IO_COMPLETION, vec![1, 2, 3]));
    assert_eq!((ndw_SleepEx(0, 1), ndw_SleepEx(1, 1)), (0, 0));
    // One that is queued by another runs, too.
    queue(note_and_queue, 4);
    assert_eq!((ndw_WaitForSingleObjectEx(event, INFINITE, 1), ran()), (WAIT_IO_COMPLETION, vec![4, 5]));
    // What is waited for comes first.
    ndw_SetEvent(event);
    queue(note, 6);
    assert_eq!((ndw_WaitForSingleObjectEx(event, 0, 1), ran()), (0, vec![]));
    assert_eq!((ndw_WaitForSingleObjectEx(event, 0, 1), ran()), (WAIT_IO_COMPLETION, vec![6]));
    close(event);
}

#[test]
fn every_kind_of_alertable_wait_ends_for_a_call() {
    let events = [event(0, 0), event(0, 0)];
    for all in [0, 1] {
        queue(note, 1);
        // SAFETY: the array is a local.
        let ended = unsafe { ndw_WaitForMultipleObjectsEx(2, events.as_ptr(), all, INFINITE, 1) };
        assert_eq!((ended, ran()), (WAIT_IO_COMPLETION, vec![1]));
    }
    queue(note, 2);
    assert_eq!(ndw_SignalObjectAndWait(events[0], events[1], INFINITE, 1), WAIT_IO_COMPLETION);
    assert_eq!((ran(), wait(events[0], 0)), (vec![2], 0));
    events.into_iter().for_each(close);
}

/// `GetQueuedCompletionStatusEx` with room for two: how it ended, and how many packets there were.
fn packets(port: RawHandle, millis: u32, alertable: i32) -> (u32, u32) {
    let mut entries: [MaybeUninit<OverlappedEntry>; 2] = [const { MaybeUninit::uninit() }; 2];
    let mut count = 0;
    let entries = entries.as_mut_ptr().cast();
    // SAFETY: there is room for two.
    let ended = unsafe {
        ndw_GetQueuedCompletionStatusEx(port, entries, 2, Out::from(&mut count), millis, alertable)
    };
    (code(ended), count)
}

#[test]
fn an_alertable_wait_at_a_port_ends_for_a_call() {
    let port = ndw_CreateIoCompletionPort(RawHandle::INVALID, RawHandle::NULL, 0, 1);
    queue(note, 1);
    assert_eq!(
        (packets(port, 0, 0), packets(port, 1, 0), ran()),
        ((WAIT_TIMEOUT, 1), (WAIT_TIMEOUT, 1), vec![])
    );
    // Packets come first.
    ndw_PostQueuedCompletionStatus(port, 0, 0, std::ptr::null_mut());
    assert_eq!((packets(port, INFINITE, 1), ran()), ((0, 1), vec![]));
    assert_eq!((packets(port, INFINITE, 1).0, ran()), (WAIT_IO_COMPLETION, vec![1]));
    queue(note, 2);
    assert_eq!((packets(port, 0, 1).0, ran()), (WAIT_IO_COMPLETION, vec![2]));
    assert_eq!(packets(port, 0, 1).0, WAIT_TIMEOUT);
    // From another thread, whether the wait has begun or not. Afterwards the thread takes packets as before.
    for round in 0..50 {
        std::thread::scope(|scope| {
            let (process, mut me) = (RawHandle::INVALID, RawHandle::NULL);
            ndw_DuplicateHandle(process, ndw_GetCurrentThread(), process, Out::from(&mut me), 0, 0, 2);
            scope.spawn(move || {
                // SAFETY: the routine is safe anywhere.
                assert_eq!(unsafe { ndw_QueueUserAPC(Some(note), me, round) }, 1);
                close(me);
            });
            assert_eq!((packets(port, LONG, 1).0, ran()), (WAIT_IO_COMPLETION, vec![round]));
        });
        ndw_PostQueuedCompletionStatus(port, 0, 0, std::ptr::null_mut());
        assert_eq!(packets(port, LONG, 1), (0, 1));
    }
    close(port);
}

#[test]
fn an_alertable_wait_for_a_result_ends_for_a_call() {
    let file = File::new().unwrap();
    let handle = file.handle();
    let done = event(1, 0);
    let mut own = Overlapped { event: done, ..Overlapped::default() };
    own.internal.store(STATUS_PENDING as u32 as usize, Ordering::Relaxed);
    let mut files = Overlapped::default();
    // SAFETY: `files` lives until the request is completed, at the end of the test.
    let request = unsafe { file.begin(&mut files) };
    let mut bytes = 0;
    // SAFETY: both OVERLAPPEDs live until the end of the test, and the count is a local.
    let mut result = |ov: *mut Overlapped, millis, alertable| unsafe {
        code(ndw_GetOverlappedResultEx(handle, ov, &mut bytes, millis, alertable))
    };
    // One of a file, and one that the program completes itself.
    for ov in [&raw mut files, &raw mut own] {
        queue(note, 1);
        assert_eq!((result(ov, 0, 1), result(ov, 1, 0), ran()), (ERROR_IO_INCOMPLETE, WAIT_TIMEOUT, vec![]));
        assert_eq!((result(ov, INFINITE, 1), ran()), (WAIT_IO_COMPLETION, vec![1]));
        assert_eq!(result(ov, 1, 1), WAIT_TIMEOUT);
    }
    request.complete(0, 7);
    queue(note, 2);
    assert_eq!((result(&raw mut files, INFINITE, 1), ran()), (0, vec![]), "a result comes first");
    ndw_SleepEx(0, 1);
    assert_eq!(bytes, 7);
    [done, handle].into_iter().for_each(close);
}

#[test]
fn a_call_wakes_a_thread_that_waits() {
    static DONE: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());
    unsafe extern "C" fn done(data: usize) {
        DONE.lock().unwrap().push(data);
    }
    /// A call that comes before the thread's own function runs before that, and ends no wait.
    static STARTED: AtomicBool = AtomicBool::new(false);
    unsafe extern "C-unwind" fn sleeps(_: *mut c_void) -> u32 {
        STARTED.store(true, Ordering::Release);
        ndw_SleepEx(INFINITE, 1)
    }
    // SAFETY: the routines above are safe anywhere.
    unsafe {
        let thread = ndw_CreateThread(null(), 0, Some(sleeps), std::ptr::null_mut(), 0, std::ptr::null_mut());
        while !STARTED.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        // It may or may not sleep already.
        assert_eq!(ndw_QueueUserAPC(Some(done), thread, 7), 1);
        assert_eq!(wait(thread, LONG), 0);
        let mut exit = 0;
        assert_eq!((ndw_GetExitCodeThread(thread, &mut exit), exit), (1, WAIT_IO_COMPLETION));
        assert_eq!(*DONE.lock().unwrap(), [7]);
        // One that has ended takes no more.
        assert_eq!(ndw_QueueUserAPC(Some(done), thread, 8), 0);
        assert_eq!(last_error(), ERROR_GEN_FAILURE);
        for (handle, routine, error) in [
            (thread, None, ERROR_INVALID_PARAMETER),
            (RawHandle::NULL, Some(done as unsafe extern "C" fn(usize)), ERROR_INVALID_HANDLE),
        ] {
            assert_eq!((ndw_QueueUserAPC(routine, handle, 0), last_error()), (0, error));
        }
        close(thread);
    }
}

#[test]
fn calls_for_a_thread_that_has_not_started_run_before_all_else() {
    unsafe extern "C-unwind" fn count(_: *mut c_void) -> u32 {
        ran().len() as u32
    }
    // SAFETY: the routines are safe anywhere.
    unsafe {
        let thread = ndw_CreateThread(null(), 0, Some(count), std::ptr::null_mut(), 4, std::ptr::null_mut());
        (0..2).for_each(|data| assert_eq!(ndw_QueueUserAPC(Some(note), thread, data), 1));
        assert_eq!(ndw_ResumeThread(thread), 1);
        assert_eq!(wait(thread, LONG), 0);
        let mut exit = 0;
        assert_eq!((ndw_GetExitCodeThread(thread, &mut exit), exit), (1, 2));
        close(thread);
    }
}

#[test]
fn a_thread_of_beginthread_closes_its_own_handle() {
    unsafe extern "C-unwind" fn set(event: *mut c_void) {
        ndw_SetEvent(RawHandle(event.addr()));
    }
    unsafe extern "C-unwind" fn set_and_end(event: *mut c_void) {
        ndw_SetEvent(RawHandle(event.addr()));
        // SAFETY: this frame and those below it hold nothing.
        unsafe { ndw__endthread() }
    }
    for routine in [set as unsafe extern "C-unwind" fn(_), set_and_end] {
        let done = event(0, 0);
        // SAFETY: the routines are safe anywhere.
        let thread = unsafe { ndw__beginthread(Some(routine), 0, std::ptr::without_provenance_mut(done.0)) };
        assert_ne!(thread, RawHandle::INVALID);
        assert_eq!(wait(done, LONG), 0);
        // Nobody else closes it.
        while ndw_GetThreadId(thread) != 0 {
            std::thread::yield_now();
        }
        close(done);
    }
    // SAFETY: no routine is refused.
    assert_eq!(unsafe { ndw__beginthread(None, 0, std::ptr::null_mut()) }, RawHandle::INVALID);
}
