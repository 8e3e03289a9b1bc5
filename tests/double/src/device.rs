//! The device: attributes, addresses, asynchronous events, and the lock over all objects.

use crate::cm_id::Id;
use crate::memory::{self, Regions};
use crate::queue_pair::{self, Qp};
use crate::queues::{self, Cq};
use crate::{posix, verb};
use libc::{c_char, c_int, ifaddrs, sockaddr};
use ndcompat::verbs::bindings::*;
use ndcompat::{RawSockAddr, SockAddr};
use std::collections::VecDeque;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// The device's IPv4 address.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// The device's IPv6 address.
pub const ADDRESS6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
/// The device's name.
pub const NAME: &str = "double0";
/// The IPv4 address of the second device.
pub const SECOND_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
/// The IPv6 address of the second device.
pub const SECOND_ADDRESS6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

/// The state of the double. What its pointers refer to is used with the lock held.
#[derive(Default)]
pub(crate) struct Device {
    pub regions: Regions,
    pub queue_pairs: Vec<*mut Qp>,
    /// The queue pair that was made last.
    pub newest: Option<*mut Qp>,
    pub completion_queues: Vec<*mut Cq>,
    pub shared_queues: Vec<*mut ibv_srq>,
    /// Completions of delayed reads.
    pub reads: Vec<(*mut ibv_cq, ibv_wc)>,
    pub ids: Vec<*mut Id>,
    pub last_port: u16,
    /// The asynchronous events of each device.
    async_events: [VecDeque<ibv_async_event>; 2],
}

// SAFETY: the pointers are used with the lock held only.
unsafe impl Send for Device {}

static DEVICE: LazyLock<Mutex<Device>> = LazyLock::new(Mutex::default);

#[inline]
pub(crate) fn lock() -> MutexGuard<'static, Device> {
    DEVICE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Discards the state that earlier tests have left.
pub(crate) fn renew() {
    let mut device = lock();
    device.async_events.iter_mut().for_each(VecDeque::clear);
    CONTEXTS.iter().for_each(|context| context.signal.clear());
    SECOND.store(false, Ordering::Relaxed);
    RXE.store(false, Ordering::Relaxed);
    PORT_DOWN.store(false, Ordering::Relaxed);
    *attributes() = None;
    LONGEST.store(LONGEST_MESSAGE, Ordering::Relaxed);
    set_path(1, 0);
    share_guid(None);
    queue_pair::limit_inline_room(u32::MAX);
    device.reads.clear();
}

/// There is a second device.
static SECOND: AtomicBool = AtomicBool::new(false);

/// Adds a second device until the end of the test's turn. It shares memory, queues and faults with the first.
pub fn add_second() {
    SECOND.store(true, Ordering::Relaxed);
}

/// The device calls itself soft-RoCE.
static RXE: AtomicBool = AtomicBool::new(false);

/// Lets the library treat the device as it treats soft-RoCE until the end of the test's turn.
pub fn imitate_rxe() {
    RXE.store(true, Ordering::Relaxed);
}

/// The device's port is down.
static PORT_DOWN: AtomicBool = AtomicBool::new(false);

/// Lets the device say that its port is down, until the end of the test's turn. Messages go on.
pub fn take_port_down() {
    PORT_DOWN.store(true, Ordering::Relaxed);
}

/// What changes the attributes that the device reports.
type Attributes = fn(&mut ibv_device_attr);

static ATTRIBUTES: Mutex<Option<Attributes>> = Mutex::new(None);

fn attributes() -> MutexGuard<'static, Option<Attributes>> {
    ATTRIBUTES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Changes the attributes that the device reports, until the end of the test's turn. It does what it did.
pub fn report_attributes(change: Attributes) {
    *attributes() = Some(change);
}

/// The usual length of the longest message, in bytes.
const LONGEST_MESSAGE: u32 = 1 << 30;
static LONGEST: AtomicU32 = AtomicU32::new(LONGEST_MESSAGE);

/// Lets the port report this length as that of the longest message, until the end of the test's turn.
pub fn report_longest_message(bytes: u32) {
    LONGEST.store(bytes, Ordering::Relaxed);
}

static GUID: Mutex<Option<u64>> = Mutex::new(None);

