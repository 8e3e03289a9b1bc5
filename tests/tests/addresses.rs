//! Which addresses there are: as they come and go, on VLANs and bonds, and to which the routing table leads.

use ndcompat::connector::Offer;
use ndcompat::provider;
use ndcompat::verbs::SockAddr;
use ndcompat::{Adapter, Status};
use ndcompat_tests::lab::{ip, make_on, one};
use ndcompat_tests::{End, Pair, adapter, address, address6};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The network devices are everybody's, so tests take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn parse(text: &str) -> SockAddr {
    SocketAddr::new(text.parse::<IpAddr>().unwrap(), 0).into()
}

/// Waits until `address` is one of this adapter's, or is none any more: the kernel follows its interfaces in its own time.
fn await_address(adapter: &Arc<Adapter>, address: SockAddr, there: bool) {
    let id = adapter.info().unwrap().adapter_id;
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let seen = [
            provider::addresses().unwrap().contains(&address),
            adapter.addresses().unwrap().contains(&address),
            provider::resolve_address(address.with_port(7)) == Ok(id),
        ];
        if seen == [there; 3] {
            return;
        }
        assert!(Instant::now() < deadline, "{address}: provider, adapter and id say {seen:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Messages pass between two ends at this address.
fn assert_works(adapter: &Arc<Adapter>, address: SockAddr) {
    let (active, passive) = (End::new(adapter, 1), End::new(adapter, 2));
    let pair = Pair::connect(active, passive, address, Offer::default(), Offer::default());
    assert!(pair.passive.connector.peer_address().unwrap().same_ip(address));
    pair.passive.receive(1, 0..64).unwrap();
    pair.active.send(2, 0..64, 0).unwrap();
    assert_eq!(
        (pair.active.completion().status, pair.passive.completion().status),
        (Status::SUCCESS, Status::SUCCESS)
    );
}

#[test]
fn addresses_name_their_device_whatever_the_port() {
    let _turn = turn();
    let adapter = adapter();
    let number = adapter.info().unwrap().adapter_id;
    let id = Ok(number);
    for own in [address(), address6()] {
        assert_eq!((provider::resolve_address(own), provider::resolve_address(own.with_port(80))), (id, id));
        assert!(provider::open_adapter_at(own.with_port(80)).is_ok());
    }
    for other in ["127.0.0.1", "::1", "0.0.0.0", "::", "192.0.2.1", "2001:db8::1", "224.0.0.1", "fe80::1234"]
    {
        let other = parse(other);
        assert_eq!(provider::resolve_address(other), Err(Status::INVALID_ADDRESS), "{other}");
        assert_eq!(provider::open_adapter_at(other).err(), Some(Status::INVALID_ADDRESS), "{other}");
    }
    assert_eq!(provider::open_adapter(number ^ 1).err(), Some(Status::INVALID_PARAMETER));
    // A link-local address is known with its scope and without.
    let list = adapter.addresses().unwrap();
    let local =
        list.iter().copied().find(|own| matches!(own.ip(), IpAddr::V6(ip) if ip.is_unicast_link_local()));
    if let Some(local) = local {
        let bare = SocketAddr::new(local.ip(), 0).into();
        assert_eq!((provider::resolve_address(local), provider::resolve_address(bare)), (id, id));
    }
}

#[test]
fn addresses_come_and_go() {
    let _turn = turn();
    let (adapter, device) = (adapter(), one());
    for (text, length, other) in [("198.18.10.77", "24", address()), ("fd18:10::77", "64", address6())] {
        let address = parse(text);
        await_address(&adapter, address, false);
        let with_length = format!("{text}/{length}");
        let mut command = vec!["addr", "add", &with_length, "dev", &device.netdev];
        command.extend((!address.ip().is_ipv4()).then_some("nodad"));
        ip(&command);
        await_address(&adapter, address, true);
        assert_works(&adapter, address);
        let bound = End::new(&provider::open_adapter_at(address).unwrap(), 3);
        bound.connector.bind(address).unwrap();
        ip(&["addr", "del", &with_length, "dev", &device.netdev]);
        await_address(&adapter, address, false);
        // Nobody has asked for the port while there was one.
        let (connector, mut connect) = (&bound.connector, bound.operation());
        assert_eq!(connector.local_address(), Err(Status::INVALID_ADDRESS));
        // SAFETY: nothing begins.
        let asked = unsafe {
            connector.connect(&bound.queue_pair, other.with_port(9), Offer::default(), connect.ov())
        };
        assert_eq!(asked, Err(Status::INVALID_ADDRESS));
    }
}

#[test]
fn the_addresses_of_vlans_are_those_of_the_device() {
    let _turn = turn();
    let (adapter, device) = (adapter(), one());
    let address = parse("198.18.77.1");
    ip(&["link", "add", "link", &device.netdev, "name", "ndvlan", "type", "vlan", "id", "77"]);
    ip(&["addr", "add", "198.18.77.1/24", "dev", "ndvlan"]);
    ip(&["link", "set", "ndvlan", "up"]);
    await_address(&adapter, address, true);
    assert_works(&adapter, address);
    ip(&["link", "del", "ndvlan"]);
    await_address(&adapter, address, false);
}

#[test]
fn a_device_on_a_bond_has_the_addresses_of_the_bond() {
    let _turn = turn();
    ip(&["link", "add", "ndslave", "type", "dummy"]);
    ip(&["link", "add", "ndbond", "type", "bond", "mode", "active-backup"]);
    ip(&["link", "set", "ndslave", "master", "ndbond"]);
    ip(&["addr", "add", "198.18.78.1/24", "dev", "ndbond"]);
    ip(&["link", "set", "ndbond", "up"]);
    let address = parse("198.18.78.1");
    // The device comes, and goes, while the program runs.
    assert_eq!(provider::resolve_address(address), Err(Status::INVALID_ADDRESS));
    let device = make_on(&one().kind, "ndbond", "ndonbond", address);
    let adapter = device.adapter();
    await_address(&adapter, address, true);
    assert_works(&adapter, address);
    let mut deletion = device.delete();
    let deadline = Instant::now() + Duration::from_secs(10);
    while adapter.info().err() != Some(Status::DEVICE_REMOVED) || provider::resolve_address(address).is_ok() {
        assert!(Instant::now() < deadline, "the device stays");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(adapter);
    while deletion.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "the device is kept open");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!provider::addresses().unwrap().contains(&address));
    ip(&["link", "del", "ndbond"]);
    ip(&["link", "del", "ndslave"]);
}
