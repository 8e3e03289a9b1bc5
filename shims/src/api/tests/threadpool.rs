//! `CreateThreadpool` and all that goes with it.

use super::*;
use crate::api::threadpool::*;
use crate::arguments::{In, Text};
use crate::time::FileTime;
use std::ffi::c_void;
use std::mem::zeroed;
use std::ptr::null_mut;

unsafe extern "C" fn note_work(_: *mut Instance, context: *mut c_void, work: RawHandle) {
    // SAFETY: the tests pass their calls, which outlive the objects.
    unsafe { Calls::note(context, work.0 as u32) };
}

unsafe extern "C" fn note_wait(_: *mut Instance, context: *mut c_void, _: RawHandle, result: u32) {
    // SAFETY: every test gives the wait the context of its `Calls`, which outlives it.
    unsafe { Calls::note(context, result) };
}

unsafe extern "C" fn note_simple(_: *mut Instance, context: *mut c_void) {
    // SAFETY: every test gives the callback the context of its `Calls`, which outlives it.
    unsafe { Calls::note(context, 1) };
}

unsafe extern "C" fn note_cancelled(context: *mut c_void, cleanup: *mut c_void) {
    assert_eq!(cleanup.addr(), 9);
    // SAFETY: every test gives its group's members the context of its `Calls`, which outlives the group.
    unsafe { (*context.cast::<Calls>()).log.lock().unwrap().push(99) };
}

fn work(calls: &Calls, environment: In<'_, Environment>) -> RawHandle {
    // SAFETY: the calls outlive the work, and the callback takes them.
    unsafe { ndw_CreateThreadpoolWork(Some(note_work), calls.context(), environment) }
}

/// The C structure, in its order.
#[repr(C)]
struct Fields {
    version: u32,
    pool: RawHandle,
    group: RawHandle,
    cancelled: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    rest: [usize; 5],
}

fn environment(pool: RawHandle, group: RawHandle) -> Environment {
    const { assert!(size_of::<Fields>() == size_of::<Environment>()) };
    let fields = Fields { version: 3, pool, group, cancelled: Some(note_cancelled), rest: [0; 5] };
    // SAFETY: of the same layout.
    unsafe { std::mem::transmute(fields) }
}

#[test]
fn work_runs_as_often_as_it_is_submitted() {
    let calls = Calls::new(false);
    let work = work(&calls, In::NULL);
    (0..5).for_each(|_| ndw_SubmitThreadpoolWork(work));
    ndw_WaitForThreadpoolWorkCallbacks(work, 0);
    assert_eq!(calls.log(), [work.0 as u32; 5]);
    ndw_CloseThreadpoolWork(work);
    // What is closed runs no more, and is no object for anybody.
    ndw_SubmitThreadpoolWork(work);
    ndw_WaitForThreadpoolWorkCallbacks(work, 0);
    ndw_CloseThreadpoolWork(work);
    assert!(calls.log().is_empty());
    // SAFETY: nothing can be called.
    assert_eq!(unsafe { ndw_CreateThreadpoolWork(None, null_mut(), In::NULL) }, RawHandle::NULL);
    assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
}

#[test]
fn a_pool_runs_no_more_at_a_time_than_it_may_and_the_rest_can_be_cancelled() {
    let (calls, pool) = (Calls::new(true), ndw_CreateThreadpool(null_mut()));
    ndw_SetThreadpoolThreadMaximum(pool, 2);
    assert_eq!(ndw_SetThreadpoolThreadMinimum(pool, 1), 1);
    let environment = environment(pool, RawHandle::NULL);
    let work = work(&calls, In::from(&environment));
    (0..6).for_each(|_| ndw_SubmitThreadpoolWork(work));
    assert_eq!([(); 2].map(|()| wait(calls.called, LONG)), [0; 2]);
    assert_eq!(wait(calls.called, 20), WAIT_TIMEOUT);
    ndw_SetThreadpoolThreadMaximum(pool, 3);
    assert_eq!([wait(calls.called, LONG), wait(calls.called, 20)], [0, WAIT_TIMEOUT]);
    std::thread::scope(|scope| {
        let (number, numbered) = std::sync::mpsc::channel();
        scope.spawn(move || {
            number.send(thread_id()).unwrap();
            ndw_WaitForThreadpoolWorkCallbacks(work, 1);
        });
        // It has cancelled what has not begun, and waits for the rest.
        until_asleep(numbered.recv().unwrap());
        ndw_SetEvent(calls.go_on);
    });
    assert_eq!(calls.log().len(), 3);
    // What was cancelled makes room for what comes later.
    ndw_SubmitThreadpoolWork(work);
    ndw_WaitForThreadpoolWorkCallbacks(work, 0);
    assert_eq!(calls.log().len(), 1);
    ndw_CloseThreadpoolWork(work);
    ndw_CloseThreadpool(pool);
    assert_eq!(
        (ndw_CreateThreadpool(7 as *mut c_void), last_error()),
        (RawHandle::NULL, ERROR_INVALID_PARAMETER)
    );
    assert_eq!(code(ndw_SetThreadpoolThreadMinimum(pool, 1)), ERROR_INVALID_HANDLE);
}