/// The GUID that all devices have instead of their own.
fn guid() -> Option<u64> {
    *GUID.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives all devices this GUID, or each its own.
pub fn share_guid(guid: Option<u64>) {
    *GUID.lock().unwrap_or_else(PoisonError::into_inner) = guid;
}

static PATH: AtomicU32 = AtomicU32::new(0);

/// Lets connections go by this port, and the partition of this index, until the end of the test's turn.
pub fn set_path(port: u8, partition: u16) {
    PATH.store(u32::from(port) << 16 | u32::from(partition), Ordering::Relaxed);
}

/// The port of connections, and the index of their partition.
pub(crate) fn path() -> (u8, u16) {
    let path = PATH.load(Ordering::Relaxed);
    ((path >> 16) as u8, path as u16)
}

/// A descriptor that is readable while something is queued.
#[derive(Debug)]
pub(crate) struct Signal(pub c_int);

impl Signal {
    pub(crate) fn new() -> Result<Signal, i32> {
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 { Err(libc::EMFILE) } else { Ok(Signal(fd)) }
    }

    pub(crate) fn set(&self) {
        let one = 1_u64;
        // SAFETY: the descriptor is open, the number readable.
        unsafe { libc::write(self.0, (&raw const one).cast(), 8) };
    }

    pub(crate) fn clear(&self) {
        let mut count = 0_u64;
        // SAFETY: the descriptor is open, the number writable.
        unsafe { libc::read(self.0, (&raw mut count).cast(), 8) };
    }

    /// Closes the descriptor of a destroyed object.
    pub(crate) fn close(&self) {
        // SAFETY: closed once.
        unsafe { libc::close(self.0) };
    }
}

/// Takes the next element of a queue whose descriptor is `signal`.
pub(crate) fn next<T>(queue: &mut VecDeque<T>, signal: &Signal) -> Result<T, i32> {
    let next = queue.pop_front().ok_or(libc::EAGAIN);
    if queue.is_empty() {
        signal.clear();
    }
    next
}

struct Context {
    context: *mut ibv_context,
    signal: Signal,
    name: &'static CStr,
    addresses: [IpAddr; 2],
}

// SAFETY: the context never moves and is never changed.
unsafe impl Send for Context {}
// SAFETY: threads may share what never moves and is never changed.
unsafe impl Sync for Context {}

static CONTEXTS: LazyLock<[Context; 2]> = LazyLock::new(|| {
    [
        new_context(c"double0", [ADDRESS.into(), ADDRESS6.into()]),
        new_context(c"double1", [SECOND_ADDRESS.into(), SECOND_ADDRESS6.into()]),
    ]
});

fn new_context(name: &'static CStr, addresses: [IpAddr; 2]) -> Context {
    let signal = Signal::new().expect("an eventfd");
    let (mut device, mut context): (ibv_device, ibv_context) = (zeroed(), zeroed());
    device.node_type = IBV_NODE_CA;
    device.transport_type = IBV_TRANSPORT_IB;
    for (to, from) in device.name.iter_mut().zip(name.to_bytes()) {
        *to = *from as c_char;
    }
    context.device = Box::into_raw(Box::new(device));
    context.async_fd = signal.0;
    context.num_comp_vectors = 4;
    context.ops.post_send = Some(queue_pair::post_send);
    context.ops.post_recv = Some(queue_pair::post_recv);
    context.ops.post_srq_recv = Some(queue_pair::post_srq_recv);
    context.ops.poll_cq = Some(queues::poll_cq);
    context.ops.alloc_mw = Some(memory::alloc_mw);
    context.ops.bind_mw = Some(memory::bind_mw);
    context.ops.dealloc_mw = Some(memory::dealloc_mw);
    context.ops.req_notify_cq = Some(queues::req_notify_cq);
    Context { context: Box::into_raw(Box::new(context)), signal, name, addresses }
}

/// The devices.
fn contexts() -> &'static [Context] {
    if SECOND.load(Ordering::Relaxed) { &*CONTEXTS } else { &CONTEXTS[..1] }
}

/// The first device's context.
pub(crate) fn context() -> *mut ibv_context {
    CONTEXTS[0].context
}

/// The context of the device that has this address.
pub(crate) fn context_at(address: SockAddr) -> Option<*mut ibv_context> {
    contexts().iter().find(|own| own.addresses.contains(&address.ip())).map(|own| own.context)
}

