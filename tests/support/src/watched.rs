//! Overlapped requests that are checked: each must complete exactly once, and notify exactly once, in the way its file is set up
//! for.

use crate::library::{
    BindIoCompletionCallback, CloseHandle, CreateEventW, CreateIoCompletionPort, GetQueuedCompletionStatus,
    GetQueuedCompletionStatusEx, OverlappedEntry, WaitForSingleObject,
};
use ndcompat::Status;
use std::collections::HashMap;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use win32::io::Overlapped;
use win32::object::RawHandle;

/// How long anything may take.
pub const LIMIT: Duration = Duration::from_secs(60);
/// What a completed request's `Internal` is overwritten with, so that a second completion is seen.
const DONE: usize = 0x0D0E_0D0E;

/// How the requests of a file notify the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// An event in each `OVERLAPPED`.
    Event,
    /// A completion port, which files share.
    Port(usize),
    /// The callback of `BindIoCompletionCallback`.
    Callback,
    /// Nothing: the program looks at `Internal`.
    Nothing,
    /// Any of these.
    Anywhere,
}

/// A request.
pub struct Watched {
    ov: Box<Overlapped>,
    method: &'static str,
    way: Way,
    /// The file that it runs on.
    file: RawHandle,
    /// Completion packets and callbacks for it.
    told: AtomicU32,
    began: Instant,
    seen: AtomicBool,
    status: AtomicU32,
}

/// All requests, by the address of their `OVERLAPPED`.
static REQUESTS: Mutex<Option<HashMap<usize, Arc<Watched>>>> = Mutex::new(None);

fn tell(ov: *mut Overlapped) {
    let requests = REQUESTS.lock().unwrap();
    let request = requests.as_ref().and_then(|requests| requests.get(&(ov as usize)));
    let request = request.expect("a packet of no request");
    assert!(request.status().is_some(), "{request}: a packet comes before the status");
    request.told.fetch_add(1, Ordering::Release);
}

unsafe extern "C" fn callback(_status: u32, _bytes: u32, ov: *mut Overlapped) {
    // A panic must not cross into the library.
    if std::panic::catch_unwind(|| tell(ov)).is_err() {
        std::process::abort();
    }
}

impl Watched {
    /// How long ago it was made.
    pub fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// A request on this file that has not been started.
    pub fn new(method: &'static str, file: RawHandle, way: Way) -> Arc<Watched> {
        let event = match way {
            // SAFETY: the arguments are plain.
            Way::Event => unsafe { CreateEventW(null_mut(), 1, 0, null()) },
            _ => RawHandle::NULL,
        };
        assert_eq!(event == RawHandle::NULL, way != Way::Event, "no event is made");
        let ov = Box::new(Overlapped { internal: 0.into(), internal_high: 0.into(), offset: 0, event });
        let request = Arc::new(Watched {
            ov,
            method,
            way,
            file,
            told: 0.into(),
            began: Instant::now(),
            seen: false.into(),
            status: 0.into(),
        });
        let mut requests = REQUESTS.lock().unwrap();
        requests.get_or_insert_default().insert(request.ptr() as usize, request.clone());
        request
    }

    /// A request that may notify in any way.
    pub fn anywhere(method: &'static str) -> Arc<Watched> {
        Watched::new(method, RawHandle::NULL, Way::Anywhere)
    }

    /// The pointer to pass to methods.
    pub fn ptr(&self) -> *mut Overlapped {
        (&raw const *self.ov).cast_mut()
    }

    /// The call failed: the request was not started and must not complete.
    pub fn never_began(&self) {
        assert_eq!(self.told.load(Ordering::Relaxed), 0, "{} failed, and a packet came", self.method);
        self.forget();
    }

    fn forget(&self) {
        REQUESTS.lock().unwrap().as_mut().map(|requests| requests.remove(&(self.ptr() as usize)));
        if self.way == Way::Event {
            // SAFETY: the handle is this request's.
            unsafe { CloseHandle(self.ov.event) };
        }
    }

    /// Its status, once it has completed.
    pub fn status(&self) -> Option<Status> {
        if !self.seen.load(Ordering::Acquire) {
            let internal = self.ov.internal.load(Ordering::Acquire);
            if Status(internal as i32) == Status::PENDING {
                return None;
            }
            // The first thread that sees the completion records it.
            let first = internal != DONE
                && self
                    .ov
                    .internal
                    .compare_exchange(internal, DONE, Ordering::AcqRel, Ordering::Acquire)
                    .is_ok();
            if first {
                self.status.store(internal as u32, Ordering::Relaxed);
                self.seen.store(true, Ordering::Release);
            }
            while !self.seen.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
        }
        Some(Status(self.status.load(Ordering::Relaxed) as i32))
    }

    /// The file that it runs on.
    pub fn file(&self) -> RawHandle {
        self.file
    }

    /// How it notifies.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Its event, if it has one.
    pub fn event(&self) -> Option<RawHandle> {
        (self.way == Way::Event).then_some(self.ov.event)
    }

