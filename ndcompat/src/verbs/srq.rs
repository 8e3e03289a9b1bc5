//! Shared receive queues.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use super::bindings::*;
use super::{ProtectionDomain, errno};

/// A shared receive queue.
pub struct SharedReceiveQueue {
    raw: NonNull<ibv_srq>,
    pd: Arc<ProtectionDomain>,
}

// SAFETY: verbs calls on a queue are thread-safe.
unsafe impl Send for SharedReceiveQueue {}
// SAFETY: verbs lets several threads post to a queue at once.
unsafe impl Sync for SharedReceiveQueue {}

impl SharedReceiveQueue {
    /// Creates a queue for `max_wr` requests of `max_sge` SGEs, whose events carry `cookie`.
    ///
    /// # Errors
    /// The errno of `ibv_create_srq`.
    pub fn create(
        pd: &Arc<ProtectionDomain>,
        max_wr: u32,
        max_sge: u32,
        cookie: usize,
    ) -> io::Result<SharedReceiveQueue> {
        let attr = ibv_srq_attr { max_wr, max_sge, srq_limit: 0 };
        let mut init = ibv_srq_init_attr { srq_context: cookie as *mut _, attr };
        // SAFETY: the domain is live; the cookie is not dereferenced.
        let raw = errno::created(pd.context(), "ibv_create_srq", unsafe {
            (pd.context().library().ibv_create_srq)(pd.as_ptr(), &mut init)
        })?;
        Ok(SharedReceiveQueue { raw, pd: Arc::clone(pd) })
    }

    /// The C object.
    #[inline(always)]
    pub fn as_ptr(&self) -> *mut ibv_srq {
        self.raw.as_ptr()
    }

    /// The number of the queue in the log.
    pub fn number(&self) -> u32 {
        // SAFETY: the queue is live: `self` owns it, and destroys it only when it is dropped.
        unsafe { self.raw.as_ref().handle }
    }

    /// The protection domain.
    pub fn pd(&self) -> &Arc<ProtectionDomain> {
        &self.pd
    }

    /// The cookie that the queue was created with.
    pub fn cookie(&self) -> usize {
        // SAFETY: the queue is live: `self` owns it, and destroys it only when it is dropped.
        unsafe { self.raw.as_ref().srq_context as usize }
    }

    /// Arms the limit event: one `IBV_EVENT_SRQ_LIMIT_REACHED` when fewer than `limit` requests are left.
    ///
    /// # Errors
    /// The errno of `ibv_modify_srq`.
    pub fn set_limit(&self, limit: u32) -> io::Result<()> {
        let mut attr = ibv_srq_attr { max_wr: 0, max_sge: 0, srq_limit: limit };
        self.modify(&mut attr, IBV_SRQ_LIMIT)
    }

    /// Changes the depth to `max_wr` requests. Not every device supports it.
    ///
    /// # Errors
    /// The errno of `ibv_modify_srq`.
    pub fn resize(&self, max_wr: u32) -> io::Result<()> {
        let mut attr = ibv_srq_attr { max_wr, max_sge: 0, srq_limit: 0 };
        self.modify(&mut attr, IBV_SRQ_MAX_WR)
    }

    fn modify(&self, attr: &mut ibv_srq_attr, mask: ibv_srq_attr_mask) -> io::Result<()> {
        // SAFETY: the queue is live: `self` owns it, and destroys it only when it is dropped.
        errno::verbs(self.pd.context(), "ibv_modify_srq", unsafe {
            (self.pd.context().library().ibv_modify_srq)(self.as_ptr(), attr, mask as i32)
        })
    }

    /// The attributes: depth, SGEs and limit. Not every device reports them.
    ///
    /// # Errors
    /// The errno of `ibv_query_srq`.
    pub fn query(&self) -> io::Result<ibv_srq_attr> {
        let mut attr = zeroed();
        // SAFETY: the queue is live, `attr` writable.
        errno::verbs(self.pd.context(), "ibv_query_srq", unsafe {
            (self.pd.context().library().ibv_query_srq)(self.as_ptr(), &mut attr)
        })?;
        Ok(attr)
    }
}

impl Drop for SharedReceiveQueue {
    fn drop(&mut self) {
        // SAFETY: every queue pair on it holds it, so none is left. This waits until its events are acknowledged.
        unsafe { (self.pd.context().library().ibv_destroy_srq)(self.as_ptr()) };
    }
}
