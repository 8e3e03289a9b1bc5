//! Invalid sizes, flags, addresses and call orders: each call returns the documented status, and the objects stay usable.

use ndcompat::SockAddr;
use ndcompat::Status;
use ndcompat::types::{RegionFlags, RequestFlags, Sge};
use std::ffi::c_void;
use std::net::SocketAddr;
use std::ptr::{null, null_mut};
use support::client::{BYTES, Client, DEPTH, Ov, connect, connected, info, listen_on, messages_pass, open};
use support::com::{
    self, Com, CompletionQueue, Connector, Listener, MemoryRegion, MemoryWindow, QueuePair,
    SharedReceiveQueue, create,
};
use support::{address, address6, shows};

#[test]
fn sizes_at_and_past_the_limits() {
    let client = Client::new();
    let (adapter, file, queue) = (&client.adapter, client.file, client.completion_queue.as_ptr());
    let info = info(adapter);
    let completion_queue = |depth| {
        // SAFETY: `create` passes an id and a place for the object; the rest are numbers and a handle.
        create::<CompletionQueue>(|iid, out| unsafe {
            adapter.create_completion_queue(iid, file, depth, 0, 0, out)
        })
        .err()
    };
    let most = info.max_completion_queue_depth;
    for (depth, status) in [(0, Some(Status::INVALID_PARAMETER_3)), (1, None), (most, None)] {
        assert_eq!(completion_queue(depth), status, "{depth}");
    }
    for depth in [most + 1, u32::MAX] {
        assert_eq!(completion_queue(depth), Some(Status::INVALID_PARAMETER_3), "{depth}");
    }
    let limits = [
        (info.max_receive_queue_depth, Status::INVALID_PARAMETER_5, None),
        (info.max_initiator_queue_depth, Status::INVALID_PARAMETER_6, Some(Status::INVALID_PARAMETER_6)),
        (info.max_receive_sge, Status::INVALID_PARAMETER_7, None),
        (info.max_initiator_sge, Status::INVALID_PARAMETER_8, Some(Status::INVALID_PARAMETER_7)),
        (info.max_inline_data_size, Status::INVALID_PARAMETER_9, Some(Status::INVALID_PARAMETER_8)),
    ];
    // SAFETY: `create` passes an id and a place for the object; the rest are numbers and a handle.
    let shared: Com<SharedReceiveQueue> = unsafe {
        create(|iid, out| adapter.create_shared_receive_queue(iid, file, 4, 1, 0, 0, 0, out)).unwrap()
    };
    for (at, (limit, alone, with_srq)) in limits.into_iter().enumerate() {
        for (size, fits) in [(limit, true), (limit + 1, false), (u32::MAX, false)] {
            let mut sizes = [1; 5];
            sizes[at] = size;
            let [receive_depth, depth, receive_sge, sge, inline] = sizes;
            // SAFETY: `create` passes an id and a place for the object; the queue is the client's, which lives.
            let pair = create::<QueuePair>(|iid, out| unsafe {
                adapter.create_queue_pair(
                    iid,
                    queue,
                    queue,
                    null_mut(),
                    receive_depth,
                    depth,
                    receive_sge,
                    sge,
                    inline,
                    out,
                )
            });
            assert_eq!(pair.err(), (!fits).then_some(alone), "{size} at {at}");
            let Some(with_srq) = with_srq else { continue };
            // SAFETY: `create` passes an id and a place for the object; both queues live.
            let pair = create::<QueuePair>(|iid, out| unsafe {
                let shared = shared.as_ptr();
                adapter.create_queue_pair_with_srq(
                    iid,
                    queue,
                    queue,
                    shared,
                    null_mut(),
                    depth,
                    sge,
                    inline,
                    out,
                )
            });
            assert_eq!(pair.err(), (!fits).then_some(with_srq), "{size} at {at}, shared");
        }
    }
}

#[test]
fn queues_of_no_depth_take_nothing() {
    let client = Client::new();
    let queue = client.completion_queue.as_ptr();
    // SAFETY: `create` passes an id and a place for the object; the queue is the client's, which lives, and a list of no SGEs
    // may be null.
    unsafe {
        let pair: Com<QueuePair> = create(|iid, out| {
            client.adapter.create_queue_pair(iid, queue, queue, null_mut(), 0, 0, 0, 0, 0, out)
        })
        .unwrap();
        assert_eq!(pair.receive(null_mut(), null(), 0), Status::NO_MORE_ENTRIES);
    }
}