    /// Whether a packet or a callback has come for it.
    pub fn is_told(&self) -> bool {
        self.told.load(Ordering::Acquire) > 0
    }

    /// Whether it has completed and notified; asserts that it has not done so twice.
    fn is_over(&self) -> bool {
        let Some(status) = self.status() else { return false };
        let (method, way) = (self.method, self.way);
        let internal = self.ov.internal.load(Ordering::Acquire);
        assert_eq!(internal, DONE, "{method} ({way:?}) completed with {status} and again");
        let told = self.told.load(Ordering::Acquire);
        let expected = u32::from(matches!(way, Way::Port(_) | Way::Callback));
        assert!(
            told <= expected.max(u32::from(way == Way::Anywhere)),
            "{method} ({way:?}) was told of {told} times"
        );
        if told < expected {
            return false;
        }
        // SAFETY: the handle is open.
        way != Way::Event || unsafe { WaitForSingleObject(self.ov.event, 0) } == 0
    }
}

impl std::fmt::Display for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:?})", self.method, self.way)
    }
}

/// Completed requests, kept for a while to detect a second completion.
#[derive(Default)]
pub struct Completed(Vec<Arc<Watched>>);

impl Completed {
    /// Adds a started request.
    pub fn add(&mut self, request: Arc<Watched>) {
        self.0.push(request);
        if self.0.len() >= 2000 {
            let recent = Instant::now() - Duration::from_secs(2);
            self.0.retain(|request| {
                let over = request.began < recent && request.is_over();
                if over {
                    request.forget();
                }
                !over
            });
        }
    }

    /// Waits until all have completed and notified, and removes them.
    pub fn finish(self) {
        self.finish_with(|| std::thread::sleep(Duration::from_millis(1)));
    }

    /// As [`finish`](Self::finish), where no other thread takes packets meanwhile.
    pub fn finish_with(self, pause: impl Fn()) {
        let deadline = Instant::now() + LIMIT;
        for request in self.0 {
            while !request.is_over() {
                let (method, way, status) = (request.method, request.way, request.status());
                assert!(Instant::now() < deadline, "{method} ({way:?}, {status:?}) is not told of");
                pause();
            }
            request.forget();
        }
    }
}

/// `INVALID_HANDLE_VALUE`
fn no_file() -> RawHandle {
    // SAFETY: a handle is a number.
    unsafe { std::mem::transmute(-1_isize) }
}

/// The completion ports of a storm.
pub struct Ports(Vec<RawHandle>);

impl Ports {
    /// This many ports, the first of which lets as many threads run as there are processors, the others more.
    pub fn new(count: usize) -> Ports {
        // SAFETY: the arguments are plain; -1 is INVALID_HANDLE_VALUE.
        let new = |at: usize| unsafe { CreateIoCompletionPort(no_file(), RawHandle::NULL, 0, 8 * at as u32) };
        Ports((0..count).map(new).collect())
    }

    /// Sets up `file` so that its requests notify in this way.
    pub fn bind(&self, file: RawHandle, way: Way) {
        // SAFETY: the handles are open.
        let bound = unsafe {
            match way {
                Way::Port(number) => {
                    let port = self.0[number];
                    CreateIoCompletionPort(file, port, number, 0) == port
                }
                Way::Callback => BindIoCompletionCallback(file, callback, 0) != 0,
                Way::Event | Way::Nothing | Way::Anywhere => true,
            }
        };
        assert!(bound, "the file cannot be bound ({way:?})");
    }

    /// Takes a packet from a port, if one arrives in time.
    pub fn take(&self, number: usize, milliseconds: u32) {
        let (mut bytes, mut key, mut ov) = (0, usize::MAX, null_mut());
        // SAFETY: the port is open, the results are this function's own.
        unsafe { GetQueuedCompletionStatus(self.0[number], &mut bytes, &mut key, &mut ov, milliseconds) };
        if !ov.is_null() {
            assert_eq!(key, number, "a packet with the key of another port");
            tell(ov);
        }
    }

    /// Takes all packets of a port, if any arrives in time, by `GetQueuedCompletionStatusEx`.
    pub fn take_all(&self, number: usize, milliseconds: u32) {
        let (mut entries, mut count) = ([const { OverlappedEntry::EMPTY }; 8], 0);
        let room = entries.len() as u32;
        // SAFETY: the port is open, there is room for as many entries as told.
        let took = unsafe {
            GetQueuedCompletionStatusEx(
                self.0[number],
                entries.as_mut_ptr(),
                room,
                &mut count,
                milliseconds,
                0,
            )
        };
        if took != 0 {
            assert!((1..=room).contains(&count), "{count} packets");
            for entry in &entries[..count as usize] {
                assert_eq!(entry.key, number, "a packet with the key of another port");
                tell(entry.overlapped);
            }
        }
    }
}

impl Drop for Ports {
    fn drop(&mut self) {
        for port in &self.0 {
            // SAFETY: the handles are this object's.
            unsafe { CloseHandle(*port) };
        }
    }
}
