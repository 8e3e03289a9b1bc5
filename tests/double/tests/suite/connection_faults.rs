//! Statuses that need a failure of the connection manager.

use double::{CmEvent, Side, complete_with, fail, hold, pending, raise_event, replace_event, stall, turn};
use ndcompat::Status;
use ndcompat::types::RequestFlags;
use ndcompat::verbs::bindings::*;
use ndcompat::{RawSockAddr, SockAddr};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::client::{Client, Ov, TIME_LIMIT, connect, connected, listen_on, open};
use support::com::{Com, Listener, QueuePair, create};
use support::{address, shows};

#[test]
fn ports_run_out() {
    let _turn = turn();
    let client = Client::new();
    let (raw, length) = address().to_raw();
    // SAFETY: `create` passes an id and a place for the object; the addresses have the length told, and the objects live to the
    // end of the test.
    unsafe {
        let listener: Com<Listener> =
            create(|iid, out| client.adapter.create_listener(iid, client.file, out)).unwrap();
        let (anywhere, _) = SockAddr::from(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).to_raw();
        fail("rdma_bind_addr", libc::EADDRINUSE);
        let bound = client.connector.bind(anywhere.as_ptr().cast(), length);
        shows("IND2Connector::Bind", bound, Status::TOO_MANY_ADDRESSES);
        // The port is not allocated before it is needed.
        assert_eq!(client.bind(), Status::SUCCESS);
        for (call, errno, wanted) in [
            ("rdma_create_id", libc::ENOMEM, Status::NO_MEMORY),
            ("rdma_resolve_addr", libc::EADDRINUSE, Status::TOO_MANY_ADDRESSES),
            ("rdma_resolve_addr", libc::ENODEV, Status::INVALID_ADDRESS),
        ] {
            fail(call, errno);
            assert_eq!(client.connect(address().with_port(9), b"", &mut Ov::new()), wanted);
        }
        fail("rdma_bind_addr", libc::EADDRINUSE);
        assert_eq!(local_port(&client), Err(Status::TOO_MANY_ADDRESSES));
        assert!(local_port(&client).is_ok_and(|port| port != 0));
        let method = "IND2Listener::Bind";
        fail("rdma_bind_addr", libc::EADDRINUSE);
        shows(method, listener.bind(raw.as_ptr().cast(), length), Status::TOO_MANY_ADDRESSES);
        fail("rdma_bind_addr", libc::ENOMEM);
        shows(method, listener.bind(raw.as_ptr().cast(), length), Status::INSUFFICIENT_RESOURCES);
        assert_eq!(listener.bind(raw.as_ptr().cast(), length), Status::SUCCESS);
        fail("rdma_listen", libc::ENOMEM);
        shows("IND2Listener::Listen", listener.listen(0), Status::INSUFFICIENT_RESOURCES);
    }
}

fn event(kind: rdma_cm_event_type, status: i32) -> CmEvent {
    CmEvent { kind, status, data: Vec::new() }
}

#[test]
fn ways_that_lead_nowhere() {
    let _turn = turn();
    let passive = Client::new();
    let (_listener, at) = listen_on(&passive.adapter, passive.file);
    for (instead_of, kind, errno, wanted) in [
        (
            RDMA_CM_EVENT_ADDR_RESOLVED,
            RDMA_CM_EVENT_ADDR_ERROR,
            libc::ENETUNREACH,
            Status::NETWORK_UNREACHABLE,
        ),
        (RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_ERROR, libc::ETIMEDOUT, Status::HOST_UNREACHABLE),
        (
            RDMA_CM_EVENT_ROUTE_RESOLVED,
            RDMA_CM_EVENT_ROUTE_ERROR,
            libc::EHOSTUNREACH,
            Status::HOST_UNREACHABLE,
        ),
        (RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_UNREACHABLE, libc::ETIMEDOUT, Status::IO_TIMEOUT),
    ] {
        let client = Client::on(&passive.adapter);
        let mut ov = Ov::new();
        assert_eq!(client.bind(), Status::SUCCESS);
        replace_event(instead_of, Some(event(kind, -errno)));
        assert_eq!(client.connect(at, b"", &mut ov), Status::PENDING);
        // While it is connecting, the connector has a port, however the attempt ends.
        assert!(local_port(&client).is_ok_and(|port| port != 0));
        shows("IND2Connector::Connect", ov.wait(&client.connector), wanted);
        // The attempt may be repeated, and succeeds.
        assert_eq!(client.connect(at, b"", &mut ov), Status::PENDING);
        // SAFETY: no arguments.
        unsafe { client.connector.cancel_overlapped_requests() };
        assert_eq!(ov.wait(&client.connector), Status::CANCELED);
    }
}

