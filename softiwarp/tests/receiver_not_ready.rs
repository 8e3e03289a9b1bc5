//! Messages that arrive before their receive is posted, on queue pairs that let them wait, over TCP.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockRef;
use softiwarp::completion::Status;
use softiwarp::queue_pair::{Cause, Work};
use softiwarp::socket::{Background, Connection, Ended, Event};
use softiwarp::startup::{Offer, request};
use softiwarp::wire::{Header, SendKind, Terminate, Violation};
use support::device::*;
use support::{ALL, Block, Pair, pipes};

fn disconnected(devices: &[&Device], of: &Device) -> Option<Cause> {
    match event(devices, of) {
        (_, Event::Ended(Ended::Disconnected(cause))) => cause,
        other => panic!("{:?}", other.1),
    }
}

/// Whether the device is ready again and again. A timer of the start may still expire.
fn spins(device: &Device) -> bool {
    (0..5).all(|_| device.poller.drive(Some(Duration::from_millis(100))))
}

#[test]
fn a_message_waits_for_a_receive_that_is_posted_later() {
    for crc in [false, true] {
        let one = connected("127.0.0.1:0", Offer { crc, ..OFFER });
        one.ends.1.pair.lock().wait_for_receives(LONG);
        let (from, to) =
            (Block::new(&one.devices.0.domain, 64, ALL), Block::new(&one.devices.1.domain, 64, ALL));
        from.set(0, &[7; 64]);
        post(&one.connections.0, 1, SEND, &[from.piece(0, 64)]);
        until_one_waits(&both(&one), &one.ends.1);
        thread::sleep(Duration::from_millis(50));
        // Nothing is ready meanwhile, so nothing spins.
        while one.devices.0.poller.drive(Some(Duration::from_millis(20))) {}
        assert!(!spins(&one.devices.1));
        assert!(one.ends.1.received.poll().is_none());
        one.ends.1.pair.lock().post_receive(2, &[to.piece(0, 64)]).unwrap();
        let received = completions(&both(&one), &one.ends.1.received, 1);
        assert_eq!((received[0].id, received[0].status, received[0].length), (2, Status::Success, 64));
        assert_eq!(to.get(0, 64), [7; 64]);
        assert_eq!(seen(&completions(&both(&one), &one.ends.0.sent, 1)), [(1, Status::Success)]);
        // What comes after that is read as ever.
        one.ends.1.pair.lock().post_receive(3, &[]).unwrap();
        post(&one.connections.0, 4, SEND, &[]);
        assert_eq!(seen(&completions(&both(&one), &one.ends.1.received, 1)), [(3, Status::Success)]);
    }
}

#[test]
fn a_hundred_long_messages_wait_and_lose_nothing() {
    const SIZE: usize = 64 << 10;
    const COUNT: usize = 100;
    let one = waiting_for_receives(LONG);
    let from = Block::new(&one.devices.0.domain, COUNT * SIZE, ALL);
    let to = Block::new(&one.devices.1.domain, COUNT * SIZE, ALL);
    let text: Vec<u8> = (0..COUNT * SIZE).map(|at| (at * 7 + at / 256 + at / SIZE) as u8).collect();
    from.set(0, &text);
    for number in 0..COUNT {
        post(&one.connections.0, number as u64, SEND, &[from.piece(number * SIZE, SIZE)]);
    }
    until_one_waits(&both(&one), &one.ends.1);
    // Those that TCP has no room for stay here.
    while both(&one).iter().any(|device| device.poller.drive(Some(Duration::from_millis(20)))) {}
    for number in 0..COUNT {
        let receive = &[to.piece(number * SIZE, SIZE)];
        one.ends.1.pair.lock().post_receive(number as u64, receive).unwrap();
    }
    let expected: Vec<_> = (0..COUNT as u64).map(|id| (id, Status::Success)).collect();
    assert_eq!(seen(&completions(&both(&one), &one.ends.1.received, COUNT)), expected);
    assert_eq!(seen(&completions(&both(&one), &one.ends.0.sent, COUNT)), expected);
    assert!(to.get(0, COUNT * SIZE) == text);
}

