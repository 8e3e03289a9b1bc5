//! Requests and their results.

use super::device::*;
use crate::api::overlapped::{ndw_CancelIo, ndw_CancelIoEx, ndw_SetFileCompletionNotificationModes};
use crate::api::overlapped::{ndw_GetOverlappedResult, ndw_GetOverlappedResultEx};
use crate::error::*;
use crate::io::{
    CancelScope, Canceller, File, Overlapped, STATUS_CANCELLED, STATUS_PENDING, STATUS_SUCCESS, result,
    wait_for,
};
use crate::object::RawHandle;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const ND_CONNECTION_REFUSED: i32 = 0xC000_0236_u32 as i32;

fn status(ov: &Overlapped) -> i32 {
    ov.internal.load(Ordering::Acquire) as i32
}

fn result_of(file: &File, ov: &Overlapped, wait: bool) -> i32 {
    // SAFETY: a reference, to the OVERLAPPED of a request that its test keeps.
    unsafe { result(file, ov, wait) }
}

#[test]
fn a_request_reads_nothing_but_the_event() {
    let file = File::new().unwrap();
    let (device, _registration) = Device::new(&file);
    let event = event(true);
    crate::api::event::ndw_SetEvent(event);
    let mut ov = overlapped(event);
    ov.internal = 0xdead.into();
    ov.internal_high = 0xbeef.into();
    device.start(&file, &mut *ov);
    assert_eq!(status(&ov), STATUS_PENDING);
    // While it is pending, that says whose it is: nothing of what was there before stays.
    assert_eq!(ov.internal_high.load(Ordering::Relaxed), Arc::as_ptr(&file).addr());
    assert_eq!(wait(event, 0), WAIT_TIMEOUT);
    device.finish(ND_CONNECTION_REFUSED, 5);
    // The background thread may be about to complete it.
    until(|| result_of(&file, &ov, false) != STATUS_PENDING);
    assert_eq!(result_of(&file, &ov, false), ND_CONNECTION_REFUSED);
    assert_eq!(ov.internal_high.load(Ordering::Relaxed), 5);
    assert_eq!(wait(event, 0), 0);
    // The result stays, however often one asks.
    assert_eq!(result_of(&file, &ov, true), ND_CONNECTION_REFUSED);
    close(event);
}

#[test]
fn a_request_outlives_the_handles_of_its_event_and_file() {
    let file = File::new().unwrap();
    let (device, _registration) = Device::new(&file);
    let (handle, event) = (file.handle(), event(false));
    let mut ov = overlapped(event);
    device.start(&File::from_handle(RawHandle(handle.0 | 3)).unwrap(), &mut *ov);
    close(event);
    close(handle);
    assert!(File::from_handle(handle).is_none());
    device.finish(0, 1);
    assert_eq!(result_of(&file, &ov, true), STATUS_SUCCESS);
}

#[test]
fn a_dropped_request_is_cancelled() {
    let file = File::new().unwrap();
    let ov = overlapped(RawHandle::NULL);
    // SAFETY: `ov` lives until the end of the test.
    drop(unsafe { file.begin((&raw const *ov).cast_mut()) });
    assert_eq!(status(&ov), STATUS_CANCELLED);
}

#[test]
fn waiting_works_with_no_event_a_tagged_one_and_an_auto_reset_one() {
    let file = File::new().unwrap();
    let (device, _registration) = Device::new(&file);
    let event = event(false);
    for named in [RawHandle::NULL, RawHandle(event.0 | 1), event] {
        let mut ov = overlapped(named);
        device.start(&file, &mut *ov);
        assert_eq!(result_of(&file, &ov, false), STATUS_PENDING);
        let finisher = later(20, {
            let device = device.clone();
            move || device.finish(0, 0)
        });
        assert_eq!(result_of(&file, &ov, true), STATUS_SUCCESS);
        finisher.join().unwrap();
        // The wait used up nothing.
        if named != RawHandle::NULL {
            assert_eq!(wait(event, 0), 0);
        }
    }
    close(event);
}

#[test]
fn waiting_for_a_request_of_another_file() {
    let (file, other) = (File::new().unwrap(), File::new().unwrap());
    let (device, _registration) = Device::new(&other);
    let mut ov = overlapped(RawHandle::NULL);
    device.start(&other, &mut *ov);
    let finisher = later(20, {
        let device = device.clone();
        move || device.finish(0, 0)
    });
    // Nobody waits on `other`: its completion comes from the background thread.
    assert_eq!(result_of(&file, &ov, true), STATUS_SUCCESS);
    finisher.join().unwrap();
}