#[test]
fn registrations() {
    let client = Client::new();
    let adapter = &client.adapter;
    let mut ov = Ov::new();
    let memory = client.memory.as_ptr().cast();
    // SAFETY: what is registered lives, or is refused.
    unsafe {
        let region: Com<MemoryRegion> =
            create(|iid, out| adapter.create_memory_region(iid, client.file, out)).unwrap();
        assert_eq!(region.deregister(ov.ptr()), Status::INVALID_DEVICE_STATE);
        assert_eq!(region.register(null(), 4096, RegionFlags::empty(), ov.ptr()), Status::INVALID_PARAMETER);
        assert_eq!(region.register(memory, 0, RegionFlags::empty(), ov.ptr()), Status::INVALID_BUFFER_SIZE);
        let most = info(adapter).max_registration_size;
        assert_eq!(
            region.register(memory, most + 1, RegionFlags::empty(), ov.ptr()),
            Status::INVALID_PARAMETER
        );
        assert_eq!((region.get_local_token(), region.get_remote_token()), (0, 0));
        // What only the device can detect is reported by the completion.
        let unmapped = 0x10_0000_usize as *const c_void;
        assert_eq!(
            region.register(unmapped, 4096, RegionFlags::ALLOW_LOCAL_WRITE, ov.ptr()),
            Status::PENDING
        );
        shows("IND2MemoryRegion::Register", ov.wait(&region), Status::ACCESS_VIOLATION);
        assert_eq!(region.register(memory, BYTES, RegionFlags::ALLOW_LOCAL_WRITE, ov.ptr()), Status::PENDING);
        assert_eq!(ov.wait(&region), Status::SUCCESS, "usable after all that");
        assert_eq!(
            region.register(memory, BYTES, RegionFlags::ALLOW_LOCAL_WRITE, ov.ptr()),
            Status::INVALID_DEVICE_STATE
        );
        assert_ne!(region.get_local_token(), 0);
        assert_eq!(region.deregister(ov.ptr()), Status::PENDING);
        assert_eq!(
            region.register(memory, 1, RegionFlags::empty(), ov.ptr()),
            Status::PENDING,
            "one byte, again"
        );
        assert_eq!(ov.wait(&region), Status::SUCCESS);
        assert_eq!(region.deregister(ov.ptr()), Status::PENDING);
    }
}

