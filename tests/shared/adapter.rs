//! Statuses of providers, of adapters, and of objects without a connection.

use crate::turn;
use ndcompat::Status;
use ndcompat::types::{AdapterFlags, AdapterInfo, RegionFlags, RequestFlags, Sge};
use std::ffi::c_void;
use std::net::SocketAddr;
use std::ptr::{null, null_mut};
use support::client::{BYTES, Client, EVERYTHING, Ov, connected, info, open};
use support::com::{
    self, Adapter, Com, CompletionQueue, Connector, Interface, Listener, MemoryRegion, MemoryWindow,
    QueuePair, SharedReceiveQueue, create,
};
use support::{address, shows};

/// `ND_CQ_NOTIFY_ANY`
const ANY: u32 = 1;

fn status<I: Interface>(made: Result<Com<I>, Status>) -> Status {
    made.err().unwrap_or(Status::SUCCESS)
}

#[test]
fn providers() {
    let _turn = turn();
    let provider = com::provider();
    let (raw, length) = address().to_raw();
    let (strange, strange_length) = ndcompat::SockAddr::from(SocketAddr::from(([192, 0, 2, 77], 0))).to_raw();
    let mut list = vec![0_u64; 512];
    let (mut room, mut id) = (0, 0);
    // SAFETY: the buffers have the lengths given.
    unsafe {
        let method = "IND2Provider::QueryAddressList";
        shows(method, provider.query_address_list(null_mut(), &mut room), Status::BUFFER_OVERFLOW);
        shows(method, provider.query_address_list(list.as_mut_ptr().cast(), &mut room), Status::SUCCESS);
        let method = "IND2Provider::ResolveAddress";
        let unknown = provider.resolve_address(strange.as_ptr().cast(), strange_length, &mut id);
        shows(method, unknown, Status::INVALID_ADDRESS);
        shows(method, provider.resolve_address(raw.as_ptr().cast(), length, &mut id), Status::SUCCESS);
        let method = "IND2Provider::OpenAdapter";
        let opened = |id| status(create::<Adapter>(|iid, out| provider.open_adapter(iid, id, out)));
        shows(method, opened(id), Status::SUCCESS);
        shows(method, opened(!id), Status::INVALID_PARAMETER);
    }
}

#[test]
fn adapters() {
    let _turn = turn();
    let adapter = open();
    let mut answer = AdapterInfo::default();
    let mut list = vec![0_u64; 512];
    let (mut short, mut room) = (1, 0);
    let mut file = win32::object::RawHandle::NULL;
    // SAFETY: the buffers have the lengths given.
    unsafe {
        let method = "IND2Adapter::Query";
        shows(method, adapter.query(&mut answer, &mut short), Status::BUFFER_OVERFLOW);
        shows(method, adapter.query(&mut answer, &mut short), Status::SUCCESS);
        let method = "IND2Adapter::QueryAddressList";
        shows(method, adapter.query_address_list(null_mut(), &mut room), Status::BUFFER_OVERFLOW);
        shows(method, adapter.query_address_list(list.as_mut_ptr().cast(), &mut room), Status::SUCCESS);
        let created = adapter.create_overlapped_file(&mut file);
        shows("IND2Adapter::CreateOverlappedFile", created, Status::SUCCESS);
        support::library::CloseHandle(file);
    }
}