fn after(milliseconds: i64) -> FileTime {
    ((-10_000 * milliseconds) as u64).into()
}

#[test]
fn a_timer_of_a_pool_calls_when_it_is_due_and_every_period() {
    let calls = Calls::new(false);
    // SAFETY: the calls outlive the timer; times are locals.
    unsafe {
        let timer = ndw_CreateThreadpoolTimer(Some(note_work), calls.context(), In::NULL);
        assert_eq!(ndw_IsThreadpoolTimerSet(timer), 0);
        ndw_SetThreadpoolTimer(timer, In::from(&after(1)), 0, 0);
        assert_eq!((wait(calls.called, LONG), ndw_IsThreadpoolTimerSet(timer)), (0, 1));
        assert_eq!(ndw_SetThreadpoolTimerEx(timer, In::from(&after(0)), 1, 0), 0, "it has been due");
        assert_eq!([(); 3].map(|()| wait(calls.called, LONG)), [0; 3]);
        ndw_SetThreadpoolTimer(timer, In::NULL, 0, 0);
        assert_eq!(ndw_IsThreadpoolTimerSet(timer), 0);
        assert_eq!(ndw_SetThreadpoolTimerEx(timer, In::from(&after(LONG.into())), 0, 0), 0);
        assert_eq!(ndw_SetThreadpoolTimerEx(timer, In::NULL, 0, 0), 1, "it was not due");
        ndw_WaitForThreadpoolTimerCallbacks(timer, 1);
        let count = calls.log().len();
        assert!(count >= 4);
        std::thread::sleep(std::time::Duration::from_millis(10));
        assert!(calls.log().is_empty());
        ndw_CloseThreadpoolTimer(timer);
        assert_eq!(ndw_IsThreadpoolTimerSet(timer), 0);
    }
}

#[test]
fn a_wait_of_a_pool_ends_once_for_the_object_or_the_time() {
    let (calls, object) = (Calls::new(false), event(0, 0));
    // SAFETY: the calls outlive the wait; times are locals.
    unsafe {
        let pool_wait = ndw_CreateThreadpoolWait(Some(note_wait), calls.context(), In::NULL);
        ndw_SetThreadpoolWait(pool_wait, object, In::NULL);
        ndw_SetEvent(object);
        assert_eq!(wait(calls.called, LONG), 0);
        // Not set again: nothing more.
        ndw_SetEvent(object);
        assert_eq!((wait(calls.called, 10), calls.log()), (WAIT_TIMEOUT, vec![0]));
        ndw_SetThreadpoolWait(pool_wait, object, In::NULL);
        assert_eq!((wait(calls.called, LONG), wait(object, 0)), (0, WAIT_TIMEOUT));
        ndw_SetThreadpoolWait(pool_wait, object, In::from(&after(1)));
        assert_eq!(wait(calls.called, LONG), 0);
        assert_eq!(calls.log(), [0, WAIT_TIMEOUT]);
        assert_eq!(ndw_SetThreadpoolWaitEx(pool_wait, object, In::NULL, null()), 0, "it has ended");
        assert_eq!(ndw_SetThreadpoolWaitEx(pool_wait, RawHandle::NULL, In::NULL, null()), 1);
        assert_eq!(ndw_SetThreadpoolWaitEx(pool_wait, RawHandle::NULL, In::NULL, null()), 0);
        ndw_SetEvent(object);
        assert_eq!((wait(calls.called, 10), wait(object, 0)), (WAIT_TIMEOUT, 0));
        ndw_WaitForThreadpoolWaitCallbacks(pool_wait, 1);
        ndw_CloseThreadpoolWait(pool_wait);
    }
    close(object);
}

