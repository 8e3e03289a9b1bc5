//! What the kernel has: its modules, and RDMA devices with their ports.

use super::{Findings, Machine};

/// How a module is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Module {
    /// Loaded, or part of the kernel.
    Loaded,
    /// `modprobe` finds it.
    Available,
    /// The running kernel has none of this name.
    Missing,
    /// The list of modules is not here, as in most containers.
    Unknown,
}

/// The kinds of software devices: the kernel's module, and the type that `rdma link add` takes.
const SOFTWARE: [(&str, &str); 2] = [("rdma_rxe", "rxe"), ("siw", "siw")];

/// What there is to do where the kernel can have no device.
const WITHOUT_KERNEL: &str = "without them: NDCOMPAT_EMULATOR=on, the device in user space over TCP; or a virtual machine that has them: \
                              ci/lab of ndcompat's source";

impl Machine {
    pub(super) fn release(&self) -> String {
        self.read("/proc/sys/kernel/osrelease").unwrap_or_default()
    }

    fn module(&self, name: &str) -> Module {
        if self.path(&format!("/sys/module/{name}")).exists() {
            return Module::Loaded;
        }
        let lists = ["builtin", "dep"]
            .map(|list| self.read(&format!("/lib/modules/{}/modules.{list}", self.release())));
        let has = |list: &Option<String>| {
            let is_it = |path: &str| {
                let file = path.split(':').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
                file.split_once(".ko").is_some_and(|(own, _)| own.replace('-', "_") == name)
            };
            list.as_ref().is_some_and(|list| list.lines().any(is_it))
        };
        match &lists {
            [builtin, _] if has(builtin) => Module::Loaded,
            [_, dep] if has(dep) => Module::Available,
            [None, None] => Module::Unknown,
            _ => Module::Missing,
        }
    }

    /// Where a missing module comes from.
    fn package_of_modules(&self) -> String {
        let release = self.release();
        let system = self.read("/etc/os-release").unwrap_or_default();
        let has = |name: &str| system.lines().any(|line| line == format!("ID={name}"));
        let package = if has("ubuntu") {
            format!("sudo apt-get install linux-modules-extra-{release}")
        } else if has("debian") && release.contains("cloud") {
            let machine = release.rsplit('-').next().unwrap_or_default();
            format!("sudo apt-get install linux-image-{machine}, and boot it: cloud kernels have no RDMA")
        } else if has("debian") {
            format!("sudo apt-get install linux-image-{release}")
        } else {
            format!("the distribution's package of modules for {release}")
        };
        format!("{package}; {WITHOUT_KERNEL}")
    }

    pub(super) fn devices(&self, findings: &mut Findings, contained: bool) {
        for (module, what) in [
            ("ib_core", "the kernel's RDMA core"),
            ("ib_uverbs", "the module ib_uverbs"),
            ("rdma_ucm", "the module rdma_ucm"),
        ] {
            // The others follow from the first.
            if module != "ib_core" && !self.path("/sys/module/ib_core").exists() {
                continue;
            }
            let load = match module {
                "ib_core" => "sudo modprobe -a ib_uverbs rdma_ucm".to_owned(),
                _ => format!("sudo modprobe {module}"),
            };
            match self.module(module) {
                Module::Loaded => {}
                _ if contained => {
                    findings.error(format!("{what} is not loaded"), format!("on the host: {load}"))
                }
                Module::Available => findings.error(format!("{what} is not loaded"), load),
                Module::Unknown => findings.error(
                    format!(
                        "{what} is not loaded, and there is no list of modules of Linux {}",
                        self.release()
                    ),
                    format!("{load}, if the kernel has it; {}", self.package_of_modules()),
                ),
                Module::Missing => findings.error(
                    format!("{what} is not loaded, and Linux {} has no such module", self.release()),
                    self.package_of_modules(),
                ),
            }
        }
        let devices = self.list("/sys/class/infiniband");
        if devices.is_empty() {
            findings.error("there is no RDMA device", self.how_to_get_a_device(contained));
        }
        let ports: Vec<_> = devices.iter().flat_map(|device| self.ports(device)).collect();
        // With one port that works, others may be without a cable.
        let works = ports.iter().any(|port| port.is_active() && port.has_gid != Some(false));
        for port in &ports {
            port.tell(findings, works);
        }
    }

