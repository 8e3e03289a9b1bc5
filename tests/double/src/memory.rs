//! Protection domains and memory regions.

use crate::device::{export, lock};
use crate::{created, destroyed};
use libc::{c_int, c_uint, c_void};
use ndcompat::verbs::bindings::*;
use std::ops::Range;

/// Registered memory, by key. Keys are never reused.
#[derive(Default)]
pub(crate) struct Regions(Vec<Option<Region>>);

struct Region {
    bytes: Range<u64>,
    access: u32,
}

/// Makes a key differ from its byte-swapped value.
const TAG: u32 = 0x5A;

impl Regions {
    /// Whether `length` bytes at `address` may be accessed by `key`.
    #[inline]
    pub(crate) fn allow(&self, key: u32, address: u64, length: u32, access: u32) -> bool {
        let region = self.0.get(key as usize >> 8).and_then(Option::as_ref);
        region.is_some_and(|region| {
            let end = address.saturating_add(length.into());
            key & 0xFF == TAG
                && region.bytes.start <= address
                && end <= region.bytes.end
                && region.access & access == access
        })
    }
}

/// The device of a protection domain.
fn context_of(pd: *mut ibv_pd) -> *mut ibv_context {
    // SAFETY: the caller's domain lives.
    unsafe { (*pd).context }
}

fn register(
    name: &'static str,
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    access: u32,
) -> *mut ibv_mr {
    created(name, || {
        let mut device = lock();
        let key = (device.regions.0.len() as u32) << 8 | TAG;
        let start = addr as u64;
        device.regions.0.push(Some(Region { bytes: start..start + length as u64, access }));
        let region = ibv_mr { context: context_of(pd), pd, addr, length, handle: 0, lkey: key, rkey: key };
        Ok(Box::into_raw(Box::new(region)))
    })
}

export! {
    fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
        created("ibv_alloc_pd", || Ok(Box::into_raw(Box::new(ibv_pd { context, handle: 0 }))))
    }

    fn ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int {
        destroyed("ibv_dealloc_pd", pd, || {
            // SAFETY: made above, destroyed once.
            drop(unsafe { Box::from_raw(pd) });
        })
    }

    // Windows can be allocated, but not bound.
    fn alloc_mw(pd: *mut ibv_pd, type_: ibv_mw_type) -> *mut ibv_mw {
        created("alloc_mw", || {
            Ok(Box::into_raw(Box::new(ibv_mw { context: context_of(pd), pd, rkey: TAG, handle: 0, type_ })))
        })
    }

    // Beside the verbs, as rdma-core's for drivers without this one.
    fn bind_mw(_qp: *mut ibv_qp, _mw: *mut ibv_mw, _bind: *mut ibv_mw_bind) -> c_int {
        libc::EOPNOTSUPP
    }

    fn dealloc_mw(mw: *mut ibv_mw) -> c_int {
        // SAFETY: made above, destroyed once.
        destroyed("dealloc_mw", mw, || drop(unsafe { Box::from_raw(mw) }))
    }

    fn ibv_reg_mr(pd: *mut ibv_pd, addr: *mut c_void, length: usize, access: c_int) -> *mut ibv_mr {
        register("ibv_reg_mr", pd, addr, length, access as u32)
    }

    fn ibv_reg_mr_iova2(
        pd: *mut ibv_pd, addr: *mut c_void, length: usize, _iova: u64, access: c_uint
    ) -> *mut ibv_mr {
        register("ibv_reg_mr_iova2", pd, addr, length, access)
    }

    fn ibv_dereg_mr(mr: *mut ibv_mr) -> c_int {
        destroyed("ibv_dereg_mr", mr, || {
            // SAFETY: made above, destroyed once.
            let mr = unsafe { Box::from_raw(mr) };
            lock().regions.0[mr.lkey as usize >> 8] = None;
        })
    }
}
