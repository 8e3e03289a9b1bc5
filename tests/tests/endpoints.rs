//! What keeps a local address and port taken: listeners and those accepted through them, connectors, shared endpoints.

use ndcompat::connector::Offer;
use ndcompat::verbs::SockAddr;
use ndcompat::{Adapter, Connector, Listener, SharedEndpoint, Status};
use ndcompat_tests::{End, Operation, adapter, address, is_siw, listen};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// What everybody who wants the address is told: a listener, a connector, a shared endpoint.
fn assert_taken(end: &End, at: SockAddr) {
    assert_eq!(bind_anew(end, at), [Err(Status::SHARING_VIOLATION); 3], "{at} is taken");
    let anywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, at.port())).into();
    assert_eq!(
        bind_anew(end, anywhere),
        [Err(Status::SHARING_VIOLATION); 3],
        "{at} is taken, so is {anywhere}"
    );
}

fn assert_free(end: &End, at: SockAddr) {
    assert_eq!(bind_anew(end, at), [Ok(()); 3], "{at} is free");
}

fn bind_anew(end: &End, at: SockAddr) -> [Result<(), Status>; 3] {
    let (adapter, file) = (&end.adapter, &end.file);
    // Each is gone before the next one comes.
    let listener = adapter.create_listener(file).unwrap().bind(at);
    let connector = adapter.create_connector(file).unwrap().bind(at);
    [listener, connector, adapter.create_shared_endpoint(file, at).map(drop)]
}

/// Connects `active`, by whatever `connect` does, with `passive`, who waits at `listener`.
fn connect(active: &End, passive: &End, listener: &Listener, connect: impl FnOnce(&mut Operation)) {
    let (mut request, mut accept) = (passive.operation(), passive.operation());
    let (mut asked, mut complete) = (active.operation(), active.operation());
    // SAFETY: all are waited for.
    unsafe {
        listener.connection_request(&passive.connector, request.ov()).unwrap();
        connect(&mut asked);
        assert_eq!(request.wait(), Status::SUCCESS);
        passive.connector.accept(&passive.queue_pair, Offer::default(), accept.ov()).unwrap();
        assert_eq!(asked.wait(), Status::SUCCESS);
        active.connector.complete_connect(complete.ov()).unwrap();
    }
    assert_eq!((complete.wait(), accept.wait()), (Status::SUCCESS, Status::SUCCESS));
}

/// Starts to connect `end` plainly, from where it is bound.
fn ask<'a>(end: &'a End, to: SockAddr) -> impl FnOnce(&mut Operation) + 'a {
    move |operation| {
        // SAFETY: whoever has the operation waits for it.
        unsafe { end.connector.connect(&end.queue_pair, to, Offer::default(), operation.ov()).unwrap() }
    }
}

/// Starts to connect `end` from a shared endpoint.
fn ask_from(
    end: &End,
    endpoint: &SharedEndpoint,
    to: SockAddr,
    operation: &mut Operation,
) -> Result<(), Status> {
    let (connector, offer) = (&end.connector, Offer::default());
    // SAFETY: whoever has the operation waits for it.
    unsafe { connector.connect_with_shared_endpoint(&end.queue_pair, endpoint, to, offer, operation.ov()) }
}

fn assert_refused(end: &End, to: SockAddr) {
    let mut operation = end.operation();
    ask(end, to)(&mut operation);
    assert_eq!(operation.wait(), Status::CONNECTION_REFUSED);
}

fn exchange(active: &End, passive: &End) {
    passive.receive(1, 0..64).unwrap();
    active.send(2, 0..64, 0).unwrap();
    assert_eq!(active.completion().status, Status::SUCCESS);
    assert_eq!(passive.completion().status, Status::SUCCESS);
}

fn ends<const N: usize>(adapter: &Arc<Adapter>) -> [End; N] {
    std::array::from_fn(|context| End::new(adapter, context as u64))
}

#[test]
fn ports_are_those_of_tcp_on_iwarp_only() {
    let adapter = adapter();
    let [end] = ends(&adapter);
    let (_listener, at) = listen(&adapter, &end.file, address());
    let tcp = std::net::TcpListener::bind(SocketAddr::from(at));
    assert_eq!(tcp.is_err(), is_siw(), "{tcp:?}");
}

