//! The interface of libibverbs and librdmacm for this device.
//!
//! The functions have the names, arguments and results of both libraries' functions, so that a verbs program's calls can be
//! redirected here. As in rdma-core's providers, each object begins with its C structure. Functions that the C headers define
//! inline go through `ibv_context.ops` (module `device`).
//!
//! The descriptors of event channels and completion channels are readable when there is an event, and also when the device's
//! sockets are ready: the thread that wakes then calls for its event, which drives the sockets.

mod affiliated;
mod cancellation;
mod channel;
mod cm;
mod completion;
mod context;
mod device;
mod endpoint;
mod ends;
mod events;
mod inbox;
mod limits;
mod memory;
#[cfg(test)]
mod model;
mod ports;
mod post;
mod process;
mod programs;
mod queue_pair;
mod removal;
mod rnic;
mod sync;

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

pub use channel::{ibv_create_comp_channel, ibv_destroy_comp_channel};
pub use cm::{
    create_quiet_event_channel, rdma_accept, rdma_ack_cm_event, rdma_bind_addr, rdma_connect,
    rdma_create_event_channel, rdma_create_id, rdma_destroy_event_channel, rdma_destroy_id, rdma_disconnect,
    rdma_establish, rdma_get_cm_event, rdma_init_qp_attr, rdma_listen, rdma_migrate_id, rdma_notify,
    rdma_reject, rdma_resolve_addr, rdma_resolve_route, rdma_set_option,
};
pub use completion::{ibv_ack_cq_events, ibv_create_cq, ibv_destroy_cq, ibv_get_cq_event, ibv_resize_cq};
pub use device::{
    ibv_ack_async_event, ibv_close_device, ibv_get_async_event, ibv_get_device_guid, ibv_get_device_name,
    ibv_open_device, ibv_query_device, ibv_query_port, rdma_free_devices, rdma_get_devices,
};
pub use endpoint::{rdma_create_ep, rdma_destroy_ep, rdma_get_request};
pub use memory::{ibv_alloc_pd, ibv_dealloc_pd, ibv_dereg_mr, ibv_reg_mr, ibv_reg_mr_iova2};
pub use programs::{
    AddressInfo, efadv_query_device, ibv_free_device_list, ibv_get_device_list, ibv_query_gid,
    ibv_query_pkey, rdma_create_qp, rdma_destroy_qp, rdma_freeaddrinfo, rdma_getaddrinfo,
};
pub use queue_pair::{
    ibv_create_qp, ibv_create_srq, ibv_destroy_qp, ibv_destroy_srq, ibv_modify_qp, ibv_modify_srq,
    ibv_query_qp, ibv_query_srq, set_ready, wait_for_receives, wait_until_ready,
};
pub use removal::gone_while_exists;

/// The result of a verb that returns an errno.
fn verb(result: Result<(), c_int>) -> c_int {
    result.err().unwrap_or(0)
}

/// The result of a call that returns -1 and sets errno.
fn posix(result: Result<(), c_int>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(errno) => {
            set_errno(errno);
            -1
        }
    }
}

/// The number of a new queue. The log names queues by it, and so does `ibv_cq::handle` on other devices.
fn next_number() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
}

/// The object that a call makes, or null and an errno.
fn created<T>(result: Result<*mut T, c_int>) -> *mut T {
    result.unwrap_or_else(|errno| {
        set_errno(errno);
        ptr::null_mut()
    })
}

fn set_errno(errno: c_int) {
    // SAFETY: takes nothing.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the place of this thread's own.
    unsafe { *place = errno };
}

/// The errno that a function of this module has set.
fn last_errno() -> c_int {
    // SAFETY: takes nothing.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the place of this thread's own.
    unsafe { *place }
}

/// The errno of a system error.
fn errno(error: &std::io::Error) -> c_int {
    crate::report::is_limit(error);
    error.raw_os_error().unwrap_or(match error.kind() {
        std::io::ErrorKind::InvalidInput => libc::EINVAL,
        std::io::ErrorKind::NotConnected => libc::ECONNRESET,
        _ => libc::EIO,
    })
}

/// Defines functions with the C names, which the preloaded library exports (feature `preload`).
macro_rules! functions {
    ($($(#[$attribute:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block)*) => {$(
        #[doc = concat!("`", stringify!($name), "`")]
        ///
        /// # Safety
        /// As in the manual page of the C function; the objects are this device's.
        $(#[$attribute])*
        #[cfg_attr(feature = "preload", unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
            let _put_off = $crate::verbs::cancellation::PutOff::new();
            $body
        }
    )*};
}
use functions;

/// Defines functions with the C names that wait for an event, by functions with a limit. In the preloaded library they may be cancelled.
macro_rules! waits {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) = $next:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`")]
        ///
        /// # Safety
        /// As in the manual page of the C function; the objects are this device's.
        pub unsafe extern "C" fn $name($($argument: $type),*) -> std::ffi::c_int {
            // SAFETY: as the caller says.
            $crate::verbs::posix(unsafe { $next($($argument,)* None) })
        }

        #[cfg(feature = "preload")]
        const _: () = {
            #[unsafe(no_mangle)]
            unsafe extern "C-unwind" fn $name($($argument: $type),*) -> std::ffi::c_int {
                use $crate::verbs::cancellation::{LOOKS_UP, pthread_testcancel};
                loop {
                    // SAFETY: takes nothing. If it ends the thread, nothing in this frame is to be dropped.
                    unsafe { pthread_testcancel() };
                    // SAFETY: as the caller says; an object that is destroyed meanwhile is not looked at again.
                    let next = unsafe { $next($($argument,)* Some(LOOKS_UP)) };
                    if next != Err(libc::ETIMEDOUT) {
                        return $crate::verbs::posix(next);
                    }
                }
            }
        };
    )*};
}
use waits;
