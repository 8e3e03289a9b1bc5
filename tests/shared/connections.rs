//! Statuses of connectors and listeners.

use crate::turn;
use ndcompat::Status;
use ndcompat::{RawSockAddr, SockAddr};
use std::net::SocketAddr;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};
use support::client::{Client, Ov, TIME_LIMIT, info, listen_on, messages_pass, open};
use support::com::{Com, Connector, Listener, QueuePair, create};
use support::{address, is_iwarp, is_siw, shows};

/// A connector with a connection request that it has not accepted, and the connector that sent it.
struct Asked {
    active: Client,
    passive: Client,
    connect: Ov,
    _listener: Com<Listener>,
}

fn asked() -> Asked {
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    let (listener, at) = listen_on(&adapter, passive.file);
    let (mut request, mut connect) = (Ov::new(), Ov::new());
    assert_eq!(active.bind(), Status::SUCCESS);
    // SAFETY: waited for.
    unsafe {
        let connector = passive.connector.as_ptr();
        let method = "IND2Listener::GetConnectionRequest";
        shows(method, listener.get_connection_request(connector, request.ptr()), Status::PENDING);
        shows("IND2Connector::Connect", active.connect(at, b"question", &mut connect), Status::PENDING);
        shows(method, request.wait(&listener), Status::SUCCESS);
    }
    Asked { active, passive, connect, _listener: listener }
}

fn bind_to(client: &Client, address: SockAddr) -> Status {
    let (raw, length) = address.to_raw();
    // SAFETY: the address has that length.
    unsafe { client.connector.bind(raw.as_ptr().cast(), length) }
}

fn local_address(connector: &Com<Connector>) -> SockAddr {
    let mut buffer = [0_u8; size_of::<RawSockAddr>()];
    let mut length = size_of::<RawSockAddr>() as u32;
    // SAFETY: the buffer is as long as said.
    unsafe {
        let told = connector.get_local_address(buffer.as_mut_ptr().cast(), &mut length);
        assert_eq!(told, Status::SUCCESS);
        SockAddr::from_raw(buffer.as_ptr().cast(), length as usize).unwrap()
    }
}

/// Windows programs bind outgoing connections to the address that they listen on.
#[test]
fn a_connector_may_name_the_address_of_a_listener_of_its_process() {
    let _turn = turn();
    let adapter = open();
    let (active, second, passive) = (Client::on(&adapter), Client::on(&adapter), Client::on(&adapter));
    let (own, at) = listen_on(&adapter, active.file);
    for client in [&active, &second] {
        shows("IND2Connector::Bind", bind_to(client, at), Status::SUCCESS);
        assert_eq!(local_address(&client.connector), at);
    }
    let (listener, to) = listen_on(&adapter, passive.file);
    let (mut request, mut connect, mut accept, mut complete) = (Ov::new(), Ov::new(), Ov::new(), Ov::new());
    // SAFETY: all are waited for.
    unsafe {
        assert_eq!(
            listener.get_connection_request(passive.connector.as_ptr(), request.ptr()),
            Status::PENDING
        );
        assert_eq!(active.connect(to, b"", &mut connect), Status::PENDING);
        assert_eq!(request.wait(&listener), Status::SUCCESS);
        assert_eq!(passive.accept(b"", &mut accept), Status::PENDING);
        assert_eq!(connect.wait(&active.connector), Status::SUCCESS);
        assert_eq!(active.connector.complete_connect(complete.ptr()), Status::PENDING);
        assert_eq!(accept.wait(&passive.connector), Status::SUCCESS);
    }
    assert_eq!(local_address(&active.connector), at, "as it was asked for");
    messages_pass(&active, &passive);
    // A closed listener shares its address no longer; connectors that hold it keep it.
    drop(own);
    let held = local_address(&passive.connector);
    assert_eq!(held, to);
    drop(listener);
    let late = Client::on(&adapter);
    shows("IND2Connector::Bind", bind_to(&late, held), Status::SHARING_VIOLATION);
}

/// Both addresses of a connector, in buffers of this length.
fn addresses(client: &Client, room: u32) -> [Status; 2] {
    let mut buffer = [0_u8; size_of::<RawSockAddr>()];
    let (mut first, mut second) = (room, room);
    // SAFETY: the buffer is long enough for all that is asked.
    unsafe {
        [
            client.connector.get_local_address(buffer.as_mut_ptr().cast(), &mut first),
            client.connector.get_peer_address(buffer.as_mut_ptr().cast(), &mut second),
        ]
    }
}

