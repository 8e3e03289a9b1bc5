//! Statuses that need a failure of the device.

use crate::shared_queue;
use double::{Side, complete_with, fail, raise_async, remove_device, take_port_down, turn};
use ndcompat::Status;
use ndcompat::types::{RegionFlags, RequestFlags};
use ndcompat::verbs::bindings::*;
use std::ptr::{null, null_mut};
use support::client::{Client, Ov, connect, connected, listen_on, open};
use support::com::{
    self, Com, CompletionQueue, Connector, Interface, Listener, MemoryRegion, MemoryWindow, QueuePair,
    SharedReceiveQueue, create,
};
use support::{address, shows};
use win32::object::RawHandle;

/// `ND_CQ_NOTIFY_ANY`
const ANY: u32 = 1;

fn status<I: Interface>(made: Result<Com<I>, Status>) -> Status {
    made.err().unwrap_or(Status::SUCCESS)
}

/// Calls each `Create` method of an adapter with valid arguments.
fn create_all(client: &Client, shared: &Com<SharedReceiveQueue>) -> Vec<(&'static str, Status)> {
    let (adapter, file, queue) = (&client.adapter, client.file, client.completion_queue.as_ptr());
    let (none, shared) = (null_mut(), shared.as_ptr());
    let mut handle = RawHandle::NULL;
    // SAFETY: `create` passes an id and a place for the object; the queues live, and the handle goes into a local.
    unsafe {
        // With the first interrupt, as there is a second try else.
        let queues =
            create::<CompletionQueue>(|iid, out| adapter.create_completion_queue(iid, file, 4, 0, 1, out));
        let regions = create::<MemoryRegion>(|iid, out| adapter.create_memory_region(iid, file, out));
        let windows = create::<MemoryWindow>(|iid, out| adapter.create_memory_window(iid, out));
        let shared_queues = create::<SharedReceiveQueue>(|iid, out| {
            adapter.create_shared_receive_queue(iid, file, 4, 1, 0, 0, 0, out)
        });
        let pairs = create::<QueuePair>(|iid, out| {
            adapter.create_queue_pair(iid, queue, queue, none, 1, 1, 1, 1, 0, out)
        });
        let sharing = create::<QueuePair>(|iid, out| {
            adapter.create_queue_pair_with_srq(iid, queue, queue, shared, none, 1, 1, 0, out)
        });
        let connectors = create::<Connector>(|iid, out| adapter.create_connector(iid, file, out));
        let listeners = create::<Listener>(|iid, out| adapter.create_listener(iid, file, out));
        vec![
            ("IND2Adapter::CreateOverlappedFile", adapter.create_overlapped_file(&mut handle)),
            ("IND2Adapter::CreateCompletionQueue", status(queues)),
            ("IND2Adapter::CreateMemoryRegion", status(regions)),
            ("IND2Adapter::CreateMemoryWindow", status(windows)),
            ("IND2Adapter::CreateSharedReceiveQueue", status(shared_queues)),
            ("IND2Adapter::CreateQueuePair", status(pairs)),
            ("IND2Adapter::CreateQueuePairWithSrq", status(sharing)),
            ("IND2Adapter::CreateConnector", status(connectors)),
            ("IND2Adapter::CreateListener", status(listeners)),
        ]
    }
}

#[test]
fn devices_without_room() {
    let _turn = turn();
    let client = Client::new();
    let shared = shared_queue(&client, 4, 0);
    let wanted = [
        ("IND2Adapter::CreateCompletionQueue", "ibv_create_cq"),
        ("IND2Adapter::CreateSharedReceiveQueue", "ibv_create_srq"),
        ("IND2Adapter::CreateQueuePair", "ibv_create_qp"),
        ("IND2Adapter::CreateQueuePairWithSrq", "ibv_create_qp"),
    ];
    for (method, function) in wanted {
        // Each method is called; the first that needs the function fails.
        let skipped = usize::from(method.ends_with("Srq"));
        for _ in 0..=skipped {
            fail(function, libc::ENOMEM);
        }
        let given = create_all(&client, &shared);
        let (_, given) = given.into_iter().find(|(name, _)| *name == method).unwrap();
        shows(method, given, Status::INSUFFICIENT_RESOURCES);
    }
    assert!(create_all(&client, &shared).iter().all(|(_, given)| *given == Status::SUCCESS));
}

