//! The wrappers of rdma-core on a real device, with loopback connections as the library makes them.

mod raw;

use raw::*;
use std::sync::Arc;

use ndcompat::verbs::bindings::*;
use ndcompat::verbs::{
    CompletionQueue, Context, EventChannel, EventKind, Id, LocalAddress, MemoryWindow, ProtectionDomain,
    SharedReceiveQueue, Transport, WindowType, addresses,
};

/// Two ends of an established connection, and their event channels.
struct Connected {
    active: (Id, Endpoint, Arc<EventChannel>),
    passive: (Id, Endpoint, Arc<EventChannel>),
}

fn connect(local: &LocalAddress) -> Connected {
    let transport = local.context.transport();
    let (active_events, listen_events) = (
        EventChannel::create(local.context.library()).unwrap(),
        EventChannel::create(local.context.library()).unwrap(),
    );
    let (listener, addr) = listen(local, &listen_events);
    let active = resolve(local, &active_events, addr);

    let active_end = Endpoint::new(local);
    active.connect(active_end.param(b"question")).unwrap();

    let mut request = expect(&listen_events, EventKind::ConnectRequest);
    assert_eq!((request.listen_id(), request.cookie()), (listener.as_ptr(), 1));
    assert!(request.private_data().starts_with(b"question"));
    let mut passive = request.take_request().unwrap();
    drop(request);
    assert_eq!(passive.verbs(), local.context.as_ptr());
    let (seen, real) = (passive.peer_addr().unwrap(), active.local_addr().unwrap());
    assert!(seen.same_ip(real) && seen.port() == real.port(), "{seen} is not {real}");
    passive.set_cookie(3);
    let passive_events = EventChannel::create(local.context.library()).unwrap();
    passive.migrate(&passive_events).unwrap();
    drop(listener);

    let passive_end = Endpoint::new(local);
    passive_end.post_recv(1);
    passive_end.to_rts(&passive, transport);
    passive.accept(passive_end.param(b"answer")).unwrap();

    if transport == Transport::Iwarp {
        let up = expect(&active_events, EventKind::Established);
        assert_eq!(up.private_data(), b"answer");
    } else {
        let response = expect(&active_events, EventKind::ConnectResponse);
        assert!(response.private_data().starts_with(b"answer"));
        assert_eq!(response.qp_num(), passive_end.qp.number());
        drop(response);
        active_end.to_rts(&active, transport);
        active.establish().unwrap();
    }
    assert_eq!(expect(&passive_events, EventKind::Established).cookie(), 3);
    Connected { active: (active, active_end, active_events), passive: (passive, passive_end, passive_events) }
}

#[test]
fn addresses_name_their_devices() {
    let local = local();
    assert!(!local.addr.is_loopback() || local.context.library().is_emulator());
    assert!(local.port >= 1);
    assert!(local.context.device_attr().unwrap().max_qp > 0);
    assert_eq!(local.context.port_attr(local.port).unwrap().state, IBV_PORT_ACTIVE);
    assert!(!local.context.name().is_empty());
    let same = Context::from_raw(local.context.as_ptr()).unwrap();
    assert_eq!(same.node_guid(), local.context.node_guid());
}

#[test]
fn every_address_connects() {
    let local = local();
    let mut tried = 0;
    for other in addresses().unwrap() {
        if other.context.as_ptr() == local.context.as_ptr() {
            let connected = connect(&other);
            assert!(connected.active.0.local_addr().unwrap().same_ip(other.addr));
            tried += 1;
        }
    }
    assert_ne!(tried, 0);
}

#[test]
fn connection_carries_data_and_ends() {
    let local = local();
    let Connected { active, passive } = connect(&local);
    let (active_id, mut a, active_events) = active;
    let (passive_id, p, passive_events) = passive;

    a.memory[..5].copy_from_slice(b"hello");
    a.post_send(11, IBV_WR_SEND, 5, (0, 0));
    a.expect(11, IBV_WC_SUCCESS);
    let received = p.expect(1, IBV_WC_SUCCESS);
    assert_eq!((received.byte_len, received.qp_num), (5, p.qp.number()));
    assert_eq!(&p.memory[HALF..HALF + 5], b"hello");

    let target = p.memory[HALF + 100..].as_ptr() as u64;
    a.memory[..7].copy_from_slice(b"written");
    a.post_send(12, IBV_WR_RDMA_WRITE, 7, (target, p.mr.rkey()));
    a.expect(12, IBV_WC_SUCCESS);
    a.memory[..7].fill(0);
    // A read completes after the write before it has arrived, on iWARP, too.
    a.post_send(13, IBV_WR_RDMA_READ, 7, (target, p.mr.rkey()));
    a.expect(13, IBV_WC_SUCCESS);
    assert_eq!(&a.memory[..7], b"written");
    assert_eq!(&p.memory[HALF + 100..HALF + 107], b"written");

    a.post_recv(14);
    a.qp.to_error().unwrap();
    a.expect(14, IBV_WC_WR_FLUSH_ERR);
    if local.context.transport() != Transport::Iwarp {
        active_id.disconnect().unwrap();
    }
    expect(&passive_events, EventKind::Disconnected);
    passive_id.disconnect().unwrap();
    expect(&active_events, EventKind::Disconnected);
}