#[test]
fn a_cleanup_group_closes_its_members_and_waits_for_them() {
    for cancel in [0, 1] {
        let (calls, group) = (Calls::new(false), ndw_CreateThreadpoolCleanupGroup());
        let environment = environment(RawHandle::NULL, group);
        let works = [(); 2].map(|()| work(&calls, In::from(&environment)));
        works.into_iter().for_each(|work| ndw_SubmitThreadpoolWork(work));
        // SAFETY: the calls outlive the callback, for which the group waits.
        let submitted = unsafe {
            ndw_TrySubmitThreadpoolCallback(Some(note_simple), calls.context(), In::from(&environment))
        };
        assert_eq!(submitted, 1);
        assert_eq!([(); 3].map(|()| wait(calls.called, LONG)), [0; 3]);
        // SAFETY: the function of the environment takes this.
        unsafe { ndw_CloseThreadpoolCleanupGroupMembers(group, cancel, 9 as *mut c_void) };
        // The simple callback has released itself.
        assert_eq!(cancelled(&calls), if cancel == 0 { 0 } else { 2 });
        // Closed: they take nothing any more.
        ndw_SubmitThreadpoolWork(works[0]);
        assert_eq!(wait(calls.called, 10), WAIT_TIMEOUT);
        ndw_CloseThreadpoolCleanupGroup(group);
    }
}

/// How many of the calls are those of the cleanup function.
fn cancelled(calls: &Calls) -> usize {
    calls.log().into_iter().filter(|what| *what == 99).count()
}

#[test]
fn what_is_closed_before_its_cleanup_group_is_not_cleaned_up() {
    let (calls, group) = (Calls::new(false), ndw_CreateThreadpoolCleanupGroup());
    let environment = environment(RawHandle::NULL, group);
    let [closed, left] = [(); 2].map(|()| work(&calls, In::from(&environment)));
    ndw_CloseThreadpoolWork(closed);
    // SAFETY: the function of the environment takes this.
    unsafe { ndw_CloseThreadpoolCleanupGroupMembers(group, 1, 9 as *mut c_void) };
    assert_eq!(cancelled(&calls), 1);
    // Its handle is closed, and it is no member any more.
    ndw_SubmitThreadpoolWork(left);
    // SAFETY: as above.
    unsafe { ndw_CloseThreadpoolCleanupGroupMembers(group, 1, 9 as *mut c_void) };
    assert!(calls.log().is_empty());
    ndw_CloseThreadpoolCleanupGroup(group);
}

#[test]
fn a_callback_may_close_its_object_while_the_cleanup_group_waits_for_it() {
    unsafe extern "C" fn close_itself(_: *mut Instance, context: *mut c_void, work: RawHandle) {
        // SAFETY: the test passes its calls, for whose end the group waits.
        unsafe { Calls::note(context, 1) };
        // The group takes no more calls of it.
        ndw_SubmitThreadpoolWork(work);
        ndw_CloseThreadpoolWork(work);
    }
    let (calls, group) = (Calls::new(true), ndw_CreateThreadpoolCleanupGroup());
    let pool = ndw_CreateThreadpool(null_mut());
    ndw_SetThreadpoolThreadMaximum(pool, 1);
    let environment = environment(pool, group);
    // SAFETY: the calls outlive the work, and the callback takes them.
    let work =
        unsafe { ndw_CreateThreadpoolWork(Some(close_itself), calls.context(), In::from(&environment)) };
    ndw_SubmitThreadpoolWork(work);
    assert_eq!(wait(calls.called, LONG), 0);
    // This one does not begin, and is cleaned up.
    // SAFETY: the calls outlive the callback.
    let submitted = unsafe {
        ndw_TrySubmitThreadpoolCallback(Some(note_simple), calls.context(), In::from(&environment))
    };
    assert_eq!(submitted, 1);
    std::thread::scope(|scope| {
        let (number, numbered) = std::sync::mpsc::channel();
        scope.spawn(move || {
            number.send(thread_id()).unwrap();
            // SAFETY: the function of the environment takes this.
            unsafe { ndw_CloseThreadpoolCleanupGroupMembers(group, 1, 9 as *mut c_void) };
        });
        until_asleep(numbered.recv().unwrap());
        ndw_SetEvent(calls.go_on);
    });
    assert_eq!(calls.log(), [1, 99]);
    ndw_CloseThreadpoolCleanupGroup(group);
    ndw_CloseThreadpool(pool);
}

