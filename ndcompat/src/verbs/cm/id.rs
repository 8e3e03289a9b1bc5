//! Ids: one end of a connection, or a listener.

use std::ffi::{c_int, c_void};
use std::io;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::super::bindings::*;
use super::super::{SockAddr, address, errno, qp};
use super::EventChannel;

/// What a side says when it connects or accepts.
#[derive(Clone, Copy, Debug)]
pub struct ConnectParam<'a> {
    /// Passed to the peer.
    pub private_data: &'a [u8],
    /// How many reads the peer may have outstanding here.
    pub responder_resources: u8,
    /// How many reads this side may have outstanding.
    pub initiator_depth: u8,
    /// How often a message without an answer is sent again (the connecting side's value counts for both).
    pub retry_count: u8,
    /// How often a message is sent again that met an empty receive queue; 7 is for ever.
    pub rnr_retry_count: u8,
    /// Whether the queue pair takes its receives from a shared queue.
    pub srq: bool,
    /// The number of the queue pair.
    pub qp_num: u32,
}

impl ConnectParam<'_> {
    fn to_raw(self) -> io::Result<rdma_conn_param> {
        let private_data_len = u8::try_from(self.private_data.len());
        Ok(rdma_conn_param {
            private_data: self.private_data.as_ptr().cast(),
            private_data_len: private_data_len.map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?,
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            flow_control: 0,
            retry_count: self.retry_count,
            rnr_retry_count: self.rnr_retry_count,
            srq: self.srq.into(),
            qp_num: self.qp_num,
        })
    }
}

/// One end of a connection, or a listener.
///
/// Calls may come from any thread; which calls make sense in which state is the caller's to know. The device, the
/// port and the addresses are settled by [`bind_addr`](Self::bind_addr) or once the `AddrResolved` event was taken.
pub struct Id {
    raw: NonNull<rdma_cm_id>,
    /// The channel of its events, which must outlive it.
    channel: Mutex<Arc<EventChannel>>,
}

// SAFETY: librdmacm and the kernel lock what calls on an id share.
unsafe impl Send for Id {}
// SAFETY: as above.
unsafe impl Sync for Id {}

impl Id {
    /// Creates an id for a reliable connection whose events arrive on `channel` and carry `cookie`.
    pub fn create(channel: &Arc<EventChannel>, cookie: usize) -> io::Result<Id> {
        Id::create_in(RDMA_PS_TCP, channel, cookie)
    }

    /// Creates an id that takes no port from those that connect: for hearing what happens to a device.
    pub fn create_datagram(channel: &Arc<EventChannel>, cookie: usize) -> io::Result<Id> {
        Id::create_in(RDMA_PS_UDP, channel, cookie)
    }

    fn create_in(ports: rdma_port_space, channel: &Arc<EventChannel>, cookie: usize) -> io::Result<Id> {
        let mut raw = ptr::null_mut();
        // SAFETY: the channel is live, the result writable; the cookie is not dereferenced.
        errno::posix(unsafe { rdma_create_id(channel.as_ptr(), &mut raw, cookie as *mut c_void, ports) })?;
        // SAFETY: on success it is a live id that is ours.
        Ok(unsafe { Id::adopt(errno::created(raw)?, channel) })
    }

    /// # Safety
    /// `raw` is an id on `channel` that nobody else destroys.
    pub(super) unsafe fn adopt(raw: NonNull<rdma_cm_id>, channel: &Arc<EventChannel>) -> Id {
        Id { raw, channel: Mutex::new(Arc::clone(channel)) }
    }

    /// The C object.
    pub fn as_ptr(&self) -> *mut rdma_cm_id {
        self.raw.as_ptr()
    }

    /// The device it is bound to, or null.
    pub fn verbs(&self) -> *mut ibv_context {
        // SAFETY: the id is live; others may write other fields meanwhile, so no reference to the whole.
        unsafe { (*self.as_ptr()).verbs }
    }

    /// The port of the device, counted from 1; 0 when not bound to one.
    pub fn port_num(&self) -> u8 {
        // SAFETY: as in `verbs`.
        unsafe { (*self.as_ptr()).port_num }
    }

