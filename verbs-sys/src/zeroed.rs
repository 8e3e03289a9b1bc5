//! C structures with all bits zero, as C programs begin them.

use crate::bindings::*;

/// A C structure for which all bits zero is a valid value.
///
/// # Safety
/// All bits zero must be a valid value.
pub unsafe trait Zeroable {}

/// A C structure with all bits zero.
pub fn zeroed<T: Zeroable>() -> T {
    // SAFETY: zero in all bytes is a value of the type: that is what `Zeroable` promises.
    unsafe { std::mem::zeroed() }
}

macro_rules! zeroable {
    ($($name:ident)*) => {$(
        // SAFETY: made of integers, raw pointers, functions that may be missing and locks of the C library, in arrays, structures
        // and unions: zero is a value of all of these.
        unsafe impl Zeroable for $name {}
    )*};
}

zeroable! {
    ibv_async_event ibv_context ibv_cq ibv_device ibv_device_attr ibv_port_attr ibv_qp ibv_qp_attr ibv_qp_init_attr
    ibv_recv_wr ibv_send_wr ibv_srq ibv_srq_attr ibv_wc rdma_cm_event rdma_cm_id rdma_conn_param
}
