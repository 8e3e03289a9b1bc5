//! Files bound to a completion port, or to a callback.

use super::device::*;
use crate::api::completion_port::ndw_CreateIoCompletionPort;
use crate::api::overlapped::ndw_BindIoCompletionCallback;
use crate::error::*;
use crate::io::{CancelScope, Canceller, File, Overlapped, STATUS_CANCELLED, STATUS_PENDING, result};
use crate::object::RawHandle;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
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
                true => assert_eq!(device.cancel(CancelScope::All), 1),
                false => device.finish(status, 3),
            }
            assert_eq!(waiter.join().unwrap(), status);
        });
        // The result may be there before the packet, as on Windows.
        assert_eq!(dequeue(port, 60_000).overlapped, (&raw const *ovs[0]).addr());
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

/// As those of a device: its own descriptor is a source of each of its files.
#[test]
fn files_with_a_source_in_common_share_a_port() {
    // Registered before the binding or after it, with one port or with the port of callbacks.
    for (early, pooled) in [(false, false), (true, false), (false, true), (true, true)] {
        let port = port(1);
        let files = [(); 3].map(|()| File::new().unwrap());
        let (device, first) = Device::new(&files[0]);
        let register = |file: &Arc<File>| file.add_source(device.fd(), device.clone()).unwrap();
        let mut registrations = vec![first];
        if early {
            registrations.extend(files[1..].iter().map(register));
        }
        for (key, file) in files.iter().enumerate() {
            if pooled {
                let handle = file.handle();
                // SAFETY: a function lives for ever.
                assert_eq!(unsafe { ndw_BindIoCompletionCallback(handle, Some(ignore), 0) }, 1);
                close(handle);
            } else {
                assert_eq!(bind(file, port, key), port);
            }
        }
        if !early {
            registrations.extend(files[1..].iter().map(register));
        }
        // One file twice: of two openings of a device.
        registrations.push(register(&files[1]));
        let poller = files[0].poller().clone();
        while let Some(registration) = registrations.pop() {
            let mut ov = overlapped(RawHandle::NULL);
            device.start(&files[2], &mut *ov);
            device.finish(0, 1);
            // SAFETY: `ov` is that of a started operation, and lives on.
            assert_eq!(unsafe { result(&files[0], &*ov, true) }, 0);
            drop(registration);
        }
        if !pooled {
            assert!(!poller.has_sources());
        }
        close(port);
    }
}

#[test]
fn one_descriptor_has_one_source() {
    let files = [(); 2].map(|()| File::new().unwrap());
    let port = port(1);
    files.iter().for_each(|file| assert_eq!(bind(file, port, 1), port));
    let (device, registration) = Device::new(&files[0]);
    let (other, _registration) = Device::new(&files[0]);
    let refused = files[1].add_source(device.fd(), other.clone()).err().unwrap();
    assert_eq!(refused.raw_os_error(), Some(libc::EEXIST));
    drop(registration);
    drop(files[1].add_source(device.fd(), other).unwrap());
    close(port);
}

unsafe extern "C" fn ignore(_status: u32, _bytes: u32, _ov: *mut Overlapped) {}

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
        let packet = dequeue(port, 60_000);
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
    assert_eq!(wait(RawHandle(event.0 | 1), 60_000), 0);
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
    // SAFETY: `ov` is that of a started operation, and lives on.
    assert_eq!(unsafe { crate::io::result(&file, &*ov, true) }, 0);
}

static CRASHES: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_crash(_signal: i32) {
    CRASHES.fetch_add(1, Ordering::SeqCst);
}

/// The signals that the calling thread blocks.
fn blocked() -> Vec<i32> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: fills the set; nothing is changed.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), set.as_mut_ptr()) };
    // SAFETY: reads the set.
    (1..32).filter(|&signal| unsafe { libc::sigismember(set.as_ptr(), signal) } == 1).collect()
}

/// The signals blocked in the callback, and in a thread that it has started.
static BLOCKED: Mutex<Option<[Vec<i32>; 2]>> = Mutex::new(None);

unsafe extern "C" fn crash(_status: u32, _bytes: u32, _ov: *mut Overlapped) {
    let started = std::thread::spawn(blocked).join();
    *BLOCKED.lock().unwrap() = Some([blocked(), started.expect("no panic")]);
    // SAFETY: the program has a handler.
    unsafe { libc::raise(libc::SIGFPE) };
}

#[test]
fn a_handler_for_crashes_sees_those_of_callbacks() {
    let handler: extern "C" fn(i32) = on_crash;
    // SAFETY: the handler is async-signal-safe, and nobody else needs this signal.
    unsafe { libc::signal(libc::SIGFPE, handler as libc::sighandler_t) };
    let file = File::new().unwrap();
    let handle = file.handle();
    let (device, _registration) = Device::new(&file);
    // SAFETY: a function lives for ever.
    assert_eq!(unsafe { ndw_BindIoCompletionCallback(handle, Some(crash), 0) }, 1);
    let mut ov = overlapped(RawHandle::NULL);
    device.start(&file, &mut *ov);
    device.finish(0, 0);
    until(|| CRASHES.load(Ordering::SeqCst) == 1);
    close(handle);
    let crashes = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGSYS,
        libc::SIGABRT,
        // Which nobody can block.
        libc::SIGKILL,
        libc::SIGSTOP,
    ];
    let others: Vec<_> = (1..32).filter(|signal| !crashes.contains(signal)).collect();
    assert_eq!(BLOCKED.lock().unwrap().take(), Some([others.clone(), others]));
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

/// What a callback of a thread pool was told: the error, the bytes, the `OVERLAPPED`, the object.
static POOL_CALLED: Mutex<Vec<(u32, usize, usize, RawHandle)>> = Mutex::new(Vec::new());

