//! Disconnecting: when `Disconnect` completes, what the peer is told, and the state afterwards.

use ndcompat::Status;
use ndcompat::connector::Offer;
use ndcompat::types::RequestFlags;
use std::sync::Barrier;
use support::client::{Client, Ov, connected};
use support::library::Port;
use support::{End, Operation, Pair, QUEUE_DEPTH, address, listen};

/// Fills the initiator queue with silent writes of the whole memory.
fn flood(from: &End, to: &End) {
    let (at, token) = (to.memory.remote_address(0), to.memory.region.remote_token());
    for _ in 0..QUEUE_DEPTH {
        let everything = [from.memory.sge(0..65536)];
        // SAFETY: both memories live as long as their ends.
        unsafe { from.queue_pair.write(1, &everything, at, token, RequestFlags::SILENT_SUCCESS) }.unwrap();
    }
}

#[test]
fn dma_has_ended_when_disconnect_completes() {
    for inwards in [false, true] {
        let mut pair = Pair::new();
        let (from, to) =
            if inwards { (&mut pair.passive, &pair.active) } else { (&mut pair.active, &pair.passive) };
        from.memory.bytes.fill(1);
        flood(from, to);
        // Outstanding silent requests neither delay it nor survive it.
        assert_eq!(pair.active.disconnect(), Status::SUCCESS);
        if inwards {
            // What the peer still sends cannot reach this side's memory any more.
            pair.active.memory.bytes.fill(7);
            assert_eq!(pair.passive.disconnect(), Status::SUCCESS);
            assert!(pair.active.memory.bytes.iter().all(|&byte| byte == 7), "written after the end");
        } else {
            // What was not sent by now is never sent.
            pair.active.memory.bytes.fill(2);
            assert_eq!(pair.passive.disconnect(), Status::SUCCESS);
            assert!(!pair.passive.memory.bytes.contains(&2), "read after the end");
        }
    }
}

#[test]
fn both_ends_disconnect_at_once() {
    for round in 0..10 {
        let (active, passive) = connected();
        let together = Barrier::new(2);
        let end = |client: &Client| {
            let port = Port::on(client.file, 1);
            let (mut notice, mut ending) = (Ov::new(), Ov::new());
            // SAFETY: both live until they are completed.
            let notify = unsafe { client.connector.notify_disconnect(notice.ptr()) };
            assert_eq!(notify, Status::PENDING);
            together.wait();
            assert_eq!(client.disconnect(&mut ending), Status::PENDING, "round {round}");
            // One packet for each, in any order, and no others.
            let mut packets: Vec<_> = (0..2).map(|_| port.packet(20_000).expect("a packet").1).collect();
            packets.sort();
            let mut wanted = vec![notice.ptr(), ending.ptr()];
            wanted.sort();
            assert_eq!(packets, wanted);
            together.wait();
            assert!(port.packet(20).is_none(), "told twice");
            assert_eq!(ending.internal(), Status::SUCCESS);
            // The notice depends on whose disconnect came first.
            let told = notice.internal();
            assert!([Status::SUCCESS, Status::CONNECTION_DISCONNECTED].contains(&told), "{told}");
            // The connection has ended in either case.
            let again = client.disconnect(&mut ending);
            assert_eq!(again, Status::INVALID_DEVICE_STATE);
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| end(&passive));
            end(&active);
            other.join().unwrap();
        });
    }
}

/// Of two threads that disconnect one end at once, one does; both release the connector at once, beside the peer's Disconnect.
#[test]
fn two_threads_disconnect_and_release_one_connector_at_once() {
    for round in 0..20 {
        let Pair { active, passive } = Pair::new();
        let End { connector, file, queue_pair, completion_queue, memory, .. } = active;
        let together = Barrier::new(3);
        let mut ends = std::thread::scope(|scope| {
            let halves = [connector.clone(), connector].map(|connector| {
                let (file, together) = (&file, &together);
                scope.spawn(move || {
                    let mut ending = Operation::on(file);
                    together.wait();
                    // SAFETY: waited for.
                    let begun = unsafe { connector.disconnect(ending.ov()) };
                    drop(connector);
                    // Who looks at it leaves the file to the library's thread, who waits serves it himself.
                    begun.map(|()| if round % 4 < 2 { ending.poll() } else { ending.wait() })
                })
            });
            together.wait();
            if round % 2 == 0 {
                assert_eq!(passive.disconnect(), Status::SUCCESS);
            }
            halves.map(|half| half.join().unwrap())
        });
        ends.sort_by_key(|end| end.is_err());
        assert_eq!(ends, [Ok(Status::SUCCESS), Err(Status::INVALID_DEVICE_STATE)], "round {round}");
        drop((queue_pair, completion_queue, memory));
        assert_eq!(passive.disconnect().is_success(), round % 2 != 0);
    }
}

#[test]
fn a_notice_may_come_after_the_local_disconnect_and_only_once() {
    let pair = Pair::new();
    let mut notices = [pair.passive.operation(), pair.passive.operation()];
    // SAFETY: waited for.
    unsafe { pair.passive.connector.notify_disconnect(notices[0].ov()).unwrap() };
    assert_eq!(pair.active.disconnect(), Status::SUCCESS);
    assert_eq!(notices[0].wait(), Status::SUCCESS);
    assert_eq!(pair.passive.disconnect(), Status::SUCCESS);
    // A NotifyDisconnect after the end completes at once, as this side has disconnected. SAFETY: waited for.
    unsafe { pair.passive.connector.notify_disconnect(notices[1].ov()).unwrap() };
    assert_eq!(notices[1].status(), Status::CONNECTION_DISCONNECTED);
    assert_eq!(notices[0].status(), Status::SUCCESS);
}

