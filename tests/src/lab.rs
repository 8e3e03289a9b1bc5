//! Devices beyond the one under test. The lab's machine is thrown away afterwards, so tests may add and break devices.

use crate::address_from;
use ndcompat::verbs::SockAddr;
use ndcompat::{Adapter, provider};
use std::net::SocketAddr;
use std::process::{Child, Command};
use std::sync::Arc;

/// A device, with the names that `ip` and `rdma` know it by.
#[derive(Clone)]
pub struct Device {
    /// `rxe` or `siw`.
    pub kind: String,
    /// As in `ibv_devices`.
    pub name: String,
    /// The network device it is on.
    pub netdev: String,
    /// Its IPv4 address.
    pub address: SockAddr,
}

impl Device {
    /// The device that the variables with this suffix name.
    fn from_environment(suffix: &str, kind: &str) -> Device {
        let variable = |name: &str| std::env::var(format!("{name}{suffix}")).expect(name);
        Device {
            kind: kind.to_owned(),
            name: variable("NDCOMPAT_RDMADEV"),
            netdev: variable("NDCOMPAT_NETDEV"),
            address: address_from(&format!("NDCOMPAT_ADDR{suffix}")),
        }
    }

    /// The adapter, opened anew.
    pub fn adapter(&self) -> Arc<Adapter> {
        let id = provider::resolve_address(self.address).expect("the address belongs to an RDMA device");
        provider::open_adapter(id).expect("the adapter opens")
    }

    /// Starts to delete the RDMA device, which ends when nobody uses it any more.
    pub fn delete(&self) -> Child {
        Command::new("rdma").args(["link", "delete", &self.name]).spawn().expect("rdma runs")
    }

    /// Makes the RDMA device again, on its network device.
    pub fn restore(&self) {
        lab(&["link_add", &self.kind, &self.netdev, &self.name]);
    }

    /// Takes the network device down.
    pub fn lose_link(&self) {
        ip(&["link", "set", &self.netdev, "down"]);
    }
}

/// The device under test, as it is on its own.
pub fn one() -> Device {
    Device::from_environment(
        "",
        &std::env::var("NDCOMPAT_DEVICE").expect("run the test as `ci/lab run -- TEST`"),
    )
}

/// A new device of this kind, on a network device with this address.
pub fn make_on(kind: &str, netdev: &str, name: &str, address: SockAddr) -> Device {
    let device = Device { kind: kind.to_owned(), name: name.to_owned(), netdev: netdev.to_owned(), address };
    device.restore();
    device
}

/// The device under test and one of the other kind.
pub fn two_kinds() -> [Device; 2] {
    let kind = std::env::var("NDCOMPAT_DEVICE").expect("run the test as `ci/lab run -- TEST`");
    if kind == "both" {
        return [Device::from_environment("_RXE", "rxe"), Device::from_environment("_SIW", "siw")];
    }
    let other = if kind == "rxe" { "siw" } else { "rxe" };
    lab(&["one_device", other, "12"]);
    let second = Device {
        kind: other.to_owned(),
        name: format!("{other}0"),
        netdev: format!("nd{other}"),
        address: SocketAddr::from(([198, 18, 12, 1], 0)).into(),
    };
    [Device::from_environment("", &kind), second]
}

/// Two devices of the kind under test on the two ends of a wire, as `ci/lab run --hosts 2` makes them.
pub struct Wire {
    /// The devices.
    pub ends: [Device; 2],
}

impl Wire {
    /// Makes the wire, if the lab has not. A device that is there alone makes way for the two.
    pub fn new() -> Wire {
        let kind = std::env::var("NDCOMPAT_DEVICE").expect("run the test as `ci/lab run -- TEST`");
        if std::env::var("NDCOMPAT_ADDR_B").is_ok() {
            return Wire {
                ends: [Device::from_environment("", &kind), Device::from_environment("_B", &kind)],
            };
        }
        let single = Device::from_environment("", &kind);
        assert!(single.delete().wait().expect("rdma ends").success(), "{} goes", single.name);
        lab(&["remove_devices"]);
        lab(&["two_devices", &kind]);
        let end = |number: u8, netdev: &str| Device {
            kind: kind.clone(),
            name: format!("{kind}{number}"),
            netdev: netdev.to_owned(),
            address: SocketAddr::from(([198, 18, 20, number + 1], 0)).into(),
        };
        Wire { ends: [end(0, "ndA"), end(1, "ndB")] }
    }

    /// Brings both ends up, with the routes that a device loses when it goes down, and makes both devices anew: rxe's
    /// does not receive connection requests any more after it has sent one into a dead link. Nobody may be using them.
    pub fn restore(&self) {
        for end in &self.ends {
            assert!(end.delete().wait().expect("rdma ends").success(), "{} goes", end.name);
            ip(&["link", "set", &end.netdev, "up"]);
        }
        let [a, b] = &self.ends;
        for (from, to, table) in [(a, b, "77"), (b, a, "78")] {
            let (source, destination) = (from.address.ip().to_string(), to.address.ip().to_string());
            let route = [&destination, "dev", &from.netdev, "src", &source, "table", table];
            ip(&[&["route", "replace"], &route[..]].concat());
        }
        a.restore();
        b.restore();
    }
}

impl Default for Wire {
    fn default() -> Wire {
        Wire::new()
    }
}

/// Runs `ip`, which must succeed.
pub fn ip(arguments: &[&str]) {
    let status = Command::new("ip").args(arguments).status().expect("ip runs");
    assert!(status.success(), "ip {arguments:?}");
}

/// Calls a function of the lab's script that makes devices.
fn lab(call: &[&str]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../ci/lib/guest/devices");
    let status =
        Command::new("bash").args(["-c", r#". "$1" && shift && "$@""#, "bash", script]).args(call).status();
    assert!(status.expect("bash runs").success(), "{call:?}");
}