fn all_addresses_show(client: &Client, room: u32, wanted: Status) {
    let [local, peer] = addresses(client, room);
    shows("IND2Connector::GetLocalAddress", local, wanted);
    shows("IND2Connector::GetPeerAddress", peer, wanted);
}

#[test]
fn a_connection_from_bind_to_disconnect() {
    let _turn = turn();
    let fresh = Client::new();
    all_addresses_show(&fresh, 64, Status::CONNECTION_INVALID);
    shows("IND2Connector::Bind", fresh.bind(), Status::SUCCESS);
    shows("IND2Connector::Bind", fresh.bind(), Status::ADDRESS_ALREADY_ASSOCIATED);

    let Asked { active, passive, mut connect, _listener } = asked();
    let (mut accept, mut complete, mut notice, mut end, mut spare) =
        (Ov::new(), Ov::new(), Ov::new(), Ov::new(), Ov::new());
    let (mut inbound, mut outbound, mut length) = (0, 0, 1);
    let mut data = [0_u8; 512];
    // SAFETY: all OVERLAPPEDs live until they are completed, buffers have the lengths given.
    unsafe {
        let limits = "IND2Connector::GetReadLimits";
        let invalid = fresh.connector.get_read_limits(&mut inbound, &mut outbound);
        shows(limits, invalid, Status::CONNECTION_INVALID);
        shows(limits, passive.connector.get_read_limits(&mut inbound, &mut outbound), Status::SUCCESS);
        let private = "IND2Connector::GetPrivateData";
        let buffer = data.as_mut_ptr().cast();
        shows(private, fresh.connector.get_private_data(buffer, &mut length), Status::CONNECTION_INVALID);
        shows(private, passive.connector.get_private_data(buffer, &mut length), Status::BUFFER_OVERFLOW);
        length = 512;
        shows(private, passive.connector.get_private_data(buffer, &mut length), Status::SUCCESS);
        let invalid = fresh.connector.notify_disconnect(spare.ptr());
        shows("IND2Connector::NotifyDisconnect", invalid, Status::CONNECTION_INVALID);
        let invalid = fresh.connector.complete_connect(spare.ptr());
        shows("IND2Connector::CompleteConnect", invalid, Status::CONNECTION_INVALID);
        shows("IND2Connector::Disconnect", fresh.disconnect(&mut spare), Status::CONNECTION_INVALID);

        shows("IND2Connector::Accept", passive.accept(b"", &mut accept), Status::PENDING);
        shows("IND2Connector::Connect", connect.wait(&active.connector), Status::SUCCESS);
        shows(
            "IND2Connector::CompleteConnect",
            active.connector.complete_connect(complete.ptr()),
            Status::PENDING,
        );
        shows("IND2Connector::CompleteConnect", complete.wait(&active.connector), Status::SUCCESS);
        shows("IND2Connector::Accept", accept.wait(&passive.connector), Status::SUCCESS);
        for end in [&active, &passive] {
            length = 512;
            shows(private, end.connector.get_private_data(buffer, &mut length), Status::CONNECTION_INVALID);
        }
        shows("IND2Connector::Accept", passive.accept(b"", &mut spare), Status::CONNECTION_ACTIVE);
        let again = active.connect(address().with_port(9), b"", &mut spare);
        shows("IND2Connector::Connect", again, Status::CONNECTION_ACTIVE);
        all_addresses_show(&active, 64, Status::SUCCESS);
        all_addresses_show(&active, 1, Status::BUFFER_OVERFLOW);

        let method = "IND2Connector::NotifyDisconnect";
        assert_eq!(passive.connector.notify_disconnect(spare.ptr()), Status::PENDING);
        assert_eq!(passive.connector.cancel_overlapped_requests(), Status::SUCCESS);
        shows(method, spare.wait(&passive.connector), Status::CANCELED);
        shows(method, passive.connector.notify_disconnect(notice.ptr()), Status::PENDING);
        let mut own = Ov::new();
        assert_eq!(active.connector.notify_disconnect(own.ptr()), Status::PENDING);
        shows("IND2Connector::Disconnect", active.disconnect(&mut end), Status::PENDING);
        shows("IND2Connector::Disconnect", end.wait(&active.connector), Status::SUCCESS);
        shows(method, own.wait(&active.connector), Status::CONNECTION_DISCONNECTED);
        shows(method, notice.wait(&passive.connector), Status::SUCCESS);
    }
}

