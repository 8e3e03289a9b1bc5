//! Memory regions.

use std::ffi::c_void;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use super::bindings::*;
use super::{Library, ProtectionDomain, errno, ops};

/// A memory region.
pub struct MemoryRegion {
    raw: NonNull<ibv_mr>,
    pd: Arc<ProtectionDomain>,
}

// SAFETY: verbs calls on a region are thread-safe.
unsafe impl Send for MemoryRegion {}
// SAFETY: its fields do not change after registration.
unsafe impl Sync for MemoryRegion {}

impl MemoryRegion {
    /// Registers `length` bytes at `addr` for the accesses in `access` (`IBV_ACCESS_*`).
    ///
    /// # Errors
    /// The errno of `ibv_reg_mr`: `EFAULT` for memory that is not mapped, `EACCES` for memory that is not writable,
    /// `ENOMEM` for more than may be pinned.
    ///
    /// # Safety
    /// The memory stays mapped until the region is deregistered, and accesses by peers and work requests do not conflict
    /// with Rust references to it.
    pub unsafe fn register(
        pd: &Arc<ProtectionDomain>,
        addr: *mut c_void,
        length: usize,
        access: ibv_access_flags,
    ) -> io::Result<MemoryRegion> {
        // SAFETY: the domain is live; the caller keeps the memory mapped.
        let raw = errno::created(pd.context(), "ibv_reg_mr", unsafe {
            ops::reg_mr(pd.context().library(), pd.as_ptr(), addr, length, access)
        })?;
        Ok(MemoryRegion { raw, pd: Arc::clone(pd) })
    }

    /// The C object.
    pub fn as_ptr(&self) -> *mut ibv_mr {
        self.raw.as_ptr()
    }

    /// The key for this side's work requests.
    pub fn lkey(&self) -> u32 {
        // SAFETY: the region is live: `self` owns it, and deregisters it only when it is dropped.
        unsafe { self.raw.as_ref().lkey }
    }

    /// The key for the peer's work requests, in host order.
    pub fn rkey(&self) -> u32 {
        // SAFETY: the region is live: `self` owns it, and deregisters it only when it is dropped.
        unsafe { self.raw.as_ref().rkey }
    }

    fn library(&self) -> &'static Library {
        self.pd.context().library()
    }

    /// The protection domain.
    pub fn pd(&self) -> &Arc<ProtectionDomain> {
        &self.pd
    }

    /// Deregisters the memory. After a failure (a window is bound), returns the region and the error.
    ///
    /// # Errors
    /// The errno of `ibv_dereg_mr`, with the region.
    pub fn deregister(self) -> Result<(), (MemoryRegion, io::Error)> {
        // SAFETY: the region is live, and after success not deregistered again.
        match errno::verbs(self.pd.context(), "ibv_dereg_mr", unsafe {
            (self.library().ibv_dereg_mr)(self.as_ptr())
        }) {
            Ok(()) => {
                let mut region = std::mem::ManuallyDrop::new(self);
                // SAFETY: the field is not used again, as the region is not dropped.
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
        unsafe { (self.library().ibv_dereg_mr)(self.as_ptr()) };
    }
}
