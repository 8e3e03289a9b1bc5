//! What is found on machines that are folders.

use super::*;

/// A machine with these files, and the findings on it.
fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Findings) {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let findings = Machine { root: root.path().into() }.look();
    (root, findings)
}

fn says(findings: &Findings, level: Level, found: &str, mend: &str) -> bool {
    findings.0.iter().any(|finding| {
        let mended = finding.mend.as_deref().unwrap_or_default();
        finding.level == level && finding.found.contains(found) && mended.contains(mend)
    })
}

const WELL: &[(&str, &str)] = &[
    ("sys/module/ib_core/parameters/netns_mode", "Y\n"),
    ("sys/module/ib_uverbs/x", ""),
    ("sys/module/rdma_ucm/x", ""),
    ("sys/class/infiniband/rxe0/ports/1/state", "4: ACTIVE\n"),
    ("sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "eth7\n"),
    ("sys/class/infiniband/rxe0/ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n"),
    ("sys/class/infiniband_verbs/uverbs0/x", ""),
    ("dev/infiniband/uverbs0", ""),
    ("etc/libibverbs.d/rxe.driver", "driver rxe"),
    ("dev/infiniband/rdma_cm", ""),
    ("proc/self/cgroup", "0::/a\n"),
    ("sys/fs/cgroup/a/rdma.max", "rxe0 hca_handle=max hca_object=max\n"),
];

fn changed(path: &str, text: Option<&str>) -> Findings {
    let files: Vec<_> = WELL
        .iter()
        .filter_map(
            |(own, before)| {
                if *own == path { text.map(|text| (*own, text)) } else { Some((*own, *before)) }
            },
        )
        .collect();
    machine(&files).1
}

#[test]
fn a_machine_that_is_well_has_no_errors() {
    let (_root, findings) = machine(WELL);
    assert!(
        findings.0.iter().all(|finding| finding.level == Level::Ok),
        "{findings:?}",
        findings = findings.0
    );
}

/// A kernel that has RDMA in modules, none of them loaded.
const BARE: &[(&str, &str)] = &[
    ("proc/sys/kernel/osrelease", "6.1.0-9-amd64\n"),
    ("lib/modules/6.1.0-9-amd64/modules.builtin", "kernel/lib/crc.ko\n"),
    (
        "lib/modules/6.1.0-9-amd64/modules.dep",
        "kernel/drivers/infiniband/core/ib_core.ko.xz: a.ko\nkernel/drivers/infiniband/core/ib_uverbs.ko:\n\
         kernel/drivers/infiniband/core/rdma_ucm.ko:\nkernel/drivers/infiniband/sw/rxe/rdma_rxe.ko:\n",
    ),
    ("sys/class/net/eth3/operstate", "up"),
    ("usr/bin/rdma", ""),
];

#[test]
fn a_machine_without_modules_is_told_to_load_them() {
    let (_root, findings) = machine(BARE);
    assert!(says(&findings, Level::Error, "core is not loaded", "modprobe -a ib_uverbs rdma_ucm"));
    assert!(says(
        &findings,
        Level::Error,
        "no RDMA device",
        "modprobe rdma_rxe; sudo rdma link add rxe0 type rxe netdev eth3"
    ));
    assert!(!says(&findings, Level::Error, "no RDMA device", "iproute2"));
    let with_ucm: Vec<_> =
        BARE.iter().chain(WELL.iter().filter(|(path, _)| !path.contains("rdma_ucm"))).copied().collect();
    let (_root, findings) = machine(&with_ucm);
    assert!(says(&findings, Level::Error, "rdma_ucm is not loaded", "sudo modprobe rdma_ucm"));
}

#[test]
fn no_command_is_proposed_that_the_machine_does_not_have() {
    let without = |left_out: &str| {
        let files: Vec<_> = BARE.iter().filter(|(path, _)| !path.contains(left_out)).copied().collect();
        machine(&files)
    };
    let (_root, findings) = without("usr/bin/rdma");
    assert!(says(&findings, Level::Error, "no RDMA device", "install the package iproute2 or iproute (for"));
    assert!(!says(&findings, Level::Error, "", "apt-get"));
    for system in ["ID=debian\n", "NAME=\"Linux Mint\"\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"] {
        let files = BARE.iter().filter(|(path, _)| *path != "usr/bin/rdma").copied();
        let files: Vec<_> = files.chain([("etc/os-release", system)]).collect();
        let (_root, findings) = machine(&files);
        assert!(says(&findings, Level::Error, "no RDMA device", "sudo apt-get install iproute2 (for"));
    }
    let (_root, findings) = without("modules.dep");
    assert!(says(&findings, Level::Error, "Linux 6.1.0-9-amd64 has no such module", "NDCOMPAT_EMULATOR=on"));
    assert!(says(&findings, Level::Error, "no RDMA device", "has neither soft-RoCE"));
    let proposed = |findings: &Findings, text: &str| {
        findings.0.iter().any(|finding| finding.mend.as_deref().unwrap_or_default().contains(text))
    };
    assert!(
        !proposed(&findings, "modprobe") && !proposed(&findings, "link add") && proposed(&findings, "ci/lab")
    );
    // Without any list, nothing is known.
    let (_root, findings) = without("modules.");
    assert!(says(&findings, Level::Error, "no list of modules", "if the kernel has it"));
}

#[test]
fn the_package_of_the_modules_is_the_distributions() {
    for (system, release, package) in [
        ("ID=ubuntu", "6.8.0-1-azure", "linux-modules-extra-6.8.0-1-azure"),
        ("ID=debian", "6.1.0-9-cloud-amd64", "linux-image-amd64, and boot it: cloud kernels have no RDMA"),
        ("ID=debian", "6.1.0-9-cloud-arm64", "linux-image-arm64, and boot it: cloud kernels have no RDMA"),
        ("ID=other", "6.1", "package of modules for 6.1"),
    ] {
        let list = format!("lib/modules/{release}/modules.builtin");
        let (_root, findings) =
            machine(&[("etc/os-release", system), ("proc/sys/kernel/osrelease", release), (&list, "")]);
        assert!(says(&findings, Level::Error, "core is not loaded", package), "{:?}", findings.0);
    }
}

#[test]
fn a_part_of_the_kernel_is_as_good_as_a_module() {
    let builtin = "kernel/drivers/infiniband/core/ib_core.ko\nkernel/drivers/infiniband/core/rdma-ucm.ko\n";
    let mut files: Vec<_> = WELL.iter().filter(|(path, _)| !path.contains("rdma_ucm")).copied().collect();
    files.extend([("proc/sys/kernel/osrelease", "6.1"), ("lib/modules/6.1/modules.builtin", builtin)]);
    assert!(machine(&files).1.is_well());
}

#[test]
fn drivers_that_rdma_core_lacks_are_found() {
    let findings = changed("etc/libibverbs.d/rxe.driver", None);
    assert!(says(&findings, Level::Error, "rdma-core has no drivers", "package rdma-core or libibverbs"));
    let files: Vec<_> = WELL.iter().copied().chain([("etc/os-release", "ID=debian")]).collect();
    let (root, _) = machine(&files);
    let device = root.path().join("sys/class/infiniband/rxe0/device");
    fs::create_dir_all(&device).unwrap();
    std::os::unix::fs::symlink("../../bus/drivers/mlx5_core", device.join("driver")).unwrap();
    let findings = Machine { root: root.path().into() }.look();
    assert!(says(&findings, Level::Error, "lacks mlx5.driver", "ibverbs-providers"));
}

/// What /proc/self/uid_map is outside of user name spaces.
const ALL_USERS: &str = "         0          0 4294967295\n";

#[test]
fn a_capability_within_a_user_name_space_lifts_no_limit() {
    let mut findings = Findings::default();
    let users = "         0       1000          1\n         1     100000      65536\n";
    programs::locked_memory(&mut findings, 64 << 10, "CapEff:\t000001ffffffffff\n", users);
    assert!(says(&findings, Level::Warning, "64 KiB of memory", "--ulimit memlock=-1"));
}

#[test]
fn limits_and_variables_are_looked_at() {
    let mut findings = Findings::default();
    programs::open_files(&mut findings, 64);
    programs::locked_memory(&mut findings, 64 << 10, "CapEff:\t0000000000000000\n", ALL_USERS);
    assert!(says(&findings, Level::Warning, "64 open files", "ulimit -n"));
    assert!(says(&findings, Level::Warning, "64 KiB of memory", "memlock"));
    let mut findings = Findings::default();
    programs::open_files(&mut findings, 1024);
    programs::locked_memory(&mut findings, 64 << 10, "CapEff:\t000001ffffffffff\n", ALL_USERS);
    programs::locked_memory(&mut findings, 64 << 10, "CapEff:\t000001ffffffffff\n", "");
    programs::variables(&mut findings, |name| (name == "NDCOMPAT_EMULATOR").then(|| "on".into()));
    assert!(findings.0.iter().all(|finding| finding.level == Level::Ok));
    programs::variables(&mut findings, |name| (name == "NDCOMPAT_EMULATOR").then(|| "foo".into()));
    assert!(says(&findings, Level::Error, "NDCOMPAT_EMULATOR=foo", "auto, on or off"));
    programs::variables(&mut findings, |name| name.ends_with("_RNR_TIMEOUT").then(|| "1e3".into()));
    assert!(says(&findings, Level::Error, "NDCOMPAT_EMULATOR_RNR_TIMEOUT=1e3", "milliseconds"));
    programs::variables(&mut findings, |name| name.ends_with("_GONE").then(|| "/tmp".into()));
    assert!(says(&findings, Level::Error, "NDCOMPAT_EMULATOR_GONE=/tmp", "remove the file"));
    programs::variables(&mut findings, |name| name.ends_with("_GONE").then(|| "/none/of/these".into()));
    assert!(says(&findings, Level::Error, "NDCOMPAT_EMULATOR_GONE=/none", "a folder that exists"));
    programs::variables(&mut findings, |name| name.ends_with("_LOG").then(|| "banana=debug".into()));
    assert!(says(&findings, Level::Warning, "no module is named 'banana'", "unset NDCOMPAT_LOG"));
}

#[test]
fn a_port_that_is_down_names_its_interface() {
    let findings = changed("sys/class/infiniband/rxe0/ports/1/state", Some("1: DOWN\n"));
    assert!(says(&findings, Level::Error, "DOWN", "ip link set eth7 up"));
}

#[test]
fn a_port_without_a_cable_is_no_error_beside_one_that_works() {
    let none = "0000:0000:0000:0000:0000:0000:0000:0000\n";
    // Of the same device, and of another.
    for second in ["sys/class/infiniband/rxe0/ports/2", "sys/class/infiniband/rxe1/ports/1"] {
        let (state, gid) = (format!("{second}/state"), format!("{second}/gids/0"));
        let mut files: Vec<_> = WELL.to_vec();
        files.extend([(state.as_str(), "1: DOWN\n"), (gid.as_str(), none)]);
        let findings = machine(&files).1;
        assert!(findings.is_well(), "{:?}", findings.0);
        assert!(says(&findings, Level::Warning, "DOWN", "is the cable in?"));
        assert!(says(&findings, Level::Warning, "no GID", "ip address add"));
        for file in &mut files {
            file.1 = if file.0.ends_with("state") { "1: DOWN\n" } else { file.1 };
        }
        assert!(says(&machine(&files).1, Level::Error, "rxe0, port 1 on eth7: DOWN", "ip link set eth7 up"));
    }
}

#[test]
fn a_port_of_infiniband_is_told_what_is_true_of_it() {
    let port = |state| {
        let mut files: Vec<_> = WELL
            .iter()
            .filter(|(path, _)| !path.contains("ports/1/state") && !path.contains("ndevs"))
            .copied()
            .collect();
        files.extend([
            ("sys/class/infiniband/rxe0/ports/1/link_layer", "InfiniBand\n"),
            ("sys/class/infiniband/rxe0/ports/1/state", state),
        ]);
        machine(&files).1
    };
    let (waiting, down) = (port("2: INIT\n"), port("1: DOWN\n"));
    assert!(says(&waiting, Level::Error, "INIT", "start opensm"));
    assert!(says(&down, Level::Error, "DOWN", "is the cable in"));
    for findings in [waiting, down] {
        assert!(!says(&findings, Level::Error, "", "ip link"), "{:?}", findings.0);
    }
}

#[test]
fn a_port_without_addresses_is_told_to_get_one() {
    let none = "0000:0000:0000:0000:0000:0000:0000:0000\n";
    let findings = changed("sys/class/infiniband/rxe0/ports/1/gids/0", Some(none));
    assert!(says(&findings, Level::Error, "no GID", "ip address add"));
}

#[test]
fn nodes_that_are_missing_are_found() {
    let findings = changed("dev/infiniband/rdma_cm", None);
    assert!(says(&findings, Level::Error, "rdma_cm is missing", "modprobe rdma_ucm"));
    let findings = changed("dev/infiniband/uverbs0", None);
    assert!(says(&findings, Level::Error, "uverbs0 is missing", "ib_uverbs"));
}

#[test]
fn a_container_is_told_which_device_it_lacks() {
    let mut files: Vec<_> =
        WELL.iter().filter(|(path, _)| *path != "dev/infiniband/uverbs0").copied().collect();
    files.push((".dockerenv", ""));
    let (_root, findings) = machine(&files);
    assert!(says(&findings, Level::Error, "uverbs0", "--device=/dev/infiniband/uverbs0"));
}

/// Three devices, of which a container has one, or a network name space.
const THREE: &[(&str, &str)] = &[
    ("sys/class/infiniband_verbs/uverbs0/ibdev", "rxe0\n"),
    ("sys/class/infiniband_verbs/uverbs1/ibdev", "rxe1\n"),
    ("sys/class/infiniband_verbs/uverbs2/ibdev", "rxe2\n"),
];

#[test]
fn a_container_need_not_have_every_device() {
    let others = [
        ("sys/class/infiniband/rxe1/ports/1/state", "4: ACTIVE\n"),
        ("sys/class/infiniband/rxe2/ports/1/state", "4: ACTIVE\n"),
        (".dockerenv", ""),
    ];
    let mut files: Vec<_> = WELL.iter().chain(THREE).chain(&others).copied().collect();
    let findings = machine(&files).1;
    assert!(findings.is_well(), "{:?}", findings.0);
    let mend = "--device=/dev/infiniband/uverbs1, if rxe1 is to be used";
    assert!(says(&findings, Level::Warning, "uverbs1 is missing", mend));
    // Without any, all are errors; and every program needs this one.
    files.retain(|(path, _)| *path != "dev/infiniband/uverbs0");
    assert!(says(&machine(&files).1, Level::Error, "uverbs2 is missing", "if rxe2 is to be used"));
    files.retain(|(path, _)| *path != "dev/infiniband/rdma_cm");
    assert!(says(&machine(&files).1, Level::Error, "rdma_cm is missing", "--device=/dev/infiniband/rdma_cm"));
}

#[test]
fn nodes_of_devices_in_other_name_spaces_are_not_missed() {
    let files: Vec<_> = WELL.iter().chain(THREE).copied().collect();
    let findings = machine(&files).1;
    assert!(findings.0.iter().all(|finding| finding.level == Level::Ok), "{:?}", findings.0);
}

#[test]
fn limits_of_the_control_group_and_name_spaces_are_warned_of() {
    let findings = changed("sys/fs/cgroup/a/rdma.max", Some("rxe0 hca_handle=2 hca_object=2000\n"));
    assert!(says(&findings, Level::Warning, "hca_handle=2", "rdma.max"));
    let mut around: Vec<_> = WELL.to_vec();
    around.extend([
        ("proc/self/cgroup", "0::/a/b/c\n"),
        ("sys/fs/cgroup/a/rdma.max", "rxe0 hca_handle=3 hca_object=max\n"),
    ]);
    let findings = machine(&around).1;
    assert!(
        says(&findings, Level::Warning, "/a limits RDMA: rxe0 hca_handle=3", "cgroup/a/rdma.max"),
        "that of a group around it"
    );
    let findings = changed("sys/module/ib_core/parameters/netns_mode", Some("N\n"));
    assert!(says(&findings, Level::Warning, "one network name space", "netns shared"));
}