#[test]
fn connecting_to_nobody() {
    let _turn = turn();
    let client = Client::new();
    let adapter = &client.adapter;
    let (listener, at) = listen_on(adapter, client.file);
    drop(listener);
    let mut ov = Ov::new();
    let method = "IND2Connector::Connect";
    assert_eq!(client.bind(), Status::SUCCESS);
    let nowhere = SocketAddr::from(([0, 0, 0, 0], at.port())).into();
    shows(method, client.connect(nowhere, b"", &mut ov), Status::BAD_NETWORK_NAME);
    let room = info(adapter).max_caller_data as usize;
    let refused = client.connect(at, &vec![1; room + 1], &mut ov);
    shows(method, refused, Status::INVALID_BUFFER_SIZE);
    let (raw, length) = at.to_raw();
    // SAFETY: the data is not there, and said to be: that is what is tested.
    let refused = unsafe {
        let pair = client.queue_pair.as_ptr();
        client.connector.connect(pair, raw.as_ptr().cast(), length, 0, 0, null(), 8, ov.ptr())
    };
    shows(method, refused, Status::ACCESS_VIOLATION);
    assert_eq!(client.connect(at, b"", &mut ov), Status::PENDING);
    shows(method, ov.wait(&client.connector), Status::CONNECTION_REFUSED);
}

/// A second queue pair on the client's adapter.
fn another(client: &Client) -> Com<QueuePair> {
    let queue = client.completion_queue.as_ptr();
    // SAFETY: interface pointers.
    create(|iid, out| unsafe {
        client.adapter.create_queue_pair(iid, queue, queue, null_mut(), 1, 1, 1, 1, 0, out)
    })
    .unwrap()
}

#[test]
fn a_queue_pair_that_goes_while_accepting() {
    let _turn = turn();
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    let (listener, at) = listen_on(&adapter, passive.file);
    let (mut request, mut connect, mut accept) = (Ov::new(), Ov::new(), Ov::new());
    let (pair, peer) = (another(&active), another(&passive));
    let (raw, length) = at.to_raw();
    assert_eq!(active.bind(), Status::SUCCESS);
    // SAFETY: all OVERLAPPEDs are waited for.
    unsafe {
        listener.get_connection_request(passive.connector.as_ptr(), request.ptr());
        let (to, none) = (raw.as_ptr().cast(), null());
        let asked = active.connector.connect(pair.as_ptr(), to, length, 0, 0, none, 0, connect.ptr());
        assert_eq!(asked, Status::PENDING);
        assert_eq!(request.wait(&listener), Status::SUCCESS);
        // On iWARP the connection is established as soon as it is accepted.
        let accepted = passive.connector.accept(peer.as_ptr(), 0, 0, none, 0, accept.ptr());
        assert_eq!(accepted, Status::PENDING);
        drop(peer);
        let accepted = accept.wait(&passive.connector);
        if !is_iwarp() {
            shows("IND2Connector::Accept", accepted, Status::CANCELED);
        }
        connect.wait(&active.connector);
    }
}

/// Programs that give up flush first, and cancel then.
#[test]
fn a_flush_leaves_a_connect_pending_until_it_is_cancelled() {
    let _turn = turn();
    let client = Client::new();
    let (_listener, at) = listen_on(&client.adapter, client.file);
    let mut connect = Ov::new();
    assert_eq!(client.bind(), Status::SUCCESS);
    assert_eq!(client.connect(at, b"", &mut connect), Status::PENDING);
    // SAFETY: an interface that lives.
    assert_eq!(unsafe { client.queue_pair.flush() }, Status::SUCCESS);
    // Nobody answers.
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(connect.internal(), Status::PENDING);
    // SAFETY: an interface that lives.
    assert_eq!(unsafe { client.connector.cancel_overlapped_requests() }, Status::SUCCESS);
    shows("IND2Connector::Connect", connect.wait(&client.connector), Status::CANCELED);
}