#[test]
fn objects_and_their_limits() {
    let _turn = turn();
    let client = Client::new();
    let (adapter, file, limits) = (&client.adapter, client.file, info(&client.adapter));
    // SAFETY: `create` passes an id and a place for the object; queues that are passed live, and what is null is refused.
    unsafe {
        let queue = |depth| {
            create::<CompletionQueue>(|iid, out| adapter.create_completion_queue(iid, file, depth, 0, 0, out))
        };
        let method = "IND2Adapter::CreateCompletionQueue";
        shows(method, status(queue(1)), Status::SUCCESS);
        shows(method, status(queue(limits.max_completion_queue_depth + 1)), Status::INVALID_PARAMETER_3);

        let made = create::<MemoryRegion>(|iid, out| adapter.create_memory_region(iid, file, out));
        shows("IND2Adapter::CreateMemoryRegion", status(made), Status::SUCCESS);
        let made = create::<MemoryWindow>(|iid, out| adapter.create_memory_window(iid, out));
        shows("IND2Adapter::CreateMemoryWindow", status(made), Status::SUCCESS);
        let made = create::<Connector>(|iid, out| adapter.create_connector(iid, file, out));
        shows("IND2Adapter::CreateConnector", status(made), Status::SUCCESS);
        let made = create::<Listener>(|iid, out| adapter.create_listener(iid, file, out));
        shows("IND2Adapter::CreateListener", status(made), Status::SUCCESS);

        let shared = |depth, sge| {
            status(create::<SharedReceiveQueue>(|iid, out| {
                adapter.create_shared_receive_queue(iid, file, depth, sge, 0, 0, 0, out)
            }))
        };
        let method = "IND2Adapter::CreateSharedReceiveQueue";
        shows(method, shared(4, 1), Status::SUCCESS);
        let depth = limits.max_shared_receive_queue_depth + 1;
        shows(method, shared(depth, 1), Status::INVALID_PARAMETER_3);
        shows(method, shared(4, limits.max_receive_sge + 1), Status::INVALID_PARAMETER_4);
    }
}

#[test]
fn queue_pairs_and_their_limits() {
    let _turn = turn();
    let client = Client::new();
    let (adapter, limits) = (&client.adapter, info(&client.adapter));
    let (queue, wrong) = (client.completion_queue.as_ptr(), client.connector.as_ptr());
    let method = "IND2Adapter::CreateQueuePair";
    let inline = limits.max_inline_data_size.max(limits.inline_request_threshold) + 1;
    let made = |receive, initiator, n: [u32; 5]| {
        // SAFETY: interface pointers.
        status(create::<QueuePair>(|iid, out| unsafe {
            adapter.create_queue_pair(iid, receive, initiator, null_mut(), n[0], n[1], n[2], n[3], n[4], out)
        }))
    };
    shows(method, made(queue, queue, [1, 1, 1, 1, 0]), Status::SUCCESS);
    shows(method, made(wrong, queue, [1, 1, 1, 1, 0]), Status::INVALID_PARAMETER_2);
    shows(method, made(queue, wrong, [1, 1, 1, 1, 0]), Status::INVALID_PARAMETER_3);
    let receives = limits.max_receive_queue_depth + 1;
    shows(method, made(queue, queue, [receives, 1, 1, 1, 0]), Status::INVALID_PARAMETER_5);
    let requests = limits.max_initiator_queue_depth + 1;
    shows(method, made(queue, queue, [1, requests, 1, 1, 0]), Status::INVALID_PARAMETER_6);
    let receive_sge = limits.max_receive_sge + 1;
    shows(method, made(queue, queue, [1, 1, receive_sge, 1, 0]), Status::INVALID_PARAMETER_7);
    let sge = limits.max_initiator_sge + 1;
    shows(method, made(queue, queue, [1, 1, 1, sge, 0]), Status::INVALID_PARAMETER_8);
    shows(method, made(queue, queue, [1, 1, 1, 1, inline]), Status::INVALID_PARAMETER_9);

    let shared: Com<SharedReceiveQueue> = shared_queue(&client, 0);
    let shared = shared.as_ptr();
    let method = "IND2Adapter::CreateQueuePairWithSrq";
    let made = |receive, initiator, shared, n: [u32; 3]| {
        // SAFETY: interface pointers.
        status(create::<QueuePair>(|iid, out| unsafe {
            adapter.create_queue_pair_with_srq(
                iid,
                receive,
                initiator,
                shared,
                null_mut(),
                n[0],
                n[1],
                n[2],
                out,
            )
        }))
    };
    shows(method, made(queue, queue, shared, [1, 1, 0]), Status::SUCCESS);
    shows(method, made(wrong, queue, shared, [1, 1, 0]), Status::INVALID_PARAMETER_2);
    shows(method, made(queue, wrong, shared, [1, 1, 0]), Status::INVALID_PARAMETER_3);
    shows(method, made(queue, queue, wrong, [1, 1, 0]), Status::INVALID_PARAMETER_4);
    shows(method, made(queue, queue, shared, [requests, 1, 0]), Status::INVALID_PARAMETER_6);
    shows(method, made(queue, queue, shared, [1, sge, 0]), Status::INVALID_PARAMETER_7);
    shows(method, made(queue, queue, shared, [1, 1, inline]), Status::INVALID_PARAMETER_8);
}

