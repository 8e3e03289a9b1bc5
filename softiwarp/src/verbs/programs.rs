//! Functions that ndcompat does not use, for other verbs programs.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::net::{SocketAddr, ToSocketAddrs};
use std::ptr;

use socket2::SockAddr;
use verbs_sys::*;

use super::channel::{ibv_create_comp_channel, ibv_destroy_comp_channel};
use super::cm::address;
use super::completion::{ibv_create_cq, ibv_destroy_cq};
use super::device::{guid, named};
use super::queue_pair::{ibv_create_qp, ibv_destroy_qp, ibv_modify_qp};
use super::{created, functions, posix};

/// `struct rdma_addrinfo` of librdmacm.
#[repr(C)]
pub struct AddressInfo {
    flags: c_int,
    family: c_int,
    qp_type: c_int,
    port_space: c_int,
    source_length: libc::socklen_t,
    target_length: libc::socklen_t,
    pub(super) source: *mut libc::sockaddr,
    pub(super) target: *mut libc::sockaddr,
    source_name: *mut c_char,
    target_name: *mut c_char,
    route_length: usize,
    route: *mut c_void,
    connect_length: usize,
    connect: *mut c_void,
    next: *mut AddressInfo,
}

impl AddressInfo {
    /// Whether the address is for a listener.
    pub(super) fn is_passive(&self) -> bool {
        self.flags & PASSIVE != 0
    }
}

/// `RAI_PASSIVE`: the address is for a listener.
const PASSIVE: c_int = 1;
/// `RAI_FAMILY`: only addresses of this family.
const FAMILY: c_int = 8;

/// A C string, `None` for null.
///
/// # Safety
/// `text` is null or NUL-terminated.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    // SAFETY: NULL or terminated, as librdmacm asks.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str().ok()).flatten()
}

/// The first address of a host name, service and family.
fn look_up(node: Option<&str>, service: Option<&str>, family: c_int) -> Result<SocketAddr, c_int> {
    let port = service.map_or(Ok(0), str::parse::<u16>).map_err(|_| libc::EINVAL)?;
    let any = if family == libc::AF_INET6 { "::" } else { "0.0.0.0" };
    let found = (node.unwrap_or(any), port).to_socket_addrs().map_err(|_| libc::ENODEV)?;
    let fits = |address: &SocketAddr| match family {
        libc::AF_INET => address.is_ipv4(),
        libc::AF_INET6 => address.is_ipv6(),
        _ => true,
    };
    found.into_iter().find(fits).ok_or(libc::ENODEV)
}

/// A copy of an address in allocated memory.
fn given(address: SocketAddr) -> (*mut libc::sockaddr, libc::socklen_t) {
    let address = SockAddr::from(address);
    let length = address.len();
    (Box::into_raw(Box::new(address.as_storage())).cast(), length)
}

/// Frees a copy from [`given`].
///
/// # Safety
/// `address` is from [`given`] or null, and not used any more.
unsafe fn taken_back(address: *mut libc::sockaddr) {
    if !address.is_null() {
        // SAFETY: made by `given`, of this type, and not used any more.
        drop(unsafe { Box::from_raw(address.cast::<socket2::SockAddrStorage>()) });
    }
}

/// Creates a completion queue with a channel, for an id whose program gave none. `None`, with errno set, if that fails.
///
/// # Safety
/// The device is open.
unsafe fn own_queue(
    (device, cookie): (*mut ibv_context, *mut c_void),
    (named, own, channel): (&mut *mut ibv_cq, &mut *mut ibv_cq, &mut *mut ibv_comp_channel),
    depth: u32,
) -> Option<()> {
    if !named.is_null() {
        return Some(());
    }
    // SAFETY: the device is open, as the caller promises.
    *channel = unsafe { ibv_create_comp_channel(device) };
    if channel.is_null() {
        return None;
    }
    // SAFETY: the device is open, and the channel was just made; it is destroyed after the queue.
    *own = unsafe { ibv_create_cq(device, depth.max(1) as c_int, cookie, *channel, 0) };
    *named = *own;
    (!own.is_null()).then_some(())
}

