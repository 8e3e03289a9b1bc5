//! Ids of the connection manager: their states, addresses and events.

use crate::device::{Device, Signal, context_at, lock};
use crate::faults::{self, CmEvent};
use ndcompat::SockAddr;
use ndcompat::verbs::bindings::*;
use std::collections::VecDeque;
use std::ptr;

/// The state of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Fresh,
    Bound,
    Listening,
    /// Has sent a connection request.
    Asking,
    /// Has received a connection request.
    Asked,
    /// Has accepted, or has been accepted.
    Agreed,
    Connected,
    Over,
}

/// An id.
#[repr(C)]
pub(crate) struct Id {
    pub id: rdma_cm_id,
    pub stage: Stage,
    /// `RDMA_OPTION_ID_REUSEADDR`: the address may be shared with ids that have this option, too.
    pub reuse: bool,
    pub local: Option<SockAddr>,
    pub remote: Option<SockAddr>,
    /// The peer's id, while it exists.
    pub peer: *mut Id,
    /// The peer has disconnected and this side has not yet.
    pub owes_answer: bool,
    /// The parameters that this side sent: its queue pair, and its limits of inbound and outbound reads.
    pub said: rdma_conn_param,
    /// Events taken and not yet acknowledged. Destroying the id waits for them.
    pub unacknowledged: u32,
}

#[repr(C)]
pub(crate) struct Channel {
    pub channel: rdma_event_channel,
    pub signal: Signal,
    pub events: VecDeque<*mut Event>,
}

/// An event with the private data that it points to.
#[repr(C)]
pub(crate) struct Event {
    pub event: rdma_cm_event,
    /// The id that it is for; the listener for a connection request.
    pub to: *mut Id,
    data: Vec<u8>,
}

/// An event without private data.
pub(crate) fn plain(kind: rdma_cm_event_type, status: i32) -> CmEvent {
    CmEvent { kind, status, data: Vec::new() }
}

/// Whether the address belongs to a device.
pub(crate) fn is_ours(address: SockAddr) -> bool {
    context_at(address).is_some()
}

impl Id {
    pub(crate) fn new(id: rdma_cm_id) -> Id {
        let said = zeroed();
        let (stage, peer) = (Stage::Fresh, ptr::null_mut());
        Id {
            id,
            stage,
            reuse: false,
            local: None,
            remote: None,
            peer,
            owes_answer: false,
            said,
            unacknowledged: 0,
        }
    }

    /// Binds to an address, and to its device unless it is the wildcard.
    pub(crate) fn take_address(&mut self, address: SockAddr) {
        self.local = Some(address);
        if let Some(context) = context_at(address) {
            self.id.verbs = context;
            self.id.port_num = 1;
        }
        self.write_addresses();
    }

    pub(crate) fn write_addresses(&mut self) {
        let addr = &mut self.id.route.addr;
        let places = [(&raw mut addr.__bindgen_anon_1).cast::<u8>(), (&raw mut addr.__bindgen_anon_2).cast()];
        for (address, place) in [self.local, self.remote].into_iter().zip(places) {
            let Some(address) = address else { continue };
            let (raw, length) = address.to_raw();
            // SAFETY: the place has room for either family.
            unsafe { place.copy_from_nonoverlapping(raw.as_ptr().cast(), length as usize) };
        }
    }
}

impl Device {
    /// Sends an event to the channel of `to`, about `to` or a new id, or the event that the test has put in its place. Returns
    /// whether one was sent.
    pub(crate) unsafe fn send(&mut self, to: *mut Id, about: *mut Id, event: CmEvent) -> bool {
        let Some(event) = faults::event(event) else { return false };
        // SAFETY: both ids live, and the lock is held.
        unsafe {
            let mut raw: rdma_cm_event = zeroed();
            (raw.id, raw.event, raw.status) = (about.cast(), event.kind, event.status);
            if about != to {
                raw.listen_id = to.cast();
            }
            let conn = &mut raw.param.conn;
            conn.private_data = event.data.as_ptr().cast();
            conn.private_data_len = event.data.len() as u8;
            if let Some(peer) = (*about).peer.as_ref() {
                // The peer's outbound reads are inbound here.
                conn.responder_resources = peer.said.initiator_depth;
                conn.initiator_depth = peer.said.responder_resources;
                conn.qp_num = peer.said.qp_num;
            }
            let channel = (*to).id.channel.cast::<Channel>();
            (*channel).events.push_back(Box::into_raw(Box::new(Event { event: raw, to, data: event.data })));
            (*channel).signal.set();
        }
        true
    }

    /// Sends an event to the peer of `id`, if it exists. Returns whether one was sent.
    pub(crate) unsafe fn tell_peer(&mut self, id: *mut Id, event: CmEvent) -> bool {
        // SAFETY: the id and its peer live, and the lock is held.
        unsafe {
            let peer = (*id).peer;
            !peer.is_null() && self.send(peer, peer, event)
        }
    }

    /// The listener for `address`.
    pub(crate) fn listener(&self, address: SockAddr) -> Option<*mut Id> {
        self.ids.iter().copied().find(|&id| {
            // SAFETY: what is listed lives, and the lock is held.
            let id = unsafe { &*id };
            let hears = |own: SockAddr| own.same_ip(address) || own.is_unspecified();
            id.stage == Stage::Listening
                && id.local.is_some_and(|own| own.port() == address.port() && hears(own))
        })
    }
}

/// Sends an event to the ids of connections and listeners with this local port.
pub fn raise_event(port: u16, event: CmEvent) {
    raise(event, |id| id.local.is_some_and(|local| local.port() == port));
}

/// Sends `RDMA_CM_EVENT_DEVICE_REMOVAL` to every id.
pub fn remove_device() {
    raise(plain(RDMA_CM_EVENT_DEVICE_REMOVAL, 0), |id| !id.id.verbs.is_null());
}

fn raise(event: CmEvent, chosen: impl Fn(&Id) -> bool) {
    let mut device = lock();
    // SAFETY: what is listed lives, and the lock is held.
    let ids: Vec<_> = device.ids.iter().copied().filter(|&id| chosen(unsafe { &*id })).collect();
    for id in ids {
        // SAFETY: the id lives, and the lock is held.
        unsafe { device.send(id, id, event.clone()) };
    }
}
