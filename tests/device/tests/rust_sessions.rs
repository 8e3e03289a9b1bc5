//! Sessions of the Rust API: requests for a peer that are given up, receives at the end of a connection, memory that there is not.

use ndcompat::types::RegionFlags;
use ndcompat::{Connection, Offer, Pair, Session, Status};
use std::time::Duration;

/// The time limit.
const SOON: Duration = Duration::from_secs(60);

fn session() -> Session {
    Session::new(&support::adapter()).unwrap()
}

/// Two ends of a connection. `first` posts on the second before it is connected.
fn connected(session: &Session, first: impl FnOnce(&Pair)) -> (Connection, Connection) {
    let own = support::address().into();
    let acceptor = session.listen(own).unwrap();
    let address = acceptor.local_address().unwrap();
    std::thread::scope(|threads| {
        let connecting = threads.spawn(|| {
            let pair = session.queue_pair().build().unwrap();
            session.wait(session.connect_from(own, pair, address, Offer::default())).unwrap()
        });
        let pair = session.queue_pair().build().unwrap();
        first(&pair);
        let request = session.wait_for(SOON, acceptor.request()).unwrap().unwrap();
        let accepted = session.wait(request.accept(pair, Offer::default())).unwrap();
        (connecting.join().unwrap(), accepted)
    })
}

#[test]
fn a_peer_is_served_by_the_request_that_still_waits() {
    let (server, client) = (session(), session());
    let own = support::address().into();
    let acceptor = server.listen(own).unwrap();
    let address = acceptor.local_address().unwrap();
    for _ in 0..5 {
        assert!(server.wait_for(Duration::from_millis(1), acceptor.request()).is_none());
    }
    std::thread::scope(|threads| {
        let connecting = threads.spawn(|| {
            let pair = client.queue_pair().build().unwrap();
            client.wait(client.connect_from(own, pair, address, Offer::default()))
        });
        // The peer may come to a request that is just being given up.
        let request = loop {
            if let Some(request) = server.wait_for(Duration::from_micros(50), acceptor.request()) {
                break request.unwrap();
            }
        };
        let pair = server.queue_pair().build().unwrap();
        let _accepted = server.wait(request.accept(pair, Offer::default())).unwrap();
        connecting.join().unwrap().unwrap();
    });
}

#[test]
fn receives_end_with_the_connection_though_its_end_is_waited_for() {
    let session = session();
    for kind in ["none", "held", "dropped", "completed"] {
        let mut receiving = None;
        let buffer = session.buffer(8).unwrap();
        let (client, server) = connected(&session, |pair| receiving = Some(pair.receive(buffer)));
        let mut gone = (kind != "none").then(|| server.disconnected().unwrap());
        if kind == "dropped" {
            gone = None;
        }
        session.wait(client.disconnect()).unwrap();
        if kind == "completed" {
            gone.take().unwrap().wait().unwrap();
        }
        let Ok((_, result)) = receiving.unwrap().wait_for(SOON) else { panic!("{kind}: it does not end") };
        assert_eq!(result.err(), Some(Status::CANCELED), "{kind}");
    }
}

#[test]
fn memory_that_there_is_not_is_an_error() {
    let session = session();
    let most = session.adapter().info().unwrap().max_registration_size;
    // The second is all that a process can address.
    for (length, status) in [(usize::MAX, Status::INVALID_PARAMETER), (1 << 47, Status::NO_MEMORY)] {
        let status = if length > most { Status::INVALID_PARAMETER } else { status };
        assert_eq!(session.buffer(length).err(), Some(status), "{length}");
        assert_eq!(session.shared_memory(length, RegionFlags::empty()).err(), Some(status), "{length}");
    }
}
