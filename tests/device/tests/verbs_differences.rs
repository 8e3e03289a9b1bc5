//! Differences between ND and verbs, as known from the work-arounds in programs that support both. Others are tested in
//! `initiator_queue`, `notify`, `bad_input` and `removal`.

use ndcompat::SockAddr;
use ndcompat::connector::Offer;
use ndcompat::types::{RegionFlags, RequestFlags, RequestType, Sge};
use ndcompat::{QueuePairConfig, Status};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use support::client::connected;
use support::{End, Memory, Operation, Pair, adapter, address, is_iwarp, listen, shows};

/// A pair whose ends may read from each other.
fn pair() -> Pair {
    let offer = Offer { inbound_read_limit: 4, outbound_read_limit: 4, private_data: b"" };
    let adapter = adapter();
    Pair::connect(End::new(&adapter, 1), End::new(&adapter, 2), address(), offer, offer)
}

#[test]
fn failed_requests_keep_type_and_contexts() {
    for kind in [RequestType::Send, RequestType::Write, RequestType::Read] {
        let pair = pair();
        let (queue_pair, memory) = (&pair.active.queue_pair, &pair.passive.memory);
        let bad = [Sge { token: 0x00DE_AD00, ..pair.active.memory.sge(0..8) }];
        let (at, token) = (memory.remote_address(0), memory.region.remote_token());
        pair.active.receive(6, 0..8).unwrap();
        // SAFETY: no memory is named.
        let posted = unsafe {
            match kind {
                RequestType::Send => queue_pair.send(u64::MAX - 5, &bad, RequestFlags::empty()),
                RequestType::Write => queue_pair.write(u64::MAX - 5, &bad, at, token, RequestFlags::empty()),
                _ => queue_pair.read(u64::MAX - 5, &bad, at, token, RequestFlags::empty()),
            }
        };
        assert_eq!(posted, Ok(()));
        let both = [pair.active.completion(), pair.active.completion()];
        let failed = both.iter().find(|result| result.request_type == kind).expect("its type");
        assert_eq!((failed.request_context, failed.queue_pair_context), (u64::MAX - 5, 1), "{kind:?}");
        let expected = [Status::ACCESS_VIOLATION, Status::CANCELED];
        assert!(expected.contains(&failed.status), "{kind:?}: {}", failed.status);
        let flushed = both.iter().find(|result| result.request_type == RequestType::Receive).unwrap();
        assert_eq!((flushed.status, flushed.request_context), (Status::CANCELED, 6), "{kind:?}");
    }
}

#[test]
fn silent_writes_arrive_before_the_record_that_follows() {
    let pair = pair();
    let token = pair.passive.memory.region.remote_token();
    // SAFETY: the peer writes to it all the while, so it is looked at as atomics.
    let seen = |at: usize| unsafe {
        AtomicU8::from_ptr(pair.passive.memory.remote_address(at) as *mut u8).load(Ordering::Acquire)
    };
    let ours = |at: usize, byte: u8| {
        // SAFETY: the device reads it only while requests are outstanding.
        unsafe { (pair.active.memory.remote_address(at) as *mut u8).write_volatile(byte) }
    };
    for round in 1..=100 {
        for at in [0, 2047, 4095, 8000] {
            ours(at, round);
        }
        // SAFETY: the memory outlives the requests.
        unsafe {
            let to = pair.passive.memory.remote_address(0);
            let (data, record) = ([pair.active.memory.sge(0..4096)], [pair.active.memory.sge(8000..8001)]);
            while pair.active.queue_pair.write(1, &data, to, token, RequestFlags::SILENT_SUCCESS).is_err() {}
            pair.active.queue_pair.write(2, &record, to + 8000, token, RequestFlags::empty()).unwrap();
        }
        let begin = Instant::now();
        while seen(8000) != round {
            assert!(begin.elapsed() < Duration::from_secs(60), "the record does not come");
            std::thread::yield_now();
        }
        assert_eq!([seen(0), seen(2047), seen(4095)], [round; 3]);
        assert_eq!(pair.active.completion().request_context, 2);
    }
}

#[test]
fn a_read_ignores_inline() {
    let pair = pair();
    let memory = &pair.passive.memory;
    // SAFETY: the memory outlives the request.
    unsafe {
        let into = [pair.active.memory.sge(0..8192)];
        let (at, token) = (memory.remote_address(0), memory.region.remote_token());
        pair.active.queue_pair.read(1, &into, at, token, RequestFlags::INLINE).unwrap();
    }
    assert_eq!(pair.active.completion().status, Status::SUCCESS, "though it is longer than any inline data");
}

