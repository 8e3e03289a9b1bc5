//! The wrappers over rdma-core against a real device: connections with itself, in the way that the engine makes them.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ndcompat::verbs::bindings::*;
use ndcompat::verbs::{
    CompletionChannel, CompletionQueue, ConnectParam, Context, Event, EventChannel, EventKind, Id,
    LocalAddress, MemoryRegion, MemoryWindow, ProtectionDomain, QueuePair, QueuePairConfig,
    SharedReceiveQueue, SockAddr, Transport, WindowType, addresses, errno, ops,
};

const PATIENCE: Duration = Duration::from_secs(20);
const HALF: usize = 4096;

/// The device under test.
fn local() -> LocalAddress {
    let wanted = ndcompat_tests::address().ip();
    let found = addresses().unwrap().into_iter().find(|local| local.addr.ip() == wanted);
    found.expect("NDCOMPAT_ADDR belongs to an RDMA device")
}

/// Calls `take`, whenever `fd` is readable, until it gives something.
fn wait_for<T>(fd: RawFd, mut take: impl FnMut() -> io::Result<Option<T>>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = take().unwrap() {
            return value;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "nothing arrived");
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one live entry.
        unsafe { libc::poll(&mut poll, 1, left.as_millis() as i32) };
    }
}

fn next_event(channel: &Arc<EventChannel>) -> Event {
    wait_for(channel.fd(), || channel.event())
}

fn expect(channel: &Arc<EventChannel>, kind: EventKind) -> Event {
    let event = next_event(channel);
    assert_eq!(event.kind(), kind, "status {}", event.status());
    event
}

/// A queue pair and all it needs; the first half of its memory is for sending, the second for receiving.
struct Endpoint {
    qp: QueuePair,
    cq: Arc<CompletionQueue>,
    events: Arc<CompletionChannel>,
    mr: MemoryRegion,
    memory: Box<[u8]>,
}

impl Endpoint {
    fn new(local: &LocalAddress) -> Endpoint {
        let pd = ProtectionDomain::create(&local.context).unwrap();
        let events = CompletionChannel::create(&local.context).unwrap();
        let cq = Arc::new(CompletionQueue::create(&local.context, 16, Some(&events), 42).unwrap());
        assert!(cq.depth() >= 16);
        let cap = ibv_qp_cap {
            max_send_wr: 8,
            max_recv_wr: 8,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
        };
        let (send_cq, recv_cq) = (Arc::clone(&cq), Arc::clone(&cq));
        let config = QueuePairConfig { pd: Arc::clone(&pd), send_cq, recv_cq, srq: None, cap, cookie: 7 };
        let qp = QueuePair::create(config).unwrap();
        assert!(qp.cap().max_send_wr >= 8);
        qp.to_init(local.port, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ).unwrap();

        let mut memory = vec![0; 2 * HALF].into_boxed_slice();
        let access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
        // SAFETY: the memory lives as long as the region, and is looked at only when nothing is on the way.
        let mr = unsafe { MemoryRegion::register(&pd, memory.as_mut_ptr().cast(), memory.len(), access) };
        Endpoint { qp, cq, events, mr: mr.unwrap(), memory }
    }

    fn sge(&self, offset: usize, length: usize) -> ibv_sge {
        ibv_sge { addr: self.memory[offset..].as_ptr() as u64, length: length as u32, lkey: self.mr.lkey() }
    }

    fn post_recv(&self, wr_id: u64) {
        let mut sge = self.sge(HALF, HALF);
        // SAFETY: all bits zero are a valid request.
        let mut wr: ibv_recv_wr = unsafe { MaybeUninit::zeroed().assume_init() };
        (wr.wr_id, wr.sg_list, wr.num_sge) = (wr_id, &mut sge, 1);
        let mut bad = std::ptr::null_mut();
        // SAFETY: the queue pair is live, the memory stays.
        assert_eq!(errno(unsafe { ops::post_recv(self.qp.as_ptr(), &mut wr, &mut bad) }), 0);
    }

