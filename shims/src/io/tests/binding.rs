//! Files bound to a completion port, or to a callback.

use super::device::*;
use crate::error::*;
use crate::io::port::*;
use crate::io::{Canceller, File, Overlapped, STATUS_CANCELLED, STATUS_PENDING, Which, result};
use crate::object::RawHandle;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[test]
fn completions_of_a_bound_file_become_packets() {
    let (file, port) = (File::new().unwrap(), port(1));
    // One source before the binding, one after.
    let (before, _one) = Device::new(&file);
    assert_eq!(bind(&file, port, 42), port);
    assert_eq!(bind(&file, port, 43), RawHandle::NULL);
    assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
    let (after, _two) = Device::new(&file);
    let event = event(true);
    let mut ov = overlapped(event);
    for device in [before, after] {
        device.start(&file, &mut *ov);
        assert_eq!(dequeue(port, 0).error, WAIT_TIMEOUT);
        device.finish(0, 9);
        let address = (&raw const *ov).addr();
        assert_eq!(
            dequeue(port, u32::MAX),
            Dequeued { ok: true, key: 42, bytes: 9, overlapped: address, error: 0 }
        );
        assert_eq!(wait(event, 0), 0);
        device.start(&file, &mut *ov);
        device.finish(STATUS_CANCELLED, 0);
        let failed = dequeue(port, u32::MAX);
        assert_eq!((failed.ok, failed.overlapped, failed.error), (false, address, ERROR_OPERATION_ABORTED));
    }
    close(event);
    close(port);
}

#[test]
fn a_request_that_is_pending_when_its_file_is_bound_completes_all_the_same() {
    for (waits_before, cancelled) in [(false, false), (false, true), (true, false), (true, true)] {
        let (file, port) = (File::new().unwrap(), port(1));
        let (device, _registration) = Device::new(&file);
        let mut ovs = [(); 2].map(|()| overlapped(RawHandle::NULL));
        device.start(&file, &mut *ovs[0]);
        let bind = || bind(&file, port, 1);
        if !waits_before {
            bind();
        }
        std::thread::scope(|scope| {
            // SAFETY: tests keep their OVERLAPPEDs.
            let waiter = scope.spawn(|| unsafe { result(&file, &*ovs[0], true) });
            until(|| file.poller().is_watched());
            // Long enough for the background thread to find nothing to do.
            std::thread::sleep(Duration::from_millis(50));
            if waits_before {
                bind();
            }
            let status = if cancelled { STATUS_CANCELLED } else { 0 };
            match cancelled {
                true => assert_eq!(device.cancel(Which::All), 1),
                false => device.finish(status, 3),
            }
            assert_eq!(waiter.join().unwrap(), status);
        });
        // The result may be there before the packet, as on Windows.
        assert_eq!(dequeue(port, 10_000).overlapped, (&raw const *ovs[0]).addr());
        device.start(&file, &mut *ovs[1]);
        let waiter = later(0, move || dequeue(port, u32::MAX).key);
        until(|| waiting(port) == 1);
        device.finish(0, 4);
        assert_eq!(waiter.join().unwrap(), 1);
        assert_eq!(ovs[1].internal_high.load(Ordering::Relaxed), 4);
        close(port);
    }
}

