//! Random calls of all methods on random objects, with valid and invalid arguments: other interfaces, null, closed handles, short
//! buffers, lengths that are too large. Each call returns a known status, each started request completes once, and a connection
//! that is left alone keeps working. (Unmapped memory is left out, as no library can detect it.)

#[path = "random_calls/arguments.rs"]
mod arguments;
#[path = "random_calls/methods.rs"]
mod methods;

use ndcompat::Status;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex};
use support::chance::Chance;
use support::client::{connected, messages_pass, open};
use support::com::{
    Adapter, Com, CompletionQueue, Connector, Guid, Interface, Listener, MemoryRegion, MemoryWindow,
    Overlapping, QueuePair, SharedReceiveQueue, Unknown,
};
use support::library::{CloseHandle, DllCanUnloadNow, event};
use support::seed::seed;
use support::watched::{Completed, Ports, Watched, Way};
use win32::object::RawHandle;

/// The number of calls of a run.
pub const CALLS: usize = 400;
/// The size of the memory of regions and SGEs.
const BYTES: usize = 8192;

/// The ids of all interfaces, and an unknown one.
const IDS: [Guid; 12] = [
    Unknown::IID,
    Adapter::IID,
    Overlapping::IID,
    CompletionQueue::IID,
    SharedReceiveQueue::IID,
    MemoryRegion::IID,
    MemoryWindow::IID,
    QueuePair::IID,
    Connector::IID,
    Listener::IID,
    Guid::new(0),
    Guid::new(0x1234),
];

/// All objects of a kind. The first one is created at the start.
#[derive(Default)]
struct Objects {
    adapters: Vec<Com<Adapter>>,
    queues: Vec<Com<CompletionQueue>>,
    shared: Vec<Com<SharedReceiveQueue>>,
    regions: Vec<Com<MemoryRegion>>,
    windows: Vec<Com<MemoryWindow>>,
    pairs: Vec<Com<QueuePair>>,
    connectors: Vec<Com<Connector>>,
    listeners: Vec<Com<Listener>>,
}

struct Life {
    chance: Chance,
    objects: Objects,
    files: Vec<(RawHandle, Way)>,
    handles: Vec<RawHandle>,
    memory: Box<[u64]>,
    completed: Arc<Mutex<Completed>>,
    last: &'static str,
}

/// One of `objects`.
fn one<'a, T>(chance: &mut Chance, objects: &'a [T]) -> &'a T {
    &objects[chance.usize(..objects.len())]
}

impl Life {
    fn new(chance: Chance, ports: &Ports) -> Life {
        let adapters = vec![open(), open()];
        let mut files = Vec::new();
        for (adapter, way) in adapters.iter().zip([Way::Port(0), Way::Nothing]) {
            for _ in 0..2 {
                let file = support::client::file(adapter);
                ports.bind(file, way);
                files.push((file, way));
            }
        }
        let closed = event(true);
        // SAFETY: the handle is this function's.
        unsafe { CloseHandle(closed) };
        let handles = vec![RawHandle::NULL, closed, event(true)];
        let mut life = Life {
            chance,
            objects: Objects { adapters, ..Objects::default() },
            files,
            handles,
            memory: vec![0; BYTES / 8].into_boxed_slice(),
            completed: Arc::default(),
            last: "",
        };
        // One object of each kind, which must succeed.
        for kind in 0..7 {
            life.create(kind, true);
        }
        life
    }

    /// Calls a method that starts a request. The object's file is unknown here, so packets are not counted.
    fn begin(
        &mut self,
        method: &'static str,
        call: impl FnOnce(*mut win32::io::Overlapped) -> Status,
    ) -> Status {
        let request = Watched::anywhere(method);
        let status = call(request.ptr());
        if status == Status::PENDING {
            self.completed.lock().unwrap().add(request);
        } else {
            request.never_began();
        }
        status
    }