/// Nothing becomes ready that the waiting thread would serve.
#[test]
fn a_wait_ends_when_another_thread_completes_the_request() {
    for own in [true, false] {
        let (file, other) = (File::new().unwrap(), File::new().unwrap());
        let (device, _registration) = Device::new(&file);
        let (_idle, _other_registration) = Device::new(&other);
        let mut ov = overlapped(RawHandle::NULL);
        device.start(&file, &mut *ov);
        let canceller = later(20, {
            let device = device.clone();
            move || device.cancel(CancelScope::All)
        });
        assert_eq!(result_of(if own { &file } else { &other }, &ov, true), STATUS_CANCELLED);
        assert_eq!(canceller.join().unwrap(), 1);
    }
}

#[test]
fn a_driver_sees_its_own_request_through() {
    let file = File::new().unwrap();
    let (device, _registration) = Device::new(&file);
    let mut ov = overlapped(RawHandle::NULL);
    device.start(&file, &mut *ov);
    let done = || status(&ov) != STATUS_PENDING;
    assert!(!wait_for(&file, &*ov, Duration::from_millis(20), done));
    let finisher = later(20, {
        let device = device.clone();
        move || device.finish(0, 0)
    });
    assert!(wait_for(&file, &*ov, Duration::from_secs(60), done));
    finisher.join().unwrap();
}

#[test]
fn a_program_that_only_spins_sees_its_completions() {
    let file = File::new().unwrap();
    let (device, _registration) = Device::new(&file);
    let mut ov = overlapped(RawHandle::NULL);
    for _ in 0..3 {
        device.start(&file, &mut *ov);
        device.finish(0, 0);
        until(|| status(&ov) != STATUS_PENDING);
        // A look in between takes the file back from the background thread.
        file.progress();
    }
}

#[test]
fn the_background_serves_live_connections_and_stops_with_them() {
    let file = File::new().unwrap();
    let (device, _registration) = Device::new(&file);
    file.expect_events();
    device.finish(0, 0);
    until(|| device.served.load(Ordering::SeqCst) > 0);
    file.no_more_events();
}

#[test]
fn waiting_for_the_event_makes_the_progress() {
    let file = File::new().unwrap();
    let (device, _registration) = Device::new(&file);
    let event = event(false);
    let mut ov = overlapped(event);
    for _ in 0..3 {
        device.start(&file, &mut *ov);
        assert_eq!(wait(event, 0), WAIT_TIMEOUT);
        device.finish(0, 0);
        assert_eq!(wait(event, u32::MAX), 0);
        assert_eq!(status(&ov), STATUS_SUCCESS);
        assert_eq!(wait(event, 0), WAIT_TIMEOUT);
        // A time-out of zero makes progress, too.
        device.start(&file, &mut *ov);
        device.finish(0, 0);
        until(|| wait(event, 0) == 0);
    }
    close(event);
}

#[test]
fn a_request_begun_during_the_wait_is_waited_for() {
    let file = File::new().unwrap();
    let (device, _registration) = Device::new(&file);
    let event = event(true);
    let other = later(20, {
        let (file, device) = (file.clone(), device.clone());
        move || {
            let mut ov = overlapped(event);
            device.start(&file, &mut *ov);
            device.finish(0, 0);
            ov
        }
    });
    assert_eq!(wait(event, 60_000), 0);
    assert_eq!(status(&other.join().unwrap()), STATUS_SUCCESS);
    close(event);
}

#[test]
fn waiting_for_requests_of_several_files_at_once() {
    let files = [File::new().unwrap(), File::new().unwrap(), File::new().unwrap()];
    let devices: Vec<_> = files.iter().map(Device::new).collect();
    let events = [event(false), event(false), event(false)];
    let mut ovs: Vec<_> = events.iter().map(|&event| overlapped(event)).collect();
    for turn in [2, 0, 1] {
        for ((file, (device, _)), ov) in files.iter().zip(&devices).zip(&mut ovs) {
            device.start(file, &mut **ov);
        }
        let finisher = later(10, {
            let device = devices[turn].0.clone();
            move || device.finish(0, 0)
        });
        // SAFETY: the array is a local.
        let first = unsafe { crate::api::wait::ndw_WaitForMultipleObjects(3, events.as_ptr(), 0, 60_000) };
        assert_eq!(first, turn as u32);
        finisher.join().unwrap();
        for (at, (device, _)) in devices.iter().enumerate() {
            if at != turn {
                device.finish(0, 0);
                assert_eq!(wait(events[at], 60_000), 0);
            }
        }
    }
    events.into_iter().for_each(close);
}

