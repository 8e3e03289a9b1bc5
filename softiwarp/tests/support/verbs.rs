//! Ids and queue pairs as a program of verbs makes them. They are never destroyed, unless a test does so; a list of them tells
//! LeakSanitizer that this is meant.

use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::ptr;
use std::sync::Mutex;

use softiwarp::verbs::*;
use verbs_sys::{
    IBV_QPT_RC, RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_PS_TCP, ibv_context, ibv_qp, ibv_qp_init_attr,
    rdma_cm_event_type, rdma_cm_id, rdma_conn_param, rdma_event_channel,
};

pub fn loopback(port: u16) -> libc::sockaddr_in {
    // SAFETY: a structure of C for which zeros mean nothing.
    let mut address: libc::sockaddr_in = unsafe { zeroed() };
    address.sin_family = libc::AF_INET as u16;
    address.sin_port = port.to_be();
    address.sin_addr.s_addr = u32::from(Ipv4Addr::LOCALHOST).to_be();
    address
}

/// Lists an object that is not destroyed.
pub fn kept<T>(object: *mut T) -> *mut T {
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    KEPT.lock().unwrap().push(object.expose_provenance());
    object
}

pub fn channel() -> *mut rdma_event_channel {
    // SAFETY: takes nothing.
    let channel = unsafe { rdma_create_event_channel() };
    assert!(!channel.is_null());
    kept(channel)
}

/// The errno of a call.
pub fn outcome(result: i32) -> i32 {
    // SAFETY: the place is this thread's own.
    if result == 0 { 0 } else { unsafe { *libc::__errno_location() } }
}

pub fn id(channel: *mut rdma_event_channel) -> *mut rdma_cm_id {
    let mut id = ptr::null_mut();
    // SAFETY: the channel lives; the result is a local.
    assert_eq!(unsafe { rdma_create_id(channel, &raw mut id, ptr::null_mut(), RDMA_PS_TCP) }, 0);
    kept(id)
}

/// A listener, and its port.
pub fn listener(channel: *mut rdma_event_channel, backlog: i32) -> (*mut rdma_cm_id, u16) {
    let id = id(channel);
    // SAFETY: the id lives; the address lives while the call lasts, and is one of this family that the id has then.
    unsafe {
        assert_eq!(rdma_bind_addr(id, ptr::from_mut(&mut loopback(0)).cast()), 0);
        assert_eq!(rdma_listen(id, backlog), 0);
        let bound = (&raw const (*id).route.addr).cast::<libc::sockaddr_in>().read();
        (id, u16::from_be(bound.sin_port))
    }
}

/// An event, acknowledged.
#[derive(Debug)]
pub struct Event {
    pub kind: rdma_cm_event_type,
    pub status: i32,
    pub id: *mut rdma_cm_id,
}

/// Waits for the next event of a channel.
pub fn event(channel: *mut rdma_event_channel) -> Event {
    let mut event = ptr::null_mut();
    // SAFETY: the channel lives; the event is acknowledged once.
    unsafe {
        assert_eq!(rdma_get_cm_event(channel, &raw mut event), 0);
        let seen = Event { kind: (*event).event, status: (*event).status, id: (*event).id };
        assert_eq!(rdma_ack_cm_event(event), 0);
        seen
    }
}

/// An id that is about to connect to a port.
pub fn resolved(channel: *mut rdma_event_channel, port: u16, timeout: i32) -> *mut rdma_cm_id {
    let id = id(channel);
    let mut to = loopback(port);
    // SAFETY: the id and the address live.
    let resolving = unsafe { rdma_resolve_addr(id, ptr::null_mut(), (&raw mut to).cast(), timeout) };
    assert_eq!(resolving, 0);
    assert_eq!(event(channel).kind, RDMA_CM_EVENT_ADDR_RESOLVED);
    id
}

/// A queue pair with queues of its own.
pub fn queue_pair(context: *mut ibv_context) -> *mut ibv_qp {
    // SAFETY: the context lives; so do the domain and the queue, which are never destroyed.
    unsafe {
        let pd = kept(ibv_alloc_pd(context));
        let cq = kept(ibv_create_cq(context, 16, ptr::null_mut(), ptr::null_mut(), 0));
        let mut init: ibv_qp_init_attr = zeroed();
        (init.qp_type, init.send_cq, init.recv_cq) = (IBV_QPT_RC, cq, cq);
        (init.cap.max_send_wr, init.cap.max_recv_wr) = (4, 4);
        let qp = ibv_create_qp(pd, &raw mut init);
        assert!(!qp.is_null());
        kept(qp)
    }
}

/// Parameters that name a queue pair.
pub fn parameters(qp: *mut ibv_qp) -> rdma_conn_param {
    // SAFETY: a structure of C for which zeros mean nothing, and a queue pair that lives.
    unsafe { rdma_conn_param { qp_num: (*qp).qp_num, ..zeroed() } }
}

/// Connects; returns the errno.
pub fn connect(id: *mut rdma_cm_id, qp: *mut ibv_qp) -> i32 {
    // SAFETY: the id and the queue pair live.
    outcome(unsafe { rdma_connect(id, ptr::from_mut(&mut parameters(qp))) })
}

/// Accepts; returns the errno.
pub fn accept(id: *mut rdma_cm_id, qp: *mut ibv_qp) -> i32 {
    // SAFETY: the id and the queue pair live.
    outcome(unsafe { rdma_accept(id, ptr::from_mut(&mut parameters(qp))) })
}

/// The device of an id.
pub fn context(id: *mut rdma_cm_id) -> *mut ibv_context {
    // SAFETY: the id lives.
    unsafe { (*id).verbs }
}
