//! The functions of librdmacm.

pub(super) mod address;
mod id;
mod synchronous;

use std::ffi::{c_int, c_void};
use std::io;
use std::net::SocketAddr;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use socket2::Socket;
use verbs_sys::*;

use super::cancellation::{PutOff, begun, looks_up};
use super::inbox::Inbox;
use super::limits::READS_MAX;
use super::rnic::{Rnic, rnic};
use super::{created, errno, functions, posix, waits};
use crate::socket::{Connection, Handler, Listener};
use crate::startup::{Offer, PRIVATE_DATA_MAX};
pub(super) use id::Own;
use id::{Event, News, Stage, State};
pub(super) use synchronous::wait;
use synchronous::{channel_for, complete, leave_own_channel};

/// The longest backlog, which a program also has that asks for a longer one, or for none, as with the kernel.
const BACKLOG_MAX: c_int = 4096;

/// An event channel.
#[repr(C)]
struct Channel {
    raw: rdma_event_channel,
    rnic: &'static Rnic,
    events: Arc<Inbox<Box<Event>>>,
}

/// The private data of a call.
///
/// # Safety
/// `data` points to `length` bytes, or is null.
unsafe fn words<'a>(data: *const c_void, length: u8) -> Result<&'a [u8], c_int> {
    if data.is_null() || length == 0 {
        return Ok(&[]);
    }
    if usize::from(length) > PRIVATE_DATA_MAX {
        return Err(libc::EINVAL);
    }
    // SAFETY: as many bytes as `length` says, as librdmacm asks.
    Ok(unsafe { slice::from_raw_parts(data.cast(), length.into()) })
}

/// The parameters of a call. Without any there is no private data, and the limits are the device's.
///
/// # Safety
/// `param` is valid or null.
unsafe fn parameters(param: *mut rdma_conn_param) -> rdma_conn_param {
    if param.is_null() {
        let all: rdma_conn_param = zeroed();
        return rdma_conn_param { responder_resources: u8::MAX, initiator_depth: u8::MAX, ..all };
    }
    // SAFETY: not NULL, hence parameters, as librdmacm asks.
    unsafe { *param }
}

/// The limits that a side sends when it connects or accepts.
fn offer(said: &rdma_conn_param) -> Offer {
    Offer {
        inbound_reads: READS_MAX.min(said.responder_resources.into()),
        outbound_reads: READS_MAX.min(said.initiator_depth.into()),
        crc: false,
        peer_to_peer: true,
    }
}

fn io<T>(result: io::Result<T>) -> Result<T, c_int> {
    result.map_err(|error| errno(&error))
}

impl Own {
    /// Binds to a local address.
    fn bind(self: &Arc<Own>, state: &mut State, at: SocketAddr) -> Result<(), c_int> {
        self.rnic.check()?;
        if state.stage != Stage::Fresh {
            return Err(libc::EINVAL);
        }
        if at.port() != 0 && !self.datagram && !self.rnic.ports.is_free(at, state.reuse) {
            return Err(libc::EADDRINUSE);
        }
        let (socket, local) =
            if at.port() == 0 { self.bound_to_any_port(state, at)? } else { self.bound_to(state, at)? };
        if !local.ip().is_unspecified()
            && let Err(error) = self.take_device(state)
        {
            // The program may try again.
            self.rnic.ports.leave(self.key(), local.port());
            return Err(error);
        }
        if !self.datagram {
            state.socket = Some(socket);
        }
        state.local = Some(local);
        state.stage = Stage::Bound;
        Own::write_addresses(state);
        Ok(())
    }

    /// A socket bound to an address, which is reserved for this id.
    fn bound_to(self: &Arc<Own>, state: &State, at: SocketAddr) -> Result<(Socket, SocketAddr), c_int> {
        let socket = io(address::bound(at, state.one_family, true))?;
        self.reserve(state, &socket)?.map(|local| (socket, local)).ok_or(libc::EADDRINUSE)
    }

    /// Reserves a socket's address for this id. `None` if another id of the process has it.
    fn reserve(self: &Arc<Own>, state: &State, socket: &Socket) -> Result<Option<SocketAddr>, c_int> {
        let local = io(socket.local_addr())?.as_socket().ok_or(libc::EAFNOSUPPORT)?;
        let free = self.datagram || self.rnic.ports.take(self.key(), local, state.reuse);
        Ok(free.then_some(local))
    }

