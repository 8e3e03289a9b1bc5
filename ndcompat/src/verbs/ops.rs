//! The inline functions of `infiniband/verbs.h`: calls through the provider's table in `context->ops`.
//!
//! The data path calls these directly, on raw pointers; they compile to the instructions of a C program. Results are those
//! of the provider: see [`errno`](super::errno()) for the sign of those of `post_*`.

use std::ffi::{c_int, c_uint, c_void};
use std::hint::unreachable_unchecked;
use std::mem::offset_of;
use std::{ptr, slice};

use super::bindings::*;
use super::library::Library;

/// An entry of the table that is never null.
///
/// # Safety
/// `entry` is from the `ops` of a context that libibverbs has opened, and one that `verbs.h` calls without a check.
#[inline(always)]
unsafe fn filled<F>(entry: Option<F>) -> F {
    match entry {
        Some(entry) => entry,
        // SAFETY: libibverbs sets each such entry to a function that fails before the provider sets its own.
        None => unsafe { unreachable_unchecked() },
    }
}

/// Calls an entry of an object's provider, as the C function does.
macro_rules! call {
    ($object:ident.$entry:ident($($argument:expr),*)) => {{
        // SAFETY: the object is live, as the caller says, and has a pointer to its context.
        let context = unsafe { (*$object).context };
        // SAFETY: the context of a live object is live.
        let entry = unsafe { (*context).ops.$entry };
        // SAFETY: `verbs.h` calls this entry without a check.
        let entry = unsafe { filled(entry) };
        // SAFETY: the caller keeps to the manual of the C function.
        unsafe { entry($($argument),*) }
    }};
}

/// Posts a list of work requests to a send queue.
///
/// # Safety
/// As `ibv_post_send(3)`: live queue pair, well-formed list whose memory stays valid until completion, `bad` writable.
#[inline(always)]
pub unsafe fn post_send(qp: *mut ibv_qp, wr: *mut ibv_send_wr, bad: *mut *mut ibv_send_wr) -> c_int {
    call!(qp.post_send(qp, wr, bad))
}

/// Posts a list of work requests to a receive queue.
///
/// # Safety
/// As `ibv_post_recv(3)`: live queue pair, well-formed list whose memory stays valid until completion, `bad` writable.
#[inline(always)]
pub unsafe fn post_recv(qp: *mut ibv_qp, wr: *mut ibv_recv_wr, bad: *mut *mut ibv_recv_wr) -> c_int {
    call!(qp.post_recv(qp, wr, bad))
}

/// Posts a list of work requests to a shared receive queue.
///
/// # Safety
/// As `ibv_post_srq_recv(3)`: live queue, well-formed list whose memory stays valid until completion, `bad` writable.
#[inline(always)]
pub unsafe fn post_srq_recv(srq: *mut ibv_srq, wr: *mut ibv_recv_wr, bad: *mut *mut ibv_recv_wr) -> c_int {
    call!(srq.post_srq_recv(srq, wr, bad))
}

/// Takes up to `count` completions, and returns their number; negative after a failure.
///
/// # Safety
/// `cq` is live and `wc` has room for `count` entries.
#[inline(always)]
pub unsafe fn poll_cq(cq: *mut ibv_cq, count: c_int, wc: *mut ibv_wc) -> c_int {
    call!(cq.poll_cq(cq, count, wc))
}

/// Arms a completion queue for one event.
///
/// # Safety
/// `cq` is live.
#[inline(always)]
pub unsafe fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    call!(cq.req_notify_cq(cq, solicited_only))
}

