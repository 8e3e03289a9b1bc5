//! The local addresses of a process's connection ids.
//!
//! Every id has a bound socket, so the kernel keeps other processes from its address. Within the process sockets could share an
//! address; as in rdma_cm, only ids that all have the option for it may.

use std::collections::HashMap;
use std::net::SocketAddr;

use parking_lot::Mutex;

struct Taken {
    by: usize,
    address: SocketAddr,
    shared: bool,
}

/// The addresses in use, by port.
#[derive(Default)]
pub(super) struct Ports(Mutex<HashMap<u16, Vec<Taken>>>);

/// Of a link-local address, the interface: the same address may be another's on each.
fn scope(of: SocketAddr) -> u32 {
    match of {
        SocketAddr::V6(of) if of.ip().is_unicast_link_local() => of.scope_id(),
        _ => 0,
    }
}

fn meet(a: SocketAddr, b: SocketAddr) -> bool {
    a.ip() == b.ip() && scope(a) == scope(b)
        || a.is_ipv4() == b.is_ipv4() && (a.ip().is_unspecified() || b.ip().is_unspecified())
}

impl Ports {
    /// Whether an id may bind to this address.
    pub(super) fn is_free(&self, address: SocketAddr, shared: bool) -> bool {
        let ports = self.0.lock();
        let taken = ports.get(&address.port());
        !taken.is_some_and(|taken| {
            taken.iter().any(|other| meet(other.address, address) && !(other.shared && shared))
        })
    }

    /// Reserves an address for an id, if it is free.
    pub(super) fn take(&self, by: usize, address: SocketAddr, shared: bool) -> bool {
        let mut ports = self.0.lock();
        let taken = ports.entry(address.port()).or_default();
        let free = !taken.iter().any(|other| meet(other.address, address) && !(other.shared && shared));
        if free {
            taken.push(Taken { by, address, shared });
        }
        free
    }

    /// Changes whether the address may be shared.
    pub(super) fn share(&self, by: usize, port: u16, shared: bool) {
        if let Some(taken) = self.0.lock().get_mut(&port) {
            taken.iter_mut().filter(|taken| taken.by == by).for_each(|taken| taken.shared = shared);
        }
    }

    /// Releases the address of an id.
    pub(super) fn leave(&self, by: usize, port: u16) {
        let mut ports = self.0.lock();
        if let Some(taken) = ports.get_mut(&port) {
            taken.retain(|taken| taken.by != by);
            if taken.is_empty() {
                ports.remove(&port);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_had_by_one_or_by_those_who_share() {
        let ports = Ports::default();
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert!(ports.take(1, at("127.0.0.1:80"), false));
        assert!(!ports.is_free(at("127.0.0.1:80"), true), "the first does not share");
        assert!(!ports.is_free(at("0.0.0.0:80"), false), "all addresses are also that one");
        assert!(ports.is_free(at("127.0.0.2:80"), false));
        assert!(ports.is_free(at("[::]:80"), false));
        assert!(ports.take(4, at("[fe80::1%2]:80"), false));
        assert!(ports.is_free(at("[fe80::1%3]:80"), false), "on another interface");
        assert!(!ports.is_free(at("[fe80::1%2]:80"), false));
        assert!(!ports.is_free(at("[::]:80"), false), "all interfaces are also that one");
        ports.leave(4, 80);
        ports.share(1, 80, true);
        assert!(ports.take(2, at("127.0.0.1:80"), true));
        assert!(!ports.take(3, at("127.0.0.1:80"), false), "the others share, this one does not");
        ports.leave(1, 80);
        ports.leave(2, 80);
        assert!(ports.take(3, at("127.0.0.1:80"), false));
    }
}
