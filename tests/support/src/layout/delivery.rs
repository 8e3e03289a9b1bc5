//! Files, their requests, and the check that each completion reaches the program once and in the right place.

use super::{Destination, Event, Layout, Waiting};
use crate::client::{Ov, TIME_LIMIT, file};
use crate::com::{Adapter, Com};
use crate::library::*;
use fastrand::Rng;
use ndcompat::Status;
use std::ptr::{null, null_mut};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use win32::io::Overlapped;
use win32::object::RawHandle;

/// How a completion is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// In its `OVERLAPPED` alone.
    Inside,
    /// By a packet of this port, with this key.
    Port(RawHandle, usize),
    /// By a callback.
    Callback,
}

struct OverlappedFile {
    /// NULL once it is closed.
    handle: RawHandle,
    told: Told,
}

struct Request {
    name: &'static str,
    ov: Ov,
    event: RawHandle,
    file: usize,
    told: Told,
    /// The packet or callback has arrived.
    arrived: bool,
    finished: bool,
}

/// A packet or a callback.
struct Arrival {
    told: Told,
    ov: usize,
    /// The NTSTATUS, of callbacks.
    status: Option<u32>,
    success: bool,
}

/// Packets and callbacks that other threads have received.
static ARRIVED: Mutex<Vec<Arrival>> = Mutex::new(Vec::new());
static ARRIVES: Condvar = Condvar::new();

fn arrive(arrival: Arrival) {
    ARRIVED.lock().unwrap_or_else(PoisonError::into_inner).push(arrival);
    ARRIVES.notify_all();
}

unsafe extern "C" fn callback(status: u32, _bytes: u32, ov: *mut Overlapped) {
    let success = (status as i32) >= 0;
    arrive(Arrival { told: Told::Callback, ov: ov.addr(), status: Some(status), success });
}

/// The key of the packet that ends a port's thread.
const END: usize = usize::MAX;

/// The next packet of a port.
fn packet(port: RawHandle, milliseconds: u32) -> Option<Arrival> {
    let (mut bytes, mut key, mut ov) = (0, 0, null_mut());
    // SAFETY: the results are this function's own.
    let got = unsafe { GetQueuedCompletionStatus(port, &mut bytes, &mut key, &mut ov, milliseconds) };
    let arrival = Arrival { told: Told::Port(port, key), ov: ov.addr(), status: None, success: got != 0 };
    (got != 0 || !ov.is_null()).then_some(arrival)
}

/// The program's files, ports and requests.
pub(super) struct Requests {
    files: Vec<OverlappedFile>,
    destinations: &'static [Destination],
    waiting: Waiting,
    ports: Vec<RawHandle>,
    threads: Vec<JoinHandle<()>>,
    shared: Option<RawHandle>,
    /// All requests. Completed ones stay, so that no address is used again and a second completion is detected.
    list: Vec<Request>,
    choices: Rng,
}

/// One of the [`Requests`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun(usize);

impl Requests {
    pub(super) fn new(layout: &Layout) -> Requests {
        ARRIVED.lock().unwrap_or_else(PoisonError::into_inner).clear();
        Requests {
            files: Vec::new(),
            destinations: layout.destinations,
            waiting: layout.waiting,
            ports: Vec::new(),
            threads: Vec::new(),
            shared: None,
            list: Vec::new(),
            choices: layout.choices.clone(),
        }
    }

    /// Creates a file of the adapter.
    pub(super) fn add_file(&mut self, adapter: &Com<Adapter>) -> usize {
        self.files.push(OverlappedFile { handle: file(adapter), told: Told::Inside });
        self.files.len() - 1
    }

    pub(super) fn handle(&self, file: usize) -> RawHandle {
        self.files[file].handle
    }

    pub(super) fn close(&mut self, file: usize) {
        let handle = std::mem::replace(&mut self.files[file].handle, RawHandle::NULL);
        // SAFETY: an open handle.
        assert_eq!(unsafe { CloseHandle(handle) }, 1);
    }

    pub(super) fn files(&self) -> usize {
        self.files.len()
    }

