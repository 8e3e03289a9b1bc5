//! RDMA devices, as opened by librdmacm; in a forked child, opened again.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};

use super::bindings::*;
use super::{EMULATOR, Library, RDMA_CORE, descriptor, emulator, errno, ops};

/// The wire protocol of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// InfiniBand or RoCE.
    Ib,
    /// iWARP.
    Iwarp,
    /// Another, by its number.
    Other(i32),
}

/// A list of the contexts of a library, which stay open while it lives.
struct DeviceList {
    library: &'static Library,
    contexts: NonNull<*mut ibv_context>,
    count: usize,
}

// SAFETY: the list is read only, and rdma_free_devices may be called from any thread.
unsafe impl Send for DeviceList {}
// SAFETY: nothing writes to the list until it is freed, when this is dropped.
unsafe impl Sync for DeviceList {}

impl DeviceList {
    fn open(library: &'static Library) -> Option<DeviceList> {
        count_forks();
        let mut count = 0;
        // SAFETY: `count` is writable.
        let contexts = unsafe { (library.rdma_get_devices)(&mut count) };
        NonNull::new(contexts).map(|contexts| DeviceList { library, contexts, count: count as usize })
    }

    fn contexts(&self) -> &[*mut ibv_context] {
        // SAFETY: librdmacm returned an array of that many contexts.
        unsafe { slice::from_raw_parts(self.contexts.as_ptr(), self.count) }
    }
}

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: the list is from rdma_get_devices; contexts that use it are gone.
        unsafe { (self.library.rdma_free_devices)(self.contexts.as_ptr()) };
    }
}

/// How many descriptors librdmacm uses at once to find the devices or to open one, and some to spare.
const DESCRIPTORS_TO_OPEN: usize = 4;

/// Whether the process may have enough descriptors more to open a device.
///
/// # Errors
/// `EMFILE` or `ENFILE` if not.
fn descriptors_left() -> io::Result<()> {
    let opened: io::Result<Vec<_>> = (0..DESCRIPTORS_TO_OPEN).map(|_| descriptor::eventfd()).collect();
    opened.map(drop)
}

/// How many forks ago devices were opened first, in this process or an ancestor.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Counts forks in [`FORKS`].
fn count_forks() {
    extern "C" fn child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static ONCE: Once = Once::new();
    // SAFETY: the function stays loaded, as this library is never unloaded.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(child));
    });
}

/// A context that this process has opened, for all adapters of the device.
///
/// A context that librdmacm has opened before a fork is the parent's: the kernel refuses writes of the child to it, and
/// either process gets its events.
struct Reopened {
    library: &'static Library,
    raw: NonNull<ibv_context>,
    /// librdmacm's context of the device.
    inherited: NonNull<ibv_context>,
    /// The value of `FORKS` when it was opened.
    forks: u32,
}

// SAFETY: verbs calls on a context are thread-safe.
unsafe impl Send for Reopened {}
// SAFETY: verbs lets several threads use a context at once.
unsafe impl Sync for Reopened {}

impl Reopened {
    /// The context of this process for the device of `inherited`, which stays open meanwhile.
    fn of(
        library: &'static Library,
        inherited: NonNull<ibv_context>,
        forks: u32,
    ) -> io::Result<Arc<Reopened>> {
        static ALL: Mutex<Vec<Weak<Reopened>>> = Mutex::new(Vec::new());
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.strong_count() > 0);
        let same = |known: &Arc<Reopened>| (known.inherited, known.forks) == (inherited, forks);
        if let Some(known) = all.iter().filter_map(Weak::upgrade).find(same) {
            return Ok(known);
        }
        // SAFETY: an inherited context is never closed.
        let device = unsafe { inherited.as_ref() }.device;
        // SAFETY: the device of a context lives at least as long as the context.
        let raw = errno::created(&(), "ibv_open_device", unsafe { (library.ibv_open_device)(device) })?;
        let new = Arc::new(Reopened { library, raw, inherited, forks });
        all.push(Arc::downgrade(&new));
        Ok(new)
    }
}

impl Drop for Reopened {
    fn drop(&mut self) {
        // SAFETY: opened by `of`; objects created on it hold it.
        unsafe { (self.library.ibv_close_device)(self.raw.as_ptr()) };
    }
}

