//! Rows and tables of interfaces and addresses (`GetIfEntry2`, `GetUnicastIpAddressTable` ...). Names are Linux's, and so are
//! aliases.

use super::address::{read_sockaddr, sockaddr_size, write_sockaddr};
use super::interface::{Interface, interfaces, is_of};
use super::local_address_for;
use crate::arguments::{InOut, Out};
use crate::boundary::guard;
use crate::error::*;
use crate::text::{Wchar, to_wide};
use libc::{AF_INET, AF_INET6, AF_UNSPEC, sockaddr};
use std::ffi::c_void;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// `IF_MAX_STRING_SIZE`, and the NUL.
const NAME: usize = 257;

/// `MIB_IF_ROW2`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // the fields are Windows'
pub struct InterfaceRow {
    pub luid: u64,
    pub index: u32,
    pub guid: [u8; 16],
    pub alias: [Wchar; NAME],
    pub description: [Wchar; NAME],
    pub physical_length: u32,
    pub physical: [u8; 32],
    pub permanent: [u8; 32],
    pub mtu: u32,
    pub kind: u32,
    pub tunnel: u32,
    pub medium: u32,
    pub physical_medium: u32,
    pub access: u32,
    pub direction: u32,
    pub flags: u8,
    pub oper_status: u32,
    pub admin_status: u32,
    pub connect_state: u32,
    pub network: [u8; 16],
    pub connection: u32,
    pub transmit_speed: u64,
    pub receive_speed: u64,
    /// In: octets, unicast and other packets, discarded, errors, unknown protocols, octets by kind; out: likewise; queue length.
    pub counters: [u64; 18],
}

/// `MIB_UNICASTIPADDRESS_ROW`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // the fields are Windows'
pub struct AddressRow {
    /// `SOCKADDR_INET`
    pub address: [u32; 7],
    pub luid: u64,
    pub index: u32,
    pub prefix_origin: u32,
    pub suffix_origin: u32,
    pub valid_lifetime: u32,
    pub preferred_lifetime: u32,
    pub prefix_length: u8,
    pub skip_as_source: u8,
    pub dad_state: u32,
    pub scope: u32,
    pub created: i64,
}

/// `MIB_IPADDRROW`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // the fields are Windows'
pub struct Ipv4Row {
    pub address: u32,
    pub index: u32,
    pub mask: u32,
    pub broadcast: u32,
    pub reassembly: u32,
    pub unused: u16,
    pub kind: u16,
}

/// `NdisMedium802_3`.
pub const MEDIUM_802_3: u32 = 0;
/// `NdisMediumInfiniBand`.
pub const MEDIUM_INFINIBAND: u32 = 14;
/// `NdisMediumLoopback`.
pub const MEDIUM_LOOPBACK: u32 = 17;
/// `NdisPhysicalMediumUnspecified`.
pub const PHYSICAL_MEDIUM_UNSPECIFIED: u32 = 0;
/// `NdisPhysicalMediumInfiniband`.
pub const PHYSICAL_MEDIUM_INFINIBAND: u32 = 11;
/// `NdisPhysicalMedium802_3`.
pub const PHYSICAL_MEDIUM_802_3: u32 = 14;

const HARDWARE_INTERFACE: u8 = 0x01;
const CONNECTOR_PRESENT: u8 = 0x04;
const NOT_MEDIA_CONNECTED: u8 = 0x10;
/// `IpDadStatePreferred`.
const PREFERRED: u32 = 4;
/// `MIB_IPADDR_PRIMARY`.
const PRIMARY: u16 = 1;

fn name_field(name: &str) -> [Wchar; NAME] {
    let mut field = [0; NAME];
    field.iter_mut().take(NAME - 1).zip(to_wide(name)).for_each(|(unit, character)| *unit = character);
    field
}

