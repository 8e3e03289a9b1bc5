//! Reliable connected queue pairs.

use std::io;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::{Arc, PoisonError, RwLock};

use super::bindings::*;
use super::{CompletionQueue, ProtectionDomain, SharedReceiveQueue, errno};

/// What a queue pair is created with.
pub struct QueuePairConfig {
    /// The domain of its memory.
    pub pd: Arc<ProtectionDomain>,
    /// Where its initiator requests complete.
    pub send_cq: Arc<CompletionQueue>,
    /// Where its receive requests complete.
    pub recv_cq: Arc<CompletionQueue>,
    /// Where its receive requests come from, instead of a queue of its own.
    pub srq: Option<Arc<SharedReceiveQueue>>,
    /// How many requests, pieces and inline bytes.
    pub cap: ibv_qp_cap,
    /// Carried by its asynchronous events, as `qp_context`.
    pub cookie: usize,
}

/// A reliable connected queue pair.
pub struct QueuePair {
    raw: NonNull<ibv_qp>,
    number: u32,
    /// Whether the device still has it.
    live: RwLock<bool>,
    cap: ibv_qp_cap,
    parents: QueuePairConfig,
}

// SAFETY: verbs calls on a queue pair are thread-safe.
unsafe impl Send for QueuePair {}
// SAFETY: as above.
unsafe impl Sync for QueuePair {}

impl QueuePair {
    /// Creates a queue pair, whose work requests signal their completion only when they ask for it.
    pub fn create(config: QueuePairConfig) -> io::Result<QueuePair> {
        let mut init = ibv_qp_init_attr {
            qp_context: config.cookie as *mut _,
            send_cq: config.send_cq.as_ptr(),
            recv_cq: config.recv_cq.as_ptr(),
            srq: config.srq.as_ref().map_or(ptr::null_mut(), |srq| srq.as_ptr()),
            cap: config.cap,
            qp_type: IBV_QPT_RC,
            sq_sig_all: 0,
        };
        // SAFETY: the objects named are live; the cookie is not dereferenced.
        let raw = errno::created(unsafe { ibv_create_qp(config.pd.as_ptr(), &mut init) })?;
        // SAFETY: made by the call above.
        let number = unsafe { raw.as_ref().qp_num };
        Ok(QueuePair { raw, number, live: RwLock::new(true), cap: init.cap, parents: config })
    }

    /// The C object.
    #[inline(always)]
    pub fn as_ptr(&self) -> *mut ibv_qp {
        self.raw.as_ptr()
    }

    /// The number that peers know it by.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// What the device granted: at least what was asked for.
    pub fn cap(&self) -> &ibv_qp_cap {
        &self.cap
    }

    /// What it was created with.
    pub fn config(&self) -> &QueuePairConfig {
        &self.parents
    }

    /// Does something while the queue pair cannot be destroyed, unless it is, or is about to be. Waits for nobody.
    pub fn if_live<R>(&self, with: impl FnOnce() -> R) -> Option<R> {
        self.live.try_read().ok().filter(|live| **live).map(|_live| with())
    }

    /// Does something with the queue pair, unless it is destroyed: then `EINVAL`, as in a state that does not allow it.
    fn live<R>(&self, with: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        if *live { with() } else { Err(io::Error::from_raw_os_error(libc::EINVAL)) }
    }

    /// Changes the attributes that `mask` (`IBV_QP_*`) names.
    pub fn modify(&self, attr: &ibv_qp_attr, mask: ibv_qp_attr_mask) -> io::Result<()> {
        let mut attr = *attr;
        // SAFETY: the queue pair is live.
        self.live(|| errno::verbs(unsafe { ibv_modify_qp(self.as_ptr(), &mut attr, mask as i32) }))
    }

    /// Moves a fresh queue pair to INIT, where it takes receive requests, on `port`, letting peers do what `access`
    /// (`IBV_ACCESS_*`) says.
    pub fn to_init(&self, port: u8, access: ibv_access_flags) -> io::Result<()> {
        let mut attr = empty_attr();
        attr.qp_state = IBV_QPS_INIT;
        attr.port_num = port;
        attr.qp_access_flags = access;
        // Partition keys play no part in RoCE and iWARP; the first is the default partition on InfiniBand.
        self.modify(&attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
    }

    /// Moves the queue pair to ERR, which flushes its requests.
    pub fn to_error(&self) -> io::Result<()> {
        let mut attr = empty_attr();
        attr.qp_state = IBV_QPS_ERR;
        self.modify(&attr, IBV_QP_STATE)
    }

    /// Destroys the queue pair now, not when it is dropped. Its completions so far stay; no others come.
    ///
    /// # Safety
    /// Nobody uses [`as_ptr`](Self::as_ptr) meanwhile, nor afterwards.
    pub unsafe fn destroy(&self) -> io::Result<()> {
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        if *live {
            // SAFETY: the queue pair is live, and its users are the caller's promise, or kept away by the lock. This waits
            // until its events are acknowledged.
            errno::verbs(unsafe { ibv_destroy_qp(self.as_ptr()) })?;
            *live = false;
        }
        Ok(())
    }

    /// The attributes that `mask` (`IBV_QP_*`) names. siw says nothing of the state.
    pub fn query(&self, mask: ibv_qp_attr_mask) -> io::Result<ibv_qp_attr> {
        let (mut attr, mut init) = (MaybeUninit::zeroed(), MaybeUninit::zeroed());
        // SAFETY: the queue pair is live, both results are writable; all bits zero are a valid value.
        self.live(|| unsafe {
            errno::verbs(ibv_query_qp(self.as_ptr(), attr.as_mut_ptr(), mask as i32, init.as_mut_ptr()))?;
            Ok(attr.assume_init())
        })
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        // SAFETY: not used again. Should the device not let go of it, there is nobody to be told.
        let _ = unsafe { self.destroy() };
    }
}

/// Attributes to fill in and pass to [`QueuePair::modify`].
pub(super) fn empty_attr() -> ibv_qp_attr {
    // SAFETY: all bits zero are a valid value of this structure of integers.
    unsafe { MaybeUninit::zeroed().assume_init() }
}
