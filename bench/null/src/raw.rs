//! The raw way: verbs as a C program calls them, writing what the device needs to know and no more.

use crate::{BATCH, BYTES, DEPTH, Kind, Path, ROUND, Wait};
use ndcompat::verbs::bindings::*;
use ndcompat::verbs::{
    CompletionChannel, CompletionQueue, Context, ProtectionDomain, QueuePair, QueuePairConfig, ops,
};
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::Arc;

/// A queue pair of the null device, which needs no connection.
pub struct Raw {
    qp: QueuePair,
    cq: Arc<CompletionQueue>,
    channel: Arc<CompletionChannel>,
    memory: Box<[u8]>,
}

impl Raw {
    /// Makes the queues, which have the depth of a round.
    pub fn new() -> Raw {
        let context = Context::all().expect("descriptors and memory").remove(0);
        let pd = ProtectionDomain::create(&context).expect("a domain");
        let channel = CompletionChannel::create(&context).expect("a channel");
        let cq = CompletionQueue::create(&context, 2 * DEPTH, Some(&channel), 0, Some(0));
        let cq = Arc::new(cq.expect("a queue"));
        let cap = ibv_qp_cap {
            max_send_wr: DEPTH,
            max_recv_wr: DEPTH,
            max_send_sge: 2,
            max_recv_sge: 2,
            max_inline_data: 256,
        };
        let config =
            QueuePairConfig { pd, send_cq: cq.clone(), recv_cq: cq.clone(), srq: None, cap, cookie: 0 };
        let qp = QueuePair::create(config).expect("a queue pair");
        Raw { qp, cq, channel, memory: vec![0; BYTES as usize].into() }
    }
}

impl Default for Raw {
    fn default() -> Raw {
        Raw::new()
    }
}

impl Path for Raw {
    #[inline(always)]
    fn post(&self, kind: Kind, number: u64) {
        let mut list = ibv_sge { addr: self.memory.as_ptr() as u64, length: BYTES, lkey: 1 };
        if kind == Kind::Receive {
            let mut wr = ibv_recv_wr { wr_id: number, next: null_mut(), sg_list: &mut list, num_sge: 1 };
            // SAFETY: the queue pair lives, and the request is well-formed.
            let result = unsafe { ops::post_recv(self.qp.as_ptr(), &mut wr, &mut null_mut()) };
            assert!(result == 0);
            return;
        }
        let (opcode, flags) = match kind {
            Kind::Read => (IBV_WR_RDMA_READ, IBV_SEND_SIGNALED),
            Kind::Write => (IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED),
            Kind::Inline => (IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_INLINE),
            // One that reports now and then, or the queue would never have room again.
            Kind::Silent if number % (ROUND / 2) != ROUND / 2 - 1 => (IBV_WR_SEND, 0),
            _ => (IBV_WR_SEND, IBV_SEND_SIGNALED),
        };
        let mut wr = MaybeUninit::<ibv_send_wr>::uninit();
        let wr = wr.as_mut_ptr();
        // SAFETY: all fields that the operation has are written; the queue pair lives.
        let result = unsafe {
            (&raw mut (*wr).wr_id).write(number);
            (&raw mut (*wr).next).write(null_mut());
            (&raw mut (*wr).sg_list).write(&mut list);
            (&raw mut (*wr).num_sge).write(1);
            (&raw mut (*wr).opcode).write(opcode);
            (&raw mut (*wr).send_flags).write(flags);
            if matches!(kind, Kind::Read | Kind::Write) {
                (&raw mut (*wr).wr.rdma.remote_addr).write(list.addr);
                (&raw mut (*wr).wr.rdma.rkey).write(1);
            }
            ops::post_send(self.qp.as_ptr(), wr, &mut null_mut())
        };
        assert!(result == 0);
        if kind == Kind::Silent && flags != 0 {
            assert!(self.results(1) == 1);
        }
    }

    #[inline(always)]
    fn results(&self, most: usize) -> usize {
        let mut completions = [const { MaybeUninit::<ibv_wc>::uninit() }; BATCH];
        let most = most.min(BATCH) as i32;
        // SAFETY: there is room for that many, and as many as it says are written.
        unsafe {
            let count = ops::poll_cq(self.cq.as_ptr(), most, completions.as_mut_ptr().cast());
            assert!(count >= 0);
            for completion in &completions[..count as usize] {
                let completion = completion.assume_init_ref();
                assert!(completion.status == IBV_WC_SUCCESS);
                black_box(completion.wr_id);
            }
            count as usize
        }
    }

    #[inline(always)]
    fn await_send(&self, _how: Wait, number: u64) {
        // SAFETY: the queue lives.
        assert!(unsafe { ops::req_notify_cq(self.cq.as_ptr(), 0) } == 0);
        self.post(Kind::Send, number);
        let (mut cq, mut cookie) = (null_mut(), null_mut());
        // SAFETY: the channel lives, the results are writable; the event is acknowledged once.
        unsafe {
            assert!(ibv_get_cq_event(self.channel.as_ptr(), &mut cq, &mut cookie) == 0);
            ibv_ack_cq_events(cq, 1);
        }
        assert!(self.results(1) == 1);
    }
}
