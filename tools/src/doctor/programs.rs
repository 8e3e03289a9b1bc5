//! What programs may use: device files, drivers in user space, name spaces, control groups, limits, variables.

use super::{Findings, Machine};
use crate::env::{Mistake, VARIABLES};
use std::ffi::{CString, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How a node in /dev/infiniband is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Usable,
    Refused,
    Missing,
}

/// The kernel's drivers and the names of their halves in user space, where they differ.
const DRIVERS: [(&str, &str); 4] =
    [("mlx5_core", "mlx5"), ("mlx4_core", "mlx4"), ("iw_cxgb4", "cxgb4"), ("irdma", "irdma")];

impl Machine {
    /// Checks that the nodes in /dev/infiniband exist and may be opened.
    pub(super) fn nodes(&self, findings: &mut Findings, contained: bool) {
        let devices = self.list("/sys/class/infiniband");
        if devices.is_empty() {
            return;
        }
        let nodes = self.list("/sys/class/infiniband_verbs").into_iter();
        let nodes = nodes.filter(|name| name.starts_with("uverbs")).filter_map(|node| {
            let device = self.read(&format!("/sys/class/infiniband_verbs/{node}/ibdev"));
            // This list is the same in all network name spaces, that of the devices is not.
            let is_here = device.as_ref().is_none_or(|device| devices.contains(device));
            is_here.then_some((node, device))
        });
        let mut nodes: Vec<_> = nodes.map(|(node, device)| (self.node(&node), node, device)).collect();
        // A container, or a user, need not have all devices.
        let works = nodes.iter().any(|(state, ..)| *state == Node::Usable);
        let is_one_of_many = nodes.len() > 1;
        nodes.push((self.node("rdma_cm"), "rdma_cm".into(), None));
        for (state, node, device) in nodes {
            let is_for_all = node == "rdma_cm";
            let which = match device {
                Some(device) if is_one_of_many => format!(", if {device} is to be used"),
                _ => String::new(),
            };
            let (found, mend) = match state {
                Node::Usable => {
                    findings.ok(format!("/dev/infiniband/{node} may be used"));
                    continue;
                }
                Node::Missing => {
                    let mend = match (contained, is_for_all) {
                        (true, _) => {
                            format!("start the container with --device=/dev/infiniband/{node}{which}")
                        }
                        (false, true) => "sudo modprobe rdma_ucm".into(),
                        (false, false) => "sudo modprobe ib_uverbs; does udev run?".into(),
                    };
                    (format!("/dev/infiniband/{node} is missing"), mend)
                }
                Node::Refused => (
                    format!("/dev/infiniband/{node} may not be used by this user"),
                    format!(
                        "sudo chmod 666 /dev/infiniband/{node}{which}, or for good: rdma-core's udev rules, and a new login"
                    ),
                ),
            };
            findings.fault(works && !is_for_all, found, mend);
        }
    }

    fn node(&self, name: &str) -> Node {
        let path = self.path(&format!("/dev/infiniband/{name}"));
        if !path.exists() {
            Node::Missing
        } else if may_use(&path) {
            Node::Usable
        } else {
            Node::Refused
        }
    }

    /// Checks that libibverbs has the user-space halves of the drivers: it goes by the files in its folder.
    pub(super) fn drivers(&self, findings: &mut Findings) {
        let devices = self.list("/sys/class/infiniband");
        if devices.is_empty() {
            return;
        }
        let mend = self.install("ibverbs-providers", "rdma-core or libibverbs");
        let known: Vec<_> =
            self.list("/etc/libibverbs.d").into_iter().filter(|file| file.ends_with(".driver")).collect();
        if known.is_empty() {
            return findings.error("rdma-core has no drivers: there are none in /etc/libibverbs.d", mend);
        }
        for device in devices {
            let link = fs::read_link(self.path(&format!("/sys/class/infiniband/{device}/device/driver")));
            let Ok(link) = link else { continue };
            let kernel = link.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some((_, own)) = DRIVERS.into_iter().find(|(name, _)| *name == kernel) else { continue };
            if !known.contains(&format!("{own}.driver")) {
                findings.error(
                    format!("rdma-core has no driver for {device}: /etc/libibverbs.d lacks {own}.driver"),
                    &mend,
                );
            }
        }
    }

    pub(super) fn name_spaces(&self, findings: &mut Findings) {
        match self.read("/sys/module/ib_core/parameters/netns_mode").as_deref() {
            Some("N" | "0") => findings.warning(
                "each device belongs to one network name space",
                "if one is missing here: sudo rdma dev set DEVICE netns NAME, or for all: sudo rdma system set netns shared",
            ),
            Some(_) => findings.ok("devices are shared by all network name spaces"),
            None => {}
        }
    }

