//! The ways in which a program waits for a request, one of which is drawn for each wait.

use crate::com::{Com, Interface, Overlapping};
use crate::library::{
    CloseHandle, GetOverlappedResultEx, RegisterWaitForSingleObject, SetEvent, UnregisterWaitEx,
    WaitForMultipleObjects, WaitForSingleObject, event,
};
use crate::watched::{LIMIT, Ports, Watched, Way};
use fastrand::Rng;
use ndcompat::Status;
use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Instant;
use win32::object::RawHandle;

/// How a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// `IND2Overlapped::GetOverlappedResult` of an object.
    Method,
    /// `GetOverlappedResultEx` of the file, with time-outs in between.
    File,
    /// A loop on `HasOverlappedIoCompleted`: nobody waits.
    Loop,
    /// `WaitForSingleObject` of the event.
    Event,
    /// `WaitForMultipleObjects` of the event and others.
    Events,
    /// `RegisterWaitForSingleObject` of the event.
    Registered,
    /// Until a thread has taken the packet, perhaps this one, or the callback was called.
    Notice,
}

const ANY: [Wait; 3] = [Wait::Method, Wait::File, Wait::Loop];
const OF_EVENTS: [Wait; 6] =
    [Wait::Method, Wait::File, Wait::Loop, Wait::Event, Wait::Events, Wait::Registered];
const OF_PACKETS: [Wait; 5] = [Wait::Method, Wait::File, Wait::Loop, Wait::Notice, Wait::Notice];

/// How often threads have waited in each way.
#[derive(Debug, Default)]
pub struct Count([AtomicU64; 7]);

impl Count {
    /// Whether each way was used.
    pub fn is_complete(&self) -> bool {
        self.0.iter().all(|count| count.load(Ordering::Relaxed) > 0)
    }
}

/// One thread's choices of how to wait.
pub struct Waits<'a> {
    ports: &'a Ports,
    count: &'a Count,
    chance: RefCell<Rng>,
}

/// `WT_EXECUTEONLYONCE`
const ONCE: u32 = 8;

/// Tells the thread that waits.
unsafe extern "C" fn wake(context: *mut c_void, timed_out: u8) {
    // SAFETY: the sender lives until the registration has ended.
    let sender = unsafe { &*context.cast::<Sender<u8>>() };
    // The receiver lives as long.
    let _ = sender.send(timed_out);
}

