//! Messages that the accepting side sends before the connecting side has called `CompleteConnect`.

use ndcompat::connector::Offer;
use ndcompat::types::RequestFlags;
use ndcompat::{SharedReceiveQueueConfig, Status};
use std::time::{Duration, Instant};
use support::{End, Operation, adapter, address, establish, is_emulator, is_siw, listen};

/// Two ends, of which the connecting one has had the answer and not called `CompleteConnect`; and the request of the other one's `Accept`.
fn answered() -> (End, End, Operation) {
    answered_by(End::new(&adapter(), 1))
}

/// The same with a connecting end that is there.
fn answered_by(active: End) -> (End, End, Operation) {
    let passive = End::new(&adapter(), 2);
    let (listener, at) = listen(&passive.adapter, &passive.file, address());
    active.connector.bind(address()).unwrap();
    let (mut request, mut accept) = (passive.operation(), passive.operation());
    let mut connect = active.operation();
    // SAFETY: two are waited for here, and the third by the caller.
    unsafe {
        listener.connection_request(&passive.connector, request.ov()).unwrap();
        active.connector.connect(&active.queue_pair, at, Offer::default(), connect.ov()).unwrap();
        assert_eq!(request.wait_beside(&mut connect), Status::SUCCESS);
        passive.connector.accept(&passive.queue_pair, Offer::default(), accept.ov()).unwrap();
    }
    assert_eq!(connect.wait(), Status::SUCCESS);
    (active, passive, accept)
}

/// The accepting side sends as soon as its `Accept` has ended. The connecting side does `before` between `Connect` and `CompleteConnect`, and
/// `after` then. Returns the status of its next result, and that of the message's.
fn early_message(before: impl FnOnce(&End), after: impl FnOnce(&End)) -> [Status; 2] {
    let (active, passive, mut accept) = answered();
    let mut complete = active.operation();
    std::thread::scope(|scope| {
        let passive = &passive;
        let sender = scope.spawn(move || {
            assert_eq!(accept.wait(), Status::SUCCESS);
            passive.send(7, 0..64, RequestFlags::empty()).unwrap();
            passive.completion().status
        });
        // On the emulator, where `Accept` does not wait, the message is there by now.
        std::thread::sleep(Duration::from_millis(100));
        before(&active);
        // SAFETY: it is waited for.
        unsafe { active.connector.complete_connect(complete.ov()).unwrap() };
        assert_eq!(complete.wait(), Status::SUCCESS);
        after(&active);
        let received = active.completion().status;
        [received, sender.join().unwrap()]
    })
}

/// The page has `Accept` end once the peer has called `CompleteConnect`: a receive that was posted before meets the first message. On siw it
/// may not, as the driver ends the connection.
#[test]
fn a_receive_before_complete_connect_is_in_time() {
    if is_siw() {
        return;
    }
    for _ in 0..5 {
        let results = early_message(|active| active.receive(8, 0..64).unwrap(), |_| ());
        assert_eq!(results, [Status::SUCCESS; 2]);
    }
}

/// As it would be on Windows, where the message is sent later.
#[test]
fn a_receive_just_after_complete_connect_is_in_time() {
    if is_siw() {
        return;
    }
    let results = early_message(|_| (), |active| active.receive(8, 0..64).unwrap());
    assert_eq!(results, [Status::SUCCESS; 2]);
}

/// Each time, the next message waits while the program takes the one before.
#[test]
fn receives_one_by_one_just_after_complete_connect_are_in_time() {
    if is_siw() {
        return;
    }
    let (active, passive, mut accept) = answered();
    let mut complete = active.operation();
    let messages = [7, 8, 9];
    std::thread::scope(|scope| {
        let passive = &passive;
        scope.spawn(move || {
            assert_eq!(accept.wait(), Status::SUCCESS);
            for context in messages {
                passive.send(context, 0..64, RequestFlags::empty()).unwrap();
            }
            for context in messages {
                let sent = passive.completion();
                assert_eq!((sent.status, sent.request_context), (Status::SUCCESS, context));
            }
        });
        std::thread::sleep(Duration::from_millis(100));
        // SAFETY: it is waited for.
        unsafe { active.connector.complete_connect(complete.ov()).unwrap() };
        assert_eq!(complete.wait(), Status::SUCCESS);
        for context in messages {
            active.receive(context, 0..64).unwrap();
            let received = active.completion();
            assert_eq!((received.status, received.request_context), (Status::SUCCESS, context));
        }
    });
}

