//! The null device: every request completes within the call that posts it. No memory is moved, no peer is involved and nothing is
//! checked, so a measurement shows the cost of the data path above the device.
//!
//! Queue pairs never fail.

use crate::device::{context, lock};
use crate::queues::Cq;
use libc::c_int;
use ndcompat::verbs::bindings::*;
use std::hint::spin_loop;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes all requests complete at once, for the rest of the process. No thread may be posting or polling.
pub fn complete_at_once() {
    // SAFETY: the context lives for ever; the caller sees to it that nobody uses its table meanwhile.
    let ops = unsafe { &mut (*context()).ops };
    ops.post_send = Some(post_send);
    ops.post_recv = Some(post_recv);
    ops.poll_cq = Some(poll_cq);
    ops.req_notify_cq = Some(req_notify_cq);
}

/// The lock of one queue, as provider libraries have one.
#[derive(Default)]
pub(crate) struct Busy(AtomicBool);

/// Held while this lives.
pub(crate) struct Locked<'a>(&'a Busy);

impl Busy {
    #[inline(always)]
    fn lock(&self) -> Locked<'_> {
        while self.0.swap(true, Ordering::Acquire) {
            spin_loop();
        }
        Locked(self)
    }
}

impl Drop for Locked<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

/// Adds a successful completion to `cq`.
#[inline(always)]
unsafe fn complete(cq: *mut ibv_cq, wr_id: u64, opcode: ibv_wc_opcode, bytes: u32, number: u32) {
    let mut wc: ibv_wc = zeroed();
    (wc.wr_id, wc.opcode, wc.byte_len, wc.qp_num) = (wr_id, opcode, bytes, number);
    // SAFETY: the queue lives; its completions are used with its own lock held.
    unsafe {
        let cq = cq.cast::<Cq>();
        let _locked = (*cq).busy.lock();
        (*cq).completions.push_back(wc);
        if (*cq).armed.take().is_some() {
            let _device = lock();
            (*cq).send_event();
        }
    }
}

unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, _solicited_only: c_int) -> c_int {
    // SAFETY: the queue lives; what it is armed for is used with its own lock held.
    unsafe {
        let cq = cq.cast::<Cq>();
        let _locked = (*cq).busy.lock();
        (*cq).armed = Some(false);
    }
    0
}

unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    mut wr: *mut ibv_send_wr,
    _bad: *mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: the caller passes a list of requests, which ends with null, and a queue pair that lives; unused fields
    // are not read.
    unsafe {
        while !wr.is_null() {
            if (*wr).send_flags & IBV_SEND_SIGNALED != 0 {
                complete((*qp).send_cq, (*wr).wr_id, IBV_WC_SEND, 0, (*qp).qp_num);
            }
            wr = (*wr).next;
        }
    }
    0
}

unsafe extern "C" fn post_recv(
    qp: *mut ibv_qp,
    mut wr: *mut ibv_recv_wr,
    _bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the caller passes a list of requests, which ends with null, and a queue pair that lives; unused fields
    // are not read.
    unsafe {
        while !wr.is_null() {
            complete((*qp).recv_cq, (*wr).wr_id, IBV_WC_RECV, 1, (*qp).qp_num);
            wr = (*wr).next;
        }
    }
    0
}

unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, count: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: the queue lives; its completions are used with its own lock held. The caller has room for `count`.
    unsafe {
        let cq = cq.cast::<Cq>();
        let _locked = (*cq).busy.lock();
        let completions = &mut (*cq).completions;
        for found in 0..count {
            let Some(completion) = completions.pop_front() else { return found };
            ptr::write(wc.add(found as usize), completion);
        }
    }
    count
}
