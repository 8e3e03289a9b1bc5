//! Sessions of the Rust API: what they keep alive while requests are outstanding, and how they wait.

#[path = "../../shared/sessions.rs"]
mod shared;

use double::{
    CmEvent, Side, call_that_failed, complete_with, fail, fail_call, heap, hold, pending, raise_async,
    raise_event, remove_device, turn,
};
use ndcompat::types::{Completion, RegionFlags, RequestFlags};
use ndcompat::verbs::bindings::{IBV_EVENT_CQ_ERR, RDMA_CM_EVENT_REJECTED};
use ndcompat::{
    Connection, Memory, Offer, Pair, Port, Provider, QueuePairConfig, RemoteMemory, Session, Status,
};
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// The allocator always maps blocks of this size separately.
const LENGTH: usize = 40 << 20;
/// The time limit.
const SOON: Duration = Duration::from_secs(60);

/// Whether a block is in use that was not when the heap was `before`. Other threads of the program use the heap, too, but little of it.
fn is_kept(length: usize, before: isize) -> bool {
    heap() - before > length as isize / 2
}

fn session() -> Session {
    Session::new(&Provider::open_any().unwrap()).unwrap()
}

/// Two ends of a connection, both of `session`. `first` posts on the second before it is connected.
fn connected(session: &Session, first: impl FnOnce(&Pair)) -> (Connection, Connection) {
    let acceptor = session.listen(Provider::addresses().unwrap()[0]).unwrap();
    let address = acceptor.local_address().unwrap();
    let offer = Offer { inbound_read_limit: 4, outbound_read_limit: 4, ..Offer::default() };
    std::thread::scope(|threads| {
        let connecting = threads.spawn(|| {
            let pair = session.queue_pair().name(1).build().unwrap();
            session.wait(session.connect(pair, address, offer)).unwrap()
        });
        let pair = session.queue_pair().name(2).build().unwrap();
        first(&pair);
        let request = session.wait_for(SOON, acceptor.request()).unwrap().unwrap();
        let accepted = session.wait(request.accept(pair, offer)).unwrap();
        (connecting.join().unwrap(), accepted)
    })
}

/// Two ends of a connection, of a session each. The second has room for so many receives; `first` posts there before it is connected.
fn connect_to(
    client: &Session,
    server: &Session,
    receives: u32,
    first: impl FnOnce(&Pair),
) -> (Connection, Connection) {
    let acceptor = server.listen(own()).unwrap();
    let address = acceptor.local_address().unwrap();
    std::thread::scope(|threads| {
        let connecting = threads.spawn(|| {
            let pair = client.queue_pair().build().unwrap();
            client.wait(client.connect(pair, address, Offer::default())).unwrap()
        });
        let pair = server.queue_pair().receives(receives).build().unwrap();
        first(&pair);
        let request = server.wait_for(SOON, acceptor.request()).unwrap().unwrap();
        let accepted = server.wait(request.accept(pair, Offer::default())).unwrap();
        (connecting.join().unwrap(), accepted)
    })
}

fn own() -> SocketAddr {
    Provider::addresses().unwrap()[0]
}

/// What the session's `Debug` tells, which takes no results.
fn outstanding(session: &Session) -> usize {
    let text = format!("{session:?}");
    let digits = text.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty());
    digits.expect("a number").parse().unwrap()
}

/// The number of wake-ups of a task.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

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

