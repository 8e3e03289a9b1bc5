//! Connection ids and queue pairs as verbs has them: what may be connected, and what is said of what may not.

mod support;

use std::mem::zeroed;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use softiwarp::verbs::*;
use support::verbs::*;
use verbs_sys::{
    IBV_ACCESS_HUGETLB, IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_ON_DEMAND, IBV_ACCESS_RELAXED_ORDERING,
    IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_ZERO_BASED, IBV_QPT_RC, IBV_WR_SEND, RDMA_CM_EVENT_ADDR_RESOLVED,
    RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ESTABLISHED,
    RDMA_CM_EVENT_REJECTED, ibv_pd, ibv_qp_init_attr, ibv_recv_wr, ibv_send_wr, ibv_wc, rdma_cm_id,
    rdma_event_channel,
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

/// Makes a queue pair of an id, in its own domain.
fn created(id: *mut rdma_cm_id) -> i32 {
    // SAFETY: a structure of C for which zeros mean nothing.
    let mut init: ibv_qp_init_attr = unsafe { zeroed() };
    init.qp_type = IBV_QPT_RC;
    (init.cap.max_send_wr, init.cap.max_recv_wr) = (4, 4);
    // SAFETY: the id and the structure live; queues and domain are the id's own.
    outcome(unsafe { rdma_create_qp(id, null_mut(), &raw mut init) })
}

#[test]
fn an_id_that_has_a_device_has_a_domain() {
    let (near, far) = (channel(), channel());
    let pd = |id: *mut rdma_cm_id| -> *mut ibv_pd {
        // SAFETY: the id lives.
        unsafe { (*id).pd }
    };
    let (listener, port) = listener(far, 5);
    assert!(pd(id(near)).is_null(), "it has no device yet");
    let one = resolved(near, port, 1000);
    assert_eq!(connect(one, queue_pair(context(one))), 0);
    let asked = event(far).id;
    for with in [listener, one, asked, bound(near)] {
        assert!(!pd(with).is_null());
        // SAFETY: the domain is not NULL, and never freed.
        assert_eq!(unsafe { (*pd(with)).context }, context(with));
    }
    let before = pd(asked);
    assert_eq!(created(asked), 0);
    assert_eq!(pd(asked), before);
    // SAFETY: the id lives, and has a queue pair now.
    assert_eq!(unsafe { (*(*asked).qp).pd }, before);
}

#[test]
fn memory_is_not_registered_with_flags_that_would_mean_something_else() {
    let id = bound(channel());
    let memory = kept(Box::into_raw(Box::new([0_u8; 8])));
    let registered = |flags: u32| {
        // SAFETY: the domain is never freed; the memory stays for ever.
        let mr = unsafe { ibv_reg_mr((*id).pd, memory.cast(), 8, flags as i32) };
        if mr.is_null() {
            // What its errno says.
            return outcome(-1);
        }
        // SAFETY: just made.
        unsafe { ibv_dereg_mr(mr) }
    };
    for harmless in [0, IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_HUGETLB, IBV_ACCESS_RELAXED_ORDERING] {
        assert_eq!(registered(IBV_ACCESS_LOCAL_WRITE | harmless), 0, "{harmless:#x}");
    }
    for other in [IBV_ACCESS_ZERO_BASED, IBV_ACCESS_ON_DEMAND, 1 << 8, 1 << 31] {
        assert_eq!(registered(IBV_ACCESS_LOCAL_WRITE | other), libc::EINVAL, "{other:#x}");
    }
}

/// The port of an id.
fn port(id: *mut rdma_cm_id) -> u16 {
    // SAFETY: the id lives, and has an address of this family.
    let bound = unsafe { (&raw const (*id).route.addr).cast::<libc::sockaddr_in>().read() };
    u16::from_be(bound.sin_port)
}

fn bound(channel: *mut rdma_event_channel) -> *mut rdma_cm_id {
    let id = id(channel);
    // SAFETY: the id and the address live.
    assert_eq!(unsafe { rdma_bind_addr(id, std::ptr::from_mut(&mut loopback(0)).cast()) }, 0);
    id
}

fn resolve(id: *mut rdma_cm_id, from: *mut libc::sockaddr_in, port: u16) -> i32 {
    let mut to = loopback(port);
    // SAFETY: the id and the addresses live.
    outcome(unsafe { rdma_resolve_addr(id, from.cast(), (&raw mut to).cast(), 1000) })
}

#[test]
fn an_id_that_is_bound_stays_so_when_it_is_resolved_from_elsewhere() {
    let near = channel();
    let id = bound(near);
    let before = port(id);
    assert_ne!(before, 0);
    assert_eq!(resolve(id, std::ptr::from_mut(&mut loopback(0)), 9), 0);
    assert_eq!(event(near).kind, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_eq!(port(id), before);
}

#[test]
fn an_id_that_is_to_connect_before_it_is_resolved_keeps_its_port() {
    let (near, far) = (channel(), channel());
    let (_listener, listening) = listener(far, 5);
    let id = bound(near);
    let (before, qp) = (port(id), queue_pair(context(id)));
    assert_eq!(connect(id, qp), libc::EINVAL);
    assert_eq!(resolve(id, null_mut(), listening), 0);
    assert_eq!(event(near).kind, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_eq!(connect(id, qp), 0);
    let asked = event(far).id;
    // SAFETY: the id of the request lives; its peer is of this family.
    let peer =
        unsafe { (&raw const (*asked).route.addr.__bindgen_anon_2).cast::<libc::sockaddr_in>().read() };
    assert_eq!(u16::from_be(peer.sin_port), before);
}

#[test]
fn private_data_that_is_too_long_is_refused_and_changes_nothing() {
    let (near, far) = (channel(), channel());
    let (_listener, listening) = listener(far, 5);
    let id = resolved(near, listening, 1000);
    let (mut said, data) = (parameters(queue_pair(context(id))), [0_u8; 255]);
    said.private_data = data.as_ptr().cast();
    let mut connect = |length| {
        said.private_data_len = length;
        // SAFETY: what the parameters name lives.
        outcome(unsafe { rdma_connect(id, &raw mut said) })
    };
    assert_eq!([253, 255, 252].map(&mut connect), [libc::EINVAL, libc::EINVAL, 0]);
    let asked = event(far).id;
    // SAFETY: the id lives, and the data.
    assert_eq!(outcome(unsafe { rdma_reject(asked, data.as_ptr().cast(), 253) }), libc::EINVAL);
    assert_eq!(accept(asked, queue_pair(context(asked))), 0, "it is not rejected");
    assert_eq!(event(near).kind, RDMA_CM_EVENT_ESTABLISHED);
}

#[test]
fn a_backlog_of_none_is_the_longest() {
    const PEERS: usize = 20;
    let (near, far) = (channel(), channel());
    let (_listener, port) = listener(far, 0);
    let ids: Vec<_> = (0..PEERS).map(|_| resolved(near, port, 1000)).collect();
    for id in ids {
        assert_eq!(connect(id, queue_pair(context(id))), 0);
    }
    for count in 0..PEERS {
        // SAFETY: the channel lives.
        let mut set = libc::pollfd { fd: unsafe { (*far).fd }, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which is there while the call lasts.
        assert_eq!(unsafe { libc::poll(&raw mut set, 1, 30_000) }, 1, "nobody answers {count}");
        assert_eq!(event(far).kind, RDMA_CM_EVENT_CONNECT_REQUEST);
    }
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
    let refused = event(near);
    assert_eq!((refused.kind, refused.status), (RDMA_CM_EVENT_REJECTED, -libc::ECONNRESET));
    assert_eq!(connect(two, ours), 0);
    // SAFETY: an id is destroyed once. It has nothing to do with the queue pair any more.
    assert_eq!(unsafe { rdma_destroy_id(one) }, 0);
    assert_eq!(connect(resolved(near, port, 1000), ours), libc::EINVAL);
    assert_eq!(accept(event(far).id, theirs), 0);
    assert_eq!(event(near).kind, RDMA_CM_EVENT_ESTABLISHED);
}

/// A program that lets a request go is told from a port where nobody listens, and from one that gives no answer of iWARP.
#[test]
fn what_refuses_a_connection_is_seen_by_the_errno() {
    let (near, far) = (channel(), channel());
    let (_listener, port) = listener(far, 5);
    let one = resolved(near, port, 1000);
    assert_eq!(connect(one, queue_pair(context(one))), 0);
    // SAFETY: an id is destroyed once, and nobody uses it any more.
    assert_eq!(unsafe { rdma_destroy_id(event(far).id) }, 0);
    let refused = event(near);
    assert_eq!((refused.kind, refused.status), (RDMA_CM_EVENT_REJECTED, -libc::ECONNRESET));

    let other = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let two = resolved(near, other.local_addr().unwrap().port(), 1000);
    assert_eq!(connect(two, queue_pair(context(two))), 0);
    drop(other.accept().unwrap());
    let refused = event(near);
    assert_eq!((refused.kind, refused.status), (RDMA_CM_EVENT_REJECTED, -libc::EPROTO));
}

#[test]
fn queues_have_numbers() {
    let near = channel();
    let id = resolved(near, 9, 1000);
    let new = || {
        // SAFETY: the context lives.
        let cq = unsafe { ibv_create_cq(context(id), 1, null_mut(), null_mut(), 0) };
        // SAFETY: just made.
        let number = unsafe { (*cq).handle };
        // SAFETY: destroyed once, and nobody uses it any more.
        assert_eq!(unsafe { ibv_destroy_cq(cq) }, 0);
        number
    };
    let (one, two) = (new(), new());
    assert!(one != 0 && two > one);
}

#[test]
fn a_channel_counts_its_queues_whichever_threads_make_them() {
    // SAFETY: the device is open; what is made is destroyed once, and lives until then.
    unsafe {
        let context = kept(ibv_open_device(null_mut()));
        let channel = ibv_create_comp_channel(context);
        let at = [context.expose_provenance(), channel.expose_provenance()];
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let [context, channel] = at;
                    for _ in 0..100_000 {
                        let channel = std::ptr::with_exposed_provenance_mut(channel);
                        let context = std::ptr::with_exposed_provenance_mut(context);
                        let cq = ibv_create_cq(context, 1, null_mut(), channel, 0);
                        assert_eq!(ibv_destroy_cq(cq), 0);
                    }
                });
            }
        });
        assert_eq!(ibv_destroy_comp_channel(channel), 0);
    }
}