#[test]
fn cancelling_one_and_all() {
    let file = File::new().unwrap();
    let handle = file.handle();
    let (device, _registration) = Device::new(&file);
    file.add_canceller(Arc::downgrade(&device) as _);
    let mut ovs: Vec<_> = (0..3).map(|_| overlapped(RawHandle::NULL)).collect();
    let addresses: Vec<*mut Overlapped> = ovs.iter_mut().map(|ov| &raw mut **ov).collect();
    addresses.iter().for_each(|&ov| device.start(&file, ov));
    // SAFETY: the OVERLAPPED is only compared.
    let cancel = |ov| unsafe { ndw_CancelIoEx(handle, ov) };
    let state = || ovs.iter().map(|ov| status(ov)).collect::<Vec<_>>();
    assert_eq!(cancel(addresses[1]), 1);
    assert_eq!(state(), [STATUS_PENDING, STATUS_CANCELLED, STATUS_PENDING]);
    assert_eq!(cancel(addresses[1]), 0);
    assert_eq!(last_error(), ERROR_NOT_FOUND);
    assert_eq!(cancel(std::ptr::null_mut()), 1);
    assert_eq!(state(), [STATUS_CANCELLED; 3]);
    assert_eq!(cancel(std::ptr::null_mut()), 0);
    assert_eq!(last_error(), ERROR_NOT_FOUND);
    close(handle);
    assert_eq!(cancel(std::ptr::null_mut()), 0);
    assert_eq!(last_error(), ERROR_INVALID_HANDLE);
    assert_eq!(ndw_CancelIo(handle), 0);
    assert_eq!(last_error(), ERROR_INVALID_HANDLE);
}

#[test]
fn cancel_io_is_for_the_calling_threads_own() {
    let file = File::new().unwrap();
    let handle = file.handle();
    let (device, _registration) = Device::new(&file);
    file.add_canceller(Arc::downgrade(&device) as _);
    let mut mine = overlapped(RawHandle::NULL);
    device.start(&file, &mut *mine);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut theirs = overlapped(RawHandle::NULL);
            device.start(&file, &mut *theirs);
            assert_eq!(ndw_CancelIo(handle), 1);
            assert_eq!(status(&theirs), STATUS_CANCELLED);
        });
    });
    assert_eq!(status(&mine), STATUS_PENDING);
    assert_eq!(ndw_CancelIo(handle), 1);
    assert_eq!(status(&mine), STATUS_CANCELLED);
    // Nothing to cancel is no failure.
    assert_eq!(ndw_CancelIo(handle), 1);
    close(handle);
}

#[test]
fn a_cancelled_request_sets_its_event_and_queues_its_packet() {
    let (file, port, event) = (File::new().unwrap(), port(1), event(true));
    let handle = file.handle();
    assert_eq!(crate::api::completion_port::ndw_CreateIoCompletionPort(handle, port, 3, 0), port);
    let (device, _registration) = Device::new(&file);
    file.add_canceller(Arc::downgrade(&device) as _);
    let mut ov = overlapped(event);
    device.start(&file, &mut *ov);
    // SAFETY: the OVERLAPPED is only compared.
    assert_eq!(unsafe { ndw_CancelIoEx(handle, &mut *ov) }, 1);
    let packet = dequeue(port, 0);
    assert_eq!((packet.ok, packet.key, packet.error), (false, 3, ERROR_OPERATION_ABORTED));
    assert_eq!((packet.overlapped, wait(event, 0)), ((&raw const *ov).addr(), 0));
    [handle, port, event].into_iter().for_each(close);
}

