//! Processors, cores, packages, caches and NUMA nodes, from `/sys`.

use super::{GROUP, Set};
use std::path::Path;
use std::sync::OnceLock;

/// A cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// The level: 1, 2, 3.
    pub level: u8,
    /// The associativity in ways; 0xFF for fully associative.
    pub ways: u8,
    /// Bytes of a line.
    pub line: u16,
    /// Bytes.
    pub size: u32,
    /// Data, instructions or both.
    pub kind: CacheKind,
    /// The processors that share it.
    pub processors: Set,
}

/// `PROCESSOR_CACHE_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum CacheKind {
    Unified,
    Instruction,
    Data,
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number.
    pub number: u32,
    /// Its online processors.
    pub processors: Set,
}

/// The topology of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// The online processors.
    pub online: Set,
    /// The number of possible processors.
    pub possible: usize,
    /// Processors that share a core, by their first.
    pub cores: Vec<Set>,
    /// Processors that share a socket.
    pub packages: Vec<Set>,
    /// Processors that share a die.
    pub dies: Vec<Set>,
    /// Each cache once, by level.
    pub caches: Vec<Cache>,
    /// At least one.
    pub nodes: Vec<Node>,
}

/// Reads `0-3,8`.
fn list(text: &str) -> Option<Set> {
    let mut set = Set::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        set.extend(first.parse().ok()?..=last.parse::<usize>().ok()?);
    }
    Some(set)
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn read_list(path: &Path) -> Option<Set> {
    list(&read(path)?).filter(|set| !set.is_empty())
}

/// `32K`, `1024K`.
fn bytes(text: &str) -> Option<u32> {
    match text.strip_suffix('K') {
        Some(kilobytes) => kilobytes.parse::<u32>().ok()?.checked_mul(1024),
        None => text.parse().ok(),
    }
}

fn cache(folder: &Path, online: &Set) -> Option<Cache> {
    let number = |name: &str| read(&folder.join(name))?.parse::<u32>().ok();
    Some(Cache {
        level: number("level")?.try_into().ok()?,
        // 0 on Linux is fully associative.
        ways: number("ways_of_associativity").filter(|ways| *ways != 0).unwrap_or(0xFF).min(0xFF) as u8,
        line: number("coherency_line_size").unwrap_or(0) as u16,
        size: read(&folder.join("size")).and_then(|text| bytes(&text)).unwrap_or(0),
        kind: match read(&folder.join("type"))?.as_str() {
            "Instruction" => CacheKind::Instruction,
            "Data" => CacheKind::Data,
            _ => CacheKind::Unified,
        },
        processors: read_list(&folder.join("shared_cpu_list"))?.intersection(online).copied().collect(),
    })
}

impl Topology {
    /// Reads the topology below `devices`, which is `/sys/devices/system`.
    pub fn read(devices: &Path) -> Topology {
        let cpu = devices.join("cpu");
        let online = read_list(&cpu.join("online")).unwrap_or_else(|| {
            // SAFETY: sysconf only reads its argument.
            (0..unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as usize).collect()
        });
        let possible = read_list(&cpu.join("possible")).map_or(online.len(), |set| set.len());
        // Sets of processors that share something, each once, by their first. Without information each processor is alone, or all
        // are together.
        let shared = |names: &[&str], otherwise: &dyn Fn(usize) -> Set| {
            let mut sets: Vec<Set> = Vec::new();
            for &processor in &online {
                if sets.iter().any(|set| set.contains(&processor)) {
                    continue;
                }
                let folder = cpu.join(format!("cpu{processor}/topology"));
                let set = names.iter().find_map(|name| read_list(&folder.join(name)));
                let set = set.unwrap_or_else(|| otherwise(processor));
                sets.push(set.intersection(&online).copied().chain([processor]).collect());
            }
            sets
        };
        let packages = shared(&["package_cpus_list", "core_siblings_list"], &|_| online.clone());
        let package_of =
            |processor| packages.iter().find(|set| set.contains(&processor)).cloned().unwrap_or_default();
        let mut caches: Vec<Cache> = Vec::new();
        for &processor in &online {
            for index in 0.. {
                let folder = cpu.join(format!("cpu{processor}/cache/index{index}"));
                if !folder.exists() {
                    break;
                }
                caches.extend(cache(&folder, &online).filter(|cache| !caches.contains(cache)));
            }
        }
        caches.sort_by_key(|cache| cache.level);
        let mut nodes: Vec<Node> = read_list(&devices.join("node/online"))
            .unwrap_or_default()
            .into_iter()
            .map(|number| {
                let all =
                    read(&devices.join(format!("node/node{number}/cpulist"))).and_then(|text| list(&text));
                let processors = all.unwrap_or_default().intersection(&online).copied().collect();
                Node { number: number as u32, processors }
            })
            .collect();
        if nodes.is_empty() {
            nodes.push(Node { number: 0, processors: online.clone() });
        }
        Topology {
            possible,
            cores: shared(&["core_cpus_list", "thread_siblings_list"], &|processor| [processor].into()),
            dies: shared(&["die_cpus_list"], &package_of),
            caches,
            nodes,
            packages,
            online,
        }
    }

    /// How many groups there are.
    pub fn groups(&self) -> u16 {
        (self.online.last().map_or(0, |last| last / GROUP) + 1) as u16
    }