/// Each message has a time of its own, also if it begins to wait when the one before it goes on.
#[test]
fn the_time_of_each_message_begins_when_it_waits() {
    const LIMIT: Duration = Duration::from_secs(2);
    let one = waiting_for_receives(LIMIT);
    let far = &one.ends.1;
    let next = || until(&both(&one), || far.pair.lock().waits_until());
    for id in 0..2 {
        post(&one.connections.0, id, SEND, &[]);
    }
    let first = next();
    let begin = Instant::now();
    while begin.elapsed() < LIMIT / 2 {
        for device in both(&one) {
            device.poller.drive(Some(Duration::from_millis(10)));
        }
    }
    far.pair.lock().post_receive(1, &[]).unwrap();
    let received = completions(&both(&one), &far.received, 1);
    if received[0].status == Status::Flushed {
        assert!(Instant::now() >= first, "the machine has kept the test from running");
        return;
    }
    // The second one is left.
    let second = next();
    assert!(second >= first + LIMIT / 2);
    assert_eq!(disconnected(&both(&one), &one.devices.1), Some(Cause::Peer(Violation::NO_BUFFER)));
    assert!(Instant::now() >= second);
}

#[test]
fn a_message_whose_receive_never_comes_ends_the_connection_at_the_limit() {
    const SIZE: usize = 1 << 20;
    const LIMIT: Duration = Duration::from_millis(300);
    let one = waiting_for_receives(LIMIT);
    let from = Block::new(&one.devices.0.domain, SIZE, ALL);
    // The first is TCP's at once; the others are too much for it.
    let begin = Instant::now();
    post(&one.connections.0, 0, SEND, &[from.piece(0, 8)]);
    for id in 1..64 {
        post(&one.connections.0, id, SEND, &[from.piece(0, SIZE)]);
    }
    assert_eq!(disconnected(&both(&one), &one.devices.1), Some(Cause::Peer(Violation::NO_BUFFER)));
    assert!(begin.elapsed() >= LIMIT);
    assert_eq!(disconnected(&both(&one), &one.devices.0), Some(Cause::Told(Some(Violation::NO_BUFFER))));
    let sent = completions(&both(&one), &one.ends.0.sent, 64);
    let done = sent.iter().take_while(|done| done.status == Status::Success).count();
    assert!((1..63).contains(&done), "{done}");
    assert_eq!(sent[done].status, Status::ReceiverNotReady);
    assert!(sent[done + 1..].iter().all(|done| done.status == Status::Flushed));
}

/// The peer names the message by its number. A read that is not answered keeps the results behind it back.
#[test]
fn a_message_that_was_sent_fails_if_it_is_not_reported_yet() {
    let device = Device::new();
    // Of two messages behind a read, the second met no receive; or one before the read, that was reported.
    for (named, expected) in [
        (3, [Status::Flushed, Status::Flushed, Status::ReceiverNotReady, Status::Flushed]),
        (1, [Status::Flushed, Status::ReceiverNotReady, Status::Flushed, Status::Flushed]),
    ] {
        let end = device.end(1);
        let (connection, mut stream) = connected_by_a_socket(&device, &end);
        let memory = Block::new(&device.domain, 8, ALL);
        end.pair.lock().release();
        for (id, work) in (0..).zip([SEND, Work::Read { token: 1, offset: 0 }, SEND, SEND, SEND]) {
            post(&connection, id, work, &[memory.piece(0, 8)]);
        }
        assert_eq!(seen(&completions(&[&device], &end.sent, 1)), [(0, Status::Success)]);
        let mut last = Vec::new();
        Terminate { violation: Violation::NO_BUFFER, cause: Some((send(named), 26)) }
            .put_frame(false, &mut last);
        stream.write_all(&last).unwrap();
        let sent = completions(&[&device], &end.sent, 4);
        assert_eq!(sent.iter().map(|done| done.status).collect::<Vec<_>>(), expected);
        assert_eq!(disconnected(&[&device], &device), Some(Cause::Told(Some(Violation::NO_BUFFER))));
    }
}

