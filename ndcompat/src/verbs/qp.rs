//! Reliable connected queue pairs.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::{Arc, PoisonError, RwLock};

use super::bindings::*;
use super::{CompletionQueue, Library, ProtectionDomain, SharedReceiveQueue, errno};

/// The parameters of a queue pair.
pub struct QueuePairConfig {
    /// The protection domain.
    pub pd: Arc<ProtectionDomain>,
    /// The completion queue of initiator requests.
    pub send_cq: Arc<CompletionQueue>,
    /// The completion queue of receive requests.
    pub recv_cq: Arc<CompletionQueue>,
    /// The shared receive queue, instead of a receive queue of its own.
    pub srq: Option<Arc<SharedReceiveQueue>>,
    /// The limits of requests, SGEs and inline bytes.
    pub cap: ibv_qp_cap,
    /// The `qp_context` that its asynchronous events carry.
    pub cookie: usize,
}

/// A reliable connected queue pair.
pub struct QueuePair {
    raw: NonNull<ibv_qp>,
    number: u32,
    /// False once it is destroyed.
    live: RwLock<bool>,
    cap: ibv_qp_cap,
    parents: QueuePairConfig,
}

// SAFETY: verbs calls on a queue pair are thread-safe.
unsafe impl Send for QueuePair {}
// SAFETY: verbs lets several threads use a queue pair at once; destroying it early takes a lock.
unsafe impl Sync for QueuePair {}