/// The number of a context's device.
fn number_of(context: *mut ibv_context) -> usize {
    CONTEXTS.iter().position(|own| own.context == context).expect("a context of ours")
}

impl Device {
    pub(crate) fn report(
        &mut self,
        context: *mut ibv_context,
        event_type: ibv_event_type,
        element: ibv_async_event__bindgen_ty_1,
    ) {
        let number = number_of(context);
        self.async_events[number].push_back(ibv_async_event { element, event_type });
        CONTEXTS[number].signal.set();
    }
}

/// The numbers of objects: queue pairs, completion queues, shared receive queues, ids.
pub fn objects() -> [usize; 4] {
    let device = lock();
    let queue_pairs = device.queue_pairs.iter().filter(|qp| !qp.is_null()).count();
    [queue_pairs, device.completion_queues.len(), device.shared_queues.len(), device.ids.len()]
}

/// Forgets objects that could not be destroyed because the call failed. Their memory is leaked.
pub fn forget_objects() {
    let mut device = lock();
    // Entries stay, as a queue pair's number is its index.
    device.queue_pairs.fill(ptr::null_mut());
    device.completion_queues.clear();
    device.shared_queues.clear();
    device.ids.clear();
}

/// Raises an asynchronous event. One that is about an object names the newest of its type.
pub fn raise_async(kind: ibv_event_type) {
    let mut device = lock();
    let mut element = ibv_async_event__bindgen_ty_1 { port_num: 1 };
    let mut context = context();
    // SAFETY: what is listed lives, and the lock is held.
    unsafe {
        match kind {
            IBV_EVENT_CQ_ERR => {
                element.cq = device.completion_queues.last().expect("a queue").cast();
                context = (*element.cq).context;
            }
            IBV_EVENT_SRQ_ERR | IBV_EVENT_SRQ_LIMIT_REACHED => {
                element.srq = *device.shared_queues.last().expect("a shared queue");
                context = (*element.srq).context;
            }
            IBV_EVENT_QP_FATAL | IBV_EVENT_QP_ACCESS_ERR | IBV_EVENT_QP_REQ_ERR => {
                element.qp = device.newest.expect("a queue pair").cast();
                context = (*element.qp).context;
            }
            _ => {}
        }
    }
    device.report(context, kind, element);
}

/// Raises a completion event of the newest completion queue without a completion, and disarms the queue. Real devices do this
/// when two completions race: the program has taken both when the event of one arrives.
pub fn raise_completion_event() {
    let device = lock();
    let queue = *device.completion_queues.last().expect("a queue");
    // SAFETY: the queue lives, and the lock is held.
    unsafe {
        (*queue).armed = None;
        (*queue).send_event();
    }
}