#[test]
fn what_comes_behind_a_message_that_waits_waits_too() {
    let one = waiting_for_receives(LONG);
    let from = Block::new(&one.devices.0.domain, 1 << 20, ALL);
    let (room, open) =
        (Block::new(&one.devices.1.domain, 1 << 20, ALL), Block::new(&one.devices.1.domain, 8, ALL));
    let text: Vec<u8> = (0..1 << 20).map(|at: u32| (at * 7 + at / 256) as u8).collect();
    from.set(0, &text);
    // Of many frames, the first of which waits.
    post(&one.connections.0, 1, SEND, &[from.piece(0, 1 << 20)]);
    post(&one.connections.0, 2, Work::Write { token: open.token(), offset: open.at(0) }, &[from.piece(8, 8)]);
    until_one_waits(&both(&one), &one.ends.1);
    while both(&one).iter().any(|device| device.poller.drive(Some(Duration::from_millis(20)))) {}
    assert_eq!(open.get(0, 8), [0; 8]);
    one.ends.1.pair.lock().post_receive(1, &[room.piece(0, 1 << 20)]).unwrap();
    assert_eq!(completions(&both(&one), &one.ends.1.received, 1)[0].length, 1 << 20);
    until(&both(&one), || (open.get(0, 8) == text[8..16]).then_some(()));
    assert!(room.get(0, 1 << 20) == text);
}

/// What lies between two messages of which the second waits, too, is dealt with, and answered.
#[test]
fn a_read_between_two_messages_that_wait_is_answered() {
    let one = waiting_for_receives(LONG);
    let (near, far) = (Block::new(&one.devices.0.domain, 8, ALL), Block::new(&one.devices.1.domain, 8, ALL));
    far.set(0, &[7; 8]);
    post(&one.connections.0, 1, SEND, &[]);
    post(&one.connections.0, 2, Work::Read { token: far.token(), offset: far.at(0) }, &[near.piece(0, 8)]);
    post(&one.connections.0, 3, SEND, &[]);
    until_one_waits(&both(&one), &one.ends.1);
    while both(&one).iter().any(|device| device.poller.drive(Some(Duration::from_millis(20)))) {}
    one.ends.1.pair.lock().post_receive(1, &[]).unwrap();
    let sent = completions(&both(&one), &one.ends.0.sent, 3);
    assert_eq!(seen(&sent), [1, 2, 3].map(|id| (id, Status::Success)));
    assert_eq!(near.get(0, 8), [7; 8]);
    assert!(one.ends.1.pair.lock().waits_until().is_some(), "the second message waits");
}

/// The program posts the receive, and sends before anybody has gone on with the message.
#[test]
fn a_message_whose_receive_is_there_is_not_lost_with_the_connection() {
    for sends in [true, false] {
        let device = Device::new();
        let end = device.end(1);
        let (connection, mut stream) = connected_by_a_socket(&device, &end);
        stream.write_all(&frame(1)).unwrap();
        until_one_waits(&[&device], &end);
        SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
        drop(stream);
        end.pair.lock().post_receive(2, &[]).unwrap();
        if sends {
            post(&connection, 3, SEND, &[]);
        }
        assert_eq!(
            seen(&completions(&[&device], &end.received, 1)),
            [(2, Status::Success)],
            "sends: {sends}"
        );
        assert_eq!(disconnected(&[&device], &device), Some(Cause::Lost));
    }
}

