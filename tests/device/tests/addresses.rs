//! The list of addresses: as they are added and removed, on VLANs and bonds; and the address that the routing table selects.

use ndcompat::SockAddr;
use ndcompat::connector::Offer;
use ndcompat::provider;
use ndcompat::types::RequestFlags;
use ndcompat::{Adapter, Status};
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::lab::{ip, make_on, one};
use support::{End, Pair, adapter, address, address6, is_emulator, listen};

/// The tests change the machine's network devices, so they run one at a time.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn parse(text: &str) -> SockAddr {
    SocketAddr::new(text.parse::<IpAddr>().unwrap(), 0).into()
}

/// Waits until `address` is one of the adapter's, or no longer is: the kernel updates the device's table asynchronously.
fn await_address(adapter: &Arc<Adapter>, address: SockAddr, there: bool) {
    let id = adapter.info().unwrap().adapter_id;
    let deadline = Instant::now() + Duration::from_secs(60);
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

/// Waits until the machine takes an IPv6 address for its own. It is listed a moment before: a connection to it then looks for the
/// address on the network, and fails after some seconds.
fn await_route(address: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let is_there = || {
        let table = ["-6", "route", "show", "table", "local", address];
        !Command::new("ip").args(table).output().expect("ip runs").stdout.is_empty()
    };
    while !is_there() {
        assert!(Instant::now() < deadline, "there is no route to {address}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Asserts that messages pass between two ends at this address.
fn assert_works(adapter: &Arc<Adapter>, address: SockAddr) {
    let (active, passive) = (End::new(adapter, 1), End::new(adapter, 2));
    let pair = Pair::connect(active, passive, address, Offer::default(), Offer::default());
    assert!(pair.passive.connector.peer_address().unwrap().same_ip(address));
    pair.passive.receive(1, 0..64).unwrap();
    pair.active.send(2, 0..64, RequestFlags::empty()).unwrap();
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
    // The loopback interface's are no RDMA device's, but the emulator's.
    let loopback: &[_] = if is_emulator() { &[] } else { &["127.0.0.1", "::1"] };
    for other in
        ["0.0.0.0", "::", "192.0.2.1", "2001:db8::1", "224.0.0.1", "fe80::1234"].iter().chain(loopback)
    {
        let other = parse(other);
        assert_eq!(provider::resolve_address(other), Err(Status::INVALID_ADDRESS), "{other}");
        assert_eq!(provider::open_adapter_at(other).err(), Some(Status::INVALID_ADDRESS), "{other}");
    }
    assert_eq!(provider::open_adapter(number ^ 1).err(), Some(Status::INVALID_PARAMETER));
    // A link-local address is accepted with its scope and without.
    let list = adapter.addresses().unwrap();
    let local =
        list.iter().copied().find(|own| matches!(own.ip(), IpAddr::V6(ip) if ip.is_unicast_link_local()));
    if let Some(local) = local {
        let bare = SocketAddr::new(local.ip(), 0).into();
        assert_eq!((provider::resolve_address(local), provider::resolve_address(bare)), (id, id));
    }
}

#[test]
fn a_link_local_address_needs_no_scope() {
    let _turn = turn();
    let adapter = adapter();
    let is_link_local = |own: &SockAddr| matches!(own.ip(), IpAddr::V6(ip) if ip.is_unicast_link_local());
    let local = adapter.addresses().unwrap().into_iter().find(is_link_local).expect("one of them is");
    let bare = parse(&local.ip().to_string());
    assert!(local != bare);
    // The machine may have come up just now.
    await_route(&local.ip().to_string());
    let (active, passive) = (End::new(&adapter, 1), End::new(&adapter, 2));
    let (listener, at) = listen(&adapter, &passive.file, bare);
    assert_eq!(at, local.with_port(at.port()), "the listener has the scope");
    active.connector.bind(bare).unwrap();
    assert_eq!(active.connector.local_address().unwrap().with_port(0), local, "the connector has, too");
    let shared = adapter.create_shared_endpoint(&active.file, bare).unwrap();
    assert_eq!(shared.local_address().unwrap().with_port(0), local);
    let (mut request, mut connect, mut accept) =
        (passive.operation(), active.operation(), passive.operation());
    // SAFETY: all are waited for.
    unsafe {
        listener.connection_request(&passive.connector, request.ov()).unwrap();
        let to = bare.with_port(at.port());
        active.connector.connect(&active.queue_pair, to, Offer::default(), connect.ov()).unwrap();
        assert_eq!(request.wait(), Status::SUCCESS);
        assert_eq!(passive.connector.peer_address(), active.connector.local_address());
        passive.connector.accept(&passive.queue_pair, Offer::default(), accept.ov()).unwrap();
        assert_eq!(connect.wait(), Status::SUCCESS);
        assert_eq!(active.connector.peer_address(), Ok(at));
        active.connector.complete_connect(connect.ov()).unwrap();
        assert_eq!((connect.wait(), accept.wait()), (Status::SUCCESS, Status::SUCCESS));
    }
    assert_eq!(provider::scoped(bare), local);
    let SocketAddr::V6(own) = local.into() else { unreachable!() };
    let neighbour = parse("fe80::1234");
    // Of the lab's interfaces one is the device's, of those on the wire both.
    let scoped = if is_emulator() { neighbour } else { neighbour.with_scope(own.scope_id()) };
    assert_eq!(provider::scoped(neighbour), scoped, "the only interface, if there is one");
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
        if !address.ip().is_ipv4() {
            await_route(text);
        }
        assert_works(&adapter, address);
        let bound = End::new(&provider::open_adapter_at(address).unwrap(), 3);
        bound.connector.bind(address).unwrap();
        ip(&["addr", "del", &with_length, "dev", &device.netdev]);
        await_address(&adapter, address, false);
        // The port was not asked for while the address was there.
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
    if is_emulator() {
        // It has the addresses of any network device.
        ip(&["link", "add", "ndvlan", "type", "veth", "peer", "name", "ndother"]);
        ip(&["link", "set", "ndother", "up"]);
    } else {
        ip(&["link", "add", "link", &device.netdev, "name", "ndvlan", "type", "vlan", "id", "77"]);
    }
    ip(&["addr", "add", "198.18.77.1/24", "dev", "ndvlan"]);
    ip(&["link", "set", "ndvlan", "up"]);
    await_address(&adapter, address, true);
    assert_works(&adapter, address);
    ip(&["link", "del", "ndvlan"]);
    await_address(&adapter, address, false);
}

#[test]
fn a_device_on_a_bond_has_the_addresses_of_the_bond() {
    // The emulator is made on no network device.
    if is_emulator() {
        return;
    }
    let _turn = turn();
    ip(&["link", "add", "ndslave", "type", "dummy"]);
    ip(&["link", "add", "ndbond", "type", "bond", "mode", "active-backup"]);
    ip(&["link", "set", "ndslave", "master", "ndbond"]);
    ip(&["addr", "add", "198.18.78.1/24", "dev", "ndbond"]);
    ip(&["link", "set", "ndbond", "up"]);
    let address = parse("198.18.78.1");
    // The device is created and deleted while the program runs.
    assert_eq!(provider::resolve_address(address), Err(Status::INVALID_ADDRESS));
    let device = make_on(&one().kind, "ndbond", "ndonbond", address);
    let adapter = device.adapter();
    await_address(&adapter, address, true);
    assert_works(&adapter, address);
    let mut deletion = device.delete();
    let deadline = Instant::now() + Duration::from_secs(60);
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
