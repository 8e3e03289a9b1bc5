//! Messages that arrive before their receive is posted, by programs of verbs.

mod support;

use std::mem::zeroed;
use std::ptr;
use std::time::{Duration, Instant};

use softiwarp::verbs::*;
use support::verbs::*;
use verbs_sys::{
    IBV_ACCESS_LOCAL_WRITE, IBV_QPT_RC, IBV_SEND_SIGNALED, IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_SUCCESS,
    IBV_WC_WR_FLUSH_ERR, IBV_WR_SEND, RDMA_CM_EVENT_ESTABLISHED, ibv_context, ibv_mr, ibv_qp,
    ibv_qp_init_attr, ibv_recv_wr, ibv_send_wr, ibv_sge, ibv_srq_init_attr, ibv_wc, ibv_wc_status,
};

/// Longer than a test takes, but for the one about the limit itself.
fn limit() -> Duration {
    if is_inside() { Duration::from_millis(500) } else { Duration::from_secs(60) }
}

const INSIDE: &str = "SOFTIWARP_TEST_RNR_LIMIT";

fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// The longest message: more than TCP takes at once.
const LONG: usize = 4 << 20;

/// Memory of the test's own that a device may access, all of whose bytes are as given.
struct Memory {
    start: *mut u8,
    length: usize,
    region: *mut ibv_mr,
}

impl Memory {
    fn new(qp: *mut ibv_qp, length: usize, byte: u8) -> Memory {
        let start: *mut u8 = Box::into_raw(vec![byte; length].into_boxed_slice()).cast();
        // SAFETY: the queue pair lives; the memory is freed when it is not registered any more.
        let region = unsafe { ibv_reg_mr((*qp).pd, start.cast(), length, IBV_ACCESS_LOCAL_WRITE as i32) };
        assert!(!region.is_null());
        Memory { start, length, region }
    }

    fn entry(&self, length: usize) -> ibv_sge {
        // SAFETY: the region lives.
        ibv_sge { addr: self.start as u64, length: length as u32, lkey: unsafe { (*self.region).lkey } }
    }

