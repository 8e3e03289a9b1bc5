//! The functions of rdma-core or of the emulator, as a table of pointers.
//!
//! Both have the same functions. Objects created on a context or a channel, and their events, are of the same library. The
//! data path does not need it, as it calls through the table of the context ([`ops`](super::ops)).

use super::bindings::*;
use libc::sockaddr;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// The functions of libibverbs and librdmacm that this crate calls, except those in `ibv_context.ops`.
macro_rules! library {
    ($(fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of a library.
        pub struct Library {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        /// libibverbs and librdmacm.
        pub static RDMA_CORE: Library = Library { $($name: super::bindings::$name,)* };

        /// The emulator: the RDMA device in user space.
        pub static EMULATOR: Library = Library { $($name: softiwarp::verbs::$name,)* };
    };
}

library! {
    fn rdma_get_devices(*mut c_int) -> *mut *mut ibv_context;
    fn rdma_free_devices(*mut *mut ibv_context);
    fn ibv_open_device(*mut ibv_device) -> *mut ibv_context;
    fn ibv_close_device(*mut ibv_context) -> c_int;
    fn ibv_get_device_name(*mut ibv_device) -> *const c_char;
    fn ibv_get_device_guid(*mut ibv_device) -> __be64;
    fn ibv_query_device(*mut ibv_context, *mut ibv_device_attr) -> c_int;
    fn ibv_query_port(*mut ibv_context, u8, *mut _compat_ibv_port_attr) -> c_int;
    fn ibv_get_async_event(*mut ibv_context, *mut ibv_async_event) -> c_int;
    fn ibv_ack_async_event(*mut ibv_async_event);
    fn ibv_alloc_pd(*mut ibv_context) -> *mut ibv_pd;
    fn ibv_dealloc_pd(*mut ibv_pd) -> c_int;
    fn ibv_reg_mr(*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr;
    fn ibv_reg_mr_iova2(*mut ibv_pd, *mut c_void, usize, u64, c_uint) -> *mut ibv_mr;
    fn ibv_dereg_mr(*mut ibv_mr) -> c_int;
    fn ibv_create_comp_channel(*mut ibv_context) -> *mut ibv_comp_channel;
    fn ibv_destroy_comp_channel(*mut ibv_comp_channel) -> c_int;
    fn ibv_get_cq_event(*mut ibv_comp_channel, *mut *mut ibv_cq, *mut *mut c_void) -> c_int;
    fn ibv_ack_cq_events(*mut ibv_cq, c_uint);
    fn ibv_create_cq(*mut ibv_context, c_int, *mut c_void, *mut ibv_comp_channel, c_int) -> *mut ibv_cq;
    fn ibv_resize_cq(*mut ibv_cq, c_int) -> c_int;
    fn ibv_destroy_cq(*mut ibv_cq) -> c_int;
    fn ibv_create_srq(*mut ibv_pd, *mut ibv_srq_init_attr) -> *mut ibv_srq;
    fn ibv_modify_srq(*mut ibv_srq, *mut ibv_srq_attr, c_int) -> c_int;
    fn ibv_query_srq(*mut ibv_srq, *mut ibv_srq_attr) -> c_int;
    fn ibv_destroy_srq(*mut ibv_srq) -> c_int;
    fn ibv_create_qp(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp;
    fn ibv_modify_qp(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int;
    fn ibv_query_qp(*mut ibv_qp, *mut ibv_qp_attr, c_int, *mut ibv_qp_init_attr) -> c_int;
    fn ibv_destroy_qp(*mut ibv_qp) -> c_int;
    fn rdma_create_event_channel() -> *mut rdma_event_channel;
    fn rdma_destroy_event_channel(*mut rdma_event_channel);
    fn rdma_get_cm_event(*mut rdma_event_channel, *mut *mut rdma_cm_event) -> c_int;
    fn rdma_ack_cm_event(*mut rdma_cm_event) -> c_int;
    fn rdma_create_id(*mut rdma_event_channel, *mut *mut rdma_cm_id, *mut c_void, rdma_port_space) -> c_int;
    fn rdma_destroy_id(*mut rdma_cm_id) -> c_int;
    fn rdma_bind_addr(*mut rdma_cm_id, *mut sockaddr) -> c_int;
    fn rdma_resolve_addr(*mut rdma_cm_id, *mut sockaddr, *mut sockaddr, c_int) -> c_int;
    fn rdma_resolve_route(*mut rdma_cm_id, c_int) -> c_int;
    fn rdma_listen(*mut rdma_cm_id, c_int) -> c_int;
    fn rdma_connect(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int;
    fn rdma_accept(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int;
    fn rdma_reject(*mut rdma_cm_id, *const c_void, u8) -> c_int;
    fn rdma_establish(*mut rdma_cm_id) -> c_int;
    fn rdma_disconnect(*mut rdma_cm_id) -> c_int;
    fn rdma_notify(*mut rdma_cm_id, ibv_event_type) -> c_int;
    fn rdma_set_option(*mut rdma_cm_id, c_int, c_int, *mut c_void, usize) -> c_int;
    fn rdma_migrate_id(*mut rdma_cm_id, *mut rdma_event_channel) -> c_int;
    fn rdma_init_qp_attr(*mut rdma_cm_id, *mut ibv_qp_attr, *mut c_int) -> c_int;
}

impl Library {
    /// Whether it is the emulator.
    pub fn is_emulator(&self) -> bool {
        std::ptr::eq(self, &EMULATOR)
    }
}
