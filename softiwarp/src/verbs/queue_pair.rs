//! Queue pairs and shared receive queues.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use verbs_sys::*;

use super::affiliated::Affiliated;
use super::completion::Cq;
use super::ends::Ends;
use super::limits::{DEPTH_MAX, INLINE_MAX, PIECES_MAX};
use super::memory::Pd;
use super::rnic::{Rnic, rnic_of};
use super::{created, functions, next_number, verb};
use crate::queue_pair::{Phase, QueuePair, QueuePairConfig, SharedReceiveQueue};

static WAITING: OnceLock<Duration> = OnceLock::new();

/// Messages that meet no receive wait for one up to `limit`, at queue pairs that are made from now on
/// ([`QueuePair::wait_for_receives`]). The first call counts.
pub fn wait_for_receives(limit: Duration) {
    let _ = WAITING.set(limit);
}

/// Until [`set_ready`], messages that meet no receive at this queue pair, which is going to connect, wait for one: for a program that says when
/// it is ready ([`QueuePair::wait_until_ready`]).
///
/// # Safety
/// A queue pair of `ibv_create_qp` that is not destroyed during the call.
pub unsafe fn wait_until_ready(qp: *mut ibv_qp) {
    // SAFETY: as the caller says.
    let own = unsafe { Qp::of(qp) };
    if own.rnic.is_own() {
        own.ends.pair.lock().wait_until_ready();
    }
}

/// The program that connects this queue pair is ready for messages.
///
/// # Safety
/// As for [`wait_until_ready`].
pub unsafe fn set_ready(qp: *mut ibv_qp) {
    // SAFETY: as the caller says.
    let own = unsafe { Qp::of(qp) };
    if own.rnic.is_own() {
        own.ends.set_ready();
    }
}

/// A queue pair.
#[repr(C)]
pub(super) struct Qp {
    /// Its state changes while other threads post.
    raw: UnsafeCell<ibv_qp>,
    rnic: &'static Rnic,
    pub ends: Arc<Ends>,
    pub signals_all: bool,
    cap: ibv_qp_cap,
    access: AtomicU32,
    /// With a shared receive queue: the event that it takes no more receives of it.
    pub last_receive: Option<Arc<Affiliated>>,
    made: Made,
}

/// What does not change of a queue pair's C structure.
#[derive(Clone, Copy)]
struct Made {
    number: u32,
    context: *mut c_void,
    send_cq: *mut ibv_cq,
    recv_cq: *mut ibv_cq,
    srq: *mut ibv_srq,
}

/// A shared receive queue.
#[repr(C)]
pub(super) struct Srq {
    raw: ibv_srq,
    pub queue: Arc<SharedReceiveQueue>,
    attr: Mutex<ibv_srq_attr>,
    /// The limit event has been raised.
    reached: Arc<AtomicBool>,
    /// Limit events.
    pub low: Arc<Affiliated>,
    users: AtomicUsize,
}

impl Qp {
    /// The `Qp` of an `ibv_qp`.
    ///
    /// # Safety
    /// The queue pair is this device's, and is not destroyed while the result is used.
    #[inline]
    pub(super) unsafe fn of<'a>(qp: *mut ibv_qp) -> &'a Qp {
        // SAFETY: made by `ibv_create_qp`, and not destroyed yet.
        unsafe { &*qp.cast::<Qp>() }
    }

    /// Whether the program is about to wait for a completion of it.
    ///
    /// # Safety
    /// Its completion queues are not destroyed.
    #[inline]
    pub(super) unsafe fn is_waited_for(&self) -> bool {
        // SAFETY: the queue lives, as the caller promises.
        let waits = |queue| unsafe { Cq::of(queue) }.is_waited_for();
        waits(self.made.recv_cq) || waits(self.made.send_cq)
    }

    /// The state that the program has set last, which its C structure shows.
    fn set_state(&self) -> &AtomicU32 {
        // SAFETY: within the structure, which may change behind a shared reference.
        let state = unsafe { &raw mut (*self.raw.get()).state };
        // SAFETY: aligned, lives as long as the queue pair, and this device uses it only so.
        unsafe { AtomicU32::from_ptr(state) }
    }