/// The `NDIS_MEDIUM` and the `NDIS_PHYSICAL_MEDIUM` of an interface of this `IFTYPE`.
fn media(kind: u32, is_loopback: bool, is_hardware: bool) -> (u32, u32) {
    // IF_TYPE_INFINIBAND
    let is_infiniband = kind == 199;
    let medium = match (is_loopback, is_infiniband) {
        (true, _) => MEDIUM_LOOPBACK,
        (_, true) => MEDIUM_INFINIBAND,
        _ => MEDIUM_802_3,
    };
    let physical = match (is_infiniband, is_hardware) {
        (true, _) => PHYSICAL_MEDIUM_INFINIBAND,
        (_, true) => PHYSICAL_MEDIUM_802_3,
        _ => PHYSICAL_MEDIUM_UNSPECIFIED,
    };
    (medium, physical)
}

fn row(interface: &Interface) -> InterfaceRow {
    let counter = |name: &str| interface.number(&format!("statistics/{name}")).unwrap_or(0);
    let address = interface.physical_address();
    let mut physical = [0; 32];
    let length = address.len().min(32);
    physical[..length].copy_from_slice(&address[..length]);
    // Only hardware interfaces have such a link.
    let is_hardware = fs::exists(format!("/sys/class/net/{}/device", interface.name)).unwrap_or(false);
    let is_up = interface.is_up();
    let kind = interface.kind();
    let is_loopback = interface.flags & libc::IFF_LOOPBACK as u32 != 0;
    let (in_octets, in_packets) = (counter("rx_bytes"), counter("rx_packets"));
    let (out_octets, out_packets) = (counter("tx_bytes"), counter("tx_packets"));
    let in_multicast = counter("multicast").min(in_packets);
    let (medium, physical_medium) = media(kind, is_loopback, is_hardware);
    InterfaceRow {
        luid: interface.luid(),
        index: interface.index,
        guid: [0; 16],
        alias: name_field(&interface.name),
        description: name_field(&interface.name),
        physical_length: length as u32,
        physical,
        permanent: physical,
        mtu: interface.number("mtu").unwrap_or(u32::MAX.into()) as u32,
        kind,
        // TUNNEL_TYPE_OTHER
        tunnel: u32::from(kind == 131),
        medium,
        physical_medium,
        // NET_IF_ACCESS_LOOPBACK, NET_IF_ACCESS_BROADCAST
        access: if is_loopback { 1 } else { 2 },
        // NET_IF_DIRECTION_SENDRECEIVE
        direction: 0,
        flags: if is_hardware { HARDWARE_INTERFACE | CONNECTOR_PRESENT } else { 0 }
            | if is_up { 0 } else { NOT_MEDIA_CONNECTED },
        // IfOperStatusUp, IfOperStatusDown
        oper_status: if is_up { 1 } else { 2 },
        // NET_IF_ADMIN_STATUS_UP, NET_IF_ADMIN_STATUS_DOWN
        admin_status: if interface.flags & libc::IFF_UP as u32 != 0 { 1 } else { 2 },
        // MediaConnectStateConnected, MediaConnectStateDisconnected
        connect_state: if is_up { 1 } else { 2 },
        network: [0; 16],
        // NET_IF_CONNECTION_DEDICATED
        connection: 1,
        transmit_speed: interface.speed(),
        receive_speed: interface.speed(),
        counters: [
            in_octets,
            in_packets - in_multicast,
            in_multicast,
            counter("rx_dropped"),
            counter("rx_errors"),
            counter("rx_nohandler"),
            in_octets,
            0,
            0,
            out_octets,
            out_packets,
            0,
            counter("tx_dropped"),
            counter("tx_errors"),
            out_octets,
            0,
            0,
            0,
        ],
    }
}

/// Runs the body of a function whose result is the error.
pub(super) fn result(body: impl FnOnce() -> Result<(), u32>) -> u32 {
    guard(ERROR_INTERNAL_ERROR, || body().err().unwrap_or(ERROR_SUCCESS))
}

