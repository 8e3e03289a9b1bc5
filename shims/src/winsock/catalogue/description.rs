//! The file that describes a provider.
//!
//! ```text
//! # What a package installs as /etc/ndcompat/providers.d/example.provider
//! id = {0F0E0D0C-0B0A-0908-0706-050403020100}
//! library = /usr/lib/libexample-nd.so.1
//! name = Example NetworkDirect provider
//! ```
//!
//! `library` is an absolute path without variables: neither the current folder nor the environment may influence which code is
//! loaded. The other fields of `WSAPROTOCOL_INFOW` have their Windows names; their defaults are what the SPI requires of an ND v2
//! provider. A provider that is registered for several protocols has a `[protocol]` line before the fields of each; fields before
//! the first one apply to all.

use super::protocol::{Guid, ProtocolInfo};
use std::fmt::Write;

/// A provider of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Its identifier, and its class id.
    pub id: Guid,
    /// The path of its library, as registered.
    pub library: String,
    /// Its registrations; at least one.
    pub protocols: Vec<ProtocolInfo>,
}

/// An error in a description, with its line (counted from 1; 0 for the whole).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub line: usize,
    pub reason: String,
}

impl Mistake {
    /// An error without a line.
    pub fn of_all(reason: &str) -> Mistake {
        Mistake { line: 0, reason: reason.to_owned() }
    }
}

/// `MAX_PATH`: the room, in characters with the NUL, that programs have for a provider's path.
const MAX_PATH: usize = 260;

/// The error in the path of a library, if any.
fn fault_of(library: &str) -> Option<&'static str> {
    if library.is_empty() || library.contains('\0') {
        Some("no library")
    } else if !library.starts_with('/') {
        Some("the library is not an absolute path")
    } else if library.contains('%') {
        // Programs expand variables in the result of WSCGetProviderPath.
        Some("there are no variables in the path of a library")
    } else if library.chars().count() >= MAX_PATH {
        Some("the path of the library is too long")
    } else {
        None
    }
}

/// A number in a `WSAPROTOCOL_INFOW`.
enum Number<'a> {
    Unsigned(&'a mut u32),
    Signed(&'a mut i32),
}

/// A numeric field: its Windows name and its accessor.
type Field = (&'static str, fn(&mut ProtocolInfo) -> Number<'_>);

/// The numeric fields in a file.
const NUMBERS: &[Field] = &[
    ("dwServiceFlags1", |info| Number::Unsigned(&mut info.service_flags[0])),
    ("dwServiceFlags2", |info| Number::Unsigned(&mut info.service_flags[1])),
    ("dwServiceFlags3", |info| Number::Unsigned(&mut info.service_flags[2])),
    ("dwServiceFlags4", |info| Number::Unsigned(&mut info.service_flags[3])),
    ("dwProviderFlags", |info| Number::Unsigned(&mut info.provider_flags)),
    ("iVersion", |info| Number::Signed(&mut info.version)),
    ("iAddressFamily", |info| Number::Signed(&mut info.address_family)),
    ("iMaxSockAddr", |info| Number::Signed(&mut info.max_address)),
    ("iMinSockAddr", |info| Number::Signed(&mut info.min_address)),
    ("iSocketType", |info| Number::Signed(&mut info.socket_type)),
    ("iProtocol", |info| Number::Signed(&mut info.protocol)),
    ("iProtocolMaxOffset", |info| Number::Signed(&mut info.protocol_max_offset)),
    ("iNetworkByteOrder", |info| Number::Signed(&mut info.network_byte_order)),
    ("iSecurityScheme", |info| Number::Signed(&mut info.security_scheme)),
    ("dwMessageSize", |info| Number::Unsigned(&mut info.message_size)),
];

impl Number<'_> {
    /// Reads a decimal number, a hexadecimal one, or the name of an address family.
    fn set(self, value: &str) -> Option<()> {
        let value = match (value, value.strip_prefix("0x")) {
            ("AF_INET", _) => libc::AF_INET.into(),
            ("AF_INET6", _) => libc::AF_INET6.into(),
            (_, Some(digits)) => i64::from(u32::from_str_radix(digits, 16).ok()?),
            (decimal, None) => decimal.parse::<i64>().ok()?,
        };
        match self {
            Number::Unsigned(number) => *number = value.try_into().ok()?,
            Number::Signed(number) => *number = value.try_into().ok()?,
        }
        Some(())
    }
}

