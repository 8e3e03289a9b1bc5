//! Connections over real TCP, on 127.0.0.1 and ::1.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use socket2::SockRef;
use softiwarp::completion::{Completion, CompletionQueue, Status};
use softiwarp::queue_pair::{Cause, Opening, Phase, QueuePair, QueuePairConfig, Work};
use softiwarp::socket::{Background, Connection, Ended, Event, Handler, Poller, SharedPair};
use softiwarp::startup::{Asked, Offer, request};
use softiwarp::wire::startup::Parsed;
use softiwarp::wire::{Enhanced, SendKind, StartFrame, StartKind, Terminate, Violation, fpdu};
use support::device::*;
use support::{ALL, Block};

#[test]
fn what_is_sent_written_and_read_is_right() {
    for at in ["127.0.0.1:0", "[::1]:0"] {
        for crc in [false, true] {
            for peer_to_peer in [false, true] {
                let Connected { devices, ends, connections } =
                    connected(at, Offer { crc, peer_to_peer, ..OFFER });
                let both = [&devices.0, &devices.1];
                const SIZE: usize = 3_000_000;
                let ours = Block::new(&devices.0.domain, 2 * SIZE, ALL);
                let theirs = Block::new(&devices.1.domain, 2 * SIZE, ALL);
                let text: Vec<u8> = (0..SIZE).map(|i| (i * 7 + i / 256) as u8).collect();
                ours.set(0, &text);
                ends.1.pair.lock().post_receive(1, &[theirs.piece(SIZE, 5)]).unwrap();
                ends.0.pair.lock().post_receive(1, &[]).unwrap();
                let token = theirs.token();
                // The side that was connected to may send first in any case.
                post(&connections.1, 9, Work::Send(SendKind::default()), &[]);
                post(
                    &connections.0,
                    1,
                    Work::Write { token, offset: theirs.at(0) },
                    &[ours.piece(0, 7), ours.piece(7, SIZE - 7)],
                );
                post(&connections.0, 2, Work::Send(SendKind::default()), &[ours.piece(1, 5)]);
                post(
                    &connections.0,
                    3,
                    Work::Read { token, offset: theirs.at(3) },
                    &[ours.piece(SIZE, SIZE - 3)],
                );
                let done = completions(&both, &ends.0.sent, 3);
                assert_eq!(seen(&done), [1, 2, 3].map(|id| (id, Status::Success)));
                let received = completions(&both, &ends.1.received, 1);
                assert_eq!((received[0].id, received[0].length), (1, 5));
                assert_eq!(seen(&completions(&both, &ends.0.received, 1)), [(1, Status::Success)]);
                assert!(theirs.get(0, SIZE) == text, "what was written");
                assert_eq!(theirs.get(SIZE, 5), text[1..6]);
                assert!(ours.get(SIZE, SIZE - 3) == text[3..], "what was read");
                connections.0.disconnect();
                let (_, ended) = event(&both, &devices.0);
                assert_eq!(ended, Event::Ended(Ended::Disconnected(Some(Cause::Local))));
                let (_, ended) = event(&both, &devices.1);
                assert_eq!(ended, Event::Ended(Ended::Disconnected(Some(Cause::Closed))));
                until(&both, || devices.0.poller.is_idle().then_some(()));
            }
        }
    }
}

/// Until it comes, the side that was connected to may not send: with nothing to send, a program would wait for a program
/// that waits for it.
#[test]
fn who_connects_sends_the_first_frame_without_a_request_of_the_program() {
    let device = Device::new();
    let end = device.end(1);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let offer = Offer { peer_to_peer: true, ..OFFER };
    let _connection = device.connect(listener.local_addr().unwrap(), offer, b"", &end);
    let mut peer = listener.accept().unwrap().0;
    peer.set_nonblocking(true).unwrap();
    let mut bytes = [0; 600];
    let count = until(&[&device], || peer.read(&mut bytes).ok());
    let Ok(Parsed::Frame(request, _)) = StartFrame::parse(&bytes[..count], StartKind::Request) else {
        panic!("no request: {bytes:?}")
    };
    let (reply, agreement) = Asked::new(&request).accept(&offer, b"").unwrap();
    assert_eq!(agreement.opening, Opening::AwaitsEmpty);
    peer.write_all(&reply).unwrap();
    assert!(matches!(event(&[&device], &device).1, Event::Established { .. }));
    let count = until(&[&device], || peer.read(&mut bytes).ok());
    assert_eq!(count, fpdu::size(14), "a tagged frame without content");
    assert_eq!(bytes[..2], [0, 14]);
}

