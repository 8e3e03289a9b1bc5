//! Threads that wait on one completion port: who is served, and how many run.

use super::device::*;
use crate::api::completion_port::*;
use crate::error::*;
use crate::io::{File, Overlapped, STATUS_PENDING};
use crate::object::RawHandle;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Starts a thread that waits on `port`, and returns once it does.
fn waiter(port: RawHandle, name: usize, log: &mpsc::Sender<(usize, Dequeued)>) {
    let log = log.clone();
    let before = waiting(port);
    std::thread::spawn(move || log.send((name, dequeue(port, 60_000))).unwrap());
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
        let other = std::thread::spawn(move || log.send(dequeue(port, 60_000)).unwrap());
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
        assert_eq!(dequeue(port, 60_000).key, 1);
        assert_eq!(wait(event, 60_000), 0);
    });
    until(|| waiting(port) == 1);
    post(port, 0, 1);
    let second = std::thread::spawn(move || {
        assert_eq!(dequeue(port, 60_000).key, 2);
        crate::api::event::ndw_SetEvent(event);
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
    const MORE: usize = 3000;
    let port = port(1);
    let (blocked, release) = mpsc::channel();
    let first = std::thread::spawn(move || {
        assert_eq!(dequeue(port, 60_000).key, 1);
        // A wait that the library knows nothing of.
        release.recv().unwrap()
    });
    until(|| waiting(port) == 1);
    post(port, 0, 1);
    let second = later(0, move || {
        let begun = Instant::now();
        (0..MORE).for_each(|_| assert_eq!(dequeue(port, 60_000).key, 2));
        begun.elapsed()
    });
    until(|| waiting(port) == 1);
    (0..MORE).for_each(|_| post(port, 0, 2));
    // It took a while to find out, but only once.
    assert!(second.join().unwrap() < Duration::from_secs(15));
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
        assert_eq!(dequeue(port, 60_000).key, 1);
        has_it.send(()).unwrap();
        while !ENOUGH.load(Ordering::SeqCst) {
            std::hint::spin_loop();
        }
        assert_eq!(dequeue(port, 60_000).key, 2);
    });
    until(|| first_has_it.try_recv().is_ok());
    let second = std::thread::spawn(move || dequeue(port, 60_000).key);
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
            let pending = |ov: &Overlapped| ov.internal.load(Ordering::Acquire) as i32 == STATUS_PENDING;
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
