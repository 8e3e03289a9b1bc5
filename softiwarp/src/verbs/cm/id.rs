//! Connection ids and their states.

use std::ffi::c_int;
use std::net::SocketAddr;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::{Condvar, Mutex};
use socket2::Socket;
use verbs_sys::*;

use super::super::device::named_with_domain;
use super::super::ends::{Claim, Ends};
use super::super::inbox::Inbox;
use super::super::limits::READS_MAX;
use super::super::rnic::{Bound, Rnic};
use super::address;
use crate::queue_pair::Agreement;
use crate::socket::{Connection, Ended, Event as ConnectionEvent, Handler, Listener};
use crate::wire::Enhanced;

/// The state of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Stage {
    Fresh,
    Bound,
    Listening,
    /// It has sent a connection request.
    Asking,
    /// It has received a connection request.
    Asked,
    Connected,
    /// The connection has ended, and the program has been told.
    Over,
}

/// An id: `struct rdma_cm_id`, and the object behind it.
#[repr(C)]
pub(super) struct Id {
    pub raw: rdma_cm_id,
    pub own: Arc<Own>,
}

/// The state of an id.
pub(in super::super) struct Own {
    pub rnic: &'static Rnic,
    /// Not in the port space `RDMA_PS_TCP`: it takes no port, and serves only to watch the device.
    pub datagram: bool,
    pub state: Mutex<State>,
    /// The number of its events that the program has taken and not acknowledged.
    unacknowledged: AtomicU32,
}

pub(in super::super) struct State {
    /// Null once the id is destroyed.
    raw: *mut rdma_cm_id,
    pub stage: Stage,
    /// The queue of its event channel, until the id is destroyed. A connection may have this object longer than that, and must not keep
    /// the descriptor of the channel open.
    pub events: Option<Arc<Inbox<Box<Event>>>>,
    pub local: Option<SocketAddr>,
    pub remote: Option<SocketAddr>,
    /// Bound to the local address, until it connects or listens.
    pub socket: Option<Socket>,
    pub listener: Option<Listener>,
    pub connection: Option<Arc<Connection>>,
    pub ends: Option<Arc<Ends>>,
    /// The reservation of its queue pair, while it connects and is connected.
    pub claim: Option<Claim>,
    /// `RDMA_OPTION_ID_REUSEADDR`: may share its address with ids that have this option, too.
    pub reuse: bool,
    /// `RDMA_OPTION_ID_AFONLY`: the IPv6 wildcard does not include IPv4.
    pub one_family: bool,
    /// `rdma_disconnect` was called.
    pub disconnected: bool,
    /// It has no channel of the program's, so its calls wait for their events.
    pub synchronous: bool,
    /// Its number among what is bound to the device.
    pub bound: Option<u64>,
    /// For a listener from `rdma_create_ep`: the attributes of its connections' queue pairs.
    pub queue_pairs: Option<ibv_qp_init_attr>,
}

// SAFETY: ids may be used by any thread; what is behind the pointer is used with the lock held, as far as it changes.
unsafe impl Send for State {}

/// `struct rdma_cm_event`, with the private data that it points to.
#[repr(C)]
pub(in super::super) struct Event {
    pub raw: rdma_cm_event,
    /// The id that it is for; the listener for a connection request.
    pub to: Arc<Own>,
    _data: Vec<u8>,
}

// SAFETY: events may be taken by any thread.
unsafe impl Send for Event {}

/// An event was acknowledged.
static ACKNOWLEDGED: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

/// The contents of an event.
#[derive(Default)]
pub(super) struct News {
    pub status: c_int,
    pub data: Vec<u8>,
    /// The peer's limits of outbound and inbound reads.
    pub reads: (u8, u8),
}

fn reads(enhanced: Option<Enhanced>) -> (u8, u8) {
    let clamp = |reads: u16| reads.min(u8::MAX.into()) as u8;
    // A peer that sends no limits is assumed to have this device's.
    enhanced.map_or((READS_MAX as u8, READS_MAX as u8), |said| {
        (clamp(said.outbound_reads), clamp(said.inbound_reads))
    })
}

