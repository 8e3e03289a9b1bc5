//! Connections that take long: peers that accept late or do not answer, and connecting again after that, with the objects and the
//! address of a first attempt.

use ndcompat::SockAddr;
use ndcompat::connector::Offer;
use ndcompat::types::RequestFlags;
use ndcompat::{Adapter, Status};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{End, Operation, adapter, address, establish, is_emulator, is_siw, listen, shows};

/// An address on the link that no machine has.
fn silent() -> SockAddr {
    let IpAddr::V4(here) = address().ip() else { panic!("{} is no IPv4 address", address()) };
    SocketAddr::new((u32::from(here) ^ 0x20).to_be_bytes().into(), 9).into()
}

/// An end that is connecting to the silent address, for long enough that the driver is, too.
fn asking(adapter: &Arc<Adapter>, from: SockAddr) -> (End, Operation, SockAddr) {
    let end = End::new(adapter, 1);
    end.connector.bind(from).unwrap();
    let own = end.connector.local_address().unwrap();
    let mut connect = end.operation();
    // SAFETY: waited for by the test.
    unsafe {
        end.connector.connect(&end.queue_pair, silent(), Offer::default(), connect.ov()).unwrap();
    }
    // No longer than that, though a sleep may be: the device gives up in the end.
    let enough = Instant::now() + Duration::from_secs(1);
    while Instant::now() < enough {
        let status = connect.status();
        assert!(status == Status::PENDING || Instant::now() > enough, "{status}");
        std::thread::sleep(Duration::from_millis(10));
    }
    (end, connect, own)
}

fn bind(end: &End, at: SockAddr) -> Result<(), Status> {
    end.adapter.create_connector(&end.file).unwrap().bind(at)
}

/// TCP knows when no host on the link has an address. RDMA devices time out.
#[test]
fn a_host_that_is_not_there_is_unreachable() {
    if !is_emulator() {
        return;
    }
    let adapter = adapter();
    let end = End::new(&adapter, 1);
    let IpAddr::V4(here) = address().ip() else { panic!("{} is no IPv4 address", address()) };
    let nobody = SocketAddr::new((u32::from(here) ^ 0x40).to_be_bytes().into(), 9);
    end.connector.bind(address()).unwrap();
    let mut connect = end.operation();
    // SAFETY: waited for.
    unsafe {
        end.connector.connect(&end.queue_pair, nobody.into(), Offer::default(), connect.ov()).unwrap();
    }
    shows("IND2Connector::Connect", connect.wait(), Status::HOST_UNREACHABLE);
}

#[test]
fn an_attempt_that_is_cancelled_keeps_its_address() {
    let adapter = adapter();
    let other = End::new(&adapter, 2);
    let (end, mut connect, own) = asking(&adapter, address());
    end.connector.cancel();
    assert_eq!(connect.wait(), Status::CANCELED);
    // siw's driver keeps trying, and the address stays taken meanwhile.
    assert_eq!(bind(&other, own), Err(Status::SHARING_VIOLATION));
    assert_eq!(end.connector.local_address(), Ok(own));
    end.connector.close();
    // It is free once the driver has given up, after a minute or two.
    let freed = if is_siw() { Err(Status::SHARING_VIOLATION) } else { Ok(()) };
    assert_eq!(bind(&other, own), freed);
}