    /// What its events carry.
    pub fn cookie(&self) -> usize {
        // SAFETY: as in `verbs`.
        unsafe { (*self.as_ptr()).context as usize }
    }

    /// Changes what its events carry: of use for the id of a connection request, before its next event.
    pub fn set_cookie(&mut self, cookie: usize) {
        // SAFETY: as in `verbs`; librdmacm only hands the field through.
        unsafe { (*self.as_ptr()).context = cookie as *mut c_void };
    }

    /// The local address, when there is one.
    pub fn local_addr(&self) -> Option<SockAddr> {
        // SAFETY: the id is live, the field is big enough for either family.
        unsafe { sock_addr(&raw const (*self.as_ptr()).route.addr.__bindgen_anon_1) }
    }

    /// The peer's address, when there is one. That of a link-local peer that asked for a connection has no scope on
    /// InfiniBand and RoCE.
    pub fn peer_addr(&self) -> Option<SockAddr> {
        // SAFETY: the id is live, the field is big enough for either family.
        unsafe { sock_addr(&raw const (*self.as_ptr()).route.addr.__bindgen_anon_2) }
    }

    /// Binds to a local address; port 0 takes a free one.
    pub fn bind_addr(&self, addr: SockAddr) -> io::Result<()> {
        let (mut raw, _) = addr.to_raw();
        // SAFETY: the id is live, the address as long as its family says.
        errno::posix(unsafe { rdma_bind_addr(self.as_ptr(), raw.as_mut_ptr()) })
    }

    /// Looks for the device and the neighbour on the way to `dst`; ends in `AddrResolved` or `AddrError`. Binds to `src`,
    /// which an id that is bound already must not have.
    pub fn resolve_addr(&self, src: Option<SockAddr>, dst: SockAddr, timeout: Duration) -> io::Result<()> {
        let mut src = src.map(|src| src.to_raw().0);
        let src = src.as_mut().map_or(ptr::null_mut(), |src| src.as_mut_ptr());
        let (mut dst, _) = dst.to_raw();
        // SAFETY: the id is live, the addresses as long as their families say.
        errno::posix(unsafe {
            rdma_resolve_addr(self.as_ptr(), src, dst.as_mut_ptr(), milliseconds(timeout))
        })
    }

    /// Looks for the path to the peer; ends in `RouteResolved` or `RouteError`.
    pub fn resolve_route(&self, timeout: Duration) -> io::Result<()> {
        // SAFETY: the id is live.
        errno::posix(unsafe { rdma_resolve_route(self.as_ptr(), milliseconds(timeout)) })
    }

    /// Listens on the address it is bound to.
    pub fn listen(&self, backlog: u32) -> io::Result<()> {
        // SAFETY: the id is live.
        errno::posix(unsafe { rdma_listen(self.as_ptr(), c_int::try_from(backlog).unwrap_or(c_int::MAX)) })
    }

    /// Asks the peer for a connection.
    pub fn connect(&self, param: ConnectParam<'_>) -> io::Result<()> {
        let mut raw = self.checked(param)?;
        // SAFETY: the id is live and has a device, the private data outlives the call.
        errno::posix(unsafe { rdma_connect(self.as_ptr(), &mut raw) })
    }

    /// Accepts the connection that was asked for.
    pub fn accept(&self, param: ConnectParam<'_>) -> io::Result<()> {
        let mut raw = self.checked(param)?;
        // SAFETY: the id is live and has a device, the private data outlives the call.
        errno::posix(unsafe { rdma_accept(self.as_ptr(), &mut raw) })
    }

