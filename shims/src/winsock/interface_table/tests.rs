//! The loopback interface is on every machine, and on some nothing else.

use super::super::interface_name::*;
use super::*;
use crate::arguments::{In, Text};
use crate::text::w;
use std::ptr::{null, null_mut};

fn blank() -> InterfaceRow {
    // SAFETY: a structure of numbers.
    unsafe { std::mem::zeroed() }
}

fn loopback() -> InterfaceRow {
    let mut row = InterfaceRow { index: 1, ..blank() };
    assert_eq!(ndw_GetIfEntry2((&mut row).into()), ERROR_SUCCESS);
    row
}

/// The rows of a table, which is freed.
fn rows<T: Copy>(table: *mut c_void) -> Vec<T> {
    // SAFETY: a table that a function has given.
    unsafe {
        let rows = std::slice::from_raw_parts(table.byte_add(8).cast(), table.cast::<u32>().read() as usize);
        let rows = rows.to_vec();
        ndw_FreeMibTable(table);
        rows
    }
}

#[test]
fn an_interface_is_found_by_its_luid_or_its_index() {
    let row = loopback();
    assert_eq!(row.alias[..3], w("lo"));
    assert_eq!((row.kind, row.medium, row.oper_status, row.admin_status, row.luid >> 48), (24, 17, 1, 1, 24));
    let mut by_luid = InterfaceRow { luid: row.luid, index: 77, ..blank() };
    assert_eq!((ndw_GetIfEntry2((&mut by_luid).into()), by_luid.index), (ERROR_SUCCESS, 1));
    for (luid, index, error) in [
        (0, 0, ERROR_INVALID_PARAMETER),
        (0, 0x7FFF_FFFF, ERROR_FILE_NOT_FOUND),
        (9, 1, ERROR_FILE_NOT_FOUND),
    ] {
        let mut row = InterfaceRow { luid, index, ..blank() };
        assert_eq!((ndw_GetIfEntry2((&mut row).into()), row.kind), (error, 0));
    }
    assert_eq!(ndw_GetIfEntry2(InOut::NULL), ERROR_INVALID_PARAMETER);
}

#[test]
fn a_row_counts_what_an_interface_has_carried() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let before = loopback().counters;
    socket.send_to(&[0; 500], socket.local_addr().unwrap()).unwrap();
    let after = loopback().counters;
    // InOctets, InUcastPkts, OutOctets, OutUcastPkts
    for (counter, least) in [(0, 500), (1, 1), (9, 500), (10, 1)] {
        assert!(after[counter] >= before[counter] + least, "counter {counter}: {before:?} {after:?}");
    }
}

#[test]
fn tables_have_all_interfaces_and_all_addresses_of_a_family() {
    let mut table: *mut c_void = null_mut();
    assert_eq!(ndw_GetIfTable2((&mut table).into()), ERROR_SUCCESS);
    let interfaces: Vec<InterfaceRow> = rows(table);
    let mut number = 0;
    assert_eq!(ndw_GetNumberOfInterfaces((&mut number).into()), ERROR_SUCCESS);
    assert!(interfaces.iter().any(|row| row.index == 1) && interfaces.len() == number as usize);
    assert_eq!(ndw_GetUnicastIpAddressTable(AF_INET as u16, (&mut table).into()), ERROR_SUCCESS);
    let addresses: Vec<AddressRow> = rows(table);
    let own =
        addresses.iter().find(|row| row.index == 1 && row.address[1] == u32::from_ne_bytes([127, 0, 0, 1]));
    let own = own.expect("127.0.0.1");
    assert_eq!((own.prefix_length, own.dad_state, own.luid), (8, 4, loopback().luid));
    assert!(addresses.iter().all(|row| row.address[0] as u16 == AF_INET as u16));
    assert_eq!(ndw_GetUnicastIpAddressTable(AF_UNSPEC as u16, (&mut table).into()), ERROR_SUCCESS);
    assert!(rows::<AddressRow>(table).len() >= addresses.len());
    assert_eq!(ndw_GetUnicastIpAddressTable(77, (&mut table).into()), ERROR_INVALID_PARAMETER);
    for error in [
        ndw_GetUnicastIpAddressTable(AF_INET as u16, Out::NULL),
        ndw_GetIfTable2(Out::NULL),
        ndw_GetNumberOfInterfaces(Out::NULL),
    ] {
        assert_eq!(error, ERROR_INVALID_PARAMETER);
    }
    // SAFETY: NULL is no table.
    unsafe { ndw_FreeMibTable(null_mut()) };
}

