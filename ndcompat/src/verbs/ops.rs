//! What `infiniband/verbs.h` defines inline: jumps through the provider's table in `context->ops`.
//!
//! The data path calls these directly, on raw pointers; they are exactly the instructions that a C program gets.
//! Results are the provider's own: see [`errno`](super::errno()) for the sign of those of `post_*`.

use std::ffi::{c_int, c_uint, c_void};
use std::hint::unreachable_unchecked;
use std::mem::offset_of;
use std::{ptr, slice};

use super::bindings::*;

/// The entry of a table that providers always fill.
///
/// # Safety
/// `entry` is from the `ops` of a context that libibverbs opened, and one that C calls without a look at it.
#[inline(always)]
unsafe fn filled<F>(entry: Option<F>) -> F {
    match entry {
        Some(entry) => entry,
        // SAFETY: libibverbs fills each such entry with a function that fails before the provider sets its own.
        None => unsafe { unreachable_unchecked() },
    }
}

/// Posts a list of work requests to a send queue.
///
/// # Safety
/// As `ibv_post_send(3)`: live queue pair, well-formed list with memory that stays until completion, `bad` writable.
#[inline(always)]
pub unsafe fn post_send(qp: *mut ibv_qp, wr: *mut ibv_send_wr, bad: *mut *mut ibv_send_wr) -> c_int {
    // SAFETY: the caller's promise; a live queue pair has a live context.
    unsafe { filled((*(*qp).context).ops.post_send)(qp, wr, bad) }
}

/// Posts a list of work requests to a receive queue.
///
/// # Safety
/// As `ibv_post_recv(3)`: live queue pair, well-formed list with memory that stays until completion, `bad` writable.
#[inline(always)]
pub unsafe fn post_recv(qp: *mut ibv_qp, wr: *mut ibv_recv_wr, bad: *mut *mut ibv_recv_wr) -> c_int {
    // SAFETY: the caller's promise; a live queue pair has a live context.
    unsafe { filled((*(*qp).context).ops.post_recv)(qp, wr, bad) }
}

/// Posts a list of work requests to a shared receive queue.
///
/// # Safety
/// As `ibv_post_srq_recv(3)`: live queue, well-formed list with memory that stays until completion, `bad` writable.
#[inline(always)]
pub unsafe fn post_srq_recv(srq: *mut ibv_srq, wr: *mut ibv_recv_wr, bad: *mut *mut ibv_recv_wr) -> c_int {
    // SAFETY: the caller's promise; a live queue has a live context.
    unsafe { filled((*(*srq).context).ops.post_srq_recv)(srq, wr, bad) }
}

/// Takes up to `count` completions; negative for failure.
///
/// # Safety
/// `cq` is live and `wc` has room for `count` entries.
#[inline(always)]
pub unsafe fn poll_cq(cq: *mut ibv_cq, count: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: the caller's promise; a live queue has a live context.
    unsafe { filled((*(*cq).context).ops.poll_cq)(cq, count, wc) }
}

/// Arms a completion queue for one event.
///
/// # Safety
/// `cq` is live.
#[inline(always)]
pub unsafe fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: the caller's promise; a live queue has a live context.
    unsafe { filled((*(*cq).context).ops.req_notify_cq)(cq, solicited_only) }
}

/// Allocates a memory window; null and errno for failure.
///
/// # Safety
/// `pd` is live.
#[inline(always)]
pub unsafe fn alloc_mw(pd: *mut ibv_pd, kind: ibv_mw_type) -> *mut ibv_mw {
    // SAFETY: the caller's promise; a live domain has a live context.
    match unsafe { (*(*pd).context).ops.alloc_mw } {
        // SAFETY: as above.
        Some(alloc) => unsafe { alloc(pd, kind) },
        None => {
            // SAFETY: errno is this thread's own.
            unsafe { *libc::__errno_location() = libc::EOPNOTSUPP };
            ptr::null_mut()
        }
    }
}

/// Frees a memory window.
///
/// # Safety
/// `mw` is live and not used again.
#[inline(always)]
pub unsafe fn dealloc_mw(mw: *mut ibv_mw) -> c_int {
    // SAFETY: the caller's promise; a live window has a live context.
    unsafe { filled((*(*mw).context).ops.dealloc_mw)(mw) }
}

/// Posts the bind of a type 1 window.
///
/// # Safety
/// `qp`, `mw` and the region named in `bind`, if any, are live.
#[inline(always)]
pub unsafe fn bind_mw(qp: *mut ibv_qp, mw: *mut ibv_mw, bind: *mut ibv_mw_bind) -> c_int {
    // SAFETY: the caller's promise.
    let (mw_ref, info) = unsafe { (&*mw, &(*bind).bind_info) };
    if mw_ref.type_ != IBV_MW_TYPE_1 || (info.mr.is_null() && (info.addr != 0 || info.length != 0)) {
        return libc::EINVAL;
    }
    // SAFETY: a region that is named is live.
    if !info.mr.is_null() && mw_ref.pd != unsafe { (*info.mr).pd } {
        return libc::EPERM;
    }
    // SAFETY: the caller's promise; a live window has a live context.
    unsafe { filled((*mw_ref.context).ops.bind_mw)(qp, mw, bind) }
}

/// Registers memory.
///
/// The C macro takes the newer entry point only when an access flag of the optional range is asked for.
///
/// # Safety
/// As `ibv_reg_mr(3)`: `pd` is live, the memory stays mapped while it is registered.
#[inline]
pub unsafe fn reg_mr(pd: *mut ibv_pd, addr: *mut c_void, length: usize, access: c_uint) -> *mut ibv_mr {
    const OPTIONAL: c_uint = IB_UVERBS_ACCESS_OPTIONAL_RANGE;
    if access & OPTIONAL == 0 {
        // SAFETY: the caller's promise.
        unsafe { ibv_reg_mr(pd, addr, length, access as c_int) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { ibv_reg_mr_iova2(pd, addr, length, addr as u64, access) }
    }
}

/// Reads the attributes of a port.
///
/// # Safety
/// `context` is live and `attr` writable.
pub unsafe fn query_port(context: *mut ibv_context, port: u8, attr: *mut ibv_port_attr) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let known = size_of::<verbs_context>() - offset_of!(verbs_context, query_port);
        let extended = extended(context).filter(|&extended| (*extended).sz >= known);
        match extended.and_then(|extended| (*extended).query_port) {
            Some(query) => query(context, port, attr, size_of::<ibv_port_attr>()),
            None => {
                // The exported function knows a shorter structure.
                attr.write_bytes(0, 1);
                ibv_query_port(context, port, attr.cast())
            }
        }
    }
}

/// The extended context around `context`, if its provider has one.
///
/// # Safety
/// `context` is live.
unsafe fn extended(context: *mut ibv_context) -> Option<*mut verbs_context> {
    // SAFETY: the caller's promise; the marker says that the context is the last member of an extended one.
    unsafe {
        ((*context).abi_compat as usize == usize::MAX)
            .then(|| context.byte_sub(offset_of!(verbs_context, context)).cast::<verbs_context>())
    }
}

/// The bytes behind a pointer and length of C, where null means none.
///
/// # Safety
/// A pointer that is not null has `length` readable bytes for as long as the result is used.
pub(super) unsafe fn bytes<'a>(data: *const c_void, length: usize) -> &'a [u8] {
    if data.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { slice::from_raw_parts(data.cast(), length) }
}