fn shared_queue(client: &Client, threshold: u32) -> Com<SharedReceiveQueue> {
    // SAFETY: `create` passes an id and a place for the object; the file is the client's.
    create(|iid, out| unsafe {
        client.adapter.create_shared_receive_queue(iid, client.file, 4, 1, threshold, 0, 0, out)
    })
    .unwrap()
}

#[test]
fn completion_queues() {
    let _turn = turn();
    let (active, passive) = connected();
    let queue = &passive.completion_queue;
    let limits = info(&passive.adapter);
    let (mut group, mut affinity) = (0, 0);
    let mut ov = Ov::new();
    // SAFETY: the OVERLAPPED is waited for, and results go to locals, or to null, which is refused.
    unsafe {
        let method = "IND2CompletionQueue::GetNotifyAffinity";
        shows(method, queue.get_notify_affinity(&mut group, &mut affinity), Status::SUCCESS);
        shows(method, queue.get_notify_affinity(null_mut(), &mut affinity), Status::INVALID_PARAMETER);

        let method = "IND2CompletionQueue::Notify";
        shows(method, queue.notify(ANY, ov.ptr()), Status::PENDING);
        assert_eq!(passive.receive(1, 64), Status::SUCCESS);
        assert_eq!(active.send(2, 64, RequestFlags::empty()), Status::SUCCESS);
        shows(method, ov.wait(queue), Status::SUCCESS);
        assert_eq!(passive.result().status, Status::SUCCESS);
        assert_eq!(queue.notify(ANY, ov.ptr()), Status::PENDING);
        let overlapped = "IND2Overlapped::GetOverlappedResult";
        shows(overlapped, queue.get_overlapped_result(ov.ptr(), 0), Status::PENDING);
        let cancel = "IND2Overlapped::CancelOverlappedRequests";
        shows(cancel, queue.cancel_overlapped_requests(), Status::SUCCESS);
        shows(overlapped, queue.get_overlapped_result(ov.ptr(), 1), Status::CANCELED);
        assert_eq!(queue.notify(ANY, ov.ptr()), Status::PENDING);
        let released: Com<CompletionQueue> =
            create(|iid, out| passive.adapter.create_completion_queue(iid, passive.file, 1, 0, 0, out))
                .unwrap();
        let mut late = Ov::new();
        assert_eq!(released.notify(ANY, late.ptr()), Status::PENDING);
        drop(released);
        shows(method, late.wait(queue), Status::CANCELED);

        let method = "IND2CompletionQueue::Resize";
        if !limits.adapter_flags.contains(AdapterFlags::CQ_RESIZE) {
            return shows(method, queue.resize(100), Status::NOT_SUPPORTED);
        }
        shows(method, queue.resize(100), Status::SUCCESS);
        shows(method, queue.resize(limits.max_completion_queue_depth + 1), Status::INVALID_PARAMETER);
        for context in 0..4 {
            assert_eq!(passive.receive(context, 64), Status::SUCCESS);
            assert_eq!(active.send(context, 64, RequestFlags::empty()), Status::SUCCESS);
            assert_eq!(active.result().status, Status::SUCCESS);
        }
        // The passive side's results may take a moment to arrive.
        ov.wait(queue);
        while passive.completion_queue.resize(2) == Status::SUCCESS {
            assert_eq!(passive.completion_queue.resize(100), Status::SUCCESS);
        }
        shows(method, queue.resize(2), Status::BUFFER_OVERFLOW);
    }
}