#[test]
fn a_closing_listener_waits_for_those_it_has_accepted() {
    let adapter = adapter();
    let [first, second, newcomer, passive, other] = ends(&adapter);
    let (listener, at) = listen(&adapter, &passive.file, address());
    assert_taken(&other, at);
    for active in [&first, &second, &newcomer] {
        active.connector.bind(address()).unwrap();
    }
    connect(&first, &passive, &listener, ask(&first, at));
    connect(&second, &other, &listener, ask(&second, at));
    // Somebody waits to be asked for, and somebody has asked already.
    let connector = adapter.create_connector(&passive.file).unwrap();
    let (mut request, mut close) = (passive.operation(), passive.operation());
    // SAFETY: both are waited for.
    unsafe {
        listener.connection_request(&connector, request.ov()).unwrap();
        listener.close_request(close.ov()).unwrap();
        assert_eq!(request.wait(), Status::CANCELED);
        assert_eq!(listener.close_request(request.ov()), Err(Status::INVALID_DEVICE_STATE));
        assert_eq!(listener.connection_request(&connector, request.ov()), Err(Status::INVALID_DEVICE_STATE));
    }
    assert_eq!(listener.bind(address()), Err(Status::INVALID_DEVICE_STATE));
    // Newcomers are refused, those who are there go on, nobody gets the address.
    assert_refused(&newcomer, at);
    exchange(&first, &passive);
    exchange(&second, &other);
    assert_taken(&newcomer, at);
    // The end of a connection is not the end of its connector.
    assert_eq!(first.disconnect(), Status::SUCCESS);
    passive.connector.close();
    assert_eq!(close.status(), Status::PENDING);
    assert_taken(&newcomer, at);
    assert_eq!(second.disconnect(), Status::SUCCESS);
    assert_taken(&newcomer, at);
    other.connector.close();
    assert_eq!(close.wait(), Status::SUCCESS);
    assert_free(&newcomer, at);
}

#[test]
fn a_released_listener_leaves_its_address_to_those_it_has_accepted() {
    let adapter = adapter();
    let [active, newcomer, passive] = ends(&adapter);
    let (listener, at) = listen(&adapter, &passive.file, address());
    active.connector.bind(address()).unwrap();
    newcomer.connector.bind(address()).unwrap();
    connect(&active, &passive, &listener, ask(&active, at));
    drop(listener);
    assert_refused(&newcomer, at);
    exchange(&active, &passive);
    assert_taken(&newcomer, at);
    passive.connector.close();
    assert_free(&newcomer, at);
}

#[test]
fn a_listener_that_has_accepted_nobody_is_closed_at_once() {
    let adapter = adapter();
    let [end, asking] = ends(&adapter);
    let mut close = end.operation();
    // SAFETY: waited for.
    let mut close = |listener: &Listener| unsafe {
        listener.close_request(close.ov()).unwrap();
        close.status()
    };
    let unbound = adapter.create_listener(&end.file).unwrap();
    assert_eq!(close(&unbound), Status::SUCCESS);
    assert_eq!(unbound.bind(address()), Err(Status::INVALID_DEVICE_STATE));
    let (listener, at) = listen(&adapter, &end.file, address());
    // Who has asked and was not asked for is refused.
    asking.connector.bind(address()).unwrap();
    let mut connect = asking.operation();
    ask(&asking, at)(&mut connect);
    assert_eq!(close(&listener), Status::SUCCESS);
    assert_eq!(connect.wait(), Status::CONNECTION_REFUSED);
    assert_free(&end, at);
}

#[test]
fn a_pending_close_can_be_cancelled() {
    let adapter = adapter();
    let [active, passive] = ends(&adapter);
    let (listener, at) = listen(&adapter, &passive.file, address());
    active.connector.bind(address()).unwrap();
    connect(&active, &passive, &listener, ask(&active, at));
    let mut close = passive.operation();
    // SAFETY: waited for.
    unsafe { listener.close_request(close.ov()).unwrap() };
    assert_eq!(close.status(), Status::PENDING);
    listener.cancel();
    assert_eq!(close.status(), Status::CANCELED);
    // It is closed all the same, and the address goes with the connector.
    assert_eq!(listener.local_address(), Err(Status::INVALID_DEVICE_STATE));
    assert_taken(&active, at);
    passive.connector.close();
    assert_free(&active, at);
}