    /// The parameters for C. librdmacm compares them with the device's limits and expects that there is one.
    fn checked(&self, param: ConnectParam<'_>) -> io::Result<rdma_conn_param> {
        if self.verbs().is_null() {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        param.to_raw()
    }

    /// Refuses the connection that was asked for, or that the peer has accepted.
    pub fn reject(&self, private_data: &[u8]) -> io::Result<()> {
        let length = u8::try_from(private_data.len());
        let length = length.map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        // SAFETY: the id is live, the private data outlives the call.
        errno::posix(unsafe { rdma_reject(self.as_ptr(), private_data.as_ptr().cast(), length) })
    }

    /// Completes the connection that the peer has accepted (not on iWARP).
    pub fn establish(&self) -> io::Result<()> {
        // SAFETY: the id is live.
        errno::posix(unsafe { rdma_establish(self.as_ptr()) })
    }

    /// Says that data has arrived on the queue pair (`IBV_EVENT_COMM_EST`), so that an accepting side need not wait for
    /// the peer's last message, should that be lost.
    pub fn communication_established(&self) -> io::Result<()> {
        // SAFETY: the id is live.
        errno::posix(unsafe { rdma_notify(self.as_ptr(), IBV_EVENT_COMM_EST) })
    }

    /// Ends the connection, or answers the peer's end of it. On InfiniBand and RoCE the queue pair is left as it is,
    /// and the end only complete when both sides have done so.
    pub fn disconnect(&self) -> io::Result<()> {
        // SAFETY: the id is live.
        errno::posix(unsafe { rdma_disconnect(self.as_ptr()) })
    }

    /// The attributes, and the mask of them, that move a queue pair to `state` as this connection needs it.
    ///
    /// For RTR the kernel leaves `min_rnr_timer` at 0, which means 655 ms between a peer's attempts to send into an
    /// empty receive queue.
    pub fn init_qp_attr(&self, state: ibv_qp_state) -> io::Result<(ibv_qp_attr, ibv_qp_attr_mask)> {
        let mut attr = qp::empty_attr();
        attr.qp_state = state;
        let mut mask = 0;
        // SAFETY: the id is live, both results are writable.
        errno::posix(unsafe { rdma_init_qp_attr(self.as_ptr(), &mut attr, &mut mask) })?;
        Ok((attr, mask as ibv_qp_attr_mask))
    }

    /// Moves the id, with the events that are still to come, to another channel.
    ///
    /// Waits until the events of it that were taken from the old channel are acknowledged.
    pub fn migrate(&self, channel: &Arc<EventChannel>) -> io::Result<()> {
        let mut current = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the id and both channels are live.
        errno::posix(unsafe { rdma_migrate_id(self.as_ptr(), channel.as_ptr()) })?;
        *current = Arc::clone(channel);
        Ok(())
    }

    /// Lets the address be shared with other ids that allow it, too; not while it listens. An id that is bound already may
    /// begin to allow it.
    pub fn set_reuse_addr(&self, on: bool) -> io::Result<()> {
        self.set_option(RDMA_OPTION_ID_REUSEADDR, c_int::from(on))
    }

    /// Keeps an IPv6 wildcard listener from taking IPv4 connections.
    pub fn set_af_only(&self, on: bool) -> io::Result<()> {
        self.set_option(RDMA_OPTION_ID_AFONLY, c_int::from(on))
    }

    /// Sets how long the queue pair waits for an answer: 4.096 us times 2 to the power of `timeout`.
    pub fn set_ack_timeout(&self, timeout: u8) -> io::Result<()> {
        self.set_option(RDMA_OPTION_ID_ACK_TIMEOUT, timeout)
    }

    fn set_option<T>(&self, name: u32, mut value: T) -> io::Result<()> {
        let (level, value_ptr) = (RDMA_OPTION_ID as c_int, (&raw mut value).cast());
        // SAFETY: the id is live, the value as long as said.
        errno::posix(unsafe {
            rdma_set_option(self.as_ptr(), level, name as c_int, value_ptr, size_of::<T>())
        })
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        // SAFETY: the id is live and not used again. This waits until its events are acknowledged.
        unsafe { rdma_destroy_id(self.as_ptr()) };
    }
}

fn milliseconds(timeout: Duration) -> c_int {
    c_int::try_from(timeout.as_millis()).unwrap_or(c_int::MAX)
}

/// # Safety
/// `addr` points to a union of socket addresses.
unsafe fn sock_addr<T>(addr: *const T) -> Option<SockAddr> {
    // SAFETY: the union is as long as the longest, and so as long as its family says.
    unsafe { SockAddr::from_raw(addr.cast(), address::family_length(addr.cast())) }.ok()
}