#[test]
fn shared_receive_queues() {
    let _turn = turn();
    let client = Client::new();
    let limits = info(&client.adapter);
    let queue = shared_queue(&client, 2);
    let (mut group, mut affinity) = (0, 0);
    let sge = |length| Sge { length, ..client.sge(0, 1) };
    let one = [sge(64)];
    let two = [sge(1), sge(1)];
    let long = [sge(limits.max_transfer_length), sge(1)];
    let wide: Com<SharedReceiveQueue> =
        // SAFETY: `create` passes an id and a place for the object; the file is the client's.
        create(|iid, out| unsafe {
            client.adapter.create_shared_receive_queue(iid, client.file, 4, 2, 0, 0, 0, out)
        })
        .unwrap();
    let (mut ov, mut low) = (Ov::new(), Ov::new());
    // SAFETY: nothing is received, so no memory is touched; the OVERLAPPEDs are waited for.
    unsafe {
        let method = "IND2SharedReceiveQueue::GetNotifyAffinity";
        shows(method, queue.get_notify_affinity(&mut group, &mut affinity), Status::SUCCESS);
        shows(method, queue.get_notify_affinity(&mut group, null_mut()), Status::INVALID_PARAMETER);

        let method = "IND2SharedReceiveQueue::Receive";
        shows(method, wide.receive(null_mut(), long.as_ptr(), 2), Status::BUFFER_OVERFLOW);
        shows(method, queue.receive(null_mut(), two.as_ptr(), 2), Status::DATA_OVERRUN);
        for _ in 0..4 {
            shows(method, queue.receive(null_mut(), one.as_ptr(), 1), Status::SUCCESS);
        }
        shows(method, queue.receive(null_mut(), one.as_ptr(), 1), Status::NO_MORE_ENTRIES);

        let method = "IND2SharedReceiveQueue::Notify";
        shows(method, queue.notify(ov.ptr()), Status::PENDING);
        assert_eq!(queue.cancel_overlapped_requests(), Status::SUCCESS);
        shows(method, ov.wait(&queue), Status::CANCELED);
        assert_eq!(queue.notify(low.ptr()), Status::PENDING);

        let method = "IND2SharedReceiveQueue::Modify";
        let depth = limits.max_shared_receive_queue_depth + 1;
        shows(method, queue.modify(depth, 0), Status::INVALID_PARAMETER);
        shows(method, queue.modify(3, 0), Status::BUFFER_OVERFLOW);
        shows(method, queue.modify(8, 5), Status::SUCCESS);
        shows("IND2SharedReceiveQueue::Notify", low.wait(&queue), Status::SUCCESS);
    }
}

#[test]
fn memory_regions() {
    let _turn = turn();
    let (client, _peer) = connected();
    let limits = info(&client.adapter);
    let region: Com<MemoryRegion> =
        // SAFETY: `create` passes an id and a place for the object; the file is the client's.
        create(|iid, out| unsafe { client.adapter.create_memory_region(iid, client.file, out) }).unwrap();
    let window: Com<MemoryWindow> =
        // SAFETY: the object lives, and the results have room.
        create(|iid, out| unsafe { client.adapter.create_memory_window(iid, out) }).unwrap();
    let mut ov = Ov::new();
    let memory: *const c_void = client.memory.as_ptr().cast();
    // SAFETY: the memory lives; what is registered wrongly is not accessed.
    unsafe {
        let method = "IND2MemoryRegion::Register";
        shows(method, region.register(null(), 0, RegionFlags::empty(), ov.ptr()), Status::INVALID_PARAMETER);
        shows(
            method,
            region.register(memory, 0, RegionFlags::empty(), ov.ptr()),
            Status::INVALID_BUFFER_SIZE,
        );
        let size = limits.max_registration_size + 1;
        shows(
            method,
            region.register(memory, size, RegionFlags::empty(), ov.ptr()),
            Status::INVALID_PARAMETER,
        );
        shows(method, region.register(memory, BYTES, EVERYTHING, ov.ptr()), Status::PENDING);
        shows(method, ov.wait(&region), Status::SUCCESS);
        shows("IND2Overlapped::GetOverlappedResult", ov.wait(&region), Status::SUCCESS);

        let method = "IND2MemoryRegion::Deregister";
        let pair = &client.queue_pair;
        let bound =
            pair.bind(null_mut(), region.as_ptr(), window.as_ptr(), memory, 64, RequestFlags::ALLOW_READ);
        assert_eq!(bound, Status::SUCCESS);
        assert_eq!(client.result().status, Status::SUCCESS);
        shows(method, region.deregister(ov.ptr()), Status::DEVICE_BUSY);
        assert_eq!(pair.invalidate(null_mut(), window.as_ptr(), RequestFlags::empty()), Status::SUCCESS);
        shows(method, region.deregister(ov.ptr()), Status::PENDING);
        shows(method, ov.wait(&region), Status::SUCCESS);
    }
}