/// Allocates a table, which the program frees by `FreeMibTable`: the number of rows, and at offset 8 the rows.
fn give<T: Copy>(rows: &[T], table: Out<'_, *mut c_void>) -> Result<(), u32> {
    const { assert!(align_of::<T>() <= 8) };
    // SAFETY: takes no pointer.
    let block = unsafe { libc::malloc(8 + size_of_val(rows)) }.cast::<u8>();
    if block.is_null() {
        return Err(ERROR_NOT_ENOUGH_MEMORY);
    }
    // SAFETY: room for the number.
    unsafe { block.cast::<u32>().write(rows.len() as u32) };
    // The rows begin at 8, where every type is aligned.
    let place = block.wrapping_add(8).cast::<T>();
    // SAFETY: room for the rows.
    unsafe { place.copy_from_nonoverlapping(rows.as_ptr(), rows.len()) };
    table.put(block.cast());
    Ok(())
}

pub(super) fn find(meant: impl Fn(&Interface) -> bool, missing: u32) -> Result<Interface, u32> {
    interfaces()?.into_iter().find(meant).ok_or(missing)
}

/// `GetIfEntry2`: of the interface with the row's LUID, or if that is 0, with its index.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetIfEntry2(entry: InOut<'_, InterfaceRow>) -> u32 {
    result(|| {
        let asked = entry.read().ok_or(ERROR_INVALID_PARAMETER)?;
        let interface = match (asked.luid, asked.index) {
            (0, 0) => return Err(ERROR_INVALID_PARAMETER),
            (0, index) => find(|interface| interface.index == index, ERROR_FILE_NOT_FOUND),
            (luid, _) => find(|interface| interface.luid() == luid, ERROR_FILE_NOT_FOUND),
        }?;
        entry.put(row(&interface));
        Ok(())
    })
}

/// `GetIfTable2`: all interfaces.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetIfTable2(table: Out<'_, *mut c_void>) -> u32 {
    result(|| {
        let table = table.required(ERROR_INVALID_PARAMETER)?;
        let rows: Vec<_> = interfaces()?.iter().map(row).collect();
        give(&rows, table)
    })
}

/// `GetUnicastIpAddressTable`: all addresses of the family, or of both.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetUnicastIpAddressTable(family: u16, table: Out<'_, *mut c_void>) -> u32 {
    result(|| {
        let table = table.required(ERROR_INVALID_PARAMETER)?;
        let family = i32::from(family);
        if !matches!(family, AF_UNSPEC | AF_INET | AF_INET6) {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let mut rows = Vec::new();
        for interface in interfaces()? {
            for (address, length) in &interface.addresses {
                if is_of(*address, family) {
                    rows.push(address_row(&interface, *address, *length));
                }
            }
        }
        if rows.is_empty() && family != AF_UNSPEC {
            return Err(ERROR_NOT_FOUND);
        }
        give(&rows, table)
    })
}

fn address_row(interface: &Interface, address: SocketAddr, prefix_length: u8) -> AddressRow {
    let mut place = [0u32; 7];
    // SAFETY: room for an address of either family.
    let written = unsafe { write_sockaddr(address, place.as_mut_ptr().cast(), &mut size_of_val(&place)) };
    debug_assert!(written.is_ok());
    AddressRow {
        address: place,
        luid: interface.luid(),
        index: interface.index,
        // IpPrefixOriginManual, IpSuffixOriginManual
        prefix_origin: 1,
        suffix_origin: 1,
        valid_lifetime: u32::MAX,
        preferred_lifetime: u32::MAX,
        prefix_length,
        skip_as_source: 0,
        dad_state: PREFERRED,
        scope: if let SocketAddr::V6(address) = address { address.scope_id() } else { 0 },
        created: 0,
    }
}

/// `FreeMibTable`.
///
/// # Safety
/// `table` must be NULL, or a table of these functions that nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_FreeMibTable(table: *mut c_void) {
    // SAFETY: NULL, or a block from `malloc` as all tables are, which nobody uses any more, as this function asks.
    unsafe { libc::free(table) };
}