/// A process that is killed closes its connections. That is no reset, and comes behind the message.
#[test]
fn the_message_of_a_peer_that_has_closed_is_received() {
    let device = Device::new();
    let end = device.end(1);
    let (_connection, mut stream) = connected_by_a_socket(&device, &end);
    stream.write_all(&frame(1)).unwrap();
    until_one_waits(&[&device], &end);
    drop(stream);
    assert!(!spins(&device));
    end.pair.lock().post_receive(2, &[]).unwrap();
    assert_eq!(seen(&completions(&[&device], &end.received, 1)), [(2, Status::Success)]);
    assert_eq!(disconnected(&[&device], &device), Some(Cause::Closed));
}

/// The sender does not let messages wait, and is told as ever.
#[test]
fn the_sender_alone_decides_how_its_messages_fail() {
    const SIZE: usize = 1 << 20;
    let one = connected("127.0.0.1:0", OFFER);
    one.ends.1.pair.lock().wait_for_receives(Duration::from_millis(100));
    let from = Block::new(&one.devices.0.domain, SIZE, ALL);
    for id in 0..64 {
        post(&one.connections.0, id, SEND, &[from.piece(0, SIZE)]);
    }
    assert_eq!(disconnected(&both(&one), &one.devices.0), Some(Cause::Told(Some(Violation::NO_BUFFER))));
    let sent = completions(&both(&one), &one.ends.0.sent, 64);
    let left = sent.iter().skip_while(|done| done.status == Status::Success);
    assert!(left.clone().count() > 0 && left.clone().all(|done| done.status == Status::Flushed));
}

/// Each side waits with much to write, which the other does not take; then the receives come.
#[test]
fn both_sides_go_on_with_what_they_have_to_write() {
    const SIZE: usize = 1 << 20;
    const COUNT: u64 = 40;
    let one = waiting_for_receives(LONG);
    let ends = [&one.ends.0, &one.ends.1];
    let blocks = both(&one).map(|device| Block::new(&device.domain, SIZE, ALL));
    for (connection, block) in [&one.connections.0, &one.connections.1].into_iter().zip(&blocks) {
        for id in 0..COUNT {
            post(connection, id, SEND, &[block.piece(0, SIZE)]);
        }
    }
    for end in ends {
        until_one_waits(&both(&one), end);
    }
    while both(&one).iter().any(|device| device.poller.drive(Some(Duration::from_millis(20)))) {}
    assert!(ends.iter().all(|end| end.pair.lock().wants_to_write()));
    for id in 0..COUNT {
        for (end, block) in ends.iter().zip(&blocks) {
            end.pair.lock().post_receive(id, &[block.piece(0, SIZE)]).unwrap();
        }
    }
    let expected: Vec<_> = (0..COUNT).map(|id| (id, Status::Success)).collect();
    for end in ends {
        assert_eq!(seen(&completions(&both(&one), &end.received, COUNT as usize)), expected);
        assert_eq!(seen(&completions(&both(&one), &end.sent, COUNT as usize)), expected);
    }
}

/// This side sends although nothing is read, and its own message is waited for, too.
#[test]
fn both_sides_wait_for_each_other() {
    let one = waiting_for_receives(LONG);
    post(&one.connections.0, 1, SEND, &[]);
    until_one_waits(&both(&one), &one.ends.1);
    post(&one.connections.1, 2, SEND, &[]);
    until_one_waits(&both(&one), &one.ends.0);
    for end in [&one.ends.0, &one.ends.1] {
        end.pair.lock().post_receive(3, &[]).unwrap();
    }
    for end in [&one.ends.0, &one.ends.1] {
        assert_eq!(seen(&completions(&both(&one), &end.received, 1)), [(3, Status::Success)]);
    }
}