#[test]
fn requests() {
    let (active, passive) = connected();
    let info = info(&active.adapter);
    let pair = &active.queue_pair;
    let none = null_mut();
    let list = [active.sge(0, 8); 17];
    let token_of = |client: &Client| {
        // SAFETY: no arguments.
        unsafe { client.region.get_remote_token() }
    };
    let (token, at) = (token_of(&passive), passive.memory.as_ptr() as u64);
    // SAFETY: all are refused.
    unsafe {
        let list = list.as_ptr();
        assert_eq!(pair.send(none, null(), 1, RequestFlags::empty()), Status::INVALID_PARAMETER_2);
        assert_eq!(pair.receive(none, null(), 1), Status::INVALID_PARAMETER_2);
        assert_eq!(
            pair.write(none, null(), 1, at, token, RequestFlags::empty()),
            Status::INVALID_PARAMETER_2
        );
        assert_eq!(pair.read(none, null(), 1, at, token, RequestFlags::empty()), Status::INVALID_PARAMETER_2);
        for flags in [0x8, 0x10, 0x40, 0x8000_0000].map(RequestFlags::from_bits_retain) {
            assert_eq!(pair.send(none, list, 1, flags), Status::INVALID_PARAMETER_4, "{flags:?}");
            assert_eq!(pair.write(none, list, 1, at, token, flags), Status::INVALID_PARAMETER_6, "{flags:?}");
            assert_eq!(pair.read(none, list, 1, at, token, flags), Status::INVALID_PARAMETER_6, "{flags:?}");
        }
        assert_eq!(pair.send(none, list, 17, RequestFlags::empty()), Status::DATA_OVERRUN);
        assert_eq!(pair.receive(none, list, u32::MAX), Status::DATA_OVERRUN);
        assert_eq!(pair.write(none, list, 17, at, token, RequestFlags::empty()), Status::DATA_OVERRUN);
        assert_eq!(pair.read(none, list, 17, at, token, RequestFlags::empty()), Status::DATA_OVERRUN);
        let half = info.max_transfer_length / 2 + 1;
        let too_much = [Sge { length: half, ..*list }, Sge { length: half, ..*list }];
        let too_much = too_much.as_ptr();
        assert_eq!(pair.send(none, too_much, 2, RequestFlags::empty()), Status::BUFFER_OVERFLOW);
        assert_eq!(pair.receive(none, too_much, 2), Status::BUFFER_OVERFLOW);
        assert_eq!(pair.write(none, too_much, 2, at, token, RequestFlags::empty()), Status::BUFFER_OVERFLOW);
        assert_eq!(pair.read(none, too_much, 2, at, token, RequestFlags::empty()), Status::BUFFER_OVERFLOW);
        let mut ov = Ov::new();
        assert_eq!(active.completion_queue.notify(3, ov.ptr()), Status::INVALID_PARAMETER_1);
        let window: Com<MemoryWindow> =
            create(|iid, out| active.adapter.create_memory_window(iid, out)).unwrap();
        let (region, window) = (active.region.as_ptr(), window.as_ptr());
        let memory = active.memory.as_ptr();
        let bind =
            |start: *const u8, length, flags| pair.bind(none, region, window, start.cast(), length, flags);
        assert_eq!(
            bind(memory, 1, RequestFlags::SOLICIT | RequestFlags::ALLOW_READ),
            Status::INVALID_PARAMETER_6
        );
        for (start, length) in
            [(memory, BYTES + 1), (memory.wrapping_sub(1), 2), (memory, usize::MAX), (memory, 0)]
        {
            assert_eq!(
                bind(start, length, RequestFlags::ALLOW_READ | RequestFlags::ALLOW_WRITE),
                Status::ACCESS_VIOLATION,
                "{length} bytes"
            );
        }
        assert_eq!(
            pair.invalidate(none, window, RequestFlags::empty()),
            Status::INVALID_DEVICE_REQUEST,
            "not bound"
        );
        assert_eq!(pair.invalidate(none, window, RequestFlags::ALLOW_READ), Status::INVALID_PARAMETER_3);
    }
    for context in 0..DEPTH as usize {
        assert_eq!(passive.receive(context, 8), Status::SUCCESS, "nothing refused took a place");
    }
    assert_eq!(passive.receive(99, 8), Status::NO_MORE_ENTRIES);
    assert_eq!(active.send(72, 8, RequestFlags::empty()), Status::SUCCESS);
    assert_eq!((active.result().request_context, passive.result().request_context), (72, 0));
}

/// Invalid addresses, and why they are invalid.
fn bad_addresses() -> Vec<(Vec<u8>, u32, &'static str)> {
    let bytes = |address: SockAddr| {
        let (raw, length) = address.to_raw();
        // SAFETY: the structure has that many bytes.
        unsafe { std::slice::from_raw_parts(raw.as_ptr().cast::<u8>(), length as usize) }.to_vec()
    };
    let (v4, v6) = (bytes(address()), bytes(address6()));
    let family = |family: u16| [&family.to_ne_bytes()[..], &v4[2..]].concat();
    vec![
        (v4.clone(), 0, "no length"),
        (v4.clone(), 1, "not even a family"),
        (v4.clone(), 15, "short"),
        (v6.clone(), 16, "as short as an IPv4 one"),
        (v6, 27, "short by the last byte"),
        (family(0), 16, "no family"),
        (family(1), 16, "AF_UNIX"),
        (family(23), 16, "Windows' own number of AF_INET6"),
    ]
}

