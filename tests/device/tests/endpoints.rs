//! What holds a local address and port: listeners and the connections accepted through them, connectors, shared endpoints.

use ndcompat::connector::Offer;
use ndcompat::types::RequestFlags;
use ndcompat::verbs::{EventChannel, Id, SockAddr};
use ndcompat::{Adapter, Connector, Listener, SharedEndpoint, Status};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use support::{End, Operation, adapter, address, is_iwarp, library, listen};

/// Asserts that a listener, a connector and a shared endpoint are refused the address.
fn assert_taken(end: &End, at: SockAddr) {
    assert_eq!(bind_anew(end, at), [Err(Status::SHARING_VIOLATION); 3], "{at} is taken");
    assert_taken_anywhere(end, at);
}

/// Asserts that a listener holds the address, to which only connectors may bind, too.
fn assert_listened_at(end: &End, at: SockAddr) {
    let taken = Err(Status::SHARING_VIOLATION);
    assert_eq!(bind_anew(end, at), [taken, Ok(()), taken], "{at} is a listener's");
    assert_taken_anywhere(end, at);
}

fn assert_taken_anywhere(end: &End, at: SockAddr) {
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
    // Each is released before the next one is created.
    let listener = adapter.create_listener(file).unwrap().bind(at);
    let connector = adapter.create_connector(file).unwrap().bind(at);
    [listener, connector, adapter.create_shared_endpoint(file, at).map(drop)]
}

/// Connects `active`, by means of `connect`, with `passive` through `listener`.
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

/// Starts to connect `end` from the address that it is bound to.
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
    active.send(2, 0..64, RequestFlags::empty()).unwrap();
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
    assert_eq!(tcp.is_err(), is_iwarp(), "{tcp:?}");
}

#[test]
fn a_closing_listener_waits_for_those_it_has_accepted() {
    let adapter = adapter();
    let [first, second, newcomer, passive, other] = ends(&adapter);
    let (listener, at) = listen(&adapter, &passive.file, address());
    assert_listened_at(&other, at);
    for active in [&first, &second, &newcomer] {
        active.connector.bind(address()).unwrap();
    }
    connect(&first, &passive, &listener, ask(&first, at));
    connect(&second, &other, &listener, ask(&second, at));
    // One GetConnectionRequest is pending, and one connection request has arrived.
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
    // New requests are refused, established connections continue, the address stays taken.
    assert_refused(&newcomer, at);
    exchange(&first, &passive);
    exchange(&second, &other);
    assert_taken(&newcomer, at);
    // Ending the connection does not release its connector.
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
fn an_address_of_another_process_that_listens_is_in_use() {
    let adapter = adapter();
    let [end] = ends(&adapter);
    // An id outside the library, as another process would have.
    let channel = EventChannel::create(library()).unwrap();
    let id = Id::create(&channel, 0).unwrap();
    id.bind_addr(address()).unwrap();
    id.listen(1).unwrap();
    assert_taken(&end, id.local_addr().unwrap());
}

#[test]
fn a_connector_bound_to_a_listeners_address_connects_from_another_port() {
    let adapter = adapter();
    let [active, passive] = ends(&adapter);
    let (own, at) = listen(&adapter, &active.file, address());
    let (listener, to) = listen(&adapter, &passive.file, address());
    active.connector.bind(at).unwrap();
    connect(&active, &passive, &listener, ask(&active, to));
    assert_eq!(active.connector.local_address(), Ok(at), "what was asked for");
    let seen = passive.connector.peer_address().unwrap();
    assert!(seen.same_ip(at) && seen != at, "{seen}");
    exchange(&active, &passive);
    drop(own);
    assert_eq!(active.connector.local_address(), Ok(at), "without the listener, too");
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
    // A request that no GetConnectionRequest has taken is refused.
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
    // The listener is closed, and the address is released with the connector.
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
    // There is no listener, and there cannot be one.
    let (listener, at) = listen(&adapter, &passive.file, address());
    drop(listener);
    assert_refused(&active, at);
    assert_eq!(active.connector.local_address(), Ok(own), "after a refusal");
    assert_taken(&other, own);
    let (listener, at) = listen(&adapter, &passive.file, address());
    // siw's queue pair cannot connect again once it was rejected.
    let fresh = End { connector: active.connector.clone(), ..End::new(&adapter, 9) };
    connect(&fresh, &passive, &listener, ask(&fresh, at));
    assert_eq!((active.connector.local_address(), passive.connector.peer_address()), (Ok(own), Ok(own)));
    assert_taken(&other, own);
    assert_eq!(fresh.disconnect(), Status::SUCCESS);
    assert_taken(&other, own);
    active.connector.close();
    assert_free(&other, own);
}

/// Programs bind, tell others the port, and listen.
#[test]
fn a_bound_listener_tells_the_port_that_it_will_listen_on() {
    let adapter = adapter();
    let [active, passive] = ends(&adapter);
    let listener = adapter.create_listener(&passive.file).unwrap();
    listener.bind(address()).unwrap();
    let at = listener.local_address().unwrap();
    assert!(at.port() != 0 && at.same_ip(address()), "{at}");
    listener.listen(1).unwrap();
    assert_eq!(listener.local_address(), Ok(at));
    active.connector.bind(address()).unwrap();
    connect(&active, &passive, &listener, ask(&active, at));
    exchange(&active, &passive);
}

#[test]
fn get_local_address_returns_the_port_while_connecting() {
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
fn the_port_chosen_by_connect_stays() {
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
    // A request that is given up may arrive all the same: at a listener of its own, where nobody takes it for another.
    let (_spare, elsewhere) = listen(&adapter, &passive.file, address());
    let give_up = || {
        let [end] = ends(&adapter);
        end.connector.bind(address()).unwrap();
        let mut asked = end.operation();
        ask(&end, elsewhere)(&mut asked);
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
    // On siw a thread may still be in the driver with the old id.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
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

    // There is one connection for each pair of addresses and ports.
    let mut operation = third.operation();
    let again = ask_from(&third, &endpoint, to_left, &mut operation);
    assert_eq!(again, Err(Status::ADDRESS_ALREADY_EXISTS));
    // A connector stays with the first endpoint that it has used.
    let other = adapter.create_shared_endpoint(&first.file, address()).unwrap();
    assert_eq!(ask_from(&third, &other, to_left, &mut operation), Err(Status::ADDRESS_ALREADY_ASSOCIATED));
    assert_eq!(third.connector.bind(address()), Err(Status::ADDRESS_ALREADY_ASSOCIATED));
    drop(other);

    // After Close no connector can be added, and the address is free when the last one has been released.
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
    // An unused endpoint is closed at once.
    let endpoint = adapter.create_shared_endpoint(&active.file, own).unwrap();
    let mut close = active.operation();
    // SAFETY: waited for.
    unsafe { endpoint.close_request(close.ov()).unwrap() };
    assert_eq!(close.wait(), Status::SUCCESS);
    assert_free(&other, own);
}
