//! Asynchronous events: which there are, and that what they name lives until they are acknowledged.

mod support;

use std::mem::zeroed;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::time::Duration;

use softiwarp::verbs::*;
use support::verbs::*;
use verbs_sys::{
    IBV_EVENT_CQ_ERR, IBV_EVENT_QP_LAST_WQE_REACHED, IBV_EVENT_SRQ_LIMIT_REACHED, IBV_QP_STATE, IBV_QPS_ERR,
    IBV_QPT_RC, IBV_SRQ_LIMIT, IBV_WR_SEND, RDMA_CM_EVENT_ESTABLISHED, ibv_async_event, ibv_context, ibv_cq,
    ibv_event_type, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_init_attr, ibv_recv_wr, ibv_send_wr, ibv_srq,
    ibv_srq_init_attr, ibv_wc,
};

/// A queue that has overflowed, and the queue pair that it was used by.
fn overrun(pd: *mut ibv_pd) -> (*mut ibv_qp, *mut ibv_cq) {
    // SAFETY: what is used lives; zeros mean nothing.
    unsafe {
        let context = (*pd).context;
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
        fail(qp);
        (qp, cq)
    }
}

/// Moves a queue pair to the error state.
fn fail(qp: *mut ibv_qp) {
    // SAFETY: the queue pair lives; zeros mean nothing.
    unsafe {
        let mut failed: ibv_qp_attr = zeroed();
        failed.qp_state = IBV_QPS_ERR;
        assert_eq!(ibv_modify_qp(qp, &raw mut failed, IBV_QP_STATE as i32), 0);
    }
}

/// A device opened once more: its events are no other test's.
fn opened() -> (*mut ibv_context, *mut ibv_pd) {
    // SAFETY: what is used lives.
    unsafe {
        let context = kept(ibv_open_device(null_mut()));
        (context, kept(ibv_alloc_pd(context)))
    }
}

/// Waits for the next event.
fn next(context: *mut ibv_context) -> ibv_async_event {
    // SAFETY: the context lives; zeros mean nothing.
    unsafe {
        let mut event = zeroed();
        assert_eq!(ibv_get_async_event(context, &raw mut event), 0);
        event
    }
}

/// That there is no event.
fn nothing_is_told(context: *mut ibv_context) {
    // SAFETY: the context lives; zeros mean nothing.
    unsafe {
        let (mut event, fd): (ibv_async_event, _) = (zeroed(), (*context).async_fd);
        assert_eq!(libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK), 0);
        assert_eq!(outcome(ibv_get_async_event(context, &raw mut event)), libc::EAGAIN);
        assert_eq!(libc::fcntl(fd, libc::F_SETFL, 0), 0);
    }
}

/// The next queue may have its address.
#[test]
fn a_queue_that_is_destroyed_leaves_no_asynchronous_event() {
    let (context, pd) = opened();
    // SAFETY: what is used lives, and is destroyed once.
    unsafe {
        let queues = [overrun(pd), overrun(pd)];
        assert_eq!((ibv_destroy_qp(queues[0].0), ibv_destroy_cq(queues[0].1)), (0, 0));
        let mut event = next(context);
        assert_eq!((event.event_type, event.element.cq), (IBV_EVENT_CQ_ERR, queues[1].1));
        ibv_ack_async_event(&raw mut event);
        nothing_is_told(context);
        assert_eq!((ibv_destroy_qp(queues[1].0), ibv_destroy_cq(queues[1].1)), (0, 0));
    }
}

/// A queue pair that shares a receive queue with a receive in it, connected to another one, which is returned as well.
fn sharing(pd: *mut ibv_pd) -> (*mut ibv_qp, *mut ibv_qp) {
    let (near, far) = (channel(), channel());
    let (_listener, port) = listener(far, 5);
    let one = resolved(near, port, 1000);
    // SAFETY: what is used lives; zeros mean nothing.
    unsafe {
        let (context, mut bad) = ((*pd).context, null_mut());
        let mut init: ibv_srq_init_attr = zeroed();
        init.attr.max_wr = 1;
        let srq = kept(ibv_create_srq(pd, &raw mut init));
        let mut receive: ibv_recv_wr = zeroed();
        assert_eq!((*context).ops.post_srq_recv.unwrap()(srq, &raw mut receive, &raw mut bad), 0);
        let cq = kept(ibv_create_cq(context, 4, null_mut(), null_mut(), 0));
        let mut init: ibv_qp_init_attr = zeroed();
        (init.qp_type, init.send_cq, init.recv_cq, init.srq) = (IBV_QPT_RC, cq, cq, srq);
        (init.cap.max_send_wr, init.sq_sig_all) = (1, 1);
        let qp = ibv_create_qp(pd, &raw mut init);
        let ours = queue_pair(context);
        assert_eq!(connect(one, ours), 0);
        assert_eq!(accept(event(far).id, qp), 0);
        assert_eq!(event(near).kind, RDMA_CM_EVENT_ESTABLISHED);
        (qp, ours)
    }
}

