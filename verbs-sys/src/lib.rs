//! The C API of rdma-core: the types of libibverbs and librdmacm, and declarations of their functions.
//!
//! Generated (`ci/bindings`). Nothing is linked here: who calls the functions says which library they are from.

#[allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    unsafe_op_in_unsafe_fn,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
mod bindings;
mod zeroed;

pub use bindings::*;
pub use zeroed::{Zeroable, zeroed};

// What contains locks, whose sizes depend on the machine, as rdma-core's headers have it on aarch64. All else has one layout on every
// machine of 64 bits, and is asserted in the bindings.
#[cfg(target_arch = "aarch64")]
const _: () = {
    use core::mem::{offset_of, size_of};
    assert!(size_of::<ibv_context>() == 336 && offset_of!(ibv_context, abi_compat) == 328);
    assert!(size_of::<ibv_cq>() == 136 && offset_of!(ibv_cq, async_events_completed) == 132);
    assert!(size_of::<ibv_srq>() == 136 && offset_of!(ibv_srq, events_completed) == 128);
    assert!(size_of::<ibv_qp>() == 168 && offset_of!(ibv_qp, events_completed) == 160);
    assert!(size_of::<verbs_context>() == 656 && offset_of!(verbs_context, context) == 320);
};
