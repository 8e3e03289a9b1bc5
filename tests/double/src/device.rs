//! The device: its attributes, its addresses, its asynchronous events, and the lock over all there is.

use crate::cm_id::Id;
use crate::memory::{self, Regions};
use crate::queue_pair::{self, Qp};
use crate::queues::{self, Cq};
use crate::{posix, verb};
use libc::{c_char, c_int, ifaddrs, sockaddr};
use ndcompat::verbs::bindings::*;
use ndcompat::verbs::{RawSockAddr, SockAddr};
use std::collections::VecDeque;
use std::mem::{MaybeUninit, zeroed};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ptr;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// The device's IPv4 address.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// The device's IPv6 address.
pub const ADDRESS6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
/// The device's name.
pub const NAME: &str = "double0";

/// All that the functions share. Everything behind its pointers is used with the lock held.
#[derive(Default)]
pub(crate) struct Device {
    pub regions: Regions,
    pub queue_pairs: Vec<*mut Qp>,
    pub completion_queues: Vec<*mut Cq>,
    pub shared_queues: Vec<*mut ibv_srq>,
    pub ids: Vec<*mut Id>,
    pub last_port: u16,
    async_events: VecDeque<ibv_async_event>,
}

// SAFETY: the pointers are used with the lock held only.
unsafe impl Send for Device {}

static DEVICE: LazyLock<Mutex<Device>> = LazyLock::new(Mutex::default);

#[inline]
pub(crate) fn lock() -> MutexGuard<'static, Device> {
    DEVICE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is left of earlier tests concerns nobody.
pub(crate) fn renew() {
    let mut device = lock();
    device.async_events.clear();
    CONTEXT.signal.clear();
}

/// A descriptor that is readable while something waits.
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

    /// Closes the descriptor of an object that goes.
    pub(crate) fn close(&self) {
        // SAFETY: closed once.
        unsafe { libc::close(self.0) };
    }
}

/// Takes the next of what `signal` announces.
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
}

// SAFETY: the context never moves and is never changed.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

static CONTEXT: LazyLock<Context> = LazyLock::new(|| {
    let signal = Signal::new().expect("an eventfd");
    // SAFETY: all bits zero are a valid value of both structures.
    let (mut device, mut context): (ibv_device, ibv_context) = unsafe { (zeroed(), zeroed()) };
    device.node_type = IBV_NODE_CA;
    device.transport_type = IBV_TRANSPORT_IB;
    for (to, from) in device.name.iter_mut().zip(NAME.bytes()) {
        *to = from as c_char;
    }
    context.device = Box::into_raw(Box::new(device));
    context.async_fd = signal.0;
    context.ops.post_send = Some(queue_pair::post_send);
    context.ops.post_recv = Some(queue_pair::post_recv);
    context.ops.post_srq_recv = Some(queue_pair::post_srq_recv);
    context.ops.poll_cq = Some(queues::poll_cq);
    context.ops.alloc_mw = Some(memory::alloc_mw);
    context.ops.dealloc_mw = Some(memory::dealloc_mw);
    context.ops.req_notify_cq = Some(queues::req_notify_cq);
    Context { context: Box::into_raw(Box::new(context)), signal }
});

/// The one context there is.
pub(crate) fn context() -> *mut ibv_context {
    CONTEXT.context
}

impl Device {
    pub(crate) fn report(&mut self, event_type: ibv_event_type, element: ibv_async_event__bindgen_ty_1) {
        self.async_events.push_back(ibv_async_event { element, event_type });
        CONTEXT.signal.set();
    }
}

/// Reports an asynchronous event; one that names an object names the latest of its type that there is.
pub fn raise_async(kind: ibv_event_type) {
    let mut device = lock();
    let mut element = ibv_async_event__bindgen_ty_1 { port_num: 1 };
    match kind {
        IBV_EVENT_CQ_ERR => element.cq = device.completion_queues.last().expect("a queue").cast(),
        IBV_EVENT_SRQ_ERR | IBV_EVENT_SRQ_LIMIT_REACHED => {
            element.srq = *device.shared_queues.last().expect("a shared queue");
        }
        IBV_EVENT_QP_FATAL | IBV_EVENT_QP_ACCESS_ERR | IBV_EVENT_QP_REQ_ERR => {
            element.qp = device.queue_pairs.last().expect("a queue pair").cast();
        }
        _ => {}
    }
    device.report(kind, element);
}