/// Allocates a memory window; returns null and sets errno after a failure.
///
/// # Safety
/// `pd` is live.
#[inline(always)]
pub unsafe fn alloc_mw(pd: *mut ibv_pd, kind: ibv_mw_type) -> *mut ibv_mw {
    // SAFETY: the domain is live, as the caller says, and has a pointer to its context.
    let context = unsafe { (*pd).context };
    // SAFETY: the context of a live domain is live.
    match unsafe { (*context).ops.alloc_mw } {
        // SAFETY: the domain is live, as the manual requires.
        Some(alloc) => unsafe { alloc(pd, kind) },
        None => {
            // SAFETY: every thread has an errno, whose address this returns.
            let errno = unsafe { libc::__errno_location() };
            // SAFETY: the pointer is to errno of this thread.
            unsafe { *errno = libc::EOPNOTSUPP };
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
    call!(mw.dealloc_mw(mw))
}

/// Posts the bind of a type 1 window.
///
/// # Safety
/// `qp`, `mw` and the region named in `bind`, if any, are live.
#[inline(always)]
pub unsafe fn bind_mw(qp: *mut ibv_qp, mw: *mut ibv_mw, bind: *mut ibv_mw_bind) -> c_int {
    // SAFETY: the window is live during the call, as the caller says, and only read.
    let mw_ref = unsafe { &*mw };
    // SAFETY: the caller's request is valid during the call.
    let info = unsafe { &(*bind).bind_info };
    if mw_ref.type_ != IBV_MW_TYPE_1 || (info.mr.is_null() && (info.addr != 0 || info.length != 0)) {
        return libc::EINVAL;
    }
    // SAFETY: a region that is named in the request is live during the call, as the caller says.
    if !info.mr.is_null() && mw_ref.pd != unsafe { (*info.mr).pd } {
        return libc::EPERM;
    }
    call!(mw.bind_mw(qp, mw, bind))
}

/// Registers memory with the library of the domain.
///
/// As in the C macro, the newer function is called only for access flags of the optional range.
///
/// # Safety
/// As `ibv_reg_mr(3)`: `pd` is live, the memory stays mapped while it is registered.
#[inline]
pub unsafe fn reg_mr(
    library: &Library,
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    access: c_uint,
) -> *mut ibv_mr {
    const OPTIONAL: c_uint = IB_UVERBS_ACCESS_OPTIONAL_RANGE;
    if access & OPTIONAL == 0 {
        // SAFETY: the caller's domain is live, and the memory stays mapped.
        unsafe { (library.ibv_reg_mr)(pd, addr, length, access as c_int) }
    } else {
        // SAFETY: the caller's domain is live, and the memory stays mapped; the I/O virtual address is its address.
        unsafe { (library.ibv_reg_mr_iova2)(pd, addr, length, addr as u64, access) }
    }
}

/// Reads the attributes of a port.
///
/// # Safety
/// `context` is live and `attr` writable.
pub unsafe fn query_port(
    library: &Library,
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
) -> c_int {
    let known = size_of::<verbs_context>() - offset_of!(verbs_context, query_port);
    // SAFETY: the context is live, as the caller says.
    let extended = unsafe { extended(context) }.filter(|extended| extended.sz >= known);
    match extended.and_then(|extended| extended.query_port) {
        // SAFETY: `attr` is writable for the length passed.
        Some(query) => unsafe { query(context, port, attr, size_of::<ibv_port_attr>()) },
        None => {
            // The exported function fills a shorter structure. SAFETY: the caller's result is writable.
            unsafe { attr.write_bytes(0, 1) };
            // SAFETY: the context is live, and `attr` is at least as long as the function's structure.
            unsafe { (library.ibv_query_port)(context, port, attr.cast()) }
        }
    }
}

/// The extended context that contains `context`, if its provider has one.
///
/// # Safety
/// `context` is live.
unsafe fn extended<'a>(context: *mut ibv_context) -> Option<&'a verbs_context> {
    // SAFETY: the context is live, as the caller says.
    if unsafe { (*context).abi_compat } as usize != usize::MAX {
        return None;
    }
    let extended = context.wrapping_byte_sub(offset_of!(verbs_context, context)).cast::<verbs_context>();
    // SAFETY: the marker means that the context is the last member of an extended one.
    Some(unsafe { &*extended })
}

/// The bytes at a C pointer with a length; null means none.
///
/// # Safety
/// A pointer that is not null is valid for reads of `length` bytes for as long as the result is used.
pub(super) unsafe fn bytes<'a>(data: *const c_void, length: usize) -> &'a [u8] {
    if data.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller says that so many bytes are readable.
    unsafe { slice::from_raw_parts(data.cast(), length) }
}
