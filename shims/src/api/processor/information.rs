//! `GetLogicalProcessorInformation` and `GetLogicalProcessorInformationEx`.

use super::maximum_in;
use crate::arguments::InOut;
use crate::boundary::guard_bool;
use crate::error::*;
use crate::processor::topology::{Topology, topology};
use crate::processor::{Set, current, mask_of, masks, number_of};
use std::ffi::c_void;

/// `LOGICAL_PROCESSOR_RELATIONSHIP`.
#[allow(missing_docs)]
pub mod relation {
    pub const PROCESSOR_CORE: u32 = 0;
    pub const NUMA_NODE: u32 = 1;
    pub const CACHE: u32 = 2;
    pub const PROCESSOR_PACKAGE: u32 = 3;
    pub const GROUP: u32 = 4;
    pub const PROCESSOR_DIE: u32 = 5;
    pub const NUMA_NODE_EX: u32 = 6;
    pub const ALL: u32 = 0xFFFF;
}

/// Structures of C, written field by field.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn put<const N: usize>(&mut self, bytes: [u8; N]) -> &mut Bytes {
        self.0.extend_from_slice(&bytes);
        self
    }

    fn zeroes(&mut self, count: usize) -> &mut Bytes {
        self.0.resize(self.0.len() + count, 0);
        self
    }

    /// `GroupCount` and `GroupMask`, after as many reserved bytes.
    fn groups(&mut self, reserved: usize, masks: &[(u16, u64)]) -> &mut Bytes {
        self.zeroes(reserved).put((masks.len() as u16).to_le_bytes());
        self.zeroes(self.0.len().next_multiple_of(8) - self.0.len());
        for (group, mask) in masks {
            self.put(mask.to_le_bytes()).put(group.to_le_bytes()).zeroes(6);
        }
        self
    }
}

/// The result of `GetLogicalProcessorInformationEx` for a machine.
fn information_ex(machine: &Topology, relation: u32) -> Result<Vec<u8>, u32> {
    use relation::*;
    let mut all = Bytes::default();
    let mut add = |relation: u32, body: Bytes| {
        let size = body.0.len() as u32 + 8;
        all.put(relation.to_le_bytes()).put(size.to_le_bytes()).0.extend(body.0);
    };
    let sets = |sets: &[Set], flags: &dyn Fn(&Set) -> u8| -> Vec<Bytes> {
        let one = |set: &Set| {
            let mut body = Bytes::default();
            body.put([flags(set), 0]).groups(20, &masks(set));
            body
        };
        sets.iter().map(one).collect()
    };
    let asked = |one| relation == one || relation == ALL;
    if asked(PROCESSOR_PACKAGE) {
        sets(&machine.packages, &|_| 0).into_iter().for_each(|body| add(PROCESSOR_PACKAGE, body));
    }
    if relation == PROCESSOR_DIE {
        sets(&machine.dies, &|_| 0).into_iter().for_each(|body| add(PROCESSOR_DIE, body));
    }
    if asked(PROCESSOR_CORE) {
        let has_threads = |set: &Set| u8::from(set.len() > 1);
        sets(&machine.cores, &has_threads).into_iter().for_each(|body| add(PROCESSOR_CORE, body));
    }
    if asked(CACHE) {
        for cache in &machine.caches {
            let mut body = Bytes::default();
            body.put([cache.level, cache.ways]).put(cache.line.to_le_bytes()).put(cache.size.to_le_bytes());
            body.put((cache.kind as u32).to_le_bytes()).groups(18, &masks(&cache.processors));
            add(CACHE, body);
        }
    }
    if asked(NUMA_NODE) || relation == NUMA_NODE_EX {
        for node in &machine.nodes {
            let mut masks = masks(&node.processors);
            if masks.is_empty() {
                masks.push((0, 0));
            }
            // More than one group only for RelationNumaNodeEx and RelationAll.
            if relation == NUMA_NODE {
                masks.truncate(1);
            }
            let mut body = Bytes::default();
            body.put(node.number.to_le_bytes()).groups(18, &masks);
            add(NUMA_NODE, body);
        }
    }
    if asked(relation::GROUP) {
        let mut body = Bytes::default();
        body.put(machine.possible_groups().to_le_bytes()).put(machine.groups().to_le_bytes()).zeroes(20);
        for group in 0..machine.groups() {
            let mask = mask_of(&machine.online, group);
            let most = maximum_in(machine, group).max(mask.count_ones());
            body.put([most as u8, mask.count_ones() as u8]).zeroes(38).put(mask.to_le_bytes());
        }
        add(relation::GROUP, body);
    }
    if all.0.is_empty() && !matches!(relation, CACHE) { Err(ERROR_INVALID_PARAMETER) } else { Ok(all.0) }
}

