//! A client of the C interface: COM objects, handles and `OVERLAPPED`s.

use crate::address;
use crate::com::{
    self, Adapter, Com, CompletionQueue, Connector, Interface, Listener, MemoryRegion, Overlapping,
    QueuePair, create,
};
use crate::library::CloseHandle;
use ndcompat::Status;
use ndcompat::types::{AdapterInfo, Completion, RegionFlags, RequestFlags, RequestType, Sge, VERSION_2};
use ndcompat::{RawSockAddr, SockAddr};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use win32::io::Overlapped;
use win32::object::RawHandle;

/// How many requests each queue of a [`Client`] takes.
pub const DEPTH: u32 = 16;

/// How many bytes of memory a [`Client`] has.
pub const BYTES: usize = 16384;

/// Access flags for local access and remote reads and writes.
pub const EVERYTHING: RegionFlags = RegionFlags::ALLOW_REMOTE_READ.union(RegionFlags::ALLOW_REMOTE_WRITE);

/// How long anything may take before a test fails.
pub const TIME_LIMIT: Duration = Duration::from_secs(60);

/// An `OVERLAPPED` of which only `hEvent` is initialised, as in careless programs.
pub struct Ov(ManuallyDrop<Box<Overlapped>>);

impl Ov {
    /// Without an event.
    pub fn new() -> Ov {
        Ov::with(RawHandle::NULL)
    }

    /// With this `hEvent`.
    pub fn with(event: RawHandle) -> Ov {
        let garbage = 0xA5A5_A5A5_A5A5_A5A5_u64;
        Ov(ManuallyDrop::new(Box::new(Overlapped {
            internal: (garbage as usize).into(),
            internal_high: (garbage as usize).into(),
            offset: garbage,
            event,
        })))
    }

    /// The pointer to pass to methods.
    pub fn ptr(&mut self) -> *mut Overlapped {
        &mut **self.0
    }

    /// The status in `Internal`.
    pub fn internal(&self) -> Status {
        Status(self.0.internal.load(Ordering::Acquire) as i32)
    }

    /// Waits with `GetOverlappedResult` of an object on the same file.
    pub fn wait<I: Interface>(&mut self, object: &Com<I>) -> Status {
        let object: Com<Overlapping> = object.cast().expect("IND2Overlapped");
        // SAFETY: the OVERLAPPED lives.
        unsafe { object.get_overlapped_result(self.ptr(), 1) }
    }
}

impl Default for Ov {
    fn default() -> Ov {
        Ov::new()
    }
}

