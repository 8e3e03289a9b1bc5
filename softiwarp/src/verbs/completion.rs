//! Completion queues.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use verbs_sys::*;

use super::cancellation::{PutOff, begun, looks_up};
use super::channel::{Channel, Notified};
use super::context::{Context, Unacknowledged};
use super::inbox::Inbox;
use super::limits::COMPLETIONS_MAX;
use super::rnic::{Rnic, rnic_of};
use super::{created, functions, next_number, verb, waits};
use crate::completion::{Arm, Completion, CompletionQueue, Event, Operation, Status};

/// A completion queue.
#[repr(C)]
pub(super) struct Cq {
    /// `ibv_resize_cq` changes its size while other threads poll.
    _raw: UnsafeCell<ibv_cq>,
    channel: *mut ibv_comp_channel,
    rnic: &'static Rnic,
    pub queue: Arc<CompletionQueue>,
    /// Of its channel, and asynchronous ones.
    pub events: Arc<Unacknowledged>,
    /// The channel's entry of the queue, until the queue is destroyed.
    listed: Arc<Mutex<Option<Listed>>>,
    /// It is armed.
    armed: Arc<AtomicBool>,
    /// The next poll that finds nothing leaves the sockets alone ([`Cq::spare_sockets`]).
    spared: AtomicBool,
    /// How many queue pairs use it.
    pub users: AtomicUsize,
}

/// A queue that has not been destroyed, and the inbox of its channel. A connection may have the queue longer than that, and must not keep
/// the descriptor of the channel open.
struct Listed(*mut ibv_cq, Option<Arc<Inbox<Notified>>>);

// SAFETY: queues may be used by any thread.
unsafe impl Send for Listed {}

impl Cq {
    /// The `Cq` of an `ibv_cq`.
    ///
    /// # Safety
    /// The queue is this device's, and is not destroyed while the result is used.
    pub(super) unsafe fn of<'a>(cq: *mut ibv_cq) -> &'a Cq {
        // SAFETY: made by `ibv_create_cq`, and not destroyed yet.
        unsafe { &*cq.cast::<Cq>() }
    }

    /// Takes completions; returns their number.
    ///
    /// # Safety
    /// `wc` has room for `count`.
    unsafe fn take(&self, count: c_int, wc: *mut ibv_wc) -> c_int {
        let mut places = wc;
        let taken = self.queue.poll_many(usize::try_from(count).unwrap_or(0), |completion| {
            // SAFETY: one of as many places as the caller has.
            unsafe { places.write(to_c(&completion)) };
            places = places.wrapping_add(1);
        });
        taken as c_int
    }

    /// The program has just waited for a completion, or is about to. It polls until it finds nothing, before and after a wait; the wait
    /// reads the sockets.
    pub(super) fn spare_sockets(&self) {
        self.spared.store(true, Ordering::Relaxed);
    }

    /// Whether the program is about to wait for a completion, so that posted requests must be sent at once.
    pub(super) fn is_waited_for(&self) -> bool {
        self.armed.load(Ordering::Relaxed)
    }
}

fn to_c(completion: &Completion) -> ibv_wc {
    let mut wc: ibv_wc = zeroed();
    wc.wr_id = completion.id;
    wc.status = match completion.status {
        Status::Success => IBV_WC_SUCCESS,
        Status::LocalLength => IBV_WC_LOC_LEN_ERR,
        Status::LocalProtection => IBV_WC_LOC_PROT_ERR,
        Status::Flushed => IBV_WC_WR_FLUSH_ERR,
        Status::Bind => IBV_WC_MW_BIND_ERR,
        Status::RemoteAccess => IBV_WC_REM_ACCESS_ERR,
        Status::RemoteOperation => IBV_WC_REM_OP_ERR,
        Status::ReceiverNotReady => IBV_WC_RNR_RETRY_EXC_ERR,
    };
    wc.opcode = match completion.operation {
        Operation::Send => IBV_WC_SEND,
        Operation::Write => IBV_WC_RDMA_WRITE,
        Operation::Read => IBV_WC_RDMA_READ,
        Operation::Bind => IBV_WC_BIND_MW,
        Operation::Invalidate => IBV_WC_LOCAL_INV,
        Operation::Receive => IBV_WC_RECV,
    };
    wc.byte_len = completion.length;
    wc.qp_num = completion.queue_pair;
    if let Some(token) = completion.invalidated {
        wc.wc_flags = IBV_WC_WITH_INV;
        wc.__bindgen_anon_1.invalidated_rkey = token;
    }
    wc
}

/// `context->ops.poll_cq`
///
/// # Safety
/// The queue lives and is this device's, and `wc` has room for `count` completions.
pub(super) unsafe extern "C" fn poll_cq(cq: *mut ibv_cq, count: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: made by this module, and not destroyed during the call, as verbs ask.
    let own = unsafe { Cq::of(cq) };
    let _put_off = PutOff::new();
    // SAFETY: the caller has room for as many.
    let found = unsafe { own.take(count, wc) };
    if found != 0 {
        return found;
    }
    if own.spared.load(Ordering::Relaxed) {
        own.spared.store(false, Ordering::Relaxed);
        own.rnic.poller.flush();
        return 0;
    }
    if own.rnic.poller.progress(&own.queue) {
        // SAFETY: as many places as `count` says, as verbs ask.
        return unsafe { own.take(count, wc) };
    }
    0
}

