//! Memory windows.

use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

use super::bindings::*;
use super::{Context, ProtectionDomain, errno, ops};

/// The two types of memory windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowType {
    /// Bound by a verb; valid on every queue pair of the domain.
    One,
    /// Bound by a work request; valid on the queue pair that has bound it.
    Two,
}

/// A memory window.
pub struct MemoryWindow {
    raw: NonNull<ibv_mw>,
    pd: Arc<ProtectionDomain>,
}

// SAFETY: verbs calls on a window are thread-safe, save for `rkey`, which the provider changes when one is bound.
unsafe impl Send for MemoryWindow {}
// SAFETY: its fields are only read here; binding is a raw call, whose caller excludes others.
unsafe impl Sync for MemoryWindow {}

impl MemoryWindow {
    /// Allocates a window.
    ///
    /// # Errors
    /// The errno of `ibv_alloc_mw`: `EOPNOTSUPP` without windows.
    pub fn create(pd: &Arc<ProtectionDomain>, kind: WindowType) -> io::Result<MemoryWindow> {
        let kind = match kind {
            WindowType::One => IBV_MW_TYPE_1,
            WindowType::Two => IBV_MW_TYPE_2,
        };
        // SAFETY: the domain is live, as its owner is borrowed for the call; the window holds it afterwards.
        let raw = errno::created(pd.context(), "ibv_alloc_mw", unsafe { ops::alloc_mw(pd.as_ptr(), kind) })?;
        Ok(MemoryWindow { raw, pd: Arc::clone(pd) })
    }

    /// The C object.
    pub fn as_ptr(&self) -> *mut ibv_mw {
        self.raw.as_ptr()
    }

    /// The key for the peer's work requests, in host order. For a type 2 window, the next binding starts from it.
    pub fn rkey(&self) -> u32 {
        // SAFETY: the window is live: `self` owns it, and deallocates it only when it is dropped.
        unsafe { self.raw.as_ref().rkey }
    }

    /// The protection domain.
    pub fn pd(&self) -> &Arc<ProtectionDomain> {
        &self.pd
    }
}

impl Context {
    /// Whether the driver's half in user space binds windows. Where it has no such verb, rdma-core puts a function of its own in its
    /// place, so what tells them apart is the library that the function is in. The kernel's half may report windows nonetheless.
    pub fn binds_windows(&self) -> bool {
        // SAFETY: the context is live, and nothing changes its table any more.
        let bind = unsafe { (*self.as_ptr()).ops.bind_mw };
        let object = |function| {
            let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
            // SAFETY: any address may be asked for; there is room for the answer.
            let known = unsafe { libc::dladdr(function, found.as_mut_ptr()) } != 0;
            // SAFETY: filled in by the call, or zero, which is valid.
            known.then(|| unsafe { found.assume_init() }.dli_fbase)
        };
        bind.is_some_and(|bind| {
            let own = self.library().ibv_query_device as *const c_void;
            self.library().is_emulator() || object(bind as *const c_void) != object(own)
        })
    }
}

impl Drop for MemoryWindow {
    fn drop(&mut self) {
        // SAFETY: the window is live and not used again.
        unsafe { ops::dealloc_mw(self.as_ptr()) };
    }
}
