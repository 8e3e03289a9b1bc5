//! The program: two connections, whose objects are placed as the layout says. It connects, moves data, starts a request on every
//! object, releases the objects of one connection, continues with the other, and releases that.

use super::delivery::{Begun, Requests};
use super::{Adapters, Binding, Layout, OBJECTS, Object};
use crate::client::EVERYTHING;
use crate::client::{TIME_LIMIT, open_at};
use crate::com::{Adapter, Com, CompletionQueue, Connector, Listener, MemoryRegion, QueuePair, create};
use ndcompat::Status;
use ndcompat::types::{Completion, RequestFlags, RequestType, Sge};
use ndcompat::{RawSockAddr, SockAddr};
use std::ffi::c_void;
use std::ptr;
use std::time::Instant;

/// Bytes of memory of an end.
const BYTES: usize = 64;
/// `ND_CQ_NOTIFY_ANY`
const ANY: u32 = 1;
/// `ND_CQ_NOTIFY_ERRORS`
const ERRORS: u32 = 0;

/// The devices to use.
pub struct Devices {
    /// The address of the device under test.
    pub first: SockAddr,
    /// The address of a second one.
    pub second: SockAddr,
    /// Makes the first device fail its newest completion queue, if it can.
    pub fail_last_queue: Option<fn()>,
}

/// One end of a connection. Fields that are left are released in the order of declaration.
struct End {
    connector: Option<Com<Connector>>,
    queue_pair: Option<Com<QueuePair>>,
    initiator_queue: Option<Com<CompletionQueue>>,
    /// `None`: the initiator queue is used for receives, too.
    receive_queue: Option<Com<CompletionQueue>>,
    region: Option<Com<MemoryRegion>>,
    adapter: Option<Com<Adapter>>,
    memory: Box<[u8]>,
    /// The files of the objects.
    files: [usize; OBJECTS],
}

/// An object to release.
#[derive(Clone, Copy, Debug)]
enum Item {
    Connector,
    QueuePair,
    InitiatorQueue,
    ReceiveQueue,
    Region,
    Adapter,
    Listener,
}

struct Connection {
    ends: [End; 2],
    listener: Option<Com<Listener>>,
    /// A connector that waits for a second connection request, which never arrives.
    spare: Option<Com<Connector>>,
    address: SockAddr,
    /// The listener's address.
    at: SockAddr,
    /// Requests that complete when the connection ends or their object is released.
    pending: Vec<Begun>,
}

/// Prints the layout of a test that fails.
struct Describe<'a>(&'a Layout);

impl Drop for Describe<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("NDCOMPAT_LAYOUT={} repeats this: {:?}", self.0.number, self.0);
        }
    }
}

/// Runs the program with this layout; panics when a request completes twice, never, or in the wrong place.
pub fn run(layout: &Layout, devices: &Devices) {
    let _describe = Describe(layout);
    let mut requests = Requests::new(layout);
    let mut connections = create_all(layout, devices, &mut requests);
    if layout.binding == Binding::Created {
        requests.bind();
    }
    connections.iter_mut().for_each(|connection| connection.register(&mut requests));
    connect(&mut connections, &mut requests);
    requests.finish_all();
    if layout.binding == Binding::Connected {
        requests.bind();
    }
    let mut choices = layout.choices.clone().fork();
    let [first, second] = &mut connections;
    for connection in [&mut *first, &mut *second] {
        connection.expect_the_end(&mut requests);
        connection.transfer(&mut requests);
    }
    if choices.bool() {
        first.disconnect(&mut requests);
    }
    first.leave_pending(&mut requests);
    let mut files: Vec<_> = (0..requests.files()).collect();
    choices.shuffle(&mut files);
    first.release(&mut choices, &mut requests, |requests| {
        if let Some(file) = files.pop() {
            requests.close(file);
        }
    });
    second.transfer(&mut requests);
    if choices.bool() {
        second.disconnect(&mut requests);
    }
    second.leave_pending(&mut requests);
    if let Some(fail) = devices.fail_last_queue {
        second.fail_last_queue(fail, &mut requests);
    }
    second.release(&mut choices, &mut requests, |_| ());
    files.into_iter().for_each(|file| requests.close(file));
    requests.finish_all();
    requests.end();
}