#[test]
fn receives_stay_outstanding_while_notify_disconnect_is_pending() {
    for flush in [false, true] {
        let pair = Pair::new();
        let passive = &pair.passive;
        let mut notices = [passive.operation(), passive.operation()];
        for (context, notice) in (1..).zip(&mut notices) {
            passive.receive(context, 0..64).unwrap();
            // SAFETY: waited for.
            unsafe { passive.connector.notify_disconnect(notice.ov()).unwrap() };
        }
        pair.active.send(9, 0..64, RequestFlags::empty()).unwrap();
        assert_eq!(passive.completion().request_context, 1, "a message");
        assert_eq!(pair.active.disconnect(), Status::SUCCESS);
        assert_eq!(notices.each_mut().map(Operation::wait), [Status::SUCCESS; 2]);
        // The other receive stays and one is added; nothing is sent.
        passive.receive(3, 0..64).unwrap();
        passive.send(4, 0..64, RequestFlags::empty()).unwrap();
        let sent = passive.notified_completion();
        assert_eq!((sent.request_context, sent.status), (4, Status::CANCELED));
        assert_eq!(passive.try_completion().map(|receive| receive.request_context), None);
        // The program cancels them.
        match flush {
            true => passive.queue_pair.flush().unwrap(),
            false => assert_eq!(passive.disconnect(), Status::SUCCESS),
        }
        for context in [2, 3] {
            let receive = passive.notified_completion();
            assert_eq!((receive.request_context, receive.status), (context, Status::CANCELED));
        }
        if flush {
            assert_eq!(passive.disconnect(), Status::SUCCESS, "after it");
        }
        assert!(passive.try_completion().is_none());
    }
}

#[test]
fn receives_that_stayed_go_with_the_connector_or_the_queue_pair() {
    for connector in [false, true] {
        let Pair { active, passive } = Pair::new();
        passive.receive(1, 0..64).unwrap();
        let mut notice = passive.operation();
        // SAFETY: waited for.
        unsafe { passive.connector.notify_disconnect(notice.ov()).unwrap() };
        assert_eq!(active.disconnect(), Status::SUCCESS);
        assert_eq!(notice.wait(), Status::SUCCESS);
        if connector {
            passive.connector.close();
            assert_eq!(passive.notified_completion().status, Status::CANCELED);
        } else {
            let End { queue_pair, completion_queue, .. } = passive;
            drop(queue_pair);
            // The queue pair was released: no results are left, and the completion queue works.
            assert!(completion_queue.results(&mut []) == 0);
        }
    }
}

#[test]
fn after_a_cancelled_notify_disconnect_the_peers_disconnect_flushes_receives() {
    let pair = Pair::new();
    let passive = &pair.passive;
    passive.receive(1, 0..64).unwrap();
    let mut notice = passive.operation();
    // SAFETY: waited for.
    unsafe { passive.connector.notify_disconnect(notice.ov()).unwrap() };
    passive.connector.cancel();
    assert_eq!(notice.wait(), Status::CANCELED);
    assert_eq!(pair.active.disconnect(), Status::SUCCESS);
    assert_eq!(passive.completion().status, Status::CANCELED);
}

#[test]
fn neither_half_stays_open() {
    let pair = Pair::new();
    for end in [&pair.active, &pair.passive] {
        end.receive(1, 0..64).unwrap();
    }
    assert_eq!(pair.active.disconnect(), Status::SUCCESS);
    // The peer cannot send either, even before it has disconnected itself.
    for end in [&pair.passive, &pair.active] {
        assert_eq!(end.notified_completion().status, Status::CANCELED, "the receive");
        end.send(2, 0..64, RequestFlags::empty()).unwrap();
        let sent = end.notified_completion();
        assert_eq!((sent.request_context, sent.status), (2, Status::CANCELED));
        end.receive(3, 0..64).unwrap();
        let received = end.notified_completion();
        assert_eq!((received.request_context, received.status), (3, Status::CANCELED));
    }
}

#[test]
fn disconnected_objects_cannot_be_used_again() {
    let pair = Pair::new();
    assert_eq!(pair.active.disconnect(), Status::SUCCESS);
    assert_eq!(pair.passive.disconnect(), Status::SUCCESS);
    let other = End::new(&pair.active.adapter, 3);
    let (listener, at) = listen(&pair.active.adapter, &other.file, address());
    let offer = Offer::default();
    let mut spare = other.operation();
    for used in [&pair.active, &pair.passive] {
        // The connector has no address, no connection and no peer.
        let connector = &used.connector;
        assert_eq!(connector.bind(address()), Err(Status::ADDRESS_ALREADY_ASSOCIATED));
        // SAFETY: all are refused, so nothing becomes pending.
        unsafe {
            let again = connector.connect(&other.queue_pair, at, offer, spare.ov());
            assert_eq!(again, Err(Status::INVALID_DEVICE_STATE));
            let again = connector.accept(&other.queue_pair, offer, spare.ov());
            assert_eq!(again, Err(Status::CONNECTION_ABORTED));
            assert_eq!(connector.complete_connect(spare.ov()), Err(Status::CONNECTION_ABORTED));
            let again = listener.connection_request(connector, spare.ov());
            assert_eq!(again, Err(Status::INVALID_DEVICE_STATE));
        }
        assert_eq!(connector.reject(b""), Err(Status::CONNECTION_ABORTED));
        // The queue pair works with a new connector.
        let fresh = used.adapter.create_connector(&used.file).unwrap();
        fresh.bind(address()).unwrap();
        // SAFETY: refused, too.
        let again = unsafe { fresh.connect(&used.queue_pair, at, offer, spare.ov()) };
        assert_eq!(again, Err(Status::CONNECTION_ACTIVE));
    }
}
