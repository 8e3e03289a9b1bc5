//! Memory regions.

use std::ffi::c_void;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use super::bindings::*;
use super::{ProtectionDomain, errno, ops};

/// A registered piece of the process's memory.
pub struct MemoryRegion {
    raw: NonNull<ibv_mr>,
    pd: Arc<ProtectionDomain>,
}

// SAFETY: verbs calls on a region are thread-safe.
unsafe impl Send for MemoryRegion {}
// SAFETY: as above.
unsafe impl Sync for MemoryRegion {}

impl MemoryRegion {
    /// Registers `length` bytes at `addr` for the accesses in `access` (`IBV_ACCESS_*`).
    ///
    /// # Safety
    /// The memory stays mapped until the region is gone, and what peers and work requests do to it in the meantime
    /// is not at odds with how Rust code uses it.
    pub unsafe fn register(
        pd: &Arc<ProtectionDomain>,
        addr: *mut c_void,
        length: usize,
        access: ibv_access_flags,
    ) -> io::Result<MemoryRegion> {
        // SAFETY: the domain is live; the memory is the caller's promise.
        let raw = errno::created(unsafe { ops::reg_mr(pd.as_ptr(), addr, length, access) })?;
        Ok(MemoryRegion { raw, pd: Arc::clone(pd) })
    }

    /// The C object.
    pub fn as_ptr(&self) -> *mut ibv_mr {
        self.raw.as_ptr()
    }

    /// The key for this side's work requests.
    pub fn lkey(&self) -> u32 {
        // SAFETY: the region is live.
        unsafe { self.raw.as_ref().lkey }
    }

    /// The key for the peer's work requests, in host order.
    pub fn rkey(&self) -> u32 {
        // SAFETY: the region is live.
        unsafe { self.raw.as_ref().rkey }
    }

    /// The domain that it is registered in.
    pub fn pd(&self) -> &Arc<ProtectionDomain> {
        &self.pd
    }

    /// Deregisters; when that fails (a window is bound to it) the region comes back with the reason.
    pub fn deregister(self) -> Result<(), (MemoryRegion, io::Error)> {
        // SAFETY: the region is live, and on success not destroyed again.
        match errno::verbs(unsafe { ibv_dereg_mr(self.as_ptr()) }) {
            Ok(()) => {
                let mut region = std::mem::ManuallyDrop::new(self);
                // SAFETY: the field is not used again: nothing else of the region is dropped.
                unsafe { std::ptr::drop_in_place(&mut region.pd) };
                Ok(())
            }
            Err(e) => Err((self, e)),
        }
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        // SAFETY: the region is live and not used again.
        unsafe { ibv_dereg_mr(self.as_ptr()) };
    }
}
