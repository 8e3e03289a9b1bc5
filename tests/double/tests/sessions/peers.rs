//! Requests for peers, and waits for their ends, that are given up.

use super::*;

/// The peer has come to the request, and goes before the task looks.
#[test]
fn a_peer_that_has_given_up_is_passed_over() {
    let _turn = turn();
    let (client, server) = (session(), session());
    let acceptor = server.listen(Provider::addresses().unwrap()[0]).unwrap();
    let address = acceptor.local_address().unwrap();
    let woken = Arc::new(Count::default());
    let waker = Waker::from(woken.clone());
    let mut request = std::pin::pin!(acceptor.request());
    let mut look = || request.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(look().is_pending());
    let pair = client.queue_pair().build().unwrap();
    let mut connecting = std::pin::pin!(client.connect(pair, address, Offer::default()));
    while woken.0.load(Ordering::SeqCst) == 0 {
        assert!(client.wait_for(Duration::from_millis(1), connecting.as_mut()).is_none());
    }
    // For a listener it has no meaning.
    let rejected = CmEvent { kind: RDMA_CM_EVENT_REJECTED, status: 4, data: Vec::new() };
    raise_event(address.port(), rejected);
    assert!(server.wait_for(Duration::from_millis(50), std::future::pending::<()>()).is_none());
    assert!(look().is_pending(), "there is nobody to answer");
}

#[test]
fn a_request_for_a_peer_that_is_given_up_takes_none() {
    let _turn = turn();
    let session = session();
    let acceptor = session.listen(Provider::addresses().unwrap()[0]).unwrap();
    let address = acceptor.local_address().unwrap();
    for _ in 0..5 {
        assert!(session.wait_for(Duration::ZERO, acceptor.request()).is_none());
    }
    // A peer that came to a request is still there for the next one when that request is dropped before it is polled again.
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut given_up = Box::pin(acceptor.request());
    assert!(given_up.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    std::thread::scope(|threads| {
        let connecting = threads.spawn(|| {
            let pair = session.queue_pair().build().unwrap();
            session.wait(session.connect(pair, address, Offer::default()))
        });
        while count.0.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        drop(given_up);
        let request = session.wait_for(SOON, acceptor.request()).unwrap().unwrap();
        let pair = session.queue_pair().build().unwrap();
        let _server = session.wait(request.accept(pair, Offer::default())).unwrap();
        connecting.join().unwrap().unwrap();
    });
}

#[test]
fn requests_for_a_peer_that_are_given_up_leave_nothing() {
    let _turn = turn();
    let session = session();
    let acceptor = session.listen(Provider::addresses().unwrap()[0]).unwrap();
    let give_up = |times| {
        for _ in 0..times {
            assert!(session.wait_for(Duration::ZERO, acceptor.request()).is_none());
        }
    };
    give_up(10);
    let before = heap();
    give_up(1000);
    assert!(heap() - before < 100_000, "{} bytes more", heap() - before);
}

#[test]
fn waits_for_the_peers_end_that_are_given_up_leave_nothing() {
    let _turn = turn();
    let session = session();
    let (client, server) = connected(&session, |_| ());
    let give_up = |times| {
        for _ in 0..times {
            assert!(session.wait_for(Duration::ZERO, server.disconnected().unwrap()).is_none());
        }
    };
    give_up(10);
    let before = heap();
    give_up(1000);
    assert!(heap() - before < 50_000, "{} bytes more", heap() - before);
    session.wait(client.disconnect()).unwrap();
}

#[test]
fn an_address_leads_to_itself_and_none_to_nowhere() {
    let _turn = turn();
    assert_eq!(Provider::open("192.0.2.200:0".parse().unwrap()).err(), Some(Status::INVALID_ADDRESS));
    let elsewhere = Provider::resolve("127.0.0.1:1".parse().unwrap());
    assert_eq!(elsewhere, Err(Status::INVALID_ADDRESS), "loopback has no RDMA");
}