    fn state(&self) -> ibv_qp_state {
        match self.ends.pair.lock().phase() {
            Phase::Idle => self.set_state().load(Ordering::Relaxed),
            Phase::Running => IBV_QPS_RTS,
            Phase::Ending | Phase::Ended => IBV_QPS_ERR,
        }
    }
}

impl Srq {
    /// The `Srq` of an `ibv_srq`.
    ///
    /// # Safety
    /// The queue is this device's, and is not destroyed while the result is used.
    pub(super) unsafe fn of<'a>(srq: *mut ibv_srq) -> &'a Srq {
        // SAFETY: made by `ibv_create_srq`, and not destroyed yet.
        unsafe { &*srq.cast::<Srq>() }
    }
}

functions! {
    fn ibv_create_qp(pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> *mut ibv_qp {
        let new = || {
            // SAFETY: made by `ibv_alloc_pd`, and deallocated after all that was made of it, as verbs ask.
            let context = unsafe { (*pd).context };
            // SAFETY: a context lives as long as its domains.
            let rnic = unsafe { rnic_of(context) }?;
            // SAFETY: readable during the call, as the manual page asks.
            let asked = unsafe { &*init };
            let cap = asked.cap;
            let too_much = cap.max_send_wr > DEPTH_MAX
                || cap.max_recv_wr > DEPTH_MAX
                || cap.max_send_sge > PIECES_MAX as u32
                || cap.max_recv_sge > PIECES_MAX as u32
                || cap.max_inline_data > INLINE_MAX;
            if asked.qp_type != IBV_QPT_RC {
                return Err(libc::EOPNOTSUPP);
            }
            if too_much || asked.send_cq.is_null() || asked.recv_cq.is_null() {
                return Err(libc::EINVAL);
            }
            let number = rnic.number();
            // SAFETY: made by `ibv_alloc_pd`, and deallocated after all that was made of it, as verbs ask.
            let domain = unsafe { &Pd::of(pd).domain };
            // SAFETY: made by `ibv_create_cq`, and not destroyed yet, as verbs ask.
            let send = unsafe { Cq::of(asked.send_cq) };
            // SAFETY: made by `ibv_create_cq`, and not destroyed yet, as verbs ask.
            let receive = unsafe { Cq::of(asked.recv_cq) };
            // SAFETY: made by `ibv_create_srq`, and not destroyed yet, as verbs ask.
            let shared = (!asked.srq.is_null()).then(|| unsafe { Srq::of(asked.srq) });
            let mut pair = QueuePair::new(QueuePairConfig {
                number,
                domain: domain.clone(),
                send_completions: Arc::clone(&send.queue),
                receive_completions: Arc::clone(&receive.queue),
                send_depth: cap.max_send_wr.max(1) as usize,
                receive_depth: cap.max_recv_wr.max(1) as usize,
                shared_receives: shared.map(|shared| Arc::clone(&shared.queue)),
                pieces_max: PIECES_MAX,
                inline_max: cap.max_inline_data as usize,
            });
            if let Some(&limit) = WAITING.get() {
                pair.wait_for_receives(limit);
            }
            let last_receive = shared.map(|_| Affiliated::new(IBV_EVENT_QP_LAST_WQE_REACHED));
            if let Some(events) = last_receive.clone() {
                pair.when_shared_receives_end(move || _ = events.report());
            }
            let mut raw: ibv_qp = zeroed();
            raw.context = context;
            (raw.qp_context, raw.pd, raw.send_cq, raw.recv_cq) = (asked.qp_context, pd, asked.send_cq, asked.recv_cq);
            (raw.srq, raw.qp_num, raw.qp_type, raw.state) = (asked.srq, number, asked.qp_type, IBV_QPS_RESET);
            let ends = Ends::new(pair);
            rnic.add(number, &ends);
            if let Some(shared) = shared {
                shared.users.fetch_add(1, Ordering::AcqRel);
            }
            for queue in [send, receive] {
                queue.users.fetch_add(1, Ordering::AcqRel);
            }
            let made = Made {
                number,
                context: asked.qp_context,
                send_cq: asked.send_cq,
                recv_cq: asked.recv_cq,
                srq: asked.srq,
            };
            let (raw, signals_all, access) = (UnsafeCell::new(raw), asked.sq_sig_all != 0, AtomicU32::new(0));
            let new = Qp { raw, rnic, ends, signals_all, cap, access, last_receive: last_receive.clone(), made };
            let qp = Box::into_raw(Box::new(new)).cast();
            if let Some(events) = last_receive {
                // SAFETY: a context is closed after its queue pairs are destroyed, as verbs ask.
                unsafe { events.begin(context, ibv_async_event__bindgen_ty_1 { qp }) };
            }
            Ok(qp)
        };
        created(new())
    }

    fn ibv_modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int {
        let mask = mask as ibv_qp_attr_mask;
        // SAFETY: made by `ibv_create_qp`, and not destroyed yet, as verbs ask.
        let own = unsafe { Qp::of(qp) };
        // SAFETY: readable during the call, as the manual page asks.
        let attr = unsafe { &*attr };
        if mask & IBV_QP_ACCESS_FLAGS != 0 {
            own.access.store(attr.qp_access_flags, Ordering::Relaxed);
        }
        if mask & IBV_QP_STATE != 0 {
            match (own.state(), attr.qp_state) {
                (IBV_QPS_RESET | IBV_QPS_INIT, IBV_QPS_INIT | IBV_QPS_RESET)
                | (IBV_QPS_INIT, IBV_QPS_RTR)
                | (IBV_QPS_RTR | IBV_QPS_RTS, IBV_QPS_RTS) => {}
                // Connecting has moved the queue pair to RTS.
                (IBV_QPS_RTS, IBV_QPS_RTR) => return 0,
                (_, IBV_QPS_ERR) if own.rnic.is_own() => own.ends.end(),
                (_, IBV_QPS_ERR) => {}
                _ => return libc::EINVAL,
            }
            own.set_state().store(attr.qp_state, Ordering::Relaxed);
        }
        0
    }

    fn ibv_query_qp(
        qp: *mut ibv_qp, attr: *mut ibv_qp_attr, _mask: c_int, init: *mut ibv_qp_init_attr
    ) -> c_int {
        // SAFETY: made by `ibv_create_qp`, and not destroyed during the call, as verbs ask.
        let own = unsafe { Qp::of(qp) };
        let mut now: ibv_qp_attr = zeroed();
        let mut made: ibv_qp_init_attr = zeroed();
        now.qp_state = own.state();
        (now.cur_qp_state, now.cap, now.port_num) = (now.qp_state, own.cap, 1);
        now.qp_access_flags = own.access.load(Ordering::Relaxed);
        (made.qp_context, made.send_cq, made.recv_cq) = (own.made.context, own.made.send_cq, own.made.recv_cq);
        (made.srq, made.cap, made.qp_type) = (own.made.srq, own.cap, IBV_QPT_RC);
        made.sq_sig_all = own.signals_all.into();
        // SAFETY: room for the attributes, as verbs ask.
        unsafe { attr.write(now) };
        // SAFETY: room for what the queue pair was made with, as verbs ask.
        unsafe { init.write(made) };
        0
    }

    fn ibv_destroy_qp(qp: *mut ibv_qp) -> c_int {
        // SAFETY: made above, destroyed once.
        let own = unsafe { Box::from_raw(qp.cast::<Qp>()) };
        if own.rnic.is_own() {
            own.rnic.remove(own.made.number);
            own.ends.pair.lock().abandon();
            own.ends.end();
            if let Some(events) = &own.last_receive {
                events.end();
            }
        }
        for queue in [own.made.send_cq, own.made.recv_cq] {
            // SAFETY: completion queues live as long as the queue pairs on them.
            unsafe { Cq::of(queue) }.users.fetch_sub(1, Ordering::AcqRel);
        }
        if !own.made.srq.is_null() {
            // SAFETY: shared receive queues live as long as the queue pairs on them.
            unsafe { Srq::of(own.made.srq) }.users.fetch_sub(1, Ordering::AcqRel);
        }
        0
    }

    fn ibv_create_srq(pd: *mut ibv_pd, init: *mut ibv_srq_init_attr) -> *mut ibv_srq {
        // SAFETY: readable during the call, as the manual page asks.
        let asked = unsafe { &*init };
        // SAFETY: made by `ibv_alloc_pd`, and deallocated after all that was made of it, as verbs ask.
        let context = unsafe { (*pd).context };
        let attr = asked.attr;
        created(if attr.max_wr == 0 || attr.max_wr > DEPTH_MAX || attr.max_sge > PIECES_MAX as u32 {
            Err(libc::EINVAL)
        } else {
            let reached = Arc::new(AtomicBool::new(false));
            let low = Affiliated::new(IBV_EVENT_SRQ_LIMIT_REACHED);
            let (flag, events) = (Arc::clone(&reached), Arc::clone(&low));
            let tell = move || {
                // Before the program sees the event.
                flag.store(true, Ordering::Release);
                events.report();
            };
            // SAFETY: made by `ibv_alloc_pd`, and deallocated after all that was made of it, as verbs ask.
            let domain = unsafe { &Pd::of(pd).domain }.clone();
            let queue = Arc::new(SharedReceiveQueue::new(domain, attr.max_wr as usize, PIECES_MAX, tell));
            let mut raw: ibv_srq = zeroed();
            (raw.context, raw.srq_context, raw.pd) = (context, asked.srq_context, pd);
            raw.handle = next_number();
            let (attr, users) = (Mutex::new(ibv_srq_attr { srq_limit: 0, ..attr }), AtomicUsize::new(0));
            let events = Arc::clone(&low);
            let srq = Box::into_raw(Box::new(Srq { raw, queue, attr, reached, low, users })).cast();
            // SAFETY: a context is closed after its queues are destroyed, as verbs ask.
            unsafe { events.begin(context, ibv_async_event__bindgen_ty_1 { srq }) };
            Ok(srq)
        })
    }

    fn ibv_modify_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr, mask: c_int) -> c_int {
        // SAFETY: made by this module, and not destroyed during the call, as verbs ask.
        let own = unsafe { Srq::of(srq) };
        // SAFETY: readable during the call, as the manual page asks.
        let asked = unsafe { &*attr };
        let mut known = own.attr.lock();
        if mask as u32 & IBV_SRQ_MAX_WR != 0 {
            if asked.max_wr == 0 || asked.max_wr > DEPTH_MAX || own.queue.resize(asked.max_wr as usize).is_err() {
                return libc::EINVAL;
            }
            known.max_wr = asked.max_wr;
        }
        if mask as u32 & IBV_SRQ_LIMIT != 0 {
            if asked.srq_limit > known.max_wr {
                return libc::EINVAL;
            }
            own.reached.store(false, Ordering::Release);
            known.srq_limit = asked.srq_limit;
            own.queue.set_limit(asked.srq_limit as usize);
        }
        0
    }

    fn ibv_query_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int {
        // SAFETY: made by this module, and not destroyed during the call, as verbs ask.
        let own = unsafe { Srq::of(srq) };
        let mut now = *own.attr.lock();
        if own.reached.load(Ordering::Acquire) {
            now.srq_limit = 0;
        }
        // SAFETY: room for the attributes, as verbs ask.
        unsafe { attr.write(now) };
        0
    }

    fn ibv_destroy_srq(srq: *mut ibv_srq) -> c_int {
        // SAFETY: made by this module, and not destroyed during the call, as verbs ask.
        let own = unsafe { Srq::of(srq) };
        verb(if own.users.load(Ordering::Acquire) != 0 {
            Err(libc::EBUSY)
        } else {
            own.low.end();
            // SAFETY: made above, destroyed once.
            drop(unsafe { Box::from_raw(srq.cast::<Srq>()) });
            Ok(())
        })
    }
}