impl Drop for Ov {
    fn drop(&mut self) {
        // A pending request may still be written to, so its OVERLAPPED is never freed. The list is for LeakSanitizer.
        static PENDING: Mutex<Vec<usize>> = Mutex::new(Vec::new());
        if self.internal() == Status::PENDING {
            return PENDING
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(self.ptr().expose_provenance());
        }
        // SAFETY: not used again.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}

/// Opens the adapter under test through the provider, without `NdOpenAdapter`.
pub fn open() -> Com<Adapter> {
    open_at(address())
}

/// Opens the adapter with this address.
pub fn open_at(address: SockAddr) -> Com<Adapter> {
    let provider = com::provider();
    let (raw, length) = address.to_raw();
    let mut id = 0;
    // SAFETY: the address has the length told, the id is a local, and `create` passes an id and a place for the object.
    unsafe {
        assert_eq!(provider.resolve_address(raw.as_ptr().cast(), length, &mut id), Status::SUCCESS);
        create(|iid, out| provider.open_adapter(iid, id, out)).expect("the adapter opens")
    }
}

/// The adapter's `ND2_ADAPTER_INFO`.
pub fn info(adapter: &Com<Adapter>) -> AdapterInfo {
    let mut info = AdapterInfo { info_version: VERSION_2, ..AdapterInfo::default() };
    let mut length = size_of::<AdapterInfo>() as u32;
    // SAFETY: the buffer has that length.
    assert_eq!(unsafe { adapter.query(&mut info, &mut length) }, Status::SUCCESS);
    info
}

/// One end of a connection, through the C interface. Fields are released in the order of declaration.
pub struct Client {
    /// The connector.
    pub connector: Com<Connector>,
    /// The queue pair.
    pub queue_pair: Com<QueuePair>,
    /// The completion queue of both queues.
    pub completion_queue: Com<CompletionQueue>,
    /// The registration of `memory`, with [`EVERYTHING`].
    pub region: Com<MemoryRegion>,
    /// The registered bytes.
    pub memory: Box<[u8]>,
    /// The file of all requests.
    pub file: RawHandle,
    /// The adapter.
    pub adapter: Com<Adapter>,
}

impl Client {
    /// An unconnected end.
    pub fn new() -> Client {
        Client::on(&open())
    }

    /// An end on this adapter.
    pub fn on(adapter: &Com<Adapter>) -> Client {
        let adapter = adapter.cast::<Adapter>().expect("itself");
        let file = file(&adapter);
        // SAFETY: `create` passes an id and a place for the object; the queue lives, and the memory is deregistered before it
        // goes.
        unsafe {
            let completion_queue: Com<CompletionQueue> =
                create(|iid, out| adapter.create_completion_queue(iid, file, 4 * DEPTH, 0, 0, out)).unwrap();
            let queue_pair = create(|iid, out| {
                let queue = completion_queue.as_ptr();
                adapter.create_queue_pair(iid, queue, queue, ptr::null_mut(), DEPTH, DEPTH, 2, 2, 0, out)
            })
            .unwrap();
            let connector = create(|iid, out| adapter.create_connector(iid, file, out)).unwrap();
            let region: Com<MemoryRegion> =
                create(|iid, out| adapter.create_memory_region(iid, file, out)).unwrap();
            let memory = vec![0; BYTES].into_boxed_slice();
            let mut ov = Ov::new();
            assert_eq!(region.register(memory.as_ptr().cast(), BYTES, EVERYTHING, ov.ptr()), Status::PENDING);
            assert_eq!(ov.wait(&region), Status::SUCCESS);
            Client { connector, queue_pair, completion_queue, region, memory, file, adapter }
        }
    }

    /// A scatter/gather entry for part of the memory.
    pub fn sge(&self, start: usize, length: u32) -> Sge {
        // SAFETY: the region lives.
        let token = unsafe { self.region.get_local_token() };
        Sge { buffer: self.memory[start..].as_ptr() as u64, length, token }
    }

    /// Posts a receive of `length` bytes.
    pub fn receive(&self, context: usize, length: u32) -> Status {
        // SAFETY: the memory lives as long as the client.
        unsafe { self.queue_pair.receive(context as *mut c_void, &self.sge(0, length), 1) }
    }

    /// Sends `length` bytes.
    pub fn send(&self, context: usize, length: u32, flags: RequestFlags) -> Status {
        // SAFETY: the memory lives as long as the client.
        unsafe { self.queue_pair.send(context as *mut c_void, &self.sge(0, length), 1, flags) }
    }

    /// Sends `length` bytes as soon as the queue has room; fails the test when it gets none.
    pub fn send_in_turn(&self, context: usize, length: u32) {
        let deadline = Instant::now() + TIME_LIMIT;
        loop {
            match self.send(context, length, RequestFlags::empty()) {
                Status::SUCCESS => break,
                status => assert_eq!(status, Status::NO_MORE_ENTRIES),
            }
            assert!(Instant::now() < deadline, "the queue stays full");
            std::thread::yield_now();
        }
    }

    /// A result, if there is one.
    pub fn try_result(&self) -> Option<Completion> {
        let mut result = Completion {
            status: Status::INTERNAL_ERROR,
            bytes_transferred: u32::MAX,
            queue_pair_context: u64::MAX,
            request_context: u64::MAX,
            request_type: RequestType::Invalidate,
        };
        // SAFETY: room for one.
        (unsafe { self.completion_queue.get_results(&mut result, 1) } == 1).then_some(result)
    }

    /// The next result, polling; fails the test when none comes.
    pub fn result(&self) -> Completion {
        let deadline = Instant::now() + TIME_LIMIT;
        loop {
            if let Some(result) = self.try_result() {
                return result;
            }
            assert!(Instant::now() < deadline, "no completion came");
            std::thread::yield_now();
        }
    }

    /// Binds the connector to the address of the device under test.
    pub fn bind(&self) -> Status {
        let (raw, length) = address().to_raw();
        // SAFETY: the address has that length.
        unsafe { self.connector.bind(raw.as_ptr().cast(), length) }
    }

    /// Starts to connect to `to`.
    pub fn connect(&self, to: SockAddr, data: &[u8], ov: &mut Ov) -> Status {
        let (raw, length) = to.to_raw();
        let (data, data_length) = (data.as_ptr().cast(), data.len() as u32);
        // SAFETY: the queue pair lives, address and data have the lengths told, and who calls this keeps the OVERLAPPED until
        // the request has ended.
        unsafe {
            let queue_pair = self.queue_pair.as_ptr();
            self.connector.connect(queue_pair, raw.as_ptr().cast(), length, 4, 4, data, data_length, ov.ptr())
        }
    }

    /// Accepts the connection request that the connector holds.
    pub fn accept(&self, data: &[u8], ov: &mut Ov) -> Status {
        let (data, data_length) = (data.as_ptr().cast(), data.len() as u32);
        // SAFETY: the queue pair lives, the data has the length told, and who calls this keeps the OVERLAPPED until the request
        // has ended.
        unsafe { self.connector.accept(self.queue_pair.as_ptr(), 4, 4, data, data_length, ov.ptr()) }
    }

    /// Starts to disconnect, and returns the method's status.
    pub fn disconnect(&self, ov: &mut Ov) -> Status {
        // SAFETY: who calls this keeps the OVERLAPPED until the request has ended.
        unsafe { self.connector.disconnect(ov.ptr()) }
    }
}

impl Default for Client {
    fn default() -> Client {
        Client::new()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let mut ov = Ov::new();
        // SAFETY: finished when it returns; the memory may go after that.
        unsafe {
            self.region.deregister(ov.ptr());
            CloseHandle(self.file);
        }
    }
}

/// A new overlapped file of the adapter.
pub fn file(adapter: &Com<Adapter>) -> RawHandle {
    let mut file = RawHandle::NULL;
    // SAFETY: the handle goes into a local.
    assert_eq!(unsafe { adapter.create_overlapped_file(&mut file) }, Status::SUCCESS);
    file
}

/// A listener on `file`, at a free port of the device under test, and its address.
pub fn listen_on(adapter: &Com<Adapter>, file: RawHandle) -> (Com<Listener>, SockAddr) {
    let (mut raw, mut length) = address().to_raw();
    // SAFETY: `create` passes an id and a place for the object; the address has room for as many bytes as told.
    unsafe {
        let listener: Com<Listener> = create(|iid, out| adapter.create_listener(iid, file, out)).unwrap();
        assert_eq!(listener.bind(raw.as_ptr().cast(), length), Status::SUCCESS);
        assert_eq!(listener.listen(0), Status::SUCCESS);
        length = size_of::<RawSockAddr>() as u32;
        assert_eq!(listener.get_local_address(raw.as_mut_ptr().cast(), &mut length), Status::SUCCESS);
        let at = SockAddr::from_raw(raw.as_ptr().cast(), length as usize).expect("an address");
        (listener, at)
    }
}

/// Connects two clients. Returns the listener, which may be released.
pub fn connect(active: &Client, passive: &Client) -> Com<Listener> {
    let (listener, at) = listen_on(&passive.adapter, passive.file);
    let (mut request, mut connect, mut accept, mut complete) = (Ov::new(), Ov::new(), Ov::new(), Ov::new());
    assert_eq!(active.bind(), Status::SUCCESS);
    // SAFETY: all are waited for.
    unsafe {
        let connector = passive.connector.as_ptr();
        assert_eq!(listener.get_connection_request(connector, request.ptr()), Status::PENDING);
        assert_eq!(active.connect(at, b"", &mut connect), Status::PENDING);
        assert_eq!(request.wait(&listener), Status::SUCCESS, "GetConnectionRequest");
        assert_eq!(passive.accept(b"", &mut accept), Status::PENDING);
        assert_eq!(connect.wait(&active.connector), Status::SUCCESS, "Connect");
        assert_eq!(active.connector.complete_connect(complete.ptr()), Status::PENDING);
        assert_eq!(complete.wait(&active.connector), Status::SUCCESS, "CompleteConnect");
        assert_eq!(accept.wait(&passive.connector), Status::SUCCESS, "Accept");
    }
    listener
}

/// Two connected clients: the one that called `Connect`, and the one that called `Accept`.
pub fn connected() -> (Client, Client) {
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    connect(&active, &passive);
    (active, passive)
}

/// Asserts that messages pass between two connected clients.
pub fn messages_pass(active: &Client, passive: &Client) {
    assert_eq!(passive.receive(71, 32), Status::SUCCESS);
    assert_eq!(active.send(72, 32, RequestFlags::empty()), Status::SUCCESS);
    for (end, context) in [(active, 72), (passive, 71)] {
        let result = end.result();
        assert_eq!((result.status, result.request_context), (Status::SUCCESS, context));
    }
}

/// Asserts that the first of two connected clients reads the memory of the second.
pub fn memory_is_read(active: &Client, passive: &mut Client) {
    passive.memory[100..108].copy_from_slice(b"remotely");
    // SAFETY: no arguments.
    let token = unsafe { passive.region.get_remote_token() };
    let from = passive.memory.as_ptr() as u64 + 100;
    let context = 3 as *mut c_void;
    // SAFETY: the memory lives until the read has completed, and nothing else touches it meanwhile.
    let read =
        unsafe { active.queue_pair.read(context, &active.sge(0, 8), 1, from, token, RequestFlags::empty()) };
    assert_eq!(read, Status::SUCCESS);
    let result = active.result();
    assert_eq!((result.status, result.request_context), (Status::SUCCESS, 3));
    assert_eq!(&active.memory[..8], b"remotely");
}
