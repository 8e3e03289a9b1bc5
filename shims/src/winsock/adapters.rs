//! `GetAdaptersAddresses`: the interfaces of this host and their addresses.

use super::address::{sockaddr_size, write_sockaddr};
use super::interface::{Interface, interfaces, is_of, network};
use crate::arguments::InOut;
use crate::boundary::guard;
use crate::error::*;
use libc::{AF_INET, AF_INET6, AF_UNSPEC};
use std::net::SocketAddr;

const GAA_FLAG_SKIP_UNICAST: u32 = 0x01;
const GAA_FLAG_INCLUDE_PREFIX: u32 = 0x10;
const GAA_FLAG_SKIP_FRIENDLY_NAME: u32 = 0x20;
const GAA_FLAG_INCLUDE_GATEWAYS: u32 = 0x80;

/// The contents of the caller's buffer, built elsewhere with the pointers that they will have there.
struct Builder {
    start: usize,
    bytes: Vec<u8>,
}

impl Builder {
    fn here(&mut self) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.bytes.len()
    }

    /// Reserves room for a structure; returns its offset.
    fn room(&mut self, size: usize) -> usize {
        let at = self.here();
        self.bytes.resize(at + size, 0);
        at
    }

    fn put(&mut self, at: usize, value: &[u8]) {
        self.bytes[at..at + value.len()].copy_from_slice(value);
    }

    fn u32(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_ne_bytes());
    }

    fn u64(&mut self, at: usize, value: u64) {
        self.put(at, &value.to_ne_bytes());
    }

    /// Stores at `at` the address that `target` will have.
    fn pointer(&mut self, at: usize, target: usize) {
        self.u64(at, (self.start + target) as u64);
    }

    fn text(&mut self, at: usize, text: &str) {
        let target = self.here();
        self.bytes.extend(text.bytes().chain([0]));
        self.pointer(at, target);
    }

    fn wide(&mut self, at: usize, text: &str) {
        let target = self.here();
        self.bytes.extend(crate::text::w(text).into_iter().flat_map(u32::to_ne_bytes));
        self.pointer(at, target);
    }

    /// A `SOCKET_ADDRESS` at `at`, and the address somewhere.
    fn address(&mut self, at: usize, address: SocketAddr) {
        let mut size = sockaddr_size(if address.is_ipv4() { AF_INET } else { AF_INET6 }).unwrap_or(0);
        let target = self.room(size);
        // SAFETY: there is room for it.
        let written = unsafe { write_sockaddr(address, self.bytes[target..].as_mut_ptr().cast(), &mut size) };
        debug_assert!(written.is_ok());
        self.pointer(at, target);
        self.u32(at + 8, size as u32);
    }

    /// A list of structures, each with its size first and the pointer to the next one at offset 8.
    fn list<T>(&mut self, first: usize, size: usize, items: &[T], fill: impl Fn(&mut Builder, usize, &T)) {
        let mut place = first;
        for item in items {
            let at = self.room(size);
            self.u32(at, size as u32);
            self.pointer(place, at);
            fill(self, at, item);
            place = at + 8;
        }
    }
}

/// The size of `IP_ADAPTER_ADDRESSES`, which tells callers its version.
const ADAPTER: usize = 448;