#[test]
fn devices_without_shared_receive_queues() {
    let _turn = turn();
    let client = Client::new();
    let (shared, queue) = (shared_queue(&client, 4, 0), client.completion_queue.as_ptr());
    fail("ibv_create_qp", libc::EOPNOTSUPP);
    // SAFETY: `create` passes an id and a place for the object; both queues live.
    let made = create::<QueuePair>(|iid, out| unsafe {
        client.adapter.create_queue_pair_with_srq(
            iid,
            queue,
            queue,
            shared.as_ptr(),
            null_mut(),
            1,
            1,
            0,
            out,
        )
    });
    shows("IND2Adapter::CreateQueuePairWithSrq", status(made), Status::NOT_SUPPORTED);
}

#[test]
fn no_descriptors_left() {
    let _turn = turn();
    let adapter = open();
    let file = support::client::file(&adapter);
    // SAFETY: `create` passes an id and a place for the object; limits and handles are locals.
    unsafe {
        // The first object on a file opens the file's channel.
        fail("rdma_create_event_channel", libc::EMFILE);
        let made = create::<Connector>(|iid, out| adapter.create_connector(iid, file, out));
        shows("IND2Adapter::CreateConnector", status(made), Status::INSUFFICIENT_RESOURCES);
        fail("rdma_create_event_channel", libc::EMFILE);
        let made = create::<Listener>(|iid, out| adapter.create_listener(iid, file, out));
        shows("IND2Adapter::CreateListener", status(made), Status::INSUFFICIENT_RESOURCES);

        let mut limit: libc::rlimit = std::mem::zeroed();
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit), 0);
        let none = libc::rlimit { rlim_cur: 0, ..limit };
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &none), 0);
        let mut other = RawHandle::NULL;
        let made = adapter.create_overlapped_file(&mut other);
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &limit), 0);
        shows("IND2Adapter::CreateOverlappedFile", made, Status::NO_MEMORY);
        support::library::CloseHandle(file);
    }
}

#[test]
fn no_memory_left() {
    let _turn = turn();
    let adapter = open();
    // Resources that the first object on a file needs.
    let on_a_file = |function, errno, make: &dyn Fn(RawHandle) -> Status| {
        let file = support::client::file(&adapter);
        fail(function, errno);
        let given = make(file);
        assert_eq!(make(file), Status::SUCCESS, "the next attempt");
        // SAFETY: not used again.
        unsafe { support::library::CloseHandle(file) };
        given
    };
    // SAFETY: `create` passes an id and a place for the object; each queue that is passed lives.
    unsafe {
        let queue = |file| {
            status(create::<CompletionQueue>(|iid, out| {
                adapter.create_completion_queue(iid, file, 4, 0, 0, out)
            }))
        };
        let region =
            |file| status(create::<MemoryRegion>(|iid, out| adapter.create_memory_region(iid, file, out)));
        let shared = |file| {
            status(create::<SharedReceiveQueue>(|iid, out| {
                adapter.create_shared_receive_queue(iid, file, 4, 1, 0, 0, 0, out)
            }))
        };
        let connector =
            |file| status(create::<Connector>(|iid, out| adapter.create_connector(iid, file, out)));
        let listener = |file| status(create::<Listener>(|iid, out| adapter.create_listener(iid, file, out)));
        let (watch, channel) = ("epoll_ctl", "rdma_create_event_channel");
        let none = Status::NO_MEMORY;
        let method = "IND2Adapter::CreateCompletionQueue";
        shows(method, on_a_file(watch, libc::ENOMEM, &queue), none);
        shows(method, on_a_file("ibv_create_comp_channel", libc::ENOMEM, &queue), none);
        let method = "IND2Adapter::CreateMemoryRegion";
        shows(method, on_a_file(watch, libc::ENOMEM, &region), none);
        shows(method, on_a_file(watch, libc::ENOSPC, &region), Status::INSUFFICIENT_RESOURCES);
        shows("IND2Adapter::CreateSharedReceiveQueue", on_a_file(watch, libc::ENOMEM, &shared), none);
        shows("IND2Adapter::CreateConnector", on_a_file(channel, libc::ENOMEM, &connector), none);
        shows("IND2Adapter::CreateListener", on_a_file(channel, libc::ENOMEM, &listener), none);

        let provider = com::provider();
        let (raw, length) = address().to_raw();
        let mut id = 0;
        let mut resolve = || provider.resolve_address(raw.as_ptr().cast(), length, &mut id);
        fail("getifaddrs", libc::ENOMEM);
        shows("IND2Provider::ResolveAddress", resolve(), none);
        assert_eq!(resolve(), Status::SUCCESS);
        fail("getifaddrs", libc::ENOMEM);
        let opened = create::<com::Adapter>(|iid, out| provider.open_adapter(iid, id, out));
        shows("IND2Provider::OpenAdapter", status(opened), none);
    }
}