/// A thread that has seen the queue pair become ready may not have seen its connection.
#[test]
fn what_is_posted_while_the_connection_is_made_is_sent() {
    let (near, far) = (channel(), channel());
    let (_listener, port) = listener(far, 5);
    for _ in 0..200 {
        let one = resolved(near, port, 1000);
        let (ours, theirs) = (queue_pair(context(one)), queue_pair(context(one)));
        // SAFETY: the context lives.
        let ops = unsafe { (*context(one)).ops };
        // SAFETY: zeros are a receive of nothing.
        let (mut receive, mut bad): (ibv_recv_wr, _) = (unsafe { zeroed() }, null_mut());
        // SAFETY: the queue pair lives.
        assert_eq!(unsafe { ops.post_recv.unwrap()(theirs, &raw mut receive, &raw mut bad) }, 0);
        let ours_at = ours.expose_provenance();
        let posts = std::thread::spawn(move || {
            let mut bad = null_mut();
            // SAFETY: zeros are a send of nothing.
            let mut send: ibv_send_wr = unsafe { zeroed() };
            send.opcode = IBV_WR_SEND;
            let ours = std::ptr::with_exposed_provenance_mut(ours_at);
            // SAFETY: the queue pair lives. It is refused until the connection is there.
            while unsafe { ops.post_send.unwrap()(ours, &raw mut send, &raw mut bad) } != 0 {
                std::hint::spin_loop();
            }
        });
        assert_eq!(connect(one, ours), 0);
        let asked = event(far);
        assert_eq!((asked.kind, accept(asked.id, theirs)), (RDMA_CM_EVENT_CONNECT_REQUEST, 0));
        assert_eq!(event(far).kind, RDMA_CM_EVENT_ESTABLISHED);
        assert_eq!(event(near).kind, RDMA_CM_EVENT_ESTABLISHED);
        posts.join().unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        // SAFETY: zeros are a completion of nothing.
        let mut received: ibv_wc = unsafe { zeroed() };
        // SAFETY: the queue pair lives.
        let queue = unsafe { (*theirs).recv_cq };
        // SAFETY: room for a completion; the queue lives.
        while unsafe { ops.poll_cq.unwrap()(queue, 1, &raw mut received) } == 0 {
            assert!(Instant::now() < end, "the message does not arrive");
        }
        // SAFETY: the id lives.
        assert_eq!(unsafe { rdma_disconnect(one) }, 0);
        assert_eq!(event(near).kind, RDMA_CM_EVENT_DISCONNECTED);
        assert_eq!(event(far).kind, RDMA_CM_EVENT_DISCONNECTED);
    }
}

