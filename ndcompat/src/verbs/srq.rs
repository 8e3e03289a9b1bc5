//! Shared receive queues.

use std::io;
use std::mem::MaybeUninit;
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
// SAFETY: as above.
unsafe impl Sync for SharedReceiveQueue {}

impl SharedReceiveQueue {
    /// Creates a queue for `max_wr` requests of `max_sge` pieces whose events carry `cookie`.
    pub fn create(
        pd: &Arc<ProtectionDomain>,
        max_wr: u32,
        max_sge: u32,
        cookie: usize,
    ) -> io::Result<SharedReceiveQueue> {
        let attr = ibv_srq_attr { max_wr, max_sge, srq_limit: 0 };
        let mut init = ibv_srq_init_attr { srq_context: cookie as *mut _, attr };
        // SAFETY: the domain is live; the cookie is not dereferenced.
        let raw = errno::created(unsafe { ibv_create_srq(pd.as_ptr(), &mut init) })?;
        Ok(SharedReceiveQueue { raw, pd: Arc::clone(pd) })
    }

    /// The C object.
    #[inline(always)]
    pub fn as_ptr(&self) -> *mut ibv_srq {
        self.raw.as_ptr()
    }

    /// The domain that it is created in.
    pub fn pd(&self) -> &Arc<ProtectionDomain> {
        &self.pd
    }

    /// What the queue was created with.
    pub fn cookie(&self) -> usize {
        // SAFETY: the queue is live.
        unsafe { self.raw.as_ref().srq_context as usize }
    }

    /// Asks for one `IBV_EVENT_SRQ_LIMIT_REACHED` when fewer than `limit` requests are left.
    pub fn set_limit(&self, limit: u32) -> io::Result<()> {
        let mut attr = ibv_srq_attr { max_wr: 0, max_sge: 0, srq_limit: limit };
        self.modify(&mut attr, IBV_SRQ_LIMIT)
    }

    /// Gives the queue room for `max_wr` requests; not every device can.
    pub fn resize(&self, max_wr: u32) -> io::Result<()> {
        let mut attr = ibv_srq_attr { max_wr, max_sge: 0, srq_limit: 0 };
        self.modify(&mut attr, IBV_SRQ_MAX_WR)
    }

    fn modify(&self, attr: &mut ibv_srq_attr, mask: ibv_srq_attr_mask) -> io::Result<()> {
        // SAFETY: the queue is live.
        errno::verbs(unsafe { ibv_modify_srq(self.as_ptr(), attr, mask as i32) })
    }

    /// Room, pieces and limit; not every device can tell.
    pub fn query(&self) -> io::Result<ibv_srq_attr> {
        let mut attr = MaybeUninit::zeroed();
        // SAFETY: the queue is live, `attr` writable; all bits zero are a valid value.
        unsafe {
            errno::verbs(ibv_query_srq(self.as_ptr(), attr.as_mut_ptr()))?;
            Ok(attr.assume_init())
        }
    }
}

impl Drop for SharedReceiveQueue {
    fn drop(&mut self) {
        // SAFETY: every queue pair on it holds it, so none is left. This waits until its events are acknowledged.
        unsafe { ibv_destroy_srq(self.as_ptr()) };
    }
}