/// `context->ops.req_notify_cq`
///
/// # Safety
/// The queue lives and is this device's.
pub(super) unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: made by this module, and not destroyed during the call, as verbs ask.
    let own = unsafe { Cq::of(cq) };
    let channel = own.channel;
    if !own.armed.swap(true, Ordering::Relaxed) && !channel.is_null() {
        // SAFETY: a channel of the caller's lives as long as its queues.
        unsafe { &*channel.cast::<Channel>() }.events.arm(&own.rnic.poller);
    }
    own.spare_sockets();
    own.queue.arm(if solicited_only != 0 { Arm::Solicited } else { Arm::Any });
    0
}

/// The capacity that was asked for.
fn room(asked: c_int) -> Result<usize, c_int> {
    u32::try_from(asked)
        .ok()
        .filter(|room| (1..=COMPLETIONS_MAX).contains(room))
        .map_or(Err(libc::EINVAL), |room| Ok(room as usize))
}

functions! {
    fn ibv_create_cq(
        context: *mut ibv_context, cqe: c_int, cookie: *mut c_void, channel: *mut ibv_comp_channel, _vector: c_int
    ) -> *mut ibv_cq {
        let new = || {
            // SAFETY: opened by this device, and closed after all that was made on it, as verbs ask.
            let (rnic, room) = (unsafe { rnic_of(context) }?, room(cqe)?);
            let listed = Arc::new(Mutex::new(None::<Listed>));
            let events = Arc::<Unacknowledged>::default();
            // SAFETY: a channel of the caller's lives as long as its queues.
            let inbox = (!channel.is_null()).then(|| unsafe { Arc::clone(&(*channel.cast::<Channel>()).events) });
            let armed = Arc::new(AtomicBool::new(false));
            let (place, counted, flag) = (Arc::clone(&listed), Arc::clone(&events), Arc::clone(&armed));
            let tell = move |event| {
                let place = place.lock();
                let Some(Listed(cq, inbox)) = &*place else { return };
                let cq = *cq;
                match event {
                    Event::Completion => {
                        let was_armed = flag.swap(false, Ordering::Relaxed);
                        let Some(inbox) = inbox else { return };
                        if was_armed {
                            inbox.disarm();
                        }
                        inbox.push(Notified { cq, events: Arc::clone(&counted) });
                    }
                    Event::Overflow => {
                        let element = ibv_async_event__bindgen_ty_1 { cq };
                        // SAFETY: the queue is listed, hence not destroyed yet.
                        let context = unsafe { (*cq).context };
                        // SAFETY: a context lives as long as its queues.
                        unsafe { Context::report(context, IBV_EVENT_CQ_ERR, element, &counted) };
                    }
                }
            };
            let mut raw: ibv_cq = zeroed();
            (raw.context, raw.channel, raw.cq_context, raw.cqe) = (context, channel, cookie, cqe);
            raw.handle = next_number();
            let queue = Arc::new(CompletionQueue::new(room, tell));
            let (users, spared) = (AtomicUsize::new(0), AtomicBool::new(false));
            let place = Arc::clone(&listed);
            let _raw = UnsafeCell::new(raw);
            let cq = Cq { _raw, channel, rnic, queue, events, listed, armed, spared, users };
            let cq = Box::into_raw(Box::new(cq)).cast();
            *place.lock() = Some(Listed(cq, inbox));
            if !channel.is_null() {
                // SAFETY: a channel of the caller's lives as long as its queues.
                let channel = unsafe { &*channel.cast::<Channel>() };
                channel.queues().fetch_add(1, Ordering::Relaxed);
                channel.events.look_for_sockets(Some(&rnic.poller));
            }
            Ok(cq)
        };
        created(new())
    }

    fn ibv_resize_cq(cq: *mut ibv_cq, cqe: c_int) -> c_int {
        // SAFETY: made by this module, and not destroyed during the call, as verbs ask.
        let own = unsafe { Cq::of(cq) };
        verb(room(cqe).and_then(|room| own.queue.resize(room).map_err(|_| libc::EINVAL)).map(|()| {
            // SAFETY: a queue that lives; others at most read the number.
            unsafe { (*cq).cqe = cqe };
        }))
    }

    fn ibv_destroy_cq(cq: *mut ibv_cq) -> c_int {
        // SAFETY: made by this module, and not destroyed during the call, as verbs ask.
        let own = unsafe { Cq::of(cq) };
        if own.users.load(Ordering::Acquire) != 0 {
            return libc::EBUSY;
        }
        *own.listed.lock() = None;
        // SAFETY: made by this module, and not destroyed yet.
        let context = unsafe { (*cq).context };
        // SAFETY: the context is closed after its queues are destroyed.
        unsafe { Context::withdraw(context, IBV_EVENT_CQ_ERR, cq.cast()) };
        let channel = own.channel;
        if !channel.is_null() {
            // SAFETY: the channel lives as long as its queues.
            let channel = unsafe { &*channel.cast::<Channel>() };
            if own.armed.swap(false, Ordering::Relaxed) {
                channel.events.disarm();
            }
            drop(channel.events.remove(|notified| notified.cq == cq));
            // The last use: the channel may be destroyed from now on.
            channel.queues().fetch_sub(1, Ordering::Release);
        }
        own.events.wait();
        // SAFETY: made above, destroyed once.
        drop(unsafe { Box::from_raw(cq.cast::<Cq>()) });
        0
    }

    fn ibv_ack_cq_events(cq: *mut ibv_cq, count: c_uint) {
        // SAFETY: made by this module, and not destroyed during the call, as verbs ask.
        unsafe { Cq::of(cq) }.events.acknowledged(count);
    }
}