    /// How many groups there could be.
    pub fn possible_groups(&self) -> u16 {
        self.groups().max(self.possible.div_ceil(GROUP) as u16)
    }

    /// The node of a processor.
    pub fn node_of(&self, processor: usize) -> Option<u32> {
        self.nodes.iter().find(|node| node.processors.contains(&processor)).map(|node| node.number)
    }
}

/// The machine's topology. It is read once: later changes of processors are not noticed.
pub fn topology() -> &'static Topology {
    static TOPOLOGY: OnceLock<Topology> = OnceLock::new();
    TOPOLOGY.get_or_init(|| Topology::read(Path::new("/sys/devices/system")))
}

/// The free memory of a node, in bytes.
pub fn free_memory(node: u32) -> Option<u64> {
    let text = read(Path::new(&format!("/sys/devices/system/node/node{node}/meminfo")))?;
    let line = text.lines().find(|line| line.contains("MemFree:"))?;
    line.split_whitespace().rev().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

/// A machine of two sockets and two nodes, with 48 cores of two threads each, for tests: processors 0 to 95, and 40 is off.
#[cfg(test)]
pub(crate) fn example() -> (crate::processor::topology::Topology, std::path::PathBuf) {
    use std::fs;
    let root = std::env::temp_dir().join(format!(
        "ndcompat-sys-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let write = |name: String, text: &str| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    };
    write("cpu/online".into(), "0-39,41-95");
    write("cpu/possible".into(), "0-127");
    for processor in (0..96).filter(|processor| *processor != 40) {
        let (core, socket) = (processor % 48, processor % 48 / 24);
        let siblings = format!("{core},{}", core + 48);
        let package =
            format!("{}-{},{}-{}", socket * 24, socket * 24 + 23, socket * 24 + 48, socket * 24 + 71);
        write(format!("cpu/cpu{processor}/topology/core_cpus_list"), &siblings);
        write(format!("cpu/cpu{processor}/topology/package_cpus_list"), &package);
        for (index, level, kind, size, shared) in [
            (0, 1, "Data", "32K", &siblings),
            (1, 1, "Instruction", "48K", &siblings),
            (2, 3, "Unified", "36864K", &package),
        ] {
            let folder = format!("cpu/cpu{processor}/cache/index{index}");
            write(format!("{folder}/level"), &level.to_string());
            write(format!("{folder}/type"), kind);
            write(format!("{folder}/size"), size);
            write(format!("{folder}/coherency_line_size"), "64");
            write(format!("{folder}/ways_of_associativity"), "12");
            write(format!("{folder}/shared_cpu_list"), shared);
        }
    }
    write("node/online".into(), "0-1");
    write("node/node0/cpulist".into(), "0-23,48-71");
    write("node/node1/cpulist".into(), "24-47,72-95");
    (Topology::read(&root), root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_of_two_sockets() {
        let (machine, root) = example();
        std::fs::remove_dir_all(root).unwrap();
        assert_eq!((machine.online.len(), machine.possible), (95, 128));
        assert_eq!((machine.groups(), machine.possible_groups()), (2, 2));
        assert_eq!((machine.cores.len(), machine.packages.len(), machine.dies.len()), (48, 2, 2));
        assert_eq!(machine.cores[1], [1, 49].into());
        assert_eq!(machine.cores[47], [88].into(), "its other thread is off");
        assert_eq!(machine.packages[1].len(), 47);
        assert_eq!(machine.dies, machine.packages);
        let [data, code, last] = [0, 1, 96].map(|index| &machine.caches[index]);
        assert_eq!(
            (data.level, data.kind, data.size, data.line, data.ways),
            (1, CacheKind::Data, 32768, 64, 12)
        );
        assert_eq!((code.kind, &code.processors), (CacheKind::Instruction, &[0, 48].into()));
        assert_eq!((last.level, last.kind, last.size), (3, CacheKind::Unified, 36 << 20));
        assert_eq!((machine.caches.len(), &last.processors), (98, &machine.packages[0]));
        assert_eq!([machine.node_of(0), machine.node_of(95), machine.node_of(40)], [Some(0), Some(1), None]);
    }

    #[test]
    fn a_machine_that_tells_nothing() {
        let machine = Topology::read(Path::new("/nonexistent"));
        assert_eq!(machine.cores.len(), machine.online.len());
        assert_eq!(machine.packages, std::slice::from_ref(&machine.online));
        assert_eq!(machine.nodes, [Node { number: 0, processors: machine.online.clone() }]);
        assert!(machine.caches.is_empty() && machine.possible == machine.online.len());
    }

    #[test]
    fn lists_of_processors() {
        assert_eq!(list("0-3,8\n"), Some([0, 1, 2, 3, 8].into()));
        assert_eq!((list(""), list("x"), list("1-")), (Some(Set::new()), None, None));
        assert_eq!((bytes("32K"), bytes("5"), bytes("x")), (Some(32768), Some(5), None));
    }

    #[test]
    fn this_machine_makes_sense() {
        let machine = topology();
        for sets in [&machine.cores, &machine.packages] {
            let all: Set = sets.iter().flatten().copied().collect();
            assert_eq!(
                (all, sets.iter().map(Set::len).sum()),
                (machine.online.clone(), machine.online.len())
            );
        }
        assert!(machine.online.contains(&super::super::current()));
    }
}
