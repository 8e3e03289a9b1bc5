//! The network interfaces of this host.

use super::routing;
use crate::error::ERROR_NOT_ENOUGH_MEMORY;
use libc::{AF_INET, AF_INET6};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// One interface.
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) index: u32,
    pub(super) flags: u32,
    /// Addresses with the lengths of their prefixes.
    pub(super) addresses: Vec<(SocketAddr, u8)>,
    pub(super) gateways: Vec<SocketAddr>,
}

impl Interface {
    /// A file of the interface in /sys.
    fn attribute(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(format!("/sys/class/net/{}/{name}", self.name)).ok()?;
        Some(text.trim().to_owned())
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.attribute(name)?.parse().ok()
    }

    pub(super) fn physical_address(&self) -> Vec<u8> {
        let text = self.attribute("address").unwrap_or_default();
        let bytes = text.split(':').map(|byte| u8::from_str_radix(byte, 16));
        let bytes: Vec<u8> = bytes.collect::<Result<_, _>>().unwrap_or_default();
        if bytes.iter().all(|byte| *byte == 0) { Vec::new() } else { bytes }
    }

    /// `NET_LUID`: the type and the index.
    pub(super) fn luid(&self) -> u64 {
        u64::from(self.kind()) << 48 | u64::from(self.index) << 24
    }

    /// `IF_TYPE_*`.
    pub(super) fn kind(&self) -> u32 {
        match self.number("type") {
            Some(1) => 6,
            Some(772) => 24,
            Some(32) => 199,
            Some(768 | 769 | 776 | 778) => 131,
            Some(512) => 23,
            Some(801..=803) => 71,
            _ => 1,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        let running = (libc::IFF_UP | libc::IFF_RUNNING) as u32;
        self.flags & running == running
    }

    /// Bits in a second.
    pub(super) fn speed(&self) -> u64 {
        self.number("speed").map_or(u64::MAX, |megabits| megabits * 1_000_000)
    }

    pub(super) fn has(&self, family: i32) -> bool {
        self.addresses.iter().any(|(address, _)| is_of(*address, family))
    }
}

pub(super) fn is_of(address: SocketAddr, family: i32) -> bool {
    match family {
        AF_INET => address.is_ipv4(),
        AF_INET6 => address.is_ipv6(),
        _ => true,
    }
}

/// The prefix length of a netmask.
fn prefix_length(mask: IpAddr) -> u8 {
    match mask {
        IpAddr::V4(mask) => u32::from(mask).leading_ones() as u8,
        IpAddr::V6(mask) => u128::from(mask).leading_ones() as u8,
    }
}

/// An address with all but its prefix cleared.
pub(super) fn network(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            Ipv4Addr::from(u32::from(ip) & mask).into()
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            Ipv6Addr::from(u128::from(ip) & mask).into()
        }
    }
}

/// The default gateways of an interface, as the kernel lists its routes.
fn gateways(name: &str) -> Vec<SocketAddr> {
    let mut found = Vec::new();
    for line in fs::read_to_string("/proc/net/route").unwrap_or_default().lines() {
        let fields: Vec<_> = line.split_whitespace().collect();
        if let [interface, "00000000", gateway, ..] = fields[..]
            && interface == name
            && let Ok(gateway @ 1..) = u32::from_str_radix(gateway, 16)
        {
            found.push((Ipv4Addr::from(u32::from_be(gateway)), 0).into());
        }
    }
    for line in fs::read_to_string("/proc/net/ipv6_route").unwrap_or_default().lines() {
        let fields: Vec<_> = line.split_whitespace().collect();
        if let [_, "00", _, _, gateway, .., interface] = fields[..]
            && interface == name
            && let Ok(gateway @ 1..) = u128::from_str_radix(gateway, 16)
        {
            found.push((Ipv6Addr::from(gateway), 0).into());
        }
    }
    found
}

/// All interfaces, by index.
pub(super) fn interfaces() -> Result<Vec<Interface>, u32> {
    let mut found: Vec<Interface> = Vec::new();
    for entry in routing::interfaces().map_err(|_| ERROR_NOT_ENOUGH_MEMORY)? {
        let name = entry.name.to_string_lossy().into_owned();
        let at = found.iter().position(|known| known.name == name).unwrap_or_else(|| {
            // SAFETY: a terminated name.
            let index = unsafe { libc::if_nametoindex(entry.name.as_ptr()) };
            let (flags, gateways) = (entry.flags, gateways(&name));
            found.push(Interface { name, index, flags, addresses: Vec::new(), gateways });
            found.len() - 1
        });
        if let Some(address) = entry.address {
            let length = entry.mask.map_or(0, |mask| prefix_length(mask.ip()));
            found[at].addresses.push((address, length));
        }
    }
    found.sort_by_key(|interface| interface.index);
    Ok(found)
}
