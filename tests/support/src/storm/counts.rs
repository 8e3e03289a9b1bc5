//! What a storm must leave as it was.

use std::collections::BTreeMap;

/// Counts of the process that must be the same before and after a storm.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    descriptors: usize,
    pinned: usize,
    threads: usize,
    /// Bytes in use on the heap. None under AddressSanitizer, which has its own, and looks for leaks.
    heap: usize,
}

/// How many threads more than before the pools may keep.
const POOLED: usize = 32;
/// How many bytes more than before may be in use: tables and caches that have grown. A storm of seconds makes more objects than
/// fit in there.
const KEPT: usize = 2 << 20;

impl Counts {
    /// The counts as they are.
    pub fn now() -> Counts {
        let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().next().map_or(0, |number| number.parse().expect("a number"))
        };
        Counts {
            descriptors: std::fs::read_dir("/proc/self/fd").expect("procfs").count(),
            pinned: field("VmPin:") + field("VmLck:"),
            threads: field("Threads:"),
            // SAFETY: takes no arguments.
            heap: unsafe { libc::mallinfo2() }.uordblks,
        }
    }

    /// Whether nothing has leaked since `before`.
    pub fn is_back_to(&self, before: &Counts) -> bool {
        self.descriptors <= before.descriptors
            && self.pinned <= before.pinned
            && self.threads <= before.threads + POOLED
            && self.heap <= before.heap + KEPT
    }
}

/// The targets of the process's descriptors, with their numbers.
pub fn descriptors() -> BTreeMap<String, usize> {
    let links = std::fs::read_dir("/proc/self/fd").expect("procfs");
    let of = |link: std::io::Result<std::fs::DirEntry>| std::fs::read_link(link.ok()?.path()).ok();
    let mut count = BTreeMap::new();
    for path in links.filter_map(of) {
        *count.entry(path.display().to_string()).or_default() += 1;
    }
    count
}
