//! What requests keep alive, and what comes back when.

use super::*;

#[test]
fn memory_that_the_device_can_reach_is_not_freed() {
    let _turn = turn();
    let session = session();
    // A worker registers memory from the second length on, whose region cancelling calls.
    for length in [LENGTH, 64 << 20] {
        for refused in [false, true] {
            let before = heap();
            let buffer = session.buffer(length).unwrap();
            if refused {
                fail("ibv_dereg_mr", libc::EBUSY);
            }
            drop(buffer);
            assert_eq!(is_kept(length, before), refused, "{length}, refused: {refused}, {}", heap() - before);
        }
    }
}

#[test]
fn a_message_arrives_and_both_buffers_come_back() {
    let _turn = turn();
    let session = session();
    let mut receiving = None;
    let buffer = session.buffer(64).unwrap();
    let (client, _server) = connected(&session, |pair| receiving = Some(pair.receive(buffer)));
    let mut message = session.buffer(16).unwrap();
    message[..5].copy_from_slice(b"hello");
    let (message, sent) = client.send(message.part(..5)).wait();
    assert_eq!((message.len(), sent.unwrap().bytes), (16, 5));
    let (received, done) = receiving.unwrap().wait();
    let done = done.unwrap();
    assert_eq!((&received[..done.bytes], done.queue_pair), (&b"hello"[..], 2));
}

#[test]
fn a_dropped_request_keeps_its_memory_until_it_has_completed() {
    let _turn = turn();
    let session = session();
    let before = heap();
    let buffer = session.buffer(LENGTH).unwrap();
    let (client, _server) = connected(&session, |pair| drop(pair.receive(buffer)));
    assert!(is_kept(LENGTH, before), "it is outstanding");
    client.send(session.buffer(1).unwrap()).wait().1.unwrap();
    session.poll();
    assert!(!is_kept(LENGTH, before), "it has completed");
}

/// A program that only sends, and drops the futures.
#[test]
fn dropped_requests_are_taken_though_nobody_waits_or_polls() {
    let _turn = turn();
    let (client, server) = (session(), session());
    const MESSAGES: usize = 40;
    let mut receiving = Vec::new();
    let buffers: Vec<_> = (0..MESSAGES).map(|_| server.buffer(8).unwrap()).collect();
    let (active, passive) = connect_to(&client, &server, MESSAGES as u32, |pair| {
        receiving.extend(buffers.into_iter().map(|buffer| pair.receive(buffer)));
    });
    // More than the queue pair has room for.
    for _ in 0..MESSAGES {
        drop(active.send(client.buffer(8).unwrap()));
    }
    for receiving in receiving {
        let Ok((_, received)) = receiving.wait_for(SOON) else { panic!("a send was refused") };
        received.unwrap();
    }
    nothing_is_left(&client);
    // And those of a queue pair that is dropped, in either order.
    for pair_first in [true, false] {
        let pair = client.queue_pair().build().unwrap();
        let receiving: Vec<_> = (0..4).map(|_| pair.receive(client.buffer(8).unwrap())).collect();
        if pair_first {
            drop(pair);
            drop(receiving);
        } else {
            drop(receiving);
            // The session is called meanwhile, and finds nothing.
            std::thread::sleep(Duration::from_millis(1500));
            assert_eq!(outstanding(&client), 4);
            pair.flush();
        }
        nothing_is_left(&client);
    }
    drop(passive);
}

