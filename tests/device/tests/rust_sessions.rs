//! Sessions of the Rust API: requests for a peer that are given up, receives at the end of a connection, memory that there is not.

#[path = "../../shared/sessions.rs"]
mod shared;

use ndcompat::types::RegionFlags;
use ndcompat::{Connection, Offer, Pair, Session, Status};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

/// The time limit.
const SOON: Duration = Duration::from_secs(60);

/// On a device the tests are independent and need no turns.
struct Turn;

fn turn() -> Turn {
    Turn
}

fn session() -> Session {
    Session::new(&support::adapter()).unwrap()
}

fn own() -> std::net::SocketAddr {
    support::address().into()
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

/// A waker that notes that it was called.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// A peer comes to a request, gives up, and then the request is given up, too, or is not: the next peer is served.
#[test]
fn a_peer_that_has_given_up_keeps_no_other_from_being_served() {
    a_peer_gives_up(true);
    a_peer_gives_up(false);
}

fn a_peer_gives_up(request_is_dropped: bool) {
    let (server, client) = (session(), session());
    let own = support::address().into();
    let acceptor = server.listen(own).unwrap();
    let address = acceptor.local_address().unwrap();
    let connect =
        || client.connect_from(own, client.queue_pair().build().unwrap(), address, Offer::default());
    let woken = Arc::new(Woken::default());
    let mut request = Box::pin(acceptor.request());
    let waker = Waker::from(woken.clone());
    assert!(request.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let mut connecting = Box::pin(connect());
    while !woken.0.load(Ordering::Acquire) {
        let ended = client.wait_for(Duration::from_millis(1), connecting.as_mut());
        assert!(ended.is_none(), "nobody has answered");
    }
    drop(connecting);
    if request_is_dropped {
        request.set(acceptor.request());
    } else {
        // On some devices the session is told that the peer has gone.
        assert!(server.wait_for(Duration::from_millis(100), std::future::pending::<()>()).is_none());
    }
    std::thread::scope(|threads| {
        let connecting = threads.spawn(|| client.wait(connect()).unwrap());
        // The first peer may come once more, and siw's driver answers for it. What comes of that does not matter.
        let mut accepted = Vec::new();
        while !connecting.is_finished() {
            if let Some(incoming) = server.wait_for(Duration::from_millis(20), request.as_mut()) {
                let pair = server.queue_pair().build().unwrap();
                accepted.push(server.wait(incoming.unwrap().accept(pair, Offer::default())));
                request.set(acceptor.request());
            }
        }
        connecting.join().unwrap();
    });
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