fn add(builder: &mut Builder, at: usize, interface: &Interface, family: i32, flags: u32) {
    builder.u32(at + 4, if interface.has(AF_INET) || !interface.has(AF_INET6) { interface.index } else { 0 });
    builder.text(at + 16, &interface.name);
    builder.wide(at + 56, "");
    builder.wide(at + 64, &interface.name);
    if flags & GAA_FLAG_SKIP_FRIENDLY_NAME == 0 {
        builder.wide(at + 72, &interface.name);
    }
    let physical = interface.physical_address();
    builder.put(at + 80, &physical[..physical.len().min(8)]);
    builder.u32(at + 88, physical.len().min(8) as u32);
    // IP_ADAPTER_NO_MULTICAST, IP_ADAPTER_IPV4_ENABLED, IP_ADAPTER_IPV6_ENABLED
    let multicast = interface.flags & libc::IFF_MULTICAST as u32 != 0;
    let enabled = |family, flag| if interface.has(family) { flag } else { 0 };
    let what = if multicast { 0 } else { 0x10 } | enabled(AF_INET, 0x80) | enabled(AF_INET6, 0x100);
    builder.u32(at + 92, what);
    builder.u32(at + 96, interface.number("mtu").unwrap_or(u64::from(u32::MAX)) as u32);
    builder.u32(at + 100, interface.kind());
    // IfOperStatusUp, IfOperStatusDown
    builder.u32(at + 104, if interface.is_up() { 1 } else { 2 });
    builder.u32(at + 108, if interface.has(AF_INET6) { interface.index } else { 0 });
    builder.u64(at + 184, interface.speed());
    builder.u64(at + 192, interface.speed());
    builder.u64(at + 224, interface.luid());
    builder.u32(at + 248, 1);
    // NET_IF_CONNECTION_DEDICATED
    builder.u32(at + 268, 1);
    let mine: Vec<_> =
        interface.addresses.iter().copied().filter(|(address, _)| is_of(*address, family)).collect();
    if flags & GAA_FLAG_SKIP_UNICAST == 0 {
        builder.list(at + 24, 64, &mine, |builder, at, (address, length)| {
            builder.address(at + 16, *address);
            // IpPrefixOriginManual, IpSuffixOriginManual, IpDadStatePreferred
            [1, 1, 4].iter().enumerate().for_each(|(i, value)| builder.u32(at + 32 + 4 * i, *value));
            (0..3).for_each(|i| builder.u32(at + 44 + 4 * i, u32::MAX));
            builder.put(at + 56, &[*length]);
        });
    }
    if flags & GAA_FLAG_INCLUDE_PREFIX != 0 {
        builder.list(at + 176, 40, &mine, |builder, at, (address, length)| {
            builder.address(at + 16, (network(address.ip(), *length), 0).into());
            builder.u32(at + 32, (*length).into());
        });
    }
    if flags & GAA_FLAG_INCLUDE_GATEWAYS != 0 {
        let gateways: Vec<_> =
            interface.gateways.iter().copied().filter(|gateway| is_of(*gateway, family)).collect();
        builder.list(at + 208, 32, &gateways, |builder, at, gateway| builder.address(at + 16, *gateway));
    }
}

