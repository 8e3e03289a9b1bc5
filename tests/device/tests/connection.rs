//! Connections, with both ends on the device under test.

use ndcompat::Status;
use ndcompat::connector::Offer;
use ndcompat::types::{RegionFlags, RequestFlags, RequestType, Sge};
use std::time::{Duration, Instant};
use support::log::{assert_one_warning, logged};
use support::{
    End, Memory, Operation, Pair, adapter, address, address6, establish, is_iwarp, is_siw, listen,
};

#[test]
fn connects_over_ipv4_and_ipv6() {
    for address in [address(), address6()] {
        let pair = Pair::at(address);
        let (active, passive) = (&pair.active.connector, &pair.passive.connector);
        assert_eq!(active.local_address(), passive.peer_address());
        assert_eq!(passive.local_address(), active.peer_address());
        assert_eq!(active.local_address().unwrap().ip(), address.ip());
    }
}

#[test]
fn sends_and_receives() {
    let mut pair = Pair::new();
    pair.active.memory.bytes[..5].copy_from_slice(b"hello");
    pair.passive.receive(22, 100..200).unwrap();
    pair.active.send(11, 0..5, RequestFlags::empty()).unwrap();
    let sent = pair.active.completion();
    assert_eq!((sent.status, sent.request_context, sent.queue_pair_context), (Status::SUCCESS, 11, 1));
    assert_eq!((sent.request_type, sent.bytes_transferred), (RequestType::Send, 0));
    let received = pair.passive.completion();
    assert_eq!(
        (received.status, received.request_context, received.queue_pair_context),
        (Status::SUCCESS, 22, 2)
    );
    assert_eq!((received.request_type, received.bytes_transferred), (RequestType::Receive, 5));
    assert_eq!(&pair.passive.memory.bytes[100..105], b"hello");
}

#[test]
fn the_result_of_a_read_tells_its_length() {
    let offer = Offer { inbound_read_limit: 1, outbound_read_limit: 1, private_data: b"" };
    let adapter = adapter();
    let pair = Pair::connect(End::new(&adapter, 1), End::new(&adapter, 2), address(), offer, offer);
    let sink = Memory::new(&adapter, &pair.active.file, 300, RegionFlags::ALLOW_LOCAL_WRITE);
    let source = Memory::new(&adapter, &pair.passive.file, 300, RegionFlags::ALLOW_REMOTE_READ);
    let (from, token) = (source.remote_address(0), source.region.remote_token());
    for length in [1, 300] {
        // SAFETY: the sink is registered until the end of the test.
        unsafe {
            pair.active
                .queue_pair
                .read(7, &[sink.sge(0..length)], from, token, RequestFlags::empty())
                .unwrap()
        };
        let read = pair.active.completion();
        assert_eq!((read.status, read.request_type), (Status::SUCCESS, RequestType::Read));
        assert_eq!(read.bytes_transferred as usize, length);
    }
}

#[test]
fn a_read_that_the_peer_allows_none_of_is_refused_and_explained() {
    let log = logged("a_read_that_the_peer_allows_none_of_is_refused_and_explained", None, || {
        ndcompat::logging::start();
        let adapter = adapter();
        let both = Offer { inbound_read_limit: 4, outbound_read_limit: 4, private_data: b"" };
        let none = Offer::default();
        // The accepting side knows what its peer offers on every device.
        let Pair { active, passive } =
            Pair::connect(End::new(&adapter, 1), End::new(&adapter, 2), address(), none, both);
        let (from, token) = (active.memory.remote_address(0), active.memory.region.remote_token());
        let into = [passive.memory.sge(0..8)];
        // SAFETY: the memory outlives the request.
        let refused = unsafe { passive.queue_pair.read(1, &into, from, token, RequestFlags::empty()) };
        assert_eq!(refused, Err(Status::INVALID_DEVICE_REQUEST));
    });
    let words = ["queue: Read is refused", "inboundReadLimit", "ND_INVALID_DEVICE_REQUEST", "device=", "qp="];
    assert_one_warning(&log, &words);
}

