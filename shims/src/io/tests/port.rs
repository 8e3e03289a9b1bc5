//! Completion ports.

use super::device::*;
use crate::error::*;
use crate::io::port::*;
use crate::io::{Canceller, File, Overlapped, STATUS_CANCELLED, STATUS_PENDING, Which, result};
use crate::object::RawHandle;
use crate::object::handle::ndw_DuplicateHandle;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

fn bind(file: &Arc<File>, port: RawHandle, key: usize) -> RawHandle {
    let handle = file.handle();
    let bound = ndw_CreateIoCompletionPort(handle, port, key, 0);
    close(handle);
    bound
}

#[test]
fn packets_come_in_the_order_of_posting() {
    let port = port(0);
    (0..100).for_each(|n| post(port, n, n as usize + 1));
    for n in 0..100 {
        let expected = Dequeued { ok: true, key: n as usize + 1, bytes: n, overlapped: 0, error: 0 };
        assert_eq!(dequeue(port, 0), expected);
    }
    let nothing = Dequeued { ok: false, key: 77, bytes: 77, overlapped: 0, error: WAIT_TIMEOUT };
    assert_eq!(dequeue(port, 0), nothing);
    assert_eq!(dequeue(port, 20), nothing);
    close(port);
    assert_eq!(dequeue(port, 0).error, ERROR_INVALID_HANDLE);
}

#[test]
fn a_closed_port_is_an_invalid_handle_also_to_who_used_it_before() {
    let port = port(0);
    post(port, 0, 1);
    assert_eq!(dequeue(port, 0).key, 1);
    let other = std::thread::spawn(move || close(port));
    other.join().unwrap();
    assert_eq!(dequeue(port, 0).error, ERROR_INVALID_HANDLE);
    assert_eq!(ndw_PostQueuedCompletionStatus(port, 0, 1, std::ptr::null_mut()), 0);
    assert_eq!(last_error(), ERROR_INVALID_HANDLE);
}

#[test]
fn a_port_lives_as_long_as_one_of_its_handles() {
    use crate::object::handle::{ndw_DuplicateHandle, ndw_GetCurrentProcess};
    let (one, me, mut other) = (port(1), ndw_GetCurrentProcess(), RawHandle::NULL);
    // SAFETY: the target is a local.
    assert_eq!(unsafe { ndw_DuplicateHandle(me, one, me, &mut other, 0, 0, 2) }, 1);
    post(one, 1, 2);
    close(one);
    assert_eq!(dequeue(other, 0).key, 2);
    let waiter = later(0, move || dequeue(other, u32::MAX));
    until(|| waiting(other) == 1);
    close(other);
    assert_eq!(waiter.join().unwrap().error, ERROR_ABANDONED_WAIT_0);
}

#[test]
fn a_packet_is_passed_on_uninspected_and_success_leaves_the_last_error_alone() {
    let port = port(1);
    set_last_error(0xBEEF);
    let odd = std::ptr::without_provenance_mut(0x1235);
    assert_eq!(ndw_PostQueuedCompletionStatus(port, u32::MAX, usize::MAX, odd), 1);
    let (mut bytes, mut key, mut overlapped) = (0, 0, std::ptr::null_mut());
    // SAFETY: the targets are locals.
    let ok = unsafe { ndw_GetQueuedCompletionStatus(port, &mut bytes, &mut key, &mut overlapped, 0) };
    assert_eq!((ok, bytes, key, overlapped), (1, u32::MAX, usize::MAX, odd));
    assert_eq!(last_error(), 0xBEEF);
    close(port);
}