/// Sends a message without a byte.
fn send(qp: *mut ibv_qp) {
    // SAFETY: the queue pair lives; zeros mean nothing.
    unsafe {
        let (mut send, mut bad): (ibv_send_wr, _) = (zeroed(), null_mut());
        send.opcode = IBV_WR_SEND;
        assert_eq!((*(*qp).context).ops.post_send.unwrap()(qp, &raw mut send, &raw mut bad), 0);
    }
}

/// A program with a shared receive queue waits for that before it destroys a queue pair, so that no receive is lost.
#[test]
fn a_queue_pair_that_takes_no_more_shared_receives_says_so() {
    let (context, pd) = opened();
    // SAFETY: what is used lives, and is destroyed once; zeros mean nothing.
    unsafe {
        for by_peer in [false, true] {
            let (qp, peer) = sharing(pd);
            send(qp);
            nothing_is_told(context);
            if by_peer {
                assert_eq!(ibv_destroy_qp(peer), 0);
            } else {
                fail(qp);
            }
            let mut event = next(context);
            assert_eq!((event.event_type, event.element.qp), (IBV_EVENT_QP_LAST_WQE_REACHED, qp));
            // All that it had is reported by then.
            let mut done: ibv_wc = zeroed();
            assert_eq!((*context).ops.poll_cq.unwrap()((*qp).send_cq, 1, &raw mut done), 1);
            ibv_ack_async_event(&raw mut event);
            fail(qp);
            nothing_is_told(context);
            assert_eq!(ibv_destroy_qp(qp), 0);
            nothing_is_told(context);
        }
        // Nor is it told of what is gone, or has a queue of its own.
        let [(read, _), (unread, _)] = [sharing(pd), sharing(pd)];
        assert_eq!(ibv_destroy_qp(read), 0);
        fail(unread);
        assert_eq!(ibv_destroy_qp(unread), 0);
        fail(queue_pair(context));
        nothing_is_told(context);
    }
}

/// Destroys what an event of this kind names.
unsafe fn destroy(kind: ibv_event_type, object: usize) -> i32 {
    // SAFETY: as the caller says.
    unsafe {
        match kind {
            IBV_EVENT_CQ_ERR => ibv_destroy_cq(with_exposed_provenance_mut::<ibv_cq>(object)),
            IBV_EVENT_SRQ_LIMIT_REACHED => ibv_destroy_srq(with_exposed_provenance_mut::<ibv_srq>(object)),
            _ => ibv_destroy_qp(with_exposed_provenance_mut::<ibv_qp>(object)),
        }
    }
}

/// Until then the program may use the object that the event names.
#[test]
fn an_object_is_destroyed_when_its_asynchronous_events_are_acknowledged() {
    let (context, pd) = opened();
    // SAFETY: what is used lives, and is destroyed once; zeros mean nothing.
    unsafe {
        for kind in [IBV_EVENT_CQ_ERR, IBV_EVENT_SRQ_LIMIT_REACHED, IBV_EVENT_QP_LAST_WQE_REACHED] {
            let user = match kind {
                IBV_EVENT_CQ_ERR => overrun(pd).0,
                IBV_EVENT_SRQ_LIMIT_REACHED => {
                    let (qp, peer) = sharing(pd);
                    let mut init: ibv_srq_init_attr = zeroed();
                    init.attr.srq_limit = 1;
                    assert_eq!(ibv_modify_srq((*qp).srq, &raw mut init.attr, IBV_SRQ_LIMIT as i32), 0);
                    send(peer);
                    qp
                }
                _ => {
                    fail(sharing(pd).0);
                    null_mut()
                }
            };
            let mut event = next(context);
            assert_eq!(event.event_type, kind);
            if !user.is_null() {
                assert_eq!(ibv_destroy_qp(user), 0);
            }
            let object = event.element.cq.expose_provenance();
            let (tell, told) = std::sync::mpsc::channel();
            std::thread::spawn(move || tell.send(destroy(kind, object)));
            assert!(told.recv_timeout(Duration::from_millis(200)).is_err(), "it waits");
            ibv_ack_async_event(&raw mut event);
            assert_eq!(told.recv(), Ok(0));
        }
    }
}