/// Accepts a connection request after `before` has set up a fault. Returns the statuses of both ends.
fn accept_with(before: impl FnOnce(&Client, &Client)) -> (Status, Status) {
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    let (listener, at) = listen_on(&adapter, passive.file);
    let (mut request, mut asked, mut accept, mut complete) = (Ov::new(), Ov::new(), Ov::new(), Ov::new());
    assert_eq!(active.bind(), Status::SUCCESS);
    // SAFETY: all are waited for.
    unsafe {
        listener.get_connection_request(passive.connector.as_ptr(), request.ptr());
        assert_eq!(active.connect(at, b"", &mut asked), Status::PENDING);
        assert_eq!(request.wait(&listener), Status::SUCCESS);
        before(&active, &passive);
        let accepted = passive.accept(b"", &mut accept);
        if accepted != Status::PENDING {
            return (accepted, Status::PENDING);
        }
        let mut completed = asked.wait(&active.connector);
        if completed == Status::SUCCESS {
            completed = active.connector.complete_connect(complete.ptr());
        }
        if completed == Status::PENDING {
            completed = complete.wait(&active.connector);
        } else {
            passive.connector.cancel_overlapped_requests();
        }
        (accept.wait(&passive.connector), completed)
    }
}

#[test]
fn connections_that_do_not_come_up() {
    let _turn = turn();
    let (accept, complete) = ("IND2Connector::Accept", "IND2Connector::CompleteConnect");
    let (_, completed) = accept_with(|_, _| fail("rdma_establish", libc::ETIMEDOUT));
    shows(complete, completed, Status::IO_TIMEOUT);
    let late = event(RDMA_CM_EVENT_UNREACHABLE, -libc::ETIMEDOUT);
    let (accepted, _) = accept_with(|_, _| replace_event(RDMA_CM_EVENT_ESTABLISHED, Some(late)));
    shows(accept, accepted, Status::IO_TIMEOUT);
    let (accepted, completed) = accept_with(|_, _| ());
    shows(accept, accepted, Status::SUCCESS);
    shows(complete, completed, Status::SUCCESS);
}

