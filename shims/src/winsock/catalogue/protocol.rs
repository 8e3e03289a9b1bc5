//! `GUID` and `WSAPROTOCOL_INFOW`.

use crate::text::{self, Wchar};
use std::fmt;
use std::str::FromStr;

/// `XP1_GUARANTEED_DELIVERY | XP1_GUARANTEED_ORDER | XP1_MESSAGE_ORIENTED | XP1_CONNECT_DATA`.
const SERVICE_FLAGS: u32 = 0x2 | 0x4 | 0x8 | 0x80;
/// `PFL_HIDDEN`.
const HIDDEN: u32 = 0x4;
/// `PFL_NETWORKDIRECT_PROVIDER`.
const NETWORK_DIRECT: u32 = 0x10;
/// `ND_VERSION_2`, as the headers define it and programs compare with. The SPI's pages say 2.
const VERSION_2: i32 = 0x2_0000;

/// A `GUID`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guid(pub u32, pub u16, pub u16, pub [u8; 8]);

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Guid(a, b, c, d) = self;
        let tail = u64::from_be_bytes(*d);
        write!(f, "{{{a:08X}-{b:04X}-{c:04X}-{:04X}-{:012X}}}", tail >> 48, tail & 0xFFFF_FFFF_FFFF)
    }
}

impl FromStr for Guid {
    type Err = ();

    /// Parses a GUID with or without braces.
    fn from_str(text: &str) -> Result<Guid, ()> {
        let bare = text.strip_prefix('{').map_or(Some(text), |rest| rest.strip_suffix('}')).ok_or(())?;
        let groups: Vec<&str> = bare.split('-').collect();
        let widths = groups.iter().map(|group| group.len());
        if !widths.eq([8, 4, 4, 4, 12]) || bare.contains('+') {
            return Err(());
        }
        let digits = u128::from_str_radix(&groups.concat(), 16).map_err(drop)?;
        Ok(Guid(
            (digits >> 96) as u32,
            (digits >> 80) as u16,
            (digits >> 64) as u16,
            (digits as u64).to_be_bytes(),
        ))
    }
}

/// The SPI version of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spi {
    /// ND v1: recognised and ignored.
    V1,
    /// ND v2.
    V2,
}

/// `WSAPROTOCOL_INFOW`, or with another type of name `WSAPROTOCOL_INFOA`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct ProtocolInfo<Name = [Wchar; 256]> {
    pub service_flags: [u32; 4],
    pub provider_flags: u32,
    pub provider_id: Guid,
    pub catalog_entry_id: u32,
    pub chain_length: i32,
    pub chain_entries: [u32; 7],
    pub version: i32,
    pub address_family: i32,
    pub max_address: i32,
    pub min_address: i32,
    pub socket_type: i32,
    pub protocol: i32,
    pub protocol_max_offset: i32,
    pub network_byte_order: i32,
    pub security_scheme: i32,
    pub message_size: u32,
    pub reserved: u32,
    pub name: Name,
}

/// `WSAPROTOCOL_INFOA`.
pub type ProtocolInfoA = ProtocolInfo<[u8; 256]>;

// 628 bytes with the 16-bit characters of Windows.
const _: () = assert!(size_of::<ProtocolInfo>() == 628 - 512 + 1024);
const _: () = assert!(size_of::<ProtocolInfoA>() == 628 - 512 + 256);

impl ProtocolInfo {
    /// The registration that the SPI requires of an ND v2 provider. `AF_INET6` stands for both families.
    pub fn network_direct(name: &str) -> ProtocolInfo {
        let mut info = ProtocolInfo {
            service_flags: [SERVICE_FLAGS, 0, 0, 0],
            provider_flags: HIDDEN | NETWORK_DIRECT,
            provider_id: Guid(0, 0, 0, [0; 8]),
            catalog_entry_id: 0,
            chain_length: 1,
            chain_entries: [0; 7],
            version: VERSION_2,
            address_family: libc::AF_INET6,
            max_address: size_of::<libc::sockaddr_in6>() as i32,
            min_address: size_of::<libc::sockaddr_in>() as i32,
            socket_type: -1,
            protocol: 0,
            protocol_max_offset: 0,
            network_byte_order: 0,
            security_scheme: 0,
            message_size: 0,
            reserved: 0,
            name: [0; 256],
        };
        info.set_name(name);
        info
    }

    /// The information about an IPv4 or IPv6 socket; `None` for others.
    pub(crate) fn of_socket(family: i32, socket_type: i32, protocol: i32) -> Option<ProtocolInfo> {
        /// `XP1_IFS_HANDLES`: a socket is a handle for functions of files, too.
        const HANDLES: u32 = 0x2_0000;
        /// `PFL_MATCHES_PROTOCOL_ZERO`.
        const MATCHES_ZERO: u32 = 8;
        let (size, six) = match family {
            libc::AF_INET => (size_of::<libc::sockaddr_in>(), ""),
            libc::AF_INET6 => (size_of::<libc::sockaddr_in6>(), "v6"),
            _ => return None,
        };
        // Streams: guaranteed delivery and order, graceful close, expedited data. Datagrams: connectionless, messages, broadcast
        // and multicast.
        let (name, flags, message_size) = match socket_type {
            libc::SOCK_STREAM => ("TCP/IP", 0x2 | 0x4 | 0x20 | 0x40, 0),
            libc::SOCK_DGRAM => ("UDP/IP", 0x1 | 0x8 | 0x200 | 0x400, 65507),
            _ => ("RAW/IP", 0x1 | 0x8 | 0x200 | 0x400, 65507),
        };
        let mut info = ProtocolInfo::network_direct(&format!("{name}{six}"));
        info.service_flags[0] = flags | HANDLES;
        info.provider_flags = MATCHES_ZERO;
        info.version = 2;
        (info.address_family, info.socket_type, info.protocol) = (family, socket_type, protocol);
        (info.max_address, info.min_address) = (size as i32, size as i32);
        info.message_size = message_size;
        Some(info)
    }