    /// Checks the limits of the control group and of all groups around it: the least of them counts.
    pub(super) fn control_groups(&self, findings: &mut Findings) {
        let Some(groups) = self.read("/proc/self/cgroup") else { return };
        let group = groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            match (parts.next()?, parts.next()?) {
                ("", group) => Some(("/sys/fs/cgroup", group)),
                ("rdma", group) => Some(("/sys/fs/cgroup/rdma", group)),
                _ => None,
            }
        });
        let Some((base, group)) = group else { return };
        let (mut seen, mut limited) = (false, false);
        for group in Path::new(group).ancestors() {
            let group = group.to_string_lossy();
            let file = format!("{base}{}/rdma.max", group.trim_end_matches('/'));
            let Some(limits) = self.read(&file) else { continue };
            seen = true;
            let is_limit =
                |line: &&str| line.split_whitespace().skip(1).any(|limit| !limit.ends_with("=max"));
            let limits: Vec<_> = limits.lines().filter(is_limit).collect();
            if !limits.is_empty() {
                limited = true;
                let mend = format!("echo 'DEVICE hca_handle=max hca_object=max' | sudo tee {file}");
                findings
                    .warning(format!("the control group {group} limits RDMA: {}", limits.join("; ")), mend);
            }
        }
        if seen && !limited {
            findings.ok("the control group sets no limits on RDMA");
        }
    }
}

fn may_use(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: a string.
    unsafe { libc::access(path.as_ptr(), libc::R_OK | libc::W_OK) == 0 }
}

/// Checks the variables that the library reads.
pub(super) fn variables(findings: &mut Findings, value: impl Fn(&str) -> Option<OsString>) {
    for variable in VARIABLES {
        let name = variable.name;
        let Some(value) = value(name).filter(|value| !value.is_empty()) else { continue };
        let shown = value.display();
        match variable.mistake(&value) {
            Some(Mistake::Refused(valid)) => findings.error(
                format!("{name}={shown} means nothing, so no adapter can be opened"),
                format!("unset {name}, or set it to {valid}"),
            ),
            Some(Mistake::Taken(what)) => {
                findings.warning(format!("{name}={shown}: {what}"), format!("unset {name}, or mend it"));
            }
            None if name == "NDCOMPAT_EMULATOR_GONE" && Path::new(&value).exists() => findings.error(
                format!("{name}={shown} exists, so the emulator's device is gone"),
                format!("remove the file, or unset {name}"),
            ),
            None => findings.ok(format!("{name}={shown}")),
        }
    }
}

/// The limit of a resource.
fn limit(of: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is writable.
    (unsafe { libc::getrlimit(of, &mut limit) } == 0).then_some(limit.rlim_cur)
}

/// Checks the limits on open files and on locked memory.
pub(super) fn limits(findings: &mut Findings) {
    if let Some(files) = limit(libc::RLIMIT_NOFILE) {
        open_files(findings, files);
    }
    if let Some(bytes) = limit(libc::RLIMIT_MEMLOCK) {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        locked_memory(findings, bytes, &read("/proc/self/status"), &read("/proc/self/uid_map"));
    }
}

/// An adapter takes some 15 descriptors, each file and each completion queue a few more.
pub(super) fn open_files(findings: &mut Findings, limit: u64) {
    if limit < 256 {
        findings.warning(
            format!("a process may have no more than {limit} open files: enough for few adapters and queues"),
            "ulimit -n 4096; for good: LimitNOFILE= in a systemd unit, or nofile in /etc/security/limits.conf",
        );
    } else if limit == libc::RLIM_INFINITY {
        findings.ok("a process may have any number of open files");
    } else {
        findings.ok(format!("a process may have {limit} open files"));
    }
}

/// `status` and `users` are the process's /proc/self/status and /proc/self/uid_map.
pub(super) fn locked_memory(findings: &mut Findings, limit: u64, status: &str, users: &str) {
    const ENOUGH: u64 = 64 << 20;
    /// With this capability the limit on locked memory does not apply, unless it is one within a user name space: the kernel asks
    /// for that of the machine.
    const CAP_IPC_LOCK: u32 = 14;
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = capabilities.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    let may_lock = capabilities & 1 << CAP_IPC_LOCK != 0;
    // The machine's own name space maps all users to themselves. A kernel without name spaces has no such file.
    let is_confined = !users.is_empty() && !users.split_whitespace().eq(["0", "0", "4294967295"]);
    if limit == libc::RLIM_INFINITY {
        findings.ok("memory may be locked without limit");
    } else if may_lock && !is_confined {
        findings.ok("memory may be locked without limit, as this user has CAP_IPC_LOCK");
    } else {
        let size = limit / 1024;
        let mend = if is_confined {
            "outside of this user name space, where CAP_IPC_LOCK in it does not count: start the container with --ulimit memlock=-1, or \
             raise the limit of who starts it"
        } else {
            "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/rdma.conf, and a new login"
        };
        if limit < ENOUGH {
            findings
                .warning(format!("no more than {size} KiB of memory may be locked, and so registered"), mend);
        } else {
            findings.ok(format!("{size} KiB of memory may be locked"));
        }
    }
}
