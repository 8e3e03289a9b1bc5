//! Connections of the Rust API.

use crate::{SOON, connected, own, session, turn};
use ndcompat::{Offer, Status};
use std::time::{Duration, Instant};

#[test]
fn receives_end_with_the_connection_though_its_end_is_waited_for() {
    let _turn = turn();
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
fn peers_beyond_the_backlog_are_refused() {
    let _turn = turn();
    let (server, client) = (session(), session());
    let acceptor = server.listen_with(own(), 2).unwrap();
    let address = acceptor.local_address().unwrap();
    let connect =
        || client.connect_from(own(), client.queue_pair().build().unwrap(), address, Offer::default());
    let mut connecting: Vec<_> = (0..4).map(|_| Box::pin(connect())).collect();
    let begin = Instant::now();
    while connecting.len() > 2 {
        assert!(begin.elapsed() < SOON, "{} are left", connecting.len());
        connecting.retain_mut(|attempt| match client.wait_for(Duration::from_millis(1), attempt.as_mut()) {
            None => true,
            Some(ended) => {
                assert_eq!(ended.err().map(|error| error.status), Some(Status::CONNECTION_REFUSED));
                false
            }
        });
        // The listener's events are served.
        assert!(server.wait_for(Duration::from_millis(1), std::future::pending::<()>()).is_none());
    }
    for _ in 0..2 {
        let request = server.wait_for(SOON, acceptor.request()).expect("those that came first are there");
        request.unwrap().reject(b"").unwrap();
    }
}

#[test]
fn who_asks_after_the_peers_end_is_told_at_once() {
    let _turn = turn();
    let session = session();
    let (client, server) = connected(&session, |_| ());
    let gone = server.disconnected().unwrap();
    session.wait(client.disconnect()).unwrap();
    for gone in [gone, server.disconnected().unwrap()] {
        let Ok(told) = gone.wait_for(SOON) else { panic!("it is not told") };
        assert_eq!(told, Ok(()));
    }
}