#[test]
fn a_refusal_carries_words() {
    let devices = (Device::new(), Device::new());
    let both = [&devices.0, &devices.1];
    let (_listener, address) = devices.1.listen("127.0.0.1:0");
    let end = devices.0.end(1);
    devices.0.connect(address, OFFER, b"", &end);
    let (theirs, _) = event(&both, &devices.1);
    theirs.refuse(b"not today").unwrap();
    assert!(theirs.refuse(b"again").is_err());
    let (_, ended) = event(&both, &devices.0);
    assert_eq!(ended, Event::Ended(Ended::Refused(b"not today".to_vec())));
}

/// A peer that asks.
fn asker(at: SocketAddr) -> TcpStream {
    let mut peer = TcpStream::connect(at).unwrap();
    peer.write_all(&request(&OFFER, b"may I?").unwrap()).unwrap();
    peer
}

/// Says no more; the other end knows when this returns.
fn leave(peer: &TcpStream) {
    peer.shutdown(Shutdown::Write).unwrap();
    until(&[], || {
        let mut unknown = 1;
        // SAFETY: the result is writable.
        assert_eq!(unsafe { libc::ioctl(peer.as_raw_fd(), libc::TIOCOUTQ, &raw mut unknown) }, 0);
        (unknown == 0).then_some(())
    });
}

#[test]
fn an_asker_that_has_left_cannot_be_answered() {
    let device = Device::new();
    let (_listener, address) = device.listen("127.0.0.1:0");
    let end = device.end(1);
    for accepts in [true, false] {
        for more in [&b""[..], b"more"] {
            let mut peer = asker(address);
            let (theirs, _) = event(&[&device], &device);
            peer.write_all(more).unwrap();
            leave(&peer);
            // Nobody has driven the poller since.
            let answered = if accepts {
                theirs.accept(&OFFER, b"come in", Arc::clone(&end.pair)).map(drop)
            } else {
                theirs.refuse(b"not today")
            };
            assert_eq!(answered.unwrap_err().kind(), ErrorKind::NotConnected);
        }
    }
}

#[test]
fn an_asker_that_leaves_before_the_answer_is_told_of() {
    let device = Device::new();
    let (_listener, address) = device.listen("127.0.0.1:0");
    for resets in [false, true] {
        let peer = asker(address);
        let from = peer.local_addr().unwrap();
        if resets {
            SockRef::from(&peer).set_linger(Some(Duration::ZERO)).unwrap();
            drop(peer);
        } else {
            leave(&peer);
        }
        let (theirs, asked) = event(&[&device], &device);
        assert!(matches!(asked, Event::Asked { .. }), "{asked:?}");
        assert_eq!(theirs.peer_address(), from);
        assert_eq!(event(&[&device], &device).1, Event::Ended(Ended::NotAccepted));
        assert_eq!(theirs.refuse(b"").unwrap_err().kind(), ErrorKind::NotConnected);
    }
}

/// This side may not send before the frame has come, so that nothing else would end the connection.
#[test]
fn a_peer_that_does_not_send_the_first_frame_that_it_has_agreed_to_is_given_up() {
    let device = Device::new();
    let (_listener, address) = device.listen("127.0.0.1:0");
    let end = device.end(1);
    let mut peer = TcpStream::connect(address).unwrap();
    peer.write_all(&request(&Offer { peer_to_peer: true, ..OFFER }, b"").unwrap()).unwrap();
    let (theirs, _) = event(&[&device], &device);
    let agreement = theirs.accept(&OFFER, b"", Arc::clone(&end.pair)).unwrap();
    assert_eq!(agreement.opening, Opening::AwaitsEmpty);
    post(&theirs, 1, Work::Send(SendKind::default()), &[]);
    assert_eq!(seen(&completions(&[&device], &end.sent, 1)), [(1, Status::Flushed)]);
    assert_eq!(event(&[&device], &device).1, Event::Ended(Ended::Disconnected(Some(Cause::Lost))));
}

#[test]
fn nobody_there_and_somebody_who_speaks_something_else() {
    let device = Device::new();
    let end = device.end(1);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let first = device.connect(address, OFFER, b"", &end);
    let mut stream = silent.accept().unwrap().0;
    stream.write_all(b"HTTP/1.1 400 Bad Request\r\n").unwrap();
    assert_eq!(event(&[&device], &device).1, Event::Ended(Ended::NotAccepted));
    drop((first, stream, silent));
    let end = device.end(2);
    device.connect(address, OFFER, b"", &end);
    assert_eq!(event(&[&device], &device).1, Event::Ended(Ended::Unreachable(libc::ECONNREFUSED)));
}