macro_rules! export {
    ($($(#[$attribute:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block)*) => {$(
        #[doc = concat!("`", stringify!($name), "`")]
        ///
        /// # Safety
        /// As in the manual page of the C function.
        $(#[$attribute])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? $body
    )*};
}
pub(crate) use export;

export! {
    fn rdma_get_devices(count: *mut c_int) -> *mut *mut ibv_context {
        crate::created("rdma_get_devices", || {
            let contexts = contexts();
            // SAFETY: the caller has room for the count, or passes null.
            unsafe { *count = contexts.len() as c_int };
            let mut list = Box::new([ptr::null_mut(); 3]);
            list.iter_mut().zip(contexts).for_each(|(place, own)| *place = own.context);
            Ok(Box::into_raw(list).cast())
        })
    }

    fn rdma_free_devices(list: *mut *mut ibv_context) {
        // SAFETY: made above.
        drop(unsafe { Box::from_raw(list.cast::<[*mut ibv_context; 3]>()) });
    }

    fn ibv_open_device(device: *mut ibv_device) -> *mut ibv_context {
        crate::created("ibv_open_device", || {
            // SAFETY: the contexts never go.
            let own = contexts().iter().find(|own| unsafe { (*own.context).device } == device);
            Ok(own.expect("a device of ours").context)
        })
    }

    fn ibv_close_device(_context: *mut ibv_context) -> c_int {
        0
    }

    fn ibv_get_device_name(device: *mut ibv_device) -> *const c_char {
        // SAFETY: the device is the one above.
        unsafe { (&raw const (*device).name).cast() }
    }

    fn ibv_get_device_guid(device: *mut ibv_device) -> __be64 {
        // SAFETY: the contexts never go.
        let number = CONTEXTS.iter().position(|own| unsafe { (*own.context).device } == device);
        let own = 0x0200_00FF_FE00_D0B1_u64 + number.expect("a device of ours") as u64;
        guid().unwrap_or(own).to_be()
    }

    fn ibv_query_device(_context: *mut ibv_context, attr: *mut ibv_device_attr) -> c_int {
        verb("ibv_query_device", || {
            let mut device: ibv_device_attr = zeroed();
            device.vendor_id = if RXE.load(Ordering::Relaxed) { 0xFF_FFFF } else { 0xD0B1 };
            device.max_mr_size = 1 << 40;
            device.max_qp = 1 << 16;
            device.max_qp_wr = 1 << 16;
            device.max_sge = queues::MAX_SGE as c_int;
            device.max_sge_rd = queues::MAX_SGE as c_int;
            device.max_srq_sge = queues::MAX_SGE as c_int;
            device.max_cq = 1 << 16;
            device.max_cqe = 1 << 16;
            device.max_mr = 1 << 20;
            device.max_pd = 1 << 16;
            device.max_qp_rd_atom = 128;
            device.max_qp_init_rd_atom = 128;
            device.max_srq = 1 << 16;
            device.max_srq_wr = 1 << 14;
            device.phys_port_cnt = 1;
            device.device_cap_flags = IBV_DEVICE_SRQ_RESIZE;
            if let Some(change) = *attributes() {
                change(&mut device);
            }
            // SAFETY: the caller has room for the attributes.
            unsafe { attr.write(device) };
            Ok(())
        })
    }

    fn ibv_query_port(_context: *mut ibv_context, _port: u8, attr: *mut _compat_ibv_port_attr) -> c_int {
        verb("ibv_query_port", || {
            let attr = attr.cast::<ibv_port_attr>();
            // SAFETY: the caller has room for the attributes, of which these fields are in the shorter
            // structure, too.
            unsafe {
                let down = PORT_DOWN.load(Ordering::Relaxed);
                (&raw mut (*attr).state).write(if down { IBV_PORT_DOWN } else { IBV_PORT_ACTIVE });
                (&raw mut (*attr).max_msg_sz).write(LONGEST.load(Ordering::Relaxed));
            }
            Ok(())
        })
    }

    fn ibv_get_async_event(context: *mut ibv_context, event: *mut ibv_async_event) -> c_int {
        posix("ibv_get_async_event", || {
            let number = number_of(context);
            let next = next(&mut lock().async_events[number], &CONTEXTS[number].signal)?;
            // SAFETY: the caller has room for the event.
            unsafe { event.write(next) };
            Ok(())
        })
    }

    fn ibv_ack_async_event(_event: *mut ibv_async_event) {}

    fn getifaddrs(list: *mut *mut ifaddrs) -> c_int {
        // SAFETY: the caller has room for the address of the list.
        posix("getifaddrs", || { unsafe { *list = interfaces() }; Ok(()) })
    }

    fn freeifaddrs(list: *mut ifaddrs) {
        // SAFETY: made below, freed once.
        drop(unsafe { Box::from_raw(list.cast::<Interfaces>()) });
    }
}

/// The result of `getifaddrs`: the list and the addresses that it points to.
#[repr(C)]
struct Interfaces([ifaddrs; 4], [RawSockAddr; 4]);

fn interfaces() -> *mut ifaddrs {
    // SAFETY: numbers, pointers and addresses, for which zero is a value.
    let mut list = Box::new(unsafe { MaybeUninit::<Interfaces>::zeroed().assume_init() });
    let addresses = contexts().iter().flat_map(|own| own.addresses.map(|address| (own.name, address)));
    for (at, (name, address)) in addresses.enumerate() {
        list.1[at] = SockAddr::from(SocketAddr::new(address, 0)).to_raw().0;
        list.0[at].ifa_name = name.as_ptr().cast_mut();
        list.0[at].ifa_flags = libc::IFF_UP as u32;
        list.0[at].ifa_addr = (&raw mut list.1[at]).cast::<sockaddr>();
        if at > 0 {
            list.0[at - 1].ifa_next = &raw mut list.0[at];
        }
    }
    Box::into_raw(list).cast()
}
