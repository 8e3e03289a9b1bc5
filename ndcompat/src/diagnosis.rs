//! Log messages that explain failures whose status does not say what to do, at level `warn`.
//!
//! Rust programs get them by their `tracing` subscriber; for others, `win32::logging` writes them.

pub(crate) mod host;

use crate::cause::Cause;
use crate::status::Status;
use crate::verbs::{EventKind, SockAddr, nodes};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Explains why there is no RDMA device that this process can use. Logged once.
#[cold]
pub(crate) fn no_device() {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Ordering::Relaxed) {
        tracing::warn!(target: "ndcompat::device", "no RDMA device: {}",
            why_no_device(nodes::devices(), nodes::device_files(), nodes::has_connection_manager(), nodes::refused));
    }
}

/// The explanation, from the kernel's devices, their device files, whether the connection manager's module is loaded, and
/// the error of opening a file.
fn why_no_device(
    devices: Option<Vec<String>>,
    files: Vec<String>,
    has_connection_manager: bool,
    refused: impl Fn(&str) -> Option<io::Error>,
) -> String {
    let Some(devices) = devices else {
        return "no kernel module for RDMA is loaded (ib_core is missing); for a device without hardware: modprobe \
                rdma_rxe, then `rdma link add rxe0 type rxe netdev NAME`"
            .into();
    };
    if devices.is_empty() {
        return "the kernel knows none, at least in this network namespace; for one without hardware: `rdma link add rxe0 \
                type rxe netdev NAME`"
            .into();
    }
    let devices = devices.join(", ");
    if files.is_empty() {
        return format!(
            "the kernel module ib_uverbs is missing ({devices} cannot be used): modprobe ib_uverbs"
        );
    }
    if !has_connection_manager {
        return format!(
            "the kernel module rdma_ucm is missing ({devices} cannot be used): modprobe rdma_ucm"
        );
    }
    let refused = files.into_iter().find_map(|file| Some((refused(&file)?, file)));
    match refused {
        Some((error, file)) => match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => {
                format!("no permission on {file} ({devices}): {error}; it must be readable and writable")
            }
            Some(libc::ENOENT) => {
                format!("{file} is missing ({devices}); a container needs --device=/dev/infiniband")
            }
            Some(libc::EMFILE) => {
                let limit = host::limit(libc::RLIMIT_NOFILE);
                format!("{file} ({devices}): {error}; raise `ulimit -n`, which is {limit}")
            }
            _ => format!("{file} ({devices}): {error}"),
        },
        None => format!(
            "rdma-core cannot open {devices}; is its driver there (Debian: package ibverbs-providers)?"
        ),
    }
}

/// Explains why adapters cannot be opened: `NDCOMPAT_MEMORY_WINDOWS` has a value that means nothing.
#[cold]
pub(crate) fn no_windows(value: &str) {
    tracing::warn!(target: "ndcompat::device", "NDCOMPAT_MEMORY_WINDOWS={value} is not emulated, 1 or 2");
}

/// Explains that a `Read` is refused, as the connection was made without reads of this side.
#[cold]
pub(crate) fn no_reads(device: &str, qp: u32) {
    tracing::warn!(target: "ndcompat::queue", device, qp,
        "Read is refused, as the connection allows none: in Connect and Accept, the side that is read from must offer an inboundReadLimit \
         above 0, and the side that reads an outboundReadLimit ({})", Status::INVALID_DEVICE_REQUEST);
}

/// Explains that no RDMA device has a local address. `others` are the addresses that devices have.
#[cold]
pub(crate) fn not_local(address: SockAddr, others: &[SockAddr]) {
    if others.is_empty() {
        // Without a device, `no_device` has explained that.
        tracing::warn!(target: "ndcompat::device", address = %address.ip(), "no RDMA device has this address, nor any other");
    } else {
        let others: Vec<_> = others.iter().map(|own| own.ip().to_string()).collect();
        tracing::warn!(target: "ndcompat::device", address = %address.ip(),
            "no RDMA device has this address; those that have one: {}", others.join(", "));
    }
}

/// Explains why a local address cannot be bound.
#[cold]
pub(crate) fn not_bound(address: SockAddr, device: &str, status: Status) {
    match status {
        Status::SHARING_VIOLATION => tracing::warn!(target: "ndcompat::connection", %address, device,
            "the port is taken, by this or another process ({status})"),
        Status::TOO_MANY_ADDRESSES => tracing::warn!(target: "ndcompat::connection", %address, device,
            "no port is free ({status})"),
        Status::INVALID_ADDRESS => tracing::warn!(target: "ndcompat::connection", %address, device,
            "this is no address of the device ({status})"),
        _ => tracing::debug!(target: "ndcompat::connection", %address, device, "not bound: {status}"),
    }
}