#[test]
fn a_listener_is_not_impressed_by_strangers() {
    let devices = (Device::new(), Device::new());
    let both = [&devices.0, &devices.1];
    let (_listener, address) = devices.1.listen("127.0.0.1:0");
    let mut stranger = TcpStream::connect(address).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let silent = TcpStream::connect(address).unwrap();
    let markers = [&b"MPA ID Req Frame"[..], &[0x90, 2, 0, 4, 0, 1, 0, 1]].concat();
    let mut wants_markers = TcpStream::connect(address).unwrap();
    wants_markers.write_all(&markers).unwrap();
    let end = devices.0.end(1);
    devices.0.connect(address, OFFER, b"hello", &end);
    let (theirs, asked) = event(&both, &devices.1);
    assert!(matches!(asked, Event::Asked { private_data, .. } if private_data == b"hello"));
    theirs.refuse(b"").unwrap();
    let mut answer = Vec::new();
    let _ = stranger.read_to_end(&mut answer);
    assert!(answer.is_empty());
    let mut answer = [0; 24];
    wants_markers.read_exact(&mut answer).unwrap();
    assert_eq!(answer[16] & 0xa0, 0x20, "refused, and no markers");
    drop(silent);
}

#[test]
fn a_fault_ends_one_connection_and_no_other() {
    let one = connected("127.0.0.1:0", OFFER);
    let other = connected("127.0.0.1:0", OFFER);
    let all = [&one.devices.0, &one.devices.1, &other.devices.0, &other.devices.1];
    let ours = Block::new(&one.devices.0.domain, 100, ALL);
    let theirs = Block::new(&one.devices.1.domain, 100, ALL);
    post(
        &one.connections.0,
        1,
        Work::Write { token: theirs.token(), offset: theirs.at(91) },
        &[ours.piece(0, 10)],
    );
    let told = Some(Cause::Told(Some(Violation::WRITE_BOUNDS)));
    assert_eq!(event(&all, &one.devices.0).1, Event::Ended(Ended::Disconnected(told)));
    let found = Some(Cause::Peer(Violation::WRITE_BOUNDS));
    assert_eq!(event(&all, &one.devices.1).1, Event::Ended(Ended::Disconnected(found)));
    other.ends.1.pair.lock().post_receive(5, &[]).unwrap();
    post(&other.connections.0, 1, Work::Send(SendKind::default()), &[]);
    assert_eq!(seen(&completions(&all, &other.ends.1.received, 1)), [(5, Status::Success)]);
}

/// The program of the target computes: the background serves reads and writes, and the peer's end.
#[test]
fn a_target_is_served_in_the_background() {
    let Connected { devices, ends, connections } = connected("127.0.0.1:0", OFFER);
    let background = Background::start(Arc::clone(&devices.1.poller)).unwrap();
    let ours = Block::new(&devices.0.domain, 100_000, ALL);
    let theirs = Block::new(&devices.1.domain, 100_000, ALL);
    theirs.set(0, &[7; 100_000]);
    post(
        &connections.0,
        1,
        Work::Read { token: theirs.token(), offset: theirs.at(0) },
        &[ours.piece(0, 100_000)],
    );
    assert_eq!(seen(&completions(&[&devices.0], &ends.0.sent, 1)), [(1, Status::Success)]);
    assert!(ours.get(0, 100_000) == [7; 100_000]);
    connections.0.disconnect();
    until(&[&devices.0], || (!devices.1.told.0.lock().is_empty()).then_some(()));
    drop(background);
}

/// A peer that reads nothing: what is posted waits, and ends with the connection.
#[test]
fn a_peer_that_never_reads_holds_nobody_up() {
    let one = connected("127.0.0.1:0", OFFER);
    let ours = Block::new(&one.devices.0.domain, 1 << 20, ALL);
    for id in 0..64 {
        post(&one.connections.0, id, Work::Write { token: 1, offset: 0 }, &[ours.piece(0, 1 << 20)]);
    }
    one.devices.0.poller.drive(Some(Duration::ZERO));
    one.connections.0.disconnect();
    let done: Vec<Completion> = std::iter::from_fn(|| one.ends.0.sent.poll()).collect();
    assert_eq!(done.len(), 64);
    assert_eq!(done[63].status, Status::Flushed);
    drop(ours);
}

