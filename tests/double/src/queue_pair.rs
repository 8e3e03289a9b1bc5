//! Queue pairs: requests that complete at once, or wait for the peer's receive.

use crate::device::{Device, export, lock};
use crate::faults::{self, Side};
use crate::queues::{Cq, List, Receive, add_shared, complete, take_shared};
use crate::{created, destroyed, verb};
use libc::c_int;
use ndcompat::verbs::bindings::*;
use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// The most bytes of inline data.
const MAX_INLINE: u32 = 1024;

/// How much inline data the requests of a queue may have.
static INLINE_ROOM: AtomicU32 = AtomicU32::new(u32::MAX);

/// Limits the inline data of all requests of a queue together, until the end of the test's turn.
pub fn limit_inline_room(bytes: u32) {
    INLINE_ROOM.store(bytes, Ordering::Relaxed);
}

/// A queue pair.
#[repr(C)]
pub(crate) struct Qp {
    qp: ibv_qp,
    /// The peer's number; 0 for none.
    peer: u32,
    /// The port, and the index of the partition.
    path: (u8, u16),
    requests: VecDeque<Work>,
    max_requests: usize,
    receives: VecDeque<Receive>,
    max_receives: usize,
}

/// A request that has not completed.
struct Work {
    wr_id: u64,
    opcode: ibv_wr_opcode,
    flags: u32,
    list: List,
    remote: u64,
    key: u32,
    /// The inline data of a request that has to wait.
    inline: Box<[u8]>,
}

fn wc(qp: &Qp, wr_id: u64, status: ibv_wc_status, opcode: ibv_wc_opcode, bytes: u32) -> ibv_wc {
    let mut wc: ibv_wc = zeroed();
    (wc.wr_id, wc.status, wc.opcode, wc.byte_len, wc.qp_num) = (wr_id, status, opcode, bytes, qp.qp.qp_num);
    wc
}

impl Device {
    fn queue_pair(&self, number: u32) -> Option<*mut Qp> {
        let at = number.checked_sub(1)? as usize;
        self.queue_pairs.get(at).copied().filter(|qp| !qp.is_null())
    }

    /// Executes requests until one has to wait.
    unsafe fn run(&mut self, qp: *mut Qp) {
        // SAFETY: the queue pair lives, and the lock is held.
        let qp = unsafe { &mut *qp };
        while qp.qp.state == IBV_QPS_RTS
            && let Some(work) = qp.requests.front()
        {
            // Another queue pair may have the peer's number by now.
            // SAFETY: what is listed lives, and the lock is held.
            let is_peer = |peer: &*mut Qp| unsafe { (**peer).peer } == qp.qp.qp_num;
            let Some(peer) = self.queue_pair(qp.peer).filter(is_peer) else { return };
            let opcode = match work.opcode {
                IBV_WR_RDMA_READ => IBV_WC_RDMA_READ,
                IBV_WR_RDMA_WRITE => IBV_WC_RDMA_WRITE,
                _ => IBV_WC_SEND,
            };
            let status = match faults::completion(Side::Initiator) {
                Some(status) => status,
                // SAFETY: both queue pairs live, and the lock is held.
                None => match unsafe { self.perform(work, ptr::from_ref(qp), peer) } {
                    Some(status) => status,
                    None => return,
                },
            };
            let Some(work) = qp.requests.pop_front() else { return };
            if status != IBV_WC_SUCCESS || work.flags & IBV_SEND_SIGNALED != 0 {
                let wc = wc(qp, work.wr_id, status, opcode, work.list.length());
                if opcode == IBV_WC_RDMA_READ && faults::reads_wait() {
                    self.reads.push((qp.qp.send_cq, wc));
                } else {
                    // SAFETY: the completion queue lives as long as its queue pairs, and the lock is
                    // held.
                    unsafe { complete(self, qp.qp.send_cq, wc, false) };
                }
            }
            if status != IBV_WC_SUCCESS {
                // SAFETY: the queue pair lives, and the lock is held.
                unsafe { self.fail(qp) };
            }
        }
    }