/// What holds the queue pair longer, here the id, does not hold the channel.
#[test]
fn a_completion_channel_that_is_destroyed_leaves_the_sets_of_the_program() {
    let (near, far) = (channel(), channel());
    let (_listener, port) = listener(far, 5);
    let one = resolved(near, port, 1000);
    let context = context(one);
    // SAFETY: what is used lives, and is destroyed once; zeros mean nothing.
    unsafe {
        let completions = ibv_create_comp_channel(context);
        let set = libc::epoll_create1(libc::EPOLL_CLOEXEC);
        let mut entry = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        assert_eq!(libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, (*completions).fd, &raw mut entry), 0);
        let in_set = || std::fs::read_to_string(format!("/proc/self/fdinfo/{set}")).unwrap().contains("tfd:");
        assert!(in_set());
        let pd = ibv_alloc_pd(context);
        let cq = ibv_create_cq(context, 4, null_mut(), completions, 0);
        let mut init: ibv_qp_init_attr = zeroed();
        (init.qp_type, init.send_cq, init.recv_cq) = (IBV_QPT_RC, cq, cq);
        (init.cap.max_send_wr, init.cap.max_recv_wr) = (1, 1);
        let qp = ibv_create_qp(pd, &raw mut init);
        assert_eq!(connect(one, qp), 0);
        assert_eq!(accept(event(far).id, queue_pair(context)), 0);
        assert_eq!(event(near).kind, RDMA_CM_EVENT_ESTABLISHED);
        assert_eq!(
            (ibv_destroy_qp(qp), ibv_destroy_cq(cq), ibv_destroy_comp_channel(completions)),
            (0, 0, 0)
        );
        assert!(!in_set());
        assert_eq!((ibv_dealloc_pd(pd), libc::close(set)), (0, 0));
    }
}
