//! Events of ids.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::super::bindings::*;
use super::super::{Library, errno, ops};
use super::{EventChannel, Id};

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The peer's address is resolved.
    AddrResolved,
    /// Resolving the address has failed.
    AddrError,
    /// The route to the peer is resolved.
    RouteResolved,
    /// Resolving the route has failed.
    RouteError,
    /// A listener has got a connection request; the event carries a new id.
    ConnectRequest,
    /// The peer has accepted; [`Id::establish`] is next (not over iWARP).
    ConnectResponse,
    /// Connecting has failed.
    ConnectError,
    /// The peer does not answer.
    Unreachable,
    /// The peer has rejected the connection.
    Rejected,
    /// The connection is established.
    Established,
    /// The connection has ended.
    Disconnected,
    /// The device is removed.
    DeviceRemoval,
    /// The local address has moved to another device.
    AddrChange,
    /// The queue pair may be used for another connection.
    TimewaitExit,
    /// An event of another kind.
    Other(u32),
}

impl EventKind {
    /// The name in `rdma_cma.h`.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::AddrResolved => "RDMA_CM_EVENT_ADDR_RESOLVED",
            EventKind::AddrError => "RDMA_CM_EVENT_ADDR_ERROR",
            EventKind::RouteResolved => "RDMA_CM_EVENT_ROUTE_RESOLVED",
            EventKind::RouteError => "RDMA_CM_EVENT_ROUTE_ERROR",
            EventKind::ConnectRequest => "RDMA_CM_EVENT_CONNECT_REQUEST",
            EventKind::ConnectResponse => "RDMA_CM_EVENT_CONNECT_RESPONSE",
            EventKind::ConnectError => "RDMA_CM_EVENT_CONNECT_ERROR",
            EventKind::Unreachable => "RDMA_CM_EVENT_UNREACHABLE",
            EventKind::Rejected => "RDMA_CM_EVENT_REJECTED",
            EventKind::Established => "RDMA_CM_EVENT_ESTABLISHED",
            EventKind::Disconnected => "RDMA_CM_EVENT_DISCONNECTED",
            EventKind::DeviceRemoval => "RDMA_CM_EVENT_DEVICE_REMOVAL",
            EventKind::AddrChange => "RDMA_CM_EVENT_ADDR_CHANGE",
            EventKind::TimewaitExit => "RDMA_CM_EVENT_TIMEWAIT_EXIT",
            EventKind::Other(_) => "an event of the connection manager",
        }
    }

    fn new(raw: rdma_cm_event_type) -> EventKind {
        match raw {
            RDMA_CM_EVENT_ADDR_RESOLVED => EventKind::AddrResolved,
            RDMA_CM_EVENT_ADDR_ERROR => EventKind::AddrError,
            RDMA_CM_EVENT_ROUTE_RESOLVED => EventKind::RouteResolved,
            RDMA_CM_EVENT_ROUTE_ERROR => EventKind::RouteError,
            RDMA_CM_EVENT_CONNECT_REQUEST => EventKind::ConnectRequest,
            RDMA_CM_EVENT_CONNECT_RESPONSE => EventKind::ConnectResponse,
            RDMA_CM_EVENT_CONNECT_ERROR => EventKind::ConnectError,
            RDMA_CM_EVENT_UNREACHABLE => EventKind::Unreachable,
            RDMA_CM_EVENT_REJECTED => EventKind::Rejected,
            RDMA_CM_EVENT_ESTABLISHED => EventKind::Established,
            RDMA_CM_EVENT_DISCONNECTED => EventKind::Disconnected,
            RDMA_CM_EVENT_DEVICE_REMOVAL => EventKind::DeviceRemoval,
            RDMA_CM_EVENT_ADDR_CHANGE => EventKind::AddrChange,
            RDMA_CM_EVENT_TIMEWAIT_EXIT => EventKind::TimewaitExit,
            other => EventKind::Other(other),
        }
    }
}

/// An event, acknowledged when dropped.
///
/// Destroying its id (of a connection request: the listener's) waits for the acknowledgement: the event's pointers are
/// valid while it lives, and a thread that holds it must not drop the id.
pub struct Event {
    raw: NonNull<rdma_cm_event>,
    /// The id of a connection request, until it is taken.
    request: Option<Id>,
    library: &'static Library,
}