#[test]
fn disconnect_reaches_both_ends() {
    let local = local();
    let Connected { active, passive } = connect(&local);
    active.0.disconnect().unwrap();
    expect(&passive.2, EventKind::Disconnected);
    passive.0.disconnect().unwrap();
    expect(&active.2, EventKind::Disconnected);
    passive.1.qp.to_error().unwrap();
    passive.1.expect(1, IBV_WC_WR_FLUSH_ERR);
}

#[test]
fn rejection_carries_its_reason() {
    let local = local();
    let channel = EventChannel::create(local.context.library()).unwrap();
    let (_listener, addr) = listen(&local, &channel);
    let other = EventChannel::create(local.context.library()).unwrap();
    let active = resolve(&local, &other, addr);
    let end = Endpoint::new(&local);
    active.connect(end.param(b"")).unwrap();
    let request = expect(&channel, EventKind::ConnectRequest).take_request().unwrap();
    request.reject(b"no").unwrap();
    assert!(expect(&other, EventKind::Rejected).private_data().starts_with(b"no"));
}

#[test]
fn request_that_nobody_takes_is_refused() {
    let local = local();
    let channel = EventChannel::create(local.context.library()).unwrap();
    let (_listener, addr) = listen(&local, &channel);
    let other = EventChannel::create(local.context.library()).unwrap();
    let active = resolve(&local, &other, addr);
    let end = Endpoint::new(&local);
    active.connect(end.param(b"")).unwrap();
    drop(expect(&channel, EventKind::ConnectRequest));
    let refused = next_event(&other).kind();
    assert!(matches!(refused, EventKind::Rejected | EventKind::ConnectError), "{refused:?}");
}

#[test]
fn options_and_misuse() {
    let local = local();
    let channel = EventChannel::create(local.context.library()).unwrap();
    let id = Id::create(&channel, 0).unwrap();
    let end = Endpoint::new(&local);
    assert_eq!(id.connect(end.param(b"")).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    assert!(id.local_addr().is_none());
    let (_listener, addr) = listen(&local, &channel);
    assert_eq!(id.bind_addr(addr).unwrap_err().raw_os_error(), Some(libc::EADDRINUSE));
    id.set_reuse_addr(true).unwrap();
    id.set_af_only(true).unwrap();
    id.set_ack_timeout(14).unwrap();
    assert!(channel.event().unwrap().is_none());
    assert!(local.context.port_attr(200).is_err());
    // A queue pair cannot skip states (siw, which keeps none of its own, moves only by connecting).
    let mut attr: ibv_qp_attr = end.qp.query(IBV_QP_STATE).unwrap();
    attr.qp_state = IBV_QPS_RTS;
    assert!(end.qp.modify(&attr, IBV_QP_STATE).is_err());
    // A destroyed queue pair is destroyed once, and cannot be used any more.
    let number = end.qp.number();
    // SAFETY: nothing is posted to it.
    unsafe {
        end.qp.destroy().unwrap();
        end.qp.destroy().unwrap();
    }
    assert_eq!(end.qp.number(), number);
    assert_eq!(end.qp.modify(&attr, IBV_QP_STATE).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    assert!(end.qp.query(IBV_QP_STATE).is_err());
}

#[test]
fn optional_objects() {
    let local = local();
    let pd = ProtectionDomain::create(&local.context).unwrap();
    let srq = SharedReceiveQueue::create(&pd, 16, 1, 9).unwrap();
    assert_eq!(srq.cookie(), 9);
    srq.set_limit(4).unwrap();

    let flags = local.context.device_attr().unwrap().device_cap_flags;
    let window = MemoryWindow::create(&pd, WindowType::One);
    if flags & IBV_DEVICE_MEM_WINDOW != 0 {
        assert_ne!(window.unwrap().rkey(), 0);
    } else {
        assert_eq!(window.err().unwrap().raw_os_error(), Some(libc::EOPNOTSUPP));
    }

    let cq = CompletionQueue::create(&local.context, 4, None, 0, Some(0)).unwrap();
    match cq.resize(100) {
        Ok(()) => assert!(cq.depth() >= 100),
        Err(e) => assert_eq!(e.raw_os_error(), Some(libc::EOPNOTSUPP)),
    }
}