    /// Executes a request. Without a status it must wait.
    unsafe fn perform(&mut self, work: &Work, qp: *const Qp, peer: *mut Qp) -> Option<ibv_wc_status> {
        let inline = work.flags & IBV_SEND_INLINE != 0;
        let local = if work.opcode == IBV_WR_RDMA_READ { IBV_ACCESS_LOCAL_WRITE } else { 0 };
        if !inline && !self.may_use(&work.list, local) {
            return Some(IBV_WC_LOC_PROT_ERR);
        }
        let remote = |access| {
            let length = work.list.length();
            length == 0 || self.regions.allow(work.key, work.remote, length, access)
        };
        let there = [ibv_sge { addr: work.remote, length: work.list.length(), lkey: 0 }];
        match work.opcode {
            IBV_WR_RDMA_READ if remote(IBV_ACCESS_REMOTE_READ) => move_bytes(&there, work.list.entries()),
            IBV_WR_RDMA_WRITE if remote(IBV_ACCESS_REMOTE_WRITE) => move_bytes(work.list.entries(), &there),
            IBV_WR_RDMA_READ | IBV_WR_RDMA_WRITE => return Some(IBV_WC_REM_ACCESS_ERR),
            // SAFETY: both queue pairs live, and the lock is held.
            _ => return unsafe { self.deliver(work, qp, peer) },
        }
        Some(IBV_WC_SUCCESS)
    }

    /// Sends to a receive of the peer's, which must have one.
    unsafe fn deliver(&mut self, work: &Work, qp: *const Qp, peer: *mut Qp) -> Option<ibv_wc_status> {
        // SAFETY: both live and the lock is held; they may be one and the same, so by fields.
        let (number, state, srq) = unsafe { ((*peer).peer, (*peer).qp.state, (*peer).qp.srq) };
        // SAFETY: the queue pair lives, and the lock is held.
        if number != unsafe { (*qp).qp.qp_num } || !matches!(state, IBV_QPS_RTR | IBV_QPS_RTS) {
            return None;
        }
        // SAFETY: the peer and its shared queue live, and the lock is held.
        let receive =
            unsafe { if srq.is_null() { (*peer).receives.pop_front() } else { take_shared(self, srq) } }?;
        let length = work.list.length();
        let (there, here) = if let Some(injected) = faults::completion(Side::Receive) {
            (injected, IBV_WC_REM_OP_ERR)
        } else if receive.list.length() < length {
            (IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR)
        } else if !self.may_use(&receive.list, IBV_ACCESS_LOCAL_WRITE) {
            (IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR)
        } else {
            move_bytes(work.list.entries(), receive.list.entries());
            (IBV_WC_SUCCESS, IBV_WC_SUCCESS)
        };
        let solicited = work.flags & IBV_SEND_SOLICITED != 0;
        // SAFETY: the peer and its completion queue live, and the lock is held.
        unsafe {
            let wc = wc(&*peer, receive.wr_id, there, IBV_WC_RECV, length);
            complete(self, (*peer).qp.recv_cq, wc, solicited);
            if there != IBV_WC_SUCCESS {
                self.fail(&mut *peer);
            }
        }
        Some(here)
    }

    fn may_use(&self, list: &List, access: u32) -> bool {
        let allowed =
            |sge: &ibv_sge| sge.length == 0 || self.regions.allow(sge.lkey, sge.addr, sge.length, access);
        list.entries().iter().all(allowed)
    }

    /// Moves the queue pair to ERR and flushes it.
    unsafe fn fail(&mut self, qp: &mut Qp) {
        qp.qp.state = IBV_QPS_ERR;
        if faults::flushes_nothing() {
            qp.requests.clear();
            qp.receives.clear();
        }
        while let Some(work) = qp.requests.pop_front() {
            let wc = wc(qp, work.wr_id, IBV_WC_WR_FLUSH_ERR, IBV_WC_SEND, 0);
            // SAFETY: the queue lives as long as its queue pairs.
            unsafe { complete(self, qp.qp.send_cq, wc, false) };
        }
        while let Some(receive) = qp.receives.pop_front() {
            let wc = wc(qp, receive.wr_id, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV, 0);
            // SAFETY: the completion queue lives as long as its queue pairs, and the lock is held.
            unsafe { complete(self, qp.qp.recv_cq, wc, false) };
        }
    }