/// Nobody stays connected to a queue pair that is not there, whether the request is cancelled or the queue pair goes.
#[test]
fn an_accept_that_is_given_up_is_told_to_the_peer() {
    let _turn = turn();
    if is_iwarp() {
        // `Accept` does not wait for the peer.
        return;
    }
    for cancelled in [true, false] {
        let adapter = open();
        let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
        let (listener, at) = listen_on(&adapter, passive.file);
        let [mut request, mut connect, mut accept, mut complete, mut gone] = [(); 5].map(|()| Ov::new());
        let peer = another(&passive);
        assert_eq!(active.bind(), Status::SUCCESS);
        assert_eq!(active.connect(at, b"", &mut connect), Status::PENDING);
        // SAFETY: all OVERLAPPEDs are waited for.
        unsafe {
            listener.get_connection_request(passive.connector.as_ptr(), request.ptr());
            assert_eq!(request.wait(&listener), Status::SUCCESS);
            let accepted = passive.connector.accept(peer.as_ptr(), 0, 0, null(), 0, accept.ptr());
            assert_eq!(accepted, Status::PENDING);
            assert_eq!(connect.wait(&active.connector), Status::SUCCESS);
            if cancelled {
                assert_eq!(passive.connector.cancel_overlapped_requests(), Status::SUCCESS);
            } else {
                drop(peer);
            }
            assert_eq!(accept.wait(&passive.connector), Status::CANCELED);
            let mut completed = active.connector.complete_connect(complete.ptr());
            if completed == Status::PENDING {
                completed = complete.wait(&active.connector);
            }
            let mut told = completed;
            if completed == Status::SUCCESS {
                told = active.connector.notify_disconnect(gone.ptr());
            }
            if told == Status::PENDING {
                told = gone.wait(&active.connector);
            }
            let expected = [Status::SUCCESS, Status::CONNECTION_ABORTED, Status::CONNECTION_INVALID];
            assert!(expected.contains(&told), "{cancelled}: {completed:?}, {told:?}");
        }
    }
}

#[test]
fn a_queue_pair_that_goes_while_connecting() {
    let _turn = turn();
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    let (_listener, at) = listen_on(&adapter, passive.file);
    let (pair, mut connect) = (another(&active), Ov::new());
    let (raw, length) = at.to_raw();
    assert_eq!(active.bind(), Status::SUCCESS);
    // SAFETY: waited for.
    unsafe {
        let to = raw.as_ptr().cast();
        let asked = active.connector.connect(pair.as_ptr(), to, length, 0, 0, null(), 0, connect.ptr());
        assert_eq!(asked, Status::PENDING);
    }
    drop(pair);
    shows("IND2Connector::Connect", connect.wait(&active.connector), Status::CANCELED);
}

#[test]
fn accepting() {
    let _turn = turn();
    let Asked { active, passive, connect: _connect, _listener } = asked();
    let room = info(&passive.adapter).max_callee_data as usize;
    let mut ov = Ov::new();
    for method in ["IND2Connector::Accept", "IND2Connector::Reject"] {
        let call = |data: *const std::ffi::c_void, length, ov: &mut Ov| {
            // SAFETY: data that is there has that length.
            unsafe {
                match method {
                    "IND2Connector::Accept" => {
                        passive.connector.accept(passive.queue_pair.as_ptr(), 0, 0, data, length, ov.ptr())
                    }
                    _ => passive.connector.reject(data, length),
                }
            }
        };
        let data = vec![1_u8; room + 1];
        let long = call(data.as_ptr().cast(), room as u32 + 1, &mut ov);
        shows(method, long, Status::INVALID_BUFFER_SIZE);
        shows(method, call(null(), 8, &mut ov), Status::ACCESS_VIOLATION);
    }
    // SAFETY: no data.
    let rejected = unsafe { passive.connector.reject(null(), 0) };
    shows("IND2Connector::Reject", rejected, Status::SUCCESS);
    drop(active);
}

#[test]
fn being_refused_after_accepting() {
    let _turn = turn();
    let Asked { active, passive, mut connect, _listener } = asked();
    let mut accept = Ov::new();
    assert_eq!(passive.accept(b"", &mut accept), Status::PENDING);
    assert_eq!(connect.wait(&active.connector), Status::SUCCESS);
    // SAFETY: no data.
    let rejected = unsafe { active.connector.reject(null(), 0) };
    shows("IND2Connector::Reject", rejected, Status::SUCCESS);
    // On iWARP the connection is established by then.
    if !is_iwarp() {
        shows("IND2Connector::Accept", accept.wait(&passive.connector), Status::CONNECTION_REFUSED);
    }
}