/// The result of `GetLogicalProcessorInformation` for a group.
fn information(machine: &Topology, group: u16) -> Vec<u8> {
    let mut all = Bytes::default();
    let mut add = |processors: &Set, relation: u32, body: [u8; 12]| {
        let mask = mask_of(processors, group);
        if mask != 0 {
            all.put(mask.to_le_bytes()).put(relation.to_le_bytes()).zeroes(4).put(body).zeroes(4);
        }
    };
    for core in &machine.cores {
        let mut body = [0; 12];
        body[0] = u8::from(core.len() > 1);
        add(core, relation::PROCESSOR_CORE, body);
    }
    for package in &machine.packages {
        add(package, relation::PROCESSOR_PACKAGE, [0; 12]);
    }
    for cache in &machine.caches {
        let mut body = [0; 12];
        (body[0], body[1]) = (cache.level, cache.ways);
        body[2..4].copy_from_slice(&cache.line.to_le_bytes());
        body[4..8].copy_from_slice(&cache.size.to_le_bytes());
        body[8..].copy_from_slice(&(cache.kind as u32).to_le_bytes());
        add(&cache.processors, relation::CACHE, body);
    }
    for node in &machine.nodes {
        let mut body = [0; 12];
        body[..4].copy_from_slice(&node.number.to_le_bytes());
        add(&node.processors, relation::NUMA_NODE, body);
    }
    all.0
}

/// # Safety
/// `buffer` is NULL or has as much room as `length` says.
unsafe fn deliver(
    found: Result<Vec<u8>, u32>,
    buffer: *mut c_void,
    length: InOut<'_, u32>,
) -> Result<(), u32> {
    let room = length.read().ok_or(ERROR_INVALID_PARAMETER)?;
    let found = found?;
    length.put(found.len() as u32);
    if (room as usize) < found.len() || buffer.is_null() {
        return Err(ERROR_INSUFFICIENT_BUFFER);
    }
    // SAFETY: no more than there is room for, as the caller promises.
    unsafe { buffer.cast::<u8>().copy_from_nonoverlapping(found.as_ptr(), found.len()) };
    Ok(())
}

/// `GetLogicalProcessorInformationEx`.
///
/// # Safety
/// `buffer` is NULL or has as much room as `length` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetLogicalProcessorInformationEx(
    relation: u32,
    buffer: *mut c_void,
    length: InOut<'_, u32>,
) -> i32 {
    // SAFETY: C's caller has as much room as `length` says.
    guard_bool(|| unsafe { deliver(information_ex(topology(), relation), buffer, length) })
}

