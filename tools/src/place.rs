//! Hosts and ports on the command line. What is neither is refused before anything else is done.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// A host, by name or address, with or without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub host: String,
    pub port: Option<u16>,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        let alone = |host: &str| Place { host: host.to_owned(), port: None };
        if text.parse::<IpAddr>().is_ok() {
            return Ok(alone(text));
        }
        if let Some(bracketed) = text.strip_prefix('[') {
            let (host, rest) = bracketed.split_once(']').ok_or(format!("'{text}' has no ']'"))?;
            // A scope, as in fe80::1%eth0, is for who looks the host up.
            let address = host.split('%').next().unwrap_or_default();
            address.parse::<Ipv6Addr>().map_err(|_| format!("'{host}' is no IPv6 address"))?;
            return match rest.strip_prefix(':') {
                None if rest.is_empty() => Ok(alone(host)),
                None => Err(format!("'{rest}' after the address is no port: [{host}]:PORT")),
                Some(port) => Ok(Place { host: host.to_owned(), port: Some(parse_port(port)?) }),
            };
        }
        match text.split_once(':') {
            None if text.is_empty() => Err("no host".into()),
            None => Ok(alone(text)),
            Some(("", _)) => Err(format!("'{text}' names no host: HOST or HOST:PORT")),
            Some((_, port)) if port.contains(':') => {
                Err(format!("'{text}' is no IPv6 address; with a port it is [ADDRESS]:PORT"))
            }
            Some((host, port)) => Ok(Place { host: host.to_owned(), port: Some(parse_port(port)?) }),
        }
    }
}

/// A port; 0 is any that is free.
fn parse_port(text: &str) -> Result<u16, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|_| is_number);
    port.ok_or_else(|| format!("'{text}' is no port: a number up to 65535"))
}

impl Place {
    /// What a port of an IPv6 address without brackets looks like: `::1:7699` is an address, too, if not the one that was meant.
    pub fn hint(&self) -> Option<String> {
        let (before, last) = self.host.rsplit_once(':')?;
        let may_be_meant = self.port.is_none() && last.len() >= 4 && last.parse::<u16>().is_ok();
        // Before a port, the address may end with the colon of `::`.
        let whole = if before.ends_with(':') { format!("{before}:") } else { before.to_owned() };
        (may_be_meant && whole.parse::<Ipv6Addr>().is_ok()).then(|| {
            format!(
                "{} was taken for an IPv6 address without a port; with a port it is [{whole}]:{last}",
                self.host
            )
        })
    }
}

/// Where `nd copy` copies to: a host, and the name of the file there, which may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    pub host: Place,
    pub name: String,
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Destination, String> {
        // The last colon: IPv6 addresses contain others.
        let named = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
        let (host, name) = named.ok_or_else(|| format!("'{text}' names no host: HOST: or HOST:NAME"))?;
        check_name(name)?;
        let host: Place = host.parse()?;
        if host.port.is_some() {
            return Err(format!("the port goes into --port, not into '{text}'"));
        }
        Ok(Destination { host, name: name.to_owned() })
    }
}

impl Destination {
    /// What a name of digits only looks like: the port, as in `HOST:PORT`.
    pub fn hint(&self) -> Option<String> {
        let is_number = !self.name.is_empty() && self.name.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| {
            let name = &self.name;
            format!("'{name}' is the name of the file there; if it was meant as the port: --port {name}")
        })
    }
}

/// Checks the name of a file at the destination.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = name.len() <= 255 && !name.contains(['/', '\0']) && name != "." && name != "..";
    if is_plain {
        Ok(())
    } else {
        Err(format!("'{name}' is no name of a file: no folders, 255 bytes at most"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_may_have_a_port() {
        for (text, host, port) in [
            ("192.0.2.1", "192.0.2.1", None),
            ("192.0.2.1:9", "192.0.2.1", Some(9)),
            ("fd00::1", "fd00::1", None),
            ("[fd00::1]", "fd00::1", None),
            ("[fd00::1]:9", "fd00::1", Some(9)),
            ("[fe80::1%eth0]:9", "fe80::1%eth0", Some(9)),
            ("there", "there", None),
            ("there:0", "there", Some(0)),
            ("::1:7699", "::1:7699", None),
        ] {
            assert_eq!(text.parse(), Ok(Place { host: host.into(), port }), "{text}");
        }
        for bad in
            ["", ":7", "there:", "there:70000", "there:+7", "there:x", "[::1", "[::1]7", "[x]:7", "1:2:3"]
        {
            assert!(bad.parse::<Place>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_address_that_looks_as_if_it_had_a_port_is_explained() {
        let hint = |text: &str| text.parse::<Place>().unwrap().hint();
        assert!(hint("::1:7699").unwrap().ends_with("[::1]:7699"));
        assert!(hint("fd00::1:7650").unwrap().ends_with("[fd00::1]:7650"));
        for plain in ["::1", "fd00::1", "fd00::1:a1b2", "[::1]:7699", "192.0.2.1:7699", "there"] {
            assert_eq!(hint(plain), None, "{plain}");
        }
    }

    #[test]
    fn destinations_have_a_host_and_a_plain_name() {
        for (text, host, name) in [
            ("there:", "there", ""),
            ("there:x", "there", "x"),
            ("::1:x", "::1", "x"),
            ("[::1]:x", "::1", "x"),
        ] {
            let host = Place { host: host.into(), port: None };
            assert_eq!(text.parse(), Ok(Destination { host, name: name.into() }), "{text}");
        }
        for bad in ["there", ":x", "there:a/b", "there:..", "there:7650:x"] {
            assert!(bad.parse::<Destination>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_that_looks_like_a_port_is_explained() {
        let hint = |text: &str| text.parse::<Destination>().unwrap().hint();
        assert!(hint("there:7651").unwrap().ends_with("--port 7651"));
        assert!(hint("::1:7651").unwrap().contains("'7651' is the name"));
        for plain in ["there:", "there:7651.raw", "[::1]:x"] {
            assert_eq!(hint(plain), None, "{plain}");
        }
    }
}