#[test]
fn results_in_the_win32_form() {
    let file = File::new().unwrap();
    let handle = file.handle();
    let (device, _registration) = Device::new(&file);
    let mut ov = overlapped(RawHandle::NULL);
    let mut bytes = 0;
    device.start(&file, &mut *ov);
    let ov: *const Overlapped = &*ov;
    // SAFETY: the OVERLAPPED is that of a started operation.
    let mut get =
        |wait| unsafe { (ndw_GetOverlappedResult(handle, ov, &mut bytes, wait), bytes, last_error()) };
    assert_eq!(get(0), (0, 0, ERROR_IO_INCOMPLETE));
    // SAFETY: the OVERLAPPED is that of a started operation, and lives until the end of the test.
    let timed = |millis| unsafe { ndw_GetOverlappedResultEx(handle, ov, std::ptr::null_mut(), millis, 1) };
    assert_eq!((timed(5), last_error()), (0, WAIT_TIMEOUT));
    assert_eq!((timed(0), last_error()), (0, ERROR_IO_INCOMPLETE));
    device.finish(ND_CONNECTION_REFUSED, 12);
    assert_eq!(get(1), (0, 12, ERROR_CONNECTION_REFUSED));
    // In the end it is no longer incomplete, however one asks.
    assert_eq!(get(0), (0, 12, ERROR_CONNECTION_REFUSED));
    assert_eq!((timed(0), last_error()), (0, ERROR_CONNECTION_REFUSED));
    close(handle);
    // What is finished needs no file any more.
    // SAFETY: the OVERLAPPED is that of an operation that has completed, and lives until the end of the test.
    assert_eq!(unsafe { ndw_GetOverlappedResult(handle, ov, std::ptr::null_mut(), 1) }, 0);
    assert_eq!(last_error(), ERROR_CONNECTION_REFUSED);
    // SAFETY: NULL is refused.
    assert_eq!(unsafe { ndw_GetOverlappedResult(handle, std::ptr::null(), std::ptr::null_mut(), 0) }, 0);
    assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
}

/// The number of bytes is in the place of the file then, and the status still says that it is pending.
#[test]
fn a_request_that_is_just_completing_is_waited_for() {
    let file = File::new().unwrap();
    let handle = file.handle();
    file.add_notification_modes(crate::io::SKIP_SET_EVENT);
    let mut ov = overlapped(RawHandle::NULL);
    ov.internal = (STATUS_PENDING as usize).into();
    ov.internal_high = 7.into();
    let ov = &ov;
    std::thread::scope(|scope| {
        let (number, numbered) = std::sync::mpsc::channel();
        let waits = scope.spawn(move || {
            number.send(crate::io::sys::thread_id()).unwrap();
            let mut bytes = 0;
            // SAFETY: the OVERLAPPED lives until the end of the test.
            (unsafe { ndw_GetOverlappedResultEx(handle, &**ov, &mut bytes, 60_000, 0) }, bytes)
        });
        let number = numbered.recv().unwrap();
        until(|| crate::io::sys::is_asleep(number));
        ov.internal.store(STATUS_SUCCESS as usize, Ordering::Release);
        crate::io::wake(&raw const **ov);
        assert_eq!(waits.join().unwrap(), (1, 7));
    });
    close(handle);
}

#[test]
fn a_result_of_success_leaves_the_last_error_alone() {
    let file = File::new().unwrap();
    let handle = file.handle();
    let (device, _registration) = Device::new(&file);
    let event = event(false);
    let mut ov = overlapped(RawHandle(event.0 | 1));
    device.start(&file, &mut *ov);
    let finisher = later(20, move || device.finish(0, 5));
    set_last_error(0xBEEF);
    let mut bytes = 0;
    // SAFETY: the OVERLAPPED is that of a started operation.
    assert_eq!(unsafe { ndw_GetOverlappedResultEx(handle, &*ov, &mut bytes, 60_000, 0) }, 1);
    assert_eq!((bytes, last_error()), (5, 0xBEEF));
    finisher.join().unwrap();
    // Unlike on Windows, the auto-reset event is still there to be taken.
    assert_eq!(wait(event, 0), 0);
    [handle, event].into_iter().for_each(close);
}

#[test]
fn the_file_handle_stands_in_for_a_missing_event_unless_told_not_to() {
    let file = File::new().unwrap();
    let handle = file.handle();
    let (device, _registration) = Device::new(&file);
    let mut ov = overlapped(RawHandle::NULL);
    device.start(&file, &mut *ov);
    assert_eq!(wait(handle, 0), WAIT_TIMEOUT);
    device.finish(0, 0);
    assert_eq!(wait(handle, 60_000), 0);
    assert_eq!(ndw_SetFileCompletionNotificationModes(handle, 4), 0);
    assert_eq!(ndw_SetFileCompletionNotificationModes(handle, 2), 1);
    // Modes are only ever added.
    assert_eq!(ndw_SetFileCompletionNotificationModes(handle, 0), 1);
    assert_eq!(wait(handle, 0), 0);
    device.start(&file, &mut *ov);
    assert_eq!(wait(handle, 0), 0);
    close(handle);
    device.finish(0, 0);
    assert_eq!(result_of(&file, &ov, true), STATUS_SUCCESS);
}