/// `GetLogicalProcessorInformation`: of the calling thread's group.
///
/// # Safety
/// `buffer` is NULL or has as much room as `length` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetLogicalProcessorInformation(
    buffer: *mut c_void,
    length: InOut<'_, u32>,
) -> i32 {
    // SAFETY: C's caller has as much room as `length` says.
    guard_bool(|| unsafe { deliver(Ok(information(topology(), number_of(current()).0)), buffer, length) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processor::topology::example;
    use std::ptr::null_mut;

    /// The structures in a buffer of `GetLogicalProcessorInformationEx`: relation and body.
    fn split(mut bytes: &[u8]) -> Vec<(u32, &[u8])> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            let (one, rest) = bytes.split_at(word(4) as usize);
            found.push((word(0), &one[8..]));
            bytes = rest;
        }
        found
    }

    #[test]
    fn a_large_machine_is_described_over_its_groups() {
        let (machine, root) = example();
        std::fs::remove_dir_all(root).unwrap();
        let all = information_ex(&machine, relation::ALL).unwrap();
        let all = split(&all);
        let of = |relation| {
            all.iter().filter(|(kind, _)| *kind == relation).map(|(_, body)| *body).collect::<Vec<_>>()
        };
        assert_eq!([0, 1, 2, 3, 4, 5].map(|relation| of(relation).len()), [48, 2, 98, 2, 1, 0]);
        let mask = |bytes: &[u8]| {
            (
                u64::from_le_bytes(bytes[..8].try_into().unwrap()),
                u16::from_le_bytes(bytes[8..10].try_into().unwrap()),
            )
        };
        // A core with both its threads in the first group, one with a thread in each, and one with a thread that is off.
        let cores = of(relation::PROCESSOR_CORE);
        assert_eq!((cores[1].len(), cores[1][0], mask(&cores[1][24..])), (40, 1, (1 << 1 | 1 << 49, 0)));
        assert_eq!(
            (cores[20].len(), mask(&cores[20][24..]), mask(&cores[20][40..])),
            (56, (1 << 20, 0), (1 << 4, 1))
        );
        assert_eq!((cores[47].len(), cores[47][0], mask(&cores[47][24..])), (40, 0, (1 << 24, 1)));
        let cache = of(relation::CACHE)[0];
        assert_eq!((&cache[..4], mask(&cache[32..])), (&[1, 12, 64, 0][..], (1 | 1 << 48, 0)));
        // Both groups of a node for who asks for all, one for who asks in the old way.
        let nodes = information_ex(&machine, relation::NUMA_NODE).unwrap();
        assert_eq!(
            split(&nodes).iter().map(|(kind, body)| (*kind, body.len())).collect::<Vec<_>>(),
            [(1, 40); 2]
        );
        let nodes = information_ex(&machine, relation::NUMA_NODE_EX).unwrap();
        assert_eq!(
            split(&nodes).iter().map(|(kind, body)| (*kind, body.len())).collect::<Vec<_>>(),
            [(1, 56); 2]
        );
        let group = of(relation::GROUP)[0];
        assert_eq!((&group[..4], group.len()), (&[2, 0, 2, 0][..], 24 + 2 * 48));
        assert_eq!((&group[24..26], &group[72..74]), (&[64, 63][..], &[64, 32][..]));
        assert_eq!(information_ex(&machine, relation::PROCESSOR_DIE).unwrap().len(), 2 * (8 + 56));
        assert_eq!(information_ex(&machine, 17), Err(ERROR_INVALID_PARAMETER));

        // The old function tells of one group: 48 cores seen from the first, 32 from the second.
        let entries = |group| information(&machine, group).len() / 32;
        assert_eq!((entries(0), entries(1)), (47 + 2 + 94 + 2 + 2, 32 + 2 + 64 + 2 + 2));
    }

    #[test]
    fn information_needs_its_room() {
        let mut length = 0;
        // SAFETY: NULL has nothing written to it, and `buffer` has 8 bytes more than any call is told of.
        unsafe {
            assert_eq!(
                ndw_GetLogicalProcessorInformationEx(relation::ALL, null_mut(), InOut::from(&mut length)),
                0
            );
            assert_eq!(last_error(), ERROR_INSUFFICIENT_BUFFER);
            let mut buffer = vec![0xFFu8; length as usize + 8];
            let (needed, target) = (length, buffer.as_mut_ptr().cast());
            length -= 1;
            assert_eq!(
                ndw_GetLogicalProcessorInformationEx(relation::ALL, target, InOut::from(&mut length)),
                0
            );
            assert_eq!((length, buffer[0]), (needed, 0xFF));
            assert_eq!(
                ndw_GetLogicalProcessorInformationEx(relation::ALL, target, InOut::from(&mut length)),
                1
            );
            let found = split(&buffer[..length as usize]);
            assert_eq!(
                found.iter().filter(|(kind, _)| *kind == relation::PROCESSOR_CORE).count(),
                topology().cores.len()
            );

            length = 0;
            assert_eq!(
                (ndw_GetLogicalProcessorInformation(null_mut(), InOut::from(&mut length)), last_error()),
                (0, ERROR_INSUFFICIENT_BUFFER)
            );
            let mut buffer = vec![0u64; length as usize / 8];
            assert_eq!(
                ndw_GetLogicalProcessorInformation(buffer.as_mut_ptr().cast(), InOut::from(&mut length)),
                1
            );
            assert_eq!(length % 32, 0);
            for done in [
                ndw_GetLogicalProcessorInformation(null_mut(), InOut::NULL),
                ndw_GetLogicalProcessorInformationEx(relation::ALL, null_mut(), InOut::NULL),
                ndw_GetLogicalProcessorInformationEx(99, null_mut(), InOut::from(&mut length)),
            ] {
                assert_eq!((done, last_error()), (0, ERROR_INVALID_PARAMETER));
            }
        }
    }
}