/// An opened device.
///
/// It is the context of librdmacm, the one that ids refer to, except in a forked child, where the device is opened again.
pub struct Context {
    library: &'static Library,
    raw: NonNull<ibv_context>,
    /// The context that ids refer to.
    named: NonNull<ibv_context>,
    /// The context of a forked child. Closed before librdmacm's.
    _own: Option<Arc<Reopened>>,
    /// A list of all devices or an id, which keeps librdmacm's context open.
    _keeper: Arc<dyn Send + Sync>,
}

// SAFETY: verbs calls on a context are thread-safe.
unsafe impl Send for Context {}
// SAFETY: verbs lets several threads use a context at once.
unsafe impl Sync for Context {}

impl Context {
    /// All devices: those of rdma-core, then the emulator if it is enabled.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE` or `ENOMEM` if that is the reason why there is none.
    pub fn all() -> io::Result<Vec<Arc<Context>>> {
        let mut all = Context::of(&RDMA_CORE)?;
        if emulator::is_enabled(!all.is_empty()) {
            all.extend(Context::of(&EMULATOR)?);
        }
        Ok(all)
    }

    /// The devices of a library; none on a machine without RDMA.
    fn of(library: &'static Library) -> io::Result<Vec<Arc<Context>>> {
        errno::clear();
        let list = DeviceList::open(library).map(Arc::new);
        // librdmacm returns no list without a device, a kernel module or permission, and leaves out devices that cannot be
        // opened. Only errno tells whether the process has run out of descriptors or memory.
        let error = io::Error::last_os_error();
        let Some(list) = list.filter(|list| !list.contexts().is_empty()) else {
            return match error.raw_os_error() {
                Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => Err(error),
                // librdmacm replaces the errno of a device that it cannot open.
                _ => descriptors_left().map(|()| Vec::new()),
            };
        };
        let contexts = list.contexts().iter().filter_map(|&raw| NonNull::new(raw));
        let new = |raw| Arc::new(Context { library, raw, named: raw, _own: None, _keeper: list.clone() });
        Ok(contexts.map(new).collect())
    }