#[test]
fn the_threshold_does_for_an_inline_size() {
    let pair = pair();
    let info = pair.active.adapter.info().unwrap();
    assert!(0 < info.inline_request_threshold && info.inline_request_threshold <= info.max_inline_data_size);
    pair.passive.receive(1, 0..1024).unwrap();
    pair.active.send(1, 0..info.inline_request_threshold as usize, RequestFlags::INLINE).unwrap();
    assert_eq!(pair.active.completion().status, Status::SUCCESS);
    assert_eq!(pair.passive.completion().bytes_transferred, info.inline_request_threshold);
}

#[test]
fn all_objects_of_an_adapter_work_together() {
    let pair = pair();
    // A file each for region, completion queue and the queue pair's connector.
    let elsewhere = pair.active.adapter.create_overlapped_file().unwrap();
    let memory = Memory::new(&pair.active.adapter, &elsewhere, 64, RegionFlags::ALLOW_LOCAL_WRITE);
    pair.passive.receive(1, 0..64).unwrap();
    // SAFETY: the memory outlives the request.
    unsafe { pair.active.queue_pair.send(1, &[memory.sge(0..64)], RequestFlags::empty()).unwrap() };
    assert_eq!(pair.active.completion().status, Status::SUCCESS);
    assert_eq!(pair.passive.completion().status, Status::SUCCESS);
}

