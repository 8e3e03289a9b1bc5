//! The local addresses that RDMA devices answer for.

use std::io;
use std::ptr;
use std::sync::Arc;

use super::{Context, EventChannel, Id, SockAddr};

/// An address of this machine and the device behind it.
#[derive(Clone)]
pub struct LocalAddress {
    /// The address, with port 0.
    pub addr: SockAddr,
    /// The device.
    pub context: Arc<Context>,
    /// The device's port, counted from 1.
    pub port: u8,
}

/// Every local address of every RDMA device, in the order of the machine's interfaces; none without RDMA.
pub fn addresses() -> io::Result<Vec<LocalAddress>> {
    addresses_among(|_| true)?.collect()
}

/// Those of [`addresses`] that are `wanted`, one by one: each costs an id that is bound to it, as the kernel alone knows
/// which device an address belongs to, be it that of a VLAN, of a bond, or of IP over InfiniBand.
pub fn addresses_among(
    wanted: impl Fn(SockAddr) -> bool,
) -> io::Result<impl Iterator<Item = io::Result<LocalAddress>>> {
    let contexts = Context::all();
    let (mut candidates, mut channel) = (Vec::new(), None);
    if !contexts.is_empty() {
        for addr in interface_addresses()? {
            if wanted(addr) && !addr.is_loopback() && !candidates.contains(&addr) {
                candidates.push(addr);
            }
        }
        channel = Some(EventChannel::create()?);
    }
    // An id that could not be bound can be tried again.
    let mut spare = None;
    let mut device_of = move |addr| -> io::Result<Option<LocalAddress>> {
        let Some(channel) = &channel else { return Ok(None) };
        let id = match spare.take() {
            Some(id) => id,
            None => Id::create(channel, 0)?,
        };
        if id.bind_addr(addr).is_err() {
            spare = Some(id);
            return Ok(None);
        }
        let context = contexts.iter().find(|context| context.as_ptr() == id.verbs());
        Ok(context.map(|context| LocalAddress { addr, context: Arc::clone(context), port: id.port_num() }))
    };
    Ok(candidates.into_iter().filter_map(move |addr| device_of(addr).transpose()))
}

/// The IPv4 and IPv6 addresses of the interfaces that are up.
fn interface_addresses() -> io::Result<Vec<SockAddr>> {
    let mut head = ptr::null_mut();
    // SAFETY: `head` is writable.
    if unsafe { libc::getifaddrs(&mut head) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut addresses = Vec::new();
    let mut next = head;
    while !next.is_null() {
        // SAFETY: an entry of the list, which is not freed yet.
        let entry = unsafe { &*next };
        if entry.ifa_flags & libc::IFF_UP as u32 != 0 && !entry.ifa_addr.is_null() {
            // SAFETY: an address of the list is as long as its family says.
            let addr = unsafe { SockAddr::from_raw(entry.ifa_addr.cast(), family_length(entry.ifa_addr)) };
            addresses.extend(addr.ok());
        }
        next = entry.ifa_next;
    }
    // SAFETY: the list is from getifaddrs, and nothing points into it any more.
    unsafe { libc::freeifaddrs(head) };
    Ok(addresses)
}

/// How long an address without a length of its own is.
///
/// # Safety
/// `addr` points to an address of any family.
pub(super) unsafe fn family_length(addr: *const libc::sockaddr) -> usize {
    // SAFETY: the caller's promise.
    match i32::from(unsafe { (*addr).sa_family }) {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
        _ => size_of::<libc::sa_family_t>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_include_loopback() {
        let addresses = interface_addresses().unwrap();
        assert!(addresses.iter().any(|addr| addr.is_loopback()), "{addresses:?}");
        assert!(addresses.iter().all(|addr| addr.port() == 0), "{addresses:?}");
    }

    #[test]
    fn loopback_is_not_an_rdma_address() {
        // On a machine without RDMA the list is empty, on one with RDMA it still holds no loopback.
        assert!(addresses().unwrap().iter().all(|local| !local.addr.is_loopback()));
    }
}