#[test]
fn a_connector_keeps_its_address_until_it_is_closed() {
    let adapter = adapter();
    let [active, passive, other] = ends(&adapter);
    active.connector.bind(address()).unwrap();
    let own = active.connector.local_address().unwrap();
    assert_taken(&other, own);
    // Nobody listens there, and nobody can ever.
    let (listener, at) = listen(&adapter, &passive.file, address());
    drop(listener);
    assert_refused(&active, at);
    assert_eq!(active.connector.local_address(), Ok(own), "after a refusal");
    assert_taken(&other, own);
    let (listener, at) = listen(&adapter, &passive.file, address());
    // siw's queue pair cannot connect again once it was refused.
    let fresh = End { connector: active.connector.clone(), ..End::new(&adapter, 9) };
    connect(&fresh, &passive, &listener, ask(&fresh, at));
    assert_eq!((active.connector.local_address(), passive.connector.peer_address()), (Ok(own), Ok(own)));
    assert_taken(&other, own);
    assert_eq!(fresh.disconnect(), Status::SUCCESS);
    assert_taken(&other, own);
    active.connector.close();
    assert_free(&other, own);
}

#[test]
fn a_port_is_told_in_the_midst_of_connecting() {
    let adapter = adapter();
    let [active, passive] = ends(&adapter);
    let (listener, at) = listen(&adapter, &passive.file, address());
    active.connector.bind(address()).unwrap();
    let mut told = None;
    connect(&active, &passive, &listener, |operation| {
        ask(&active, at)(operation);
        told = active.connector.local_address().ok();
    });
    let own = told.unwrap();
    assert!(own.port() != 0 && own.same_ip(address()), "{own}");
    assert_eq!((active.connector.local_address(), passive.connector.peer_address()), (Ok(own), Ok(own)));
    assert_taken(&passive, own);
    exchange(&active, &passive);
}

#[test]
fn a_port_that_connecting_has_chosen_stays() {
    let adapter = adapter();
    let [active, passive, other] = ends(&adapter);
    active.connector.bind(address()).unwrap();
    let (listener, at) = listen(&adapter, &passive.file, address());
    drop(listener);
    assert_refused(&active, at);
    let own = active.connector.local_address().unwrap();
    assert_taken(&other, own);
    let (listener, at) = listen(&adapter, &passive.file, address());
    let fresh = End { connector: active.connector.clone(), ..End::new(&adapter, 9) };
    connect(&fresh, &passive, &listener, ask(&fresh, at));
    assert_eq!((active.connector.local_address(), passive.connector.peer_address()), (Ok(own), Ok(own)));
}

#[test]
fn an_attempt_given_up_before_its_port_is_chosen_leaves_the_choice() {
    let adapter = adapter();
    let [passive, other] = ends(&adapter);
    let (listener, at) = listen(&adapter, &passive.file, address());
    let give_up = || {
        let [end] = ends(&adapter);
        end.connector.bind(address()).unwrap();
        let mut asked = end.operation();
        ask(&end, at)(&mut asked);
        let connector = end.connector.clone();
        drop(end);
        assert_eq!(asked.wait(), Status::CANCELED);
        connector
    };
    let active = End { connector: give_up(), ..End::new(&adapter, 1) };
    let own = active.connector.local_address().unwrap();
    assert!(own.port() != 0 && own.same_ip(address()), "{own}");
    assert_taken(&other, own);
    connect(&active, &passive, &listener, ask(&active, at));
    assert_eq!((active.connector.local_address(), passive.connector.peer_address()), (Ok(own), Ok(own)));
    let active = End { connector: give_up(), ..End::new(&adapter, 2) };
    connect(&active, &other, &listener, ask(&active, at));
    assert_eq!(active.connector.local_address(), other.connector.peer_address());
    exchange(&active, &other);
}