    /// Continues the peers that wait for a receive.
    unsafe fn run_peers(&mut self, waits: impl Fn(&Qp) -> bool) {
        for at in 0..self.queue_pairs.len() {
            let qp = self.queue_pairs[at];
            // SAFETY: what is listed lives, and the lock is held.
            if !qp.is_null() && !unsafe { (*qp).requests.is_empty() } && waits(unsafe { &*qp }) {
                // SAFETY: the queue pair lives, and the lock is held.
                unsafe { self.run(qp) };
            }
        }
    }
}

/// Completes the delayed reads, in order.
pub fn complete_reads() {
    let mut device = lock();
    for (cq, wc) in std::mem::take(&mut device.reads) {
        // SAFETY: the caller has not destroyed the queue.
        unsafe { complete(&mut device, cq, wc, false) };
    }
}

/// The port of the newest queue pair, and the index of its partition.
pub fn path_of_newest_queue_pair() -> (u8, u16) {
    let newest = lock().newest.expect("a queue pair");
    // SAFETY: the queue pair lives, and nobody changes it now.
    unsafe { (*newest).path }
}

/// Stops the newest queue pair and flushes it, as devices do when the connection is lost.
pub fn stop_newest_queue_pair() {
    let mut device = lock();
    let newest = device.newest.expect("a queue pair");
    // SAFETY: the queue pair lives, and the lock is held.
    unsafe { device.fail(&mut *newest) };
}

/// Copies from list to list. The memory is registered, or it is inline data.
#[inline]
fn move_bytes(from: &[ibv_sge], to: &[ibv_sge]) {
    let (mut to, mut filled) = (to.iter(), 0);
    let mut target = to.next();
    for source in from {
        let mut moved = 0;
        while moved < source.length
            && let Some(room) = target
        {
            let part = (source.length - moved).min(room.length - filled);
            // SAFETY: the caller has checked both lists against the regions.
            unsafe {
                let (from, to) = (source.addr + u64::from(moved), room.addr + u64::from(filled));
                ptr::copy(from as *const u8, to as *mut u8, part as usize);
            }
            moved += part;
            filled += part;
            if filled == room.length {
                (target, filled) = (to.next(), 0);
            }
        }
    }
}

/// `context->ops.post_send`
pub(crate) unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    mut wr: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    verb("post_send", || {
        let mut device = lock();
        let first = wr;
        // SAFETY: the queue pair lives, the lock is held, and the caller passes a valid request.
        while let Some(request) = unsafe { wr.as_ref() } {
            let taken = if wr == first { Ok(()) } else { faults::call("post_send of a list") };
            // SAFETY: the queue pair lives, the lock is held, and the caller passes a valid request.
            if let Err(errno) = taken.and_then(|()| unsafe { push(&mut device, qp.cast(), request) }) {
                // SAFETY: the caller has room for the address of the request that failed.
                unsafe { *bad = wr };
                return Err(errno);
            }
            wr = request.next;
        }
        Ok(())
    })
}

