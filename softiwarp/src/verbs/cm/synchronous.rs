//! Synchronous ids, without an event channel: each call waits for the event that completes it.

use std::ffi::c_int;
use std::ptr;

use verbs_sys::*;

use super::id::{Own, Stage};
use super::{rdma_ack_cm_event, rdma_create_event_channel, rdma_get_cm_event};
use crate::verbs::last_errno;

/// The program's channel, or a new one if it gave none; and whether it is new.
pub(super) fn channel_for(named: *mut rdma_event_channel) -> Result<(*mut rdma_event_channel, bool), c_int> {
    if !named.is_null() {
        return Ok((named, false));
    }
    // SAFETY: it takes nothing.
    let own = unsafe { rdma_create_event_channel() };
    if own.is_null() { Err(last_errno()) } else { Ok((own, true)) }
}

/// Acknowledges the event of the id's previous call.
///
/// # Safety
/// The id lives, and is used by no other thread.
pub(super) unsafe fn acknowledge(id: *mut rdma_cm_id) {
    // SAFETY: the id lives, and is used by no other thread, as the caller promises.
    let event = std::mem::replace(unsafe { &mut (*id).event }, ptr::null_mut());
    if !event.is_null() {
        // SAFETY: from `wait`, and just taken out of the id, so that it is acknowledged once.
        unsafe { rdma_ack_cm_event(event) };
    }
}

/// Takes an id's own channel, if it has one, before the id is destroyed or gets another one. The caller destroys it.
///
/// # Safety
/// The id lives, and is used by no other thread.
pub(super) unsafe fn leave_own_channel(id: *mut rdma_cm_id) -> Option<*mut rdma_event_channel> {
    // SAFETY: the id lives, and is used by no other thread, as the caller promises.
    unsafe { acknowledge(id) };
    // SAFETY: the id lives, as the caller promises.
    let own = unsafe { Own::of(id) };
    let is_own = std::mem::take(&mut own.state.lock().synchronous);
    // SAFETY: the id lives, and no other thread gives it another channel meanwhile.
    is_own.then(|| unsafe { (*id).channel })
}

/// Waits for the id's next event, which is in its `event` field until the next call.
///
/// # Safety
/// The id lives, and is used by no other thread; the event is used until the next call.
pub(in super::super) unsafe fn wait<'a>(id: *mut rdma_cm_id) -> Result<&'a rdma_cm_event, c_int> {
    // SAFETY: the id lives, and is used by no other thread, as the caller promises.
    unsafe { acknowledge(id) };
    // SAFETY: the id lives, and no other thread gives it another channel meanwhile.
    let channel = unsafe { (*id).channel };
    let mut event = ptr::null_mut();
    // SAFETY: the channel of an id lives as long as the id; the result is a local.
    if unsafe { rdma_get_cm_event(channel, &raw mut event) } != 0 {
        return Err(last_errno());
    }
    // SAFETY: the id lives, and no other thread uses its event meanwhile.
    unsafe { (*id).event = event };
    // SAFETY: just taken from the channel; it lives until the next call of the id acknowledges it.
    let event = unsafe { &*event };
    match event.status {
        0 => Ok(event),
        _ if event.event == RDMA_CM_EVENT_REJECTED => Err(libc::ECONNREFUSED),
        status => Err(status.abs()),
    }
}

/// Waits for the completion of a call on a synchronous id.
///
/// # Safety
/// The id lives; without a channel of the program's it is used by no other thread.
pub(super) unsafe fn complete(id: *mut rdma_cm_id, begun: Result<(), c_int>) -> Result<(), c_int> {
    begun?;
    // SAFETY: the id lives, as the caller promises.
    let own = unsafe { Own::of(id) };
    let state = own.state.lock();
    let Some(events) = &state.events else { return Ok(()) };
    // The program is about to wait for what it has begun.
    events.expect(&own.rnic.poller);
    // If the end of the connection has been reported, no event follows.
    let waits = state.synchronous && !(state.stage == Stage::Over && events.is_empty());
    drop(state);
    // SAFETY: the id lives, and has no channel of the program's, so that no other thread uses it.
    if waits { unsafe { wait(id) }.map(drop) } else { Ok(()) }
}
