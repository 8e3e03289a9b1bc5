//! Look-up of this machine's own name.
//!
//! Windows resolves the machine's own name from its interfaces. A C library asks files and name servers, which often do not know
//! it, or return a loopback address that no peer can use.

use super::addrinfo::{List, no_hints};
use super::routing::local_addresses;
use libc::addrinfo;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::net::{IpAddr, SocketAddr};
use std::ptr::null;

/// Whether `node` is this machine: its name, with or without a domain, or none.
pub fn is_own(node: &[u8]) -> bool {
    let own = own_name();
    let own = own.to_bytes();
    let label = own.split(|byte| *byte == b'.').next().unwrap_or(own);
    node.is_empty()
        || node.eq_ignore_ascii_case(b"..localmachine")
        || node.eq_ignore_ascii_case(own)
        || node.eq_ignore_ascii_case(label)
}

fn own_name() -> CString {
    rustix::system::uname().nodename().to_owned()
}

/// The addresses of the interfaces of one family (or `AF_UNSPEC`); those of the loopback interface only if there are no others.
/// The most useful ones come first.
fn own_addresses(family: c_int) -> Vec<SocketAddr> {
    let mut found = local_addresses().unwrap_or_default();
    found.retain(|address| match family {
        libc::AF_INET => address.is_ipv4(),
        libc::AF_INET6 => address.is_ipv6(),
        _ => true,
    });
    if found.iter().any(|address| !address.ip().is_loopback()) {
        found.retain(|address| !address.ip().is_loopback());
    }
    found.sort_by_key(|address| match address.ip() {
        IpAddr::V4(_) => 0,
        IpAddr::V6(ip) if ip.is_unicast_link_local() => 2,
        IpAddr::V6(_) => 1,
    });
    found
}

/// `getaddrinfo` for the own name.
///
/// # Safety
/// `service` is NULL or terminated.
pub(super) unsafe fn look_up(service: *const c_char, hints: Option<addrinfo>) -> Result<List, c_int> {
    let mut wanted = hints.unwrap_or_else(no_hints);
    let named = wanted.ai_flags & libc::AI_CANONNAME != 0;
    wanted.ai_flags = wanted.ai_flags & !libc::AI_CANONNAME | libc::AI_NUMERICHOST;
    let mut list = List::EMPTY;
    for address in own_addresses(wanted.ai_family) {
        let scope = match address {
            SocketAddr::V6(address) if address.scope_id() != 0 => format!("%{}", address.scope_id()),
            _ => String::new(),
        };
        let Ok(node) = CString::new(format!("{}{scope}", address.ip())) else { continue };
        // SAFETY: `service` is NULL or terminated, as the caller promises.
        list.append(unsafe { List::look_up(Some(&node), service, Some(&wanted)) }?);
    }
    if list.is_empty() {
        return Err(libc::EAI_NONAME);
    }
    if named {
        list.set_name(&own_name())?;
    }
    Ok(list)
}

/// A `hostent` and what it points to.
struct Host {
    entry: libc::hostent,
    _name: CString,
    _addresses: Vec<[u8; 4]>,
    _pointers: Vec<*const c_char>,
}

/// `gethostbyname` for the own name. The entry is valid until the thread's next look-up. `None` without an IPv4 address.
pub fn host() -> Option<*mut libc::hostent> {
    thread_local!(static HOST: RefCell<Option<Box<Host>>> = const { RefCell::new(None) });
    let addresses: Vec<[u8; 4]> = own_addresses(libc::AF_INET)
        .into_iter()
        .filter_map(|address| match address.ip() {
            IpAddr::V4(ip) => Some(ip.octets()),
            IpAddr::V6(_) => None,
        })
        .collect();
    if addresses.is_empty() {
        return None;
    }
    let name = own_name();
    // The list of addresses, its end, and the empty list of aliases.
    let mut pointers: Vec<*const c_char> = addresses.iter().map(|address| address.as_ptr().cast()).collect();
    pointers.extend([null(), null()]);
    let aliases = &raw const pointers[addresses.len() + 1];
    let entry = libc::hostent {
        h_name: name.as_ptr().cast_mut(),
        h_aliases: aliases.cast_mut().cast(),
        h_addrtype: libc::AF_INET,
        h_length: 4,
        h_addr_list: pointers.as_mut_ptr().cast(),
    };
    HOST.with_borrow_mut(|host| {
        let host =
            host.insert(Box::new(Host { entry, _name: name, _addresses: addresses, _pointers: pointers }));
        Some(&raw mut host.entry)
    })
}