impl Own {
    /// The `Own` of an `rdma_cm_id`.
    ///
    /// # Safety
    /// The id is this device's, and is not destroyed while the result is used.
    pub(in super::super) unsafe fn of<'a>(id: *mut rdma_cm_id) -> &'a Arc<Own> {
        // SAFETY: made by `rdma_create_id`, and not destroyed yet.
        unsafe { &(*id.cast::<Id>()).own }
    }

    /// Creates an id.
    pub(super) fn create(
        rnic: &'static Rnic,
        mut raw: rdma_cm_id,
        events: Arc<Inbox<Box<Event>>>,
    ) -> *mut rdma_cm_id {
        raw.qp_type = IBV_QPT_RC;
        let own = Arc::new(Own {
            rnic,
            datagram: raw.ps != RDMA_PS_TCP,
            state: Mutex::new(State {
                raw: ptr::null_mut(),
                stage: Stage::Fresh,
                events: Some(events),
                local: None,
                remote: None,
                socket: None,
                listener: None,
                connection: None,
                ends: None,
                claim: None,
                reuse: false,
                one_family: false,
                disconnected: false,
                synchronous: false,
                bound: None,
                queue_pairs: None,
            }),
            unacknowledged: AtomicU32::new(0),
        });
        let id = Box::into_raw(Box::new(Id { raw, own: Arc::clone(&own) })).cast();
        own.state.lock().raw = id;
        id
    }

    /// The key of the id in `Ports`.
    pub(super) fn key(self: &Arc<Own>) -> usize {
        Arc::as_ptr(self) as usize
    }

    /// Sends an event to the program.
    pub(super) fn send(self: &Arc<Own>, kind: rdma_cm_event_type, news: News) {
        self.send_locked(&self.state.lock(), kind, news);
    }

    pub(super) fn send_locked(self: &Arc<Own>, state: &State, kind: rdma_cm_event_type, news: News) {
        if !state.raw.is_null() {
            self.put(state, (state.raw, ptr::null_mut()), kind, news);
        }
    }

    fn put(
        self: &Arc<Own>,
        state: &State,
        (about, listener): (*mut rdma_cm_id, *mut rdma_cm_id),
        kind: rdma_cm_event_type,
        news: News,
    ) {
        let mut raw: rdma_cm_event = zeroed();
        (raw.id, raw.listen_id, raw.event, raw.status) = (about, listener, kind, news.status);
        // SAFETY: all bits were zero, which is a value of this part, too.
        let said = unsafe { &mut raw.param.conn };
        said.private_data = news.data.as_ptr().cast();
        said.private_data_len = news.data.len().min(u8::MAX.into()) as u8;
        (said.responder_resources, said.initiator_depth) = news.reads;
        if let Some(events) = &state.events {
            events.push(Box::new(Event { raw, to: Arc::clone(self), _data: news.data }));
        }
    }