    /// How to get a device: that of the hardware, or one in software as far as this kernel has it.
    fn how_to_get_a_device(&self, contained: bool) -> String {
        let until = "until then programs use the emulator, over TCP, unless NDCOMPAT_EMULATOR=off";
        let host = if contained { "on the host: " } else { "" };
        let hardware = format!("with hardware: {host}is its driver loaded (lspci -k)?");
        let usable: Vec<_> =
            SOFTWARE.into_iter().filter(|(module, _)| self.module(module) != Module::Missing).collect();
        let Some((module, kind)) = usable.first() else {
            let release = self.release();
            return format!(
                "{hardware} without: Linux {release} has neither soft-RoCE (rdma_rxe) nor soft-iWARP (siw): {}",
                self.package_of_modules()
            );
        };
        let tool = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"]
            .iter()
            .any(|folder| self.path(&format!("{folder}/rdma")).exists());
        let install = if tool || contained {
            String::new()
        } else {
            format!("{} (for `rdma`); ", self.install("iproute2", "iproute2 or iproute"))
        };
        let interface = self.some_interface();
        let other = if usable.len() > 1 { " (or siw)" } else { "" };
        format!(
            "{hardware} without: {host}{install}sudo modprobe {module}; sudo rdma link add {kind}0 type {kind} netdev {interface}{other}; {until}"
        )
    }

    /// A network interface on which a software device could be created.
    fn some_interface(&self) -> String {
        let usable =
            |name: &String| name != "lo" && self.read(&format!("/sys/class/net/{name}/operstate")).is_some();
        self.list("/sys/class/net").into_iter().find(usable).unwrap_or("eth0".into())
    }

    fn ports(&self, device: &str) -> Vec<Port> {
        const EMPTY: &str = "0000:0000:0000:0000:0000:0000:0000:0000";
        let base = format!("/sys/class/infiniband/{device}/ports");
        let port = |port: String| {
            let base = format!("{base}/{port}");
            let state = self.read(&format!("{base}/state")).unwrap_or_default();
            let gids = self.list(&format!("{base}/gids"));
            let is_there =
                |gid: &String| self.read(&format!("{base}/gids/{gid}")).is_some_and(|gid| gid != EMPTY);
            Port {
                name: format!("device {device}, port {port}"),
                state: state.split(": ").last().unwrap_or_default().to_owned(),
                is_infiniband: self.read(&format!("{base}/link_layer")).as_deref() == Some("InfiniBand"),
                interface: self.read(&format!("{base}/gid_attrs/ndevs/0")),
                has_gid: (!gids.is_empty()).then(|| gids.iter().any(is_there)),
            }
        };
        self.list(&base).into_iter().map(port).collect()
    }
}

/// A port of a device.
struct Port {
    name: String,
    state: String,
    is_infiniband: bool,
    interface: Option<String>,
    /// Unknown of a port that has no list of them.
    has_gid: Option<bool>,
}

impl Port {
    fn is_active(&self) -> bool {
        self.state == "ACTIVE"
    }

    fn tell(&self, findings: &mut Findings, works: bool) {
        let Port { name, state, .. } = self;
        let on = self.interface.as_ref().map_or(String::new(), |interface| format!(" on {interface}"));
        let interface = self.interface.as_deref().unwrap_or("INTERFACE");
        if self.is_active() {
            findings.ok(format!("{name}{on}: {state}"));
        } else {
            findings.fault(works, format!("{name}{on}: {state}"), self.how_to_activate(interface));
        }
        if self.has_gid == Some(false) {
            findings.fault(
                works,
                format!("{name} has no GID: its interface has no address"),
                format!("sudo ip address add ADDRESS/24 dev {interface}"),
            );
        }
    }

    fn how_to_activate(&self, interface: &str) -> String {
        match (self.is_infiniband, self.state.as_str()) {
            // The link is there, and the port waits for its address.
            (true, "INIT" | "ARMED") => {
                "no subnet manager has set the port up: start opensm on one machine of the network, or the one of its switch".into()
            }
            (true, _) => "is the cable in, and the other end on?".into(),
            (false, _) => format!("sudo ip link set {interface} up; is the cable in?"),
        }
    }
}