    fn post_send(&self, wr_id: u64, opcode: ibv_wr_opcode, length: usize, remote: (u64, u32)) {
        let mut sge = self.sge(0, length);
        // SAFETY: all bits zero are a valid request.
        let mut wr: ibv_send_wr = unsafe { MaybeUninit::zeroed().assume_init() };
        (wr.wr_id, wr.sg_list, wr.num_sge) = (wr_id, &mut sge, 1);
        (wr.opcode, wr.send_flags) = (opcode, IBV_SEND_SIGNALED);
        wr.wr.rdma = ibv_send_wr__bindgen_ty_2__bindgen_ty_1 { remote_addr: remote.0, rkey: remote.1 };
        let mut bad = std::ptr::null_mut();
        // SAFETY: the queue pair is live, the memory stays.
        assert_eq!(errno(unsafe { ops::post_send(self.qp.as_ptr(), &mut wr, &mut bad) }), 0);
    }

    /// Waits, by events, for one completion.
    fn completion(&self) -> ibv_wc {
        let poll = || self.cq.poll(&mut [MaybeUninit::uninit()]).map(|found| found.first().copied());
        let mut wc = poll().unwrap();
        while wc.is_none() {
            self.cq.req_notify(false).unwrap();
            // One that came before the queue was armed gives no event.
            wc = poll().unwrap();
            if wc.is_none() {
                let event = wait_for(self.events.fd(), || self.events.event());
                assert_eq!((event.cq(), event.cookie()), (self.cq.as_ptr(), 42));
                drop(event);
                wc = poll().unwrap();
            }
        }
        wc.unwrap()
    }

    fn expect(&self, wr_id: u64, status: ibv_wc_status) -> ibv_wc {
        let wc = self.completion();
        assert_eq!((wc.wr_id, wc.status), (wr_id, status));
        wc
    }

    /// Moves the queue pair on, where that is not the transport's business.
    fn to_rts(&self, id: &Id, transport: Transport) {
        if transport == Transport::Iwarp {
            return;
        }
        for state in [IBV_QPS_RTR, IBV_QPS_RTS] {
            let (attr, mask) = id.init_qp_attr(state).unwrap();
            self.qp.modify(&attr, mask).unwrap();
        }
    }

    fn param<'a>(&self, private_data: &'a [u8]) -> ConnectParam<'a> {
        ConnectParam {
            private_data,
            responder_resources: 4,
            initiator_depth: 4,
            retry_count: 7,
            rnr_retry_count: 7,
            srq: false,
            qp_num: self.qp.number(),
        }
    }
}

fn listen(local: &LocalAddress, channel: &Arc<EventChannel>) -> (Id, SockAddr) {
    let id = Id::create(channel, 1).unwrap();
    id.bind_addr(local.addr).unwrap();
    assert_eq!(id.verbs(), local.context.as_ptr());
    id.listen(4).unwrap();
    let addr = id.local_addr().unwrap();
    assert!(addr.same_ip(local.addr) && addr.port() != 0, "{addr}");
    (id, addr)
}

fn resolve(local: &LocalAddress, channel: &Arc<EventChannel>, dst: SockAddr) -> Id {
    let id = Id::create(channel, 2).unwrap();
    id.resolve_addr(Some(local.addr), dst, Duration::from_secs(2)).unwrap();
    assert_eq!(expect(channel, EventKind::AddrResolved).cookie(), 2);
    id.resolve_route(Duration::from_secs(2)).unwrap();
    expect(channel, EventKind::RouteResolved);
    assert_eq!(id.peer_addr(), Some(dst));
    id
}

/// Two ends of a connection that is up, and the channels of their events.
struct Connected {
    active: (Id, Endpoint, Arc<EventChannel>),
    passive: (Id, Endpoint, Arc<EventChannel>),
}

fn connect(local: &LocalAddress) -> Connected {
    let transport = local.context.transport();
    let (active_events, listen_events) = (EventChannel::create().unwrap(), EventChannel::create().unwrap());
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
    let passive_events = EventChannel::create().unwrap();
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
    assert!(!local.addr.is_loopback());
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
    // A read comes back only after the write has arrived, on iWARP too.
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
    let channel = EventChannel::create().unwrap();
    let (_listener, addr) = listen(&local, &channel);
    let other = EventChannel::create().unwrap();
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
    let channel = EventChannel::create().unwrap();
    let (_listener, addr) = listen(&local, &channel);
    let other = EventChannel::create().unwrap();
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
    let channel = EventChannel::create().unwrap();
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
    // One that is destroyed is gone once, and of no further use.
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

    let cq = CompletionQueue::create(&local.context, 4, None, 0).unwrap();
    match cq.resize(100) {
        Ok(()) => assert!(cq.depth() >= 100),
        Err(e) => assert_eq!(e.raw_os_error(), Some(libc::EOPNOTSUPP)),
    }
}