/// Opens the adapters and creates the files and objects.
fn create_all(layout: &Layout, devices: &Devices, requests: &mut Requests) -> [Connection; 2] {
    let addresses = match layout.adapters {
        Adapters::TwoDevices => [devices.first, devices.second],
        _ => [devices.first; 2],
    };
    let first = open_at(addresses[0]);
    let second = match layout.adapters {
        Adapters::One | Adapters::OneFilesApart => first.cast().expect("itself"),
        _ => open_at(addresses[1]),
    };
    let count = layout.places.iter().max().map_or(0, |last| last + 1);
    let mut add_files =
        |adapter: &Com<Adapter>| -> Vec<usize> { (0..count).map(|_| requests.add_file(adapter)).collect() };
    let files = add_files(&first);
    let other_files = match layout.adapters {
        Adapters::One | Adapters::BorrowedFiles => files.clone(),
        _ => add_files(&second),
    };
    if layout.binding == Binding::First {
        requests.bind();
    }
    let on = |files: &[usize]| layout.places.map(|place| files[place]);
    let end = |adapter, files: &[usize]| End::new(adapter, on(files), layout.one_queue, requests);
    let ends = match layout.adapters {
        Adapters::TwoDevices => [
            [end(&first, &files), end(&first, &files)],
            [end(&second, &other_files), end(&second, &other_files)],
        ],
        _ => [(); 2].map(|()| [end(&first, &files), end(&second, &other_files)]),
    };
    let mut addresses = addresses.into_iter();
    ends.map(|ends| Connection::new(ends, addresses.next().expect("two"), requests))
}

impl End {
    fn new(adapter: &Com<Adapter>, files: [usize; OBJECTS], one_queue: bool, requests: &Requests) -> End {
        let handle = |object: Object| requests.handle(files[object as usize]);
        // SAFETY: `create` passes an id and a place for the object; each queue lives when it is passed.
        unsafe {
            let queue = |object| -> Com<CompletionQueue> {
                create(|iid, out| adapter.create_completion_queue(iid, handle(object), 16, 0, 0, out))
                    .unwrap()
            };
            let initiator_queue = queue(Object::InitiatorQueue);
            let receive_queue = (!one_queue).then(|| queue(Object::ReceiveQueue));
            let queue_pair = create(|iid, out| {
                let initiator = initiator_queue.as_ptr();
                let receive = receive_queue.as_ref().map_or(initiator, Com::as_ptr);
                adapter.create_queue_pair(iid, receive, initiator, ptr::null_mut(), 4, 4, 1, 1, 0, out)
            });
            let connector = create(|iid, out| adapter.create_connector(iid, handle(Object::Connector), out));
            let region = create(|iid, out| adapter.create_memory_region(iid, handle(Object::Region), out));
            End {
                connector: Some(connector.unwrap()),
                queue_pair: Some(queue_pair.unwrap()),
                initiator_queue: Some(initiator_queue),
                receive_queue,
                region: Some(region.unwrap()),
                adapter: Some(adapter.cast().expect("itself")),
                memory: vec![0; BYTES].into_boxed_slice(),
                files,
            }
        }
    }

    fn file(&self, object: Object) -> usize {
        self.files[object as usize]
    }

    fn connector(&self) -> &Com<Connector> {
        self.connector.as_ref().expect("not released")
    }

    fn queue_pair(&self) -> &Com<QueuePair> {
        self.queue_pair.as_ref().expect("not released")
    }

    fn region(&self) -> &Com<MemoryRegion> {
        self.region.as_ref().expect("not released")
    }

