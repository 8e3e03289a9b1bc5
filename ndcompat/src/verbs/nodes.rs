//! The device files that rdma-core opens and what sysfs says of devices, to find out why something has failed, which rdma-core does
//! not report.

use std::fs::{self, OpenOptions};
use std::io;

/// The device file of the connection manager (module `rdma_ucm`).
pub const CONNECTION_MANAGER: &str = "/dev/infiniband/rdma_cm";

/// The error of opening a file as rdma-core opens it, if that fails.
pub fn refused(path: &str) -> Option<io::Error> {
    OpenOptions::new().read(true).write(true).open(path).err()
}

/// The sorted entries of a folder in sysfs; `None` if it does not exist.
fn names(folder: &str) -> Option<Vec<String>> {
    let entries = fs::read_dir(folder).ok()?;
    let mut names: Vec<_> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    Some(names)
}

/// The devices of the kernel, including those that cannot be opened; `None` without the module `ib_core`.
pub fn devices() -> Option<Vec<String>> {
    names("/sys/class/infiniband")
}

/// Whether an entry of a port's table of addresses (GIDs) is empty. False where sysfs does not show it.
pub fn is_address_gone(device: &str, port: u8, index: u8) -> bool {
    let gid = fs::read_to_string(format!("/sys/class/infiniband/{device}/ports/{port}/gids/{index}"));
    gid.is_ok_and(|gid| gid.trim().bytes().all(|byte| matches!(byte, b'0' | b':')))
}

/// What drivers call the count of messages that the peer has refused as it had no receive (RNR): rxe, mlx5, bnxt_re, mana.
const REFUSALS: [&str; 4] = ["rcvd_rnr_err", "rnr_nak_retry_err", "rnr_naks_rcvd", "requester_rnr_nak"];

/// A file that counts refused messages, by its number among those that there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusalCounter(pub u8);

impl RefusalCounter {
    /// The counter of this port's, or else of the whole device's, if the driver has one.
    pub fn of(device: &str, port: u8) -> Option<RefusalCounter> {
        RefusalCounter::among(&folder(device), port)
    }

    fn among(device: &str, port: u8) -> Option<RefusalCounter> {
        let all = (0..2 * REFUSALS.len() as u8).map(RefusalCounter);
        all.into_iter().find(|counter| counter.read_in(device, port).is_some())
    }

    /// The count, which may wrap around.
    pub fn read(self, device: &str, port: u8) -> Option<u32> {
        self.read_in(&folder(device), port)
    }

    fn read_in(self, device: &str, port: u8) -> Option<u32> {
        let name = REFUSALS.get(usize::from(self.0 / 2))?;
        let file = match self.0 % 2 {
            0 => format!("{device}/ports/{port}/hw_counters/{name}"),
            _ => format!("{device}/hw_counters/{name}"),
        };
        Some(fs::read_to_string(file).ok()?.trim().parse::<u64>().ok()? as u32)
    }
}

/// The folder of a device.
fn folder(device: &str) -> String {
    format!("/sys/class/infiniband/{device}")
}

/// The device files of the devices; none without the module `ib_uverbs`.
pub fn device_files() -> Vec<String> {
    let names = names("/sys/class/infiniband_verbs").unwrap_or_default();
    let files = names.into_iter().filter(|name| name.starts_with("uverbs"));
    files.map(|name| format!("/dev/infiniband/{name}")).collect()
}

/// Whether the module `rdma_ucm` is loaded.
pub fn has_connection_manager() -> bool {
    fs::exists("/sys/class/misc/rdma_cm").unwrap_or(false)
}

/// The error of opening the connection manager's file: the errno that librdmacm leaves may be that of a later call.
pub(super) fn connection_manager_error(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENOMEM | libc::EMFILE | libc::ENFILE | libc::ENODEV | libc::EACCES | libc::EPERM) => error,
        _ => refused(CONNECTION_MANAGER).unwrap_or(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_refused_messages_is_found_by_every_drivers_name_for_it() {
        let root = std::env::temp_dir().join(format!("ndcompat-counters-{}", std::process::id()));
        for (at, folder) in ["ports/2/hw_counters", "hw_counters"].into_iter().enumerate() {
            for name in REFUSALS {
                let device = root.join(format!("{at}{name}"));
                fs::create_dir_all(device.join(folder)).unwrap();
                fs::write(device.join(folder).join(name), "4294967298\n").unwrap();
                let device = device.to_str().unwrap();
                let counter = RefusalCounter::among(device, 2).expect(name);
                assert_eq!(counter.read_in(device, 2), Some(2));
                assert_eq!(RefusalCounter::among(device, 1).is_some(), at == 1, "{name}");
            }
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_definite_error_is_kept() {
        let kept = |errno| connection_manager_error(io::Error::from_raw_os_error(errno)).raw_os_error();
        assert_eq!(kept(libc::EMFILE), Some(libc::EMFILE));
        assert_eq!(kept(libc::ENOMEM), Some(libc::ENOMEM));
    }

    #[test]
    fn what_can_be_opened_is_not_refused() {
        assert!(refused("/dev/null").is_none());
        assert_eq!(refused("/no/such/file").unwrap().raw_os_error(), Some(libc::ENOENT));
    }
}
