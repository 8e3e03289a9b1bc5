//! Completion queues, their channels, and shared receive queues.

use crate::device::{Device, Signal, export, lock, next};
use crate::null::Busy;
use crate::{created, destroyed, faults, posix, verb};
use libc::{c_int, c_uint, c_void};
use ndcompat::verbs::bindings::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicI32, Ordering};

/// The longest scatter/gather list.
pub(crate) const MAX_SGE: usize = 16;

/// A scatter/gather list, copied.
#[derive(Clone, Copy)]
pub(crate) struct List {
    entries: [ibv_sge; MAX_SGE],
    count: usize,
}

impl List {
    /// Copies the caller's list.
    #[inline]
    pub(crate) unsafe fn copy(list: *const ibv_sge, count: c_int) -> Result<List, i32> {
        let mut copy =
            List { entries: [ibv_sge { addr: 0, length: 0, lkey: 0 }; MAX_SGE], count: count as usize };
        // SAFETY: the caller's list has that many entries.
        let from = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(list, count as usize) } };
        copy.entries.get_mut(..from.len()).ok_or(libc::EINVAL)?.copy_from_slice(from);
        Ok(copy)
    }

    #[inline]
    pub(crate) fn entries(&self) -> &[ibv_sge] {
        &self.entries[..self.count]
    }

    /// Replaces the list by one entry.
    pub(crate) fn replace(&mut self, addr: u64, length: u32) {
        self.entries[0] = ibv_sge { addr, length, lkey: 0 };
        self.count = 1;
    }

    #[inline]
    pub(crate) fn length(&self) -> u32 {
        self.entries().iter().map(|entry| entry.length).sum()
    }
}

/// A receive that waits for a message.
pub(crate) struct Receive {
    pub wr_id: u64,
    pub list: List,
}

#[repr(C)]
struct Channel {
    channel: ibv_comp_channel,
    signal: Signal,
    events: VecDeque<*mut Cq>,
}

/// The completion vector of the queue made last.
static VECTOR: AtomicI32 = AtomicI32::new(0);

/// The completion vector of the queue made last.
pub fn newest_vector() -> i32 {
    VECTOR.load(Ordering::Relaxed)
}

#[repr(C)]
pub(crate) struct Cq {
    cq: ibv_cq,
    /// The lock of the null device. Otherwise there is one lock for the whole device.
    pub busy: Busy,
    pub completions: VecDeque<ibv_wc>,
    /// Whether the next completion sends an event, and whether it must be solicited.
    pub armed: Option<bool>,
}

impl Cq {
    /// Sends the event, with the device's lock held.
    pub(crate) unsafe fn send_event(&mut self) {
        let channel = self.cq.channel.cast::<Channel>();
        if !channel.is_null() {
            // SAFETY: the channel lives as long as its queues.
            unsafe {
                (*channel).events.push_back(self);
                (*channel).signal.set();
            }
        }
    }
}

#[repr(C)]
pub(crate) struct Srq {
    srq: ibv_srq,
    pub receives: VecDeque<Receive>,
    max: usize,
    limit: usize,
}

/// Adds a completion to `cq`, or raises an asynchronous event if `cq` is full.
pub(crate) unsafe fn complete(device: &mut Device, cq: *mut ibv_cq, wc: ibv_wc, solicited: bool) {
    // SAFETY: the queue lives, and the lock is held.
    let (queue, room) = unsafe { (cq.cast::<Cq>(), (*cq).cqe as usize) };
    // SAFETY: the queue lives, and the lock is held.
    let (completions, armed) = unsafe { (&mut (*queue).completions, &mut (*queue).armed) };
    if completions.len() >= room {
        // SAFETY: the queue lives, and the lock is held.
        let context = unsafe { (*cq).context };
        return device.report(context, IBV_EVENT_CQ_ERR, ibv_async_event__bindgen_ty_1 { cq });
    }
    let notable = solicited || wc.status != IBV_WC_SUCCESS;
    completions.push_back(wc);
    if armed.is_some_and(|solicited_only| notable || !solicited_only) {
        *armed = None;
        // SAFETY: the queue lives, and the lock is held.
        unsafe { (*queue).send_event() };
    }
}

/// Takes the next receive of a shared queue.
pub(crate) unsafe fn take_shared(device: &mut Device, srq: *mut ibv_srq) -> Option<Receive> {
    // SAFETY: the queue lives, and the lock is held.
    let (receives, limit) = unsafe {
        let queue = srq.cast::<Srq>();
        (&mut (*queue).receives, &mut (*queue).limit)
    };
    let taken = receives.pop_front();
    if receives.len() < *limit {
        *limit = 0;
        // SAFETY: the shared queue lives, and the lock is held.
        let context = unsafe { (*srq).context };
        device.report(context, IBV_EVENT_SRQ_LIMIT_REACHED, ibv_async_event__bindgen_ty_1 { srq });
    }
    taken
}

/// Adds a receive to a shared queue.
pub(crate) unsafe fn add_shared(srq: *mut ibv_srq, receive: Receive) -> Result<(), i32> {
    // SAFETY: the queue lives, and the lock is held.
    let queue = srq.cast::<Srq>();
    // SAFETY: the shared queue lives, and the lock is held.
    let (receives, max) = unsafe { (&mut (*queue).receives, (*queue).max) };
    if receives.len() >= max {
        return Err(libc::ENOMEM);
    }
    receives.push_back(receive);
    Ok(())
}