/// `GetIpAddrTable`: the IPv4 addresses, by address if they are to be in order.
///
/// # Safety
/// `table` must be NULL or have room for `*size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetIpAddrTable(table: *mut u8, size: InOut<'_, u32>, sorted: i32) -> u32 {
    const HEAD: usize = 4;
    result(|| {
        let room = size.read().ok_or(ERROR_INVALID_PARAMETER)? as usize;
        let mut rows = Vec::new();
        for interface in interfaces()? {
            for (address, length) in &interface.addresses {
                if let IpAddr::V4(address) = address.ip() {
                    rows.push(Ipv4Row {
                        address: u32::from(address).to_be(),
                        index: interface.index,
                        mask: mask_of((*length).into()).unwrap_or(0),
                        broadcast: 1,
                        reassembly: 65535,
                        unused: 0,
                        kind: PRIMARY,
                    });
                }
            }
        }
        if sorted != 0 {
            rows.sort_by_key(|row| u32::from_be(row.address));
        }
        let needed = HEAD + size_of_val(&*rows);
        size.put(needed as u32);
        if table.is_null() || room < needed {
            return Err(ERROR_INSUFFICIENT_BUFFER);
        }
        // SAFETY: it fits.
        unsafe { table.cast::<u32>().write_unaligned(rows.len() as u32) };
        let behind = table.wrapping_add(HEAD);
        // SAFETY: behind the number there is room for the rows, as `needed` counts both; bytes need no alignment.
        unsafe { behind.copy_from_nonoverlapping(rows.as_ptr().cast(), needed - HEAD) };
        Ok(())
    })
}

/// `GetNumberOfInterfaces`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetNumberOfInterfaces(number: Out<'_, u32>) -> u32 {
    result(|| {
        number.required(ERROR_INVALID_PARAMETER)?.put(interfaces()?.len() as u32);
        Ok(())
    })
}

fn best_interface(remote: SocketAddr, index: Out<'_, u32>) -> Result<(), u32> {
    let index = index.required(ERROR_INVALID_PARAMETER)?;
    let local = local_address_for(remote).map_err(|_| ERROR_NETWORK_UNREACHABLE)?;
    let is_it = |interface: &Interface| interface.addresses.iter().any(|(mine, _)| mine.ip() == local.ip());
    let interface = match remote {
        SocketAddr::V6(remote) if remote.scope_id() != 0 => {
            find(|interface| interface.index == remote.scope_id(), ERROR_NETWORK_UNREACHABLE)
        }
        // Every 127.x.y.z belongs to the loopback interface.
        _ => find(|i| is_it(i) || local.ip().is_loopback() && i.kind() == 24, ERROR_NOT_FOUND),
    }?;
    index.put(interface.index);
    Ok(())
}

/// `GetBestInterface`: the interface by which an IPv4 address is reached.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetBestInterface(address: u32, index: Out<'_, u32>) -> u32 {
    result(|| best_interface((Ipv4Addr::from(u32::from_be(address)), 0).into(), index))
}

/// `GetBestInterfaceEx`: the same for either family.
///
/// # Safety
/// `address` must be NULL or have the size of its family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetBestInterfaceEx(address: *const sockaddr, index: Out<'_, u32>) -> u32 {
    result(|| {
        // SAFETY: NULL, or an address, which begins with its family, as this function asks.
        let family = unsafe { address.as_ref() }.ok_or(ERROR_INVALID_PARAMETER)?.sa_family;
        let size = sockaddr_size(family.into()).ok_or(ERROR_INVALID_PARAMETER)?;
        // SAFETY: an address of the size of its family, as this function asks.
        let remote = unsafe { read_sockaddr(address, size) }.map_err(|_| ERROR_INVALID_PARAMETER)?;
        best_interface(remote, index)
    })
}

/// The mask of this many leading bits, in network order.
pub(super) fn mask_of(length: u32) -> Option<u32> {
    (length <= 32).then(|| u32::MAX.checked_shl(32 - length).unwrap_or(0).to_be())
}

#[cfg(test)]
mod tests;