#[test]
fn many_packets_in_one_call_whatever_became_of_them() {
    let (file, port) = (File::new().unwrap(), port(1));
    let (device, _registration) = Device::new(&file);
    bind(&file, port, 8);
    let mut ov = overlapped(RawHandle::NULL);
    device.start(&file, &mut *ov);
    device.finish(STATUS_CANCELLED, 6);
    let mut entry = OverlappedEntry { key: 0, overlapped: std::ptr::null_mut(), internal: 7, bytes: 0 };
    let mut removed = 0;
    // SAFETY: one entry.
    let ok = unsafe { ndw_GetQueuedCompletionStatusEx(port, &mut entry, 1, &mut removed, 10_000, 0) };
    assert_eq!((ok, removed, entry.key, entry.bytes), (1, 1, 8, 6));
    assert_eq!((entry.internal, entry.overlapped), (0xC000_0120, &raw mut *ov));
    // A closed port ends this wait, too.
    let waiter = later(0, move || {
        let mut entry = OverlappedEntry { key: 9, overlapped: std::ptr::null_mut(), internal: 7, bytes: 0 };
        let mut removed = 9;
        // SAFETY: one entry.
        let ok = unsafe { ndw_GetQueuedCompletionStatusEx(port, &mut entry, 1, &mut removed, u32::MAX, 0) };
        (ok, removed, entry.key, last_error())
    });
    until(|| waiting(port) == 1);
    close(port);
    assert_eq!(waiter.join().unwrap(), (0, 0, 9, ERROR_ABANDONED_WAIT_0));
}

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
        assert_eq!(dequeue(port, 0).overlapped, (&raw const *ovs[0]).addr());
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
fn a_handle_that_comes_again_names_the_new_port() {
    let former = port(1);
    post(former, 0, 1);
    assert_eq!(dequeue(former, 0).key, 1);
    close(former);
    let port = port(1);
    // A slot's handles repeat after 511 uses; it rests for 64 others, and there are 16 tables of them.
    let again = (0..10_000_000).find(|_| {
        let mut duplicate = RawHandle::NULL;
        let here = RawHandle::INVALID;
        // SAFETY: the target is valid.
        assert_eq!(unsafe { ndw_DuplicateHandle(here, port, here, &mut duplicate, 0, 0, 2) }, 1);
        duplicate == former || {
            close(duplicate);
            false
        }
    });
    assert!(again.is_some());
    post(former, 0, 2);
    assert_eq!(dequeue(former, 0).key, 2);
    close(former);
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

#[test]
fn closing_a_port_ends_the_waits() {
    for bound in [false, true] {
        let port = port(1);
        let file = File::new().unwrap();
        let _source = bound.then(|| {
            bind(&file, port, 0);
            Device::new(&file)
        });
        let waiters: Vec<_> = (0..3).map(|_| later(0, move || dequeue(port, u32::MAX))).collect();
        until(|| waiting(port) == 3);
        close(port);
        for waiter in waiters {
            let end = waiter.join().unwrap();
            assert_eq!((end.ok, end.overlapped, end.error), (false, 0, ERROR_ABANDONED_WAIT_0));
        }
    }
}

fn waiting(port: RawHandle) -> usize {
    with_queue(port, |queue| queue.waiting()).unwrap()
}

/// Starts a thread that waits on `port`, and returns once it does.
fn waiter(port: RawHandle, name: usize, log: &mpsc::Sender<(usize, Dequeued)>) {
    let log = log.clone();
    let before = waiting(port);
    std::thread::spawn(move || log.send((name, dequeue(port, 10_000))).unwrap());
    until(|| waiting(port) == before + 1);
}

#[test]
fn the_last_thread_to_wait_is_served_first() {
    for bound in [false, true] {
        let (port, file) = (port(8), File::new().unwrap());
        let _source = bound.then(|| {
            bind(&file, port, 0);
            Device::new(&file)
        });
        let (log, order) = mpsc::channel();
        (0..3).for_each(|name| waiter(port, name, &log));
        for name in [2, 1, 0] {
            post(port, 0, name);
            let (served, packet) = order.recv().unwrap();
            assert_eq!((served, packet.key), (name, name));
        }
        close(port);
    }
}

#[test]
fn a_packet_for_a_waiting_thread_cannot_be_stolen() {
    let port = port(8);
    for _ in 0..20 {
        let (log, order) = mpsc::channel();
        let other = std::thread::spawn(move || log.send(dequeue(port, 10_000)).unwrap());
        until(|| waiting(port) == 1);
        post(port, 0, 1);
        assert_eq!(dequeue(port, 0).error, WAIT_TIMEOUT);
        assert_eq!(order.recv().unwrap().key, 1);
        other.join().unwrap();
    }
    close(port);
}

#[test]
fn a_thread_takes_what_it_served_itself() {
    let (file, port) = (File::new().unwrap(), port(8));
    let (device, _registration) = Device::new(&file);
    bind(&file, port, 5);
    let (log, order) = mpsc::channel();
    // The first waiter leads, so it serves the device, although the second one would be next in line.
    waiter(port, 0, &log);
    until(|| with_queue(port, |queue| queue.poller.is_watched()).unwrap());
    waiter(port, 1, &log);
    let mut ov = overlapped(RawHandle::NULL);
    device.start(&file, &mut *ov);
    device.finish(0, 0);
    assert_eq!(order.recv().unwrap().0, 0);
    post(port, 0, 6);
    assert_eq!(order.recv().unwrap().0, 1);
    close(port);
}

/// (That no more run than the limit is for the model to check: here a thread may be preempted for so long that it
/// counts as blocked.)
#[test]
fn a_limit_below_the_number_of_threads_loses_nothing() {
    let port = port(2);
    let done = Arc::new(AtomicUsize::new(0));
    let work = |done: Arc<AtomicUsize>| {
        move || {
            while dequeue(port, u32::MAX).key != 0 {
                done.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    let threads: Vec<_> = (0..6).map(|_| std::thread::spawn(work(done.clone()))).collect();
    (0..5000).for_each(|_| post(port, 0, 1));
    (0..6).for_each(|_| post(port, 0, 0));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(done.load(Ordering::SeqCst), 5000);
    close(port);
}

#[test]
fn a_thread_that_waits_elsewhere_makes_room_for_another() {
    let (port, event) = (port(1), event(false));
    let first = std::thread::spawn(move || {
        assert_eq!(dequeue(port, 10_000).key, 1);
        assert_eq!(wait(event, 10_000), 0);
    });
    until(|| waiting(port) == 1);
    post(port, 0, 1);
    let second = std::thread::spawn(move || {
        assert_eq!(dequeue(port, 10_000).key, 2);
        crate::object::event::ndw_SetEvent(event);
    });
    until(|| waiting(port) == 1);
    post(port, 0, 2);
    first.join().unwrap();
    second.join().unwrap();
    close(event);
    close(port);
}

#[test]
fn a_thread_blocked_out_of_sight_does_not_stop_the_port() {
    const MORE: usize = 500;
    let port = port(1);
    let (blocked, release) = mpsc::channel();
    let first = std::thread::spawn(move || {
        assert_eq!(dequeue(port, 10_000).key, 1);
        // A wait that the library knows nothing of.
        release.recv().unwrap()
    });
    until(|| waiting(port) == 1);
    post(port, 0, 1);
    let second = later(0, move || {
        let begun = Instant::now();
        (0..MORE).for_each(|_| assert_eq!(dequeue(port, 10_000).key, 2));
        begun.elapsed()
    });
    until(|| waiting(port) == 1);
    (0..MORE).for_each(|_| post(port, 0, 2));
    // It took a while to find out, but only once.
    assert!(second.join().unwrap() < Duration::from_secs(2));
    blocked.send(()).unwrap();
    first.join().unwrap();
    close(port);
}

#[test]
fn a_busy_thread_keeps_others_waiting() {
    static ENOUGH: AtomicBool = AtomicBool::new(false);
    let port = port(1);
    let (has_it, first_has_it) = mpsc::channel();
    post(port, 0, 1);
    let first = std::thread::spawn(move || {
        assert_eq!(dequeue(port, 10_000).key, 1);
        has_it.send(()).unwrap();
        while !ENOUGH.load(Ordering::SeqCst) {
            std::hint::spin_loop();
        }
        assert_eq!(dequeue(port, 10_000).key, 2);
    });
    until(|| first_has_it.try_recv().is_ok());
    let second = std::thread::spawn(move || dequeue(port, 10_000).key);
    until(|| waiting(port) == 1);
    post(port, 0, 2);
    // Long enough for the first thread to be looked into, and found at work.
    std::thread::sleep(Duration::from_millis(50));
    ENOUGH.store(true, Ordering::SeqCst);
    first.join().unwrap();
    post(port, 0, 3);
    assert_eq!(second.join().unwrap(), 3);
    close(port);
}

#[test]
fn several_packets_at_once() {
    let port = port(1);
    let mut entries: [OverlappedEntry; 4] = std::array::from_fn(|_| OverlappedEntry {
        key: 0,
        overlapped: std::ptr::null_mut(),
        internal: 7,
        bytes: 0,
    });
    let mut removed = 9;
    (0..6).for_each(|n| post(port, n, n as usize));
    // SAFETY: the array has four entries.
    let mut get = |count, millis| unsafe {
        let ok = ndw_GetQueuedCompletionStatusEx(port, entries.as_mut_ptr(), count, &mut removed, millis, 1);
        (ok, removed, entries.iter().map(|entry| entry.key).collect::<Vec<_>>(), last_error())
    };
    let (ok, removed, keys, _) = get(4, 0);
    assert_eq!((ok, removed, keys), (1, 4, vec![0, 1, 2, 3]));
    let (ok, removed, keys, _) = get(4, u32::MAX);
    assert_eq!((ok, removed, &keys[..2]), (1, 2, &[4, 5][..]));
    let (ok, removed, _, error) = get(4, 0);
    assert_eq!((ok, removed, error), (0, 0, WAIT_TIMEOUT));
    assert_eq!((get(0, 0).0, last_error()), (0, ERROR_INVALID_PARAMETER));
    close(port);
}

#[test]
fn wrong_parameters() {
    let port = port(0);
    let create = |file, existing| {
        assert_eq!(ndw_CreateIoCompletionPort(file, existing, 0, 0), RawHandle::NULL);
        last_error()
    };
    assert_eq!(create(RawHandle::INVALID, port), ERROR_INVALID_PARAMETER);
    assert_eq!(create(port, port), ERROR_INVALID_HANDLE);
    assert_eq!(create(RawHandle(12), port), ERROR_INVALID_HANDLE);
    let file = File::new().unwrap();
    let handle = file.handle();
    assert_eq!(create(handle, handle), ERROR_INVALID_HANDLE);
    // Both in one call.
    let own = ndw_CreateIoCompletionPort(handle, RawHandle::NULL, 3, 1);
    assert_ne!(own, RawHandle::NULL);
    [port, handle, own].into_iter().for_each(close);
    assert_eq!(ndw_PostQueuedCompletionStatus(port, 0, 0, std::ptr::null_mut()), 0);
    assert_eq!(last_error(), ERROR_INVALID_HANDLE);
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

fn readable(fd: i32, millis: i32) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd.
    unsafe { libc::poll(&mut poll, 1, millis) == 1 }
}

#[test]
fn the_descriptor_of_a_port_shows_work() {
    let (file, port) = (File::new().unwrap(), port(0));
    let (device, _registration) = Device::new(&file);
    bind(&file, port, 1);
    let fd = ndcompat_port_fd(port);
    assert!(fd >= 0 && !readable(fd, 0));
    post(port, 0, 2);
    assert!(readable(fd, 0));
    assert_eq!(dequeue(port, 0).key, 2);
    assert!(!readable(fd, 0));
    let mut ov = overlapped(RawHandle::NULL);
    device.start(&file, &mut *ov);
    device.finish(0, 0);
    assert!(readable(fd, 10_000));
    assert_eq!(dequeue(port, 0).key, 1);
    assert!(!readable(fd, 0));
    close(port);
    assert_eq!(ndcompat_port_fd(port), -1);
    assert_eq!(last_error(), ERROR_INVALID_HANDLE);
}

#[test]
fn the_descriptor_of_an_event_shows_completions() {
    let file = File::new().unwrap();
    let (device, _registration) = Device::new(&file);
    let event = event(false);
    let fd = crate::object::event::ndcompat_event_fd(event);
    assert!(!readable(fd, 0));
    let mut ov = overlapped(event);
    let mut turn = || {
        device.start(&file, &mut *ov);
        device.finish(0, 0);
        assert!(readable(fd, 10_000));
        assert_eq!(wait(event, 0), 0);
        assert!(!readable(fd, 0));
        device.start(&file, &mut *ov);
        assert_eq!(wait(event, 0), WAIT_TIMEOUT);
        // The background thread stays with the file, so that the next completion is not late.
        assert!(file.poller().is_adopted());
        device.finish(0, 0);
        assert_eq!(wait(event, 10_000), 0);
    };
    turn();
    turn();
    close(event);
}

/// Threads post, serve completions and take packets all at once: nothing is lost, nothing comes twice.
#[test]
fn every_packet_arrives_once() {
    const EACH: usize = 4000;
    let port = port(3);
    let taken = Arc::new(AtomicUsize::new(0));
    let takers: Vec<_> = (0..4)
        .map(|n| {
            let taken = taken.clone();
            std::thread::spawn(move || {
                loop {
                    let packet = dequeue(port, if n == 0 { 1 } else { u32::MAX });
                    match packet.key {
                        _ if packet.error == WAIT_TIMEOUT => {}
                        0 => break,
                        _ => assert!(taken.fetch_add(1, Ordering::SeqCst) < 4 * EACH),
                    }
                }
            })
        })
        .collect();
    let posters = (0..2).map(|_| std::thread::spawn(move || (0..EACH).for_each(|_| post(port, 1, 1))));
    let drivers = (0..2).map(|_| {
        std::thread::spawn(move || {
            let file = File::new().unwrap();
            let (device, registration) = Device::new(&file);
            bind(&file, port, 2);
            let mut ovs: Vec<_> = (0..EACH).map(|_| overlapped(RawHandle::NULL)).collect();
            for ov in &mut ovs {
                device.start(&file, &mut **ov);
                device.finish(0, 0);
            }
            let pending = |ov: &Overlapped| ov.internal.load(Ordering::Acquire) == 0x103;
            until(|| !ovs.iter().any(|ov| pending(ov)));
            drop(registration);
        })
    });
    let workers: Vec<_> = posters.chain(drivers).collect();
    workers.into_iter().for_each(|thread| thread.join().unwrap());
    // A request looks complete before its packet is queued, so the last ones may still be on their way.
    until(|| taken.load(Ordering::SeqCst) == 4 * EACH);
    (0..4).for_each(|_| post(port, 0, 0));
    takers.into_iter().for_each(|thread| thread.join().unwrap());
    close(port);
}