/// A failed attempt to connect.
pub(crate) struct FailedConnect {
    pub destination: Option<SockAddr>,
    pub device: String,
    pub status: Status,
    pub evidence: Evidence,
}

/// The details of the failure that rdma_cm has reported.
#[derive(Clone, Copy, Default)]
pub(crate) struct Evidence {
    /// Who has rejected the connection, if it was rejected.
    pub refuser: Refuser,
    /// The event and its status: a negative errno, or the reason of a rejection.
    pub event: Option<(EventKind, i32)>,
    /// The call that has failed, if it was a call.
    pub call: Option<Cause>,
}

impl Evidence {
    /// Of a call that has just failed with `status`.
    pub(crate) fn of_call(status: Status) -> Evidence {
        Evidence { call: status.cause(), ..Evidence::default() }
    }

    /// What is beneath the failure.
    pub(crate) fn cause(&self) -> Option<Cause> {
        self.event.map(|(kind, code)| Cause::of_event(kind, code)).or(self.call)
    }
}

/// Who has rejected a connection.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Refuser {
    /// The peer's connection manager, as nobody listens.
    #[default]
    Nobody,
    /// The peer's program, which is not a fault.
    Program,
    /// Somebody who listens: a program that refuses or releases its connector, or that ends before it has answered.
    Somebody,
    /// One of these two.
    Unknown,
}

impl FailedConnect {
    /// Logs the explanation. Called without any lock.
    #[cold]
    pub(crate) fn report(self) {
        let FailedConnect { destination, device, status, evidence: Evidence { refuser, event, call } } = self;
        let peer = destination.map_or_else(|| "an unknown peer".to_owned(), |peer| peer.to_string());
        let why = match status {
            Status::CONNECTION_REFUSED if refuser == Refuser::Nobody => "nobody listens there",
            Status::CONNECTION_REFUSED if refuser == Refuser::Unknown => {
                "nobody listens there, or the program there refuses"
            }
            Status::CONNECTION_REFUSED if refuser == Refuser::Somebody => {
                let code = event.map(|(_, code)| code);
                tracing::info!(target: "ndcompat::connection", device, code,
                    "connecting to {peer} failed: the program there refuses, or has ended ({status})");
                return;
            }
            Status::NETWORK_UNREACHABLE => {
                "no route leads there: `ip route get` tells what the system would do"
            }
            Status::HOST_UNREACHABLE => {
                "the host does not answer on the way there (no neighbour, or no RDMA path)"
            }
            Status::IO_TIMEOUT => {
                "the peer is silent: a firewall (UDP 4791 for RoCE), or no RDMA device at that address"
            }
            Status::ADDRESS_ALREADY_EXISTS => {
                "there is, or was a moment ago, a connection between the same two ports"
            }
            _ => {
                tracing::debug!(target: "ndcompat::connection", device, "connecting to {peer} failed: {status}");
                return;
            }
        };
        let (event, code) = event.map(|(kind, code)| (tracing::field::debug(kind), code)).unzip();
        let call = call.map(tracing::field::display);
        tracing::warn!(target: "ndcompat::connection", device, event, code, call, "connecting to {peer} failed: {why} ({status})");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thing_that_is_missing_is_named() {
        let why = |devices: Option<&[&str]>, files: &[&str], manager, errno: i32| {
            let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
            let refused = |_: &str| (errno != 0).then(|| io::Error::from_raw_os_error(errno));
            why_no_device(devices.map(owned), owned(files), manager, refused)
        };
        let (device, file) = (Some(&["mlx5_0"][..]), &["/dev/infiniband/uverbs0"][..]);
        assert!(why(None, &[], false, 0).contains("ib_core is missing"));
        assert!(why(Some(&[]), &[], false, 0).contains("the kernel knows none"));
        assert!(why(device, &[], true, 0).contains("module ib_uverbs is missing (mlx5_0"));
        assert!(why(device, file, false, 0).contains("module rdma_ucm is missing (mlx5_0"));
        assert!(
            why(device, file, true, libc::EACCES)
                .starts_with("no permission on /dev/infiniband/uverbs0 (mlx5_0)")
        );
        assert!(why(device, file, true, libc::ENOENT).contains("--device=/dev/infiniband"));
        assert!(why(device, file, true, libc::EMFILE).contains("ulimit -n"));
        assert!(why(device, file, true, 0).contains("ibverbs-providers"));
    }
}
