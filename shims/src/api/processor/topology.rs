//! Numbers of processors, groups and NUMA nodes.

use super::{GroupAffinity, ProcessorNumber, group_of, input, maximum_in, number, output};
use crate::arguments::{In, Out};
use crate::boundary::guard_bool;
use crate::error::*;
use crate::processor::masks;
use crate::processor::topology::{free_memory, topology};
use crate::processor::{Set, current, mask_of, number_of};

/// `ALL_PROCESSOR_GROUPS`.
pub(super) const ALL_GROUPS: u16 = 0xFFFF;

fn processors_in(group: u16, all: usize, groups: u16, of_group: impl Fn(u16) -> u32) -> u32 {
    number(0, || match group {
        ALL_GROUPS => Ok(all as u32),
        group if group < groups => Ok(of_group(group)),
        _ => Err(ERROR_INVALID_PARAMETER),
    })
}

/// `GetActiveProcessorCount`: of a group or of all; 0 on errors.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetActiveProcessorCount(group: u16) -> u32 {
    let machine = topology();
    processors_in(group, machine.online.len(), machine.groups(), |group| {
        mask_of(&machine.online, group).count_ones()
    })
}

/// `GetMaximumProcessorCount`: offline processors included.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetMaximumProcessorCount(group: u16) -> u32 {
    let machine = topology();
    processors_in(group, machine.possible, machine.possible_groups(), |group| maximum_in(machine, group))
}

/// `GetActiveProcessorGroupCount`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetActiveProcessorGroupCount() -> u16 {
    topology().groups()
}

/// `GetMaximumProcessorGroupCount`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetMaximumProcessorGroupCount() -> u16 {
    topology().possible_groups()
}

/// `GetNumaHighestNodeNumber`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetNumaHighestNodeNumber(highest: Out<'_, u32>) -> i32 {
    let found = topology().nodes.iter().map(|node| node.number).max().unwrap_or(0);
    guard_bool(|| output(highest, found))
}

fn node(number: u32) -> Result<&'static Set, u32> {
    let node = topology().nodes.iter().find(|node| node.number == number);
    node.map(|node| &node.processors).ok_or(ERROR_INVALID_PARAMETER)
}

/// `GetNumaNodeProcessorMaskEx`: in the group of the node's first processor; no mask for a node without processors.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetNumaNodeProcessorMaskEx(number: u16, found: Out<'_, GroupAffinity>) -> i32 {
    guard_bool(|| {
        let processors = node(number.into())?;
        let group = group_of(processors);
        output(found, GroupAffinity { mask: mask_of(processors, group), group, reserved: [0; 3] })
    })
}

/// `GetNumaNodeProcessorMask2`: a mask for each group with processors of the node; `ERROR_INSUFFICIENT_BUFFER` and how many.
///
/// # Safety
/// `found` is NULL or has room for `count` masks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ndw_GetNumaNodeProcessorMask2(
    number: u16,
    found: *mut GroupAffinity,
    count: u16,
    required: Out<'_, u16>,
) -> i32 {
    guard_bool(|| {
        if found.is_null() && count != 0 {
            return Err(ERROR_INVALID_PARAMETER);
        }
        let masks = masks(node(number.into())?);
        required.put(masks.len() as u16);
        if usize::from(count) < masks.len() {
            return Err(ERROR_INSUFFICIENT_BUFFER);
        }
        for (index, (group, mask)) in masks.into_iter().enumerate() {
            let affinity = GroupAffinity { mask, group, reserved: [0; 3] };
            // SAFETY: within the room that C's caller tells.
            unsafe { found.wrapping_add(index).write_unaligned(affinity) };
        }
        Ok(())
    })
}

/// `GetNumaNodeProcessorMask`: 0 for a node in another group than the calling thread's.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetNumaNodeProcessorMask(number: u8, mask: Out<'_, u64>) -> i32 {
    guard_bool(|| {
        let group = number_of(current()).0;
        output(mask, mask_of(node(number.into())?, group))
    })
}

/// `GetNumaProcessorNodeEx`: 0xFFFF and an error for a processor that does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetNumaProcessorNodeEx(processor: In<'_, ProcessorNumber>, found: Out<'_, u16>) -> i32 {
    guard_bool(|| {
        let node = input(processor)?.processor().map(|processor| topology().node_of(processor).unwrap_or(0));
        output(found, node.unwrap_or(0xFFFF) as u16)?;
        node.map(|_| ())
    })
}

/// `GetNumaProcessorNode`: of the calling thread's group; 0xFF and an error for a processor that does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetNumaProcessorNode(processor: u8, found: Out<'_, u8>) -> i32 {
    guard_bool(|| {
        let group = number_of(current()).0;
        let node = ProcessorNumber { group, number: processor, reserved: 0 }.processor();
        let node = node.map(|processor| topology().node_of(processor).unwrap_or(0));
        output(found, node.unwrap_or(0xFF) as u8)?;
        node.map(|_| ())
    })
}

fn available(number: u32, bytes: Out<'_, u64>) -> i32 {
    guard_bool(|| {
        node(number)?;
        output(bytes, free_memory(number).ok_or(ERROR_NOT_SUPPORTED)?)
    })
}

/// `GetNumaAvailableMemoryNode`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetNumaAvailableMemoryNode(number: u8, bytes: Out<'_, u64>) -> i32 {
    available(number.into(), bytes)
}

/// `GetNumaAvailableMemoryNodeEx`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_GetNumaAvailableMemoryNodeEx(number: u16, bytes: Out<'_, u64>) -> i32 {
    available(number.into(), bytes)
}