#[inline]
unsafe fn push(device: &mut Device, queue_pair: *mut Qp, request: &ibv_send_wr) -> Result<(), i32> {
    // SAFETY: the queue pair lives and the lock is held.
    let qp = unsafe { &mut *queue_pair };
    if !matches!(qp.qp.state, IBV_QPS_RTS | IBV_QPS_ERR) {
        return Err(libc::EINVAL);
    }
    if qp.requests.len() >= qp.max_requests {
        return Err(libc::ENOMEM);
    }
    // SAFETY: the caller's request; only RDMA requests use the union.
    let (list, rdma) = unsafe { (List::copy(request.sg_list, request.num_sge)?, request.wr.rdma) };
    let (opcode, flags) = (request.opcode, request.send_flags);
    let work = Work {
        wr_id: request.wr_id,
        opcode,
        flags,
        list,
        remote: rdma.remote_addr,
        key: rdma.rkey,
        inline: Box::default(),
    };
    qp.requests.push_back(work);
    if faults::doorbell_is_refused() {
        return Err(-1);
    }
    if qp.qp.state == IBV_QPS_ERR {
        // SAFETY: the queue pair lives, and the lock is held.
        unsafe { device.fail(qp) };
        return Ok(());
    }
    // SAFETY: the queue pair lives, and the lock is held.
    unsafe { device.run(queue_pair) };
    if flags & IBV_SEND_INLINE != 0
        // SAFETY: the queue pair lives, and the lock is held.
        && let Some(work) = unsafe { &mut (*queue_pair).requests }.back_mut()
    {
        let mut bytes = vec![0; work.list.length() as usize].into_boxed_slice();
        let whole = [ibv_sge { addr: bytes.as_mut_ptr() as u64, length: bytes.len() as u32, lkey: 0 }];
        move_bytes(work.list.entries(), &whole);
        work.list.replace(whole[0].addr, whole[0].length);
        work.inline = bytes;
    }
    Ok(())
}

/// Posts a list of receives by `add`, one after the other.
unsafe fn receive(
    mut wr: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
    mut add: impl FnMut(Receive) -> Result<(), i32>,
) -> Result<(), i32> {
    // SAFETY: the caller says that there are so many entries.
    while let Some(request) = unsafe { wr.as_ref() } {
        // SAFETY: the caller says that there are so many entries.
        let list = unsafe { List::copy(request.sg_list, request.num_sge) };
        if let Err(errno) = list.and_then(|list| add(Receive { wr_id: request.wr_id, list })) {
            // SAFETY: the caller has room for the address of the request that failed.
            unsafe { *bad = wr };
            return Err(errno);
        }
        wr = request.next;
    }
    Ok(())
}

/// `context->ops.post_recv`
pub(crate) unsafe extern "C" fn post_recv(
    qp: *mut ibv_qp,
    wr: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    verb("post_recv", || {
        let mut device = lock();
        // SAFETY: the caller's queue pair lives, and the lock is held.
        let qp = unsafe { &mut *qp.cast::<Qp>() };
        // SAFETY: the caller passes a list of receives, and room for the address of one.
        unsafe {
            receive(wr, bad, |receive| {
                if qp.qp.state == IBV_QPS_RESET {
                    return Err(libc::EINVAL);
                }
                if qp.receives.len() >= qp.max_receives {
                    return Err(libc::ENOMEM);
                }
                qp.receives.push_back(receive);
                Ok(())
            })?;
        }
        match qp.qp.state {
            // SAFETY: the queue pair lives, and the lock is held.
            IBV_QPS_ERR => unsafe { device.fail(qp) },
            IBV_QPS_RTR | IBV_QPS_RTS => {
                if let Some(peer) = device.queue_pair(qp.peer) {
                    // SAFETY: the queue pair lives, and the lock is held.
                    unsafe { device.run(peer) };
                }
            }
            _ => {}
        }
        Ok(())
    })
}

/// `context->ops.post_srq_recv`
pub(crate) unsafe extern "C" fn post_srq_recv(
    srq: *mut ibv_srq,
    wr: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    verb("post_srq_recv", || {
        let mut device = lock();
        // SAFETY: the lock is held.
        unsafe { receive(wr, bad, |receive| add_shared(srq, receive)) }?;
        // SAFETY: the lock is held.
        unsafe { device.run_peers(|_| true) };
        Ok(())
    })
}