#[test]
fn writes_and_reads_the_peers_memory() {
    let offer = Offer { inbound_read_limit: 4, outbound_read_limit: 4, private_data: b"" };
    let adapter = adapter();
    let mut pair = Pair::connect(End::new(&adapter, 1), End::new(&adapter, 2), address(), offer, offer);
    let remote = pair.passive.memory.remote_address(4096);
    let token = pair.passive.memory.region.remote_token();
    pair.active.memory.bytes[..8].copy_from_slice(b"over it ");
    let active = &pair.active;
    // SAFETY: the memory outlives the requests.
    unsafe {
        active.queue_pair.write(1, &[active.memory.sge(0..8)], remote, token, RequestFlags::empty()).unwrap();
        active
            .queue_pair
            .read(2, &[active.memory.sge(1000..1008)], remote, token, RequestFlags::READ_FENCE)
            .unwrap();
    }
    for (context, kind) in [(1, RequestType::Write), (2, RequestType::Read)] {
        let done = pair.active.completion();
        assert_eq!((done.status, done.request_context, done.request_type), (Status::SUCCESS, context, kind));
    }
    assert_eq!(&pair.passive.memory.bytes[4096..4104], b"over it ");
    assert_eq!(&pair.active.memory.bytes[1000..1008], b"over it ");
}

#[test]
fn notifies_of_completions() {
    let pair = Pair::new();
    for round in 0..100 {
        pair.passive.receive(round, 0..64).unwrap();
        pair.active.send(round, 0..64, RequestFlags::empty()).unwrap();
        assert_eq!(pair.active.notified_completion().request_context, round);
        assert_eq!(pair.passive.notified_completion().request_context, round);
        pair.active.receive(round, 0..64).unwrap();
        pair.passive.send(round, 0..64, RequestFlags::SOLICIT).unwrap();
        assert_eq!(pair.passive.notified_completion().status, Status::SUCCESS);
        assert_eq!(pair.active.notified_completion().status, Status::SUCCESS);
    }
}