    /// Creates an object of one of seven kinds, with valid arguments if it `must` succeed.
    fn create(&mut self, kind: u32, must: bool) -> Status {
        let numbers: [u32; 6] = std::array::from_fn(|_| if must { 4 } else { self.number() });
        let [a, b, c, d, e, _] = numbers;
        let (inline, threshold) = if must { (0, 0) } else { (e, c) };
        let file = if must { self.files[0].0 } else { self.file() };
        let adapter = if must { 0 } else { self.chance.usize(..2) };
        let (receives, initiated, shared) = if must {
            let queue = self.objects.queues.first().map_or(null_mut(), Com::as_ptr);
            (queue, queue, null_mut())
        } else {
            let shared = self.mostly(|chance, objects| one(chance, &objects.shared).as_ptr());
            (self.queue(), self.queue(), shared)
        };
        let right = [
            CompletionQueue::IID,
            SharedReceiveQueue::IID,
            MemoryRegion::IID,
            MemoryWindow::IID,
            QueuePair::IID,
            Connector::IID,
            Listener::IID,
        ][kind as usize];
        let iid = if must { right } else { self.iid(right) };
        let mut out: *mut c_void = null_mut();
        let adapter = &self.objects.adapters[adapter];
        // SAFETY: the id and the result are locals, objects are live ones or null; numbers and handles may be anything.
        let status = unsafe {
            match kind {
                0 => adapter.create_completion_queue(&iid, file, a.saturating_mul(4), 0, 0, &mut out),
                1 => adapter.create_shared_receive_queue(&iid, file, a, b, threshold, 0, 0, &mut out),
                2 => adapter.create_memory_region(&iid, file, &mut out),
                3 => adapter.create_memory_window(&iid, &mut out),
                4 if must || self.chance.bool() => adapter.create_queue_pair(
                    &iid,
                    receives,
                    initiated,
                    null_mut(),
                    a,
                    b,
                    c,
                    d,
                    inline,
                    &mut out,
                ),
                4 => adapter.create_queue_pair_with_srq(
                    &iid,
                    receives,
                    initiated,
                    shared,
                    null_mut(),
                    a,
                    b,
                    inline,
                    &mut out,
                ),
                5 => adapter.create_connector(&iid, file, &mut out),
                _ => adapter.create_listener(&iid, file, &mut out),
            }
        };
        if status != Status::SUCCESS {
            assert!(out.is_null() && !must, "{status} and {out:?}");
            return status;
        }
        assert!(!out.is_null());
        // SAFETY: a reference of an interface, of which the kind of object is known.
        let object: Com<Unknown> = unsafe { Com::from_raw(out) };
        let objects = &mut self.objects;
        match kind {
            0 => objects.queues.push(object.cast().unwrap()),
            1 => objects.shared.push(object.cast().unwrap()),
            2 => objects.regions.push(object.cast().unwrap()),
            3 => objects.windows.push(object.cast().unwrap()),
            4 => objects.pairs.push(object.cast().unwrap()),
            5 => objects.connectors.push(object.cast().unwrap()),
            _ => objects.listeners.push(object.cast().unwrap()),
        }
        Status::SUCCESS
    }

    /// Releases an object other than the first of its kind.
    fn release(&mut self) {
        fn drop_one<T>(chance: &mut Chance, objects: &mut Vec<T>) {
            if objects.len() > 1 {
                drop(objects.swap_remove(chance.usize(1..objects.len())));
            }
        }
        let (chance, objects) = (&mut self.chance, &mut self.objects);
        match chance.u32(..7) {
            0 => drop_one(chance, &mut objects.queues),
            1 => drop_one(chance, &mut objects.shared),
            2 => drop_one(chance, &mut objects.regions),
            3 => drop_one(chance, &mut objects.windows),
            4 => drop_one(chance, &mut objects.pairs),
            5 => drop_one(chance, &mut objects.connectors),
            _ => drop_one(chance, &mut objects.listeners),
        }
    }

    /// Makes a random call.
    fn call(&mut self) {
        let status = match self.chance.u32(..10) {
            0 => {
                self.last = "Create";
                let kind = self.chance.u32(..7);
                self.create(kind, false)
            }
            1 => {
                self.last = "Release";
                self.release();
                Status::SUCCESS
            }
            2 | 3 => self.call_queue_pair(),
            4 | 5 => self.call_connector(),
            6 => self.call_listener(),
            7 => self.call_region(),
            8 => self.call_queues(),
            _ => self.call_adapter(),
        };
        let known = [Status(0x8000_4002_u32 as i32), Status(0x8000_4003_u32 as i32)];
        assert!(status.name().is_some() || known.contains(&status), "{}: {:#x}", self.last, status.0);
        let never = [Status::INTERNAL_ERROR, Status::UNSUCCESSFUL];
        assert!(!never.contains(&status), "{}: {status}", self.last);
    }
}

/// Makes up to `calls` random calls, then releases everything.
pub fn life(chance: Chance, calls: usize, ports: &Ports) {
    let mut life = Life::new(chance, ports);
    for _ in 0..calls {
        if life.chance.is_over() {
            break;
        }
        life.call();
    }
    let Life { objects, files, handles, memory, completed, .. } = life;
    drop(objects);
    for handle in files.into_iter().map(|(file, _)| file).chain(handles) {
        // SAFETY: the handles are this function's; those that are closed already are found out.
        unsafe { CloseHandle(handle) };
    }
    let completed = std::mem::take(&mut *completed.lock().unwrap());
    completed.finish_with(|| ports.take(0, 0));
    // No registration is left that could reach it.
    drop(memory);
}

/// Makes this many runs, beside a connection that must keep working.
pub fn lives(count: u64) {
    let seed = seed();
    println!("{count} lives of {CALLS} calls");
    let ports = Ports::new(1);
    {
        let (active, passive) = connected();
        for number in 0..count {
            life(Chance::with_seed(seed.wrapping_add(number)), CALLS, &ports);
            messages_pass(&active, &passive);
        }
    }
    // SAFETY: no arguments.
    assert_eq!(unsafe { DllCanUnloadNow() }, Status::SUCCESS, "objects are left");
}