unsafe extern "C" fn pool_callback(
    _: *mut crate::api::threadpool::Instance,
    _: *mut std::ffi::c_void,
    overlapped: *mut Overlapped,
    error: u32,
    bytes: usize,
    io: RawHandle,
) {
    POOL_CALLED.lock().unwrap().push((error, bytes, overlapped.addr(), io));
}

fn pool_io(file: RawHandle) -> RawHandle {
    let null = std::ptr::null_mut();
    // SAFETY: a function lives for ever; no environment.
    unsafe {
        crate::api::threadpool::ndw_CreateThreadpoolIo(
            file,
            Some(pool_callback),
            null,
            crate::arguments::In::NULL,
        )
    }
}

/// What the callback of an object of a thread pool was told.
fn pool_called(object: RawHandle) -> Vec<(u32, usize, usize, RawHandle)> {
    let called = POOL_CALLED.lock().unwrap();
    called.iter().filter(|(.., io)| *io == object).copied().collect()
}

#[test]
fn who_waits_for_a_thread_pools_requests_waits_for_those_that_pend() {
    use crate::api::threadpool::*;
    let file = File::new().unwrap();
    let (device, _registration) = Device::new(&file);
    let io = pool_io(file.handle());
    let mut ov = overlapped(RawHandle::NULL);
    ndw_StartThreadpoolIo(io);
    device.start(&file, &mut *ov);
    // One that has not begun.
    ndw_StartThreadpoolIo(io);
    ndw_CancelThreadpoolIo(io);
    let (waits, waiting) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || {
        waits.send(()).unwrap();
        ndw_WaitForThreadpoolIoCallbacks(io, 0);
        pool_called(io).len()
    });
    waiting.recv().unwrap();
    (0..1000).for_each(|_| std::thread::yield_now());
    device.finish(0, 3);
    assert_eq!(waiter.join().unwrap(), 1);
    ndw_CloseThreadpoolIo(io);
    close(file.handle());
}

#[test]
fn a_callback_that_was_cancelled_before_its_request_ended_does_not_come() {
    use crate::api::threadpool::*;
    let file = File::new().unwrap();
    let (device, _registration) = Device::new(&file);
    let io = pool_io(file.handle());
    let mut requests = [(); 2].map(|()| overlapped(RawHandle::NULL));
    ndw_StartThreadpoolIo(io);
    device.start(&file, &mut *requests[0]);
    ndw_WaitForThreadpoolIoCallbacks(io, 1);
    device.finish(0, 3);
    // Of two packets that are there at once, threads of the pool would skip either.
    while packets_to_skip(io) != 0 {
        std::thread::yield_now();
    }
    ndw_StartThreadpoolIo(io);
    device.start(&file, &mut *requests[1]);
    device.finish(0, 3);
    ndw_WaitForThreadpoolIoCallbacks(io, 0);
    assert_eq!(pool_called(io), [(0, 3, (&raw const *requests[1]).addr(), io)]);
    ndw_CloseThreadpoolIo(io);
    close(file.handle());
}

#[test]
fn a_thread_pool_gets_the_completions_of_its_file_as_win32_errors() {
    use crate::api::threadpool::*;
    let file = File::new().unwrap();
    let handle = file.handle();
    let (device, _registration) = Device::new(&file);
    let create = || pool_io(handle);
    let io = create();
    assert_ne!(io, RawHandle::NULL);
    assert_eq!((create(), last_error()), (RawHandle::NULL, ERROR_INVALID_PARAMETER));
    let mut ov = overlapped(RawHandle::NULL);
    let address = (&raw const *ov).addr();
    for (turn, status, error) in [(1, 0, 0), (2, 0xC000_0120_u32, ERROR_OPERATION_ABORTED)] {
        ndw_StartThreadpoolIo(io);
        device.start(&file, &mut *ov);
        device.finish(status as i32, 3);
        until(|| pool_called(io).len() == turn);
        assert_eq!(pool_called(io)[turn - 1], (error, 3, address, io));
    }
    ndw_WaitForThreadpoolIoCallbacks(io, 0);
    ndw_CloseThreadpoolIo(io);
    close(handle);
}

/// A program that has seen the status may have freed its OVERLAPPED: a packet would lead it there. One that binds the file while
/// the request is pending waits at the port.
#[test]
fn a_packet_comes_if_the_file_was_bound_before_the_status_was_seen_and_not_otherwise() {
    for round in 0..4000 {
        let (file, port) = (File::new().unwrap(), port(1));
        let mut ov = overlapped(RawHandle::NULL);
        // SAFETY: it lives until the request has completed.
        let request = unsafe { file.begin(&raw mut *ov) };
        let handle = file.handle();
        let pending = || ov.internal.load(Ordering::Acquire) as u32 as i32 == STATUS_PENDING;
        let together = Barrier::new(2);
        let (before, after) = std::thread::scope(|scope| {
            scope.spawn(|| {
                together.wait();
                request.complete(0, 3);
            });
            together.wait();
            // One half waits for the status, the other half meets its change, or tries to.
            while round % 2 == 0 && pending() {
                std::hint::spin_loop();
            }
            (0..round % 100).for_each(|_| std::hint::spin_loop());
            let before = !pending();
            assert_eq!(ndw_CreateIoCompletionPort(handle, port, 1, 0), port);
            (before, pending())
        });
        let packet = dequeue(port, 0);
        assert!(!before || packet.error == WAIT_TIMEOUT, "round {round}: {packet:?}");
        assert!(!after || packet.overlapped == (&raw const *ov).addr(), "round {round}: {packet:?}");
        close(handle);
        close(port);
    }
}