#[test]
fn a_cancelled_connector_keeps_its_address() {
    let adapter = adapter();
    let [active, passive, other] = ends(&adapter);
    let (_listener, at) = listen(&adapter, &passive.file, address());
    active.connector.bind(address()).unwrap();
    let own = active.connector.local_address().unwrap();
    let mut connect = active.operation();
    ask(&active, at)(&mut connect);
    active.connector.cancel();
    assert_eq!(connect.wait(), Status::CANCELED);
    assert_taken(&other, own);
    active.connector.close();
    // On siw, a thread may still be in the driver, with the old id.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while adapter.create_connector(&other.file).unwrap().bind(own).is_err() {
        assert!(std::time::Instant::now() < deadline, "the address stays taken");
        std::thread::yield_now();
    }
    assert_free(&other, own);
}

#[test]
fn connectors_share_an_endpoint() {
    let adapter = adapter();
    let [first, second, third, left, right] = ends(&adapter);
    let (left_listener, to_left) = listen(&adapter, &left.file, address());
    let (right_listener, to_right) = listen(&adapter, &right.file, address());
    let endpoint = adapter.create_shared_endpoint(&first.file, address()).unwrap();
    let own = endpoint.local_address().unwrap();
    assert!(own.port() != 0 && own.same_ip(address()), "{own}");
    assert_taken(&third, own);
    connect(&first, &left, &left_listener, |operation| {
        ask_from(&first, &endpoint, to_left, operation).unwrap()
    });
    connect(&second, &right, &right_listener, |operation| {
        ask_from(&second, &endpoint, to_right, operation).unwrap()
    });
    for connector in [&first.connector, &second.connector] as [&Arc<Connector>; 2] {
        assert_eq!(connector.local_address(), Ok(own));
    }
    assert_eq!((left.connector.peer_address(), right.connector.peer_address()), (Ok(own), Ok(own)));
    exchange(&first, &left);
    exchange(&second, &right);

    // The four numbers of a connection name one.
    let mut operation = third.operation();
    let again = ask_from(&third, &endpoint, to_left, &mut operation);
    assert_eq!(again, Err(Status::ADDRESS_ALREADY_EXISTS));
    // A connector belongs to the endpoint it has once used, or to none.
    let other = adapter.create_shared_endpoint(&first.file, address()).unwrap();
    assert_eq!(ask_from(&third, &other, to_left, &mut operation), Err(Status::ADDRESS_ALREADY_ASSOCIATED));
    assert_eq!(third.connector.bind(address()), Err(Status::ADDRESS_ALREADY_ASSOCIATED));
    drop(other);

    // Closing: nobody joins any more, and the address is free when the last connector has gone.
    let mut close = first.operation();
    // SAFETY: waited for.
    unsafe { endpoint.close_request(close.ov()).unwrap() };
    assert_eq!(ask_from(&third, &endpoint, to_right, &mut operation), Err(Status::INVALID_DEVICE_STATE));
    assert_eq!(endpoint.local_address(), Err(Status::INVALID_DEVICE_STATE));
    third.connector.close();
    exchange(&first, &left);
    assert_eq!(first.disconnect(), Status::SUCCESS);
    first.connector.close();
    assert_eq!(close.status(), Status::PENDING);
    assert_taken(&third, own);
    second.connector.close();
    assert_eq!(close.wait(), Status::SUCCESS);
    assert_free(&third, own);
}

#[test]
fn a_released_endpoint_leaves_its_address_to_its_connectors() {
    let adapter = adapter();
    let [active, passive, other] = ends(&adapter);
    let (listener, at) = listen(&adapter, &passive.file, address());
    let endpoint = adapter.create_shared_endpoint(&active.file, address()).unwrap();
    let own = endpoint.local_address().unwrap();
    connect(&active, &passive, &listener, |operation| ask_from(&active, &endpoint, at, operation).unwrap());
    drop(endpoint);
    exchange(&active, &passive);
    assert_taken(&other, own);
    active.connector.close();
    assert_free(&other, own);
    // One that nobody has used goes at once.
    let endpoint = adapter.create_shared_endpoint(&active.file, own).unwrap();
    let mut close = active.operation();
    // SAFETY: waited for.
    unsafe { endpoint.close_request(close.ov()).unwrap() };
    assert_eq!(close.wait(), Status::SUCCESS);
    assert_free(&other, own);
}
