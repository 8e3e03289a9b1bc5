//! Ids: one end of a connection, or a listener.

use std::ffi::{c_int, c_void};
use std::io;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::super::bindings::*;
use super::super::{Context, Library, SockAddr, device, errno, qp, sockaddr};
use super::EventChannel;

/// The parameters of `rdma_connect` and `rdma_accept`.
#[derive(Clone, Copy, Debug)]
pub struct ConnectParam<'a> {
    /// Private data for the peer.
    pub private_data: &'a [u8],
    /// How many reads the peer may have outstanding here.
    pub responder_resources: u8,
    /// How many reads this side may have outstanding.
    pub initiator_depth: u8,
    /// How often a message is resent without an acknowledgement. The value of the connecting side applies to both.
    pub retry_count: u8,
    /// How often a message is resent while the peer has no receive; 7 is no limit.
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
/// Thread-safe. The caller must know which calls are allowed in which state. The device, the port and the addresses are
/// known after [`bind_addr`](Self::bind_addr), or after the `AddrResolved` event was read.
pub struct Id {
    raw: NonNull<rdma_cm_id>,
    /// The channel of its events, which must outlive the id.
    channel: Mutex<Arc<EventChannel>>,
    library: &'static Library,
}

// SAFETY: librdmacm and the kernel lock the state that calls on an id share.
unsafe impl Send for Id {}
// SAFETY: librdmacm locks an id in calls that change it.
unsafe impl Sync for Id {}

impl Id {
    /// Creates an id for a reliable connection whose events arrive on `channel` and carry `cookie`.
    ///
    /// # Errors
    /// The errno of `rdma_create_id`.
    pub fn create(channel: &Arc<EventChannel>, cookie: usize) -> io::Result<Id> {
        Id::create_in(RDMA_PS_TCP, channel, cookie)
    }

    /// Creates an id in the datagram port space, for the events of a device: binding it takes no port from connections.
    ///
    /// # Errors
    /// The errno of `rdma_create_id`.
    pub fn create_datagram(channel: &Arc<EventChannel>, cookie: usize) -> io::Result<Id> {
        Id::create_in(RDMA_PS_UDP, channel, cookie)
    }

    fn create_in(ports: rdma_port_space, channel: &Arc<EventChannel>, cookie: usize) -> io::Result<Id> {
        let mut raw = ptr::null_mut();
        // SAFETY: the channel is live, the result writable; the cookie is not dereferenced.
        errno::posix(&(), "rdma_create_id", unsafe {
            (channel.library().rdma_create_id)(channel.as_ptr(), &mut raw, cookie as *mut c_void, ports)
        })?;
        // SAFETY: on success it is a new id, which nothing else destroys.
        Ok(unsafe { Id::adopt(errno::created(&(), "rdma_create_id", raw)?, channel) })
    }

    /// # Safety
    /// `raw` is an id on `channel` that nothing else destroys.
    pub(super) unsafe fn adopt(raw: NonNull<rdma_cm_id>, channel: &Arc<EventChannel>) -> Id {
        Id { raw, channel: Mutex::new(Arc::clone(channel)), library: channel.library() }
    }

    /// The device that the id is bound to, if any. This context does not keep other devices open.
    ///
    /// # Errors
    /// The errno of opening the device, in a process that was forked.
    pub fn context(self: &Arc<Id>) -> io::Result<Option<Arc<Context>>> {
        Context::kept_open_by(self.library, self.verbs(), self.clone())
    }

    /// The C object.
    pub fn as_ptr(&self) -> *mut rdma_cm_id {
        self.raw.as_ptr()
    }

    /// The device that it is bound to, or null.
    pub fn verbs(&self) -> *mut ibv_context {
        // SAFETY: the id is live. No reference to all of it is made, as other threads may write other fields.
        unsafe { (*self.as_ptr()).verbs }
    }

    /// The port of the device, counted from 1; 0 if it is not bound to one.
    pub fn port_num(&self) -> u8 {
        // SAFETY: the id is live. No reference to all of it is made, as other threads may write other fields.
        unsafe { (*self.as_ptr()).port_num }
    }

    /// The cookie that its events carry.
    pub fn cookie(&self) -> usize {
        // SAFETY: the id is live. No reference to all of it is made, as other threads may write other fields.
        unsafe { (*self.as_ptr()).context as usize }
    }

    /// Changes the cookie that its events carry, of the id of a connection request before its next event.
    pub fn set_cookie(&mut self, cookie: usize) {
        // SAFETY: the id is live and borrowed mutably; librdmacm only passes the field on.
        unsafe { (*self.as_ptr()).context = cookie as *mut c_void };
    }

    /// The local address, if it has one.
    pub fn local_addr(&self) -> Option<SockAddr> {
        // SAFETY: the id is live: `self` owns it, and destroys it only when it is dropped.
        let addr = unsafe { &raw const (*self.as_ptr()).route.addr.__bindgen_anon_1 };
        // SAFETY: the union of socket addresses is as long as the longest of them.
        unsafe { sockaddr::of_any_family(addr.cast()) }
    }