#[test]
fn the_table_of_ipv4_addresses_says_how_much_room_it_needs() {
    let ask = |buffer: &mut [u32], size: &mut u32, sorted| {
        let table = if buffer.is_empty() { null_mut() } else { buffer.as_mut_ptr().cast() };
        // SAFETY: NULL, or as much room as is said.
        unsafe { ndw_GetIpAddrTable(table, size.into(), sorted) }
    };
    let mut size = 0;
    assert_eq!(ask(&mut [], &mut size, 0), ERROR_INSUFFICIENT_BUFFER);
    let mut buffer = vec![0u32; size as usize / 4];
    let mut short = size - 1;
    assert_eq!((ask(&mut buffer, &mut short, 1), short, buffer[0]), (ERROR_INSUFFICIENT_BUFFER, size, 0));
    assert_eq!(ask(&mut buffer, &mut size, 1), ERROR_SUCCESS);
    let rows: Vec<&[u32]> = buffer[1..].chunks(6).collect();
    assert_eq!(rows.len(), buffer[0] as usize);
    let loopback = rows.iter().find(|row| row[1] == 1).unwrap();
    assert_eq!(loopback[0].to_ne_bytes(), [127, 0, 0, 1]);
    assert_eq!(loopback[2].to_ne_bytes(), [255, 0, 0, 0]);
    assert!(rows.is_sorted_by_key(|row| u32::from_be(row[0])));
    // SAFETY: nothing is written.
    assert_eq!(unsafe { ndw_GetIpAddrTable(null_mut(), InOut::NULL, 0) }, ERROR_INVALID_PARAMETER);
}

#[test]
fn numbers_and_names_of_interfaces_lead_to_each_other() {
    let (mut luid, mut index) = (0, 0);
    assert_eq!(ndw_ConvertInterfaceIndexToLuid(1, (&mut luid).into()), ERROR_SUCCESS);
    assert_eq!(luid, loopback().luid);
    assert_eq!(ndw_ConvertInterfaceLuidToIndex((&luid).into(), (&mut index).into()), ERROR_SUCCESS);
    assert_eq!(index, 1);
    let (mut narrow, mut wide) = ([7u8; 3], [7 as Wchar; 3]);
    // SAFETY: as much room as is said.
    unsafe {
        assert_eq!(
            ndw_ConvertInterfaceLuidToNameA((&luid).into(), narrow.as_mut_ptr(), 2),
            ERROR_NOT_ENOUGH_MEMORY
        );
        assert_eq!(ndw_ConvertInterfaceLuidToNameA((&luid).into(), narrow.as_mut_ptr(), 3), ERROR_SUCCESS);
        assert_eq!(ndw_ConvertInterfaceLuidToNameW((&luid).into(), wide.as_mut_ptr(), 3), ERROR_SUCCESS);
        assert_eq!((narrow, &wide[..]), (*b"lo\0", &w("lo")[..]));
        assert_eq!(ndw_ConvertInterfaceLuidToAlias((&luid).into(), wide.as_mut_ptr(), 3), ERROR_SUCCESS);
        assert_eq!(ndw_ConvertInterfaceLuidToAlias((&luid).into(), null_mut(), 3), ERROR_INVALID_PARAMETER);
        assert_eq!(
            ndw_ConvertInterfaceLuidToNameA((&5).into(), narrow.as_mut_ptr(), 3),
            ERROR_INVALID_PARAMETER
        );
        assert_eq!(
            ndw_ConvertInterfaceLuidToNameA(In::NULL, narrow.as_mut_ptr(), 3),
            ERROR_INVALID_PARAMETER
        );
    }
    let place = |luid: &mut u64| ndw_ConvertInterfaceNameToLuidA(c"lo".into(), luid.into());
    let mut found = 0;
    assert_eq!((place(&mut found), found), (ERROR_SUCCESS, luid));
    let none = w("no such one");
    assert_eq!(
        ndw_ConvertInterfaceNameToLuidW(Text::terminated(&none), (&mut found).into()),
        ERROR_INVALID_NAME
    );
    assert_eq!(ndw_ConvertInterfaceNameToLuidW(Text::NULL, (&mut found).into()), ERROR_INVALID_NAME);
    assert_eq!(ndw_ConvertInterfaceNameToLuidA(c"lo".into(), Out::NULL), ERROR_INVALID_PARAMETER);
    assert_eq!(
        ndw_ConvertInterfaceAliasToLuid(Text::terminated(&none), (&mut found).into()),
        ERROR_INVALID_PARAMETER
    );
    assert_eq!(ndw_ConvertInterfaceAliasToLuid(Text::terminated(&wide), (&mut found).into()), ERROR_SUCCESS);
    assert_eq!(ndw_ConvertInterfaceIndexToLuid(0x7FFF_FFFF, (&mut found).into()), ERROR_FILE_NOT_FOUND);
    assert_eq!(ndw_ConvertInterfaceIndexToLuid(1, Out::NULL), ERROR_INVALID_PARAMETER);
    assert_eq!(ndw_ConvertInterfaceLuidToIndex((&5).into(), (&mut index).into()), ERROR_INVALID_PARAMETER);
    assert_eq!(ndw_ConvertInterfaceLuidToIndex(In::NULL, (&mut index).into()), ERROR_INVALID_PARAMETER);
}