/// Peers fill all receives while nobody takes results: more than the completion queue has room for as it was made.
#[test]
fn peers_do_not_make_a_session_fail() {
    let _turn = turn();
    const RECEIVES: usize = 100;
    for resizes in [true, false] {
        if !resizes {
            // As the adapter is opened.
            fail("ibv_resize_cq", libc::EOPNOTSUPP);
        }
        let server = Session::builder(&Provider::open_any().unwrap()).depth(4).build().unwrap();
        let client = session();
        let mut receiving = Vec::new();
        let buffers: Vec<_> = (0..RECEIVES).map(|_| server.buffer(8).unwrap()).collect();
        let (active, passive) = connect_to(&client, &server, RECEIVES as u32, |pair| {
            receiving.extend(buffers.into_iter().map(|buffer| pair.receive(buffer)));
        });
        // A receive that is refused is done.
        let (done, mut posted): (Vec<_>, Vec<_>) =
            receiving.into_iter().partition(|receiving| receiving.is_done());
        for refused in done {
            let (buffer, result) = refused.wait();
            assert_eq!((buffer.len(), result), (8, Err(Status::NO_MORE_ENTRIES)));
        }
        assert!(if resizes { posted.len() == RECEIVES } else { (4..RECEIVES).contains(&posted.len()) });
        for _ in 0..posted.len() {
            active.send(client.buffer(8).unwrap()).wait().1.unwrap();
        }
        // With results taken there is room again.
        for _ in 0..2 {
            for receiving in posted.drain(..) {
                receiving.wait().1.unwrap();
            }
            posted.push(passive.receive(server.buffer(8).unwrap()));
            active.send(client.buffer(8).unwrap()).wait().1.unwrap();
        }
        server.queue_pair().build().unwrap();
    }
}