/// One test, because the kind of windows is chosen once in a process.
#[test]
fn windows_run_out() {
    let _turn = turn();
    // SAFETY: only Rust code reads the environment here, under std's lock.
    unsafe { std::env::set_var("NDCOMPAT_MEMORY_WINDOWS", "2") };
    let adapter = open();
    // SAFETY: only Rust code reads the environment, under std's lock.
    unsafe { std::env::remove_var("NDCOMPAT_MEMORY_WINDOWS") };
    // SAFETY: `create` passes an id and a place for the object.
    let window = || create::<MemoryWindow>(|iid, out| unsafe { adapter.create_memory_window(iid, out) });
    fail("alloc_mw", libc::ENOMEM);
    shows("IND2Adapter::CreateMemoryWindow", status(window()), Status::INSUFFICIENT_RESOURCES);
    assert_eq!(status(window()), Status::SUCCESS);
}

#[test]
fn registrations_that_fail() {
    let _turn = turn();
    let client = Client::new();
    let region: Com<MemoryRegion> =
        // SAFETY: `create` passes an id and a place for the object; the file is the client's.
        create(|iid, out| unsafe { client.adapter.create_memory_region(iid, client.file, out) }).unwrap();
    let method = "IND2MemoryRegion::Register";
    for (errno, wanted) in [
        (libc::ENOMEM, Status::INSUFFICIENT_RESOURCES),
        (libc::EFAULT, Status::ACCESS_VIOLATION),
        (libc::EIO, Status::DEVICE_REMOVED),
    ] {
        let mut ov = Ov::new();
        fail("ibv_reg_mr", errno);
        // SAFETY: the memory lives as long as the client.
        unsafe { region.register(client.memory.as_ptr().cast(), 64, RegionFlags::empty(), ov.ptr()) };
        shows(method, ov.wait(&region), wanted);
    }
}

#[test]
fn completion_queues_that_fail() {
    let _turn = turn();
    let method = "IND2CompletionQueue::Notify";
    let client = Client::new();
    let queue = &client.completion_queue;
    let (mut ov, mut later) = (Ov::new(), Ov::new());
    // SAFETY: the OVERLAPPEDs are waited for.
    unsafe {
        assert_eq!(queue.notify(ANY, ov.ptr()), Status::PENDING);
        raise_async(IBV_EVENT_CQ_ERR);
        shows(method, ov.wait(queue), Status::BUFFER_OVERFLOW);
        shows(method, queue.notify(ANY, later.ptr()), Status::BUFFER_OVERFLOW);
        let other = Client::new();
        let queue = &other.completion_queue;
        fail("req_notify_cq", libc::EIO);
        assert_eq!(queue.notify(ANY, ov.ptr()), Status::PENDING);
        shows(method, ov.wait(queue), Status::INTERNAL_ERROR);
        let third = Client::new();
        fail("ibv_resize_cq", libc::ENOMEM);
        let resized = third.completion_queue.resize(200);
        shows("IND2CompletionQueue::Resize", resized, Status::INSUFFICIENT_RESOURCES);
        assert_eq!(third.completion_queue.resize(200), Status::SUCCESS);
        assert_eq!(third.completion_queue.notify(0, ov.ptr()), Status::PENDING, "only errors");
        raise_async(IBV_EVENT_QP_FATAL);
        assert_eq!(third.completion_queue.get_overlapped_result(ov.ptr(), 0), Status::PENDING);
        third.completion_queue.cancel_overlapped_requests();
        assert_eq!(ov.wait(&third.completion_queue), Status::CANCELED);
    }
}