#[test]
fn the_best_interface_is_the_one_that_the_route_names() {
    let mut index = 0;
    let address = u32::from_ne_bytes([127, 9, 9, 9]);
    assert_eq!((ndw_GetBestInterface(address, (&mut index).into()), index), (ERROR_SUCCESS, 1));
    let mut place = [0u32; 7];
    let remote = "127.0.0.1:80".parse().unwrap();
    // SAFETY: room for every address; then that address, NULL, and one of no family.
    unsafe {
        write_sockaddr(remote, place.as_mut_ptr().cast(), &mut size_of_val(&place)).unwrap();
        index = 0;
        assert_eq!(ndw_GetBestInterfaceEx(place.as_ptr().cast(), (&mut index).into()), ERROR_SUCCESS);
        assert_eq!(index, 1);
        assert_eq!(ndw_GetBestInterfaceEx(null(), (&mut index).into()), ERROR_INVALID_PARAMETER);
        assert_eq!(
            ndw_GetBestInterfaceEx([0u32; 7].as_ptr().cast(), (&mut index).into()),
            ERROR_INVALID_PARAMETER
        );
    }
    assert_eq!(ndw_GetBestInterface(address, Out::NULL), ERROR_INVALID_PARAMETER);
    assert_eq!(ndw_GetBestInterface(0, (&mut index).into()), ERROR_NETWORK_UNREACHABLE);
}

#[test]
fn masks_and_lengths_of_prefixes_lead_to_each_other() {
    for length in 0..=32u8 {
        let (mut mask, mut back) = (7, 77);
        assert_eq!(ndw_ConvertLengthToIpv4Mask(length.into(), (&mut mask).into()), ERROR_SUCCESS);
        assert_eq!(ndw_ConvertIpv4MaskToLength(mask, (&mut back).into()), ERROR_SUCCESS);
        assert_eq!((u32::from_be(mask).leading_ones(), back), (length.into(), length));
    }
    let mut mask = 0;
    assert_eq!(ndw_ConvertLengthToIpv4Mask(33, (&mut mask).into()), ERROR_INVALID_PARAMETER);
    assert_eq!(mask, u32::MAX, "INADDR_NONE");
    let mut length = 77;
    let mask = u32::from_ne_bytes([255, 0, 255, 0]);
    assert_eq!(
        (ndw_ConvertIpv4MaskToLength(mask, (&mut length).into()), length),
        (ERROR_INVALID_PARAMETER, 77)
    );
    assert_eq!(ndw_ConvertIpv4MaskToLength(0, Out::NULL), ERROR_INVALID_PARAMETER);
}

#[test]
fn media_have_the_numbers_of_ndis() {
    // IF_TYPE_INFINIBAND, IF_TYPE_ETHERNET_CSMACD, IF_TYPE_SOFTWARE_LOOPBACK
    assert_eq!(media(199, false, true), (14, 11));
    assert_eq!(media(6, false, true), (0, 14));
    assert_eq!(media(6, false, false), (0, 0));
    assert_eq!(media(24, true, false), (17, 0));
}
