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
