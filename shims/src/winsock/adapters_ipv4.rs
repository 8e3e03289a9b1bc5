//! `GetAdaptersInfo` and `GetNetworkParams`: IPv4 as programs of an earlier time ask for it. An adapter's names are those of the
//! interface; there are no leases and no WINS.

use super::interface::{Interface, interfaces};
use crate::arguments::InOut;
use crate::boundary::guard;
use crate::error::*;
use std::ffi::c_char;
use std::fs;
use std::mem::offset_of;
use std::net::{IpAddr, Ipv4Addr};
use std::ptr::null_mut;

/// `IP_ADDR_STRING`: an address, its mask, and the next one.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the fields are Windows'
pub struct AddressText {
    pub next: *mut AddressText,
    pub address: [c_char; 16],
    pub mask: [c_char; 16],
    pub context: u32,
}

/// `IP_ADAPTER_INFO`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the fields are Windows'
pub struct AdapterInfo {
    pub next: *mut AdapterInfo,
    pub combo_index: u32,
    pub name: [c_char; 260],
    pub description: [c_char; 132],
    pub physical_length: u32,
    pub physical: [u8; 8],
    pub index: u32,
    pub kind: u32,
    pub dhcp: u32,
    pub current: *mut AddressText,
    pub addresses: AddressText,
    pub gateways: AddressText,
    pub dhcp_server: AddressText,
    pub has_wins: i32,
    pub primary_wins: AddressText,
    pub secondary_wins: AddressText,
    pub lease_obtained: i64,
    pub lease_expires: i64,
}

/// `FIXED_INFO`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs)] // the fields are Windows'
pub struct FixedInfo {
    pub host: [c_char; 132],
    pub domain: [c_char; 132],
    pub current: *mut AddressText,
    pub servers: AddressText,
    pub node_type: u32,
    pub scope: [c_char; 260],
    pub routing: u32,
    pub proxy: u32,
    pub dns: u32,
}

// The pointers to the next ones come first.
const _: () = assert!(offset_of!(AddressText, next) == 0 && offset_of!(AdapterInfo, next) == 0);
const _: () = assert!(
    size_of::<AddressText>() == 48 && size_of::<AdapterInfo>() == 704 && size_of::<FixedInfo>() == 600
);

const NOTHING: AddressText = AddressText { next: null_mut(), address: [0; 16], mask: [0; 16], context: 0 };
/// `IF_TYPE_SOFTWARE_LOOPBACK`, which Windows does not list here.
const LOOPBACK: u32 = 24;
/// `BROADCAST_NODETYPE`.
const BROADCAST: u32 = 1;

/// A text with its NUL, cut where it does not fit.
fn text<const N: usize>(text: &str) -> [c_char; N] {
    let mut target = [0; N];
    for (unit, byte) in target[..N - 1].iter_mut().zip(text.bytes()) {
        *unit = byte as c_char;
    }
    target
}

/// An address and its mask.
type Entry = (Ipv4Addr, Ipv4Addr);

fn spelled((address, mask): Entry) -> AddressText {
    AddressText { address: text(&address.to_string()), mask: text(&mask.to_string()), ..NOTHING }
}

/// The first of a list of addresses, which is part of another structure; all zeroes and without text if there is none.
fn first(entries: &[Entry]) -> AddressText {
    let none = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);
    spelled(entries.first().copied().unwrap_or(none))
}

/// A buffer of the caller's, with room told in bytes, that is filled from its start.
struct Room {
    next: *mut u8,
}

impl Room {
    /// Writes a value behind those before; returns where.
    ///
    /// # Safety
    /// There is room for it.
    unsafe fn put<T>(&mut self, value: T) -> *mut T {
        let place = self.next.cast::<T>();
        // SAFETY: room for it, as the caller promises; the alignment may be any.
        unsafe { place.write_unaligned(value) };
        self.next = self.next.wrapping_add(size_of::<T>());
        place
    }

    /// Writes those behind the first of a list, and links them to it.
    ///
    /// # Safety
    /// There is room for them, and `before` may be written to.
    unsafe fn chain(&mut self, mut before: *mut AddressText, entries: &[Entry]) {
        for entry in entries.iter().skip(1) {
            // SAFETY: room for it, as the caller promises.
            let place = unsafe { self.put(spelled(*entry)) };
            // SAFETY: one that may be written to, as the caller promises for the first.
            unsafe { before.cast::<*mut AddressText>().write_unaligned(place) };
            before = place;
        }
    }
}

/// Whether the caller's buffer has the room; it is told how much is needed.
fn room(buffer: *mut u8, size: InOut<'_, u32>, needed: usize) -> Result<Room, u32> {
    let told = size.read().ok_or(ERROR_INVALID_PARAMETER)?;
    size.put(needed as u32);
    if buffer.is_null() || (told as usize) < needed {
        Err(ERROR_BUFFER_OVERFLOW)
    } else {
        Ok(Room { next: buffer })
    }
}

fn ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    if let IpAddr::V4(address) = address { Some(address) } else { None }
}

