//! Ids of the connection manager, their addresses and what they have to say to each other.

use crate::device::{ADDRESS, ADDRESS6, Device, Signal, context, lock};
use crate::faults::{self, CmEvent};
use ndcompat::verbs::SockAddr;
use ndcompat::verbs::bindings::*;
use std::collections::VecDeque;
use std::mem::zeroed;
use std::net::IpAddr;
use std::ptr;

/// Where an id stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Fresh,
    Bound,
    Listening,
    /// Has asked for a connection.
    Asking,
    /// Was asked for a connection.
    Asked,
    /// Has accepted, or was accepted.
    Agreed,
    Connected,
    Over,
}

/// An id.
#[repr(C)]
pub(crate) struct Id {
    pub id: rdma_cm_id,
    pub stage: Stage,
    /// Shares its address with others that do so.
    pub reuse: bool,
    pub local: Option<SockAddr>,
    pub remote: Option<SockAddr>,
    /// The other side of the connection, while it lives.
    pub peer: *mut Id,
    /// What this side said: its queue pair, and how many reads it takes and wants.
    pub said: rdma_conn_param,
    /// Its events that the program has, and has not acknowledged. It cannot go before.
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
    /// Whom it came to: the listener, of a connection that was asked for.
    pub to: *mut Id,
    data: Vec<u8>,
}

/// An event that no data comes with.
pub(crate) fn plain(kind: rdma_cm_event_type, status: i32) -> CmEvent {
    CmEvent { kind, status, data: Vec::new() }
}

/// Whether the address is the device's.
pub(crate) fn is_ours(address: SockAddr) -> bool {
    [IpAddr::from(ADDRESS), IpAddr::from(ADDRESS6)].contains(&address.ip())
}

impl Id {
    pub(crate) fn new(id: rdma_cm_id) -> Id {
        // SAFETY: all bits zero are a valid value.
        let said = unsafe { zeroed() };
        let (stage, peer) = (Stage::Fresh, ptr::null_mut());
        Id { id, stage, reuse: false, local: None, remote: None, peer, said, unacknowledged: 0 }
    }

    /// Takes an address, and with it the device, if it is not the wildcard.
    pub(crate) fn take_address(&mut self, address: SockAddr) {
        self.local = Some(address);
        if !address.is_unspecified() {
            self.id.verbs = context();
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
    /// Sends an event to the channel of `to`, about `to` or a new id; the test may have another one in mind.
    pub(crate) unsafe fn send(&mut self, to: *mut Id, about: *mut Id, event: CmEvent) {
        let Some(event) = faults::event(event) else { return };
        // SAFETY: both ids live, and the lock is held; all bits zero are a valid value.
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
                // Seen from here, what the peer wants is what this side is asked for.
                conn.responder_resources = peer.said.initiator_depth;
                conn.initiator_depth = peer.said.responder_resources;
                conn.qp_num = peer.said.qp_num;
            }
            let channel = (*to).id.channel.cast::<Channel>();
            (*channel).events.push_back(Box::into_raw(Box::new(Event { event: raw, to, data: event.data })));
            (*channel).signal.set();
        }
    }

    /// Sends an event to the peer of `id`, if it has one that is not gone.
    pub(crate) unsafe fn tell_peer(&mut self, id: *mut Id, event: CmEvent) {
        // SAFETY: the id and its peer live, and the lock is held.
        unsafe {
            let peer = (*id).peer;
            if !peer.is_null() {
                self.send(peer, peer, event);
            }
        }
    }

    /// Who listens for calls to `address`.
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

/// Tells every id that the device is gone.
pub fn remove_device() {
    raise(plain(RDMA_CM_EVENT_DEVICE_REMOVAL, 0), |id| !id.id.verbs.is_null());
}

fn raise(event: CmEvent, chosen: impl Fn(&Id) -> bool) {
    let mut device = lock();
    // SAFETY: what is listed lives, and the lock is held.
    let ids: Vec<_> = device.ids.iter().copied().filter(|&id| chosen(unsafe { &*id })).collect();
    for id in ids {
        // SAFETY: as above.
        unsafe { device.send(id, id, event.clone()) };
    }
}