impl Provider {
    /// Reads a description.
    ///
    /// # Errors
    /// The first line that cannot be understood, or that says what another has said; what is missing.
    pub fn parse(text: &str) -> Result<Provider, Mistake> {
        let (mut id, mut library) = (None, None);
        let mut common = ProtocolInfo::network_direct("");
        let mut protocols: Vec<ProtocolInfo> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            let mistake = |reason: &str| Mistake { line: index + 1, reason: reason.to_owned() };
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line == "[protocol]" {
                protocols.push(common);
                continue;
            }
            let (key, value) =
                line.split_once('=').ok_or_else(|| mistake("neither `key = value` nor [protocol]"))?;
            let (key, value) = (key.trim(), value.trim());
            let info = protocols.last_mut().unwrap_or(&mut common);
            match key {
                "id" if id.is_some() => return Err(mistake("a second id")),
                "id" => id = Some(value.parse().map_err(|()| mistake("not an identifier"))?),
                "library" if library.is_some() => return Err(mistake("a second library")),
                "library" => match fault_of(value) {
                    Some(reason) => return Err(mistake(reason)),
                    None => library = Some(value.to_owned()),
                },
                "name" if value.contains('\0') => return Err(mistake("a name with a NUL")),
                "name" => info.set_name(value),
                _ => {
                    let (_, field) = NUMBERS
                        .iter()
                        .find(|(name, _)| *name == key)
                        .ok_or_else(|| mistake(&format!("unknown key `{key}`")))?;
                    field(info).set(value).ok_or_else(|| mistake(&format!("`{key}` cannot be `{value}`")))?;
                }
            }
        }
        let missing = |key: &str| Mistake::of_all(&format!("no {key}"));
        let (id, library) = (id.ok_or_else(|| missing("id"))?, library.ok_or_else(|| missing("library"))?);
        if protocols.is_empty() {
            protocols.push(common);
        }
        for protocol in &mut protocols {
            protocol.provider_id = id;
        }
        Ok(Provider { id, library, protocols })
    }

    /// The text of a description for [`parse`](Self::parse); `None` if a string in it cannot be represented.
    pub fn describe(&self) -> Option<String> {
        let fits = |text: &str| text.trim() == text && !text.contains(char::is_control);
        if fault_of(&self.library).is_some() || !fits(&self.library) {
            return None;
        }
        let mut text = format!("id = {}\nlibrary = {}\n", self.id, self.library);
        for protocol in &self.protocols {
            let name = protocol.name();
            if !fits(&name) {
                return None;
            }
            let _ = write!(text, "\n[protocol]\nname = {name}\n");
            let mut protocol = *protocol;
            for (key, field) in NUMBERS {
                let _ = match (*key, field(&mut protocol)) {
                    ("iAddressFamily", Number::Signed(&mut libc::AF_INET)) => {
                        writeln!(text, "{key} = AF_INET")
                    }
                    ("iAddressFamily", Number::Signed(&mut libc::AF_INET6)) => {
                        writeln!(text, "{key} = AF_INET6")
                    }
                    ("iVersion", Number::Signed(value @ 0..)) => writeln!(text, "{key} = {value:#x}"),
                    (_, Number::Signed(value)) => writeln!(text, "{key} = {value}"),
                    (_, Number::Unsigned(value)) => writeln!(text, "{key} = {value:#x}"),
                };
            }
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::protocol::Spi;
    use super::*;

    const LEAST: &str = "\
        # a comment\n\
        id = {0F0E0D0C-0B0A-0908-0706-050403020100}\n\
        \n\
        library = /usr/lib/libexample-nd.so.1\n\
        name = Example = provider\n";

    #[test]
    fn a_name_has_no_nul() {
        let text = LEAST.replace("provider", "a\0b");
        assert_eq!(Provider::parse(&text).unwrap_err().reason, "a name with a NUL");
    }

    #[test]
    fn the_least_a_package_says() {
        let provider = Provider::parse(LEAST).unwrap();
        assert_eq!(provider.id, Guid(0x0F0E0D0C, 0x0B0A, 0x0908, [7, 6, 5, 4, 3, 2, 1, 0]));
        assert_eq!(provider.library, "/usr/lib/libexample-nd.so.1");
        let [protocol] = provider.protocols[..] else { panic!("{:?}", provider.protocols) };
        assert_eq!((protocol.provider_id, protocol.spi()), (provider.id, Some(Spi::V2)));
        assert_eq!(protocol.name(), "Example = provider");
    }

    #[test]
    fn fields_of_one_protocol_and_of_all() {
        let text = format!(
            "{LEAST}iVersion = 1\n[protocol]\niAddressFamily=AF_INET\n[protocol]\ndwProviderFlags = 0x4\niSocketType = -1"
        );
        let provider = Provider::parse(&text).unwrap();
        let [first, second] = provider.protocols[..] else { panic!("{:?}", provider.protocols) };
        assert_eq!((first.address_family, first.version, first.provider_flags), (libc::AF_INET, 1, 0x14));
        assert_eq!((second.address_family, second.version, second.provider_flags), (libc::AF_INET6, 1, 4));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut provider = Provider::parse(LEAST).unwrap();
        let mut other = provider.protocols[0];
        other.set_name("ünother");
        other.service_flags = [0x2008E, 1, 2, u32::MAX];
        (other.version, other.message_size, other.max_address) = (i32::MIN, u32::MAX, 128);
        other.address_family = libc::AF_UNIX;
        provider.protocols.push(other);
        let text = provider.describe().unwrap();
        assert!(text.contains("iVersion = 0x20000\n"), "{text}");
        assert_eq!(Provider::parse(&text), Ok(provider));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, reason) in [
            ("library = /a\nlibrary = /b", "a second library"),
            ("library =", "no library"),
            ("library = libexample.so", "the library is not an absolute path"),
            ("library = ./libexample.so", "the library is not an absolute path"),
            ("library = %HOME%/libexample.so", "the library is not an absolute path"),
            ("library = /opt/%NAME%/libexample.so", "there are no variables in the path of a library"),
            ("colour = red", "unknown key `colour`"),
            ("iVersion = two", "`iVersion` cannot be `two`"),
            ("dwMessageSize = -1", "`dwMessageSize` cannot be `-1`"),
            ("dwMessageSize = 0x1FFFFFFFF", "`dwMessageSize` cannot be `0x1FFFFFFFF`"),
            ("nonsense", "neither `key = value` nor [protocol]"),
            ("id = 5", "not an identifier"),
        ] {
            let mistake = Provider::parse(line).unwrap_err();
            assert_eq!((mistake.line, &mistake.reason[..]), (line.lines().count(), reason));
        }
        let whole = |reason: &str| Err(Mistake::of_all(reason));
        assert_eq!(Provider::parse("library = /a"), whole("no id"));
        assert_eq!(Provider::parse("id = 0F0E0D0C-0B0A-0908-0706-050403020100"), whole("no library"));
        assert_eq!(Provider::parse(&format!("{LEAST}id = 1")).unwrap_err().reason, "a second id");
    }

    #[test]
    fn a_path_is_at_most_max_path_long() {
        let text =
            |length| LEAST.replace("/usr/lib/libexample-nd.so.1", &format!("/{}", "é".repeat(length - 1)));
        let longest = Provider::parse(&text(MAX_PATH - 1)).unwrap();
        assert!(longest.describe().is_some());
        let mistake = Provider::parse(&text(MAX_PATH)).unwrap_err();
        assert_eq!((mistake.line, &mistake.reason[..]), (4, "the path of the library is too long"));
        let library = longest.library.clone() + "e";
        assert_eq!(Provider { library, ..longest }.describe(), None);
    }

    #[test]
    fn texts_that_would_not_survive_are_refused() {
        let good = Provider::parse(LEAST).unwrap();
        for library in ["", "relative.so", "/two\nlines", "/space ", "/nul\0", "/%HOME%/x.so"] {
            assert_eq!(
                Provider { library: library.to_owned(), ..good.clone() }.describe(),
                None,
                "{library:?}"
            );
        }
        let mut named = good;
        named.protocols[0].set_name("two\nlines");
        assert_eq!(named.describe(), None);
    }
}