/// The future of a timer that wakes its task each time it is asked, as those of some executors do.
fn restless() -> impl Future<Output = ()> {
    poll_fn(|context| {
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

#[test]
fn a_port_keeps_its_limit_though_the_future_wakes_itself() {
    let _turn = turn();
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let mut port = Port::new().unwrap();
        let session = session();
        port.add(&session).unwrap();
        let limit = Duration::from_millis(10);
        done.send(port.wait_for(limit, restless()).is_none()).unwrap();
        // The session is served meanwhile: a peer comes.
        let acceptor = session.listen(own()).unwrap();
        let address = acceptor.local_address().unwrap();
        let pair = session.queue_pair().build().unwrap();
        let mut connecting = Box::pin(session.connect(pair, address, Offer::default()));
        let mut request = Box::pin(acceptor.request());
        let peer = port.wait(poll_fn(|context| {
            context.waker().wake_by_ref();
            assert!(connecting.as_mut().poll(context).is_pending());
            request.as_mut().poll(context)
        }));
        done.send(peer.is_ok()).unwrap();
    });
    for _ in 0..2 {
        assert_eq!(ended.recv_timeout(SOON), Ok(true));
    }
}

/// Its completions leave no packets that nobody takes.
#[test]
fn a_session_of_a_port_may_be_waited_for_otherwise() {
    let _turn = turn();
    let grown = [false, true].map(|bound| {
        let session = session();
        let port = Port::new().unwrap();
        if bound {
            port.add(&session).unwrap();
        }
        let buffer = session.buffer(8).unwrap();
        let mut receiving = None;
        let (client, server) = connected(&session, |pair| receiving = Some(pair.receive(buffer)));
        let (mut receiving, mut message) = (receiving, Some(session.buffer(8).unwrap()));
        let waker = Waker::from(Arc::new(Count::default()));
        let mut exchange = |times| {
            for _ in 0..times {
                // With a notification.
                let mut next = receiving.take().unwrap();
                assert!(Pin::new(&mut next).poll(&mut Context::from_waker(&waker)).is_pending());
                let (back, sent) = client.send(message.take().unwrap()).wait();
                sent.unwrap();
                message = Some(back);
                let (buffer, received) = next.wait();
                received.unwrap();
                receiving = Some(server.receive(buffer));
                // Other operations.
                assert!(session.wait_for(Duration::ZERO, server.disconnected().unwrap()).is_none());
            }
        };
        exchange(100);
        let before = heap();
        exchange(10_000);
        heap() - before
    });
    assert!(grown[1] < grown[0] + 100_000, "{grown:?} bytes more");
}

/// A completion thread may release a queue pair as soon as it has taken the last result.
#[test]
fn a_flush_goes_on_though_the_queue_pair_is_released() {
    let _turn = turn();
    let session = session();
    let queue = session.adapter().create_completion_queue(session.file(), 16, (0, 0)).unwrap();
    let pair = session.adapter().create_queue_pair(QueuePairConfig::new(&queue)).unwrap();
    // SAFETY: the list is empty.
    unsafe { pair.receive(7, &[]) }.unwrap();
    let flush = pair.flushing();
    drop(pair);
    flush();
    let mut results = [Completion::default(); 2];
    assert_eq!(queue.results(&mut results), 1);
    assert_eq!((results[0].status, results[0].request_context), (Status::CANCELED, 7));
}

#[test]
fn statuses_go_through_errors_of_the_standard_library() {
    let error = std::io::Error::from(Status::IO_TIMEOUT);
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert_eq!(Status::from(error), Status::IO_TIMEOUT);
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
fn no_message_is_written_to_memory_that_a_failed_session_has_given_back() {
    let _turn = turn();
    let (client, server) = (session(), session());
    let shared = server.shared_receives(8, 0).unwrap();
    let receiving = shared.receive(server.buffer(8).unwrap());
    let acceptor = server.listen(Provider::addresses().unwrap()[0]).unwrap();
    let address = acceptor.local_address().unwrap();
    std::thread::scope(|threads| {
        let connecting = threads.spawn(|| {
            let pair = client.queue_pair().build().unwrap();
            client.wait(client.connect(pair, address, Offer::default())).unwrap()
        });
        let request = server.wait_for(SOON, acceptor.request()).unwrap().unwrap();
        let pair = server.queue_pair().shared_receives(&shared).build().unwrap();
        let _passive = server.wait(request.accept(pair, Offer::default())).unwrap();
        let active = connecting.join().unwrap();
        // The last completion queue that was made overruns.
        raise_async(IBV_EVENT_CQ_ERR);
        let (buffer, result) = receiving.wait();
        assert_eq!(result, Err(Status::BUFFER_OVERFLOW));
        let mut message = client.buffer(8).unwrap();
        message.copy_from_slice(b"too late");
        assert!(active.send(message).wait().1.is_err());
        assert_eq!(buffer[..], [0; 8]);
        assert_eq!(server.queue_pair().build().err(), Some(Status::BUFFER_OVERFLOW));
    });
}

/// A thread is about to stop the device when another one finds that the completion queue has failed.
#[test]
fn memory_of_a_failed_session_comes_back_once_the_device_has_stopped() {
    let _turn = turn();
    let session = session();
    let (_active, passive) = connected(&session, |_| ());
    let receiving = passive.receive(session.buffer(8).unwrap());
    let stopping = hold("ibv_modify_qp");
    let returned = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let _ = session.wait(passive.disconnect());
        });
        while pending() > 0 {
            std::thread::yield_now();
        }
        raise_async(IBV_EVENT_CQ_ERR);
        threads.spawn(|| {
            assert_eq!(receiving.wait().1.err(), Some(Status::BUFFER_OVERFLOW));
            returned.store(1, Ordering::SeqCst);
        });
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(returned.load(Ordering::SeqCst), 0, "the device has not stopped");
        drop(stopping);
    });
    assert_eq!(returned.load(Ordering::SeqCst), 1);
}

#[test]
fn memory_that_a_device_does_not_let_go_of_does_not_come_back() {
    let _turn = turn();
    let session = session();
    let pair = session.queue_pair().build().unwrap();
    let receiving = pair.receive(session.buffer(8).unwrap());
    fail("ibv_destroy_qp", libc::EIO);
    raise_async(IBV_EVENT_CQ_ERR);
    assert!(receiving.wait_for(Duration::from_millis(100)).is_err());
    assert_eq!(pending(), 0);
}