// SAFETY: an event may be read and acknowledged by any thread.
unsafe impl Send for Event {}

impl EventChannel {
    /// Takes the next event.
    ///
    /// # Errors
    /// The errno of `rdma_get_cm_event`; having none is not an error.
    pub fn event(self: &Arc<EventChannel>) -> io::Result<Option<Event>> {
        let mut raw = ptr::null_mut();
        // SAFETY: the channel is live, the result writable.
        let rc = unsafe { (self.library().rdma_get_cm_event)(self.as_ptr(), &mut raw) };
        // SAFETY: on success the event is live, and nothing else acknowledges it.
        errno::found(errno::posix(&(), "rdma_get_cm_event", rc).map(|()| unsafe { Event::new(raw, self) }))
    }
}

impl Event {
    /// # Safety
    /// `raw` is an event of `channel` that nothing else acknowledges.
    pub(super) unsafe fn new(raw: *mut rdma_cm_event, channel: &Arc<EventChannel>) -> Event {
        // SAFETY: the caller's event is not null.
        let raw = unsafe { NonNull::new_unchecked(raw) };
        let mut event = Event { raw, request: None, library: channel.library() };
        if event.get().event == RDMA_CM_EVENT_CONNECT_REQUEST {
            let id = NonNull::new(event.get().id).expect("a connection request comes with an id");
            // SAFETY: the id of a connection request is new, and belongs to the reader of the event.
            event.request = Some(unsafe { Id::adopt(id, channel) });
        }
        event
    }

    fn get(&self) -> &rdma_cm_event {
        // SAFETY: the event is live until dropped.
        unsafe { self.raw.as_ref() }
    }

    /// What happened.
    pub fn kind(&self) -> EventKind {
        EventKind::new(self.get().event)
    }

    /// The error of a failure: an errno or, of a rejection by the peer over InfiniBand, the reason.
    ///
    /// Errnos are negative.
    pub fn status(&self) -> i32 {
        self.get().status
    }

    /// The status as an error, if it is an errno.
    pub fn error(&self) -> Option<io::Error> {
        let status = self.status();
        (status < 0).then(|| io::Error::from_raw_os_error(-status))
    }

    /// The id of the event; of a connection request, the new one.
    pub fn id(&self) -> *mut rdma_cm_id {
        self.get().id
    }

    /// The listener of a connection request, or null.
    pub fn listen_id(&self) -> *mut rdma_cm_id {
        self.get().listen_id
    }

    /// The cookie of the id; of a connection request, the listener's.
    pub fn cookie(&self) -> usize {
        // SAFETY: the id lives as long as its event.
        unsafe { (*self.id()).context as usize }
    }

    /// Takes the id of a connection request. If it is not taken, dropping the event destroys it, which rejects the peer.
    pub fn take_request(&mut self) -> Option<Id> {
        self.request.take()
    }

    fn param(&self) -> &rdma_conn_param {
        // SAFETY: events of connections have this part of the union; it is zeroed where it has no meaning.
        unsafe { &self.get().param.conn }
    }

    /// The private data of a request, a response or a rejection, with the transport's padding.
    pub fn private_data(&self) -> &[u8] {
        let param = self.param();
        // SAFETY: the data is in the memory of the event, which is live until `self` is dropped.
        unsafe { ops::bytes(param.private_data, param.private_data_len.into()) }
    }

    /// How many reads the peer asks to have outstanding.
    pub fn responder_resources(&self) -> u8 {
        self.param().responder_resources
    }

    /// How many reads the peer allows this side to have outstanding.
    pub fn initiator_depth(&self) -> u8 {
        self.param().initiator_depth
    }

    /// Whether the peer's receives come from a shared queue.
    pub fn peer_shares(&self) -> bool {
        self.param().srq != 0
    }

    /// The number of the peer's queue pair; 0 over iWARP.
    pub fn qp_num(&self) -> u32 {
        self.param().qp_num
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the event is live and not used again. A new id that was not taken is dropped afterwards, and does not
        // wait for this event.
        unsafe { (self.library.rdma_ack_cm_event)(self.raw.as_ptr()) };
    }
}