#[test]
fn private_data_and_read_limits_arrive() {
    let adapter = adapter();
    let (active, passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
    let (listener, at) = listen(&adapter, &passive.file, address());
    active.connector.bind(address()).unwrap();
    let (mut request, mut connect) = (passive.operation(), active.operation());
    let (mut accept, mut complete) = (passive.operation(), active.operation());
    let asked = Offer { inbound_read_limit: 3, outbound_read_limit: 5, private_data: b"question" };
    let answered = Offer { inbound_read_limit: 4, outbound_read_limit: 2, private_data: b"answer" };
    // SAFETY: all are waited for.
    unsafe {
        listener.connection_request(&passive.connector, request.ov()).unwrap();
        active.connector.connect(&active.queue_pair, at, asked, connect.ov()).unwrap();
        assert_eq!(request.wait(), Status::SUCCESS);
        assert!(passive.connector.private_data().unwrap().starts_with(b"question"));
        assert_eq!(passive.connector.read_limits(), Ok((5, 3)), "the peer's limits, seen from here");
        passive.connector.accept(&passive.queue_pair, answered, accept.ov()).unwrap();
        assert_eq!(connect.wait(), Status::SUCCESS);
        assert!(active.connector.private_data().unwrap().starts_with(b"answer"));
        // siw raises the accepting side's inbound limit to what the peer asks for.
        let outbound = if is_siw() { 5 } else { 4 };
        assert_eq!(active.connector.read_limits(), Ok((2, outbound)), "what the peer made of them");
        active.connector.complete_connect(complete.ov()).unwrap();
        assert_eq!(complete.wait(), Status::SUCCESS);
        assert_eq!(accept.wait(), Status::SUCCESS);
    }
    assert_eq!(passive.connector.read_limits(), Err(Status::INVALID_DEVICE_STATE));
}

#[test]
fn disconnecting_flushes_both_sides() {
    let pair = Pair::new();
    for context in 0..3 {
        pair.active.receive(context, 0..64).unwrap();
        pair.passive.receive(10 + context, 0..64).unwrap();
    }
    assert_eq!(pair.active.disconnect(), Status::SUCCESS);
    for context in 0..3 {
        let active = pair.active.completion();
        assert_eq!((active.status, active.request_context), (Status::CANCELED, context));
        let passive = pair.passive.completion();
        assert_eq!((passive.status, passive.request_context), (Status::CANCELED, 10 + context));
    }
    // A request posted now never reaches the device, but is reported.
    pair.passive.receive(20, 0..64).unwrap();
    pair.passive.send(21, 0..64, RequestFlags::empty()).unwrap();
    let mut late: Vec<_> = (0..2).map(|_| pair.passive.notified_completion()).collect();
    late.sort_by_key(|completion| completion.request_context);
    assert_eq!(
        late.iter().map(|c| (c.request_context, c.status)).collect::<Vec<_>>(),
        [(20, Status::CANCELED), (21, Status::CANCELED)]
    );
    assert_eq!(pair.passive.disconnect(), Status::SUCCESS, "after the peer's");
    assert_eq!(pair.passive.disconnect(), Status::INVALID_DEVICE_STATE, "twice");
}

/// A server that sends first, which iWARP allows once the client has the answer.
#[test]
fn messages_of_a_peer_that_left_are_there_when_connecting_completes() {
    if !is_iwarp() {
        // Elsewhere Accept waits for CompleteConnect.
        return;
    }
    for sends in [0, 1] {
        let adapter = adapter();
        let (active, passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
        let (listener, at) = listen(&adapter, &passive.file, address());
        active.connector.bind(address()).unwrap();
        let (mut request, mut connect) = (passive.operation(), active.operation());
        let (mut accept, mut complete) = (passive.operation(), active.operation());
        active.receive(7, 0..64).unwrap();
        // SAFETY: all are waited for.
        unsafe {
            listener.connection_request(&passive.connector, request.ov()).unwrap();
            active.connector.connect(&active.queue_pair, at, Offer::default(), connect.ov()).unwrap();
            assert_eq!(request.wait(), Status::SUCCESS);
            let offer = Offer { private_data: b"here", ..Offer::default() };
            passive.connector.accept(&passive.queue_pair, offer, accept.ov()).unwrap();
            assert_eq!((accept.wait(), connect.wait()), (Status::SUCCESS, Status::SUCCESS));
        }
        for context in 0..sends {
            passive.send(context, 0..64, RequestFlags::empty()).unwrap();
            assert_eq!(passive.completion().status, Status::SUCCESS);
        }
        let first = (sends > 0).then(|| active.completion());
        assert_eq!(passive.disconnect(), Status::SUCCESS);
        // The connection was established, and its end is known here by now, as both ends are on one adapter.
        assert_eq!(active.connector.private_data().unwrap(), b"here");
        assert!(active.connector.read_limits().is_ok() && active.connector.peer_address() == Ok(at));
        // SAFETY: waited for.
        unsafe { active.connector.complete_connect(complete.ov()).unwrap() };
        assert_eq!(complete.wait(), Status::SUCCESS);
        match first {
            Some(received) => assert_eq!((received.status, received.request_context), (Status::SUCCESS, 7)),
            None => assert_eq!(active.notified_completion().status, Status::CANCELED),
        }
        let mut notice = active.operation();
        // SAFETY: waited for.
        unsafe { active.connector.notify_disconnect(notice.ov()).unwrap() };
        assert_eq!(notice.wait(), Status::SUCCESS);
        assert_eq!(active.disconnect(), Status::SUCCESS);
    }
}

#[test]
fn a_cancelled_connector_connects_again() {
    let adapter = adapter();
    let (active, passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
    let (listener, at) = listen(&adapter, &passive.file, address());
    active.connector.bind(address()).unwrap();
    let mut connect = active.operation();
    // SAFETY: waited for.
    unsafe { active.connector.connect(&active.queue_pair, at, Offer::default(), connect.ov()).unwrap() };
    let own = active.connector.local_address().unwrap();
    let first = adapter.create_connector(&passive.file).unwrap();
    let mut request = passive.operation();
    // SAFETY: all are waited for.
    unsafe {
        listener.connection_request(&first, request.ov()).unwrap();
        assert_eq!(request.wait(), Status::SUCCESS);
        active.connector.cancel();
        assert_eq!(connect.status(), Status::CANCELED);
        // The cancellation did not wait for the driver: the peer, which has not answered yet, still has the request.
        if is_siw() {
            assert!(first.read_limits().is_ok());
        }
    }
    // siw's queue pair belongs to the first attempt until the driver abandons that.
    let active = End { connector: active.connector.clone(), ..End::new(&adapter, 3) };
    establish(&active, &passive, (&listener, at), [Offer::default(); 2], || ());
    assert_eq!(active.connector.local_address(), passive.connector.peer_address());
    // Over iWARP the first attempt's TCP connection holds the port.
    assert!(is_iwarp() || active.connector.local_address() == Ok(own));
    passive.receive(1, 0..64).unwrap();
    active.send(2, 0..64, RequestFlags::empty()).unwrap();
    assert_eq!((active.completion().status, passive.completion().status), (Status::SUCCESS, Status::SUCCESS));
}

/// The accepting end sends with a token of nobody's before the peer has completed the connection.
#[test]
fn a_queue_pair_that_fails_before_accept_completes_ends_the_connection() {
    let adapter = adapter();
    let (active, passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
    let (listener, at) = listen(&adapter, &passive.file, address());
    active.connector.bind(address()).unwrap();
    let (mut request, mut accept) = (passive.operation(), passive.operation());
    let (mut connect, mut complete) = (active.operation(), active.operation());
    // SAFETY: all are waited for, and the memory lives.
    unsafe {
        listener.connection_request(&passive.connector, request.ov()).unwrap();
        active.connector.connect(&active.queue_pair, at, Offer::default(), connect.ov()).unwrap();
        assert_eq!(request.wait(), Status::SUCCESS);
        passive.connector.accept(&passive.queue_pair, Offer::default(), accept.ov()).unwrap();
        let part = passive.memory.sge(0..8);
        let foreign = Sge { token: !part.token, ..part };
        passive.queue_pair.send(1, &[foreign], RequestFlags::empty()).unwrap();
        assert_eq!(passive.completion().status, Status::ACCESS_VIOLATION);
        if connect.wait() == Status::SUCCESS {
            // Over iWARP the end may be known already.
            match active.connector.complete_connect(complete.ov()) {
                Ok(()) => assert_eq!(complete.wait(), Status::SUCCESS),
                Err(status) => assert!(is_iwarp(), "{status}"),
            }
        } else {
            assert!(is_iwarp());
        }
    }
    assert_eq!(accept.wait(), Status::SUCCESS);
    let mut notice = active.operation();
    // SAFETY: waited for.
    if unsafe { active.connector.notify_disconnect(notice.ov()) }.is_ok() {
        assert_eq!(notice.wait(), Status::SUCCESS);
    }
    assert_eq!(passive.disconnect(), Status::SUCCESS);
}

#[test]
fn releasing_while_connecting_does_not_wait_for_the_driver() {
    let adapter = adapter();
    let (active, passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
    let (listener, at) = listen(&adapter, &passive.file, address());
    active.connector.bind(address()).unwrap();
    let (mut request, mut connect) = (passive.operation(), active.operation());
    // SAFETY: all are waited for.
    unsafe {
        listener.connection_request(&passive.connector, request.ov()).unwrap();
        active.connector.connect(&active.queue_pair, at, Offer::default(), connect.ov()).unwrap();
        assert_eq!(request.wait(), Status::SUCCESS);
    }
    let End { connector, queue_pair, completion_queue, .. } = active;
    drop(queue_pair);
    assert_eq!(connect.wait(), Status::CANCELED);
    connector.close();
    drop((connector, completion_queue));
    // siw's driver waits for the answer for 10 s, and its peer learns of it then.
    assert!(passive.connector.read_limits().is_ok() || !is_siw());
}

#[test]
fn a_refusal_without_a_listener_has_no_private_data() {
    let adapter = adapter();
    let (active, passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
    let (listener, at) = listen(&adapter, &passive.file, address());
    drop(listener);
    active.connector.bind(address()).unwrap();
    let mut connect = active.operation();
    let offer = Offer { private_data: b"our own", ..Offer::default() };
    // SAFETY: waited for.
    unsafe { active.connector.connect(&active.queue_pair, at, offer, connect.ov()).unwrap() };
    assert_eq!(connect.wait(), Status::CONNECTION_REFUSED);
    assert_eq!(active.connector.private_data(), Ok(Vec::new()));
}

/// The disposition of each signal.
fn dispositions() -> Vec<usize> {
    let disposition = |signal| {
        let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: a query, into a structure of its size; zero is a value of its fields, should it stay.
        unsafe {
            libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr());
            now.assume_init().sa_sigaction
        }
    };
    (1..=libc::SIGRTMAX()).map(disposition).collect()
}

/// Programs may take signals by signalfd or sigwait, which leaves no trace in the dispositions.
#[test]
fn connecting_leaves_all_signals_alone() {
    let before = dispositions();
    let pair = Pair::new();
    assert_eq!(pair.active.disconnect(), Status::SUCCESS);
    assert_eq!(dispositions(), before);
}

#[test]
fn a_polling_program_learns_of_the_end_without_waiting() {
    let pair = Pair::new();
    pair.passive.receive(7, 0..64).unwrap();
    let Pair { active, passive } = pair;
    assert_eq!(active.disconnect(), Status::SUCCESS);
    // No thread here waits in the library for the passive side's connector.
    assert_eq!(passive.completion().status, Status::CANCELED);
}

#[test]
fn releasing_the_connector_refuses_the_peer() {
    let adapter = adapter();
    let (active, passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
    let (listener, at) = listen(&adapter, &passive.file, address());
    active.connector.bind(address()).unwrap();
    let (mut request, mut connect, mut accept) =
        (passive.operation(), active.operation(), passive.operation());
    // SAFETY: all are waited for.
    unsafe {
        listener.connection_request(&passive.connector, request.ov()).unwrap();
        active.connector.connect(&active.queue_pair, at, Offer::default(), connect.ov()).unwrap();
        assert_eq!(request.wait(), Status::SUCCESS);
        passive.connector.accept(&passive.queue_pair, Offer::default(), accept.ov()).unwrap();
        assert_eq!(connect.wait(), Status::SUCCESS);
    }
    active.connector.close();
    // iWARP establishes a connection in one phase: it was established.
    let expected = if is_iwarp() { Status::SUCCESS } else { Status::CONNECTION_REFUSED };
    assert_eq!(accept.wait(), expected);
}

#[test]
fn refusals_and_dead_ends() {
    let adapter = adapter();
    let (active, passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
    let (listener, at) = listen(&adapter, &passive.file, address());
    let mut request = passive.operation();
    let mut connect = active.operation();
    let mut accept = passive.operation();
    active.connector.bind(address()).unwrap();
    assert_eq!(active.connector.bind(address()), Err(Status::ADDRESS_ALREADY_ASSOCIATED));
    // SAFETY: all are waited for.
    unsafe {
        listener.connection_request(&passive.connector, request.ov()).unwrap();
        active.connector.connect(&active.queue_pair, at, Offer::default(), connect.ov()).unwrap();
        assert_eq!(request.wait(), Status::SUCCESS);
        passive.connector.reject(b"no").unwrap();
        assert_eq!(connect.wait(), Status::CONNECTION_REFUSED);
        assert!(active.connector.private_data().unwrap().starts_with(b"no"));
    }
    // The queue pair can be used again.
    drop(listener);
    let second = adapter.create_connector(&active.file).unwrap();
    second.bind(address()).unwrap();
    // SAFETY: waited for.
    unsafe { second.connect(&active.queue_pair, at, Offer::default(), connect.ov()).unwrap() };
    assert_eq!(connect.wait(), Status::CONNECTION_REFUSED, "nobody listens");
    // So can the connector. (siw's queue pair cannot, once a peer has rejected it.)
    let fresh = End::new(&adapter, 3);
    let (listener, at) = listen(&adapter, &passive.file, address());
    // SAFETY: waited for.
    unsafe { active.connector.connect(&fresh.queue_pair, at, Offer::default(), connect.ov()).unwrap() };
    let connector = adapter.create_connector(&passive.file).unwrap();
    // SAFETY: all are waited for.
    unsafe {
        listener.connection_request(&connector, request.ov()).unwrap();
        assert_eq!(request.wait(), Status::SUCCESS);
        connector.accept(&passive.queue_pair, Offer::default(), accept.ov()).unwrap();
        assert_eq!(connect.wait(), Status::SUCCESS);
        active.connector.complete_connect(connect.ov()).unwrap();
    }
    assert_eq!(connect.wait(), Status::SUCCESS);
    assert_eq!(accept.wait(), Status::SUCCESS);
}

#[test]
fn cancelling_completes_a_pending_get_connection_request() {
    let adapter = adapter();
    let end = End::new(&adapter, 1);
    let (listener, _) = listen(&adapter, &end.file, address());
    let mut request = end.operation();
    // SAFETY: completed before it goes.
    unsafe { listener.connection_request(&end.connector, request.ov()).unwrap() };
    assert_eq!(request.status(), Status::PENDING);
    listener.cancel();
    assert_eq!(request.status(), Status::CANCELED);
    // The connector is as before the call.
    end.connector.bind(address()).unwrap();
}

#[test]
fn a_full_backlog_refuses_newcomers() {
    let adapter = adapter();
    let ends: Vec<_> = (0..3).map(|context| End::new(&adapter, context)).collect();
    let server = End::new(&adapter, 9);
    let listener = adapter.create_listener(&server.file).unwrap();
    listener.bind(address()).unwrap();
    listener.listen(1).unwrap();
    let at = listener.local_address().unwrap();
    let mut connects: Vec<_> = ends.iter().map(End::operation).collect();
    for (end, connect) in ends.iter().zip(&mut connects) {
        end.connector.bind(address()).unwrap();
        // SAFETY: waited for, or cancelled with the connector.
        unsafe { end.connector.connect(&end.queue_pair, at, Offer::default(), connect.ov()).unwrap() };
    }
    // Two of the three find the queue full.
    let deadline = Instant::now() + Duration::from_secs(60);
    let refused = |connects: &mut [Operation]| {
        connects.iter_mut().filter_map(|c| (c.status() == Status::CONNECTION_REFUSED).then_some(())).count()
    };
    while refused(&mut connects) < 2 {
        let now: Vec<_> = connects.iter_mut().map(Operation::status).collect();
        assert!(Instant::now() < deadline, "nobody is refused: {now:?}");
        std::thread::yield_now();
    }
    let mut request = server.operation();
    // SAFETY: waited for.
    unsafe { listener.connection_request(&server.connector, request.ov()).unwrap() };
    assert_eq!(request.wait(), Status::SUCCESS, "the first is still there");
    assert_eq!(refused(&mut connects), 2);
    drop(ends);
}