/// `GetAdaptersAddresses`: the error is the result. The list has no anycast and multicast addresses and no name servers.
///
/// # Safety
/// `adapters` is NULL or has room for `*size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetAdaptersAddresses(
    family: u32,
    flags: u32,
    reserved: *mut std::ffi::c_void,
    adapters: *mut u8,
    size: InOut<'_, u32>,
) -> u32 {
    let list = || {
        let family = family as i32;
        let room = size.read().ok_or(ERROR_INVALID_PARAMETER)? as usize;
        if !reserved.is_null() || !matches!(family, AF_UNSPEC | AF_INET | AF_INET6) {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let interfaces = interfaces()?;
        let interfaces: Vec<_> =
            interfaces.iter().filter(|interface| family == AF_UNSPEC || interface.has(family)).collect();
        if interfaces.is_empty() {
            return Err(ERROR_NO_DATA);
        }
        let mut builder = Builder { start: adapters.addr(), bytes: Vec::new() };
        let mut former = None;
        for interface in interfaces {
            let at = builder.room(ADAPTER);
            builder.u32(at, ADAPTER as u32);
            if let Some(former) = former {
                builder.pointer(former + 8, at);
            }
            former = Some(at);
            add(&mut builder, at, interface, family, flags);
        }
        size.put(builder.bytes.len() as u32);
        if adapters.is_null() || room < builder.bytes.len() {
            return Err(ERROR_BUFFER_OVERFLOW);
        }
        // SAFETY: C's caller has so much room.
        unsafe { adapters.copy_from_nonoverlapping(builder.bytes.as_ptr(), builder.bytes.len()) };
        Ok(())
    };
    guard(ERROR_INTERNAL_ERROR, || list().err().unwrap_or(ERROR_SUCCESS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::winsock::read_sockaddr;
    use std::ffi::CStr;
    use std::net::IpAddr;
    use std::ptr::null_mut;

    fn ask(family: i32, flags: u32, buffer: &mut [u64], size: InOut<'_, u32>) -> u32 {
        let target = if buffer.is_empty() { null_mut() } else { buffer.as_mut_ptr().cast() };
        // SAFETY: the buffer is at least as long as it is said to be.
        unsafe { ndw_GetAdaptersAddresses(family as u32, flags, null_mut(), target, size) }
    }

    #[test]
    fn the_loopback_interface_is_among_the_adapters() {
        let mut size = 0;
        assert_eq!(
            ask(AF_INET, GAA_FLAG_INCLUDE_PREFIX, &mut [], InOut::from(&mut size)),
            ERROR_BUFFER_OVERFLOW
        );
        let mut buffer = vec![0u64; size as usize / 8 + 1];
        let mut short = size - 1;
        assert_eq!(
            ask(AF_INET, GAA_FLAG_INCLUDE_PREFIX, &mut buffer, InOut::from(&mut short)),
            ERROR_BUFFER_OVERFLOW
        );
        assert_eq!((short, buffer[0]), (size, 0), "the buffer is left alone");
        assert_eq!(ask(AF_INET, GAA_FLAG_INCLUDE_PREFIX, &mut buffer, InOut::from(&mut size)), ERROR_SUCCESS);
        // SAFETY: the structures that the call has written.
        unsafe {
            let read = |at: usize| (at as *const u64).read_unaligned();
            let address = |at: u64| {
                read_sockaddr(read(at as usize + 16) as *const _, read(at as usize + 24) as u32 as usize)
                    .unwrap()
            };
            let mut adapter = buffer.as_ptr() as u64;
            loop {
                let at = adapter as usize;
                assert_eq!(read(at) as u32, 448);
                let name = CStr::from_ptr(read(at + 16) as *const _).to_str().unwrap();
                if name == "lo" {
                    assert_eq!(read(at) >> 32, 1, "the index");
                    assert_eq!((read(at + 72) as *const u32).read(), u32::from('l'));
                    assert_eq!(read(at + 96) >> 32, 24, "the type");
                    let (unicast, prefix) = (read(at + 24), read(at + 176));
                    assert_eq!(address(unicast), "127.0.0.1:0".parse().unwrap());
                    assert_eq!(read(unicast as usize + 56) as u8, 8);
                    assert_eq!(address(prefix), "127.0.0.0:0".parse().unwrap());
                    assert_eq!(read(prefix as usize + 32) as u32, 8);
                    break;
                }
                adapter = read(at + 8);
                assert_ne!(adapter, 0, "no loopback interface");
            }
        }
    }

    #[test]
    fn what_the_list_of_adapters_refuses() {
        let mut size = 0;
        assert_eq!(ask(77, 0, &mut [], InOut::from(&mut size)), ERROR_INVALID_PARAMETER);
        assert_eq!(ask(AF_INET, 0, &mut [], InOut::NULL), ERROR_INVALID_PARAMETER);
    }

    #[test]
    fn a_network_is_what_the_prefix_leaves() {
        for (address, length, expected) in [
            ("10.1.2.3", 8, "10.0.0.0"),
            ("10.1.2.3", 32, "10.1.2.3"),
            ("10.1.2.3", 0, "0.0.0.0"),
            ("fe80::1:2", 64, "fe80::"),
            ("fe80::1", 0, "::"),
            ("fe80::1", 128, "fe80::1"),
        ] {
            assert_eq!(network(address.parse().unwrap(), length), expected.parse::<IpAddr>().unwrap());
        }
    }
}