/// Reports a completion event of the latest completion queue, although nothing has come; the queue is no longer armed. Devices
/// do so when two completions meet: the event of one is late, and the program has taken both when it comes.
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
        /// As the C function's manual has it.
        $(#[$attribute])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? $body
    )*};
}
pub(crate) use export;

export! {
    fn rdma_get_devices(count: *mut c_int) -> *mut *mut ibv_context {
        crate::created("rdma_get_devices", || {
            // SAFETY: the caller's promise.
            unsafe { *count = 1 };
            Ok(Box::into_raw(Box::new([context(), ptr::null_mut()])).cast())
        })
    }

    fn rdma_free_devices(list: *mut *mut ibv_context) {
        // SAFETY: made above.
        drop(unsafe { Box::from_raw(list.cast::<[*mut ibv_context; 2]>()) });
    }

    fn ibv_get_device_name(device: *mut ibv_device) -> *const c_char {
        // SAFETY: the device is the one above.
        unsafe { (&raw const (*device).name).cast() }
    }

    fn ibv_get_device_guid(_device: *mut ibv_device) -> __be64 {
        0x0200_00FF_FE00_D0B1_u64.to_be()
    }

    fn ibv_query_device(_context: *mut ibv_context, attr: *mut ibv_device_attr) -> c_int {
        verb("ibv_query_device", || {
            // SAFETY: all bits zero are a valid value.
            let mut device: ibv_device_attr = unsafe { zeroed() };
            device.vendor_id = 0xD0B1;
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
            // SAFETY: the caller's promise.
            unsafe { attr.write(device) };
            Ok(())
        })
    }

    fn ibv_query_port(_context: *mut ibv_context, _port: u8, attr: *mut _compat_ibv_port_attr) -> c_int {
        verb("ibv_query_port", || {
            let attr = attr.cast::<ibv_port_attr>();
            // SAFETY: the caller's promise; the fields are of the part that the shorter structure has too.
            unsafe {
                (&raw mut (*attr).state).write(IBV_PORT_ACTIVE);
                (&raw mut (*attr).max_msg_sz).write(1 << 30);
            }
            Ok(())
        })
    }

    fn ibv_get_async_event(_context: *mut ibv_context, event: *mut ibv_async_event) -> c_int {
        posix("ibv_get_async_event", || {
            let next = next(&mut lock().async_events, &CONTEXT.signal)?;
            // SAFETY: the caller's promise.
            unsafe { event.write(next) };
            Ok(())
        })
    }

    fn ibv_ack_async_event(_event: *mut ibv_async_event) {}

    fn getifaddrs(list: *mut *mut ifaddrs) -> c_int {
        // SAFETY: the caller's promise.
        posix("getifaddrs", || { unsafe { *list = interfaces() }; Ok(()) })
    }

    fn freeifaddrs(list: *mut ifaddrs) {
        // SAFETY: made below, freed once.
        drop(unsafe { Box::from_raw(list.cast::<Interfaces>()) });
    }

    fn epoll_ctl(set: c_int, operation: c_int, fd: c_int, event: *mut libc::epoll_event) -> c_int {
        // SAFETY: the caller's promise; the system call is the function's all.
        posix("epoll_ctl", || match unsafe { libc::syscall(libc::SYS_epoll_ctl, set, operation, fd, event) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)),
        })
    }
}

/// The list of the device's two addresses, and the addresses.
#[repr(C)]
struct Interfaces([ifaddrs; 2], [RawSockAddr; 2]);

fn interfaces() -> *mut ifaddrs {
    // SAFETY: all bits zero are a valid value of both structures.
    let mut list = Box::new(unsafe { Interfaces(MaybeUninit::zeroed().assume_init(), zeroed()) });
    let addresses: [SocketAddr; 2] = [(ADDRESS, 0).into(), (ADDRESS6, 0).into()];
    for (at, address) in addresses.into_iter().enumerate() {
        list.1[at] = SockAddr::from(address).to_raw().0;
        list.0[at].ifa_name = c"double0".as_ptr().cast_mut();
        list.0[at].ifa_flags = libc::IFF_UP as u32;
        list.0[at].ifa_addr = (&raw mut list.1[at]).cast::<sockaddr>();
    }
    list.0[0].ifa_next = &raw mut list.0[1];
    Box::into_raw(list).cast()
}