    /// Counts an event that the program has taken.
    pub(super) fn taken(event: &Event) {
        event.to.unacknowledged.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts an acknowledged event.
    pub(super) fn acknowledged(&self) {
        let _waiting = ACKNOWLEDGED.0.lock();
        self.unacknowledged.fetch_sub(1, Ordering::AcqRel);
        ACKNOWLEDGED.1.notify_all();
    }

    /// Waits until the program has acknowledged all events of the id.
    pub(super) fn wait(&self) {
        let mut waiting = ACKNOWLEDGED.0.lock();
        while self.unacknowledged.load(Ordering::Acquire) > 0 {
            ACKNOWLEDGED.1.wait(&mut waiting);
        }
    }

    /// Sets the id's device once it has a local address.
    pub(super) fn take_device(self: &Arc<Own>, state: &mut State) -> Result<(), c_int> {
        let (context, domain) = named_with_domain()?;
        if state.bound.is_none() {
            let own = Arc::downgrade(self);
            state.bound = Some(self.rnic.bind(own)?);
        }
        // SAFETY: the id lives, as the lock is held and the pointer not null.
        unsafe { (*state.raw).verbs = context };
        // SAFETY: the id lives, as the lock is held and the pointer not null.
        unsafe { (*state.raw).port_num = 1 };
        // SAFETY: the id lives, as the lock is held and the pointer not null.
        let pd = unsafe { &mut (*state.raw).pd };
        if pd.is_null() {
            *pd = domain;
        }
        Ok(())
    }

    /// Writes the id's addresses to its C structure.
    pub(super) fn write_addresses(state: &State) {
        // SAFETY: the id lives, as the lock is held.
        unsafe { address::write(state.raw, state.local, state.remote) };
    }

    /// Handles a connection request to a listener: creates an id for it.
    fn asked(self: &Arc<Own>, connection: &Arc<Connection>, data: Vec<u8>, enhanced: Option<Enhanced>) {
        let state = self.state.lock();
        let Some(events) = state.events.clone().filter(|_| state.stage == Stage::Listening) else {
            drop(state);
            let _ = connection.refuse(&[]);
            return;
        };
        let mut raw: rdma_cm_id = zeroed();
        // SAFETY: the listener lives, as its lock is held and the pointer not null.
        raw.channel = unsafe { (*state.raw).channel };
        // SAFETY: the listener lives, as its lock is held and the pointer not null.
        raw.context = unsafe { (*state.raw).context };
        // SAFETY: the listener lives, as its lock is held and the pointer not null.
        raw.ps = unsafe { (*state.raw).ps };
        let id = Own::create(self.rnic, raw, events);
        // SAFETY: just made.
        let own = unsafe { Own::of(id) };
        let mut new = own.state.lock();
        new.stage = Stage::Asked;
        new.local = connection.local_address().ok().flatten().map(address::plain);
        new.remote = Some(address::plain(connection.peer_address()));
        new.connection = Some(Arc::clone(connection));
        // An id that has an address has a device: programs go on to make a domain on it.
        if own.take_device(&mut new).is_err() {
            drop((new, state));
            // SAFETY: nobody has heard of that id. Destroying it refuses the request.
            unsafe { destroy(id) };
            return;
        }
        Own::write_addresses(&new);
        drop(new);
        connection.set_handler(Arc::clone(own) as Arc<dyn Handler>);
        let news = News { status: 0, data, reads: reads(enhanced) };
        self.put(&state, (id, state.raw), RDMA_CM_EVENT_CONNECT_REQUEST, news);
    }

    fn established(
        self: &Arc<Own>,
        connection: &Arc<Connection>,
        (data, agreement, enhanced): (Vec<u8>, Agreement, Option<Enhanced>),
    ) {
        let mut state = self.state.lock();
        if state.stage != Stage::Asking {
            return;
        }
        state.stage = Stage::Connected;
        if let Some(ends) = &state.ends {
            ends.connected(connection);
        }
        let (wanted, _) = reads(enhanced);
        let reads = (wanted, agreement.outbound_reads.min(u8::MAX.into()) as u8);
        self.send_locked(&state, RDMA_CM_EVENT_ESTABLISHED, News { status: 0, data, reads });
        let ends = state.ends.clone();
        drop(state);
        if let Some(ends) = ends {
            ends.catch_up();
        }
    }

    fn ended(self: &Arc<Own>, ended: Ended) {
        let mut state = self.state.lock();
        let of = |status| News { status, ..News::default() };
        let (kind, news) = match (state.stage, ended) {
            (Stage::Connected, _) => (RDMA_CM_EVENT_DISCONNECTED, News::default()),
            (Stage::Asking, Ended::Refused(data)) => {
                (RDMA_CM_EVENT_REJECTED, News { data, ..of(-libc::ECONNRESET) })
            }
            (Stage::Asking, Ended::Unreachable(libc::ECONNREFUSED)) => {
                (RDMA_CM_EVENT_REJECTED, of(-libc::ECONNREFUSED))
            }
            (Stage::Asking, Ended::TimedOut | Ended::Unreachable(libc::ETIMEDOUT)) => {
                (RDMA_CM_EVENT_UNREACHABLE, of(-libc::ETIMEDOUT))
            }
            (Stage::Asking, Ended::Unreachable(error)) => (RDMA_CM_EVENT_CONNECT_ERROR, of(-error)),
            // No answer, or none of iWARP: what listens there may be another program altogether.
            (Stage::Asking, Ended::NotAccepted) => (RDMA_CM_EVENT_REJECTED, of(-libc::EPROTO)),
            (Stage::Asking, Ended::Disconnected(_)) => (RDMA_CM_EVENT_CONNECT_ERROR, of(-libc::ECONNABORTED)),
            // The program is not told that the peer is gone; `rdma_accept` will fail.
            _ => return,
        };
        state.stage = Stage::Over;
        let connection = state.connection.take();
        // After a failure the queue pair may be connected again; the connection is closed by now.
        state.claim = None;
        self.send_locked(&state, kind, news);
        drop(state);
        drop(connection);
    }
}

impl Handler for Own {
    fn event(&self, connection: &Arc<Connection>, event: ConnectionEvent) {
        let Some(own) = self.shared() else {
            // The listener was destroyed before the request arrived.
            if matches!(event, ConnectionEvent::Asked { .. }) {
                let _ = connection.refuse(&[]);
            }
            return;
        };
        match event {
            ConnectionEvent::Asked { private_data, enhanced } => {
                own.asked(connection, private_data, enhanced)
            }
            ConnectionEvent::Established { private_data, agreement, enhanced } => {
                own.established(connection, (private_data, agreement, enhanced));
            }
            ConnectionEvent::Ended(ended) => own.ended(ended),
        }
    }
}

impl Bound for Own {
    /// Reports that; nothing else is reported of the id.
    fn device_removed(&self) {
        let Some(own) = self.shared() else { return };
        let mut state = own.state.lock();
        state.stage = Stage::Over;
        own.send_locked(&state, RDMA_CM_EVENT_DEVICE_REMOVAL, News::default());
    }
}

impl Own {
    /// The id's reference to this object; `None` once the id is destroyed.
    fn shared(&self) -> Option<Arc<Own>> {
        let state = self.state.lock();
        // SAFETY: the id lives, as the lock is held and the pointer not null.
        (!state.raw.is_null()).then(|| unsafe { Arc::clone(&(*state.raw.cast::<Id>()).own) })
    }
}

/// Destroys an id.
///
/// # Safety
/// The id is not destroyed yet, and not used again.
pub(super) unsafe fn destroy(id: *mut rdma_cm_id) {
    // SAFETY: made by `rdma_create_id`, and not destroyed yet.
    let own = Arc::clone(unsafe { Own::of(id) });
    let mut state = own.state.lock();
    state.raw = ptr::null_mut();
    let stage = state.stage;
    state.stage = Stage::Over;
    let (listener, connection, ends) = (state.listener.take(), state.connection.take(), state.ends.take());
    let claim = state.claim.take();
    let (socket, local, events) = (state.socket.take(), state.local, state.events.take());
    let bound = state.bound.take();
    drop(state);
    if own.rnic.is_own() {
        if let Some(number) = bound {
            own.rnic.unbind(number);
        }
        drop(listener);
        match connection {
            // An unanswered connection request is rejected.
            Some(connection) if stage == Stage::Asked => drop(connection.refuse(&[])),
            Some(connection) => connection.disconnect(),
            None => {}
        }
        if let Some(local) = local {
            own.rnic.ports.leave(own.key(), local.port());
        }
        drop(socket);
    } else {
        // These belong to the parent process, whose connections continue.
        std::mem::forget((listener, connection, socket));
    }
    drop((claim, ends));
    // Before the wait for what was taken: what is removed cannot be taken any more.
    let left = events.map_or_else(Vec::new, |events| events.remove(|event| Arc::ptr_eq(&event.to, &own)));
    own.wait();
    for event in left {
        if event.raw.event == RDMA_CM_EVENT_CONNECT_REQUEST {
            // SAFETY: nobody has heard of that id.
            unsafe { destroy(event.raw.id) };
        }
    }
    // SAFETY: made by `create`, destroyed once.
    drop(unsafe { Box::from_raw(id.cast::<Id>()) });
}