/// Both ends may use a connection before `Accept` completes.
#[test]
fn a_queue_pair_that_fails_while_accept_is_pending_ends_the_connection() {
    let _turn = turn();
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    let (listener, at) = listen_on(&adapter, passive.file);
    let (mut request, mut asked, mut accept, mut complete) = (Ov::new(), Ov::new(), Ov::new(), Ov::new());
    let (mut notice, mut peers_notice, mut ending) = (Ov::new(), Ov::new(), Ov::new());
    assert_eq!(active.bind(), Status::SUCCESS);
    // SAFETY: all are waited for; the memory lives.
    unsafe {
        listener.get_connection_request(passive.connector.as_ptr(), request.ptr());
        assert_eq!(active.connect(at, b"", &mut asked), Status::PENDING);
        assert_eq!(request.wait(&listener), Status::SUCCESS);
        assert_eq!(passive.accept(b"", &mut accept), Status::PENDING);
        assert_eq!(passive.connector.notify_disconnect(notice.ptr()), Status::PENDING);
        assert_eq!(asked.wait(&active.connector), Status::SUCCESS);
        // The event that the connection is established is read, and handled later.
        let held = hold("rdma_ack_cm_event");
        assert_eq!(active.connector.complete_connect(complete.ptr()), Status::PENDING);
        assert_eq!(complete.wait(&active.connector), Status::SUCCESS);
        assert_eq!(active.connector.notify_disconnect(peers_notice.ptr()), Status::PENDING);
        complete_with(Side::Initiator, IBV_WC_LOC_PROT_ERR);
        assert_eq!(active.receive(1, 8), Status::SUCCESS);
        assert_eq!(passive.send(2, 8, RequestFlags::empty()), Status::SUCCESS);
        assert_eq!(passive.result().status, Status::ACCESS_VIOLATION);
        drop(held);
        assert_eq!(accept.wait(&passive.connector), Status::SUCCESS);
        assert_eq!(notice.wait(&passive.connector), Status::SUCCESS);
        assert_eq!(peers_notice.wait(&active.connector), Status::SUCCESS);
        assert_eq!(passive.disconnect(&mut ending), Status::PENDING);
        assert_eq!(ending.wait(&passive.connector), Status::SUCCESS);
    }
}

/// Its address is free when `Release` returns, though the thread that has ended the connection is not done yet.
#[test]
fn a_connector_is_released_when_nobody_uses_its_id() {
    let _turn = turn();
    let adapter = open();
    let (active, mut passive, spare) = (Client::on(&adapter), Client::on(&adapter), Client::on(&adapter));
    connect(&active, &passive);
    let mut notice = Ov::new();
    // SAFETY: waited for; the memory lives.
    unsafe {
        assert_eq!(passive.connector.notify_disconnect(notice.ptr()), Status::PENDING);
        assert_eq!(active.receive(1, 8), Status::SUCCESS);
    }
    complete_with(Side::Initiator, IBV_WC_LOC_PROT_ERR);
    assert_eq!(passive.send(2, 8, RequestFlags::empty()), Status::SUCCESS);
    let held = hold("rdma_disconnect");
    let connector = std::mem::replace(&mut passive.connector, spare.connector.cast().unwrap());
    let (passive, may_end) = (&passive, AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(passive.result().status, Status::ACCESS_VIOLATION));
        while notice.internal() == Status::PENDING {
            std::thread::yield_now();
        }
        let releases = scope.spawn(|| {
            drop(connector);
            assert!(may_end.load(Ordering::SeqCst), "another thread disconnects by its id");
        });
        // It does not end meanwhile.
        let end = Instant::now() + Duration::from_millis(50);
        while Instant::now() < end && !releases.is_finished() {
            std::thread::yield_now();
        }
        may_end.store(true, Ordering::SeqCst);
        drop(held);
    });
}

/// An attempt is cancelled after its failure was reported and before that was handled. The next attempt must not fail because of
/// it.
#[test]
fn an_event_of_a_cancelled_attempt_is_not_taken_for_one_of_the_next() {
    let _turn = turn();
    let passive = Client::new();
    let (listener, at) = listen_on(&passive.adapter, passive.file);
    let client = Client::on(&passive.adapter);
    assert_eq!(client.bind(), Status::SUCCESS);
    let (mut first, mut second) = (Ov::new(), Ov::new());
    replace_event(RDMA_CM_EVENT_ADDR_RESOLVED, Some(event(RDMA_CM_EVENT_UNREACHABLE, -libc::ETIMEDOUT)));
    // The thread that has taken the event is held.
    let held = hold("rdma_ack_cm_event");
    assert_eq!(client.connect(at, b"", &mut first), Status::PENDING);
    let deadline = Instant::now() + TIME_LIMIT;
    while pending() > 0 {
        assert!(Instant::now() < deadline, "nobody takes the event");
        std::thread::yield_now();
    }
    std::thread::scope(|scope| {
        // Cancelling completes the request, then waits for the event.
        scope.spawn(|| {
            // SAFETY: no arguments.
            unsafe { client.connector.cancel_overlapped_requests() }
        });
        while first.internal() == Status::PENDING {
            std::thread::yield_now();
        }
        assert_eq!(first.internal(), Status::CANCELED);
        assert_eq!(client.connect(at, b"", &mut second), Status::PENDING);
        drop(held);
    });
    // There is no answer to this one, so it must end by cancellation and not by the failure of the first.
    let mut request = Ov::new();
    // SAFETY: waited for; no arguments.
    unsafe {
        let asked = listener.get_connection_request(passive.connector.as_ptr(), request.ptr());
        assert_eq!(asked, Status::PENDING);
        while request.internal() == Status::PENDING {
            assert_eq!(second.internal(), Status::PENDING, "it has failed as the first did");
            std::thread::yield_now();
        }
        assert_eq!(request.internal(), Status::SUCCESS, "the second has come through");
        client.connector.cancel_overlapped_requests();
    }
    assert_eq!(second.wait(&client.connector), Status::CANCELED);
}