#[test]
fn an_end_while_a_message_waits() {
    // This side ends the connection.
    let one = waiting_for_receives(LONG);
    post(&one.connections.0, 1, SEND, &[]);
    until_one_waits(&both(&one), &one.ends.1);
    one.connections.1.disconnect();
    assert_eq!(disconnected(&both(&one), &one.devices.1), Some(Cause::Local));
    assert_eq!(disconnected(&both(&one), &one.devices.0), Some(Cause::Closed));
    let mut pair = one.ends.1.pair.lock();
    pair.post_receive(2, &[]).unwrap();
    drop(pair);
    assert_eq!(seen(&completions(&[], &one.ends.1.received, 1)), [(2, Status::Flushed)]);

    // The queue pair is destroyed.
    let one = waiting_for_receives(LONG);
    post(&one.connections.0, 1, SEND, &[]);
    until_one_waits(&both(&one), &one.ends.1);
    one.ends.1.pair.lock().abandon();
    one.connections.1.disconnect();
    drop(one.connections.1.posting());
    assert_eq!(disconnected(&both(&one), &one.devices.0), Some(Cause::Closed));

    // The peer ends it: the message is there all the same, and the end comes behind it.
    let one = waiting_for_receives(LONG);
    post(&one.connections.0, 1, SEND, &[]);
    until_one_waits(&both(&one), &one.ends.1);
    one.connections.0.disconnect();
    while one.devices.0.poller.drive(Some(Duration::from_millis(20))) {}
    assert!(!spins(&one.devices.1));
    one.ends.1.pair.lock().post_receive(2, &[]).unwrap();
    assert_eq!(seen(&completions(&both(&one), &one.ends.1.received, 1)), [(2, Status::Success)]);
    assert_eq!(disconnected(&both(&one), &one.devices.1), Some(Cause::Closed));

    // The device is removed.
    let one = waiting_for_receives(LONG);
    post(&one.connections.0, 1, SEND, &[]);
    until_one_waits(&both(&one), &one.ends.1);
    one.devices.1.poller.remove_device();
    assert_eq!(disconnected(&[], &one.devices.1), Some(Cause::Removed));
}

/// Nobody reads: what is to be written stays, and must not delay the end.
#[test]
fn an_end_while_a_message_waits_and_the_peer_takes_nothing() {
    const SIZE: usize = 1 << 20;
    let one = waiting_for_receives(LONG);
    let from = Block::new(&one.devices.0.domain, SIZE, ALL);
    post(&one.connections.0, 0, SEND, &[]);
    until_one_waits(&both(&one), &one.ends.1);
    post(&one.connections.1, 0, SEND, &[]);
    until_one_waits(&both(&one), &one.ends.0);
    for id in 1..100 {
        post(&one.connections.0, id, SEND, &[from.piece(0, SIZE)]);
    }
    while both(&one).iter().any(|device| device.poller.drive(Some(Duration::from_millis(20)))) {}
    assert!(one.ends.0.pair.lock().wants_to_write());
    let begin = Instant::now();
    one.connections.0.disconnect();
    assert_eq!(disconnected(&both(&one), &one.devices.0), Some(Cause::Local));
    assert!(begin.elapsed() < LONG / 2);
}

/// A device that was connected by a socket of the test, and lets messages wait.
fn connected_by_a_socket(device: &Device, end: &End) -> (Arc<Connection>, TcpStream) {
    let (_listener, address) = device.listen("127.0.0.1:0");
    let offer = Offer { peer_to_peer: false, ..OFFER };
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(&request(&offer, b"").unwrap()).unwrap();
    let (asking, _) = event(&[device], device);
    end.pair.lock().wait_for_receives(LONG);
    asking.accept(&offer, b"", Arc::clone(&end.pair)).unwrap();
    let mut reply = [0; 24];
    stream.read_exact(&mut reply).unwrap();
    (asking, stream)
}

/// The header of a message of one frame.
fn send(number: u32) -> Header {
    Header::Send { kind: SendKind::default(), number, offset: 0, last: true }
}

fn frame(number: u32) -> Vec<u8> {
    let header = send(number);
    let mut frame = (header.size() as u16).to_be_bytes().to_vec();
    header.put(&mut frame);
    frame.extend([0; 4]);
    frame
}