    /// With a narrow name.
    pub(crate) fn narrowed(&self) -> ProtocolInfoA {
        let mut name = [0; 256];
        for (byte, unit) in name[..255].iter_mut().zip(self.name().into_bytes()) {
            *byte = unit;
        }
        ProtocolInfo {
            service_flags: self.service_flags,
            provider_flags: self.provider_flags,
            provider_id: self.provider_id,
            catalog_entry_id: self.catalog_entry_id,
            chain_length: self.chain_length,
            chain_entries: self.chain_entries,
            version: self.version,
            address_family: self.address_family,
            max_address: self.max_address,
            min_address: self.min_address,
            socket_type: self.socket_type,
            protocol: self.protocol,
            protocol_max_offset: self.protocol_max_offset,
            network_byte_order: self.network_byte_order,
            security_scheme: self.security_scheme,
            message_size: self.message_size,
            reserved: self.reserved,
            name,
        }
    }

    /// The name, as far as it is terminated.
    pub fn name(&self) -> String {
        text::from_wide(self.name_units())
    }

    /// The units of the name, up to its end.
    pub(super) fn name_units(&self) -> &[Wchar] {
        let length = self.name.iter().position(|&unit| unit == 0).unwrap_or(self.name.len());
        &self.name[..length]
    }

    /// Sets the name, truncated if necessary.
    pub fn set_name(&mut self, name: &str) {
        self.name = [0; 256];
        for (unit, c) in self.name[..255].iter_mut().zip(name.chars()) {
            *unit = c.into();
        }
    }

    /// The SPI version, if this is the registration of a NetworkDirect provider.
    pub fn spi(&self) -> Option<Spi> {
        let plain = self.service_flags[0] & SERVICE_FLAGS == SERVICE_FLAGS
            && matches!(self.address_family, libc::AF_INET | libc::AF_INET6)
            && (self.socket_type, self.protocol, self.protocol_max_offset) == (-1, 0, 0);
        let has = |flags| self.provider_flags & flags == flags;
        match self.version {
            1 | 0x1_0000 if plain && has(HIDDEN) => Some(Spi::V1),
            2 | VERSION_2 if plain && has(HIDDEN | NETWORK_DIRECT) => Some(Spi::V2),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_as_text() {
        let id = Guid(0x6E64_636F, 0x6D70, 0x6174, [0x80, 0, 0x6C, 0x69, 0x6E, 0x75, 0x78, 0x01]);
        let text = "{6E64636F-6D70-6174-8000-6C696E757801}";
        assert_eq!(id.to_string(), text);
        assert_eq!(text.parse(), Ok(id));
        assert_eq!("6e64636f-6d70-6174-8000-6c696e757801".parse(), Ok(id));
        for wrong in [
            "",
            "{",
            "{6E64636F-6D70-6174-8000-6C696E757801",
            "6E64636F-6D70-6174-8000-6C696E75780",
            "+E64636F-6D70-6174-8000-6C696E757801",
            "6E64636-F6D70-6174-8000-6C696E757801",
            "gE64636F-6D70-6174-8000-6C696E757801",
        ] {
            assert_eq!(wrong.parse::<Guid>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn the_registration_has_the_documented_values() {
        let info = ProtocolInfo::network_direct("x");
        assert_eq!((info.service_flags, info.provider_flags), ([0x8E, 0, 0, 0], 0x14));
        assert_eq!((info.version, info.address_family, info.socket_type), (0x20000, libc::AF_INET6, -1));
        assert_eq!((info.protocol, info.protocol_max_offset, info.chain_length), (0, 0, 1));
        assert_eq!((info.spi(), info.name()), (Some(Spi::V2), "x".to_owned()));
    }

    #[test]
    fn versions_are_told_apart() {
        let info = ProtocolInfo::network_direct("x");
        let with = |change: fn(&mut ProtocolInfo)| {
            let mut info = info;
            change(&mut info);
            info.spi()
        };
        assert_eq!(with(|info| info.version = 2), Some(Spi::V2));
        assert_eq!(with(|info| info.version = 1), Some(Spi::V1));
        assert_eq!(with(|info| (info.version, info.provider_flags) = (0x10000, 0x4)), Some(Spi::V1));
        assert_eq!(with(|info| info.service_flags[0] |= 0x20000), Some(Spi::V2), "more flags do no harm");
        assert_eq!(with(|info| info.version = 3), None);
        assert_eq!(with(|info| info.provider_flags = 0x4), None, "v2 is flagged as such");
        assert_eq!(with(|info| info.provider_flags = 0x10), None);
        assert_eq!(with(|info| info.service_flags[0] = 0x0E), None);
        assert_eq!(with(|info| info.address_family = libc::AF_UNIX), None);
        assert_eq!(with(|info| info.socket_type = libc::SOCK_STREAM), None);
        assert_eq!(with(|info| info.protocol = 6), None);
        assert_eq!(with(|info| info.protocol_max_offset = 1), None);
    }

    #[test]
    fn long_names_are_cut() {
        let info = ProtocolInfo::network_direct(&"é".repeat(300));
        assert_eq!(info.name(), "é".repeat(255));
        assert_eq!(ProtocolInfo { name: [65; 256], ..info }.name(), "A".repeat(256));
    }
}
