//! The wait of an object that goes for its last request.

use super::device::*;
use crate::io::{File, Outstanding, STATUS_PENDING, STATUS_SUCCESS, wake_when_complete};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::task::Wake;
use std::thread;
use std::time::Duration;

#[test]
fn who_goes_waits_for_requests_that_others_complete() {
    let file = File::new().unwrap();
    let outstanding = Arc::<Outstanding>::default();
    outstanding.wait_for_none();
    let mut ov = overlapped(crate::object::RawHandle::NULL);
    // SAFETY: the OVERLAPPED lives until the request has completed.
    let request = unsafe { outstanding.begin(&file, &mut *ov) };
    let completed = Arc::new(AtomicBool::new(false));
    let other = {
        let completed = completed.clone();
        thread::spawn(move || {
            // Long enough for the other thread to be asleep, mostly.
            thread::yield_now();
            completed.store(true, Ordering::Release);
            request.complete(STATUS_SUCCESS, 0);
        })
    };
    outstanding.wait_for_none();
    assert!(completed.load(Ordering::Acquire));
    assert_ne!(ov.internal.load(Ordering::Acquire) as i32, STATUS_PENDING);
    other.join().unwrap();
}

/// Releases the object when it is woken: waits for its requests, then says so.
struct Releases(Arc<Outstanding>, Sender<()>);

impl Wake for Releases {
    fn wake(self: Arc<Self>) {
        self.0.wait_for_none();
        self.1.send(()).unwrap();
    }
}

#[test]
fn who_is_woken_by_a_request_may_release_its_object() {
    let file = File::new().unwrap();
    let outstanding = Arc::<Outstanding>::default();
    // Leaked: should the release never end, the thread that completes the request has it for good.
    let ov: *mut _ = Box::leak(overlapped(crate::object::RawHandle::NULL));
    // SAFETY: the OVERLAPPED is never freed.
    let request = unsafe { outstanding.begin(&file, ov) };
    let (released, release) = channel();
    wake_when_complete(ov, &Arc::new(Releases(outstanding, released)).into());
    thread::spawn(move || request.complete(STATUS_SUCCESS, 0));
    release
        .recv_timeout(Duration::from_secs(60))
        .expect("the release waits for the request that has woken it");
}