    /// Binds each file to its destination.
    pub(super) fn bind(&mut self) {
        for file in 0..self.files.len() {
            let destination = self.destinations[file % self.destinations.len()];
            let (handle, key) = (self.files[file].handle, 100 + file);
            let port = match destination {
                Destination::OwnPort => RawHandle::NULL,
                // The first file makes it.
                Destination::SharedPort => self.shared.unwrap_or(RawHandle::NULL),
                Destination::Callback => {
                    // SAFETY: a function lives for ever.
                    let bound = unsafe { BindIoCompletionCallback(handle, callback, 0) };
                    assert_eq!(bound, 1, "BindIoCompletionCallback of file {file}");
                    self.files[file].told = Told::Callback;
                    continue;
                }
                Destination::Nowhere => continue,
            };
            // SAFETY: open handles.
            let bound = unsafe { CreateIoCompletionPort(handle, port, key, 0) };
            // SAFETY: no arguments.
            let error = unsafe { GetLastError() };
            assert_ne!(bound, RawHandle::NULL, "CreateIoCompletionPort of file {file}: {error}");
            self.files[file].told = Told::Port(bound, key);
            if port == RawHandle::NULL {
                self.add_port(bound, destination == Destination::SharedPort);
            }
        }
    }

    fn add_port(&mut self, port: RawHandle, shared: bool) {
        self.ports.push(port);
        if shared {
            self.shared = Some(port);
        }
        if self.waiting == Waiting::Threads {
            let wait = move || {
                while let Some(arrival) = packet(port, INFINITE)
                    && arrival.told != Told::Port(port, END)
                {
                    arrive(arrival);
                }
            };
            let count = if shared { 2 } else { 1 };
            self.threads.extend((0..count).map(|_| thread::spawn(wait)));
        }
    }

    /// Starts a request on `file`. `call` must return `ND_PENDING`.
    pub(super) fn begin(
        &mut self,
        file: usize,
        name: &'static str,
        call: impl FnOnce(*mut Overlapped) -> Status,
    ) -> Begun {
        let kind =
            *self.choices.choice(&[Event::None, Event::None, Event::Plain, Event::Tagged]).expect("some");
        // SAFETY: no name.
        let mut event = || unsafe { CreateEventW(null_mut(), self.choices.bool().into(), 0, null()) };
        let event = if kind == Event::None { RawHandle::NULL } else { event() };
        let told = if kind == Event::Tagged { Told::Inside } else { self.files[file].told };
        let ov = Ov::with(RawHandle(event.0 | usize::from(kind == Event::Tagged)));
        self.list.push(Request { name, ov, event, file, told, arrived: false, finished: false });
        let request = self.list.last_mut().expect("just added");
        assert_eq!(call(request.ov.ptr()), Status::PENDING, "{name}");
        Begun(self.list.len() - 1)
    }

    /// Waits for a request, and returns its status.
    pub(super) fn finish(&mut self, begun: Begun) -> Status {
        let deadline = Instant::now() + TIME_LIMIT;
        loop {
            self.take_arrived();
            let request = &self.list[begun.0];
            if request.arrived || (request.told == Told::Inside && request.ov.internal() != Status::PENDING) {
                break;
            }
            assert!(Instant::now() < deadline, "{} never ends: {:?}", request.name, request.told);
            self.progress(begun.0);
        }
        let request = &mut self.list[begun.0];
        request.finished = true;
        if request.event != RawHandle::NULL {
            // It is set after the status, and before the packet is queued.
            // SAFETY: an open handle.
            let set = unsafe { WaitForSingleObject(request.event, TIME_LIMIT.as_millis() as u32) };
            assert_eq!(set, 0, "the event of {}", request.name);
        }
        assert_ne!(request.ov.internal(), Status::PENDING, "{}", request.name);
        request.ov.internal()
    }

    /// Waits for the requests that are not finished yet.
    pub(super) fn finish_all(&mut self) {
        for at in 0..self.list.len() {
            if !self.list[at].finished {
                self.finish(Begun(at));
            }
        }
    }

