//! Whether there is a route from a source to a destination.

use crate::sync::mutex::lock;
use crate::verbs::SockAddr;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Mutex;
use win32::time::coarse_milliseconds;

/// How long, in milliseconds, a route that was found is assumed to exist, which saves a system call for each connection to
/// the same peer. A missing route is not remembered.
const GOOD_FOR_MS: u64 = 50;

/// Checks whether routes exist.
///
/// Once an id is bound to a device, rdma_cm takes a destination without a route for a neighbour, and tries for a minute to
/// resolve it.
#[derive(Default)]
pub(crate) struct Routes {
    /// The last source. One is enough, as programs connect from few.
    last: Mutex<Option<Known>>,
}

struct Known {
    source: SockAddr,
    /// A socket bound to the source.
    socket: UdpSocket,
    /// The last destination with a route, and when it was found, in milliseconds.
    reached: Option<(SockAddr, u64)>,
}

impl Routes {
    /// Whether there is no route from `source` to `destination`. Sends nothing.
    pub(crate) fn are_missing(&self, source: SockAddr, destination: SockAddr) -> bool {
        let source = source.with_port(0);
        let now = coarse_milliseconds();
        let mut last = lock(&self.last);
        if last.as_ref().is_none_or(|known| known.source != source) {
            let socket = UdpSocket::bind(SocketAddr::from(source)).ok();
            *last = socket.map(|socket| Known { source, socket, reached: None });
        }
        let Some(known) = &mut *last else { return false };
        // The port is ignored.
        let host = destination.with_port(0);
        if known.reached.is_some_and(|(there, when)| there == host && now.saturating_sub(when) < GOOD_FOR_MS)
        {
            return false;
        }
        let connected = known.socket.connect(SocketAddr::from(destination));
        let nowhere = connected.is_err_and(|error| error.raw_os_error() == Some(libc::ENETUNREACH));
        known.reached = (!nowhere).then_some((host, now));
        nowhere
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_route_to_oneself() {
        let routes = Routes::default();
        let addresses = ["127.0.0.1:9", "[::1]:9", "127.0.0.2:9"];
        for home in addresses.map(|address| SockAddr::from(address.parse::<SocketAddr>().unwrap())) {
            assert!(!routes.are_missing(home, home));
            assert!(!routes.are_missing(home, home.with_port(10)), "asked again");
        }
    }
}