    /// As [`bound_to`](Self::bound_to), with a port that the system chooses, or else one that only connections in TIME_WAIT have,
    /// which the system does not choose.
    fn bound_to_any_port(
        self: &Arc<Own>,
        state: &State,
        at: SocketAddr,
    ) -> Result<(Socket, SocketAddr), c_int> {
        // The system may choose the port of an id that has no socket at the moment.
        const TRIES: usize = 16;
        for _ in 0..TRIES {
            match io(address::bound(at, state.one_family, false)) {
                Ok(socket) => {
                    if let Some(local) = self.reserve(state, &socket)? {
                        return Ok((socket, local));
                    }
                }
                Err(libc::EADDRINUSE) => break,
                Err(error) => return Err(error),
            }
        }
        let numbered = |port| {
            let mut numbered = at;
            numbered.set_port(port);
            self.bound_to(state, numbered)
        };
        let mut all = address::dynamic_ports().map(numbered);
        all.find(|found| !matches!(found, Err(libc::EADDRINUSE))).unwrap_or(Err(libc::EADDRINUSE))
    }

    fn resolve(self: &Arc<Own>, source: Option<SocketAddr>, to: SocketAddr) -> Result<(), c_int> {
        self.rnic.check()?;
        let mut state = self.state.lock();
        if !matches!(state.stage, Stage::Fresh | Stage::Bound) {
            return Err(libc::EINVAL);
        }
        // An id that is bound stays so, whatever source is named.
        if state.local.is_none() {
            self.bind(&mut state, source.map_or_else(|| io(address::source_for(to)), Ok)?)?;
        }
        if let Some(local) = state.local.filter(|local| local.ip().is_unspecified()) {
            let mut source = io(address::source_for(to))?;
            source.set_port(local.port());
            state.local = Some(source);
        }
        state.remote = Some(to);
        self.take_device(&mut state)?;
        Own::write_addresses(&state);
        self.send_locked(&state, RDMA_CM_EVENT_ADDR_RESOLVED, News::default());
        Ok(())
    }

    fn listen(self: &Arc<Own>, backlog: c_int) -> Result<(), c_int> {
        self.rnic.check()?;
        let mut state = self.state.lock();
        if !matches!(state.stage, Stage::Bound) {
            return Err(libc::EINVAL);
        }
        let socket = state.socket.take().ok_or(libc::EINVAL)?;
        // A peer may connect before the call returns; its handler waits for the lock.
        let backlog = if (1..=BACKLOG_MAX).contains(&backlog) { backlog } else { BACKLOG_MAX };
        let listener = Listener::on(&self.rnic.poller, socket, backlog, Arc::clone(self) as Arc<dyn Handler>);
        state.listener = Some(io(listener)?);
        state.stage = Stage::Listening;
        Ok(())
    }

    fn connect(self: &Arc<Own>, said: &rdma_conn_param, queue_pair: u32) -> Result<(), c_int> {
        // SAFETY: as many bytes as the parameters say, readable during the call, as librdmacm asks.
        let data = unsafe { words(said.private_data, said.private_data_len) }?;
        self.rnic.check()?;
        let ends = self.rnic.queue_pair(queue_pair).ok_or(libc::EINVAL)?;
        let mut state = self.state.lock();
        if state.stage != Stage::Bound {
            return Err(libc::EINVAL);
        }
        let to = state.remote.ok_or(libc::EINVAL)?;
        let claim = ends.claim().ok_or(libc::EINVAL)?;
        let socket = state.socket.take().ok_or(libc::EINVAL)?;
        let pair = Arc::clone(&ends.pair);
        state.ends = Some(ends);
        state.stage = Stage::Asking;
        let handler = Arc::clone(self) as Arc<dyn Handler>;
        let connection =
            Connection::connect_from(&self.rnic.poller, (socket, to), (offer(said), data), pair, handler);
        match connection {
            Ok(connection) => {
                state.connection = Some(connection);
                state.claim = Some(claim);
                Ok(())
            }
            Err(error) => {
                state.stage = Stage::Over;
                state.ends = None;
                // There is no route from this address.
                Err(if errno(&error) == libc::EINVAL { libc::ENETUNREACH } else { errno(&error) })
            }
        }
    }