    /// The peer's address, if it has one. In a connection request over InfiniBand or RoCE, a link-local address has no
    /// scope.
    pub fn peer_addr(&self) -> Option<SockAddr> {
        // SAFETY: the id is live: `self` owns it, and destroys it only when it is dropped.
        let addr = unsafe { &raw const (*self.as_ptr()).route.addr.__bindgen_anon_2 };
        // SAFETY: the union of socket addresses is as long as the longest of them.
        unsafe { sockaddr::of_any_family(addr.cast()) }
    }

    /// Binds to a local address. With port 0, a free port is chosen.
    ///
    /// # Errors
    /// The errno of `rdma_bind_addr`: `EADDRINUSE` if the address is taken, `EADDRNOTAVAIL` or `ENODEV` if no device has
    /// it.
    pub fn bind_addr(&self, addr: SockAddr) -> io::Result<()> {
        let (mut raw, _) = addr.to_raw();
        // SAFETY: the id is live, and the address has the length of its family.
        errno::posix(self, "rdma_bind_addr", unsafe {
            (self.library.rdma_bind_addr)(self.as_ptr(), raw.as_mut_ptr())
        })
    }

    /// Resolves the device and the neighbour for `dst`; ends in `AddrResolved` or `AddrError`. Binds to `src`, which must
    /// be `None` for an id that is bound already.
    ///
    /// # Errors
    /// The errno of `rdma_resolve_addr`. Later failures are reported by `AddrError`.
    pub fn resolve_addr(&self, src: Option<SockAddr>, dst: SockAddr, timeout: Duration) -> io::Result<()> {
        let mut src = src.map(|src| src.to_raw().0);
        let src = src.as_mut().map_or(ptr::null_mut(), |src| src.as_mut_ptr());
        let (mut dst, _) = dst.to_raw();
        // SAFETY: the id is live, and the addresses have the lengths of their families.
        errno::posix(self, "rdma_resolve_addr", unsafe {
            (self.library.rdma_resolve_addr)(self.as_ptr(), src, dst.as_mut_ptr(), milliseconds(timeout))
        })
    }

    /// Resolves the path to the peer; ends in `RouteResolved` or `RouteError`.
    ///
    /// # Errors
    /// The errno of `rdma_resolve_route`. Later failures are reported by `RouteError`.
    pub fn resolve_route(&self, timeout: Duration) -> io::Result<()> {
        // SAFETY: the id is live: `self` owns it, and destroys it only when it is dropped.
        errno::posix(self, "rdma_resolve_route", unsafe {
            (self.library.rdma_resolve_route)(self.as_ptr(), milliseconds(timeout))
        })
    }

    /// Listens on the address that it is bound to.
    ///
    /// # Errors
    /// The errno of `rdma_listen`: `EADDRINUSE` if another id listens there.
    pub fn listen(&self, backlog: u32) -> io::Result<()> {
        // SAFETY: the id is live: `self` owns it, and destroys it only when it is dropped.
        errno::posix(self, "rdma_listen", unsafe {
            (self.library.rdma_listen)(self.as_ptr(), c_int::try_from(backlog).unwrap_or(c_int::MAX))
        })
    }

    /// Requests a connection with the peer.
    ///
    /// # Errors
    /// The errno of `rdma_connect`; `EINVAL` for private data of more than 255 bytes. A refusal is reported by `Rejected`.
    pub fn connect(&self, param: ConnectParam<'_>) -> io::Result<()> {
        let mut raw = self.checked(param)?;
        // SAFETY: the id is live and has a device, the private data outlives the call.
        errno::posix(self, "rdma_connect", unsafe { (self.library.rdma_connect)(self.as_ptr(), &mut raw) })
    }

    /// Accepts a connection request.
    ///
    /// # Errors
    /// The errno of `rdma_accept`; `EINVAL` for private data of more than 255 bytes.
    pub fn accept(&self, param: ConnectParam<'_>) -> io::Result<()> {
        let mut raw = self.checked(param)?;
        // SAFETY: the id is live and has a device, the private data outlives the call.
        errno::posix(self, "rdma_accept", unsafe { (self.library.rdma_accept)(self.as_ptr(), &mut raw) })
    }