/// After a cancelled `Connect` the connector can connect again.
#[test]
fn a_cancelled_connector_connects_again() {
    let _turn = turn();
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    let (_listener, at) = listen_on(&adapter, passive.file);
    assert_eq!(active.bind(), Status::SUCCESS);
    for _ in 0..3 {
        let mut connect = Ov::new();
        assert_eq!(active.connect(at, b"", &mut connect), Status::PENDING);
        assert_eq!(active.connect(at, b"", &mut Ov::new()), Status::CONNECTION_ACTIVE, "one at a time");
        // SAFETY: no arguments.
        unsafe { active.connector.cancel_overlapped_requests() };
        assert_eq!(connect.internal(), Status::CANCELED);
    }
    let mut connect = Ov::new();
    assert_eq!(active.connect(at.with_port(9), b"own", &mut connect), Status::PENDING);
    assert_eq!(connect.wait(&active.connector), Status::CONNECTION_REFUSED, "nobody listens there");
    let mut length = 0;
    // SAFETY: only the length is asked for.
    let data = unsafe { active.connector.get_private_data(std::ptr::null_mut(), &mut length) };
    assert_eq!((data, length), (Status::BUFFER_OVERFLOW, 0), "nobody has said anything");
}

#[test]
fn peers_that_do_not_answer_a_disconnect() {
    let _turn = turn();
    let method = "IND2Connector::Disconnect";
    let (active, _passive) = connected();
    let mut ov = Ov::new();
    replace_event(RDMA_CM_EVENT_DISCONNECTED, None);
    shows(method, active.disconnect(&mut ov), Status::PENDING);
    // SAFETY: no arguments.
    unsafe { active.connector.cancel_overlapped_requests() };
    shows(method, ov.wait(&active.connector), Status::CANCELED);
}

/// The connection manager drops a disconnect request when the peer's arrives; the peer may not have received it.
#[test]
fn who_disconnects_answers_the_peer_who_does_so_too() {
    let _turn = turn();
    let (active, passive) = connected();
    let (mut lost, mut other) = (Ov::new(), Ov::new());
    replace_event(RDMA_CM_EVENT_DISCONNECTED, None);
    assert_eq!(active.disconnect(&mut lost), Status::PENDING);
    assert_eq!(passive.disconnect(&mut other), Status::PENDING);
    assert_eq!(lost.wait(&active.connector), Status::SUCCESS);
    let deadline = Instant::now() + TIME_LIMIT;
    while other.internal() == Status::PENDING {
        assert!(Instant::now() < deadline, "the peer gets no answer");
        std::thread::yield_now();
    }
    assert_eq!(other.internal(), Status::SUCCESS);
}

fn local_port(client: &Client) -> Result<u16, Status> {
    let (mut raw, _) = address().to_raw();
    let mut length = size_of::<RawSockAddr>() as u32;
    // SAFETY: the buffer is as long as said.
    unsafe {
        match client.connector.get_local_address(raw.as_mut_ptr().cast(), &mut length) {
            Status::SUCCESS => Ok(SockAddr::from_raw(raw.as_ptr().cast(), length as usize).unwrap().port()),
            status => Err(status),
        }
    }
}