#[test]
fn a_removed_source_is_not_served() {
    let file = File::new().unwrap();
    let (device, registration) = Device::new(&file);
    drop(registration);
    device.finish(0, 0);
    file.progress();
    assert_eq!(device.served.load(Ordering::SeqCst), 0);
    assert_eq!(Arc::strong_count(&device), 1);
}

/// Many threads, each with requests of its own on one file, wait in different ways.
#[test]
fn every_waiter_gets_its_completion() {
    const ROUNDS: usize = 3000;
    let file = File::new().unwrap();
    let worker = |way: usize| {
        let file = file.clone();
        move || {
            let (device, _registration) = Device::new(&file);
            let event = event(way.is_multiple_of(2));
            let mut ov = overlapped(event);
            for round in 0..ROUNDS {
                device.start(&file, &mut *ov);
                device.finish(0, round);
                match way {
                    0 => assert_eq!(result_of(&file, &ov, true), STATUS_SUCCESS),
                    1 => assert_eq!(wait(event, u32::MAX), 0),
                    2 => assert_eq!(wait(event, 60_000), 0),
                    _ => while result_of(&file, &ov, false) == STATUS_PENDING {},
                }
                assert_eq!(status(&ov), STATUS_SUCCESS);
                assert_eq!(ov.internal_high.load(Ordering::Relaxed), round);
            }
            close(event);
        }
    };
    let threads: Vec<_> = [0, 1, 2, 3, 0, 1].map(|way| std::thread::spawn(worker(way))).into();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_pending_result_is_incomplete_whatever_the_handle() {
    let file = File::new().unwrap();
    let (device, _registration) = Device::new(&file);
    let event = event(true);
    let mut ov = overlapped(event);
    device.start(&file, &mut *ov);
    for handle in [event, RawHandle::NULL, RawHandle(0x7fff_fffc)] {
        set_last_error(0);
        // SAFETY: the OVERLAPPED is that of a started operation.
        assert_eq!(unsafe { ndw_GetOverlappedResult(handle, &*ov, std::ptr::null_mut(), 0) }, 0);
        assert_eq!(last_error(), ERROR_IO_INCOMPLETE);
    }
    // And a wait finds the file by itself.
    let finisher = later(20, move || device.finish(0, 5));
    let mut bytes = 0;
    // SAFETY: the OVERLAPPED is that of a started operation, and lives until the end of the test, which joins the thread that
    // completes it.
    assert_eq!(unsafe { ndw_GetOverlappedResult(event, &*ov, &mut bytes, 1) }, 1);
    assert_eq!(bytes, 5);
    finisher.join().unwrap();
    close(event);
}

#[test]
fn an_overlapped_that_the_program_completes_itself_ends_with_its_event() {
    let pending = |event| {
        let ov = overlapped(event);
        ov.internal.store(STATUS_PENDING as usize, Ordering::Relaxed);
        ov.internal_high.store(0xabcd, Ordering::Relaxed);
        ov
    };
    let result = |handle, ov: &Overlapped, millis| {
        let mut bytes = 0;
        set_last_error(0);
        // SAFETY: a reference, to an OVERLAPPED with a value in each field; the count is a local.
        let ok = unsafe { ndw_GetOverlappedResultEx(handle, ov, &mut bytes, millis, 0) };
        (ok, bytes, last_error())
    };
    let event = event(false);
    let ov = pending(event);
    assert_eq!(result(RawHandle::NULL, &ov, 0), (0, 0, ERROR_IO_INCOMPLETE));
    assert_eq!(result(RawHandle::NULL, &ov, 5), (0, 0, WAIT_TIMEOUT));
    crate::api::event::ndw_SetEvent(event);
    assert_eq!(result(RawHandle::NULL, &ov, u32::MAX), (1, 0xabcd, 0));
    // Without an event of its own: the object that is named in place of the file.
    let ov = pending(RawHandle::NULL);
    assert_eq!(result(RawHandle(0x7fff_fffc), &ov, 5), (0, 0, ERROR_INVALID_HANDLE));
    crate::api::event::ndw_SetEvent(event);
    assert_eq!(result(event, &ov, 60_000), (1, 0xabcd, 0));
    close(event);
}