    fn accept(self: &Arc<Own>, said: &rdma_conn_param, queue_pair: u32) -> Result<(), c_int> {
        // SAFETY: as many bytes as the parameters say, readable during the call, as librdmacm asks.
        let data = unsafe { words(said.private_data, said.private_data_len) }?;
        self.rnic.check()?;
        let ends = self.rnic.queue_pair(queue_pair).ok_or(libc::EINVAL)?;
        let mut state = self.state.lock();
        let connection = match &state.connection {
            Some(connection) if state.stage == Stage::Asked => Arc::clone(connection),
            _ => return Err(libc::EINVAL),
        };
        let claim = ends.claim().ok_or(libc::EINVAL)?;
        let agreement = io(connection.accept(&offer(said), data, Arc::clone(&ends.pair)))?;
        ends.connected(&connection);
        (state.ends, state.claim) = (Some(Arc::clone(&ends)), Some(claim));
        state.stage = Stage::Connected;
        let clamp = |reads: usize| reads.min(u8::MAX.into()) as u8;
        let reads = (clamp(agreement.inbound_reads), clamp(agreement.outbound_reads));
        self.send_locked(&state, RDMA_CM_EVENT_ESTABLISHED, News { reads, ..News::default() });
        drop(state);
        ends.catch_up();
        Ok(())
    }

    fn reject(&self, data: &[u8]) -> Result<(), c_int> {
        self.rnic.check()?;
        let mut state = self.state.lock();
        let connection = match state.connection.take() {
            Some(connection) if state.stage == Stage::Asked => connection,
            other => {
                state.connection = other;
                return Err(libc::EINVAL);
            }
        };
        state.stage = Stage::Over;
        drop(state);
        io(connection.refuse(data))
    }

    fn disconnect(&self) -> Result<(), c_int> {
        let mut state = self.state.lock();
        if state.ends.is_none()
            || !matches!(state.stage, Stage::Connected | Stage::Over)
            || state.disconnected
        {
            return Err(libc::EINVAL);
        }
        state.disconnected = true;
        let connection = state.connection.clone();
        drop(state);
        if let Some(connection) = connection {
            connection.disconnect();
        }
        Ok(())
    }
}

/// The queue pair of a call: the id's, or else the one in the parameters.
///
/// # Safety
/// The id and its queue pair are not destroyed.
unsafe fn queue_pair(id: *mut rdma_cm_id, said: &rdma_conn_param) -> u32 {
    // SAFETY: the id lives, as the caller promises.
    let qp = unsafe { (*id).qp };
    // SAFETY: NULL, or the queue pair of the id, which lives, as the caller promises.
    unsafe { qp.as_ref() }.map_or(said.qp_num, |qp| qp.qp_num)
}

/// A channel. With `drives`, threads that wait for its descriptor may drive the device.
fn create_channel(drives: bool) -> *mut rdma_event_channel {
    let new = || -> io::Result<_> {
        let rnic = rnic()?;
        let events = Arc::new(Inbox::new(drives)?);
        let raw = rdma_event_channel { fd: events.descriptor() };
        Ok(Box::into_raw(Box::new(Channel { raw, rnic, events })).cast())
    };
    created(io(new()))
}

/// As [`rdma_create_event_channel`], for events that are rare: the descriptor is readable for these alone, and may be in many epoll
/// sets, as it is none itself.
pub fn create_quiet_event_channel() -> *mut rdma_event_channel {
    create_channel(false)
}

/// Takes the next event of a channel; `ETIMEDOUT` if there is none within the limit.
///
/// # Safety
/// As for `rdma_get_cm_event`. Called again after `ETIMEDOUT`, it does not look at the channel.
unsafe fn next_event(
    channel: *mut rdma_event_channel,
    event: *mut *mut rdma_cm_event,
    limit: Option<Duration>,
) -> Result<(), c_int> {
    let _put_off = PutOff::new();
    let (rnic, events) = begun(|| {
        // SAFETY: the caller's channel lives. Another thread may destroy it while this one waits, which then waits on.
        let own = unsafe { &*channel.cast::<Channel>() };
        (own.rnic, Arc::clone(&own.events))
    });
    let next = events.next_within(Some(&rnic.poller), limit, |event| Own::taken(event));
    if limit.is_some() && matches!(next, Err(libc::ETIMEDOUT)) {
        looks_up((rnic, events));
    }
    // SAFETY: the result is writable.
    next.map(|next| unsafe { *event = Box::into_raw(next).cast() })
}

waits! {
    fn rdma_get_cm_event(channel: *mut rdma_event_channel, event: *mut *mut rdma_cm_event) = next_event;
}

