//! The connection manager's functions.

use crate::cm_id::{Channel, Event, Id, Stage, is_ours, plain};
use crate::device::{Device, Signal, context, context_at, export, lock, next, path};
use crate::faults::{self, CmEvent};
use crate::{created, keep, posix};
use libc::{c_int, c_void, sockaddr};
use ndcompat::SockAddr;
use ndcompat::verbs::bindings::*;
use std::collections::VecDeque;
use std::ptr;
use std::sync::{Condvar, PoisonError};

/// Private data arrives padded to the size of its field in the message.
const REQUEST_DATA: usize = 56;
const RESPONSE_DATA: usize = 196;
const REJECTION_DATA: usize = 148;
/// Reasons of rejections: no listener, or rejected by the consumer.
const NO_LISTENER: i32 = 8;
const CONSUMER: i32 = 28;

/// An event was acknowledged.
static ACKNOWLEDGED: Condvar = Condvar::new();

unsafe fn address(raw: *const sockaddr) -> Result<SockAddr, i32> {
    // SAFETY: the caller's address is as long as its family says.
    let length = match i32::from(unsafe { (*raw).sa_family }) {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        _ => size_of::<libc::sockaddr_in6>(),
    };
    // SAFETY: the caller passes an address as long as its family says.
    unsafe { SockAddr::from_raw(raw.cast(), length) }.map_err(|_| libc::EINVAL)
}

/// The caller's parameters, and its private data padded to `room` bytes, as they arrive.
unsafe fn message(param: *const rdma_conn_param, room: usize) -> Result<(rdma_conn_param, Vec<u8>), i32> {
    // SAFETY: the caller's structure is readable.
    let said = unsafe { *param };
    // SAFETY: its private data is, too.
    let data = unsafe { padded(said.private_data, said.private_data_len, room) }?;
    Ok((said, data))
}

unsafe fn padded(data: *const c_void, length: u8, room: usize) -> Result<Vec<u8>, i32> {
    let length = usize::from(length);
    let mut bytes = vec![0; room];
    if length > 0 {
        // SAFETY: the caller's data is that long.
        let data = unsafe { std::slice::from_raw_parts(data.cast(), length) };
        bytes.get_mut(..length).ok_or(libc::EINVAL)?.copy_from_slice(data);
    }
    Ok(bytes)
}

/// The double's structure around an id. The lock must be held.
unsafe fn own<'a>(id: *mut rdma_cm_id) -> &'a mut Id {
    // SAFETY: the caller's id lives.
    unsafe { &mut *id.cast::<Id>() }
}

impl Device {
    /// A free port.
    fn free_port(&mut self) -> u16 {
        loop {
            self.last_port = self.last_port.checked_add(1).unwrap_or(0).max(49152);
            let port = self.last_port;
            // SAFETY: what is listed lives, and the lock is held.
            let has = |&id: &*mut Id| unsafe { &*id }.local.is_some_and(|local| local.port() == port);
            if !self.ids.iter().any(has) {
                return port;
            }
        }
    }

    unsafe fn bind(&mut self, id: &mut Id, address: SockAddr) -> Result<(), i32> {
        if !address.is_unspecified() && !is_ours(address) {
            return Err(libc::ENODEV);
        }
        let taken = |&other: &*mut Id| {
            // SAFETY: what is listed lives, and the lock is held.
            let other = unsafe { &*other };
            other.id.ps == id.id.ps
                // Accepted connections share their listener's port.
                && matches!(other.stage, Stage::Bound | Stage::Listening)
                && other.local.is_some_and(|local| local.port() == address.port())
                && !(other.reuse && id.reuse)
        };
        if address.port() != 0 && self.ids.iter().any(taken) {
            return Err(libc::EADDRINUSE);
        }
        let port = if address.port() == 0 { self.free_port() } else { address.port() };
        id.take_address(address.with_port(port));
        id.stage = Stage::Bound;
        Ok(())
    }

