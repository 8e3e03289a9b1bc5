//! The local addresses of RDMA devices.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::io;
use std::iter;
use std::ptr;
use std::sync::Arc;

use super::{Context, EventChannel, Id, RDMA_CORE, SockAddr};
use super::{emulator, sockaddr};

/// An address of this machine, and its device.
#[derive(Clone)]
pub struct LocalAddress {
    /// The address, with port 0.
    pub addr: SockAddr,
    /// The device.
    pub context: Arc<Context>,
    /// The device's port, counted from 1.
    pub port: u8,
}

/// All local addresses of all RDMA devices, in the order of the machine's interfaces; then those of the emulator, if it is
/// enabled.
///
/// # Errors
/// The errno of `getifaddrs`, of creating an rdma_cm channel, or of creating an id on it; `EINVAL` if `NDCOMPAT_EMULATOR`
/// has an invalid value.
pub fn addresses() -> io::Result<Vec<LocalAddress>> {
    addresses_among(|_| true)?.into_iter().flatten().collect()
}

/// An iterator over those of [`addresses`] that are `wanted`. Each takes binding an id, as only the kernel knows the device
/// of an address, which may be that of a VLAN, of a bond, or of IP over InfiniBand. The emulator has all addresses without
/// a device, and those of the loopback interface. `None` without any device.
///
/// # Errors
/// Those of [`Context::all`]; the errno of `getifaddrs`; `EINVAL` if `NDCOMPAT_EMULATOR` has an invalid value. Of each
/// item, the errno of creating an id.
pub fn addresses_among(
    wanted: impl Fn(SockAddr) -> bool,
) -> io::Result<Option<impl Iterator<Item = io::Result<LocalAddress>>>> {
    emulator::check()?;
    let (mut emulators, contexts): (Vec<_>, Vec<_>) =
        Context::all()?.into_iter().partition(|context| context.library().is_emulator());
    let emulator = emulators.pop();
    if contexts.is_empty() && emulator.is_none() {
        return Ok(None);
    }
    let (mut candidates, mut channel) = (VecDeque::new(), None);
    for addr in interface_addresses()? {
        if wanted(addr) && !candidates.contains(&addr) {
            candidates.push_back(addr);
        }
    }
    if !contexts.is_empty() {
        channel = Some(EventChannel::create(&RDMA_CORE)?);
    }
    // An id that could not be bound is used for the next address.
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
        let context = contexts.iter().find(|context| context.is_named(id.verbs()));
        Ok(context.map(|context| LocalAddress { addr, context: Arc::clone(context), port: id.port_num() }))
    };
    // The emulator has all addresses without a device, those of the loopback interface last.
    let (mut others, mut loopback) = (VecDeque::new(), VecDeque::new());
    Ok(Some(iter::from_fn(move || {
        while let Some(addr) = candidates.pop_front() {
            match if addr.is_loopback() { Ok(None) } else { device_of(addr) } {
                Ok(Some(local)) => return Some(Ok(local)),
                Err(error) => return Some(Err(error)),
                Ok(None) if addr.is_loopback() => loopback.push_back(addr),
                Ok(None) => others.push_back(addr),
            }
        }
        let context = Arc::clone(emulator.as_ref()?);
        let addr = others.pop_front().or_else(|| loopback.pop_front())?;
        Some(Ok(LocalAddress { addr, context, port: 1 }))
    })))
}

/// Adds the scope to a local link-local address without one, if only one interface has the address.
pub fn scoped(addr: SockAddr) -> SockAddr {
    scope_from(addr, |own| own.ip() == addr.ip())
}

/// Adds the scope of the `local` address to a peer's link-local address without one.
pub fn scoped_like(addr: SockAddr, local: SockAddr) -> SockAddr {
    scope_from(addr, |own| own.same_ip(local))
}

/// Adds the scope of the only interface that has a `wanted` address to a link-local address without one.
fn scope_from(addr: SockAddr, wanted: impl Fn(SockAddr) -> bool) -> SockAddr {
    if !addr.lacks_scope() {
        return addr;
    }
    let mut scopes = Vec::new();
    let added = each_interface_address(|own, name| {
        if wanted(own) {
            // SAFETY: the name ends in a zero byte and lives during the call.
            scopes.push(unsafe { libc::if_nametoindex(name.as_ptr()) });
        }
    });
    match scopes.split_first() {
        Some((&first, others)) if added.is_ok() && others.iter().all(|&other| other == first) => {
            addr.with_scope(first)
        }
        _ => addr,
    }
}

/// The IPv4 and IPv6 addresses of the interfaces that are up.
fn interface_addresses() -> io::Result<Vec<SockAddr>> {
    let mut addresses = Vec::new();
    each_interface_address(|addr, _| addresses.push(addr))?;
    Ok(addresses)
}

/// Calls `take` with each IPv4 and IPv6 address of the interfaces that are up, and with the interface's name.
fn each_interface_address(mut take: impl FnMut(SockAddr, &CStr)) -> io::Result<()> {
    let mut head = ptr::null_mut();
    // SAFETY: `head` is writable.
    if unsafe { libc::getifaddrs(&mut head) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut next = head;
    while !next.is_null() {
        // SAFETY: an entry of the list, which is not freed yet.
        let entry = unsafe { &*next };
        if entry.ifa_flags & libc::IFF_UP as u32 != 0 && !entry.ifa_addr.is_null() {
            // SAFETY: an address of the list has the length of its family.
            let addr = unsafe { sockaddr::of_any_family(entry.ifa_addr) };
            // SAFETY: the name is a string that lives as long as the list.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) };
            if let Some(addr) = addr {
                take(addr, name);
            }
        }
        next = entry.ifa_next;
    }
    // SAFETY: the list is from getifaddrs, and not used after this.
    unsafe { libc::freeifaddrs(head) };
    Ok(())
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
    fn scopes_are_those_of_the_interfaces() {
        let parse = |text: &str| SockAddr::from(text.parse::<std::net::SocketAddr>().unwrap());
        let (peer, loopback) = (parse("[fe80::1234]:7"), parse("[::1]:0"));
        assert_eq!(scoped_like(peer, parse("127.0.0.1:0")), peer.with_scope(1), "lo is the first");
        assert_eq!(scoped_like(peer, parse("192.0.2.1:0")), peer, "no interface has that");
        assert_eq!(scoped(peer), peer, "nor this");
        assert_eq!(scoped_like(peer.with_scope(9), loopback), peer.with_scope(9), "it has one");
        assert_eq!(scoped_like(parse("[fd00::1]:0"), parse("127.0.0.1:0")), parse("[fd00::1]:0"));
    }

    #[test]
    fn loopback_is_no_address_of_a_device_but_the_emulator() {
        let no_device =
            |local: &LocalAddress| !local.addr.is_loopback() || local.context.library().is_emulator();
        assert!(addresses().unwrap().iter().all(no_device));
    }
}
