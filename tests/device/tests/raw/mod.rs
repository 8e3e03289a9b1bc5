//! One end of a connection, by rdma-core alone, set up as the library does.

#![allow(dead_code)] // each program uses its part

use ndcompat::verbs::bindings::*;
use ndcompat::verbs::{
    CompletionChannel, CompletionQueue, ConnectParam, Event, EventChannel, EventKind, Id, LocalAddress,
    MemoryRegion, ProtectionDomain, QueuePair, QueuePairConfig, SockAddr, Transport, addresses, errno, ops,
};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const TIME_LIMIT: Duration = Duration::from_secs(60);
pub const HALF: usize = 4096;

/// The device under test.
pub fn local() -> LocalAddress {
    let wanted = support::address().ip();
    let found = addresses().unwrap().into_iter().find(|local| local.addr.ip() == wanted);
    found.expect("NDCOMPAT_ADDR belongs to an RDMA device")
}

/// Calls `take` whenever `fd` is readable, until it returns something.
pub fn wait_for<T>(fd: RawFd, mut take: impl FnMut() -> io::Result<Option<T>>) -> T {
    let deadline = Instant::now() + TIME_LIMIT;
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

pub fn next_event(channel: &Arc<EventChannel>) -> Event {
    wait_for(channel.fd(), || channel.event())
}

pub fn expect(channel: &Arc<EventChannel>, kind: EventKind) -> Event {
    let event = next_event(channel);
    assert_eq!(event.kind(), kind, "status {}", event.status());
    event
}

/// A queue pair and its objects. The first half of its memory is for sending, the second for receiving.
pub struct Endpoint {
    pub qp: QueuePair,
    pub cq: Arc<CompletionQueue>,
    pub events: Arc<CompletionChannel>,
    pub mr: MemoryRegion,
    pub memory: Box<[u8]>,
}

impl Endpoint {
    pub fn new(local: &LocalAddress) -> Endpoint {
        let pd = ProtectionDomain::create(&local.context).unwrap();
        let events = CompletionChannel::create(&local.context).unwrap();
        let cq = Arc::new(CompletionQueue::create(&local.context, 16, Some(&events), 42, Some(0)).unwrap());
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
        qp.to_init(local.port, 0, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ).unwrap();

        let mut memory = vec![0; 2 * HALF].into_boxed_slice();
        let access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
        // SAFETY: the memory lives as long as the region, and is looked at only when nothing is on the way.
        let mr = unsafe { MemoryRegion::register(&pd, memory.as_mut_ptr().cast(), memory.len(), access) };
        Endpoint { qp, cq, events, mr: mr.unwrap(), memory }
    }

    pub fn sge(&self, offset: usize, length: usize) -> ibv_sge {
        ibv_sge { addr: self.memory[offset..].as_ptr() as u64, length: length as u32, lkey: self.mr.lkey() }
    }

    pub fn post_recv(&self, wr_id: u64) {
        let mut sge = self.sge(HALF, HALF);
        // SAFETY: numbers and pointers, for which zero is a value.
        let mut wr: ibv_recv_wr = unsafe { MaybeUninit::zeroed().assume_init() };
        (wr.wr_id, wr.sg_list, wr.num_sge) = (wr_id, &mut sge, 1);
        let mut bad = std::ptr::null_mut();
        // SAFETY: the queue pair is live, the memory stays.
        assert_eq!(errno(unsafe { ops::post_recv(self.qp.as_ptr(), &mut wr, &mut bad) }), 0);
    }

    pub fn post_send(&self, wr_id: u64, opcode: ibv_wr_opcode, length: usize, remote: (u64, u32)) {
        let mut sge = self.sge(0, length);
        // SAFETY: numbers and pointers, for which zero is a value.
        let mut wr: ibv_send_wr = unsafe { MaybeUninit::zeroed().assume_init() };
        (wr.wr_id, wr.sg_list, wr.num_sge) = (wr_id, &mut sge, 1);
        (wr.opcode, wr.send_flags) = (opcode, IBV_SEND_SIGNALED);
        wr.wr.rdma = ibv_send_wr__bindgen_ty_2__bindgen_ty_1 { remote_addr: remote.0, rkey: remote.1 };
        let mut bad = std::ptr::null_mut();
        // SAFETY: the queue pair is live, the memory stays.
        assert_eq!(errno(unsafe { ops::post_send(self.qp.as_ptr(), &mut wr, &mut bad) }), 0);
    }

    /// Waits, by events, for one completion.
    pub fn completion(&self) -> ibv_wc {
        let poll = || self.cq.poll(&mut [MaybeUninit::uninit()]).map(|found| found.first().copied());
        let mut wc = poll().unwrap();
        while wc.is_none() {
            self.cq.req_notify(false).unwrap();
            // A completion from before the queue was armed raises no event.
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

    pub fn expect(&self, wr_id: u64, status: ibv_wc_status) -> ibv_wc {
        let wc = self.completion();
        assert_eq!((wc.wr_id, wc.status), (wr_id, status));
        wc
    }

    /// Moves the queue pair to RTS, where the transport does not do so itself.
    pub fn to_rts(&self, id: &Id, transport: Transport) {
        if transport == Transport::Iwarp {
            return;
        }
        for state in [IBV_QPS_RTR, IBV_QPS_RTS] {
            let (attr, mask) = id.init_qp_attr(state).unwrap();
            self.qp.modify(&attr, mask).unwrap();
        }
    }

    pub fn param<'a>(&self, private_data: &'a [u8]) -> ConnectParam<'a> {
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

pub fn listen(local: &LocalAddress, channel: &Arc<EventChannel>) -> (Id, SockAddr) {
    let id = Id::create(channel, 1).unwrap();
    id.bind_addr(local.addr).unwrap();
    assert_eq!(id.verbs(), local.context.as_ptr());
    id.listen(4).unwrap();
    let addr = id.local_addr().unwrap();
    assert!(addr.same_ip(local.addr) && addr.port() != 0, "{addr}");
    (id, addr)
}

pub fn resolve(local: &LocalAddress, channel: &Arc<EventChannel>, dst: SockAddr) -> Id {
    let id = Id::create(channel, 2).unwrap();
    id.resolve_addr(Some(local.addr), dst, Duration::from_secs(2)).unwrap();
    assert_eq!(expect(channel, EventKind::AddrResolved).cookie(), 2);
    id.resolve_route(Duration::from_secs(2)).unwrap();
    expect(channel, EventKind::RouteResolved);
    assert_eq!(id.peer_addr(), Some(dst));
    id
}
