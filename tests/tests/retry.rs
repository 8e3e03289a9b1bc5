//! Connecting again with what a first attempt has used.

use ndcompat::Status;
use ndcompat::connector::Offer;
use ndcompat_tests::{End, adapter, address, listen, shows};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

#[test]
fn r09_connects_again_after_a_timeout() {
    // A neighbour's address that nobody has.
    let IpAddr::V4(here) = address().ip() else { panic!("{} is no IPv4 address", address()) };
    let silent = SocketAddr::new((u32::from(here) ^ 0x20).to_be_bytes().into(), 9).into();
    let adapter = adapter();
    let (active, passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
    for context in 0..8 {
        active.receive(context, 0..64).unwrap();
    }
    active.connector.bind(address()).unwrap();
    let (mut connect, mut request) = (active.operation(), passive.operation());
    let (mut complete, mut accept) = (active.operation(), passive.operation());
    let (listener, at) = listen(&adapter, &passive.file, address());
    let begin = Instant::now();
    // SAFETY: all are waited for.
    unsafe {
        active.connector.connect(&active.queue_pair, silent, Offer::default(), connect.ov()).unwrap();
        shows("IND2Connector::Connect", connect.wait(), Status::IO_TIMEOUT);
        assert!(begin.elapsed() < Duration::from_secs(140), "given up in the end");
        assert!(active.try_completion().is_none(), "the receives are still there");
        let offer = Offer { private_data: b"again", ..Offer::default() };
        listener.connection_request(&passive.connector, request.ov()).unwrap();
        active.connector.connect(&active.queue_pair, at, offer, connect.ov()).unwrap();
        assert_eq!(request.wait(), Status::SUCCESS);
        assert!(passive.connector.private_data().unwrap().starts_with(b"again"));
        passive.connector.accept(&passive.queue_pair, Offer::default(), accept.ov()).unwrap();
        assert_eq!(connect.wait(), Status::SUCCESS);
        active.connector.complete_connect(complete.ov()).unwrap();
        assert_eq!(complete.wait(), Status::SUCCESS);
        assert_eq!(accept.wait(), Status::SUCCESS);
    }
    passive.receive(9, 0..64).unwrap();
    active.send(9, 0..64, 0).unwrap();
    assert_eq!(active.completion().status, Status::SUCCESS);
    for context in 0..8 {
        passive.send(context, 0..64, 0).unwrap();
        let received = active.completion();
        assert_eq!((received.status, received.request_context), (Status::SUCCESS, context));
    }
    assert_eq!(active.disconnect(), Status::SUCCESS);
}
