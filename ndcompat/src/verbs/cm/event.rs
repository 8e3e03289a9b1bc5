//! Events of ids.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use super::super::bindings::*;
use super::super::ops;
use super::{EventChannel, Id};

/// What happened to an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The peer's address belongs to a device that is reachable.
    AddrResolved,
    /// It does not.
    AddrError,
    /// The way to the peer is known.
    RouteResolved,
    /// There is none.
    RouteError,
    /// A listener was asked for a connection; the event carries a new id.
    ConnectRequest,
    /// The peer accepted; the connection waits for [`Id::establish`] (not on iWARP).
    ConnectResponse,
    /// Connecting failed.
    ConnectError,
    /// The peer does not answer.
    Unreachable,
    /// The peer refused.
    Rejected,
    /// The connection is up.
    Established,
    /// The connection is down.
    Disconnected,
    /// The device goes away.
    DeviceRemoval,
    /// The local address moved to another device.
    AddrChange,
    /// The queue pair may be used for another connection.
    TimewaitExit,
    /// An event that connections do not have.
    Other(u32),
}

impl EventKind {
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
/// Destroying the id that it names waits for that (for a connection request: the listener's), so while the event
/// lives the pointers in it are valid, and a thread that holds it must not drop the id.
pub struct Event {
    raw: NonNull<rdma_cm_event>,
    /// The id of a connection request, until somebody takes it.
    request: Option<Id>,
}

// SAFETY: an event may be read and acknowledged by any thread.
unsafe impl Send for Event {}

impl Event {
    /// # Safety
    /// `raw` is an event of `channel` that nobody else acknowledges.
    pub(super) unsafe fn new(raw: *mut rdma_cm_event, channel: &Arc<EventChannel>) -> Event {
        // SAFETY: librdmacm returned an event, and with a connection request an id that is ours.
        unsafe {
            let raw = NonNull::new_unchecked(raw);
            let is_request = raw.as_ref().event == RDMA_CM_EVENT_CONNECT_REQUEST;
            let request = is_request.then(|| Id::adopt(NonNull::new_unchecked(raw.as_ref().id), channel));
            Event { raw, request }
        }
    }

    fn get(&self) -> &rdma_cm_event {
        // SAFETY: the event is live until dropped.
        unsafe { self.raw.as_ref() }
    }

    /// What happened.
    pub fn kind(&self) -> EventKind {
        EventKind::new(self.get().event)
    }

    /// The error of a failure: an errno, or of a rejection by the peer over InfiniBand, the reason in the message.
    ///
    /// librdmacm passes errnos as negative numbers.
    pub fn status(&self) -> i32 {
        self.get().status
    }

    /// The status as an error, when it is an errno.
    pub fn error(&self) -> Option<io::Error> {
        let status = self.status();
        (status < 0).then(|| io::Error::from_raw_os_error(-status))
    }

    /// The id that it happened to; of a connection request, the new one.
    pub fn id(&self) -> *mut rdma_cm_id {
        self.get().id
    }

    /// The listener that a connection request arrived at, or null.
    pub fn listen_id(&self) -> *mut rdma_cm_id {
        self.get().listen_id
    }

    /// The cookie of the id, which a connection request has from the listener.
    pub fn cookie(&self) -> usize {
        // SAFETY: the id lives as long as its event.
        unsafe { (*self.id()).context as usize }
    }

    /// Takes the id of a connection request. Left alone, it is destroyed with the event, which refuses the peer.
    pub fn take_request(&mut self) -> Option<Id> {
        self.request.take()
    }

    fn param(&self) -> &rdma_conn_param {
        // SAFETY: ids are never of datagram type, so the event carries this part, zeroed where it has no meaning.
        unsafe { &self.get().param.conn }
    }

    /// The private data that came with a request, a response or a rejection, with the transport's padding.
    pub fn private_data(&self) -> &[u8] {
        let param = self.param();
        // SAFETY: the data is part of the event.
        unsafe { ops::bytes(param.private_data, param.private_data_len.into()) }
    }

    /// How many reads the peer may have outstanding here: what it asks for.
    pub fn responder_resources(&self) -> u8 {
        self.param().responder_resources
    }

    /// How many reads may be outstanding towards the peer: what it offers.
    pub fn initiator_depth(&self) -> u8 {
        self.param().initiator_depth
    }

    /// The number of the peer's queue pair; iWARP says 0.
    pub fn qp_num(&self) -> u32 {
        self.param().qp_num
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the event is live and not used again. Its new id, if left, goes after it: it does not wait for it.
        unsafe { rdma_ack_cm_event(self.raw.as_ptr()) };
    }
}