/// Nor does a message wait at a queue pair that accepts after its own `Connect` was refused.
#[test]
fn after_a_refused_connect_a_message_without_a_receive_ends_the_accepted_connection() {
    if !is_emulator() {
        return;
    }
    let adapter = adapter();
    let (active, mut passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
    let (listener, at) = listen(&adapter, &passive.file, address());
    passive.connector.bind(address()).unwrap();
    let (mut asked, mut refused) = (passive.operation(), passive.operation());
    // SAFETY: both are waited for.
    unsafe {
        listener.connection_request(&active.connector, asked.ov()).unwrap();
        passive.connector.connect(&passive.queue_pair, at, Offer::default(), refused.ov()).unwrap();
    }
    assert_eq!(asked.wait(), Status::SUCCESS);
    active.connector.reject(b"").unwrap();
    assert_eq!(refused.wait(), Status::CONNECTION_REFUSED);

    passive.connector = adapter.create_connector(&passive.file).unwrap();
    let active = End { connector: adapter.create_connector(&active.file).unwrap(), ..active };
    active.connector.bind(address()).unwrap();
    establish(&active, &passive, (&listener, at), [Offer::default(); 2], || ());
    let begin = Instant::now();
    let mut ended = active.operation();
    // SAFETY: it is waited for.
    unsafe { active.connector.notify_disconnect(ended.ov()).unwrap() };
    active.send(7, 0..64, RequestFlags::empty()).unwrap();
    assert_eq!(ended.wait(), Status::SUCCESS);
    assert!(begin.elapsed() < Duration::from_secs(30), "it waits as if it had connected");
}

/// On the emulator, a message that meets no receive ends the connection, also one that came before the connection was complete.
#[test]
fn a_message_without_a_receive_ends_the_connection_soon_after_complete_connect() {
    if !is_emulator() {
        return;
    }
    let begin = Instant::now();
    let [received, _] = early_message(
        |_| (),
        |active| {
            let mut ended = active.operation();
            // SAFETY: it is waited for.
            unsafe { active.connector.notify_disconnect(ended.ov()).unwrap() };
            assert_eq!(ended.wait(), Status::SUCCESS);
            active.receive(8, 0..64).unwrap();
            assert_eq!(active.disconnect(), Status::SUCCESS);
        },
    );
    assert_eq!(received, Status::CANCELED);
    assert!(begin.elapsed() < Duration::from_secs(30), "it waits as if the connection were never complete");
}

/// Of a shared queue, too, which may have receives for other connections meanwhile.
#[test]
fn a_receive_of_a_shared_queue_before_complete_connect_is_in_time() {
    if is_siw() {
        return;
    }
    let config = SharedReceiveQueueConfig { depth: 4, max_sge: 1, threshold: 0, affinity: (0, 3) };
    let adapter = adapter();
    let shared = adapter.create_shared_receive_queue(&End::new(&adapter, 0).file, config).unwrap();
    let (active, passive, mut accept) = answered_by(End::sharing(&adapter, 1, &shared));
    let mut complete = active.operation();
    std::thread::scope(|scope| {
        let passive = &passive;
        scope.spawn(move || {
            assert_eq!(accept.wait(), Status::SUCCESS);
            passive.send(7, 0..64, RequestFlags::empty()).unwrap();
            assert_eq!(passive.completion().status, Status::SUCCESS);
        });
        std::thread::sleep(Duration::from_millis(100));
        // SAFETY: the memory lives longer than the receive.
        unsafe { shared.receive(8, &[active.memory.sge(0..64)]) }.unwrap();
        // SAFETY: it is waited for.
        unsafe { active.connector.complete_connect(complete.ov()).unwrap() };
        assert_eq!(complete.wait(), Status::SUCCESS);
        let received = active.completion();
        assert_eq!((received.status, received.request_context), (Status::SUCCESS, 8));
    });
}

/// The connecting side may think better of it while a message waits: the other side is told at once.
#[test]
fn a_message_that_waits_does_not_keep_the_connection() {
    if !is_emulator() {
        return;
    }
    for rejects in [true, false] {
        let (active, passive, mut accept) = answered();
        assert_eq!(accept.wait(), Status::SUCCESS);
        let mut ended = passive.operation();
        // SAFETY: it is waited for.
        unsafe { passive.connector.notify_disconnect(ended.ov()).unwrap() };
        passive.send(7, 0..64, RequestFlags::empty()).unwrap();
        assert_eq!(passive.completion().status, Status::SUCCESS);
        let begin = Instant::now();
        if rejects {
            active.connector.reject(b"no").unwrap();
        } else {
            drop(active);
        }
        assert_eq!(ended.wait(), Status::SUCCESS);
        assert!(begin.elapsed() < Duration::from_secs(30), "it waits for the receive");
    }
}
