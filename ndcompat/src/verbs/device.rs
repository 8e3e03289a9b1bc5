//! RDMA devices, as librdmacm has opened them.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use super::bindings::*;
use super::{Id, errno, ops};

/// The wire protocol of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// InfiniBand or RoCE.
    Ib,
    /// iWARP.
    Iwarp,
    /// Another, whose number this is.
    Other(i32),
}

/// librdmacm's list of its contexts, which stay open while it lives.
struct DeviceList {
    contexts: NonNull<*mut ibv_context>,
    count: usize,
}

// SAFETY: the list is read only, and rdma_free_devices may be called from any thread.
unsafe impl Send for DeviceList {}
// SAFETY: as above.
unsafe impl Sync for DeviceList {}

impl DeviceList {
    fn open() -> Option<DeviceList> {
        let mut count = 0;
        // SAFETY: `count` is writable.
        let contexts = unsafe { rdma_get_devices(&mut count) };
        NonNull::new(contexts).map(|contexts| DeviceList { contexts, count: count as usize })
    }

    fn contexts(&self) -> &[*mut ibv_context] {
        // SAFETY: librdmacm returned an array of that many contexts.
        unsafe { slice::from_raw_parts(self.contexts.as_ptr(), self.count) }
    }
}

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: the list is from rdma_get_devices; contexts that use it are gone.
        unsafe { rdma_free_devices(self.contexts.as_ptr()) };
    }
}

/// An opened device.
///
/// It is librdmacm's own context, the one that its ids name, so that queue pairs, protection domains and ids agree.
pub struct Context {
    raw: NonNull<ibv_context>,
    /// What librdmacm keeps it open for: a list of all devices, or one id.
    _keeper: Arc<dyn Send + Sync>,
}

// SAFETY: verbs calls on a context are thread-safe.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Opens every device; none on a machine without RDMA.
    pub fn all() -> Vec<Arc<Context>> {
        // librdmacm gives no list when there is no device, no kernel module or no permission, and no way to tell.
        let Some(list) = DeviceList::open().map(Arc::new) else { return Vec::new() };
        let contexts = list.contexts().iter().filter_map(|&raw| NonNull::new(raw));
        contexts.map(|raw| Arc::new(Context { raw, _keeper: list.clone() })).collect()
    }

    /// Opens the device that `raw`, from an id, names.
    pub fn from_raw(raw: *mut ibv_context) -> Option<Arc<Context>> {
        Context::all().into_iter().find(|context| context.as_ptr() == raw)
    }

    /// The device that `id` is bound to, if it is. Such a context keeps no other device open.
    pub fn of(id: &Arc<Id>) -> Option<Arc<Context>> {
        let raw = NonNull::new(id.verbs())?;
        Some(Arc::new(Context { raw, _keeper: id.clone() }))
    }

    /// The C object.
    pub fn as_ptr(&self) -> *mut ibv_context {
        self.raw.as_ptr()
    }

    fn device(&self) -> *mut ibv_device {
        // SAFETY: the context is live.
        unsafe { self.raw.as_ref().device }
    }

    /// The name of the device, such as `mlx5_0`.
    pub fn name(&self) -> String {
        // SAFETY: the device of a live context is live, its name a C string.
        let name = unsafe { CStr::from_ptr(ibv_get_device_name(self.device())) };
        name.to_string_lossy().into_owned()
    }

    /// The GUID of the node, in host order.
    pub fn node_guid(&self) -> u64 {
        // SAFETY: the device of a live context is live.
        u64::from_be(unsafe { ibv_get_device_guid(self.device()) })
    }

    /// The wire protocol.
    pub fn transport(&self) -> Transport {
        // SAFETY: the device of a live context is live.
        match unsafe { (*self.device()).transport_type } {
            IBV_TRANSPORT_IB => Transport::Ib,
            IBV_TRANSPORT_IWARP => Transport::Iwarp,
            other => Transport::Other(other),
        }
    }

    /// The attributes and limits of the device.
    pub fn device_attr(&self) -> io::Result<ibv_device_attr> {
        let mut attr = MaybeUninit::zeroed();
        // SAFETY: the context is live, `attr` writable; all bits zero are a valid value.
        unsafe {
            errno::verbs(ibv_query_device(self.as_ptr(), attr.as_mut_ptr()))?;
            Ok(attr.assume_init())
        }
    }

    /// The attributes of a port, counted from 1.
    pub fn port_attr(&self, port: u8) -> io::Result<ibv_port_attr> {
        let mut attr = MaybeUninit::zeroed();
        // SAFETY: the context is live, `attr` writable; all bits zero are a valid value.
        unsafe {
            errno::verbs(ops::query_port(self.as_ptr(), port, attr.as_mut_ptr()))?;
            Ok(attr.assume_init())
        }
    }

    /// The descriptor that is readable when an asynchronous event waits.
    pub fn async_fd(&self) -> RawFd {
        // SAFETY: the context is live.
        unsafe { self.raw.as_ref().async_fd }
    }

    /// Makes [`async_event`](Self::async_event) return at once when there is none.
    ///
    /// The context is shared with whoever else uses librdmacm in the process, so only the reader of its events asks.
    pub fn set_async_nonblocking(&self) -> io::Result<()> {
        errno::set_nonblocking(self.async_fd())
    }

    /// Takes the next asynchronous event.
    pub fn async_event(self: &Arc<Context>) -> io::Result<Option<AsyncEvent>> {
        let mut raw = MaybeUninit::<ibv_async_event>::zeroed();
        // SAFETY: the context is live, `raw` writable.
        let rc = unsafe { ibv_get_async_event(self.as_ptr(), raw.as_mut_ptr()) };
        errno::found(errno::posix(rc).map(|()| AsyncEvent {
            // SAFETY: the call filled it; all bits zero were a valid value before.
            raw: unsafe { raw.assume_init() },
            _context: Arc::clone(self),
        }))
    }
}