export! {
    fn ibv_create_qp(pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> *mut ibv_qp {
        created("ibv_create_qp", || {
            let mut qp: ibv_qp = zeroed();
            // SAFETY: the caller's structure and its domain are there.
            let (init, context) = unsafe { (&*init, (*pd).context) };
            let inline = init.cap.max_inline_data.saturating_mul(init.cap.max_send_wr);
            if init.cap.max_inline_data > MAX_INLINE || inline > INLINE_ROOM.load(Ordering::Relaxed) {
                return Err(libc::EINVAL);
            }
            let mut device = lock();
            (qp.context, qp.qp_context, qp.pd) = (context, init.qp_context, pd);
            (qp.send_cq, qp.recv_cq, qp.srq) = (init.send_cq, init.recv_cq, init.srq);
            // A number is used again as soon as it is free, as devices may do.
            let free = device.queue_pairs.iter().position(|qp| qp.is_null());
            let at = free.unwrap_or(device.queue_pairs.len());
            qp.qp_num = at as u32 + 1;
            (qp.state, qp.qp_type) = (IBV_QPS_RESET, init.qp_type);
            let (max_requests, max_receives) = (init.cap.max_send_wr as usize, init.cap.max_recv_wr as usize);
            let qp = Box::into_raw(Box::new(Qp {
                qp,
                peer: 0,
                path: (0, 0),
                requests: VecDeque::with_capacity(max_requests),
                max_requests,
                receives: VecDeque::with_capacity(max_receives),
                max_receives,
            }));
            if at == device.queue_pairs.len() {
                device.queue_pairs.push(qp);
            } else {
                device.queue_pairs[at] = qp;
            }
            device.newest = Some(qp);
            Ok(qp.cast())
        })
    }

    fn ibv_modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int {
        verb("ibv_modify_qp", || {
            let mut device = lock();
            // SAFETY: the queue pair lives, the lock is held, the attributes are readable.
            let (queue_pair, attr) = unsafe { (&mut *qp.cast::<Qp>(), &*attr) };
            let names = |bit: ibv_qp_attr_mask| mask as u32 & bit != 0;
            if names(IBV_QP_DEST_QPN) {
                queue_pair.peer = attr.dest_qp_num;
            }
            if names(IBV_QP_PORT | IBV_QP_PKEY_INDEX) {
                queue_pair.path = (attr.port_num, attr.pkey_index);
            }
            if !names(IBV_QP_STATE) {
                return Ok(());
            }
            if attr.qp_state == IBV_QPS_ERR {
                // SAFETY: the queue pair lives, and the lock is held.
                unsafe { device.fail(queue_pair) };
                return Ok(());
            }
            if queue_pair.qp.state == IBV_QPS_ERR && attr.qp_state != IBV_QPS_RESET {
                return Err(libc::EINVAL);
            }
            queue_pair.qp.state = attr.qp_state;
            let number = queue_pair.qp.qp_num;
            // SAFETY: the lock is held.
            unsafe { device.run_peers(|qp| qp.peer == number || qp.qp.qp_num == number) };
            Ok(())
        })
    }

    fn ibv_query_qp(
        qp: *mut ibv_qp, attr: *mut ibv_qp_attr, _mask: c_int, _init: *mut ibv_qp_init_attr
    ) -> c_int {
        verb("ibv_query_qp", || {
            let _device = lock();
            // SAFETY: the queue pair lives, the lock is held, the result is writable.
            unsafe { (*attr).qp_state = (*qp).state };
            Ok(())
        })
    }

    fn ibv_destroy_qp(qp: *mut ibv_qp) -> c_int {
        destroyed("ibv_destroy_qp", qp, || {
            let mut device = lock();
            // SAFETY: made above, destroyed once.
            let qp = unsafe { Box::from_raw(qp.cast::<Qp>()) };
            device.queue_pairs[qp.qp.qp_num as usize - 1] = ptr::null_mut();
            if faults::takes_completions_along() {
                for cq in [qp.qp.send_cq, qp.qp.recv_cq] {
                    // SAFETY: a queue lives as long as its queue pairs, and the lock is held.
                    let completions = unsafe { &mut (*cq.cast::<Cq>()).completions };
                    completions.retain(|wc| wc.qp_num != qp.qp.qp_num);
                }
            }
            device.newest = device.newest.filter(|&newest| !ptr::eq(newest, &*qp));
        })
    }
}