    /// The library of the device.
    pub fn library(&self) -> &'static Library {
        self.library
    }

    /// The device of `raw`, a context from an id.
    pub fn from_raw(raw: *mut ibv_context) -> Option<Arc<Context>> {
        Context::all().ok()?.into_iter().find(|context| context.is_named(raw))
    }

    /// The device of `raw`, which is open as long as `keeper` lives; `None` for null.
    ///
    /// # Errors
    /// The errno of `ibv_open_device`, in a process that was forked.
    pub(super) fn kept_open_by(
        library: &'static Library,
        raw: *mut ibv_context,
        keeper: Arc<dyn Send + Sync>,
    ) -> io::Result<Option<Arc<Context>>> {
        let Some(named) = NonNull::new(raw) else { return Ok(None) };
        let own = match FORKS.load(Ordering::Relaxed) {
            0 => None,
            forks => Some(Reopened::of(library, named, forks)?),
        };
        let raw = own.as_ref().map_or(named, |own| own.raw);
        Ok(Some(Arc::new(Context { library, raw, named, _own: own, _keeper: keeper })))
    }

    /// Whether `verbs`, from an id, is this device.
    pub fn is_named(&self, verbs: *mut ibv_context) -> bool {
        self.named.as_ptr() == verbs
    }

    /// Whether both are the same device.
    pub fn is_same_device(&self, other: &Context) -> bool {
        self.named == other.named
    }

    /// The C object.
    pub fn as_ptr(&self) -> *mut ibv_context {
        self.raw.as_ptr()
    }

    fn device(&self) -> *mut ibv_device {
        // SAFETY: the context is live: it is closed only when its owner, which is borrowed here, is dropped.
        unsafe { self.raw.as_ref().device }
    }

    /// The name of the device, such as `mlx5_0`.
    pub fn name(&self) -> String {
        // SAFETY: the context is live: it is closed only when its owner, which is borrowed here, is dropped.
        unsafe { name_of(self.library, self.as_ptr()) }
    }

    /// The GUID of the node, in host order.
    pub fn node_guid(&self) -> u64 {
        // SAFETY: the device of a live context is live.
        u64::from_be(unsafe { (self.library.ibv_get_device_guid)(self.device()) })
    }

    /// The id of the device's adapter, where there are `all` these devices: the GUID of its node. Virtual functions may have none, or one in
    /// common, and so may soft-RoCE over VLANs: then a hash of the device's name (FNV-1a), which another process gets, too.
    pub fn adapter_id(&self, all: &[Arc<Context>]) -> u64 {
        let guid = self.node_guid();
        let has_too = |other: &Arc<Context>| !other.is_same_device(self) && other.node_guid() == guid;
        if guid != 0 && !all.iter().any(has_too) {
            return guid;
        }
        let mix = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        self.name().bytes().fold(0xcbf2_9ce4_8422_2325, mix)
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

    /// How many interrupts there are for completions: one at least.
    pub fn completion_vectors(&self) -> u32 {
        // SAFETY: the context is live: it is closed only when its owner, which is borrowed here, is dropped.
        unsafe { self.raw.as_ref() }.num_comp_vectors.max(1) as u32
    }

    /// The attributes and limits of the device.
    ///
    /// # Errors
    /// The errno of `ibv_query_device`.
    pub fn device_attr(&self) -> io::Result<ibv_device_attr> {
        let mut attr = zeroed();
        // SAFETY: the context is live, `attr` writable.
        errno::verbs(self, "ibv_query_device", unsafe {
            (self.library.ibv_query_device)(self.as_ptr(), &mut attr)
        })?;
        Ok(attr)
    }

    /// The attributes of a port, counted from 1.
    ///
    /// # Errors
    /// The errno of `ibv_query_port`.
    pub fn port_attr(&self, port: u8) -> io::Result<ibv_port_attr> {
        let mut attr = zeroed();
        // SAFETY: the context is live, `attr` writable.
        errno::verbs(self, "ibv_query_port", unsafe {
            ops::query_port(self.library, self.as_ptr(), port, &mut attr)
        })?;
        Ok(attr)
    }

    /// The descriptor that is readable when an asynchronous event waits.
    pub fn async_fd(&self) -> RawFd {
        // SAFETY: the context is live: it is closed only when its owner, which is borrowed here, is dropped.
        unsafe { self.raw.as_ref().async_fd }
    }

    /// Makes [`async_event`](Self::async_event) non-blocking.
    ///
    /// Affects all users of librdmacm in the process, as they share the context: only for the reader of its events.
    ///
    /// # Errors
    /// The errno of `fcntl`.
    pub fn set_async_nonblocking(&self) -> io::Result<()> {
        errno::set_nonblocking(self.async_fd())
    }

    /// Takes the next asynchronous event.
    ///
    /// # Errors
    /// The errno of `ibv_get_async_event`; having none is not an error.
    pub fn async_event(self: &Arc<Context>) -> io::Result<Option<AsyncEvent>> {
        let mut raw = MaybeUninit::<ibv_async_event>::zeroed();
        // SAFETY: the context is live, `raw` writable.
        let rc = unsafe { (self.library.ibv_get_async_event)(self.as_ptr(), raw.as_mut_ptr()) };
        errno::found(errno::posix(self, "ibv_get_async_event", rc).map(|()| AsyncEvent {
            // SAFETY: the call has filled it; fields that it has left out are zero, which is valid.
            raw: unsafe { raw.assume_init() },
            context: Arc::clone(self),
        }))
    }
}

/// The name of the device of a context.
///
/// # Safety
/// The context is live, and of this library.
pub(super) unsafe fn name_of(library: &Library, context: *mut ibv_context) -> String {
    // SAFETY: the context is live, as the caller says.
    let device = unsafe { (*context).device };
    // SAFETY: the device of a live context is live.
    let name = unsafe { (library.ibv_get_device_name)(device) };
    // SAFETY: the name of a device is a C string, which lives as long as the device.
    let name = unsafe { CStr::from_ptr(name) };
    name.to_string_lossy().into_owned()
}

impl errno::Subject for Context {
    fn device_name(&self) -> Option<String> {
        Some(self.name())
    }
}

/// An asynchronous event, acknowledged when dropped.
///
/// Destroying its object waits for the acknowledgement; until then, its pointers are valid.
pub struct AsyncEvent {
    raw: ibv_async_event,
    context: Arc<Context>,
}

// SAFETY: an event may be acknowledged by any thread.
unsafe impl Send for AsyncEvent {}

impl AsyncEvent {
    /// The kind of the event: `IBV_EVENT_*`.
    pub fn kind(&self) -> ibv_event_type {
        self.raw.event_type
    }

    /// The queue pair of the event.
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

    /// The completion queue of the event.
    pub fn cq(&self) -> Option<*mut ibv_cq> {
        match self.kind() {
            // SAFETY: an event of this kind carries a completion queue.
            IBV_EVENT_CQ_ERR => Some(unsafe { self.raw.element.cq }),
            _ => None,
        }
    }

    /// The shared receive queue of the event.
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
        unsafe { (self.context.library.ibv_ack_async_event)(&mut self.raw) };
    }
}