    /// The completion queue of a kind of request, and its file.
    fn queue(&self, object: Object) -> (&Com<CompletionQueue>, usize) {
        let queue = match object {
            Object::ReceiveQueue => self.receive_queue.as_ref().or(self.initiator_queue.as_ref()),
            _ => self.initiator_queue.as_ref(),
        };
        (queue.expect("not released"), self.file(object))
    }

    fn sge(&self) -> Sge {
        // SAFETY: the region lives.
        let token = unsafe { self.region().get_local_token() };
        Sge { buffer: self.memory.as_ptr() as u64, length: BYTES as u32, token }
    }

    fn notify(&self, object: Object, kind: u32, requests: &mut Requests) -> Begun {
        let (queue, file) = self.queue(object);
        // SAFETY: the OVERLAPPED lives until the request ends.
        requests.begin(file, "Notify", |ov| unsafe { queue.notify(kind, ov) })
    }

    /// Takes the one result that must be there.
    fn result(&self, object: Object, kind: RequestType, context: u64) {
        let (queue, _) = self.queue(object);
        let mut results = [Completion {
            status: Status::INTERNAL_ERROR,
            bytes_transferred: 0,
            queue_pair_context: u64::MAX,
            request_context: u64::MAX,
            request_type: RequestType::Invalidate,
        }; 2];
        let deadline = Instant::now() + TIME_LIMIT;
        loop {
            // SAFETY: room for two.
            match unsafe { queue.get_results(results.as_mut_ptr(), 2) } {
                0 => assert!(Instant::now() < deadline, "no result of {kind:?}"),
                count => {
                    assert_eq!(count, 1);
                    break;
                }
            }
            std::thread::yield_now();
        }
        let [result, _] = results;
        assert_eq!(
            (result.status, result.request_type, result.request_context),
            (Status::SUCCESS, kind, context)
        );
    }

    /// Sends the contents of the memory, and waits for the notifications of both ends.
    fn send(&mut self, to: &mut End, round: u8, requests: &mut Requests) {
        self.memory.fill(round);
        to.memory.fill(0);
        let (sent, received) = (u64::from(round), u64::from(round) + 1000);
        // SAFETY: the memory lives as long as the regions.
        unsafe {
            let receive = to.queue_pair().receive(received as *mut c_void, &to.sge(), 1);
            assert_eq!(receive, Status::SUCCESS);
            let notes = [
                to.notify(Object::ReceiveQueue, ANY, requests),
                self.notify(Object::InitiatorQueue, ANY, requests),
            ];
            let send = self.queue_pair().send(sent as *mut c_void, &self.sge(), 1, RequestFlags::empty());
            assert_eq!(send, Status::SUCCESS);
            for note in notes {
                assert_eq!(requests.finish(note), Status::SUCCESS);
            }
        }
        to.result(Object::ReceiveQueue, RequestType::Receive, received);
        self.result(Object::InitiatorQueue, RequestType::Send, sent);
        assert!(to.memory.iter().all(|&byte| byte == round));
    }

    /// Writes to the peer's memory, and reads it back.
    fn write_and_read(&mut self, to: &mut End, round: u8) {
        self.memory.fill(round);
        // SAFETY: the memory lives as long as the regions.
        let (at, token) = unsafe { (to.memory.as_ptr() as u64, to.region().get_remote_token()) };
        for (kind, context) in [(RequestType::Write, 1), (RequestType::Read, 2)] {
            let (name, sge) = (context as *mut c_void, self.sge());
            // SAFETY: the memory of both ends lives as long as the test.
            let posted = unsafe {
                match kind {
                    RequestType::Write => {
                        self.queue_pair().write(name, &sge, 1, at, token, RequestFlags::empty())
                    }
                    _ => self.queue_pair().read(name, &sge, 1, at, token, RequestFlags::empty()),
                }
            };
            assert_eq!(posted, Status::SUCCESS);
            self.result(Object::InitiatorQueue, kind, context);
            if kind == RequestType::Write {
                // The write may still be in flight; the read that follows is ordered after it.
                self.memory.fill(0);
            }
        }
        assert!(self.memory.iter().chain(&to.memory).all(|&byte| byte == round));
    }
}

