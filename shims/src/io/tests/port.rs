//! Completion ports.

use super::device::*;
use crate::api::completion_port::*;
use crate::api::handle::{ndw_DuplicateHandle, ndw_GetCurrentProcess};
use crate::arguments::Out;
use crate::error::*;
use crate::io::{File, STATUS_CANCELLED};
use crate::object::RawHandle;

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
    let (one, me, mut other) = (port(1), ndw_GetCurrentProcess(), RawHandle::NULL);
    assert_eq!(ndw_DuplicateHandle(me, one, me, Out::from(&mut other), 0, 0, 2), 1);
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
    let ok = ndw_GetQueuedCompletionStatus(
        port,
        Out::from(&mut bytes),
        Out::from(&mut key),
        Out::from(&mut overlapped),
        0,
    );
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
    let ok =
        unsafe { ndw_GetQueuedCompletionStatusEx(port, &mut entry, 1, Out::from(&mut removed), 60_000, 0) };
    assert_eq!((ok, removed, entry.key, entry.bytes), (1, 1, 8, 6));
    assert_eq!((entry.internal, entry.overlapped), (0xC000_0120, &raw mut *ov));
    // A closed port ends this wait, too.
    let waiter = later(0, move || {
        let mut entry = OverlappedEntry { key: 9, overlapped: std::ptr::null_mut(), internal: 7, bytes: 0 };
        let mut removed = 9;
        // SAFETY: one entry.
        let ok = unsafe {
            ndw_GetQueuedCompletionStatusEx(port, &mut entry, 1, Out::from(&mut removed), u32::MAX, 0)
        };
        (ok, removed, entry.key, last_error())
    });
    until(|| waiting(port) == 1);
    close(port);
    assert_eq!(waiter.join().unwrap(), (0, 1, 9, ERROR_ABANDONED_WAIT_0));
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
        assert_eq!(ndw_DuplicateHandle(here, port, here, Out::from(&mut duplicate), 0, 0, 2), 1);
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
fn a_closed_port_leaves_no_descriptor_with_the_threads_that_used_it() {
    let queues: Vec<_> = (0..9)
        .map(|_| {
            let port = port(1);
            post(port, 0, 1);
            assert_eq!((dequeue(port, 0).key, dequeue(port, 0).error), (1, WAIT_TIMEOUT));
            let queue = crate::api::completion_port::with_queue(port, std::sync::Arc::downgrade).unwrap();
            close(port);
            queue
        })
        .collect();
    assert!(queues.iter().all(|queue| queue.strong_count() == 0));
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
        let ok = ndw_GetQueuedCompletionStatusEx(
            port,
            entries.as_mut_ptr(),
            count,
            Out::from(&mut removed),
            millis,
            1,
        );
        (ok, removed, entries.iter().map(|entry| entry.key).collect::<Vec<_>>(), last_error())
    };
    let (ok, removed, keys, _) = get(4, 0);
    assert_eq!((ok, removed, keys), (1, 4, vec![0, 1, 2, 3]));
    let (ok, removed, keys, _) = get(4, u32::MAX);
    assert_eq!((ok, removed, &keys[..2]), (1, 2, &[4, 5][..]));
    let (ok, removed, _, error) = get(4, 0);
    // The count is that of Windows.
    assert_eq!((ok, removed, error), (0, 1, WAIT_TIMEOUT));
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
    // A number that no socket of another test has.
    assert_eq!(create(RawHandle(0x7FFF_FFFC), port), ERROR_INVALID_HANDLE);
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