    /// Waits for something that may end the request.
    fn progress(&mut self, at: usize) {
        if self.waiting == Waiting::Polling {
            return self.poll();
        }
        let limit = TIME_LIMIT.as_millis() as u32;
        let request = &mut self.list[at];
        match request.told {
            Told::Port(port, _) if self.waiting == Waiting::Blocking => {
                let arrival = packet(port, limit);
                self.accept(arrival.expect("a packet comes in time"));
            }
            Told::Port(..) | Told::Callback => {
                let arrived = ARRIVED.lock().unwrap_or_else(PoisonError::into_inner);
                let timed = ARRIVES.wait_timeout_while(arrived, TIME_LIMIT, |arrived| arrived.is_empty());
                drop(timed.unwrap_or_else(PoisonError::into_inner));
            }
            Told::Inside if request.event != RawHandle::NULL => {
                // SAFETY: an open handle.
                assert_eq!(unsafe { WaitForSingleObject(request.event, limit) }, 0, "{}", request.name);
                // The wait may have consumed an auto-reset event. SAFETY: the event's handle is open.
                unsafe { SetEvent(request.event) };
            }
            Told::Inside if self.files[request.file].handle != RawHandle::NULL => {
                let (handle, mut bytes) = (self.files[request.file].handle, 0);
                // SAFETY: an open handle, an OVERLAPPED whose request has begun.
                unsafe { GetOverlappedResultEx(handle, request.ov.ptr(), &mut bytes, limit, 0) };
            }
            // No thread of the program waits, so the library's own thread has to make progress.
            Told::Inside => thread::sleep(Duration::from_millis(1)),
        }
    }

    /// Polls every port and file.
    fn poll(&mut self) {
        for at in 0..self.ports.len() {
            while let Some(arrival) = packet(self.ports[at], 0) {
                self.accept(arrival);
            }
        }
        let inside = |request: &&mut Request| request.told == Told::Inside && !request.finished;
        for request in self.list.iter_mut().filter(inside) {
            let (handle, mut bytes) = (self.files[request.file].handle, 0);
            if handle != RawHandle::NULL {
                // SAFETY: an open handle, an OVERLAPPED whose request has begun.
                unsafe { GetOverlappedResultEx(handle, request.ov.ptr(), &mut bytes, 0, 0) };
            }
        }
        thread::yield_now();
    }

    fn take_arrived(&mut self) {
        let arrived = std::mem::take(&mut *ARRIVED.lock().unwrap_or_else(PoisonError::into_inner));
        arrived.into_iter().for_each(|arrival| self.accept(arrival));
    }

    /// Notes a packet or a callback, which must be expected.
    fn accept(&mut self, arrival: Arrival) {
        let at = self.list.iter_mut().position(|request| request.ov.ptr().addr() == arrival.ov);
        let request = &mut self.list[at.expect("a packet of a request")];
        assert_eq!(arrival.told, request.told, "{}", request.name);
        assert!(!request.arrived, "{} ends twice", request.name);
        let status = request.ov.internal();
        assert_eq!(arrival.success, status.0 >= 0, "{}: {status}", request.name);
        assert!(arrival.status.is_none_or(|given| given == status.0 as u32), "{}: {status}", request.name);
        request.arrived = true;
    }

    /// Ends the port threads once no request is pending; asserts that no completion came twice.
    pub(super) fn end(mut self) {
        assert!(self.list.iter().all(|request| request.finished));
        for port in self.ports.clone() {
            for _ in &self.threads {
                // SAFETY: an open handle.
                unsafe { PostQueuedCompletionStatus(port, 0, END, null_mut()) };
            }
        }
        for thread in std::mem::take(&mut self.threads) {
            thread.join().expect("a port's thread ends");
        }
        self.take_arrived();
        for port in std::mem::take(&mut self.ports) {
            while let Some(arrival) = packet(port, 0) {
                if arrival.told != Told::Port(port, END) {
                    self.accept(arrival);
                }
            }
            // SAFETY: an open handle.
            assert_eq!(unsafe { CloseHandle(port) }, 1);
        }
        for request in &self.list {
            if request.event != RawHandle::NULL {
                // SAFETY: an open handle, not used again.
                unsafe { CloseHandle(request.event) };
            }
        }
    }
}
