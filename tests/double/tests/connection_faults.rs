//! Statuses for which a connection must fail.

use double::{CmEvent, fail, raise_event, replace_event, turn};
use ndcompat::Status;
use ndcompat::verbs::bindings::*;
use ndcompat::verbs::{RawSockAddr, SockAddr};
use ndcompat_tests::client::{Client, Ov, connected, listen_on, open};
use ndcompat_tests::com::{Com, Listener, create};
use ndcompat_tests::{address, shows};
use std::net::{Ipv4Addr, SocketAddr};

#[test]
fn ports_run_out() {
    let _turn = turn();
    let client = Client::new();
    let (raw, length) = address().to_raw();
    // SAFETY: the arguments are valid.
    unsafe {
        let listener: Com<Listener> =
            create(|iid, out| client.adapter.create_listener(iid, client.file, out)).unwrap();
        let (anywhere, _) = SockAddr::from(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).to_raw();
        fail("rdma_bind_addr", libc::EADDRINUSE);
        let bound = client.connector.bind(anywhere.as_ptr().cast(), length);
        shows("IND2Connector::Bind", bound, Status::TOO_MANY_ADDRESSES);
        // A port of the adapter's own address is taken when it is needed.
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
        // Asked meanwhile, whatever becomes of it, the connector has a port.
        assert!(local_port(&client).is_ok_and(|port| port != 0));
        shows("IND2Connector::Connect", ov.wait(&client.connector), wanted);
        // The attempt may be repeated, and this time works.
        assert_eq!(client.connect(at, b"", &mut ov), Status::PENDING);
        // SAFETY: no arguments.
        unsafe { client.connector.cancel_overlapped_requests() };
        assert_eq!(ov.wait(&client.connector), Status::CANCELED);
    }
}

/// A peer's request that is answered, where `before` prepares what is to go wrong.
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
        // The peer does not answer, and the connection manager gives up.
        replace_event(RDMA_CM_EVENT_DISCONNECTED, None);
        assert_eq!(active.disconnect(&mut ov), Status::PENDING);
        assert_eq!(ov.internal(), Status::PENDING);
        raise_event(local_port(&active).unwrap(), event(RDMA_CM_EVENT_DISCONNECTED, -errno));
        assert_eq!(ov.wait(&active.connector), wanted);
        assert_eq!(notice.wait(&active.connector), Status::CONNECTION_DISCONNECTED);
        assert_eq!(active.result().status, Status::CANCELED);
        assert_eq!(active.send(2, 32, 0), Status::SUCCESS);
        assert_eq!(active.result().status, Status::CANCELED);
        assert_eq!(active.disconnect(&mut ov), Status::INVALID_DEVICE_STATE);
    }
}