    fn byte(&self, at: usize) -> u8 {
        // SAFETY: within the memory, which nothing else writes by now.
        unsafe { self.start.add(at).read() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: registered above, and no longer used by this thread.
        assert_eq!(unsafe { ibv_dereg_mr(self.region) }, 0);
        // SAFETY: allocated above with this length; the device does not use it any more.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(self.start, self.length)) });
    }
}

/// Two queue pairs, connected; both are used by this thread alone.
fn connected(shared: bool) -> (*mut ibv_qp, *mut ibv_qp) {
    wait_for_receives(limit());
    let (near, far) = (channel(), channel());
    let (_listener, port) = listener(far, 5);
    let one = resolved(near, port, 1000);
    let (ours, theirs) =
        (queue_pair(context(one)), if shared { shares(context(one)) } else { queue_pair(context(one)) });
    assert_eq!(connect(one, ours), 0);
    assert_eq!(accept(event(far).id, theirs), 0);
    for channel in [near, far] {
        assert_eq!(event(channel).kind, RDMA_CM_EVENT_ESTABLISHED);
    }
    (ours, theirs)
}

/// A queue pair with a shared receive queue.
fn shares(context: *mut ibv_context) -> *mut ibv_qp {
    // SAFETY: the context lives; so do the domain and the queues, which are never destroyed.
    unsafe {
        let pd = kept(ibv_alloc_pd(context));
        let cq = kept(ibv_create_cq(context, 16, ptr::null_mut(), ptr::null_mut(), 0));
        let mut asked: ibv_srq_init_attr = zeroed();
        (asked.attr.max_wr, asked.attr.max_sge) = (4, 1);
        let mut init: ibv_qp_init_attr = zeroed();
        (init.qp_type, init.send_cq, init.recv_cq) = (IBV_QPT_RC, cq, cq);
        init.srq = kept(ibv_create_srq(pd, &raw mut asked));
        init.cap.max_send_wr = 4;
        assert!(!init.srq.is_null());
        kept(ibv_create_qp(pd, &raw mut init))
    }
}

fn send(qp: *mut ibv_qp, id: u64, mut entry: ibv_sge) {
    // SAFETY: zeros are a send of nothing.
    let mut wr: ibv_send_wr = unsafe { zeroed() };
    (wr.wr_id, wr.opcode, wr.send_flags) = (id, IBV_WR_SEND, IBV_SEND_SIGNALED);
    (wr.sg_list, wr.num_sge) = (&raw mut entry, 1);
    let mut bad = ptr::null_mut();
    // SAFETY: the queue pair lives, and so does the memory.
    assert_eq!(unsafe { (*(*qp).context).ops.post_send.unwrap()(qp, &raw mut wr, &raw mut bad) }, 0);
}

fn receive(qp: *mut ibv_qp, id: u64, mut entry: ibv_sge) {
    // SAFETY: zeros are a receive of nothing.
    let mut wr: ibv_recv_wr = unsafe { zeroed() };
    (wr.wr_id, wr.sg_list, wr.num_sge) = (id, &raw mut entry, 1);
    let mut bad = ptr::null_mut();
    // SAFETY: the queue pair and its queues live, and so does the memory.
    let posted = unsafe {
        let ops = (*(*qp).context).ops;
        if (*qp).srq.is_null() {
            ops.post_recv.unwrap()(qp, &raw mut wr, &raw mut bad)
        } else {
            ops.post_srq_recv.unwrap()((*qp).srq, &raw mut wr, &raw mut bad)
        }
    };
    assert_eq!(posted, 0);
}

/// Polls until the queue pair's next completion.
fn next(qp: *mut ibv_qp) -> (u64, ibv_wc_status) {
    let begin = Instant::now();
    loop {
        // SAFETY: zeros are a completion; the queue lives, and there is room for one.
        let (count, wc) = unsafe {
            let mut wc: ibv_wc = zeroed();
            ((*(*qp).context).ops.poll_cq.unwrap()((*qp).send_cq, 1, &raw mut wc), wc)
        };
        if count == 1 {
            return (wc.wr_id, wc.status);
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing comes");
    }
}

#[test]
fn one_thread_at_both_ends_posts_the_receive_behind_the_message() {
    for shared in [false, true] {
        let (ours, theirs) = connected(shared);
        let (from, to) = (Memory::new(ours, 64, 7), Memory::new(theirs, 64, 0));
        for round in 0..20 {
            send(ours, round, from.entry(64));
            assert_eq!(next(ours), (round, IBV_WC_SUCCESS), "TCP has it");
            if round % 2 == 0 {
                // Time for the background thread to find that there is no receive.
                std::thread::sleep(Duration::from_millis(10));
            }
            receive(theirs, round, to.entry(64));
            assert_eq!(next(theirs), (round, IBV_WC_SUCCESS));
            assert_eq!((to.byte(0), to.byte(63)), (7, 7));
        }
    }
}

/// As the program polls neither queue, the device's own thread has to notice the receive.
#[test]
fn the_background_thread_goes_on_with_what_has_waited() {
    for shared in [false, true] {
        let (ours, theirs) = connected(shared);
        let (from, to) = (Memory::new(ours, 64, 7), Memory::new(theirs, 64, 0));
        send(ours, 1, from.entry(64));
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(to.byte(0), 0);
        receive(theirs, 2, to.entry(64));
        let begin = Instant::now();
        // SAFETY: within the memory, which the device may be writing.
        while unsafe { to.start.add(63).read_volatile() } != 7 {
            assert!(begin.elapsed() < Duration::from_secs(60), "nobody has noticed");
            std::thread::yield_now();
        }
    }
}

/// In a process of its own, as the time limit is the process's.
#[test]
fn a_message_that_nobody_receives_fails_as_over_roce() {
    if !is_inside() {
        let ended = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["a_message_that_nobody_receives_fails_as_over_roce", "--exact", "--nocapture"])
            .env(INSIDE, "1")
            .status();
        assert!(ended.unwrap().success());
        return;
    }
    let (ours, theirs) = connected(false);
    let from = Memory::new(ours, LONG, 7);
    let begin = Instant::now();
    for id in 0..4 {
        send(ours, id, from.entry(LONG));
    }
    assert_eq!(next(ours), (0, IBV_WC_RNR_RETRY_EXC_ERR));
    assert!(begin.elapsed() >= limit());
    for id in 1..4 {
        assert_eq!(next(ours), (id, IBV_WC_WR_FLUSH_ERR));
    }
    receive(theirs, 9, from.entry(1));
    assert_eq!(next(theirs), (9, IBV_WC_WR_FLUSH_ERR));
}

#[test]
fn a_queue_pair_is_destroyed_while_a_message_waits() {
    for shared in [false, true] {
        let (ours, theirs) = connected(shared);
        let from = Memory::new(ours, LONG, 7);
        send(ours, 1, from.entry(LONG));
        send(ours, 2, from.entry(LONG));
        std::thread::sleep(Duration::from_millis(20));
        // SAFETY: destroyed once.
        assert_eq!(unsafe { ibv_destroy_qp(theirs) }, 0);
        assert_eq!(next(ours), (1, IBV_WC_WR_FLUSH_ERR));
    }
}
