//! Explanations of failures by limits and permissions of the machine.

use crate::verbs::{last_failed_call, nodes};
use std::io;

/// Explains which limit of the machine a failure comes from.
#[cold]
pub(crate) fn report(error: &io::Error) {
    let (call, device) = failed(error);
    match error.raw_os_error() {
        Some(libc::EMFILE) => {
            let limit = limit(libc::RLIMIT_NOFILE);
            tracing::warn!(target: "ndcompat::device", limit, call, device,
                "the process has as many open files as it may (EMFILE): raise `ulimit -n`");
        }
        Some(libc::ENFILE) => {
            tracing::warn!(target: "ndcompat::device", call, device,
                "the system has as many open files as it may (ENFILE): raise fs.file-max");
        }
        Some(libc::ENOMEM) => no_memory(error, None),
        Some(libc::EACCES | libc::EPERM) => match nodes::refused(nodes::CONNECTION_MANAGER) {
            Some(refused) => tracing::warn!(target: "ndcompat::device", call, device,
                "no permission on {}: {refused}; it must be readable and writable", nodes::CONNECTION_MANAGER),
            None => {
                tracing::warn!(target: "ndcompat::device", call, device, "no permission to use the device: {error}")
            }
        },
        Some(libc::ENOENT) if !nodes::has_connection_manager() => {
            tracing::warn!(target: "ndcompat::device", "the kernel module rdma_ucm is missing: modprobe rdma_ucm");
        }
        _ => {}
    }
}

/// The call that has failed with this error, and its device, as far as they are known.
fn failed(error: &io::Error) -> (Option<&'static str>, Option<String>) {
    let failed = error.raw_os_error().and_then(last_failed_call);
    failed.map_or((None, None), |failed| (Some(failed.call), failed.device))
}

/// Explains that there is no memory for a registration of `bytes` bytes, or for a queue.
#[cold]
pub(crate) fn no_memory(error: &io::Error, bytes: Option<usize>) {
    let (call, device) = failed(error);
    let locked = limit(libc::RLIMIT_MEMLOCK);
    if locked == libc::RLIM_INFINITY {
        tracing::warn!(target: "ndcompat::memory", bytes, call, device, "the device or the kernel has no memory left (ENOMEM)");
    } else {
        tracing::warn!(target: "ndcompat::memory", bytes, call, device, memlock = locked,
            "the memory cannot be locked (ENOMEM): raise `ulimit -l`, the most that a process may lock");
    }
}

/// The limit of a resource for the process.
pub(crate) fn limit(of: libc::__rlimit_resource_t) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is writable. The call does not fail for these resources.
    unsafe { libc::getrlimit(of, &mut limit) };
    limit.rlim_cur
}