#[test]
fn shared_receive_queues_that_fail() {
    let _turn = turn();
    let client = Client::new();
    let queue = shared_queue(&client, 4, 2);
    let (method, sge) = ("IND2SharedReceiveQueue::Notify", client.sge(0, 8));
    let mut ov = Ov::new();
    // SAFETY: nothing is received; the OVERLAPPED is waited for.
    unsafe {
        for _ in 0..4 {
            assert_eq!(queue.receive(null_mut(), &sge, 1), Status::SUCCESS);
        }
        fail("ibv_modify_srq", libc::ENOMEM);
        shows(method, queue.notify(ov.ptr()), Status::INSUFFICIENT_RESOURCES);
        assert_eq!(ov.internal(), Ov::new().internal(), "a call that fails has not touched the OVERLAPPED");
        assert_eq!(queue.notify(ov.ptr()), Status::PENDING);
        raise_async(IBV_EVENT_SRQ_ERR);
        shows(method, ov.wait(&queue), Status::UNSUCCESSFUL);
        shows(method, queue.notify(ov.ptr()), Status::UNSUCCESSFUL);
        fail("ibv_modify_srq", libc::ENOMEM);
        shows("IND2SharedReceiveQueue::Modify", queue.modify(16, 0), Status::INSUFFICIENT_RESOURCES);
    }
}

/// Statuses of the device's completions, and what they become.
const RESULTS: [(ibv_wc_status, Status); 7] = [
    (IBV_WC_LOC_LEN_ERR, Status::DATA_OVERRUN),
    (IBV_WC_LOC_PROT_ERR, Status::ACCESS_VIOLATION),
    (IBV_WC_INV_EEC_STATE_ERR, Status::INVALID_DEVICE_REQUEST),
    (IBV_WC_GENERAL_ERR, Status::INTERNAL_ERROR),
    (IBV_WC_FATAL_ERR, Status::INTERNAL_ERROR),
    (IBV_WC_RETRY_EXC_ERR, Status::IO_TIMEOUT),
    (IBV_WC_REM_ABORT_ERR, Status::REMOTE_ERROR),
];

#[test]
fn results_of_every_kind() {
    let _turn = turn();
    for (device, wanted) in RESULTS {
        for method in ["Send", "Receive", "Read", "Write", "Bind", "Invalidate"] {
            let adapter = open();
            let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
            connect(&active, &passive);
            let window: Com<MemoryWindow> =
                // SAFETY: `create` passes an id and a place for the object.
                create(|iid, out| unsafe { adapter.create_memory_window(iid, out) }).unwrap();
            let (pair, sge) = (&active.queue_pair, active.sge(0, 8));
            let (none, to) = (null_mut(), passive.memory.as_ptr() as u64);
            // SAFETY: the memory lives; nothing else touches it meanwhile.
            let (given, context) = unsafe {
                let token = passive.region.get_remote_token();
                let bind = || {
                    let memory = active.memory.as_ptr().cast();
                    pair.bind(
                        none,
                        active.region.as_ptr(),
                        window.as_ptr(),
                        memory,
                        8,
                        RequestFlags::ALLOW_WRITE,
                    )
                };
                if method == "Invalidate" {
                    assert_eq!(bind(), Status::SUCCESS);
                    assert_eq!(active.result().status, Status::SUCCESS);
                }
                assert_eq!(passive.receive(5, 64), Status::SUCCESS);
                complete_with(if method == "Receive" { Side::Receive } else { Side::Initiator }, device);
                let posted = match method {
                    "Read" => pair.read(none, &sge, 1, to, token, RequestFlags::empty()),
                    "Write" => pair.write(none, &sge, 1, to, token, RequestFlags::empty()),
                    "Bind" => bind(),
                    "Invalidate" => pair.invalidate(none, window.as_ptr(), RequestFlags::empty()),
                    _ => active.send(0, 8, RequestFlags::empty()),
                };
                assert_eq!(posted, Status::SUCCESS);
                let end = if method == "Receive" { &passive } else { &active };
                let result = end.result();
                (result.status, result.request_context)
            };
            assert_eq!(context, if method == "Receive" { 5 } else { 0 });
            // A request that the peer's disconnect cuts short is cancelled, as all that are outstanding.
            let cut_short = device == IBV_WC_GENERAL_ERR && ["Receive", "Read"].contains(&method);
            shows(&format!("ND2_RESULT::{method}"), given, if cut_short { Status::CANCELED } else { wanted });
        }
    }
}