impl<'a> Waits<'a> {
    /// Choices from a seed.
    pub fn new(ports: &'a Ports, count: &'a Count, seed: u64) -> Waits<'a> {
        Waits { ports, count, chance: RefCell::new(Rng::with_seed(seed)) }
    }

    /// The ports of the files.
    pub fn ports(&self) -> &'a Ports {
        self.ports
    }

    /// Waits until a request completes. `object` is one on its file.
    pub fn wait<I: Interface>(&self, request: &Watched, object: Option<&Com<I>>) -> Status {
        let wait = self.draw(request.way());
        let object = object.and_then(|object| object.cast::<Overlapping>().ok());
        let wait = if wait == Wait::Method && object.is_none() { Wait::File } else { wait };
        self.count.0[wait as usize].fetch_add(1, Ordering::Relaxed);
        match wait {
            Wait::Method => {
                let object = object.expect("there is one");
                // SAFETY: the OVERLAPPED lives.
                let status = unsafe { object.get_overlapped_result(request.ptr(), 1) };
                assert_ne!(status, Status::PENDING, "{request}: GetOverlappedResult");
            }
            Wait::File => self.until(request, wait, || self.wait_on_file(request)),
            Wait::Loop => self.until(request, wait, || self.pause()),
            Wait::Event => wait_for(request.event().expect("there is one"), request),
            Wait::Events => wait_among_others(request.event().expect("there is one"), request),
            Wait::Registered => wait_in_the_pool(request.event().expect("there is one"), request),
            Wait::Notice => {
                let deadline = Instant::now() + LIMIT;
                while !request.is_told() {
                    assert!(Instant::now() < deadline, "{request} is never told of ({:?})", request.status());
                    match request.way() {
                        Way::Port(number) if self.chance.borrow_mut().bool() => self.ports.take(number, 10),
                        Way::Port(number) => self.ports.take_all(number, 10),
                        _ => std::thread::yield_now(),
                    }
                }
            }
        }
        request.status().unwrap_or_else(|| panic!("{request} is pending after {wait:?}"))
    }

    fn draw(&self, way: Way) -> Wait {
        let ways: &[Wait] = match way {
            Way::Event => &OF_EVENTS,
            Way::Port(_) | Way::Callback => &OF_PACKETS,
            Way::Nothing | Way::Anywhere => &ANY,
        };
        ways[self.chance.borrow_mut().usize(..ways.len())]
    }

    /// Calls `look` until the request has completed.
    fn until(&self, request: &Watched, wait: Wait, look: impl Fn()) {
        let deadline = Instant::now() + LIMIT;
        while request.status().is_none() {
            assert!(Instant::now() < deadline, "{request} never completes ({wait:?})");
            look();
        }
    }

    fn pause(&self) {
        if self.chance.borrow_mut().u8(..8) == 0 {
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }

    fn wait_on_file(&self, request: &Watched) {
        let (mut bytes, milliseconds) = (0, self.chance.borrow_mut().u32(..4) * 7);
        // SAFETY: the file is open, and the OVERLAPPED lives; the count is a local.
        unsafe { GetOverlappedResultEx(request.file(), request.ptr(), &mut bytes, milliseconds, 0) };
    }
}

const MILLISECONDS: u32 = LIMIT.as_millis() as u32;

fn wait_for(event: RawHandle, request: &Watched) {
    // SAFETY: the handle is open.
    let woken = unsafe { WaitForSingleObject(event, MILLISECONDS) };
    assert_eq!(woken, 0, "{request}: its event is never set ({:?})", request.status());
}

/// Waits for the event or another one, which stays as it is.
fn wait_among_others(done: RawHandle, request: &Watched) {
    let never = event(false);
    // SAFETY: the handles are open, and there are as many as told.
    let woken = unsafe { WaitForMultipleObjects(2, [never, done].as_ptr(), 0, MILLISECONDS) };
    // SAFETY: the handle is this function's.
    unsafe { CloseHandle(never) };
    assert_eq!(woken, 1, "{request}: its event is never set ({:?})", request.status());
}

fn wait_in_the_pool(event: RawHandle, request: &Watched) {
    let told = called_for(event);
    assert_eq!(told, Ok(0), "{request}: its event calls nobody ({:?})", request.status());
}

/// Waits until the thread pool calls for the event; returns whether that was for its time-out.
fn called_for(event: RawHandle) -> Result<u8, RecvTimeoutError> {
    let (sender, receiver) = channel();
    let context = (&raw const sender).cast_mut().cast();
    let mut registered = RawHandle::NULL;
    // SAFETY: the handle is open, and the sender lives until the registration has ended, below.
    let begun = unsafe { RegisterWaitForSingleObject(&mut registered, event, wake, context, u32::MAX, ONCE) };
    assert_ne!(begun, 0, "RegisterWaitForSingleObject");
    let told = receiver.recv_timeout(LIMIT);
    // SAFETY: the registration is this function's; with INVALID_HANDLE_VALUE it has ended when this returns.
    let ended = unsafe { UnregisterWaitEx(registered, RawHandle::INVALID) };
    assert_ne!(ended, 0, "UnregisterWaitEx");
    told
}

/// Starts the threads that call for events, which stay until the process ends.
pub fn start_pool() {
    let set = event(true);
    // SAFETY: the handle is open.
    unsafe { SetEvent(set) };
    assert_eq!(called_for(set), Ok(0));
    // SAFETY: the handle is this function's.
    unsafe { CloseHandle(set) };
}