#[test]
fn a_disconnect_that_fails_closes_the_connection_all_the_same() {
    for (errno, wanted) in
        [(libc::ETIMEDOUT, Status::IO_TIMEOUT), (libc::ECONNRESET, Status::CONNECTION_ABORTED)]
    {
        let _turn = turn();
        let (active, _passive) = connected();
        let (mut ov, mut notice) = (Ov::new(), Ov::new());
        assert_eq!(active.receive(1, 32), Status::SUCCESS);
        // SAFETY: waited for.
        unsafe { assert_eq!(active.connector.notify_disconnect(notice.ptr()), Status::PENDING) };
        // The peer does not answer, and the connection manager times out.
        replace_event(RDMA_CM_EVENT_DISCONNECTED, None);
        assert_eq!(active.disconnect(&mut ov), Status::PENDING);
        assert_eq!(ov.internal(), Status::PENDING);
        raise_event(local_port(&active).unwrap(), event(RDMA_CM_EVENT_DISCONNECTED, -errno));
        assert_eq!(ov.wait(&active.connector), wanted);
        assert_eq!(notice.wait(&active.connector), Status::CONNECTION_DISCONNECTED);
        assert_eq!(active.result().status, Status::CANCELED);
        assert_eq!(active.send(2, 32, RequestFlags::empty()), Status::SUCCESS);
        assert_eq!(active.result().status, Status::CANCELED);
        assert_eq!(active.disconnect(&mut ov), Status::INVALID_DEVICE_STATE);
    }
}

/// The peer's first message may arrive, and another thread may answer it, before the connecting call returns.
#[test]
fn who_answers_while_the_connection_is_being_made_waits_for_it() {
    let _turn = turn();
    let adapter = open();
    let (active, passive) = (Client::on(&adapter), Client::on(&adapter));
    let (listener, at) = listen_on(&adapter, passive.file);
    let (mut request, mut asked, mut accept, mut complete) = (Ov::new(), Ov::new(), Ov::new(), Ov::new());
    assert_eq!(active.bind(), Status::SUCCESS);
    let send = |queue_pair: &Com<QueuePair>| {
        while pending() > 0 {
            std::thread::yield_now();
        }
        // SAFETY: no memory is named.
        unsafe { queue_pair.send(std::ptr::null_mut(), std::ptr::null(), 0, RequestFlags::empty()) }
    };
    // SAFETY: all are waited for.
    unsafe {
        assert_eq!(send(&passive.queue_pair), Status::CONNECTION_INVALID);
        listener.get_connection_request(passive.connector.as_ptr(), request.ptr());
        assert_eq!(active.connect(at, b"", &mut asked), Status::PENDING);
        assert_eq!(request.wait(&listener), Status::SUCCESS);
        assert_eq!(send(&passive.queue_pair), Status::CONNECTION_INVALID, "not accepted yet");
        for side in ["Accept", "CompleteConnect"] {
            let (call, client) = match side {
                "Accept" => ("rdma_accept", &passive),
                _ => ("rdma_establish", &active),
            };
            stall(call, Duration::from_millis(300));
            std::thread::scope(|scope| {
                let answer = scope.spawn(|| send(&client.queue_pair));
                if side == "Accept" {
                    assert_eq!(passive.accept(b"", &mut accept), Status::PENDING);
                } else {
                    assert_eq!(asked.wait(&active.connector), Status::SUCCESS);
                    assert_eq!(active.connector.complete_connect(complete.ptr()), Status::PENDING);
                }
                assert_eq!(answer.join().unwrap(), Status::SUCCESS, "{side}");
            });
        }
        assert_eq!(complete.wait(&active.connector), Status::SUCCESS);
        assert_eq!(accept.wait(&passive.connector), Status::SUCCESS);
    }
}
