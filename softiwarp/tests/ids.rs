//! Connection ids and queue pairs as verbs has them: what may be connected, and what is said of what may not.

mod support;

use softiwarp::verbs::*;
use support::verbs::*;
use verbs_sys::{
    RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ESTABLISHED,
    RDMA_CM_EVENT_REJECTED,
};

#[test]
fn a_queue_pair_is_connected_once() {
    let (near, far) = (channel(), channel());
    let (_listener, port) = listener(far, 5);
    let (one, two) = (resolved(near, port, 1000), resolved(near, port, 1000));
    let (ours, theirs) = (queue_pair(context(one)), queue_pair(context(one)));
    assert_eq!(connect(one, ours), 0);
    assert_eq!(connect(two, ours), libc::EINVAL, "it is being connected");
    let asked = event(far);
    assert_eq!(asked.kind, RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_eq!(accept(asked.id, ours), libc::EINVAL);
    assert_eq!(accept(asked.id, theirs), 0);
    assert_eq!(event(far).kind, RDMA_CM_EVENT_ESTABLISHED);
    assert_eq!(event(near).kind, RDMA_CM_EVENT_ESTABLISHED);
    assert_eq!(connect(two, ours), libc::EINVAL, "it is connected");
    assert_eq!(connect(two, theirs), libc::EINVAL);
    // SAFETY: the id lives.
    assert_eq!(unsafe { rdma_disconnect(one) }, 0);
    assert_eq!(event(near).kind, RDMA_CM_EVENT_DISCONNECTED);
    assert_eq!(connect(two, ours), libc::EINVAL, "it was connected");
    // The refused calls have taken nothing from the id.
    assert_eq!(connect(two, queue_pair(context(two))), 0);
}

#[test]
fn a_queue_pair_whose_connection_was_refused_may_be_connected() {
    let (near, far) = (channel(), channel());
    let (_listener, port) = listener(far, 5);
    let (one, two) = (resolved(near, port, 1000), resolved(near, port, 1000));
    let (ours, theirs) = (queue_pair(context(one)), queue_pair(context(one)));
    assert_eq!(connect(one, ours), 0);
    // SAFETY: the id lives; no private data.
    assert_eq!(unsafe { rdma_reject(event(far).id, std::ptr::null(), 0) }, 0);
    assert_eq!(event(near).kind, RDMA_CM_EVENT_REJECTED);
    assert_eq!(connect(two, ours), 0);
    // SAFETY: an id is destroyed once. It has nothing to do with the queue pair any more.
    assert_eq!(unsafe { rdma_destroy_id(one) }, 0);
    assert_eq!(connect(resolved(near, port, 1000), ours), libc::EINVAL);
    assert_eq!(accept(event(far).id, theirs), 0);
    assert_eq!(event(near).kind, RDMA_CM_EVENT_ESTABLISHED);
}
