//! Devices of the lab's virtual machine, which tests may add, break and remove: the machine is discarded afterwards. The emulator
//! has a network namespace instead (`ci/lib/wire`).

use crate::address_from;
use ndcompat::SockAddr;
use ndcompat::{Adapter, provider};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;

/// A device, with its names for `ip` and `rdma`.
#[derive(Clone)]
pub struct Device {
    /// `rxe`, `siw` or `emulator`.
    pub kind: String,
    /// As in `ibv_devices`.
    pub name: String,
    /// The network device it is on.
    pub netdev: String,
    /// Its IPv4 address.
    pub address: SockAddr,
}

impl Device {
    /// The device in the environment variables with this suffix.
    fn from_environment(suffix: &str, kind: &str) -> Device {
        let variable = |name: &str| std::env::var(format!("{name}{suffix}")).expect(name);
        Device {
            kind: kind.to_owned(),
            name: variable("NDCOMPAT_RDMADEV"),
            netdev: variable("NDCOMPAT_NETDEV"),
            address: address_from(&format!("NDCOMPAT_ADDR{suffix}")),
        }
    }

    /// Opens the adapter.
    pub fn adapter(&self) -> Arc<Adapter> {
        let id = provider::resolve_address(self.address).expect("the address belongs to an RDMA device");
        provider::open_adapter(id).expect("the adapter opens")
    }

    /// Starts to delete the RDMA device. The command ends when no process has the device open any more.
    pub fn delete(&self) -> Child {
        if self.is_emulator() {
            return Command::new("touch").arg(gone()).spawn().expect("touch runs");
        }
        Command::new("rdma").args(["link", "delete", &self.name]).spawn().expect("rdma runs")
    }

    /// Recreates the RDMA device on its network device.
    pub fn restore(&self) {
        if self.is_emulator() {
            // The first of two ends has restored the other, too.
            let _ = std::fs::remove_file(gone());
            return;
        }
        lab(&["link_add", &self.kind, &self.netdev, &self.name]);
    }

    fn is_emulator(&self) -> bool {
        self.kind == "emulator"
    }

    /// Removes or restores the network device's IPv4 address.
    pub fn has_address(&self, has: bool) {
        let address = format!("{}/24", self.address.ip());
        ip(&["address", if has { "replace" } else { "delete" }, &address, "dev", &self.netdev]);
    }

    /// Brings the network device up again.
    pub fn find_link(&self) {
        ip(&["link", "set", &self.netdev, "up"]);
    }

    /// Takes the network device down.
    pub fn lose_link(&self) {
        ip(&["link", "set", &self.netdev, "down"]);
    }
}

/// The file that, while it exists, says that the emulator's device is gone.
fn gone() -> OsString {
    std::env::var_os("NDCOMPAT_EMULATOR_GONE").expect("run the test as `ci/lib/wire TEST`")
}

/// The device under test.
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

/// The device under test and one of the other kind: the emulator, if that is to be beside devices. Of the emulator, which is one
/// device, two of its addresses.
pub fn two_kinds() -> [Device; 2] {
    let kind = std::env::var("NDCOMPAT_DEVICE").expect("run the test as `ci/lab run -- TEST`");
    if kind == "emulator" {
        let device = |name: &str, variable| Device {
            kind: kind.clone(),
            name: name.to_owned(),
            netdev: "lo".to_owned(),
            address: address_from(variable),
        };
        return [device("softiwarp0", "NDCOMPAT_ADDR"), device("softiwarp0", "NDCOMPAT_ADDR6")];
    }
    if kind == "both" {
        return [Device::from_environment("_RXE", "rxe"), Device::from_environment("_SIW", "siw")];
    }
    if std::env::var("NDCOMPAT_EMULATOR").is_ok_and(|mode| mode == "on") {
        let (name, netdev) = ("softiwarp0".to_owned(), "lo".to_owned());
        let address = SocketAddr::from(([127, 0, 0, 1], 0)).into();
        let emulator = Device { kind: "emulator".to_owned(), name, netdev, address };
        return [Device::from_environment("", &kind), emulator];
    }
    let other = if kind == "rxe" { "siw" } else { "rxe" };
    // Another program of the same machine may have made it.
    if !Path::new(&format!("/sys/class/infiniband/{other}0")).exists() {
        lab(&["one_device", other, "12"]);
    }
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
    /// Creates the two devices, if the lab has not. A single device is removed first.
    pub fn new() -> Wire {
        let kind = std::env::var("NDCOMPAT_DEVICE").expect("run the test as `ci/lab run -- TEST`");
        if std::env::var("NDCOMPAT_ADDR_B").is_ok() {
            return Wire {
                ends: [Device::from_environment("", &kind), Device::from_environment("_B", &kind)],
            };
        }
        // An earlier process in this machine may have made them already.
        if !Path::new("/sys/class/net/ndA").exists() {
            let single = Device::from_environment("", &kind);
            assert!(single.delete().wait().expect("rdma ends").success(), "{} goes", single.name);
            lab(&["remove_devices"]);
            lab(&["two_devices", &kind]);
        }
        let end = |number: u8, netdev: &str| Device {
            kind: kind.clone(),
            name: format!("{kind}{number}"),
            netdev: netdev.to_owned(),
            address: SocketAddr::from(([198, 18, 20, number + 1], 0)).into(),
        };
        Wire { ends: [end(0, "ndA"), end(1, "ndB")] }
    }

    /// Brings both ends up, restores the routes that a device loses when it goes down, and recreates both RDMA devices: rxe
    /// receives no connection requests any more after it has sent one on a link that was down. The devices must not be in use.
    pub fn restore(&self) {
        if self.ends[0].is_emulator() {
            return self.restore_links();
        }
        for end in &self.ends {
            assert!(end.delete().wait().expect("rdma ends").success(), "{} goes", end.name);
        }
        self.restore_links();
        self.ends.iter().for_each(Device::restore);
    }

    /// Brings both ends up, and restores the routes that a device loses when it goes down or loses its address.
    pub fn restore_links(&self) {
        self.ends.iter().for_each(Device::find_link);
        let [a, b] = &self.ends;
        for (from, to, table) in [(a, b, "77"), (b, a, "78")] {
            let (source, destination) = (from.address.ip().to_string(), to.address.ip().to_string());
            let route = [&destination, "dev", &from.netdev, "src", &source, "table", table];
            ip(&[&["route", "replace"], &route[..]].concat());
        }
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

/// Calls a function of the lab's script for devices.
fn lab(call: &[&str]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ci/lib/guest/devices");
    let status =
        Command::new("bash").args(["-c", r#". "$1" && shift && "$@""#, "bash", script]).args(call).status();
    assert!(status.expect("bash runs").success(), "{call:?}");
}