#[test]
fn things_are_done_when_a_callback_returns() {
    struct Things {
        event: RawHandle,
        semaphore: RawHandle,
        module: crate::library::Module,
    }
    unsafe extern "C" fn promise(instance: *mut Instance, context: *mut c_void) {
        // SAFETY: the test's things, and the instance of this callback.
        unsafe {
            let things = &*context.cast::<Things>();
            ndw_ReleaseSemaphoreWhenCallbackReturns(instance.as_mut(), things.semaphore, 2);
            ndw_FreeLibraryWhenCallbackReturns(instance.as_mut(), things.module);
            ndw_SetEventWhenCallbackReturns(instance.as_mut(), things.event);
            assert_eq!([wait(things.semaphore, 0), wait(things.event, 0)], [WAIT_TIMEOUT; 2]);
            assert_eq!(ndw_CallbackMayRunLong(instance), 1);
        }
    }
    // SAFETY: no names; the things outlive the callback.
    unsafe {
        let semaphore = crate::api::semaphore::ndw_CreateSemaphoreA(null(), 0, 2, Text::NULL);
        let module = crate::library::ndw_LoadLibraryA(c"libanl.so.1".into());
        let things = Things { event: event(0, 0), semaphore, module };
        let context = (&raw const things).cast_mut().cast();
        assert_eq!(ndw_TrySubmitThreadpoolCallback(Some(promise), context, In::NULL), 1);
        assert_eq!([wait(things.event, LONG), wait(semaphore, 0), wait(semaphore, 0)], [0; 3]);
        // It was loaded once, and is freed.
        assert!(!module.is_null());
        assert_eq!(crate::library::ndw_FreeLibrary(module), 0);
        [things.event, semaphore].into_iter().for_each(close);
        let nowhere: Environment = zeroed();
        assert_eq!(
            code(ndw_TrySubmitThreadpoolCallback(None, null_mut(), In::from(&nowhere))),
            ERROR_INVALID_PARAMETER
        );
        let wrong = environment(RawHandle(4), RawHandle::NULL);
        let refused = ndw_TrySubmitThreadpoolCallback(Some(note_simple), null_mut(), In::from(&wrong));
        assert_eq!(code(refused), ERROR_INVALID_HANDLE);
    }
}

#[test]
fn a_cleanup_group_waits_for_io_that_has_started_unless_it_cancels() {
    unsafe extern "C" fn note_io(
        _: *mut Instance,
        context: *mut c_void,
        _: *mut crate::io::Overlapped,
        _: u32,
        _: usize,
        _: RawHandle,
    ) {
        // SAFETY: the test gives it the context of its `Calls`, which outlives the object.
        unsafe { Calls::note(context, 1) };
    }
    for cancel in [0, 1] {
        let (calls, group) = (Calls::new(false), ndw_CreateThreadpoolCleanupGroup());
        let environment = environment(RawHandle::NULL, group);
        let file = crate::io::File::new().unwrap();
        let handle = crate::object::open(crate::object::Object::File(file)).unwrap();
        // SAFETY: the calls outlive the object, and the callback takes them.
        let io =
            unsafe { ndw_CreateThreadpoolIo(handle, Some(note_io), calls.context(), In::from(&environment)) };
        ndw_StartThreadpoolIo(io);
        std::thread::scope(|scope| {
            let (number, numbered) = std::sync::mpsc::channel();
            let closes = scope.spawn(move || {
                number.send(thread_id()).unwrap();
                // SAFETY: the function of the environment takes this.
                unsafe { ndw_CloseThreadpoolCleanupGroupMembers(group, cancel, 9 as *mut c_void) };
            });
            let number = numbered.recv().unwrap();
            if cancel == 0 {
                until_asleep(number);
                assert!(!closes.is_finished());
                ndw_CancelThreadpoolIo(io);
            }
        });
        assert_eq!(cancelled(&calls), cancel as usize);
        ndw_CloseThreadpoolCleanupGroup(group);
        close(handle);
    }
}