/// The peer has come to the request, and goes before the task looks.
#[test]
fn a_peer_that_has_given_up_is_passed_over() {
    let _turn = turn();
    let (client, server) = (session(), session());
    let acceptor = server.listen(Provider::addresses().unwrap()[0]).unwrap();
    let address = acceptor.local_address().unwrap();
    let woken = Arc::new(Count::default());
    let waker = Waker::from(woken.clone());
    let mut request = std::pin::pin!(acceptor.request());
    let mut look = || request.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(look().is_pending());
    let pair = client.queue_pair().build().unwrap();
    let mut connecting = std::pin::pin!(client.connect(pair, address, Offer::default()));
    while woken.0.load(Ordering::SeqCst) == 0 {
        assert!(client.wait_for(Duration::from_millis(1), connecting.as_mut()).is_none());
    }
    // For a listener it has no meaning.
    let rejected = CmEvent { kind: RDMA_CM_EVENT_REJECTED, status: 4, data: Vec::new() };
    raise_event(address.port(), rejected);
    assert!(server.wait_for(Duration::from_millis(50), std::future::pending::<()>()).is_none());
    assert!(look().is_pending(), "there is nobody to answer");
}

/// Who only looks is not told by a notification.
#[test]
fn who_spins_learns_that_the_completion_queue_has_failed() {
    let _turn = turn();
    let session = session();
    let pair = session.queue_pair().build().unwrap();
    let receiving = pair.receive(session.buffer(8).unwrap());
    raise_async(IBV_EVENT_CQ_ERR);
    let (_, result) = session.spin_for(SOON, receiving).expect("it ends");
    assert_eq!(result.err(), Some(Status::BUFFER_OVERFLOW));
}

#[test]
fn memory_of_dropped_requests_comes_back_when_the_completion_queue_fails() {
    let _turn = turn();
    let session = session();
    let before = heap();
    let pair = session.queue_pair().build().unwrap();
    let shared = session.shared_receives(4, 0).unwrap();
    drop(pair.receive(session.buffer(LENGTH).unwrap()));
    drop(shared.receive(session.buffer(LENGTH).unwrap()));
    let receiving = pair.receive(session.buffer(8).unwrap());
    assert!(is_kept(2 * LENGTH, before));
    raise_async(IBV_EVENT_CQ_ERR);
    assert_eq!(session.wait(receiving).1.err(), Some(Status::BUFFER_OVERFLOW));
    assert!(!is_kept(LENGTH, before), "nobody waits for them");
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
fn a_thread_waits_no_longer_than_it_wants_to() {
    let _turn = turn();
    let session = session();
    let pair = session.queue_pair().build().unwrap();
    let receiving = pair.receive(session.buffer(8).unwrap());
    let receiving = receiving.wait_for(Duration::from_millis(1)).unwrap_err();
    assert!(session.wait_for(Duration::from_millis(1), receiving).is_none());
    let endless = std::future::pending::<()>();
    assert!(session.spin_for(Duration::from_millis(1), endless).is_none());
}

#[test]
fn threads_that_wait_for_different_requests_each_hear_of_theirs() {
    let _turn = turn();
    let session = session();
    const MESSAGES: usize = 16;
    let mut receiving = Vec::new();
    let buffers: Vec<_> = (0..MESSAGES).map(|_| session.buffer(8).unwrap()).collect();
    let (client, _server) = connected(&session, |pair| {
        receiving.extend(buffers.into_iter().map(|buffer| pair.receive(buffer)));
    });
    std::thread::scope(|threads| {
        let waiting: Vec<_> = receiving
            .into_iter()
            .map(|receiving| threads.spawn(move || receiving.wait().1.unwrap().bytes))
            .collect();
        for length in 1..=8 {
            for _ in 0..MESSAGES / 8 {
                client.send(session.buffer(length).unwrap()).wait().1.unwrap();
            }
        }
        let mut lengths: Vec<_> = waiting.into_iter().map(|thread| thread.join().unwrap()).collect();
        lengths.sort_unstable();
        assert_eq!(lengths, (1..=8).flat_map(|length| [length; MESSAGES / 8]).collect::<Vec<_>>());
    });
}

#[test]
fn a_task_is_woken_though_no_thread_waits() {
    let _turn = turn();
    let session = session();
    let mut receiving = None;
    let buffer = session.buffer(8).unwrap();
    let (client, _server) = connected(&session, |pair| receiving = Some(pair.receive(buffer)));
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut context = Context::from_waker(&waker);
    let mut receiving = std::pin::pin!(receiving.unwrap());
    assert!(receiving.as_mut().poll(&mut context).is_pending());
    drop(client.send(session.buffer(1).unwrap()));
    while count.0.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    assert!(matches!(receiving.as_mut().poll(&mut context), Poll::Ready((_, Ok(_)))));
}

/// A waker that panics.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker that panics, as the test wants it");
    }
}