    /// The parameters for C. Fails without a device: librdmacm compares them with the limits of the device without a check.
    fn checked(&self, param: ConnectParam<'_>) -> io::Result<rdma_conn_param> {
        if self.verbs().is_null() {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        param.to_raw()
    }

    /// Rejects a connection request, or a connection that the peer has accepted.
    ///
    /// # Errors
    /// The errno of `rdma_reject`; `EINVAL` for private data of more than 255 bytes.
    pub fn reject(&self, private_data: &[u8]) -> io::Result<()> {
        let length = u8::try_from(private_data.len());
        let length = length.map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        // SAFETY: the id is live, the private data outlives the call.
        errno::posix(self, "rdma_reject", unsafe {
            (self.library.rdma_reject)(self.as_ptr(), private_data.as_ptr().cast(), length)
        })
    }

    /// Completes the connection after the peer has accepted (not over iWARP).
    ///
    /// # Errors
    /// The errno of `rdma_establish`.
    pub fn establish(&self) -> io::Result<()> {
        // SAFETY: the id is live: `self` owns it, and destroys it only when it is dropped.
        errno::posix(self, "rdma_establish", unsafe { (self.library.rdma_establish)(self.as_ptr()) })
    }

    /// Reports that data has arrived on the queue pair (`IBV_EVENT_COMM_EST`): the accepting side then does not wait for
    /// the peer's last message, which may be lost.
    ///
    /// # Errors
    /// The errno of `rdma_notify`.
    pub fn communication_established(&self) -> io::Result<()> {
        // SAFETY: the id is live: `self` owns it, and destroys it only when it is dropped.
        errno::posix(self, "rdma_notify", unsafe {
            (self.library.rdma_notify)(self.as_ptr(), IBV_EVENT_COMM_EST)
        })
    }

    /// Disconnects, or answers the peer's disconnect. Over InfiniBand and RoCE, the queue pair does not change its state,
    /// and the disconnect is complete when both sides have called this.
    ///
    /// # Errors
    /// The errno of `rdma_disconnect`: `EINVAL` if the connection has ended.
    pub fn disconnect(&self) -> io::Result<()> {
        // SAFETY: the id is live: `self` owns it, and destroys it only when it is dropped.
        errno::posix(self, "rdma_disconnect", unsafe { (self.library.rdma_disconnect)(self.as_ptr()) })
    }

    /// The attributes and their mask to move a queue pair of this connection to `state`.
    ///
    /// For RTR, the kernel leaves `min_rnr_timer` at 0, that is 655 ms between the peer's attempts while there is no
    /// receive.
    ///
    /// # Errors
    /// The errno of `rdma_init_qp_attr`: `EINVAL` if the connection cannot get to that state.
    pub fn init_qp_attr(&self, state: ibv_qp_state) -> io::Result<(ibv_qp_attr, ibv_qp_attr_mask)> {
        let mut attr = qp::empty_attr();
        attr.qp_state = state;
        let mut mask = 0;
        // SAFETY: the id is live, both results are writable.
        errno::posix(self, "rdma_init_qp_attr", unsafe {
            (self.library.rdma_init_qp_attr)(self.as_ptr(), &mut attr, &mut mask)
        })?;
        Ok((attr, mask as ibv_qp_attr_mask))
    }

    /// Moves the id, with its events that were not read, to another channel.
    ///
    /// Waits until its events that were read from the old channel are acknowledged.
    ///
    /// # Errors
    /// The errno of `rdma_migrate_id`.
    pub fn migrate(&self, channel: &Arc<EventChannel>) -> io::Result<()> {
        let mut current = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the id and both channels are live.
        errno::posix(self, "rdma_migrate_id", unsafe {
            (self.library.rdma_migrate_id)(self.as_ptr(), channel.as_ptr())
        })?;
        *current = Arc::clone(channel);
        Ok(())
    }

    /// Lets the id share its address with other ids that allow it, too, except while it listens. May be set after binding.
    ///
    /// # Errors
    /// The errno of `rdma_set_option`.
    pub fn set_reuse_addr(&self, on: bool) -> io::Result<()> {
        self.set_option(RDMA_OPTION_ID_REUSEADDR, c_int::from(on))
    }

    /// Restricts a listener on the IPv6 wildcard to IPv6.
    ///
    /// # Errors
    /// The errno of `rdma_set_option`.
    pub fn set_af_only(&self, on: bool) -> io::Result<()> {
        self.set_option(RDMA_OPTION_ID_AFONLY, c_int::from(on))
    }

    /// Sets how long the queue pair waits for an acknowledgement: 4.096 us times 2 to the power of `timeout`.
    ///
    /// # Errors
    /// The errno of `rdma_set_option`.
    pub fn set_ack_timeout(&self, timeout: u8) -> io::Result<()> {
        self.set_option(RDMA_OPTION_ID_ACK_TIMEOUT, timeout)
    }

    fn set_option<T>(&self, name: u32, mut value: T) -> io::Result<()> {
        let (level, value_ptr) = (RDMA_OPTION_ID as c_int, (&raw mut value).cast());
        // SAFETY: the id is live, and the value has the length passed.
        errno::posix(self, "rdma_set_option", unsafe {
            (self.library.rdma_set_option)(self.as_ptr(), level, name as c_int, value_ptr, size_of::<T>())
        })
    }
}

impl errno::Subject for Id {
    fn device_name(&self) -> Option<String> {
        let context = self.verbs();
        // SAFETY: the context of a live id is live.
        (!context.is_null()).then(|| unsafe { device::name_of(self.library, context) })
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        // SAFETY: the id is live and not used again. This waits until its events are acknowledged.
        unsafe { (self.library.rdma_destroy_id)(self.as_ptr()) };
    }
}

fn milliseconds(timeout: Duration) -> c_int {
    c_int::try_from(timeout.as_millis()).unwrap_or(c_int::MAX)
}
