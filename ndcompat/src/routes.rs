//! The system's routes, as far as a connection needs to know them.

use crate::verbs::SockAddr;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};
use win32::time::coarse_milliseconds;

/// How long the answer that there is a route, which is a system call, is good for: programs make connections to one peer in
/// a row. That there is none is asked anew each time.
const GOOD_FOR_MS: u64 = 50;

/// Asks whether routes exist.
///
/// The kernel's connection manager, once bound to a device, takes a destination without one for a neighbour, and asks it for
/// a minute.
#[derive(Default)]
pub(crate) struct Routes {
    /// For the source asked about last, as a program connects from few.
    last: Mutex<Option<Known>>,
}

struct Known {
    source: SockAddr,
    /// Bound to the source.
    socket: UdpSocket,
    /// Where a route led to, and when.
    reached: Option<(SockAddr, u64)>,
}

impl Routes {
    /// Whether no route leads from `source` to `destination`. Nothing is sent to find out.
    pub(crate) fn lead_nowhere(&self, source: SockAddr, destination: SockAddr) -> bool {
        let source = source.with_port(0);
        let now = coarse_milliseconds();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_none_or(|known| known.source != source) {
            let socket = UdpSocket::bind(SocketAddr::from(source)).ok();
            *last = socket.map(|socket| Known { source, socket, reached: None });
        }
        let Some(known) = &mut *last else { return false };
        // Ports play no part.
        let place = destination.with_port(0);
        if known.reached.is_some_and(|(there, when)| there == place && now.saturating_sub(when) < GOOD_FOR_MS)
        {
            return false;
        }
        let connected = known.socket.connect(SocketAddr::from(destination));
        let nowhere = connected.is_err_and(|error| error.raw_os_error() == Some(libc::ENETUNREACH));
        known.reached = (!nowhere).then_some((place, now));
        nowhere
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