impl QueuePair {
    /// Creates a queue pair. Only work requests with `IBV_SEND_SIGNALED` report success (`sq_sig_all` is 0).
    ///
    /// # Errors
    /// The errno of `ibv_create_qp`.
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
        let raw = errno::created(config.pd.context(), "ibv_create_qp", unsafe {
            (config.pd.context().library().ibv_create_qp)(config.pd.as_ptr(), &mut init)
        })?;
        // SAFETY: created by the call above.
        let number = unsafe { raw.as_ref().qp_num };
        Ok(QueuePair { raw, number, live: RwLock::new(true), cap: init.cap, parents: config })
    }

    /// The C object.
    #[inline(always)]
    pub fn as_ptr(&self) -> *mut ibv_qp {
        self.raw.as_ptr()
    }

    fn library(&self) -> &'static Library {
        self.parents.pd.context().library()
    }

    /// The queue pair number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The limits that the device has granted: at least those asked for.
    pub fn cap(&self) -> &ibv_qp_cap {
        &self.cap
    }

    /// The parameters that it was created with.
    pub fn config(&self) -> &QueuePairConfig {
        &self.parents
    }

    /// Calls `with` while the queue pair cannot be destroyed. `None` if it is destroyed, or about to be. Does not wait.
    pub fn if_live<R>(&self, with: impl FnOnce() -> R) -> Option<R> {
        self.live.try_read().ok().filter(|live| **live).map(|_live| with())
    }

    /// Calls `with` while the queue pair cannot be destroyed. `EINVAL` if it is destroyed, as for a wrong state.
    fn live<R>(&self, with: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        let live = self.live.read().unwrap_or_else(PoisonError::into_inner);
        if *live { with() } else { Err(io::Error::from_raw_os_error(libc::EINVAL)) }
    }

    /// Changes the attributes that `mask` (`IBV_QP_*`) names.
    ///
    /// # Errors
    /// The errno of `ibv_modify_qp`; `EINVAL` once the queue pair is destroyed.
    pub fn modify(&self, attr: &ibv_qp_attr, mask: ibv_qp_attr_mask) -> io::Result<()> {
        let (mut attr, modify) = (*attr, self.library().ibv_modify_qp);
        self.live(|| {
            // SAFETY: the queue pair is live: it is destroyed under the lock that is held here.
            let rc = unsafe { modify(self.as_ptr(), &mut attr, mask as i32) };
            errno::verbs(self.parents.pd.context(), "ibv_modify_qp", rc)
        })
    }

    /// Moves a new queue pair to INIT, where it takes receive requests, with this port, the partition of this index in its
    /// table (on InfiniBand; 0 else), and these access flags (`IBV_ACCESS_*`).
    ///
    /// # Errors
    /// As [`QueuePair::modify`].
    pub fn to_init(&self, port: u8, partition: u16, access: ibv_access_flags) -> io::Result<()> {
        let mut attr = empty_attr();
        attr.qp_state = IBV_QPS_INIT;
        attr.port_num = port;
        attr.qp_access_flags = access;
        attr.pkey_index = partition;
        self.modify(&attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
    }

    /// Moves the queue pair to ERR, which flushes its requests.
    ///
    /// # Errors
    /// As [`QueuePair::modify`].
    pub fn to_error(&self) -> io::Result<()> {
        let mut attr = empty_attr();
        attr.qp_state = IBV_QPS_ERR;
        self.modify(&attr, IBV_QP_STATE)
    }

    /// Before it connects: where the device can, messages that meet no receive wait for one until [`set_ready`](Self::set_ready).
    pub fn wait_until_ready(&self) {
        if self.library().is_emulator() {
            // SAFETY: the queue pair is live: it is destroyed under the lock that is held here.
            self.if_live(|| unsafe { softiwarp::verbs::wait_until_ready(self.as_ptr()) });
        }
    }

    /// The program is ready for messages.
    pub fn set_ready(&self) {
        if self.library().is_emulator() {
            // SAFETY: the queue pair is live: it is destroyed under the lock that is held here.
            self.if_live(|| unsafe { softiwarp::verbs::set_ready(self.as_ptr()) });
        }
    }

    /// Destroys the queue pair now, before it is dropped. Its completions so far stay in the queue on some devices, and go with it on
    /// others, as on mlx5; there are no others.
    ///
    /// # Errors
    /// The errno of `ibv_destroy_qp`.
    ///
    /// # Safety
    /// The pointer of [`as_ptr`](Self::as_ptr) is not used during the call, nor afterwards.
    pub unsafe fn destroy(&self) -> io::Result<()> {
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        if *live {
            // SAFETY: the queue pair is live; the caller says that the pointer is not used, and the lock excludes other
            // calls. This waits until its events are acknowledged.
            errno::verbs(self.parents.pd.context(), "ibv_destroy_qp", unsafe {
                (self.library().ibv_destroy_qp)(self.as_ptr())
            })?;
            *live = false;
        }
        Ok(())
    }

    /// The state. mana's driver does not tell it, and keeps it in user space.
    ///
    /// # Errors
    /// As [`QueuePair::query`].
    pub fn state(&self) -> io::Result<ibv_qp_state> {
        match self.query(IBV_QP_STATE) {
            // SAFETY: the queue pair is live.
            Err(error) if is_unknown(&error) => self.live(|| Ok(unsafe { (*self.as_ptr()).state })),
            asked => Ok(asked?.qp_state),
        }
    }

    /// The attributes that `mask` (`IBV_QP_*`) names. siw does not report the state.
    ///
    /// # Errors
    /// The errno of `ibv_query_qp`; `EINVAL` once the queue pair is destroyed.
    pub fn query(&self, mask: ibv_qp_attr_mask) -> io::Result<ibv_qp_attr> {
        let (mut attr, mut init) = (zeroed(), zeroed());
        self.live(|| {
            // SAFETY: the queue pair is live, both results are writable.
            errno::verbs(self.parents.pd.context(), "ibv_query_qp", unsafe {
                (self.library().ibv_query_qp)(self.as_ptr(), &mut attr, mask as i32, &mut init)
            })?;
            Ok(attr)
        })
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        // SAFETY: not used after this. A failure cannot be reported from here.
        let _ = unsafe { self.destroy() };
    }
}

/// Whether the driver does not have what it was asked for.
fn is_unknown(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS))
}

/// Attributes to fill in and pass to [`QueuePair::modify`].
pub(super) fn empty_attr() -> ibv_qp_attr {
    zeroed()
}