#[test]
fn a_waker_that_panics_keeps_no_other_task_from_being_woken() {
    let _turn = turn();
    let session = session();
    let (panics, count) = (Waker::from(Arc::new(Panics)), Arc::new(Count::default()));
    let waker = Waker::from(count.clone());
    let woken = |times| {
        while count.0.load(Ordering::SeqCst) < times {
            std::thread::yield_now();
        }
    };
    // Transfers: their wakers are called by the session. The second round shows that the library's thread is still there.
    let mut receiving = Vec::new();
    let buffers: Vec<_> = (0..4).map(|_| session.buffer(8).unwrap()).collect();
    let (client, server) = connected(&session, |pair| {
        receiving.extend(buffers.into_iter().map(|buffer| pair.receive(buffer)));
    });
    for round in [1, 2] {
        let (mut first, mut second) = (receiving.remove(0), receiving.remove(0));
        assert!(Pin::new(&mut first).poll(&mut Context::from_waker(&panics)).is_pending());
        assert!(Pin::new(&mut second).poll(&mut Context::from_waker(&waker)).is_pending());
        drop(client.send(session.buffer(1).unwrap()));
        drop(client.send(session.buffer(1).unwrap()));
        woken(round);
        assert!(first.is_done() && second.is_done());
    }
    // Other operations: theirs are called as the request completes.
    let (mut first, mut second) = (server.disconnected().unwrap(), server.disconnected().unwrap());
    assert!(Pin::new(&mut first).poll(&mut Context::from_waker(&panics)).is_pending());
    assert!(Pin::new(&mut second).poll(&mut Context::from_waker(&waker)).is_pending());
    drop(client);
    woken(3);
    assert_eq!((first.status(), second.status()), (Status::SUCCESS, Status::SUCCESS));
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

#[test]
fn a_limit_may_be_beyond_what_the_clock_counts() {
    let _turn = turn();
    let session = session();
    let ready = || std::future::ready(7);
    assert_eq!(session.spin_for(Duration::MAX, ready()), Some(7));
    assert_eq!(session.wait_for(Duration::MAX, ready()), Some(7));
}

#[test]
fn a_request_for_a_peer_that_is_given_up_takes_none() {
    let _turn = turn();
    let session = session();
    let acceptor = session.listen(Provider::addresses().unwrap()[0]).unwrap();
    let address = acceptor.local_address().unwrap();
    for _ in 0..5 {
        assert!(session.wait_for(Duration::ZERO, acceptor.request()).is_none());
    }
    // A peer that came to a request is still there for the next one when that request is dropped before it is polled again.
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut given_up = Box::pin(acceptor.request());
    assert!(given_up.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    std::thread::scope(|threads| {
        let connecting = threads.spawn(|| {
            let pair = session.queue_pair().build().unwrap();
            session.wait(session.connect(pair, address, Offer::default()))
        });
        while count.0.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        drop(given_up);
        let request = session.wait_for(SOON, acceptor.request()).unwrap().unwrap();
        let pair = session.queue_pair().build().unwrap();
        let _server = session.wait(request.accept(pair, Offer::default())).unwrap();
        connecting.join().unwrap().unwrap();
    });
}

#[test]
fn requests_for_a_peer_that_are_given_up_leave_nothing() {
    let _turn = turn();
    let session = session();
    let acceptor = session.listen(Provider::addresses().unwrap()[0]).unwrap();
    let give_up = |times| {
        for _ in 0..times {
            assert!(session.wait_for(Duration::ZERO, acceptor.request()).is_none());
        }
    };
    give_up(10);
    let before = heap();
    give_up(1000);
    assert!(heap() - before < 100_000, "{} bytes more", heap() - before);
}

#[test]
fn waits_for_the_peers_end_that_are_given_up_leave_nothing() {
    let _turn = turn();
    let session = session();
    let (client, server) = connected(&session, |_| ());
    let give_up = |times| {
        for _ in 0..times {
            assert!(session.wait_for(Duration::ZERO, server.disconnected().unwrap()).is_none());
        }
    };
    give_up(10);
    let before = heap();
    give_up(1000);
    assert!(heap() - before < 50_000, "{} bytes more", heap() - before);
    session.wait(client.disconnect()).unwrap();
}

#[test]
fn a_poll_loop_hears_of_completions_by_a_descriptor() {
    let _turn = turn();
    let session = session();
    let mut receiving = None;
    let buffer = session.buffer(8).unwrap();
    let (client, _server) = connected(&session, |pair| receiving = Some(pair.receive(buffer)));
    let progress = session.progress();
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut context = Context::from_waker(&waker);
    let mut receiving = std::pin::pin!(receiving.unwrap());
    let readable = |millis| {
        let fd = std::os::fd::AsRawFd::as_raw_fd(&progress);
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, a local.
        unsafe { libc::poll(&mut poll, 1, millis) == 1 }
    };
    for _ in 0..3 {
        assert!(receiving.as_mut().poll(&mut context).is_pending());
        progress.turn();
        assert!(!readable(0));
        drop(client.send(session.buffer(1).unwrap()));
        let mut loops = 0;
        while count.0.load(Ordering::SeqCst) == 0 {
            assert!(readable(10_000));
            progress.turn();
            loops += 1;
        }
        assert!(loops > 0, "nobody else looks after the session");
        assert!(!readable(0), "all is served");
        assert!(matches!(receiving.as_mut().poll(&mut context), Poll::Ready((_, Ok(_)))));
        count.0.store(0, Ordering::SeqCst);
        receiving.set(_server.receive(session.buffer(8).unwrap()));
    }
}

#[test]
fn a_failed_request_fails_and_the_others_are_cancelled() {
    let _turn = turn();
    let session = session();
    let (client, server) = connected(&session, |_| ());
    let waiting = client.receive(session.buffer(8).unwrap());
    let _ready = server.receive(session.buffer(8).unwrap());
    complete_with(Side::Initiator, 12);
    let (_, sent) = client.send(session.buffer(8).unwrap()).wait();
    assert!(sent.is_err());
    assert_eq!(waiting.wait().1, Err(Status::CANCELED));
}

#[test]
fn who_waits_hears_that_the_device_is_gone() {
    let _turn = turn();
    let session = session();
    let pair = session.queue_pair().build().unwrap();
    let receiving = pair.receive(session.buffer(8).unwrap());
    std::thread::scope(|threads| {
        let waiting = threads.spawn(move || receiving.wait().1);
        remove_device();
        let ended = waiting.join().unwrap();
        assert!(matches!(ended, Err(Status::CANCELED | Status::DEVICE_REMOVED)), "{ended:?}");
    });
    assert_eq!(session.buffer(8).unwrap_err(), Status::DEVICE_REMOVED);
}

#[test]
fn an_address_leads_to_itself_and_none_to_nowhere() {
    let _turn = turn();
    assert_eq!(Provider::open("192.0.2.200:0".parse().unwrap()).err(), Some(Status::INVALID_ADDRESS));
    let elsewhere = Provider::resolve("127.0.0.1:1".parse().unwrap());
    assert_eq!(elsewhere, Err(Status::INVALID_ADDRESS), "loopback has no RDMA");
}