/// Peers wait for a program that accepts late. siw's wait for 10 s.
#[test]
fn an_accept_may_be_late() {
    let adapter = adapter();
    let (active, passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
    let (listener, at) = listen(&adapter, &passive.file, address());
    let (mut connect, mut request) = (active.operation(), passive.operation());
    let (mut complete, mut accept) = (active.operation(), passive.operation());
    active.connector.bind(address()).unwrap();
    // SAFETY: all are waited for.
    unsafe {
        listener.connection_request(&passive.connector, request.ov()).unwrap();
        active.connector.connect(&active.queue_pair, at, Offer::default(), connect.ov()).unwrap();
        assert_eq!(request.wait(), Status::SUCCESS);
        std::thread::sleep(Duration::from_secs(12));
        // siw's timer may be late.
        if is_siw() {
            assert_eq!(connect.wait(), Status::IO_TIMEOUT);
            std::thread::sleep(Duration::from_secs(3));
        }
        passive.connector.accept(&passive.queue_pair, Offer::default(), accept.ov()).unwrap();
        if is_siw() {
            return assert_eq!(accept.wait(), Status::CONNECTION_ABORTED);
        }
        assert_eq!(connect.wait(), Status::SUCCESS);
        active.connector.complete_connect(complete.ov()).unwrap();
    }
    assert_eq!((complete.wait(), accept.wait()), (Status::SUCCESS, Status::SUCCESS));
    passive.receive(9, 0..64).unwrap();
    active.send(9, 0..64, RequestFlags::empty()).unwrap();
    assert_eq!((active.completion().status, passive.completion().status), (Status::SUCCESS, Status::SUCCESS));
}

/// As before, but the peer has given up meanwhile.
#[test]
fn a_late_accept_of_a_peer_that_has_cancelled_fails() {
    let adapter = adapter();
    let (active, passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
    let (listener, at) = listen(&adapter, &passive.file, address());
    let (mut connect, mut request, mut accept) =
        (active.operation(), passive.operation(), passive.operation());
    active.connector.bind(address()).unwrap();
    // SAFETY: all are waited for.
    unsafe {
        listener.connection_request(&passive.connector, request.ov()).unwrap();
        active.connector.connect(&active.queue_pair, at, Offer::default(), connect.ov()).unwrap();
        assert_eq!(request.wait(), Status::SUCCESS);
        active.connector.cancel();
        assert_eq!(connect.wait(), Status::CANCELED);
        // siw's peer gives up after 10 s.
        std::thread::sleep(Duration::from_secs(20));
        let begun = passive.connector.accept(&passive.queue_pair, Offer::default(), accept.ov());
        let status = begun.err().unwrap_or_else(|| accept.wait());
        assert_eq!(status, Status::CONNECTION_ABORTED);
    }
    // The queue pair and another connector are good for the next connection.
    let again = End::new(&adapter, 3);
    let passive = End { connector: adapter.create_connector(&passive.file).unwrap(), ..passive };
    again.connector.bind(address()).unwrap();
    establish(&again, &passive, (&listener, at), [Offer::default(); 2], || ());
}

/// Connects again from the same address, while the driver still tries for a queue pair that was released.
fn connects_again(from: SockAddr) {
    let adapter = adapter();
    let passive = End::new(&adapter, 2);
    let (listener, at) = listen(&adapter, &passive.file, address());
    let (end, mut connect, own) = asking(&adapter, from);
    let connector = end.connector.clone();
    drop(end);
    assert_eq!(connect.wait(), Status::CANCELED);
    let end = End { connector, ..End::new(&adapter, 3) };
    establish(&end, &passive, (&listener, at), [Offer::default(); 2], || ());
    assert_eq!(end.connector.local_address(), passive.connector.peer_address());
    if from.port() != 0 {
        assert_eq!(end.connector.local_address(), Ok(own));
    }
    passive.receive(9, 0..64).unwrap();
    end.send(9, 0..64, RequestFlags::empty()).unwrap();
    assert_eq!((end.completion().status, passive.completion().status), (Status::SUCCESS, Status::SUCCESS));
}

#[test]
fn connects_again_from_a_port_of_this_sides_choice() {
    connects_again(address());
}

#[test]
fn connects_again_from_a_port_of_the_programs_choice() {
    connects_again(address().with_port(23456));
}

#[test]
fn connects_again_after_a_timeout() {
    let silent = silent();
    let adapter = adapter();
    let (active, passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
    for context in 0..8 {
        active.receive(context, 0..64).unwrap();
    }
    active.connector.bind(address()).unwrap();
    let mut connect = active.operation();
    let (listener, at) = listen(&adapter, &passive.file, address());
    let begin = Instant::now();
    // SAFETY: waited for.
    unsafe { active.connector.connect(&active.queue_pair, silent, Offer::default(), connect.ov()).unwrap() };
    shows("IND2Connector::Connect", connect.wait(), Status::IO_TIMEOUT);
    assert!(begin.elapsed() < Duration::from_secs(140), "given up in the end");
    assert!(active.try_completion().is_none(), "the receives are still there");
    let offer = Offer { private_data: b"again", ..Offer::default() };
    establish(&active, &passive, (&listener, at), [offer, Offer::default()], || {
        assert!(passive.connector.private_data().unwrap().starts_with(b"again"));
    });
    passive.receive(9, 0..64).unwrap();
    active.send(9, 0..64, RequestFlags::empty()).unwrap();
    assert_eq!(active.completion().status, Status::SUCCESS);
    for context in 0..8 {
        passive.send(context, 0..64, RequestFlags::empty()).unwrap();
        let received = active.completion();
        assert_eq!((received.status, received.request_context), (Status::SUCCESS, context));
    }
    assert_eq!(active.disconnect(), Status::SUCCESS);
}
