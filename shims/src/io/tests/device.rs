//! A fake device, and the C entry points in the shapes that tests want.

use crate::arguments::{Out, Text};
use crate::error::{last_error, set_last_error};
use crate::io::sys::EventFd;
use crate::io::{CancelScope, Canceller, File, Overlapped, Registration, Request, STATUS_CANCELLED, Source};
use crate::object::RawHandle;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Completes its requests in order when it is told to.
pub struct Device {
    fd: EventFd,
    pending: Mutex<VecDeque<Request>>,
    /// Statuses that the "hardware" has reported and nobody has fetched yet.
    reported: Mutex<VecDeque<(i32, usize)>>,
    pub served: AtomicUsize,
}

impl Device {
    pub fn new(file: &Arc<File>) -> (Arc<Device>, Registration) {
        let device = Arc::new(Device {
            fd: EventFd::new().unwrap(),
            pending: Mutex::default(),
            reported: Mutex::default(),
            served: AtomicUsize::new(0),
        });
        let registration = file.add_source(device.fd.fd(), device.clone()).unwrap();
        (device, registration)
    }

    pub fn fd(&self) -> i32 {
        self.fd.fd()
    }

    pub fn start(&self, file: &Arc<File>, ov: *mut Overlapped) {
        // SAFETY: tests keep their OVERLAPPEDs until completion.
        let request = unsafe { file.begin(ov) };
        self.pending.lock().unwrap().push_back(request);
    }

    /// The "hardware" finishes one request; the library must notice by itself.
    pub fn finish(&self, status: i32, bytes: usize) {
        self.reported.lock().unwrap().push_back((status, bytes));
        self.fd.set();
    }

    fn next(&self) -> Option<(Request, i32, usize)> {
        let mut reported = self.reported.lock().unwrap();
        let mut pending = self.pending.lock().unwrap();
        if reported.is_empty() || pending.is_empty() {
            return None;
        }
        let (status, bytes) = reported.pop_front()?;
        Some((pending.pop_front()?, status, bytes))
    }
}

impl Source for Device {
    fn ready(&self) {
        self.served.fetch_add(1, Ordering::SeqCst);
        self.fd.clear();
        while let Some((request, status, bytes)) = self.next() {
            request.complete(status, bytes);
        }
    }
}

impl Canceller for Device {
    fn cancel(&self, scope: CancelScope) -> usize {
        let (taken, kept): (Vec<_>, VecDeque<_>) = {
            let mut pending = self.pending.lock().unwrap();
            let mut taken = Vec::new();
            let mut kept = VecDeque::new();
            for request in pending.drain(..) {
                if request.is_in(scope) { taken.push(request) } else { kept.push_back(request) }
            }
            (taken, kept)
        };
        self.pending.lock().unwrap().extend(kept);
        let count = taken.len();
        taken.into_iter().for_each(|request| request.complete(STATUS_CANCELLED, 0));
        count
    }
}

/// An OVERLAPPED with an event of its own, or none.
pub fn overlapped(event: RawHandle) -> Box<Overlapped> {
    Box::new(Overlapped { event, ..Overlapped::default() })
}

pub fn event(manual: bool) -> RawHandle {
    use std::ptr::null;
    let handle = crate::api::event::ndw_CreateEventW(null(), manual.into(), 0, Text::NULL);
    assert_ne!(handle, RawHandle::NULL);
    handle
}

pub fn wait(handle: RawHandle, millis: u32) -> u32 {
    crate::api::wait::ndw_WaitForSingleObject(handle, millis)
}

pub fn close(handle: RawHandle) {
    assert_eq!(crate::api::handle::close_handle(handle), 1);
}

pub fn port(threads: u32) -> RawHandle {
    let handle = crate::api::completion_port::ndw_CreateIoCompletionPort(
        RawHandle::INVALID,
        RawHandle::NULL,
        0,
        threads,
    );
    assert_ne!(handle, RawHandle::NULL);
    handle
}

pub fn bind(file: &Arc<File>, port: RawHandle, key: usize) -> RawHandle {
    let handle = file.handle();
    let bound = crate::api::completion_port::ndw_CreateIoCompletionPort(handle, port, key, 0);
    close(handle);
    bound
}

/// How many threads wait on a port.
pub fn waiting(port: RawHandle) -> usize {
    crate::api::completion_port::with_queue(port, |queue| queue.waiting()).unwrap()
}

/// What `GetQueuedCompletionStatus` gave: its result, key, bytes, OVERLAPPED and last error.
#[derive(Debug, PartialEq, Eq)]
pub struct Dequeued {
    pub ok: bool,
    pub key: usize,
    pub bytes: u32,
    pub overlapped: usize,
    pub error: u32,
}

pub fn dequeue(port: RawHandle, millis: u32) -> Dequeued {
    let (mut bytes, mut key, mut overlapped) = (77, 77, std::ptr::without_provenance_mut(77));
    set_last_error(0);
    let ok = {
        crate::api::completion_port::ndw_GetQueuedCompletionStatus(
            port,
            Out::from(&mut bytes),
            Out::from(&mut key),
            Out::from(&mut overlapped),
            millis,
        )
    };
    Dequeued { ok: ok != 0, key, bytes, overlapped: overlapped.addr(), error: last_error() }
}

pub fn post(port: RawHandle, bytes: u32, key: usize) {
    let posted =
        crate::api::completion_port::ndw_PostQueuedCompletionStatus(port, bytes, key, std::ptr::null_mut());
    assert_eq!(posted, 1);
}

/// Spins until `condition` holds, without a call into the library.
pub fn until(mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never came true");
        std::thread::yield_now();
    }
}

/// Runs `body` on another thread after `millis`.
pub fn later<R: Send + 'static>(
    millis: u64,
    body: impl FnOnce() -> R + Send + 'static,
) -> std::thread::JoinHandle<R> {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(millis));
        body()
    })
}
