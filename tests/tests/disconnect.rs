//! The disconnect scheme: when a `Disconnect` is complete, what the peer is told, and what is left afterwards.

use ndcompat::Status;
use ndcompat::connector::Offer;
use ndcompat::types::op_flags;
use ndcompat_tests::client::{Client, Ov, connected};
use ndcompat_tests::library::Port;
use ndcompat_tests::{End, Pair, QUEUE_DEPTH, address, listen};
use std::sync::Barrier;
use std::time::Duration;

/// Long enough for what is on its way to arrive, if it can.
fn pause() {
    std::thread::sleep(Duration::from_millis(200));
}

/// Writes all its memory to the peer's, silently and as often as the queue takes it at once.
fn flood(from: &End, to: &End) {
    let (at, token) = (to.memory.remote_address(0), to.memory.region.remote_token());
    for _ in 0..QUEUE_DEPTH {
        let everything = [from.memory.sge(0..65536)];
        // SAFETY: both memories live as long as their ends.
        unsafe { from.queue_pair.write(1, &everything, at, token, op_flags::SILENT_SUCCESS) }.unwrap();
    }
}

#[test]
fn nothing_is_read_or_written_any_more_when_disconnect_completes() {
    for inwards in [false, true] {
        let mut pair = Pair::new();
        let (from, to) =
            if inwards { (&mut pair.passive, &pair.active) } else { (&mut pair.active, &pair.passive) };
        from.memory.bytes.fill(1);
        flood(from, to);
        // Silent requests under way do not hold it up, and it does not leave them behind.
        assert_eq!(pair.active.disconnect(), Status::SUCCESS);
        if inwards {
            // What the peer had on its way finds this side's memory closed.
            pair.active.memory.bytes.fill(7);
            pause();
            assert!(pair.active.memory.bytes.iter().all(|&byte| byte == 7), "written after the end");
        } else {
            // What was not sent by now never is.
            pair.active.memory.bytes.fill(2);
            pause();
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
            // One packet for each, in either order, and no other.
            let mut packets: Vec<_> = (0..2).map(|_| port.packet(20_000).expect("a packet").1).collect();
            packets.sort();
            let mut wanted = vec![notice.ptr(), ending.ptr()];
            wanted.sort();
            assert_eq!(packets, wanted);
            together.wait();
            assert!(port.packet(20).is_none(), "told twice");
            assert_eq!(ending.internal(), Status::SUCCESS);
            // Who was told first: the peer's end, or this side's own.
            let told = notice.internal();
            assert!([Status::SUCCESS, Status::CONNECTION_DISCONNECTED].contains(&told), "{told}");
            // It is over, whoever was first.
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

#[test]
fn a_notice_may_come_after_the_local_disconnect_and_only_once() {
    let pair = Pair::new();
    let mut notices = [pair.passive.operation(), pair.passive.operation()];
    // SAFETY: waited for.
    unsafe { pair.passive.connector.notify_disconnect(notices[0].ov()).unwrap() };
    assert_eq!(pair.active.disconnect(), Status::SUCCESS);
    assert_eq!(notices[0].wait(), Status::SUCCESS);
    assert_eq!(pair.passive.disconnect(), Status::SUCCESS);
    // Who asks after the end is told at once that it was this side's.
    // SAFETY: waited for.
    unsafe { pair.passive.connector.notify_disconnect(notices[1].ov()).unwrap() };
    assert_eq!(notices[1].status(), Status::CONNECTION_DISCONNECTED);
    assert_eq!(notices[0].status(), Status::SUCCESS);
}

#[test]
fn neither_half_stays_open() {
    let pair = Pair::new();
    for end in [&pair.active, &pair.passive] {
        end.receive(1, 0..64).unwrap();
    }
    assert_eq!(pair.active.disconnect(), Status::SUCCESS);
    // The side that was told, not asked, cannot send either: not even before it has disconnected itself.
    for end in [&pair.passive, &pair.active] {
        assert_eq!(end.notified_completion().status, Status::CANCELED, "the receive");
        end.send(2, 0..64, 0).unwrap();
        let sent = end.notified_completion();
        assert_eq!((sent.request_context, sent.status), (2, Status::CANCELED));
        end.receive(3, 0..64).unwrap();
        let received = end.notified_completion();
        assert_eq!((received.request_context, received.status), (3, Status::CANCELED));
    }
}

#[test]
fn what_was_disconnected_is_not_used_again() {
    let pair = Pair::new();
    assert_eq!(pair.active.disconnect(), Status::SUCCESS);
    assert_eq!(pair.passive.disconnect(), Status::SUCCESS);
    let other = End::new(&pair.active.adapter, 3);
    let (listener, at) = listen(&pair.active.adapter, &other.file, address());
    let offer = Offer::default();
    let mut spare = other.operation();
    for used in [&pair.active, &pair.passive] {
        // The connector: no address, no connection, no peer.
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
        // The queue pair, with a connector that is fresh.
        let fresh = used.adapter.create_connector(&used.file).unwrap();
        fresh.bind(address()).unwrap();
        // SAFETY: refused, too.
        let again = unsafe { fresh.connect(&used.queue_pair, at, offer, spare.ov()) };
        assert_eq!(again, Err(Status::CONNECTION_ACTIVE));
    }
}