/// `context->ops.poll_cq`
pub(crate) unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, count: c_int, wc: *mut ibv_wc) -> c_int {
    if let Err(errno) = faults::call("poll_cq") {
        return -errno;
    }
    let _device = lock();
    // SAFETY: the queue lives, and the lock is held.
    let completions = unsafe { &mut (*cq.cast::<Cq>()).completions };
    let found = completions.len().min(count as usize);
    for (at, completion) in completions.drain(..found).enumerate() {
        // SAFETY: the caller has room for that many.
        unsafe { wc.add(at).write(completion) };
    }
    found as c_int
}

/// `context->ops.req_notify_cq`
pub(crate) unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    verb("req_notify_cq", || {
        let _device = lock();
        // SAFETY: the queue lives, and the lock is held.
        let armed = unsafe { &mut (*cq.cast::<Cq>()).armed };
        *armed = Some(solicited_only != 0 && *armed != Some(false));
        Ok(())
    })
}

export! {
    fn ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
        created("ibv_create_comp_channel", || {
            let signal = Signal::new()?;
            let channel = ibv_comp_channel { context, fd: signal.0, refcnt: 0 };
            Ok(Box::into_raw(Box::new(Channel { channel, signal, events: VecDeque::with_capacity(64) })).cast())
        })
    }

    fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
        destroyed("ibv_destroy_comp_channel", channel, || {
            // SAFETY: made above, destroyed once.
            unsafe { Box::from_raw(channel.cast::<Channel>()) }.signal.close();
        })
    }

    fn ibv_create_cq(
        context: *mut ibv_context, cqe: c_int, cookie: *mut c_void, channel: *mut ibv_comp_channel, vector: c_int
    ) -> *mut ibv_cq {
        created("ibv_create_cq", || {
            VECTOR.store(vector, Ordering::Relaxed);
            let mut cq: ibv_cq = zeroed();
            (cq.context, cq.channel, cq.cq_context, cq.cqe) = (context, channel, cookie, cqe);
            let completions = VecDeque::with_capacity(cqe as usize);
            let queue = Box::into_raw(Box::new(Cq { cq, busy: Busy::default(), completions, armed: None }));
            lock().completion_queues.push(queue);
            Ok(queue.cast())
        })
    }

    fn ibv_resize_cq(cq: *mut ibv_cq, cqe: c_int) -> c_int {
        verb("ibv_resize_cq", || {
            let _device = lock();
            // SAFETY: the queue lives, and the lock is held.
            unsafe {
                if (*cq.cast::<Cq>()).completions.len() > cqe as usize {
                    return Err(libc::EINVAL);
                }
                (*cq).cqe = cqe;
            }
            Ok(())
        })
    }

    fn ibv_destroy_cq(cq: *mut ibv_cq) -> c_int {
        destroyed("ibv_destroy_cq", cq, || {
            let mut device = lock();
            device.completion_queues.retain(|&other| other != cq.cast());
            // SAFETY: made above, destroyed once; a queue on a channel leaves no event there.
            unsafe {
                let channel = (*cq).channel.cast::<Channel>();
                if !channel.is_null() {
                    (*channel).events.retain(|&other| other != cq.cast());
                }
                drop(Box::from_raw(cq.cast::<Cq>()));
            }
        })
    }

    fn ibv_get_cq_event(
        channel: *mut ibv_comp_channel, cq: *mut *mut ibv_cq, cookie: *mut *mut c_void
    ) -> c_int {
        posix("ibv_get_cq_event", || {
            let _device = lock();
            let channel = channel.cast::<Channel>();
            // SAFETY: the channel lives, the lock is held, the results are writable.
            unsafe {
                let queue = next(&mut (*channel).events, &(*channel).signal)?;
                *cq = queue.cast();
                *cookie = (*queue).cq.cq_context;
            }
            Ok(())
        })
    }

    fn ibv_ack_cq_events(_cq: *mut ibv_cq, _count: c_uint) {}

    fn ibv_create_srq(pd: *mut ibv_pd, init: *mut ibv_srq_init_attr) -> *mut ibv_srq {
        created("ibv_create_srq", || {
            let mut srq: ibv_srq = zeroed();
            // SAFETY: the caller's structure and its domain are there.
            let (init, context) = unsafe { (&*init, (*pd).context) };
            (srq.context, srq.srq_context, srq.pd) = (context, init.srq_context, pd);
            let max = init.attr.max_wr as usize;
            let queue = Srq { srq, receives: VecDeque::with_capacity(max), max, limit: 0 };
            let queue = Box::into_raw(Box::new(queue)).cast();
            lock().shared_queues.push(queue);
            Ok(queue)
        })
    }

    fn ibv_modify_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr, mask: c_int) -> c_int {
        verb("ibv_modify_srq", || {
            let _device = lock();
            let queue = srq.cast::<Srq>();
            // SAFETY: the queue lives, the lock is held, the attributes are readable.
            unsafe {
                if mask as u32 & IBV_SRQ_MAX_WR != 0 {
                    (*queue).max = (*attr).max_wr as usize;
                }
                if mask as u32 & IBV_SRQ_LIMIT != 0 {
                    (*queue).limit = (*attr).srq_limit as usize;
                }
            }
            Ok(())
        })
    }

    fn ibv_query_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int {
        verb("ibv_query_srq", || {
            let _device = lock();
            // SAFETY: the queue lives, the lock is held, the result is writable.
            unsafe {
                let queue = &*srq.cast::<Srq>();
                *attr = ibv_srq_attr {
                    max_wr: queue.max as u32, max_sge: MAX_SGE as u32, srq_limit: queue.limit as u32
                };
            }
            Ok(())
        })
    }

    fn ibv_destroy_srq(srq: *mut ibv_srq) -> c_int {
        destroyed("ibv_destroy_srq", srq, || {
            lock().shared_queues.retain(|&other| other != srq);
            // SAFETY: made above, destroyed once.
            drop(unsafe { Box::from_raw(srq.cast::<Srq>()) });
        })
    }
}
