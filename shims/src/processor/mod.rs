//! Processors: topology, affinity, priorities.
//!
//! Windows numbers processors within groups of 64. Here Linux's processor `n` is number `n % 64` of group `n / 64`, so a group
//! has gaps for offline processors.

pub mod affinity;
pub mod priority;
pub mod topology;

use std::collections::BTreeSet;

/// Processors by their Linux numbers.
pub type Set = BTreeSet<usize>;

/// Processors in a group.
pub const GROUP: usize = 64;

/// The processors of a group, as a mask.
pub fn mask_of(set: &Set, group: u16) -> u64 {
    let first = usize::from(group) * GROUP;
    set.range(first..first + GROUP).fold(0, |mask, processor| mask | 1 << (processor - first))
}

/// The processors of a group's mask.
pub fn set_of(mask: u64, group: u16) -> Set {
    let first = usize::from(group) * GROUP;
    (0..GROUP).filter(|bit| mask >> bit & 1 != 0).map(|bit| first + bit).collect()
}

/// The group and the number in it.
pub fn number_of(processor: usize) -> (u16, u8) {
    ((processor / GROUP) as u16, (processor % GROUP) as u8)
}

/// The groups of a set's processors, with their masks.
pub fn masks(set: &Set) -> Vec<(u16, u64)> {
    let groups: BTreeSet<u16> = set.iter().map(|processor| number_of(*processor).0).collect();
    groups.into_iter().map(|group| (group, mask_of(set, group))).collect()
}

/// The processor that the calling thread runs on.
pub fn current() -> usize {
    // SAFETY: takes nothing.
    usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}