#[test]
fn a_peer_that_is_lost_while_its_message_waits_is_noticed_at_once() {
    let device = Device::new();
    let end = device.end(1);
    let (_connection, mut stream) = connected_by_a_socket(&device, &end);
    stream.write_all(&frame(1)).unwrap();
    until_one_waits(&[&device], &end);
    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
    assert_eq!(disconnected(&[&device], &device), Some(Cause::Lost));
    assert!(device.poller.is_idle() || !device.poller.drive(Some(Duration::from_millis(20))));
}

/// Some peers never send first, so that requests of this side are held back until something arrives. What waits has arrived.
#[test]
fn who_lets_the_first_message_wait_may_send() {
    let device = Device::new();
    let end = device.end(1);
    let (_connection, mut stream) = connected_by_a_socket(&device, &end);
    stream.write_all(&frame(1)).unwrap();
    until_one_waits(&[&device], &end);
    assert!(!end.pair.lock().is_held());
}

#[test]
fn a_receive_is_noticed_while_the_program_does_something_else_or_sleeps_in_drive() {
    for sleeps in [false, true] {
        let one = waiting_for_receives(LONG);
        post(&one.connections.0, 1, SEND, &[]);
        until_one_waits(&both(&one), &one.ends.1);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let poller = &one.devices.1.poller;
            let background = (!sleeps).then(|| Background::start(Arc::clone(poller)).unwrap());
            let drive = || {
                while !over.load(Ordering::Relaxed) {
                    poller.drive(Some(Duration::from_millis(100)));
                }
            };
            let driver = sleeps.then(|| scope.spawn(drive));
            thread::sleep(Duration::from_millis(20));
            let begin = Instant::now();
            one.ends.1.pair.lock().post_receive(2, &[]).unwrap();
            let done = std::iter::repeat_with(|| one.ends.1.received.poll()).find_map(|done| {
                assert!(begin.elapsed() < LONG, "nobody has noticed");
                thread::yield_now();
                done
            });
            assert_eq!(done.map(|done| (done.id, done.status)), Some((2, Status::Success)));
            over.store(true, Ordering::Relaxed);
            drop((driver.map(|driver| driver.join().unwrap()), background));
        });
    }
}

/// Frames that come in pieces of any size, with receives that come at any time.
#[test]
fn messages_in_pieces_wait_and_are_right() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let crc = random.bool();
        let chunk = [1, 10, 3000, 1 << 20][random.usize(0..4)];
        let mut pair =
            Pair::new(crc, 4, [128, 1448, 60_000][random.usize(0..3)], pipes(chunk, 1 << 16, seed));
        pair.ends.1.pair.wait_for_receives(LONG);
        let (from, to) =
            (Block::new(&pair.ends.0.domain, 20_000, ALL), Block::new(&pair.ends.1.domain, 20_000, ALL));
        let text: Vec<u8> = (0..20_000).map(|_| random.u8(..)).collect();
        from.set(0, &text);
        let lengths = [0, 1, random.usize(0..20_000), 300, random.usize(0..3000)];
        for (id, length) in (0..).zip(lengths) {
            pair.ends.0.send(id, &[from.piece(0, length)]);
        }
        for (id, length) in (0..).zip(lengths) {
            for _ in 0..random.usize(0..50) {
                pair.step();
            }
            assert!(pair.ends.1.take_received().is_empty());
            to.set(0, &[0; 20_000]);
            pair.ends.1.pair.post_receive(id, &[to.piece(0, length)]).unwrap();
            let mut received = Vec::new();
            pair.until(|pair| {
                received.extend(pair.ends.1.take_received());
                !received.is_empty()
            });
            assert_eq!(seen(&received), [(id, Status::Success)], "seed {seed}");
            assert!(to.get(0, length) == text[..length], "seed {seed}");
        }
    }
}

/// Without the option nothing waits, as over iWARP.
#[test]
fn without_a_limit_a_message_that_meets_no_receive_ends_the_connection() {
    let one = connected("127.0.0.1:0", OFFER);
    post(&one.connections.0, 1, SEND, &[]);
    assert_eq!(disconnected(&both(&one), &one.devices.1), Some(Cause::Peer(Violation::NO_BUFFER)));
}