#[test]
fn a_queue_pair_needs_no_connector_to_take_receives() {
    let adapter = adapter();
    let (active, passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
    for context in 0..5 {
        passive.receive(context, 0..64).unwrap();
    }
    let pair = Pair::connect(active, passive, address(), Offer::default(), Offer::default());
    for context in 0..5 {
        pair.active.send(9, 0..64, RequestFlags::empty()).unwrap();
        assert_eq!(pair.active.completion().status, Status::SUCCESS);
        assert_eq!(pair.passive.completion().request_context, context);
    }
}

/// The status of a `Connect` to `to`.
fn connecting(to: SockAddr) -> Status {
    let adapter = adapter();
    let end = End::new(&adapter, 1);
    end.connector.bind(address()).unwrap();
    let mut connect = end.operation();
    // SAFETY: waited for.
    match unsafe { end.connector.connect(&end.queue_pair, to, Offer::default(), connect.ov()) } {
        Ok(()) => connect.wait(),
        Err(status) => status,
    }
}

#[test]
fn failures_to_connect_are_told_apart() {
    let nobody = {
        let adapter = adapter();
        let file = adapter.create_overlapped_file().unwrap();
        listen(&adapter, &file, address()).1
    };
    assert_eq!(connecting(nobody), Status::CONNECTION_REFUSED);
    let nowhere: SocketAddr = "203.0.113.9:9".parse().unwrap();
    // An address without a route.
    shows("IND2Connector::Connect", connecting(nowhere.into()), Status::NETWORK_UNREACHABLE);
    let wildcard: SocketAddr = "0.0.0.0:9".parse().unwrap();
    assert_eq!(connecting(wildcard.into()), Status::BAD_NETWORK_NAME);
}

#[test]
fn the_caller_may_still_say_no() {
    let adapter = adapter();
    let (active, passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
    let (listener, at) = listen(&adapter, &passive.file, address());
    let (mut request, mut connect) = (passive.operation(), active.operation());
    let (mut accept, mut notice) = (passive.operation(), passive.operation());
    active.connector.bind(address()).unwrap();
    // SAFETY: all are waited for.
    unsafe {
        listener.connection_request(&passive.connector, request.ov()).unwrap();
        active.connector.connect(&active.queue_pair, at, Offer::default(), connect.ov()).unwrap();
        assert_eq!(request.wait(), Status::SUCCESS);
        passive.connector.accept(&passive.queue_pair, Offer::default(), accept.ov()).unwrap();
        assert_eq!(connect.wait(), Status::SUCCESS);
        active.connector.reject(b"why").unwrap();
        if is_iwarp() {
            // On iWARP the connection was established, and has ended.
            assert_eq!(accept.wait(), Status::SUCCESS);
            passive.connector.notify_disconnect(notice.ov()).unwrap();
            assert_eq!(notice.wait(), Status::SUCCESS);
        } else {
            assert_eq!(accept.wait(), Status::CONNECTION_REFUSED);
            assert!(passive.connector.private_data().unwrap().starts_with(b"why"));
        }
    }
}

#[test]
fn a_refusal_brings_its_reason() {
    let adapter = adapter();
    let (active, passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
    let (listener, at) = listen(&adapter, &passive.file, address());
    let (mut request, mut connect) = (passive.operation(), active.operation());
    active.connector.bind(address()).unwrap();
    active.receive(1, 0..64).unwrap();
    // SAFETY: all are waited for.
    unsafe {
        listener.connection_request(&passive.connector, request.ov()).unwrap();
        active.connector.connect(&active.queue_pair, at, Offer::default(), connect.ov()).unwrap();
        assert_eq!(request.wait(), Status::SUCCESS);
    }
    passive.connector.reject(b"full").unwrap();
    assert_eq!(connect.wait(), Status::CONNECTION_REFUSED);
    assert!(active.connector.private_data().unwrap().starts_with(b"full"));
    // libfabric flushes then.
    active.queue_pair.flush().unwrap();
    assert_eq!(active.completion().status, Status::CANCELED);
}

#[test]
fn peers_wait_for_who_asks_later() {
    let adapter = adapter();
    let server = End::new(&adapter, 9);
    // Four requests for a backlog of three: once one has been refused, the others are queued.
    let listener = adapter.create_listener(&server.file).unwrap();
    listener.bind(address()).unwrap();
    listener.listen(3).unwrap();
    let at = listener.local_address().unwrap();
    let callers: Vec<_> = (0..4).map(|context| End::new(&adapter, context)).collect();
    let mut connects: Vec<_> = callers.iter().map(End::operation).collect();
    for (number, (caller, connect)) in callers.iter().zip(&mut connects).enumerate() {
        caller.connector.bind(address()).unwrap();
        let private_data = &[b'a' + number as u8; 4];
        let offer = Offer { private_data, ..Offer::default() };
        // SAFETY: cancelled when its connector goes.
        unsafe { caller.connector.connect(&caller.queue_pair, at, offer, connect.ov()).unwrap() };
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    let refused = loop {
        let refused = connects.iter_mut().position(|connect| connect.status() == Status::CONNECTION_REFUSED);
        if let Some(refused) = refused {
            break b'a' + refused as u8;
        }
        assert!(Instant::now() < deadline, "nobody is refused");
        std::thread::yield_now();
    };
    let mut names: Vec<u8> = (0..3)
        .map(|_| {
            let connector = adapter.create_connector(&server.file).unwrap();
            let mut request = Operation::on(&server.file);
            // SAFETY: waited for.
            unsafe { listener.connection_request(&connector, request.ov()).unwrap() };
            assert_eq!(request.wait(), Status::SUCCESS);
            connector.private_data().unwrap()[0]
        })
        .collect();
    names.push(refused);
    names.sort();
    assert_eq!(names, *b"abcd");
}

#[test]
fn read_limits_are_as_seen_from_here() {
    // 5 and 2 differ, so that swapped limits would show.
    let adapter = adapter();
    let (active, passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
    let (listener, at) = listen(&adapter, &passive.file, address());
    let (mut request, mut connect) = (passive.operation(), active.operation());
    active.connector.bind(address()).unwrap();
    let offer = Offer { inbound_read_limit: 5, outbound_read_limit: 2, private_data: b"" };
    // SAFETY: all are waited for.
    unsafe {
        listener.connection_request(&passive.connector, request.ov()).unwrap();
        active.connector.connect(&active.queue_pair, at, offer, connect.ov()).unwrap();
        assert_eq!(request.wait(), Status::SUCCESS);
    }
    assert_eq!(passive.connector.read_limits(), Ok((2, 5)));
    passive.connector.reject(b"").unwrap();
    assert_eq!(connect.wait(), Status::CONNECTION_REFUSED);
}

#[test]
fn cancelling_then_disconnecting() {
    let pair = Pair::new();
    let mut notice = pair.active.operation();
    // SAFETY: cancelled.
    unsafe { pair.active.connector.notify_disconnect(notice.ov()).unwrap() };
    pair.active.connector.cancel();
    assert_eq!(notice.status(), Status::CANCELED);
    pair.passive.receive(1, 0..64).unwrap();
    pair.active.send(1, 0..64, RequestFlags::empty()).unwrap();
    assert_eq!(pair.active.completion().status, Status::SUCCESS, "the connection is still up");
    assert_eq!(pair.active.disconnect(), Status::SUCCESS);
}

#[test]
fn a_read_sink_takes_reads() {
    let pair = pair();
    let flags = RegionFlags::ALLOW_LOCAL_WRITE | RegionFlags::RDMA_READ_SINK;
    let memory = &pair.passive.memory;
    for flags in [flags, RegionFlags::RDMA_READ_SINK] {
        let sink = Memory::new(&pair.active.adapter, &pair.active.file, 64, flags);
        // SAFETY: the memory outlives the request.
        unsafe {
            let (at, token) = (memory.remote_address(0), memory.region.remote_token());
            pair.active.queue_pair.read(1, &[sink.sge(0..64)], at, token, RequestFlags::empty()).unwrap();
        }
        assert_eq!(pair.active.completion().status, Status::SUCCESS, "flags {flags:#x}");
    }
}

#[test]
fn all_fields_of_a_result_are_filled() {
    // The test fills results with ones before the call.
    let (active, passive) = connected();
    assert_eq!(passive.receive(0x1234_5678_9ABC, 64), Status::SUCCESS);
    assert_eq!(active.send(0, 40, RequestFlags::empty()), Status::SUCCESS);
    let (sent, received) = (active.result(), passive.result());
    assert_eq!((sent.status, sent.request_type), (Status::SUCCESS, RequestType::Send));
    assert_eq!((sent.request_context, sent.queue_pair_context), (0, 0));
    assert_eq!((received.status, received.bytes_transferred), (Status::SUCCESS, 40));
    assert_eq!((received.request_context, received.queue_pair_context), (0x1234_5678_9ABC, 0));
    assert_eq!(received.request_type, RequestType::Receive);
}

#[test]
fn the_maxima_serve_a_connection_all_at_once() {
    let adapter = adapter();
    let info = adapter.info().unwrap();
    let full = |context| {
        let mut end = End::new(&adapter, context);
        let depth = info.max_completion_queue_depth;
        end.completion_queue = adapter.create_completion_queue(&end.file, depth, (0, 0)).unwrap();
        let config = QueuePairConfig {
            receive_completion_queue: end.completion_queue.clone(),
            initiator_completion_queue: end.completion_queue.clone(),
            context,
            shared_receive_queue: None,
            receive_queue_depth: info.max_receive_queue_depth,
            initiator_queue_depth: info.max_initiator_queue_depth,
            max_receive_sge: info.max_receive_sge,
            max_initiator_sge: info.max_initiator_sge,
            inline_data_size: info.max_inline_data_size,
        };
        end.queue_pair = adapter.create_queue_pair(config).unwrap();
        end
    };
    let offer = Offer {
        inbound_read_limit: info.max_inbound_read_limit,
        outbound_read_limit: info.max_outbound_read_limit,
        private_data: b"",
    };
    let pair = Pair::connect(full(1), full(2), address(), offer, offer);
    let pieces = vec![pair.passive.memory.sge(0..64); info.max_receive_sge as usize];
    for context in 0..info.max_receive_queue_depth {
        // SAFETY: the memory outlives the request.
        unsafe { pair.passive.queue_pair.receive(context.into(), &pieces).unwrap() };
    }
    let inline = [pair.active.memory.sge(0..info.max_inline_data_size as usize)];
    let count = info.max_initiator_queue_depth.min(info.max_receive_queue_depth);
    for context in 0..count {
        // SAFETY: the memory outlives the request.
        unsafe { pair.active.queue_pair.send(context.into(), &inline, RequestFlags::INLINE).unwrap() };
    }
    for context in 0..count {
        for end in [&pair.active, &pair.passive] {
            let result = end.completion();
            assert_eq!((result.status, result.request_context), (Status::SUCCESS, context.into()));
        }
    }
    let memory = &pair.passive.memory;
    let (at, token) = (memory.remote_address(0), memory.region.remote_token());
    let pieces: Vec<_> =
        (0..info.max_read_sge as usize).map(|at| pair.active.memory.sge(at * 64..at * 64 + 64)).collect();
    for context in 0..count {
        // SAFETY: the memory outlives the request.
        unsafe {
            pair.active.queue_pair.read(context.into(), &pieces, at, token, RequestFlags::empty()).unwrap()
        };
    }
    for context in 0..count {
        let result = pair.active.completion();
        assert_eq!((result.status, result.request_context), (Status::SUCCESS, context.into()));
    }
}
