//! Sessions of the Rust API: requests for a peer that are given up.

use ndcompat::{Offer, Session};
use std::time::Duration;

/// The time limit.
const SOON: Duration = Duration::from_secs(60);

fn session() -> Session {
    Session::new(&support::adapter()).unwrap()
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