/// An asynchronous event, acknowledged when dropped.
///
/// Destroying the object that it names waits for that; until then the pointers stay valid.
pub struct AsyncEvent {
    raw: ibv_async_event,
    _context: Arc<Context>,
}

// SAFETY: an event may be acknowledged by any thread.
unsafe impl Send for AsyncEvent {}

impl AsyncEvent {
    /// What happened: `IBV_EVENT_*`.
    pub fn kind(&self) -> ibv_event_type {
        self.raw.event_type
    }

    /// The queue pair that it happened to.
    pub fn qp(&self) -> Option<*mut ibv_qp> {
        match self.kind() {
            IBV_EVENT_QP_FATAL
            | IBV_EVENT_QP_REQ_ERR
            | IBV_EVENT_QP_ACCESS_ERR
            | IBV_EVENT_COMM_EST
            | IBV_EVENT_SQ_DRAINED
            | IBV_EVENT_PATH_MIG
            | IBV_EVENT_PATH_MIG_ERR
            | IBV_EVENT_QP_LAST_WQE_REACHED => {
                // SAFETY: events of these kinds carry a queue pair.
                Some(unsafe { self.raw.element.qp })
            }
            _ => None,
        }
    }

    /// The completion queue that it happened to.
    pub fn cq(&self) -> Option<*mut ibv_cq> {
        match self.kind() {
            // SAFETY: an event of this kind carries a completion queue.
            IBV_EVENT_CQ_ERR => Some(unsafe { self.raw.element.cq }),
            _ => None,
        }
    }

    /// The shared receive queue that it happened to.
    pub fn srq(&self) -> Option<*mut ibv_srq> {
        match self.kind() {
            // SAFETY: events of these kinds carry a shared receive queue.
            IBV_EVENT_SRQ_ERR | IBV_EVENT_SRQ_LIMIT_REACHED => Some(unsafe { self.raw.element.srq }),
            _ => None,
        }
    }
}

impl Drop for AsyncEvent {
    fn drop(&mut self) {
        // SAFETY: the event is from ibv_get_async_event and acknowledged once.
        unsafe { ibv_ack_async_event(&mut self.raw) };
    }
}