    /// Delivers the connection request of `caller` to the listener.
    unsafe fn ask(&mut self, caller: *mut Id, data: Vec<u8>) {
        // SAFETY: the id whose caller asks lives, and the lock is held.
        let (local, remote) = unsafe { ((*caller).local, (*caller).remote) };
        let Some(listener) = remote.and_then(|remote| self.listener(remote)) else {
            let answer = if remote.is_some_and(is_ours) {
                plain(RDMA_CM_EVENT_REJECTED, NO_LISTENER)
            } else {
                plain(RDMA_CM_EVENT_UNREACHABLE, -libc::ETIMEDOUT)
            };
            // SAFETY: the id lives, and the lock is held.
            unsafe { self.send(caller, caller, answer) };
            return;
        };
        // SAFETY: the listening id lives, and the lock is held.
        unsafe {
            let mut asked = Box::new(Id::new(ptr::read(&raw const (*listener).id)));
            asked.remote = local;
            asked.peer = caller;
            asked.stage = Stage::Asked;
            if let Some(remote) = remote {
                asked.take_address(remote);
            }
            let asked = Box::into_raw(asked);
            (*caller).peer = asked;
            self.ids.push(asked);
            self.send(listener, asked, CmEvent { data, ..plain(RDMA_CM_EVENT_CONNECT_REQUEST, 0) });
        }
    }

    /// Destroys an id, and the ids of its connection requests that have not been delivered.
    unsafe fn end(&mut self, id: *mut Id) {
        self.ids.retain(|&other| other != id);
        // SAFETY: what is listed lives, and the lock is held; events and ids were made by Box.
        unsafe {
            for event in take_events(id) {
                let about = Box::from_raw(event).event.id.cast::<Id>();
                if about != id {
                    self.end(about);
                }
            }
            match (*id).stage {
                // The peer is not told that the id that sent the request is gone.
                Stage::Asked | Stage::Agreed => self.tell_peer(id, plain(RDMA_CM_EVENT_REJECTED, CONSUMER)),
                Stage::Connected => self.tell_peer(id, plain(RDMA_CM_EVENT_DISCONNECTED, 0)),
                _ => (*id).owes_answer && self.tell_peer(id, plain(RDMA_CM_EVENT_DISCONNECTED, 0)),
            };
            for &other in self.ids.iter().filter(|&&other| (*other).peer == id) {
                (*other).peer = ptr::null_mut();
            }
            drop(Box::from_raw(id));
        }
    }
}

/// Removes the events of `id` from its channel.
unsafe fn take_events(id: *mut Id) -> Vec<*mut Event> {
    // SAFETY: the id and its channel live, and the lock is held.
    unsafe {
        let channel = (*id).id.channel.cast::<Channel>();
        // The event of a connection request stays with the listener.
        let own = |event: &*mut Event| (**event).to == id;
        let (taken, rest): (VecDeque<_>, _) = (*channel).events.drain(..).partition(own);
        (*channel).events = rest;
        taken.into()
    }
}