/// The addresses and gateways of an interface.
fn lists(interface: &Interface) -> [Vec<Entry>; 2] {
    let mask = |length: u8| Ipv4Addr::from(u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0));
    let addresses = interface.addresses.iter();
    let gateways = interface.gateways.iter().filter_map(|gateway| ipv4(gateway.ip()));
    [
        addresses.filter_map(|(address, length)| Some((ipv4(address.ip())?, mask(*length)))).collect(),
        gateways.map(|gateway| (gateway, Ipv4Addr::BROADCAST)).collect(),
    ]
}

fn described(interface: &Interface, lists: &[Vec<Entry>; 2]) -> AdapterInfo {
    let mac = interface.physical_address();
    let mut physical = [0; 8];
    let length = mac.len().min(8);
    physical[..length].copy_from_slice(&mac[..length]);
    AdapterInfo {
        next: null_mut(),
        combo_index: interface.index,
        name: text(&interface.name),
        description: text(&interface.name),
        physical_length: length as u32,
        physical,
        index: interface.index,
        kind: interface.kind(),
        dhcp: 0,
        current: null_mut(),
        addresses: first(&lists[0]),
        gateways: first(&lists[1]),
        dhcp_server: NOTHING,
        has_wins: 0,
        primary_wins: NOTHING,
        secondary_wins: NOTHING,
        lease_obtained: 0,
        lease_expires: 0,
    }
}

/// `GetAdaptersInfo`: the error is the result; `ERROR_BUFFER_OVERFLOW` and the size needed. The loopback interface is not listed, as
/// on Windows; `ERROR_NO_DATA` if there is no other.
///
/// # Safety
/// `adapters` is NULL or has room for `*size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetAdaptersInfo(adapters: *mut u8, size: InOut<'_, u32>) -> u32 {
    let list = || {
        size.read().ok_or(ERROR_INVALID_PARAMETER)?;
        let mut interfaces = interfaces()?;
        interfaces.retain(|interface| interface.kind() != LOOPBACK);
        if interfaces.is_empty() {
            return Err(ERROR_NO_DATA);
        }
        let found: Vec<_> = interfaces.iter().map(|interface| (interface, lists(interface))).collect();
        let further = |lists: &[Vec<Entry>; 2]| lists.iter().map(|list| list.len().saturating_sub(1)).sum();
        let further: usize = found.iter().map(|(_, lists)| -> usize { further(lists) }).sum();
        let needed = found.len() * size_of::<AdapterInfo>() + further * size_of::<AddressText>();
        let mut room = room(adapters, size, needed)?;
        let mut before: *mut AdapterInfo = null_mut();
        for (interface, lists) in &found {
            // SAFETY: all that is needed has room.
            let place = unsafe { room.put(described(interface, lists)) };
            if !before.is_null() {
                // SAFETY: the one before, which has just been written.
                unsafe { before.cast::<*mut AdapterInfo>().write_unaligned(place) };
            }
            before = place;
            let part = |at| place.wrapping_byte_add(at).cast::<AddressText>();
            let heads = [offset_of!(AdapterInfo, addresses), offset_of!(AdapterInfo, gateways)].map(part);
            for (head, entries) in heads.into_iter().zip(lists) {
                // SAFETY: all that is needed has room.
                unsafe { room.chain(head, entries) };
            }
        }
        Ok(())
    };
    guard(ERROR_INTERNAL_ERROR, || list().err().unwrap_or(ERROR_SUCCESS))
}

/// The domain and the name servers of a `resolv.conf`, as far as they have IPv4 addresses.
fn resolver(configuration: &str) -> (String, Vec<Entry>) {
    let (mut domain, mut servers) = (String::new(), Vec::new());
    for line in configuration.lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("nameserver"), Some(server)) => {
                servers.extend(server.parse().ok().map(|server| (server, Ipv4Addr::BROADCAST)));
            }
            // The last one counts.
            (Some("domain" | "search"), Some(name)) => domain = name.to_owned(),
            _ => {}
        }
    }
    (domain, servers)
}