/// Destroys the queues that `own_queue` has created.
///
/// # Safety
/// No queue pair uses them.
unsafe fn destroy_own_queues(id: &mut rdma_cm_id) {
    let all = [(&mut id.send_cq, &mut id.send_cq_channel), (&mut id.recv_cq, &mut id.recv_cq_channel)];
    for (queue, channel) in all {
        let (queue, channel) =
            (std::mem::replace(queue, ptr::null_mut()), std::mem::replace(channel, ptr::null_mut()));
        if !queue.is_null() {
            // SAFETY: made by `own_queue`, and just taken out of the id; no queue pair uses it, as the caller promises.
            unsafe { ibv_destroy_cq(queue) };
        }
        if !channel.is_null() {
            // SAFETY: made by `own_queue`, and just taken out of the id; its only queue is gone.
            unsafe { ibv_destroy_comp_channel(channel) };
        }
    }
}

functions! {
    fn rdma_create_qp(id: *mut rdma_cm_id, pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> c_int {
        // SAFETY: the id is the caller's, who uses it in no other thread meanwhile.
        let id = unsafe { &mut *id };
        // SAFETY: the structure is the caller's, who uses it in no other thread meanwhile.
        let init = unsafe { &mut *init };
        let pd = if pd.is_null() { id.pd } else { pd };
        if id.verbs.is_null() || pd.is_null() || !id.qp.is_null() {
            return posix(Err(libc::EINVAL));
        }
        let of = (id.verbs, ptr::from_mut(id).cast());
        let (sends, receives) = (init.cap.max_send_wr, init.cap.max_recv_wr);
        // SAFETY: the id's device is open.
        let made = unsafe { own_queue(of, (&mut init.send_cq, &mut id.send_cq, &mut id.send_cq_channel), sends) };
        let made = made.and_then(|()| {
            // SAFETY: the id's device is open.
            unsafe { own_queue(of, (&mut init.recv_cq, &mut id.recv_cq, &mut id.recv_cq_channel), receives) }
        });
        // SAFETY: what the structure names lives, as the caller says.
        let qp = made.map_or(ptr::null_mut(), |()| unsafe { ibv_create_qp(pd, init) });
        if qp.is_null() {
            // SAFETY: no queue pair uses them.
            unsafe { destroy_own_queues(id) };
            return -1;
        }
        let mut attr: ibv_qp_attr = zeroed();
        attr.qp_state = IBV_QPS_INIT;
        // SAFETY: the queue pair was just made. From reset this step always succeeds.
        unsafe { ibv_modify_qp(qp, &raw mut attr, IBV_QP_STATE as c_int) };
        (id.qp, id.pd) = (qp, pd);
        0
    }

    fn rdma_destroy_qp(id: *mut rdma_cm_id) {
        // SAFETY: the id is the caller's, who uses it in no other thread meanwhile.
        let id = unsafe { &mut *id };
        // SAFETY: the queue pair is from the function above, and just taken out of the id.
        unsafe { ibv_destroy_qp(std::mem::replace(&mut id.qp, ptr::null_mut())) };
        // SAFETY: the queue pair that used them is gone.
        unsafe { destroy_own_queues(id) };
    }

    fn rdma_getaddrinfo(
        node: *const c_char, service: *const c_char, hints: *const AddressInfo, result: *mut *mut AddressInfo
    ) -> c_int {
        // SAFETY: a text of C or null, as librdmacm asks.
        let node = unsafe { text(node) };
        // SAFETY: a text of C or null, as librdmacm asks.
        let service = unsafe { text(service) };
        // SAFETY: a structure or null, as librdmacm asks.
        let hints = unsafe { hints.as_ref() };
        let flags = hints.map_or(0, |hints| hints.flags);
        let asked = hints.filter(|hints| flags & FAMILY != 0 || hints.family != 0).map_or(0, |hints| hints.family);
        // SAFETY: the caller's address is as long as its family says, or there is none.
        let hinted = |address, length| unsafe { (length != 0).then(|| address::read(address)).transpose() };
        let find = || -> Result<_, c_int> {
            let of = |part: fn(&AddressInfo) -> (*mut libc::sockaddr, libc::socklen_t)| {
                let (address, length) = hints.map_or((ptr::null_mut(), 0), part);
                hinted(address, length)
            };
            let found = match (node, service, hints) {
                (None, None, None) => return Err(libc::EINVAL),
                (None, None, Some(_)) => None,
                _ => Some(look_up(node, service, asked)?),
            };
            let (source, target) = if flags & PASSIVE != 0 { (found, None) } else { (None, found) };
            let source = source.map_or_else(|| of(|hints| (hints.source, hints.source_length)), |found| Ok(Some(found)))?;
            let target = match (target, found) {
                (None, None) => of(|hints| (hints.target, hints.target_length))?,
                (target, _) => target,
            };
            Ok((source, target))
        };
        posix(find().map(|(source, target)| {
            let family = |address: SocketAddr| if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
            let none = (ptr::null_mut(), 0);
            let known = target.or(source);
            let ((source, source_length), (target, target_length)) =
                (source.map_or(none, given), target.map_or(none, given));
            let info = AddressInfo {
                flags,
                family: known.map_or(asked, family),
                qp_type: IBV_QPT_RC as c_int,
                port_space: RDMA_PS_TCP as c_int,
                source_length,
                target_length,
                source,
                target,
                source_name: ptr::null_mut(),
                target_name: ptr::null_mut(),
                route_length: 0,
                route: ptr::null_mut(),
                connect_length: 0,
                connect: ptr::null_mut(),
                next: ptr::null_mut(),
            };
            // SAFETY: there is room for the result.
            unsafe { *result = Box::into_raw(Box::new(info)) };
        }))
    }

    fn rdma_freeaddrinfo(info: *mut AddressInfo) {
        if !info.is_null() {
            // SAFETY: from the function above, freed once.
            let info = unsafe { Box::from_raw(info) };
            // SAFETY: NULL or made by `given`; the structure that had it goes here.
            unsafe { taken_back(info.source) };
            // SAFETY: NULL or made by `given`; the structure that had it goes here.
            unsafe { taken_back(info.target) };
        }
    }

    fn ibv_get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
        created(named().map(|context| {
            if !count.is_null() {
                // SAFETY: there is room for the count.
                unsafe { *count = 1 };
            }
            // SAFETY: this context is never closed.
            Box::into_raw(Box::new([unsafe { (*context).device }, ptr::null_mut()])).cast()
        }))
    }

    fn ibv_free_device_list(list: *mut *mut ibv_device) {
        // SAFETY: from the function above, of two entries, freed once.
        drop(unsafe { Box::from_raw(list.cast::<[*mut ibv_device; 2]>()) });
    }

    fn ibv_query_gid(_context: *mut ibv_context, _port: u8, index: c_int, gid: *mut ibv_gid) -> c_int {
        posix(if index == 0 {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&guid().to_be_bytes());
            // SAFETY: there is room for the result.
            unsafe { gid.write(ibv_gid { raw: bytes }) };
            Ok(())
        } else {
            Err(libc::EINVAL)
        })
    }

    fn ibv_query_pkey(_context: *mut ibv_context, _port: u8, _index: c_int, _pkey: *mut u16) -> c_int {
        // iWARP has no multicast.
        posix(Err(libc::EOPNOTSUPP))
    }

    fn efadv_query_device(_context: *mut ibv_context, _attr: *mut c_void, _length: u32) -> c_int {
        // A function of libefa. libfabric calls it on every device to find Amazon's; libefa's own answer for others needs a
        // context of libibverbs.
        libc::EOPNOTSUPP
    }
}