#[test]
fn listening() {
    let _turn = turn();
    let client = Client::new();
    let (taken, at) = listen_on(&client.adapter, client.file);
    let (raw, length) = at.to_raw();
    let mut room = 1;
    let mut buffer = [0_u8; size_of::<RawSockAddr>()];
    let mut ov = Ov::new();
    // SAFETY: `create` passes an id and a place for the object; addresses and buffers have the lengths told, and the OVERLAPPED
    // is waited for.
    unsafe {
        let listener: Com<Listener> =
            create(|iid, out| client.adapter.create_listener(iid, client.file, out)).unwrap();
        let unbound = listener.get_local_address(buffer.as_mut_ptr().cast(), &mut room);
        shows("IND2Listener::GetLocalAddress", unbound, Status::INVALID_DEVICE_STATE);
        let method = "IND2Listener::Bind";
        shows(method, listener.bind(raw.as_ptr().cast(), length), Status::SHARING_VIOLATION);
        let holder = Client::on(&client.adapter);
        shows("IND2Connector::Bind", holder.bind(), Status::SUCCESS);
        let held = local_address(&holder.connector);
        shows("IND2Connector::Bind", bind_to(&client, held), Status::SHARING_VIOLATION);
        let (raw, length) = address().to_raw();
        shows(method, listener.bind(raw.as_ptr().cast(), length), Status::SUCCESS);
        shows(method, listener.bind(raw.as_ptr().cast(), length), Status::ADDRESS_ALREADY_ASSOCIATED);
        let method = "IND2Listener::GetLocalAddress";
        let short = listener.get_local_address(buffer.as_mut_ptr().cast(), &mut room);
        shows(method, short, Status::BUFFER_OVERFLOW);
        // Programs call it between Bind and Listen.
        let early = listener.get_local_address(buffer.as_mut_ptr().cast(), &mut room);
        shows(method, early, Status::SUCCESS);
        let bound = SockAddr::from_raw(buffer.as_ptr().cast(), room as usize).unwrap();
        assert!(bound.port() != 0 && bound.same_ip(address()), "{bound}");
        shows("IND2Listener::Listen", listener.listen(0), Status::SUCCESS);
        let told = listener.get_local_address(buffer.as_mut_ptr().cast(), &mut room);
        shows(method, told, Status::SUCCESS);
        assert_eq!(SockAddr::from_raw(buffer.as_ptr().cast(), room as usize).unwrap(), bound);
        let connector = client.connector.as_ptr();
        assert_eq!(listener.get_connection_request(connector, ov.ptr()), Status::PENDING);
        drop(listener);
        shows("IND2Listener::GetConnectionRequest", ov.wait(&client.connector), Status::CANCELED);
    }
    drop(taken);
}

/// The status of an answer to a peer that has given up; on siw, of the end of the connection.
fn answer_to_nobody(method: &str) -> Status {
    let Asked { active, passive, connect: _connect, _listener } = asked();
    drop(active);
    let (mut accept, mut notice) = (Ov::new(), Ov::new());
    if method == "IND2Connector::Reject" {
        // SAFETY: no data.
        return unsafe { passive.connector.reject(null(), 0) };
    }
    let mut given = passive.accept(b"", &mut accept);
    if given == Status::PENDING {
        given = accept.wait(&passive.connector);
    }
    if given == Status::SUCCESS {
        // SAFETY: waited for.
        unsafe { assert_eq!(passive.connector.notify_disconnect(notice.ptr()), Status::PENDING) };
        assert_eq!(notice.wait(&passive.connector), Status::SUCCESS);
    }
    given
}

#[test]
fn peers_that_give_up() {
    let _turn = turn();
    for method in ["IND2Connector::Accept", "IND2Connector::Reject"] {
        // The peer's cancellation takes time to arrive, and only the answer shows whether it has.
        let deadline = Instant::now() + TIME_LIMIT;
        let given = loop {
            let given = answer_to_nobody(method);
            let early = [Status::SUCCESS, Status::CONNECTION_REFUSED].contains(&given);
            // siw's driver waits 10 s for the answer before it ends the connection.
            if !early || is_siw() {
                break given;
            }
            assert!(Instant::now() < deadline, "the peer has not given up: {given}");
        };
        if given != Status::SUCCESS || !is_siw() {
            shows(method, given, Status::CONNECTION_ABORTED);
        }
    }
}