/// rxe reports a message that finds no way as it does a bad local token.
#[test]
fn a_message_that_finds_no_way_is_no_error_of_the_program() {
    let _turn = turn();
    let (active, passive) = connected();
    assert_eq!(passive.receive(5, 64), Status::SUCCESS);
    take_port_down();
    complete_with(Side::Initiator, IBV_WC_LOC_QP_OP_ERR);
    assert_eq!(active.send(1, 8, RequestFlags::empty()), Status::SUCCESS);
    let result = active.result();
    assert_eq!((result.status, result.request_context), (Status::IO_TIMEOUT, 1));
}

#[test]
fn devices_that_go() {
    let _turn = turn();
    let removed = Status::DEVICE_REMOVED;
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    let _connection = connect(&active, &passive);
    let (fresh, bound, asked, answered) =
        (Client::on(&adapter), Client::on(&adapter), Client::on(&adapter), Client::on(&adapter));
    let (listener, at) = listen_on(&adapter, fresh.file);
    let shared = shared_queue(&fresh, 4, 2);
    let region: Com<MemoryRegion> =
        // SAFETY: `create` passes an id and a place for the object; the file is the client's.
        create(|iid, out| unsafe { adapter.create_memory_region(iid, fresh.file, out) }).unwrap();
    let [mut notify, mut low, mut wait, mut call, mut request, mut spare] = [(); 6].map(|()| Ov::new());
    assert_eq!(bound.bind(), Status::SUCCESS);
    // SAFETY: all OVERLAPPEDs live until they are completed.
    unsafe {
        listener.get_connection_request(asked.connector.as_ptr(), request.ptr());
        assert_eq!(bound.connect(at, b"", &mut call), Status::PENDING);
        assert_eq!(request.wait(&listener), Status::SUCCESS);
        assert_eq!(listener.get_connection_request(answered.connector.as_ptr(), wait.ptr()), Status::PENDING);
        assert_eq!(fresh.completion_queue.notify(ANY, notify.ptr()), Status::PENDING);
        for _ in 0..4 {
            assert_eq!(shared.receive(null_mut(), &fresh.sge(0, 8), 1), Status::SUCCESS);
        }
        assert_eq!(shared.notify(low.ptr()), Status::PENDING);
        remove_device();

        shows("IND2CompletionQueue::Notify", notify.wait(&fresh.completion_queue), removed);
        shows("IND2SharedReceiveQueue::Notify", low.wait(&shared), removed);
        shows("IND2Listener::GetConnectionRequest", wait.wait(&listener), removed);
        shows("IND2Connector::Connect", call.wait(&bound.connector), removed);
        shows("IND2Overlapped::GetOverlappedResult", call.wait(&bound.connector), removed);
        for (method, given) in create_all(&fresh, &shared) {
            shows(method, given, removed);
        }
        let (mut group, mut affinity) = (0, 0);
        let told = fresh.completion_queue.get_notify_affinity(&mut group, &mut affinity);
        shows("IND2CompletionQueue::GetNotifyAffinity", told, removed);
        let told = shared.get_notify_affinity(&mut group, &mut affinity);
        shows("IND2SharedReceiveQueue::GetNotifyAffinity", told, removed);
        shows("IND2CompletionQueue::Resize", fresh.completion_queue.resize(8), removed);
        shows("IND2CompletionQueue::Notify", fresh.completion_queue.notify(ANY, spare.ptr()), removed);
        shows("IND2SharedReceiveQueue::Modify", shared.modify(2, 0), removed);
        shows("IND2SharedReceiveQueue::Notify", shared.notify(spare.ptr()), removed);
        let registered = region.register(fresh.memory.as_ptr().cast(), 8, RegionFlags::empty(), spare.ptr());
        shows("IND2MemoryRegion::Register", registered, removed);
        shows("IND2Connector::Bind", fresh.bind(), removed);
        shows("IND2Connector::Connect", fresh.connect(at, b"", &mut spare), removed);
        shows("IND2Connector::CompleteConnect", bound.connector.complete_connect(spare.ptr()), removed);
        shows("IND2Connector::Accept", asked.accept(b"", &mut spare), removed);
        shows("IND2Connector::Reject", asked.connector.reject(null(), 0), removed);
        shows("IND2Connector::Disconnect", active.disconnect(&mut spare), removed);
        let again = listener.get_connection_request(fresh.connector.as_ptr(), spare.ptr());
        shows("IND2Listener::GetConnectionRequest", again, removed);
    }
    drop(adapter);
    connected();
}
