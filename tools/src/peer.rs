//! Parses addresses and connects to a peer's `nd serve`.

use crate::place::Place;
use crate::protocol::{Answer, Request};
use anyhow::{Context, Result, bail, ensure};
use ndcompat::{ConnectError, Connection, Offer, Pair, Provider, Session, Status};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// The address of a place, the first if it has several; `port` is for one without a port.
pub fn address(place: &Place, port: u16) -> Result<SocketAddr> {
    addresses(place, port).map(|found| found[0])
}

/// The addresses of a place, one at least.
fn addresses(place: &Place, port: u16) -> Result<Vec<SocketAddr>> {
    let (host, port) = (place.host.as_str(), place.port.unwrap_or(port));
    let found: Vec<_> = (host, port)
        .to_socket_addrs()
        .with_context(|| format!("looking up the host '{host}', as `getent ahosts {host}` does"))?
        .collect();
    ensure!(!found.is_empty(), "the host '{host}' has no address");
    Ok(found)
}

/// The first of some addresses that will do. If none does, it is the very first, and an error will tell of it.
fn choice(found: &[SocketAddr], will_do: impl Fn(SocketAddr) -> bool) -> SocketAddr {
    match found {
        [only] => *only,
        _ => found.iter().copied().find(|&one| will_do(one)).unwrap_or(found[0]),
    }
}

/// The given local address, which must be an RDMA address, or the first RDMA address.
pub fn own_address(asked: Option<&Place>, port: u16) -> Result<SocketAddr> {
    match asked {
        Some(place) => address(place, port),
        None => Ok(SocketAddr::new(first(|_| true)?.ip(), port)),
    }
}

/// The first RDMA address of a family.
pub fn first_address(is_ipv4: bool) -> Result<SocketAddr> {
    first(|address| address.is_ipv4() == is_ipv4)
}

fn first(wanted: impl Fn(&SocketAddr) -> bool) -> Result<SocketAddr> {
    let all = Provider::addresses().context("listing the addresses with RDMA")?;
    all.into_iter().find(wanted).ok_or_else(|| {
        let error = anyhow::Error::from(Status::INVALID_ADDRESS);
        error.context("no address of this machine has RDMA")
    })
}

/// The two ends of a connection: the peer's address, and the local one, if it was chosen.
#[derive(Clone, Copy)]
pub struct Ends {
    pub to: SocketAddr,
    pub from: Option<SocketAddr>,
}

impl Ends {
    /// The ends for a host and a local end. Of a host with several addresses, the first counts to which RDMA leads: IPv6 is often
    /// first, and may have none.
    pub fn find(host: &Place, port: u16, own: Option<&Place>) -> Result<Ends> {
        let from = own.map(|own| address(own, 0)).transpose()?;
        let to = choice(&addresses(host, port)?, |to| match from {
            Some(from) => from.is_ipv4() == to.is_ipv4(),
            None => Provider::resolve(to).is_ok(),
        });
        Ok(Ends { to, from })
    }
}

/// A session on the adapter of the local address, or that reaches the peer. `depth` is the size of its completion queue.
pub fn session(ends: Ends, depth: u32) -> Result<Session> {
    let local = match ends.from {
        Some(from) => from,
        None => Provider::resolve(ends.to)
            .with_context(|| format!("finding an adapter that leads to {}", ends.to))?,
    };
    let adapter = Provider::open(local).with_context(|| format!("opening the adapter of {local}"))?;
    let most = adapter.info().context("asking the adapter for its limits")?.max_completion_queue_depth;
    if depth > most {
        bail!("{depth} results at a time are more than the {most} that the adapter of {local} holds");
    }
    Session::builder(&adapter).depth(depth).build().with_context(|| format!("on the adapter of {local}"))
}

/// Connects to the peer with a request as private data, and returns its answer.
pub fn connect(
    session: &Session,
    pair: Pair,
    ends: Ends,
    request: &Request,
    limit: Duration,
) -> Result<(Connection, Answer)> {
    request.check()?;
    let request = request.to_bytes();
    let offer = Offer::new().private_data(&request).outbound_reads(16);
    let (to, from) = (ends.to, ends.from);
    let connecting = async {
        match from {
            Some(from) => session.connect_from(from, pair, to, offer).await,
            None => session.connect(pair, to, offer).await,
        }
    };
    let connection = session
        .wait_for(limit, connecting)
        .unwrap_or(Err(Status::IO_TIMEOUT.into()))
        .map_err(not_connected)
        .with_context(|| match from {
            Some(from) => format!("connecting with {to} from {from}"),
            None => format!("connecting with {to}"),
        })?;
    let answer = Answer::from_bytes(connection.private_data())
        .with_context(|| format!("{to} answers, but not as `nd serve` does"))?;
    Ok((connection, answer))
}

/// The error of a failed connect; with the peer's reason, if it refused.
fn not_connected(error: ConnectError) -> anyhow::Error {
    let said = String::from_utf8_lossy(&error.private_data);
    let said = said.trim_end_matches('\0').to_owned();
    let error = anyhow::Error::from(error);
    if said.is_empty() { error } else { error.context(format!("the peer says: {said:?}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_port_or_get_one() {
        for (text, whole) in [
            ("192.0.2.1", "192.0.2.1:7"),
            ("192.0.2.1:9", "192.0.2.1:9"),
            ("fd00::1", "[fd00::1]:7"),
            ("[fd00::1]:9", "[fd00::1]:9"),
        ] {
            assert_eq!(address(&text.parse().unwrap(), 7).unwrap(), whole.parse().unwrap(), "{text}");
        }
        assert!(address(&"no-such-host.invalid".parse().unwrap(), 7).is_err());
    }

    #[test]
    fn of_a_hosts_addresses_the_first_that_will_do_is_chosen() {
        let found = ["[fd00::1]:7", "192.0.2.1:7", "192.0.2.2:7"].map(|text| text.parse().unwrap());
        assert_eq!(choice(&found, |_| true), found[0]);
        assert_eq!(choice(&found, |one| one.is_ipv4()), found[1]);
        assert_eq!(choice(&found, |_| false), found[0], "the error is about this one");
        assert_eq!(choice(&found[2..], |_| unreachable!()), found[2], "there is nothing to choose");
    }
}
