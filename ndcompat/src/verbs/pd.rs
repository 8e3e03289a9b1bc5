//! Protection domains.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use super::bindings::*;
use super::{Context, errno};

/// A protection domain.
pub struct ProtectionDomain {
    raw: NonNull<ibv_pd>,
    context: Arc<Context>,
}

// SAFETY: verbs calls on a domain are thread-safe.
unsafe impl Send for ProtectionDomain {}
// SAFETY: verbs lets several threads use a domain at once.
unsafe impl Sync for ProtectionDomain {}

impl ProtectionDomain {
    /// Allocates a domain.
    ///
    /// # Errors
    /// The errno of `ibv_alloc_pd`.
    pub fn create(context: &Arc<Context>) -> io::Result<Arc<ProtectionDomain>> {
        // SAFETY: the context is live: it is closed only when its owner, which is borrowed here, is dropped.
        let raw = errno::created(context, "ibv_alloc_pd", unsafe {
            (context.library().ibv_alloc_pd)(context.as_ptr())
        })?;
        Ok(Arc::new(ProtectionDomain { raw, context: Arc::clone(context) }))
    }

    /// The C object.
    pub fn as_ptr(&self) -> *mut ibv_pd {
        self.raw.as_ptr()
    }

    /// The device.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

impl Drop for ProtectionDomain {
    fn drop(&mut self) {
        // SAFETY: everything created in the domain holds it, so nothing is left.
        unsafe { (self.context.library().ibv_dealloc_pd)(self.as_ptr()) };
    }
}