impl Connection {
    fn new(ends: [End; 2], address: SockAddr, requests: &Requests) -> Connection {
        let passive = &ends[1];
        let adapter = passive.adapter.as_ref().expect("not released");
        let (mut raw, mut length) = address.to_raw();
        // SAFETY: `create` passes an id and a place for the object; the address has room for as many bytes as told.
        unsafe {
            let file = requests.handle(passive.file(Object::Listener));
            let listener: Com<Listener> = create(|iid, out| adapter.create_listener(iid, file, out)).unwrap();
            let file = requests.handle(passive.file(Object::Connector));
            let spare = create(|iid, out| adapter.create_connector(iid, file, out)).unwrap();
            assert_eq!(listener.bind(raw.as_ptr().cast(), length), Status::SUCCESS);
            assert_eq!(listener.listen(0), Status::SUCCESS);
            length = size_of::<RawSockAddr>() as u32;
            assert_eq!(listener.get_local_address(raw.as_mut_ptr().cast(), &mut length), Status::SUCCESS);
            let at = SockAddr::from_raw(raw.as_ptr().cast(), length as usize).expect("an address");
            Connection {
                ends,
                listener: Some(listener),
                spare: Some(spare),
                address,
                at,
                pending: Vec::new(),
            }
        }
    }

    fn listener(&self) -> &Com<Listener> {
        self.listener.as_ref().expect("not released")
    }

    /// Registers the memory of both ends.
    fn register(&mut self, requests: &mut Requests) {
        let begun = self.ends.each_ref().map(|end| {
            let (bytes, flags) = (end.memory.as_ptr().cast(), EVERYTHING);
            // SAFETY: the memory lives as long as the region.
            requests.begin(end.file(Object::Region), "Register", |ov| unsafe {
                end.region().register(bytes, BYTES, flags, ov)
            })
        });
        begun.into_iter().for_each(|begun| assert_eq!(requests.finish(begun), Status::SUCCESS));
    }

    /// Starts `NotifyDisconnect` on both ends.
    fn expect_the_end(&mut self, requests: &mut Requests) {
        for end in &self.ends {
            // SAFETY: the OVERLAPPED lives until the request ends.
            let begun = requests.begin(end.file(Object::Connector), "NotifyDisconnect", |ov| unsafe {
                end.connector().notify_disconnect(ov)
            });
            self.pending.push(begun);
        }
    }

    /// Moves data in both directions, by every operation.
    fn transfer(&mut self, requests: &mut Requests) {
        let [active, passive] = &mut self.ends;
        active.send(passive, 1, requests);
        passive.send(active, 2, requests);
        active.write_and_read(passive, 3);
        passive.write_and_read(active, 4);
        active.send(passive, 5, requests);
    }

    fn disconnect(&mut self, requests: &mut Requests) {
        let active = &self.ends[0];
        // SAFETY: the OVERLAPPED lives until the request ends.
        let begun = requests.begin(active.file(Object::Connector), "Disconnect", |ov| unsafe {
            active.connector().disconnect(ov)
        });
        assert_eq!(requests.finish(begun), Status::SUCCESS);
    }

    /// Starts requests that complete only when their objects are released.
    fn leave_pending(&mut self, requests: &mut Requests) {
        let spare = self.spare.as_ref().expect("not released").as_ptr();
        // SAFETY: the OVERLAPPED lives until the request ends.
        let begun =
            requests.begin(self.ends[1].file(Object::Listener), "GetConnectionRequest", |ov| unsafe {
                self.listener().get_connection_request(spare, ov)
            });
        self.pending.push(begun);
        for end in &self.ends {
            self.pending.push(end.notify(Object::InitiatorQueue, ERRORS, requests));
            self.pending.push(end.notify(Object::ReceiveQueue, ERRORS, requests));
        }
    }

