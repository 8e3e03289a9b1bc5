//! The system's routes, as far as a connection needs to know them.

use crate::verbs::SockAddr;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};

/// Asks whether routes exist.
///
/// The kernel's connection manager, once bound to a device, takes a destination without one for a neighbour, and asks it for
/// a minute.
#[derive(Default)]
pub(crate) struct Routes {
    /// A socket, and what it is bound to: the source asked about last, as a program connects from few.
    socket: Mutex<Option<(SockAddr, UdpSocket)>>,
}

impl Routes {
    /// Whether no route leads from `source` to `destination`. Nothing is sent to find out.
    pub(crate) fn lead_nowhere(&self, source: SockAddr, destination: SockAddr) -> bool {
        let source = source.with_port(0);
        let mut kept = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_none_or(|(bound, _)| *bound != source) {
            *kept = UdpSocket::bind(SocketAddr::from(source)).ok().map(|socket| (source, socket));
        }
        let Some((_, socket)) = &*kept else { return false };
        let connected = socket.connect(SocketAddr::from(destination));
        connected.is_err_and(|error| error.raw_os_error() == Some(libc::ENETUNREACH))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_home() {
        let routes = Routes::default();
        let addresses = ["127.0.0.1:9", "[::1]:9", "127.0.0.2:9"];
        for home in addresses.map(|address| SockAddr::from(address.parse::<SocketAddr>().unwrap())) {
            assert!(!routes.lead_nowhere(home, home));
            assert!(!routes.lead_nowhere(home, home.with_port(10)), "asked again");
        }
    }
}
