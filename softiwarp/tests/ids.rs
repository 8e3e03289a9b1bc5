//! Connection ids and queue pairs as verbs has them: what may be connected, and what is said of what may not.

mod support;

use std::mem::zeroed;
use std::ptr::null_mut;

use softiwarp::verbs::*;
use support::verbs::*;
use verbs_sys::{
    IBV_EVENT_CQ_ERR, IBV_QP_STATE, IBV_QPS_ERR, IBV_QPT_RC, RDMA_CM_EVENT_CONNECT_REQUEST,
    RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_REJECTED, ibv_async_event,
    ibv_qp_attr, ibv_qp_init_attr, ibv_recv_wr,
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

/// The next queue may have its address.
#[test]
fn a_queue_that_is_destroyed_leaves_no_asynchronous_event() {
    let context = context(listener(channel(), 5).0);
    // SAFETY: what is used lives, and is destroyed once; zeros mean nothing.
    unsafe {
        let pd = ibv_alloc_pd(context);
        let overrun = || {
            let cq = ibv_create_cq(context, 1, null_mut(), null_mut(), 0);
            let too_many = (*cq).cqe as u32 + 1;
            let mut init: ibv_qp_init_attr = zeroed();
            (init.qp_type, init.send_cq, init.recv_cq) = (IBV_QPT_RC, cq, cq);
            (init.cap.max_send_wr, init.cap.max_recv_wr) = (1, too_many);
            let qp = ibv_create_qp(pd, &raw mut init);
            let (mut receive, mut bad): (ibv_recv_wr, _) = (zeroed(), null_mut());
            for _ in 0..too_many {
                let post = (*context).ops.post_recv.unwrap();
                assert_eq!(post(qp, &raw mut receive, &raw mut bad), 0);
            }
            let mut failed: ibv_qp_attr = zeroed();
            failed.qp_state = IBV_QPS_ERR;
            assert_eq!(ibv_modify_qp(qp, &raw mut failed, IBV_QP_STATE as i32), 0);
            (qp, cq)
        };
        assert_eq!(libc::fcntl((*context).async_fd, libc::F_SETFL, libc::O_NONBLOCK), 0);
        let mut event: ibv_async_event = zeroed();
        let queues = [overrun(), overrun()];
        assert_eq!((ibv_destroy_qp(queues[0].0), ibv_destroy_cq(queues[0].1)), (0, 0));
        assert_eq!(ibv_get_async_event(context, &raw mut event), 0);
        assert_eq!((event.event_type, event.element.cq), (IBV_EVENT_CQ_ERR, queues[1].1));
        assert_eq!(outcome(ibv_get_async_event(context, &raw mut event)), libc::EAGAIN);
        assert_eq!((ibv_destroy_qp(queues[1].0), ibv_destroy_cq(queues[1].1)), (0, 0));
        assert_eq!(ibv_dealloc_pd(pd), 0);
    }
}