#[test]
fn addresses_of_wrong_family_or_length() {
    let client = Client::new();
    let provider = com::provider();
    let refused = Status::INVALID_ADDRESS;
    let (listener, at) = listen_on(&client.adapter, client.file);
    // SAFETY: the lengths are no more than the bytes there are.
    unsafe {
        let fresh: Com<Listener> =
            create(|iid, out| client.adapter.create_listener(iid, client.file, out)).unwrap();
        assert_eq!(client.connector.bind(null(), 16), refused);
        assert_eq!(fresh.bind(null(), 16), refused);
        for (bytes, length, why) in bad_addresses() {
            let (bytes, mut id) = (bytes.as_ptr().cast(), 0);
            assert_eq!(client.connector.bind(bytes, length), refused, "{why}");
            assert_eq!(fresh.bind(bytes, length), refused, "{why}");
            assert_eq!(provider.resolve_address(bytes, length, &mut id), refused, "{why}");
        }
        let elsewhere = SockAddr::from("192.0.2.77:0".parse::<SocketAddr>().unwrap());
        let (raw, length) = elsewhere.to_raw();
        assert_eq!(client.connector.bind(raw.as_ptr().cast(), length), refused, "not ours");
        assert_eq!(fresh.bind(raw.as_ptr().cast(), length), refused, "not ours");
        // A longer structure is accepted, such as a SOCKADDR_STORAGE.
        let (raw, _) = address().to_raw();
        let mut storage = [0_u8; 128];
        storage[..16].copy_from_slice(std::slice::from_raw_parts(raw.as_ptr().cast(), 16));
        assert_eq!(client.connector.bind(storage.as_ptr().cast(), 128), Status::SUCCESS);
        assert_eq!(fresh.bind(storage.as_ptr().cast(), 128), Status::SUCCESS);
        let mut ov = Ov::new();
        let pair = client.queue_pair.as_ptr();
        assert_eq!(client.connector.connect(pair, null(), 16, 0, 0, null(), 0, ov.ptr()), refused);
        for (bytes, length, why) in bad_addresses() {
            let to = bytes.as_ptr().cast();
            let connect = client.connector.connect(pair, to, length, 0, 0, null(), 0, ov.ptr());
            assert_eq!(connect, refused, "{why}");
        }
        // The connector still connects.
        let peer = Client::on(&client.adapter);
        let (mut request, mut accept) = (Ov::new(), Ov::new());
        listener.get_connection_request(peer.connector.as_ptr(), request.ptr());
        assert_eq!(client.connect(at, b"", &mut ov), Status::PENDING);
        assert_eq!(request.wait(&listener), Status::SUCCESS);
        assert_eq!(peer.accept(b"", &mut accept), Status::PENDING);
        assert_eq!(ov.wait(&client.connector), Status::SUCCESS);
    }
}

#[test]
fn private_data_at_and_past_the_limit() {
    let adapter = open();
    let info = info(&adapter);
    let (caller, callee) = (info.max_caller_data as usize, info.max_callee_data as usize);
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    let (listener, at) = listen_on(&adapter, passive.file);
    let (mut request, mut connect, mut accept) = (Ov::new(), Ov::new(), Ov::new());
    let data = [0x77; 1024];
    assert_eq!(active.bind(), Status::SUCCESS);
    // SAFETY: all requests are waited for.
    unsafe {
        listener.get_connection_request(passive.connector.as_ptr(), request.ptr());
        assert_eq!(active.connect(at, &data[..caller + 1], &mut connect), Status::INVALID_BUFFER_SIZE);
        let (raw, length) = at.to_raw();
        let pair = active.queue_pair.as_ptr();
        let nothing =
            active.connector.connect(pair, raw.as_ptr().cast(), length, 0, 0, null(), 1, connect.ptr());
        assert_eq!(nothing, Status::ACCESS_VIOLATION);
        assert_eq!(active.connect(at, &data[..caller], &mut connect), Status::PENDING, "it stays usable");
        assert_eq!(request.wait(&listener), Status::SUCCESS);
        assert_eq!(passive.accept(&data[..callee + 1], &mut accept), Status::INVALID_BUFFER_SIZE);
        let (pair, connector) = (passive.queue_pair.as_ptr(), &passive.connector);
        assert_eq!(connector.accept(pair, 0, 0, null(), 1, accept.ptr()), Status::ACCESS_VIOLATION);
        assert_eq!(connector.reject(null(), 1), Status::ACCESS_VIOLATION);
        let reject = connector.reject(data.as_ptr().cast(), callee as u32 + 1);
        assert_eq!(reject, Status::INVALID_BUFFER_SIZE);
        assert_eq!(passive.accept(&data[..callee], &mut accept), Status::PENDING);
        assert_eq!(connect.wait(&active.connector), Status::SUCCESS);
        let (mut buffer, mut length) = ([0_u8; 1024], 1024);
        let status = active.connector.get_private_data(buffer.as_mut_ptr().cast(), &mut length);
        assert_eq!(status, Status::SUCCESS);
        assert!(length as usize >= callee && buffer[..callee] == data[..callee]);
    }
}