export! {
    fn rdma_create_event_channel() -> *mut rdma_event_channel {
        created("rdma_create_event_channel", || {
            let signal = Signal::new()?;
            let channel = rdma_event_channel { fd: signal.0 };
            Ok(Box::into_raw(Box::new(Channel { channel, signal, events: VecDeque::new() })).cast())
        })
    }

    fn rdma_destroy_event_channel(channel: *mut rdma_event_channel) {
        // SAFETY: made above, destroyed once.
        unsafe { Box::from_raw(channel.cast::<Channel>()) }.signal.close();
    }

    fn rdma_create_id(
        channel: *mut rdma_event_channel, id: *mut *mut rdma_cm_id, cookie: *mut c_void, ps: rdma_port_space
    ) -> c_int {
        posix("rdma_create_id", || {
            let mut raw: rdma_cm_id = zeroed();
            (raw.channel, raw.context, raw.ps) = (channel, cookie, ps);
            let made = Box::into_raw(Box::new(Id::new(raw)));
            lock().ids.push(made);
            // SAFETY: the caller has room for the id.
            unsafe { *id = made.cast() };
            Ok(())
        })
    }

    fn rdma_destroy_id(id: *mut rdma_cm_id) -> c_int {
        let status = posix("rdma_destroy_id", || {
            let mut device = lock();
            // SAFETY: the id lives, and the lock is held, but while others acknowledge its events.
            unsafe {
                while own(id).unacknowledged > 0 {
                    device = ACKNOWLEDGED.wait(device).unwrap_or_else(PoisonError::into_inner);
                }
                device.end(id.cast());
            }
            Ok(())
        });
        if status != 0 {
            keep(id);
        }
        status
    }

    fn rdma_bind_addr(id: *mut rdma_cm_id, addr: *mut sockaddr) -> c_int {
        posix("rdma_bind_addr", || {
            let mut device = lock();
            // SAFETY: the id lives, the lock is held, and the caller passes addresses as long as their
            // families say.
            unsafe { device.bind(own(id), address(addr)?) }
        })
    }

    fn rdma_resolve_addr(
        id: *mut rdma_cm_id, src: *mut sockaddr, dst: *mut sockaddr, _timeout_ms: c_int
    ) -> c_int {
        posix("rdma_resolve_addr", || {
            let mut device = lock();
            // SAFETY: the id lives, the lock is held, and the caller passes addresses as long as their
            // families say.
            unsafe {
                let own = own(id);
                if !src.is_null() {
                    device.bind(own, address(src)?)?;
                }
                own.remote = Some(address(dst)?);
                if own.id.verbs.is_null() {
                    // The destination need not be one of the device's addresses.
                    own.id.verbs = own.remote.and_then(context_at).unwrap_or(context());
                }
                own.id.port_num = 1;
                own.write_addresses();
                device.send(id.cast(), id.cast(), plain(RDMA_CM_EVENT_ADDR_RESOLVED, 0));
            }
            Ok(())
        })
    }

    fn rdma_resolve_route(id: *mut rdma_cm_id, _timeout_ms: c_int) -> c_int {
        posix("rdma_resolve_route", || {
            // SAFETY: the id lives, and the lock is held.
            unsafe { lock().send(id.cast(), id.cast(), plain(RDMA_CM_EVENT_ROUTE_RESOLVED, 0)) };
            Ok(())
        })
    }

    fn rdma_listen(id: *mut rdma_cm_id, _backlog: c_int) -> c_int {
        posix("rdma_listen", || {
            let _device = lock();
            // SAFETY: the id lives, and the lock is held.
            unsafe { own(id) }.stage = Stage::Listening;
            Ok(())
        })
    }

    fn rdma_connect(id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int {
        posix("rdma_connect", || {
            let mut device = lock();
            // SAFETY: the id lives, the lock is held, and the caller passes parameters with as much private
            // data as they say.
            unsafe {
                let (said, data) = message(param, REQUEST_DATA)?;
                (own(id).said, own(id).stage) = (said, Stage::Asking);
                device.ask(id.cast(), data);
            }
            Ok(())
        })
    }

    fn rdma_accept(id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int {
        posix("rdma_accept", || {
            let mut device = lock();
            // SAFETY: the id lives, the lock is held, and the caller passes parameters with as much private
            // data as they say.
            unsafe {
                let (said, data) = message(param, RESPONSE_DATA)?;
                let own = own(id);
                if own.stage != Stage::Asked || own.peer.is_null() {
                    return Err(libc::EINVAL);
                }
                (own.said, own.stage, (*own.peer).stage) = (said, Stage::Agreed, Stage::Agreed);
                device.tell_peer(own, CmEvent { data, ..plain(RDMA_CM_EVENT_CONNECT_RESPONSE, 0) });
            }
            Ok(())
        })
    }

    fn rdma_reject(id: *mut rdma_cm_id, data: *const c_void, length: u8) -> c_int {
        posix("rdma_reject", || {
            let mut device = lock();
            // SAFETY: the id lives, the lock is held, and the caller passes as much private data as it says.
            unsafe {
                let data = padded(data, length, REJECTION_DATA)?;
                let own = own(id);
                if !matches!(own.stage, Stage::Asked | Stage::Agreed) || own.peer.is_null() {
                    return Err(libc::EINVAL);
                }
                own.stage = Stage::Over;
                device.tell_peer(own, CmEvent { data, ..plain(RDMA_CM_EVENT_REJECTED, CONSUMER) });
            }
            Ok(())
        })
    }

    fn rdma_establish(id: *mut rdma_cm_id) -> c_int {
        posix("rdma_establish", || {
            let mut device = lock();
            // SAFETY: the id lives, and the lock is held.
            unsafe {
                let own = own(id);
                if own.stage != Stage::Agreed {
                    return Err(libc::EINVAL);
                }
                own.stage = Stage::Connected;
                if let Some(peer) = own.peer.as_mut() {
                    peer.stage = Stage::Connected;
                }
                device.tell_peer(own, plain(RDMA_CM_EVENT_ESTABLISHED, 0));
            }
            Ok(())
        })
    }

    fn rdma_notify(_id: *mut rdma_cm_id, _event: ibv_event_type) -> c_int {
        posix("rdma_notify", || Ok(()))
    }

    fn rdma_disconnect(id: *mut rdma_cm_id) -> c_int {
        posix("rdma_disconnect", || {
            let mut device = lock();
            // SAFETY: the id lives, and the lock is held.
            unsafe {
                let own = own(id);
                if own.stage != Stage::Connected && !own.owes_answer {
                    return Err(libc::EINVAL);
                }
                let answers = std::mem::take(&mut own.owes_answer);
                own.stage = Stage::Over;
                let told = device.tell_peer(own, plain(RDMA_CM_EVENT_DISCONNECTED, 0));
                if let Some(peer) = own.peer.as_mut() {
                    peer.owes_answer |= told && !answers;
                }
            }
            Ok(())
        })
    }

    fn rdma_get_cm_event(channel: *mut rdma_event_channel, event: *mut *mut rdma_cm_event) -> c_int {
        posix("rdma_get_cm_event", || {
            let _device = lock();
            let channel = channel.cast::<Channel>();
            // SAFETY: the channel and the event's id live, the lock is held, the result is writable.
            unsafe {
                let next = next(&mut (*channel).events, &(*channel).signal)?;
                (*(*next).to).unacknowledged += 1;
                *event = next.cast();
            }
            Ok(())
        })
    }

    fn rdma_ack_cm_event(event: *mut rdma_cm_event) -> c_int {
        // It may be slow, but never fails.
        faults::stalled("rdma_ack_cm_event");
        let _device = lock();
        // SAFETY: from the function above, acknowledged once, which the id waits for; the lock is held.
        unsafe {
            let event = Box::from_raw(event.cast::<Event>());
            (*event.to).unacknowledged -= 1;
        }
        ACKNOWLEDGED.notify_all();
        0
    }

    fn rdma_set_option(
        id: *mut rdma_cm_id, _level: c_int, name: c_int, value: *mut c_void, _length: usize
    ) -> c_int {
        posix("rdma_set_option", || {
            let _device = lock();
            if name == RDMA_OPTION_ID_REUSEADDR as c_int {
                // SAFETY: the id lives, the lock is held, and the value of this option is an `int`.
                unsafe { own(id).reuse = *value.cast::<c_int>() != 0 };
            }
            Ok(())
        })
    }

    fn rdma_migrate_id(id: *mut rdma_cm_id, channel: *mut rdma_event_channel) -> c_int {
        posix("rdma_migrate_id", || {
            let _device = lock();
            // SAFETY: the id and both channels live, and the lock is held.
            unsafe {
                let events = take_events(id.cast());
                (*id).channel = channel;
                let channel = channel.cast::<Channel>();
                if !events.is_empty() {
                    (*channel).events.extend(events);
                    (*channel).signal.set();
                }
            }
            Ok(())
        })
    }

    fn rdma_init_qp_attr(id: *mut rdma_cm_id, attr: *mut ibv_qp_attr, mask: *mut c_int) -> c_int {
        posix("rdma_init_qp_attr", || {
            let _device = lock();
            // SAFETY: the id and its peer live, the lock is held, the results are writable.
            unsafe {
                if (*attr).qp_state == IBV_QPS_INIT {
                    ((*attr).port_num, (*attr).pkey_index) = path();
                    *mask = (IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX) as c_int;
                    return Ok(());
                }
                let peer = own(id).peer.as_ref().ok_or(libc::EINVAL)?;
                (*attr).dest_qp_num = peer.said.qp_num;
                *mask = (IBV_QP_STATE | IBV_QP_DEST_QPN) as c_int;
            }
            Ok(())
        })
    }
}