#[test]
fn a_peer_whose_reply_cannot_be_is_told_what_is_wrong() {
    let limits = Enhanced { inbound_reads: 8, outbound_reads: 8, ..Enhanced::default() };
    let reply = |enhanced| {
        let (kind, markers, crc, refused) = (StartKind::Reply, false, false, false);
        let frame = StartFrame {
            kind,
            markers,
            crc,
            refused,
            revision: 2,
            enhanced: Some(enhanced),
            private_data: b"",
        };
        let mut bytes = Vec::new();
        frame.put(&mut bytes).unwrap();
        bytes
    };
    let mut strange = reply(limits);
    strange[0] ^= 1;
    for (reply, violation) in [
        (strange, Violation::START_FRAME),
        (reply(Enhanced { outbound_reads: 9, ..limits }), Violation::READ_LIMITS),
        (reply(Enhanced { peer_to_peer: true, ..limits }), Violation::FIRST_FRAME),
    ] {
        let device = Device::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        device.connect(listener.local_addr().unwrap(), OFFER, b"", &device.end(1));
        let mut peer = listener.accept().unwrap().0;
        device.poller.drive(Some(Duration::from_secs(30)));
        peer.read_exact(&mut [0; 24]).unwrap();
        peer.write_all(&reply).unwrap();
        assert_eq!(event(&[&device], &device).1, Event::Ended(Ended::NotAccepted));
        let mut said = Vec::new();
        peer.read_to_end(&mut said).unwrap();
        let ulpdu = usize::from(u16::from_be_bytes([said[0], said[1]]));
        assert_eq!((said.len(), &said[2..4]), (fpdu::size(ulpdu), &[0x41, 0x47][..]));
        let told = Terminate::parse(&said[20..2 + ulpdu]).unwrap();
        assert_eq!(told, Terminate { violation, cause: None });
        drop(peer);
        until(&[&device], || device.poller.is_idle().then_some(()));
    }
}

/// A program that is slow to hear that it is connected: another of its threads sees the connection end meanwhile.
struct Slow {
    poller: Arc<Poller>,
    pair: SharedPair,
    told: Mutex<Vec<Event>>,
}

impl Handler for Slow {
    fn event(&self, _: &Arc<Connection>, event: Event) {
        if matches!(event, Event::Established { .. }) {
            let see_the_end = || {
                while self.pair.lock().phase() != Phase::Ended {
                    self.poller.drive(Some(Duration::from_millis(1)));
                }
            };
            thread::scope(|scope| scope.spawn(see_the_end).join().unwrap());
        }
        self.told.lock().push(event);
    }
}

#[test]
fn a_connection_that_ends_at_once_was_established_before() {
    let near = Device::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let peer = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = vec![0; request(&OFFER, b"").unwrap().len()];
        stream.read_exact(&mut bytes).unwrap();
        let Ok(Parsed::Frame(frame, _)) = StartFrame::parse(&bytes, StartKind::Request) else { panic!() };
        let (reply, _) = Asked::new(&frame).accept(&OFFER, b"").unwrap();
        stream.write_all(&reply).unwrap();
    });
    let end = near.end(1);
    let pair = Arc::clone(&end.pair);
    let slow = Arc::new(Slow { poller: Arc::clone(&near.poller), pair, told: Mutex::default() });
    let (offer, handler) = ((OFFER, &b""[..]), Arc::clone(&slow) as Arc<dyn Handler>);
    let to = (None, address);
    let _ours = Connection::connect(&near.poller, to, offer, Arc::clone(&end.pair), handler).unwrap();
    until(&[&near], || (slow.told.lock().len() == 2).then_some(()));
    let told = slow.told.lock();
    assert!(matches!(told[0], Event::Established { .. }), "{told:?}");
    assert!(matches!(told[1], Event::Ended(Ended::Disconnected(_))), "{told:?}");
    peer.join().unwrap();
}

/// Two connections with one completion queue, of which one has ended: what is posted to it fills the queue.
#[test]
fn a_queue_that_overflows_behind_the_end_of_a_connection_ends_the_others() {
    let (near, far) = (Device::new(), Device::new());
    let both = [&near, &far];
    let (_listener, address) = far.listen("127.0.0.1:0");
    let queue = Arc::new(CompletionQueue::new(2, |_| {}));
    let mut all = Vec::new();
    for number in [1, 2] {
        let pair = Arc::new(Mutex::new(QueuePair::new(QueuePairConfig {
            number,
            domain: far.domain.clone(),
            send_completions: Arc::clone(&queue),
            receive_completions: Arc::clone(&queue),
            send_depth: 8,
            receive_depth: 8,
            shared_receives: None,
            pieces_max: 1,
            inline_max: 0,
        })));
        let end = near.end(number);
        let ours = near.connect(address, OFFER, b"", &end);
        let (theirs, _) = event(&both, &far);
        theirs.accept(&OFFER, b"", Arc::clone(&pair)).unwrap();
        assert!(matches!(event(&both, &near).1, Event::Established { .. }));
        all.push((pair, theirs, ours, end));
    }
    let (ended, other) = (&all[0], &all[1]);
    ended.1.disconnect();
    until(&both, || (ended.0.lock().phase() == Phase::Ended).then_some(()));
    for id in 0..3 {
        assert_eq!(other.0.lock().cause(), None);
        post(&ended.1, id, Work::Send(SendKind::default()), &[]);
    }
    assert_eq!(other.0.lock().cause(), Some(Cause::Overflow));
}