#[test]
fn short_buffers_for_addresses() {
    let (active, passive) = connected();
    // SAFETY: the buffer is larger than what is said.
    unsafe {
        for of_peer in [false, true] {
            let get = |buffer: *mut c_void, length: &mut u32| {
                if of_peer {
                    active.connector.get_peer_address(buffer, length)
                } else {
                    active.connector.get_local_address(buffer, length)
                }
            };
            let mut buffer = [0xEE_u8; 32];
            for mut length in [0, 15] {
                assert_eq!(get(buffer.as_mut_ptr().cast(), &mut length), Status::BUFFER_OVERFLOW);
                assert_eq!((length, buffer), (16, [0xEE; 32]));
            }
            let mut length = 0;
            assert_eq!(get(null_mut(), &mut length), Status::BUFFER_OVERFLOW);
            assert_eq!(length, 16);
            assert_eq!(get(buffer.as_mut_ptr().cast(), &mut length), Status::SUCCESS);
            assert_eq!((length, buffer[16..] == [0xEE; 16]), (16, true));
        }
        let mut needed = 0;
        assert_eq!(active.adapter.query_address_list(null_mut(), &mut needed), Status::BUFFER_OVERFLOW);
        let mut list = vec![0xEEEE_EEEE_u64; needed as usize / 8 + 1];
        let mut short = needed - 1;
        let status = active.adapter.query_address_list(list.as_mut_ptr().cast(), &mut short);
        assert_eq!((status, short), (Status::BUFFER_OVERFLOW, needed));
        assert!(list.iter().all(|&word| word == 0xEEEE_EEEE), "not touched");
        let status = active.adapter.query_address_list(list.as_mut_ptr().cast(), &mut needed);
        assert_eq!(status, Status::SUCCESS);
        assert!(list[0] as u32 >= 2, "IPv4 and IPv6");
    }
    messages_pass(&active, &passive);
}

#[test]
fn calls_out_of_turn() {
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    let mut ov = Ov::new();
    let (raw, length) = address().to_raw();
    let to = raw.as_ptr().cast();
    let pair = active.queue_pair.as_ptr();
    // SAFETY: the objects live, addresses have their length, and the rest may be null; no request starts, so the OVERLAPPED is
    // not kept.
    unsafe {
        let connector = &active.connector;
        assert_eq!(
            connector.connect(pair, to, length, 0, 0, null(), 0, ov.ptr()),
            Status::ADDRESS_NOT_ASSOCIATED
        );
        assert_eq!(connector.complete_connect(ov.ptr()), Status::CONNECTION_INVALID);
        assert_eq!(connector.accept(pair, 0, 0, null(), 0, ov.ptr()), Status::CONNECTION_INVALID);
        assert_eq!(connector.reject(null(), 0), Status::CONNECTION_INVALID);
        assert_eq!(connector.disconnect(ov.ptr()), Status::CONNECTION_INVALID);
        assert_eq!(connector.get_read_limits(null_mut(), null_mut()), Status::CONNECTION_INVALID);
        let mut room = 0;
        assert_eq!(connector.get_peer_address(null_mut(), &mut room), Status::CONNECTION_INVALID);
        let listener: Com<Listener> =
            create(|iid, out| adapter.create_listener(iid, active.file, out)).unwrap();
        assert_eq!(listener.listen(0), Status::ADDRESS_NOT_ASSOCIATED);
        assert_eq!(
            listener.get_connection_request(connector.as_ptr(), ov.ptr()),
            Status::INVALID_DEVICE_STATE
        );
        assert_eq!(listener.get_local_address(null_mut(), &mut room), Status::INVALID_DEVICE_STATE);
        assert_eq!(listener.bind(to, length), Status::SUCCESS);
        assert_eq!(
            listener.get_connection_request(connector.as_ptr(), ov.ptr()),
            Status::INVALID_DEVICE_STATE
        );
        assert_eq!(listener.bind(to, length), Status::ADDRESS_ALREADY_ASSOCIATED);
        assert_eq!(listener.listen(1), Status::SUCCESS);
        assert_eq!(listener.listen(1), Status::INVALID_DEVICE_STATE);
    }
    connect(&active, &passive);
    // SAFETY: the objects live, the address has its length, and the rest may be null; no request starts, so the OVERLAPPED is
    // not kept.
    unsafe {
        let connector = &active.connector;
        assert_eq!(connector.connect(pair, to, length, 0, 0, null(), 0, ov.ptr()), Status::CONNECTION_ACTIVE);
        assert_eq!(connector.complete_connect(ov.ptr()), Status::CONNECTION_INVALID);
        assert_eq!(connector.bind(to, length), Status::ADDRESS_ALREADY_ASSOCIATED);
        // The queue pair is in use.
        let second: Com<Connector> =
            create(|iid, out| adapter.create_connector(iid, active.file, out)).unwrap();
        assert_eq!(second.bind(to, length), Status::SUCCESS);
        assert_eq!(second.connect(pair, to, length, 0, 0, null(), 0, ov.ptr()), Status::CONNECTION_ACTIVE);
    }
    messages_pass(&active, &passive);
}