/// The background thread watches the port's poller for both.
#[test]
fn files_of_one_port_complete_though_nobody_waits_and_one_is_closed() {
    let port = port(1);
    let (first, second) = (File::new().unwrap(), File::new().unwrap());
    let (first_device, first_registration) = Device::new(&first);
    let (second_device, _second_registration) = Device::new(&second);
    let mut ovs = [(); 2].map(|()| overlapped(RawHandle::NULL));
    bind(&first, port, 1);
    bind(&second, port, 2);
    let pending = |ov: &Overlapped| ov.internal.load(Ordering::Acquire) as i32 == STATUS_PENDING;
    for _ in 0..3 {
        first_device.start(&first, &mut *ovs[0]);
        second_device.start(&second, &mut *ovs[1]);
        until(|| second.poller().is_adopted());
        second_device.finish(0, 0);
        until(|| !pending(&ovs[1]));
        first_device.finish(0, 0);
        until(|| !pending(&ovs[0]));
        while dequeue(port, 0).overlapped != 0 {}
        assert!(!first.poller().is_adopted());
    }
    first_device.start(&first, &mut *ovs[0]);
    second_device.start(&second, &mut *ovs[1]);
    until(|| second.poller().is_adopted());
    drop((first_registration, first_device, first));
    second_device.finish(0, 0);
    until(|| !pending(&ovs[1]));
    close(port);
}

#[test]
fn success_classes_are_success_and_no_failure_looks_like_a_time_out() {
    let (file, port) = (File::new().unwrap(), port(1));
    let (device, _registration) = Device::new(&file);
    bind(&file, port, 0);
    let mut ov = overlapped(RawHandle::NULL);
    // ND_TIMEOUT is in the success class, ND_BUFFER_OVERFLOW is a warning, ND_IO_TIMEOUT an error.
    for (status, ok) in [(0x102, true), (0x8000_0005_u32 as i32, false), (0xC000_00B5_u32 as i32, false)] {
        device.start(&file, &mut *ov);
        device.finish(status, 0);
        let packet = dequeue(port, 10_000);
        assert_eq!((packet.ok, packet.overlapped), (ok, (&raw const *ov).addr()));
        assert_ne!(packet.error, WAIT_TIMEOUT);
    }
    close(port);
}

#[test]
fn a_tagged_event_is_set_and_nothing_is_queued() {
    let (file, port, event) = (File::new().unwrap(), port(1), event(true));
    let (device, _registration) = Device::new(&file);
    bind(&file, port, 0);
    let mut ov = overlapped(RawHandle(event.0 | 1));
    device.start(&file, &mut *ov);
    device.finish(0, 0);
    assert_eq!(wait(RawHandle(event.0 | 1), 10_000), 0);
    assert_eq!(dequeue(port, 0).error, WAIT_TIMEOUT);
    close(event);
    close(port);
}

#[test]
fn a_closed_port_whose_files_live_on() {
    let (file, port) = (File::new().unwrap(), port(1));
    let (device, _registration) = Device::new(&file);
    bind(&file, port, 0);
    close(port);
    let mut ov = overlapped(RawHandle::NULL);
    device.start(&file, &mut *ov);
    device.finish(0, 0);
    // SAFETY: a valid OVERLAPPED of a started operation.
    assert_eq!(unsafe { crate::io::result(&file, &*ov, true) }, 0);
}

static CALLED: Mutex<Vec<(u32, u32, usize)>> = Mutex::new(Vec::new());

unsafe extern "C" fn callback(status: u32, bytes: u32, ov: *mut Overlapped) {
    CALLED.lock().unwrap().push((status, bytes, ov.addr()));
}

#[test]
fn callbacks_get_the_nt_status() {
    let file = File::new().unwrap();
    let handle = file.handle();
    let (device, _registration) = Device::new(&file);
    // SAFETY: a function lives for ever.
    let bind = || unsafe { ndw_BindIoCompletionCallback(handle, Some(callback), 0) };
    assert_eq!(bind(), 1);
    assert_eq!(bind(), 0);
    assert_eq!(last_error(), ERROR_INVALID_PARAMETER);
    let mut ov = overlapped(RawHandle::NULL);
    let address = (&raw const *ov).addr();
    for (turn, status) in [(1, 0), (2, 0xC000_0120_u32), (3, 0xC000_020C)] {
        device.start(&file, &mut *ov);
        device.finish(status as i32, 3);
        until(|| CALLED.lock().unwrap().len() == turn);
        assert_eq!(CALLED.lock().unwrap()[turn - 1], (status, 3, address));
    }
    close(handle);
}