/// Takes the next event of a channel; `ETIMEDOUT` if there is none within the limit.
///
/// # Safety
/// As for `ibv_get_cq_event`. Called again after `ETIMEDOUT`, it does not look at the channel.
unsafe fn next_event(
    channel: *mut ibv_comp_channel,
    cq: *mut *mut ibv_cq,
    cookie: *mut *mut c_void,
    limit: Option<Duration>,
) -> Result<(), c_int> {
    let _put_off = PutOff::new();
    let (rnic, events) = begun(|| {
        // SAFETY: the caller's channel lives. Another thread may destroy it while this one waits, which then waits on.
        let own = unsafe { &*channel.cast::<Channel>() };
        (own.rnic, Arc::clone(&own.events))
    });
    let next = events.next_within(Some(&rnic.poller), limit, |notified| notified.events.taken());
    if limit.is_some() && matches!(next, Err(libc::ETIMEDOUT)) {
        looks_up((rnic, events));
    }
    let notified = next?;
    // SAFETY: the queue waits for its events before it goes, and this one is not acknowledged yet.
    let context = unsafe { (*notified.cq).cq_context };
    // SAFETY: as above.
    unsafe { Cq::of(notified.cq) }.spare_sockets();
    // SAFETY: room for the queue, as verbs ask.
    unsafe { *cq = notified.cq };
    // SAFETY: room for what the program calls the queue, as verbs ask.
    unsafe { *cookie = context };
    Ok(())
}

waits! {
    fn ibv_get_cq_event(
        channel: *mut ibv_comp_channel, cq: *mut *mut ibv_cq, cookie: *mut *mut c_void
    ) = next_event;
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn a_queue_that_is_waited_for_is_polled_without_a_look_at_the_sockets_before_and_after() {
        // SAFETY: the only device there is.
        let context = unsafe { super::super::ibv_open_device(ptr::null_mut()) };
        // SAFETY: the context lives.
        let channel = unsafe { super::super::ibv_create_comp_channel(context) };
        // SAFETY: the context and the channel live.
        let cq = unsafe { ibv_create_cq(context, 1, ptr::null_mut(), channel, 0) };
        assert!(!cq.is_null());
        let poll = || {
            let mut wc: ibv_wc = zeroed();
            // SAFETY: the queue lives; room for one.
            unsafe { poll_cq(cq, 1, &raw mut wc) }
        };
        // SAFETY: the queue lives.
        let own = unsafe { Cq::of(cq) };
        let looks = || {
            let before = own.rnic.poller.looks();
            assert_eq!(poll(), 0);
            own.rnic.poller.looks() - before
        };
        assert_eq!(looks(), 1);
        // SAFETY: the queue lives.
        assert_eq!(unsafe { req_notify_cq(cq, 0) }, 0);
        assert_eq!(looks(), 0, "the wait that follows looks");
        assert_eq!(looks(), 1, "a program that goes on polling");

        let (status, operation) = (Status::Success, Operation::Send);
        let done = Completion { id: 1, status, operation, length: 0, queue_pair: 0, invalidated: None };
        own.queue.push(done, false);
        let (mut of, mut cookie) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the channel lives; room for both.
        let taken = unsafe { ibv_get_cq_event(channel, &raw mut of, &raw mut cookie) };
        assert_eq!((taken, of), (0, cq));
        assert_eq!(poll(), 1);
        assert_eq!(looks(), 0, "the wait has looked");
        assert_eq!(looks(), 1, "a program that goes on polling");
        // SAFETY: one event was taken.
        unsafe { ibv_ack_cq_events(cq, 1) };
        // SAFETY: destroyed once.
        assert_eq!(unsafe { ibv_destroy_cq(cq) }, 0);
        // SAFETY: its queue is destroyed.
        assert_eq!(unsafe { super::super::ibv_destroy_comp_channel(channel) }, 0);
        // SAFETY: closed once.
        assert_eq!(unsafe { super::super::ibv_close_device(context) }, 0);
    }
}
