//! More files with a descriptor in common than the kernel lets one descriptor be in epoll sets of epoll sets: 100 when it is one itself,
//! as here, 500 otherwise.

use super::device::*;
use crate::api::wait::ndw_WaitForMultipleObjects;
use crate::io::poller::Poller;
use crate::io::{File, Overlapped, Registration, STATUS_PENDING, Source};
use crate::object::RawHandle;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const FILES: usize = 120;

/// A device's descriptor, which has nothing to tell.
struct Common;

impl Source for Common {
    fn ready(&self) {}
}

struct One {
    file: Arc<File>,
    device: Arc<Device>,
    event: RawHandle,
    ov: Box<Overlapped>,
    _registrations: [Registration; 2],
}

/// Files with a pending request each, and the set in which they all are.
fn files() -> (Arc<Poller>, Vec<One>) {
    let (common, source) = (Poller::new().unwrap(), Arc::new(Common));
    let one = |_| {
        let file = File::new().unwrap();
        let (device, own) = Device::new(&file);
        let shared = file.add_source(common.fd(), source.clone()).unwrap();
        let event = event(true);
        let mut ov = overlapped(event);
        device.start(&file, &mut *ov);
        One { file, device, event, ov, _registrations: [own, shared] }
    };
    let files = (0..FILES).map(one).collect();
    (common, files)
}

/// In processes of their own, as each needs hundreds of descriptors.
#[test]
fn many_files_are_served() {
    crate::alone::run("io::tests::many_files::all_are_served_while_no_thread_waits");
    crate::alone::run("io::tests::many_files::all_are_served_by_threads_that_wait_for_many_of_them");
}

#[test]
#[ignore = "run by many_files_are_served"]
fn all_are_served_while_no_thread_waits() {
    let (_common, files) = files();
    for one in &files {
        one.device.finish(0, 1);
    }
    let is_done = |one: &One| one.ov.internal.load(Ordering::Acquire) != STATUS_PENDING as usize;
    until(|| files.iter().all(is_done));
    files.iter().for_each(|one| close(one.event));
}

#[test]
#[ignore = "run by many_files_are_served"]
fn all_are_served_by_threads_that_wait_for_many_of_them() {
    let (_common, files) = files();
    std::thread::scope(|scope| {
        let waits = |some: &[One]| {
            let events: Vec<_> = some.iter().map(|one| one.event).collect();
            // SAFETY: so many handles.
            let wait = move || unsafe {
                ndw_WaitForMultipleObjects(events.len() as u32, events.as_ptr(), 1, 60_000)
            };
            scope.spawn(wait)
        };
        let (one, other) = files.split_at(FILES / 2);
        let threads = [waits(one), waits(other)];
        // Both of them serve them by then.
        until(|| files.iter().all(|one| one.file.poller().is_watched()));
        for one in &files {
            one.device.finish(0, 1);
        }
        assert_eq!(threads.map(|thread| thread.join().unwrap()), [0, 0]);
    });
    assert!(files.iter().all(|one| one.device.served.load(Ordering::SeqCst) > 0));
    files.iter().for_each(|one| close(one.event));
}