functions! {
    fn rdma_create_event_channel() -> *mut rdma_event_channel {
        create_channel(true)
    }

    fn rdma_destroy_event_channel(channel: *mut rdma_event_channel) {
        // SAFETY: made above, destroyed once.
        drop(unsafe { Box::from_raw(channel.cast::<Channel>()) });
    }

    fn rdma_create_id(
        channel: *mut rdma_event_channel, id: *mut *mut rdma_cm_id, cookie: *mut c_void, ps: rdma_port_space
    ) -> c_int {
        posix(channel_for(channel).and_then(|(channel, synchronous)| {
            // SAFETY: the caller's channel lives; so does one that was just made for the id.
            let own = unsafe { &*channel.cast::<Channel>() };
            own.events.look_for_sockets(Some(&own.rnic.poller));
            // A channel outlives the device that it was made with.
            let rnic = if own.rnic.check().is_ok() { own.rnic } else { io(rnic())? };
            let mut raw: rdma_cm_id = zeroed();
            (raw.channel, raw.context, raw.ps) = (channel, cookie, ps);
            let new = Own::create(rnic, raw, Arc::clone(&own.events));
            // SAFETY: just made.
            unsafe { Own::of(new) }.state.lock().synchronous = synchronous;
            // SAFETY: the result is writable, as librdmacm asks.
            unsafe { *id = new };
            Ok(())
        }))
    }

    fn rdma_destroy_id(id: *mut rdma_cm_id) -> c_int {
        // SAFETY: not destroyed yet, and no other thread uses an id that is being destroyed, as librdmacm asks.
        let own_channel = unsafe { leave_own_channel(id) };
        // SAFETY: not destroyed yet, and nobody uses an id that is being destroyed, as librdmacm asks.
        unsafe { id::destroy(id) };
        if let Some(channel) = own_channel {
            // SAFETY: it was the id's own, so that nothing else uses it.
            unsafe { rdma_destroy_event_channel(channel) };
        }
        0
    }

    fn rdma_bind_addr(id: *mut rdma_cm_id, addr: *mut libc::sockaddr) -> c_int {
        // SAFETY: from `rdma_create_id` or a connection request, and not destroyed during the call, as librdmacm asks.
        let own = unsafe { Own::of(id) };
        // SAFETY: the address is as long as its family says, as librdmacm asks.
        let at = unsafe { address::read(addr) };
        posix(at.and_then(|at| own.bind(&mut own.state.lock(), at)))
    }

    fn rdma_resolve_addr(
        id: *mut rdma_cm_id, src: *mut libc::sockaddr, dst: *mut libc::sockaddr, _timeout_ms: c_int
    ) -> c_int {
        // SAFETY: from `rdma_create_id` or a connection request, and not destroyed during the call, as librdmacm asks.
        let own = unsafe { Own::of(id) };
        // SAFETY: not NULL, hence as long as its family says, as librdmacm asks.
        let source = (!src.is_null()).then(|| unsafe { address::read(src) }).transpose();
        // SAFETY: the address is as long as its family says, as librdmacm asks.
        let to = unsafe { address::read(dst) };
        // SAFETY: from `rdma_create_id` or a connection request, and not destroyed during the call, as librdmacm asks.
        posix(unsafe { complete(id, source.and_then(|source| own.resolve(source, to?))) })
    }

    fn rdma_resolve_route(id: *mut rdma_cm_id, _timeout_ms: c_int) -> c_int {
        // SAFETY: from `rdma_create_id` or a connection request, and not destroyed during the call, as librdmacm asks.
        unsafe { Own::of(id) }.send(RDMA_CM_EVENT_ROUTE_RESOLVED, News::default());
        // SAFETY: an id that lives, as librdmacm asks.
        posix(unsafe { complete(id, Ok(())) })
    }

    fn rdma_listen(id: *mut rdma_cm_id, backlog: c_int) -> c_int {
        // SAFETY: from `rdma_create_id` or a connection request, and not destroyed during the call, as librdmacm asks.
        posix(unsafe { Own::of(id) }.listen(backlog))
    }

    fn rdma_connect(id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int {
        // SAFETY: from `rdma_create_id` or a connection request, and not destroyed during the call, as librdmacm asks.
        let own = unsafe { Own::of(id) };
        // SAFETY: the structure is there or null, as librdmacm asks.
        let said = unsafe { parameters(param) };
        // SAFETY: neither the id nor its queue pair is destroyed during the call, as librdmacm asks.
        let pair = unsafe { queue_pair(id, &said) };
        // SAFETY: from `rdma_create_id` or a connection request, and not destroyed during the call, as librdmacm asks.
        posix(unsafe { complete(id, own.connect(&said, pair)) })
    }

    fn rdma_accept(id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int {
        // SAFETY: from `rdma_create_id` or a connection request, and not destroyed during the call, as librdmacm asks.
        let own = unsafe { Own::of(id) };
        // SAFETY: the structure is there or null, as librdmacm asks.
        let said = unsafe { parameters(param) };
        // SAFETY: neither the id nor its queue pair is destroyed during the call, as librdmacm asks.
        let pair = unsafe { queue_pair(id, &said) };
        // SAFETY: from `rdma_create_id` or a connection request, and not destroyed during the call, as librdmacm asks.
        posix(unsafe { complete(id, own.accept(&said, pair)) })
    }

    fn rdma_reject(id: *mut rdma_cm_id, data: *const c_void, length: u8) -> c_int {
        // SAFETY: from `rdma_create_id` or a connection request, and not destroyed during the call, as librdmacm asks.
        let own = unsafe { Own::of(id) };
        // SAFETY: as many bytes as `length` says, or none, as librdmacm asks.
        posix(unsafe { words(data, length) }.and_then(|data| own.reject(data)))
    }

    fn rdma_establish(_id: *mut rdma_cm_id) -> c_int {
        // iWARP connects in one step, without rdma_establish.
        posix(Err(libc::EINVAL))
    }

    fn rdma_notify(_id: *mut rdma_cm_id, _event: ibv_event_type) -> c_int {
        0
    }

    fn rdma_disconnect(id: *mut rdma_cm_id) -> c_int {
        // SAFETY: from `rdma_create_id` or a connection request, and not destroyed during the call, as librdmacm asks.
        let own = unsafe { Own::of(id) };
        // SAFETY: from `rdma_create_id` or a connection request, and not destroyed during the call, as librdmacm asks.
        posix(unsafe { complete(id, own.disconnect()) })
    }

    fn rdma_ack_cm_event(event: *mut rdma_cm_event) -> c_int {
        // SAFETY: from the function above, acknowledged once.
        let event = unsafe { Box::from_raw(event.cast::<Event>()) };
        event.to.acknowledged();
        0
    }

    fn rdma_set_option(
        id: *mut rdma_cm_id, level: c_int, name: c_int, value: *mut c_void, length: usize
    ) -> c_int {
        // SAFETY: from `rdma_create_id` or a connection request, and not destroyed during the call, as librdmacm asks.
        let own = unsafe { Own::of(id) };
        let mut state = own.state.lock();
        let known = level == RDMA_OPTION_ID as c_int;
        let on = || {
            // SAFETY: the value is as long as said.
            if length == size_of::<c_int>() { Ok(unsafe { *value.cast::<c_int>() } != 0) } else { Err(libc::EINVAL) }
        };
        posix(if known && name == RDMA_OPTION_ID_REUSEADDR as c_int {
            on().map(|on| {
                state.reuse = on;
                if let Some(local) = state.local {
                    own.rnic.ports.share(own.key(), local.port(), on);
                }
            })
        } else if known && name == RDMA_OPTION_ID_AFONLY as c_int {
            on().map(|on| state.one_family = on)
        } else {
            // The type of service and time-outs are left to TCP.
            Ok(())
        })
    }

    fn rdma_migrate_id(id: *mut rdma_cm_id, channel: *mut rdma_event_channel) -> c_int {
        // SAFETY: from `rdma_create_id` or a connection request, and not destroyed during the call, as librdmacm asks.
        let own = unsafe { Own::of(id) };
        if channel.is_null() && own.state.lock().synchronous {
            return posix(Err(libc::EINVAL));
        }
        posix(channel_for(channel).map(|(channel, synchronous)| {
            // SAFETY: not destroyed during the call, and no other thread uses an id that migrates, as librdmacm asks.
            let left = unsafe { leave_own_channel(id) };
            // SAFETY: the caller's channel lives; so does one that was just made for the id.
            let to = unsafe { &*channel.cast::<Channel>() };
            to.events.look_for_sockets(Some(&to.rnic.poller));
            let mut state = own.state.lock();
            let from = state.events.replace(Arc::clone(&to.events));
            state.synchronous = synchronous;
            // SAFETY: an id that lives, as librdmacm asks.
            unsafe { (*id).channel = channel };
            let moved = from.map_or_else(Vec::new, |from| from.remove(|event| Arc::ptr_eq(&event.to, own)));
            for event in moved {
                to.events.push(event);
            }
            drop(state);
            own.wait();
            if let Some(left) = left {
                // SAFETY: it was the id's own, and nothing else's.
                unsafe { rdma_destroy_event_channel(left) };
            }
        }))
    }

    fn rdma_init_qp_attr(_id: *mut rdma_cm_id, attr: *mut ibv_qp_attr, mask: *mut c_int) -> c_int {
        let access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
        // SAFETY: the attributes are writable, as librdmacm asks.
        unsafe { (*attr).qp_access_flags = access };
        // SAFETY: the mask is writable, as librdmacm asks.
        unsafe { *mask = (IBV_QP_STATE | IBV_QP_ACCESS_FLAGS) as c_int };
        0
    }
}
