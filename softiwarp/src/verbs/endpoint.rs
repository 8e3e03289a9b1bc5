//! Endpoints (`rdma_create_ep`): ids that are created together with their address and queue pair.

use std::ffi::c_int;
use std::ptr;

use verbs_sys::*;

use super::cm::{
    Own, rdma_bind_addr, rdma_create_id, rdma_destroy_id, rdma_migrate_id, rdma_resolve_addr,
    rdma_resolve_route, wait,
};
use super::programs::{AddressInfo, rdma_create_qp, rdma_destroy_qp};
use super::{functions, last_errno, posix};

/// The time limit of address and route resolution.
const MILLISECONDS: c_int = 2000;

fn called(result: c_int) -> Result<(), c_int> {
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Sets up a new id's address and queue pair. A listener keeps the attributes for the queue pairs of its connections.
///
/// # Safety
/// The objects are this device's and not destroyed, and the structures are valid.
unsafe fn set_up(
    id: *mut rdma_cm_id,
    info: &AddressInfo,
    pd: *mut ibv_pd,
    init: *mut ibv_qp_init_attr,
) -> Result<(), c_int> {
    // SAFETY: NULL or a structure that is there, as the caller promises.
    if let Some(init) = unsafe { init.as_mut() } {
        init.qp_type = IBV_QPT_RC;
    }
    if info.is_passive() {
        // SAFETY: the id lives, and the address of an `AddressInfo` is as long as its family says.
        called(unsafe { rdma_bind_addr(id, info.source) })?;
        if !pd.is_null() {
            // SAFETY: the id lives, and is new: no other thread uses it.
            unsafe { (*id).pd = pd };
        }
        // SAFETY: NULL or a structure that is there, as the caller promises.
        let queue_pairs = unsafe { init.as_ref() }.copied();
        // SAFETY: the id lives, as the caller promises.
        unsafe { Own::of(id) }.state.lock().queue_pairs = queue_pairs;
        return Ok(());
    }
    // SAFETY: the id lives, and the addresses of an `AddressInfo` are as long as their families say.
    called(unsafe { rdma_resolve_addr(id, info.source, info.target, MILLISECONDS) })?;
    // SAFETY: the id lives, as the caller promises.
    called(unsafe { rdma_resolve_route(id, MILLISECONDS) })?;
    // SAFETY: the id and the domain live, and the structure is there, as the caller promises.
    if init.is_null() { Ok(()) } else { called(unsafe { rdma_create_qp(id, pd, init) }) }
}

/// Takes the next connection request of a listener without a channel.
///
/// # Safety
/// The listener is not destroyed, and no other thread uses it.
unsafe fn next_request(listener: *mut rdma_cm_id) -> Result<*mut rdma_cm_id, c_int> {
    // SAFETY: the listener lives, as the caller promises.
    let own = unsafe { Own::of(listener) };
    let (synchronous, queue_pairs) = {
        let state = own.state.lock();
        (state.synchronous, state.queue_pairs)
    };
    if !synchronous {
        return Err(libc::EINVAL);
    }
    // SAFETY: the listener lives, and is used by no other thread, as the caller promises.
    let event = unsafe { wait(listener) }?;
    if event.event != RDMA_CM_EVENT_CONNECT_REQUEST {
        return Err(libc::EINVAL);
    }
    let id = event.id;
    // SAFETY: the id of a request is new, and nobody else knows it yet.
    called(unsafe { rdma_migrate_id(id, ptr::null_mut()) })?;
    if let Some(mut init) = queue_pairs {
        // SAFETY: the listener lives, as the caller promises.
        let pd = unsafe { (*listener).pd };
        // SAFETY: the id is new; the domain is what the listener was made with, for the queue pairs of its connections.
        called(unsafe { rdma_create_qp(id, pd, &raw mut init) })?;
    }
    // SAFETY: the listener lives, and no other thread uses its event meanwhile.
    let event = std::mem::replace(unsafe { &mut (*listener).event }, ptr::null_mut());
    // The event holds the peer's private data, and is acknowledged by the next call on the new id. SAFETY: the id is new, and
    // nobody else knows it yet.
    unsafe { (*id).event = event };
    Ok(id)
}

functions! {
    fn rdma_create_ep(
        result: *mut *mut rdma_cm_id, info: *mut AddressInfo, pd: *mut ibv_pd, init: *mut ibv_qp_init_attr
    ) -> c_int {
        let create = || {
            let mut id = ptr::null_mut();
            // SAFETY: NULL stands for a channel of the id's own; the result is a local.
            called(unsafe { rdma_create_id(ptr::null_mut(), &raw mut id, ptr::null_mut(), RDMA_PS_TCP) })?;
            // SAFETY: readable during the call, as the manual page asks.
            let info = unsafe { &*info };
            // SAFETY: the id was just made; the domain lives and the structure is there, as librdmacm asks.
            if let Err(error) = unsafe { set_up(id, info, pd, init) } {
                // SAFETY: the id was made here, and nobody else knows it.
                unsafe { rdma_destroy_ep(id) };
                return Err(error);
            }
            // SAFETY: the result is writable, as librdmacm asks.
            unsafe { *result = id };
            Ok(())
        };
        posix(create())
    }

    fn rdma_destroy_ep(id: *mut rdma_cm_id) {
        // SAFETY: from `rdma_create_id` or a connection request, and not destroyed during the call, as librdmacm asks.
        if !unsafe { (*id).qp }.is_null() {
            // SAFETY: not destroyed yet; the program uses neither the id nor its queue pair any more.
            unsafe { rdma_destroy_qp(id) };
        }
        // SAFETY: the id is the caller's, who uses it no more.
        unsafe { rdma_destroy_id(id) };
    }

    fn rdma_get_request(listener: *mut rdma_cm_id, id: *mut *mut rdma_cm_id) -> c_int {
        // SAFETY: the caller's listener lives, and is used by no other thread, as librdmacm asks.
        posix(unsafe { next_request(listener) }.map(|next| {
            // SAFETY: the result is writable, as librdmacm asks.
            unsafe { *id = next };
        }))
    }
}