    /// Makes the device fail the newest completion queue of this connection.
    fn fail_last_queue(&mut self, fail: fn(), requests: &mut Requests) {
        fail();
        let begun = self.pending.pop().expect("a notification");
        assert_eq!(requests.finish(begun), Status::BUFFER_OVERFLOW);
    }

    /// Releases all objects in a random order, with `between` after each.
    fn release(
        &mut self,
        choices: &mut fastrand::Rng,
        requests: &mut Requests,
        mut between: impl FnMut(&mut Requests),
    ) {
        let items = [
            Item::Connector,
            Item::QueuePair,
            Item::InitiatorQueue,
            Item::ReceiveQueue,
            Item::Region,
            Item::Adapter,
        ];
        let mut order: Vec<_> = (0..2).flat_map(|end| items.map(|item| (end, item))).collect();
        order.push((1, Item::Listener));
        choices.shuffle(&mut order);
        for (at, item) in order {
            let end = &mut self.ends[at];
            match item {
                Item::Connector => drop(end.connector.take()),
                Item::QueuePair => drop(end.queue_pair.take()),
                Item::InitiatorQueue => drop(end.initiator_queue.take()),
                Item::ReceiveQueue => drop(end.receive_queue.take()),
                Item::Region => {
                    let (region, file) = (end.region.take().expect("not released"), end.file(Object::Region));
                    // SAFETY: the OVERLAPPED lives until the request ends.
                    let begun = requests.begin(file, "Deregister", |ov| unsafe { region.deregister(ov) });
                    self.pending.push(begun);
                }
                Item::Adapter => drop(end.adapter.take()),
                Item::Listener => {
                    drop(self.listener.take());
                    drop(self.spare.take());
                }
            }
            between(requests);
        }
        std::mem::take(&mut self.pending).into_iter().for_each(|begun| {
            requests.finish(begun);
        });
    }
}

/// Establishes both connections, step by step at the same time.
fn connect(connections: &mut [Connection; 2], requests: &mut Requests) {
    // SAFETY: the addresses have their lengths, and the OVERLAPPEDs live in `requests` until the requests end.
    let asked = connections.each_ref().map(|connection| unsafe {
        let [active, passive] = &connection.ends;
        let (raw, length) = connection.address.to_raw();
        assert_eq!(active.connector().bind(raw.as_ptr().cast(), length), Status::SUCCESS);
        let connector = passive.connector().as_ptr();
        let request = requests.begin(passive.file(Object::Listener), "GetConnectionRequest", |ov| {
            connection.listener().get_connection_request(connector, ov)
        });
        let (raw, length) = connection.at.to_raw();
        let connect = requests.begin(active.file(Object::Connector), "Connect", |ov| {
            let pair = active.queue_pair().as_ptr();
            active.connector().connect(pair, raw.as_ptr().cast(), length, 1, 1, ptr::null(), 0, ov)
        });
        (request, connect)
    });
    let accepted = [0, 1].map(|at| {
        let (request, connect) = asked[at];
        assert_eq!(requests.finish(request), Status::SUCCESS, "GetConnectionRequest");
        let passive = &connections[at].ends[1];
        // SAFETY: the OVERLAPPED lives until the request is finished.
        let accept = requests.begin(passive.file(Object::Connector), "Accept", |ov| unsafe {
            passive.connector().accept(passive.queue_pair().as_ptr(), 1, 1, ptr::null(), 0, ov)
        });
        (connect, accept)
    });
    let completed = [0, 1].map(|at| {
        let (connect, accept) = accepted[at];
        assert_eq!(requests.finish(connect), Status::SUCCESS, "Connect");
        let active = &connections[at].ends[0];
        // SAFETY: the OVERLAPPED lives until the request is finished.
        let complete = requests.begin(active.file(Object::Connector), "CompleteConnect", |ov| unsafe {
            active.connector().complete_connect(ov)
        });
        [complete, accept]
    });
    completed.as_flattened().iter().for_each(|&begun| assert_eq!(requests.finish(begun), Status::SUCCESS));
}