fn nothing_is_left(session: &Session) {
    let begin = Instant::now();
    while outstanding(session) > 0 {
        assert!(begin.elapsed() < SOON, "{} are left", outstanding(session));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A program that polls, and drops what it writes, arms the completion queue now and then only.
#[test]
fn dropped_requests_cost_no_notification_each() {
    let _turn = turn();
    const WRITES: usize = 2000;
    let session = session();
    let target = session.shared_memory(8, RegionFlags::ALLOW_REMOTE_WRITE).unwrap();
    let source = session.shared_memory(8, RegionFlags::empty()).unwrap();
    let (client, _server) = connected(&session, |_| ());
    // Counts the calls; none fails.
    fail_call("req_notify_cq", usize::MAX - 1);
    for _ in 0..WRITES {
        drop(client.write(source.clone(), target.remote(0)));
        session.poll();
    }
    let (_, calls) = call_that_failed();
    let armed = calls.get("req_notify_cq").copied().unwrap_or_default();
    assert!(armed < WRITES / 4, "{armed} times for {WRITES} writes");
    nothing_is_left(&session);
}

#[test]
fn memory_of_cancelled_requests_comes_back_with_the_queue_pair() {
    let _turn = turn();
    let session = session();
    let before = heap();
    let pair = session.queue_pair().build().unwrap();
    drop(pair.receive(session.buffer(LENGTH).unwrap()));
    let kept = pair.receive(session.buffer(8).unwrap());
    assert!(is_kept(LENGTH, before));
    drop(pair);
    assert!(!is_kept(LENGTH, before));
    assert_eq!(kept.wait().1, Err(Status::CANCELED));
}

#[test]
fn a_session_that_ends_frees_what_is_outstanding() {
    let _turn = turn();
    let adapter = Provider::open_any().unwrap();
    let before = heap();
    {
        let session = Session::new(&adapter).unwrap();
        let shared = session.shared_receives(4, 0).unwrap();
        drop(shared.receive(session.buffer(LENGTH).unwrap()));
        assert!(is_kept(LENGTH, before));
    }
    assert!(!is_kept(LENGTH, before));
}

#[test]
fn a_request_that_cannot_be_posted_gives_its_memory_back() {
    let _turn = turn();
    let session = session();
    let pair = session.queue_pair().build().unwrap();
    let (buffer, result) = pair.send(session.buffer(8).unwrap()).wait();
    assert_eq!((buffer.len(), result), (8, Err(Status::CONNECTION_INVALID)));
    let receives: Vec<_> = (0..17).map(|_| pair.receive(session.buffer(8).unwrap())).collect();
    let full = receives.into_iter().last().unwrap();
    assert!(full.is_done());
    assert_eq!(full.wait().1, Err(Status::NO_MORE_ENTRIES));
}

#[test]
fn peers_write_and_read_shared_memory() {
    let _turn = turn();
    let session = session();
    let flags = RegionFlags::ALLOW_REMOTE_WRITE | RegionFlags::ALLOW_REMOTE_READ;
    let target = session.shared_memory(32, flags).unwrap();
    let (client, _server) = connected(&session, |_| ());
    let mut source = session.buffer(8).unwrap();
    source.copy_from_slice(b"01234567");
    let (_, written) = client.write(source.part(2..), target.remote(4)).wait();
    assert_eq!(written.unwrap().bytes, 6);
    let sink = session.shared_memory(16, RegionFlags::RDMA_READ_SINK).unwrap();
    let (sink, read) = client.read(sink.part(1..9), target.remote(2)).wait();
    assert_eq!(read.unwrap().bytes, 8);
    let mut seen = [0; 16];
    sink.load(0, &mut seen);
    assert_eq!(&seen, b"\0\0\x00234567\0\0\0\0\0\0\0");
    let forbidden = RemoteMemory { token: !target.remote(0).token, ..target.remote(0) };
    let (_, refused) = client.write(source_of(&session), forbidden).wait();
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn shared_memory_is_copied_at_any_offset_and_length() {
    let _turn = turn();
    let memory = session().shared_memory(64, RegionFlags::empty()).unwrap();
    let pattern: Vec<u8> = (1..=64).collect();
    for offset in 0..20 {
        for length in 0..40 {
            memory.store(0, &[0; 64]);
            memory.store(offset, &pattern[..length]);
            let mut all = [0; 64];
            memory.load(0, &mut all);
            assert_eq!(&all[offset..offset + length], &pattern[..length]);
            assert!(all[..offset].iter().chain(&all[offset + length..]).all(|byte| *byte == 0));
            let mut part = vec![0; length];
            memory.load(offset, &mut part);
            assert_eq!(part, &pattern[..length]);
        }
    }
}

fn source_of(session: &Session) -> ndcompat::Buffer {
    session.buffer(8).unwrap()
}

#[test]
fn a_silent_request_has_a_result_all_the_same() {
    let _turn = turn();
    let session = session();
    let mut receiving = None;
    let buffer = session.buffer(64).unwrap();
    let (client, _server) = connected(&session, |pair| receiving = Some(pair.receive(buffer)));
    let (_, sent) = client.send_with(session.buffer(3).unwrap(), RequestFlags::SILENT_SUCCESS).wait();
    assert_eq!(sent.unwrap().bytes, 3);
    assert_eq!(receiving.unwrap().wait().1.unwrap().bytes, 3);
}

#[test]
fn receives_of_a_shared_queue_say_whose_they_were() {
    let _turn = turn();
    let session = session();
    let shared = session.shared_receives(8, 2).unwrap();
    let receiving = [shared.receive(session.buffer(8).unwrap()), shared.receive(session.buffer(8).unwrap())];
    let low = shared.low().unwrap();
    assert_eq!(low.status(), Status::PENDING);
    let acceptor = session.listen(Provider::addresses().unwrap()[0]).unwrap();
    let address = acceptor.local_address().unwrap();
    std::thread::scope(|threads| {
        let client = threads.spawn(|| {
            let pair = session.queue_pair().build().unwrap();
            let client = session.wait(session.connect(pair, address, Offer::default())).unwrap();
            client.send(session.buffer(5).unwrap()).wait().1.unwrap();
            client
        });
        let request = session.wait_for(SOON, acceptor.request()).unwrap().unwrap();
        let pair = session.queue_pair().name(77).shared_receives(&shared).build().unwrap();
        let _server = session.wait(request.accept(pair, Offer::default())).unwrap();
        let _client = client.join().unwrap();
        let [first, second] = receiving;
        let done = first.wait().1.unwrap();
        assert_eq!((done.bytes, done.queue_pair), (5, 77));
        low.wait().unwrap();
        assert!(!second.is_done());
    });
}

#[test]
fn a_shared_queue_of_another_session_is_refused() {
    let _turn = turn();
    let (one, other) = (session(), session());
    let shared = one.shared_receives(8, 0).unwrap();
    let made = other.queue_pair().shared_receives(&shared).build();
    assert_eq!(made.unwrap_err(), Status::INVALID_PARAMETER_4);
}

#[test]
fn memory_that_cannot_be_registered_is_an_error() {
    let _turn = turn();
    let session = session();
    let most = session.adapter().info().unwrap().max_registration_size;
    for (length, status) in [
        (0, Status::INVALID_BUFFER_SIZE),
        (usize::MAX, Status::INVALID_PARAMETER),
        (most + 1, Status::INVALID_PARAMETER),
    ] {
        assert_eq!(session.buffer(length).err(), Some(status), "{length}");
        assert_eq!(session.shared_memory(length, RegionFlags::empty()).err(), Some(status), "{length}");
    }
}

#[test]
#[should_panic = "beyond all memory"]
fn no_part_ends_after_the_last_address() {
    let _turn = turn();
    drop(session().buffer(8).unwrap().part(..=usize::MAX));
}