/// `GetNetworkParams`: the error is the result; `ERROR_BUFFER_OVERFLOW` and the size needed.
///
/// # Safety
/// `info` is NULL or has room for `*size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetNetworkParams(info: *mut u8, size: InOut<'_, u32>) -> u32 {
    let tell = || {
        let (mut domain, servers) = resolver(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default());
        let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let (host, own_domain) = own.split_once('.').unwrap_or((&own, ""));
        if !own_domain.is_empty() {
            own_domain.clone_into(&mut domain);
        }
        let needed = size_of::<FixedInfo>() + servers.len().saturating_sub(1) * size_of::<AddressText>();
        let mut room = room(info, size, needed)?;
        let forwards = fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap_or_default();
        let fixed = FixedInfo {
            host: text(host),
            domain: text(&domain),
            current: null_mut(),
            servers: if servers.is_empty() { NOTHING } else { first(&servers) },
            node_type: BROADCAST,
            scope: [0; 260],
            routing: (forwards.trim() == "1").into(),
            proxy: 0,
            dns: 0,
        };
        // SAFETY: all that is needed has room.
        let place = unsafe { room.put(fixed) };
        let head = place.wrapping_byte_add(offset_of!(FixedInfo, servers)).cast::<AddressText>();
        // SAFETY: all that is needed has room.
        unsafe { room.chain(head, &servers) };
        Ok(())
    };
    guard(ERROR_INTERNAL_ERROR, || tell().err().unwrap_or(ERROR_SUCCESS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    /// The texts of a list.
    fn texts(head: &AddressText) -> Vec<(String, String)> {
        // SAFETY: terminated texts, in structures that the functions have written.
        let text = |text: &[c_char]| unsafe { CStr::from_ptr(text.as_ptr()) }.to_str().unwrap().to_owned();
        let mut found = vec![(text(&head.address), text(&head.mask))];
        let mut next = head.next;
        // SAFETY: NULL or the next one of the list.
        while let Some(entry) = unsafe { next.as_ref() } {
            found.push((text(&entry.address), text(&entry.mask)));
            next = entry.next;
        }
        found
    }

    #[test]
    fn the_adapters_of_ipv4_are_listed_without_loopback() {
        let expected: Vec<_> =
            interfaces().unwrap().into_iter().filter(|interface| interface.name != "lo").collect();
        let mut size = 0;
        // SAFETY: no room, and none is told.
        let result = unsafe { ndw_GetAdaptersInfo(null_mut(), InOut::from(&mut size)) };
        if expected.is_empty() {
            assert_eq!(result, ERROR_NO_DATA);
            return;
        }
        assert_eq!(result, ERROR_BUFFER_OVERFLOW);
        let mut buffer = vec![0u64; size as usize / 8 + 1];
        let mut short = size - 1;
        let target = buffer.as_mut_ptr().cast::<u8>();
        // SAFETY: the buffer has the size that is told.
        unsafe {
            assert_eq!(ndw_GetAdaptersInfo(target, InOut::from(&mut short)), ERROR_BUFFER_OVERFLOW);
            assert_eq!((short, target.read()), (size, 0));
            assert_eq!(ndw_GetAdaptersInfo(target, InOut::from(&mut size)), 0);
            assert_eq!(ndw_GetAdaptersInfo(target, InOut::NULL), ERROR_INVALID_PARAMETER);
        }
        let mut adapter = target.cast::<AdapterInfo>();
        for interface in expected {
            // SAFETY: as many structures as there are interfaces.
            let found = unsafe { adapter.as_ref() }.unwrap();
            assert_eq!((found.index, found.name), (interface.index, text(&interface.name)));
            let [addresses, _] = lists(&interface);
            let addresses: Vec<_> =
                addresses.iter().map(|(address, mask)| (address.to_string(), mask.to_string())).collect();
            let none = vec![("0.0.0.0".to_owned(), "0.0.0.0".to_owned())];
            assert_eq!(texts(&found.addresses), if addresses.is_empty() { none } else { addresses });
            adapter = found.next;
        }
        assert!(adapter.is_null());
    }

    #[test]
    fn lists_of_several_addresses_are_linked() {
        let entries = [1, 2, 3].map(|last| (Ipv4Addr::new(10, 0, 0, last), Ipv4Addr::new(255, 0, 0, 0)));
        let mut head = first(&entries);
        let mut behind = [NOTHING; 2];
        // SAFETY: room for the two that follow.
        unsafe { Room { next: behind.as_mut_ptr().cast() }.chain(&mut head, &entries) };
        let expected = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
        assert_eq!(texts(&head), expected.map(|address| (address.to_owned(), "255.0.0.0".to_owned())));
    }

    #[test]
    fn name_servers_and_the_domain_are_those_of_the_resolver() {
        let text = "# none\nsearch one.example two.example\nnameserver 192.0.2.1\nnameserver 2001:db8::1\n\
                    nameserver 192.0.2.2\noptions x\n";
        let (domain, servers) = resolver(text);
        assert_eq!(domain, "one.example");
        let servers: Vec<_> = servers.iter().map(|(server, _)| server.to_string()).collect();
        assert_eq!(servers, ["192.0.2.1", "192.0.2.2"]);
        let mut size = 0;
        // SAFETY: no room, and none is told; then a buffer of the size that is told.
        unsafe {
            assert_eq!(ndw_GetNetworkParams(null_mut(), InOut::from(&mut size)), ERROR_BUFFER_OVERFLOW);
            let mut buffer = vec![0u64; size as usize / 8 + 1];
            let target = buffer.as_mut_ptr().cast::<u8>();
            assert_eq!(ndw_GetNetworkParams(target, InOut::from(&mut size)), 0);
            assert_eq!(ndw_GetNetworkParams(target, InOut::NULL), ERROR_INVALID_PARAMETER);
            let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
            let host = CStr::from_ptr((*target.cast::<FixedInfo>()).host.as_ptr());
            assert_eq!(host.to_str().unwrap(), own.split('.').next().unwrap());
        }
    }
}
